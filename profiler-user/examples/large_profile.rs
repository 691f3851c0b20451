//! Times what a profile of many stacks takes: `cargo run --release --example large_profile [STACKS]`, by default a million.

use std::error::Error;
use std::fs;
use std::time::Instant;

use bpfprof::output::{Format, TableOptions, View, write, write_table};
use bpfprof::profile::{
    EventId, EventInfo, Frame, FrameKind, Function, Header, Line, Mapping, Profile, Sample, Slices, Task,
};
use bpfprof::saved;

/// Frames of a stack, as in a build of Rust.
const DEPTH: u64 = 40;

/// Functions, each at four places.
const FUNCTIONS: u64 = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let stacks = std::env::args().nth(1).map_or(Ok(1_000_000), |number| number.parse())?;
    let profile = timed("made", || Ok(synthetic(stacks)))?;
    let mut file = Vec::new();
    timed("pprof written", || Ok(write(&profile, Format::Pprof, &View::default(), &mut file)?))?;
    println!("{} bytes", file.len());
    drop(profile);
    let profile = timed("pprof read", || Ok(saved::read(&file)?))?;
    timed("table", || Ok(write_table(&profile, &TableOptions::default(), &mut std::io::sink())?))?;
    for format in [Format::Folded, Format::Json, Format::Svg] {
        timed(format.describe(), || Ok(write(&profile, format, &View::default(), &mut std::io::sink())?))?;
    }
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<T, Box<dyn Error>> {
    let begun = Instant::now();
    let done = work()?;
    let status = fs::read_to_string("/proc/self/status")?;
    let memory =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    println!("{what}: {:.1?}, memory {}, at most {}", begun.elapsed(), memory("VmRSS:"), memory("VmHWM:"));
    Ok(done)
}

/// Distinct stacks of random functions under a few common callers, a sample each.
fn synthetic(stacks: u64) -> Profile {
    let mut profile = Profile::default();
    let object =
        profile.add_mapping(Mapping { name: "app".into(), path: "/bin/app".into(), build_id: "ab".into() });
    let task = profile.add_task(Task { process: 1, thread: 1, comm: "app".into(), cgroup: "".into() });
    let frames: Vec<_> = (0..4 * FUNCTIONS)
        .map(|place| {
            let name = format!("app::module_{}::function_{}", place / 4 % 100, place / 4);
            let function = profile.add_function(Function { name: name.into(), object: "app".into() });
            let line = profile
                .add_line(Line { file: format!("src/{}.rs", place % 100).into(), number: place as u32 });
            let (kind, address) = (FrameKind::User, place * 16);
            profile.add_frame(Frame { function, kind, mapping: object, address, line: Some(line) })
        })
        .collect();
    let mut state = 1_u64;
    let mut random = |bound: u64| {
        // xorshift64*, Marsaglia 2003.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % bound
    };
    for number in 0..stacks {
        let stack: Vec<_> = (0..DEPTH)
            .map(|depth| frames[random(if depth < 20 { 4 + depth } else { 4 * FUNCTIONS }) as usize])
            .collect();
        let stack = profile.add_stack(stack);
        let slice = (number * 100 / stacks) as u32;
        profile.samples.push(Sample {
            task,
            stack,
            slice,
            event: EventId::MAIN,
            samples: 1,
            weight: 1_003_009,
        });
    }
    let weight = stacks * 1_003_009;
    let event = EventInfo {
        name: "cpu-clock".into(),
        unit: "ns".into(),
        samples: stacks,
        weight,
        ..EventInfo::default()
    };
    let slices = Slices { count: 100, seconds: 0.2 };
    profile.header = Header { event, samples: stacks, weight, slices, seconds: 20.0, ..Header::default() };
    profile
}
