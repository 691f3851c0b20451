//! Trials on a machine with many CPUs: all are sampled, and memory grows with them within bounds.

use anyhow::{Context, Result};

use super::{
    console::{Console, Outcome},
    lane::SMP_CPUS,
    profile::Profile,
    smp_memory::Memory,
    trials::{Trial, require_status},
};
use crate::figure::Figure;

/// Waits until bpfprof is attached, by a link for each CPU, and a moment more.
macro_rules! until_it_samples {
    () => {
        "until [ $(cat /proc/$sampler/fdinfo/* | grep -c ^link_type) -ge 16 ]; do sleep 0.5; done; sleep 3; "
    };
}

/// Every trial.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "every-cpu",
        // The commands end before bpfprof does, so that what they did is seen.
        script: concat!(
            "for cpu in $(seq 0 15); do ln -s /bin/chain /tmp/cpu$cpu; done; \
             bpfprof $RATE $SAVE -e cpu-clock --all -d 10s & sampler=$!; ",
            until_it_samples!(),
            "for cpu in $(seq 0 15); do taskset -c $cpu /tmp/cpu$cpu 0.15 & done; wait $sampler"
        ),
        claim: "--all samples a program on each of 16 CPUs, and loses nothing",
        check: every_cpu_is_sampled,
    },
    Trial {
        name: MEMORY,
        script: concat!(
            "echo file before; cat /proc/meminfo; \
             bpfprof $RATE -e cpu-clock --all -d 10s > /dev/null & sampler=$!; ",
            until_it_samples!(),
            "echo file during; cat /proc/meminfo; echo file status; cat /proc/$sampler/status; \
             echo file fdinfo; cat /proc/$sampler/fdinfo/*; wait $sampler"
        ),
        claim: "what bpfprof holds can be read while it samples",
        check: |outcome| {
            require_status(outcome, 0)?;
            Memory::read(outcome.stdout()).map(|_| ())
        },
    },
];

const MEMORY: &str = "memory";

fn every_cpu_is_sampled(outcome: &Outcome) -> Result<()> {
    require_status(outcome, 0)?;
    let profile = Profile::read(outcome.json(), outcome.folded())?;
    profile.require_cpus(u64::from(SMP_CPUS))?;
    profile.require_nothing_lost()?;
    (0..SMP_CPUS).try_for_each(|cpu| profile.require_command(&format!("cpu{cpu}")))
}

/// The memory, all of it and for each CPU.
pub(super) fn figures(console: &Console) -> Result<Vec<Figure>> {
    let outcome = console.outcome(MEMORY).context("the memory was not looked at")?;
    let Memory { peak, resident, bpf, taken, slab } = Memory::read(outcome.stdout())?;
    // What is not resident in the process is the kernel's.
    let kernel = taken.saturating_sub(resident);
    Ok(vec![
        figure(&format!("bpfprof's resident memory, {SMP_CPUS} CPUs"), resident),
        figure("    its peak", peak),
        figure("    its BPF maps and programs", bpf),
        figure("    memory taken from the machine, all in all", taken),
        figure("    of this in the kernel", kernel),
        figure("    of this in slab caches", slab),
    ])
}

fn figure(what: &str, bytes: u64) -> Figure {
    let megabytes = bytes as f64 / 1e6;
    Figure::plain(what, format!("{megabytes:.1} MB, {:.2} MB for each CPU", megabytes / f64::from(SMP_CPUS)))
}
