//! Flame graphs, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options, Palette, color::MultiPalette};

use super::folded::{self, Weight};
use super::text::{counted, percent};
use crate::profile::{EventId, Profile};

/// Draws the profile.
pub(super) fn write(profile: &Profile, weight: Weight, to: &mut dyn Write) -> io::Result<()> {
    let header = &profile.header;
    let mut options = Options::default();
    options.title = format!("{}: {}", header.event.name, header.target);
    options.subtitle = Some(subtitle(profile));
    options.notes = header.notes.join(" ");
    options.count_name = match weight {
        Weight::Event => header.event.unit.clone(),
        Weight::Samples => "samples".into(),
    };
    // Kernel frames, inlined frames, C++ and Rust paths, and the rest each have a hue.
    options.colors = Palette::Multi(MultiPalette::Java);
    // A shade by name, so that pictures of one profile are equal and those of two can be compared.
    options.hash = true;
    let stacks = folded::stacks(profile, EventId::MAIN, weight);
    let lines: Vec<String> = stacks.into_iter().map(|(stack, weight)| format!("{stack} {weight}")).collect();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), to).map_err(io::Error::other)
}

/// The limits of the picture in one line under its title.
fn subtitle(profile: &Profile) -> String {
    let header = &profile.header;
    let mut text =
        format!("{} in {:.1} s at {}", counted(header.samples, "sample"), header.seconds, header.event.rate);
    if header.event.fallback.is_some() {
        text.push_str(", in place of cycles");
    }
    if let Some(whole) = header.stacks.whole_share() {
        text.push_str(&format!(", {} of user stacks whole", percent(whole)));
    }
    if header.lost.samples > 0 {
        text.push_str(&format!(", {} lost", counted(header.lost.samples, "sample")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile;

    #[test]
    fn names_are_escaped() {
        let mut text = Vec::new();
        write(&profile(&[("main;Vec<u8>::push&\"", 1, 1)]), Weight::Event, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("Vec&lt;u8&gt;::push&amp;") && !text.contains("Vec<u8>"), "{text}");
        assert!(text.contains("997 Hz"));
    }
}
