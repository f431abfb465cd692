//! Writes machine code for x86-64 with AVX2.
//!
//! [`encoding`](super::encoding) has the bytes of most instructions. An instruction that cannot be encoded makes
//! [`Assembler::finish`] return `None`, so that the kernel is interpreted.

use super::encoding::{self, Operand};
use iced_x86::{Code, Instruction, Register};
use std::collections::HashSet;

/// The instruction that does nothing.
const NOP: u8 = 0x90;
/// The first byte of an unconditional jump by a distance of 32 bits.
const JUMP: u8 = 0xe9;
/// The second byte of a conditional jump by a distance of 32 bits, without the condition.
const JUMP_WHEN: u8 = 0x80;
/// The prefix of an instruction that changes memory in one step for all host threads.
const LOCK: u8 = 0xf0;

/// A place in the code, known once it is [bound](Assembler::bind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Label(usize);

/// A vector register of 256 bits, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ymm(pub(super) u8);

/// A general register, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gpr(pub(super) u8);

impl Ymm {
    pub(super) fn whole(self) -> Operand {
        Operand::Whole(self)
    }

    pub(super) fn low(self) -> Operand {
        Operand::Low(self)
    }
}

impl Gpr {
    pub(super) const AX: Gpr = Gpr(0);
    pub(super) const CX: Gpr = Gpr(1);
    pub(super) const DX: Gpr = Gpr(2);
    pub(super) const BX: Gpr = Gpr(3);
    pub(super) const SP: Gpr = Gpr(4);
    pub(super) const BP: Gpr = Gpr(5);
    pub(super) const SI: Gpr = Gpr(6);
    pub(super) const DI: Gpr = Gpr(7);

    pub(super) fn of(self, width: Width) -> Operand {
        Operand::Word(width, self)
    }
}

/// The width of an operation on general registers, or of the elements of a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Bits32,
    Bits64,
}

impl Width {
    /// Returns the number of bytes.
    pub(super) fn bytes(self) -> u32 {
        match self {
            Width::Bits32 => 4,
            Width::Bits64 => 8,
        }
    }
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mem {
    pub(super) base: Gpr,
    pub(super) index: Option<Gpr>,
    pub(super) offset: i32,
}

impl Mem {
    /// Returns the place `offset` bytes after the address in a register.
    pub(super) fn at(base: Gpr, offset: i32) -> Self {
        Mem {
            base,
            index: None,
            offset,
        }
    }

    /// Returns the place `bytes` bytes further on.
    pub(super) fn plus(self, bytes: i32) -> Self {
        Mem {
            offset: self.offset + bytes,
            ..self
        }
    }

    pub(super) fn operand(self) -> Operand {
        Operand::Mem(self)
    }
}

/// A source operand of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Ymm(Ymm),
    Mem(Mem),
}

impl Source {
    pub(super) fn whole(self) -> Operand {
        match self {
            Source::Ymm(ymm) => ymm.whole(),
            Source::Mem(mem) => mem.operand(),
        }
    }

    pub(super) fn low(self) -> Operand {
        match self {
            Source::Ymm(ymm) => ymm.low(),
            Source::Mem(mem) => mem.operand(),
        }
    }
}

/// A source operand of an instruction on general registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Gpr(Gpr),
    Mem(Mem),
    /// A number, extended by its sign.
    Imm(i32),
}

/// Operations with two operands. They change the first operand, or compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Cmp,
    Test,
    Mov,
    Imul,
}

/// Shifts by a constant distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    Left,
    Right,
    RightSigned,
}

/// The condition of a jump, of a copy, or of [`Assembler::all_when`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Equal,
    NotEqual,
    Below,
    AboveOrEqual,
    BelowOrEqual,
    Above,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
    Overflow,
    NoOverflow,
}

impl When {
    /// Returns the condition that holds if this one does not.
    pub(super) fn opposite(self) -> When {
        match self {
            When::Equal => When::NotEqual,
            When::NotEqual => When::Equal,
            When::Below => When::AboveOrEqual,
            When::AboveOrEqual => When::Below,
            When::BelowOrEqual => When::Above,
            When::Above => When::BelowOrEqual,
            When::Less => When::GreaterOrEqual,
            When::GreaterOrEqual => When::Less,
            When::LessOrEqual => When::Greater,
            When::Greater => When::LessOrEqual,
            When::Overflow => When::NoOverflow,
            When::NoOverflow => When::Overflow,
        }
    }

    /// Returns the number of the condition in machine code.
    fn number(self) -> u8 {
        match self {
            When::Overflow => 0,
            When::NoOverflow => 1,
            When::Below => 2,
            When::AboveOrEqual => 3,
            When::Equal => 4,
            When::NotEqual => 5,
            When::BelowOrEqual => 6,
            When::Above => 7,
            When::Less => 12,
            When::GreaterOrEqual => 13,
            When::LessOrEqual => 14,
            When::Greater => 15,
        }
    }
}

/// Writes machine code.
pub(super) struct Assembler {
    code: Vec<u8>,
    labels: Vec<Option<usize>>,
    /// The end of each jump and each [`address_of`](Self::address_of), and its target. The distance to the target is in
    /// the four bytes before the end.
    jumps: Vec<(usize, Label)>,
    /// Labels of [`jump_always`](Self::jump_always).
    always: HashSet<Label>,
    failed: bool,
    /// True if an instruction needed more registers than there were.
    short: bool,
}

impl Assembler {
    pub(super) fn new() -> Self {
        Assembler {
            code: Vec::new(),
            labels: Vec::new(),
            jumps: Vec::new(),
            always: HashSet::new(),
            failed: false,
            short: false,
        }
    }

    /// Returns the code and the offsets of the labels. Returns `None` if an instruction has no encoding or needed too
    /// many registers, if a label is not bound, or if a jump is too long.
    pub(super) fn finish(mut self) -> Option<(Vec<u8>, Vec<usize>)> {
        let mut code = std::mem::take(&mut self.code);
        let mut labels = Vec::with_capacity(self.labels.len());
        for label in &self.labels {
            labels.push((*label)?);
        }
        for (end, to) in &self.jumps {
            // A conditional jump begins with two bytes, an unconditional one with one.
            if self.always.contains(to) && code[end - 5] & 0xf0 == JUMP_WHEN {
                (code[end - 6], code[end - 5]) = (NOP, JUMP);
            }
            let distance = i32::try_from(labels[to.0] as i64 - *end as i64).ok()?;
            code[end - 4..*end].copy_from_slice(&distance.to_le_bytes());
        }
        // If registers ran short, an instruction may have got one that it cannot encode.
        debug_assert!(!self.failed || self.short, "an instruction has no encoding");
        (!self.failed && !self.short).then_some((code, labels))
    }

    /// Returns the offset of a label in the code. `labels` are the offsets that [`finish`](Self::finish) returned.
    pub(super) fn offset(labels: &[usize], label: Label) -> usize {
        labels[label.0]
    }

    /// Adds an instruction.
    pub(super) fn push(&mut self, code: Code, operands: &[Operand]) {
        match encoding::bytes_of(code, operands) {
            Some(bytes) => bytes.add_to(&mut self.code),
            None => self.push_rare(encoding::instruction(code, operands)),
        }
    }

    /// Adds an instruction that has no [form](encoding), so that iced-x86 encodes it.
    fn push_rare(&mut self, instruction: Option<Instruction>) {
        let at = self.code.len() as u64;
        match instruction.and_then(|instruction| encoding::encoded_at(&instruction, at)) {
            Some(bytes) => self.code.extend(bytes),
            None => self.failed = true,
        }
    }

    /// Records that an instruction needed more registers than there were: [`finish`](Self::finish) returns `None`.
    pub(super) fn run_short(&mut self) {
        self.short = true;
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Binds a label to the place of another one, which is bound.
    pub(super) fn bind_to(&mut self, label: Label, other: Label) {
        self.labels[label.0] = self.labels[other.0];
    }

    /// Returns the number of bytes of the code up to here.
    pub(super) fn length(&self) -> usize {
        self.code.len()
    }

    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.code.extend_from_slice(&[JUMP, 0, 0, 0, 0]);
        self.jumps.push((self.code.len(), to));
    }

    /// Makes all conditional jumps to a label unconditional.
    pub(super) fn jump_always(&mut self, to: Label) {
        self.always.insert(to);
    }

    pub(super) fn jump_when(&mut self, when: When, to: Label) {
        self.code
            .extend_from_slice(&[0x0f, JUMP_WHEN | when.number(), 0, 0, 0, 0]);
        self.jumps.push((self.code.len(), to));
    }

    pub(super) fn jump_to_address(&mut self, address: Gpr) {
        self.push(Code::Jmp_rm64, &[address.of(Width::Bits64)]);
    }

    pub(super) fn jump_to_place(&mut self, place: Mem) {
        self.push(Code::Jmp_rm64, &[place.operand()]);
    }

    /// Sets a register to the address of a label.
    pub(super) fn address_of(&mut self, d: Gpr, label: Label) {
        // The distance is written last, as for jumps.
        self.code
            .extend_from_slice(&[0x48 | d.0 >> 3 << 2, 0x8d, (d.0 & 7) << 3 | 5, 0, 0, 0, 0]);
        self.jumps.push((self.code.len(), label));
    }

    pub(super) fn call(&mut self, function: Mem) {
        self.push(Code::Call_rm64, &[function.operand()]);
    }

    pub(super) fn ret(&mut self) {
        self.code.push(0xc3);
    }

    pub(super) fn vzeroupper(&mut self) {
        self.code.extend_from_slice(&[0xc5, 0xf8, 0x77]);
    }

    pub(super) fn push_register(&mut self, register: Gpr) {
        self.push(Code::Push_r64, &[register.of(Width::Bits64)]);
    }

    pub(super) fn pop_register(&mut self, register: Gpr) {
        self.push(Code::Pop_r64, &[register.of(Width::Bits64)]);
    }

    /// Adds an operation on general registers.
    pub(super) fn alu(&mut self, alu: Alu, width: Width, d: Gpr, source: Word) {
        let wide = width == Width::Bits64;
        let to = d.of(width);
        match source {
            Word::Imm(number) => {
                if let (Some(code), Ok(_)) = (Self::short_code(alu, wide), i8::try_from(number)) {
                    return self.push(code, &[to, Operand::Number(number)]);
                }
                let code = match (alu, wide) {
                    (Alu::Add, false) => Code::Add_rm32_imm32,
                    (Alu::Add, true) => Code::Add_rm64_imm32,
                    (Alu::Sub, false) => Code::Sub_rm32_imm32,
                    (Alu::Sub, true) => Code::Sub_rm64_imm32,
                    (Alu::And, false) => Code::And_rm32_imm32,
                    (Alu::And, true) => Code::And_rm64_imm32,
                    (Alu::Or, false) => Code::Or_rm32_imm32,
                    (Alu::Or, true) => Code::Or_rm64_imm32,
                    (Alu::Xor, false) => Code::Xor_rm32_imm32,
                    (Alu::Xor, true) => Code::Xor_rm64_imm32,
                    (Alu::Cmp, false) => Code::Cmp_rm32_imm32,
                    (Alu::Cmp, true) => Code::Cmp_rm64_imm32,
                    (Alu::Test, false) => Code::Test_rm32_imm32,
                    (Alu::Test, true) => Code::Test_rm64_imm32,
                    (Alu::Mov, false) => return self.move_number(d, number),
                    (Alu::Mov, true) => Code::Mov_rm64_imm32,
                    (Alu::Imul, _) => return self.multiply(width, d, Word::Gpr(d), number),
                };
                self.push(code, &[to, Operand::Number(number)]);
            }
            Word::Gpr(source) => {
                let code = Self::alu_code(alu, wide);
                let (to, from) = (to, source.of(width));
                self.push(code, &[to, from]);
            }
            Word::Mem(source) if alu == Alu::Test => {
                let code = if wide { Code::Test_rm64_r64 } else { Code::Test_rm32_r32 };
                self.push(code, &[source.operand(), to]);
            }
            Word::Mem(source) => self.push(Self::alu_code(alu, wide), &[to, source.operand()]),
        }
    }

    /// Returns the instruction with a number of 8 bits, which is extended by its sign; `None` if there is none.
    fn short_code(alu: Alu, wide: bool) -> Option<Code> {
        Some(match (alu, wide) {
            (Alu::Add, false) => Code::Add_rm32_imm8,
            (Alu::Add, true) => Code::Add_rm64_imm8,
            (Alu::Sub, false) => Code::Sub_rm32_imm8,
            (Alu::Sub, true) => Code::Sub_rm64_imm8,
            (Alu::And, false) => Code::And_rm32_imm8,
            (Alu::And, true) => Code::And_rm64_imm8,
            (Alu::Or, false) => Code::Or_rm32_imm8,
            (Alu::Or, true) => Code::Or_rm64_imm8,
            (Alu::Xor, false) => Code::Xor_rm32_imm8,
            (Alu::Xor, true) => Code::Xor_rm64_imm8,
            (Alu::Cmp, false) => Code::Cmp_rm32_imm8,
            (Alu::Cmp, true) => Code::Cmp_rm64_imm8,
            (Alu::Test | Alu::Mov | Alu::Imul, _) => return None,
        })
    }

    fn alu_code(alu: Alu, wide: bool) -> Code {
        match (alu, wide) {
            (Alu::Add, false) => Code::Add_r32_rm32,
            (Alu::Add, true) => Code::Add_r64_rm64,
            (Alu::Sub, false) => Code::Sub_r32_rm32,
            (Alu::Sub, true) => Code::Sub_r64_rm64,
            (Alu::And, false) => Code::And_r32_rm32,
            (Alu::And, true) => Code::And_r64_rm64,
            (Alu::Or, false) => Code::Or_r32_rm32,
            (Alu::Or, true) => Code::Or_r64_rm64,
            (Alu::Xor, false) => Code::Xor_r32_rm32,
            (Alu::Xor, true) => Code::Xor_r64_rm64,
            (Alu::Cmp, false) => Code::Cmp_r32_rm32,
            (Alu::Cmp, true) => Code::Cmp_r64_rm64,
            (Alu::Test, false) => Code::Test_rm32_r32,
            (Alu::Test, true) => Code::Test_rm64_r64,
            (Alu::Mov, false) => Code::Mov_r32_rm32,
            (Alu::Mov, true) => Code::Mov_r64_rm64,
            (Alu::Imul, false) => Code::Imul_r32_rm32,
            (Alu::Imul, true) => Code::Imul_r64_rm64,
        }
    }

    /// Sets a register to the product of a register or memory and a number.
    pub(super) fn multiply(&mut self, width: Width, d: Gpr, source: Word, number: i32) {
        let wide = width == Width::Bits64;
        let code = if wide {
            Code::Imul_r64_rm64_imm32
        } else {
            Code::Imul_r32_rm32_imm32
        };
        match source {
            Word::Gpr(source) => self.push(code, &[d.of(width), source.of(width), Operand::Number(number)]),
            Word::Mem(source) => self.push(code, &[d.of(width), source.operand(), Operand::Number(number)]),
            Word::Imm(_) => self.failed = true,
        }
    }

    /// Sets a register to a constant of 64 bits.
    pub(super) fn constant(&mut self, d: Gpr, bits: u64) {
        if let Ok(bits) = u32::try_from(bits) {
            self.move_number(d, bits.cast_signed());
        } else if let Ok(number) = i32::try_from(bits.cast_signed()) {
            self.alu(Alu::Mov, Width::Bits64, d, Word::Imm(number));
        } else {
            self.code.extend_from_slice(&[0x48 | d.0 >> 3, 0xb8 | d.0 & 7]);
            self.code.extend_from_slice(&bits.to_le_bytes());
        }
    }

    /// Sets the lower half of a register to a number, and the upper half to zero.
    fn move_number(&mut self, d: Gpr, number: i32) {
        if d.0 >= 8 {
            self.code.push(0x41);
        }
        self.code.push(0xb8 | d.0 & 7);
        self.code.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn shift(&mut self, shift: Shift, width: Width, d: Gpr, distance: u32) {
        let code = match (shift, width) {
            (Shift::Left, Width::Bits32) => Code::Shl_rm32_imm8,
            (Shift::Left, Width::Bits64) => Code::Shl_rm64_imm8,
            (Shift::Right, Width::Bits32) => Code::Shr_rm32_imm8,
            (Shift::Right, Width::Bits64) => Code::Shr_rm64_imm8,
            (Shift::RightSigned, Width::Bits32) => Code::Sar_rm32_imm8,
            (Shift::RightSigned, Width::Bits64) => Code::Sar_rm64_imm8,
        };
        self.push(code, &[d.of(width), Operand::Number(distance.cast_signed())]);
    }

    /// Sets a register to the sum of the address's parts.
    pub(super) fn lea(&mut self, width: Width, d: Gpr, mem: Mem) {
        let code = if width == Width::Bits64 {
            Code::Lea_r64_m
        } else {
            Code::Lea_r32_m
        };
        self.push(code, &[d.of(width), mem.operand()]);
    }

    /// Sign-extends 32 bits to 64.
    pub(super) fn extend_signed(&mut self, d: Gpr, source: Word) {
        let d = d.of(Width::Bits64);
        match source {
            Word::Gpr(source) => self.push(Code::Movsxd_r64_rm32, &[d, source.of(Width::Bits32)]),
            Word::Mem(source) => self.push(Code::Movsxd_r64_rm32, &[d, source.operand()]),
            Word::Imm(_) => self.failed = true,
        }
    }

    /// Loads 1, 2 or 4 bytes, extended to 32 bits.
    pub(super) fn load_narrow(&mut self, bytes: u32, signed: bool, d: Gpr, from: Mem) {
        let code = match (bytes, signed) {
            (1, false) => Code::Movzx_r32_rm8,
            (1, true) => Code::Movsx_r32_rm8,
            (4, _) => Code::Mov_r32_rm32,
            (_, false) => Code::Movzx_r32_rm16,
            (_, true) => Code::Movsx_r32_rm16,
        };
        self.push(code, &[d.of(Width::Bits32), from.operand()]);
    }

    /// Stores the lowest 1, 2, 4 or 8 bytes of a register.
    pub(super) fn store(&mut self, bytes: u32, to: Mem, from: Gpr) {
        let number = u32::from(from.0);
        let (code, from) = match bytes {
            // Byte registers 4 to 7 are `SPL` to `DIL`, which need a prefix. `AH` to `BH` come before them in the
            // enumeration.
            1 if number < 4 => (Code::Mov_rm8_r8, Operand::Rare(Register::AL + number)),
            1 => (Code::Mov_rm8_r8, Operand::Rare(Register::SPL + (number - 4))),
            2 => (Code::Mov_rm16_r16, Operand::Short(from)),
            4 => (Code::Mov_rm32_r32, from.of(Width::Bits32)),
            _ => (Code::Mov_rm64_r64, from.of(Width::Bits64)),
        };
        self.push(code, &[to.operand(), from]);
    }

    /// Tests a bit of 32 bits in memory. [`When::AboveOrEqual`] holds if the bit is 0, [`When::Below`] if it is 1.
    pub(super) fn test_bit(&mut self, from: Mem, bit: u32) {
        self.push(
            Code::Bt_rm32_imm8,
            &[from.operand(), Operand::Number(bit.cast_signed())],
        );
    }

    /// Sets a register to the number of the lowest bit that is set in 32 bits of memory, which are not 0.
    pub(super) fn first_bit(&mut self, d: Gpr, from: Mem) {
        self.push(Code::Bsf_r32_rm32, &[d.of(Width::Bits32), from.operand()]);
    }

    /// Sets a register to the number of the highest bit that is set in 32 bits of memory, which are not 0.
    pub(super) fn last_bit(&mut self, d: Gpr, from: Mem) {
        self.push(Code::Bsr_r32_rm32, &[d.of(Width::Bits32), from.operand()]);
    }

    /// Adds a number to 64 bits in memory.
    pub(super) fn add_to(&mut self, to: Mem, number: i32) {
        self.with_number(to, number, [Code::Add_rm64_imm8, Code::Add_rm64_imm32]);
    }

    /// Combines memory with a number, by the instruction for numbers of 8 bits or by that for longer ones.
    fn with_number(&mut self, to: Mem, number: i32, [short, long]: [Code; 2]) {
        let code = if i8::try_from(number).is_ok() { short } else { long };
        self.push(code, &[to.operand(), Operand::Number(number)]);
    }

    /// Combines a number in memory with a register, in one step for all host threads if `locked` is true.
    pub(super) fn update(&mut self, alu: Alu, width: Width, to: Mem, from: Gpr, locked: bool) {
        let wide = width == Width::Bits64;
        let code = match (alu, wide) {
            (Alu::Add, false) => Code::Add_rm32_r32,
            (Alu::Add, true) => Code::Add_rm64_r64,
            (Alu::And, false) => Code::And_rm32_r32,
            (Alu::And, true) => Code::And_rm64_r64,
            (Alu::Or, false) => Code::Or_rm32_r32,
            (Alu::Or, true) => Code::Or_rm64_r64,
            (Alu::Xor, false) => Code::Xor_rm32_r32,
            (Alu::Xor, true) => Code::Xor_rm64_r64,
            _ => {
                self.failed = true;
                return;
            }
        };
        if locked {
            self.code.push(LOCK);
        }
        self.push(code, &[to.operand(), from.of(width)]);
    }

    /// Subtracts a number from 64 bits in memory, and compares the result with 0.
    pub(super) fn subtract_from(&mut self, to: Mem, number: i32) {
        self.with_number(to, number, [Code::Sub_rm64_imm8, Code::Sub_rm64_imm32]);
    }

    /// Copies a register if a condition holds, which must be not equal, less, greater, below, not below or above.
    pub(super) fn move_when(&mut self, when: When, width: Width, d: Gpr, from: Gpr) {
        let code = match (when, width) {
            (When::NotEqual, Width::Bits32) => Code::Cmovne_r32_rm32,
            (When::NotEqual, Width::Bits64) => Code::Cmovne_r64_rm64,
            (When::Greater, Width::Bits32) => Code::Cmovg_r32_rm32,
            (When::Greater, Width::Bits64) => Code::Cmovg_r64_rm64,
            (When::Above, Width::Bits32) => Code::Cmova_r32_rm32,
            (When::Above, Width::Bits64) => Code::Cmova_r64_rm64,
            (When::Less, Width::Bits32) => Code::Cmovl_r32_rm32,
            (When::Less, Width::Bits64) => Code::Cmovl_r64_rm64,
            (When::Below, Width::Bits32) => Code::Cmovb_r32_rm32,
            (When::Below, Width::Bits64) => Code::Cmovb_r64_rm64,
            (When::AboveOrEqual, Width::Bits32) => Code::Cmovae_r32_rm32,
            (When::AboveOrEqual, Width::Bits64) => Code::Cmovae_r64_rm64,
            _ => {
                self.failed = true;
                return;
            }
        };
        self.push(code, &[d.of(width), from.of(width)]);
    }

    /// Sets the 32 bits of a register's lower half to ones if a condition holds, else to zeros.
    pub(super) fn all_when(&mut self, when: When, d: Gpr) {
        let code = match when {
            When::Equal => Code::Sete_rm8,
            When::NotEqual => Code::Setne_rm8,
            When::Below => Code::Setb_rm8,
            When::AboveOrEqual => Code::Setae_rm8,
            When::BelowOrEqual => Code::Setbe_rm8,
            When::Above => Code::Seta_rm8,
            When::Less => Code::Setl_rm8,
            When::GreaterOrEqual => Code::Setge_rm8,
            When::LessOrEqual => Code::Setle_rm8,
            When::Greater => Code::Setg_rm8,
            When::Overflow => Code::Seto_rm8,
            When::NoOverflow => Code::Setno_rm8,
        };
        let number = u32::from(d.0);
        let byte = Operand::Rare(if number < 4 {
            Register::AL + number
        } else {
            Register::SPL + (number - 4)
        });
        self.push(code, &[byte]);
        self.push(Code::Movzx_r32_rm8, &[d.of(Width::Bits32), byte]);
        self.push(Code::Neg_rm32, &[d.of(Width::Bits32)]);
    }

    /// Adds a vector instruction with two sources.
    pub(super) fn vector(&mut self, code: Code, d: Ymm, a: Ymm, b: Source) {
        self.push(code, &[d.whole(), a.whole(), b.whole()]);
    }

    /// Adds a vector instruction with two sources and a number.
    pub(super) fn vector_imm(&mut self, code: Code, d: Ymm, a: Ymm, b: Source, number: u32) {
        self.push(
            code,
            &[d.whole(), a.whole(), b.whole(), Operand::Number(number.cast_signed())],
        );
    }

    /// Adds a vector instruction with one source.
    pub(super) fn unary(&mut self, code: Code, d: Ymm, a: Source) {
        self.push(code, &[d.whole(), a.whole()]);
    }

    /// Adds a vector instruction with one source and a number.
    pub(super) fn unary_imm(&mut self, code: Code, d: Ymm, a: Source, number: u32) {
        self.push(code, &[d.whole(), a.whole(), Operand::Number(number.cast_signed())]);
    }

    /// Adds a vector instruction that widens the lowest elements of a register, or elements in memory.
    pub(super) fn widen(&mut self, code: Code, d: Ymm, a: Source) {
        self.push(code, &[d.whole(), a.low()]);
    }

    /// Adds a vector instruction that narrows a register, or 32 bytes in memory, to the lower half of a register.
    pub(super) fn narrow(&mut self, code: Code, d: Ymm, a: Source) {
        self.push(code, &[d.low(), a.whole()]);
    }

    /// Adds a vector instruction that narrows a register to the lower half of a register, with a number.
    pub(super) fn narrow_by(&mut self, code: Code, d: Ymm, a: Ymm, number: u32) {
        self.push(code, &[d.low(), a.whole(), Operand::Number(number.cast_signed())]);
    }

    /// Sets a register to the lower halves of two others, with the half of `b` above the half of `a`.
    pub(super) fn join(&mut self, d: Ymm, a: Ymm, b: Ymm) {
        let code = Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8;
        self.push(code, &[d.whole(), a.whole(), b.low(), Operand::Number(1)]);
    }

    /// Copies the upper half of a register to the lower half of another.
    pub(super) fn upper_half(&mut self, d: Ymm, a: Ymm) {
        let code = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
        self.push(code, &[d.low(), a.whole(), Operand::Number(1)]);
    }

    /// Sets each 32-bit element of `d` from `b` if the highest bit of its mask is set, else from `a`.
    pub(super) fn blend(&mut self, d: Ymm, a: Ymm, b: Source, mask: Ymm) {
        self.blend_by(Width::Bits32, d, a, b, mask);
    }

    /// Sets each element of `d` from `b` if the highest bit of its mask is set, else from `a`.
    pub(super) fn blend_by(&mut self, width: Width, d: Ymm, a: Ymm, b: Source, mask: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm,
            Width::Bits64 => Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm,
        };
        self.push(code, &[d.whole(), a.whole(), b.whole(), mask.whole()]);
    }

    /// Loads a vector; also copies a register.
    pub(super) fn load(&mut self, d: Ymm, from: Source) {
        if from != Source::Ymm(d) {
            self.unary(Code::VEX_Vmovups_ymm_ymmm256, d, from);
        }
    }

    /// Stores a vector.
    pub(super) fn store_vector(&mut self, to: Mem, from: Ymm) {
        self.push(Code::VEX_Vmovups_ymmm256_ymm, &[to.operand(), from.whole()]);
    }

    /// Sets all elements to a value in memory.
    pub(super) fn broadcast(&mut self, width: Width, d: Ymm, from: Mem) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vbroadcastss_ymm_m32,
            Width::Bits64 => Code::VEX_Vbroadcastsd_ymm_m64,
        };
        self.push(code, &[d.whole(), from.operand()]);
    }

    /// Sets all elements to the value of a general register.
    pub(super) fn broadcast_gpr(&mut self, width: Width, d: Ymm, from: Gpr) {
        let (copy, spread) = match width {
            Width::Bits32 => (Code::VEX_Vmovd_xmm_rm32, Code::VEX_Vpbroadcastd_ymm_xmmm32),
            Width::Bits64 => (Code::VEX_Vmovq_xmm_rm64, Code::VEX_Vpbroadcastq_ymm_xmmm64),
        };
        self.push(copy, &[d.low(), from.of(width)]);
        self.push(spread, &[d.whole(), d.low()]);
    }

    /// Copies the first element to a general register.
    pub(super) fn first_element(&mut self, width: Width, d: Gpr, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmovd_rm32_xmm,
            Width::Bits64 => Code::VEX_Vmovq_rm64_xmm,
        };
        self.push(code, &[d.of(width), from.low()]);
    }

    /// Stores the first element.
    pub(super) fn store_first(&mut self, width: Width, to: Mem, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmovd_rm32_xmm,
            Width::Bits64 => Code::VEX_Vmovq_rm64_xmm,
        };
        self.push(code, &[to.operand(), from.low()]);
    }

    /// Collects the highest bit of each element.
    pub(super) fn signs(&mut self, width: Width, d: Gpr, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmovmskps_r32_ymm,
            Width::Bits64 => Code::VEX_Vmovmskpd_r32_ymm,
        };
        self.push(code, &[d.of(Width::Bits32), from.whole()]);
    }
}
