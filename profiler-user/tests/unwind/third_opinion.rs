//! The third opinion: framehop.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use profiler_common::unwind::{Kept, Registers, UserMemory as _};

use crate::elf_image::{ElfImage, Section};
use crate::walker::{LOAD_ADDRESS, Memory};

pub(crate) struct Framehop {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

impl Framehop {
    /// Without the code itself, so that it reads no instructions and goes by call-frame information alone.
    pub(crate) fn new(image: &ElfImage) -> Self {
        let Section { addresses, data } = image.eh_frame.clone();
        let Section { addresses: index_addresses, data: index } = image.eh_frame_hdr.clone();
        let sections = ExplicitModuleSectionInfo {
            eh_frame_svma: Some(addresses),
            eh_frame: Some(data),
            eh_frame_hdr_svma: Some(index_addresses),
            eh_frame_hdr: Some(index),
            ..Default::default()
        };
        let end = image.code.iter().map(|(addresses, _)| addresses.end).max().unwrap_or(0);
        let range = LOAD_ADDRESS..LOAD_ADDRESS + end;
        let mut unwinder = UnwinderX86_64::new();
        unwinder.add_module(Module::new("object".into(), range, LOAD_ADDRESS, sections));
        Self { unwinder, cache: CacheX86_64::new() }
    }

    /// The caller, `None` for a root.
    ///
    /// `is_exact` says that the program counter is that of the next instruction, and not a return address.
    pub(crate) fn caller(
        &mut self,
        registers: &Registers,
        is_exact: bool,
    ) -> Result<Option<Registers>, Error> {
        let Registers { pc, sp, fp, .. } = *registers;
        let address = if is_exact {
            FrameAddress::from_instruction_pointer(pc)
        } else {
            FrameAddress::from_return_address(pc).expect("an address other than 0")
        };
        let mut registers = UnwindRegsX86_64::new(pc, sp, fp);
        let mut read = |address| Memory.read(address).ok_or(());
        let found = self.unwinder.unwind_frame(address, &mut registers, &mut self.cache, &mut read)?;
        Ok(found.map(|pc| Registers { pc, sp: registers.sp(), fp: registers.bp(), lr: 0, bx: Kept::Unknown }))
    }
}
