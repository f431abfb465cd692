//! Matrices that a warp holds together: where `mma`, `wmma`, `ldmatrix` and their kin happen.
//!
//! A fragment is what one lane has of a matrix: some registers of one or more elements each. Those of `mma` are laid out as
//! the manual says. Those of `wmma` may be laid out in any way: here one lane after the other.

use super::{product, wgmma};
use crate::exec::machine::Machine;
use crate::exec::registers::{RegFile, Slot};
use crate::lanes::{self, Mask};
use crate::memory::access;
use ptx::ir::{MatrixPart, Mma, Op, Space, Type, Wgmma};

/// An instruction on matrices: the operation, and where its operands are.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    /// The operation.
    pub(crate) op: Op,
    /// The address and whether it has 64 bits.
    pub(crate) address: Option<(Slot, bool)>,
    /// Of `wmma.load` and `wmma.store`: elements from one row, or column, to the next.
    pub(crate) stride: Option<Slot>,
    /// Results. Those of f64 have 64 bits, all others 32.
    pub(crate) dsts: Vec<Slot>,
    /// Values: of `mma` those of A, B and C; of `wgmma` those of C, and of A if that is in registers.
    pub(crate) srcs: Vec<Slot>,
    /// Of `wgmma`, with their bytes a lane: the descriptors of A, if that has one, and of B; whether C counts.
    pub(crate) more: Vec<(Slot, u8)>,
}

/// Rows and columns of a part of `m x n x k`.
pub(super) fn extent([m, n, k]: ShapeOf, part: MatrixPart) -> (usize, usize) {
    let (rows, columns) = match part {
        MatrixPart::A => (m, k),
        MatrixPart::B => (k, n),
        MatrixPart::C => (m, n),
    };
    (usize::from(rows), usize::from(columns))
}

/// Elements in a register.
pub(super) fn per_register(ty: Type) -> usize {
    match ty {
        Type::F16 | Type::BF16 => 2,
        Type::U8 | Type::S8 | Type::E4M3 | Type::E5M2 => 4,
        Type::U4 | Type::S4 => 8,
        Type::B1 => 32,
        _ => 1,
    }
}

/// Registers of a fragment.
pub(crate) fn registers(shape: ShapeOf, part: MatrixPart, ty: Type, wmma: bool) -> usize {
    let (rows, columns) = extent(shape, part);
    // Each element is there twice.
    if wmma && ty == Type::F16 && part != MatrixPart::C {
        return 8;
    }
    rows * columns / 32 / per_register(ty)
}

/// Row and column of an element: the `e`-th of register `r` of a lane.
fn position(
    shape: ShapeOf,
    part: MatrixPart,
    ty: Type,
    wmma: bool,
    lane: usize,
    (r, e): (usize, usize),
) -> (usize, usize) {
    let (rows, columns) = extent(shape, part);
    let per = per_register(ty);
    if wmma {
        let number = lane * registers(shape, part, ty, wmma) * per + r * per + e;
        let number = number % (rows * columns);
        return (number / columns, number % columns);
    }
    // Groups of four lanes have the rows of A and C, or the columns of B.
    let (group, thread) = (lane / 4, lane % 4);
    match part {
        MatrixPart::A if rows == 8 => (group, thread * per + e + r * 4 * per),
        MatrixPart::A => (group + 8 * (r % 2), thread * per + e + r / 2 * 4 * per),
        MatrixPart::B => (thread * per + e + r * 4 * per, group),
        // Two elements side by side, be they in one register or in two; then the lower rows, then the next eight columns.
        MatrixPart::C if per == 2 => (group + 8 * (r % 2), thread * 2 + e + r / 2 * 8),
        MatrixPart::C => (group + 8 * (r / 2 % 2), thread * 2 + r % 2 + r / 4 * 8),
    }
}

/// Bits of an element.
pub(super) fn element_bits(ty: Type) -> u32 {
    match ty {
        Type::F64 => 64,
        ty => 32 / per_register(ty) as u32,
    }
}

/// Bytes of a register's value.
fn width(ty: Type) -> u8 {
    if ty == Type::F64 { 8 } else { 4 }
}

/// A whole matrix from the lanes' fragments, row by row, as bits.
pub(super) fn gather(
    file: &mut RegFile,
    slots: &[Slot],
    shape: ShapeOf,
    part: MatrixPart,
    ty: Type,
    wmma: bool,
) -> Vec<u64> {
    let (rows, columns) = extent(shape, part);
    let bits = element_bits(ty);
    let mut all = vec![0; rows * columns];
    for lane in 0..lanes::LANES {
        for (r, slot) in slots.iter().enumerate() {
            let value = file.get(*slot, width(ty), lane);
            for e in 0..per_register(ty) {
                let (row, column) = position(shape, part, ty, wmma, lane, (r, e));
                let element = value >> (e as u32 * bits) & (u64::MAX >> (64 - bits));
                if let Some(place) = all.get_mut(row * columns + column) {
                    *place = element;
                }
            }
        }
    }
    all
}

/// Gives each lane its fragment of a matrix.
pub(super) fn scatter(
    file: &mut RegFile,
    slots: &[Slot],
    (shape, part, ty, wmma): (ShapeOf, MatrixPart, Type, bool),
    mask: Mask,
    all: &[u64],
) {
    let (_, columns) = extent(shape, part);
    let bits = element_bits(ty);
    for (r, slot) in slots.iter().enumerate() {
        file.set(*slot, width(ty), mask, |lane| {
            (0..per_register(ty)).fold(0, |value, e| {
                let (row, column) = position(shape, part, ty, wmma, lane, (r, e));
                let element = all.get(row * columns + column).copied().unwrap_or(0);
                value | element << (e as u32 * bits)
            })
        });
    }
}

/// m, n, k
pub(super) type ShapeOf = [u16; 3];

/// Runs an instruction for the lanes of a warp: all that have not exited. `Err`: the fault is recorded.
pub(crate) fn run(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &Matrix,
    mask: Mask,
) -> Result<(), ()> {
    m.steps += call.worth();
    match call.op {
        Op::Mma(ref mma) => multiply(file, call, mma, mask),
        Op::Wgmma(ref op) => return wgmma::run(m, file, call, op, mask),
        Op::Ldmatrix {
            count,
            trans,
            space,
        } => return load_rows(m, file, call, mask, (usize::from(count), trans, space)),
        Op::Stmatrix {
            count,
            trans,
            space,
        } => return store_rows(m, file, call, mask, (usize::from(count), trans, space)),
        Op::Movmatrix => {
            let ([d], [a]) = (call.dsts.as_slice(), call.srcs.as_slice()) else {
                return Ok(());
            };
            let rows = small(file, *a);
            file.set(*d, 4, mask, |lane| {
                u64::from(rows[2 * (lane % 4)][lane / 4])
                    | u64::from(rows[2 * (lane % 4) + 1][lane / 4]) << 16
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

impl Matrix {
    /// The instruction's name, for reports.
    pub(crate) fn name(&self) -> &'static str {
        match self.op {
            Op::Mma(Mma { wmma: true, .. }) => "wmma.mma",
            Op::Mma(_) => "mma",
            Op::Wgmma(_) => "wgmma",
            Op::Ldmatrix { .. } => "ldmatrix",
            Op::Stmatrix { .. } => "stmatrix",
            Op::Movmatrix => "movmatrix",
            Op::WmmaLd { .. } => "wmma.load",
            _ => "wmma.store",
        }
    }

    /// Rows that it reads, with their bytes a lane.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (Slot, u8)> {
        let value = match self.op {
            Op::Mma(Mma { a, .. }) => width(a),
            Op::WmmaSt { ty, .. } => width(ty),
            _ => 4,
        };
        let address = self
            .address
            .map(|(slot, wide)| (slot, if wide { 8 } else { 4 }));
        let stride = self.stride.map(|slot| (slot, 4));
        let values = self.srcs.iter().map(move |slot| (*slot, value));
        values
            .chain(address)
            .chain(stride)
            .chain(self.more.iter().copied())
    }

    /// Rows that it writes, with their bytes a lane.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Slot, u8)> {
        let value = match self.op {
            Op::Mma(Mma { d, .. }) => width(d),
            Op::WmmaLd { ty, .. } => width(ty),
            _ => 4,
        };
        self.dsts.iter().map(move |slot| (*slot, value))
    }

    /// How many plain instructions take as long here.
    fn worth(&self) -> u64 {
        match self.op {
            Op::Mma(Mma { shape, .. }) => shape.map(u64::from).iter().product::<u64>() / 8,
            // Of the 64 rows a warp has a quarter.
            Op::Wgmma(Wgmma {
                mma: Mma { shape, .. },
                ..
            }) => shape.map(u64::from).iter().product::<u64>() / 32,
            _ => 8 * self.dsts.len().max(self.srcs.len()) as u64,
        }
    }
}

fn multiply(file: &mut RegFile, call: &Matrix, mma: &Mma, mask: Mask) {
    let Mma { shape, wmma, .. } = *mma;
    let counts = [(MatrixPart::A, mma.a), (MatrixPart::B, mma.b)]
        .map(|(part, ty)| registers(shape, part, ty, wmma));
    let (a, rest) = call.srcs.split_at(counts[0].min(call.srcs.len()));
    let (b, c) = rest.split_at(counts[1].min(rest.len()));
    let a = gather(file, a, shape, MatrixPart::A, mma.a, wmma);
    let b = gather(file, b, shape, MatrixPart::B, mma.b, wmma);
    let mut c = gather(file, c, shape, MatrixPart::C, mma.c, wmma);
    let (k, columns) = extent(shape, MatrixPart::B);
    let column = |j: usize| (0..k).map(move |x| x * columns + j);
    let by_columns: Vec<u64> = (0..columns).flat_map(column).map(|at| b[at]).collect();
    product::add(mma, &a, &by_columns, &mut c);
    scatter(
        file,
        &call.dsts,
        (shape, MatrixPart::C, mma.d, wmma),
        mask,
        &c,
    );
}

/// The address that a lane gives.
fn address(file: &mut RegFile, call: &Matrix, lane: usize) -> u64 {
    call.address.map_or(0, |(slot, wide)| {
        file.get(slot, if wide { 8 } else { 4 }, lane)
    })
}

/// Where a lane's access goes on the host.
fn place(
    m: &mut Machine<'_>,
    space: Space,
    address: u64,
    lane: usize,
    bytes: u64,
    write: bool,
) -> Result<*mut u8, ()> {
    let found = m
        .spaces
        .place_lane(space, address, lane, (bytes, bytes), write);
    found
        .map(|(at, _)| at)
        .map_err(|refusal| m.refuse(refusal, bytes as u32, write))
}

/// An 8 x 8 matrix of 16 bits from its fragments.
fn small(file: &mut RegFile, slot: Slot) -> [[u16; 8]; 8] {
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

fn load_rows(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &Matrix,
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
                // SAFETY: `place_lane` found the place valid for reads of 16 bytes, and aligned to them.
                *element = unsafe { access::load16(at.wrapping_add(2 * k)) };
            }
        }
        if trans {
            *matrix = transposed(*matrix);
        }
    }
    for (slot, rows) in call.dsts.iter().zip(matrices) {
        file.set(*slot, 4, mask, |lane| {
            u64::from(rows[lane / 4][lane % 4 * 2])
                | u64::from(rows[lane / 4][lane % 4 * 2 + 1]) << 16
        });
    }
    Ok(())
}

fn store_rows(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &Matrix,
    _mask: Mask,
    (count, trans, space): (usize, bool, Space),
) -> Result<(), ()> {
    for (i, slot) in call.srcs.iter().enumerate().take(count) {
        let mut rows = small(file, *slot);
        if trans {
            rows = transposed(rows);
        }
        for (r, row) in rows.iter().enumerate() {
            let lane = i * 8 + r;
            let to = address(file, call, lane);
            let at = place(m, space, to, lane, 16, true)?;
            for (k, element) in row.iter().enumerate() {
                // SAFETY: `place_lane` found the place valid for writes of 16 bytes, and aligned to them.
                unsafe { access::store16(at.wrapping_add(2 * k), *element) };
            }
        }
    }
    Ok(())
}

/// Address of an element in memory, less that of the matrix, in bits.
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

fn wmma_load(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &Matrix,
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
                // SAFETY: `place_lane` found the place valid for reads of these bytes, and aligned to them.
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

fn wmma_store(
    m: &mut Machine<'_>,
    file: &mut RegFile,
    call: &Matrix,
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
                // SAFETY: `place_lane` found the place valid for writes of these bytes, and aligned to them.
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
