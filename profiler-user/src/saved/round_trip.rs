//! What is written as pprof is read back as it was.

use std::sync::Arc;

use super::read;
use crate::output::{self, Format, View};
use crate::pprof::KERNEL_START;
use crate::profile::testing::{profile, with_counter};
use crate::profile::{
    EventId, Frame, FrameId, FrameKind, Function, Line, Mapping, Profile, Sample, Slices, Task,
};

fn save(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    output::write(profile, Format::Pprof, &View::default(), &mut file).unwrap();
    file
}

/// A profile whose samples differ in all that can differ.
fn rich() -> Profile {
    let small = profile(&[("main;f_[i];g_[i];read;sys_read_[k]", 2, 20), ("main;g", 1, 10)]);
    let mut profile = with_counter(small, "page-faults", &[("main;g", 3, 7)]);
    profile.header.slices = Slices { count: 3, seconds: 0.2 };
    profile.header.began = Some(1_700_000_000_123_456_789);
    profile.header.seconds = 0.600_000_000_000_000_1;
    profile.header.notes.push("a \"note\" – with\nall kinds of \u{1b} characters".into());
    let task = profile.add_task(Task {
        process: 7,
        thread: 8,
        comm: "worker; 1".into(),
        cgroup: "/a.slice/b".into(),
    });
    let object =
        |name: &str, path: &str| Mapping { name: name.into(), path: path.into(), build_id: "ab12".into() };
    let lib = profile.add_mapping(object("lib.so", "/usr/lib/lib.so"));
    let module = profile.add_mapping(Mapping { build_id: "".into(), ..object("[ext4]", "[ext4]") });
    let frame = |profile: &mut Profile, name: &str, kind, mapping, address, number: u32| {
        let object = Arc::clone(&profile.mapping(mapping).name);
        let function = profile.add_function(Function { name: name.into(), object });
        let line = (number > 0).then(|| profile.add_line(Line { file: "src/lib.rs".into(), number }));
        profile.add_frame(Frame { function, kind, mapping, address, line })
    };
    let stack: Vec<FrameId> = vec![
        frame(&mut profile, "run", FrameKind::User, lib, 0x1234, 10),
        frame(&mut profile, "run", FrameKind::User, lib, 0x1234, 10),
        frame(&mut profile, "tiny", FrameKind::Inlined, lib, 0x1234, 11),
        frame(&mut profile, "tinier", FrameKind::Inlined, lib, 0x1234, 12),
        frame(&mut profile, "[lib.so+0x5000]", FrameKind::User, lib, 0x5000, 0),
        frame(&mut profile, "ext4_read", FrameKind::Kernel, module, KERNEL_START | 0x77, 0),
    ];
    let stack = profile.add_stack(stack);
    for (slice, event) in [(0, 0), (0, 1), (2, 1), (1, 0)] {
        let event = EventId(event);
        profile.samples.push(Sample { task, stack, slice, event, samples: 5, weight: 50 });
        let info =
            if event == EventId::MAIN { &mut profile.header.event } else { &mut profile.header.counters[0] };
        info.samples += 5;
        info.weight += 50;
    }
    (profile.header.samples, profile.header.weight) =
        (profile.header.event.samples, profile.header.event.weight);
    profile
}

/// All that a sample says.
fn told(profile: &Profile) -> Vec<String> {
    let told = profile.samples.iter().map(|sample| {
        let frames: Vec<String> = profile
            .stack(sample.stack)
            .iter()
            .map(|&frame| {
                let frame = profile.frame(frame);
                let line = frame.line.map(|line| profile.line(line));
                let function = profile.function(frame.function);
                format!(
                    "{function:?} {:?} {:?} {:#x} {line:?}",
                    frame.kind,
                    profile.mapping(frame.mapping),
                    frame.address
                )
            })
            .collect();
        let Sample { event, slice, samples, weight, .. } = sample;
        format!("{:?} {event:?} {slice} {samples} {weight} {frames:#?}", profile.task(sample.task))
    });
    told.collect()
}

#[test]
fn a_profile_comes_back_whole() {
    let written = rich();
    let file = save(&written);
    let read = read(&file).unwrap();
    assert_eq!(read.header, written.header);
    assert_eq!(told(&read), told(&written));
    for format in [Format::Folded, Format::Json, Format::Svg] {
        let [one, other] = [&written, &read].map(|profile| {
            let mut text = Vec::new();
            output::write(profile, format, &View::default(), &mut text).unwrap();
            String::from_utf8(text).unwrap()
        });
        assert!(one == other, "{format:?} differs");
    }
    assert_eq!(save(&read).len(), file.len());
}

#[test]
fn samples_that_another_program_left_out_are_said() {
    let mut profile = rich();
    profile.samples.truncate(2);
    let read = read(&save(&profile)).unwrap();
    assert_eq!(read.header.samples, 3);
    assert!(read.header.notes.last().unwrap().contains("another program"), "{:?}", read.header.notes);
}
