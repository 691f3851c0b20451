//! `go tool pprof` reads the same totals, names and stacks.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use bpfprof_tests::cgroup::Cgroup;
use bpfprof_tests::{Bpfprof, Folded, Report, host};

/// Whether pprof is here; books `test` as skipped if not.
fn has_pprof(test: &str) -> Result<bool> {
    let answer = Command::new("go").args(["tool", "pprof", "-h"]).output();
    // Its help has another status than 0 in some versions.
    if answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stderr).contains("pprof")) {
        return Ok(true);
    }
    host::skip(test, "`go tool pprof` (package golang-go) is not installed")?;
    Ok(false)
}

fn pprof(arguments: &[&str], file: &Path) -> Result<String> {
    let mut command = Command::new("go");
    command.args(["tool", "pprof", "-symbolize=none"]).args(arguments).arg(file);
    let folder = file.parent().context("a file in no folder")?;
    let answer = command.env("PPROF_TMPDIR", folder).output().context("go tool pprof")?;
    let stderr = String::from_utf8_lossy(&answer.stderr);
    ensure!(answer.status.success(), "{command:?}: {stderr}");
    Ok(String::from_utf8(answer.stdout)?)
}

fn record(folder: &Path) -> Result<()> {
    ["x.pb.gz", "x.json", "x.folded"]
        .iter()
        .fold(Bpfprof::clock(["--counters", "page-faults", "--inlines", "all"]), |run, output| {
            run.output(&folder.join(output))
        })
        .shell("matrix --seconds 1; spin alpha,beta 0.3 --threads 2")
        .succeed()?;
    Ok(())
}

/// Every node, exactly.
const ALL: [&str; 4] = ["-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-unit=ns"];

#[test]
fn its_table_has_our_functions_and_weights() -> Result<()> {
    if !has_pprof("go_pprof::its_table_has_our_functions_and_weights")? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    record(folder.path())?;
    let report = Report::read(&folder.path().join("x.json"))?;
    let top = pprof(&[&ALL[..], &["-top"]].concat(), &folder.path().join("x.pb.gz"))?;
    let rows = top.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    let theirs: HashMap<String, (u64, u64)> = rows.map(row).collect::<Result<_>>()?;

    // Functions of one name in two objects are one for pprof, whose total is not the sum of theirs.
    let mut ours: HashMap<&str, (u64, Vec<u64>)> = HashMap::new();
    for function in &report.functions {
        let (own, totals) = ours.entry(&function.name).or_default();
        *own += function.own.weight;
        totals.push(function.total.weight);
    }
    let mut names: Vec<&str> = theirs.keys().map(String::as_str).collect();
    let mut our_names: Vec<&str> = ours
        .iter()
        .filter(|(_, (_, totals))| totals.iter().any(|&total| total > 0))
        .map(|(name, _)| *name)
        .collect();
    names.sort_unstable();
    our_names.sort_unstable();
    assert_eq!(names, our_names);
    for (name, (flat, cumulative)) in &theirs {
        let (own, totals) = &ours[name.as_str()];
        ensure!(flat == own, "{name}: {flat} ns flat, {own} self");
        if let [total] = totals[..] {
            ensure!(*cumulative == total, "{name}: {cumulative} ns cumulative, {total} total");
        }
    }
    assert!(names.iter().any(|name| name.contains('<')), "names are shown whole: {names:?}");
    Ok(())
}

/// `flat flat% sum% cum cum% name`.
fn row(line: &str) -> Result<(String, (u64, u64))> {
    let nanoseconds = |word: Option<&str>| -> Result<u64> {
        Ok(word.context("a short row")?.trim_end_matches("ns").parse()?)
    };
    let mut words = line.split_whitespace();
    let flat = nanoseconds(words.next())?;
    let cumulative = nanoseconds(words.nth(2))?;
    words.next();
    let name = words.collect::<Vec<_>>().join(" ");
    let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
    Ok((name.to_owned(), (flat, cumulative)))
}

#[test]
fn its_traces_are_our_stacks() -> Result<()> {
    if !has_pprof("go_pprof::its_traces_are_our_stacks")? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    record(folder.path())?;
    let folded = Folded::read(&folder.path().join("x.folded"))?;
    let traces = pprof(&["-traces", "-unit=ns"], &folder.path().join("x.pb.gz"))?;
    let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
    for trace in traces.split("-----------+").skip(1) {
        let Some((stack, weight)) = stack_of(trace)? else { continue };
        *theirs.entry(stack).or_default() += weight;
    }
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for line in &folded.lines {
        let frames = line.frames.iter().map(|frame| frame.trim_end_matches("_[i]").trim_end_matches("_[k]"));
        let stack: Vec<&str> = std::iter::once(line.comm.as_str()).chain(frames).collect();
        *ours.entry(stack.join(";")).or_default() += line.weight;
    }
    assert_eq!(theirs, ours);
    Ok(())
}

/// Labels, then the value with the innermost frame, then the other frames.
fn stack_of(trace: &str) -> Result<Option<(String, u64)>> {
    let mut lines = trace.lines().skip(1).filter(|line| !line.trim().is_empty());
    let mut thread = "";
    let (mut weight, mut frames) = (0, Vec::new());
    for line in lines.by_ref() {
        match line.trim().split_once(":  ") {
            Some(("thread", name)) => thread = name.trim(),
            Some(("cgroup" | "comm" | "pid" | "tid" | "slice", _)) => {}
            _ => {
                let (value, frame) =
                    line.trim().split_once("   ").context("no value before the first frame")?;
                weight = value.trim_end_matches("ns").parse().with_context(|| format!("no value: {line}"))?;
                frames.push(frame.trim());
                break;
            }
        }
    }
    frames.extend(lines.map(str::trim));
    frames.push(thread);
    frames.reverse();
    Ok((weight > 0).then(|| (frames.join(";").replace(" (inline)", ""), weight)))
}

#[test]
fn it_sees_events_objects_labels_and_the_header() -> Result<()> {
    if !has_pprof("go_pprof::it_sees_events_objects_labels_and_the_header")? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    record(folder.path())?;
    let file = folder.path().join("x.pb.gz");
    let raw = pprof(&["-raw"], &file)?;
    let types = "samples/count cpu/nanoseconds[dflt] page-faults/faults page-faults-samples/count";
    for word in [types, "PeriodType: cpu nanoseconds", "pid:[", "tid:[", "thread:[alpha]", "[kernel]"] {
        ensure!(raw.contains(word), "`{word}` is not in the file");
    }
    let mappings = raw.split_once("\nMappings\n").context("no mappings")?.1;
    let program = mappings.lines().find(|line| line.contains("/matrix ")).context("no mapping of matrix")?;
    let build_id = program.split_whitespace().nth(3).context("no build id")?;
    ensure!(build_id.len() == 40 && build_id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{program}");
    let first = mappings.lines().next().unwrap_or_default();
    ensure!(
        first.contains("/matrix ") || first.contains("/spin "),
        "the first mapping is no program: {first}"
    );
    let comments = pprof(&["-comments"], &file)?;
    ensure!(comments.contains("samples of cpu-clock"), "no header for people: {comments}");
    Ok(())
}

/// A program is in the cgroup that its starter put it into, and its starter in another.
#[test]
fn it_tells_cgroups_apart() -> Result<()> {
    const TEST: &str = "go_pprof::it_tells_cgroups_apart";
    if !has_pprof(TEST)? {
        return Ok(());
    }
    let Some(group) = Cgroup::new("bpfprof-labels")? else {
        return host::skip(TEST, "cgroup version 2 is not mounted");
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("x.pb.gz");
    let script =
        format!("spin alpha 0.3; echo $$ > {}/cgroup.procs; exec spin beta 0.3", group.folder().display());
    Bpfprof::clock(["--quiet"]).output(&file).shell(&script).succeed()?;
    let path = group.folder().file_name().context("a cgroup without a name")?.to_string_lossy().into_owned();
    let function_in = |focus: &str| pprof(&["-top", &format!("-tagfocus=cgroup={focus}")], &file);
    let inside = function_in(&path)?;
    ensure!(inside.contains("spin_beta") && !inside.contains("spin_alpha"), "{inside}");
    Ok(())
}

/// pprof numbers everything anew, and leaves out what it does not know.
#[test]
fn a_file_that_pprof_wrote_anew_still_tells_the_same() -> Result<()> {
    if !has_pprof("go_pprof::a_file_that_pprof_wrote_anew_still_tells_the_same")? {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    record(folder.path())?;
    let (anew, json) = (folder.path().join("anew.pb.gz"), folder.path().join("anew.json"));
    let output = format!("-output={}", anew.display());
    pprof(&["-proto", &output], &folder.path().join("x.pb.gz"))?;
    Bpfprof::new(["report", "--inlines", "all"]).args([&anew]).output(&json).succeed()?;
    let (before, after) = (Report::read(&folder.path().join("x.json"))?, Report::read(&json)?);
    assert_eq!(before.header.weight, after.header.weight);
    let weights = |report: &Report| -> Vec<(String, String, u64, u64)> {
        let rows = report.functions.iter().map(|function| {
            (function.name.clone(), function.object.clone(), function.own.weight, function.total.weight)
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(weights(&before), weights(&after));
    Ok(())
}
