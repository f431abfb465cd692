//! Short descriptions of the result codes.
#![forbid(unsafe_code)]

use crate::sys::CUresult;

/// A result code and its description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) code: CUresult,
    pub(crate) text: &'static str,
}

const fn entry(code: CUresult, text: &'static str) -> Entry {
    Entry { code, text }
}

/// Returns the description of a code.
#[inline]
pub(crate) fn text(code: CUresult) -> Option<&'static str> {
    let at = TABLE
        .binary_search_by_key(&code.0, |entry| entry.code.0)
        .ok()?;
    TABLE.get(at).map(|entry| entry.text)
}

/// Sorted by code.
#[rustfmt::skip]
pub(crate) static TABLE: &[Entry] = &[
    entry(CUresult::CUDA_SUCCESS, "no error"),
    entry(CUresult::CUDA_ERROR_INVALID_VALUE, "an argument is not allowed"),
    entry(CUresult::CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    entry(CUresult::CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised: call cuInit first, and again after a fork"),
    entry(CUresult::CUDA_ERROR_DEINITIALIZED, "the driver is shutting down with the process"),
    entry(CUresult::CUDA_ERROR_PROFILER_DISABLED, "profiling is not possible in this run"),
    entry(CUresult::CUDA_ERROR_PROFILER_NOT_INITIALIZED, "the profiler is not initialised"),
    entry(CUresult::CUDA_ERROR_PROFILER_ALREADY_STARTED, "the profiler was started already"),
    entry(CUresult::CUDA_ERROR_PROFILER_ALREADY_STOPPED, "the profiler was stopped already"),
    entry(CUresult::CUDA_ERROR_STUB_LIBRARY, "the loaded library is a toolkit's stub, not a driver"),
    entry(CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "the call needs a newer driver"),
    entry(CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is busy or not available to this process"),
    entry(CUresult::CUDA_ERROR_MULTICAST_RESOURCE_FULL, "the hardware has no room for another multicast binding"),
    entry(CUresult::CUDA_ERROR_NO_DEVICE, "There is no device supporting CUDA"),
    entry(CUresult::CUDA_ERROR_INVALID_DEVICE, "no such device"),
    entry(CUresult::CUDA_ERROR_DEVICE_NOT_LICENSED, "the device has no licence"),
    entry(CUresult::CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX nor device code"),
    entry(CUresult::CUDA_ERROR_INVALID_CONTEXT, "no context is current, or the context is not valid"),
    entry(CUresult::CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "the context is current already"),
    entry(CUresult::CUDA_ERROR_MAP_FAILED, "the resource could not be mapped"),
    entry(CUresult::CUDA_ERROR_UNMAP_FAILED, "the resource could not be unmapped"),
    entry(CUresult::CUDA_ERROR_ARRAY_IS_MAPPED, "the array is mapped"),
    entry(CUresult::CUDA_ERROR_ALREADY_MAPPED, "the resource is mapped already"),
    entry(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, "the image has no code for this device"),
    entry(CUresult::CUDA_ERROR_ALREADY_ACQUIRED, "the resource was acquired already"),
    entry(CUresult::CUDA_ERROR_NOT_MAPPED, "the resource is not mapped"),
    entry(CUresult::CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "the resource is not mapped as an array"),
    entry(CUresult::CUDA_ERROR_NOT_MAPPED_AS_POINTER, "the resource is not mapped as a pointer"),
    entry(CUresult::CUDA_ERROR_ECC_UNCORRECTABLE, "the device's memory lost data beyond repair"),
    entry(CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT, "the device has no such limit"),
    entry(CUresult::CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "the context is in use by another thread"),
    entry(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "the devices cannot reach each other's memory"),
    entry(CUresult::CUDA_ERROR_INVALID_PTX, "the PTX does not compile for this device"),
    entry(CUresult::CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "the graphics context is not valid"),
    entry(CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE, "an NVLink lost data beyond repair"),
    entry(CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the PTX compiler is not installed"),
    entry(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX version is newer than this driver supports"),
    entry(CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED, "compiling PTX is switched off"),
    entry(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the device has no such execution affinity"),
    entry(CUresult::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "the PTX synchronises on the device, which is no longer supported"),
    entry(CUresult::CUDA_ERROR_CONTAINED, "a fault of the device was contained"),
    entry(CUresult::CUDA_ERROR_INSUFFICIENT_LOADER_VERSION, "the fat binary needs a newer loader"),
    entry(CUresult::CUDA_ERROR_INVALID_SOURCE, "the device code is not valid"),
    entry(CUresult::CUDA_ERROR_FILE_NOT_FOUND, "no such file"),
    entry(CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "a symbol of a shared library could not be resolved"),
    entry(CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "a shared library could not be initialised"),
    entry(CUresult::CUDA_ERROR_OPERATING_SYSTEM, "a call to the operating system failed"),
    entry(CUresult::CUDA_ERROR_INVALID_HANDLE, "the handle is not valid"),
    entry(CUresult::CUDA_ERROR_ILLEGAL_STATE, "a resource is not in the state that the call needs"),
    entry(CUresult::CUDA_ERROR_LOSSY_QUERY, "the answer cannot be expressed without loss"),
    entry(CUresult::CUDA_ERROR_NOT_FOUND, "no such name"),
    entry(CUresult::CUDA_ERROR_NOT_READY, "the work is not done yet"),
    entry(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel accessed an invalid address"),
    entry(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs more resources than the device has"),
    entry(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel ran longer than the system allows"),
    entry(CUresult::CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "the launch uses textures in an incompatible mode"),
    entry(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"),
    entry(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"),
    entry(CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is in use"),
    entry(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was destroyed"),
    entry(CUresult::CUDA_ERROR_ASSERT, "an assertion in a kernel failed"),
    entry(CUresult::CUDA_ERROR_TOO_MANY_PEERS, "the device has no room for another peer"),
    entry(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the host memory is registered already"),
    entry(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the host memory is not registered"),
    entry(CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR, "a kernel's stack is corrupted or overflowed"),
    entry(CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel ran an illegal instruction"),
    entry(CUresult::CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel accessed an address that is not aligned"),
    entry(CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE, "a kernel used an address in the wrong memory space"),
    entry(CUresult::CUDA_ERROR_INVALID_PC, "a kernel jumped outside of its code"),
    entry(CUresult::CUDA_ERROR_LAUNCH_FAILED, "a kernel failed"),
    entry(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "a cooperative launch has more blocks than can run at once"),
    entry(CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK, "a kernel ended without freeing its tensor memory"),
    entry(CUresult::CUDA_ERROR_NOT_PERMITTED, "not permitted here"),
    entry(CUresult::CUDA_ERROR_NOT_SUPPORTED, "not supported by this device or system"),
    entry(CUresult::CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready for CUDA"),
    entry(CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "kernel module and driver library are of different versions"),
    entry(CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "the device does not allow a newer driver library"),
    entry(CUresult::CUDA_ERROR_MPS_CONNECTION_FAILED, "the MPS server cannot be reached"),
    entry(CUresult::CUDA_ERROR_MPS_RPC_FAILURE, "a call to the MPS server failed"),
    entry(CUresult::CUDA_ERROR_MPS_SERVER_NOT_READY, "the MPS server accepts no clients at the moment"),
    entry(CUresult::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the MPS server has its maximum number of clients"),
    entry(CUresult::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "the MPS server has as many connections as it can"),
    entry(CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS server ended this client"),
    entry(CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED, "launches from the device are not supported here"),
    entry(CUresult::CUDA_ERROR_CDP_VERSION_MISMATCH, "launches from the device mix incompatible versions"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was invalidated by an earlier error"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE, "the work would join two captures"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin in this stream"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "the capture has a branch that was not joined"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the work depends on something outside the capture"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the work depends on the null stream, which cannot be captured"),
    entry(CUresult::CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture"),
    entry(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began on another thread"),
    entry(CUresult::CUDA_ERROR_TIMEOUT, "the wait took longer than allowed"),
    entry(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph cannot be updated in this way"),
    entry(CUresult::CUDA_ERROR_EXTERNAL_DEVICE, "a device other than a GPU failed"),
    entry(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE, "the cluster size is not possible"),
    entry(CUresult::CUDA_ERROR_FUNCTION_NOT_LOADED, "the function is not loaded"),
    entry(CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE, "a resource is of the wrong kind"),
    entry(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "the resources are insufficient or do not fit together"),
    entry(CUresult::CUDA_ERROR_KEY_ROTATION, "the change of encryption keys failed"),
    entry(CUresult::CUDA_ERROR_STREAM_DETACHED, "the stream is detached"),
    entry(CUresult::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE, "the graph could not be captured again"),
    entry(CUresult::CUDA_ERROR_FABRIC_NOT_READY, "the fabric is not ready"),
    entry(CUresult::CUDA_ERROR_UNKNOWN, "an unknown error inside the driver"),
];
