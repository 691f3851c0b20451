//! What the BPF programs say for debugging. Never from the sample program: a sample has no time for it.

use aya::Ebpf;
use aya_log::EbpfLogger;
use log::{Log, Metadata, Record};

use super::KernelError;
use crate::say::say;

/// The ring of messages; held even when nobody listens, since the programs refer to it.
pub(super) struct BpfLog {
    ring: EbpfLogger<Stderr>,
}

impl BpfLog {
    /// To be called before programs are loaded.
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, KernelError> {
        let ring = EbpfLogger::init_with_logger(ebpf, Stderr).map_err(|_| KernelError::Object("AYA_LOGS"))?;
        Ok(Self { ring })
    }

    /// Passes on what was said.
    pub(super) fn flush(&mut self) {
        self.ring.flush();
    }
}

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        say(format_args!("kernel side: {}", record.args()));
    }

    fn flush(&self) {}
}
