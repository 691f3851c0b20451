//! Flame graphs, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::color::{Color, MultiPalette, PaletteMap};
use inferno::flamegraph::{self, Options, Palette};

use super::coloring::Coloring;
use super::folded::{self, Weight};
use super::text::{counted, percent};
use super::view::View;
use crate::profile::{EventId, EventInfo, Header, Profile};

/// Draws the profile.
pub(super) fn write(profile: &Profile, event: EventId, view: &View, to: &mut dyn Write) -> io::Result<()> {
    let header = &profile.header;
    let info = header.event(event).unwrap_or(&header.event);
    let mut options = Options::default();
    options.title = format!("{}: {}", info.name, header.target);
    options.subtitle = Some(subtitle(header, info));
    options.notes = header.notes.join(" ");
    options.count_name = match view.weight {
        Weight::Event => info.unit.clone(),
        Weight::Samples => "samples".into(),
    };
    // Kernel frames, inlined frames, C++ and Rust paths, and the rest each have a hue.
    options.colors = Palette::Multi(MultiPalette::Java);
    // A shade by name, so that pictures of one profile are equal and those of two can be compared.
    options.hash = true;
    let mut palette;
    if let Some(metric) = view.color_by {
        let coloring = Coloring::new(profile, metric);
        palette = palette_map(profile, &coloring);
        options.palette_map = Some(&mut palette);
        options.subtitle = options.subtitle.map(|text| format!("{text}; {}", coloring.legend(metric)));
    }
    let stacks = folded::stacks(profile, event, view.weight);
    let lines: Vec<String> = stacks.into_iter().map(|(stack, weight)| format!("{stack} {weight}")).collect();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), to).map_err(io::Error::other)
}

/// The colour of each frame, by the name that it has in folded stacks.
fn palette_map(profile: &Profile, coloring: &Coloring) -> PaletteMap {
    let mut palette = PaletteMap::default();
    for &frame in &profile.frames {
        let (red, green, blue) = coloring.of(&profile.function(frame.function).name);
        palette.insert(folded::frame_name(profile, frame), Color { r: red, g: green, b: blue });
    }
    palette
}

/// The limits of the picture in one line under its title.
fn subtitle(header: &Header, event: &EventInfo) -> String {
    let mut text = format!("{} in {:.1} s, {}", counted(event.samples, "sample"), header.seconds, event.rate);
    if event.fallback.is_some() {
        text.push_str(", in place of cycles");
    }
    if let Some(whole) = header.stacks.whole_share() {
        text.push_str(&format!(", {} of user stacks complete", percent(whole)));
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
        write(&profile(&[("main;Vec<u8>::push&\"", 1, 1)]), EventId::MAIN, &View::default(), &mut text)
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("Vec&lt;u8&gt;::push&amp;") && !text.contains("Vec<u8>"), "{text}");
        assert!(text.contains("997 Hz"));
    }
}
