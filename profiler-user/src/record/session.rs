//! A recording in progress: the sampler, the process history, and what was drained so far.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use profiler_common::mapping::{FileRequest, PAGE_SHIFT};

use super::conditions::spoilers;
use super::eager::Eager;
use super::event::ChosenEvents;
use super::fresh::{Fresh, FreshMappings};
use super::target::ResolvedTarget;
use super::unwind_tables::{Answer, Figures, UnwindTables};
use crate::cli::Options;
use crate::events::{Counted, CpuId, cpus};
use crate::kernel::{
    Accounting, CounterAccounting, Filter, KernelError, Mapped, ProgramSize, SampledEvent, Sampler,
    SamplerOptions, Sideband, SidebandRecord, Target, Walk, wait_for_running_programs,
};
use crate::output::counted;
use crate::processes::{
    Cgroups, History, Location, ObjectId, Objects, Scope, descendants, everyone, mapping_at, mappings,
};
use crate::profile::{
    Attribution, EventId, EventInfo, Header, LostInfo, Profile, Recording, Slices, StacksInfo,
};
use crate::symbols::{SymbolOptions, symbolize};
use crate::types::{MonotonicTime, Tgid, UserAddress};

/// A recording in progress.
pub(super) struct Session {
    sampler: Sampler,
    sideband: Sideband,
    history: History,
    cgroups: Cgroups,
    objects: Objects,
    tables: UnwindTables,
    /// Mappings that the history does not know yet.
    fresh: FreshMappings,
    /// When the tables were switched last.
    cut: MonotonicTime,
    /// Until when the history knows all.
    history_until: MonotonicTime,
    /// Whose objects get their tables when they are mapped, and not only when samples hit them.
    eager: Eager,
    /// The target's processes, as far as they are known at this moment.
    family: HashSet<Tgid>,
    recording: Recording,
    events: ChosenEvents,
    target: String,
    /// Bytes that unwind tables may take in the kernel.
    unwind_memory: u64,
    launched: Option<Tgid>,
    /// Processes from which the others descend.
    roots: Vec<Tgid>,
    /// Side-band records that are lost and answered.
    lost_records: u64,
    begun: Instant,
    cpus: usize,
}

/// How long the start waits for unwind tables at most. The largest programs take longer; their first stacks are cut then.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far a recording is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub elapsed: Duration,
    pub samples: u64,
    pub lost: u64,
}

/// A finished recording.
pub(super) struct Recorded {
    recording: Recording,
    objects: Objects,
    header: Header,
}

impl Session {
    /// Arms everything but the events: from here on no child and no mapping is missed.
    pub(super) fn arm(
        options: &Options,
        events: ChosenEvents,
        target: &ResolvedTarget,
    ) -> Result<Self, KernelError> {
        // First the records, then the scan of /proc: what changes in between is in the records.
        let sideband = Sideband::open(cpus::online()?)?;
        let vdso = mappings(Tgid(std::process::id())).into_iter().find(|mapped| mapped.path == b"[vdso]");
        let (sampler, unwind_maps) = Sampler::load(SamplerOptions {
            events: events.sampled(),
            counters: events.read().to_vec(),
            target: target.kernel.clone(),
            filter: Filter {
                follow: options.follow,
                comm: options.comm.clone(),
                idle: options.idle,
                log: options.bpf_log,
                walk: if options.user_frames { options.unwind } else { Walk::None },
                kernel_stacks: options.kernel_frames,
                kernel_mode_only: !options.user_frames,
                vdso_pages: vdso
                    .as_ref()
                    .map_or(0, |vdso| u32::try_from(vdso.len >> PAGE_SHIFT).unwrap_or(0)),
            },
            cpus: options.cpus.clone(),
            unwind_memory: options.unwind_memory,
            refuse: options.refuse_programs,
            host: events.host.clone(),
        })?;
        let walk = sampler.program_size().walk;
        let mut session = Self {
            sampler,
            sideband,
            history: History::new(target.scope),
            cgroups: Cgroups::default(),
            objects: Objects::default(),
            tables: UnwindTables::start(walk, unwind_maps)
                .map_err(|error| KernelError::System { call: "starting a thread", error })?,
            fresh: FreshMappings::default(),
            cut: MonotonicTime(0),
            history_until: MonotonicTime(0),
            eager: Eager::of(target, options.user_frames),
            family: HashSet::new(),
            recording: Recording::default(),
            events,
            target: target.description.clone(),
            unwind_memory: options.unwind_memory,
            launched: target.launched,
            roots: target.processes.clone(),
            lost_records: 0,
            begun: Instant::now(),
            cpus: 0,
        };
        if let Some(vdso) = vdso
            && let Some(object) = session.objects.find(Tgid(std::process::id()), &vdso)
        {
            session.tables.provide(object, &session.objects)?;
        }
        session.learn_processes(options, target)?;
        Ok(session)
    }

    /// Waits a moment for the unwind tables of what the target has mapped.
    pub(super) async fn settle(&mut self) -> Result<(), KernelError> {
        self.tables.settle(PATIENCE).await
    }

    /// Starts sampling.
    pub(super) fn start(&mut self) -> Result<(), KernelError> {
        self.begun = Instant::now();
        self.sampler.start()
    }

    /// A descriptor that becomes readable when processes change.
    pub(super) fn sideband_fd(&self) -> &impl AsFd {
        &self.sideband
    }

    /// A descriptor that becomes readable when programs ask for files.
    pub(super) fn requests_fd(&self) -> io::Result<OwnedFd> {
        self.tables.requests_fd()
    }

    /// Opens the objects that processes have just mapped, while the processes live, and answers what the kernel side asks for. Whether more
    /// is to be expected soon: a program has begun, or something was mapped.
    pub(super) fn open_new_objects(&mut self) -> Result<bool, KernelError> {
        let has_mapped = self.look()?;
        let has_begun = self.answer_requests()?;
        Ok(has_mapped || has_begun)
    }

    /// Looks at side-band records that are new: each is looked at once, here. Whether something was mapped whose table is wanted early.
    fn look(&mut self) -> Result<bool, KernelError> {
        let (mut found, mut changed) = (Vec::new(), HashSet::new());
        for (time, record) in self.sideband.look() {
            self.cgroups.follow(record);
            self.fresh.note(*time, record);
            if let SidebandRecord::Forked { parent, child } = record {
                self.objects.note_fork(*parent, *child);
            }
            match record {
                SidebandRecord::Forked { parent, child } if self.family.contains(parent) => {
                    self.family.insert(*child);
                }
                SidebandRecord::Mapped { tgid, mapped }
                    if self.history.scope() == Scope::All || self.family.contains(tgid) =>
                {
                    let object = self.objects.find(*tgid, mapped);
                    self.fresh.note_mapped(*time, *tgid, mapped, object);
                    changed.extend(self.history.replaced_in(*tgid, mapped));
                    if self.eager.wants(*tgid, &self.cgroups) {
                        found.extend(object);
                        changed.insert(*tgid);
                    }
                }
                _ => {}
            }
        }
        let has_mapped = !changed.is_empty();
        changed.into_iter().try_for_each(|tgid| self.sampler.note_mappings(tgid))?;
        self.provide(found)?;
        Ok(has_mapped)
    }

    /// Makes room for the next unwind table that is compiled, or places it.
    pub(super) async fn place_table(&mut self) -> Result<(), KernelError> {
        match self.tables.news().await {
            Some(news) => self.tables.take(&news),
            None => std::future::pending().await,
        }
    }

    fn answer_requests(&mut self) -> Result<bool, KernelError> {
        let (requests, has_begun) = self.tables.requests();
        let mut asking = HashSet::new();
        for request in requests {
            let answer = self.answer(&request);
            self.tables.answer(request, answer, &self.objects)?;
            asking.insert(Tgid(request.tgid));
        }
        // A walk ends at the first file that is not known: one by one, those of a deep stack would take many samples.
        for tgid in asking {
            self.provide(self.history.objects_of(tgid))?;
        }
        Ok(has_begun)
    }

    /// What an asked-for file is: known by its key, or by what the process that met it had mapped at that moment.
    fn answer(&mut self, request: &FileRequest) -> Answer {
        let FileRequest { file, address, time, tgid, .. } = *request;
        let (tgid, address, time) = (Tgid(tgid), UserAddress(address), MonotonicTime(time));
        if let Some(object) = self.objects.with_key(file) {
            return Answer::Object(object);
        }
        let is_behind = time > self.history_until;
        match self.fresh.find(tgid, address, time) {
            Fresh::Mapped(Some(object)) => return Answer::Object(object),
            Fresh::Mapped(None) => return Answer::NoObject,
            Fresh::Unknown if is_behind => return Answer::NotYet,
            Fresh::Unknown | Fresh::Unchanged => {}
        }
        match self.history.locate(tgid, address, time) {
            Location::Object { object, .. } => Answer::Object(object),
            Location::Anonymous => Answer::NoObject,
            Location::Unknown if is_behind => Answer::NotYet,
            // Its records may be lost.
            Location::Unknown => match mapping_at(tgid, address) {
                Some(mapped) => self.objects.find(tgid, &mapped).map_or(Answer::NoObject, Answer::Object),
                None => Answer::Unknown,
            },
        }
    }

    /// The lowest of the frequencies around which [periods are drawn](Self::draw_periods); `None` where none are.
    pub(super) fn lowest_drawn_frequency(&self) -> Option<NonZeroU32> {
        self.sampler.lowest_drawn_frequency()
    }

    /// Draws new periods for the events that have random ones.
    pub(super) fn draw_periods(&mut self) -> Result<(), KernelError> {
        self.sampler.draw_periods()
    }

    /// Ends a slice of time: what is sampled from now on belongs to the next.
    pub(super) fn end_slice(&mut self) -> Result<(), KernelError> {
        self.follow_cpus()?;
        self.cut = MonotonicTime::now();
        self.sampler.switch_tables();
        Ok(())
    }

    /// Takes over the slice that was ended, after the programs that were running then [have ended](wait_for_running_programs), and begins
    /// the next. Whether something was mapped, so that more is to be expected soon.
    pub(super) fn take_slice(&mut self) -> Result<bool, KernelError> {
        let has_mapped = self.drain()?;
        self.recording.next_slice();
        Ok(has_mapped)
    }

    /// Takes over what was sampled up to the cut. The kernel has written all side-band records from before it.
    fn drain(&mut self) -> Result<bool, KernelError> {
        let cut = self.cut;
        let has_mapped = self.look()?;
        let mut changed = HashSet::new();
        for (time, record) in self.sideband.take_until(cut) {
            // It may take the place of one that came with it.
            if let SidebandRecord::Mapped { tgid, mapped } = &record {
                changed.extend(self.history.replaced_in(*tgid, mapped));
            }
            self.history.apply(time, record, &mut self.objects);
        }
        changed.into_iter().try_for_each(|tgid| self.sampler.note_mappings(tgid))?;
        self.fresh.forget_until(cut);
        self.history_until = cut;
        self.answer_lost_records(cut);
        // Before what ended is forgotten.
        self.answer_requests()?;
        let Self { sampler, recording, history, objects, launched, tables, cgroups, .. } = self;
        sampler.drain(|sample| {
            // Until it executes its program, a command is a copy of this process.
            let waits =
                *launched == Some(sample.tgid) && !history.has_executed_before(sample.tgid, sample.first);
            if !waits {
                let hit = recording.add(sample, history, objects.jit_code_mut(), cgroups.of(sample.tgid));
                // The header speaks of the main event's stacks.
                if sample.event == EventId::MAIN.0 {
                    tables.observe(hit, sample);
                }
            }
        });
        objects.jit_code_mut().end_drain();
        tables.end_drain(objects);
        self.history.forget_before(cut);
        self.cgroups.retain(|tgid| self.history.knows(tgid));
        let Self { objects, recording, history, tables, .. } = self;
        objects.forget(|| history.objects().chain(recording.objects()).chain(tables.objects()).collect());
        Ok(has_mapped)
    }

    /// Records that are lost may have told of forks, execs and mappings: what `/proc` shows stands in for them from now on.
    fn answer_lost_records(&mut self, now: MonotonicTime) {
        let lost = self.sideband.lost();
        if lost == self.lost_records {
            return;
        }
        self.lost_records = lost;
        // The exec of the command may be among them.
        self.launched = None;
        let concerned: HashSet<Tgid> = match self.history.scope() {
            Scope::All => everyone().into_iter().collect(),
            Scope::Descendants => {
                descendants(&self.roots).into_iter().chain(self.history.processes()).collect()
            }
        };
        for tgid in concerned {
            self.family.insert(tgid);
            self.history.rescan(tgid, now, &mut self.objects);
            self.cgroups.look(tgid);
        }
        self.history.join_sharers();
    }

    /// How far it is.
    pub(super) fn status(&mut self) -> Status {
        let (kept, lost) = self.sampler.kept_and_lost();
        Status { elapsed: self.begun.elapsed(), samples: kept.samples, lost: lost.samples }
    }

    /// What unwinding took, in words for who wants to know more.
    pub(super) fn unwinding_figures(&self) -> String {
        let Figures { tables, rows, took, refused, withdrawn, bytes } = self.tables.figures();
        format!(
            "unwind tables of {} with {} took {took:.1?} of other threads and {} MiB of the kernel's memory; {withdrawn} made room for others, {refused} did not fit (--unwind-memory)",
            counted(tables as u64, "object"),
            counted(rows as u64, "row"),
            bytes >> 20,
        )
    }

    /// Stops sampling and takes over the rest.
    pub(super) fn finish(mut self) -> Result<Recorded, KernelError> {
        self.sampler.stop()?;
        let elapsed = self.begun.elapsed();
        self.cpus = self.sampler.cpus().count();
        // Two drains: one for the tables in use, one for a sample that was being taken.
        for _ in 0..2 {
            self.end_slice()?;
            wait_for_running_programs();
            self.drain()?;
        }
        let mut header = self.header(elapsed);
        header.notes.extend(spoilers(&header));
        Ok(Recorded { recording: self.recording, objects: self.objects, header })
    }

    fn learn_processes(&mut self, options: &Options, target: &ResolvedTarget) -> Result<(), KernelError> {
        match target.scope {
            Scope::All => self.learn(everyone()),
            Scope::Descendants => {
                self.family = self.follow_family(options, target)?;
                self.learn(self.family.clone());
                if !matches!(self.eager, Eager::Nobody) {
                    self.expect_common_objects(target.program.as_deref());
                    let known: Vec<ObjectId> = self.objects.iter().map(|(object, _)| object).collect();
                    self.provide(known)?;
                }
            }
        }
        Ok(())
    }

    /// Looks at processes that live.
    fn learn(&mut self, processes: impl IntoIterator<Item = Tgid>) {
        for tgid in processes {
            self.history.scan(tgid, &mut self.objects);
            self.cgroups.look(tgid);
        }
        self.history.join_sharers();
    }

    /// Opens what the target will map: its program, and the loader and C library that this process has too.
    fn expect_common_objects(&mut self, program: Option<&Path>) {
        let this = Tgid(std::process::id());
        let own_program = std::env::current_exe().unwrap_or_default();
        let is_library = |mapped: &Mapped| {
            mapped.path.starts_with(b"/") && mapped.path != own_program.as_os_str().as_bytes()
        };
        let ours = mappings(this).into_iter().filter(is_library);
        for mapped in ours.chain(program.and_then(Mapped::of_program)) {
            self.objects.find(this, &mapped);
        }
    }

    fn provide(&mut self, objects: Vec<ObjectId>) -> Result<(), KernelError> {
        for object in objects {
            self.tables.provide(object, &self.objects)?;
        }
        Ok(())
    }

    /// Children that existed before following was armed. A child that one of them has while `/proc` is read is found in the next round.
    fn follow_family(
        &mut self,
        options: &Options,
        target: &ResolvedTarget,
    ) -> Result<HashSet<Tgid>, KernelError> {
        let mut family: HashSet<Tgid> = target.processes.iter().copied().collect();
        if !options.follow || !matches!(target.kernel, Target::Processes(_)) {
            return Ok(family);
        }
        loop {
            let found = descendants(&target.processes);
            let new: Vec<Tgid> = found.difference(&family).copied().collect();
            if new.is_empty() {
                return Ok(family);
            }
            self.sampler.add_followed(new.iter().map(|tgid| tgid.0))?;
            family.extend(new);
        }
    }

    fn follow_cpus(&mut self) -> Result<(), KernelError> {
        let online: BTreeSet<CpuId> = cpus::online()?;
        self.sideband.follow_cpus(&online)?;
        self.sampler.follow_cpus(&online)
    }

    /// What a smaller sample program means for the profile, where the kernel took no larger one.
    fn smaller_program(&self) -> Option<String> {
        let ProgramSize { walk, frame_limit, refusal } = self.sampler.program_size();
        let refusal = refusal.as_ref()?;
        let pointers = match walk {
            Walk::FramePointer => "user stacks are walked by frame pointers alone, and ",
            _ => "",
        };
        Some(format!(
            "{pointers}stacks deeper than {frame_limit} frames are cut: this kernel refused the larger program: {refusal}"
        ))
    }

    fn header(&mut self, elapsed: Duration) -> Header {
        let sampled: Vec<(EventInfo, Accounting)> =
            (0..self.events.sampled().len()).map(|index| self.sampled_event(index)).collect();
        let mut sampled = sampled.into_iter();
        let (event, accounting) = sampled.next().unwrap_or_default();
        let mut notes = self.events.notes.clone();
        notes.extend(self.smaller_program());
        let mut counters = Vec::new();
        for (counter, accounting) in sampled {
            notes.extend(limits(&counter.name, &accounting));
            counters.push(counter);
        }
        counters.extend((0..self.events.read().len()).map(|index| self.read_counter(index)));
        let lost = accounting.lost_total();
        Header {
            version: env!("CARGO_PKG_VERSION").into(),
            target: self.target.clone(),
            began: unix_time_before(elapsed),
            seconds: elapsed.as_secs_f64(),
            cpus: self.cpus,
            slices: Slices {
                count: self.recording.slices(),
                seconds: elapsed.as_secs_f64() / f64::from(self.recording.slices()),
            },
            samples: event.samples,
            weight: event.weight,
            event: EventInfo { fallback: self.events.fallback.clone(), ..event },
            counters,
            counters_missing: self.events.missing.clone(),
            lost: LostInfo {
                samples: lost.samples,
                weight: lost.weight,
                causes: accounting
                    .lost
                    .iter()
                    .map(|(cause, amount)| (cause.describe().into(), amount.samples, amount.weight))
                    .collect(),
                undelivered: accounting.undelivered(),
                throttles: accounting.throttles,
                not_followed: accounting.not_followed,
                sideband_records: self.sideband.lost(),
                idle_left_out: accounting.idle.samples,
                user_mode_left_out: accounting.user_mode_left_out.samples,
            },
            stacks: StacksInfo {
                frame_limit: self.sampler.program_size().frame_limit,
                without_table: self.tables.without_table(&self.objects, self.unwind_memory),
                ..StacksInfo::default()
            },
            notes,
            ..Header::default()
        }
    }

    /// What is known of a sampled event, by its index. Its weights are scaled where it had a counter for a part of the time.
    fn sampled_event(&mut self, index: usize) -> (EventInfo, Accounting) {
        let accounting = self.sampler.accounting(index);
        let SampledEvent { spec, rate, precise } = &self.events.sampled()[index];
        let id = EventId(index as u16);
        self.recording.scale(id, accounting.counted);
        let total = self.recording.total(id);
        let info = EventInfo {
            name: spec.name(),
            unit: spec.unit().into(),
            rate: rate.describe(spec),
            precise: precise.level(),
            fallback: None,
            attribution: Attribution::Overflow,
            samples: total.samples,
            weight: total.weight,
            counted: Some(accounting.counted.scaled()),
            running: accounting.counted.running().unwrap_or(0.0),
            closure: accounting.undelivered().map(|missing| 1.0 - missing),
            residual: 0,
        };
        (info, accounting)
    }

    /// What is known of a counter that was read at samples, by its index.
    fn read_counter(&mut self, index: usize) -> EventInfo {
        let CounterAccounting { counted, others, residual } = self.sampler.counter_accounting(index);
        let spec = &self.events.read()[index];
        let id = EventId(index as u16 + 1);
        let attributed = self.recording.total(id).weight;
        self.recording.scale(id, counted);
        let total = self.recording.total(id);
        let scaled = |value: u64| Counted { value, ..counted }.scaled();
        EventInfo {
            name: spec.name(),
            unit: spec.unit().into(),
            rate: format!("read at each sample of {}", self.events.main.spec.name()),
            precise: 0,
            fallback: None,
            attribution: Attribution::Delta,
            samples: total.samples,
            weight: total.weight,
            counted: Some(counted.scaled()),
            running: counted.running().unwrap_or(0.0),
            closure: (counted.value > 0)
                .then(|| (attributed + others + residual) as f64 / counted.value as f64),
            residual: scaled(residual),
        }
    }
}

/// What else limits the numbers of a counter, in words.
fn limits(name: &str, accounting: &Accounting) -> Vec<String> {
    let lost = accounting.lost_total().samples;
    let mut limits = Vec::new();
    if lost > 0 {
        limits.push(format!("{} of {name} lost", counted(lost, "sample")));
    }
    if accounting.throttles > 0 {
        limits.push(format!("the kernel throttled {name} {}", counted(accounting.throttles, "time")));
    }
    limits
}

/// The time of day that was this long ago, in nanoseconds since 1970 (UTC).
fn unix_time_before(elapsed: Duration) -> Option<u64> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since_epoch.checked_sub(elapsed)?.as_nanos()).ok()
}

impl Recorded {
    /// Gives it names.
    pub(super) fn symbolize(
        self,
        options: &SymbolOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Profile {
        symbolize(&self.recording, &self.objects, self.header, options, progress)
    }
}
