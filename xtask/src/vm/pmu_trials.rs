//! Trials on a PMU whose every count is known: a cycle is a nanosecond of the guest's time, and an instruction takes four.

use anyhow::{Context, Result};

use super::{
    console::Outcome,
    list::List,
    measurements::{Measurements, require_near},
    trials::{Trial, require_refusal, require_status},
};

/// Instructions per cycle, of all code.
const IPC: f64 = 0.25;

/// What no run of a few hundred samples misses a true count by.
const SAMPLED: f64 = 0.2;

/// Eight times what the ratio of two streams of samples misses the truth by, periodic as they are.
const OVERFLOWS: f64 = 0.1;

/// For what is counted, and shares a counter with others for a third of the time.
const COUNTED: f64 = 0.05;

/// The functions of the workload.
const TURNS: [&str; 2] = ["compute", "chase"];

/// Why the emulated PMU refuses all but a few events.
const LACKS: &str = "this CPU's PMU does not have it";

/// Every trial.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "frequency",
        script: "bpfprof $RATE --counters none -o /tmp/json.json -- turns 4",
        claim: "cycles sampled at a frequency make up the CPU time of the command and of its functions",
        check: cycles_are_cpu_time,
    },
    Trial {
        name: "period",
        script: "bpfprof -c 10000000 --counters none -o /tmp/json.json -- turns 4",
        claim: "so do cycles sampled by a period",
        check: cycles_are_cpu_time,
    },
    Trial {
        name: "lockstep",
        script: "bpfprof -F 100 --counters none -o /tmp/json.json -- turns 12 10000000",
        claim: "so do cycles sampled at the very frequency at which the program repeats what it does",
        check: cycles_are_cpu_time,
    },
    Trial {
        name: "overflow",
        script: "bpfprof -c 10000000 --counters instructions --attribution overflow -o /tmp/json.json -- turns 6",
        claim: "each function has an IPC of 0.25 by the overflows of instructions",
        check: |outcome| every_ipc_is_a_quarter(outcome, "overflow", OVERFLOWS),
    },
    Trial {
        name: "delta",
        script: "bpfprof -c 10000000 --counters instructions --attribution delta -o /tmp/json.json -- turns 6",
        claim: "each function has an IPC of 0.25 by the instructions since the last sample and its part of the residual",
        check: |outcome| every_ipc_is_a_quarter(outcome, "delta", SAMPLED),
    },
    Trial {
        name: "shared",
        script: "bpfprof -c 10000000 --counters r11,r11:u,r11:k,r8,r8:u,r8:k,r11:h,r8:h,r11:uh \
                 -o /tmp/json.json -- turns 6",
        claim: "events that take turns at the counters are scaled to what must be",
        check: |outcome| scaled_counts_agree(&measured(outcome)?),
    },
    Trial {
        name: "refused",
        script: "bpfprof --counters LLC-load-misses -- turns 1",
        claim: "a counter that the PMU lacks is refused",
        check: |outcome| require_refusal(outcome, LACKS),
    },
    Trial {
        name: "refused-event",
        script: "bpfprof -e LLC-load-misses -- turns 1",
        claim: "so is an event to sample",
        check: |outcome| require_refusal(outcome, LACKS),
    },
    Trial {
        name: "set",
        script: "bpfprof -c 10000000 --counters default -o /tmp/json.json -- turns 2",
        claim: "of a set the events that are there are measured, and the output says which are not",
        check: |outcome| {
            let measured = measured(outcome)?;
            measured.counter("instructions")?.require_samples(100)?;
            measured.require_missing("LLC-load-misses", LACKS)?;
            measured.require_missing("branch-misses", LACKS)
        },
    },
    Trial {
        name: "list",
        script: "bpfprof list --json > /tmp/json.json",
        claim: "the list shows cycles as an event that opens, and why those of the last-level cache do not",
        check: |outcome| {
            require_status(outcome, 0)?;
            let list = List::read(outcome.json())?;
            list.require("cycles", "yes", None)?;
            list.require("LLC-load-misses", "no", Some(LACKS))
        },
    },
];

fn cycles_are_cpu_time(outcome: &Outcome) -> Result<()> {
    let measured = measured(outcome)?;
    let cycles = measured.main();
    cycles.require_samples(200)?;
    cycles.require_closure(SAMPLED)?;
    cycles.require_running(1.0..=1.0)?;
    cycles.require_weight(nanoseconds(outcome, "all")?, SAMPLED)?;
    TURNS
        .iter()
        .try_for_each(|function| measured.require_weight(function, nanoseconds(outcome, function)?, SAMPLED))
}

fn every_ipc_is_a_quarter(outcome: &Outcome, attribution: &str, tolerance: f64) -> Result<()> {
    let measured = measured(outcome)?;
    let instructions = measured.counter("instructions")?;
    instructions.require_attribution(attribution)?;
    instructions.require_samples(300)?;
    instructions.require_closure(SAMPLED)?;
    measured.require_metric("ipc", IPC, &TURNS, tolerance)
}

fn scaled_counts_agree(measured: &Measurements) -> Result<()> {
    let counted = |name: &str| -> Result<f64> {
        let event = measured.counter(name)?;
        event.require_running(0.4..=0.95)?;
        event.counted()
    };
    for code in ["r0008", "r0011"] {
        let [all, user, kernel] = ["", ":u", ":k"].map(|modifier| counted(&format!("{code}{modifier}")));
        require_near(&format!("{code}:u + {code}:k"), user? + kernel?, all?, COUNTED)?;
    }
    for modifier in ["", ":u"] {
        let [instructions, cycles] = ["r0008", "r0011"].map(|code| counted(&format!("{code}{modifier}")));
        require_near(&format!("r0008{modifier}"), instructions?, cycles? * IPC, COUNTED)?;
    }
    Ok(())
}

/// What a run that ended well measured.
fn measured(outcome: &Outcome) -> Result<Measurements> {
    require_status(outcome, 0)?;
    Measurements::read(outcome.json())
}

/// CPU time of a function, or of `all`, as the workload found it.
fn nanoseconds(outcome: &Outcome, function: &str) -> Result<u64> {
    let line = outcome.stdout().lines().find_map(|line| line.strip_prefix(function)?.strip_prefix(' '));
    line.and_then(|time| time.parse().ok())
        .with_context(|| format!("the workload does not tell its {function}"))
}
