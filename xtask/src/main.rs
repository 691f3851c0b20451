//! Builds, checks and shows bpfprof. Nothing here is needed to use it.

mod bench;
mod bpf_toolchain;
mod build_ebpf;
mod cargo;
mod ci;
mod debian;
mod demo;
mod figure;
mod pages;
mod privilege;
mod proc_fields;
mod process;
mod setup_ebpf;
mod strip_debug;
mod test_suite;
mod test_tally;
mod tidy;
mod vm;
mod workloads;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, checks and shows bpfprof")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compile the BPF programs into the object kept in profiler-user/bpf
    BuildEbpf(build_ebpf::Options),
    /// Install what `build-ebpf` needs on Debian: rustc-web with its sources, LLVM, bpf-linker
    SetupEbpf(setup_ebpf::Options),
    /// Run every test, with all the set-up the tests need
    Test(test_suite::Options),
    /// Profile the bundled workload: a table here, a flame graph and folded stacks in files
    Demo(demo::Options),
    /// Measure what bpfprof costs, beside its budgets and beside perf
    Bench(bench::Options),
    /// Run bpfprof on other kernels and another machine, emulated by QEMU
    Vm(vm::Options),
    /// Check the rules of style that neither rustfmt nor clippy knows
    Tidy,
    /// Everything a change must pass: format, lints, tidy, the kept BPF object, tests, demo, other kernels
    Ci,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = Workspace::find().and_then(|workspace| match &arguments.task {
        Task::BuildEbpf(options) => build_ebpf::run(&workspace, options).map(|()| true),
        Task::SetupEbpf(options) => setup_ebpf::run(&workspace, options).map(|()| true),
        Task::Test(options) => {
            let report = test_suite::run(&workspace, options)?;
            println!("{report}");
            Ok(report.is_success())
        }
        Task::Demo(options) => demo::run(&workspace, options).map(|()| true),
        Task::Bench(options) => bench::run(&workspace, options),
        Task::Vm(options) => vm::run(&workspace, options),
        Task::Tidy => tidy::run(&workspace).map(|()| true),
        Task::Ci => ci::run(&workspace),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
