//! A minute of the soak.

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result};

use super::{
    super::{
        Bench,
        own_memory::{descriptors, resident_megabytes},
        recording::{Recording, Shares},
        running::Running,
    },
    COMPLETE, bpfprof,
};
use crate::figure::{Figure, median};

/// Between two looks at the long recording.
const LOOK: Duration = Duration::from_secs(2);

/// What a minute showed.
pub(super) struct Minute {
    shares: Shares,
    user_stacks: u64,
    lost: u64,
    /// Processes and threads that began on the machine.
    begun: u64,
    /// Of the long recording, the median of the minute.
    pub megabytes: f64,
    /// As above.
    pub descriptors: f64,
}

impl Minute {
    /// Records the machine for a minute and watches the long recording.
    pub(super) fn record(bench: &Bench<'_>, long: &mut Running) -> Result<Self> {
        let before = begun_so_far()?;
        let (mut command, json) = bpfprof(bench, "minute");
        let mut recording = Running::start(command.args(["-d", "60s"]))?;
        let (mut megabytes, mut open) = (Vec::new(), Vec::new());
        while !recording.has_ended()? {
            megabytes.push(resident_megabytes(long.id()).context("the long recording has ended")?);
            open.push(descriptors(long.id())? as f64);
            thread::sleep(LOOK);
        }
        recording.wait()?;
        let begun = begun_so_far()?.saturating_sub(before);
        let recording = Recording::read(&json)?;
        Ok(Self {
            shares: recording.shares(),
            user_stacks: recording.user_stacks(),
            lost: recording.header.lost.samples,
            begun,
            megabytes: median(megabytes),
            descriptors: median(open),
        })
    }

    /// A line of it.
    pub(super) fn figure(&self, number: u32) -> Figure {
        let Self { shares, user_stacks, lost, begun, megabytes, descriptors } = self;
        let text = format!(
            "{shares} of {user_stacks} stacks; {lost} samples lost; {begun} processes and threads begun; \
             {megabytes:.0} MB, {descriptors:.0} descriptors"
        );
        Figure::plain(format!("minute {number}"), text).budget(format!("{COMPLETE} %"), self.is_complete())
    }

    /// Whether enough of its stacks are complete.
    pub(super) fn is_complete(&self) -> bool {
        self.shares.complete >= COMPLETE
    }
}

/// Processes and threads since the machine was started (proc(5)).
fn begun_so_far() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("/proc/stat cannot be read")?;
    let count = stat.lines().find_map(|line| line.strip_prefix("processes ")?.trim().parse().ok());
    count.context("/proc/stat does not say how many processes have begun")
}
