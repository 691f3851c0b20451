//! pprof: gzipped protobuf, which reading gives back as the profile that was written.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use indexmap::IndexSet;
use prost::Message as _;
use prost::bytes::Bytes;

use super::header::{Detail, write_header};
use crate::pprof::schema::{
    Function, Label, Line, Location, Mapping, Profile as Part, Sample as Row, ValueType,
};
use crate::pprof::{Columns, KERNEL_START, event_type, label, to_comments};
use crate::profile::{EventInfo, Frame, FrameId, FrameKind, MappingId, Profile, Sample, StackId, TaskId};

/// Samples that are encoded at a time.
const ROWS_AT_A_TIME: usize = 1024;

/// Mappings end at the border of a page of this size.
const PAGE: u64 = 4096;

/// Writes all events of a profile.
pub(super) fn write(profile: &Profile, to: &mut dyn Write) -> io::Result<()> {
    let mut texts = Texts::default();
    let places = Places::of(profile);
    let head = head(profile, &mut texts)?;
    let keys = Keys::new(profile, &mut texts);
    let mut gzip = GzEncoder::new(to, Compression::new(4));
    let mut put = |part: &Part| gzip.write_all(&part.encode_to_vec());
    put(&head)?;
    put(&places.describe(profile, &mut texts))?;
    put(&Part { string_table: texts.into_table(), ..Part::default() })?;
    let mut rows = Rows { profile, places: &places, keys: &keys, stack: None, locations: Vec::new() };
    let mut samples = profile.samples.as_slice();
    while !samples.is_empty() {
        let mut part = Part::default();
        while part.sample.len() < ROWS_AT_A_TIME
            && let Some(row) = rows.next(&mut samples)
        {
            part.sample.push(row.encode_to_vec().into());
        }
        put(&part)?;
    }
    gzip.finish()?;
    Ok(())
}

/// All but samples, places and texts.
fn head(profile: &Profile, texts: &mut Texts) -> io::Result<Part> {
    let header = &profile.header;
    let events: Vec<&EventInfo> = header.events().map(|(_, event)| event).collect();
    let (main, unit) = event_type(&header.event, true);
    let mut words = Vec::new();
    write_header(header, Detail::Full, &mut words)?;
    let mut comment: Vec<i64> = String::from_utf8_lossy(&words).lines().map(|line| texts.add(line)).collect();
    comment.extend(to_comments(header)?.iter().map(|line| texts.add(line)));
    Ok(Part {
        sample_type: Columns::new(header.counters.len()).types(&events, |text| texts.add(text)),
        time_nanos: header.began.map_or(0, signed),
        duration_nanos: (header.seconds * 1e9) as i64,
        period_type: Some(ValueType { r#type: texts.add(main), unit: texts.add(unit) }),
        period: signed(header.weight.checked_div(header.samples).unwrap_or(0)),
        comment,
        default_sample_type: texts.add(main),
        ..Part::default()
    })
}

/// The string table.
struct Texts(IndexSet<Arc<str>>);

impl Default for Texts {
    /// The first text is empty, so that 0 stands for nothing.
    fn default() -> Self {
        Self(IndexSet::from(["".into()]))
    }
}

impl Texts {
    fn add(&mut self, text: &str) -> i64 {
        let place = self.0.get_index_of(text).unwrap_or_else(|| self.0.insert_full(text.into()).0);
        signed(place as u64)
    }

    fn into_table(self) -> Vec<Bytes> {
        self.0.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect()
    }
}

/// Mappings and locations; their ids are the places here, counted from 1.
struct Places {
    /// Objects, and whether their code runs in the kernel.
    mappings: IndexSet<(MappingId, bool)>,
    /// A function and those inlined into it at one address, outermost first.
    locations: IndexSet<Box<[FrameId]>>,
}

impl Places {
    fn of(profile: &Profile) -> Self {
        let mut places = Self { mappings: IndexSet::new(), locations: IndexSet::new() };
        // Readers take the first for the program.
        places.mappings.extend(program(profile).map(|mapping| (mapping, false)));
        // In the order of the samples, which reading keeps, so that what was read is written as it was.
        let mut seen = HashSet::new();
        for sample in profile.samples.iter().filter(|sample| seen.insert(sample.stack)) {
            for chain in chains(profile, profile.stack(sample.stack)) {
                if !places.locations.contains(chain) {
                    places.mappings.insert(mapping_key(&profile.frame(chain[0])));
                    places.locations.insert(chain.into());
                }
            }
        }
        places
    }

    /// Ids of the locations of a stack, innermost first.
    fn locations_of(&self, profile: &Profile, stack: StackId, ids: &mut Vec<u64>) {
        ids.clear();
        let places = chains(profile, profile.stack(stack)).map(|chain| self.locations.get_index_of(chain));
        ids.extend(places.flatten().map(|place| place as u64 + 1));
        ids.reverse();
    }

    fn describe(&self, profile: &Profile, texts: &mut Texts) -> Part {
        let mut mapping: Vec<Mapping> = (1..)
            .zip(&self.mappings)
            .map(|(id, &(mapping, is_kernel))| {
                let object = profile.mapping(mapping);
                Mapping {
                    id,
                    memory_start: if is_kernel { KERNEL_START } else { 0 },
                    memory_limit: if is_kernel { u64::MAX } else { PAGE },
                    filename: texts.add(&object.path),
                    build_id: texts.add(&object.build_id),
                    has_functions: true,
                    ..Mapping::default()
                }
            })
            .collect();
        let mut functions = IndexSet::new();
        let mut location = Vec::with_capacity(self.locations.len());
        for (id, chain) in (1..).zip(&self.locations) {
            let code = profile.frame(chain[0]);
            let mapping_id = self.mappings.get_index_of(&mapping_key(&code)).map_or(0, |place| place + 1);
            if let Some(mapping) = mapping.get_mut(mapping_id.wrapping_sub(1)) {
                let end = code.address.saturating_add(1).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
                mapping.memory_limit = mapping.memory_limit.max(end);
                mapping.has_filenames |= code.line.is_some();
                mapping.has_line_numbers |= code.line.is_some();
                mapping.has_inline_frames |= chain.len() > 1;
            }
            let line = chain.iter().rev().map(|&frame| {
                let Frame { function, line, .. } = profile.frame(frame);
                let (file, number) =
                    line.map(|line| profile.line(line)).map_or(("", 0), |line| (&line.file, line.number));
                let name = texts.add(&profile.function(function).name);
                let function = functions.insert_full((name, texts.add(file))).0 as u64 + 1;
                Line { function_id: function, line: number.into() }
            });
            let line = line.collect();
            location.push(Location { id, mapping_id: mapping_id as u64, address: code.address, line });
        }
        let function = (1..)
            .zip(functions)
            // Without a system name, or pprof would shorten the names: `<` and `>` look to it like C++.
            .map(|(id, (name, filename))| Function { id, name, filename, ..Function::default() })
            .collect();
        Part { mapping, location, function, ..Part::default() }
    }
}

/// The object that most samples lie in or were called from, libraries aside.
fn program(profile: &Profile) -> Option<MappingId> {
    let is_program: Vec<bool> = profile
        .mappings
        .iter()
        .map(|mapping| mapping.path.starts_with('/') && !mapping.name.contains(".so"))
        .collect();
    let mut samples: HashMap<MappingId, u64> = HashMap::new();
    for sample in &profile.samples {
        let mut mappings = profile.stack(sample.stack).iter().map(|&frame| profile.frame(frame).mapping);
        if let Some(mapping) = mappings.find(|mapping| is_program[mapping.0 as usize]) {
            *samples.entry(mapping).or_default() += sample.samples;
        }
    }
    samples.into_iter().max_by_key(|&(mapping, samples)| (samples, mapping)).map(|(mapping, _)| mapping)
}

/// A stack, each function with those that are inlined into it. An inlined frame without its function stands alone.
fn chains<'a>(profile: &'a Profile, stack: &'a [FrameId]) -> impl Iterator<Item = &'a [FrameId]> {
    stack.chunk_by(|&outer, &inner| {
        let (outer, inner) = (profile.frame(outer), profile.frame(inner));
        inner.kind == FrameKind::Inlined && (outer.mapping, outer.address) == (inner.mapping, inner.address)
    })
}

fn mapping_key(frame: &Frame) -> (MappingId, bool) {
    (frame.mapping, frame.kind == FrameKind::Kernel)
}

/// Texts and keys of the labels.
struct Keys {
    process: i64,
    thread: i64,
    thread_name: i64,
    comm: i64,
    cgroup: i64,
    slice: i64,
    /// By task.
    names: Vec<Names>,
}

/// Texts that tell a task.
#[derive(Clone, Copy, Default)]
struct Names {
    thread: i64,
    process: i64,
    /// 0, the empty text, where it is not known.
    cgroup: i64,
}

impl Keys {
    fn new(profile: &Profile, texts: &mut Texts) -> Self {
        let main_threads = profile.tasks.iter().filter(|task| task.process == task.thread);
        let processes: HashMap<u32, &str> = main_threads.map(|task| (task.process, &*task.comm)).collect();
        let mut names = vec![Names::default(); profile.tasks.len()];
        let mut seen = HashSet::new();
        for sample in profile.samples.iter().filter(|sample| seen.insert(sample.task)) {
            let task = profile.task(sample.task);
            let process = processes.get(&task.process).copied().unwrap_or(&task.comm);
            names[sample.task.0 as usize] = Names {
                thread: texts.add(&task.comm),
                process: texts.add(process),
                cgroup: texts.add(&task.cgroup),
            };
        }
        let mut key = |name| texts.add(name);
        Self {
            process: key(label::PROCESS),
            thread: key(label::THREAD),
            thread_name: key(label::THREAD_NAME),
            comm: key(label::COMM),
            cgroup: key(label::CGROUP),
            slice: key(label::SLICE),
            names,
        }
    }

    fn labels(&self, profile: &Profile, task: TaskId, slice: u32) -> Vec<Label> {
        let names = self.names[task.0 as usize];
        let task = profile.task(task);
        let text = |key, str| Label { key, str, num: 0 };
        let number = |key, num: u32| Label { key, str: 0, num: num.into() };
        let mut labels = vec![
            number(self.process, task.process),
            number(self.thread, task.thread),
            text(self.thread_name, names.thread),
            text(self.comm, names.process),
            number(self.slice, slice),
        ];
        if names.cgroup != 0 {
            labels.push(text(self.cgroup, names.cgroup));
        }
        labels
    }
}

/// Samples as rows, one for neighbours that differ in the event alone.
struct Rows<'a> {
    profile: &'a Profile,
    places: &'a Places,
    keys: &'a Keys,
    /// The stack that `locations` is of: neighbours share it more often than not.
    stack: Option<StackId>,
    locations: Vec<u64>,
}

impl Rows<'_> {
    /// The row of the samples in front, which are taken.
    fn next(&mut self, samples: &mut &[Sample]) -> Option<Row> {
        let first = *samples.first()?;
        let columns = Columns::new(self.profile.header.counters.len());
        let mut value = vec![0; columns.count()];
        // In the order of their events, so that reading finds the order of the samples.
        let is_same = |a: &Sample, b: &Sample| {
            (a.task, a.stack, a.slice) == (b.task, b.stack, b.slice) && a.event < b.event
        };
        let row = samples.chunk_by(is_same).next().unwrap_or_default();
        for sample in row {
            let event = usize::from(sample.event.0);
            value[columns.samples(event)] = signed(sample.samples);
            value[columns.weight(event)] = signed(sample.weight);
        }
        *samples = &samples[row.len()..];
        if self.stack != Some(first.stack) {
            self.places.locations_of(self.profile, first.stack, &mut self.locations);
            self.stack = Some(first.stack);
        }
        Some(Row {
            location_id: self.locations.clone(),
            value,
            label: self.keys.labels(self.profile, first.task, first.slice),
        })
    }
}

/// pprof's numbers are signed; nothing that is counted comes near their end.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
