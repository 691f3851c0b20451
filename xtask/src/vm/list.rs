//! What `bpfprof list --json` wrote in the guest, and what may be required of it.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Events, and whether they open there.
#[derive(Deserialize)]
pub(super) struct List {
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    opens: String,
    cause: Option<String>,
}

impl List {
    /// Reads the list.
    pub(super) fn read(json: &str) -> Result<Self> {
        serde_json::from_str(json).context("the list is not the JSON that was expected")
    }

    /// The list answers for an event with this word, and gives this cause.
    pub(super) fn require(&self, name: &str, opens: &str, cause: Option<&str>) -> Result<()> {
        let event = self.events.iter().find(|event| event.name == name);
        let event = event.with_context(|| format!("{name} is not in the list"))?;
        let found = (event.opens.as_str(), event.cause.as_deref());
        ensure!(found == (opens, cause), "the list says {found:?} of {name}, not {:?}", (opens, cause));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn claims_about_events() {
        let json = r#"{"schema":1,"events":[{"name":"cycles","opens":"yes","precise":0},{"name":"r1","opens":"no","cause":"lacks it"}]}"#;
        let list = List::read(json).unwrap();
        assert!(list.require("cycles", "yes", None).is_ok() && list.require("cycles", "no", None).is_err());
        assert!(
            list.require("r1", "no", Some("lacks it")).is_ok() && list.require("r1", "no", None).is_err()
        );
        assert!(list.require("r2", "no", None).is_err());
    }
}
