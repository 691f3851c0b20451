//! Whether an event is there at all, for processes that may not watch a CPU.

use super::advice::Advice;
use super::attribute;
use super::cpus::CpuId;
use super::open_error::{Failure, OpenError, Purpose};
use super::precise::Precise;
use super::spec::EventSpec;

/// Tries the event on this thread alone, in user mode on one CPU, which the kernel allows where a whole CPU needs a privilege.
///
/// It is counted and not sampled, but a refusal speaks of sampling, which is what the caller could not do.
///
/// # Errors
/// The kernel refuses the event even so: it is not there, or not for this process.
pub fn open_for_this_thread(spec: &EventSpec, cpu: CpuId) -> Result<(), OpenError> {
    let purpose = Purpose::Sample { rate: spec.default_rate(), precise: Precise::ARBITRARY_SKID };
    let error = |failure| OpenError { event: spec.clone(), cpu, purpose, failure };
    let mut builder = attribute::builder(spec, cpu).map_err(|advice: Advice| error(advice.into()))?;
    builder.observe_self().exclude_kernel(true).exclude_hv(true);
    match attribute::open(&mut builder, spec) {
        Ok(_) => Ok(()),
        // Not every PMU can leave the kernel out.
        Err(Failure::Open { errno: libc::EINVAL }) => Err(error(Failure::Open { errno: libc::EACCES })),
        Err(failure) => Err(error(failure)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_and_what_is_not() {
        let there = |event: &str| open_for_this_thread(&event.parse().unwrap(), CpuId(0));
        assert_eq!(there("page-faults"), Ok(()));
        assert_eq!(there("cpu-clock"), Ok(()));
        let absent = there("no_such_pmu/event=1/").unwrap_err();
        assert!(matches!(absent.failure, Failure::Unknown { .. }), "{absent}");
    }
}
