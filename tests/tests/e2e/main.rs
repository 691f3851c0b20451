//! End-to-end tests of the built bpfprof on the running kernel, as root: `cargo xtask test`.

mod attaching;
mod breakpoint;
mod cgroups;
mod counters;
mod exit_status;
mod fallback;
mod following;
mod hotplug;
mod leftovers;
mod list;
mod narrowing;
mod output_files;
mod page_faults;
mod perf_comparison;
mod permission;
mod plt;
mod runtimes;
mod shares;
mod short_lived;
mod signals;
mod stdout;
mod throttle;
mod tracepoint;
mod unwind;
mod unwind_tables;
