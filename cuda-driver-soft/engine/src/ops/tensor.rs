//! Tensor copies (`cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`) and `tensormap.replace`.
//!
//! A copy is complete when its instruction has run.

use super::atomic;
use super::bulk::complete_tx;
use super::tensor_rows::{Layout, Place, Row, each_row, origin, swizzled_offset};
use crate::code::machine::Machine;
use crate::code::registers::RegFile;
use crate::code::tensor::TensorInst;
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::memory::access;
use crate::memory::warp::of_rank;
use crate::semantics::cvt::cvt_tf32_from_f32;
use crate::semantics::half::OUT_OF_BOUNDS;
use crate::tensor_map::{BYTES, Mode, TensorMap, replace};
use ptx::ir::{AtomOp, Op, Rounding, Space, TensorCopy, TensorDirection, TensorMapReplace, TensorMode, Type};

/// Maximum number of sources of an instruction: three addresses, five coordinates, three offsets, the mask of blocks.
const SOURCES: usize = 12;
/// Alignment of a box in shared memory.
const SHARED_ALIGN: u64 = 128;
/// Alignment of a tensor map.
const MAP_ALIGN: u64 = 64;
/// Alignment of the first element of a copy in global memory.
const ORIGIN_ALIGN: u64 = 16;

/// Runs an instruction for the lanes of the mask. Returns `Err` if a lane faults; the machine then has the fault.
pub(crate) fn run(m: &mut Machine<'_>, file: &mut RegFile, inst: &TensorInst, mask: Mask) -> Result<(), ()> {
    for lane in lanes::iter(mask) {
        let mut sources = [0u64; SOURCES];
        for (source, (slot, width)) in sources.iter_mut().zip(&inst.srcs) {
            *source = file.get(*slot, *width, lane);
        }
        match inst.op {
            Op::TensorCopy(copy) => run_copy(m, lane, copy, &sources)?,
            Op::TensorMapReplace(field) => run_replace(m, lane, field, sources[0], sources[1])?,
            _ => {}
        }
    }
    Ok(())
}

/// Records the fault of an invalid copy, and returns `Err`.
fn refuse(m: &mut Machine<'_>, lane: usize, problem: &'static str) -> Result<(), ()> {
    m.fault = Some((FaultKind::TensorCopy { problem }, lane));
    Err(())
}

/// Returns the host address of a tensor map.
fn place_map(m: &mut Machine<'_>, lane: usize, space: Space, address: u64, write: bool) -> Result<*mut u8, ()> {
    let range = (BYTES as u64, MAP_ALIGN);
    let found = m.spaces.place_lane(space, address, lane, range, write);
    found
        .map(|(at, _)| at)
        .map_err(|refusal| m.refuse(refusal, BYTES as u32, write))
}

/// Runs `tensormap.replace` for one lane. Returns `Err` if the lane faults.
fn run_replace(m: &mut Machine<'_>, lane: usize, field: TensorMapReplace, address: u64, value: u64) -> Result<(), ()> {
    let at = place_map(m, lane, field.space, address, true)?;
    let mut bytes = [0; BYTES];
    // SAFETY: `place_map` found the address valid for reads and writes of all bytes of a map.
    unsafe { access::copy(bytes.as_mut_ptr(), at, BYTES) };
    replace(&mut bytes, field.field, field.dimension, value);
    // SAFETY: as above.
    unsafe { access::copy(at, bytes.as_ptr(), BYTES) };
    Ok(())
}

/// Runs a tensor copy of one lane. Returns `Err` if the lane faults.
fn run_copy(m: &mut Machine<'_>, lane: usize, copy: TensorCopy, sources: &[u64; SOURCES]) -> Result<(), ()> {
    let at = place_map(m, lane, Space::Generic, sources[1], false)?;
    let mut bytes = [0; BYTES];
    // SAFETY: `place_map` found the address valid for reads of all bytes of a map.
    unsafe { access::copy(bytes.as_mut_ptr(), at, BYTES) };
    let Some(map) = TensorMap::decode(&bytes) else {
        return refuse(m, lane, "the operand is not a tensor map");
    };
    let tiled = copy.mode == TensorMode::Tile;
    if map.rank != copy.dims || tiled != (map.mode == Mode::Tiled) {
        return refuse(
            m,
            lane,
            "the tensor map and the instruction differ in the number of dimensions or in the mode",
        );
    }
    if map.interleave != 0 && !tiled {
        let opcode = format!("{copy} of an interleaved tensor");
        m.fault = Some((FaultKind::Unsupported { opcode }, lane));
        return Err(());
    }
    let layout = match Layout::of(&map) {
        Ok(layout) => layout,
        Err(problem) => return refuse(m, lane, problem),
    };
    let (mut place, rank) = (Place::default(), usize::from(map.rank));
    let addresses = match copy.direction {
        TensorDirection::Load { .. } => 3,
        TensorDirection::Store { .. } => 2,
    };
    for (to, from) in place.coordinates.iter_mut().zip(&sources[addresses..addresses + rank]) {
        *to = *from as u32 as i32;
    }
    let offsets = &sources[addresses + rank..][..copy.offsets()];
    for (to, from) in place.offsets.iter_mut().zip(offsets) {
        *to = i32::from(*from as u16);
    }
    if !origin(&map, &layout, &place).is_multiple_of(ORIGIN_ALIGN) {
        return refuse(
            m,
            lane,
            "the first element is not at a multiple of 16 bytes in global memory",
        );
    }
    let first = &place.coordinates[..rank];
    // An H200 faults in both of these cases.
    if matches!(copy.direction, TensorDirection::Store { .. }) && first.iter().any(|at| *at < 0) {
        return refuse(m, lane, "a coordinate of a store is negative");
    }
    if !tiled && !in_pixel_box(&map, first) {
        return refuse(m, lane, "the first pixel is outside of the pixel box");
    }
    // Copying 256 bytes takes about as long as one plain instruction.
    m.steps += u64::from(layout.bytes()) / 256;
    match copy.direction {
        TensorDirection::Load { multicast, .. } => {
            let blocks = match multicast {
                true => Some(sources[addresses + rank + copy.offsets()] as u16),
                false => None,
            };
            for rank in lanes::iter(blocks.map_or(1, u32::from)) {
                let in_block = |address| match blocks {
                    Some(_) => of_rank(address, rank as u32),
                    None => address,
                };
                load(m, lane, &map, &layout, &place, in_block(sources[0]))?;
                complete_tx(m, lane, in_block(sources[2]), layout.bytes())?;
            }
            Ok(())
        }
        TensorDirection::Store { reduce } => store(m, lane, &map, &layout, &place, sources[0], reduce),
    }
}

/// Returns true if the pixel box of an im2col map contains these coordinates.
fn in_pixel_box(map: &TensorMap, at: &[i32]) -> bool {
    (1..at.len().saturating_sub(1)).all(|i| {
        let end = map.dims[i] as i64 + i64::from(map.upper[i - 1]);
        (i64::from(map.lower[i - 1])..end).contains(&i64::from(at[i]))
    })
}

/// A box in shared memory.
struct SharedBox {
    /// Address in shared memory of the first byte.
    address: u64,
    /// Host address of the first byte.
    host: *mut u8,
    swizzle: u8,
}

impl SharedBox {
    /// Checks an access to a whole box. Returns `Err` if the lane faults.
    fn place(
        m: &mut Machine<'_>,
        lane: usize,
        layout: &Layout,
        address: u64,
        write: bool,
        swizzle: u8,
    ) -> Result<Self, ()> {
        let bytes = layout.shared_bytes(address, swizzle);
        let found = m
            .spaces
            .place_lane(Space::SharedCluster, address, lane, (bytes.into(), SHARED_ALIGN), write);
        match found {
            Ok((host, _)) => Ok(SharedBox { address, host, swizzle }),
            Err(refusal) => {
                m.refuse(refusal, bytes, write);
                Err(())
            }
        }
    }

    /// Passes the host address of each piece of a row to `visit`, with the start of the piece in the row and its
    /// length. With swizzling a piece has 16 bytes; without, the whole row is one piece.
    fn pieces(&self, row: &Row, bytes: u32, mut visit: impl FnMut(*mut u8, usize, usize)) {
        if self.swizzle == 0 {
            return visit(self.host.wrapping_add(row.shared as usize), 0, bytes as usize);
        }
        for at in (0..bytes).step_by(16) {
            let offset = swizzled_offset(self.address, row.shared + at, self.swizzle);
            visit(self.host.wrapping_add(offset as usize), at as usize, 16);
        }
    }
}

/// Returns the host address of the bytes of a row that are inside of the tensor.
fn place_row(m: &mut Machine<'_>, lane: usize, row: &Row, write: bool) -> Result<*mut u8, ()> {
    let bytes = row.inside.len() as u64;
    let address = row.global.wrapping_add(row.inside.start.into());
    let found = m.spaces.place_lane(Space::Global, address, lane, (bytes, 1), write);
    found
        .map(|(at, _)| at)
        .map_err(|refusal| m.refuse(refusal, bytes as u32, write))
}

/// Copies the elements of a box from the tensor to shared memory. Returns `Err` if the lane faults.
fn load(m: &mut Machine<'_>, lane: usize, map: &TensorMap, layout: &Layout, place: &Place, to: u64) -> Result<(), ()> {
    let target = SharedBox::place(m, lane, layout, to, true, map.swizzle)?;
    let mut buffer = vec![0u8; layout.row as usize];
    each_row(map, layout, place, |row| {
        let inside = row.inside.start as usize..row.inside.end as usize;
        if inside.len() < buffer.len() {
            fill(&mut buffer, map.fill);
        }
        if !inside.is_empty() {
            let from = place_row(m, lane, &row, false)?;
            let part = &mut buffer[inside];
            // SAFETY: `place_row` found the bytes valid for reads, and the buffer has as many.
            unsafe { access::copy(part.as_mut_ptr(), from, part.len()) };
            // `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32` and `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ`.
            if matches!(map.data_type, 11 | 12) {
                for word in part.as_chunks_mut::<4>().0 {
                    *word = round_to_tf32(u32::from_le_bytes(*word)).to_le_bytes();
                }
            }
        }
        target.pieces(&row, layout.row, |at, start, bytes| {
            // SAFETY: `SharedBox::place` found the box valid for writes; the piece is inside of the row and of the box.
            unsafe { access::copy(at, buffer[start..start + bytes].as_ptr(), bytes) };
        });
        Ok(())
    })
}

/// Converts an `f32` pattern to `.tf32`.
fn round_to_tf32(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    match value.is_nan() {
        true => 0x7fff_e000,
        false => cvt_tf32_from_f32(value, Rounding::Rn, false, false),
    }
}

/// Fills a row with zeros, or if `fill` is not 0, with the NaN that `fma.oob` recognises in each half-word.
fn fill(row: &mut [u8], fill: u8) {
    let element = match fill {
        0 => 0,
        _ => OUT_OF_BOUNDS,
    };
    for half in row.as_chunks_mut::<2>().0 {
        *half = element.to_le_bytes();
    }
}

/// Copies the elements of a box from shared memory to the tensor, or reduces them there. Returns `Err` if the lane
/// faults.
fn store(
    m: &mut Machine<'_>,
    lane: usize,
    map: &TensorMap,
    layout: &Layout,
    place: &Place,
    from: u64,
    reduce: Option<AtomOp>,
) -> Result<(), ()> {
    let source = SharedBox::place(m, lane, layout, from, false, map.swizzle)?;
    let operation = match reduce.map(|op| reduction(op, map.data_type)) {
        Some(None) => return refuse(m, lane, "the type of the tensor does not have this reduction"),
        Some(Some(mods)) => Some(mods),
        None => None,
    };
    let mut buffer = vec![0u8; layout.row as usize];
    each_row(map, layout, place, |row| {
        if row.inside.is_empty() {
            return Ok(());
        }
        source.pieces(&row, layout.row, |at, start, bytes| {
            // SAFETY: `SharedBox::place` found the box valid for reads; the piece is inside of the row and of the box.
            unsafe { access::copy(buffer[start..start + bytes].as_mut_ptr(), at, bytes) };
        });
        let to = place_row(m, lane, &row, true)?;
        let part = &buffer[row.inside.start as usize..row.inside.end as usize];
        match operation {
            // SAFETY: `place_row` found the bytes valid for writes.
            None => unsafe { access::copy(to, part.as_ptr(), part.len()) },
            Some(mods) => {
                let element = layout.element as usize;
                // Of the f32 types, only those with `FTZ` in their names flush subnormal numbers, as `red.global` does.
                // All other types are added as in global memory.
                let flushes = !matches!(map.data_type, 7 | 11);
                for (i, value) in part.chunks_exact(element).enumerate() {
                    let b = value.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
                    let new = |a| atomic::applied(mods, layout.element, flushes, a, b, 0);
                    // SAFETY: `place_row` found the bytes valid for writes, and memory that can be written can be read.
                    // The origin of the copy and all strides are multiples of 16 bytes, so elements are aligned.
                    unsafe { access::update(to.wrapping_add(i * element), layout.element, new) };
                }
            }
        }
        Ok(())
    })
}

/// Returns the encoded operation of a reduction on elements of a `CUtensorMapDataType`; `None` if there is none.
fn reduction(op: AtomOp, data_type: u8) -> Option<u32> {
    use AtomOp::*;
    let ty = match data_type {
        2 => Type::U32,
        3 => Type::S32,
        4 => Type::U64,
        // An H200 has only these two operations on signed 64-bit integers.
        5 if matches!(op, Min | Max) => Type::S64,
        6 => Type::F16,
        7 | 10..=12 => Type::F32,
        8 => Type::F64,
        9 => Type::BF16,
        _ => return None,
    };
    let integer = !ty.is_float();
    let known = match op {
        Add => true,
        Min | Max => integer || matches!(ty, Type::F16 | Type::BF16),
        And | Or | Xor => integer,
        Inc | Dec => ty == Type::U32,
        Exch | Cas => false,
    };
    known.then(|| atomic::operation(op, ty))?
}
