//! The unwind tables of a recording, and their only owner: which files hold which object, who asked for them, what is being compiled,
//! what is in the kernel, and what samples use.
//!
//! A table is made when its object is mapped, or when a program asks for its file; which of them comes first depends on the targets, and
//! the way is the same. Nothing stays undecided: a file that cannot be answered is asked for again, a table without room is placed when
//! others make room, and an object that could not be read is read when it appears again.

mod files;
mod usage;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use profiler_common::mapping::{FileEntry, FileKey, FileRequest};
use profiler_common::stack::{Guess, StackEnd};

use crate::cache_folder::cache_folder;
use crate::kernel::{KernelError, Placement, RawSample, UnwindMaps, Walk};
use crate::processes::{BackingFile, ObjectId, Objects, Unreadable};
use crate::profile::ObjectLack;
use crate::symbols::vdso_image;
use crate::types::MonotonicTime;
use crate::unwind::{Cache, CompileError, Compiled, Need, News, Table, Worker};
use files::Files;
use usage::{State, Usage};

/// The tables, from the asking for a file to the rows in the kernel.
pub(super) struct UnwindTables {
    maps: UnwindMaps,
    worker: Worker,
    /// Whether stacks are walked by tables.
    by_tables: bool,
    files: Files,
    usage: Usage,
    /// The tables that are in the kernel.
    placements: HashMap<ObjectId, Placement>,
    /// Requests that could not be answered yet.
    unanswered: Vec<FileRequest>,
    /// Tables that are being compiled.
    outstanding: usize,
    /// Rows that they will have, more or less, once they are begun.
    expected: HashMap<ObjectId, usize>,
    figures: Figures,
}

/// What an asked-for file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It holds this object.
    Object(ObjectId),
    /// It holds none.
    NoObject,
    /// The records of that time have yet to be read.
    NotYet,
    /// Nobody knows: whoever meets it next asks again.
    Unknown,
}

/// How much was compiled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// Objects with a table.
    pub tables: usize,
    /// Their rows.
    pub rows: usize,
    /// Time it took to compile them.
    pub took: Duration,
    /// Times that a table did not fit into the memory granted.
    pub refused: usize,
    /// Tables that made room for others.
    pub withdrawn: usize,
    /// Bytes that rows take in the kernel.
    pub bytes: u64,
}

impl UnwindTables {
    /// No table yet. Threads that compile some are waiting.
    pub(super) fn start(walk: Walk, maps: UnwindMaps) -> io::Result<Self> {
        Ok(Self {
            maps,
            worker: Worker::start(Some(&Cache::new(cache_folder().join("unwind"))))?,
            by_tables: matches!(walk, Walk::Auto | Walk::Tables),
            files: Files::default(),
            usage: Usage::default(),
            placements: HashMap::new(),
            unanswered: Vec::new(),
            outstanding: 0,
            expected: HashMap::new(),
            figures: Figures::default(),
        })
    }

    /// A descriptor that becomes readable when programs ask for files.
    pub(super) fn requests_fd(&self) -> io::Result<OwnedFd> {
        self.maps.requests_fd()
    }

    /// Has the table of an object made before a sample needs it, once.
    pub(super) fn provide(&mut self, object: ObjectId, objects: &Objects) -> Result<(), KernelError> {
        match objects.file_key(object) {
            Some(file) if self.note(file, object) => self.provide_for(file, object, Need::Expected, objects),
            _ => Ok(()),
        }
    }

    /// The files that programs ask for, and whether a program of the targets has begun.
    pub(super) fn requests(&mut self) -> (Vec<FileRequest>, bool) {
        let (mut requests, has_begun) = self.maps.requests();
        requests.append(&mut self.unanswered);
        (requests, has_begun)
    }

    /// Answers a request: the same way for every file and every process.
    pub(super) fn answer(
        &mut self,
        request: FileRequest,
        answer: Answer,
        objects: &Objects,
    ) -> Result<(), KernelError> {
        let file = request.file;
        match answer {
            Answer::Object(object) => {
                self.note(file, object);
                self.provide_for(file, object, Need::Urgent, objects)
            }
            Answer::NoObject => self.maps.publish(file, FileEntry::NO_FILE_OBJECT),
            Answer::NotYet if self.unanswered.len() < MAX_UNANSWERED => {
                self.unanswered.push(request);
                Ok(())
            }
            Answer::NotYet | Answer::Unknown => {
                self.maps.forget(file);
                Ok(())
            }
        }
    }

    /// Places what is being compiled, for as long as this: so that the first samples find their tables.
    pub(super) async fn settle(&mut self, patience: Duration) -> Result<(), KernelError> {
        let deadline = tokio::time::Instant::now() + patience;
        while self.outstanding > 0 {
            match tokio::time::timeout_at(deadline, self.news()).await {
                Ok(Some(news)) => self.take(&news)?,
                Ok(None) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// What becomes of a table next.
    pub(super) async fn news(&mut self) -> Option<News> {
        self.worker.news.recv().await
    }

    /// Makes room for a table that is begun; places one that is done.
    pub(super) fn take(&mut self, news: &News) -> Result<(), KernelError> {
        match news {
            News::Begun { object, rows } => {
                self.expected.insert(*object, *rows);
                self.maps.expect_rows(self.expected.values().sum());
                Ok(())
            }
            News::Done(compiled) => {
                self.outstanding = self.outstanding.saturating_sub(1);
                self.expected.remove(&compiled.object);
                self.place(compiled)
            }
        }
    }

    /// Counts what a sample with frames in these objects lacked, and that it hit what it hit.
    pub(super) fn observe(&mut self, objects: impl Iterator<Item = ObjectId>, sample: &RawSample<'_>) {
        if self.by_tables {
            let is_missing = sample.end == StackEnd::NoTable || sample.guess == Guess::NoTable;
            let awaited = self.usage.observe(objects, is_missing, sample.first, sample.samples);
            awaited.into_iter().for_each(|object| self.worker.hurry(object));
        }
    }

    /// Ends a drain: a table that found no room, and is needed, may find some by now.
    pub(super) fn end_drain(&mut self, objects: &Objects) {
        if let Some(object) = self.usage.end_drain(self.maps.free_rows())
            && let Ok(file) = opened(objects, object)
        {
            self.compile(object, file, Need::Urgent);
        }
    }

    /// Objects whose table samples lacked, those first that most of them lacked.
    pub(super) fn without_table(&self, objects: &Objects, unwind_memory: u64) -> Vec<ObjectLack> {
        self.usage.report(objects, unwind_memory)
    }

    /// The objects that the kernel side was told of: frames of samples to come may be in them.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.files.objects()
    }

    /// How much was compiled so far.
    pub(super) fn figures(&self) -> Figures {
        Figures { bytes: self.maps.bytes(), ..self.figures }
    }

    /// Notes that a file holds an object; whether that is new.
    fn note(&mut self, file: FileKey, object: ObjectId) -> bool {
        let former = self.files.note(file, object);
        if let Some(former) = former.filter(|former| *former != object) {
            self.usage.remove_file(former, file);
        }
        for (file, object) in self.files.make_room() {
            self.usage.remove_file(object, file);
            self.maps.forget(file);
        }
        former != Some(object)
    }

    /// Makes a file known to the programs, and has the table of its object compiled if that was not tried yet.
    fn provide_for(
        &mut self,
        file: FileKey,
        object: ObjectId,
        need: Need,
        objects: &Objects,
    ) -> Result<(), KernelError> {
        if self.usage.add_file(object, file) {
            match opened(objects, object) {
                Ok(opened) if self.by_tables => self.compile(object, opened, need),
                Ok(_) => self.usage.set(object, State::None("stacks are not walked by tables".into()), 0),
                Err(why) => self.usage.set(object, State::Unreadable(why), 0),
            }
        }
        self.maps.publish(file, self.entry(object))
    }

    fn compile(&mut self, object: ObjectId, file: Arc<File>, need: Need) {
        self.outstanding += 1;
        self.worker.compile(object, file, need);
    }

    /// Takes over what became of a table.
    fn place(&mut self, compiled: &Compiled) -> Result<(), KernelError> {
        let object = compiled.object;
        let former = self.placements.remove(&object);
        let (state, rows) = match &compiled.table {
            Ok(table) if table.row_count() > 0 => {
                self.figures.tables += 1;
                self.figures.rows += table.row_count();
                self.figures.took += compiled.took;
                (self.place_somewhere(object, table)?, table.row_count())
            }
            Ok(_) => (State::None(describe(&CompileError::NoFrames)), 0),
            Err(error) => (State::None(describe(error)), 0),
        };
        self.usage.set(object, state, rows);
        self.publish(object)?;
        self.maps.free(former.into_iter().collect());
        Ok(())
    }

    /// Places a table, in place of others that are not used if need be.
    fn place_somewhere(&mut self, object: ObjectId, table: &Table) -> Result<State, KernelError> {
        let mut placement = self.maps.place(table)?;
        if placement.is_none() {
            let idle = self.usage.make_room(table.row_count(), self.maps.free_rows());
            if !idle.is_empty() {
                self.withdraw(&idle)?;
                placement = self.maps.place(table)?;
            }
        }
        let Some(placement) = placement else {
            self.figures.refused += 1;
            return Ok(State::NoRoom);
        };
        self.placements.insert(object, placement);
        Ok(State::Placed(MonotonicTime::now()))
    }

    /// Takes tables out of the kernel, as if they were still to come.
    fn withdraw(&mut self, idle: &[ObjectId]) -> Result<(), KernelError> {
        self.figures.withdrawn += idle.len();
        let withdrawn = idle.iter().filter_map(|object| self.placements.remove(object)).collect();
        idle.iter().try_for_each(|&object| self.publish(object))?;
        self.maps.free(withdrawn);
        Ok(())
    }

    /// Says of all files of an object what is known of it.
    fn publish(&mut self, object: ObjectId) -> Result<(), KernelError> {
        let entry = self.entry(object);
        self.usage.files(object).iter().try_for_each(|&file| self.maps.publish(file, entry))
    }

    /// What programs are told of an object.
    fn entry(&self, object: ObjectId) -> FileEntry {
        match self.placements.get(&object) {
            Some(placement) => placement.entry(object.number()),
            None => FileEntry::without_table(object.number(), self.usage.may_follow(object)),
        }
    }
}

/// Why there is no table, and what helps.
fn describe(error: &CompileError) -> String {
    match error {
        CompileError::NoFrames => format!("{error}; build it with -fasynchronous-unwind-tables"),
        _ => error.to_string(),
    }
}

/// Requests kept until the records of their time are read. Those beyond are forgotten, and so asked again.
const MAX_UNANSWERED: usize = 4096;

fn opened(objects: &Objects, object: ObjectId) -> Result<Arc<File>, Unreadable> {
    match objects.get(object).backing {
        BackingFile::Vdso => vdso_image().map(Arc::new).ok_or(Unreadable::NoFile),
        _ => objects.file(object),
    }
}
