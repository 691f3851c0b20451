//! Threads that compile tables, so that sampling never waits.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::compile::compile_expecting;
use super::{Cache, CompileError, Table};
use crate::precedence::Precedence;
use crate::processes::ObjectId;

/// The threads. When this is dropped they end, after what they are at.
pub struct Worker {
    queue: Arc<Queue>,
    /// What the threads tell.
    pub news: UnboundedReceiver<News>,
}

/// What a thread tells.
#[derive(Debug)]
pub enum News {
    /// It has begun.
    Begun {
        /// The object.
        object: ObjectId,
        /// About how many rows its table will have.
        rows: usize,
    },
    /// It is done.
    Done(Compiled),
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

/// How much a table is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Samples may come: the object was mapped.
    Expected,
    /// Samples came.
    Urgent,
}

/// Threads: the largest objects of a program come in pairs, such as a compiler's driver and its code generator, and small ones must not wait
/// for both.
const THREADS: usize = 4;

#[derive(Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(ObjectId, Arc<File>)>,
    is_closed: bool,
}

impl Worker {
    /// Starts the threads. Large tables come from the cache where they are in it.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    pub fn start(cache: Option<&Cache>) -> std::io::Result<Self> {
        let (teller, news) = unbounded_channel();
        let worker = Self { queue: Arc::default(), news };
        for _ in 0..THREADS {
            let (queue, teller, cache) = (Arc::clone(&worker.queue), teller.clone(), cache.cloned());
            thread::Builder::new()
                .name("unwind-tables".into())
                .spawn(move || work(&queue, &teller, cache.as_ref()))?;
        }
        Ok(worker)
    }

    /// Asks for the table of an object.
    pub fn compile(&self, object: ObjectId, file: Arc<File>, need: Need) {
        let mut jobs = self.queue.jobs();
        match need {
            Need::Expected => jobs.waiting.push_back((object, file)),
            Need::Urgent => jobs.waiting.push_front((object, file)),
        }
        drop(jobs);
        self.queue.changed.notify_one();
    }

    /// Makes an object the next one, if it is waiting.
    pub fn hurry(&self, object: ObjectId) {
        let waiting = &mut self.queue.jobs().waiting;
        if let Some(at) = waiting.iter().position(|(waits, _)| *waits == object)
            && let Some(job) = waiting.remove(at)
        {
            waiting.push_front(job);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.jobs().is_closed = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // Jobs are whole at every moment, so a thread that panicked leaves nothing half done.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None` when there will be none.
    fn next(&self) -> Option<(ObjectId, Arc<File>)> {
        let is_idle = |jobs: &mut Jobs| jobs.waiting.is_empty() && !jobs.is_closed;
        let jobs = self.changed.wait_while(self.jobs(), is_idle);
        let mut jobs = jobs.unwrap_or_else(PoisonError::into_inner);
        if jobs.is_closed { None } else { jobs.waiting.pop_front() }
    }
}

fn work(queue: &Queue, teller: &UnboundedSender<News>, cache: Option<&Cache>) {
    let _precedence = Precedence::take();
    while let Some((object, file)) = queue.next() {
        let begun = Instant::now();
        // When nobody listens any more, that shows at the end.
        let (table, is_new) = table(&file, cache, &|rows| drop(teller.send(News::Begun { object, rows })));
        let took = begun.elapsed();
        // Stacks wait for the answer; the cache can wait.
        let to_keep = table.as_ref().ok().filter(|_| is_new).cloned();
        if teller.send(News::Done(Compiled { object, table, took })).is_err() {
            return;
        }
        if let (Some(cache), Some(table)) = (cache, to_keep) {
            // Without it the next run compiles the table again.
            let _ = cache.store(&file, &table);
        }
    }
}

/// The table of an object, and whether it was compiled. `expect` hears first how many rows it will have, more or less.
fn table(file: &File, cache: Option<&Cache>, expect: &dyn Fn(usize)) -> (Result<Table, CompileError>, bool) {
    match cache.and_then(|cache| cache.load(file, expect)) {
        Some(table) => (Ok(table), false),
        None => (compile_expecting(file, expect), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_samples_need_comes_first() {
        let file = Arc::new(File::open("/proc/self/exe").unwrap());
        let (_, news) = unbounded_channel();
        let worker = Worker { queue: Arc::default(), news };
        let object = ObjectId::from_number;
        worker.compile(object(1), Arc::clone(&file), Need::Expected);
        worker.compile(object(2), Arc::clone(&file), Need::Expected);
        worker.compile(object(3), file, Need::Urgent);
        worker.hurry(object(2));
        worker.hurry(object(4));
        let order: Vec<ObjectId> = (0..3).map(|_| worker.queue.next().unwrap().0).collect();
        assert_eq!(order, [2, 3, 1].map(object));
        worker.queue.jobs().is_closed = true;
        assert!(worker.queue.next().is_none());
    }
}
