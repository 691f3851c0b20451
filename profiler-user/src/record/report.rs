//! Writing the outputs of a recording.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::cli::{Options, Output, Place, Verbosity};
use crate::output::file::OutputFile;
use crate::output::{self, Format, TableOptions, Weight, counted, thousands, write_header, write_table};
use crate::profile::Profile;
use crate::say::say;

/// The outputs of a run, prepared before it.
pub(super) struct Report {
    files: Vec<(OutputFile, Format)>,
    stdout: Stdout,
    weight: Weight,
    verbosity: Verbosity,
}

/// What goes to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stdout {
    Folded,
    Table,
    Nothing,
}

impl Report {
    /// Makes sure that every output can be written.
    pub(super) fn prepare(options: &Options) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for Output { place, format } in &options.outputs {
            if let Place::File(path) = place {
                let file =
                    OutputFile::create(path).with_context(|| format!("cannot write {}", path.display()))?;
                files.push((file, *format));
            }
        }
        let asked_for_stdout = options.outputs.iter().any(|output| output.place == Place::Stdout);
        let stdout = match (asked_for_stdout, io::stdout().is_terminal(), files.is_empty()) {
            (true, ..) | (false, false, true) => Stdout::Folded,
            (false, true, _) => Stdout::Table,
            (false, false, false) => Stdout::Nothing,
        };
        Ok(Self { files, stdout, weight: options.weight, verbosity: options.verbosity })
    }

    /// Whether folded stacks go to stdout.
    pub(super) fn folded_on_stdout(&self) -> bool {
        self.stdout == Stdout::Folded
    }

    /// Writes everything, files first. Without any sample there is nothing to write, which is said; the answer is false then.
    pub(super) fn write(mut self, profile: &Profile) -> anyhow::Result<bool> {
        if profile.header.samples == 0 {
            print_header(profile);
            say(no_samples(profile));
            return Ok(false);
        }
        let mut written = Vec::new();
        for (file, format) in self.files.drain(..) {
            let path = file.path().display().to_string();
            let size = file
                .fill(|to| output::write(profile, format, self.weight, to))
                .with_context(|| format!("cannot write {path}"))?;
            written.push(format!("wrote {path} ({}, {} bytes)", format.describe(), thousands(size)));
        }
        self.write_stdout(profile)?;
        if self.verbosity > Verbosity::Quiet {
            print_header(profile);
            if self.stdout != Stdout::Table {
                let _ = writeln!(io::stderr())
                    .and_then(|()| self.write_table(profile, None, &mut io::stderr().lock()));
            }
            written.iter().for_each(say);
        }
        Ok(true)
    }

    fn write_stdout(&self, profile: &Profile) -> anyhow::Result<()> {
        let mut stdout = io::BufWriter::new(io::stdout().lock());
        let written = match self.stdout {
            Stdout::Folded => output::write(profile, Format::Folded, self.weight, &mut stdout),
            Stdout::Table => {
                let width =
                    rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
                self.write_table(profile, width.filter(|&width| width > 0), &mut stdout)
            }
            Stdout::Nothing => Ok(()),
        };
        match written.and_then(|()| stdout.flush()) {
            // The reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to stdout"),
        }
    }

    fn write_table(&self, profile: &Profile, width: Option<usize>, to: &mut dyn io::Write) -> io::Result<()> {
        let rows =
            if self.verbosity == Verbosity::Verbose { usize::MAX } else { TableOptions::default().rows };
        write_table(profile, TableOptions { rows, width }, to)
    }
}

/// Shows the header. Nobody may be reading stderr.
fn print_header(profile: &Profile) {
    let _ = write_header(&profile.header, &mut io::stderr().lock());
}

/// Says that there is nothing, and why that may be.
fn no_samples(profile: &Profile) -> String {
    let header = &profile.header;
    let seconds = header.seconds;
    if header.lost.samples > 0 {
        return format!(
            "no sample was kept in {seconds:.1} s: {} lost",
            counted(header.lost.samples, "sample")
        );
    }
    format!(
        "no sample in {seconds:.1} s: the target did not run on the CPUs sampled, or too briefly (a task that waits uses no CPU); \
         nothing was written. A longer --duration, a higher --freq or another --event may help"
    )
}
