//! The trials: what is run in the guest, and what must come out of it.

use anyhow::{Result, bail, ensure};

use super::{
    console::{Console, Outcome},
    lane::{Lane, Machine, Time},
    pmu_trials,
    profile::Profile,
    smp_trials,
};
use crate::figure::Figure;

/// A shell command in the guest and what its outcome must be.
#[derive(Clone, Copy)]
pub(super) struct Trial {
    pub(super) name: &'static str,
    /// One line, without single quotes.
    pub(super) script: &'static str,
    /// In words, for the report.
    pub(super) claim: &'static str,
    /// Whether the claim holds.
    pub(super) check: fn(&Outcome) -> Result<()>,
}

/// The trials of a lane.
pub(super) fn trials(lane: Lane) -> Vec<Trial> {
    if lane == Lane::X86_64Smp {
        return smp_trials::ALL.to_vec();
    }
    let of_machine = match (lane.machine(), lane.time()) {
        (_, Time::Instructions) => return pmu_trials::ALL.to_vec(),
        (Machine::X86_64, Time::Host) => WITHOUT_PMU,
        (Machine::Aarch64, Time::Host) => WITH_PMU,
    };
    COMMON.iter().chain(of_machine).copied().collect()
}

/// What a lane measures besides.
pub(super) fn figures(lane: Lane, console: &Console) -> Result<Vec<Figure>> {
    match lane {
        Lane::X86_64Smp => smp_trials::figures(console),
        _ => Ok(Vec::new()),
    }
}

/// Samples below this tell nothing about shares.
const ENOUGH_SAMPLES: u64 = 50;

/// For the share of stacks that must be right where nothing hinders.
const NEARLY_ALL: f64 = 0.95;

/// The same where bpfprof meets a busy program while it samples: until it has compiled the unwind table, stacks are cut, and the emulated
/// machine is slow at that.
const MOST: f64 = 0.5;

const COMMON: &[Trial] = &[
    Trial {
        name: "clock",
        script: "bpfprof $RATE $SAVE -e cpu-clock -- chain 2",
        claim: "cpu-clock samples a command; its stacks without frame pointers are whole, its 20 calls in order",
        check: |outcome| {
            let profile = recorded(outcome)?;
            profile.require_event("cpu-clock")?;
            profile.require_whole_stacks(NEARLY_ALL)?;
            profile.require_chain("chain", NEARLY_ALL)?;
            profile.require_hottest("burn", "chain")
        },
    },
    Trial {
        name: "pointers",
        script: "bpfprof $RATE $SAVE -e cpu-clock --unwind fp -- chain-fp 1",
        claim: "the walk by frame pointers finds the 20 calls in order",
        check: |outcome| recorded(outcome)?.require_chain("chain-fp", NEARLY_ALL),
    },
    Trial {
        name: "children",
        script: "ln -s /bin/chain /tmp/left; ln -s /bin/chain /tmp/right; \
                 bpfprof $RATE $SAVE -e cpu-clock -- sh -c \"/tmp/left 1 & /tmp/right 1 & wait\"",
        claim: "both children of a shell are followed",
        check: |outcome| {
            let profile = recorded(outcome)?;
            profile.require_share("left", 0.25)?;
            profile.require_share("right", 0.25)?;
            profile.require_chain("left", MOST)?;
            profile.require_chain("right", MOST)
        },
    },
    Trial {
        name: "pid",
        script: "chain 60 & bpfprof $RATE $SAVE -e cpu-clock --pid $! -d 3s; status=$?; kill $!; exit $status",
        claim: "--pid samples a process that runs already",
        check: |outcome| {
            let profile = recorded(outcome)?;
            profile.require_whole_stacks(MOST)?;
            profile.require_chain("chain", MOST)
        },
    },
    Trial {
        name: "all",
        script: "chain 60 & bpfprof $RATE $SAVE -e cpu-clock --all -d 2s; status=$?; kill $!; exit $status",
        claim: "--all samples the whole machine",
        check: |outcome| {
            let profile = recorded(outcome)?;
            profile.require_share("chain", 0.25)?;
            profile.require_chain("chain", MOST)
        },
    },
    Trial {
        name: "status",
        script: "bpfprof $RATE -e cpu-clock -- sh -c \"chain 0.3; exit 3\"",
        claim: "the status of the command is passed on",
        check: |outcome| require_status(outcome, 3),
    },
    Trial {
        name: "killed",
        script: "bpfprof $RATE -e cpu-clock -- sh -c \"chain 0.3; kill -KILL \\$\\$\"",
        claim: "a command that is killed gives 128 + its signal",
        check: |outcome| require_status(outcome, 128 + 9),
    },
    Trial {
        name: "no-process",
        script: "bpfprof --pid 999999 -d 1s",
        claim: "a process that does not exist gives status 1",
        check: |outcome| require_status(outcome, 1),
    },
    Trial {
        name: "usage",
        script: "bpfprof --no-such-option",
        claim: "a wrong option gives status 2",
        check: |outcome| require_status(outcome, 2),
    },
];

const WITHOUT_PMU: &[Trial] = &[
    Trial {
        name: "default",
        script: "bpfprof $RATE $SAVE -- chain 1",
        claim: "without a PMU, cpu-clock stands in for the default event and the output says why",
        check: |outcome| {
            let profile = recorded(outcome)?;
            profile.require_event("cpu-clock")?;
            profile.require_fallback("exposes no hardware PMU")
        },
    },
    Trial {
        name: "refused",
        script: "bpfprof -e cycles -- chain 1",
        claim: "cycles asked for by name is refused for want of a PMU",
        check: |outcome| require_refusal(outcome, "exposes no hardware PMU"),
    },
];

const WITH_PMU: &[Trial] = &[
    Trial {
        name: "default",
        script: "bpfprof $RATE $SAVE -- chain 2",
        claim: "cycles of the emulated PMU is the default event; stacks are whole, the 20 calls in order",
        check: |outcome| {
            let profile = recorded(outcome)?;
            profile.require_event("cycles")?;
            profile.require_no_fallback()?;
            profile.require_whole_stacks(NEARLY_ALL)?;
            profile.require_chain("chain", NEARLY_ALL)?;
            profile.require_hottest("burn", "chain")
        },
    },
    Trial {
        name: "refused",
        script: "bpfprof -e LLC-load-misses -- chain 1",
        claim: "a cache event that the PMU lacks is refused",
        check: |outcome| {
            require_refusal(outcome, "cannot sample `LLC-load-misses`: this CPU's PMU does not have it")
        },
    },
];

/// The profile of a run that ended well and has samples.
fn recorded(outcome: &Outcome) -> Result<Profile> {
    require_status(outcome, 0)?;
    let profile = Profile::read(outcome.json(), outcome.folded())?;
    profile.require_samples(ENOUGH_SAMPLES)?;
    Ok(profile)
}

/// The command ended with this status.
pub(super) fn require_status(outcome: &Outcome, wanted: i32) -> Result<()> {
    match outcome.status {
        Some(status) if status == wanted => Ok(()),
        Some(status) => bail!("the exit status is {status}, not {wanted}"),
        None => bail!("the guest ended before the command did"),
    }
}

/// bpfprof could not do it, and said so in these words.
pub(super) fn require_refusal(outcome: &Outcome, words: &str) -> Result<()> {
    require_status(outcome, 1)?;
    ensure!(outcome.stderr().contains(words), "bpfprof does not say `{words}`");
    Ok(())
}
