//! User frames as they leave the kernel: by object where it is known, else by address.

/// A user frame: the address at which the frame's function is looked up.
///
/// For a caller that is the last byte of its call instruction, since a return address may belong to the next function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserFrame {
    /// In an object: the same in every process that maps it.
    Object {
        /// Number that userspace gave the object, below [`MAX_OBJECTS`].
        object: u32,
        /// Place in its file, below 2⁴⁰.
        offset: u64,
    },
    /// At an absolute address of the process.
    Address(u64),
}

/// Objects that can be told apart in a frame.
pub const MAX_OBJECTS: u32 = 1 << OBJECT_BITS;

const OBJECT_BITS: u32 = 23;
const OFFSET_BITS: u32 = 40;

/// Set for frames by object. An address does without: in all addresses of user code this bit is as the one below it.
const BY_OBJECT: u64 = 1 << 63;

impl UserFrame {
    /// The word that stands for this frame.
    #[inline(always)]
    #[must_use]
    pub const fn encode(self) -> u64 {
        match self {
            Self::Object { object, offset } => {
                BY_OBJECT
                    | (object as u64 & (MAX_OBJECTS as u64 - 1)) << OFFSET_BITS
                    | offset & ((1 << OFFSET_BITS) - 1)
            }
            Self::Address(address) => address & !BY_OBJECT,
        }
    }

    /// The frame that this word stands for.
    #[must_use]
    pub const fn decode(word: u64) -> Self {
        if word & BY_OBJECT == 0 {
            // The page of old system calls of x86_64 (`[vsyscall]`) is in the kernel's half.
            return Self::Address(((word << 1).cast_signed() >> 1).cast_unsigned());
        }
        let object = (word >> OFFSET_BITS) as u32 & (MAX_OBJECTS - 1);
        Self::Object { object, offset: word & ((1 << OFFSET_BITS) - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_their_encoding() {
        for frame in [
            UserFrame::Address(0),
            UserFrame::Address(0x7fff_ffff_f000),
            UserFrame::Address(0xffff_ffff_ff60_0400),
            UserFrame::Object { object: 0, offset: 0 },
            UserFrame::Object { object: MAX_OBJECTS - 1, offset: (1 << 40) - 1 },
        ] {
            assert_eq!(UserFrame::decode(frame.encode()), frame);
        }
    }
}
