//! The description of an allocation: kind, owner, size and access.

#![forbid(unsafe_code)]

/// Alignment in bytes of the backing of most allocations: enough for vector accesses and for `.align` of variables.
pub(super) const BACKING_ALIGN: u64 = 512;

/// Alignment in bytes of the heap of kernels, the same as for `malloc` in C. Sizes on the heap are counted in this
/// unit.
pub(super) const HEAP_ALIGN: u64 = 16;

/// The kind of memory that an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocationKind {
    /// Device memory, as from `cuMemAlloc`.
    Device,
    /// Managed memory: one address for host and device.
    Managed,
    /// Page-locked host memory that the driver allocated.
    Pinned,
    /// Host memory of the program that was registered.
    Registered,
    /// A `.global` variable of a loaded module.
    Global,
    /// A `.const` variable of a loaded module.
    Constant,
    /// Memory that a kernel allocated with `malloc`.
    Heap,
    /// Texels of an array.
    Array,
    /// A mapping of [`Physical`](super::Physical) memory.
    Mapped,
}

impl AllocationKind {
    /// Returns the kind in words, with the call that made the memory.
    pub fn description(self) -> &'static str {
        match self {
            AllocationKind::Device => "device memory (cuMemAlloc and similar)",
            AllocationKind::Managed => "managed memory (cuMemAllocManaged)",
            AllocationKind::Pinned => "page-locked host memory (cuMemHostAlloc and similar)",
            AllocationKind::Registered => "registered host memory (cuMemHostRegister)",
            AllocationKind::Global => "a variable of a module",
            AllocationKind::Constant => "a constant of a module",
            AllocationKind::Heap => "memory from malloc in a kernel",
            AllocationKind::Array => "an array (cuArrayCreate and similar)",
            AllocationKind::Mapped => "mapped memory (cuMemMap)",
        }
    }

    /// Returns true if the host may dereference addresses of this kind: they are the addresses of the backing.
    pub fn is_host_accessible(self) -> bool {
        matches!(
            self,
            AllocationKind::Managed | AllocationKind::Pinned | AllocationKind::Registered
        )
    }
}

/// The accesses that an allocation permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Neither reads nor writes.
    None,
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// The description of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Length in bytes, as requested.
    pub bytes: u64,
    /// A number that no other allocation of the process has or had.
    pub id: u64,
    /// The kind of memory.
    pub kind: AllocationKind,
    /// The context that the allocation belongs to, as given to [`AddressSpace::alloc`](super::AddressSpace::alloc).
    pub owner: u64,
    /// The accesses that kernels and fills may do.
    pub access: Access,
    /// The accesses that copies may do: those of kernels, and those that only the host has been given.
    pub copies: Access,
}

/// The description of an allocation that was freed.
pub type Freed = Allocation;
