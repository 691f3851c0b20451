//! What is said of profiles that other programs recorded.

use super::builder::Builder;
use crate::profile::{EventInfo, Frame, FrameId, FrameKind, Function, Header, Mapping, MappingId, Slices};

/// A header that claims nothing but what is given.
pub(super) fn header(
    target: &str,
    source: &str,
    main: EventInfo,
    counters: Vec<EventInfo>,
    slices: Slices,
) -> Header {
    Header {
        target: target.into(),
        source: Some(source.into()),
        event: main,
        counters,
        seconds: f64::from(slices.count) * slices.seconds,
        slices,
        ..Header::default()
    }
}

/// An event of which the name and unit are known alone.
pub(super) fn event(name: &str, unit: &str, rate: &str) -> EventInfo {
    EventInfo {
        name: name.into(),
        unit: unit.into(),
        rate: rate.into(),
        running: 1.0,
        ..EventInfo::default()
    }
}

impl Builder {
    /// An object of which the path is known alone.
    pub(super) fn object(&mut self, path: &str) -> MappingId {
        self.object_with_build_id(path, "")
    }

    /// An object at a path.
    pub(super) fn object_with_build_id(&mut self, path: &str, build_id: &str) -> MappingId {
        let path = if path.is_empty() { UNKNOWN } else { path };
        let name = String::from_utf8_lossy(crate::processes::short_name(path.as_bytes()));
        self.profile.add_mapping(Mapping { name: name.into(), path: path.into(), build_id: build_id.into() })
    }

    /// A frame of which the name is known alone.
    pub(super) fn frame(&mut self, name: &str, kind: FrameKind, mapping: MappingId, address: u64) -> FrameId {
        let object = self.profile.mapping(mapping).name.clone();
        let name = if name.is_empty() { UNKNOWN } else { name };
        let function = self.profile.add_function(Function { name: name.into(), object });
        self.profile.add_frame(Frame { function, kind, mapping, address, line: None })
    }
}

/// Stands for a name that is not known.
pub(super) const UNKNOWN: &str = "[unknown]";

/// Object of kernel functions of which it is not known.
pub(super) const KERNEL: &str = "[kernel]";
