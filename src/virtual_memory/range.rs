//! Reserved address ranges and their mappings.

use core::ops::Range;
use core::{fmt, mem};

use super::PhysicalMemory;
use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUmemAccess_flags as Access, CUresult, Function};
use crate::{Context, DevicePtr, DeviceSlice, DeviceSliceMut, Result, checked};

/// A reserved range of addresses, to which [`PhysicalMemory`] is mapped.
///
/// ```
/// # use cuda_driver::virtual_memory::{AddressRange, MemoryOptions, PhysicalMemory, read_write};
/// # use cuda_driver::{Context, Device, sys};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let device = Device::first()?;
/// # let context = Context::create(device)?;
/// let options = MemoryOptions::on_device(device);
/// let size = options.granularity()?;
/// let memory = PhysicalMemory::new(&options, size)?;
///
/// let mut range = AddressRange::reserve(&context, 4 * size)?;
/// range.map(0, &memory)?;
/// range.set_access(0..size, &[read_write(options.location)])?;
/// range.slice_mut::<u32>(0, 3)?.copy_from(&[1, 2, 3])?;
/// assert_eq!(range.slice::<u32>(4, 2)?.to_vec()?, [2, 3]);
/// assert!(range.slice::<u32>(size, 1).is_err()); // nothing is mapped there
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Offsets and sizes are in bytes. Views may extend over mappings that follow each other.
///
/// Views of memory on the host need the host's access, because driver 580 crashes in some copies of such memory to
/// which the host has no access: pass the memory's location to [`set_access`](Self::set_access), too.
///
/// Unmapping and dropping wait for all work of the context, because the driver does not.
pub struct AddressRange {
    /// 0 after the range was freed.
    raw: sys::CUdeviceptr,
    size: usize,
    /// Start and end of each mapping, in order.
    mappings: Vec<Range<usize>>,
    /// For each mapping, true if its memory is on the host.
    on_host: Vec<bool>,
    context: Context,
}

impl AddressRange {
    /// Reserves `size` bytes of addresses, a multiple of the
    /// [granularity](super::MemoryOptions::granularity) of the memory that will be mapped there
    /// ([`cuMemAddressReserve`](checked::mem_address_reserve)). The views of the range are used in `context`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a size that is not such a multiple, and `CUDA_ERROR_OUT_OF_MEMORY` if
    /// there is no free range.
    #[inline]
    #[doc(alias = "cuMemAddressReserve")]
    #[track_caller]
    pub fn reserve(context: &Context, size: usize) -> Result<Self> {
        Self::reserve_at(context, size, 0, DevicePtr::null())
    }

    /// Reserves `size` bytes of addresses at `address` if they are free there, or else elsewhere
    /// ([`cuMemAddressReserve`](checked::mem_address_reserve)). The alignment in bytes is a power of two, or 0 for the
    /// driver's choice. With the address 0, the driver chooses the address.
    ///
    /// # Errors
    /// Same as [`reserve`](Self::reserve), and `CUDA_ERROR_INVALID_VALUE` for an alignment that is neither 0 nor a
    /// power of two, or an address that is not aligned.
    #[inline]
    #[doc(alias = "cuMemAddressReserve")]
    #[track_caller]
    pub fn reserve_at(context: &Context, size: usize, alignment: usize, address: DevicePtr) -> Result<Self> {
        // SAFETY: the driver checks size and alignment, and the address is a hint.
        let raw = unsafe { checked::mem_address_reserve(size, alignment, address.as_raw(), 0) }?;
        // SAFETY: the new range is owned here, and nothing is mapped in it.
        Ok(unsafe { Self::from_raw(raw, size, context) })
    }

    /// Returns the number of reserved bytes.
    #[inline]
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.size
    }

    /// Returns the first address.
    #[inline]
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        DevicePtr::from_raw(self.raw)
    }

    /// Returns the offsets at which each mapping starts and ends, in ascending order.
    #[inline]
    #[must_use]
    pub fn mappings(&self) -> &[Range<usize>] {
        &self.mappings
    }

    /// Maps all of `memory` at `offset`, a multiple of the granularity ([`cuMemMap`](checked::mem_map)). No location
    /// has access to a new mapping: call [`set_access`](Self::set_access). The mapping keeps the memory alive.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the memory does not fit, if something is mapped there, or if the offset is
    /// not such a multiple, `CUDA_ERROR_NOT_SUPPORTED` for memory that was imported with another size than it has, and
    /// `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough host memory.
    #[inline]
    #[doc(alias = "cuMemMap")]
    #[track_caller]
    pub fn map(&mut self, offset: usize, memory: &PhysicalMemory) -> Result<()> {
        let size = memory.size_bytes();
        let end = offset.checked_add(size).filter(|end| *end <= self.size);
        let end = end.ok_or_else(|| refused(Function::cuMemMap, Refusal::MapRange))?;
        let at = self.mappings.partition_point(|mapping| mapping.end <= offset);
        if self.mappings.get(at).is_some_and(|next| next.start < end) {
            return Err(refused(Function::cuMemMap, Refusal::Mapped));
        }
        let is_on_host = memory.is_on_host()?;
        // The lists get room before the call, because nothing may be mapped after an error.
        if self.mappings.try_reserve(1).is_err() || self.on_host.try_reserve(1).is_err() {
            let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            return Err(Error::refused(code, Function::cuMemMap, Refusal::HostMemory));
        }
        // SAFETY: the part of the reserved range is free, and the handle is live.
        unsafe { checked::mem_map(self.at(offset), size, 0, memory.as_raw(), 0) }?;
        self.mappings.insert(at, offset..end);
        self.on_host.insert(at, is_on_host);
        Ok(())
    }

    /// Waits for all work of the context, and unmaps the mapping that starts at `offset`
    /// ([`cuMemUnmap`](checked::mem_unmap)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if no mapping starts there, or an error from the work that was waited for.
    ///
    /// # Panics
    /// Same as [`Context::synchronize`].
    #[inline]
    #[doc(alias = "cuMemUnmap")]
    #[track_caller]
    pub fn unmap(&mut self, offset: usize) -> Result<()> {
        let found = self.mappings.iter().position(|mapping| mapping.start == offset);
        let index = found.ok_or_else(|| refused(Function::cuMemUnmap, Refusal::NotMapped))?;
        self.context.synchronize()?;
        let mapping = self.mappings[index].clone();
        // SAFETY: a whole mapping, which work of the context does not use any more, and which no view borrows.
        unsafe { checked::mem_unmap(self.at(offset), mapping.len()) }?;
        self.mappings.remove(index);
        self.on_host.remove(index);
        Ok(())
    }

    /// Waits for all work of the context, and sets the access rights of locations to the mappings in a range
    /// ([`cuMemSetAccess`](checked::mem_set_access)). Locations that are not in the list keep their rights.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range or the list is empty, if the range does not consist of whole
    /// mappings, or for access rights other than none, read, and read-write. Also returns an error for a device that
    /// cannot access the memory, and an error from the work that was waited for.
    ///
    /// # Panics
    /// Same as [`Context::synchronize`].
    #[inline]
    #[doc(alias = "cuMemSetAccess")]
    #[track_caller]
    pub fn set_access(&mut self, range: Range<usize>, access: &[sys::CUmemAccessDesc]) -> Result<()> {
        self.require(&range, Function::cuMemSetAccess)?;
        // Waits first, because pending work must not lose its access.
        self.context.synchronize()?;
        // SAFETY: all of the range is mapped, and the driver checks the list.
        unsafe { checked::mem_set_access(self.at(range.start), range.len(), access) }
    }

    /// Returns the access rights of a location to the mapping at `offset`
    /// ([`cuMemGetAccess`](checked::mem_get_access)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if nothing is mapped there, or for an invalid location.
    #[inline]
    #[doc(alias = "cuMemGetAccess")]
    #[track_caller]
    pub fn access(&self, offset: usize, location: &sys::CUmemLocation) -> Result<sys::CUmemAccess_flags> {
        self.require(&(offset..offset.saturating_add(1)), Function::cuMemGetAccess)?;
        // SAFETY: the address is mapped, and the driver checks the location.
        let flags = unsafe { checked::mem_get_access(location, self.at(offset)) }?;
        // Truncation loses nothing, because the flags are a 32-bit enumeration.
        Ok(sys::CUmemAccess_flags(flags as u32))
    }

    /// Returns the memory that is mapped at `offset`
    /// ([`cuMemRetainAllocationHandle`](checked::mem_retain_allocation_handle)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if nothing is mapped there.
    #[inline]
    #[doc(alias = "cuMemRetainAllocationHandle")]
    #[track_caller]
    pub fn memory_at(&self, offset: usize) -> Result<PhysicalMemory> {
        let function = Function::cuMemRetainAllocationHandle;
        let mapping = self.mappings.iter().find(|mapping| mapping.contains(&offset));
        let mapping = mapping.ok_or_else(|| refused(function, Refusal::NotMapped))?;
        let address = core::ptr::without_provenance_mut(self.at(offset) as usize);
        // SAFETY: the address is mapped.
        let raw = unsafe { checked::mem_retain_allocation_handle(address) }?;
        // SAFETY: the call has retained the handle; a mapping is as large as its memory.
        Ok(unsafe { PhysicalMemory::from_raw(raw, mapping.len()) })
    }

    /// Returns a view of `len` values from `offset`. Copies fail if the context's device has no access.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if a part is not mapped, if the address is not a multiple of the alignment of
    /// `T`, or if a part is memory on the host that the host may not read.
    #[inline]
    #[track_caller]
    pub fn slice<T>(&self, offset: usize, len: usize) -> Result<DeviceSlice<'_, T>> {
        let ptr = self.part::<T>(offset, len, Access::CU_MEM_ACCESS_FLAGS_PROT_READ)?;
        // SAFETY: memory is mapped there as long as the range is borrowed.
        Ok(unsafe { DeviceSlice::from_raw_parts(ptr, len, Some(&self.context)) })
    }

    /// Returns a view of `len` values from `offset` that can be written.
    ///
    /// # Errors
    /// Same as [`slice`](Self::slice), and `CUDA_ERROR_INVALID_VALUE` for memory on the host that the host may not
    /// write.
    #[inline]
    #[track_caller]
    pub fn slice_mut<T>(&mut self, offset: usize, len: usize) -> Result<DeviceSliceMut<'_, T>> {
        let ptr = self.part::<T>(offset, len, Access::CU_MEM_ACCESS_FLAGS_PROT_READWRITE)?;
        // SAFETY: memory is mapped there as long as the range is borrowed.
        Ok(unsafe { DeviceSliceMut::from_raw_parts(ptr, len, Some(&self.context)) })
    }

    /// Returns the address of a view, for which the host needs `access` to memory on the host.
    #[inline]
    #[track_caller]
    fn part<T>(&self, offset: usize, len: usize, access: Access) -> Result<DevicePtr> {
        // The error prints no function, because no call has rejected the view.
        let function = Function::cuMemGetAddressRange;
        let end = offset.saturating_add(len.saturating_mul(size_of::<T>()));
        if !self.is_mapped(&(offset..end)) {
            return Err(refused(function, Refusal::ViewMapped));
        }
        if offset % align_of::<T>() != 0 {
            return Err(refused(function, Refusal::CastAlignment));
        }
        if !self.host_has(access, &(offset..end))? {
            return Err(refused(function, Refusal::HostAccess));
        }
        Ok(DevicePtr::from_raw(self.at(offset)))
    }

    /// Returns true if the host has `access` to all memory on the host in a range.
    ///
    /// Without it, driver 580 crashes in copies if the device of the current context has no access either, and in
    /// copies to memory that the host may only read even if the device has access.
    #[inline]
    #[track_caller]
    fn host_has(&self, access: Access, range: &Range<usize>) -> Result<bool> {
        // The driver ignores the number of the node.
        let host = sys::CUmemLocation::host_numa(0);
        for (mapping, on_host) in self.mappings.iter().zip(&self.on_host) {
            let overlaps = mapping.start.max(range.start) < mapping.end.min(range.end);
            if *on_host && overlaps && !self.access(mapping.start, &host)?.contains(access) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns an error of `function` if a part of a range is not mapped.
    #[inline]
    #[track_caller]
    fn require(&self, range: &Range<usize>, function: Function) -> Result<()> {
        if self.is_mapped(range) {
            return Ok(());
        }
        Err(refused(function, Refusal::NotMapped))
    }

    /// Returns true if all of a range is mapped.
    #[inline]
    fn is_mapped(&self, range: &Range<usize>) -> bool {
        let mut reached = range.start;
        for mapping in &self.mappings {
            if reached < range.end && mapping.contains(&reached) {
                reached = mapping.end;
            }
        }
        range.start <= range.end && range.end <= reached && reached <= self.size
    }

    /// Returns the address at an offset inside the range.
    #[inline]
    const fn at(&self, offset: usize) -> sys::CUdeviceptr {
        self.raw + offset as u64
    }

    /// Unmaps everything and frees the addresses ([`cuMemAddressFree`](checked::mem_address_free)). If memory is
    /// mapped, waits for all work of the context first. Dropping does the same.
    ///
    /// # Errors
    /// Returns an error from the work that was waited for. After any error, the addresses and the mappings that are
    /// left are leaked.
    #[inline]
    #[doc(alias = "cuMemAddressFree")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        let raw = mem::take(&mut self.raw);
        if raw == 0 {
            return Ok(());
        }
        if !self.mappings.is_empty() {
            let _current = self.context.enter()?;
            // SAFETY: the current context is live.
            unsafe { checked::ctx_synchronize() }?;
        }
        for mapping in mem::take(&mut self.mappings) {
            // SAFETY: a whole mapping, which work of the context does not use any more, and which no view borrows.
            unsafe { checked::mem_unmap(raw + mapping.start as u64, mapping.len()) }?;
        }
        // SAFETY: the reserved range is owned, nothing is mapped in it, and this is its last use.
        unsafe { checked::mem_address_free(raw, self.size) }
    }

    /// Returns the first address, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUdeviceptr {
        self.raw
    }

    /// Takes ownership of a reserved range, whose views are used in `context`.
    ///
    /// # Safety
    /// The range must be reserved, with this size and with nothing mapped in it, and no other code may free it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, size: usize, context: &Context) -> Self {
        Self {
            raw,
            size,
            mappings: Vec::new(),
            on_host: Vec::new(),
            context: context.clone(),
        }
    }

    /// Releases ownership of the range and its mappings. The reference to the context is leaked, so the context stays
    /// alive.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    /// Returns the context in which the views are used.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }
}

#[cold]
#[inline]
#[track_caller]
fn refused(function: Function, reason: Refusal) -> Error {
    Error::refused(CUresult::CUDA_ERROR_INVALID_VALUE, function, reason)
}

impl fmt::Debug for AddressRange {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressRange")
            .field("ptr", &self.ptr())
            .field("size", &self.size)
            .field("mappings", &self.mappings)
            .finish_non_exhaustive()
    }
}

impl Drop for AddressRange {
    #[inline]
    fn drop(&mut self) {
        let Some(dropping) = dropping() else { return };
        dropping.done(self.end());
    }
}
