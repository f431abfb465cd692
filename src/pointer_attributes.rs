//! Attributes of the memory at an address.

use core::ffi::c_void;
use core::ops::Range;

use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{self, CUpointer_attribute as Attribute, CUresult, Function};
use crate::{Context, Device, DevicePtr, Result, checked};

/// The attributes of the memory at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointerAttributes {
    /// The kind of memory: `CU_MEMORYTYPE_DEVICE` for device memory and managed memory, `CU_MEMORYTYPE_HOST` for
    /// page-locked memory; `None` for memory that the driver does not know.
    pub memory_type: Option<sys::CUmemorytype>,
    /// The context in which the memory was allocated or registered; null for memory that belongs to none.
    pub context: sys::CUcontext,
    /// The device of the memory; `None` for memory that the driver does not know.
    pub device: Option<Device>,
    /// True for managed memory.
    pub is_managed: bool,
    /// The address on devices; null if devices cannot access the memory, or if no context is current.
    pub device_ptr: DevicePtr,
    /// The address on the host; null if the host cannot access the memory. For memory that the driver does not know, it
    /// is the address that was queried.
    pub host_ptr: *mut c_void,
    /// The first address of the allocation and its size in bytes; both are 0 for memory that the driver does not know.
    pub allocation: (DevicePtr, usize),
}

// SAFETY: the addresses and the handle are only numbers until an `unsafe` operation uses them.
unsafe impl Send for PointerAttributes {}
// SAFETY: as above.
unsafe impl Sync for PointerAttributes {}

/// The first attribute number that this crate does not know. The value of such an attribute may be larger than
/// [`DevicePtr::attribute`] expects.
const ATTRIBUTES: u32 = Attribute::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL.0 + 1;

impl DevicePtr {
    /// Returns the attributes of the memory at the address, which may be any address
    /// ([`cuPointerGetAttributes`](checked::pointer_get_attributes)). Only
    /// [`device_ptr`](PointerAttributes::device_ptr) needs a current context.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, DeviceBuffer, sys};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// let buffer = DeviceBuffer::<u32>::alloc(&context, 100)?;
    /// let attributes = buffer.ptr().byte_add(8).attributes()?;
    /// assert_eq!(attributes.memory_type, Some(sys::CUmemorytype::CU_MEMORYTYPE_DEVICE));
    /// assert_eq!(attributes.allocation, (buffer.ptr(), 400));
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[doc(alias = "cuPointerGetAttributes")]
    #[track_caller]
    pub fn attributes(self) -> Result<PointerAttributes> {
        const NONE: i32 = sys::CU_DEVICE_INVALID;
        let (mut kind, mut device, mut managed) = (0_u32, NONE, 0_u32);
        let (mut context, mut host) = (core::ptr::null_mut::<sys::CUctx_st>(), core::ptr::null_mut::<c_void>());
        let (mut on_device, mut start, mut size) = (0_u64, 0_u64, 0_usize);
        let asked = [
            (Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (&raw mut kind).cast()),
            (Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (&raw mut device).cast()),
            // Driver 580 writes 4 bytes for a boolean. Only the lowest one is used below.
            (Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, (&raw mut managed).cast()),
            (Attribute::CU_POINTER_ATTRIBUTE_CONTEXT, (&raw mut context).cast()),
            (Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER, (&raw mut host).cast()),
            (
                Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                (&raw mut on_device).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                (&raw mut start).cast(),
            ),
            (
                Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                (&raw mut size).cast::<c_void>(),
            ),
        ];
        let (attributes, places) = (asked.map(|(attribute, _)| attribute), asked.map(|(_, place)| place));
        // SAFETY: each place has the size of its attribute, and the driver checks the address.
        unsafe { checked::pointer_get_attributes(&attributes, &places, self.as_raw()) }?;
        Ok(PointerAttributes {
            memory_type: (kind != 0).then_some(sys::CUmemorytype(kind)),
            context,
            device: (device != NONE && kind != 0).then_some(Device::from_raw(device)),
            is_managed: managed & 0xff != 0,
            device_ptr: Self::from_raw(on_device),
            host_ptr: host,
            allocation: (Self::from_raw(start), size),
        })
    }

    /// Returns one attribute of the memory at the address as a number
    /// ([`cuPointerGetAttribute`](checked::pointer_get_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for memory that the driver does not know, for an attribute that the driver or
    /// this crate does not know, and for `CU_POINTER_ATTRIBUTE_P2P_TOKENS`, which is not a number.
    #[inline]
    #[doc(alias = "cuPointerGetAttribute")]
    #[track_caller]
    pub fn attribute(self, attribute: Attribute) -> Result<u64> {
        if attribute == Attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS || !(1..ATTRIBUTES).contains(&attribute.0) {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(
                code,
                Function::cuPointerGetAttribute,
                Refusal::Attribute,
            ));
        }
        // Smaller values fill the lower bytes, because CUDA's platforms are little-endian.
        let mut value = 0_u64;
        // SAFETY: the attribute has at most 8 bytes, and the driver checks the address.
        unsafe { checked::pointer_get_attribute((&raw mut value).cast(), attribute, self.as_raw()) }?;
        Ok(value)
    }

    /// Makes synchronous copies and fills of the allocation always wait until they are done, or allows them to return
    /// earlier ([`cuPointerSetAttribute`](checked::pointer_set_attribute)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for memory that the driver does not know, and `CUDA_ERROR_NOT_SUPPORTED` for
    /// memory that was mapped to [reserved addresses](crate::virtual_memory).
    #[inline]
    #[doc(alias = "cuPointerSetAttribute")]
    #[doc(alias = "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS")]
    #[track_caller]
    pub fn set_sync_memops(self, is_synchronous: bool) -> Result<()> {
        let value = u32::from(is_synchronous);
        let attribute = Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
        // SAFETY: the attribute is a boolean of 4 bytes, and the driver checks the address.
        unsafe { checked::pointer_set_attribute((&raw const value).cast(), attribute, self.as_raw()) }
    }

    /// Returns the addresses of the allocation that contains this address
    /// ([`cuMemGetAddressRange`](checked::mem_get_address_range)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no allocation contains the address.
    #[inline]
    #[doc(alias = "cuMemGetAddressRange")]
    #[track_caller]
    pub fn address_range(self, context: &Context) -> Result<Range<Self>> {
        let _current = context.enter()?;
        // SAFETY: the driver checks the address.
        let range = unsafe { checked::mem_get_address_range(self.as_raw()) }?;
        let start = Self::from_raw(range.base);
        Ok(start..start.byte_add(range.size as u64))
    }
}
