//! Putting a profile where it is wanted: files, stdout, and what people should know on stderr.
//!
//! stdout carries data only. Not a terminal: folded stacks, unless every output is named. A terminal: the table.

use std::io::{self, IsTerminal as _, Write};

use anyhow::Context as _;

use crate::cli::{Output, OutputOptions, Place, Verbosity};
use crate::output::file::OutputFile;
use crate::output::{
    self, Detail, Format, TableOptions, View, ViewError, thousands, write_header, write_headers, write_table,
};
use crate::profile::{Header, Profile};
use crate::say::{StatusLine, say};

/// The outputs of a run, prepared before it.
pub(crate) struct Outputs {
    files: Vec<(OutputFile, Format)>,
    stdout: Stdout,
    view: View,
    rows: usize,
    verbosity: Verbosity,
}

/// What goes to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stdout {
    Folded,
    Table,
    Nothing,
}

impl Outputs {
    /// Makes sure that every output can be written.
    pub(crate) fn prepare(options: &OutputOptions) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for Output { place, format } in &options.outputs {
            if let Place::File(path) = place {
                let file = match format {
                    // It has addresses of all code, and names of all processes.
                    Format::Pprof => OutputFile::create_private(path),
                    _ => OutputFile::create(path),
                };
                files.push((file.with_context(|| format!("cannot write {}", path.display()))?, *format));
            }
        }
        let asked_for_stdout = options.outputs.iter().any(|output| output.place == Place::Stdout);
        let stdout = match (asked_for_stdout, io::stdout().is_terminal(), files.is_empty()) {
            (true, ..) | (false, false, true) => Stdout::Folded,
            (false, true, _) => Stdout::Table,
            (false, false, false) => Stdout::Nothing,
        };
        Ok(Self {
            files,
            stdout,
            view: options.view.clone(),
            rows: options.rows,
            verbosity: options.verbosity,
        })
    }

    /// Makes sure that events of these names are enough for what is to be shown.
    pub(crate) fn check(&self, events: &[&str]) -> Result<(), ViewError> {
        self.view.check(events)
    }

    /// How much is said.
    pub(crate) fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Whether folded stacks go to stdout.
    pub(crate) fn folded_on_stdout(&self) -> bool {
        self.stdout == Stdout::Folded
    }

    /// Writes everything, files first. One that fails does not keep the others from being written.
    pub(crate) fn write(mut self, profile: &Profile) -> anyhow::Result<()> {
        let (mut written, mut failures) = (Vec::new(), Vec::new());
        let mut line = StatusLine::new(self.verbosity > Verbosity::Quiet);
        for (file, format) in self.files.drain(..) {
            line.show(format_args!("writing {}", file.path().display()));
            match fill(file, format.describe(), |to| output::write(profile, format, &self.view, to)) {
                Ok(told) => written.push(told),
                Err(error) => failures.push(error),
            }
        }
        drop(line);
        let printed = match self.stdout {
            Stdout::Folded => print(|to| output::write(profile, Format::Folded, &self.view, to)),
            Stdout::Table => print(|to| self.write_table(profile, terminal_width(), to)),
            Stdout::Nothing => Ok(()),
        };
        failures.extend(printed.err());
        if self.verbosity > Verbosity::Quiet {
            print_header(&profile.header, self.verbosity);
            if self.stdout != Stdout::Table {
                let _ = writeln!(io::stderr())
                    .and_then(|()| self.write_table(profile, None, &mut io::stderr().lock()));
            }
            written.iter().for_each(say);
        }
        let last = failures.pop();
        failures.iter().for_each(|error| say(format_args!("{error:#}")));
        last.map_or(Ok(()), Err)
    }

    fn write_table(&self, profile: &Profile, width: Option<usize>, to: &mut dyn Write) -> io::Result<()> {
        let options =
            TableOptions { by: self.view.by, metrics: self.view.metrics.clone(), rows: self.rows, width };
        write_table(&profile.with_inlines(self.view.inlines), &options, to)
    }
}

/// Writes a file, and says so in words.
pub(crate) fn fill(
    file: OutputFile,
    what: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<String> {
    let path = file.path().display().to_string();
    let size = file.fill(write).with_context(|| format!("cannot write {path}"))?;
    Ok(format!("wrote {path} ({what}, {} bytes)", thousands(size)))
}

/// Writes data to stdout.
pub(crate) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Shows the header. Nobody may be reading stderr.
pub(crate) fn print_header(header: &Header, verbosity: Verbosity) {
    let _ = write_header(header, detail(verbosity), &mut io::stderr().lock());
}

/// Shows the headers of two profiles that are compared.
pub(crate) fn print_headers(before: &Header, after: &Header, verbosity: Verbosity) {
    let _ = write_headers(before, after, detail(verbosity), &mut io::stderr().lock());
}

fn detail(verbosity: Verbosity) -> Detail {
    if verbosity == Verbosity::Verbose { Detail::Full } else { Detail::Brief }
}

/// Columns of the terminal that stdout is; `None` when it is none.
pub(crate) fn terminal_width() -> Option<usize> {
    let width = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    width.filter(|&width| width > 0)
}
