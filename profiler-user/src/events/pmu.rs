//! A PMU as sysfs describes it, in `/sys/bus/event_source/devices`.

use super::advice::{Advice, advice};
use super::cpus::{self, CpuId};
use super::pmu_format::Format;
use super::system_root::below;
use crate::suggest;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A PMU of this machine.
#[derive(Clone, Debug)]
pub(super) struct Pmu {
    name: String,
    folder: PathBuf,
}

impl Pmu {
    /// The PMUs, by name; `None` where sysfs does not show them.
    pub(super) fn all(root: &Path) -> Option<Vec<Self>> {
        let folder = below(root, PMUS);
        let names = names_in(&folder).ok()?;
        Some(names.into_iter().map(|name| Self { folder: folder.join(&name), name }).collect())
    }

    /// The PMU of this name.
    pub(super) fn find(root: &Path, name: &str) -> Result<Self, Advice> {
        let folder = below(root, PMUS).join(name);
        if is_name(name) && folder.is_dir() {
            return Ok(Self { name: name.to_owned(), folder });
        }
        let known: Vec<String> =
            Self::all(root).unwrap_or_default().into_iter().map(|pmu| pmu.name).collect();
        let nearest = suggest::nearest(name, known.iter().cloned());
        let remedy = match (nearest.as_slice(), known.as_slice()) {
            ([], []) => "see whether sysfs is mounted at /sys".to_owned(),
            ([], known) => format!("use one of {}", some_of(known)),
            (nearest, _) => format!("use {}", nearest.join(" or ")),
        };
        Err(advice(format!("this machine has no PMU `{}`", name.escape_debug()), remedy))
    }

    /// The PMU that counts hardware events on a CPU of a hybrid x86 machine; `None` on any other.
    ///
    /// On aarch64 the kernel finds the PMU of a CPU by itself.
    pub(super) fn of_core_type(root: &Path, cpu: CpuId) -> Option<Self> {
        Self::all(root)?
            .into_iter()
            .filter(|pmu| pmu.name.starts_with("cpu_"))
            .find(|pmu| pmu.list(CPUS).is_some_and(|cpus| cpus.contains(&cpu)))
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it counts what the cores do: x86 names it `cpu`; hybrid x86 and arm64 give each kind of core a PMU
    /// with the list of its CPUs.
    pub(super) fn is_core(&self) -> bool {
        let name = &self.name;
        name == "cpu"
            || name.starts_with("armv8_")
            || name.starts_with("armv9_")
            || self.folder.join(CPUS).exists()
    }

    /// `perf_event_attr.type` of its events.
    pub(super) fn number(&self) -> Result<u32, Advice> {
        self.text("type")?
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| self.not_understood("type"))
    }

    /// The CPUs that its events are opened on; `None` for all.
    pub(super) fn cpus(&self) -> Option<BTreeSet<CpuId>> {
        self.list(CPUS).or_else(|| self.list(SHARERS))
    }

    /// Whether it counts for several CPUs at once, on one of which its events are opened: what they count belongs to no task.
    pub(super) fn is_shared(&self) -> bool {
        !self.folder.join(CPUS).exists() && self.folder.join(SHARERS).exists()
    }

    /// The names of its terms.
    pub(super) fn terms(&self) -> Vec<String> {
        names_in(&self.folder.join("format")).unwrap_or_default()
    }

    /// Where the value of a term goes; `None` when it has no such term.
    pub(super) fn format(&self, term: &str) -> Result<Option<Format>, Advice> {
        let file = format!("format/{term}");
        let Some(text) = self.text(&file)? else { return Ok(None) };
        text.parse().map(Some).map_err(|()| self.not_understood(&file))
    }

    /// The names of its events.
    pub(super) fn events(&self) -> Vec<String> {
        let mut names = names_in(&self.folder.join("events")).unwrap_or_default();
        // `EVENT.scale`, `EVENT.unit` … tell about an event.
        names.retain(|name| !name.contains('.'));
        names
    }

    /// The terms that an event of this name stands for; `None` when it has no such event.
    pub(super) fn event(&self, name: &str) -> Result<Option<String>, Advice> {
        self.text(&format!("events/{name}"))
    }

    /// The unit of an event's counts as sysfs says it, with the factor before it: `2.3e-10 Joules`.
    pub(super) fn unit(&self, event: &str) -> Option<String> {
        let unit = self.text(&format!("events/{event}.unit")).ok()??;
        let scale = self.text(&format!("events/{event}.scale")).ok().flatten();
        match scale.and_then(|scale| scale.trim().parse::<f64>().ok()) {
            Some(scale) => Some(format!("{scale:.3e} {}", unit.trim())),
            None => Some(unit.trim().to_owned()),
        }
    }

    /// That a file of sysfs says something unforeseen.
    pub(super) fn not_understood(&self, file: &str) -> Advice {
        advice(
            format!("{} has an unknown form", self.folder.join(file).display()),
            "give the codes by the terms config, config1 and config2",
        )
    }

    fn list(&self, file: &str) -> Option<BTreeSet<CpuId>> {
        cpus::read_list(&self.folder.join(file)).ok()
    }

    fn text(&self, file: &str) -> Result<Option<String>, Advice> {
        let path = self.folder.join(file);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(advice(
                format!("{} cannot be read: {error}", path.display()),
                "give the codes by the terms config, config1 and config2",
            )),
        }
    }
}

/// Whether a text can be a name in sysfs or tracefs, and no path to elsewhere.
pub(super) fn is_name(text: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') && text.chars().all(allowed)
}

/// The names in a folder, sorted.
pub(super) fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_name(name))
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// A list of names that stays readable: a server has hundreds of PMUs.
pub(super) fn some_of(names: &[String]) -> String {
    const MOST: usize = 24;
    match names.get(MOST..) {
        Some(rest) if !rest.is_empty() => format!("{} and {} more", names[..MOST].join(", "), rest.len()),
        _ => names.join(", "),
    }
}

const PMUS: &str = "/sys/bus/event_source/devices";
/// The CPUs that a core's PMU is part of.
const CPUS: &str = "cpus";
/// The CPUs on which to open events of a PMU that is outside the cores.
const SHARERS: &str = "cpumask";

#[cfg(test)]
mod tests {
    use super::super::system_root::write;
    use super::*;

    fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            write(root.path(), &format!("{PMUS}/{file}"), text);
        }
        root
    }

    #[test]
    fn what_sysfs_says_of_a_pmu() {
        let root = root_with(&[
            ("power/type", "19\n"),
            ("power/cpumask", "0,4\n"),
            ("power/format/event", "config:0-7\n"),
            ("power/events/energy-pkg", "event=0x02"),
            ("power/events/energy-pkg.scale", "2.3283064365386962890625e-10"),
            ("power/events/energy-pkg.unit", "Joules"),
        ]);
        let pmu = Pmu::find(root.path(), "power").unwrap();
        assert_eq!((pmu.number(), pmu.is_core(), pmu.is_shared()), (Ok(19), false, true));
        assert_eq!(pmu.cpus(), Some([CpuId(0), CpuId(4)].into()));
        assert_eq!((pmu.terms(), pmu.events()), (vec!["event".to_owned()], vec!["energy-pkg".to_owned()]));
        assert_eq!(pmu.event("energy-pkg"), Ok(Some("event=0x02".to_owned())));
        assert_eq!(pmu.unit("energy-pkg").as_deref(), Some("2.328e-10 Joules"));
        assert_eq!((pmu.event("energy"), pmu.format("umask")), (Ok(None), Ok(None)));
    }

    #[test]
    fn an_absent_pmu_is_refused_with_those_that_exist() {
        let root = root_with(&[("cpu_core/type", "4"), ("cpu_atom/type", "10"), ("msr/type", "11")]);
        let refusal = |name: &str| {
            let refused = Pmu::find(root.path(), name).unwrap_err();
            format!("{}; {}", refused.cause, refused.remedy)
        };
        assert_eq!(refusal("cpu_cor"), "this machine has no PMU `cpu_cor`; use cpu_core");
        assert_eq!(
            refusal("uncore_imc"),
            "this machine has no PMU `uncore_imc`; use one of cpu_atom, cpu_core, msr"
        );
        assert!(refusal("../devices/msr").starts_with("this machine has no PMU"));
        let refused = Pmu::find(tempfile::tempdir().unwrap().path(), "cpu").unwrap_err();
        assert!(refused.remedy.contains("sysfs"), "{}", refused.remedy);
    }

    #[test]
    fn only_hybrid_x86_has_a_pmu_for_a_type_of_core() {
        let hybrid = root_with(&[("cpu_core/cpus", "0-3"), ("cpu_atom/cpus", "4-7"), ("cpu_x/type", "9")]);
        let of = |root: &tempfile::TempDir, cpu| {
            Pmu::of_core_type(root.path(), CpuId(cpu)).map(|pmu| pmu.name().to_owned())
        };
        assert_eq!(of(&hybrid, 3).as_deref(), Some("cpu_core"));
        assert_eq!(of(&hybrid, 4).as_deref(), Some("cpu_atom"));
        assert_eq!(of(&hybrid, 8), None);
        let big_little = root_with(&[("armv8_cortex_a53/cpus", "0-3"), ("armv8_cortex_a72/cpus", "4-5")]);
        assert_eq!(of(&big_little, 0), None);
        assert_eq!(of(&root_with(&[("cpu/type", "4")]), 0), None);
    }

    #[test]
    fn nonsense_is_refused_with_its_file() {
        let root = root_with(&[("cpu/type", "four"), ("cpu/format/event", "config9:1")]);
        let pmu = Pmu::find(root.path(), "cpu").unwrap();
        assert!(pmu.number().unwrap_err().cause.contains("cpu/type has an unknown form"));
        assert!(pmu.format("event").unwrap_err().cause.contains("cpu/format/event has an unknown form"));
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..30).map(|number| format!("pmu{number}")).collect();
        assert!(some_of(&names).ends_with("pmu23 and 6 more"));
        assert_eq!(some_of(&names[..2]), "pmu0, pmu1");
    }
}
