//! Lists all forms of the table and writes sample instructions, for tests and documentation.

use crate::ir::{Op, Type};

use super::classes::CLASSES;
use super::find::find;
use super::form::Candidate;
use super::mods::{Mods, split};
use super::operand::{OperandSpec, Role};
use super::row::Lowering;
use super::table::{CompiledRow, table};

/// Returns the opcodes of a row: its root with every choice of modifiers.
fn opcodes(root: &str, compiled: &CompiledRow) -> Vec<String> {
    let mut opcodes = vec![root.to_owned()];
    for element in &compiled.elements {
        let mut longer = Vec::new();
        for opcode in &opcodes {
            if !element.required {
                longer.push(opcode.clone());
            }
            longer.extend(element.alternatives.iter().map(|a| format!("{opcode}{a}")));
        }
        opcodes = longer;
    }
    opcodes
}

/// Returns every form of the table with the operation to which it is lowered. There is no operation if it depends on
/// the operands (`mov`, `bra`, `brx`, `call`, `mapa`, `getctarank`), if the instruction is only checked, such as
/// `prefetch`, or if it is not implemented. Memory operations have the state space of the opcode, or the generic one if
/// the opcode has none.
pub fn every_form() -> Vec<(String, Option<Op>)> {
    let mut all = Vec::new();
    for (root, rows) in &table().roots {
        for compiled in rows.compiled() {
            for opcode in opcodes(root, compiled) {
                // Some choices of modifiers exclude one another.
                let Ok(form) = find(&opcode) else { continue };
                for candidate in form.candidates {
                    let op = match candidate.lowering {
                        Lowering::Op(op)
                        | Lowering::Memory(op)
                        | Lowering::Cvta(op)
                        | Lowering::Pointers(op)
                        | Lowering::StoreThenSignal(op)
                        | Lowering::Texture(op)
                        | Lowering::Carry { op, .. } => Some(op),
                        Lowering::Tensor(copy) => Some(Op::TensorCopy(copy)),
                        Lowering::Policy(_) => Some(Op::Mov { ty: Type::B64 }),
                        Lowering::Video(inst) => Some(Op::Video(inst)),
                        Lowering::Wgmma(wgmma) => Some(Op::Wgmma(wgmma)),
                        Lowering::SparseMma(mma) => Some(Op::Mma(mma)),
                        Lowering::Lop3(bool_op) => Some(Op::Lop3 { lut: 0, bool_op }),
                        _ => None,
                    };
                    all.push((opcode.clone(), op));
                }
            }
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.dedup();
    all
}

/// Returns the classes of modifiers: `<name>` in a row stands for one of the members, which are separated by `|`.
pub fn modifier_classes() -> &'static [(&'static str, &'static str)] {
    CLASSES
}

/// An example of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the form's row in [`table_rows`](crate::table_rows).
    pub row: usize,
    /// The opcode with its modifiers.
    pub opcode: String,
    /// The instruction with its operands, including `;`. The registers are those of [`Sample::REGISTERS`] and
    /// [`Sample::WIDE_REGISTERS`].
    pub text: String,
}

impl Sample {
    /// Declarations of the registers that samples use.
    pub const REGISTERS: &str =
        ".reg .pred %p<4>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;";
    /// Declaration of the registers of 128 bits, which require PTX 8.3.
    pub const WIDE_REGISTERS: &str = ".reg .b128 %q<8>;";
}

/// Returns an instruction for every form with every list of operands, except for `mov`, `bra`, `brx`, `call`, `mapa`
/// and `getctarank`, whose operands the table does not describe in full, and for `.param::func`.
pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for (root, rows) in &table().roots {
        for compiled in rows.compiled() {
            for opcode in opcodes(root, compiled) {
                let Ok(form) = find(&opcode) else { continue };
                for candidate in &form.candidates {
                    // A form that is in two rows has the candidates of both rows.
                    if candidate.row == Some(compiled.row)
                        && let Some(operands) = operands(&opcode, candidate)
                    {
                        all.push(Sample {
                            row: compiled.row,
                            opcode: opcode.clone(),
                            text: format!("{opcode} {operands};"),
                        });
                    }
                }
            }
        }
    }
    all.sort_by(|a, b| (a.row, &a.text).cmp(&(b.row, &b.text)));
    all.dedup();
    all
}

/// Returns operands for a candidate; `None` if the table does not describe them.
fn operands(opcode: &str, candidate: &Candidate) -> Option<String> {
    if matches!(
        candidate.lowering,
        Lowering::Mov { .. }
            | Lowering::Bra { .. }
            | Lowering::Brx { .. }
            | Lowering::Call { .. }
            | Lowering::Mapa { .. }
    ) {
        return None;
    }
    // `.param::func` requires the name of a parameter. Without `::func`, the same forms access a kernel's parameters.
    if opcode.contains("::func") {
        return None;
    }
    let mut next = 0;
    let all: Vec<String> = candidate
        .operands
        .iter()
        .map(|spec| operand(opcode, spec, &mut next))
        .collect();
    Some(all.join(", "))
}

/// Returns an operand. `next` counts the registers.
fn operand(opcode: &str, spec: &OperandSpec, next: &mut u32) -> String {
    let mut register = |ty: Type| {
        *next += 1;
        let prefix = match ty.size() {
            _ if ty == Type::Pred => "p",
            1 => "b",
            2 => "h",
            4 => "r",
            8 => "rd",
            _ => "q",
        };
        let most = if ty == Type::Pred { 4 } else { 8 };
        format!("%{prefix}{}", *next % most)
    };
    let mut value = |ty| {
        if spec.vec > 1 || spec.always_braces {
            let parts: Vec<String> = (0..spec.vec).map(|_| register(ty)).collect();
            format!("{{{}}}", parts.join(", "))
        } else {
            register(ty)
        }
    };
    match spec.role {
        // An arrival in another block of the cluster has no result.
        Role::Dest if opcode.starts_with("mbarrier") && opcode.contains("::cluster") => "_".to_owned(),
        Role::Dest | Role::Source | Role::Negatable => value(spec.ty),
        Role::DestPair => value(spec.ty),
        Role::RequiredPair => format!("{}|%p3", value(spec.ty)),
        Role::Constant => match opcode {
            _ if opcode.starts_with("mma") => "0",
            _ if opcode.starts_with("wgmma.mma_async.sp") && spec.ty == Type::U32 => "0",
            _ if opcode.starts_with("applypriority") || opcode.starts_with("discard") => "128",
            _ if opcode.starts_with("fence.proxy") || opcode.starts_with("tensormap.cp") => "128",
            _ if opcode.starts_with("tensormap") => "1",
            _ if opcode.starts_with("setmaxnreg") => "32",
            _ if opcode.starts_with("alloca") => "16",
            _ if opcode.starts_with("cp.async.c") => "16",
            _ if opcode.starts_with("wgmma.mma") => "1",
            _ => "5",
        }
        .to_owned(),
        Role::Address => match coordinates(opcode) {
            Some(coordinates) => format!("[%rd1, {coordinates}]"),
            None => "[%rd1]".to_owned(),
        },
        Role::Tensor => {
            let dims = (1..=5).find(|n| opcode.contains(&format!(".{n}d"))).unwrap_or(1);
            format!("[%rd1, {{{}}}]", vec!["%r1"; dims].join(", "))
        }
    }
}

/// Returns the coordinates for the address of a texture or surface instruction; `None` for other instructions.
fn coordinates(opcode: &str) -> Option<&'static str> {
    let (root, _) = opcode.split_once('.')?;
    if !matches!(root, "tex" | "tld4" | "suld" | "sust" | "sured") {
        return None;
    }
    let modifiers = split(&opcode[root.len()..]);
    let written = Mods::new(&modifiers).geometry().written();
    Some(match written {
        1 => "{%r1}",
        2 => "{%r1, %r2}",
        _ => "{%r1, %r2, %r3, %r4}",
    })
}
