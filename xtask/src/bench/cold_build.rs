//! `cargo build` from cold, of rustc's libraries as well: nothing is known of any object.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};

use super::{
    Bench,
    figure::{Figure, median},
    project::Project,
    recording::Recording,
    running::Running,
};
use crate::process::{find_on_path, run};

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let project = Project::fetch(bench)?;
    let _cache = CacheAside::put()?;
    let (mut whole, mut to_outputs) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        project.clean()?;
        CacheAside::empty();
        let (mut bpfprof, json) = bench.bpfprof(499);
        bpfprof.arg("-o").arg(bench.folder.join("cold.folded")).arg("--");
        project.build_under(&mut bpfprof);
        run(&mut bpfprof)?;
        let ended = SystemTime::now();
        let recording = Recording::read(&json)?;
        whole.push(recording.whole_percent());
        to_outputs.push(recording.since_end(ended).as_secs_f64());
    }
    let each: Vec<String> = whole.iter().map(|percent| format!("{percent:.1}")).collect();
    let (whole, to_outputs) = (median(whole), median(to_outputs));
    let mut figures = vec![
        Figure::plain(
            "whole user stacks of a cold `cargo build`, 499 Hz",
            format!("{whole:.1} % ({})", each.join(", ")),
        )
        .budget("99 %", whole >= 99.0),
        Figure::plain("    from its end to JSON and folded stacks", format!("{to_outputs:.2} s"))
            .budget("2 s", to_outputs <= 2.0),
    ];
    let limit = Duration::from_secs_f64(20.0 * to_outputs);
    figures.push(match perf_script(bench, &project, limit)? {
        Some(took) => {
            let is_kept = took >= limit;
            let shown =
                if is_kept { "more than that".into() } else { format!("{:.1} s", took.as_secs_f64()) };
            Figure::plain("    `perf script` of the same with DWARF stacks", shown)
                .budget(format!("at least {:.1} s, 20 times bpfprof's", limit.as_secs_f64()), is_kept)
        }
        None => Figure::plain("    `perf script` of the same with DWARF stacks", "perf is not installed"),
    });
    Ok(figures)
}

/// How long perf takes from its data to text, without folding; it is stopped at the limit.
fn perf_script(bench: &Bench<'_>, project: &Project, limit: Duration) -> Result<Option<Duration>> {
    if find_on_path("perf").is_none() {
        return Ok(None);
    }
    project.clean()?;
    let mut record = bench.perf_record(499, "dwarf");
    project.build_under(&mut record);
    run(record.stdout(Stdio::null()).stderr(Stdio::null()))?;
    let mut script = Command::new("perf");
    script.args(["script", "-i"]).arg(bench.perf_data()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut script = Running::start(&mut script)?;
    while begun.elapsed() < limit && !script.has_ended()? {
        thread::sleep(Duration::from_millis(10));
    }
    let took = begun.elapsed();
    drop(script);
    let _ = fs::remove_file(bench.perf_data());
    Ok(Some(took))
}

/// The unwind tables that root's runs keep.
const CACHE: &str = "/var/cache/bpfprof/unwind";

/// The tables of earlier runs, put aside until this is dropped.
struct CacheAside(Option<PathBuf>);

impl CacheAside {
    fn put() -> Result<Self> {
        let aside = PathBuf::from(CACHE).with_file_name(format!("unwind-aside-{}", std::process::id()));
        match fs::rename(CACHE, &aside) {
            Ok(()) => Ok(Self(Some(aside))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self(None)),
            Err(error) => Err(error).with_context(|| format!("{CACHE} cannot be moved aside")),
        }
    }

    fn empty() {
        let _ = fs::remove_dir_all(CACHE);
    }
}

impl Drop for CacheAside {
    fn drop(&mut self) {
        Self::empty();
        if let Some(aside) = &self.0 {
            let _ = fs::rename(aside, CACHE);
        }
    }
}
