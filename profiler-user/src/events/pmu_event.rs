//! Events of a named PMU: `PMU/term[=value],…/`.

use super::parse_error::ParseEventError;
use super::pmu::is_name;
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU64;

/// An event of a named PMU as it was written. What its terms mean only the machine can say.
///
/// Displayed with hexadecimal values: `cpu/event=0xd1,umask=0x20/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PmuEvent {
    /// The PMU's name.
    pub(super) pmu: String,
    /// The terms for the PMU, in their order.
    pub(super) terms: Vec<Term>,
    /// `name=…`: what to call the event.
    pub(super) name: Option<String>,
    /// `period=…`: how often to sample it.
    pub(super) period: Option<NonZeroU64>,
}

/// A term, or the name of an event of the PMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) name: String,
    pub(super) value: Value,
}

/// The value of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// None is written: 1, or the terms of the event of this name.
    Implied,
    /// A number.
    Number(u64),
    /// `?` in sysfs: the user must give it.
    Wanted,
}

impl PmuEvent {
    /// The PMU's name.
    pub fn pmu(&self) -> &str {
        &self.pmu
    }

    /// The event of this name of a PMU.
    pub(super) fn named(pmu: &str, event: &str) -> Self {
        let term = Term { name: event.to_owned(), value: Value::Implied };
        Self { pmu: pmu.to_owned(), terms: vec![term], name: None, period: None }
    }

    /// Whether the PMU is one of the cores', by its name: precise levels are theirs alone.
    pub(super) fn is_of_core(&self) -> bool {
        self.pmu == "cpu" || ["cpu_", "armv8_", "armv9_"].iter().any(|start| self.pmu.starts_with(start))
    }

    /// The one name that stands between the slashes, if nothing else does.
    pub(super) fn only_name(&self) -> Option<&str> {
        match self.terms.as_slice() {
            [Term { name, value: Value::Implied }] => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for PmuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms.iter().map(ToString::to_string);
        let period = self.period.iter().map(|period| format!("period={period}"));
        let name = self.name.iter().map(|name| format!("name={name}"));
        let all: Vec<String> = terms.chain(period).chain(name).collect();
        write!(f, "{}/{}/", self.pmu, all.join(","))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Implied => f.write_str(&self.name),
            Value::Number(value) => write!(f, "{}={value:#x}", self.name),
            Value::Wanted => write!(f, "{}=?", self.name),
        }
    }
}

/// Reads an event that has a `/`, and gives it and the text of its modifiers, if any: as in perf, a `:` before them is
/// not needed.
pub(super) fn parse(event: &str) -> Result<(PmuEvent, Option<&str>), ParseEventError> {
    let bad = |problem: String| ParseEventError::BadPmuEvent { event: event.to_owned(), problem };
    let (pmu, rest) = event.split_once('/').ok_or_else(|| bad(FORM.to_owned()))?;
    let (terms, modifiers) = rest.rsplit_once('/').ok_or_else(|| bad(NOT_CLOSED.to_owned()))?;
    if !is_name(pmu) {
        return Err(bad(format!("`{}` is no name of a PMU: {FORM}", pmu.escape_debug())));
    }
    let modifiers = match modifiers {
        "" => None,
        letters => Some(letters.strip_prefix(':').unwrap_or(letters)),
    };
    let mut parsed = PmuEvent { pmu: pmu.to_owned(), terms: Vec::new(), name: None, period: None };
    let mut seen = BTreeSet::new();
    for text in terms.split(',') {
        let key = text.split('=').next().unwrap_or(text);
        if !seen.insert(key) {
            return Err(bad(format!("`{}` is there twice: write it once", key.escape_debug())));
        }
        parsed.add(text).map_err(bad)?;
    }
    if parsed.terms.is_empty() {
        return Err(bad(format!("it does not say what to count: {FORM}")));
    }
    Ok((parsed, modifiers))
}

/// Reads the terms that sysfs has for an event of a PMU; `None` when they are of an unknown form.
pub(super) fn parse_terms(text: &str) -> Option<Vec<Term>> {
    text.trim().split(',').map(|term| parse_term(term.trim()).ok()).collect()
}

const FORM: &str = "write PMU/term=value,…/, such as cpu/event=0xd1,umask=0x20/";
const NOT_CLOSED: &str = "the closing `/` is missing: write PMU/term=value,…/";

impl PmuEvent {
    fn add(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('=') {
            Some(("name", "")) => Err("`name` has no value: write name=TEXT, or leave it out".to_owned()),
            Some(("name", name))
                if name.chars().any(|letter| letter.is_control() || "/{};".contains(letter)) =>
            {
                Err("a name has a letter that names cannot have: use letters, digits and punctuation"
                    .to_owned())
            }
            Some(("name", name)) => {
                self.name = Some(name.to_owned());
                Ok(())
            }
            Some(("period", period)) => {
                let period = parse_number(period).and_then(NonZeroU64::new);
                self.period = Some(period.ok_or("`period` must be a number above 0")?);
                Ok(())
            }
            _ => match parse_term(text)? {
                Term { name, value: Value::Wanted } => {
                    Err(format!("`{name}` needs a number in place of the `?`"))
                }
                term => {
                    self.terms.push(term);
                    Ok(())
                }
            },
        }
    }
}

fn parse_term(text: &str) -> Result<Term, String> {
    let (name, value) = match text.split_once('=') {
        None => (text, Value::Implied),
        Some((name, "?")) => (name, Value::Wanted),
        Some((name, value)) => {
            let number = parse_number(value).ok_or_else(|| {
                format!(
                    "the value `{}` is no number of at most 64 bits: write a decimal number, or a hexadecimal one after 0x",
                    value.escape_debug()
                )
            })?;
            (name, Value::Number(number))
        }
    };
    if is_name(name) {
        Ok(Term { name: name.to_owned(), value })
    } else {
        Err(format!("`{}` is no term: {FORM}", name.escape_debug()))
    }
}

/// The parsers of the standard library take a sign.
fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_perf() {
        for (written, displayed, modifiers) in [
            ("cpu/event=0xd1,umask=0x20/", "cpu/event=0xd1,umask=0x20/", None),
            ("cpu/event=209,umask=32/u", "cpu/event=0xd1,umask=0x20/", Some("u")),
            ("cpu/mem-loads,ldlat=30/:pp", "cpu/mem-loads,ldlat=0x1e/", Some("pp")),
            ("cpu_core/cycles/", "cpu_core/cycles/", None),
            (
                "cpu/config=0x1c4,config1=1,name=two words/",
                "cpu/config=0x1c4,config1=0x1,name=two words/",
                None,
            ),
            ("cpu/period=0x10,event=1/", "cpu/event=0x1,period=16/", None),
            ("i915_0000_03_00.0/rcs0-busy/", "i915_0000_03_00.0/rcs0-busy/", None),
            ("cpu/event=1/:", "cpu/event=0x1/", Some("")),
        ] {
            let (event, found) = parse(written).unwrap();
            assert_eq!((event.to_string().as_str(), found), (displayed, modifiers), "{written}");
            assert_eq!(parse(displayed).unwrap().0, event);
        }
        let (event, _) = parse("cpu/event=1,period=1000,name=mine/").unwrap();
        assert_eq!((event.period.map(NonZeroU64::get), event.name.as_deref()), (Some(1000), Some("mine")));
    }

    #[test]
    fn mistakes_are_named() {
        for (event, words) in [
            ("cpu/event=1", "closing `/` is missing"),
            ("/event=1/", "`` is no name of a PMU"),
            ("../x/event=1/", "`..` is no name of a PMU"),
            ("cpu//", "`` is no term"),
            ("cpu/name=x/", "does not say what to count"),
            ("cpu/event=1,event=2/", "`event` is there twice"),
            ("cpu/event=x/", "the value `x` is no number"),
            ("cpu/event=+1/", "the value `+1` is no number"),
            ("cpu/event=/", "the value `` is no number"),
            ("cpu/event=0x10000000000000000/", "at most 64 bits"),
            ("cpu/event=?/", "`event` needs a number"),
            ("cpu/a/b/", "`a/b` is no term"),
            ("cpu/event=1,period=0/", "`period` must be a number above 0"),
            ("cpu/event=1,name=/", "`name` has no value"),
            ("cpu/event=1,name=a;b/", "a letter that names cannot have"),
            ("cpu/event=1,\u{1b}/", "`\\u{1b}` is no term"),
        ] {
            let error = parse(event).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(error.starts_with("bad PMU event `"), "{error}");
        }
    }

    #[test]
    fn terms_of_sysfs() {
        let terms = parse_terms("event=0xcd,umask=0x1,inv,core=?\n").unwrap();
        let shown: Vec<String> = terms.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["event=0xcd", "umask=0x1", "inv", "core=?"]);
        assert_eq!(parse_terms("event==1"), None);
        assert_eq!(parse_terms(""), None);
    }
}
