//! The fake driver: a resolver that is the default library of the test process.

#![allow(non_snake_case)]
// Every pointer that a fake function dereferences was passed by the crate under test for that parameter.
#![allow(clippy::undocumented_unsafe_blocks)]

use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::process::Command;
use std::sync::{Mutex, Once};

use super::allocations::ALLOCATIONS;
use crate::sys::library::Source;
use crate::sys::{self, CUresult};

thread_local! {
    /// The names of the functions that this thread called, with some of the arguments, in order. Calls of
    /// `cuCtxGetCurrent` are left out.
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// The function whose next call fails, and the code that it returns.
    static NEXT: Cell<Option<(&'static str, u32)>> = const { Cell::new(None) };
    /// This thread's stack of contexts.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// True if this thread's streams report that they are being captured.
    static CAPTURED: Cell<bool> = const { Cell::new(false) };
    /// True if waits for this thread's streams fail, as in a capture.
    static WAITS_FAIL: Cell<bool> = const { Cell::new(false) };
    /// The last host function and its argument.
    static HOST_FUNC: Cell<(sys::CUhostFn, usize)> = const { Cell::new((None, 0)) };
    /// The function after whose next call another context is on top of the stack.
    static PUSHED_BY: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// The next handle that is returned, in place of a new one.
    static NEXT_HANDLE: Cell<Option<usize>> = const { Cell::new(None) };
    /// The message that the driver logs when the next call fails on this thread.
    static MESSAGE: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// The number of devices that this thread sees.
    static DEVICES: Cell<c_int> = const { Cell::new(1) };
}

/// Makes the fake driver the default library, and forgets this thread's calls and the failure that [`fail`] chose. In a
/// child process, `FAKE_SOURCE` names another library.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let source = match std::env::var("FAKE_SOURCE") {
            // SAFETY: the tests name no existing file.
            Ok(path) => unsafe { Source::path(path) },
            // SAFETY: each function has the type of its name.
            Err(_) => unsafe { Source::resolver("the fake driver", resolve) },
        };
        sys::set_default(source).unwrap();
    });
    CALLS.with_borrow_mut(Vec::clear);
    NEXT.set(None);
}

/// Returns the calls since [`install`] or the previous call of this function.
pub(super) fn calls() -> Vec<String> {
    CALLS.take()
}

/// Adds a drop to this thread's calls.
pub(super) fn note_drop() {
    CALLS.with_borrow_mut(|calls| calls.push("a drop".to_owned()));
}

/// Makes the next call of `function` return `code`.
pub(super) fn fail(function: &'static str, code: u32) {
    NEXT.set(Some((function, code)));
}

/// Leaves another context on top of the stack after the next call of `function`, as an interposer could, and returns
/// that context's handle.
pub(super) fn push_in(function: &'static str) -> sys::CUcontext {
    PUSHED_BY.set(Some(function));
    ptr::without_provenance_mut(FOREIGN)
}

/// The handle of the context that [`push_in`] leaves on the stack.
const FOREIGN: usize = 0x77;

/// Empties this thread's stack of contexts.
pub(super) fn clear_stack() {
    STACK.with_borrow_mut(Vec::clear);
}

/// Makes the next call that creates an object return this handle, as a driver reuses the addresses of destroyed
/// objects.
pub(super) fn reuse_handle(handle: usize) {
    NEXT_HANDLE.set(Some(handle));
}

/// Makes the next call of `function` return `code` and log a message.
pub(super) fn fail_with_message(function: &'static str, code: u32, message: &'static str) {
    fail(function, code);
    MESSAGE.set(Some(message));
}

/// A callback of the driver's log and its argument.
type LogCallback = (
    unsafe extern "system" fn(*mut c_void, sys::CUlogLevel, *mut c_char, usize),
    usize,
);

/// The callbacks of the driver's log, with their handles.
static LOG_CALLBACKS: Mutex<Vec<(usize, LogCallback)>> = Mutex::new(Vec::new());

/// Calls the callbacks of the log.
fn log(message: &str) {
    // Locked during the calls, so that unregistering waits for a call on another thread: the tests count the references
    // to a closure afterwards.
    let callbacks = LOG_CALLBACKS.lock().unwrap();
    let mut bytes = message.as_bytes().to_vec();
    for &(_, (callback, data)) in callbacks.iter() {
        // SAFETY: the callback and its argument were passed to `cuLogsRegisterCallback`.
        unsafe {
            callback(
                ptr::without_provenance_mut(data),
                sys::CUlogLevel::CU_LOG_LEVEL_ERROR,
                bytes.as_mut_ptr().cast(),
                bytes.len(),
            );
        }
    }
}

/// Sets the capture status that this thread's streams report.
pub(super) fn captured(captured: bool) {
    CAPTURED.set(captured);
}

/// Makes waits for this thread's streams fail, as in a capture, in addition to the call that [`fail`] chose.
pub(super) fn fail_waits(fail: bool) {
    WAITS_FAIL.set(fail);
}

/// Sets the number of devices for this thread.
pub(super) fn devices(count: c_int) {
    DEVICES.set(count);
}

/// Runs a test in a process of its own, and returns its standard output.
pub(super) fn child(test: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "no test {test:?} ran: {text}");
    text
}

/// Records a call, and returns the code that a test chose for it, or success.
fn note(name: &'static str, detail: &str) -> CUresult {
    CALLS.with_borrow_mut(|calls| calls.push(format!("{name}{detail}")));
    match NEXT.get() {
        Some((function, code)) if function == name => {
            NEXT.set(None);
            if let Some(message) = MESSAGE.take() {
                log(message);
            }
            CUresult(code)
        }
        _ if WAITS_FAIL.get() && name == "cuStreamSynchronize" => CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        _ => CUresult::CUDA_SUCCESS,
    }
}

/// Returns the handle that a test chose, or else a new handle or address. New ones are unique in the process, because
/// the crate keeps some state by handle.
fn handle() -> usize {
    if let Some(handle) = NEXT_HANDLE.take() {
        return handle;
    }
    static LAST: AtomicUsize = AtomicUsize::new(0x1000);
    LAST.fetch_add(0x100, Ordering::Relaxed)
}

/// Defines functions of the fake driver, and `resolve`, which finds them by name. Each has an expression, whose value
/// is recorded after the name, and a block, which runs if the call succeeds.
macro_rules! fakes {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) $detail:expr => $body:block)*) => {
        $(
            unsafe extern "system" fn $name($($arg: $ty),*) -> CUresult {
                let allocations = ALLOCATIONS.get();
                let code = note(stringify!($name), &$detail);
                if code == CUresult::CUDA_SUCCESS {
                    $body
                }
                if PUSHED_BY.get() == Some(stringify!($name)) {
                    PUSHED_BY.set(None);
                    STACK.with_borrow_mut(|stack| stack.push(FOREIGN));
                }
                // Allocations of the fake driver do not count.
                ALLOCATIONS.set(allocations);
                code
            }
        )*

        fn resolve(name: &CStr) -> *const c_void {
            match name.to_str() {
                Ok("cuCtxGetCurrent") => cuCtxGetCurrent as *const c_void,
                $(Ok(stringify!($name)) => $name as *const c_void,)*
                _ => ptr::null(),
            }
        }
    };
}

unsafe extern "system" fn cuCtxGetCurrent(context: *mut sys::CUcontext) -> CUresult {
    let top = STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0));
    // SAFETY: upheld by the caller.
    unsafe { context.write(ptr::without_provenance_mut(top)) };
    CUresult::CUDA_SUCCESS
}

/// Writes an output of a call.
///
/// # Safety
/// The pointer must be valid for writes.
unsafe fn give<T>(to: *mut T, value: T) {
    assert!(!to.is_null());
    // SAFETY: upheld by the caller.
    unsafe { to.write(value) };
}

fn no_detail() -> String {
    String::new()
}

fakes! {
    fn cuInit(flags: c_uint) format!("({flags})") => {}
    fn cuDriverGetVersion(version: *mut c_int) no_detail() => { unsafe { give(version, 12020) } }
    fn cuDeviceGetCount(count: *mut c_int) no_detail() => { unsafe { give(count, DEVICES.get()) } }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) format!("({ordinal})") => { unsafe { give(device, ordinal + 40) } }
    fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) format!("({len}, {device})") => {
        let text = b"Fake\0";
        assert!(len as usize >= text.len());
        unsafe { ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), text.len()) }
    }
    fn cuDeviceGetUuid_v2(uuid: *mut sys::CUuuid, device: c_int) format!("({device})") => {
        unsafe { give(uuid.cast::<[u8; 16]>(), *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff") }
    }
    fn cuCtxCreate_v2(context: *mut sys::CUcontext, flags: c_uint, device: c_int) format!("({flags}, {device})") => {
        let raw = handle();
        STACK.with_borrow_mut(|stack| stack.push(raw));
        unsafe { give(context, ptr::without_provenance_mut(raw)) }
    }
    fn cuCtxPushCurrent_v2(context: sys::CUcontext) no_detail() => {
        STACK.with_borrow_mut(|stack| stack.push(context.addr()));
    }
    fn cuCtxPopCurrent_v2(context: *mut sys::CUcontext) no_detail() => {
        let top = STACK.with_borrow_mut(Vec::pop).unwrap();
        unsafe { give(context, ptr::without_provenance_mut(top)) }
    }
    fn cuCtxDestroy_v2(_context: sys::CUcontext) no_detail() => {}
    fn cuCtxAttach(context: *mut sys::CUcontext, flags: c_uint) format!("({flags})") => {
        let top = STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0));
        unsafe { give(context, ptr::without_provenance_mut(top)) }
    }
    fn cuCtxDetach(_context: sys::CUcontext) no_detail() => {}
    fn cuCtxSynchronize() no_detail() => {}
    fn cuCtxEnablePeerAccess(_peer: sys::CUcontext, flags: c_uint) format!("({flags})") => {}
    fn cuCtxDisablePeerAccess(_peer: sys::CUcontext) no_detail() => {}
    fn cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: c_int) format!("({device})") => {
        unsafe { give(context, ptr::without_provenance_mut(handle())) }
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) format!("({device})") => {}
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) no_detail() => {
        unsafe { give(free, 10) };
        unsafe { give(total, 20) }
    }
    fn cuMemAlloc_v2(address: *mut sys::CUdeviceptr, bytes: usize) format!("({bytes})") => {
        unsafe { give(address, handle() as sys::CUdeviceptr) }
    }
    fn cuMemFree_v2(_address: sys::CUdeviceptr) no_detail() => {}
    fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) format!("({bytes}, {flags})") => {
        let memory = vec![0u64; bytes.div_ceil(8)].leak();
        unsafe { give(address, memory.as_mut_ptr().cast()) }
    }
    fn cuMemFreeHost(_address: *mut c_void) no_detail() => {}
    fn cuMemcpyHtoD_v2(_to: sys::CUdeviceptr, _from: *const c_void, bytes: usize) format!("({bytes})") => {}
    fn cuMemcpyDtoH_v2(to: *mut c_void, _from: sys::CUdeviceptr, bytes: usize) format!("({bytes})") => {
        unsafe { ptr::write_bytes(to.cast::<u8>(), 1, bytes) }
    }
    fn cuMemcpyHtoDAsync_v2(_to: sys::CUdeviceptr, _from: *const c_void, bytes: usize, _stream: sys::CUstream)
        format!("({bytes})") => {}
    fn cuMemcpyDtoHAsync_v2(_to: *mut c_void, _from: sys::CUdeviceptr, bytes: usize, _stream: sys::CUstream)
        format!("({bytes})") => {}
    fn cuMemcpyBatchAsync_v2(
        _to: *mut sys::CUdeviceptr, _from: *mut sys::CUdeviceptr, _sizes: *mut usize, count: usize,
        _attributes: *mut sys::CUmemcpyAttributes, _indices: *mut usize, attributes: usize, _stream: sys::CUstream
    ) format!("({count}, {attributes})") => {}
    fn cuMemsetD32_v2(_to: sys::CUdeviceptr, value: c_uint, count: usize) format!("({value}, {count})") => {}
    fn cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint) format!("({flags})") => {
        unsafe { give(stream, ptr::without_provenance_mut(handle())) }
    }
    fn cuStreamSynchronize(_stream: sys::CUstream) no_detail() => {}
    fn cuStreamQuery(_stream: sys::CUstream) no_detail() => {}
    fn cuStreamIsCapturing(_stream: sys::CUstream, status: *mut sys::CUstreamCaptureStatus) no_detail() => {
        unsafe { give(status, sys::CUstreamCaptureStatus(u32::from(CAPTURED.get()) as _)) }
    }
    fn cuStreamDestroy_v2(_stream: sys::CUstream) no_detail() => {}
    fn cuEventCreate(event: *mut sys::CUevent, flags: c_uint) format!("({flags})") => {
        unsafe { give(event, ptr::without_provenance_mut(handle())) }
    }
    fn cuStreamGetCtx(_stream: sys::CUstream, context: *mut sys::CUcontext) no_detail() => {
        let top = STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0));
        unsafe { give(context, ptr::without_provenance_mut(top)) }
    }
    fn cuEventQuery(_event: sys::CUevent) no_detail() => {}
    fn cuEventRecord(_event: sys::CUevent, _stream: sys::CUstream) no_detail() => {}
    fn cuEventSynchronize(_event: sys::CUevent) no_detail() => {}
    fn cuEventDestroy_v2(_event: sys::CUevent) no_detail() => {}
    fn cuModuleLoadDataEx(
        module: *mut sys::CUmodule, image: *const c_void, count: c_uint, options: *mut sys::CUjit_option,
        values: *mut *mut c_void
    ) format!("({})", unsafe { image_and_log(image, count, options, values) }) => {
        unsafe { give(module, ptr::without_provenance_mut(handle())) }
    }
    fn cuModuleGetFunction(function: *mut sys::CUfunction, _module: sys::CUmodule, _name: *const c_char) no_detail() => {
        unsafe { give(function, ptr::without_provenance_mut(handle())) }
    }
    fn cuModuleUnload(_module: sys::CUmodule) no_detail() => {}
    fn cuLaunchKernel(
        _function: sys::CUfunction, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint, _stream: sys::CUstream, params: *mut *mut c_void, extra: *mut *mut c_void
    ) format!("({gx} {gy} {gz}, {bx} {by} {bz}, {shared}, {})", unsafe { first_argument(params, extra) }) => {}
    fn cuLaunchCooperativeKernel(
        _function: sys::CUfunction, gx: c_uint, _gy: c_uint, _gz: c_uint, bx: c_uint, _by: c_uint, _bz: c_uint,
        _shared: c_uint, _stream: sys::CUstream, params: *mut *mut c_void
    ) format!("({gx}, {bx}, {})", unsafe { first_argument(params, ptr::null_mut()) }) => {}
    fn cuLaunchKernelEx(
        config: *const sys::CUlaunchConfig, _function: sys::CUfunction, params: *mut *mut c_void,
        extra: *mut *mut c_void
    ) format!("({}, {})", unsafe { (*config).numAttrs }, unsafe { first_argument(params, extra) }) => {}
    fn cuMulticastCreate(object: *mut sys::CUmemGenericAllocationHandle, prop: *const sys::CUmulticastObjectProp)
        format!("({}, {})", unsafe { (*prop).numDevices }, unsafe { (*prop).size }) => {
        unsafe { give(object, handle() as u64) }
    }
    fn cuMulticastGetGranularity(
        granularity: *mut usize, prop: *const sys::CUmulticastObjectProp, option: sys::CUmulticastGranularity_flags
    ) format!("({}, {})", unsafe { (*prop).numDevices }, option.0) => { unsafe { give(granularity, 512) } }
    fn cuMulticastAddDevice(_object: sys::CUmemGenericAllocationHandle, device: c_int) format!("({device})") => {}
    fn cuMulticastBindMem(
        _object: sys::CUmemGenericAllocationHandle, offset: usize, memory: sys::CUmemGenericAllocationHandle, at: usize,
        size: usize, flags: u64
    ) format!("({offset}, {memory}, {at}, {size}, {flags})") => {}
    fn cuMulticastBindAddr(
        _object: sys::CUmemGenericAllocationHandle, offset: usize, address: sys::CUdeviceptr, size: usize, flags: u64
    ) format!("({offset}, {address}, {size}, {flags})") => {}
    fn cuMulticastUnbind(_object: sys::CUmemGenericAllocationHandle, device: c_int, offset: usize, size: usize)
        format!("({device}, {offset}, {size})") => {}
    fn cuMemRelease(_object: sys::CUmemGenericAllocationHandle) no_detail() => {}
    fn cuCheckpointProcessGetState(id: c_int, state: *mut sys::CUprocessState) format!("({id})") => {
        unsafe { give(state, sys::CUprocessState::CU_PROCESS_STATE_LOCKED) }
    }
    fn cuCheckpointProcessGetRestoreThreadId(id: c_int, thread: *mut c_int) format!("({id})") => {
        unsafe { give(thread, 12) }
    }
    fn cuCheckpointProcessLock(id: c_int, arguments: *mut sys::CUcheckpointLockArgs)
        format!("({id}, {})", unsafe { (*arguments).timeoutMs }) => {}
    fn cuCheckpointProcessCheckpoint(id: c_int, arguments: *mut sys::CUcheckpointCheckpointArgs)
        format!("({id}, {arguments:?})") => {}
    fn cuCheckpointProcessRestore(id: c_int, arguments: *mut sys::CUcheckpointRestoreArgs)
        format!("({id}, {})", unsafe { arguments.as_ref().map_or(0, |arguments| arguments.gpuPairsCount) }) => {}
    fn cuCheckpointProcessUnlock(id: c_int, arguments: *mut sys::CUcheckpointUnlockArgs)
        format!("({id}, {arguments:?})") => {}
    fn cuDeviceGetDevResource(_device: c_int, resource: *mut sys::CUdevResource, kind: sys::CUdevResourceType)
        no_detail() => {
        unsafe { (*resource).type_ = kind };
    }
    fn cuDevSmResourceSplitByCount(
        _parts: *mut sys::CUdevResource, count: *mut c_uint, whole: *const sys::CUdevResource,
        _rest: *mut sys::CUdevResource, _flags: c_uint, _least: c_uint
    ) format!("({whole:p})") => { unsafe { give(count, 0) } }
    fn cuDevSmResourceSplit(
        _parts: *mut sys::CUdevResource, _count: c_uint, whole: *const sys::CUdevResource,
        _rest: *mut sys::CUdevResource, _flags: c_uint, _sizes: *mut sys::CU_DEV_SM_RESOURCE_GROUP_PARAMS
    ) format!("({whole:p})") => {}
    fn cuGraphCreate(graph: *mut sys::CUgraph, _flags: c_uint) no_detail() => {
        unsafe { give(graph, ptr::without_provenance_mut(handle())) }
    }
    fn cuGraphDestroy(_graph: sys::CUgraph) no_detail() => {}
    fn cuGraphAddNode(
        _node: *mut sys::CUgraphNode, _graph: sys::CUgraph, _after: *const sys::CUgraphNode, count: usize,
        _params: *mut sys::CUgraphNodeParams
    ) format!("({count})") => {}
    fn cuGraphicsResourceSetMapFlags_v2(_resource: sys::CUgraphicsResource, flags: c_uint) format!("({flags})") => {}
    fn cuGraphicsMapResources(count: c_uint, resources: *mut sys::CUgraphicsResource, _stream: sys::CUstream)
        format!("({count}, {:?})", unsafe { *resources }) => {}
    fn cuGraphicsUnmapResources(count: c_uint, resources: *mut sys::CUgraphicsResource, _stream: sys::CUstream)
        format!("({count}, {:?})", unsafe { *resources }) => {}
    fn cuGraphicsResourceGetMappedPointer_v2(
        address: *mut sys::CUdeviceptr, size: *mut usize, _resource: sys::CUgraphicsResource
    ) no_detail() => {
        unsafe { give(address, 0x1000) };
        unsafe { give(size, 64) }
    }
    fn cuGraphicsSubResourceGetMappedArray(
        array: *mut sys::CUarray, _resource: sys::CUgraphicsResource, index: c_uint, level: c_uint
    ) format!("({index}, {level})") => { unsafe { give(array, ptr::without_provenance_mut(handle())) } }
    fn cuGraphicsUnregisterResource(_resource: sys::CUgraphicsResource) no_detail() => {}
    fn cuImportExternalMemory(
        memory: *mut sys::CUexternalMemory, description: *const sys::CUDA_EXTERNAL_MEMORY_HANDLE_DESC
    ) format!("({}, {})", unsafe { (*description).type_.0 }, unsafe { (*description).size }) => {
        unsafe { give(memory, ptr::without_provenance_mut(handle())) }
    }
    fn cuExternalMemoryGetMappedBuffer(
        address: *mut sys::CUdeviceptr, _memory: sys::CUexternalMemory,
        description: *const sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC
    ) format!("({}, {})", unsafe { (*description).offset }, unsafe { (*description).size }) => {
        unsafe { give(address, handle() as sys::CUdeviceptr) }
    }
    fn cuDestroyExternalMemory(_memory: sys::CUexternalMemory) no_detail() => {}
    fn cuImportExternalSemaphore(
        semaphore: *mut sys::CUexternalSemaphore, description: *const sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC
    ) format!("({})", unsafe { (*description).type_.0 }) => {
        unsafe { give(semaphore, ptr::without_provenance_mut(handle())) }
    }
    fn cuSignalExternalSemaphoresAsync(
        _semaphores: *const sys::CUexternalSemaphore, params: *const sys::CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        count: c_uint, _stream: sys::CUstream
    ) format!("({count}, {})", unsafe { (*params).params.fence.value }) => {}
    fn cuWaitExternalSemaphoresAsync(
        _semaphores: *const sys::CUexternalSemaphore, params: *const sys::CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        count: c_uint, _stream: sys::CUstream
    ) format!("({count}, {})", unsafe { (*params).params.fence.value }) => {}
    fn cuDestroyExternalSemaphore(_semaphore: sys::CUexternalSemaphore) no_detail() => {}
    fn cuCoredumpSetAttribute(setting: sys::CUcoredumpSettings, value: *mut c_void, size: *mut usize)
        format!("({}, {} of {})", setting.0, unsafe { *value.cast::<u8>() }, unsafe { *size }) => {}
    fn cuCoredumpSetAttributeGlobal(setting: sys::CUcoredumpSettings, value: *mut c_void, size: *mut usize)
        format!("({}, {} of {})", setting.0, unsafe { *value.cast::<u8>() }, unsafe { *size }) => {}
    fn cuCoredumpGetAttributeGlobal(setting: sys::CUcoredumpSettings, value: *mut c_void, size: *mut usize)
        format!("({}, {})", setting.0, !value.is_null()) => {
        unsafe {
            if !value.is_null() {
                ptr::copy_nonoverlapping(c"core".as_ptr(), value.cast(), 5);
            }
            give(size, 5);
        }
    }
    fn cuCoredumpRegisterStartCallback(
        callback: sys::CUcoredumpStatusCallback, data: *mut c_void, out: *mut sys::CUcoredumpCallbackHandle
    ) no_detail() => {
        unsafe { callback.unwrap()(data, 77, 3) };
        unsafe { give(out, ptr::without_provenance_mut(handle())) }
    }
    fn cuIpcOpenMemHandle_v2(address: *mut sys::CUdeviceptr, _handle: sys::CUipcMemHandle, flags: c_uint)
        format!("({flags})") => { unsafe { give(address, handle() as sys::CUdeviceptr) } }
    fn cuIpcCloseMemHandle(_address: sys::CUdeviceptr) no_detail() => {}
    fn cuMemGetAddressRange_v2(base: *mut sys::CUdeviceptr, size: *mut usize, address: sys::CUdeviceptr)
        no_detail() => {
        unsafe { give(base, address) };
        unsafe { give(size, 16) }
    }
    fn cuCoredumpDeregisterStartCallback(_callback: sys::CUcoredumpCallbackHandle) no_detail() => {}
    fn cuLogsRegisterCallback(callback: sys::CUlogsCallback, data: *mut c_void, out: *mut sys::CUlogsCallbackHandle)
        no_detail() => {
        let raw = handle();
        LOG_CALLBACKS.lock().unwrap().push((raw, (callback.unwrap(), data.addr())));
        unsafe { give(out, ptr::without_provenance_mut(raw)) }
    }
    fn cuLogsUnregisterCallback(callback: sys::CUlogsCallbackHandle) no_detail() => {
        LOG_CALLBACKS.lock().unwrap().retain(|(raw, _)| *raw != callback.addr());
    }
    fn cuLogsCurrent(position: *mut sys::CUlogIterator, flags: c_uint) format!("({flags})") => {
        unsafe { give(position, 5) }
    }
    fn cuLogsDumpToMemory(position: *mut sys::CUlogIterator, buffer: *mut c_char, size: *mut usize, flags: c_uint)
        format!("({}, {flags})", unsafe { *position }) => {
        unsafe {
            assert!(*size >= 25600);
            ptr::copy_nonoverlapping(c"[E] a message\n".as_ptr(), buffer, 15);
            give(size, 14);
            give(position, 6);
        }
    }
    fn cuLaunchHostFunc(_stream: sys::CUstream, function: sys::CUhostFn, data: *mut c_void) host_func(function, data) => {
        unsafe { function.unwrap()(data) }
    }
}

/// Stores the arguments of `cuLaunchHostFunc` for [`call_host_func`], even if the call fails.
fn host_func(function: sys::CUhostFn, data: *mut c_void) -> String {
    HOST_FUNC.set((function, data.addr()));
    no_detail()
}

/// Calls the last host function, as a graph does repeatedly, and a stream does after an error from earlier work.
pub(super) fn call_host_func() {
    let (function, data) = HOST_FUNC.get();
    // SAFETY: the function and its argument were passed to `cuLaunchHostFunc`.
    unsafe { function.unwrap()(ptr::without_provenance_mut(data)) }
}

/// Writes a message to each of the two logs, and returns the image as text.
unsafe fn image_and_log(
    image: *const c_void,
    count: c_uint,
    options: *mut sys::CUjit_option,
    values: *mut *mut c_void,
) -> String {
    for index in 0..count as usize {
        // SAFETY: there are `count` options and values.
        let (option, value) = unsafe { (options.add(index).read(), values.add(index).read()) };
        if option == sys::CUjit_option::CU_JIT_INFO_LOG_BUFFER {
            let text = b"4 registers\n\0";
            // SAFETY: the buffer is larger than the text.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), value.cast(), text.len()) };
        }
        if option == sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER {
            let text = b"line 1; error : nonsense\n\0";
            // SAFETY: the buffer is larger than the text.
            unsafe { ptr::copy_nonoverlapping(text.as_ptr(), value.cast(), text.len()) };
        }
    }
    // SAFETY: the tests load text.
    unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy().into_owned()
}

/// Returns a description of a launch's first argument, which is read as a `u32`.
unsafe fn first_argument(params: *mut *mut c_void, extra: *mut *mut c_void) -> String {
    if !params.is_null() {
        // SAFETY: the first argument of each launch in the tests has at least 4 bytes.
        return format!("params {}", unsafe { params.read().cast::<u32>().read() });
    }
    if extra.is_null() {
        return "none".to_owned();
    }
    // SAFETY: the list has five entries.
    let list: [*mut c_void; 5] = unsafe { extra.cast::<[*mut c_void; 5]>().read() };
    assert_eq!(list[0], sys::CU_LAUNCH_PARAM_BUFFER_POINTER);
    assert_eq!(list[2], sys::CU_LAUNCH_PARAM_BUFFER_SIZE);
    assert_eq!(list[4], sys::CU_LAUNCH_PARAM_END);
    // SAFETY: the first argument in the buffer has at least 4 bytes; the size is a `usize`.
    unsafe {
        format!(
            "extra {} of {} bytes",
            list[1].cast::<u32>().read(),
            list[3].cast::<usize>().read()
        )
    }
}
