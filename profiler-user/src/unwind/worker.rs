//! A thread that compiles tables, so that sampling never waits.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{CompileError, Table, compile};
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
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    pub fn start() -> std::io::Result<Self> {
        let (jobs, queue) = channel::<(ObjectId, Arc<File>)>();
        let (answers, done) = unbounded_channel();
        thread::Builder::new().name("unwind-tables".into()).spawn(move || {
            for (object, file) in queue {
                let begun = Instant::now();
                let table = compile(&file);
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
