//! The text of `bpfprof help metrics`, from the tables that compute.

use std::fmt::{self, Write as _};

use super::metric::{Marks, Metric};
use super::reading::{PRICES, Price};
use super::table::{BUSY, STALLED, Unit};
use crate::profile::statistics::FEWEST_SAMPLES;

/// What each metric is, where good and bad values begin, and what the reading means.
#[must_use]
pub fn explain() -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_all(&mut text);
    text
}

fn write_all(text: &mut String) -> fmt::Result {
    writeln!(
        text,
        "A metric is shown where its events were measured (--counters); --metrics chooses by name."
    )?;
    writeln!(text, "Each value stands with the 95 % interval that holds the truth of this run, and as `–`")?;
    writeln!(
        text,
        "where an event below the line has fewer than {FEWEST_SAMPLES} samples in the function.\n"
    )?;
    writeln!(text, "METRICS\n")?;
    for metric in Metric::all() {
        describe(metric, text)?;
    }
    writeln!(text, "READING\n")?;
    paragraph(
        text,
        "The last column prices each event at what it costs at least, and names a cause if the whole interval of its \
         share of the time reaches the threshold. A cause whose events were not measured is never named.",
    )?;
    writeln!(text)?;
    for price in PRICES {
        describe_price(price, text)?;
    }
    for (word, meaning) in [
        ("mixed", "Several of these.".to_owned()),
        ("compute-bound", format!("IPC is {BUSY} or more, and none of these measured passes its threshold.")),
        (
            "stalled",
            format!(
                "IPC is {STALLED} or less, and no cause measured accounts for it: measure more, or look for chains of slow instructions."
            ),
        ),
        ("ordinary", "Nothing measured stands out.".to_owned()),
        (
            "unclear",
            "An interval reaches over its threshold: record for longer, or measure what is missing."
                .to_owned(),
        ),
        ("too few samples", format!("Fewer than {FEWEST_SAMPLES} samples of the time itself.")),
    ] {
        writeln!(text, "{word}")?;
        paragraph(text, &meaning)?;
    }
    Ok(())
}

fn describe(metric: &Metric, text: &mut String) -> fmt::Result {
    writeln!(text, "{} (column {})", metric.name, metric.title)?;
    let factor = match metric.unit {
        Unit::PerThousandInstructions => "1000 × ",
        _ => "",
    };
    let below = metric.denominators.join(" or ");
    writeln!(text, "{INDENT}{factor}{} ÷ {below}, {}", metric.numerator, metric.unit.words())?;
    paragraph(text, metric.explanation)?;
    if let Some(marks) = metric.marks {
        paragraph(text, &format!("{} ({}).", in_words(marks, metric.unit), metric.source))?;
    }
    writeln!(text)
}

fn describe_price(price: &Price, text: &mut String) -> fmt::Result {
    let of_what = if price.time.contains(&"cycles") { "cycles" } else { "ns" };
    writeln!(text, "{}-bound", price.cause.word())?;
    let condition =
        if price.needs_stalls { format!(", and IPC is {STALLED} or less") } else { String::new() };
    let each = if price.cost > 1.0 { format!(" × {} {of_what}", price.cost) } else { String::new() };
    paragraph(
        text,
        &format!(
            "{}{each} is {} % of {} or more{condition} ({}).",
            price.event,
            price.share * 100.0,
            price.time.join(" or "),
            price.source
        ),
    )
}

fn in_words(Marks { good, bad }: Marks, unit: Unit) -> String {
    let show = |value: f64| match unit {
        Unit::Share => format!("{} %", value * 100.0),
        _ => value.to_string(),
    };
    if good < bad {
        format!("Good: {} or less. Bad: {} or more", show(good), show(bad))
    } else {
        format!("Good: {} or more. Bad: {} or less", show(good), show(bad))
    }
}

const INDENT: &str = "    ";
const WIDTH: usize = 100;

/// Writes words in indented lines.
fn paragraph(text: &mut String, words: &str) -> fmt::Result {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if INDENT.len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(text, "{INDENT}{line}")?;
            line.clear();
        }
        let space = if line.is_empty() { "" } else { " " };
        write!(line, "{space}{word}")?;
    }
    writeln!(text, "{INDENT}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_and_every_word_is_explained() {
        let text = explain();
        for metric in Metric::all() {
            for part in [metric.name, metric.title, metric.numerator, metric.unit.words()] {
                assert!(text.contains(part), "{part}");
            }
        }
        for price in PRICES {
            assert!(text.contains(&format!("\n{}-bound\n", price.cause.word())));
        }
        assert!(text.contains("Good: 2 or more. Bad: 1 or less"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
