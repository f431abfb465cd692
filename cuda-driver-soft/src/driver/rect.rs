//! Copies of rectangles and boxes: rows of bytes, a pitch apart, in slices.

use super::array;
use super::copy::{self, Done, Waits};
use super::error::{Error, Result};
use super::memory::Place;
use super::stream::StreamRef;
use crate::memory::host::HostRange;
use crate::memory::space;

/// How much is copied: bytes of a row, rows of a slice, slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

/// One side of a copy, as the caller describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) base: Base,
    /// Where the copy begins: bytes into a row, rows, slices.
    pub(crate) offset: [u64; 3],
    /// Bytes from a row to the next.
    pub(crate) pitch: u64,
    /// Rows from a slice to the next.
    pub(crate) rows: u64,
}

/// Where a side's memory begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Device(u64),
    Host(u64),
    /// Whatever lies at this address.
    Unified(u64),
    /// The array of this handle; with a level that is not 0 none.
    Array(usize, u32),
    /// No kind of memory that there is.
    Nothing,
}

/// A side whose memory is known to hold all that is copied.
#[derive(Clone, Copy)]
struct Located {
    place: Place,
    pitch: u64,
    slice: u64,
}

impl Side {
    /// Finds the memory. `host` vouches for so many bytes of the program's memory.
    fn locate(&self, extent: Extent, host: &impl Fn(u64, u64) -> HostRange) -> Result<Located> {
        if let Base::Array(handle, level) = self.base {
            return self.in_array(extent, handle, level);
        }
        let [x, y, z] = self.offset;
        let overflow = Error::INVALID_VALUE;
        let row = x.checked_add(extent.width).ok_or(overflow)?;
        let rows = y.checked_add(extent.height).ok_or(overflow)?;
        // As recorded: 0 says that rows, or slices, follow one another without a gap; else all must fit, even a single one.
        let or_tight = |given: u64, tight: u64| if given == 0 { tight } else { given };
        let pitch = or_tight(self.pitch, row);
        let slice_rows = or_tight(self.rows, rows);
        let slice = pitch.checked_mul(slice_rows).ok_or(overflow)?;
        if pitch < row || slice_rows < rows {
            return Err(Error::INVALID_VALUE);
        }
        let at = |y: u64, z: u64| {
            z.checked_mul(slice)?
                .checked_add(y.checked_mul(pitch)?)?
                .checked_add(x)
        };
        let start = at(y, z).ok_or(overflow)?;
        let last_row = y.checked_add(extent.height - 1).ok_or(overflow)?;
        let last_slice = z.checked_add(extent.depth - 1).ok_or(overflow)?;
        let last = at(last_row, last_slice).ok_or(overflow)?;
        let bytes = (last - start).checked_add(extent.width).ok_or(overflow)?;
        let address = |base: u64| base.checked_add(start).ok_or(overflow);
        let place = match self.base {
            Base::Device(base) => Place::device(address(base)?, bytes)?,
            Base::Host(base) | Base::Unified(base) => {
                Place::of(host(address(base)?, bytes), bytes)?
            }
            Base::Array(..) | Base::Nothing => return Err(Error::INVALID_VALUE),
        };
        Ok(Located {
            place,
            pitch,
            slice,
        })
    }
}

impl Side {
    /// Finds the part of an array, whose pitch and rows are its own. As recorded, it may begin and end inside of texels.
    fn in_array(&self, extent: Extent, handle: usize, level: u32) -> Result<Located> {
        if handle == 0 || level != 0 {
            return Err(Error::INVALID_VALUE);
        }
        let array = array::get(handle)?;
        let plane = array.image.levels[0];
        let [_, rows, slices] = plane.size;
        let ends = [plane.pitch, rows.into(), slices.into()];
        let parts = [extent.width, extent.height, extent.depth];
        for ((begin, part), end) in self.offset.iter().zip(parts).zip(ends) {
            if begin.checked_add(part).is_none_or(|last| last > end) {
                crate::log!(
                    "a copy of {parts:?} at {:?} of an array of {ends:?}",
                    self.offset
                );
                return Err(Error::INVALID_VALUE);
            }
        }
        let [x, y, z] = self.offset;
        let address = plane.address + z * plane.slice + y * plane.pitch + x;
        Ok(Located {
            place: Place::Device(array.memory, address),
            pitch: plane.pitch,
            slice: plane.slice,
        })
    }
}

/// Copies a box. `host` vouches for memory of the program, by address and bytes.
pub(crate) fn copy(
    to: Side,
    from: Side,
    extent: Extent,
    stream: &StreamRef,
    waits: Waits,
    host: impl Fn(u64, u64) -> HostRange,
) -> Result<()> {
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Ok(());
    }
    let (to, from) = (to.locate(extent, &host)?, from.locate(extent, &host)?);
    to.place.check_writable()?;
    let bytes = extent
        .width
        .saturating_mul(extent.height)
        .saturating_mul(extent.depth);
    let wait = copy::host_waits(&to.place, &from.place, waits);
    let task = move || {
        to.place.check_still_there()?;
        from.place.check_still_there()?;
        for z in 0..extent.depth {
            for y in 0..extent.height {
                row(
                    &to,
                    z * to.slice + y * to.pitch,
                    &from,
                    z * from.slice + y * from.pitch,
                    extent.width,
                )?;
            }
        }
        Ok(())
    };
    copy::run(task, copy::cost(bytes), stream, wait)
}

/// Copies one row; the offsets are from the start of each side.
fn row(to: &Located, to_offset: u64, from: &Located, from_offset: u64, width: u64) -> Done {
    let part = |host: &HostRange, offset: u64| host.part(offset as usize, width as usize);
    match (&to.place, &from.place) {
        (Place::Device(_, to), Place::Device(_, from)) => {
            space().copy(to + to_offset, from + from_offset, width)
        }
        (Place::Device(_, to), Place::Host(from)) => {
            part(from, from_offset).write_to(to + to_offset)
        }
        (Place::Host(to), Place::Device(_, from)) => {
            part(to, to_offset).read_from(from + from_offset)
        }
        (Place::Host(to), Place::Host(from)) => {
            part(to, to_offset).copy_from(part(from, from_offset));
            Ok(())
        }
    }
}
