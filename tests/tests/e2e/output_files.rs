//! Output files: what is in them, and how they come into being.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::{Bpfprof, Folded, Report, host};
use quick_xml::{Reader, events::Event};

#[test]
fn every_format_at_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [svg, json, one, two] =
        ["x.svg", "x.json", "x.folded", "y.folded"].map(|name| folder.path().join(name));
    let run = Bpfprof::clock::<&str>([]).output(&svg).output(&json).output(&one).output(&two);
    run.workload("spin", &["alpha,beta", "0.4", "--fork", "2"]).succeed()?;

    let texts = texts_of_xml(&svg)?;
    for function in ["spin_alpha", "spin_beta"] {
        assert!(texts.contains(function), "{function} is not in the flame graph");
    }
    let report = Report::read(&json)?;
    assert_eq!(report.schema, 1);
    assert!(report.functions.is_sorted_by(|a, b| a.own.weight >= b.own.weight), "not sorted by self weight");
    let own: u64 = report.functions.iter().map(|function| function.own.weight).sum();
    assert_eq!(own, report.header.weight, "self weights add up to the whole");
    let folded = Folded::read(&one)?;
    assert_eq!(folded.weight(), report.header.weight);
    assert_eq!(folded.weight_of("spin_alpha"), report.function("spin_alpha")?.total.weight);
    assert_eq!(fs::read(&one)?, fs::read(&two)?);
    assert!(report.function("spin_alpha")?.object.contains("spin"));
    assert_eq!(entries(folder.path())?, ["x.folded", "x.json", "x.svg", "y.folded"]);
    Ok(())
}

#[test]
fn an_existing_file_is_replaced() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.folded");
    fs::write(&file, "old content that is longer than nothing\n".repeat(10_000))?;
    record(&file, None)?;
    Folded::read(&file)?;
    Ok(())
}

#[test]
fn a_planted_link_is_not_followed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (file, victim) = (folder.path().join("x.folded"), folder.path().join("victim"));
    fs::write(&victim, "keep me")?;
    symlink(&victim, &file)?;
    record(&file, None)?;
    assert_eq!(fs::read_to_string(&victim)?, "keep me");
    assert!(fs::symlink_metadata(&file)?.is_file(), "still a link");
    Folded::read(&file)?;
    Ok(())
}

#[test]
fn they_belong_to_the_user_behind_sudo() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.folded");
    record(&file, Some(("12345", "23456")))?;
    let owner = fs::metadata(&file)?;
    assert_eq!((owner.uid(), owner.gid()), (12_345, 23_456));
    Ok(())
}

#[test]
fn strange_command_names_break_no_format() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [folded, svg, json] = ["x.folded", "x.svg", "x.json"].map(|name| folder.path().join(name));
    let comms = ["a;b\nc d", "<b>&\"'", "\u{1b}[31mred", "é 7", "x\u{ffff}y", "a\u{202e}gpj.b", "p\u{2028}q"];
    for comm in comms {
        let run = Bpfprof::clock::<&str>([]).output(&folded).output(&svg).output(&json);
        let run = run.workload("spin", &["alpha", "0.3", "--comm", comm]).succeed()?;
        let lines = Folded::read(&folded)?;
        let strange = lines.weight_where(|line| line.comm != "spin" && line.has("spin_alpha"));
        assert_eq!(strange, lines.weight_of("spin_alpha"), "{comm:?}: {lines:?}");
        assert!(strange > 0 && lines.lines.iter().all(|line| line.comm != "a"), "{comm:?}: {lines:?}");
        texts_of_xml(&svg).with_context(|| format!("{comm:?}"))?;
        assert_eq!(Report::read(&json)?.header.weight, lines.weight());
        // Escape sequences, another direction of writing, line breaks of Unicode, and what XML 1.0 forbids.
        let forbidden = ['\u{1b}', '\u{202e}', '\u{2028}', '\u{ffff}'];
        assert!(!run.stderr.contains(forbidden), "{comm:?} reaches the terminal");
        for file in [&folded, &svg, &json] {
            assert!(!fs::read_to_string(file)?.contains(forbidden), "{comm:?} reaches {}", file.display());
        }
    }
    Ok(())
}

#[test]
fn inlined_frames_can_be_left_out() -> Result<()> {
    let is_inlined =
        |line: &bpfprof_tests::folded::Line| line.frames.iter().any(|frame| frame.ends_with("_[i]"));
    let with = Bpfprof::clock::<&str>([]).workload("spin", &["alpha", "0.3"]).succeed()?.folded()?;
    assert!(with.weight_where(is_inlined) > 0, "`burn` is inlined into spin_alpha: {with:?}");
    let without = Bpfprof::clock(["--no-inlines"]).workload("spin", &["alpha", "0.3"]).succeed()?.folded()?;
    assert_eq!(without.weight_where(is_inlined), 0);
    assert!(without.weight_of("spin_alpha") > 0);
    Ok(())
}

/// A limit of file sizes stands in for a full disk.
#[test]
fn one_that_cannot_be_written_costs_no_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [html, folded, json] = ["x.html", "x.folded", "x.json"].map(|name| folder.path().join(name));
    let mut limited = Command::new("prlimit");
    limited.arg("--fsize=20000").arg(host::bpfprof()).args(["-e", "cpu-clock", "--user-only"]);
    let run = Bpfprof::through(limited).output(&html).output(&folded);
    let run = run.workload("spin", &["alpha", "0.3"]).run()?;
    assert_eq!(run.code(), Some(1), "{}", run.stderr);
    ensure!(run.stderr.contains("cannot write") && run.stderr.contains("x.html"), "{}", run.stderr);
    ensure!(
        Folded::read(&folded)?.weight_of("spin_alpha") > 0 && !html.exists() && !json.exists(),
        "{}",
        run.stderr
    );
    assert_eq!(entries(folder.path())?, ["x.folded"]);
    Ok(())
}

/// It has addresses of all code and names of all processes.
#[test]
fn a_saved_profile_is_for_its_owner() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.pb.gz");
    let mode = |file: &Path| -> Result<u32> { Ok(fs::metadata(file)?.mode() & 0o777) };
    record(&file, None)?;
    assert_eq!(mode(&file)?, 0o600);
    // Who let others read the file before wants it so.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    record(&file, None)?;
    assert_eq!(mode(&file)?, 0o644);
    Ok(())
}

fn record(file: &Path, sudo: Option<(&str, &str)>) -> Result<()> {
    let mut run = Bpfprof::clock::<&str>([]).output(file);
    if let Some((user, group)) = sudo {
        run = run.env("SUDO_UID", user).env("SUDO_GID", group);
    }
    run.workload("spin", &["alpha", "0.3"]).succeed()?;
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// All text between the tags; fails unless the file is well-formed.
fn texts_of_xml(file: &Path) -> Result<String> {
    let content = fs::read_to_string(file)?;
    let mut reader = Reader::from_str(&content);
    let (mut depth, mut texts) = (0_u32, String::new());
    loop {
        match reader.read_event().with_context(|| format!("{} is no XML", file.display()))? {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            Event::Text(text) => texts.push_str(&text.decode()?),
            Event::Eof => break,
            _ => {}
        }
    }
    anyhow::ensure!(depth == 0 && !texts.is_empty(), "{} ends too early", file.display());
    Ok(texts)
}
