//! Modifiers: the letters after an event's last `:`.

use super::parse_error::ParseEventError;
use super::precise::Precise;
use std::fmt;

/// Where an event counts, and how precise its address shall be: `u`, `k`, `h`, `G`, `H` and `p` of
/// perf-list(1).
///
/// Displayed in the order `ukhpGH`, without the `:`; empty when there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    user: bool,
    kernel: bool,
    hypervisor: bool,
    guest: bool,
    host: bool,
    precise: Precise,
}

impl Modifiers {
    /// Whether user mode is left out: another privilege level is named, and this one is not.
    pub fn exclude_user(self) -> bool {
        self.names_a_level() && !self.user
    }

    /// Whether the kernel is left out.
    pub fn exclude_kernel(self) -> bool {
        self.names_a_level() && !self.kernel
    }

    /// Whether the hypervisor is left out.
    pub fn exclude_hypervisor(self) -> bool {
        self.names_a_level() && !self.hypervisor
    }

    /// Whether guests of virtual machines are left out: always, as in perf, unless `G` is there.
    pub fn exclude_guest(self) -> bool {
        !self.guest
    }

    /// Whether the host is left out: only when `G` is there and `H` is not.
    pub fn exclude_host(self) -> bool {
        self.guest && !self.host
    }

    /// Whether `G` or `H` is there, so that [`Self::exclude_guest`] is a wish and not a default.
    pub fn names_guest_or_host(self) -> bool {
        self.guest || self.host
    }

    /// The level that `p`, `pp` or `ppp` asks for; `None` when the best one is to be found.
    pub fn precise(self) -> Option<Precise> {
        (self.precise != Precise::ARBITRARY_SKID).then_some(self.precise)
    }

    /// Both: each level and machine that either names, and the higher precise level.
    pub(super) fn with_added(self, other: Self) -> Self {
        Self {
            user: self.user || other.user,
            kernel: self.kernel || other.kernel,
            hypervisor: self.hypervisor || other.hypervisor,
            guest: self.guest || other.guest,
            host: self.host || other.host,
            precise: self.precise.max(other.precise),
        }
    }

    /// Reads the letters, in any order; `event` is the whole event, for the error.
    pub(super) fn parse(letters: &str, event: &str) -> Result<Self, ParseEventError> {
        if letters.is_empty() {
            return Err(ParseEventError::MissingModifier { event: event.to_owned() });
        }
        letters.chars().try_fold(Self::default(), |modifiers, letter| modifiers.with(letter, event))
    }

    fn with(mut self, letter: char, event: &str) -> Result<Self, ParseEventError> {
        let repeated = || ParseEventError::RepeatedModifier { letter, event: event.to_owned() };
        let flag = match letter {
            'u' => &mut self.user,
            'k' => &mut self.kernel,
            'h' => &mut self.hypervisor,
            'G' => &mut self.guest,
            'H' => &mut self.host,
            'p' => {
                self.precise = Precise::new(self.precise.level() + 1).ok_or_else(repeated)?;
                return Ok(self);
            }
            _ => return Err(ParseEventError::UnknownModifier { letter, event: event.to_owned() }),
        };
        if std::mem::replace(flag, true) { Err(repeated()) } else { Ok(self) }
    }

    fn names_a_level(self) -> bool {
        self.user || self.kernel || self.hypervisor
    }
}

impl fmt::Display for Modifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [(self.user, "u"), (self.kernel, "k"), (self.hypervisor, "h")];
        let machines = [(self.guest, "G"), (self.host, "H")];
        for (_, letter) in flags.iter().filter(|(set, _)| *set) {
            f.write_str(letter)?;
        }
        for _ in 0..self.precise.level() {
            f.write_str("p")?;
        }
        for (_, letter) in machines.iter().filter(|(set, _)| *set) {
            f.write_str(letter)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(letters: &str) -> Modifiers {
        Modifiers::parse(letters, "event").unwrap()
    }

    fn excluded(modifiers: Modifiers) -> [bool; 5] {
        [
            modifiers.exclude_user(),
            modifiers.exclude_kernel(),
            modifiers.exclude_hypervisor(),
            modifiers.exclude_guest(),
            modifiers.exclude_host(),
        ]
    }

    #[test]
    fn exclusions_are_those_of_perf() {
        for (letters, expected) in [
            ("u", [false, true, true, true, false]),
            ("k", [true, false, true, true, false]),
            ("h", [true, true, false, true, false]),
            ("uk", [false, false, true, true, false]),
            ("uh", [false, true, false, true, false]),
            ("ukh", [false, false, false, true, false]),
            ("pp", [false, false, false, true, false]),
            ("H", [false, false, false, true, false]),
            ("G", [false, false, false, false, true]),
            ("GH", [false, false, false, false, false]),
            ("uG", [false, true, true, false, true]),
        ] {
            assert_eq!(excluded(parse(letters)), expected, "{letters}");
        }
        assert_eq!(excluded(Modifiers::default()), [false, false, false, true, false]);
    }

    #[test]
    fn order_is_free_and_display_is_canonical() {
        for (written, displayed) in
            [("ppu", "upp"), ("pup", "upp"), ("HGhku", "ukhGH"), ("ppp", "ppp"), ("u", "u")]
        {
            assert_eq!(parse(written).to_string(), displayed);
            assert_eq!(parse(displayed), parse(written));
        }
        assert_eq!(Modifiers::default().to_string(), "");
        assert_eq!(parse("pp").precise(), Precise::new(2));
        assert_eq!(parse("u").precise(), None);
    }

    #[test]
    fn errors_name_the_letter() {
        let error =
            |letters: &str| Modifiers::parse(letters, &format!("cycles:{letters}")).unwrap_err().to_string();
        assert!(error("uP").contains("unknown modifier `P` in `cycles:uP`"));
        assert!(error("u:k").contains("`:`"));
        assert!(error("uu").contains("modifier `u` is repeated"));
        assert!(error("pppp").contains("modifier `p` is repeated"));
        assert!(error("").contains("no modifier follows"));
    }
}
