//! How many threads the registers of a multiprocessor suffice for.

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::object::device::Device;
use engine::Kernel;

/// Registers are given to a warp in units of this many.
const UNIT: u32 = 256;
/// A multiprocessor has this many parts. Each has its share of the registers, and a warp's are all in one part.
const PARTS: u32 = 4;
const WARP: u32 = 32;

/// Returns the number of warps of a multiprocessor that have registers at once.
pub(crate) fn warps(kernel: &Kernel, device: &Device) -> u32 {
    let all = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    let per_warp = (kernel.num_regs() * WARP).next_multiple_of(UNIT);
    all / PARTS / per_warp.max(1) * PARTS
}

/// Returns the number of threads of the largest block that has enough registers.
pub(crate) fn threads(kernel: &Kernel, device: &Device) -> u32 {
    warps(kernel, device) * WARP
}
