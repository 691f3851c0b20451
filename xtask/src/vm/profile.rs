//! What bpfprof wrote in the guest: its JSON and its folded stacks, and what may be required of them.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A profile as its two outputs show it.
pub(super) struct Profile {
    json: Value,
    stacks: Vec<Stack>,
}

struct Stack {
    /// Command name, then frames from the root to the leaf.
    frames: Vec<String>,
    weight: u64,
}

impl Profile {
    /// Reads both outputs; each must be well-formed.
    pub(super) fn read(json: &str, folded: &str) -> Result<Self> {
        let json = serde_json::from_str(json).context("the JSON output is not JSON")?;
        let stacks: Option<Vec<Stack>> =
            folded.lines().filter(|line| !line.is_empty()).map(Stack::read).collect();
        Ok(Self { json, stacks: stacks.context("a line of the folded output is not folded")? })
    }

    /// At least this many samples.
    pub(super) fn require_samples(&self, least: u64) -> Result<()> {
        let samples = self.number("/header/samples")?;
        ensure!(samples >= least, "there are {samples} samples, fewer than {least}");
        Ok(())
    }

    /// This event was really used.
    pub(super) fn require_event(&self, name: &str) -> Result<()> {
        let used = self.json.pointer("/header/event/name").and_then(Value::as_str).unwrap_or("not named");
        ensure!(used == name, "the event is {used}, not {name}");
        Ok(())
    }

    /// The event stands in for the default one, for a reason with these words.
    pub(super) fn require_fallback(&self, words: &str) -> Result<()> {
        match self.fallback() {
            Some(reason) if reason.contains(words) => Ok(()),
            Some(reason) => bail!("the reason for another event is `{reason}`, without `{words}`"),
            None => bail!("no output says that another event is used"),
        }
    }

    /// So many CPUs were sampled.
    pub(super) fn require_cpus(&self, cpus: u64) -> Result<()> {
        let sampled = self.number("/header/cpus")?;
        ensure!(sampled == cpus, "{sampled} CPUs are sampled, not {cpus}");
        Ok(())
    }

    /// No sample, no process and no record of one is lost.
    pub(super) fn require_nothing_lost(&self) -> Result<()> {
        for what in ["samples", "not_followed", "sideband_records"] {
            let lost = self.number(&format!("/header/lost/{what}"))?;
            ensure!(lost == 0, "{lost} {what} are lost or could not be had");
        }
        Ok(())
    }

    /// The event is the one that was wanted.
    pub(super) fn require_no_fallback(&self) -> Result<()> {
        match self.fallback() {
            Some(reason) => bail!("another event is used: {reason}"),
            None => Ok(()),
        }
    }

    /// At least this share of the user stacks reaches the first function of its thread.
    pub(super) fn require_whole_stacks(&self, least: f64) -> Result<()> {
        let whole = self.number("/header/stacks/whole")?;
        let user = self.number("/header/stacks/user")?;
        ensure!(
            user > 0 && share(whole, user) >= least,
            "{whole} of {user} user stacks are whole; truncated: {}; guessed: {}",
            self.json.pointer("/header/stacks/cut").unwrap_or(&Value::Null),
            self.json.pointer("/header/stacks/guesses").unwrap_or(&Value::Null)
        );
        Ok(())
    }

    /// Most of a command's weight is in `burn`, and at least this share of that was called through the twenty links of the workload in
    /// order.
    pub(super) fn require_chain(&self, command: &str, least: f64) -> Result<()> {
        let weight_where = |wanted: &dyn Fn(&Stack) -> bool| -> u64 {
            let of_command = self.stacks.iter().filter(|stack| stack.command() == command);
            of_command.filter(|stack| wanted(stack)).map(|stack| stack.weight).sum()
        };
        let all = weight_where(&|_| true);
        let burning = weight_where(&Stack::burns);
        let chain = chain();
        let chained = weight_where(&|stack| stack.burns() && stack.contains(&chain));
        ensure!(
            all > 0 && share(burning, all) >= 0.8,
            "of the weight {all} of {command} only {burning} is in `burn`"
        );
        ensure!(
            share(chained, burning) >= least,
            "of the weight {burning} in `burn` of {command} only {chained} has the 20 calls in order"
        );
        Ok(())
    }

    /// At least this share of all weight is of a command.
    pub(super) fn require_share(&self, command: &str, least: f64) -> Result<()> {
        let total: u64 = self.stacks.iter().map(|stack| stack.weight).sum();
        let own: u64 =
            self.stacks.iter().filter(|stack| stack.command() == command).map(|stack| stack.weight).sum();
        ensure!(total > 0 && share(own, total) >= least, "of the weight {total} only {own} is of {command}");
        Ok(())
    }

    /// The first row of the table is this function.
    pub(super) fn require_hottest(&self, function: &str, object: &str) -> Result<()> {
        let member = |name: &str| {
            self.json.pointer(&format!("/functions/0/{name}")).and_then(Value::as_str).unwrap_or("none")
        };
        ensure!(
            (member("name"), member("object")) == (function, object),
            "the hottest function is {} of {}, not {function} of {object}",
            member("name"),
            member("object")
        );
        Ok(())
    }

    /// A command has samples.
    pub(super) fn require_command(&self, command: &str) -> Result<()> {
        ensure!(
            self.stacks.iter().any(|stack| stack.command() == command && stack.weight > 0),
            "{command} has no sample"
        );
        Ok(())
    }

    fn fallback(&self) -> Option<&str> {
        self.json.pointer("/header/event/fallback").and_then(Value::as_str)
    }

    fn number(&self, pointer: &str) -> Result<u64> {
        self.json
            .pointer(pointer)
            .and_then(Value::as_u64)
            .with_context(|| format!("the JSON has no {pointer}"))
    }
}

impl Stack {
    fn read(line: &str) -> Option<Self> {
        let (frames, weight) = line.rsplit_once(' ')?;
        Some(Self { frames: frames.split(';').map(str::to_owned).collect(), weight: weight.parse().ok()? })
    }

    fn command(&self) -> &str {
        self.frames.first().map_or("", String::as_str)
    }

    fn burns(&self) -> bool {
        self.frames.iter().any(|frame| frame == "burn")
    }

    fn contains(&self, frames: &[String]) -> bool {
        self.frames.windows(frames.len()).any(|window| window == frames)
    }
}

/// The frames of the workload, root first.
fn chain() -> Vec<String> {
    let links = (1..=20).rev().map(|link| format!("link_{link:02}"));
    ["main".to_owned()].into_iter().chain(links).chain(["burn".to_owned()]).collect()
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::{Profile, chain};

    fn profile(folded: &str) -> Profile {
        let json = r#"{"header":{"samples":60,"cpus":4,"lost":{"samples":0,"not_followed":0,"sideband_records":2},"event":{"name":"cycles","fallback":null},
            "stacks":{"user":20,"whole":18,"cut":[["no table",2]]}},"functions":[{"name":"burn","object":"chain"}]}"#;
        Profile::read(json, folded).unwrap()
    }

    #[test]
    fn claims_about_the_header() {
        let profile = profile("");
        assert!(profile.require_samples(60).is_ok() && profile.require_samples(61).is_err());
        assert!(profile.require_event("cycles").is_ok() && profile.require_event("cpu-clock").is_err());
        assert!(profile.require_no_fallback().is_ok() && profile.require_fallback("PMU").is_err());
        assert!(profile.require_whole_stacks(0.9).is_ok() && profile.require_whole_stacks(0.95).is_err());
        assert!(profile.require_cpus(4).is_ok() && profile.require_cpus(5).is_err());
        assert!(profile.require_nothing_lost().is_err());
        assert!(profile.require_hottest("burn", "chain").is_ok());
        assert!(profile.require_hottest("main", "chain").is_err());
    }

    #[test]
    fn claims_about_the_stacks() {
        let links = chain().join(";");
        let whole = profile(&format!("a;_start;{links} 95\na;_start;{links};irq_[k] 3\nb;x 2\n"));
        assert!(whole.require_chain("a", 0.95).is_ok());
        assert!(whole.require_chain("b", 0.95).is_err() && whole.require_chain("c", 0.95).is_err());
        assert!(whole.require_command("a").is_ok() && whole.require_command("c").is_err());
        assert!(whole.require_share("a", 0.9).is_ok() && whole.require_share("b", 0.9).is_err());
        let reordered = links.replace("link_03;link_02", "link_02;link_03");
        assert!(profile(&format!("a;{reordered} 10\n")).require_chain("a", 0.95).is_err());
        let cut = links.split_once(';').unwrap().1;
        let partly_cut = profile(&format!("a;{links} 9\na;{cut} 1\n"));
        assert!(partly_cut.require_chain("a", 0.9).is_ok() && partly_cut.require_chain("a", 0.95).is_err());
        assert!(Profile::read("{}", "a;b\n").is_err());
    }
}
