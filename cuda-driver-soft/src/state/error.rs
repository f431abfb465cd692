//! Result codes of calls, with a sentence that describes each.

use std::ffi::CStr;

/// The error of a call: the code that it returns, never `CUDA_SUCCESS`.
pub(crate) use cuda_driver_sys::CUresult as Error;

/// The result of a call, or of a part of it.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the name of a code, as `cuGetErrorName` does; `None` for a code that the driver does not know.
pub(crate) fn name(code: Error) -> Option<&'static CStr> {
    row(code).map(|row| row.1)
}

/// Returns a sentence that describes a code, as `cuGetErrorString` does.
pub(crate) fn text(code: Error) -> Option<&'static CStr> {
    row(code).map(|row| row.2)
}

fn row(code: Error) -> Option<&'static (Error, &'static CStr, &'static CStr)> {
    TEXTS.iter().find(|row| row.0 == code)
}

/// Converts a string literal that ends with NUL to a C string.
const fn c(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the literal must contain one NUL byte, at the end"),
    }
}

macro_rules! texts {
    ($($code:ident: $text:literal;)*) => {
        /// Every code with its name and its description.
        static TEXTS: &[(Error, &CStr, &CStr)] = &[
            $((Error::$code, c(concat!(stringify!($code), "\0")), c(concat!($text, "\0"))),)*
        ];
    };
}

texts! {
    CUDA_SUCCESS: "no error";
    CUDA_ERROR_INVALID_VALUE: "invalid argument";
    CUDA_ERROR_OUT_OF_MEMORY: "out of memory";
    CUDA_ERROR_NOT_INITIALIZED: "cuInit has not been called successfully in this process";
    CUDA_ERROR_DEINITIALIZED: "the driver is shutting down";
    CUDA_ERROR_PROFILER_DISABLED: "profiling is disabled by an external tool";
    CUDA_ERROR_PROFILER_NOT_INITIALIZED: "the profiler is not initialized";
    CUDA_ERROR_PROFILER_ALREADY_STARTED: "the profiler is already started";
    CUDA_ERROR_PROFILER_ALREADY_STOPPED: "the profiler is already stopped";
    CUDA_ERROR_STUB_LIBRARY: "the loaded library is a stub, not a driver";
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER: "this call needs a newer driver";
    CUDA_ERROR_DEVICE_UNAVAILABLE: "the device is busy or unavailable";
    CUDA_ERROR_MULTICAST_RESOURCE_FULL: "no multicast resource is left";
    CUDA_ERROR_NO_DEVICE: "no CUDA-capable device is detected";
    CUDA_ERROR_INVALID_DEVICE: "invalid device ordinal";
    CUDA_ERROR_DEVICE_NOT_LICENSED: "the device has no valid licence";
    CUDA_ERROR_INVALID_IMAGE: "the kernel image is invalid";
    CUDA_ERROR_INVALID_CONTEXT: "invalid context, or no context is current";
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT: "the context is already current";
    CUDA_ERROR_MAP_FAILED: "mapping the resource failed";
    CUDA_ERROR_UNMAP_FAILED: "unmapping the resource failed";
    CUDA_ERROR_ARRAY_IS_MAPPED: "the array is mapped";
    CUDA_ERROR_ALREADY_MAPPED: "the resource is already mapped";
    CUDA_ERROR_NO_BINARY_FOR_GPU: "the image has no code that this device can run";
    CUDA_ERROR_ALREADY_ACQUIRED: "the resource is already acquired";
    CUDA_ERROR_NOT_MAPPED: "the resource is not mapped";
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY: "the resource is not mapped as an array";
    CUDA_ERROR_NOT_MAPPED_AS_POINTER: "the resource is not mapped as a pointer";
    CUDA_ERROR_ECC_UNCORRECTABLE: "an uncorrectable memory error occurred";
    CUDA_ERROR_UNSUPPORTED_LIMIT: "the device does not support this limit";
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE: "the context is in use by another thread";
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: "the devices have no peer access to each other";
    CUDA_ERROR_INVALID_PTX: "PTX compilation failed";
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT: "invalid graphics context";
    CUDA_ERROR_NVLINK_UNCORRECTABLE: "an uncorrectable NVLink error occurred";
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND: "the PTX compiler was not found";
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION: "the PTX version is newer than this driver supports";
    CUDA_ERROR_JIT_COMPILATION_DISABLED: "PTX compilation is disabled";
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY: "the device does not support this execution affinity";
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC: "the code calls cudaDeviceSynchronize on the device";
    CUDA_ERROR_CONTAINED: "an error was contained; other work may go on";
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION: "the loader is too old for this image";
    CUDA_ERROR_INVALID_SOURCE: "the device kernel source is invalid";
    CUDA_ERROR_FILE_NOT_FOUND: "file not found";
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: "a symbol of a shared object was not found";
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: "a shared object could not be initialized";
    CUDA_ERROR_OPERATING_SYSTEM: "a call of the operating system failed";
    CUDA_ERROR_INVALID_HANDLE: "invalid resource handle";
    CUDA_ERROR_ILLEGAL_STATE: "the resource is in a state that forbids the operation";
    CUDA_ERROR_LOSSY_QUERY: "the answer would lose information";
    CUDA_ERROR_NOT_FOUND: "the named symbol was not found";
    CUDA_ERROR_NOT_READY: "the work is not finished yet";
    CUDA_ERROR_ILLEGAL_ADDRESS: "a kernel accessed an address that it must not access";
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: "the launch asks for too many resources";
    CUDA_ERROR_LAUNCH_TIMEOUT: "the launch timed out and was ended";
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: "the launch uses an incompatible texturing mode";
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: "peer access is already enabled";
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: "peer access is not enabled";
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: "the primary context is active";
    CUDA_ERROR_CONTEXT_IS_DESTROYED: "the context is destroyed";
    CUDA_ERROR_ASSERT: "a device-side assertion failed";
    CUDA_ERROR_TOO_MANY_PEERS: "too many peers";
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: "part of the host memory is already registered";
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: "the host memory is not registered";
    CUDA_ERROR_HARDWARE_STACK_ERROR: "a kernel corrupted or overflowed its call stack";
    CUDA_ERROR_ILLEGAL_INSTRUCTION: "a kernel executed an illegal instruction";
    CUDA_ERROR_MISALIGNED_ADDRESS: "a kernel accessed a misaligned address";
    CUDA_ERROR_INVALID_ADDRESS_SPACE: "a kernel used an address outside its state space";
    CUDA_ERROR_INVALID_PC: "a kernel jumped to an invalid address";
    CUDA_ERROR_LAUNCH_FAILED: "a kernel failed while it ran";
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: "too many blocks for a cooperative launch";
    CUDA_ERROR_TENSOR_MEMORY_LEAK: "a kernel did not free its tensor memory";
    CUDA_ERROR_NOT_PERMITTED: "the operation is not permitted here";
    CUDA_ERROR_NOT_SUPPORTED: "the operation is not supported";
    CUDA_ERROR_SYSTEM_NOT_READY: "the system is not ready for CUDA";
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: "the parts of the driver have different versions";
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: "forward compatibility is not supported on this device";
    CUDA_ERROR_MPS_CONNECTION_FAILED: "no connection to the MPS control daemon or server";
    CUDA_ERROR_MPS_RPC_FAILURE: "a remote procedure call of MPS failed";
    CUDA_ERROR_MPS_SERVER_NOT_READY: "the MPS server is not ready for new clients";
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED: "the MPS server has no room for a new client";
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED: "the MPS server has no room for a new connection";
    CUDA_ERROR_MPS_CLIENT_TERMINATED: "the MPS client was ended";
    CUDA_ERROR_CDP_NOT_SUPPORTED: "dynamic parallelism is not supported here";
    CUDA_ERROR_CDP_VERSION_MISMATCH: "two incompatible versions of dynamic parallelism meet";
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: "the operation is not permitted while a stream is capturing";
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: "the capture was invalidated by an earlier error";
    CUDA_ERROR_STREAM_CAPTURE_MERGE: "the operation would merge two captures";
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: "the capture was not begun on this stream";
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED: "the capture has a fork that was not joined";
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION: "a dependency would cross the border of the capture";
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: "the operation depends implicitly on a capturing stream";
    CUDA_ERROR_CAPTURED_EVENT: "the event was last recorded in a capturing stream";
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: "the capture belongs to another thread";
    CUDA_ERROR_TIMEOUT: "the wait timed out";
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: "the instantiated graph cannot be updated in this way";
    CUDA_ERROR_EXTERNAL_DEVICE: "an external device failed";
    CUDA_ERROR_INVALID_CLUSTER_SIZE: "invalid cluster size";
    CUDA_ERROR_FUNCTION_NOT_LOADED: "the function is not loaded";
    CUDA_ERROR_INVALID_RESOURCE_TYPE: "invalid resource type";
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: "invalid resource configuration";
    CUDA_ERROR_KEY_ROTATION: "a key rotation prevents the operation";
    CUDA_ERROR_STREAM_DETACHED: "the stream is detached";
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE: "the graph cannot be captured again in this way";
    CUDA_ERROR_FABRIC_NOT_READY: "the fabric is not ready";
    CUDA_ERROR_UNKNOWN: "unknown error";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_name_of_the_header_and_a_text() {
        for code in (0..1000).map(Error).filter(|code| code.name().is_some()) {
            let name = name(code).map(|name| name.to_string_lossy().into_owned());
            assert_eq!(name.as_deref(), code.name());
            assert!(text(code).is_some_and(|text| !text.is_empty()), "{code:?}");
        }
        assert_eq!(name(Error(12345)), None);
    }
}
