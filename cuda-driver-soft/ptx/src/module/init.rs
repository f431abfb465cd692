//! Initial values of variables: converts nested lists of constants and addresses to bytes and relocations.

use crate::ast::{Ast, DeclType, Init, InitKind, Pos, Var};
use crate::hash::NumberMap;
use crate::ir::{Reloc, RelocTarget, Space, Type, VarId};
use crate::names::Name;
use crate::scopes::Symbol;
use crate::unit::Global;

/// The initial value of a variable.
pub(super) struct InitialValue {
    /// Size of the variable in bytes.
    pub(super) size: u64,
    /// The first bytes; all others are zero.
    pub(super) bytes: Vec<u8>,
    /// The addresses in the value.
    pub(super) relocs: Vec<Reloc>,
}

/// The place and the message of an error.
type InitError = (Pos, String);

/// The state of one conversion.
struct Filler<'a> {
    ast: &'a Ast,
    globals: &'a NumberMap<Name, Global>,
    space_of: &'a dyn Fn(VarId) -> Space,
    ty: DeclType,
    /// The dimensions, outermost first. The last dimension of a vector type is the vector's elements.
    dims: Vec<Dimension>,
    is_vector: bool,
    nodes: std::slice::Iter<'a, Init>,
    /// Limit on the length of `bytes`.
    room: usize,
    bytes: Vec<u8>,
    relocs: Vec<Reloc>,
}

/// A dimension of an array.
struct Dimension {
    /// Number of elements.
    count: u64,
    /// Bytes of an element.
    step: u64,
}

/// Returns the initial value of a variable. Its bytes up to the last given element are limited to `room`.
pub(super) fn value(
    ast: &Ast,
    globals: &NumberMap<Name, Global>,
    space_of: &dyn Fn(VarId) -> Space,
    var: &Var,
    nodes: &[Init],
    room: usize,
) -> Result<InitialValue, InitError> {
    let Some(first) = nodes.first() else {
        return Err((var.pos, mismatch()));
    };
    let mut dims: Vec<u64> = var.dims.iter().map(|d| d.unwrap_or(0)).collect();
    // `a[] = {…}` has as many elements as values.
    if var.dims.first() == Some(&None) {
        dims[0] = outer_count(nodes);
        if dims[0] == 0 {
            return Err((first.pos, mismatch()));
        }
    }
    if var.vec > 1 {
        dims.push(u64::from(var.vec));
    }
    let mut steps = Vec::new();
    let mut step = u64::from(var.ty.size());
    for &count in dims.iter().rev() {
        steps.push(Dimension { count, step });
        step = step
            .checked_mul(count)
            .filter(|s| *s <= i64::MAX as u64)
            .ok_or((var.pos, "Variable is too large".to_owned()))?;
    }
    steps.reverse();
    let size = step;
    let scalar = steps.is_empty();
    if scalar != (first.kind != InitKind::Open) {
        return Err((first.pos, mismatch()));
    }
    let mut filler = Filler {
        ast,
        globals,
        space_of,
        ty: var.ty,
        dims: steps,
        is_vector: var.vec > 1,
        nodes: nodes.iter(),
        room,
        bytes: Vec::new(),
        relocs: Vec::new(),
    };
    if let Some(init) = filler.nodes.next() {
        filler.fill(init, 0, 0)?;
    }
    Ok(InitialValue {
        size,
        bytes: filler.bytes,
        relocs: filler.relocs,
    })
}

fn mismatch() -> String {
    "Initial value type mismatch".to_owned()
}

/// Returns the number of elements of the outermost list.
fn outer_count(nodes: &[Init]) -> u64 {
    let mut depth = 0;
    let mut count = 0;
    for node in nodes {
        match node.kind {
            InitKind::Open => {
                count += u64::from(depth == 1);
                depth += 1;
            }
            InitKind::Close => depth -= 1,
            _ => count += u64::from(depth == 1),
        }
    }
    count
}

impl Filler<'_> {
    /// Converts a value at a depth of nested lists.
    fn fill(&mut self, init: &Init, depth: usize, offset: u64) -> Result<(), InitError> {
        let Some(&Dimension { count, step }) = self.dims.get(depth) else {
            return self.scalar(init, offset);
        };
        if init.kind != InitKind::Open {
            // A flat list for an array of several dimensions.
            let message = if depth > 0 {
                "Greater number of elements in array initializer".to_owned()
            } else {
                mismatch()
            };
            return Err((init.pos, message));
        }
        let mut index = 0;
        while let Some(node) = self.nodes.next() {
            if node.kind == InitKind::Close {
                break;
            }
            if index >= count {
                return Err((node.pos, "Greater number of elements in array initializer".to_owned()));
            }
            self.fill(node, depth + 1, offset + index * step)?;
            index += 1;
        }
        if self.is_vector && depth + 1 == self.dims.len() && index < count {
            return Err((
                init.pos,
                "Incorrect number of elements in vector initializer".to_owned(),
            ));
        }
        Ok(())
    }

    fn put(&mut self, pos: Pos, offset: u64, bytes: &[u8]) -> Result<(), InitError> {
        let start = offset as usize;
        let end = start + bytes.len();
        if self.bytes.len() < end {
            if end > self.room || self.bytes.try_reserve(end - self.bytes.len()).is_err() {
                return Err((pos, "Initial values take too many bytes".to_owned()));
            }
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn scalar(&mut self, init: &Init, offset: u64) -> Result<(), InitError> {
        let DeclType::Scalar(ty) = self.ty else {
            return Err((init.pos, mismatch()));
        };
        use Type::{B8, B16, B32, B64, B128, F32, F64};
        let size = ty.size() as usize;
        let mut reloc = None;
        let bits: u128 = match init.kind {
            InitKind::Int(bits) if !ty.is_float() => bits.into(),
            // As in ptxas, `0f…` is not converted to f64: its bits are the lower half of the value.
            InitKind::F32(bits) if matches!(ty, F32 | F64 | B8 | B16 | B32 | B64 | B128) => bits.into(),
            InitKind::F64(bits) if matches!(ty, F32 | B32) => (f64::from_bits(bits) as f32).to_bits().into(),
            // As in ptxas, only the lower bits of a value of f64 fit in 8 or 16 bits: 1.0 becomes 0.
            InitKind::F64(bits) if matches!(ty, F64 | B8 | B16 | B64 | B128) => bits.into(),
            InitKind::Address {
                name,
                offset: addend,
                generic,
                mask,
            } => {
                let text = self.ast.names.text(name);
                let target = match self.globals.get(&name).map(|g| g.symbol) {
                    Some(Symbol::Variable { var, .. }) => {
                        if !matches!((self.space_of)(var), Space::Global | Space::Const) {
                            let message = "Variable used as initial value not in .global or .const state space";
                            return Err((init.pos, message.to_owned()));
                        }
                        RelocTarget::Variable(var)
                    }
                    Some(Symbol::Function(_)) if addend != 0 => return Err((init.pos, mismatch())),
                    Some(Symbol::Function(_)) if generic => {
                        return Err((init.pos, "Invalid initial value expression".to_owned()));
                    }
                    Some(Symbol::Function(id)) => RelocTarget::Function(id),
                    _ => return Err((init.pos, format!("Invalid initial value symbol '{text}'"))),
                };
                let width = if mask.is_some() { 1 } else { size.min(8) as u8 };
                let fits = match mask {
                    Some(_) => !ty.is_float(),
                    None => matches!(
                        ty,
                        Type::U32 | Type::S32 | Type::B32 | Type::U64 | Type::S64 | Type::B64
                    ),
                };
                if !fits {
                    return Err((init.pos, mismatch()));
                }
                reloc = Some(Reloc {
                    offset,
                    width,
                    target,
                    addend,
                    generic,
                    shift: mask.unwrap_or(0),
                });
                0
            }
            _ => return Err((init.pos, mismatch())),
        };
        self.put(init.pos, offset, &bits.to_le_bytes()[..size])?;
        self.relocs.extend(reloc);
        Ok(())
    }
}
