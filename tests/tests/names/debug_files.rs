//! Stripped programs whose names are elsewhere.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use bpfprof_tests::host;
use bpfprof_tests::target::wait_for;

use crate::program::{Workshop, build_id, is_installed, run};
use crate::recorded::Recorded;

#[test]
fn a_debug_link() -> Result<()> {
    let shop = Workshop::new()?;
    for id in ["--build-id=sha1", "--build-id=none"] {
        let burn = shop.build("burn", "burns_stripped", &[&format!("-Wl,{id}")])?;
        let debug = shop.split_debug(&burn, ".debug/burn.debug")?;
        let stripped = shop.strip(&burn, "linked")?;
        run(Command::new("objcopy").arg("--add-gnu-debuglink").arg(&debug).arg(&stripped))?;
        Recorded::command([stripped.as_os_str(), "0.3".as_ref()])?.spent_in("burns_stripped", 0.9)?;
        // A debug file of another build names nothing.
        let other = shop.build("other", "burns_elsewhere", &["-O0", &format!("-Wl,{id}")])?;
        shop.split_debug(&other, ".debug/burn.debug")?;
        let recorded = Recorded::command([stripped.as_os_str(), "0.3".as_ref()])?;
        recorded.never_in("burns_elsewhere")?;
        recorded.never_in("burns_stripped")?;
    }
    Ok(())
}

#[test]
fn a_folder_of_build_ids() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_stripped", &[])?;
    let id = build_id(&burn)?;
    let (first, rest) = id.split_at(2);
    shop.split_debug(&burn, &format!("debug/.build-id/{first}/{rest}.debug"))?;
    let stripped = shop.strip(&burn, "stripped")?;
    let folder = shop.path("debug");
    let recorded = Recorded::of(|run| {
        run.args(["--debug-dir".as_ref(), folder.as_os_str(), "--".as_ref()])
            .args([stripped.as_os_str(), "0.3".as_ref()])
    })?;
    recorded.spent_in("burns_stripped", 0.9)
}

#[test]
fn a_compressed_symbol_table() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_stripped", &[])?;
    let mini = shop.split_debug(&burn, "mini")?;
    run(Command::new("objcopy").arg("--strip-debug").arg(&mini))?;
    run(Command::new("xz").arg(&mini))?;
    let stripped = shop.strip(&burn, "stripped")?;
    let section = format!(".gnu_debugdata={}.xz", mini.display());
    run(Command::new("objcopy").args(["--add-section", &section]).arg(&stripped))?;
    Recorded::command([stripped.as_os_str(), "0.3".as_ref()])?.spent_in("burns_stripped", 0.9)
}

#[test]
fn compressed_sections() -> Result<()> {
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_compressed", &["-Wl,--compress-debug-sections=zlib"])?;
    Recorded::command([burn.as_os_str(), "0.3".as_ref()])?.spent_in("burns_compressed", 0.9)
}

#[test]
fn split_units() -> Result<()> {
    let shop = Workshop::new()?;
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let burn = shop.build("burn", "burns_split", &[version, "-gsplit-dwarf"])?;
        let unit = shop.split_unit()?;
        inlined_into(&burn, "burns_split", true)?;
        // The unit of another build says nothing about this one, nor does what is no file.
        fs::remove_file(&unit)?;
        shop.build("other", "burns_elsewhere", &[version, "-gsplit-dwarf"])?;
        fs::rename(shop.split_unit()?, &unit)?;
        inlined_into(&burn, "burns_split", false)?;
        fs::remove_file(&unit)?;
        run(Command::new("mkfifo").arg(&unit))?;
        inlined_into(&burn, "burns_split", false)?;
        fs::remove_file(&unit)?;
    }
    Ok(())
}

#[test]
fn split_units_in_a_package() -> Result<()> {
    if !is_installed("dwp") {
        return host::skip("split_units_in_a_package", "dwp is not installed");
    }
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_split", &["-gdwarf-4", "-gsplit-dwarf"])?;
    let unit = shop.split_unit()?;
    run(Command::new("dwp").arg("-o").arg(shop.path("burn.dwp")).arg(&unit))?;
    fs::remove_file(unit)?;
    inlined_into(&burn, "burns_split", true)
}

#[test]
fn names_that_dwz_moved_to_another_file() -> Result<()> {
    if !is_installed("dwz") {
        return host::skip("names_that_dwz_moved_to_another_file", "dwz is not installed");
    }
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_shared", &[])?;
    let other = shop.build("other", "burns_elsewhere", &[])?;
    let shared = shop.path("shared");
    run(Command::new("dwz").arg("-m").arg(&shared).args([&burn, &other]))?;
    inlined_into(&burn, "burns_shared", true)?;
    fs::remove_file(shared)?;
    inlined_into(&burn, "burns_shared", false)
}

/// Fails unless a program burns in this function, and the one that is inlined there has a name, or has none.
fn inlined_into(burn: &Path, function: &str, named: bool) -> Result<()> {
    let recorded = Recorded::command([burn.as_os_str(), "0.3".as_ref()])?;
    recorded.spent_in(function, 0.9)?;
    if named { recorded.spent_in("takes_turns", 0.8) } else { recorded.never_in("takes_turns") }
}

#[test]
fn a_debuginfod_server() -> Result<()> {
    if !is_installed("debuginfod") {
        return host::skip("a_debuginfod_server", "debuginfod is not installed");
    }
    let shop = Workshop::new()?;
    let burn = shop.build("burn", "burns_stripped", &[])?;
    let id = build_id(&burn)?;
    shop.split_debug(&burn, "served/burn.debug")?;
    let stripped = shop.strip(&burn, "stripped")?;
    let server = Server::start(&shop, &id)?;
    let cache = shop.path("cache").display().to_string();
    let record = |options: &[&str], urls: &str| {
        Recorded::of(|run| {
            run.env("DEBUGINFOD_URLS", urls).env("DEBUGINFOD_CACHE_PATH", &cache).args(options).args([
                "--".as_ref(),
                stripped.as_os_str(),
                "0.3".as_ref(),
            ])
        })
    };
    record(&["--no-debuginfod"], &server.url)?.never_in("burns_stripped")?;
    let recorded = record(&[], &server.url)?;
    recorded.spent_in("burns_stripped", 0.9)?;
    ensure!(recorded.stderr.contains("debug files came from"), "{}", recorded.stderr);
    drop(server);
    // Now it is in the cache.
    record(&[], "http://127.0.0.1:9")?.spent_in("burns_stripped", 0.9)?;
    fs::remove_dir_all(shop.path("cache")).context("there is no cache")
}

/// A debuginfod on this machine. Ended when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it on the folder `served`, and waits until it has this build.
    fn start(shop: &Workshop, id: &str) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("debuginfod");
        command.args(["-F", "-p", &port.to_string(), "-d"]).arg(shop.path("served.sqlite"));
        command.arg(shop.path("served")).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("starting debuginfod")?;
        let server = Self { child, url: format!("http://127.0.0.1:{port}") };
        wait_for("debuginfod", || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            let request =
                format!("GET /buildid/{id}/debuginfo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).ok()?;
            let mut status = [0; 12];
            stream.read_exact(&mut status).ok()?;
            status.ends_with(b"200").then_some(())
        })?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing to do about a failure: it has most likely ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
