//! Writes machine code for x86-64 with AVX2.
//!
//! The encoding itself is done by iced-x86. An instruction that it refuses makes [`Assembler::finish`] return `None`,
//! so that the kernel is interpreted.

use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};
use std::collections::HashSet;

/// The instruction that does nothing.
const NOP: u8 = 0x90;
/// The first byte of an unconditional jump by a distance of 32 bits.
const JUMP: u8 = 0xe9;

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
    pub(super) fn whole(self) -> Register {
        Register::YMM0 + u32::from(self.0)
    }

    pub(super) fn low(self) -> Register {
        Register::XMM0 + u32::from(self.0)
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

    pub(super) fn of(self, width: Width) -> Register {
        let first = match width {
            Width::Bits32 => Register::EAX,
            Width::Bits64 => Register::RAX,
        };
        first + u32::from(self.0)
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

    pub(super) fn operand(self) -> MemoryOperand {
        let index = self.index.map_or(Register::None, |index| index.of(Width::Bits64));
        let base = self.base.of(Width::Bits64);
        MemoryOperand::new(base, index, 1, i64::from(self.offset), 1, false, Register::None)
    }
}

/// A source operand of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Ymm(Ymm),
    Mem(Mem),
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
    /// Sources in registers and memory only; for a number see [`Assembler::multiply`].
    Imul,
}

/// Shifts by a constant distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    Left,
    Right,
    RightSigned,
}

/// The condition of a jump.
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
}

/// Writes machine code.
pub(super) struct Assembler {
    encoder: Encoder,
    at: usize,
    labels: Vec<Option<usize>>,
    /// The end of each jump and each [`address_of`](Self::address_of), which is the end of its distance, and the
    /// target.
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
            encoder: Encoder::new(64),
            at: 0,
            labels: Vec::new(),
            jumps: Vec::new(),
            always: HashSet::new(),
            failed: false,
            short: false,
        }
    }

    /// Returns the code and the offsets of the labels, or `None` if an instruction has no encoding or needed too many
    /// registers.
    pub(super) fn finish(mut self) -> Option<(Vec<u8>, Vec<usize>)> {
        let mut code = self.encoder.take_buffer();
        let mut labels = Vec::with_capacity(self.labels.len());
        for label in &self.labels {
            labels.push((*label)?);
        }
        for (end, to) in &self.jumps {
            // A conditional jump begins with two bytes, an unconditional one with one.
            if self.always.contains(to) && code[end - 5] & 0xf0 == 0x80 {
                (code[end - 6], code[end - 5]) = (NOP, JUMP);
            }
            let distance = i32::try_from(labels[to.0] as i64 - *end as i64).ok()?;
            code[end - 4..*end].copy_from_slice(&distance.to_le_bytes());
        }
        // An instruction without registers has no encoding either.
        debug_assert!(!self.failed || self.short, "an instruction has no encoding");
        (!self.failed && !self.short).then_some((code, labels))
    }

    /// Returns the offset of a label in the code. `labels` are the offsets that [`finish`](Self::finish) returned.
    pub(super) fn offset(labels: &[usize], label: Label) -> usize {
        labels[label.0]
    }

    pub(super) fn push(&mut self, instruction: Result<Instruction, IcedError>) {
        let encoded = instruction.and_then(|instruction| self.encoder.encode(&instruction, self.at as u64));
        match encoded {
            Ok(bytes) => self.at += bytes,
            Err(_) => self.failed = true,
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
        self.labels[label.0] = Some(self.at);
    }

    /// Binds a label to the place of another one, which is bound.
    pub(super) fn bind_to(&mut self, label: Label, other: Label) {
        self.labels[label.0] = self.labels[other.0];
    }

    /// Returns the number of bytes of the code up to here.
    pub(super) fn length(&self) -> usize {
        self.at
    }

    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.bind(label);
        label
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.push(Instruction::with_branch(Code::Jmp_rel32_64, self.at as u64));
        self.jumps.push((self.at, to));
    }

    /// Makes all conditional jumps to a label unconditional.
    pub(super) fn jump_always(&mut self, to: Label) {
        self.always.insert(to);
    }

    pub(super) fn jump_when(&mut self, when: When, to: Label) {
        let code = match when {
            When::Equal => Code::Je_rel32_64,
            When::NotEqual => Code::Jne_rel32_64,
            When::Below => Code::Jb_rel32_64,
            When::AboveOrEqual => Code::Jae_rel32_64,
            When::BelowOrEqual => Code::Jbe_rel32_64,
            When::Above => Code::Ja_rel32_64,
            When::Less => Code::Jl_rel32_64,
            When::GreaterOrEqual => Code::Jge_rel32_64,
            When::LessOrEqual => Code::Jle_rel32_64,
            When::Greater => Code::Jg_rel32_64,
            When::Overflow => Code::Jo_rel32_64,
            When::NoOverflow => Code::Jno_rel32_64,
        };
        self.push(Instruction::with_branch(code, self.at as u64));
        self.jumps.push((self.at, to));
    }

    pub(super) fn jump_to_address(&mut self, address: Gpr) {
        self.push(Instruction::with1(Code::Jmp_rm64, address.of(Width::Bits64)));
    }

    pub(super) fn jump_to_place(&mut self, place: Mem) {
        self.push(Instruction::with1(Code::Jmp_rm64, place.operand()));
    }

    /// Sets a register to the address of a label.
    pub(super) fn address_of(&mut self, d: Gpr, label: Label) {
        // The distance is written last, as for jumps.
        let here = MemoryOperand::with_base_displ(Register::RIP, self.at as i64);
        self.push(Instruction::with2(Code::Lea_r64_m, d.of(Width::Bits64), here));
        self.jumps.push((self.at, label));
    }

    pub(super) fn call(&mut self, function: Mem) {
        self.push(Instruction::with1(Code::Call_rm64, function.operand()));
    }

    pub(super) fn ret(&mut self) {
        self.push(Ok(Instruction::with(Code::Retnq)));
    }

    pub(super) fn vzeroupper(&mut self) {
        self.push(Ok(Instruction::with(Code::VEX_Vzeroupper)));
    }

    pub(super) fn push_register(&mut self, register: Gpr) {
        self.push(Instruction::with1(Code::Push_r64, register.of(Width::Bits64)));
    }

    pub(super) fn pop_register(&mut self, register: Gpr) {
        self.push(Instruction::with1(Code::Pop_r64, register.of(Width::Bits64)));
    }

    /// Adds an operation on general registers.
    pub(super) fn alu(&mut self, alu: Alu, width: Width, d: Gpr, source: Word) {
        let wide = width == Width::Bits64;
        let to = d.of(width);
        match source {
            Word::Imm(number) => {
                if let (Some(code), Ok(_)) = (Self::short_code(alu, wide), i8::try_from(number)) {
                    return self.push(Instruction::with2(code, to, number));
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
                    (Alu::Mov, false) => Code::Mov_r32_imm32,
                    (Alu::Mov, true) => Code::Mov_rm64_imm32,
                    (Alu::Imul, _) => return self.multiply(width, d, Word::Gpr(d), number),
                };
                self.push(Instruction::with2(code, to, number));
            }
            Word::Gpr(source) => {
                let code = Self::alu_code(alu, wide);
                let (to, from) = (to, source.of(width));
                self.push(Instruction::with2(code, to, from));
            }
            Word::Mem(source) if alu == Alu::Test => {
                let code = if wide { Code::Test_rm64_r64 } else { Code::Test_rm32_r32 };
                self.push(Instruction::with2(code, source.operand(), to));
            }
            Word::Mem(source) => self.push(Instruction::with2(Self::alu_code(alu, wide), to, source.operand())),
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

    /// Sets a register to a product with a number.
    pub(super) fn multiply(&mut self, width: Width, d: Gpr, source: Word, number: i32) {
        let wide = width == Width::Bits64;
        let code = if wide {
            Code::Imul_r64_rm64_imm32
        } else {
            Code::Imul_r32_rm32_imm32
        };
        match source {
            Word::Gpr(source) => self.push(Instruction::with3(code, d.of(width), source.of(width), number)),
            Word::Mem(source) => self.push(Instruction::with3(code, d.of(width), source.operand(), number)),
            Word::Imm(_) => self.failed = true,
        }
    }

    /// Sets a register to a constant of 64 bits.
    pub(super) fn constant(&mut self, d: Gpr, bits: u64) {
        if let Ok(bits) = u32::try_from(bits) {
            self.push(Instruction::with2(Code::Mov_r32_imm32, d.of(Width::Bits32), bits));
        } else if let Ok(number) = i32::try_from(bits.cast_signed()) {
            self.alu(Alu::Mov, Width::Bits64, d, Word::Imm(number));
        } else {
            self.push(Instruction::with2(Code::Mov_r64_imm64, d.of(Width::Bits64), bits));
        }
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
        self.push(Instruction::with2(code, d.of(width), distance));
    }

    /// Sets a register to the sum of the address's parts.
    pub(super) fn lea(&mut self, width: Width, d: Gpr, mem: Mem) {
        let code = if width == Width::Bits64 {
            Code::Lea_r64_m
        } else {
            Code::Lea_r32_m
        };
        self.push(Instruction::with2(code, d.of(width), mem.operand()));
    }

    /// Sign-extends 32 bits to 64.
    pub(super) fn extend_signed(&mut self, d: Gpr, source: Word) {
        let d = d.of(Width::Bits64);
        match source {
            Word::Gpr(source) => self.push(Instruction::with2(Code::Movsxd_r64_rm32, d, source.of(Width::Bits32))),
            Word::Mem(source) => self.push(Instruction::with2(Code::Movsxd_r64_rm32, d, source.operand())),
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
        self.push(Instruction::with2(code, d.of(Width::Bits32), from.operand()));
    }

    /// Stores the lowest 1, 2, 4 or 8 bytes of a register.
    pub(super) fn store(&mut self, bytes: u32, to: Mem, from: Gpr) {
        let number = u32::from(from.0);
        let (code, from) = match bytes {
            // Byte registers 4 to 7 are `SPL` to `DIL`, which need a prefix. `AH` to `BH` come before them in the
            // enumeration.
            1 if number < 4 => (Code::Mov_rm8_r8, Register::AL + number),
            1 => (Code::Mov_rm8_r8, Register::SPL + (number - 4)),
            2 => (Code::Mov_rm16_r16, Register::AX + number),
            4 => (Code::Mov_rm32_r32, from.of(Width::Bits32)),
            _ => (Code::Mov_rm64_r64, from.of(Width::Bits64)),
        };
        self.push(Instruction::with2(code, to.operand(), from));
    }

    /// Tests a bit of 32 bits in memory: the order is "above or equal" if it is 0.
    pub(super) fn test_bit(&mut self, from: Mem, bit: u32) {
        self.push(Instruction::with2(Code::Bt_rm32_imm8, from.operand(), bit));
    }

    /// Sets a register to the number of the lowest bit that is set in 32 bits of memory, which are not 0.
    pub(super) fn first_bit(&mut self, d: Gpr, from: Mem) {
        self.push(Instruction::with2(
            Code::Bsf_r32_rm32,
            d.of(Width::Bits32),
            from.operand(),
        ));
    }

    /// Sets a register to the number of the highest bit that is set in 32 bits of memory, which are not 0.
    pub(super) fn last_bit(&mut self, d: Gpr, from: Mem) {
        self.push(Instruction::with2(
            Code::Bsr_r32_rm32,
            d.of(Width::Bits32),
            from.operand(),
        ));
    }

    /// Adds a number to 64 bits in memory.
    pub(super) fn add_to(&mut self, to: Mem, number: i32) {
        let is_short = i8::try_from(number).is_ok();
        let code = if is_short {
            Code::Add_rm64_imm8
        } else {
            Code::Add_rm64_imm32
        };
        self.push(Instruction::with2(code, to.operand(), number));
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
        let instruction = Instruction::with2(code, to.operand(), from.of(width));
        self.push(instruction.map(|mut instruction| {
            instruction.set_has_lock_prefix(locked);
            instruction
        }));
    }

    /// Subtracts a number from 64 bits in memory, and compares the result with 0.
    pub(super) fn subtract_from(&mut self, to: Mem, number: i32) {
        let is_short = i8::try_from(number).is_ok();
        let code = if is_short {
            Code::Sub_rm64_imm8
        } else {
            Code::Sub_rm64_imm32
        };
        self.push(Instruction::with2(code, to.operand(), number));
    }

    /// Copies a register if a condition holds, which must be less, greater, below, not below or above.
    pub(super) fn move_when(&mut self, when: When, width: Width, d: Gpr, from: Gpr) {
        let code = match (when, width) {
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
        self.push(Instruction::with2(code, d.of(width), from.of(width)));
    }

    /// Sets a register to all ones if a condition holds, else to zero.
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
        let byte = if number < 4 {
            Register::AL + number
        } else {
            Register::SPL + (number - 4)
        };
        self.push(Instruction::with1(code, byte));
        self.push(Instruction::with2(Code::Movzx_r32_rm8, d.of(Width::Bits32), byte));
        self.push(Instruction::with1(Code::Neg_rm32, d.of(Width::Bits32)));
    }

    /// Adds a vector instruction with two sources.
    pub(super) fn vector(&mut self, code: Code, d: Ymm, a: Ymm, b: Source) {
        self.push(match b {
            Source::Ymm(b) => Instruction::with3(code, d.whole(), a.whole(), b.whole()),
            Source::Mem(b) => Instruction::with3(code, d.whole(), a.whole(), b.operand()),
        });
    }

    /// Adds a vector instruction with two sources and a number.
    pub(super) fn vector_imm(&mut self, code: Code, d: Ymm, a: Ymm, b: Source, number: u32) {
        self.push(match b {
            Source::Ymm(b) => Instruction::with4(code, d.whole(), a.whole(), b.whole(), number),
            Source::Mem(b) => Instruction::with4(code, d.whole(), a.whole(), b.operand(), number),
        });
    }

    /// Adds a vector instruction with one source.
    pub(super) fn unary(&mut self, code: Code, d: Ymm, a: Source) {
        self.push(match a {
            Source::Ymm(a) => Instruction::with2(code, d.whole(), a.whole()),
            Source::Mem(a) => Instruction::with2(code, d.whole(), a.operand()),
        });
    }

    /// Adds a vector instruction with one source and a number.
    pub(super) fn unary_imm(&mut self, code: Code, d: Ymm, a: Source, number: u32) {
        self.push(match a {
            Source::Ymm(a) => Instruction::with3(code, d.whole(), a.whole(), number),
            Source::Mem(a) => Instruction::with3(code, d.whole(), a.operand(), number),
        });
    }

    /// Adds a vector instruction that widens the lowest elements of a register, or elements in memory.
    pub(super) fn widen(&mut self, code: Code, d: Ymm, a: Source) {
        self.push(match a {
            Source::Ymm(a) => Instruction::with2(code, d.whole(), a.low()),
            Source::Mem(a) => Instruction::with2(code, d.whole(), a.operand()),
        });
    }

    /// Adds a vector instruction that narrows a register, or 32 bytes in memory, to the lower half of a register.
    pub(super) fn narrow(&mut self, code: Code, d: Ymm, a: Source) {
        self.push(match a {
            Source::Ymm(a) => Instruction::with2(code, d.low(), a.whole()),
            Source::Mem(a) => Instruction::with2(code, d.low(), a.operand()),
        });
    }

    /// Adds a vector instruction that narrows a register to the lower half of a register, with a number.
    pub(super) fn narrow_by(&mut self, code: Code, d: Ymm, a: Ymm, number: u32) {
        self.push(Instruction::with3(code, d.low(), a.whole(), number));
    }

    /// Sets a register to the lower halves of two others, with the half of `b` above the half of `a`.
    pub(super) fn join(&mut self, d: Ymm, a: Ymm, b: Ymm) {
        let code = Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8;
        self.push(Instruction::with4(code, d.whole(), a.whole(), b.low(), 1u32));
    }

    /// Copies the upper half of a register to the lower half of another.
    pub(super) fn upper_half(&mut self, d: Ymm, a: Ymm) {
        let code = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
        self.push(Instruction::with3(code, d.low(), a.whole(), 1u32));
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
        self.push(match b {
            Source::Ymm(b) => Instruction::with4(code, d.whole(), a.whole(), b.whole(), mask.whole()),
            Source::Mem(b) => Instruction::with4(code, d.whole(), a.whole(), b.operand(), mask.whole()),
        });
    }

    /// Loads a vector; also copies a register.
    pub(super) fn load(&mut self, d: Ymm, from: Source) {
        if from != Source::Ymm(d) {
            self.unary(Code::VEX_Vmovups_ymm_ymmm256, d, from);
        }
    }

    /// Stores a vector.
    pub(super) fn store_vector(&mut self, to: Mem, from: Ymm) {
        self.push(Instruction::with2(
            Code::VEX_Vmovups_ymmm256_ymm,
            to.operand(),
            from.whole(),
        ));
    }

    /// Sets all elements to a value in memory.
    pub(super) fn broadcast(&mut self, width: Width, d: Ymm, from: Mem) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vbroadcastss_ymm_m32,
            Width::Bits64 => Code::VEX_Vbroadcastsd_ymm_m64,
        };
        self.push(Instruction::with2(code, d.whole(), from.operand()));
    }

    /// Sets all elements to the value of a general register.
    pub(super) fn broadcast_gpr(&mut self, width: Width, d: Ymm, from: Gpr) {
        let (copy, spread) = match width {
            Width::Bits32 => (Code::VEX_Vmovd_xmm_rm32, Code::VEX_Vpbroadcastd_ymm_xmmm32),
            Width::Bits64 => (Code::VEX_Vmovq_xmm_rm64, Code::VEX_Vpbroadcastq_ymm_xmmm64),
        };
        self.push(Instruction::with2(copy, d.low(), from.of(width)));
        self.push(Instruction::with2(spread, d.whole(), d.low()));
    }

    /// Copies the first element to a general register.
    pub(super) fn first_element(&mut self, width: Width, d: Gpr, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmovd_rm32_xmm,
            Width::Bits64 => Code::VEX_Vmovq_rm64_xmm,
        };
        self.push(Instruction::with2(code, d.of(width), from.low()));
    }

    /// Stores the first element.
    pub(super) fn store_first(&mut self, width: Width, to: Mem, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmovd_rm32_xmm,
            Width::Bits64 => Code::VEX_Vmovq_rm64_xmm,
        };
        self.push(Instruction::with2(code, to.operand(), from.low()));
    }

    /// Collects the highest bit of each element.
    pub(super) fn signs(&mut self, width: Width, d: Gpr, from: Ymm) {
        let code = match width {
            Width::Bits32 => Code::VEX_Vmovmskps_r32_ymm,
            Width::Bits64 => Code::VEX_Vmovmskpd_r32_ymm,
        };
        self.push(Instruction::with2(code, d.of(Width::Bits32), from.whole()));
    }
}
