//! The table of functions: what each costs itself, and with all it calls.

use std::collections::HashMap;

use super::model::{FunctionId, Profile};
use super::statistics::{self, Estimate};
use crate::kernel::Amount;

/// Functions by descending self weight.
#[derive(Debug)]
pub struct FunctionTable {
    /// The rows.
    pub rows: Vec<FunctionRow>,
    /// All samples of the profile.
    pub whole: Amount,
}

/// One function.
#[derive(Clone, Debug)]
pub struct FunctionRow {
    /// The function.
    pub function: FunctionId,
    /// Samples whose innermost frame it is. An inlined function has its own; the function it is part of does not count them.
    pub own: Amount,
    /// Samples with it anywhere in the stack; once each, however often it recurs.
    pub total: Amount,
    /// Share of the profile's weight that is its own.
    pub own_share: Option<Estimate>,
    /// Share of the profile's weight with it in the stack.
    pub total_share: Option<Estimate>,
}

impl FunctionTable {
    /// Counts a profile.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let mut whole = Amount::default();
        let mut amounts: HashMap<FunctionId, (Amount, Amount)> = HashMap::new();
        let mut seen = Vec::new();
        for sample in &profile.samples {
            let amount = Amount { samples: sample.samples, weight: sample.weight };
            whole += amount;
            seen.clear();
            seen.extend(profile.stack(sample.stack).iter().map(|&frame| profile.frame(frame).function));
            if let Some(leaf) = seen.last() {
                amounts.entry(*leaf).or_default().0 += amount;
            }
            seen.sort_unstable();
            seen.dedup();
            for function in &seen {
                amounts.entry(*function).or_default().1 += amount;
            }
        }
        let effective = statistics::effective_samples(
            profile.samples.iter().map(|sample| (sample.samples, sample.weight)),
        );
        let share = |amount: Amount| statistics::share(amount.weight, whole.weight, effective);
        let mut rows: Vec<FunctionRow> = amounts
            .into_iter()
            .map(|(function, (own, total))| FunctionRow {
                function,
                own,
                total,
                own_share: share(own),
                total_share: share(total),
            })
            .collect();
        rows.sort_by(|a, b| {
            let key = |row: &FunctionRow| (row.own.weight, row.total.weight);
            key(b)
                .cmp(&key(a))
                .then_with(|| profile.function(a.function).name.cmp(&profile.function(b.function).name))
        });
        Self { rows, whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    fn row<'a>(table: &'a FunctionTable, profile: &Profile, name: &str) -> &'a FunctionRow {
        table.rows.iter().find(|row| &*profile.function(row.function).name == name).unwrap()
    }

    #[test]
    fn recursion_counts_once_and_the_leaf_alone_is_self() {
        let profile = profile(&[("main;f;f;g", 3, 30), ("main;f", 1, 10)]);
        let table = FunctionTable::new(&profile);
        let f = row(&table, &profile, "f");
        assert_eq!((f.own, f.total), (Amount { samples: 1, weight: 10 }, Amount { samples: 4, weight: 40 }));
        assert_eq!(row(&table, &profile, "main").own.samples, 0);
        assert_eq!(&*profile.function(table.rows[0].function).name, "g");
        assert_eq!(table.whole, Amount { samples: 4, weight: 40 });
        let own = row(&table, &profile, "g").own_share.unwrap();
        assert!((own.value - 0.75).abs() < 1e-9 && own.low < 0.75 && own.high > 0.75);
    }
}
