//! Writing the outputs of a recording.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::Context as _;

use crate::cli::{Options, Output, Place, Verbosity};
use crate::output::file::OutputFile;
use crate::output::{self, Format, TableOptions, Weight, counted, thousands, write_header, write_table};
use crate::profile::Profile;

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

    /// Writes everything. Without any sample there is nothing to write, which is said; the answer is false then.
    pub(super) fn write(self, profile: &Profile) -> anyhow::Result<bool> {
        if self.verbosity > Verbosity::Quiet || profile.header.samples == 0 {
            write_header(&profile.header, &mut io::stderr().lock()).context("cannot write to stderr")?;
        }
        if profile.header.samples == 0 {
            eprintln!("bpfprof: {}", no_samples(profile));
            return Ok(false);
        }
        self.write_tables(profile)?;
        if self.stdout == Stdout::Folded {
            let mut stdout = io::BufWriter::new(io::stdout().lock());
            let written = output::write(profile, Format::Folded, self.weight, &mut stdout)
                .and_then(|()| stdout.flush());
            match written {
                // The reader has seen enough; the other outputs are still wanted.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written.context("cannot write the folded stacks to stdout")?,
            }
        }
        for (file, format) in self.files {
            let path = file.path().display().to_string();
            let size = file
                .fill(|to| output::write(profile, format, self.weight, to))
                .with_context(|| format!("cannot write {path}"))?;
            if self.verbosity > Verbosity::Quiet {
                eprintln!("bpfprof: wrote {path} ({}, {} bytes)", format.describe(), thousands(size));
            }
        }
        Ok(true)
    }

    fn write_tables(&self, profile: &Profile) -> anyhow::Result<()> {
        let rows =
            if self.verbosity == Verbosity::Verbose { usize::MAX } else { TableOptions::default().rows };
        let table = |width, to: &mut dyn io::Write| write_table(profile, TableOptions { rows, width }, to);
        if self.stdout == Stdout::Table {
            let width = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
            table(width.filter(|&width| width > 0), &mut io::stdout().lock())
                .context("cannot write the table to stdout")?;
        } else if self.verbosity > Verbosity::Quiet {
            let mut stderr = io::stderr().lock();
            writeln!(stderr)
                .and_then(|()| table(None, &mut stderr))
                .context("cannot write the table to stderr")?;
        }
        Ok(())
    }
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
