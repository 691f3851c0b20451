//! Rows of an unwind table: eight bytes each.
//!
//! A row holds from its place in the file up to the next row. Rows are grouped by pages of 64 KiB of the file, so a place needs 16 bits;
//! each page begins with a row that repeats the rule in force, so a search never leaves its page.

/// Bits of a file offset inside a page of rows.
pub const ROW_PAGE_SHIFT: u32 = 16;

/// A rule and where it begins.
///
/// From the low bit: place in the page (16), kind (4), CFA offset ÷ 8 (18), slot of the saved frame pointer (13), slot of the return address (13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Row(pub u64);

/// How a caller's registers are found. Offsets are in bytes and multiples of 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// How the canonical frame address is found.
    pub cfa: Cfa,
    /// Where the caller's frame pointer is.
    pub fp: Saved,
    /// Where the return address is.
    pub ra: Saved,
}

/// How the canonical frame address (DWARF 5 §6.4) is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cfa {
    /// Not at all: no function is described here.
    Nothing,
    /// Not by this format, or not by the compiler's own account.
    Unsupported,
    /// There is no caller: the return address is undefined, as at the first function of a thread.
    Root,
    /// Stack pointer plus offset.
    Sp(u32),
    /// Frame pointer plus offset.
    Fp(u32),
    /// The word at frame pointer minus offset (functions that align their stack).
    AtFp(u32),
    /// An entry of the x86_64 procedure linkage table: stack pointer + 8, or + 16 from this byte of the 16-byte entry on, behind which it has
    /// pushed its number (11, or 9 with indirect branch tracking).
    Plt(u32),
    /// A signal frame: all registers are in the `ucontext` on the stack.
    Signal,
}

/// Where a register of the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Saved {
    /// Still in the register. For the return address: in the link register.
    InRegister,
    /// In memory, at the canonical frame address minus this.
    BelowCfa(u32),
    /// In memory, where the frame pointer points.
    AtFp,
}

const KIND_SHIFT: u32 = 16;
const CFA_SHIFT: u32 = 20;
const FP_SHIFT: u32 = 38;
const RA_SHIFT: u32 = 51;
const CFA_BITS: u32 = 18;
const SLOT_BITS: u32 = 13;

/// Slot number for [`Saved::AtFp`].
const AT_FP: u64 = (1 << SLOT_BITS) - 1;

impl Rule {
    /// A rule without registers.
    #[must_use]
    pub const fn only(cfa: Cfa) -> Self {
        Self { cfa, fp: Saved::InRegister, ra: Saved::InRegister }
    }

    /// The same rule, or [`Cfa::Unsupported`] when its figures do not fit.
    #[must_use]
    pub fn fitting(self) -> Self {
        let offset_fits = match self.cfa {
            Cfa::Sp(offset) | Cfa::Fp(offset) | Cfa::AtFp(offset) => {
                offset % 8 == 0 && offset / 8 < 1 << CFA_BITS
            }
            _ => true,
        };
        let slot_fits = |saved| match saved {
            Saved::BelowCfa(offset) => offset > 0 && offset % 8 == 0 && u64::from(offset / 8) < AT_FP,
            Saved::InRegister | Saved::AtFp => true,
        };
        if offset_fits && slot_fits(self.fp) && slot_fits(self.ra) {
            self
        } else {
            Self::only(Cfa::Unsupported)
        }
    }
}

impl Row {
    /// A row that begins at this file offset. The rule must be [fitting](Rule::fitting).
    #[must_use]
    pub const fn new(offset: u64, rule: Rule) -> Self {
        let (kind, cfa) = match rule.cfa {
            Cfa::Nothing => (0, 0),
            Cfa::Unsupported => (1, 0),
            Cfa::Root => (2, 0),
            Cfa::Sp(offset) => (3, offset / 8),
            Cfa::Fp(offset) => (4, offset / 8),
            Cfa::AtFp(offset) => (5, offset / 8),
            Cfa::Plt(byte) => (6, byte),
            Cfa::Signal => (7, 0),
        };
        Self(
            offset & 0xffff
                | kind << KIND_SHIFT
                | (cfa as u64) << CFA_SHIFT
                | slot(rule.fp) << FP_SHIFT
                | slot(rule.ra) << RA_SHIFT,
        )
    }

    /// Where in its page it begins.
    #[inline(always)]
    #[must_use]
    pub const fn place(self) -> u32 {
        self.0 as u32 & 0xffff
    }

    /// Its rule.
    #[inline(always)]
    #[must_use]
    pub const fn rule(self) -> Rule {
        let offset = ((self.0 >> CFA_SHIFT) as u32 & ((1 << CFA_BITS) - 1)) * 8;
        let cfa = match (self.0 >> KIND_SHIFT) & 0xf {
            0 => Cfa::Nothing,
            2 => Cfa::Root,
            3 => Cfa::Sp(offset),
            4 => Cfa::Fp(offset),
            5 => Cfa::AtFp(offset),
            6 => Cfa::Plt(offset / 8),
            7 => Cfa::Signal,
            _ => Cfa::Unsupported,
        };
        Rule { cfa, fp: saved(self.0 >> FP_SHIFT), ra: saved(self.0 >> RA_SHIFT) }
    }
}

const fn slot(saved: Saved) -> u64 {
    match saved {
        Saved::InRegister => 0,
        Saved::BelowCfa(offset) => (offset / 8) as u64,
        Saved::AtFp => AT_FP,
    }
}

#[inline(always)]
const fn saved(slot: u64) -> Saved {
    match slot & ((1 << SLOT_BITS) - 1) {
        0 => Saved::InRegister,
        AT_FP => Saved::AtFp,
        slot => Saved::BelowCfa(slot as u32 * 8),
    }
}

/// Where the rows of a page are: a word of the page index.
///
/// From the low bit: first row (24), number of rows (24), chunk of rows (16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct RowPage(pub u64);

impl RowPage {
    /// A page with these rows.
    #[must_use]
    pub const fn new(chunk: u16, first: u32, rows: u32) -> Self {
        Self((first & 0xff_ffff) as u64 | ((rows & 0xff_ffff) as u64) << 24 | (chunk as u64) << 48)
    }

    /// The chunk that holds its rows.
    #[inline(always)]
    #[must_use]
    pub const fn chunk(self) -> u32 {
        (self.0 >> 48) as u32
    }

    /// Its first row in the chunk.
    #[inline(always)]
    #[must_use]
    pub const fn first(self) -> u32 {
        self.0 as u32 & 0xff_ffff
    }

    /// Its number of rows.
    #[inline(always)]
    #[must_use]
    pub const fn rows(self) -> u32 {
        (self.0 >> 24) as u32 & 0xff_ffff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_their_encoding() {
        let saved = [Saved::InRegister, Saved::BelowCfa(8), Saved::BelowCfa(65_488), Saved::AtFp];
        let cfas = [
            Cfa::Nothing,
            Cfa::Unsupported,
            Cfa::Root,
            Cfa::Sp(8),
            Cfa::Sp(2_097_144),
            Cfa::Fp(16),
            Cfa::AtFp(8),
            Cfa::Plt(11),
            Cfa::Signal,
        ];
        for cfa in cfas {
            for fp in saved {
                for ra in saved {
                    let rule = Rule { cfa, fp, ra };
                    assert_eq!(rule.fitting(), rule);
                    let row = Row::new(0x12_3456, rule);
                    assert_eq!((row.rule(), row.place()), (rule, 0x3456));
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_unsupported() {
        let rule = |cfa, fp| Rule { cfa, fp, ra: Saved::BelowCfa(8) }.fitting().cfa;
        assert_eq!(rule(Cfa::Sp(2_097_152), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(rule(Cfa::Sp(12), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(rule(Cfa::Sp(16), Saved::BelowCfa(65_528)), Cfa::Unsupported);
        assert_eq!(rule(Cfa::Sp(200_008), Saved::BelowCfa(16)), Cfa::Sp(200_008));
    }

    #[test]
    fn pages_survive_their_encoding() {
        let page = RowPage::new(65_535, 0xff_fffe, 65_537);
        assert_eq!((page.chunk(), page.first(), page.rows()), (65_535, 0xff_fffe, 65_537));
    }
}
