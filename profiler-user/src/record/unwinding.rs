//! Unwind tables on demand: compiled in a thread, placed in the kernel when they are done.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use profiler_common::mapping::{FileKey, FileRequest};

use crate::cache_folder::cache_folder;
use crate::kernel::{KernelError, Placed, Sampler};
use crate::processes::{BackingFile, History, Location, ObjectId, Objects};
use crate::symbols::vdso_image;
use crate::types::{MonotonicTime, Tgid, UserAddress};
use crate::unwind::{Cache, Compiled, Worker};

/// What was asked for, what is being made, what there is.
pub(super) struct Unwinding {
    worker: Worker,
    /// Files by the objects they belong to. An object can be known by several keys: it was copied, or replaced by itself.
    files: HashMap<ObjectId, HashSet<FileKey>>,
    objects: HashMap<FileKey, ObjectId>,
    /// Requests whose object is not known yet.
    unanswered: Vec<FileRequest>,
    /// Tables that are being compiled.
    outstanding: usize,
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
    /// Objects whose table did not fit into the memory granted.
    pub refused: usize,
}

impl Unwinding {
    pub(super) fn start() -> std::io::Result<Self> {
        Ok(Self {
            worker: Worker::start(Some(Cache::new(cache_folder().join("unwind"))))?,
            files: HashMap::new(),
            objects: HashMap::new(),
            unanswered: Vec::new(),
            outstanding: 0,
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
        self.provide_as(file, object, objects, sampler)
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
                (Some(object), _) => self.provide_as(request.file, object, objects, sampler)?,
                (None, Location::Object { object, .. })
                    if !is_behind || objects.file_key(object) == Some(request.file) =>
                {
                    self.provide_as(request.file, object, objects, sampler)?;
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
            match tokio::time::timeout_at(deadline, self.compiled()).await {
                Ok(Some(compiled)) => self.place(&compiled, sampler)?,
                Ok(None) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Places a table that was compiled.
    pub(super) fn place(&mut self, compiled: &Compiled, sampler: &mut Sampler) -> Result<(), KernelError> {
        self.outstanding = self.outstanding.saturating_sub(1);
        let Ok(table) = &compiled.table else {
            let files = self.files.get(&compiled.object).into_iter().flatten();
            return files.copied().try_for_each(|file| sampler.announce(file, compiled.object, false));
        };
        self.figures.tables += 1;
        self.figures.rows += table.row_count();
        self.figures.took += compiled.took;
        for &file in self.files.get(&compiled.object).into_iter().flatten() {
            if sampler.place_table(file, compiled.object, table)? == Placed::NoMemory {
                self.figures.refused += 1;
            }
        }
        Ok(())
    }

    /// The next table that is compiled.
    pub(super) async fn compiled(&mut self) -> Option<Compiled> {
        self.worker.done.recv().await
    }

    /// How much was compiled so far.
    pub(super) fn figures(&self) -> Figures {
        self.figures
    }

    fn provide_as(
        &mut self,
        file: FileKey,
        object: ObjectId,
        objects: &Objects,
        sampler: &mut Sampler,
    ) -> Result<(), KernelError> {
        self.objects.insert(file, object);
        let keys = self.files.entry(object).or_default();
        if !keys.insert(file) {
            return Ok(());
        }
        let opened = opened(objects, object);
        sampler.announce(file, object, opened.is_some())?;
        if let Some(opened) = opened {
            self.outstanding += 1;
            self.worker.compile(object, opened);
        }
        Ok(())
    }
}

/// Requests kept for objects that are not known yet: their process may have ended before its records were read.
const MAX_UNANSWERED: usize = 1024;

fn opened(objects: &Objects, object: ObjectId) -> Option<Arc<File>> {
    match objects.get(object).backing {
        BackingFile::Vdso => vdso_image().map(Arc::new),
        _ => objects.file(object).ok(),
    }
}
