//! The referee's forms of `atom`. Each thread uses its own memory cell, in shared memory or in its result's place.

use super::form::{OperandKind, Width};
use super::list::List;
use cuda_driver_soft_engine::semantics::atomic::*;
use cuda_driver_soft_engine::semantics::half::{pack, unpack};
use cuda_driver_soft_engine::semantics::int;

/// Returns text that stores the first operand, applies `operation` with the other operands, and loads the cell;
/// `register` is `w`, `d` or `h`.
fn place(space: &str, operation: &str, register: &str, operands: &str) -> String {
    let upper = register.to_uppercase();
    let bits = match register {
        "h" => 16,
        "w" => 32,
        _ => 64,
    };
    let (before, address) = match space {
        "shared" => (
            ".shared .b64 s[256]; mov.u32 %V, %tid.x; shl.b32 %V, %V, 3; mov.u32 %x, s; add.u32 %V, %V, %x; ",
            "%V",
        ),
        _ => ("", "%o"),
    };
    format!(
        "{before}st.{space}.b{bits} [{address}], %{register}0; atom.{space}.{operation} %{upper}, [{address}], {operands}; \
         ld.{space}.b{bits} %{upper}, [{address}]"
    )
}

pub(super) fn atomics(list: &mut List) {
    for space in ["global", "shared"] {
        let global = space == "global";
        let text = place(space, "add.f32", "w", "%w1");
        list.add(OperandKind::F32, Width::B32, text, move |a, b, _| {
            let [a, b] = [a, b].map(|v| f32::from_bits(v as u32));
            atom_add_f32(a, b, global).to_bits().into()
        });
        let text = place(space, "add.f64", "d", "%d1");
        list.add(OperandKind::F64, Width::B64, text, move |a, b, _| {
            atom_add_f64(f64::from_bits(a), f64::from_bits(b), global).to_bits()
        });
        let text = place(space, "add.noftz.f16", "h", "%h1");
        list.add(OperandKind::F16, Width::B16, text, |a, b, _| {
            atom_add_f16(a as u16, b as u16).into()
        });
        let text = place(space, "add.noftz.bf16", "h", "%h1");
        list.add(OperandKind::BF16, Width::B16, text, |a, b, _| {
            atom_add_bf16(a as u16, b as u16).into()
        });
        let text = place(space, "add.noftz.f16x2", "w", "%w1");
        list.add(OperandKind::F16x2, Width::B32, text, |a, b, _| {
            let ([a0, a1], [b0, b1]) = (unpack(a as u32), unpack(b as u32));
            pack(atom_add_f16(a0, b0), atom_add_f16(a1, b1)).into()
        });
        let text = place(space, "add.noftz.bf16x2", "w", "%w1");
        list.add(OperandKind::BF16x2, Width::B32, text, |a, b, _| {
            let ([a0, a1], [b0, b1]) = (unpack(a as u32), unpack(b as u32));
            pack(atom_add_bf16(a0, b0), atom_add_bf16(a1, b1)).into()
        });
        list.w32(&place(space, "inc.u32", "w", "%w1"), |a, b, _| inc(a, b));
        list.w32(&place(space, "dec.u32", "w", "%w1"), |a, b, _| dec(a, b));
        list.w32(&place(space, "cas.b32", "w", "%w1, %w2"), cas);
        list.w32(&place(space, "min.s32", "w", "%w1"), |a, b, _| {
            int::min(a as i32, b as i32) as u32
        });
        list.d64(&place(space, "max.u64", "d", "%d1"), |a, b, _| int::max(a, b));
    }
}
