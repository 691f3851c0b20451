//! pprof files: bpfprof's own as they were written, those of other programs as far as they go.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message as _;
use prost::bytes::Bytes;

use super::SavedError;
use super::builder::{Builder, MOST_EVENTS};
use super::foreign::{self, UNKNOWN};
use crate::pprof::schema::{self, Label};
use crate::pprof::{Columns, KERNEL_START, headers_in, label};
use crate::profile::{
    EventId, Frame, FrameId, FrameKind, Function, Header, Line, MappingId, Profile, Sample, Slices, StackId,
    Task, TaskId,
};

/// More slices than a recording can have.
const TOO_MANY_SLICES: u32 = 4096;

/// Reads the content of a file.
pub(super) fn read(bytes: Bytes) -> Result<Profile, SavedError> {
    let file = schema::Profile::decode(bytes).map_err(|_| SavedError::Unknown)?;
    if file.sample_type.is_empty() || file.sample.is_empty() {
        return Err(SavedError::Empty);
    }
    let texts = Texts(file.string_table.iter().map(|text| String::from_utf8_lossy(text).into()).collect());
    let (header, events) = header(&file, &texts)?;
    let mut builder = Builder::new(events.len());
    let places = Places::read(&file, &texts, &mut builder)?;
    let mut rows =
        Rows { texts: &texts, events: &events, places: &places, slices: header.slices.count, stacks: None };
    for bytes in &file.sample {
        let row = schema::Sample::decode(bytes.clone())
            .map_err(|_| SavedError::Damaged("a sample cannot be decoded"))?;
        rows.add(&row, &mut builder)?;
    }
    let is_own = header.source.is_none();
    let (mut profile, changed) = builder.finish(header)?;
    if is_own && changed {
        profile.header.notes.push(
            "another program changed the samples of this file: what is said of losses, stacks and names is of the recording".into(),
        );
    }
    Ok(profile)
}

/// The string table.
struct Texts(Vec<Arc<str>>);

impl Texts {
    fn get(&self, index: i64) -> Result<&Arc<str>, SavedError> {
        let text = usize::try_from(index).ok().and_then(|index| self.0.get(index));
        text.ok_or(SavedError::Damaged("a text is not there"))
    }
}

/// The values of an event.
struct EventColumns {
    /// Those with numbers of samples, where there are any.
    samples: Option<usize>,
    weight: usize,
    /// What a value is multiplied by: weights are in nanoseconds where they are time.
    scale: u64,
}

fn header(file: &schema::Profile, texts: &Texts) -> Result<(Header, Vec<EventColumns>), SavedError> {
    let comments = file.comment.iter().filter_map(|&comment| texts.get(comment).ok());
    let mut own = headers_in(comments.map(|comment| &**comment)).into_iter();
    // Two headers are of two recordings that another program added up: neither holds.
    if let (Some(header), None) = (own.next(), own.next())
        && Columns::new(header.counters.len()).count() == file.sample_type.len()
        && header.counters.len() < MOST_EVENTS
    {
        if !(1..=TOO_MANY_SLICES).contains(&header.slices.count) {
            return Err(SavedError::Damaged("it has no slices of time, or too many"));
        }
        let columns = Columns::new(header.counters.len());
        let events = (0..=header.counters.len()).map(|event| EventColumns {
            samples: Some(columns.samples(event)),
            weight: columns.weight(event),
            scale: 1,
        });
        return Ok((header, events.collect()));
    }
    foreign_header(file, texts)
}

fn foreign_header(file: &schema::Profile, texts: &Texts) -> Result<(Header, Vec<EventColumns>), SavedError> {
    if file.sample_type.len() > MOST_EVENTS {
        return Err(SavedError::Damaged("it has more sample types than are read"));
    }
    let mut types = Vec::new();
    for value in &file.sample_type {
        types.push((&**texts.get(value.r#type)?, &**texts.get(value.unit)?));
    }
    let samples =
        types.iter().position(|&(name, unit)| matches!(name, "samples" | "sample") && unit == "count");
    let default = texts.get(file.default_sample_type)?;
    let main = types.iter().position(|(name, _)| *name == &**default).unwrap_or(types.len() - 1);
    let others = (0..types.len()).filter(|&column| column != main && Some(column) != samples);
    let mut events = Vec::new();
    let mut infos = Vec::new();
    for column in std::iter::once(main).chain(others) {
        let (name, unit) = types[column];
        let (unit, scale) = match unit {
            "nanoseconds" => ("ns", 1),
            "microseconds" => ("ns", 1_000),
            "milliseconds" => ("ns", 1_000_000),
            "seconds" => ("ns", 1_000_000_000),
            "count" => (name, 1),
            unit => (unit, 1),
        };
        infos.push(foreign::event(name, unit, &rate(file, texts, column == main)));
        events.push(EventColumns { samples: samples.filter(|_| column == main), weight: column, scale });
    }
    let main = infos.remove(0);
    let seconds = file.duration_nanos.max(0) as f64 / 1e9;
    let source = if samples.is_some() {
        "made by another program: what was lost and how whole the stacks are is not known"
    } else {
        "made by another program: the number of samples, what was lost and how whole the stacks are is not known"
    };
    let mut header = foreign::header("a pprof file", source, main, infos, Slices { count: 1, seconds });
    header.began = u64::try_from(file.time_nanos).ok().filter(|&began| began > 0);
    Ok((header, events))
}

fn rate(file: &schema::Profile, texts: &Texts, is_main: bool) -> String {
    let unit = file.period_type.and_then(|period| texts.get(period.unit).ok());
    match unit {
        Some(unit) if is_main && file.period > 0 => format!("one sample every {} {unit}", file.period),
        _ => "rate not known".into(),
    }
}

/// The frames of each location, outermost first.
struct Places {
    locations: HashMap<u64, Box<[FrameId]>>,
    /// Name of the first object, which is the program's.
    program: Arc<str>,
}

struct MappingPlace {
    id: MappingId,
    is_kernel: bool,
    start: u64,
    limit: u64,
    offset: u64,
}

impl Places {
    fn read(file: &schema::Profile, texts: &Texts, builder: &mut Builder) -> Result<Self, SavedError> {
        let mut mappings = HashMap::new();
        for mapping in &file.mapping {
            let path = texts.get(mapping.filename)?;
            let place = MappingPlace {
                id: builder.object_with_build_id(path, texts.get(mapping.build_id)?),
                is_kernel: mapping.memory_start >= KERNEL_START || is_kernel(path),
                start: mapping.memory_start,
                limit: mapping.memory_limit,
                offset: mapping.file_offset,
            };
            mappings.insert(mapping.id, place);
        }
        let mut functions = HashMap::new();
        for function in &file.function {
            let name = texts.get(function.name)?;
            let name = if name.is_empty() { texts.get(function.system_name)? } else { name };
            functions.insert(function.id, (name, texts.get(function.filename)?));
        }
        let program = match builder.profile.mappings.first() {
            Some(mapping) => Arc::clone(&mapping.name),
            None => UNKNOWN.into(),
        };
        let unknown = builder.object("");
        let mut locations = HashMap::new();
        for location in &file.location {
            let mapping = mappings.get(&location.mapping_id);
            let place = Place::of(location, mapping, unknown);
            let mut frames = Vec::with_capacity(location.line.len().max(1));
            for line in location.line.iter().rev() {
                let &(name, file) = find(&functions, line.function_id, "a function is not there")?;
                let kind = if frames.is_empty() { place.kind } else { FrameKind::Inlined };
                frames.push(place.add_frame(builder, name, file, line.line, kind));
            }
            if frames.is_empty() {
                let object = &builder.profile.mapping(place.mapping).name;
                let name = match place.address {
                    0 => UNKNOWN.into(),
                    address => format!("[{object}+{address:#x}]"),
                };
                frames.push(builder.frame(&name, place.kind, place.mapping, place.address));
            }
            locations.insert(location.id, frames.into());
        }
        Ok(Self { locations, program })
    }
}

/// Where the frames of a location lie.
struct Place {
    mapping: MappingId,
    kind: FrameKind,
    address: u64,
}

impl Place {
    fn of(location: &schema::Location, mapping: Option<&MappingPlace>, unknown: MappingId) -> Self {
        let address = location.address;
        match mapping {
            Some(mapping) if mapping.is_kernel => {
                Self { mapping: mapping.id, kind: FrameKind::Kernel, address }
            }
            Some(mapping) => {
                let is_inside = (mapping.start..mapping.limit).contains(&address);
                let place = if is_inside {
                    (address - mapping.start).saturating_add(mapping.offset)
                } else {
                    address
                };
                Self { mapping: mapping.id, kind: FrameKind::User, address: place }
            }
            None => Self { mapping: unknown, kind: FrameKind::User, address },
        }
    }

    fn add_frame(
        &self,
        builder: &mut Builder,
        name: &Arc<str>,
        file: &Arc<str>,
        line: i64,
        kind: FrameKind,
    ) -> FrameId {
        let profile = &mut builder.profile;
        let object = Arc::clone(&profile.mapping(self.mapping).name);
        let name = if name.is_empty() { UNKNOWN.into() } else { Arc::clone(name) };
        let function = profile.add_function(Function { name, object });
        let number = u32::try_from(line).unwrap_or(0);
        let line = (number > 0 || !file.is_empty())
            .then(|| profile.add_line(Line { file: Arc::clone(file), number }));
        profile.add_frame(Frame { function, kind, mapping: self.mapping, address: self.address, line })
    }
}

/// Whether other programs mean the kernel by this name.
fn is_kernel(path: &str) -> bool {
    ["[kernel", "[guest.kernel", "[vmlinux", "vmlinux"].iter().any(|name| path.starts_with(name))
        || path.ends_with(".ko")
}

/// Samples as they are added.
struct Rows<'a> {
    texts: &'a Texts,
    events: &'a [EventColumns],
    places: &'a Places,
    slices: u32,
    /// The last row's locations and stack: neighbours share them more often than not.
    stacks: Option<(Vec<u64>, StackId)>,
}

impl Rows<'_> {
    fn add(&mut self, row: &schema::Sample, builder: &mut Builder) -> Result<(), SavedError> {
        let stack = self.stack(&row.location_id, builder)?;
        let (task, slice) = self.labels(&row.label, builder)?;
        for (event, columns) in (0..).map(EventId).zip(self.events) {
            let value = |column: usize| {
                let value = row.value.get(column).ok_or(SavedError::Damaged("a sample lacks a value"))?;
                u64::try_from(*value)
                    .map_err(|_| SavedError::Damaged("it has values below 0: it is a difference of profiles"))
            };
            let samples = columns.samples.map_or(Ok(0), value)?;
            let weight = value(columns.weight)?
                .checked_mul(columns.scale)
                .ok_or(SavedError::Damaged("its numbers are larger than can be"))?;
            if samples > 0 || weight > 0 {
                builder.add_sample(Sample { task, stack, slice, event, samples, weight })?;
            }
        }
        Ok(())
    }

    fn stack(&mut self, locations: &[u64], builder: &mut Builder) -> Result<StackId, SavedError> {
        if let Some((last, stack)) = &self.stacks
            && last == locations
        {
            return Ok(*stack);
        }
        let mut frames = Vec::new();
        for &location in locations.iter().rev() {
            frames.extend_from_slice(find(&self.places.locations, location, "a location is not there")?);
        }
        if frames.is_empty() {
            let object = builder.object("");
            frames.push(builder.frame(UNKNOWN, FrameKind::User, object, 0));
        }
        let stack = builder.add_stack(frames)?;
        self.stacks = Some((locations.to_vec(), stack));
        Ok(stack)
    }

    fn labels(&self, labels: &[Label], builder: &mut Builder) -> Result<(TaskId, u32), SavedError> {
        let (mut process, mut thread, mut slice) = (0, 0, 0);
        let (mut thread_name, mut comm) = (None, None);
        let mut cgroup = Arc::default();
        for label in labels {
            let number =
                || u32::try_from(label.num).map_err(|_| SavedError::Damaged("an id is larger than can be"));
            match &**self.texts.get(label.key)? {
                label::PROCESS | "process_id" => process = number()?,
                label::THREAD | "thread_id" => thread = number()?,
                label::SLICE => slice = number()?,
                label::THREAD_NAME | "thread_name" => thread_name = Some(self.texts.get(label.str)?),
                label::COMM | "process_name" => comm = Some(self.texts.get(label.str)?),
                label::CGROUP => cgroup = Arc::clone(self.texts.get(label.str)?),
                _ => {}
            }
        }
        if slice >= self.slices {
            return Err(SavedError::Damaged("a sample is of a slice of time that is not there"));
        }
        let comm = Arc::clone(thread_name.or(comm).unwrap_or(&self.places.program));
        Ok((builder.profile.add_task(Task { process, thread, comm, cgroup }), slice))
    }
}

fn find<'a, V>(map: &'a HashMap<u64, V>, id: u64, missing: &'static str) -> Result<&'a V, SavedError> {
    map.get(&id).ok_or(SavedError::Damaged(missing))
}
