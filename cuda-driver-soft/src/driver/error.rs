//! Result codes: their numbers, names and texts.

use std::ffi::CStr;

/// A failed call: the number that the caller gets as `CUresult`, never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Error(pub(crate) u32);

/// What every operation of this room returns.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match name(self.0) {
            Some(name) => write!(f, "{} ({})", name.to_string_lossy(), self.0),
            None => write!(f, "CUresult({})", self.0),
        }
    }
}

/// The name of a code, as `cuGetErrorName` gives it; `None` for a code that the driver does not know.
pub(crate) fn name(code: u32) -> Option<&'static CStr> {
    row(code).map(|r| r.1)
}

/// One short sentence about a code, as `cuGetErrorString` gives it.
pub(crate) fn text(code: u32) -> Option<&'static CStr> {
    row(code).map(|r| r.2)
}

fn row(code: u32) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
    CODES
        .binary_search_by_key(&code, |r| r.0)
        .ok()
        .map(|i| &CODES[i])
}

/// A string literal as a C string.
const fn c(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("written with one NUL, at the end"),
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        #[allow(dead_code)] // the table is complete, whether or not a code can occur here
        impl Error {
            $(pub(crate) const $name: Error = Error($code);)*
        }

        /// (number, name, text), sorted by number.
        static CODES: &[(u32, &CStr, &CStr)] = &[
            (0, c"CUDA_SUCCESS", c"no error"),
            $(($code, c(concat!("CUDA_ERROR_", stringify!($name), "\0")), c(concat!($text, "\0"))),)*
        ];
    };
}

codes! {
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "cuInit has not been called successfully in this process";
    DEINITIALIZED = 4, "the driver is shutting down";
    PROFILER_DISABLED = 5, "profiling is disabled by an external tool";
    PROFILER_NOT_INITIALIZED = 6, "the profiler is not initialized";
    PROFILER_ALREADY_STARTED = 7, "the profiler is already started";
    PROFILER_ALREADY_STOPPED = 8, "the profiler is already stopped";
    STUB_LIBRARY = 34, "the loaded library is a stub, not a driver";
    CALL_REQUIRES_NEWER_DRIVER = 36, "this call needs a newer driver";
    DEVICE_UNAVAILABLE = 46, "the device is busy or unavailable";
    MULTICAST_RESOURCE_FULL = 47, "no multicast resource is left";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    DEVICE_NOT_LICENSED = 102, "the device has no valid licence";
    INVALID_IMAGE = 200, "the kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid context, or no context is current";
    CONTEXT_ALREADY_CURRENT = 202, "the context is already current";
    MAP_FAILED = 205, "mapping the resource failed";
    UNMAP_FAILED = 206, "unmapping the resource failed";
    ARRAY_IS_MAPPED = 207, "the array is mapped";
    ALREADY_MAPPED = 208, "the resource is already mapped";
    NO_BINARY_FOR_GPU = 209, "the image has no code that this device can run";
    ALREADY_ACQUIRED = 210, "the resource is already acquired";
    NOT_MAPPED = 211, "the resource is not mapped";
    NOT_MAPPED_AS_ARRAY = 212, "the resource is not mapped as an array";
    NOT_MAPPED_AS_POINTER = 213, "the resource is not mapped as a pointer";
    ECC_UNCORRECTABLE = 214, "an uncorrectable memory error occurred";
    UNSUPPORTED_LIMIT = 215, "the device does not support this limit";
    CONTEXT_ALREADY_IN_USE = 216, "the context is in use by another thread";
    PEER_ACCESS_UNSUPPORTED = 217, "the devices have no peer access to each other";
    INVALID_PTX = 218, "PTX compilation failed";
    INVALID_GRAPHICS_CONTEXT = 219, "invalid graphics context";
    NVLINK_UNCORRECTABLE = 220, "an uncorrectable NVLink error occurred";
    JIT_COMPILER_NOT_FOUND = 221, "the PTX compiler was not found";
    UNSUPPORTED_PTX_VERSION = 222, "the PTX version is newer than this driver supports";
    JIT_COMPILATION_DISABLED = 223, "PTX compilation is disabled";
    UNSUPPORTED_EXEC_AFFINITY = 224, "the device does not support this execution affinity";
    UNSUPPORTED_DEVSIDE_SYNC = 225, "the code calls cudaDeviceSynchronize on the device";
    CONTAINED = 226, "an error was contained; other work may go on";
    INSUFFICIENT_LOADER_VERSION = 227, "the loader is too old for this image";
    INVALID_SOURCE = 300, "the device kernel source is invalid";
    FILE_NOT_FOUND = 301, "file not found";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, "a symbol of a shared object was not found";
    SHARED_OBJECT_INIT_FAILED = 303, "a shared object could not be initialized";
    OPERATING_SYSTEM = 304, "a call of the operating system failed";
    INVALID_HANDLE = 400, "invalid resource handle";
    ILLEGAL_STATE = 401, "the resource is in a state that forbids the operation";
    LOSSY_QUERY = 402, "the answer would lose information";
    NOT_FOUND = 500, "the named symbol was not found";
    NOT_READY = 600, "the work is not finished yet";
    ILLEGAL_ADDRESS = 700, "a kernel accessed an address that it must not access";
    LAUNCH_OUT_OF_RESOURCES = 701, "the launch asks for too many resources";
    LAUNCH_TIMEOUT = 702, "the launch timed out and was ended";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703, "the launch uses an incompatible texturing mode";
    PEER_ACCESS_ALREADY_ENABLED = 704, "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, "peer access is not enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, "the primary context is active";
    CONTEXT_IS_DESTROYED = 709, "the context is destroyed";
    ASSERT = 710, "a device-side assertion failed";
    TOO_MANY_PEERS = 711, "too many peers";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "part of the host memory is already registered";
    HOST_MEMORY_NOT_REGISTERED = 713, "the host memory is not registered";
    HARDWARE_STACK_ERROR = 714, "a kernel corrupted or overflowed its call stack";
    ILLEGAL_INSTRUCTION = 715, "a kernel executed an illegal instruction";
    MISALIGNED_ADDRESS = 716, "a kernel accessed a misaligned address";
    INVALID_ADDRESS_SPACE = 717, "a kernel used an address outside its state space";
    INVALID_PC = 718, "a kernel jumped to an invalid address";
    LAUNCH_FAILED = 719, "a kernel failed while it ran";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, "too many blocks for a cooperative launch";
    TENSOR_MEMORY_LEAK = 721, "a kernel did not free its tensor memory";
    NOT_PERMITTED = 800, "the operation is not permitted here";
    NOT_SUPPORTED = 801, "the operation is not supported";
    SYSTEM_NOT_READY = 802, "the system is not ready for CUDA";
    SYSTEM_DRIVER_MISMATCH = 803, "the parts of the driver have different versions";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, "forward compatibility is not supported on this device";
    MPS_CONNECTION_FAILED = 805, "no connection to the MPS control daemon or server";
    MPS_RPC_FAILURE = 806, "a remote procedure call of MPS failed";
    MPS_SERVER_NOT_READY = 807, "the MPS server is not ready for new clients";
    MPS_MAX_CLIENTS_REACHED = 808, "the MPS server has no room for a new client";
    MPS_MAX_CONNECTIONS_REACHED = 809, "the MPS server has no room for a new connection";
    MPS_CLIENT_TERMINATED = 810, "the MPS client was ended";
    CDP_NOT_SUPPORTED = 811, "dynamic parallelism is not supported here";
    CDP_VERSION_MISMATCH = 812, "two incompatible versions of dynamic parallelism meet";
    STREAM_CAPTURE_UNSUPPORTED = 900, "the operation is not permitted while a stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "the capture was invalidated by an earlier error";
    STREAM_CAPTURE_MERGE = 902, "the operation would merge two captures";
    STREAM_CAPTURE_UNMATCHED = 903, "the capture was not begun on this stream";
    STREAM_CAPTURE_UNJOINED = 904, "the capture has a fork that was not joined";
    STREAM_CAPTURE_ISOLATION = 905, "a dependency would cross the border of the capture";
    STREAM_CAPTURE_IMPLICIT = 906, "the operation depends implicitly on a capturing stream";
    CAPTURED_EVENT = 907, "the event was last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908, "the capture belongs to another thread";
    TIMEOUT = 909, "the wait timed out";
    GRAPH_EXEC_UPDATE_FAILURE = 910, "the instantiated graph cannot be updated in this way";
    EXTERNAL_DEVICE = 911, "an external device failed";
    INVALID_CLUSTER_SIZE = 912, "invalid cluster size";
    FUNCTION_NOT_LOADED = 913, "the function is not loaded";
    INVALID_RESOURCE_TYPE = 914, "invalid resource type";
    INVALID_RESOURCE_CONFIGURATION = 915, "invalid resource configuration";
    KEY_ROTATION = 916, "a key rotation prevents the operation";
    STREAM_DETACHED = 917, "the stream is detached";
    GRAPH_RECAPTURE_FAILURE = 918, "the graph cannot be captured again in this way";
    FABRIC_NOT_READY = 919, "the fabric is not ready";
    UNKNOWN = 999, "unknown error";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_the_search_finds_every_row() {
        assert!(CODES.windows(2).all(|w| w[0].0 < w[1].0));
        for &(code, expected, _) in CODES {
            assert_eq!(name(code), Some(expected));
        }
        assert_eq!(name(12345), None);
    }

    #[test]
    fn a_code_prints_its_name() {
        assert_eq!(
            format!("{:?}", Error::INVALID_VALUE),
            "CUDA_ERROR_INVALID_VALUE (1)"
        );
        assert_eq!(format!("{:?}", Error(12345)), "CUresult(12345)");
    }
}
