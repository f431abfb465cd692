//! Memory that only one block at a time uses: shared and local memory, and the parameters of a launch.

use std::fmt;

#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Line([u8; 128]);

/// Zeroed bytes at an address that is a multiple of 128.
#[derive(Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
    bytes: u64,
}

impl Buffer {
    /// `None` if the host has no memory for it.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let mut lines = Vec::new();
        let count = usize::try_from(bytes.div_ceil(128)).ok()?;
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line([0; 128]));
        Some(Buffer { lines, bytes })
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
        self.lines.as_mut_ptr().cast()
    }

    /// All lines as bytes: at least `len` of them.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the lines are `lines.len() * 128` initialised bytes.
        unsafe { std::slice::from_raw_parts_mut(self.host(), self.lines.len() * 128) }
    }

    /// Sets all to zero.
    pub(crate) fn clear(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        self.lines.fill(Line([0; 128]));
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

    /// Makes room for at least this many bytes for each thread. `None` if the host has no memory for it.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Option<()> {
        if bytes <= self.stride {
            return Some(());
        }
        let stride = bytes.max(2 * self.stride).checked_next_multiple_of(128)?;
        let mut buffer = Buffer::new(stride.checked_mul(32)?)?;
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
