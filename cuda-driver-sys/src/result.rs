//! The result codes: their names as C strings, and short descriptions in this project's own words.

use core::ffi::CStr;

use crate::CUresult;

impl CUresult {
    /// Returns the C name of this code as a C string; `None` for a code that these bindings do not know.
    #[inline]
    #[must_use]
    pub const fn name_c(self) -> Option<&'static CStr> {
        Self::ENUMERATION.c_name_of(self.0)
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

    /// Returns the same description as a C string, as `cuGetErrorString` does.
    #[must_use]
    pub const fn description_c(self) -> Option<&'static CStr> {
        Some(match self {
            Self::CUDA_SUCCESS => c"no error",
            Self::CUDA_ERROR_INVALID_VALUE => c"an argument is not allowed",
            Self::CUDA_ERROR_OUT_OF_MEMORY => c"out of memory",
            Self::CUDA_ERROR_NOT_INITIALIZED => {
                c"the driver is not initialised: call cuInit first, and again after a fork"
            }
            Self::CUDA_ERROR_DEINITIALIZED => c"the driver is shutting down with the process",
            Self::CUDA_ERROR_PROFILER_DISABLED => c"profiling is disabled in this run",
            Self::CUDA_ERROR_PROFILER_NOT_INITIALIZED => c"the profiler is not initialised",
            Self::CUDA_ERROR_PROFILER_ALREADY_STARTED => c"the profiler is already started",
            Self::CUDA_ERROR_PROFILER_ALREADY_STOPPED => c"the profiler is already stopped",
            Self::CUDA_ERROR_STUB_LIBRARY => c"the loaded library is a toolkit's stub, not a driver",
            Self::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER => c"the call needs a newer driver",
            Self::CUDA_ERROR_DEVICE_UNAVAILABLE => c"the device is busy or not available to this process",
            Self::CUDA_ERROR_MULTICAST_RESOURCE_FULL => c"the hardware has no room for another multicast binding",
            Self::CUDA_ERROR_NO_DEVICE => c"There is no device supporting CUDA",
            Self::CUDA_ERROR_INVALID_DEVICE => c"no such device",
            Self::CUDA_ERROR_DEVICE_NOT_LICENSED => c"the device has no licence",
            Self::CUDA_ERROR_INVALID_IMAGE => c"the image is neither PTX nor device code",
            Self::CUDA_ERROR_INVALID_CONTEXT => c"no context is current, or the context is not valid",
            Self::CUDA_ERROR_CONTEXT_ALREADY_CURRENT => c"the context is already current",
            Self::CUDA_ERROR_MAP_FAILED => c"the resource could not be mapped",
            Self::CUDA_ERROR_UNMAP_FAILED => c"the resource could not be unmapped",
            Self::CUDA_ERROR_ARRAY_IS_MAPPED => c"the array is mapped",
            Self::CUDA_ERROR_ALREADY_MAPPED => c"the resource is already mapped",
            Self::CUDA_ERROR_NO_BINARY_FOR_GPU => c"the image holds no code for this device",
            Self::CUDA_ERROR_ALREADY_ACQUIRED => c"the resource is already acquired",
            Self::CUDA_ERROR_NOT_MAPPED => c"the resource is not mapped",
            Self::CUDA_ERROR_NOT_MAPPED_AS_ARRAY => c"the resource is not mapped as an array",
            Self::CUDA_ERROR_NOT_MAPPED_AS_POINTER => c"the resource is not mapped as a pointer",
            Self::CUDA_ERROR_ECC_UNCORRECTABLE => c"an uncorrectable error occurred in the device's memory",
            Self::CUDA_ERROR_UNSUPPORTED_LIMIT => c"the device does not support this limit",
            Self::CUDA_ERROR_CONTEXT_ALREADY_IN_USE => c"the context is in use by another thread",
            Self::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED => c"the devices cannot access each other's memory",
            Self::CUDA_ERROR_INVALID_PTX => c"the PTX does not compile for this device",
            Self::CUDA_ERROR_INVALID_GRAPHICS_CONTEXT => c"the graphics context is not valid",
            Self::CUDA_ERROR_NVLINK_UNCORRECTABLE => c"an uncorrectable NVLink error occurred",
            Self::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => c"the PTX compiler is not installed",
            Self::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => c"the PTX version is newer than this driver supports",
            Self::CUDA_ERROR_JIT_COMPILATION_DISABLED => c"PTX compilation is disabled",
            Self::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY => c"the device does not support this execution affinity",
            Self::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC => {
                c"the PTX synchronises on the device, which is no longer supported"
            }
            Self::CUDA_ERROR_CONTAINED => c"an error on the device was contained",
            Self::CUDA_ERROR_INSUFFICIENT_LOADER_VERSION => c"the fat binary needs a newer loader",
            Self::CUDA_ERROR_INVALID_SOURCE => c"the device code is not valid",
            Self::CUDA_ERROR_FILE_NOT_FOUND => c"no such file",
            Self::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND => c"a symbol of a shared library could not be resolved",
            Self::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED => c"a shared library could not be initialised",
            Self::CUDA_ERROR_OPERATING_SYSTEM => c"a call to the operating system failed",
            Self::CUDA_ERROR_INVALID_HANDLE => c"the handle is not valid",
            Self::CUDA_ERROR_ILLEGAL_STATE => c"a resource is not in the state that the call needs",
            Self::CUDA_ERROR_LOSSY_QUERY => c"the answer would lose information",
            Self::CUDA_ERROR_NOT_FOUND => c"the name was not found",
            Self::CUDA_ERROR_NOT_READY => c"the work is not done yet",
            Self::CUDA_ERROR_ILLEGAL_ADDRESS => c"a kernel accessed an invalid address",
            Self::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => c"the launch needs more resources than are available",
            Self::CUDA_ERROR_LAUNCH_TIMEOUT => c"a kernel ran longer than the system allows",
            Self::CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING => c"the launch uses an incompatible texturing mode",
            Self::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => c"peer access is already enabled",
            Self::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED => c"peer access is not enabled",
            Self::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE => c"the primary context is in use",
            Self::CUDA_ERROR_CONTEXT_IS_DESTROYED => c"the context was destroyed",
            Self::CUDA_ERROR_ASSERT => c"an assertion in a kernel failed",
            Self::CUDA_ERROR_TOO_MANY_PEERS => c"the device has no room for another peer",
            Self::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED => c"the host memory is already registered",
            Self::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED => c"the host memory is not registered",
            Self::CUDA_ERROR_HARDWARE_STACK_ERROR => c"a kernel corrupted or overflowed its call stack",
            Self::CUDA_ERROR_ILLEGAL_INSTRUCTION => c"a kernel executed an illegal instruction",
            Self::CUDA_ERROR_MISALIGNED_ADDRESS => c"a kernel accessed a misaligned address",
            Self::CUDA_ERROR_INVALID_ADDRESS_SPACE => c"a kernel used an address outside its state space",
            Self::CUDA_ERROR_INVALID_PC => c"a kernel jumped to an invalid address",
            Self::CUDA_ERROR_LAUNCH_FAILED => c"a kernel failed",
            Self::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => {
                c"the cooperative launch has more blocks than can run at once"
            }
            Self::CUDA_ERROR_TENSOR_MEMORY_LEAK => c"a kernel did not free its tensor memory",
            Self::CUDA_ERROR_NOT_PERMITTED => c"the operation is not permitted",
            Self::CUDA_ERROR_NOT_SUPPORTED => c"not supported by this device or system",
            Self::CUDA_ERROR_SYSTEM_NOT_READY => c"the system is not ready for CUDA",
            Self::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
                c"the kernel module and the driver library have different versions"
            }
            Self::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => c"the device does not support forward compatibility",
            Self::CUDA_ERROR_MPS_CONNECTION_FAILED => c"the MPS server cannot be reached",
            Self::CUDA_ERROR_MPS_RPC_FAILURE => c"a remote procedure call of MPS failed",
            Self::CUDA_ERROR_MPS_SERVER_NOT_READY => c"the MPS server is not ready for new clients",
            Self::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED => c"the MPS server has no room for another client",
            Self::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED => c"the MPS server has no room for another connection",
            Self::CUDA_ERROR_MPS_CLIENT_TERMINATED => c"the MPS server terminated this client",
            Self::CUDA_ERROR_CDP_NOT_SUPPORTED => c"dynamic parallelism is not supported here",
            Self::CUDA_ERROR_CDP_VERSION_MISMATCH => c"the code mixes incompatible versions of dynamic parallelism",
            Self::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => {
                c"the operation is not permitted while a stream is capturing"
            }
            Self::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED => c"the capture was invalidated by an earlier error",
            Self::CUDA_ERROR_STREAM_CAPTURE_MERGE => c"the operation would merge two captures",
            Self::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED => c"the capture was not begun in this stream",
            Self::CUDA_ERROR_STREAM_CAPTURE_UNJOINED => c"the capture has a fork that was not joined",
            Self::CUDA_ERROR_STREAM_CAPTURE_ISOLATION => c"the operation depends on work outside the capture",
            Self::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => {
                c"the operation depends on the null stream, which cannot be captured"
            }
            Self::CUDA_ERROR_CAPTURED_EVENT => c"the event was last recorded in a capturing stream",
            Self::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD => c"the capture was begun by another thread",
            Self::CUDA_ERROR_TIMEOUT => c"the wait timed out",
            Self::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE => c"the executable graph cannot be updated in this way",
            Self::CUDA_ERROR_EXTERNAL_DEVICE => c"an external device failed",
            Self::CUDA_ERROR_INVALID_CLUSTER_SIZE => c"the cluster size is not possible",
            Self::CUDA_ERROR_FUNCTION_NOT_LOADED => c"the function is not loaded",
            Self::CUDA_ERROR_INVALID_RESOURCE_TYPE => c"the resource type is not valid",
            Self::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION => c"the resource configuration is not valid",
            Self::CUDA_ERROR_KEY_ROTATION => c"a key rotation prevents the operation",
            Self::CUDA_ERROR_STREAM_DETACHED => c"the stream is detached",
            Self::CUDA_ERROR_GRAPH_RECAPTURE_FAILURE => c"the graph cannot be captured again in this way",
            Self::CUDA_ERROR_FABRIC_NOT_READY => c"the fabric is not ready",
            Self::CUDA_ERROR_UNKNOWN => c"an unknown error occurred in the driver",
            _ => return None,
        })
    }
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
