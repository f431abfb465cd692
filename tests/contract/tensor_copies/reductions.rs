//! Tests of `cp.reduce.async.bulk.tensor`.

use super::kernels::{Copy, difference, store};
use super::model::{TILE, TYPES, Tensor};
use super::{bytes, has_tensor_copies};
use crate::common::gpu::Gpu;
use crate::ok;
use cuda_driver::sys::*;

/// Combines the bits of a number in memory with those of a number of the copy.
type Combine = fn(u64, u64) -> u64;

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The operations: index of the type in [`TYPES`], name, and function. The arguments are zero-extended.
#[rustfmt::skip] // a table
const REDUCTIONS: &[(usize, &str, Combine)] = &[
    (2, "add", |a, b| (a as u32).wrapping_add(b as u32).into()),
    (2, "min", |a, b| a.min(b)),
    (2, "max", |a, b| a.max(b)),
    (2, "inc", |a, b| if a >= b { 0 } else { a + 1 }),
    (2, "dec", |a, b| if a == 0 || a > b { b } else { a - 1 }),
    (2, "and", |a, b| a & b),
    (2, "or", |a, b| a | b),
    (2, "xor", |a, b| a ^ b),
    (3, "add", |a, b| (a as u32).wrapping_add(b as u32).into()),
    (3, "min", |a, b| (a as i32).min(b as i32) as u32 as u64),
    (3, "max", |a, b| (a as i32).max(b as i32) as u32 as u64),
    (4, "add", |a, b| a.wrapping_add(b)),
    (4, "min", |a, b| a.min(b)),
    (4, "max", |a, b| a.max(b)),
    (4, "and", |a, b| a & b),
    (4, "or", |a, b| a | b),
    (4, "xor", |a, b| a ^ b),
    (5, "min", |a, b| (a as i64).min(b as i64) as u64),
    (5, "max", |a, b| (a as i64).max(b as i64) as u64),
    (7, "add", |a, b| (f32_of(a) + f32_of(b)).to_bits().into()),
    (10, "add", |a, b| (f32_of(a) + f32_of(b)).to_bits().into()),
    // The tests use positive numbers, which compare like their bits.
    (6, "min", |a, b| a.min(b)),
    (6, "max", |a, b| a.max(b)),
    (9, "min", |a, b| a.min(b)),
    (9, "max", |a, b| a.max(b)),
];

#[test]
fn reductions() {
    if !has_tensor_copies() {
        return;
    }
    let gpu = Gpu::new();
    let mut text = ".version 8.6\n.target sm_90\n.address_size 64\n".to_owned();
    for op in ["add", "min", "max", "inc", "dec", "and", "or", "xor"] {
        let copy = format!(
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group [%map, {{%c1, %c2}}], [%tile];"
        );
        text += &store(op, &copy);
    }
    let module = gpu.text(&text);
    let mut wrong = Vec::new();
    for (index, op, combine) in REDUCTIONS {
        for swizzle in [0, 128] {
            let ty = TYPES[*index];
            let row = (128 / ty.1) as u32;
            let mut tensor = Tensor::new(ty, &[u64::from(row) + 16, 9], &[row, 8]);
            tensor.swizzle = swizzle;
            let (memory, shared) = (bytes(tensor.bytes, 21), bytes(TILE, 22));
            let address = gpu.upload(&memory);
            let at = [16, 3];
            let copy = Copy {
                map: tensor.tiled(address),
                bytes: 0,
                at: &at,
                offsets: &[],
                start: 0,
            };
            let kernel = gpu.function(module, op);
            copy.store(&gpu, kernel, &shared);
            let got = gpu.read::<u8>(address, memory.len());
            ok!(cuMemFree(address));
            let want = tensor.stored(&memory, &shared, &tensor.tile(&at, 0), combine);
            if let Some(text) = difference(&got, &want) {
                wrong.push(format!("{op} {tensor:?}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds small whole numbers in the 16-bit floating-point types, where their sums are exact.
#[test]
fn sums_of_half_precision() {
    if !has_tensor_copies() {
        return;
    }
    let gpu = Gpu::new();
    let head = ".version 8.6\n.target sm_90\n.address_size 64\n";
    let copy = "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%map, {%c1}], [%tile];";
    let module = gpu.text(&format!("{head}{}", store("sum", copy)));
    let kernel = gpu.function(module, "sum");
    // 1, 2, 3, 4, and their sums with 2, 3, 4, 5, in both types.
    let cases: [(usize, [u16; 4], [u16; 4]); 2] = [
        (6, [0x3c00, 0x4000, 0x4200, 0x4400], [0x4200, 0x4500, 0x4700, 0x4880]),
        (9, [0x3f80, 0x4000, 0x4040, 0x4080], [0x4040, 0x40a0, 0x40e0, 0x4110]),
    ];
    for (index, first, sums) in cases {
        let second: Vec<u16> = match index {
            6 => vec![0x4000, 0x4200, 0x4400, 0x4500],
            _ => vec![0x4000, 0x4040, 0x4080, 0x40a0],
        };
        let tensor = Tensor::new(TYPES[index], &[8], &[8]);
        let address = gpu.upload(&[first, first].concat());
        let mut shared = vec![0_u16; TILE / 2];
        for part in [0, 4] {
            shared[part..part + 4].copy_from_slice(&second);
        }
        let shared: Vec<u8> = shared.iter().flat_map(|n| n.to_le_bytes()).collect();
        let copy = Copy {
            map: tensor.tiled(address),
            bytes: 0,
            at: &[0],
            offsets: &[],
            start: 0,
        };
        copy.store(&gpu, kernel, &shared);
        assert_eq!(gpu.read::<u16>(address, 8), [sums, sums].concat(), "type {index}");
    }
}
