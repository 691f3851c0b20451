//! Rows of an unwind table: eight bytes each.
//!
//! A row holds from its place in the file up to the next row. Rows are grouped by pages of 64 KiB of the file, so a place needs 16 bits;
//! each page begins with a row that repeats the rule in force, so a search never leaves its page.

/// Bits of a file offset inside a page of rows.
pub const ROW_PAGE_SHIFT: u32 = 16;

/// A rule and where it begins.
///
/// From the low bit: place in the page (16), kind (5), and what the kind needs (43). Offsets and slots count words of 8 bytes; a slot says how
/// far below the canonical frame address (CFA) a register is saved, 0 for "not saved".
///
/// | kinds | offset to the CFA | then |
/// | --- | --- | --- |
/// | pushed | 21 | slots of the frame pointer (11) and of %rbx (11); the return address is right below the CFA |
/// | far | 21 | slot of the frame pointer (22); the return address is right below the CFA |
/// | pair | 21 | slot of the return address (22); the frame pointer is saved below it |
/// | split | 21 | slots of the frame pointer (11) and of the return address (11) |
/// | dereferenced | 10, signed | added to the word there (5), slots of the return address (5), frame pointer (11) and %rbx (11); 1 bit: interrupted |
/// | other | 17 | place of a register in `struct pt_regs` (4), slots of the frame pointer (11) and of %rbx (11) |
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
    /// Where the caller's %rbx is.
    pub bx: Saved,
    /// Whether the caller goes on exactly where the return address says, as if it had been interrupted (augmentation `S`).
    pub interrupted: bool,
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
    /// %rbx plus offset: functions of the dynamic loader that save all registers.
    Bx(u32),
    /// Another register, by its place in `struct pt_regs` in words, plus offset: known in the innermost frame alone.
    Other(u8, u32),
    /// The word at a register plus an offset, plus another offset: functions that align their stack, and those that switch it.
    Deref(Base, i32, u32),
    /// An entry of the x86_64 procedure linkage table (PLT): stack pointer + 8, or + 16 from this byte of the 16-byte entry on, behind which
    /// it has pushed its number (11, or 9 with indirect branch tracking).
    Plt(u32),
    /// A signal frame: all registers are in the `ucontext` on the stack.
    Signal,
}

/// A register that a walk carries from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The stack pointer.
    Sp,
    /// The frame pointer.
    Fp,
    /// %rbx.
    Bx,
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
    /// In another register, by its place in `struct pt_regs` in words. For the return address alone.
    Other(u8),
    /// Nowhere that a rule can tell. For %rbx alone.
    Unknown,
}

impl Rule {
    /// A rule that leaves %rbx alone.
    #[must_use]
    pub const fn new(cfa: Cfa, fp: Saved, ra: Saved) -> Self {
        Self { cfa, fp, ra, bx: Saved::InRegister, interrupted: false }
    }

    /// A rule without registers.
    #[must_use]
    pub const fn only(cfa: Cfa) -> Self {
        Self::new(cfa, Saved::InRegister, Saved::InRegister)
    }

    /// The same rule; without the place of %rbx where only that does not fit; [`Cfa::Unsupported`] when its figures do not fit.
    #[must_use]
    pub fn fitting(self) -> Self {
        let without_bx = Self { bx: Saved::Unknown, ..self };
        let fits = |rule: &Self| encode(rule).is_some_and(|word| decode(word) == *rule);
        if fits(&self) {
            self
        } else if fits(&without_bx) {
            without_bx
        } else {
            Self::only(Cfa::Unsupported)
        }
    }
}

impl Row {
    /// A row at the beginning of a page that says that no function is described.
    pub const NOTHING: Self = Self(NOTHING << KIND_SHIFT);

    /// A row that begins at this file offset. A rule that is not [fitting](Rule::fitting) becomes [`Cfa::Unsupported`].
    #[must_use]
    pub fn new(offset: u64, rule: Rule) -> Self {
        Self(offset & 0xffff | encode(&rule).unwrap_or(UNSUPPORTED << KIND_SHIFT))
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
        decode(self.0)
    }

    /// [`Rule::bx`] alone.
    #[inline(always)]
    #[must_use]
    pub const fn bx(self) -> Saved {
        match bits(self.0, KIND_SHIFT, KIND_BITS) {
            SP_PUSHED..=BX_PUSHED | SP_DEREF..=RETURN_IN_OTHER => {
                saved(bits(self.0, SECOND_SLOT, SLOT_BITS), Saved::Unknown)
            }
            SP_FAR..=FP_INTERRUPTED => Saved::Unknown,
            _ => Saved::InRegister,
        }
    }

    /// [`Rule::interrupted`] alone.
    #[inline(always)]
    #[must_use]
    pub const fn interrupted(self) -> bool {
        match bits(self.0, KIND_SHIFT, KIND_BITS) {
            SP_INTERRUPTED | FP_INTERRUPTED => true,
            SP_DEREF..=BX_DEREF => bits(self.0, FIRST_SLOT - 1, 1) != 0,
            _ => false,
        }
    }
}

const KIND_SHIFT: u32 = 16;
const KIND_BITS: u32 = 5;
/// Where the figures begin.
const FIGURES: u32 = KIND_SHIFT + KIND_BITS;
const OFFSET_BITS: u32 = 21;
const SLOT_BITS: u32 = 11;
const FAR_SLOT_BITS: u32 = 22;
const PLACE_BITS: u32 = 4;
const SHORT_OFFSET_BITS: u32 = OFFSET_BITS - PLACE_BITS;
const DEREF_BITS: u32 = 10;
const ADDED_BITS: u32 = 5;
const NEAR_SLOT_BITS: u32 = 5;
const FIRST_SLOT: u32 = FIGURES + OFFSET_BITS;
const SECOND_SLOT: u32 = FIRST_SLOT + SLOT_BITS;

/// Slot for a register that is where the frame pointer points, or, of %rbx, unknown.
const ELSEWHERE: u64 = (1 << SLOT_BITS) - 1;

// Kinds. Where a function begins at the end of another, the greater of two rules at one place holds: what says nothing comes first.
const NOTHING: u64 = 0;
const UNSUPPORTED: u64 = 1;
const ROOT: u64 = 2;
const SIGNAL: u64 = 3;
const PLT: u64 = 4;
const SP_PUSHED: u64 = 5;
const FP_PUSHED: u64 = 6;
const BX_PUSHED: u64 = 7;
const SP_FAR: u64 = 8;
const FP_FAR: u64 = 9;
const SP_PAIR: u64 = 10;
const FP_PAIR: u64 = 11;
const SP_SPLIT: u64 = 12;
const FP_SPLIT: u64 = 13;
const SP_INTERRUPTED: u64 = 14;
const FP_INTERRUPTED: u64 = 15;
const SP_DEREF: u64 = 16;
const FP_DEREF: u64 = 17;
const BX_DEREF: u64 = 18;
/// CFA by another register.
const BY_OTHER: u64 = 19;
/// Return address in another register.
const RETURN_IN_OTHER: u64 = 20;

/// The row's word without its place; `None` when a figure does not fit.
fn encode(rule: &Rule) -> Option<u64> {
    let Rule { cfa, fp, ra, bx, interrupted } = *rule;
    let pushed = ra == Saved::BelowCfa(8) && !interrupted;
    let two_slots = |first, second| Some(first << FIRST_SLOT | second << SECOND_SLOT);
    let near = |kind, offset| {
        Some(
            kind << KIND_SHIFT | words(offset, OFFSET_BITS)? << FIGURES | two_slots(slot(fp)?, bx_slot(bx)?)?,
        )
    };
    let frame = |[pushed_kind, far, pair, split, interrupted_kind]: [u64; 5], offset| {
        let head = |kind: u64| Some(kind << KIND_SHIFT | words(offset, OFFSET_BITS)? << FIGURES);
        let far_slot = |saved| match saved {
            Saved::BelowCfa(below) => words(below, FAR_SLOT_BITS).filter(|&slot| slot > 0),
            _ => None,
        };
        if pushed && slot(fp).is_some() && bx_slot(bx).is_some() {
            return near(pushed_kind, offset);
        }
        if pushed && let Some(slot) = far_slot(fp) {
            return Some(head(far)? | slot << FIRST_SLOT);
        }
        let split = if interrupted { interrupted_kind } else { split };
        if let (Some(fp), Some(ra)) = (slot(fp), slot(ra)) {
            return Some(head(split)? | two_slots(fp, ra)?);
        }
        match (fp, ra) {
            (Saved::BelowCfa(fp), Saved::BelowCfa(ra)) if fp == ra + 8 && !interrupted => {
                Some(head(pair)? | far_slot(Saved::BelowCfa(ra))? << FIRST_SLOT)
            }
            _ => None,
        }
    };
    let simple = |kind| Some(kind << KIND_SHIFT);
    match cfa {
        Cfa::Nothing => simple(NOTHING),
        Cfa::Unsupported => simple(UNSUPPORTED),
        Cfa::Root => simple(ROOT),
        Cfa::Signal => simple(SIGNAL),
        Cfa::Plt(byte) => Some(PLT << KIND_SHIFT | u64::from(byte & 0xf) << FIGURES),
        Cfa::Sp(offset) => match ra {
            Saved::Other(number) => by_other(RETURN_IN_OTHER, number, offset, slot(fp)?, bx_slot(bx)?),
            _ => frame([SP_PUSHED, SP_FAR, SP_PAIR, SP_SPLIT, SP_INTERRUPTED], offset),
        },
        Cfa::Fp(offset) => frame([FP_PUSHED, FP_FAR, FP_PAIR, FP_SPLIT, FP_INTERRUPTED], offset),
        Cfa::Bx(offset) if pushed => near(BX_PUSHED, offset),
        Cfa::Other(number, offset) if pushed => by_other(BY_OTHER, number, offset, slot(fp)?, bx_slot(bx)?),
        Cfa::Bx(_) | Cfa::Other(..) => None,
        Cfa::Deref(base, offset, added) => {
            let kind = match base {
                Base::Sp => SP_DEREF,
                Base::Fp => FP_DEREF,
                Base::Bx => BX_DEREF,
            };
            let limit = 1 << (DEREF_BITS - 1);
            let fits = offset % 8 == 0 && (-limit..limit).contains(&(offset / 8));
            let offset = fits.then_some(u64::from((offset / 8).cast_unsigned()) & ((1 << DEREF_BITS) - 1))?;
            let Saved::BelowCfa(ra) = ra else { return None };
            let mut at = FIGURES;
            let mut word = kind << KIND_SHIFT;
            for (figure, bits) in [
                (offset, DEREF_BITS),
                (words(added, ADDED_BITS)?, ADDED_BITS),
                (words(ra, NEAR_SLOT_BITS).filter(|&slot| slot > 0)?, NEAR_SLOT_BITS),
                (u64::from(interrupted), 1),
                (slot(fp)?, SLOT_BITS),
                (bx_slot(bx)?, SLOT_BITS),
            ] {
                word |= figure << at;
                at += bits;
            }
            Some(word)
        }
    }
}

fn by_other(kind: u64, number: u8, offset: u32, fp: u64, bx: u64) -> Option<u64> {
    let number = Some(u64::from(number)).filter(|&number| number < 1 << PLACE_BITS)?;
    let offset = words(offset, SHORT_OFFSET_BITS)?;
    let figures = number << FIGURES | offset << (FIGURES + PLACE_BITS);
    Some(kind << KIND_SHIFT | figures | fp << FIRST_SLOT | bx << SECOND_SLOT)
}

/// Bytes as words of 8, if they are and fit into so many bits.
fn words(bytes: u32, bits: u32) -> Option<u64> {
    (bytes.is_multiple_of(8) && bytes / 8 < 1 << bits).then_some(u64::from(bytes / 8))
}

/// The slot of the frame pointer or of the return address.
fn slot(saved: Saved) -> Option<u64> {
    match saved {
        Saved::InRegister => Some(0),
        Saved::BelowCfa(offset) => words(offset, SLOT_BITS).filter(|slot| (1..ELSEWHERE).contains(slot)),
        Saved::AtFp => Some(ELSEWHERE),
        Saved::Other(_) | Saved::Unknown => None,
    }
}

fn bx_slot(saved: Saved) -> Option<u64> {
    match saved {
        Saved::Unknown => Some(ELSEWHERE),
        Saved::InRegister | Saved::BelowCfa(_) => slot(saved),
        Saved::AtFp | Saved::Other(_) => None,
    }
}

#[inline(always)]
const fn decode(word: u64) -> Rule {
    let offset = bits(word, FIGURES, OFFSET_BITS) as u32 * 8;
    let short_offset = bits(word, FIGURES + PLACE_BITS, SHORT_OFFSET_BITS) as u32 * 8;
    let number = bits(word, FIGURES, PLACE_BITS) as u8;
    let first = saved(bits(word, FIRST_SLOT, SLOT_BITS), Saved::AtFp);
    let second = bits(word, SECOND_SLOT, SLOT_BITS);
    let far = bits(word, FIRST_SLOT, FAR_SLOT_BITS) as u32 * 8;
    let bx = saved(second, Saved::Unknown);
    let (unknown, return_address) = (Saved::Unknown, Saved::BelowCfa(8));
    let kind = bits(word, KIND_SHIFT, KIND_BITS);
    match kind {
        NOTHING => Rule::only(Cfa::Nothing),
        ROOT => Rule::only(Cfa::Root),
        SIGNAL => Rule::only(Cfa::Signal),
        PLT => Rule::new(Cfa::Plt(number as u32), Saved::InRegister, return_address),
        SP_PUSHED => Rule { cfa: Cfa::Sp(offset), fp: first, ra: return_address, bx, interrupted: false },
        FP_PUSHED => Rule { cfa: Cfa::Fp(offset), fp: first, ra: return_address, bx, interrupted: false },
        BX_PUSHED => Rule { cfa: Cfa::Bx(offset), fp: first, ra: return_address, bx, interrupted: false },
        SP_FAR | FP_FAR => {
            let cfa = if kind == SP_FAR { Cfa::Sp(offset) } else { Cfa::Fp(offset) };
            Rule { cfa, fp: Saved::BelowCfa(far), ra: return_address, bx: unknown, interrupted: false }
        }
        SP_PAIR | FP_PAIR => {
            let cfa = if kind == SP_PAIR { Cfa::Sp(offset) } else { Cfa::Fp(offset) };
            let (fp, ra) = (Saved::BelowCfa(far + 8), Saved::BelowCfa(far));
            Rule { cfa, fp, ra, bx: unknown, interrupted: false }
        }
        SP_SPLIT | FP_SPLIT | SP_INTERRUPTED | FP_INTERRUPTED => {
            let by_sp = kind == SP_SPLIT || kind == SP_INTERRUPTED;
            let cfa = if by_sp { Cfa::Sp(offset) } else { Cfa::Fp(offset) };
            let interrupted = kind == SP_INTERRUPTED || kind == FP_INTERRUPTED;
            Rule { cfa, fp: first, ra: saved(second, Saved::AtFp), bx: unknown, interrupted }
        }
        SP_DEREF | FP_DEREF | BX_DEREF => {
            let base = match kind {
                SP_DEREF => Base::Sp,
                FP_DEREF => Base::Fp,
                _ => Base::Bx,
            };
            let unused = 32 - DEREF_BITS;
            let offset = ((bits(word, FIGURES, DEREF_BITS) as u32) << unused).cast_signed() >> unused;
            let added = bits(word, FIGURES + DEREF_BITS, ADDED_BITS) as u32 * 8;
            let ra = bits(word, FIGURES + DEREF_BITS + ADDED_BITS, NEAR_SLOT_BITS) as u32 * 8;
            let interrupted = bits(word, FIRST_SLOT - 1, 1) != 0;
            Rule {
                cfa: Cfa::Deref(base, offset * 8, added),
                fp: first,
                ra: Saved::BelowCfa(ra),
                bx,
                interrupted,
            }
        }
        BY_OTHER => {
            let cfa = Cfa::Other(number, short_offset);
            Rule { cfa, fp: first, ra: return_address, bx, interrupted: false }
        }
        RETURN_IN_OTHER => {
            let ra = Saved::Other(number);
            Rule { cfa: Cfa::Sp(short_offset), fp: first, ra, bx, interrupted: false }
        }
        _ => Rule::only(Cfa::Unsupported),
    }
}

#[inline(always)]
const fn bits(word: u64, from: u32, len: u32) -> u64 {
    word >> from & ((1 << len) - 1)
}

#[inline(always)]
const fn saved(slot: u64, elsewhere: Saved) -> Saved {
    match slot {
        0 => Saved::InRegister,
        ELSEWHERE => elsewhere,
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

    const RA: Saved = Saved::BelowCfa(8);

    fn survives(rule: Rule) {
        assert_eq!(rule.fitting(), rule);
        let row = Row::new(0x12_3456, rule);
        assert_eq!((row.rule(), row.place()), (rule, 0x3456));
        assert_eq!((row.bx(), row.interrupted()), (rule.bx, rule.interrupted));
    }

    #[test]
    fn rules_survive_their_encoding() {
        for cfa in [Cfa::Nothing, Cfa::Unsupported, Cfa::Root, Cfa::Signal] {
            survives(Rule::only(cfa));
        }
        survives(Rule::new(Cfa::Plt(11), Saved::InRegister, RA));
        let fps = [Saved::InRegister, Saved::BelowCfa(8), Saved::BelowCfa(16_368), Saved::AtFp];
        let bxs = [Saved::InRegister, Saved::BelowCfa(24), Saved::BelowCfa(16_368), Saved::Unknown];
        let largest = (16 << 20) - 8;
        for fp in fps {
            for bx in bxs {
                let pushed = [Cfa::Sp(8), Cfa::Sp(largest), Cfa::Fp(16), Cfa::Bx(56), Cfa::Other(0, 8)];
                for cfa in pushed {
                    survives(Rule { cfa, fp, ra: RA, bx, interrupted: false });
                }
                survives(Rule { cfa: Cfa::Sp(0), fp, ra: Saved::Other(5), bx, interrupted: false });
                for interrupted in [false, true] {
                    for cfa in [
                        Cfa::Deref(Base::Fp, 0, 24),
                        Cfa::Deref(Base::Sp, 152, 8),
                        Cfa::Deref(Base::Bx, -4096, 0),
                    ] {
                        survives(Rule { cfa, fp, ra: Saved::BelowCfa(16), bx, interrupted });
                    }
                }
            }
            for (ra, interrupted) in [(Saved::InRegister, false), (Saved::BelowCfa(48), false), (RA, true)] {
                survives(Rule { cfa: Cfa::Fp(32), fp, ra, bx: Saved::Unknown, interrupted });
            }
        }
        let far = Rule::new(Cfa::Sp(largest), Saved::BelowCfa(158_000), RA);
        survives(Rule { bx: Saved::Unknown, ..far });
        let pair = Rule::new(Cfa::Sp(largest), Saved::BelowCfa(largest), Saved::BelowCfa(largest - 8));
        survives(Rule { bx: Saved::Unknown, ..pair });
    }

    #[test]
    fn what_does_not_fit_is_unsupported() {
        let cfa = |cfa, fp| Rule::new(cfa, fp, RA).fitting().cfa;
        assert_eq!(cfa(Cfa::Sp(16 << 20), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(cfa(Cfa::Sp(12), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(cfa(Cfa::Other(16, 8), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(cfa(Cfa::Deref(Base::Sp, 4096, 0), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(cfa(Cfa::Deref(Base::Sp, 4, 0), Saved::InRegister), Cfa::Unsupported);
        assert_eq!(cfa(Cfa::Sp(200_008), Saved::BelowCfa(16)), Cfa::Sp(200_008));
        let rule = Rule { bx: Saved::BelowCfa(16_376), ..Rule::new(Cfa::Sp(20_000), Saved::InRegister, RA) };
        assert_eq!(rule.fitting(), Rule { bx: Saved::Unknown, ..rule });
    }

    #[test]
    fn pages_survive_their_encoding() {
        let page = RowPage::new(65_535, 0xff_fffe, 65_537);
        assert_eq!((page.chunk(), page.first(), page.rows()), (65_535, 0xff_fffe, 65_537));
    }
}
