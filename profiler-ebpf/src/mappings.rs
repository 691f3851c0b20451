//! Executable mappings of processes, found in the kernel when they are needed.
//!
//! A program's own mapping and its loader's are noted at exec; any other is looked up by the first sample that hits it. So a process is
//! walked by the tables of its objects without waiting for userspace.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_ANY, BPF_NOEXIST},
    helpers::generated::{bpf_find_vma, bpf_ktime_get_ns, bpf_loop},
    maps::HashMap,
};
use profiler_common::{
    config::{target, walk},
    mapping::{
        self, FIRST_MAPPINGS, FileEntry, FileKey, FileRequest, MAPPINGS_PER_BLOCK, MAPPINGS_PER_PROCESS,
        MAX_REGIONS_OF_MAPPING, Mapping, PAGE_SHIFT, ProcessMappings, region, region_key, regions,
    },
};

use crate::{
    arithmetic::{select, sign},
    config::config,
    ids,
    kernel_memory::{KernelAddress, read_u32, read_u64},
    maps::{FILE_REQUESTS, FILES, FOLLOWED, NO_MAPPINGS, PROCESSES, REGIONS},
};

/// `VM_EXEC` of `include/linux/mm.h`.
const VM_EXEC: u64 = 4;

/// Notes the mapping of a task that holds this address, and returns it.
///
/// In interrupt context the kernel allows one such search per interrupt (`mmap_unlock_work`). Fails where the process is changing its
/// mappings at this moment.
#[inline(always)]
pub(crate) fn discover(task: *mut c_void, tgid: u32, exec_id: u32, address: u64) -> Option<Mapping> {
    let mut found = Mapping::VOID;
    // SAFETY: the task is the current one; the callback gets the address of a local that outlives the call.
    unsafe { bpf_find_vma(task.cast(), address, note_found as *mut c_void, (&raw mut found).cast(), 0) };
    if found.pages == 0 {
        return None;
    }
    if !remember(tgid, exec_id, &found) {
        // Its other regions follow when samples hit them.
        remember_in_region(region_key(tgid, region(address)), exec_id, &found);
    }
    Some(found)
}

/// Notes a mapping that exists, as the iterator over all mappings shows it. For processes that are targets by their number, the file is
/// asked for at once; of all others on the machine few will be hit.
#[inline(always)]
pub(crate) fn note_existing(task: KernelAddress, vma: KernelAddress) {
    let tgid = ids::of(task).tgid;
    let by_number = config!(target) == target::PROCESSES;
    if by_number && FOLLOWED.get_ptr(tgid).is_none() {
        return;
    }
    let exec_id = read_u64(task, config!(offsets.self_exec_id)) as u32;
    let mapping = describe(vma);
    if mapping.pages == 0 {
        // Code without a file, in the place of a file's.
        if read_u64(vma, config!(mapping_offsets.flags)) & VM_EXEC != 0 {
            let start = read_u64(vma, config!(mapping_offsets.start));
            forget_range(tgid, start, read_u64(vma, config!(mapping_offsets.end)));
        }
        return;
    }
    if !remember(tgid, exec_id, &mapping) {
        RegionChange { tgid, exec_id, mapping, adds: true }.apply();
    }
    if by_number && config!(walk) != walk::FRAME_POINTER {
        expect(tgid, &mapping);
    }
}

/// Forgets the mappings of the current process in an area that the kernel has just found to be free: a library may come there that takes the
/// place of another. `area` is a `struct vm_unmapped_area_info`.
#[inline(always)]
pub(crate) fn forget_free(start: u64, area: KernelAddress) {
    // There may have been no room: then it is a negative error number.
    if start as i64 > 0 {
        let len = read_u64(area, config!(mapping_offsets.area_length));
        forget_range(ids::current().tgid, start, start.wrapping_add(len));
    }
}

#[inline(always)]
fn forget_range(tgid: u32, start: u64, end: u64) {
    let Some(mappings) = PROCESSES.get_ptr_mut(tgid) else { return };
    // SAFETY: a map value is writable; entries that two CPUs write at once are told by their seals.
    let mappings = unsafe { &mut *mappings };
    void_covered(mappings, start, end);
    if mappings.by_region != 0 {
        let mapping = Mapping::new(start, (end.wrapping_sub(start) >> PAGE_SHIFT) as u32, 0, FileKey::NONE);
        RegionChange { tgid, exec_id: mappings.exec_id, mapping, adds: false }.apply();
    }
}

/// Gives a new process the mappings of its parent.
#[inline(always)]
pub(crate) fn inherit(parent: u32, child: u32) {
    if let Some(mappings) = PROCESSES.get_ptr(parent) {
        // SAFETY: a map value is readable; entries written meanwhile are told by their seals.
        let mappings = unsafe { &*mappings };
        // Where there is no room, the child's samples look its mappings up again.
        let _ = PROCESSES.insert(child, mappings, BPF_ANY.into());
    }
}

/// Forgets a process.
#[inline(always)]
pub(crate) fn forget(tgid: u32) {
    let Some(mappings) = PROCESSES.get_ptr(tgid) else { return };
    // SAFETY: a map value is readable.
    if unsafe { (*mappings).by_region } != 0 {
        let mut tgid = tgid;
        // SAFETY: the callback gets the address of a local that outlives the loop.
        unsafe { bpf_loop(mapping::REGIONS as u32, forget_region as *mut c_void, (&raw mut tgid).cast(), 0) };
    }
    let _ = PROCESSES.remove(tgid);
}

/// Callback of `bpf_loop`.
unsafe extern "C" fn forget_region(region: u32, tgid: *mut c_void) -> i64 {
    // SAFETY: `forget` passes the address of its local.
    let tgid = unsafe { *tgid.cast::<u32>() };
    let _ = REGIONS.remove(region_key(tgid, region.into()));
    0
}

/// The noted mapping of this program image of a process that holds this address.
#[inline(always)]
pub(crate) fn find(tgid: u32, exec_id: u32, address: u64) -> Option<Mapping> {
    // SAFETY: a map value is readable; torn entries are told by their seals.
    let of_process = unsafe { &*PROCESSES.get_ptr(tgid)? };
    let found = find_among(of_process, exec_id, address);
    if found.is_some() || of_process.by_region == 0 {
        return found;
    }
    let in_region = REGIONS.get_ptr(region_key(tgid, region(address)))?;
    // SAFETY: as above.
    find_among(unsafe { &*in_region }, exec_id, address)
}

/// The search has no branches but at the end of a block: with one for each entry, the verifier would follow each way through the loop.
#[inline(always)]
fn find_among(mappings: &ProcessMappings, exec_id: u32, address: u64) -> Option<Mapping> {
    if mappings.exec_id != exec_id {
        return None;
    }
    let mut found = 0;
    for (block, entries) in mappings.entries.chunks_exact(MAPPINGS_PER_BLOCK).enumerate() {
        let first = block * MAPPINGS_PER_BLOCK;
        if first >= mappings.used as usize {
            break;
        }
        // Counted from the block's own start: constants, where counts from the first block would lie on the stack, one for each entry.
        let mut found_here = 0;
        for (index, mapping) in entries.iter().enumerate() {
            let at = address.wrapping_sub(mapping.start);
            let beyond = at.wrapping_sub(u64::from(mapping.pages) << PAGE_SHIFT);
            found_here = select(sign(!at & beyond), index as u64 + 1, found_here);
        }
        found = select(sign(0u64.wrapping_sub(found_here)), first as u64 + found_here, found);
    }
    let index = found.wrapping_sub(1) as usize;
    if index >= MAPPINGS_PER_PROCESS {
        return None;
    }
    // SAFETY: the index was checked.
    let mapping = unsafe { *mappings.entries.get_unchecked(index) };
    if mapping.is_sound() && mapping.file_offset(address).is_some() { Some(mapping) } else { None }
}

/// Asks userspace for the file of a mapping, if nothing is known of it.
#[inline(always)]
pub(crate) fn expect(tgid: u32, mapping: &Mapping) {
    file_entry(tgid, mapping);
}

/// What is known of a file. Who meets an unknown one first asks userspace for it, which answers or forgets the question: then it is asked
/// again.
#[inline(always)]
pub(crate) fn file_entry(tgid: u32, mapping: &Mapping) -> FileEntry {
    if let Some(entry) = FILES.get_ptr(mapping.file) {
        // SAFETY: a map value is readable; one that is being replaced is told by its seal.
        return unsafe { *entry }.sound(mapping.file);
    }
    if FILES.insert(mapping.file, FileEntry::REQUESTED, BPF_NOEXIST.into()).is_ok()
        && ask(tgid, mapping.file, mapping.start).is_err()
    {
        // The next sample asks again.
        let _ = FILES.remove(mapping.file);
    }
    FileEntry::REQUESTED
}

/// Tells userspace that a program has begun. It maps its libraries now, and may have ended when the next slice of time does.
#[inline(always)]
pub(crate) fn announce_program(tgid: u32) {
    // What is lost here is found at the end of the slice.
    let _ = ask(tgid, FileKey::NONE, 0);
}

#[inline(always)]
fn ask(tgid: u32, file: FileKey, address: u64) -> Result<(), i32> {
    // SAFETY: the helper takes nothing.
    let time = unsafe { bpf_ktime_get_ns() };
    FILE_REQUESTS
        .output::<FileRequest>(FileRequest { file, address, time, tgid, padding: 0 }, 0)
        .map_err(|_| 0)
}

/// Callback of `bpf_find_vma`.
unsafe extern "C" fn note_found(_task: *mut c_void, vma: *mut c_void, found: *mut c_void) -> i64 {
    // SAFETY: `discover` passes its own local.
    let found = unsafe { &mut *found.cast::<Mapping>() };
    *found = describe(vma as KernelAddress);
    0
}

/// A mapping as far as it is executable and of a file; else void.
#[inline(always)]
fn describe(vma: KernelAddress) -> Mapping {
    let file = read_u64(vma, config!(mapping_offsets.file));
    if read_u64(vma, config!(mapping_offsets.flags)) & VM_EXEC == 0 || file == 0 {
        return Mapping::VOID;
    }
    let start = read_u64(vma, config!(mapping_offsets.start));
    let end = read_u64(vma, config!(mapping_offsets.end));
    // The kernel counts pages of its own size.
    let kernels_page = config!(page_shift).wrapping_sub(PAGE_SHIFT) & 31;
    let file_page = read_u64(vma, config!(mapping_offsets.file_page)) << kernels_page;
    Mapping::new(start, (end.wrapping_sub(start) >> PAGE_SHIFT) as u32, file_page as u32, file_key(file))
}

/// Adds a mapping in place of those it covers. False if there was no room, and it is small enough to be remembered by region.
#[inline(always)]
fn remember(tgid: u32, exec_id: u32, mapping: &Mapping) -> bool {
    let Some(mappings) = entry(&PROCESSES, tgid) else { return true };
    let covered = begin_change(mappings, exec_id, mapping);
    let is_full = mappings.used as usize >= MAPPINGS_PER_PROCESS;
    if covered == 0 && is_full && regions(mapping.start, end(mapping)) <= MAX_REGIONS_OF_MAPPING {
        mappings.by_region = 1;
        return false;
    }
    put(mappings, covered, mapping, FIRST_MAPPINGS);
    true
}

/// As above, in a region.
#[inline(always)]
fn remember_in_region(key: u64, exec_id: u32, mapping: &Mapping) {
    if let Some(mappings) = entry(&REGIONS, key) {
        let covered = begin_change(mappings, exec_id, mapping);
        put(mappings, covered, mapping, 0);
    }
}

/// A change of the mappings of a process in all regions that a mapping touches.
struct RegionChange {
    tgid: u32,
    exec_id: u32,
    mapping: Mapping,
    /// Whether the mapping is added, or only what it covers voided.
    adds: bool,
}

impl RegionChange {
    #[inline(always)]
    fn apply(&mut self) {
        let count = regions(self.mapping.start, end(&self.mapping));
        let count = if count < mapping::REGIONS { count } else { mapping::REGIONS };
        // SAFETY: the callback gets the address of this value, which outlives the loop.
        unsafe { bpf_loop(count as u32, change_region as *mut c_void, (&raw mut *self).cast(), 0) };
    }
}

/// Callback of `bpf_loop`.
unsafe extern "C" fn change_region(index: u32, change: *mut c_void) -> i64 {
    // SAFETY: `RegionChange::apply` passes its own address.
    let RegionChange { tgid, exec_id, mapping, adds } = unsafe { &*change.cast::<RegionChange>() };
    let key = region_key(*tgid, region(mapping.start).wrapping_add(index.into()));
    if *adds {
        remember_in_region(key, *exec_id, mapping);
    } else if let Some(mappings) = REGIONS.get_ptr_mut(key) {
        // SAFETY: a map value is writable; entries that two CPUs write at once are told by their seals.
        void_covered(unsafe { &mut *mappings }, mapping.start, end(mapping));
    }
    0
}

/// Makes these the mappings of this program image, and voids those that a mapping covers: the number of the last of them, counted from 1, or 0.
#[inline(always)]
fn begin_change(mappings: &mut ProcessMappings, exec_id: u32, mapping: &Mapping) -> u64 {
    if mappings.exec_id != exec_id {
        for entry in &mut mappings.entries {
            entry.void();
        }
        mappings.next = 0;
        mappings.used = 0;
        mappings.exec_id = exec_id;
    }
    void_covered(mappings, mapping.start, end(mapping))
}

/// Puts a mapping into the place of the covered one, else into the next. The first ones, so many, are not overwritten.
#[inline(always)]
fn put(mappings: &mut ProcessMappings, covered: u64, mapping: &Mapping, first: u32) {
    let next = u64::from(mappings.next);
    let place = select(sign(covered.wrapping_sub(1)), next, covered.wrapping_sub(1));
    if place == next {
        mappings.next = if next + 1 < MAPPINGS_PER_PROCESS as u64 { next as u32 + 1 } else { first };
    }
    if place < MAPPINGS_PER_PROCESS as u64 {
        // SAFETY: the index was checked.
        unsafe { *mappings.entries.get_unchecked_mut(place as usize) = *mapping };
        if mappings.used <= place as u32 {
            mappings.used = place as u32 + 1;
        }
    }
}

/// Voids the mappings that share an address with this range; the number of the last of them, counted from 1, or 0.
#[inline(always)]
fn void_covered(mappings: &mut ProcessMappings, start: u64, end_of_range: u64) -> u64 {
    let mut covered = 0;
    for index in 0..MAPPINGS_PER_PROCESS {
        let old = &mut mappings.entries[index];
        // Addresses of users are below 2⁶³, so the sign of a difference tells which is lower.
        let overlaps = sign(old.start.wrapping_sub(end_of_range) & start.wrapping_sub(end(old)));
        old.pages *= 1 - overlaps as u32;
        covered = select(overlaps, index as u64 + 1, covered);
    }
    covered
}

#[inline(always)]
fn end(mapping: &Mapping) -> u64 {
    mapping.start.wrapping_add(u64::from(mapping.pages) << PAGE_SHIFT)
}

/// What is noted for this key, begun if need be.
#[inline(always)]
fn entry<K: Copy>(of: &HashMap<K, ProcessMappings>, key: K) -> Option<&'static mut ProcessMappings> {
    let found = match of.get_ptr_mut(key) {
        Some(found) => found,
        None => {
            of.insert(key, no_mappings()?, BPF_NOEXIST.into()).ok()?;
            of.get_ptr_mut(key)?
        }
    };
    // SAFETY: a map value is writable; entries that two CPUs write at once are told by their seals.
    Some(unsafe { &mut *found })
}

#[inline(always)]
fn no_mappings() -> Option<&'static ProcessMappings> {
    // SAFETY: a map value is readable, and this one is never written.
    NO_MAPPINGS.get_ptr(0).map(|empty| unsafe { &*empty })
}

#[inline(always)]
fn file_key(file: KernelAddress) -> FileKey {
    let inode = read_u64(file, config!(mapping_offsets.inode));
    let super_block = read_u64(inode, config!(mapping_offsets.super_block));
    FileKey::new(
        read_u32(super_block, config!(mapping_offsets.device)).into(),
        read_u64(inode, config!(mapping_offsets.inode_number)),
        read_u64(inode, config!(mapping_offsets.inode_size)),
        (
            read_u64(inode, config!(mapping_offsets.inode_modified)),
            // A `long` before 6.11: its low half, on these little-endian machines.
            read_u32(inode, config!(mapping_offsets.inode_modified_nanos)),
        ),
    )
}
