//! The rows of elements that a tensor copy moves, and their order in shared memory.

#![forbid(unsafe_code)]

use crate::tensor_map::{Mode, TensorMap};
use std::ops::Range;

/// Limit on the bytes of a box, padding included. No block has that much shared memory.
const MOST_BYTES: u64 = 1 << 20;
/// Limit on the elements of a box in one dimension, and on the channels of a pixel.
const MOST_ELEMENTS: u16 = 256;
/// Unit of the strides in bytes.
const STRIDE_UNIT: u64 = 16;

/// The operands of a tensor copy that select the elements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Coordinates of the first element.
    pub(super) coordinates: [i32; 5],
    /// Offsets of W, H and D (im2col).
    pub(super) offsets: [i32; 3],
}

/// Elements that are consecutive in the tensor and, before swizzling, in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Offset of the row in shared memory, before swizzling.
    pub(super) shared: u32,
    /// Address of the first element in global memory, even if it is outside of the tensor.
    pub(super) global: u64,
    /// The bytes of the row that are inside of the tensor.
    pub(super) inside: Range<u32>,
}

/// The shape in shared memory of the box that a tensor map describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of an element.
    pub(super) element: u32,
    /// Bytes of a row.
    pub(super) row: u32,
    /// Number of rows.
    pub(super) rows: u32,
    /// Distance between rows in bytes: rows shorter than the swizzle span are padded to it.
    pub(super) pitch: u32,
    /// Rows of each pixel. If the tensor is interleaved, a row is one slice of 16 or 32 bytes, and this is the number of
    /// slices that the box has in dimension 0; else it is 1.
    slices: u32,
}

impl Layout {
    /// Returns the shape in shared memory of a map's box.
    ///
    /// # Errors
    /// Returns the problem if no copy can use the map: a kernel may have changed it.
    pub(super) fn of(map: &TensorMap) -> Result<Self, &'static str> {
        const UNSUPPORTED: &str = "the tensor map has an unsupported type or layout";
        let element = crate::tensor_map::element_bytes(map.data_type).ok_or(UNSUPPORTED)? as u32;
        let rank = usize::from(map.rank);
        let tiled = map.mode == Mode::Tiled;
        if map.strides[..rank - 1].iter().any(|n| !n.is_multiple_of(STRIDE_UNIT)) {
            return Err("a stride of the tensor map is not a multiple of 16 bytes");
        }
        let (inner, pixels) = match map.mode {
            Mode::Tiled => {
                if map.boxes[..rank].iter().any(|n| !(1..=MOST_ELEMENTS).contains(n)) {
                    return Err("a dimension of the tensor map's box is not in 1..=256");
                }
                let outer = (1..rank).map(|i| u64::from(box_steps(map, i)));
                (u32::from(map.boxes[0]), outer.product())
            }
            Mode::Im2col if rank >= 3 => {
                if !(1..=MOST_ELEMENTS).contains(&map.channels) {
                    return Err("the tensor map's number of channels is not in 1..=256");
                }
                (u32::from(map.channels), u64::from(map.pixels))
            }
            _ => return Err(UNSUPPORTED),
        };
        let slice = slice_bytes(map);
        let (row, slices) = match slice {
            0 => (inner * element, 1),
            slice => (slice, box_steps(map, 0)),
        };
        let span = match map.swizzle {
            0 => 0,
            mode @ 1..=3 if slice == 0 => swizzle_span(mode),
            1..=3 => 0,
            _ => return Err(UNSUPPORTED),
        };
        let rows = pixels * u64::from(slices);
        let pitch = row.max(span);
        if !row.is_multiple_of(16) || rows == 0 || slice != 0 && !(tiled && rank >= 3) {
            return Err(UNSUPPORTED);
        }
        if rows * u64::from(pitch) > MOST_BYTES {
            return Err("the tensor map's box exceeds the shared memory of a block");
        }
        Ok(Layout {
            element,
            row,
            rows: rows as u32,
            pitch,
            slices,
        })
    }

    /// Returns the number of bytes that the copy signals to its barrier.
    pub(super) fn bytes(&self) -> u32 {
        self.row * self.rows
    }

    /// Returns the number of bytes from the start of a box at `address` in shared memory, a multiple of 128, to the end
    /// of its last byte. Swizzling may move a row towards the end of its span.
    pub(super) fn shared_bytes(&self, address: u64, swizzle: u8) -> u32 {
        let end = self.pitch * (self.rows - 1) + self.row;
        if swizzle == 0 {
            return end;
        }
        // Swizzling moves bytes inside of their span only.
        let last_span = (end - 1) / swizzle_span(swizzle) * swizzle_span(swizzle);
        let ends = (last_span..end)
            .step_by(16)
            .map(|at| swizzled_offset(address, at, swizzle) + 16);
        ends.fold(end, u32::max)
    }
}

/// Returns the size of the units inside of which a mode of swizzling moves bytes.
fn swizzle_span(mode: u8) -> u32 {
    16 << mode.min(3)
}

/// Returns the bytes of a slice of channels; 0 without interleaving.
fn slice_bytes(map: &TensorMap) -> u32 {
    match map.interleave {
        0 => 0,
        1 => 16,
        _ => 32,
    }
}

/// Returns the number of elements, or slices, that a box has in a dimension. On an H200, the box of an interleaved
/// tensor has one element in the last dimension but one, regardless of the map.
fn box_steps(map: &TensorMap, dimension: usize) -> u32 {
    if map.interleave != 0 && dimension + 2 == usize::from(map.rank) {
        return 1;
    }
    let stride = u32::from(map.element_strides[dimension]).max(1);
    u32::from(map.boxes[dimension]).div_ceil(stride)
}

/// Returns the address of an element. An H200 counts dimension 0 of an interleaved tensor in slices, which are adjacent
/// in memory.
fn address(map: &TensorMap, layout: &Layout, at: &[i64; 5]) -> u64 {
    let rank = usize::from(map.rank);
    let inner = match slice_bytes(map) {
        0 => layout.element,
        slice => slice,
    };
    let mut offset = at[0].wrapping_mul(inner.into());
    for (at, stride) in at[1..rank].iter().zip(&map.strides) {
        offset = offset.wrapping_add(at.wrapping_mul(*stride as i64));
    }
    map.address.wrapping_add(offset as u64)
}

/// Returns the address of the first element of a copy, even if it is outside of the tensor.
pub(super) fn origin(map: &TensorMap, layout: &Layout, place: &Place) -> u64 {
    let mut at = place.coordinates.map(i64::from);
    if map.mode != Mode::Tiled {
        for (at, offset) in at[1..].iter_mut().zip(place.offsets) {
            *at += i64::from(offset);
        }
    }
    address(map, layout, &at)
}

/// Passes each row of a copy to `visit`, in the order of shared memory. Stops at the first error.
pub(super) fn each_row(
    map: &TensorMap,
    layout: &Layout,
    place: &Place,
    mut visit: impl FnMut(Row) -> Result<(), ()>,
) -> Result<(), ()> {
    let rank = usize::from(map.rank);
    // Elements per row, and the bytes of each. A slice of an interleaved tensor counts as one element.
    let (elements, bytes) = match slice_bytes(map) {
        0 => (layout.row / layout.element, layout.element),
        slice => (1, slice),
    };
    let step = i64::from(map.element_strides[0].max(1));
    let mut walk = Walk::new(map, place);
    for row in 0..layout.rows {
        let (pixel, slice) = (row / layout.slices, row % layout.slices);
        let mut at = walk.pixel(pixel);
        at[0] = i64::from(place.coordinates[0]) + i64::from(slice) * step;
        let outside = (1..rank).any(|i| at[i] < 0 || at[i] as u64 >= map.dims[i]);
        let first = (-at[0]).clamp(0, elements.into()) as u32;
        let last = (map.dims[0] as i64 - at[0]).clamp(0, elements.into()) as u32;
        let inside = match outside {
            true => 0..0,
            false => first * bytes..last.max(first) * bytes,
        };
        visit(Row {
            shared: row * layout.pitch,
            global: address(map, layout, &at),
            inside,
        })?;
    }
    Ok(())
}

/// The positions of the pixels of a copy. Computing them in ascending order is fast.
struct Walk<'a> {
    map: &'a TensorMap,
    place: &'a Place,
    /// The most recently computed position of an im2col copy, without offsets, and its number.
    last: (u32, [i64; 5]),
}

impl<'a> Walk<'a> {
    fn new(map: &'a TensorMap, place: &'a Place) -> Self {
        Walk {
            map,
            place,
            last: (0, place.coordinates.map(i64::from)),
        }
    }

    /// Returns the coordinates of a pixel. The caller sets dimension 0.
    fn pixel(&mut self, number: u32) -> [i64; 5] {
        let rank = usize::from(self.map.rank);
        let mut at = self.place.coordinates.map(i64::from);
        if self.map.mode == Mode::Tiled {
            let mut rest = number;
            for (i, at) in at.iter_mut().enumerate().take(rank).skip(1) {
                let steps = box_steps(self.map, i);
                *at += i64::from(rest % steps) * i64::from(self.map.element_strides[i].max(1));
                rest /= steps;
            }
            return at;
        }
        if number < self.last.0 {
            self.last = (0, at);
        }
        while self.last.0 < number {
            self.last.0 += 1;
            self.next();
        }
        at = self.last.1;
        for (at, offset) in at[1..].iter_mut().zip(self.place.offsets).take(rank - 2) {
            *at += i64::from(offset);
        }
        at
    }

    /// Goes to the next pixel of the pixel box: along W, then H, then D, then to the next image.
    fn next(&mut self) {
        let rank = usize::from(self.map.rank);
        for i in 1..rank - 1 {
            let at = &mut self.last.1[i];
            *at += i64::from(self.map.element_strides[i].max(1));
            if *at < self.map.dims[i] as i64 + i64::from(self.map.upper[i - 1]) {
                return;
            }
            *at = i64::from(self.map.lower[i - 1]);
        }
        self.last.1[rank - 1] += 1;
    }
}

/// Returns the offset in a box at `address` in shared memory, a multiple of 128, of the byte that is at `offset` before
/// swizzling: the index of its 16-byte unit is XORed with the low `swizzle` bits of the index of its 128-byte unit.
pub(super) fn swizzled_offset(address: u64, offset: u32, swizzle: u8) -> u32 {
    let mask = (1 << swizzle.min(3)) - 1;
    offset ^ (((address as u32).wrapping_add(offset)) >> 7 & mask) << 4
}
