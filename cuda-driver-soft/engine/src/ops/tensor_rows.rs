//! The rows of elements that a tensor copy moves, and their order in shared memory.

#![forbid(unsafe_code)]

use crate::tensor_map::{Mode, TensorMap};
use std::ops::Range;

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
    /// Address of the first element in global memory, also if it is outside of the tensor.
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
    /// Rows of each pixel: the slices of 16 or 32 bytes of an interleaved tensor, else 1.
    slices: u32,
}

impl Layout {
    /// Returns the layout, or `None` if no copy can use the map.
    pub(super) fn of(map: &TensorMap) -> Option<Self> {
        let element = crate::tensor_map::element_bytes(map.data_type)? as u32;
        let rank = usize::from(map.rank);
        let (inner, pixels) = match map.mode {
            Mode::Tiled => {
                let outer = (1..rank).map(|i| box_steps(map, i)).product();
                (u32::from(map.boxes[0]), outer)
            }
            Mode::Im2col if rank >= 3 => (u32::from(map.channels), u32::from(map.pixels)),
            _ => return None,
        };
        let bytes = inner * element;
        let slice = slice_bytes(map);
        let (row, slices) = match slice {
            0 => (bytes, 1),
            slice => (slice.min(bytes), bytes.div_ceil(slice)),
        };
        let span = match map.swizzle {
            0 => 0,
            mode @ 1..=3 if slice == 0 => 16 << mode,
            1..=3 => 0,
            _ => return None,
        };
        let usable = row > 0 && row.is_multiple_of(16) && pixels > 0 && (slice == 0 || rank >= 3);
        usable.then_some(Layout {
            element,
            row,
            rows: pixels * slices,
            pitch: row.max(span),
            slices,
        })
    }

    /// Returns the number of bytes that the copy signals to its barrier.
    pub(super) fn bytes(&self) -> u32 {
        self.row * self.rows
    }

    /// Returns the bytes that the box takes in shared memory, padding included.
    pub(super) fn shared_bytes(&self) -> u32 {
        self.pitch * (self.rows - 1) + self.row
    }
}

/// Returns the bytes of a slice of channels; 0 without interleaving.
fn slice_bytes(map: &TensorMap) -> u32 {
    match map.interleave {
        0 => 0,
        1 => 16,
        _ => 32,
    }
}

/// Returns the number of elements that a box has in a dimension.
fn box_steps(map: &TensorMap, dimension: usize) -> u32 {
    let stride = u32::from(map.element_strides[dimension]).max(1);
    u32::from(map.boxes[dimension]).div_ceil(stride)
}

/// Returns the address of an element. The stride of slices follows from the other strides.
fn address(map: &TensorMap, layout: &Layout, at: &[i64; 5]) -> u64 {
    let rank = usize::from(map.rank);
    let element = i64::from(layout.element);
    let mut offset = match slice_bytes(map) {
        0 => at[0].wrapping_mul(element),
        slice => {
            let channels = i64::from(slice) / element;
            let stride = (map.strides[rank - 3] as i64).wrapping_mul(map.dims[rank - 2] as i64);
            (at[0].rem_euclid(channels) * element).wrapping_add(at[0].div_euclid(channels).wrapping_mul(stride))
        }
    };
    for (at, stride) in at[1..rank].iter().zip(&map.strides) {
        offset = offset.wrapping_add(at.wrapping_mul(*stride as i64));
    }
    map.address.wrapping_add(offset as u64)
}

/// Returns the address of the first element of a copy, also if it is outside of the tensor.
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
    let channels = layout.row / layout.element;
    // In shared memory, the slices are outside of all dimensions but the last.
    let outermost = match (layout.slices, map.mode) {
        (1, _) => 1,
        (_, Mode::Tiled) => box_steps(map, rank - 1),
        _ => 1,
    };
    let pixels = layout.rows / layout.slices / outermost;
    let mut walk = Walk::new(map, place);
    for row in 0..layout.rows {
        let (outer, rest) = (row / (pixels * layout.slices), row % (pixels * layout.slices));
        let (slice, pixel) = (rest / pixels, rest % pixels);
        let mut at = walk.pixel(outer * pixels + pixel);
        at[0] = i64::from(place.coordinates[0]) + i64::from(slice * channels);
        let outside = (1..rank).any(|i| at[i] < 0 || at[i] as u64 >= map.dims[i]);
        let first = (-at[0]).clamp(0, channels.into()) as u32;
        let last = (map.dims[0] as i64 - at[0]).clamp(0, channels.into()) as u32;
        let inside = match outside {
            true => 0..0,
            false => first * layout.element..last.max(first) * layout.element,
        };
        visit(Row {
            shared: row * layout.pitch,
            global: address(map, layout, &at),
            inside,
        })?;
    }
    Ok(())
}

/// The positions of the pixels of a copy, which are visited from the first to the last, possibly several times.
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

/// Returns the swizzled address of a byte in shared memory: the index of its 16-byte unit is XORed with low bits of the
/// index of its 128-byte unit.
pub(super) fn swizzled(address: u64, swizzle: u8) -> u64 {
    let mask = (1u64 << swizzle.min(3)) - 1;
    address ^ (address >> 7 & mask) << 4
}
