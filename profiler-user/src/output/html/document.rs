//! What the page knows: the profile in a compact form. The scripts of the page read it, so names here are names there.

use indexmap::IndexSet;
use serde::Serialize;

use super::tree::{Node, SMALLEST, Tree, TreeFrame};
use crate::output::header;
use crate::output::text::printable;
use crate::output::view::View;
use crate::profile::metrics::{Metric, Unit};
use crate::profile::statistics::Estimate;
use crate::profile::{By, EventId, EventInfo, FrameKind, Inlines, Label, Origin, Profile, Row, Sum, Table};

/// All of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    version: String,
    target: String,
    /// Labels and texts of the header.
    header: Vec<(String, String)>,
    events: Vec<Event>,
    metrics: Vec<MetricColumn>,
    /// Names, each once.
    strings: Vec<String>,
    /// Names of functions and of their objects.
    functions: Vec<[u32; 2]>,
    /// Function, kind, and whether it came with the language, by frame.
    frames: Vec<[u32; 3]>,
    nodes: Nodes,
    /// Nodes and rows with less than one part in this many of every event are added up.
    smallest: u64,
    tables: Vec<Rows>,
    /// Which inlined functions have rows.
    inlines: Inlines,
    start: Start,
}

/// What is shown first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    event: u16,
    /// Index of the table.
    table: usize,
    /// `kind` or the name of a metric.
    color_by: &'static str,
}

#[derive(Debug, Serialize)]
struct Event {
    name: String,
    unit: String,
    samples: u64,
    weight: u64,
}

/// A ratio of two events: weight of the one by weight of the other, times the factor.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MetricColumn {
    name: &'static str,
    title: &'static str,
    explanation: &'static str,
    unit: &'static str,
    is_share: bool,
    /// Indices of events.
    numerator: u16,
    denominator: u16,
    factor: f64,
    /// Values that are surely bad and surely good, where that can be said.
    marks: Option<(f64, f64)>,
}

/// Kinds of frames.
#[derive(Clone, Copy)]
enum Kind {
    User = 0,
    Inlined = 1,
    Kernel = 2,
    Threads = 3,
    Small = 4,
    All = 5,
}

/// The nodes of the tree, column by column.
#[derive(Debug, Serialize)]
struct Nodes {
    depth: Vec<u32>,
    frame: Vec<u32>,
    /// By event, then by node.
    weights: Vec<Vec<u64>>,
}

/// A table.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rows {
    heading: &'static str,
    plural: &'static str,
    rows: Vec<TableRow>,
    /// Rows that were left out, and their self weight by event.
    hidden: u64,
    hidden_weights: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct TableRow {
    name: u32,
    object: u32,
    /// By event; `None` where it has nothing.
    events: Vec<Option<Cost>>,
    /// By metric: value and interval.
    metrics: Vec<Option<[f64; 3]>>,
    /// What the metrics say.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
}

/// What a row takes of an event: samples and weight of its own, the same of the total, and the interval of the own weight where there
/// is one.
#[derive(Debug, Serialize)]
struct Cost([u64; 4], Option<[f64; 2]>);

impl Document {
    /// Takes what the page shows from a profile, and what it shows first.
    pub(super) fn new(profile: &Profile, event: EventId, view: &View) -> Self {
        let header = &profile.header;
        let mut strings = Strings::default();
        let tree = Tree::new(profile);
        let mut functions = IndexSet::new();
        let frames = tree
            .frames
            .iter()
            .map(|&frame| {
                let (name, object, kind) = parts(profile, frame);
                let function = [strings.number(name), strings.number(object)];
                let is_library = matches!(frame, TreeFrame::Function(.., Origin::Library));
                [functions.insert_full(function).0 as u32, kind as u32, is_library.into()]
            })
            .collect();
        let counted = profile.with_inlines(view.inlines);
        let by_function = Table::new(&counted, By::Function);
        let metrics = metrics(&by_function, view);
        let mut tables = vec![(By::Function, rows(&by_function, By::Function, &metrics, &mut strings))];
        for by in [By::Line, By::Object, By::Thread, By::Process] {
            let is_wanted = match by {
                By::Line => !profile.lines.is_empty(),
                By::Process => view.by == By::Process,
                _ => true,
            };
            if is_wanted {
                tables.push((by, rows(&Table::new(&counted, by), by, &metrics, &mut strings)));
            }
        }
        let start = Start {
            event: event.0,
            table: tables.iter().position(|(by, _)| *by == view.by).unwrap_or(0),
            color_by: view.color_by.map_or("kind", |metric| metric.name),
        };
        let event = |(_, event): (EventId, &EventInfo)| Event {
            name: printable(&event.name),
            unit: printable(&event.unit),
            samples: event.samples,
            weight: event.weight,
        };
        Self {
            version: header.version.clone(),
            target: printable(&header.target),
            header: header::lines(header),
            events: header.events().map(event).collect(),
            metrics: metrics.into_iter().map(|(_, column)| column).collect(),
            functions: functions.into_iter().collect(),
            frames,
            nodes: Nodes::new(&tree.nodes, header.counters.len() + 1),
            smallest: SMALLEST,
            tables: tables.into_iter().map(|(_, table)| table).collect(),
            inlines: view.inlines,
            start,
            strings: strings.0.into_iter().collect(),
        }
    }
}

impl Nodes {
    fn new(nodes: &[Node], events: usize) -> Self {
        Self {
            depth: nodes.iter().map(|node| node.depth).collect(),
            frame: nodes.iter().map(|node| node.frame).collect(),
            weights: (0..events)
                .map(|event| nodes.iter().map(|node| node.weights[event]).collect())
                .collect(),
        }
    }
}

#[derive(Default)]
struct Strings(IndexSet<String>);

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        self.0.insert_full(printable(text)).0 as u32
    }
}

/// Name, object and kind of a frame.
fn parts<'a>(profile: &'a Profile, frame: TreeFrame<'a>) -> (&'a str, &'a str, Kind) {
    match frame {
        TreeFrame::All => ("all", "", Kind::All),
        TreeFrame::Threads(comm) => (comm, "", Kind::Threads),
        TreeFrame::Small => ("(small)", "", Kind::Small),
        TreeFrame::Function(function, kind, _) => {
            let function = profile.function(function);
            let kind = match kind {
                FrameKind::User => Kind::User,
                FrameKind::Inlined => Kind::Inlined,
                FrameKind::Kernel => Kind::Kernel,
            };
            (&function.name, &function.object, kind)
        }
    }
}

/// Metrics that are shown: those that are chosen, and the one that gives the colours.
fn metrics(table: &Table, view: &View) -> Vec<(&'static Metric, MetricColumn)> {
    let is_chosen = |metric: &&'static Metric| {
        view.metrics.as_ref().is_none_or(|chosen| chosen.contains(metric) || view.color_by == Some(metric))
    };
    let column = |metric: &'static Metric| {
        let (numerator, denominator) = table.events_of(metric)?;
        let column = MetricColumn {
            name: metric.name,
            title: metric.title,
            explanation: metric.explanation(),
            unit: metric.unit.words(),
            is_share: metric.unit == Unit::Share,
            numerator: numerator.0,
            denominator: denominator.0,
            factor: metric.unit.factor(),
            marks: metric.bad_and_good(),
        };
        Some((metric, column))
    };
    table.metrics().into_iter().filter(is_chosen).filter_map(column).collect()
}

type Metrics = [(&'static Metric, MetricColumn)];

fn rows(table: &Table, by: By, metrics: &Metrics, strings: &mut Strings) -> Rows {
    let is_small = |row: &&Row| {
        let is_small =
            |(part, whole): (&Sum, &Sum)| part.weight.saturating_mul(SMALLEST) < whole.weight.max(1);
        row.total.iter().zip(&table.whole).all(is_small)
    };
    let (hidden, shown): (Vec<&Row>, Vec<&Row>) = table.rows.iter().partition(is_small);
    let mut hidden_weights = vec![0; table.whole.len()];
    for row in &hidden {
        for (sum, own) in hidden_weights.iter_mut().zip(&row.own) {
            *sum += own.weight;
        }
    }
    let rows = shown.into_iter().map(|row| table_row(table, row, metrics, strings)).collect();
    Rows { heading: by.heading(), plural: by.plural(), rows, hidden: hidden.len() as u64, hidden_weights }
}

fn table_row(table: &Table, row: &Row, metrics: &Metrics, strings: &mut Strings) -> TableRow {
    let Label { name, object } = &row.label;
    TableRow {
        name: strings.number(name),
        object: strings.number(object),
        events: (0..)
            .map(EventId)
            .zip(row.own.iter().zip(&row.total))
            .map(|(event, (own, total))| cost(table, event, own, total))
            .collect(),
        metrics: metrics
            .iter()
            .map(|(metric, _)| {
                table.metric(metric, row).map(|Estimate { value, low, high }| [value, low, high].map(rounded))
            })
            .collect(),
        reading: table.reading(row).map(|reading| reading.to_string()),
    }
}

fn cost(table: &Table, event: EventId, own: &Sum, total: &Sum) -> Option<Cost> {
    let interval = table.count(event, own).map(|count| [count.low, count.high].map(rounded));
    (total.weight > 0).then_some(Cost([own.samples, own.weight, total.samples, total.weight], interval))
}

/// A number to five digits, more than are shown.
fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let scale = 10_f64.powi(4 - number.abs().log10().floor() as i32);
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn five_digits_are_kept() {
        assert_eq!(
            [0.0, 1.234_567, 123_456.7, 0.000_123_456_7].map(rounded),
            [0.0, 1.2346, 123_460.0, 0.000_123_46]
        );
    }
}
