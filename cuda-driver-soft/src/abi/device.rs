//! Exports that query devices, register callbacks for their notifications, and manage their primary contexts.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_driver_sys::CUdevice_attribute as Attribute;
use cuda_driver_sys::{
    CUasyncCallback, CUasyncCallbackHandle, CUatomicOperation, CUcontext, CUdevice, CUdevice_P2PAttribute as P2P,
    CUdevice_attribute, CUdevprop, CUexecAffinityType, CUuuid,
};

use super::args::Caller;
use super::exports;
use crate::call::teardown;
use crate::object::{device, notification, primary};
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Writes text into a buffer of `length` bytes, truncated if it is too long, and returns true if it fits with its NUL
/// byte. Returns `CUDA_ERROR_INVALID_VALUE` for a length of 0 or less; NVIDIA's driver crashes for such a length.
fn set_text(c: Caller, buffer: *mut c_char, length: c_int, text: &str) -> Result<bool> {
    let capacity = usize::try_from(length)
        .ok()
        .filter(|&n| n > 0)
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    c.set_text(buffer, capacity, text.as_bytes());
    Ok(text.len() < capacity)
}

fn uuid(c: Caller, out: *mut CUuuid, ordinal: CUdevice) -> Result<()> {
    let out = c.out(out)?;
    out.set(CUuuid {
        bytes: device::get(ordinal)?.uuid().map(|b| b as c_char),
    });
    Ok(())
}

/// Checks a query of atomic operations on the host's or another device's memory, and writes 0 for each: none is native.
/// An H200 also writes 0 for the host's memory.
fn no_atomics(c: Caller, out: *mut c_uint, operations: *const CUatomicOperation, count: c_uint) -> Result<()> {
    c.out(out)?;
    let mut operations = c.items(operations, count as usize)?;
    if count == 0 || operations.any(|operation| operation.name().is_none()) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    for index in 0..count as usize {
        c.set_at(out, index, 0);
    }
    Ok(())
}

exports! {
    fn cuDeviceRegisterAsyncNotification [c] (
        device: CUdevice,
        function: CUasyncCallback,
        _data: *mut c_void,
        out: *mut CUasyncCallbackHandle,
    ) {
        let device = device::get(device)?;
        let out = c.out(out)?;
        if function.is_none() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        out.set(notification::register(device.ordinal) as CUasyncCallbackHandle);
        Ok(())
    }

    fn cuDeviceUnregisterAsyncNotification [_c] (device: CUdevice, handle: CUasyncCallbackHandle) {
        notification::unregister(device::get(device)?.ordinal, handle as usize)
    }

    fn cuDeviceGetCount [c] (count: *mut c_int) {
        c.out(count)?.set(device::all().len() as c_int);
        Ok(())
    }

    fn cuDeviceGet [c] (out: *mut CUdevice, ordinal: c_int) {
        let out = c.out(out)?;
        out.set(device::get(ordinal)?.ordinal);
        Ok(())
    }

    fn cuDeviceGetName [c] (name: *mut c_char, length: c_int, ordinal: CUdevice) {
        c.out(name)?;
        // A name that is too long is truncated.
        set_text(c, name, length, &device::get(ordinal)?.name()).map(|_| ())
    }

    fn cuDeviceGetUuid [c] (out: *mut CUuuid, ordinal: CUdevice) {
        uuid(c, out, ordinal)
    }

    fn cuDeviceGetUuid_v2 [c] (out: *mut CUuuid, ordinal: CUdevice) {
        uuid(c, out, ordinal)
    }

    fn cuDeviceGetLuid [c] (luid: *mut c_char, mask: *mut c_uint, ordinal: CUdevice) {
        // The LUID belongs to the Windows display driver model, which no device here uses.
        c.out(luid)?;
        c.out(mask)?;
        device::get(ordinal)?;
        Err(Error::CUDA_ERROR_NOT_SUPPORTED)
    }

    fn cuDeviceTotalMem_v2 [c] (bytes: *mut usize, ordinal: CUdevice) {
        let bytes = c.out(bytes)?;
        bytes.set(device::get(ordinal)?.total_memory() as usize);
        Ok(())
    }

    fn cuDeviceTotalMem [c] (bytes: *mut c_uint, ordinal: CUdevice) {
        let bytes = c.out(bytes)?;
        bytes.set(c_uint::try_from(device::get(ordinal)?.total_memory()).unwrap_or(c_uint::MAX));
        Ok(())
    }

    fn cuDeviceGetAttribute [c] (
        value: *mut c_int,
        attribute: CUdevice_attribute,
        ordinal: CUdevice,
    ) {
        let value = c.out(value)?;
        value.set(device::get(ordinal)?.attribute(attribute)?);
        Ok(())
    }

    fn cuDeviceGetP2PAttribute [c] (
        value: *mut c_int,
        attribute: P2P,
        from: CUdevice,
        to: CUdevice,
    ) {
        let value = c.out(value)?;
        if device::get(from)?.ordinal == device::get(to)?.ordinal {
            return Err(Error::CUDA_ERROR_INVALID_DEVICE);
        }
        // Access is supported because all devices share one address space. Native atomics and arrays across devices are
        // not, and every pair of devices has performance rank 0.
        value.set(match attribute {
            P2P::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED => 1,
            known if known.name().is_some() => 0,
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        });
        Ok(())
    }

    fn cuDeviceGetHostAtomicCapabilities [c] (
        out: *mut c_uint,
        operations: *const CUatomicOperation,
        count: c_uint,
        ordinal: CUdevice,
    ) {
        device::get(ordinal)?;
        no_atomics(c, out, operations, count)
    }

    fn cuDeviceGetP2PAtomicCapabilities [c] (
        out: *mut c_uint,
        operations: *const CUatomicOperation,
        count: c_uint,
        from: CUdevice,
        to: CUdevice,
    ) {
        if device::get(from)?.ordinal == device::get(to)?.ordinal {
            return Err(Error::CUDA_ERROR_INVALID_DEVICE);
        }
        no_atomics(c, out, operations, count)
    }

    fn cuDeviceCanAccessPeer [c] (can: *mut c_int, from: CUdevice, to: CUdevice) {
        let can = c.out(can)?;
        can.set((device::get(from)?.ordinal != device::get(to)?.ordinal).into());
        Ok(())
    }

    fn cuDeviceGetPCIBusId [c] (id: *mut c_char, length: c_int, ordinal: CUdevice) {
        c.out(id)?;
        // Driver 580 writes as much as fits, and returns an error if the text is truncated.
        if set_text(c, id, length, &device::get(ordinal)?.pci_bus_id())? {
            Ok(())
        } else {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }

    fn cuDeviceGetByPCIBusId [c] (out: *mut CUdevice, id: *const c_char) {
        let out = c.out(out)?;
        out.set(device::by_pci_bus_id(&c.string(id)?)?.ordinal);
        Ok(())
    }

    fn cuDeviceComputeCapability [c] (major: *mut c_int, minor: *mut c_int, ordinal: CUdevice) {
        let (major, minor) = (c.out(major)?, c.out(minor)?);
        let device = device::get(ordinal)?;
        major.set(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) as c_int);
        minor.set(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) as c_int);
        Ok(())
    }

    fn cuDeviceGetProperties [c] (properties: *mut CUdevprop, ordinal: CUdevice) {
        let out = c.out(properties)?;
        let device = device::get(ordinal)?;
        let value = |attribute| device.limit(attribute) as c_int;
        out.set(CUdevprop {
            maxThreadsPerBlock: value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            maxThreadsDim: [
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
            ]
            .map(value),
            maxGridSize: [
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
            ]
            .map(value),
            sharedMemPerBlock: value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
            totalConstantMemory: value(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
            SIMDWidth: value(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            memPitch: value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
            regsPerBlock: value(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
            clockRate: value(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
            textureAlign: value(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
        });
        Ok(())
    }

    fn cuDeviceGetExecAffinitySupport [c] (
        supported: *mut c_int,
        kind: CUexecAffinityType,
        ordinal: CUdevice,
    ) {
        // Driver 580 supports no type of affinity, and accepts unknown values too.
        let _ = kind;
        let supported = c.out(supported)?;
        device::get(ordinal)?;
        supported.set(0);
        Ok(())
    }

    fn cuDevicePrimaryCtxRetain [c] (out: *mut CUcontext, ordinal: CUdevice) {
        device::get(ordinal)?;
        let out = c.out(out)?;
        gate::healthy()?;
        out.set(primary::retain(ordinal)? as CUcontext);
        Ok(())
    }

    fn cuDevicePrimaryCtxRelease_v2 = cuDevicePrimaryCtxRelease [c] (ordinal: CUdevice) {
        teardown::primary_release(ordinal)
    }

    fn cuDevicePrimaryCtxReset_v2 = cuDevicePrimaryCtxReset [c] (ordinal: CUdevice) {
        teardown::primary_reset(ordinal)
    }

    fn cuDevicePrimaryCtxSetFlags_v2 = cuDevicePrimaryCtxSetFlags [c] (
        ordinal: CUdevice,
        flags: c_uint,
    ) {
        primary::set_flags(ordinal, flags)
    }

    fn cuDevicePrimaryCtxGetState [c] (ordinal: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        let (flags, active) = (c.out(flags)?, c.out(active)?);
        let (found_flags, is_active) = primary::state(ordinal)?;
        flags.set(found_flags);
        active.set(is_active.into());
        Ok(())
    }
}
