//! Names for code that processes made at run time and that had none when it was sampled.

mod dump;
mod perf_map;

use std::collections::HashMap;
use std::time::Duration;

use super::{Clock, NamedCode, NoName, Resolution, guard};
use crate::processes::JitCode;
use crate::types::{MonotonicTime, Tgid, UserAddress};

/// A place in code of a process, and when it was sampled where that matters.
pub(super) type Place = (UserAddress, Option<MonotonicTime>);

/// Longest time that all files with names of code made at run time may take.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Resolves these sorted places of a process, in their order, as long as there is time.
pub(super) fn resolve(code: &JitCode, tgid: Tgid, places: &[Place], clock: &Clock) -> Vec<Resolution> {
    let runtime = code.runtime(tgid);
    let mut resolutions = vec![Resolution::unnamed(NoName::NoPerfMap(runtime)); places.len()];
    for dump in code.dumps(tgid) {
        let open: Vec<usize> = (0..places.len()).filter(|&at| !resolutions[at].is_named()).collect();
        let asked: Vec<Place> = open.iter().map(|&at| places[at]).collect();
        let Some(left) = clock.left() else { break };
        let found = guard::run(left, move || dump::names(&dump, &asked));
        for (at, found) in open.into_iter().zip(found.unwrap_or_default()) {
            resolutions[at] =
                found.map_or_else(|| Resolution::unnamed(NoName::NotInPerfMap(runtime)), Resolution::named);
        }
    }
    if let Some(left) = clock.left()
        && let Ok(map) = code.map(tgid)
    {
        let mut addresses: Vec<UserAddress> = places.iter().map(|(address, _)| *address).collect();
        addresses.dedup();
        let named: HashMap<UserAddress, String> = guard::run(left, move || perf_map::names(&map, &addresses))
            .unwrap_or_default()
            .into_iter()
            .collect();
        for ((address, _), resolution) in places.iter().zip(&mut resolutions) {
            if !resolution.is_named() {
                *resolution = match named.get(address) {
                    Some(name) => Resolution::named(NamedCode { name: name.clone(), line: None }),
                    None => Resolution::unnamed(NoName::NotInPerfMap(runtime)),
                };
            }
        }
    }
    resolutions
}
