//! The result codes: their names as C strings, and short descriptions in this project's own words.

use core::ffi::CStr;

use crate::CUresult;
use crate::generated::facts::RESULTS;
use crate::text::part;

impl CUresult {
    /// Returns the C name of this code as a C string; `None` for a code that these bindings do not know.
    #[inline]
    #[must_use]
    pub const fn name_c(self) -> Option<&'static CStr> {
        RESULTS.c_name_of(self.0)
    }

    /// Returns a short description of this code, such as `out of memory`; `None` for a code that these bindings do not
    /// know.
    #[inline]
    #[must_use]
    pub const fn description(self) -> Option<&'static str> {
        match self.description_c() {
            Some(text) => match text.to_str() {
                Ok(text) => Some(text),
                Err(_) => None,
            },
            None => None,
        }
    }

    /// Returns [`description`](Self::description) as a C string.
    #[must_use]
    pub const fn description_c(self) -> Option<&'static CStr> {
        let mut at = 0;
        while at < CODES.len() {
            if CODES[at] == self.0 {
                return part(TEXTS, 0, at as u32);
            }
            at += 1;
        }
        None
    }
}

/// Defines the descriptions: a list of codes, and one string, because separate strings take ten times the space.
macro_rules! descriptions {
    ($($code:ident: $text:literal,)*) => {
        /// The described codes.
        static CODES: &[u32] = &[$(CUresult::$code.0),*];

        /// The description of each code, followed by a NUL.
        static TEXTS: &str = concat!($($text, "\0"),*);
    };
}

descriptions! {
    CUDA_SUCCESS: "no error",
    CUDA_ERROR_INVALID_VALUE: "an argument is not allowed",
    CUDA_ERROR_OUT_OF_MEMORY: "out of memory",
    CUDA_ERROR_NOT_INITIALIZED: "the driver is not initialised: call cuInit first, and again after a fork",
    CUDA_ERROR_DEINITIALIZED: "the driver is shutting down with the process",
    CUDA_ERROR_PROFILER_DISABLED: "profiling is disabled in this run",
    CUDA_ERROR_PROFILER_NOT_INITIALIZED: "the profiler is not initialised",
    CUDA_ERROR_PROFILER_ALREADY_STARTED: "the profiler is already started",
    CUDA_ERROR_PROFILER_ALREADY_STOPPED: "the profiler is already stopped",
    CUDA_ERROR_STUB_LIBRARY: "the loaded library is a toolkit's stub, not a driver",
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER: "the call needs a newer driver",
    CUDA_ERROR_DEVICE_UNAVAILABLE: "the device is busy or not available to this process",
    CUDA_ERROR_MULTICAST_RESOURCE_FULL: "the hardware has no room for another multicast binding",
    // The message that the programs of NVIDIA's guide print.
    CUDA_ERROR_NO_DEVICE: "There is no device supporting CUDA",
    CUDA_ERROR_INVALID_DEVICE: "no such device",
    CUDA_ERROR_DEVICE_NOT_LICENSED: "the device has no licence",
    CUDA_ERROR_INVALID_IMAGE: "the image is neither PTX nor device code",
    CUDA_ERROR_INVALID_CONTEXT: "no context is current, or the context is not valid",
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT: "the context is already current",
    CUDA_ERROR_MAP_FAILED: "the resource could not be mapped",
    CUDA_ERROR_UNMAP_FAILED: "the resource could not be unmapped",
    CUDA_ERROR_ARRAY_IS_MAPPED: "the array is mapped",
    CUDA_ERROR_ALREADY_MAPPED: "the resource is already mapped",
    CUDA_ERROR_NO_BINARY_FOR_GPU: "the image holds no code for this device",
    CUDA_ERROR_ALREADY_ACQUIRED: "the resource is already acquired",
    CUDA_ERROR_NOT_MAPPED: "the resource is not mapped",
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY: "the resource is not mapped as an array",
    CUDA_ERROR_NOT_MAPPED_AS_POINTER: "the resource is not mapped as a pointer",
    CUDA_ERROR_ECC_UNCORRECTABLE: "an uncorrectable error occurred in the device's memory",
    CUDA_ERROR_UNSUPPORTED_LIMIT: "the device does not support this limit",
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE: "the context is in use by another thread",
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: "the devices cannot access each other's memory",
    CUDA_ERROR_INVALID_PTX: "the PTX does not compile for this device",
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT: "the graphics context is not valid",
    CUDA_ERROR_NVLINK_UNCORRECTABLE: "an uncorrectable NVLink error occurred",
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND: "the PTX compiler is not installed",
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION: "the PTX version is newer than this driver supports",
    CUDA_ERROR_JIT_COMPILATION_DISABLED: "PTX compilation is disabled",
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY: "the device does not support this execution affinity",
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC: "the PTX synchronises on the device, which is no longer supported",
    CUDA_ERROR_CONTAINED: "an error on the device was contained",
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION: "the fat binary needs a newer loader",
    CUDA_ERROR_INVALID_SOURCE: "the device code is not valid",
    CUDA_ERROR_FILE_NOT_FOUND: "no such file",
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: "a symbol of a shared library could not be resolved",
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: "a shared library could not be initialised",
    CUDA_ERROR_OPERATING_SYSTEM: "a call to the operating system failed",
    CUDA_ERROR_INVALID_HANDLE: "the handle is not valid",
    CUDA_ERROR_ILLEGAL_STATE: "a resource is not in the state that the call needs",
    CUDA_ERROR_LOSSY_QUERY: "the answer would lose information",
    CUDA_ERROR_NOT_FOUND: "the name was not found",
    CUDA_ERROR_NOT_READY: "the work is not done yet",
    CUDA_ERROR_ILLEGAL_ADDRESS: "a kernel accessed an invalid address",
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: "the launch needs more resources than are available",
    CUDA_ERROR_LAUNCH_TIMEOUT: "a kernel ran longer than the system allows",
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: "the launch uses an incompatible texturing mode",
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: "peer access is already enabled",
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: "peer access is not enabled",
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: "the primary context is in use",
    CUDA_ERROR_CONTEXT_IS_DESTROYED: "the context was destroyed",
    CUDA_ERROR_ASSERT: "an assertion in a kernel failed",
    CUDA_ERROR_TOO_MANY_PEERS: "the device has no room for another peer",
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: "the host memory is already registered",
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: "the host memory is not registered",
    CUDA_ERROR_HARDWARE_STACK_ERROR: "a kernel corrupted or overflowed its call stack",
    CUDA_ERROR_ILLEGAL_INSTRUCTION: "a kernel executed an illegal instruction",
    CUDA_ERROR_MISALIGNED_ADDRESS: "a kernel accessed a misaligned address",
    CUDA_ERROR_INVALID_ADDRESS_SPACE: "a kernel used an address outside its state space",
    CUDA_ERROR_INVALID_PC: "a kernel jumped to an invalid address",
    CUDA_ERROR_LAUNCH_FAILED: "a kernel failed",
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: "the cooperative launch has more blocks than can run at once",
    CUDA_ERROR_TENSOR_MEMORY_LEAK: "a kernel did not free its tensor memory",
    CUDA_ERROR_NOT_PERMITTED: "the operation is not permitted",
    CUDA_ERROR_NOT_SUPPORTED: "not supported by this device or system",
    CUDA_ERROR_SYSTEM_NOT_READY: "the system is not ready for CUDA",
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: "the kernel module and the driver library have different versions",
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: "the device does not support forward compatibility",
    CUDA_ERROR_MPS_CONNECTION_FAILED: "the MPS server cannot be reached",
    CUDA_ERROR_MPS_RPC_FAILURE: "a remote procedure call of MPS failed",
    CUDA_ERROR_MPS_SERVER_NOT_READY: "the MPS server is not ready for new clients",
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED: "the MPS server has no room for another client",
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED: "the MPS server has no room for another connection",
    CUDA_ERROR_MPS_CLIENT_TERMINATED: "the MPS server terminated this client",
    CUDA_ERROR_CDP_NOT_SUPPORTED: "dynamic parallelism is not supported here",
    CUDA_ERROR_CDP_VERSION_MISMATCH: "the code mixes incompatible versions of dynamic parallelism",
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: "the operation is not permitted while a stream is capturing",
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: "the capture was invalidated by an earlier error",
    CUDA_ERROR_STREAM_CAPTURE_MERGE: "the operation would merge two captures",
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: "the capture was not begun in this stream",
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED: "the capture has a fork that was not joined",
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION: "the operation depends on work outside the capture",
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: "the operation would make the legacy default stream wait for a capture",
    CUDA_ERROR_CAPTURED_EVENT: "the event was last recorded in a capturing stream",
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: "the capture was begun by another thread",
    CUDA_ERROR_TIMEOUT: "the wait timed out",
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: "the executable graph cannot be updated in this way",
    CUDA_ERROR_EXTERNAL_DEVICE: "an external device failed",
    CUDA_ERROR_INVALID_CLUSTER_SIZE: "the cluster size is not possible",
    CUDA_ERROR_FUNCTION_NOT_LOADED: "the function is not loaded",
    CUDA_ERROR_INVALID_RESOURCE_TYPE: "the resource type is not valid",
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: "the resource configuration is not valid",
    CUDA_ERROR_KEY_ROTATION: "a key rotation prevents the operation",
    CUDA_ERROR_STREAM_DETACHED: "the stream is detached",
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE: "the graph cannot be captured again in this way",
    CUDA_ERROR_FABRIC_NOT_READY: "the fabric is not ready",
    CUDA_ERROR_UNKNOWN: "an unknown error occurred in the driver",
}

#[cfg(test)]
mod tests {
    use super::CUresult;

    #[test]
    fn every_code_has_a_description() {
        let known = (0..10_000).map(CUresult);
        for code in known.filter(|code| code.name().is_some()) {
            let text = code.description().unwrap_or_default();
            assert!(!text.is_empty(), "{code:?}");
            assert_eq!(code.name_c().and_then(|name| name.to_str().ok()), code.name());
        }
        assert_eq!(CUresult(12_345).description(), None);
        assert_eq!(CUresult(12_345).name_c(), None);
    }
}
