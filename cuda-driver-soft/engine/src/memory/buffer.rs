//! Zeroed memory for running kernels: shared memory, local memory, registers, and the parameters of a launch.

use super::zeroed::Zeroed;
use std::fmt;

/// The most bytes of local memory that a thread can have: 512 KiB less the bytes that the driver keeps for itself.
pub(crate) const MOST_LOCAL: u64 = (512 << 10) - 1024;

/// Alignment of a buffer in bytes, and the unit of its size.
const LINE: u64 = 128;

/// The size in bytes from which clearing returns pages to the system.
const MUCH: usize = 1 << 20;

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
        self.clear_range(0, self.bytes as usize);
    }

    /// Sets a range of bytes to zero; does nothing if it is not inside the buffer. Pages of a large range are returned
    /// to the system, so that untouched pages still take no memory.
    #[inline]
    pub(crate) fn clear_range(&mut self, start: usize, bytes: usize) {
        // Filling an empty slice is slow on some CPUs.
        if bytes == 0 {
            return;
        }
        if bytes >= MUCH {
            return self.clear_much(start, bytes);
        }
        if let Some(part) = self.as_mut_slice().get_mut(start..start + bytes) {
            part.fill(0);
        }
    }

    #[cold]
    fn clear_much(&mut self, start: usize, bytes: usize) {
        let end = start + bytes;
        if end > self.as_mut_slice().len() {
            return;
        }
        // SAFETY: the range is inside, and this value is mutably borrowed.
        let zero = unsafe { self.memory.discard(start, bytes) };
        let all = self.as_mut_slice();
        all[start..zero.start].fill(0);
        all[zero.end..end].fill(0);
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
    /// Returns the number of bytes that each thread has.
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

    /// Sets the first `bytes` bytes of every thread's stack to zero. The rest of the stacks may become zero, too.
    pub(crate) fn restart(&mut self, bytes: u64) {
        // Most kernels use no local memory, and filling an empty slice is slow on some CPUs.
        if bytes == 0 {
            return;
        }
        if 32 * bytes >= MUCH as u64 {
            self.buffer.clear();
            return;
        }
        for lane in 0..32 {
            if let Some(part) = self.lane(lane, 0, bytes) {
                part.fill(0);
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Buffer, LocalMemory, MOST_LOCAL};

    /// Returns the number of bytes of a buffer that are in memory.
    fn resident(buffer: &mut Buffer) -> usize {
        const PAGE: usize = 4096;
        let (start, bytes) = (buffer.host() as usize, buffer.len() as usize);
        let first = start.next_multiple_of(PAGE);
        let pages = (start + bytes - first) / PAGE;
        let mut states = vec![0u8; pages];
        // SAFETY: the pages belong to the buffer, and `states` has one byte for each.
        let done = unsafe { libc::mincore(first as *mut libc::c_void, pages * PAGE, states.as_mut_ptr()) };
        assert_eq!(done, 0);
        states.iter().filter(|state| **state & 1 == 1).count() * PAGE
    }

    #[test]
    fn large_buffers_take_memory_only_where_touched() {
        let mut buffer = Buffer::new(64 << 20).unwrap();
        // The system may provide memory in pages of 2 MiB.
        const FEW: usize = 4 << 20;
        buffer.as_mut_slice()[10_000_000] = 1;
        assert!(resident(&mut buffer) <= FEW);
        buffer.as_mut_slice()[20_000_000..60_000_000].fill(1);
        buffer.clear_range(100, 63_000_000);
        assert!(buffer.as_mut_slice()[..63_000_000].iter().all(|byte| *byte == 0));
        buffer.clear();
        buffer.clear_range(64 << 20, 1);
        buffer.clear_range(1, 64 << 20);
    }

    #[test]
    fn stacks_that_restart_are_zero() {
        for stack in [1 << 10, MOST_LOCAL] {
            let mut local = LocalMemory::default();
            local.reserve(stack).unwrap();
            local.lane(7, stack - 8, 8).unwrap().fill(1);
            local.restart(stack);
            assert_eq!(local.lane(7, stack - 8, 8).unwrap(), [0; 8]);
        }
    }
}
