//! `bpfprof --all` for a long time, while programs come and go.
//!
//! bpfprof tells the states of stacks only at its end. So one recording runs from beginning to end, whose memory and descriptors are watched, and
//! beside it one recording after the other, of a minute each, which give the shares by the minute.

mod churn;
mod minute;
mod steadiness;

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Result;

use self::{churn::Churn, minute::Minute, steadiness::Steadiness};
use super::{Bench, recording::Recording, running::Running};
use crate::figure::Figure;

/// Samples a second of each recording.
const RATE: u32 = 499;

/// Least share of complete stacks in each minute, of 100.
const COMPLETE: f64 = 98.0;

/// What memory may grow by: new stacks and names go on coming.
const MEMORY_SHARE: f64 = 0.2;
const MEMORY_MEGABYTES: f64 = 10.0;

/// What the number of descriptors may grow by.
const DESCRIPTORS_SHARE: f64 = 0.1;
const DESCRIPTORS_AMOUNT: f64 = 20.0;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let churn = Churn::start(bench)?;
    let (mut long, long_json) = bpfprof(bench, "long");
    let mut long = Running::start(&mut long)?;
    long.wait_until_attached()?;
    let mut minutes = Vec::new();
    for number in 1..=bench.minutes {
        let minute = Minute::record(bench, &mut long)?;
        println!("{}", minute.figure(number));
        minutes.push(minute);
    }
    long.interrupt()?;
    long.wait()?;
    churn.stop()?;
    Ok(verdict(&minutes, &Recording::read(&long_json)?))
}

/// A recording of the whole machine until it is told to end; writes JSON to the second file.
fn bpfprof(bench: &Bench<'_>, name: &str) -> (Command, PathBuf) {
    let json = bench.folder.join(format!("soak-{name}.json"));
    let mut command = Command::new(bench.workspace.bpfprof());
    command.args(["--quiet", "-e", "cpu-clock", "-F", &RATE.to_string(), "--all", "-o"]).arg(&json);
    command.stdout(Stdio::null());
    (command, json)
}

fn verdict(minutes: &[Minute], long: &Recording) -> Vec<Figure> {
    let short_of = minutes.iter().filter(|minute| !minute.is_complete()).count();
    let shares = long.shares();
    vec![
        Figure::plain("minutes with too few complete stacks", format!("{short_of} of {}", minutes.len()))
            .budget("none", short_of == 0),
        Figure::plain("    the long recording", shares.to_string())
            .budget(format!("{COMPLETE} %"), shares.complete >= COMPLETE),
        Figure::plain("    samples it lost", format!("{:.3} %", long.lost_percent()))
            .budget("0.1 %", long.lost_percent() < 0.1),
        flatness(
            "    its memory, first and last minutes",
            "MB",
            &minutes.iter().map(|minute| minute.megabytes).collect::<Vec<_>>(),
            (MEMORY_SHARE, MEMORY_MEGABYTES),
        ),
        flatness(
            "    its descriptors, first and last minutes",
            "open",
            &minutes.iter().map(|minute| minute.descriptors).collect::<Vec<_>>(),
            (DESCRIPTORS_SHARE, DESCRIPTORS_AMOUNT),
        ),
    ]
}

/// Whether a figure grew by more than this share of it and this amount.
fn flatness(what: &str, unit: &str, by_minute: &[f64], (share, amount): (f64, f64)) -> Figure {
    let Some(steadiness) = Steadiness::of(by_minute) else {
        return Figure::plain(what, "too short to say: it takes 3 minutes");
    };
    let Steadiness { first, last } = steadiness;
    Figure::plain(what, format!("{first:.0}, {last:.0} {unit}"))
        .budget(format!("+ {:.0} % + {amount} {unit}", share * 100.0), steadiness.is_flat(share, amount))
}
