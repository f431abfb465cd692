//! Fills, which set rows of memory to a value.

use crate::object::graph_memory;
use crate::object::place::MemoryPlace;
use crate::operation::outcome::{RangeResult, missing};
use crate::operation::region::MOST_ROWS;
use crate::state::error::{Error, Result};
use engine::check::Span;
use engine::memory::address_space;

/// The value of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillValue {
    U8(u8),
    U16(u16),
    U32(u32),
}

impl FillValue {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            FillValue::U8(_) => 1,
            FillValue::U16(_) => 2,
            FillValue::U32(_) => 4,
        }
    }
}

/// Rows of `width` values, `pitch` bytes apart. A plain fill has one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
    pub(crate) value: FillValue,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

impl Fill {
    /// Returns the number of bytes from the first byte that is set through the last one. The height must not be 0.
    /// Returns an error if the address or the pitch is not a multiple of the size of the value, if the pitch is less
    /// than a row, or if the number of bytes overflows. The pitch of a single row is ignored.
    pub(crate) fn reach(&self) -> Result<u64> {
        let size = self.value.bytes();
        let row = self.width.checked_mul(size).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if !self.address.is_multiple_of(size)
            || (self.height > 1 && (self.pitch < row || !self.pitch.is_multiple_of(size)))
        {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let before_last = self.pitch.checked_mul(self.height - 1);
        let all = before_last.and_then(|before| before.checked_add(row));
        all.ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns the number of bytes that are set.
    pub(crate) fn bytes(&self) -> u64 {
        self.width
            .saturating_mul(self.value.bytes())
            .saturating_mul(self.height)
    }

    /// Returns the rows that are set, at most [`MOST_ROWS`] of them, for the check of races.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let Ok(MemoryPlace::Device(allocation, _)) = self.place() else {
            return Vec::new();
        };
        let rows = 0..self.height.min(MOST_ROWS);
        let row = |y: u64| self.address + y * self.pitch;
        let spans = rows.map(|y| Span {
            allocation: allocation.id,
            range: row(y)..row(y) + self.width * self.value.bytes(),
            writes: true,
        });
        spans.collect()
    }

    /// Returns the memory, which may be page-locked host memory. Returns an error if [`reach`](Self::reach) does, or
    /// if the memory does not exist or is read-only.
    pub(crate) fn place(&self) -> Result<MemoryPlace> {
        let place = MemoryPlace::device(self.address, self.reach()?)?;
        place.check_writable()?;
        Ok(place)
    }

    /// Finds the memory and performs the fill.
    pub(crate) fn find_and_run(&self) -> RangeResult {
        let reach = self.reach().unwrap_or(0);
        let place = self.place().map_err(|_| missing(self.address, reach))?;
        self.run(&place)
    }

    /// Performs the fill.
    pub(crate) fn run(&self, place: &MemoryPlace) -> RangeResult {
        place.check_still_there()?;
        for y in 0..self.height {
            let at = self.address + y * self.pitch;
            match self.value {
                FillValue::U8(v) => address_space().fill8(at, v, self.width),
                FillValue::U16(v) => address_space().fill16(at, v, self.width),
                FillValue::U32(v) => address_space().fill32(at, v, self.width),
            }?;
        }
        Ok(())
    }
}

/// Returns an error if a fill is empty, if [`Fill::reach`] does, or if its memory is read-only or does not exist. Memory
/// of graph nodes is accepted even if it is not allocated now.
pub(crate) fn check(fill: &Fill) -> Result<()> {
    if fill.width == 0 || fill.height == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    if graph_memory::contains(fill.address, fill.reach()?) {
        return Ok(());
    }
    fill.place().map(drop)
}
