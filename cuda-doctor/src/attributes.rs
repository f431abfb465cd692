//! The device attributes that the report shows.

use cuda_driver::sys::CUdevice_attribute as Raw;

/// A device attribute.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// The name in the JSON report.
    pub key: &'static str,
    /// The name in the text report. The labels of the compute capability's two numbers are not shown, because the text
    /// report has one row for both.
    pub label: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// The attribute's constant in `cuda.h`.
    pub raw: Raw,
}

/// The unit of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Number,
    /// Bytes.
    Bytes,
    /// Thousands of cycles per second.
    Kilohertz,
    /// 0 for no, any other value for yes.
    Flag,
    /// One of the modes that decide which processes may use the device.
    ComputeMode,
}

/// The key of the attribute that decides which processes may use the device.
pub const COMPUTE_MODE: &str = "compute_mode";
/// The key of the major number of the compute capability.
pub const CAPABILITY_MAJOR: &str = "compute_capability_major";
/// The key of the minor number of the compute capability.
pub const CAPABILITY_MINOR: &str = "compute_capability_minor";

const fn attribute(key: &'static str, label: &'static str, unit: Unit, raw: Raw) -> Attribute {
    Attribute { key, label, unit, raw }
}

/// The attributes, in the order of the text report.
#[rustfmt::skip]
pub const ATTRIBUTES: [Attribute; 20] = [
    attribute(CAPABILITY_MAJOR, "compute capability, major", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
    attribute(CAPABILITY_MINOR, "compute capability, minor", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    attribute(COMPUTE_MODE, "compute mode", Unit::ComputeMode, Raw::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE),
    attribute("multiprocessors", "multiprocessors", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
    attribute("clock_khz", "clock", Unit::Kilohertz, Raw::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    attribute("warp_size", "warp size", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
    attribute("max_threads_per_block", "maximum threads per block", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    attribute("max_threads_per_multiprocessor", "maximum threads per multiprocessor", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
    attribute("registers_per_block", "maximum registers per block", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
    attribute("shared_memory_per_block", "maximum shared memory per block", Unit::Bytes, Raw::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    attribute("shared_memory_per_block_optin", "maximum shared memory per block, opt-in", Unit::Bytes, Raw::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    attribute("l2_cache", "L2 cache", Unit::Bytes, Raw::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
    attribute("memory_bus_bits", "memory bus, bits", Unit::Number, Raw::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
    attribute("ecc", "error correction", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_ECC_ENABLED),
    attribute("integrated", "shares memory with the host", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_INTEGRATED),
    attribute("kernel_timeout", "time limit for kernels", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT),
    attribute("managed_memory", "managed memory", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY),
    attribute("concurrent_managed_access", "concurrent managed access", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS),
    attribute("cooperative_launch", "cooperative launches", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH),
    attribute("memory_pools", "memory pools", Unit::Flag, Raw::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED),
];
