//! Bounds checks of copies.

use core::ffi::c_void;
use core::ptr;

use super::side::{Memory, Side};
use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{self, CUmemorytype, CUresult, Function};
use crate::{Context, Result};

/// A side of a copy whose memory or array contains the whole box. Widths are in bytes.
pub(super) struct Placed<'a> {
    pub(super) kind: CUmemorytype,
    /// The address of the box in host memory, or null.
    pub(super) host: *mut c_void,
    /// The address of the box in device memory, or 0.
    pub(super) device: sys::CUdeviceptr,
    /// The array, or null.
    pub(super) array: sys::CUarray,
    /// The context of the memory, if it is known.
    pub(super) context: Option<&'a Context>,
    /// The place of the box in the array: bytes into a row, rows, slices. Zeros for memory.
    pub(super) offset: [usize; 3],
    /// Bytes from one row to the next; 0 for an array.
    pub(super) pitch: usize,
    /// Rows from one slice to the next; 0 for an array.
    pub(super) rows: usize,
}

impl<'a> Placed<'a> {
    /// Finds the box of `extent` values of `value` bytes, which is not empty. Returns `CUDA_ERROR_INVALID_VALUE` if it
    /// is not inside the memory, or if a pitch or a number of rows is too small for it.
    #[inline]
    #[track_caller]
    pub(super) fn new(side: &Side<'a>, extent: [usize; 3], value: usize) -> Result<Self> {
        let mut placed = Self {
            kind: CUmemorytype::CU_MEMORYTYPE_ARRAY,
            host: ptr::null_mut(),
            device: 0,
            array: ptr::null_mut(),
            context: None,
            offset: [0; 3],
            pitch: 0,
            rows: 0,
        };
        let room = match side.memory {
            Memory::Array(array) => {
                let ends = add(side.offset, extent).ok_or_else(outside)?;
                if ends.iter().zip(array.size()?).any(|(end, size)| *end > size) {
                    return Err(outside());
                }
                placed.array = array.raw();
                placed.context = array.context();
                placed.offset = side.offset;
                placed.offset[0] = side.offset[0].checked_mul(value).ok_or_else(outside)?;
                return Ok(placed);
            }
            Memory::Host(_, room) | Memory::Device(_, room, _) => room,
        };
        let ends = add(side.offset, extent).ok_or_else(outside)?;
        let row = ends[0].checked_mul(value).ok_or_else(outside)?;
        placed.pitch = if side.pitch == 0 { row } else { side.pitch };
        placed.rows = if side.rows == 0 { ends[1] } else { side.rows };
        if placed.pitch < row || placed.rows < ends[1] {
            return Err(refused(Refusal::Pitch));
        }
        let last = placed.byte(ends[1] - 1, ends[2] - 1).ok_or_else(outside)?;
        if last.checked_add(row).is_none_or(|end| end > room) {
            return Err(outside());
        }
        let [x, y, z] = side.offset;
        // The start of the box is before its end, which was checked above, so nothing overflows.
        let start = placed.byte(y, z).ok_or_else(outside)? + x * value;
        match side.memory {
            Memory::Host(address, _) => {
                placed.kind = CUmemorytype::CU_MEMORYTYPE_HOST;
                placed.host = address.wrapping_byte_add(start);
            }
            Memory::Device(address, _, context) => {
                placed.kind = CUmemorytype::CU_MEMORYTYPE_DEVICE;
                placed.device = address.byte_add(start as u64).as_raw();
                placed.context = context;
            }
            Memory::Array(_) => {}
        }
        Ok(placed)
    }

    /// Returns the offset of the first byte of a row; `None` if it does not fit into a `usize`.
    #[inline]
    fn byte(&self, row: usize, slice: usize) -> Option<usize> {
        slice.checked_mul(self.rows)?.checked_add(row)?.checked_mul(self.pitch)
    }
}

/// Returns the ends of a box; `None` if one does not fit into a `usize`.
#[inline]
fn add(offset: [usize; 3], extent: [usize; 3]) -> Option<[usize; 3]> {
    let [x, y, z] = offset;
    let [width, height, depth] = extent;
    Some([x.checked_add(width)?, y.checked_add(height)?, z.checked_add(depth)?])
}

#[cold]
#[inline]
#[track_caller]
fn outside() -> Error {
    refused(Refusal::Box)
}

#[cold]
#[inline]
#[track_caller]
fn refused(reason: Refusal) -> Error {
    Error::refused(CUresult::CUDA_ERROR_INVALID_VALUE, Function::cuMemcpy3D_v2, reason)
}
