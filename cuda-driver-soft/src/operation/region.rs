//! Rectangles and boxes in memory and in arrays: slices of rows of bytes, at a fixed pitch.

use std::sync::Arc;

use crate::object::array::{self, Texels};
use crate::object::place::MemoryPlace;
use crate::operation::outcome::{RangeResult, missing};
use crate::operation::staged::Staged;
use crate::state::error::{Error, Result};
use engine::check::Span;
use engine::memory::host::HostRange;
use engine::memory::{Allocation, BadRange, address_space};
use engine::texture::Tiles;

/// The size of a copy: bytes per row, rows per slice, slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

/// One side of a copy, as the caller describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) base: Base,
    /// Start of the copy: bytes into a row, rows, slices.
    pub(crate) offset: [u64; 3],
    /// Bytes from one row to the next; 0 for contiguous rows. Not used for an array.
    pub(crate) pitch: u64,
    /// Rows from one slice to the next; 0 for contiguous slices. Not used for an array.
    pub(crate) rows: u64,
}

/// The start of a side's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Device(u64),
    Host(u64),
    /// An address of device or host memory.
    Unified(u64),
    /// The array with this handle. The level must be 0.
    Array(usize, u32),
    /// An invalid memory type.
    Nothing,
}

/// The memory range of a side. [`Region::locate`] checks that the memory exists.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// First address, with the kind of memory of the side; the first offset if there are `tiles`.
    base: Base,
    bytes: u64,
    /// Memory of the program, which the caller keeps valid.
    host: Option<HostRange>,
    /// Memory of an array that was created with memory.
    texels: Option<Allocation>,
    /// Tiles of an array that was created without memory.
    tiles: Option<Arc<Tiles>>,
    pitch: u64,
    slice: u64,
}

/// A side whose memory contains the whole copy, or whose tiles may have memory.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) place: MemoryPlace,
    /// The tiles of a [`MemoryPlace::Tiles`].
    tiles: Option<Arc<Tiles>>,
    pitch: u64,
    slice: u64,
}

impl Side {
    /// Returns a side that is one row of bytes.
    pub(crate) fn row(base: Base) -> Side {
        Side {
            base,
            offset: [0; 3],
            pitch: 0,
            rows: 0,
        }
    }

    /// Returns the range that the side covers. The extent must not be empty. `host` turns an address and a length into
    /// memory of the program, which the caller keeps valid.
    pub(crate) fn region(&self, extent: Extent, host: &impl Fn(u64, u64) -> HostRange) -> Result<Region> {
        if let Base::Array(handle, level) = self.base {
            return self.in_array(extent, handle, level);
        }
        let [x, y, z] = self.offset;
        let overflow = Error::CUDA_ERROR_INVALID_VALUE;
        let row = x.checked_add(extent.width).ok_or(overflow)?;
        let rows = y.checked_add(extent.height).ok_or(overflow)?;
        // Driver 580 takes a pitch or height of 0 as contiguous, and checks any other value even for a single row or
        // slice.
        let or_tight = |given: u64, tight: u64| if given == 0 { tight } else { given };
        let pitch = or_tight(self.pitch, row);
        let slice_rows = or_tight(self.rows, rows);
        let slice = pitch.checked_mul(slice_rows).ok_or(overflow)?;
        if pitch < row || slice_rows < rows {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let at = |y: u64, z: u64| z.checked_mul(slice)?.checked_add(y.checked_mul(pitch)?)?.checked_add(x);
        let start = at(y, z).ok_or(overflow)?;
        let last_row = y.checked_add(extent.height - 1).ok_or(overflow)?;
        let last_slice = z.checked_add(extent.depth - 1).ok_or(overflow)?;
        let last = at(last_row, last_slice).ok_or(overflow)?;
        let bytes = (last - start).checked_add(extent.width).ok_or(overflow)?;
        let address = |base: u64| base.checked_add(start).ok_or(overflow);
        let (base, host) = match self.base {
            Base::Device(base) => (Base::Device(address(base)?), None),
            Base::Host(base) => (Base::Host(address(base)?), Some(host(address(base)?, bytes))),
            Base::Unified(base) => (Base::Unified(address(base)?), Some(host(address(base)?, bytes))),
            Base::Array(..) | Base::Nothing => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        };
        Ok(Region {
            base,
            bytes,
            host,
            texels: None,
            tiles: None,
            pitch,
            slice,
        })
    }
}

impl Side {
    /// Returns the range in an array, which has its own pitch and height. Driver 580 lets the range begin and end
    /// inside a texel.
    fn in_array(&self, extent: Extent, handle: usize, level: u32) -> Result<Region> {
        if handle == 0 || level != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let array = array::get(handle)?;
        let plane = array.image.levels[0];
        let [_, rows, slices] = plane.size;
        let rows = rows.div_ceil(array.image.block_edge());
        let ends = [plane.pitch, rows.into(), slices.into()];
        let parts = [extent.width, extent.height, extent.depth];
        for ((begin, part), end) in self.offset.iter().zip(parts).zip(ends) {
            if begin.checked_add(part).is_none_or(|last| last > end) {
                host::log!(
                    "copy of {parts:?} at offset {:?} exceeds the array's size {ends:?} (bytes, rows, slices)",
                    self.offset
                );
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        let [x, y, z] = self.offset;
        let last = (extent.depth - 1) * plane.slice + (extent.height - 1) * plane.pitch;
        Ok(Region {
            base: Base::Device(plane.address + z * plane.slice + y * plane.pitch + x),
            bytes: last + extent.width,
            host: None,
            texels: match &array.memory {
                Texels::Own(memory) => Some(*memory),
                Texels::Unbacked(_) => None,
            },
            tiles: array.image.tiles.clone(),
            pitch: plane.pitch,
            slice: plane.slice,
        })
    }
}

impl Region {
    /// Returns the first address and the number of bytes.
    pub(crate) fn range(&self) -> (u64, u64) {
        match self.base {
            Base::Device(address) | Base::Host(address) | Base::Unified(address) => (address, self.bytes),
            Base::Array(..) | Base::Nothing => (0, 0),
        }
    }

    /// Finds the memory; returns an error if it does not exist.
    pub(crate) fn locate(&self) -> Result<Located> {
        let place = match (self.base, self.host) {
            (Base::Device(address), _) => match self.texels {
                _ if self.tiles.is_some() => MemoryPlace::Tiles(address),
                Some(memory) => MemoryPlace::Device(memory, address),
                None => MemoryPlace::copied(address, self.bytes)?,
            },
            (_, Some(host)) => MemoryPlace::of(host, self.bytes)?,
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        };
        Ok(Located {
            place,
            tiles: self.tiles.clone(),
            pitch: self.pitch,
            slice: self.slice,
        })
    }
}

impl Extent {
    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        let slice = self.width.saturating_mul(self.height);
        slice.saturating_mul(self.depth)
    }
}

/// Maximum number of rows of a copy or fill that the check of races examines.
pub(crate) const MOST_ROWS: u64 = 4096;

impl Located {
    /// Returns the rows of a copy, at most [`MOST_ROWS`] of them, for the check of races.
    pub(crate) fn spans(&self, extent: Extent, writes: bool) -> Vec<Span> {
        let MemoryPlace::Device(allocation, address) = self.place else {
            return Vec::new();
        };
        let spans = self.starts(extent).take(MOST_ROWS as usize).map(|start| {
            let start = address + start;
            Span {
                allocation: allocation.id,
                range: start..start + extent.width,
                writes,
            }
        });
        spans.collect()
    }

    /// Returns the offset of each row of a box from the start of this side.
    fn starts(&self, extent: Extent) -> impl Iterator<Item = u64> + use<> {
        let (slice, pitch) = (self.slice, self.pitch);
        (0..extent.depth).flat_map(move |z| (0..extent.height).map(move |y| z * slice + y * pitch))
    }

    /// Appends the rows of a box, without gaps.
    pub(super) fn append_rows(&self, extent: Extent, to: &mut Staged) -> RangeResult {
        self.place.check_still_there()?;
        for start in self.starts(extent) {
            let mut done = 0;
            while done < extent.width {
                let (source, piece) = self.bytes(start + done, extent.width - done)?;
                match source {
                    Bytes::Device(address) => to.append_device(address, piece)?,
                    Bytes::Host(range) => to.append_host(&range),
                    Bytes::Absent => to.append_zeros(piece),
                }
                done += piece;
            }
        }
        Ok(())
    }
}

/// Copies a box row by row.
pub(crate) fn copy_rows(to: &Located, from: &Located, extent: Extent) -> RangeResult {
    to.place.check_still_there()?;
    from.place.check_still_there()?;
    for (to_offset, from_offset) in to.starts(extent).zip(from.starts(extent)) {
        row(to, to_offset, from, from_offset, extent.width)?;
    }
    Ok(())
}

/// Writes staged bytes to the rows of a box.
pub(crate) fn write_rows(to: &Located, staged: &Staged, extent: Extent) -> RangeResult {
    to.place.check_still_there()?;
    for (row, start) in (0..).step_by(extent.width as usize).zip(to.starts(extent)) {
        let mut done = 0;
        while done < extent.width {
            let (target, piece) = to.bytes(start + done, extent.width - done)?;
            let part = row + done..row + done + piece;
            match target {
                Bytes::Device(address) => staged.write_device(part, address)?,
                Bytes::Host(range) => range.write(staged.part(part)),
                Bytes::Absent => {}
            }
            done += piece;
        }
    }
    Ok(())
}

/// Memory that holds some bytes of a row.
#[derive(Clone, Copy)]
enum Bytes {
    Device(u64),
    Host(HostRange),
    /// No memory: reads give zeros, writes do nothing.
    Absent,
}

impl Located {
    /// Returns true if an access to absent memory of this side is a fault.
    pub(crate) fn faults(&self) -> bool {
        self.tiles.as_ref().is_some_and(|tiles| tiles.faults())
    }

    /// Returns the memory at an offset from the start of this side, and the number of bytes there in one piece, at most
    /// `width`.
    fn bytes(&self, offset: u64, width: u64) -> std::result::Result<(Bytes, u64), BadRange> {
        match (&self.place, &self.tiles) {
            (MemoryPlace::Device(_, base), _) => Ok((Bytes::Device(base + offset), width)),
            (MemoryPlace::Host(range), _) => Ok((Bytes::Host(range.part(offset as usize, width as usize)), width)),
            (MemoryPlace::Tiles(base), Some(tiles)) => {
                let place = tiles.place(base + offset);
                let width = width.min(place.run);
                match place.address {
                    Some(address) => Ok((Bytes::Device(address), width)),
                    None if tiles.faults() => Err(missing(base + offset, width)),
                    None => Ok((Bytes::Absent, width)),
                }
            }
            (MemoryPlace::Tiles(base), None) => Err(missing(base + offset, width)),
        }
    }
}

/// Copies one row. Offsets are relative to the start of each side.
fn row(to: &Located, to_offset: u64, from: &Located, from_offset: u64, width: u64) -> RangeResult {
    let mut done = 0;
    while done < width {
        let (target, most) = to.bytes(to_offset + done, width - done)?;
        let (source, piece) = from.bytes(from_offset + done, most)?;
        match (target, source) {
            (Bytes::Device(to), Bytes::Device(from)) => address_space().copy(to, from, piece)?,
            (Bytes::Device(to), Bytes::Host(from)) => from.part(0, piece as usize).write_to(to)?,
            (Bytes::Host(to), Bytes::Device(from)) => to.part(0, piece as usize).read_from(from)?,
            (Bytes::Host(to), Bytes::Host(from)) => to.part(0, piece as usize).copy_from(from.part(0, piece as usize)),
            (Bytes::Device(to), Bytes::Absent) => address_space().fill8(to, 0, piece)?,
            (Bytes::Host(to), Bytes::Absent) => to.part(0, piece as usize).write(&vec![0; piece as usize]),
            (Bytes::Absent, _) => {}
        }
        done += piece;
    }
    Ok(())
}
