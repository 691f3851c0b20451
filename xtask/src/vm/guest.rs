//! What the guest runs as its first process, and how it tells what came out.

use std::fmt::Write;

use super::trials::Trial;

/// Begins every line by which the guest speaks to the host; names and numbers follow.
pub(super) const MARK: &str = "@@bpfprof";

/// The guest's init: runs each trial in a shell of its own, writes all that came out to the console, powers off.
///
/// In a trial, `$RATE` is a rate that the emulated machine bears, and `$SAVE` lets bpfprof write the outputs that are looked at.
pub(super) fn init(trials: &[Trial], hertz: u32) -> String {
    let mut script = PREPARE.replace("@RATE@", &format!("-F {hertz}")).replace("@MARK@", MARK);
    for trial in trials {
        // The scripts are constants of `trials`, without single quotes.
        let _ = writeln!(script, "trial {} '{}'", trial.name, trial.script);
    }
    let _ = writeln!(script, "echo \"{MARK} done\"\npoweroff -f");
    script
}

/// The sysctls in this order: the first resets what the second turns off, the kernel's own lowering of the rate.
const PREPARE: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
dmesg -n 1
sysctl -qw kernel.perf_event_max_sample_rate=4000
sysctl -qw kernel.perf_cpu_time_max_percent=0
export RATE="@RATE@" SAVE="-o /tmp/json.json -o /tmp/folded.folded"
echo
echo "@MARK@ up $(uname -r)"

part() {
    echo "@MARK@ part $1"
    [ ! -e "$2" ] || cat "$2"
    echo
    rm -f "$2"
}

trial() {
    echo "@MARK@ trial $1"
    sh -c "$2" > /tmp/stdout 2> /tmp/stderr
    status=$?
    part stdout /tmp/stdout
    part stderr /tmp/stderr
    part json /tmp/json.json
    part folded /tmp/folded.folded
    echo "@MARK@ status $status"
}

"#;

#[cfg(test)]
mod tests {
    use super::super::{lane::Lane, trials::trials};

    #[test]
    fn trials_fit_into_their_quotes() {
        for lane in Lane::ALL {
            for trial in trials(lane) {
                assert!(!trial.script.contains(['\'', '\n']), "{}", trial.name);
            }
        }
    }
}
