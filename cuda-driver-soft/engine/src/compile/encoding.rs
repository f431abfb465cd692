//! The bytes of machine instructions.
//!
//! iced-x86 encodes samples of each kind of instruction once, with known operands. The places of these operands in the
//! bytes are the [form](Form) of the instruction, which is then filled with other operands. Instructions without a
//! form, which are rare, are encoded by iced-x86 each time. Filling a form takes a tenth of the time of an encoding.
//!
//! With debug assertions, the bytes of each instruction are compared with those of iced-x86.

use super::assembler::{Gpr, Mem, Width, Ymm};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};
use std::sync::OnceLock;

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// The lower half of a vector register.
    Low(Ymm),
    /// A vector register.
    Whole(Ymm),
    /// A general register.
    Word(Width, Gpr),
    /// The lowest 16 bits of a general register.
    Short(Gpr),
    /// A register of another kind. Instructions with such operands are rare.
    Rare(Register),
    Mem(Mem),
    /// The last operand, if it is a number.
    Number(i32),
}

impl Operand {
    /// Returns the register; `None` for other operands.
    fn register(self) -> Option<Register> {
        match self {
            Operand::Low(ymm) => Some(Register::XMM0 + u32::from(ymm.0)),
            Operand::Whole(ymm) => Some(Register::YMM0 + u32::from(ymm.0)),
            Operand::Word(Width::Bits32, gpr) => Some(Register::EAX + u32::from(gpr.0)),
            Operand::Word(Width::Bits64, gpr) => Some(Register::RAX + u32::from(gpr.0)),
            Operand::Short(gpr) => Some(Register::AX + u32::from(gpr.0)),
            Operand::Rare(register) => Some(register),
            Operand::Mem(_) | Operand::Number(_) => None,
        }
    }

    /// Returns the number of the register; `None` for other operands and rare registers.
    fn number(self) -> Option<u8> {
        match self {
            Operand::Low(ymm) | Operand::Whole(ymm) => Some(ymm.0),
            Operand::Word(_, gpr) | Operand::Short(gpr) => Some(gpr.0),
            Operand::Rare(_) | Operand::Mem(_) | Operand::Number(_) => None,
        }
    }

    /// Returns an operand of the same kind with another register, number or place in memory. A rare register stays the
    /// same.
    fn with(self, number: u8, mem: Mem) -> Operand {
        match self {
            Operand::Low(_) => Operand::Low(Ymm(number)),
            Operand::Whole(_) => Operand::Whole(Ymm(number)),
            Operand::Word(width, _) => Operand::Word(width, Gpr(number)),
            Operand::Short(_) => Operand::Short(Gpr(number)),
            Operand::Rare(register) => Operand::Rare(register),
            Operand::Mem(_) => Operand::Mem(mem),
            Operand::Number(_) => Operand::Number(i32::from(number)),
        }
    }
}

/// Returns an instruction, or `None` if it cannot have such operands.
pub(super) fn instruction(code: Code, operands: &[Operand]) -> Option<Instruction> {
    let memory = |mem: Mem| {
        let wide = |gpr: Gpr| Register::RAX + u32::from(gpr.0);
        let index = mem.index.map_or(Register::None, wide);
        let bytes = u32::from(mem.offset != 0);
        let displacement = i64::from(mem.offset);
        MemoryOperand::new(wide(mem.base), index, 1, displacement, bytes, false, Register::None)
    };
    let of = |at: usize| operands.get(at).and_then(|operand| operand.register());
    let made = match (operands, of(0), of(1), of(2), of(3)) {
        ([_], Some(a), ..) => Instruction::with1(code, a),
        ([Operand::Mem(a)], ..) => Instruction::with1(code, memory(*a)),
        ([_, _], Some(a), Some(b), ..) => Instruction::with2(code, a, b),
        ([_, Operand::Mem(b)], Some(a), ..) => Instruction::with2(code, a, memory(*b)),
        ([_, Operand::Number(b)], Some(a), ..) => Instruction::with2(code, a, *b),
        ([Operand::Mem(a), _], _, Some(b), ..) => Instruction::with2(code, memory(*a), b),
        ([Operand::Mem(a), Operand::Number(b)], ..) => Instruction::with2(code, memory(*a), *b),
        ([_, _, _], Some(a), Some(b), Some(c), _) => Instruction::with3(code, a, b, c),
        ([_, _, Operand::Mem(c)], Some(a), Some(b), ..) => Instruction::with3(code, a, b, memory(*c)),
        ([_, _, Operand::Number(c)], Some(a), Some(b), ..) => Instruction::with3(code, a, b, *c),
        ([_, Operand::Mem(b), Operand::Number(c)], Some(a), ..) => Instruction::with3(code, a, memory(*b), *c),
        ([Operand::Mem(a), _, _], _, Some(b), Some(c), _) => Instruction::with3(code, memory(*a), b, c),
        ([Operand::Mem(a), _, Operand::Number(c)], _, Some(b), ..) => Instruction::with3(code, memory(*a), b, *c),
        ([_, _, _, _], Some(a), Some(b), Some(c), Some(d)) => Instruction::with4(code, a, b, c, d),
        ([_, _, Operand::Mem(c), _], Some(a), Some(b), _, Some(d)) => Instruction::with4(code, a, b, memory(*c), d),
        ([_, _, _, Operand::Number(d)], Some(a), Some(b), Some(c), _) => Instruction::with4(code, a, b, c, *d),
        ([_, _, Operand::Mem(c), Operand::Number(d)], Some(a), Some(b), ..) => {
            Instruction::with4(code, a, b, memory(*c), *d)
        }
        _ => return None,
    };
    made.ok()
}

/// The bytes before the opcode of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    /// A VEX prefix: its map of opcodes, and the bits `W`, `L` and `pp`.
    Vex { map: u8, bits: u8 },
    /// A mandatory prefix or 0, the bit `W` of the REX prefix, and true if the byte 0x0f comes before the opcode.
    Legacy { mandatory: u8, wide: bool, two: bool },
}

/// A field of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// The operand with this number.
    Operand(u8),
    /// Always the same bits.
    Fixed(u8),
}

/// The places of the operands in the bytes of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    prefix: Prefix,
    opcode: u8,
    /// The field `reg` of the ModRM byte, with its fourth bit.
    reg: Field,
    /// The field `vvvv` of a VEX prefix.
    other: Field,
    /// The operand in the field `rm` of the ModRM byte.
    rm: u8,
    /// Number of bytes at the end: a number, or a register in the upper half of a byte.
    tail: u8,
}

/// Room for the bytes of an instruction, which are at most 15.
pub(super) const MOST_BYTES: usize = 16;

/// The bytes of an instruction, while they are written.
pub(super) struct Bytes {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

impl Bytes {
    const NONE: Bytes = Bytes {
        bytes: [0; MOST_BYTES],
        length: 0,
    };

    /// Returns the bytes.
    fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Adds the bytes to code. Copying all of the room is faster than copying some of it.
    pub(super) fn add_to(&self, code: &mut Vec<u8>) {
        let end = code.len() + self.length;
        code.extend_from_slice(&self.bytes);
        code.truncate(end);
    }

    fn push(&mut self, byte: u8) {
        // The length never reaches the limit: the remainder only spares a comparison.
        self.bytes[self.length % MOST_BYTES] = byte;
        self.length += 1;
    }

    fn push_number(&mut self, number: i32) {
        self.bytes[self.length..self.length + 4].copy_from_slice(&number.to_le_bytes());
        self.length += 4;
    }
}

impl Form {
    /// Returns the form of an instruction with operands of these kinds; `None` if there is no form for them.
    fn of(code: Code, operands: &[Operand]) -> Option<Form> {
        // The first sample has registers from [`FIRST`] on: each needs its extension bit, and none has the number of a
        // field without operand.
        let sample = |first: u8, mem: Mem| -> Vec<Operand> {
            let numbered = (first..).zip(operands);
            numbered.map(|(number, operand)| operand.with(number, mem)).collect()
        };
        let near = Mem::at(Gpr(FIRST + 2), 0);
        let form = Self::read(&encoded(code, &sample(FIRST, near))?, operands)?;
        let far = |base: Gpr, index: Option<Gpr>, offset: i32| Mem { base, index, offset };
        let samples = [
            sample(FIRST, near),
            sample(1, far(Gpr::SP, None, 1)),
            sample(2, far(Gpr::BP, Some(Gpr(9)), 0)),
            sample(4, far(Gpr(12), Some(Gpr::AX), -1000)),
        ];
        let agrees = |sample: &Vec<Operand>| {
            let filled = form.fill(sample);
            encoded(code, sample).is_some_and(|bytes| filled.is_some_and(|filled| filled.written() == bytes))
        };
        samples.iter().all(agrees).then_some(form)
    }

    /// Reads the form from the bytes of an instruction with these operands, in which the register of the first operand
    /// has the number [`FIRST`], that of the second one the next number, and so on.
    fn read(bytes: &[u8], operands: &[Operand]) -> Option<Form> {
        let count = operands.len() as u8;
        let field = |number: u8| match number.checked_sub(FIRST) {
            Some(at) if at < count => Some(Field::Operand(at)),
            Some(_) => None,
            None => Some(Field::Fixed(number)),
        };
        let memory = operands.iter().position(|operand| matches!(operand, Operand::Mem(_)));
        let rm = |number: u8| match (memory, field(number)) {
            (Some(memory), _) => Some(memory as u8),
            (None, Some(Field::Operand(at))) => Some(at),
            (None, _) => None,
        };
        if let [0xc4, first, second, opcode, modrm, tail @ ..] = bytes {
            let (high, base) = ((!first >> 7) << 3, (!first >> 5 & 1) << 3);
            return Some(Form {
                prefix: Prefix::Vex {
                    map: first & 31,
                    bits: second & 0x87,
                },
                opcode: *opcode,
                reg: field(high | modrm >> 3 & 7)?,
                other: field(!second >> 3 & 15)?,
                rm: rm(base | modrm & 7)?,
                tail: tail.len() as u8,
            });
        }
        let (mandatory, bytes) = match bytes {
            [prefix @ (0x66 | 0xf2 | 0xf3), rest @ ..] => (*prefix, rest),
            _ => (0, bytes),
        };
        let (rex, bytes) = match bytes {
            [rex @ 0x40..=0x4f, rest @ ..] => (*rex, rest),
            _ => return None,
        };
        let (two, bytes) = match bytes {
            [0x0f, rest @ ..] => (true, rest),
            _ => (false, bytes),
        };
        let [opcode, modrm, tail @ ..] = bytes else { return None };
        Some(Form {
            prefix: Prefix::Legacy {
                mandatory,
                wide: rex & 8 != 0,
                two,
            },
            opcode: *opcode,
            reg: field((rex & 4) << 1 | modrm >> 3 & 7)?,
            other: Field::Fixed(0),
            rm: rm((rex & 1) << 3 | modrm & 7)?,
            tail: tail.len() as u8,
        })
    }

    /// Returns the bytes of the instruction with these operands; `None` if they do not fit.
    fn fill(&self, operands: &[Operand]) -> Option<Bytes> {
        let number = |field: Field| match field {
            Field::Operand(at) => operands.get(usize::from(at))?.number(),
            Field::Fixed(bits) => Some(bits),
        };
        let (reg, other) = (number(self.reg)?, number(self.other)?);
        let rm = *operands.get(usize::from(self.rm))?;
        let (base, index) = match rm {
            Operand::Mem(mem) => (mem.base.0, mem.index.map_or(0, |index| index.0)),
            rm => (rm.number()?, 0),
        };
        let mut bytes = Bytes::NONE;
        match self.prefix {
            Prefix::Vex { map, bits } => {
                let second = bits & 0x7f | (!other & 15) << 3;
                if map == 1 && bits & 0x80 == 0 && base < 8 && index < 8 {
                    bytes.push(0xc5);
                    bytes.push((!reg >> 3 & 1) << 7 | second);
                } else {
                    bytes.push(0xc4);
                    bytes.push((!reg >> 3 & 1) << 7 | (!index >> 3 & 1) << 6 | (!base >> 3 & 1) << 5 | map);
                    bytes.push(second | bits & 0x80);
                }
            }
            Prefix::Legacy { mandatory, wide, two } => {
                if mandatory != 0 {
                    bytes.push(mandatory);
                }
                let rex = u8::from(wide) << 3 | reg >> 3 << 2 | index >> 3 << 1 | base >> 3;
                if rex != 0 {
                    bytes.push(0x40 | rex);
                }
                if two {
                    bytes.push(0x0f);
                }
            }
        }
        bytes.push(self.opcode);
        let modrm = (reg & 7) << 3;
        match rm {
            Operand::Mem(mem) => push_memory(&mut bytes, modrm, mem),
            _ => bytes.push(0xc0 | modrm | base & 7),
        }
        match (self.tail, operands.last()?) {
            (0, _) => {}
            (1, Operand::Number(number)) => bytes.push(*number as u8),
            (4, Operand::Number(number)) => bytes.push_number(*number),
            (1, last) => bytes.push(last.number()? << 4),
            _ => return None,
        }
        Some(bytes)
    }
}

/// The number of the first register in the sample from which a form is read.
const FIRST: u8 = 9;

/// Adds the ModRM byte of an operand in memory, and the bytes that belong to it.
fn push_memory(bytes: &mut Bytes, modrm: u8, mem: Mem) {
    let base = mem.base.0 & 7;
    let small = i8::try_from(mem.offset);
    let mode = match small {
        // Without a displacement, this base has another meaning.
        Ok(0) if base != Gpr::BP.0 => 0,
        Ok(_) => 0x40,
        Err(_) => 0x80,
    };
    match mem.index {
        None if base != Gpr::SP.0 => bytes.push(mode | modrm | base),
        index => {
            bytes.push(mode | modrm | 4);
            bytes.push(index.map_or(4, |index| index.0 & 7) << 3 | base);
        }
    }
    match (mode, small) {
        (0, _) => {}
        (0x40, Ok(offset)) => bytes.push(offset as u8),
        _ => bytes.push_number(mem.offset),
    }
}

/// Returns the bytes of an instruction that refers to no place in the code.
fn encoded(code: Code, operands: &[Operand]) -> Option<Vec<u8>> {
    encoded_at(&instruction(code, operands)?, 0)
}

/// Returns the bytes of an instruction at an offset in the code.
pub(super) fn encoded_at(instruction: &Instruction, at: u64) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, at).ok()?;
    Some(encoder.take_buffer())
}

/// At least the number of instruction codes.
const CODES: usize = 5_000;

/// Returns the bytes of an instruction; `None` if it has no form.
pub(super) fn bytes_of(code: Code, operands: &[Operand]) -> Option<Bytes> {
    static FORMS: [OnceLock<Option<Form>>; CODES] = [const { OnceLock::new() }; CODES];
    let rare = |operand: &Operand| matches!(operand, Operand::Rare(_));
    if operands.iter().any(rare) {
        return None;
    }
    // The form is the same for a register and for memory in the field `rm`.
    let form = FORMS.get(code as usize)?.get_or_init(|| Form::of(code, operands));
    let bytes = form.as_ref()?.fill(operands)?;
    debug_assert_eq!(
        Some(bytes.written()),
        encoded(code, operands).as_deref(),
        "{code:?} {operands:?}"
    );
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Form, Operand, bytes_of, encoded};
    use crate::compile::assembler::{Gpr, Mem, Width, Ymm};
    use iced_x86::Code;

    /// Returns operands of the same kinds with other registers, places and numbers.
    fn varied(operands: &[Operand], random: &mut u32) -> Vec<Operand> {
        let mut next = |limit: u32| {
            *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (*random >> 8) % limit
        };
        let varied = operands.iter().map(|operand| {
            let number = next(16) as u8;
            let offset = [0, 1, -1, 127, 128, -128, -129, 32, 70_000, i32::MIN][next(10) as usize];
            // The stack pointer is never an index.
            let index = [None, Some(Gpr::AX), Some(Gpr::CX), Some(Gpr(9)), Some(Gpr(12))][next(5) as usize];
            let base = Gpr(number);
            operand.with(number, Mem { base, index, offset })
        });
        varied.collect()
    }

    #[test]
    fn forms_are_filled_as_iced_encodes() {
        let (ymm, low) = (Operand::Whole(Ymm(0)), Operand::Low(Ymm(0)));
        let (word, wide) = (
            Operand::Word(Width::Bits32, Gpr::AX),
            Operand::Word(Width::Bits64, Gpr::AX),
        );
        let (mem, number) = (Operand::Mem(Mem::at(Gpr::AX, 0)), Operand::Number(0));
        let cases: [(Code, &[Operand]); 28] = [
            (Code::Add_r32_rm32, &[word, word]),
            (Code::Add_r64_rm64, &[wide, mem]),
            (Code::Add_rm64_imm32, &[mem, number]),
            (Code::Cmp_rm32_imm32, &[word, number]),
            (Code::Cmp_rm32_imm8, &[word, number]),
            (Code::Test_rm64_r64, &[mem, wide]),
            (Code::Imul_r64_rm64, &[wide, wide]),
            (Code::Imul_r32_rm32_imm32, &[word, mem, number]),
            (Code::Shl_rm64_imm8, &[wide, number]),
            (Code::Movzx_r32_rm16, &[word, mem]),
            (Code::Movsxd_r64_rm32, &[wide, word]),
            (Code::Lea_r64_m, &[wide, mem]),
            (Code::Mov_rm64_r64, &[mem, wide]),
            (Code::Mov_rm16_r16, &[mem, Operand::Short(Gpr::AX)]),
            (Code::Cmovb_r64_rm64, &[wide, wide]),
            (Code::VEX_Vpaddd_ymm_ymm_ymmm256, &[ymm, ymm, ymm]),
            (Code::VEX_Vpaddd_ymm_ymm_ymmm256, &[ymm, ymm, mem]),
            (Code::VEX_Vpsrld_ymm_ymm_imm8, &[ymm, ymm, number]),
            (Code::VEX_Vmovups_ymm_ymmm256, &[ymm, mem]),
            (Code::VEX_Vmovups_ymmm256_ymm, &[mem, ymm]),
            (Code::VEX_Vbroadcastss_ymm_m32, &[ymm, mem]),
            (Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm, &[ymm, ymm, mem, ymm]),
            (Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm, &[ymm, ymm, ymm, ymm]),
            (Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, &[ymm, ymm, low, number]),
            (Code::VEX_Vextracti128_xmmm128_ymm_imm8, &[mem, ymm, number]),
            (Code::VEX_Vmovmskps_r32_ymm, &[word, ymm]),
            (Code::VEX_Vmovq_xmm_rm64, &[low, wide]),
            (Code::VEX_Vpinsrq_xmm_xmm_rm64_imm8, &[low, low, mem, number]),
        ];
        let mut random = 1;
        for (code, kinds) in cases {
            for _ in 0..500 {
                let operands = varied(kinds, &mut random);
                let bytes = bytes_of(code, &operands).map(|bytes| bytes.written().to_vec());
                assert!(bytes.is_some(), "{code:?} has no form");
                assert_eq!(bytes, encoded(code, &operands), "{code:?} {operands:?}");
            }
        }
    }

    #[test]
    fn instructions_without_modrm_have_no_form() {
        let operands = [Operand::Word(Width::Bits32, Gpr::AX), Operand::Number(1)];
        assert_eq!(Form::of(Code::Mov_r32_imm32, &operands), None);
        let operands = [Operand::Word(Width::Bits64, Gpr::AX)];
        assert_eq!(Form::of(Code::Push_r64, &operands), None);
    }
}
