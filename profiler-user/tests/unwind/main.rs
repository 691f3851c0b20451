//! Unwind tables of real objects: against two other readers of call-frame information, and against damage.

mod differential;
mod elf_image;
mod mutation;
mod objects;
mod random;
mod second_opinion;
mod tables;
mod third_opinion;
mod walker;
