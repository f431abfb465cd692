//! Memory that only one block at a time uses: shared and local memory, and the parameters of a launch.

use super::zeroed::Zeroed;
use std::fmt;

/// Most bytes of local memory that a thread can have: 512 KiB, less what a driver keeps for itself.
pub(crate) const MOST_LOCAL: u64 = (512 << 10) - 1024;

/// Alignment of a buffer, and the unit of its size.
const LINE: u64 = 128;

/// Zeroed bytes at an address that is a multiple of 128.
pub(crate) struct Buffer {
    /// The bytes, rounded up to whole lines.
    memory: Zeroed,
    bytes: u64,
}

impl Default for Buffer {
    fn default() -> Self {
        Buffer {
            memory: Zeroed::empty(LINE as usize),
            bytes: 0,
        }
    }
}

impl Buffer {
    /// `None` if the host has no memory for it.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let memory = match bytes.checked_next_multiple_of(LINE)? {
            0 => Zeroed::empty(LINE as usize),
            room => Zeroed::new(room, LINE)?,
        };
        Some(Buffer { memory, bytes })
    }

    /// A buffer with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut buffer = Self::new(bytes.len() as u64)?;
        buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        Some(buffer)
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Address of the first byte on the host.
    pub(crate) fn host(&mut self) -> *mut u8 {
        self.memory.address()
    }

    /// All bytes, `len` rounded up to whole lines.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let room = self.bytes.next_multiple_of(LINE) as usize;
        // SAFETY: `memory` has that many bytes, initialised, and is borrowed as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.host(), room) }
    }

    /// Sets all to zero.
    pub(crate) fn clear(&mut self) {
        // Some CPUs take long to write nothing to nowhere.
        if self.bytes > 0 {
            self.as_mut_slice().fill(0);
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// The local memory of the 32 threads of a warp: a stack each, at the same offsets.
#[derive(Debug, Default)]
pub(crate) struct LocalMemory {
    buffer: Buffer,
    /// Bytes of one thread's stack.
    stride: u64,
}

impl LocalMemory {
    /// Bytes that each thread has.
    pub(crate) fn stride(&self) -> u64 {
        self.stride
    }

    /// Makes room for at least this many bytes for each thread. `None` if the host has no memory for it, or a thread
    /// cannot have so much.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Option<()> {
        if bytes <= self.stride {
            return Some(());
        }
        if bytes > MOST_LOCAL {
            return None;
        }
        let stride = bytes
            .max(2 * self.stride)
            .min(MOST_LOCAL)
            .next_multiple_of(LINE);
        let mut buffer = Buffer::new(stride * 32)?;
        let (old, new) = (self.stride as usize, stride as usize);
        for lane in 0..32 {
            let from = &self.buffer.as_mut_slice()[lane * old..(lane + 1) * old];
            buffer.as_mut_slice()[lane * new..lane * new + old].copy_from_slice(from);
        }
        *self = LocalMemory { buffer, stride };
        Some(())
    }

    /// Address of the first byte of lane 0's stack on the host.
    pub(crate) fn host(&mut self) -> *mut u8 {
        self.buffer.host()
    }

    /// The bytes of one thread's stack from `offset` on.
    pub(crate) fn lane(&mut self, lane: usize, offset: u64, bytes: u64) -> Option<&mut [u8]> {
        let end = offset
            .checked_add(bytes)
            .filter(|end| *end <= self.stride)?;
        let start = lane as u64 * self.stride;
        self.buffer
            .as_mut_slice()
            .get_mut((start + offset) as usize..(start + end) as usize)
    }

    /// Copies bytes inside one thread's stack.
    pub(crate) fn copy(&mut self, lane: usize, from: u64, to: u64, bytes: u64) {
        let Some(source) = self.lane(lane, from, bytes).map(|s| s.to_vec()) else {
            return;
        };
        if let Some(target) = self.lane(lane, to, bytes) {
            target.copy_from_slice(&source);
        }
    }

    /// Sets the same part of every thread's stack to zero.
    pub(crate) fn clear(&mut self, offset: u64, bytes: u64) {
        // Most kernels have none, and some CPUs take long to write nothing to nowhere.
        for lane in 0..if bytes == 0 { 0 } else { 32 } {
            if let Some(part) = self.lane(lane, offset, bytes) {
                part.fill(0);
            }
        }
    }
}
