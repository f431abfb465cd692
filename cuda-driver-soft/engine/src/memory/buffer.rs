//! Memory that one block at a time uses: shared memory, local memory, and the parameters of a launch.

use super::zeroed::Zeroed;
use std::fmt;

/// The most bytes of local memory that a thread can have: 512 KiB less the bytes that the driver keeps for itself.
pub(crate) const MOST_LOCAL: u64 = (512 << 10) - 1024;

/// Alignment of a buffer in bytes, and the unit of its size.
const LINE: u64 = 128;

/// Owned bytes at an address that is a multiple of 128, initially zero.
pub(crate) struct Buffer {
    /// The memory: `bytes`, rounded up to whole lines.
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
    /// Creates a buffer. Returns `None` if the host has no memory for it.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let memory = match bytes.checked_next_multiple_of(LINE)? {
            0 => Zeroed::empty(LINE as usize),
            room => Zeroed::new(room, LINE)?,
        };
        Some(Buffer { memory, bytes })
    }

    /// Creates a buffer with a copy of these bytes. Returns `None` if the host has no memory for it.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut buffer = Self::new(bytes.len() as u64)?;
        buffer.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        Some(buffer)
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns the address of the first byte on the host.
    pub(crate) fn host(&mut self) -> *mut u8 {
        self.memory.address()
    }

    /// Returns all bytes: `len`, rounded up to whole lines.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let room = self.bytes.next_multiple_of(LINE) as usize;
        // SAFETY: `memory` has that many initialised bytes, and is mutably borrowed as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.host(), room) }
    }

    /// Sets all bytes to zero.
    pub(crate) fn clear(&mut self) {
        // Filling an empty slice is slow on some CPUs.
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

/// The local memory of the 32 threads of a warp: one stack per thread, all of the same size.
#[derive(Debug, Default)]
pub(crate) struct LocalMemory {
    buffer: Buffer,
    /// Bytes of one thread's stack.
    stride: u64,
}

impl LocalMemory {
    /// Returns the bytes that each thread has.
    pub(crate) fn stride(&self) -> u64 {
        self.stride
    }

    /// Makes room for at least this many bytes for each thread. Returns `None` if the host has no memory for them, or
    /// if they are more than [`MOST_LOCAL`].
    pub(crate) fn reserve(&mut self, bytes: u64) -> Option<()> {
        if bytes <= self.stride {
            return Some(());
        }
        if bytes > MOST_LOCAL {
            return None;
        }
        let stride = bytes.max(2 * self.stride).min(MOST_LOCAL).next_multiple_of(LINE);
        let mut buffer = Buffer::new(stride * 32)?;
        let (old, new) = (self.stride as usize, stride as usize);
        for lane in 0..32 {
            let from = &self.buffer.as_mut_slice()[lane * old..(lane + 1) * old];
            buffer.as_mut_slice()[lane * new..lane * new + old].copy_from_slice(from);
        }
        *self = LocalMemory { buffer, stride };
        Some(())
    }

    /// Returns the address on the host of the first byte of lane 0's stack.
    pub(crate) fn host(&mut self) -> *mut u8 {
        self.buffer.host()
    }

    /// Returns `bytes` bytes of one thread's stack from `offset` on, or `None` if the stack is shorter.
    pub(crate) fn lane(&mut self, lane: usize, offset: u64, bytes: u64) -> Option<&mut [u8]> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.stride)?;
        let start = lane as u64 * self.stride;
        self.buffer
            .as_mut_slice()
            .get_mut((start + offset) as usize..(start + end) as usize)
    }

    /// Copies bytes inside one thread's stack. Does nothing if either range is outside of it.
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
        // Most kernels use no local memory, and filling an empty slice is slow on some CPUs.
        if bytes == 0 {
            return;
        }
        for lane in 0..32 {
            if let Some(part) = self.lane(lane, offset, bytes) {
                part.fill(0);
            }
        }
    }
}
