//! Instructions on matrices that the lanes of a warp hold together: `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.
//! The module `wgmma` runs `wgmma.mma_async`.

use super::fragment::{ShapeOf, element_bits, extent, gather, is_of_quads, per_register, position, registers, scatter};
use super::{product, quads, sparse, wgmma};
use crate::code::machine::Machine;
use crate::code::matrix::{MatrixInst, width};
use crate::code::registers::{RegFile, Slot};
use crate::lanes::{self, Mask};
use crate::memory::access;
use ptx::ir::{MatrixPart, Mma, Op, Space, Type};

/// Runs an instruction for all lanes of a warp that have not exited. Returns `Err` if a lane faults; the machine then
/// has the fault.
pub(crate) fn run(m: &mut Machine<'_>, file: &mut RegFile, call: &MatrixInst, mask: Mask) -> Result<(), ()> {
    m.steps += call.steps();
    match call.op {
        Op::Mma(ref mma) => multiply(file, call, mma, mask),
        Op::Wgmma(ref op) => return wgmma::run(m, file, call, op, mask),
        Op::Ldmatrix { count, trans, space } => {
            return load_rows(m, file, call, mask, (usize::from(count), trans, space));
        }
        Op::Stmatrix { count, trans, space } => {
            return store_rows(m, file, call, (usize::from(count), trans, space));
        }
        Op::Movmatrix => {
            let ([d], [a]) = (call.dsts.as_slice(), call.srcs.as_slice()) else {
                return Ok(());
            };
            let rows = matrix_8x8(file, *a);
            file.set(*d, 4, mask, |lane| {
                u64::from(rows[2 * (lane % 4)][lane / 4]) | u64::from(rows[2 * (lane % 4) + 1][lane / 4]) << 16
            });
        }
        Op::WmmaLd {
            shape,
            part,
            ty,
            column,
            space,
        } => return wmma_load(m, file, call, mask, (shape, part, ty, column, space)),
        Op::WmmaSt {
            shape,
            ty,
            column,
            space,
        } => return wmma_store(m, file, call, mask, (shape, ty, column, space)),
        _ => {}
    }
    Ok(())
}

/// Runs `mma` and `wmma.mma`.
fn multiply(file: &mut RegFile, call: &MatrixInst, mma: &Mma, mask: Mask) {
    if is_of_quads(mma.shape, mma.a) {
        return quads::multiply(file, call, mma, mask);
    }
    let Mma { shape, wmma, .. } = *mma;
    let (a_shape, mut values) = (mma.stored_shape(), call.srcs.as_slice());
    let metadata = match (mma.sparse, values.split_last()) {
        (Some(_), Some((last, rest))) => {
            values = rest;
            Some(*last)
        }
        _ => None,
    };
    let (a, rest) = values.split_at(registers(a_shape, MatrixPart::A, mma.a, wmma).min(values.len()));
    let (b, c) = rest.split_at(registers(shape, MatrixPart::B, mma.b, wmma).min(rest.len()));
    let a = gather(file, a, a_shape, MatrixPart::A, mma.a, wmma);
    let b = gather(file, b, shape, MatrixPart::B, mma.b, wmma);
    let mut c = gather(file, c, shape, MatrixPart::C, mma.c, wmma);
    let (k, columns) = extent(shape, MatrixPart::B);
    let column = |j: usize| (0..k).map(move |x| x * columns + j);
    let by_columns: Vec<u64> = (0..columns).flat_map(column).map(|at| b[at]).collect();
    let places = metadata.map(|metadata| sparse::places(file, metadata, mma));
    let add = match mma.a {
        Type::E4M3 | Type::E5M2 => product::add_small,
        _ => product::add,
    };
    add(mma, &a, &by_columns, &mut c, places.as_deref());
    scatter(file, &call.dsts, (shape, MatrixPart::C, mma.d, wmma), mask, &c);
}

/// Returns the address operand of a lane.
fn address(file: &mut RegFile, call: &MatrixInst, lane: usize) -> u64 {
    call.address
        .map_or(0, |(slot, wide)| file.get(slot, if wide { 8 } else { 4 }, lane))
}

/// Returns the host address of a lane's access. Returns `Err` if the lane faults.
fn place(m: &mut Machine<'_>, space: Space, address: u64, lane: usize, bytes: u64, write: bool) -> Result<*mut u8, ()> {
    let found = m.spaces.place_lane(space, address, lane, (bytes, bytes), write);
    found
        .map(|(at, _)| at)
        .map_err(|refusal| m.refuse(refusal, bytes as u32, write))
}

/// Collects an 8 x 8 matrix of 16-bit elements from its fragments.
fn matrix_8x8(file: &mut RegFile, slot: Slot) -> [[u16; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for lane in 0..lanes::LANES {
        let value = file.get(slot, 4, lane);
        rows[lane / 4][lane % 4 * 2] = value as u16;
        rows[lane / 4][lane % 4 * 2 + 1] = (value >> 16) as u16;
    }
    rows
}

fn transposed(rows: [[u16; 8]; 8]) -> [[u16; 8]; 8] {
    std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
}

/// Runs `ldmatrix`. Returns `Err` if a lane faults.
fn load_rows(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &MatrixInst,
    mask: Mask,
    (count, trans, space): (usize, bool, Space),
) -> Result<(), ()> {
    let mut matrices = [[[0u16; 8]; 8]; 4];
    for (i, matrix) in matrices.iter_mut().enumerate().take(count) {
        for (r, row) in matrix.iter_mut().enumerate() {
            let lane = i * 8 + r;
            let from = address(file, call, lane);
            let at = place(m, space, from, lane, 16, false)?;
            for (k, element) in row.iter_mut().enumerate() {
                // SAFETY: `place` found the address valid for reads of 16 bytes, and aligned to them.
                *element = unsafe { access::load16(at.wrapping_add(2 * k)) };
            }
        }
        if trans {
            *matrix = transposed(*matrix);
        }
    }
    for (slot, rows) in call.dsts.iter().zip(matrices) {
        file.set(*slot, 4, mask, |lane| {
            u64::from(rows[lane / 4][lane % 4 * 2]) | u64::from(rows[lane / 4][lane % 4 * 2 + 1]) << 16
        });
    }
    Ok(())
}

/// Runs `stmatrix`. Returns `Err` if a lane faults.
fn store_rows(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &MatrixInst,
    (count, trans, space): (usize, bool, Space),
) -> Result<(), ()> {
    for (i, slot) in call.srcs.iter().enumerate().take(count) {
        let mut rows = matrix_8x8(file, *slot);
        if trans {
            rows = transposed(rows);
        }
        for (r, row) in rows.iter().enumerate() {
            let lane = i * 8 + r;
            let to = address(file, call, lane);
            let at = place(m, space, to, lane, 16, true)?;
            for (k, element) in row.iter().enumerate() {
                // SAFETY: `place` found the address valid for writes of 16 bytes, and aligned to them.
                unsafe { access::store16(at.wrapping_add(2 * k), *element) };
            }
        }
    }
    Ok(())
}

/// Returns the distance in bits of an element in memory from the start of the matrix.
fn offset(
    (shape, part, ty): (ShapeOf, MatrixPart, Type),
    column_major: bool,
    stride: Option<u64>,
    (row, column): (usize, usize),
) -> u64 {
    let (rows, columns) = extent(shape, part);
    let (outer, inner, default) = if column_major {
        (column, row, rows)
    } else {
        (row, column, columns)
    };
    let stride = stride.unwrap_or(default as u64);
    (outer as u64)
        .wrapping_mul(stride)
        .wrapping_add(inner as u64)
        .wrapping_mul(u64::from(element_bits(ty)))
}

/// Runs `wmma.load`. Returns `Err` if a lane faults.
fn wmma_load(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &MatrixInst,
    mask: Mask,
    (shape, part, ty, column_major, space): (ShapeOf, MatrixPart, Type, bool, Space),
) -> Result<(), ()> {
    let bits = element_bits(ty);
    for lane in lanes::iter(mask) {
        let base = address(file, call, lane);
        let stride = call.stride.map(|slot| file.get(slot, 4, lane));
        for (r, slot) in call.dsts.iter().enumerate() {
            let mut value = 0u64;
            for e in 0..per_register(ty) {
                let at = position(shape, part, ty, true, lane, (r, e));
                let offset = offset((shape, part, ty), column_major, stride, at);
                let from = base.wrapping_add(offset / 8);
                let at = place(m, space, from, lane, u64::from(bits / 8).max(1), false)?;
                // SAFETY: `place` found the address valid for reads of these bytes, and aligned to them.
                let element = unsafe {
                    match bits {
                        ..=8 => u64::from(access::load8(at)) >> (offset % 8),
                        16 => u64::from(access::load16(at)),
                        32 => u64::from(access::load32(at)),
                        _ => access::load64(at),
                    }
                };
                let element = element & (u64::MAX >> (64 - bits));
                value |= element << (e as u32 * bits);
            }
            file.set(*slot, width(ty), 1 << lane, |_| value);
        }
    }
    Ok(())
}

/// Runs `wmma.store`. Returns `Err` if a lane faults.
fn wmma_store(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &MatrixInst,
    mask: Mask,
    (shape, ty, column_major, space): (ShapeOf, Type, bool, Space),
) -> Result<(), ()> {
    let bits = element_bits(ty);
    for lane in lanes::iter(mask) {
        let base = address(file, call, lane);
        let stride = call.stride.map(|slot| file.get(slot, 4, lane));
        for (r, slot) in call.srcs.iter().enumerate() {
            let value = file.get(*slot, width(ty), lane);
            for e in 0..per_register(ty) {
                let at = position(shape, MatrixPart::C, ty, true, lane, (r, e));
                let matrix = (shape, MatrixPart::C, ty);
                let to = base.wrapping_add(offset(matrix, column_major, stride, at) / 8);
                let at = place(m, space, to, lane, u64::from(bits / 8), true)?;
                let element = value >> (e as u32 * bits);
                // SAFETY: `place` found the address valid for writes of these bytes, and aligned to them.
                unsafe {
                    match bits {
                        16 => access::store16(at, element as u16),
                        32 => access::store32(at, element as u32),
                        _ => access::store64(at, element),
                    }
                }
            }
        }
    }
    Ok(())
}
