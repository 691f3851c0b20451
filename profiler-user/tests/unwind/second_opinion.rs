//! The second opinion: call-frame information looked up and evaluated in full, by gimli.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, EvaluationResult, LittleEndian,
    Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection as _, Value, X86_64,
};
use profiler_common::unwind::step::OtherRegisters as _;
use profiler_common::unwind::{Kept, Registers, UserMemory as _};

use crate::elf_image::ElfImage;
use crate::walker::{Memory, Others};

/// What call-frame information says of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// No function has this address.
    NoFunction,
    /// There is none.
    Root,
    /// Its registers, and whether they take more to tell than the registers that a walk carries, and offsets.
    Caller { registers: Registers, is_special: bool },
    /// It takes a register that is not known.
    OtherRegister,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

pub(crate) struct CallFrames<'a> {
    section: EhFrame<Slice<'a>>,
    index: gimli::ParsedEhFrameHdr<Slice<'a>>,
    bases: BaseAddresses,
    context: Box<UnwindContext<usize>>,
}

impl<'a> CallFrames<'a> {
    pub(crate) fn new(image: &'a ElfImage) -> Self {
        let bases = BaseAddresses::default()
            .set_eh_frame(image.eh_frame.addresses.start)
            .set_eh_frame_hdr(image.eh_frame_hdr.addresses.start);
        let mut section = EhFrame::new(&image.eh_frame.data, LittleEndian);
        section.set_address_size(8);
        let index = EhFrameHdr::new(&image.eh_frame_hdr.data, LittleEndian).parse(&bases, 8);
        Self { section, index: index.expect("a sound index"), bases, context: Box::default() }
    }

    /// Where the functions begin.
    pub(crate) fn functions(&self) -> Vec<u64> {
        let table = self.index.table().expect("a table");
        let mut functions = table.iter(&self.bases);
        let mut addresses = Vec::new();
        while let Some((address, _)) = functions.next().expect("a sound table") {
            addresses.push(address.pointer());
        }
        addresses
    }

    /// The caller, when the code at this address of the object runs with these registers.
    pub(crate) fn caller(&mut self, address: u64, registers: &Registers) -> Account {
        let Self { section, index, bases, context } = self;
        let table = index.table().expect("a table");
        let found = table.lookup(address, bases).and_then(|pointer| table.pointer_to_offset(pointer));
        let function =
            found.and_then(|offset| section.fde_from_offset(bases, offset, EhFrame::cie_from_offset));
        let Ok(function) = function else { return Account::NoFunction };
        if !function.contains(address) {
            return Account::NoFunction;
        }
        let encoding = function.cie().encoding();
        let row = function.unwind_info_for_address(section, bases, context, address).expect("a row");
        let evaluation = Evaluation { section, encoding, registers };
        evaluation.caller(row.cfa(), |register| row.register(register)).unwrap_or(Account::OtherRegister)
    }
}

/// The registers in the order of `struct pt_regs` (`arch/x86/include/asm/ptrace.h`).
const PT_REGS: [Register; 15] = [
    X86_64::R15,
    X86_64::R14,
    X86_64::R13,
    X86_64::R12,
    X86_64::RBP,
    X86_64::RBX,
    X86_64::R11,
    X86_64::R10,
    X86_64::R9,
    X86_64::R8,
    X86_64::RAX,
    X86_64::RCX,
    X86_64::RDX,
    X86_64::RSI,
    X86_64::RDI,
];

struct Evaluation<'a> {
    section: &'a EhFrame<Slice<'a>>,
    encoding: Encoding,
    registers: &'a Registers,
}

impl Evaluation<'_> {
    fn caller(
        &self,
        cfa: &CfaRule<usize>,
        rule: impl Fn(Register) -> Option<RegisterRule<usize>>,
    ) -> Option<Account> {
        if rule(X86_64::RA) == Some(RegisterRule::Undefined) {
            return Some(Account::Root);
        }
        let is_expression = |register| matches!(rule(register), Some(RegisterRule::Expression(_)));
        let carried = [X86_64::RSP, X86_64::RBP, X86_64::RBX];
        let is_special = !matches!(cfa, CfaRule::RegisterAndOffset { register, .. } if carried.contains(register))
            || matches!(rule(X86_64::RA), Some(RegisterRule::Register(_)))
            || is_expression(X86_64::RA)
            || is_expression(X86_64::RBP)
            || is_expression(X86_64::RSP);
        let cfa = match cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None)?,
        };
        let restored = |register| self.restore(rule(register), register, cfa);
        let pc = restored(X86_64::RA)?;
        let sp = if is_expression(X86_64::RSP) { restored(X86_64::RSP)? } else { cfa };
        let bx = restored(X86_64::RBX).map_or(Kept::Unknown, Kept::Value);
        let registers = Registers { pc, sp, fp: restored(X86_64::RBP)?, lr: 0, bx };
        Some(Account::Caller { registers, is_special })
    }

    fn restore(&self, rule: Option<RegisterRule<usize>>, register: Register, cfa: u64) -> Option<u64> {
        match rule {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => self.register(register),
            Some(RegisterRule::Offset(offset)) => Memory.read(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Expression(expression)) => Memory.read(self.evaluate(&expression, Some(cfa))?),
            Some(RegisterRule::Register(other)) => self.register(other),
            other => panic!("{other:?}"),
        }
    }

    fn register(&self, register: Register) -> Option<u64> {
        match register {
            X86_64::RA => Some(self.registers.pc),
            X86_64::RSP => Some(self.registers.sp),
            X86_64::RBP => Some(self.registers.fp),
            X86_64::RBX => self.registers.bx.value(&mut Memory).ok(),
            other => Others.get(PT_REGS.iter().position(|register| *register == other)? as u8),
        }
    }

    /// The value of an expression; `initial` is what its stack begins with (DWARF 5 §6.4.2.3).
    fn evaluate(&self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        let expression = expression.get(self.section).expect("the bytes of an expression");
        let mut evaluation = expression.evaluation(self.encoding);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate().expect("a sound expression");
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?))
                }
                EvaluationResult::RequiresMemory { address, .. } => {
                    evaluation.resume_with_memory(Value::Generic(Memory.read(address)?))
                }
                other => panic!("{other:?}"),
            }
            .expect("a sound expression");
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address),
            ref other => panic!("{other:?}"),
        }
    }
}
