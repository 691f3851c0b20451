//! Unwind tables on demand: compiled in a thread, placed in the kernel when they are done.

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use profiler_common::mapping::{FileKey, FileRequest};

use super::table_use::{State, TableUse};
use crate::cache_folder::cache_folder;
use crate::kernel::{KernelError, Placed, RawSample, Sampler, Walk};
use crate::processes::{BackingFile, History, Location, ObjectId, Objects, Unreadable};
use crate::profile::{ObjectLack, RawStack};
use crate::symbols::vdso_image;
use crate::types::{MonotonicTime, Tgid, UserAddress};
use crate::unwind::{Cache, CompileError, Compiled, Need, News, Table, Worker};

/// What was asked for, what is being made, what there is.
pub(super) struct Unwinding {
    worker: Worker,
    /// Whether stacks are walked by tables.
    by_tables: bool,
    tables: TableUse,
    objects: HashMap<FileKey, ObjectId>,
    /// Requests whose object is not known yet.
    unanswered: Vec<FileRequest>,
    /// Tables that are being compiled.
    outstanding: usize,
    /// Rows that they will have, more or less, once they are begun.
    expected: HashMap<ObjectId, usize>,
    figures: Figures,
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
}

impl Unwinding {
    pub(super) fn start(walk: Walk) -> std::io::Result<Self> {
        Ok(Self {
            worker: Worker::start(Some(&Cache::new(cache_folder().join("unwind"))))?,
            by_tables: matches!(walk, Walk::Auto | Walk::Tables),
            tables: TableUse::default(),
            objects: HashMap::new(),
            unanswered: Vec::new(),
            outstanding: 0,
            expected: HashMap::new(),
            figures: Figures::default(),
        })
    }

    /// Makes an object known to the kernel side and has its table compiled, once.
    pub(super) fn provide(
        &mut self,
        object: ObjectId,
        objects: &Objects,
        sampler: &mut Sampler,
    ) -> Result<(), KernelError> {
        let Some(file) = objects.file_key(object) else { return Ok(()) };
        self.provide_as(file, object, Need::Expected, objects, sampler)
    }

    /// Answers what the programs ask for, and what they asked before and could not be answered.
    ///
    /// A history that is behind may still have the program that the process ran before, at the same addresses: then only an object whose
    /// own key is the one asked for is the answer.
    pub(super) fn answer(
        &mut self,
        requests: Vec<FileRequest>,
        is_behind: bool,
        history: &History,
        objects: &Objects,
        sampler: &mut Sampler,
    ) -> Result<(), KernelError> {
        self.unanswered.extend(requests);
        for request in std::mem::take(&mut self.unanswered) {
            let location =
                history.locate(Tgid(request.tgid), UserAddress(request.address), MonotonicTime::now());
            match (self.objects.get(&request.file).copied(), location) {
                (Some(object), _) => {
                    self.provide_as(request.file, object, Need::Urgent, objects, sampler)?;
                }
                (None, Location::Object { object, .. })
                    if !is_behind || objects.file_key(object) == Some(request.file) =>
                {
                    self.provide_as(request.file, object, Need::Urgent, objects, sampler)?;
                }
                (None, Location::Object { .. } | Location::Unknown)
                    if self.unanswered.len() < MAX_UNANSWERED =>
                {
                    self.unanswered.push(request);
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Places what is being compiled, for as long as this: so that the first samples find their tables.
    pub(super) async fn settle(
        &mut self,
        patience: Duration,
        sampler: &mut Sampler,
    ) -> Result<(), KernelError> {
        let deadline = tokio::time::Instant::now() + patience;
        while self.outstanding > 0 {
            match tokio::time::timeout_at(deadline, self.news()).await {
                Ok(Some(news)) => self.take(&news, sampler)?,
                Ok(None) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Makes room for a table that is begun; places one that is done.
    pub(super) fn take(&mut self, news: &News, sampler: &mut Sampler) -> Result<(), KernelError> {
        match news {
            News::Begun { object, rows } => {
                self.expected.insert(*object, *rows);
                sampler.expect_rows(self.expected.values().sum());
                Ok(())
            }
            News::Done(compiled) => {
                self.outstanding = self.outstanding.saturating_sub(1);
                self.expected.remove(&compiled.object);
                self.place(compiled, sampler)
            }
        }
    }

    /// Places a table that was compiled, in place of others that are not used if need be.
    fn place(&mut self, compiled: &Compiled, sampler: &mut Sampler) -> Result<(), KernelError> {
        let object = compiled.object;
        let table = match &compiled.table {
            Ok(table) if table.row_count() > 0 => table,
            Ok(_) => return self.give_up(object, describe(&CompileError::NoFrames), sampler),
            Err(error) => return self.give_up(object, describe(error), sampler),
        };
        self.figures.tables += 1;
        self.figures.rows += table.row_count();
        self.figures.took += compiled.took;
        let state = match self.place_somewhere(object, table, sampler)? {
            Placed::Whole => State::Placed(MonotonicTime::now()),
            Placed::NoMemory => {
                self.figures.refused += 1;
                State::NoRoom
            }
        };
        self.tables.set(object, state, table.row_count());
        Ok(())
    }

    /// Counts what a sample lacked, and that it hit what it hit.
    pub(super) fn observe(&mut self, stack: &RawStack, sample: &RawSample<'_>) {
        if self.by_tables {
            let awaited = self.tables.observe(&stack.frames, sample.end, sample.first, sample.samples);
            awaited.into_iter().for_each(|object| self.worker.hurry(object));
        }
    }

    /// Ends a drain: a table that found no room, and is needed, may find some by now.
    pub(super) fn end_drain(&mut self, objects: &Objects, sampler: &Sampler) {
        if let Some(object) = self.tables.end_drain(sampler.free_unwind_rows())
            && let Ok(file) = opened(objects, object)
        {
            self.outstanding += 1;
            self.worker.compile(object, file, Need::Urgent);
        }
    }

    /// Objects whose table samples lacked, those first that most of them lacked.
    pub(super) fn without_table(&self, objects: &Objects, unwind_memory: u64) -> Vec<ObjectLack> {
        self.tables.report(objects, unwind_memory)
    }

    /// What becomes of a table next.
    pub(super) async fn news(&mut self) -> Option<News> {
        self.worker.news.recv().await
    }

    /// The objects that the kernel side was told of: frames of samples to come may be in them.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectId> {
        self.objects.values().copied()
    }

    /// How much was compiled so far.
    pub(super) fn figures(&self) -> Figures {
        self.figures
    }

    fn provide_as(
        &mut self,
        file: FileKey,
        object: ObjectId,
        need: Need,
        objects: &Objects,
        sampler: &mut Sampler,
    ) -> Result<(), KernelError> {
        self.objects.insert(file, object);
        let is_known = match self.tables.add_file(object, file) {
            Some(State::None(_)) => return sampler.announce(file, object, false),
            Some(_) => true,
            None => false,
        };
        let opened = opened(objects, object);
        match opened {
            _ if is_known => sampler.announce(file, object, true),
            Ok(opened) if self.by_tables => {
                self.outstanding += 1;
                self.worker.compile(object, opened, need);
                sampler.announce(file, object, true)
            }
            Ok(_) => sampler.announce(file, object, false),
            Err(why) => self.give_up(object, why.describe().into(), sampler),
        }
    }

    fn place_somewhere(
        &mut self,
        object: ObjectId,
        table: &Table,
        sampler: &mut Sampler,
    ) -> Result<Placed, KernelError> {
        let files = self.tables.files(object).to_vec();
        if sampler.place_table(&files, object, table)? == Placed::Whole {
            return Ok(Placed::Whole);
        }
        let idle = self.tables.make_room(table.row_count(), sampler.free_unwind_rows());
        if idle.is_empty() {
            return Ok(Placed::NoMemory);
        }
        self.figures.withdrawn += idle.len();
        sampler.withdraw_tables(&idle)?;
        sampler.place_table(&files, object, table)
    }

    /// Notes that an object has no table and will have none.
    fn give_up(&mut self, object: ObjectId, why: String, sampler: &mut Sampler) -> Result<(), KernelError> {
        self.tables.set(object, State::None(why), 0);
        let files = self.tables.files(object);
        files.iter().try_for_each(|&file| sampler.announce(file, object, false))
    }
}

/// Why there is no table, and what helps.
fn describe(error: &CompileError) -> String {
    match error {
        CompileError::NoFrames => format!("{error}; build it with -fasynchronous-unwind-tables"),
        _ => error.to_string(),
    }
}

/// Requests kept for objects that are not known yet: their process may have ended before its records were read.
const MAX_UNANSWERED: usize = 1024;

fn opened(objects: &Objects, object: ObjectId) -> Result<Arc<File>, Unreadable> {
    match objects.get(object).backing {
        BackingFile::Vdso => vdso_image().map(Arc::new).ok_or(Unreadable::NoFile),
        _ => objects.file(object),
    }
}
