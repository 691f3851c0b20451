//! The events of a run in the guest, and what they say of its functions: what may be required of them.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The parts of bpfprof's JSON that are about counting.
#[derive(Deserialize)]
pub(super) struct Measurements {
    header: Header,
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Header {
    event: Event,
    counters: Vec<Event>,
    counters_missing: Vec<Missing>,
}

/// An event, over the run.
#[derive(Deserialize)]
pub(super) struct Event {
    name: String,
    attribution: String,
    samples: u64,
    weight: u64,
    counted: Option<u64>,
    running: f64,
    closure: Option<f64>,
}

#[derive(Deserialize)]
struct Missing {
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(rename = "self")]
    own: Own,
    #[serde(default)]
    metrics: HashMap<String, Option<Estimate>>,
}

#[derive(Deserialize)]
struct Own {
    weight: u64,
}

#[derive(Clone, Copy, Deserialize)]
struct Estimate {
    value: f64,
    low: f64,
    high: f64,
}

impl Measurements {
    /// Reads bpfprof's JSON.
    pub(super) fn read(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("the JSON output lacks what was measured")
    }

    /// The event that was sampled.
    pub(super) fn main(&self) -> &Event {
        &self.header.event
    }

    /// A counter by its name.
    pub(super) fn counter(&self, name: &str) -> Result<&Event> {
        let counters = &self.header.counters;
        counters.iter().find(|event| event.name == name).with_context(|| {
            let names: Vec<&str> = counters.iter().map(|event| event.name.as_str()).collect();
            format!("{name} is not among the counters: {}", names.join(", "))
        })
    }

    /// The event is left out, for a reason with these words.
    pub(super) fn require_missing(&self, name: &str, words: &str) -> Result<()> {
        let missing = &self.header.counters_missing;
        let found = missing.iter().find(|event| event.name == name);
        let reason = &found.with_context(|| format!("{name} is not told to be missing"))?.reason;
        ensure!(reason.contains(words), "{name} is missing because `{reason}`, without `{words}`");
        Ok(())
    }

    /// The samples of the main event in a function weigh this much.
    pub(super) fn require_weight(&self, function: &str, truth: u64, tolerance: f64) -> Result<()> {
        let weight = self.function(function)?.own.weight;
        require_near(&format!("the weight of {function}"), weight as f64, truth as f64, tolerance)
    }

    /// The metric of each of these functions lies near the truth, and none of any function that has a value contradicts it: its
    /// interval, twice as wide as bpfprof says for one miss in 20, holds the truth but for one time in 10,000.
    pub(super) fn require_metric(
        &self,
        metric: &str,
        truth: f64,
        hottest: &[&str],
        tolerance: f64,
    ) -> Result<()> {
        for function in hottest {
            let estimate = self.function(function)?.metric(metric);
            let estimate = estimate.with_context(|| format!("{function} has no {metric}"))?;
            require_near(&format!("{metric} of {function}"), estimate.value, truth, tolerance)?;
        }
        for function in &self.functions {
            if let Some(estimate) = function.metric(metric) {
                let Estimate { value, low, high } = estimate;
                ensure!(
                    estimate.twice_as_wide_holds(truth),
                    "{metric} of {} is {value} ({low} to {high}), not {truth}",
                    function.name
                );
            }
        }
        Ok(())
    }

    fn function(&self, name: &str) -> Result<&Function> {
        let found = self.functions.iter().find(|function| function.name == name);
        found.with_context(|| format!("the function {name} is not in the profile"))
    }
}

impl Event {
    /// Its counts reached functions in this way.
    pub(super) fn require_attribution(&self, attribution: &str) -> Result<()> {
        ensure!(
            self.attribution == attribution,
            "{} has the attribution {}, not {attribution}",
            self.name,
            self.attribution
        );
        Ok(())
    }

    /// At least this many samples or readings.
    pub(super) fn require_samples(&self, least: u64) -> Result<()> {
        ensure!(self.samples >= least, "{} has {} samples, fewer than {least}", self.name, self.samples);
        Ok(())
    }

    /// The samples stand for all that was counted.
    pub(super) fn require_closure(&self, tolerance: f64) -> Result<()> {
        let closure = self.closure.with_context(|| format!("{} has no closure", self.name))?;
        require_near(&format!("the closure of {}", self.name), closure, 1.0, tolerance)
    }

    /// The event had a counter for this part of the time.
    pub(super) fn require_running(&self, part: std::ops::RangeInclusive<f64>) -> Result<()> {
        ensure!(
            part.contains(&self.running),
            "{} ran for {} of the time, not {part:?}",
            self.name,
            self.running
        );
        Ok(())
    }

    /// The samples in the profile weigh this much.
    pub(super) fn require_weight(&self, truth: u64, tolerance: f64) -> Result<()> {
        require_near(&format!("the weight of {}", self.name), self.weight as f64, truth as f64, tolerance)
    }

    /// What it counted, samples or not.
    pub(super) fn counted(&self) -> Result<f64> {
        let counted = self.counted.with_context(|| format!("{} was not counted", self.name))?;
        Ok(counted as f64)
    }
}

impl Function {
    fn metric(&self, name: &str) -> Option<Estimate> {
        *self.metrics.get(name)?
    }
}

impl Estimate {
    /// Ratios are estimated by their logarithm.
    fn twice_as_wide_holds(self, truth: f64) -> bool {
        let Self { value, low, high } = self;
        (low / value).powi(2) * value <= truth && truth <= (high / value).powi(2) * value
    }
}

/// The finding differs from the truth by at most a part of it.
pub(super) fn require_near(what: &str, found: f64, truth: f64, tolerance: f64) -> Result<()> {
    ensure!(
        (found - truth).abs() <= truth * tolerance,
        "{what} is {found}, not {truth} within {} %",
        tolerance * 100.0
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Measurements;

    fn measurements() -> Measurements {
        let json = r#"{"header":{
            "event":{"name":"cycles","attribution":"overflow","samples":100,"weight":1000,"counted":1100,"running":1.0,"closure":0.95,"residual":0},
            "counters":[{"name":"r0011","attribution":"delta","samples":9,"weight":10,"counted":null,"running":0.7,"closure":null,"residual":10}],
            "counters_missing":[{"name":"LLC-loads","reason":"the PMU does not have it"}]},
            "functions":[{"name":"hot","self":{"samples":90,"weight":900},"metrics":{"ipc":{"value":0.26,"low":0.25,"high":0.27}}},
                {"name":"cool","self":{"samples":9,"weight":90},"metrics":{"ipc":{"value":0.4,"low":0.3,"high":0.5}}},
                {"name":"cold","self":{"samples":1,"weight":10},"metrics":{"ipc":null}}]}"#;
        Measurements::read(json).unwrap()
    }

    #[test]
    fn claims_about_events() {
        let found = measurements();
        let cycles = found.main();
        assert!(
            cycles.require_attribution("overflow").is_ok() && cycles.require_attribution("delta").is_err()
        );
        assert!(cycles.require_samples(100).is_ok() && cycles.require_samples(101).is_err());
        assert!(cycles.require_closure(0.1).is_ok() && cycles.require_closure(0.01).is_err());
        assert!(cycles.require_weight(900, 0.2).is_ok() && cycles.require_weight(500, 0.2).is_err());
        let raw = found.counter("r0011").unwrap();
        assert!(raw.require_running(0.5..=0.9).is_ok() && cycles.require_running(0.5..=0.9).is_err());
        assert!(raw.counted().is_err() && raw.require_closure(0.1).is_err());
        assert!(found.counter("r0008").is_err());
        assert!(found.require_missing("LLC-loads", "does not have it").is_ok());
        assert!(found.require_missing("LLC-loads", "no counter left").is_err());
        assert!(found.require_missing("branch-misses", "").is_err());
    }

    #[test]
    fn claims_about_functions() {
        let found = measurements();
        assert!(
            found.require_weight("hot", 1000, 0.2).is_ok() && found.require_weight("hot", 600, 0.2).is_err()
        );
        assert!(found.require_metric("ipc", 0.25, &["hot"], 0.1).is_ok());
        assert!(found.require_metric("ipc", 0.25, &["hot", "cool"], 0.1).is_err());
        assert!(found.require_metric("ipc", 0.25, &["cold"], 0.1).is_err());
        assert!(found.require_metric("ipc", 0.2, &[], 0.1).is_err());
    }
}
