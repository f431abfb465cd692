//! Every form of the table, for tests and documentation.

use super::{Candidate, Compiled, Made, Role, Spec, find, fit, mods, table};
use crate::ir::{Op, Type};

/// The opcodes that a row of the table has: its root with every choice of modifiers that go together.
fn opcodes(root: &str, compiled: &Compiled) -> Vec<String> {
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

/// Every opcode of the table with every choice of its modifiers, and the operation that it is lowered to; without one
/// where that depends on the operands (`mov`, `bra`, `call`) or where there is nothing to do. Memory operations without
/// a state space access the generic one.
pub fn every_form() -> Vec<(String, Option<Op>)> {
    let mut all = Vec::new();
    for (root, rows) in &table().roots {
        for compiled in rows {
            for opcode in opcodes(root, compiled) {
                // Some choices exclude one another: they are no forms.
                let Ok(form) = find(&opcode) else { continue };
                for candidate in form.candidates {
                    let op = match candidate.made {
                        Made::Op(op)
                        | Made::Memory(op)
                        | Made::Cvta(op)
                        | Made::Pointers(op)
                        | Made::Told(op)
                        | Made::Texture(op)
                        | Made::Carry { op, .. } => Some(op),
                        Made::Policy(_) => Some(Op::Mov { ty: Type::B64 }),
                        Made::Video(inst) => Some(Op::Video(inst)),
                        Made::Wgmma(wgmma) => Some(Op::Wgmma(wgmma)),
                        Made::Lop3(bool_op) => Some(Op::Lop3 { lut: 0, bool_op }),
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

/// The classes of modifiers that the rows name: `<name>` stands for one of the members, which `|` parts.
pub fn modifier_classes() -> &'static [(&'static str, &'static str)] {
    super::CLASSES
}

/// The instructions that load but do not run, but for some forms that the table has: PTX version and lowest architecture.
pub fn later_roots() -> Vec<(&'static str, (u32, u32), u32)> {
    let root = |(name, ptx, sm): &(&'static str, u32, u32)| (*name, (ptx / 10, ptx % 10), *sm);
    super::later::ROOTS.iter().map(root).collect()
}

/// An instruction that has a form of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the form's row in [`table_rows`](super::table_rows).
    pub row: usize,
    /// The opcode with its modifiers.
    pub opcode: String,
    /// The instruction, with registers of [`Sample::REGISTERS`] as operands; ends with `;`.
    pub text: String,
}

impl Sample {
    /// Declarations of the registers in the instructions.
    pub const REGISTERS: &str =
        ".reg .pred %p<4>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>;";
    /// Those of 128 bits, which older versions do not have.
    pub const WIDE_REGISTERS: &str = ".reg .b128 %q<8>;";
}

/// An instruction for every form and every list of operands, but for those of `mov`, `bra`, `brx`, `call` and `mapa`, which
/// the table says little of.
pub fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for (root, rows) in &table().roots {
        for compiled in rows {
            for opcode in opcodes(root, compiled) {
                let modifiers = mods::split(&opcode[root.len()..]);
                let Ok(form) = find(&opcode) else { continue };
                if !fit(&compiled.elements, &modifiers) {
                    continue;
                }
                for candidate in &form.candidates {
                    // Forms of two rows have the operands of both: of each row its own.
                    let own = compiled.operands.iter().any(|list| {
                        list.len() == candidate.specs.len()
                            && list.iter().zip(&candidate.specs).all(|(text, spec)| {
                                super::spec(text, &super::Mods::new(&modifiers)) == *spec
                            })
                    });
                    if own && let Some(operands) = operands(&opcode, candidate) {
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

/// Operands that a candidate takes. `None`: they are not what the table says.
fn operands(opcode: &str, candidate: &Candidate) -> Option<String> {
    if matches!(
        candidate.made,
        Made::Mov { .. }
            | Made::Bra { .. }
            | Made::Brx { .. }
            | Made::Call { .. }
            | Made::Mapa { .. }
    ) {
        return None;
    }
    // The parameters of a function have names; without the state space's second part they are there too.
    if opcode.contains("::func") {
        return None;
    }
    let mut next = 0;
    let all: Vec<String> = candidate
        .specs
        .iter()
        .map(|spec| operand(opcode, spec, &mut next))
        .collect();
    Some(all.join(", "))
}

fn operand(opcode: &str, spec: &Spec, next: &mut u32) -> String {
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
        // What happens in another block of the cluster has no result.
        Role::Dest if opcode.starts_with("mbarrier") && opcode.contains("::cluster") => {
            "_".to_owned()
        }
        Role::Dest | Role::Source | Role::Predicate => value(spec.ty),
        Role::DestPair => value(spec.ty),
        Role::DestBoth => format!("{}|%p3", value(spec.ty)),
        Role::Constant => match opcode {
            _ if opcode.starts_with("applypriority") || opcode.starts_with("discard") => "128",
            _ if opcode.starts_with("fence.proxy") => "128",
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
    }
}

/// What a texture or surface is read at.
fn coordinates(opcode: &str) -> Option<&'static str> {
    let (root, _) = opcode.split_once('.')?;
    if !matches!(root, "tex" | "tld4" | "suld" | "sust" | "sured") {
        return None;
    }
    let modifiers = mods::split(&opcode[root.len()..]);
    let written = super::texture::geometry(&super::Mods::new(&modifiers)).written();
    Some(match written {
        1 => "{%r1}",
        2 => "{%r1, %r2}",
        _ => "{%r1, %r2, %r3, %r4}",
    })
}
