//! Writing what was recorded, or saying why there is nothing.

use crate::output::counted;
use crate::present::{Outputs, print_header};
use crate::profile::Profile;
use crate::say::say;

/// Writes everything. Without any sample there is nothing to write, which is said; the answer is false then.
pub(super) fn write(outputs: Outputs, profile: &Profile) -> anyhow::Result<bool> {
    if profile.header.samples == 0 {
        print_header(&profile.header, outputs.verbosity());
        say(no_samples(profile));
        return Ok(false);
    }
    outputs.write(profile)?;
    Ok(true)
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
