//! What the BPF programs and userspace agree on: records, limits, the configuration, and the step logic of the stack walk.
//!
//! The crate is `no_std` and allocates nothing, so that the very same code runs in the kernel and in host tests.

#![no_std]

pub mod config;
pub mod counters;
pub mod frame;
pub mod hash;
pub mod limits;
pub mod mapping;
pub mod sample;
pub mod stack;
pub mod tally;
pub mod unwind;
