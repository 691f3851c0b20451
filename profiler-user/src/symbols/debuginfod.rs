//! Debug files from debuginfod servers (`debuginfod(8)`), by build id.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::cache_folder::cache_folder;
use crate::kernel::BuildId;
use crate::processes::build_id;

/// Servers, and the folder that keeps what they gave.
///
/// Cloning shares the state: what is asked for, how long it took, and what came.
#[derive(Clone, Debug)]
pub struct Debuginfod {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    servers: Vec<String>,
    cache: PathBuf,
    time_limit: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the first request was made; all of them share one time limit.
    begun: Option<Instant>,
    fetched: u64,
    bytes: u64,
    missing: u64,
    /// The first failure of each run is enough to say what is wrong.
    failure: Option<String>,
}

/// Time for all requests of a run, unless `DEBUGINFOD_TIMEOUT` says otherwise: a server that hangs must not hold the profile back.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Largest file that is fetched, in bytes.
const MAX_FILE: u64 = 4 << 30;

/// What the cache may hold, in bytes; the files used longest ago go first.
const MAX_CACHE: u64 = 8 << 30;

impl Debuginfod {
    /// The servers in `DEBUGINFOD_URLS`, separated by blanks; `None` when there are none.
    ///
    /// Files are kept in `$DEBUGINFOD_CACHE_PATH`, else in `debuginfod` below bpfprof's own [folder](cache_folder).
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let servers = env::var("DEBUGINFOD_URLS").unwrap_or_default();
        let servers: Vec<String> = servers
            .split_whitespace()
            .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
            .map(|url| url.trim_end_matches('/').into())
            .collect();
        let limit = env::var("DEBUGINFOD_TIMEOUT").ok().and_then(|seconds| seconds.parse().ok());
        let time_limit = limit.map_or(TIME_LIMIT, Duration::from_secs);
        (!servers.is_empty()).then(|| Self::new(servers, files_folder(), time_limit))
    }

    fn new(servers: Vec<String>, cache: PathBuf, time_limit: Duration) -> Self {
        Self { shared: Arc::new(Shared { servers, cache, time_limit, state: Mutex::default() }) }
    }

    /// The debug file of this build, from the cache or a server.
    pub(super) fn debug_file(&self, id: BuildId) -> Option<File> {
        let path = self.shared.cache.join(id.to_string()).join("debuginfo");
        match File::open(&path).ok().filter(|file| build_id(file) == Some(id)) {
            Some(cached) => {
                // Marks it as used; a cache of another user's cannot be marked.
                let _ = cached.set_modified(SystemTime::now());
                Some(cached)
            }
            None => self.fetch(id, &path),
        }
    }

    /// What was asked for and what came, in a sentence; `None` when nothing was.
    pub(super) fn summary(&self) -> Option<String> {
        let state = self.state(std::mem::take);
        if let Some(failure) = state.failure {
            return Some(format!("debuginfod: {failure}"));
        }
        let took = state.begun?.elapsed();
        Some(format!(
            "debuginfod: {} of {} debug files came from {} ({:.1} MB in {:.1} s)",
            state.fetched,
            state.fetched + state.missing,
            self.shared.servers.join(" "),
            state.bytes as f64 / 1e6,
            took.as_secs_f64(),
        ))
    }

    fn fetch(&self, id: BuildId, path: &Path) -> Option<File> {
        for server in &self.shared.servers {
            let begun = self.state(|state| *state.begun.get_or_insert_with(Instant::now));
            let left = self.shared.time_limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
            let Some(left) = left else {
                let limit = self.shared.time_limit.as_secs();
                self.fail(format!("no more files were asked for after {limit} s (DEBUGINFOD_TIMEOUT)"));
                break;
            };
            match download(server, id, path, left) {
                Ok(Some((file, bytes))) => {
                    self.state(|state| {
                        state.fetched += 1;
                        state.bytes += bytes;
                    });
                    trim(&self.shared.cache, MAX_CACHE, path);
                    return Some(file);
                }
                Ok(None) => {}
                Err(error) => self.fail(format!("{server}: {error}")),
            }
        }
        self.state(|state| state.missing += 1);
        None
    }

    fn fail(&self, failure: String) {
        self.state(|state| {
            state.failure.get_or_insert(failure);
        });
    }

    fn state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Fetches a debug file into the cache; `None` when the server does not have it.
fn download(
    server: &str,
    id: BuildId,
    path: &Path,
    time_limit: Duration,
) -> Result<Option<(File, u64)>, String> {
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(time_limit))
        .http_status_as_error(false)
        .user_agent(concat!("bpfprof/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let url = format!("{server}/buildid/{id}/debuginfo");
    let mut response = agent.get(&url).call().map_err(|error| error.to_string())?;
    match response.status().as_u16() {
        200 => {}
        404 => return Ok(None),
        status => return Err(format!("it answered with status {status}")),
    }
    let body = response.body_mut().with_config().limit(MAX_FILE).reader();
    let kept = keep(body, path).map_err(|error| format!("a file could not be fetched: {error}"))?;
    if build_id(&kept.0) == Some(id) {
        return Ok(Some(kept));
    }
    // Nobody should find it there.
    let _ = fs::remove_file(path);
    Err("it sent a file of another build".into())
}

/// Writes a file of the cache whole or not at all.
fn keep(mut body: impl Read, path: &Path) -> io::Result<(File, u64)> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let bytes = io::copy(&mut body, &mut file)?;
    file.flush()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok((File::open(path)?, bytes))
}

/// Removes the files used longest ago until the cache holds no more than `limit` bytes, but never the one in use.
fn trim(cache: &Path, limit: u64, in_use: &Path) {
    let folders = fs::read_dir(cache).into_iter().flatten().flatten();
    let mut files: Vec<_> = folders
        .map(|folder| folder.path().join("debuginfo"))
        .filter_map(|path| {
            let metadata = fs::symlink_metadata(&path).ok()?;
            Some((metadata.modified().ok()?, metadata.len(), path))
        })
        .collect();
    let mut held: u64 = files.iter().map(|(_, len, _)| len).sum();
    files.sort();
    for (_, len, path) in files {
        if held <= limit {
            return;
        }
        if path != in_use && fs::remove_file(&path).is_ok() {
            held -= len;
            // It may hold more than this file.
            let _ = path.parent().map(fs::remove_dir);
        }
    }
}

fn files_folder() -> PathBuf {
    let set = env::var_os("DEBUGINFOD_CACHE_PATH").filter(|folder| !folder.is_empty());
    set.map_or_else(|| cache_folder().join("debuginfod"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead as _;
    use std::net::TcpListener;
    use std::thread;

    /// A server that answers so many requests with this status and body.
    fn server(requests: usize, status: &str, body: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        thread::spawn(move || {
            for stream in listener.incoming().take(requests) {
                let mut stream = stream.unwrap();
                let lines = io::BufReader::new(stream.try_clone().unwrap()).lines();
                let _ = lines.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).count();
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body)).unwrap();
            }
        });
        url
    }

    fn this_file() -> (Vec<u8>, BuildId) {
        let file = File::open("/proc/self/exe").unwrap();
        (fs::read("/proc/self/exe").unwrap(), build_id(&file).unwrap())
    }

    #[test]
    fn a_file_comes_from_the_second_server_and_then_from_the_cache() {
        let (content, id) = this_file();
        let cache = tempfile::tempdir().unwrap();
        let servers = vec![server(1, "404 Not Found", Vec::new()), server(1, "200 OK", content)];
        let asked = Debuginfod::new(servers, cache.path().into(), TIME_LIMIT);
        assert_eq!(asked.debug_file(id).and_then(|file| build_id(&file)), Some(id));
        // No server answers any more.
        assert!(asked.debug_file(id).is_some());
        assert!(asked.summary().unwrap().contains("1 of 1 debug files"));
    }

    #[test]
    fn a_file_of_another_build_is_not_taken() {
        let (content, _) = this_file();
        let cache = tempfile::tempdir().unwrap();
        let id = BuildId::new(&[7; 20]).unwrap();
        let asked = Debuginfod::new(vec![server(1, "200 OK", content)], cache.path().into(), TIME_LIMIT);
        assert!(asked.debug_file(id).is_none());
        assert!(asked.summary().unwrap().contains("another build"));
        assert!(!cache.path().join(id.to_string()).join("debuginfo").exists());
    }

    #[test]
    fn a_server_that_is_silent_costs_no_more_than_the_time_limit() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let cache = tempfile::tempdir().unwrap();
        let asked = Debuginfod::new(vec![url], cache.path().into(), Duration::from_millis(50));
        assert!(asked.debug_file(BuildId::new(&[1; 20]).unwrap()).is_none());
        assert!(asked.debug_file(BuildId::new(&[2; 20]).unwrap()).is_none());
        assert!(asked.summary().is_some());
    }

    #[test]
    fn the_cache_drops_what_was_used_longest_ago() {
        let cache = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let path = cache.path().join(name).join("debuginfo");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, [0; 100]).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let (old, older, oldest) = (file("a", 10), file("b", 20), file("c", 30));
        trim(cache.path(), 250, &oldest);
        assert!(old.exists() && !older.exists() && oldest.exists());
    }
}
