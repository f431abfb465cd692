//! Physical memory: bytes that have no device address until they are mapped.

#![forbid(unsafe_code)]

use super::allocation::AllocationKind;
use super::shared::SharedFile;
use super::usage::Usage;
use super::zeroed::Zeroed;
use std::fmt;
use std::sync::Arc;

/// Memory that has no device address of its own; mappings give it addresses.
///
/// Memory from [`AddressSpace::create`](super::AddressSpace::create) counts as device memory of its owner until its
/// last mapping and the last `Arc` of it are dropped.
pub struct Physical {
    memory: Memory,
    bytes: u64,
    /// The usage that was charged for this memory, and the owner that it was charged to. `None` if the process that
    /// created the file was charged, or the allocation whose bytes were moved to it.
    charged: Option<(Arc<Usage>, u64)>,
}

/// The bytes of physical memory.
pub(super) enum Memory {
    /// Private memory of this process.
    Private(Zeroed),
    /// A file that other processes can map.
    Shared(SharedFile),
}

impl Physical {
    /// Wraps memory for which `usage` was charged to `owner` as [`AllocationKind::Device`].
    pub(super) fn new(memory: Memory, bytes: u64, usage: Arc<Usage>, owner: u64) -> Arc<Self> {
        Arc::new(Physical {
            memory,
            bytes,
            charged: Some((usage, owner)),
        })
    }

    /// Wraps a file for which this value charges nothing: another process, or an allocation, was charged.
    pub(super) fn opened(file: SharedFile) -> Arc<Self> {
        Arc::new(Physical {
            bytes: file.bytes(),
            memory: Memory::Shared(file),
            charged: None,
        })
    }

    /// Returns the address of the first byte on the host.
    pub(super) fn host(&self) -> u64 {
        match &self.memory {
            Memory::Private(memory) => memory.address() as u64,
            Memory::Shared(file) => file.address() as u64,
        }
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the file that holds the memory, if other processes can open it.
    pub fn file(&self) -> Option<&SharedFile> {
        match &self.memory {
            Memory::Private(_) => None,
            Memory::Shared(file) => Some(file),
        }
    }
}

impl fmt::Debug for Physical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Physical")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if let Some((usage, owner)) = &self.charged {
            usage.refund(AllocationKind::Device, *owner, self.bytes);
        }
    }
}
