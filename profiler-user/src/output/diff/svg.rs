//! Differential flame graphs: as wide as after, red where it grew and blue where it shrank.

use std::io::{self, Write};

use inferno::differential;
use inferno::flamegraph::{self, Options};

use super::super::folded::{self, Weight};
use crate::profile::diff::Scale;
use crate::profile::{EventId, Profile};

/// Draws two profiles of one event.
///
/// # Errors
///
/// Those of `to`, and what the library refuses.
pub fn write_diff_svg(before: &Profile, after: &Profile, scale: Scale, to: &mut dyn Write) -> io::Result<()> {
    let mut lines = Vec::new();
    let [one, other] = [before, after].map(|profile| {
        let mut text = Vec::new();
        folded::write(profile, EventId::MAIN, Weight::Event, &mut text).map(|()| text)
    });
    let normalize = scale == Scale::Normalised;
    let merging = differential::Options { normalize, ..differential::Options::default() };
    differential::from_readers(merging, one?.as_slice(), other?.as_slice(), &mut lines)?;
    let mut options = Options::default();
    options.title = format!("{}: {} and before", after.header.event.name, after.header.target);
    options.subtitle = Some(match scale {
        Scale::Normalised => "red: a larger share than before, blue: a smaller one".into(),
        Scale::Absolute => "red: more than before, blue: less".into(),
    });
    options.count_name.clone_from(&after.header.event.unit);
    let lines = String::from_utf8_lossy(&lines);
    flamegraph::from_lines(&mut options, lines.lines(), to).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn what_grew_is_red_and_what_shrank_is_blue() {
        let before = profile(&[("main;f", 50, 50), ("main;g", 50, 50)]);
        let after = profile(&[("main;f", 180, 180), ("main;g", 20, 20)]);
        let mut text = Vec::new();
        write_diff_svg(&before, &after, Scale::Normalised, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let colour = |name: &str| {
            let at = text.find(&format!("<title>{name} (")).unwrap();
            let fill = &text[at..][text[at..].find("rgb(").unwrap() + 4..];
            let numbers: Vec<u8> =
                fill[..fill.find(')').unwrap()].split(',').map(|number| number.parse().unwrap()).collect();
            (numbers[0], numbers[2])
        };
        let ((f_red, f_blue), (g_red, g_blue)) = (colour("f"), colour("g"));
        assert!(f_red > f_blue && g_blue > g_red, "{:?} {:?}", colour("f"), colour("g"));
    }
}
