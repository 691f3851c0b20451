//! From a row of call-frame information to a rule.

use gimli::{
    CfaRule, Expression, Reader, ReaderOffset, Register, RegisterRule, UnwindExpression, UnwindSection,
    UnwindTableRow,
};
use profiler_common::unwind::row::{Cfa, Rule, Saved};

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

    /// The rule that this row of call-frame information states.
    pub(super) fn rule<R, S>(self, row: &UnwindTableRow<R::Offset>, section: &S) -> Rule
    where
        R: Reader,
        S: UnwindSection<R>,
    {
        let unsupported = Rule::only(Cfa::Unsupported);
        let return_address = row.register(self.return_address());
        if return_address == Some(RegisterRule::Undefined) {
            return Rule::only(Cfa::Root);
        }
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let Ok(offset) = u32::try_from(*offset) else { return unsupported };
                match *register {
                    register if register == self.sp() => Cfa::Sp(offset),
                    register if register == self.fp() => Cfa::Fp(offset),
                    _ => return unsupported,
                }
            }
            CfaRule::Expression(expression) => match self.cfa_expression(&bytes(expression, section)) {
                Some(cfa) => cfa,
                None => return unsupported,
            },
        };
        let ra = match (return_address, self) {
            (Some(RegisterRule::Offset(offset)), _) => match below_cfa(offset) {
                Some(saved) => saved,
                None => return unsupported,
            },
            (None | Some(RegisterRule::SameValue), Self::Aarch64) => Saved::InRegister,
            _ => return unsupported,
        };
        // No rule means unchanged: the callee must preserve the register.
        let fp = match row.register(self.fp()) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Saved::InRegister,
            Some(RegisterRule::Offset(offset)) => match below_cfa(offset) {
                Some(saved) => saved,
                None => return unsupported,
            },
            Some(RegisterRule::Expression(expression)) if self.is_at_fp(&bytes(&expression, section)) => {
                Saved::AtFp
            }
            _ => return unsupported,
        };
        Rule { cfa, fp, ra }
    }

    fn cfa_expression(self, expression: &[u8]) -> Option<Cfa> {
        if self != Self::X86_64 {
            return None;
        }
        match *expression {
            // What the linker writes for its linkage table: rsp + 8 + ((rip & 15) >= N) << 3.
            [0x77, 8, 0x80, 0, 0x3f, 0x1a, number, 0x2a, 0x33, 0x24, 0x22]
                if (0x30..0x40).contains(&number) =>
            {
                Some(Cfa::Plt(u32::from(number - 0x30)))
            }
            // The word at rbp − n: functions that align their stack. A signed LEB128 of one byte.
            [0x76, offset, 0x06] if offset & 0xc0 == 0x40 => Some(Cfa::AtFp(0x80 - u32::from(offset))),
            _ => None,
        }
    }

    /// Whether this is "where the frame pointer points": rbp + 0.
    fn is_at_fp(self, expression: &[u8]) -> bool {
        self == Self::X86_64 && expression == [0x76, 0]
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
    fn known_expressions_are_recognised() {
        let plt = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(Machine::X86_64.cfa_expression(&plt), Some(Cfa::Plt(11)));
        assert_eq!(Machine::X86_64.cfa_expression(&[0x76, 0x78, 0x06]), Some(Cfa::AtFp(8)));
        assert_eq!(Machine::X86_64.cfa_expression(&[0x76, 0x08, 0x06]), None);
        assert_eq!(Machine::X86_64.cfa_expression(&[]), None);
        assert_eq!(Machine::Aarch64.cfa_expression(&plt), None);
    }

    #[test]
    fn registers_lie_below_the_frame_address() {
        assert_eq!(below_cfa(-16), Some(Saved::BelowCfa(16)));
        assert_eq!((below_cfa(0), below_cfa(8), below_cfa(i64::MIN)), (None, None, None));
    }
}
