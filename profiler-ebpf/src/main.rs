//! The BPF programs of bpfprof.
//!
//! `sample` runs at every overflow of a sampling event; `tasks` follows processes and threads. Which of the two sample programs is
//! loaded depends on the machine: registers lie at other places on each.

#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]
#![allow(missing_docs, reason = "the program attributes generate items of their own")]
#![expect(clippy::needless_pass_by_value, reason = "the program attributes pass contexts by value")]

mod arch;
mod arithmetic;
mod config;
mod counters;
mod filter;
mod ids;
mod kernel_memory;
mod mappings;
mod maps;
mod sample;
mod stacks;
mod tally;
mod tasks;
mod unwind;
mod user_memory;

use aya_ebpf::{
    macros::{perf_event, raw_tracepoint},
    programs::{PerfEventContext, RawTracePointContext},
};

/// Takes a sample on x86_64.
#[perf_event]
fn sample_x86_64(ctx: PerfEventContext) -> u32 {
    sample::sample::<arch::x86_64::X86_64>(&ctx)
}

/// Takes a sample on aarch64.
#[perf_event]
fn sample_aarch64(ctx: PerfEventContext) -> u32 {
    sample::sample::<arch::aarch64::Aarch64>(&ctx)
}

/// Reads the counters when a CPU switches from one task to another; attached only when there are any.
#[raw_tracepoint(tracepoint = "sched_switch")]
fn task_switch(_: RawTracePointContext) -> i32 {
    counters::settle();
    0
}

/// Learns the pid namespace of userspace, which runs it once and attaches it nowhere.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
fn learn_namespace(_: RawTracePointContext) -> i32 {
    ids::learn_namespace();
    0
}

/// Makes the children of targets targets.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
fn task_fork(ctx: RawTracePointContext) -> i32 {
    tasks::fork(&ctx)
}

/// Notes what is mapped already: run once for every mapping of every process (`struct bpf_iter__task_vma`, 5.12).
#[unsafe(link_section = "iter/task_vma")]
#[unsafe(no_mangle)]
extern "C" fn mapped_before(ctx: *const [u64; 3]) -> i32 {
    // SAFETY: the context has three words: metadata, task and mapping.
    let [_, task, vma] = unsafe { ctx.read_volatile() };
    if task != 0 && vma != 0 {
        mappings::note_existing(task, vma);
    }
    0
}

/// Forgets what a process had mapped where the kernel finds room for a new mapping (5.6).
#[raw_tracepoint(tracepoint = "vm_unmapped_area")]
fn free_area(ctx: RawTracePointContext) -> i32 {
    mappings::forget_free(ctx.arg(0), ctx.arg(1));
    0
}

/// Notes the mappings that a program begins with, and keeps a followed thread followed when its exec takes the id of the thread group.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
fn task_exec(ctx: RawTracePointContext) -> i32 {
    tasks::exec(&ctx)
}

/// Forgets followed tasks that exit, before their ids are used again.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
fn task_exit(ctx: RawTracePointContext) -> i32 {
    tasks::exit(&ctx)
}

/// The helpers used here are open to GPL-compatible programs only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
