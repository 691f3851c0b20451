//! From a row of call-frame information to a rule.

use gimli::{
    CfaRule, EndianSlice, Expression, LittleEndian, Reader, ReaderOffset, Register, RegisterRule,
    UnwindExpression, UnwindSection, UnwindTableRow,
};
use profiler_common::unwind::row::{Base, Cfa, Rule, Saved};
use profiler_common::unwind::step::SignalFrame;

/// A machine, by its registers' numbers in call-frame information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    /// psABI x86-64, figure 3.36.
    X86_64,
    /// AADWARF64 §4.1.
    Aarch64,
}

impl Machine {
    const fn sp(self) -> Register {
        Register(match self {
            Self::X86_64 => 7,
            Self::Aarch64 => 31,
        })
    }

    const fn fp(self) -> Register {
        Register(match self {
            Self::X86_64 => 6,
            Self::Aarch64 => 29,
        })
    }

    const fn return_address(self) -> Register {
        Register(match self {
            Self::X86_64 => 16,
            Self::Aarch64 => 30,
        })
    }

    /// The rule that this row of call-frame information states. `interrupted` says whether its function is marked as a signal frame.
    pub(super) fn rule<R, S>(self, row: &UnwindTableRow<R::Offset>, interrupted: bool, section: &S) -> Rule
    where
        R: Reader,
        S: UnwindSection<R>,
    {
        self.stated(row, interrupted, section).unwrap_or(Rule::only(Cfa::Unsupported))
    }

    fn stated<R, S>(self, row: &UnwindTableRow<R::Offset>, interrupted: bool, section: &S) -> Option<Rule>
    where
        R: Reader,
        S: UnwindSection<R>,
    {
        let return_address = row.register(self.return_address());
        if return_address == Some(RegisterRule::Undefined) {
            return Some(Rule::only(Cfa::Root));
        }
        // The frame record at x29 of the kernel's trampoline lacks what its `ucontext` has (`arch/arm64/kernel/vdso/sigreturn.S`).
        if interrupted && self == Self::Aarch64 && row.register(self.fp()) == Some(RegisterRule::Offset(0)) {
            return Some(Rule::only(Cfa::Signal));
        }
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.plus(*register, u32::try_from(*offset).ok()?)?
            }
            CfaRule::Expression(expression) => {
                let expression = bytes(expression, section);
                if interrupted && self.is_kernel_signal_frame(&expression) {
                    return Some(Rule::only(Cfa::Signal));
                }
                self.cfa_expression(&expression)?
            }
        };
        let ra = match (return_address, self) {
            (Some(RegisterRule::Offset(offset)), _) => below_cfa(offset)?,
            (Some(RegisterRule::Register(register)), Self::X86_64) => Saved::Other(place(register)?),
            (None | Some(RegisterRule::SameValue), Self::Aarch64) => Saved::InRegister,
            _ => return None,
        };
        // No rule means unchanged: the callee must preserve the register.
        let fp = match row.register(self.fp()) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Saved::InRegister,
            Some(RegisterRule::Offset(offset)) => below_cfa(offset)?,
            Some(RegisterRule::Expression(expression)) if self.is_at_fp(&bytes(&expression, section)) => {
                Saved::AtFp
            }
            _ => return None,
        };
        let bx = match (self, row.register(RBX)) {
            (Self::Aarch64, _) | (_, None | Some(RegisterRule::SameValue)) => Saved::InRegister,
            (_, Some(RegisterRule::Offset(offset))) => below_cfa(offset).unwrap_or(Saved::Unknown),
            _ => Saved::Unknown,
        };
        Some(Rule { cfa, fp, ra, bx, interrupted })
    }

    /// A register plus an offset as CFA.
    fn plus(self, register: Register, offset: u32) -> Option<Cfa> {
        match self.base(register) {
            Some(Base::Sp) => Some(Cfa::Sp(offset)),
            Some(Base::Fp) => Some(Cfa::Fp(offset)),
            Some(Base::Bx) => Some(Cfa::Bx(offset)),
            None if self == Self::X86_64 => Some(Cfa::Other(place(register)?, offset)),
            None => None,
        }
    }

    /// The register as one that a walk carries.
    fn base(self, register: Register) -> Option<Base> {
        match register {
            _ if register == self.sp() => Some(Base::Sp),
            _ if register == self.fp() => Some(Base::Fp),
            RBX if self == Self::X86_64 => Some(Base::Bx),
            _ => None,
        }
    }

    /// The forms of a CFA that are in use: what linkers write for the PLT, a register plus an offset, and the word at one, plus another.
    fn cfa_expression(self, expression: &[u8]) -> Option<Cfa> {
        // rsp + 8 + ((rip & 15) >= N) << 3.
        if self == Self::X86_64
            && let [0x77, 8, 0x80, 0, 0x3f, 0x1a, number @ 0x30..0x40, 0x2a, 0x33, 0x24, 0x22] = *expression
        {
            return Some(Cfa::Plt(u32::from(number - 0x30)));
        }
        let (register, offset, rest) = breg(expression)?;
        match rest {
            [DEREF, added @ ..] => {
                let offset = i32::try_from(offset).ok()?;
                Some(Cfa::Deref(self.base(register)?, offset, plus_constant(added)?))
            }
            added => {
                let offset = offset.checked_add(plus_constant(added)?.into())?;
                self.plus(register, u32::try_from(offset).ok()?)
            }
        }
    }

    /// Whether this is the CFA of a frame that the kernel made for a signal handler: the stack pointer in its `ucontext`.
    ///
    /// glibc's `sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c`: the word at rsp + 160.
    fn is_kernel_signal_frame(self, expression: &[u8]) -> bool {
        self == Self::X86_64
            && breg(expression).is_some_and(|(register, offset, rest)| {
                (register, offset) == (self.sp(), SignalFrame::X86_64.sp.cast_signed()) && *rest == [DEREF]
            })
    }

    /// Whether this is "where the frame pointer points": rbp + 0.
    fn is_at_fp(self, expression: &[u8]) -> bool {
        self == Self::X86_64 && breg(expression) == Some((self.fp(), 0, &[]))
    }
}

/// psABI x86-64, figure 3.36.
const RBX: Register = Register(3);

/// Where `struct pt_regs` of x86_64 (`arch/x86/include/asm/ptrace.h`) keeps a general register, in words.
fn place(register: Register) -> Option<u8> {
    const PLACES: [u8; 16] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0];
    PLACES.get(usize::from(register.0)).copied()
}

/// DW_OP_deref (DWARF 5 §7.7.1).
const DEREF: u8 = 0x06;

/// The register and the offset that DW_OP_breg0 to DW_OP_breg31 name, and what follows.
fn breg(expression: &[u8]) -> Option<(Register, i64, &[u8])> {
    let (&operation @ 0x70..=0x8f, rest) = expression.split_first()? else { return None };
    let mut rest = EndianSlice::new(rest, LittleEndian);
    let offset = rest.read_sleb128().ok()?;
    Some((Register((operation - 0x70).into()), offset, rest.slice()))
}

/// The constant that the rest of an expression adds: nothing, or DW_OP_plus_uconst.
fn plus_constant(expression: &[u8]) -> Option<u32> {
    match expression {
        [] => Some(0),
        [0x23, rest @ ..] => {
            let mut reader = EndianSlice::new(rest, LittleEndian);
            let constant = reader.read_uleb128().ok()?;
            reader.is_empty().then_some(u32::try_from(constant).ok()?)
        }
        _ => None,
    }
}

fn below_cfa(offset: i64) -> Option<Saved> {
    let below = u32::try_from(offset.checked_neg()?).ok()?;
    (below > 0).then_some(Saved::BelowCfa(below))
}

/// The bytes of an expression; none when it cannot be read.
fn bytes<R, S>(expression: &UnwindExpression<R::Offset>, section: &S) -> Vec<u8>
where
    R: Reader,
    S: UnwindSection<R>,
{
    /// The longest expression that is recognised.
    const LONGEST: usize = 16;
    let Ok(Expression(reader)) = expression.get(section) else { return Vec::new() };
    if reader.len().into_u64() > LONGEST as u64 {
        return Vec::new();
    }
    reader.to_slice().map(std::borrow::Cow::into_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_in_use_are_recognised() {
        let cfa = |expression: &[u8]| Machine::X86_64.cfa_expression(expression);
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(cfa(&plt), Some(Cfa::Plt(11)));
        assert_eq!(cfa(&[0x76, 0x78, 0x06]), Some(Cfa::Deref(Base::Fp, -8, 0)));
        // A coroutine's first frame: the word at rbp, plus 24.
        assert_eq!(cfa(&[0x76, 0, 0x06, 0x23, 24]), Some(Cfa::Deref(Base::Fp, 0, 24)));
        // Cryptography by hand: the word at rsp + 152, plus 8.
        assert_eq!(cfa(&[0x77, 0x98, 1, 0x06, 0x23, 8]), Some(Cfa::Deref(Base::Sp, 152, 8)));
        assert_eq!(cfa(&[0x73, 16, 0x23, 8]), Some(Cfa::Bx(24)));
        assert_eq!(cfa(&[0x7c, 16, 0x06]), None, "r12 is not carried");
        for unknown in [&[][..], &[0x76], &[0x76, 0, 0x06, 0x06], &[0x76, 0, 0x23], &[0x76, 0, 0x23, 8, 0x06]]
        {
            assert_eq!(cfa(unknown), None, "{unknown:x?}");
        }
        assert_eq!(Machine::Aarch64.cfa_expression(&plt), None);
    }

    #[test]
    fn frames_of_the_kernel_are_told_from_others_marked_alike() {
        assert!(Machine::X86_64.is_kernel_signal_frame(&[0x77, 0xa0, 1, 0x06]));
        assert!(!Machine::X86_64.is_kernel_signal_frame(&[0x76, 0, 0x06, 0x23, 24]));
    }

    #[test]
    fn registers_lie_below_the_frame_address() {
        assert_eq!(below_cfa(-16), Some(Saved::BelowCfa(16)));
        assert_eq!((below_cfa(0), below_cfa(8), below_cfa(i64::MIN)), (None, None, None));
    }
}
