//! Register limits: the number of threads that fit into the registers of a multiprocessor.

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::object::device::Device;
use engine::Kernel;

/// Registers are allocated to a warp in units of this many.
const REGISTER_UNIT: u32 = 256;
/// A multiprocessor has this many parts with equal shares of the registers. A warp's registers are in one part.
const PARTS: u32 = 4;
const WARP: u32 = 32;

/// Returns the number of warps that fit into the registers of a multiprocessor.
pub(crate) fn warps(kernel: &Kernel, device: &Device) -> u32 {
    let all = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    let per_warp = (kernel.num_regs() * WARP).next_multiple_of(REGISTER_UNIT);
    all / PARTS / per_warp.max(1) * PARTS
}

/// Returns the number of threads that fit into the registers of a multiprocessor, in whole warps.
pub(crate) fn threads(kernel: &Kernel, device: &Device) -> u32 {
    warps(kernel, device) * WARP
}
