//! A thread that compiles tables, so that sampling never waits.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{Cache, CompileError, Table, compile};
use crate::processes::ObjectId;

/// The thread. It ends when this is dropped and its queue is empty.
pub struct Worker {
    jobs: Sender<(ObjectId, Arc<File>)>,
    /// What is done, in the order of the jobs.
    pub done: UnboundedReceiver<Compiled>,
}

/// The answer to a job.
#[derive(Debug)]
pub struct Compiled {
    /// The object.
    pub object: ObjectId,
    /// Its table, or why there is none.
    pub table: Result<Table, CompileError>,
    /// How long it took.
    pub took: Duration,
}

impl Worker {
    /// Starts the thread. Large tables come from the cache where they are in it.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    pub fn start(cache: Option<Cache>) -> std::io::Result<Self> {
        let (jobs, queue) = channel::<(ObjectId, Arc<File>)>();
        let (answers, done) = unbounded_channel();
        thread::Builder::new().name("unwind-tables".into()).spawn(move || {
            for (object, file) in queue {
                let begun = Instant::now();
                let table = table(&file, cache.as_ref());
                if answers.send(Compiled { object, table, took: begun.elapsed() }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { jobs, done })
    }

    /// Asks for the table of an object.
    pub fn compile(&self, object: ObjectId, file: Arc<File>) {
        // Without the thread there are no tables, and stacks say so.
        let _ = self.jobs.send((object, file));
    }
}

fn table(file: &File, cache: Option<&Cache>) -> Result<Table, CompileError> {
    if let Some(table) = cache.and_then(|cache| cache.load(file)) {
        return Ok(table);
    }
    let table = compile(file)?;
    if let Some(cache) = cache {
        // Without it the next run compiles the table again.
        let _ = cache.store(file, &table);
    }
    Ok(table)
}
