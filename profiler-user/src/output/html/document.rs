//! What the page knows: the profile in a compact form. The scripts of the page read it, so names here are names there.

use indexmap::IndexSet;
use serde::{Serialize, Serializer, ser::SerializeSeq as _};

use super::tree::{Node, SMALLEST, Tree, TreeFrame};
use crate::output::header;
use crate::output::text::printable;
use crate::profile::{By, EventId, FrameKind, Label, Profile, Row, Sum, Table};

/// All of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    version: String,
    target: String,
    seconds: f64,
    /// Labels and texts of the header.
    header: Vec<(String, String)>,
    events: Vec<Event>,
    /// Names, each once.
    strings: Vec<String>,
    /// Names of functions and of their objects.
    functions: Vec<[u32; 2]>,
    /// Function and kind, by frame.
    frames: Vec<[u32; 2]>,
    nodes: Nodes,
    /// Nodes and rows with less than one part in this many of every event are added up.
    smallest: u64,
    tables: Vec<Rows>,
}

#[derive(Debug, Serialize)]
struct Event {
    name: String,
    unit: String,
    samples: u64,
    weight: u64,
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
struct Rows {
    heading: &'static str,
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
}

/// What a row takes of an event; a list of numbers in the page.
#[derive(Debug)]
struct Cost {
    own: Sum,
    total: Sum,
    /// Ends of the 95 % interval of the own share.
    interval: Option<(f64, f64)>,
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(Some(6))?;
        for number in [self.own.samples, self.own.weight, self.total.samples, self.total.weight] {
            list.serialize_element(&number)?;
        }
        if let Some((low, high)) = self.interval {
            list.serialize_element(&rounded(low))?;
            list.serialize_element(&rounded(high))?;
        }
        list.end()
    }
}

impl Document {
    /// Takes what the page shows from a profile.
    pub(super) fn new(profile: &Profile) -> Self {
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
                [functions.insert_full(function).0 as u32, kind as u32]
            })
            .collect();
        let tables = [By::Function, By::Line, By::Object, By::Thread]
            .into_iter()
            .filter(|by| *by != By::Line || !profile.lines.is_empty())
            .map(|by| rows(profile, by, &mut strings))
            .collect();
        let event = |(_, event): (EventId, &crate::profile::EventInfo)| Event {
            name: event.name.clone(),
            unit: event.unit.clone(),
            samples: event.samples,
            weight: event.weight,
        };
        Self {
            version: header.version.clone(),
            target: printable(&header.target),
            seconds: header.seconds,
            header: header::lines(header),
            events: header.events().map(event).collect(),
            functions: functions.into_iter().collect(),
            frames,
            nodes: Nodes::new(&tree.nodes, header.counters.len() + 1),
            smallest: SMALLEST,
            tables,
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
        TreeFrame::Function(function, kind) => {
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

fn rows(profile: &Profile, by: By, strings: &mut Strings) -> Rows {
    let table = Table::new(profile, by);
    let is_small = |row: &Row| {
        let is_small =
            |(part, whole): (&Sum, &Sum)| part.weight.saturating_mul(SMALLEST) < whole.weight.max(1);
        row.total.iter().zip(&table.whole).all(is_small)
    };
    let (hidden, shown): (Vec<&Row>, Vec<&Row>) = table.rows.iter().partition(|row| is_small(row));
    let mut hidden_weights = vec![0; table.whole.len()];
    for row in &hidden {
        for (sum, own) in hidden_weights.iter_mut().zip(&row.own) {
            *sum += own.weight;
        }
    }
    let rows = shown
        .into_iter()
        .map(|row| {
            let Label { name, object } = &row.label;
            TableRow {
                name: strings.number(name),
                object: strings.number(object),
                events: costs(&table, row),
            }
        })
        .collect();
    Rows { heading: by.heading(), rows, hidden: hidden.len() as u64, hidden_weights }
}

fn costs(table: &Table, row: &Row) -> Vec<Option<Cost>> {
    (0..)
        .map(EventId)
        .zip(row.own.iter().zip(&row.total))
        .map(|(event, (&own, &total))| {
            let interval = table.share(event, &own).map(|share| (share.low, share.high));
            (total.samples > 0).then_some(Cost { own, total, interval })
        })
        .collect()
}

/// A share to the digits that are shown.
fn rounded(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}
