//! Checks the values of constant operands, such as those that must be in a range or a multiple of a number.

use crate::ast::{self, Inst, OperandKind};

use super::walker::Walker;

impl Walker<'_> {
    /// Checks the constant operands of the instructions that restrict them.
    pub(super) fn ranges(&mut self, inst: &Inst, operands: &[ast::Operand]) {
        let constant = |i: usize| match operands.get(i).map(|o| o.kind) {
            Some(OperandKind::Int(value)) => Some(value),
            _ => None,
        };
        let opcode = self.opcode(inst);
        let has = |modifier: &str| opcode.split(|&b| b == b'.').any(|m| m == modifier.as_bytes());
        match self.root {
            "bar" | "barrier" if !has("warp") => {
                let reduces = has("red");
                let first = usize::from(reduces);
                if let Some(barrier) = constant(first).filter(|&n| n > 15) {
                    let message = format!("Barrier number '{barrier}' out of range, expected to be in range [0..15]");
                    self.say(inst.pos, message);
                }
                let counted = operands.len() > first + 1 + usize::from(reduces);
                let Some(threads) = constant(first + 1).filter(|_| counted) else {
                    return;
                };
                if threads % 32 != 0 {
                    let message = "Number of threads participating in barrier must be in multiple of warp size";
                    self.say(inst.pos, message.to_owned());
                } else if threads == 0 && has("arrive") {
                    let message = format!(
                        "Instruction '{}.arrive' requires a non-zero thread count argument",
                        self.root
                    );
                    self.say(inst.pos, message);
                }
            }
            "bfe" | "bfi" => {
                let first = if self.root == "bfe" { 2 } else { 3 };
                for i in [first, first + 1] {
                    if let Some(value) = constant(i).filter(|&n| n > 255) {
                        let message = format!(
                            "Argument {i} of instruction '{}': value '{}' out of range, expected to be in range [0..255]",
                            self.root, value as i64
                        );
                        self.say(inst.pos, message);
                    }
                }
            }
            "pmevent" if !has("mask") => {
                if let Some(value) = constant(0).filter(|&n| n > 15) {
                    let message = format!(
                        "Argument 0 of instruction 'pmevent': value '{value}' out of range, expected to be in range [0..15]"
                    );
                    self.say(inst.pos, message);
                }
            }
            "cp" if has("bulk") && !has("wait_group") && !has("tensor") => {
                let at = if has("prefetch") { 1 } else { 2 };
                if let Some(value) = constant(at).filter(|n| n % 16 != 0) {
                    let message = format!(
                        "Argument {at} of instruction '{}': unexpected value '{value}', expected to be multiple of 16",
                        self.name
                    );
                    self.say(inst.pos, message);
                }
            }
            "wgmma" if has("wait_group") => {
                if let Some(value) = constant(0).map(u64::cast_signed).filter(|&n| n < 0) {
                    let message = format!(
                        "Argument 0 of instruction '{}': unexpected value '{value}', expected to be non-negative integer",
                        self.name
                    );
                    self.say(inst.pos, message);
                }
            }
            "alloca" => {
                if let Some(align) = constant(2) {
                    let message = if !align.is_power_of_two() {
                        "Alignment must be a power of two"
                    } else if align > 1 << 23 {
                        "Alignment value too large, exceeds 2^23"
                    } else {
                        return;
                    };
                    self.say(inst.pos, message.to_owned());
                }
            }
            "stackrestore" if constant(0).is_some() => {
                self.refuse(inst.pos, "Result register required");
            }
            "createpolicy" if has("fractional") => {
                let value = match operands.get(1).map(|o| o.kind) {
                    Some(OperandKind::F32(bits)) => f64::from(f32::from_bits(bits)),
                    Some(OperandKind::F64(bits)) => f64::from_bits(bits),
                    _ => return,
                };
                if !(value > 0.0 && value <= 1.0) {
                    let message = format!(
                        "Argument 2 of instruction 'createpolicy.fractional': value '{value:.6}' out of range, expected \
                         to be in range (0.000000 .. 1.000000]"
                    );
                    self.say(inst.pos, message);
                }
            }
            "setmaxnreg" => {
                let Some(registers) = constant(0) else { return };
                let name = if has("inc") { "setmaxnreg.inc" } else { "setmaxnreg.dec" };
                let wrong = if !(24..=256).contains(&registers) {
                    format!("value '{registers}' out of range, expected to be in range [24..256]")
                } else if registers % 8 != 0 {
                    format!("unexpected value '{registers}', expected to be multiple of 8")
                } else {
                    return;
                };
                self.say(inst.pos, format!("Argument 1 of instruction '{name}': {wrong}"));
            }
            "tensormap" if has("cp_fenceproxy") => {
                if let Some(value) = constant(2).filter(|&n| n != 128) {
                    let message = format!(
                        "Argument 2 of instruction '{}': unexpected value '{value}', expected to be 128",
                        self.name
                    );
                    self.say(inst.pos, message);
                }
            }
            "discard" | "applypriority" | "fence" => {
                if let Some(value) = constant(1).filter(|&n| n != 128) {
                    let message = format!(
                        "Argument 2 of instruction '{}': unexpected value '{value}', expected to be 128",
                        self.root
                    );
                    self.say(inst.pos, message);
                }
            }
            _ => {}
        }
    }
}
