//! Cache events: `CACHE[-OPERATION][-RESULT]` in perf's spellings.

use super::parse_error::ParseEventError;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult};

/// The cache event of this name, or `None` when the name is not one of a cache.
///
/// As in perf, the operation is a read and the result an access when they are not named.
///
/// # Errors
/// The cache has no such operation (perf: the instruction caches have no stores, the branch unit has only
/// loads).
pub(super) fn parse(name: &str) -> Option<Result<Cache, ParseEventError>> {
    let (which, rest) = CACHES.iter().find_map(|cache| Some((cache, cache.strip(name)?)))?;
    let (operation, result) = parse_operation_and_result(rest)?;
    let event = Cache { which: which.id, operation, result };
    if which.operations.contains(&operation) {
        return Some(Ok(event));
    }
    let loads = Cache { which: which.id, operation: CacheOp::READ, result: CacheResult::ACCESS };
    Some(Err(ParseEventError::NoSuchCacheOperation {
        cache: which.spellings[0],
        operation: unit(&Cache { result: CacheResult::ACCESS, ..event }),
        instead: canonical(&loads),
    }))
}

/// The name perf prints: `LLC-loads` for accesses, `LLC-load-misses` for misses.
pub(super) fn canonical(event: &Cache) -> String {
    let cache =
        CACHES.iter().find(|cache| cache.id == event.which).map_or("cache", |cache| cache.spellings[0]);
    let operation = OPERATIONS.iter().find(|operation| operation.id == event.operation);
    let (singular, plural) = operation
        .map_or(("access", "accesses"), |operation| (operation.spellings[0], operation.spellings[1]));
    if event.result == CacheResult::MISS {
        format!("{cache}-{singular}-misses")
    } else {
        format!("{cache}-{plural}")
    }
}

/// Plural noun for what the event counts.
pub(super) fn unit(event: &Cache) -> &'static str {
    if event.result == CacheResult::MISS {
        return "misses";
    }
    OPERATIONS
        .iter()
        .find(|operation| operation.id == event.operation)
        .map_or("accesses", |operation| operation.spellings[1])
}

/// Every cache event that perf has.
pub(super) fn all() -> impl Iterator<Item = Cache> {
    CACHES.iter().flat_map(|cache| {
        cache.operations.iter().flat_map(|&operation| {
            [CacheResult::ACCESS, CacheResult::MISS].map(|result| Cache {
                which: cache.id,
                operation,
                result,
            })
        })
    })
}

/// A part of the name and its spellings, the canonical ones first.
struct Word<T> {
    id: T,
    spellings: &'static [&'static str],
    operations: &'static [CacheOp],
}

impl<T> Word<T> {
    /// The rest of the text after one of the spellings and a `-`; empty when nothing follows.
    fn strip<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.spellings.iter().find_map(|spelling| {
            let rest = text.strip_prefix(spelling)?;
            if rest.is_empty() { Some(rest) } else { rest.strip_prefix('-').filter(|rest| !rest.is_empty()) }
        })
    }
}

const READ: &[CacheOp] = &[CacheOp::READ];
const READ_PREFETCH: &[CacheOp] = &[CacheOp::READ, CacheOp::PREFETCH];
const READ_WRITE_PREFETCH: &[CacheOp] = &[CacheOp::READ, CacheOp::WRITE, CacheOp::PREFETCH];

/// `enum perf_hw_cache_id`, with the operations that perf has for each.
const CACHES: &[Word<CacheId>] = &[
    Word {
        id: CacheId::L1D,
        spellings: &["L1-dcache", "l1-d", "l1d", "L1-data"],
        operations: READ_WRITE_PREFETCH,
    },
    Word {
        id: CacheId::L1I,
        spellings: &["L1-icache", "l1-i", "l1i", "L1-instruction"],
        operations: READ_PREFETCH,
    },
    Word { id: CacheId::LL, spellings: &["LLC", "L2"], operations: READ_WRITE_PREFETCH },
    Word { id: CacheId::DTLB, spellings: &["dTLB", "d-tlb", "Data-TLB"], operations: READ_WRITE_PREFETCH },
    Word { id: CacheId::ITLB, spellings: &["iTLB", "i-tlb", "Instruction-TLB"], operations: READ },
    Word { id: CacheId::BPU, spellings: &["branch", "bpu", "btb", "bpc"], operations: READ },
    Word { id: CacheId::NODE, spellings: &["node"], operations: READ_WRITE_PREFETCH },
];

/// `enum perf_hw_cache_op_id`: singular, plural, aliases.
const OPERATIONS: &[Word<CacheOp>] = &[
    Word { id: CacheOp::READ, spellings: &["load", "loads", "read"], operations: &[] },
    Word { id: CacheOp::WRITE, spellings: &["store", "stores", "write"], operations: &[] },
    Word {
        id: CacheOp::PREFETCH,
        spellings: &["prefetch", "prefetches", "speculative-read", "speculative-load"],
        operations: &[],
    },
];

/// `enum perf_hw_cache_op_result_id`.
const RESULTS: &[Word<CacheResult>] = &[
    Word { id: CacheResult::ACCESS, spellings: &["refs", "Reference", "ops", "access"], operations: &[] },
    Word { id: CacheResult::MISS, spellings: &["misses", "miss"], operations: &[] },
];

/// Reads an operation and a result, in either order, each at most once; `None` when anything else is there.
fn parse_operation_and_result(text: &str) -> Option<(CacheOp, CacheResult)> {
    let (mut operation, mut result, mut rest) = (None, None, text);
    while !rest.is_empty() {
        if let Some((id, after)) = strip_any(OPERATIONS, rest).filter(|_| operation.is_none()) {
            (operation, rest) = (Some(id), after);
        } else if let Some((id, after)) = strip_any(RESULTS, rest).filter(|_| result.is_none()) {
            (result, rest) = (Some(id), after);
        } else {
            return None;
        }
    }
    Some((operation.unwrap_or(CacheOp::READ), result.unwrap_or(CacheResult::ACCESS)))
}

fn strip_any<'a, T: Copy>(words: &[Word<T>], text: &'a str) -> Option<(T, &'a str)> {
    words.iter().find_map(|word| Some((word.id, word.strip(text)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's code: cache, operation << 8, result << 16 (perf_event_open(2)).
    fn code(name: &str) -> Option<u64> {
        let event = parse(name)?.ok()?;
        Some(u64::from(event.which.0) | u64::from(event.operation.0) << 8 | u64::from(event.result.0) << 16)
    }

    #[test]
    fn names_give_the_codes_that_perf_gives() {
        for (name, expected) in [
            ("L1-dcache-loads", 0x0),
            ("L1-dcache-load-misses", 0x10000),
            ("L1-dcache-stores", 0x100),
            ("L1-dcache-prefetches", 0x200),
            ("L1-data-loads", 0x0),
            ("l1-d", 0x0),
            ("l1d-loads", 0x0),
            ("L1-dcache-misses", 0x10000),
            ("L1-dcache-misses-load", 0x10000),
            ("L1-dcache-load-refs", 0x0),
            ("L1-dcache-speculative-read", 0x200),
            ("L1-dcache-speculative-load-miss", 0x10200),
            ("L1-dcache-Reference", 0x0),
            ("L1-icache-loads", 0x1),
            ("L1-icache-prefetches", 0x201),
            ("L1-instruction-loads", 0x1),
            ("l1i-miss", 0x10001),
            ("LLC", 0x2),
            ("LLC-loads", 0x2),
            ("LLC-load-misses", 0x10002),
            ("LLC-stores", 0x102),
            ("LLC-store-misses", 0x10102),
            ("LLC-prefetches", 0x202),
            ("LLC-prefetch-misses", 0x10202),
            ("LLC-write-access", 0x102),
            ("L2-loads", 0x2),
            ("dTLB-prefetches", 0x203),
            ("d-tlb-loads", 0x3),
            ("Data-TLB-miss", 0x10003),
            ("Instruction-TLB-load", 0x4),
            ("i-tlb-misses", 0x10004),
            ("branch-loads", 0x5),
            ("branch-load-misses", 0x10005),
            ("btb-loads", 0x5),
            ("bpc-misses", 0x10005),
            ("bpu-loads", 0x5),
            ("branch", 0x5),
            ("node-stores", 0x106),
            ("node-prefetch-misses", 0x10206),
        ] {
            assert_eq!(code(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn operations_that_a_cache_lacks_are_refused() {
        for name in
            ["L1-icache-stores", "iTLB-prefetches", "iTLB-stores", "branch-stores", "bpu-prefetch-misses"]
        {
            assert!(matches!(parse(name), Some(Err(ParseEventError::NoSuchCacheOperation { .. }))), "{name}");
        }
        let Some(Err(error)) = parse("l1i-store-misses") else { panic!("taken") };
        assert_eq!(error.to_string(), "`L1-icache` has no stores: use L1-icache-loads");
    }

    #[test]
    fn other_names_are_left_to_others() {
        for name in [
            "",
            "LLC-",
            "LLC-loads-",
            "LLC-loads-loads",
            "LLC-refs-misses",
            "l2-loads",
            "LLCs",
            "branches-loads",
            "itlb-loads",
        ] {
            assert!(parse(name).is_none(), "{name}");
        }
    }

    #[test]
    fn canonical_names_come_back() {
        assert_eq!(all().count(), 2 * (4 * 3 + 2 + 1 + 1));
        for event in all() {
            let name = canonical(&event);
            assert_eq!(parse(&name), Some(Ok(event)), "{name}");
        }
    }
}
