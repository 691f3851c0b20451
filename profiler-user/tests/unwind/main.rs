//! Unwind tables of real objects: against two other readers of call-frame information, and against damage.

// The other readers are set up for registers of x86_64.
#![cfg(target_arch = "x86_64")]

mod differential;
mod elf_image;
mod mutation;
mod objects;
mod random;
mod second_opinion;
mod tables;
mod third_opinion;
mod walker;
