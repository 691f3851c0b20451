//! PLTs, instruction by instruction: GNU ld's, gold's, lld's and mold's, with landing pads for indirect branches and against speculation or not.
//!
//! The forms differ in the order of the same few instructions, so these are known and not the forms. An entry begins as a function does, where
//! the one before it ends with a jump. From the first instruction on that is none of them, nothing is known.

use profiler_common::unwind::row::{Cfa, Rule, Saved};

use super::linker_code::{AARCH64_LEAF, Rules, aarch64_pushed, x86_64_at};

/// The rules in a PLT of x86_64.
pub(super) fn x86_64(code: &[u8]) -> Rules {
    /// The caller of an entry has pushed its return address.
    const ENTRY: u32 = 8;
    let mut rules = Vec::new();
    // psABI figure 5.2: entries push a number before they jump to a header that begins so. The entry behind the others that begins so, for
    // descriptors of thread-local variables, is called instead.
    let mut pushed = if code.starts_with(PUSH_WORD) { ENTRY + 8 } else { ENTRY };
    let mut at = 0;
    while let Some((len, effect)) = code.get(at..).and_then(x86_64_instruction) {
        put(&mut rules, at, x86_64_at(pushed));
        at += len;
        match effect {
            Effect::None => {}
            Effect::Push => pushed += 8,
            Effect::Leave => pushed = ENTRY,
        }
    }
    finish(rules, at, code)
}

/// The rules in a PLT of aarch64.
pub(super) fn aarch64(code: &[u8]) -> Rules {
    let mut rules = Vec::new();
    let mut rule = AARCH64_LEAF;
    let (words, _) = code.as_chunks::<4>();
    let known = words.iter().map_while(|word| aarch64_instruction(u32::from_le_bytes(*word)));
    let mut at = 0;
    for then in known {
        put(&mut rules, at, rule);
        at += 4;
        rule = then.unwrap_or(rule);
    }
    finish(rules, at, code)
}

/// What an instruction does to the frame.
#[derive(Clone, Copy)]
enum Effect {
    None,
    /// Pushes a word.
    Push,
    /// Goes elsewhere. An entry may follow, or what an entry does when its function is not resolved yet, which begins with the same frame.
    Leave,
}

/// push word(%rip), without the place of the word.
const PUSH_WORD: &[u8] = &[0xff, 0x35];

/// Length and effect of the instruction that this begins with.
fn x86_64_instruction(code: &[u8]) -> Option<(usize, Effect)> {
    use Effect::{Leave, None as Nothing, Push};

    let (len, effect) = match *code {
        // endbr64
        [0xf3, 0x0f, 0x1e, 0xfa, ..] => (4, Nothing),
        // push word(%rip)
        [0xff, 0x35, ..] => (6, Push),
        // push number
        [0x68, ..] => (5, Push),
        // push %r11
        [0x41, 0x53, ..] => (2, Push),
        // mov number, %r11d
        [0x41, 0xbb, ..] => (6, Nothing),
        // mov word(%rip), %r11
        [0x4c, 0x8b, 0x1d, ..] => (7, Nothing),
        // call; what is called lies in a PLT, too, and returns to no place behind
        [0xe8, ..] => (5, Nothing),
        // mov %r11, (%rsp): replaces the return address that a call in an entry pushed, so that of the entry is the next word
        [0x4c, 0x89, 0x1c, 0x24, ..] => (4, Push),
        // pause; lfence
        [0xf3, 0x90, ..] => (2, Nothing),
        [0x0f, 0xae, 0xe8, ..] => (3, Nothing),
        // jmp *word(%rip); jmp; the same with a prefix for bounds checks; jmp near
        [0xff, 0x25, ..] => (6, Leave),
        [0xf2, 0xff, 0x25, ..] => (7, Leave),
        [0xe9, ..] => (5, Leave),
        [0xf2, 0xe9, ..] => (6, Leave),
        [0xeb, ..] => (2, Leave),
        // ret
        [0xc3, ..] => (1, Leave),
        // int3
        [0xcc, ..] => (1, Nothing),
        _ => (x86_64_nop(code)?, Nothing),
    };
    (len <= code.len()).then_some((len, effect))
}

/// Length of the no-op that this begins with: a byte, or a longer form with an operand that is not used.
fn x86_64_nop(code: &[u8]) -> Option<usize> {
    let prefixes = code.iter().take_while(|byte| matches!(**byte, 0x66 | 0x2e)).count();
    let len = match code.get(prefixes..)? {
        [0x90, ..] => 1,
        [0x0f, 0x1f, 0x00, ..] => 3,
        [0x0f, 0x1f, 0x40, ..] => 4,
        [0x0f, 0x1f, 0x44, ..] => 5,
        [0x0f, 0x1f, 0x80, ..] => 7,
        [0x0f, 0x1f, 0x84, ..] => 8,
        _ => return None,
    };
    Some(prefixes + len)
}

/// The rule behind this instruction of aarch64, if it changes the rule; `None` when it is not known.
fn aarch64_instruction(word: u32) -> Option<Option<Rule>> {
    /// Registers that an entry may use: %x16 and %x17, and in the one for descriptors of thread-local variables %x2 and %x3.
    const SCRATCH: [u32; 4] = [2, 3, 16, 17];
    match word {
        // stp x16, x30, [sp, #-16]!
        0xa9bf_7bf0 => return Some(Some(aarch64_pushed(Saved::InRegister))),
        // stp x2, x3, [sp, #-16]!
        0xa9bf_0fe2 => return Some(Some(Rule { cfa: Cfa::Sp(16), ..AARCH64_LEAF })),
        // nop; bti c; autia1716; autia x17, x16
        0xd503_201f | 0xd503_245f | 0xd503_219f | 0xdac1_1211 => return Some(None),
        // braa x17, x16
        0xd71f_0a30 => return Some(Some(AARCH64_LEAF)),
        _ => {}
    }
    // br; brk, which stands between entries
    if word & 0xffff_fc1f == 0xd61f_0000 || word & 0xffe0_001f == 0xd420_0000 {
        return Some(Some(AARCH64_LEAF));
    }
    // adrp; ldr register, [register, #offset]; add register, register, #number
    let is_known = word & 0x9f00_0000 == 0x9000_0000
        || word & 0xffc0_0000 == 0xf940_0000
        || word & 0xff80_0000 == 0x9100_0000;
    (is_known && SCRATCH.contains(&(word & 0x1f))).then_some(None)
}

/// Adds a rule that holds from this byte on, if it is another than before.
fn put(rules: &mut Rules, at: usize, rule: Rule) {
    if rules.last().is_none_or(|(_, before)| *before != rule) {
        rules.push((at as u64, rule));
    }
}

/// The rules when instructions are known up to this byte.
fn finish(mut rules: Rules, known: usize, code: &[u8]) -> Rules {
    if known < code.len() && !rules.is_empty() {
        put(&mut rules, known, Rule::only(Cfa::Nothing));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction, and how many bytes its entry has pushed before it, with the return address.
    type Instruction = (&'static [u8], u32);

    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const PUSH_WORD: &[u8] = &[0xff, 0x35, 1, 2, 3, 4];
    const PUSH_NUMBER: &[u8] = &[0x68, 1, 0, 0, 0];
    const JMP: &[u8] = &[0xe9, 1, 2, 3, 4];
    const BND_JMP: &[u8] = &[0xf2, 0xe9, 1, 2, 3, 4];
    const JMP_WORD: &[u8] = &[0xff, 0x25, 1, 2, 3, 4];
    const BND_JMP_WORD: &[u8] = &[0xf2, 0xff, 0x25, 1, 2, 3, 4];
    const MOV_WORD_R11: &[u8] = &[0x4c, 0x8b, 0x1d, 1, 2, 3, 4];
    const MOV_NUMBER_R11: &[u8] = &[0x41, 0xbb, 1, 0, 0, 0];
    const CALL: &[u8] = &[0xe8, 1, 2, 3, 4];
    const RET: &[u8] = &[0xc3];
    const INT3: &[u8] = &[0xcc];
    const NOP_2: &[u8] = &[0x66, 0x90];
    const NOP_3: &[u8] = &[0x0f, 0x1f, 0x00];
    const NOP_4: &[u8] = &[0x0f, 0x1f, 0x40, 0x00];
    const NOP_5: &[u8] = &[0x0f, 0x1f, 0x44, 0x00, 0x00];
    const NOP_6: &[u8] = &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00];

    fn bytes(instructions: &[Instruction]) -> Vec<u8> {
        instructions.iter().flat_map(|(bytes, _)| *bytes).copied().collect()
    }

    fn in_force(rules: &Rules, at: usize) -> Rule {
        rules.iter().rev().find(|(from, _)| *from <= at as u64).unwrap().1
    }

    fn is_known(instructions: &[Instruction]) {
        let rules = x86_64(&bytes(instructions));
        let mut at = 0;
        for (number, (bytes, pushed)) in instructions.iter().enumerate() {
            assert_eq!(in_force(&rules, at), x86_64_at(*pushed), "instruction {number}, at byte {at}");
            at += bytes.len();
        }
    }

    #[test]
    fn entries_that_are_resolved_at_their_first_call() {
        // GNU ld, gold and lld, without more; the last entry is for descriptors of thread-local variables.
        is_known(&[
            (PUSH_WORD, 16),
            (JMP_WORD, 24),
            (NOP_4, 8),
            (JMP_WORD, 8),
            (PUSH_NUMBER, 8),
            (JMP, 16),
            (JMP_WORD, 8),
            (PUSH_NUMBER, 8),
            (JMP, 16),
            (ENDBR64, 8),
            (PUSH_WORD, 8),
            (JMP_WORD, 16),
        ]);
        // GNU ld and lld with landing pads: the first half of an entry is in `.plt.sec`.
        is_known(&[
            (PUSH_WORD, 16),
            (JMP_WORD, 24),
            (NOP_4, 8),
            (ENDBR64, 8),
            (PUSH_NUMBER, 8),
            (JMP, 16),
            (NOP_2, 8),
            (ENDBR64, 8),
            (PUSH_NUMBER, 8),
            (JMP, 16),
            (NOP_2, 8),
        ]);
        // GNU ld with bounds checks, as older ones write it with landing pads, too.
        is_known(&[
            (PUSH_WORD, 16),
            (BND_JMP_WORD, 24),
            (NOP_3, 8),
            (PUSH_NUMBER, 8),
            (BND_JMP, 16),
            (NOP_5, 8),
            (ENDBR64, 8),
            (PUSH_NUMBER, 8),
            (BND_JMP, 16),
            (&[0x90], 8),
        ]);
    }

    #[test]
    fn entries_that_only_jump() {
        is_known(&[(JMP_WORD, 8), (NOP_2, 8), (JMP_WORD, 8), (NOP_2, 8)]);
        is_known(&[(BND_JMP_WORD, 8), (&[0x90], 8), (BND_JMP_WORD, 8), (&[0x90], 8)]);
        is_known(&[(ENDBR64, 8), (JMP_WORD, 8), (NOP_6, 8), (ENDBR64, 8), (BND_JMP_WORD, 8), (NOP_5, 8)]);
        // lld, for functions that are chosen when the program starts: there is no header.
        is_known(&[(JMP_WORD, 8), (PUSH_NUMBER, 8), (JMP, 16), (JMP_WORD, 8), (PUSH_NUMBER, 8), (JMP, 16)]);
    }

    #[test]
    fn mold_keeps_the_number_in_a_register() {
        // push %r11
        let header: &[Instruction] = &[(ENDBR64, 8), (&[0x41, 0x53], 8), (PUSH_WORD, 16), (JMP_WORD, 24)];
        let padding: &[Instruction] = &[(INT3, 8); 14];
        // With landing pads, as all entries had once, and without.
        let entries: &[Instruction] = &[
            (ENDBR64, 8),
            (MOV_NUMBER_R11, 8),
            (JMP_WORD, 8),
            (MOV_NUMBER_R11, 8),
            (JMP_WORD, 8),
            (INT3, 8),
            (INT3, 8),
            (INT3, 8),
            (INT3, 8),
            (MOV_NUMBER_R11, 8),
        ];
        is_known(&[header, padding, entries].concat());
    }

    /// mov %r11, (%rsp)
    const REPLACE: &[u8] = &[0x4c, 0x89, 0x1c, 0x24];
    /// pause; lfence; jmp to the pause. The processor comes here only when it guesses where a return leads.
    const TRAP: [&[u8]; 3] = [&[0xf3, 0x90], &[0x0f, 0xae, 0xe8], &[0xeb, 0xf9]];

    #[test]
    fn lld_returns_to_a_function_in_place_of_a_jump() {
        // What the call in the header, and those in entries, lead to, is a function of its own up to where it drops its return address.
        let header: &[Instruction] = &[(PUSH_WORD, 16), (MOV_WORD_R11, 24), (CALL, 24)];
        let trap = TRAP.map(|bytes| (bytes, 24));
        let called: &[Instruction] = &[(INT3, 8), (REPLACE, 8), (RET, 16), (INT3, 8)];
        let entry: &[Instruction] =
            &[(MOV_WORD_R11, 8), (CALL, 8), (JMP, 8), (PUSH_NUMBER, 8), (JMP, 16), (INT3, 8)];
        is_known(&[header, &trap, called, entry, entry].concat());
        // All are resolved when the program starts.
        let trap = TRAP.map(|bytes| (bytes, 8));
        let entry: &[Instruction] = &[(MOV_WORD_R11, 8), (JMP, 8), (INT3, 8)];
        is_known(&[&[(CALL, 8)], &trap[..], called, entry, entry].concat());
    }

    #[test]
    fn behind_an_unknown_instruction_nothing_is_known() {
        let nothing = Rule::only(Cfa::Nothing);
        // push %rax
        let code = bytes(&[(JMP_WORD, 8), (PUSH_NUMBER, 8), (&[0x50], 16), (JMP, 24)]);
        assert_eq!(x86_64(&code), [(0, x86_64_at(8)), (11, nothing)]);
        // Cut off.
        assert_eq!(x86_64(&JMP_WORD[..5]), []);
        assert_eq!(x86_64(&[JMP_WORD, &[0x66]].concat()), [(0, x86_64_at(8)), (6, nothing)]);
        assert_eq!((x86_64(&[]), x86_64(&[0x50])), (vec![], vec![]));
        // mov x0, x1
        assert_eq!(aarch64(&words(&[NOP, 0xaa01_03e0, NOP])), [(0, AARCH64_LEAF), (4, nothing)]);
        assert_eq!(aarch64(&words(&[NOP])[..3]), []);
    }

    const NOP: u32 = 0xd503_201f;
    const BTI_C: u32 = 0xd503_245f;
    /// adrp x16; ldr x17, [x16, #8]; add x16, x16, #8
    const LOAD: [u32; 3] = [0x9000_0010, 0xf940_0611, 0x9100_2210];
    const BR_X17: u32 = 0xd61f_0220;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn aarch64_entries_return_by_the_link_register() {
        let [adrp, ldr, add] = LOAD;
        let pushed = aarch64_pushed(Saved::InRegister);
        // stp x16, x30, [sp, #-16]!
        let push = 0xa9bf_7bf0;
        let header = [push, adrp, ldr, add, BR_X17, NOP, NOP, NOP];
        let plain = words(&[&header[..], &LOAD, &[BR_X17], &LOAD, &[BR_X17]].concat());
        assert_eq!(aarch64(&plain), [(0, AARCH64_LEAF), (4, pushed), (20, AARCH64_LEAF)]);
        // Landing pads, and signed addresses: autia1716.
        let header = [BTI_C, push, adrp, ldr, add, BR_X17, NOP, NOP];
        let entry = [BTI_C, adrp, ldr, add, 0xd503_219f, BR_X17];
        let signed = words(&[&header[..], &entry, &entry].concat());
        assert_eq!(aarch64(&signed), [(0, AARCH64_LEAF), (8, pushed), (24, AARCH64_LEAF)]);
        // mold: brk between entries.
        let brk = 0xd420_7d00;
        let mold = words(&[push, adrp, ldr, add, BR_X17, brk, brk, brk, adrp, ldr, BR_X17, brk]);
        assert_eq!(aarch64(&mold), [(0, AARCH64_LEAF), (4, pushed), (20, AARCH64_LEAF)]);
    }

    #[test]
    fn the_aarch64_entry_for_thread_local_variables_pushes_no_link_register() {
        // stp x2, x3, [sp, #-16]!; adrp x2; adrp x3; ldr x2, [x2]; add x3, x3, #8; br x2; nop; nop
        let last = [0xa9bf_0fe2, 0x9000_0002, 0x9000_0003, 0xf940_0042, 0x9100_2063, 0xd61f_0040, NOP, NOP];
        let code = words(&[&LOAD[..], &[BR_X17], &last].concat());
        let pushed = Rule { cfa: Cfa::Sp(16), ..AARCH64_LEAF };
        assert_eq!(aarch64(&code), [(0, AARCH64_LEAF), (20, pushed), (40, AARCH64_LEAF)]);
    }
}
