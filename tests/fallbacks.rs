//! Tests of calls whose exports CUDA 12.0 replaced, on a fake driver of CUDA 11.7 that has only the older exports.
//!
//! The interposer that hides them belongs to the process's default library, so these tests are a program of their own.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::sync::Once;

use cuda_driver::checked;
use cuda_driver::sys::library::{Interposer, Options, Source, set_default_with};
use cuda_driver::sys::*;

/// Hides every export newer than CUDA 11.7.
struct Old;

impl Interposer for Old {
    fn hides(&self, function: Function) -> bool {
        function.since() > 11070
    }
}

thread_local! {
    /// The parameters that the older functions received last on this thread.
    static SEEN: Cell<Option<CUDA_KERNEL_NODE_PARAMS_v1>> = const { Cell::new(None) };
}

unsafe extern "system" fn init(_: u32) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn version(version: *mut c_int) -> CUresult {
    // SAFETY: upheld by the caller.
    unsafe { version.write(11070) };
    CUresult::CUDA_SUCCESS
}

/// Returns an error code for an unknown name and writes nothing, as real drivers do; the name `fails` has another code.
unsafe extern "system" fn get_proc_address(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
) -> CUresult {
    assert_eq!(flags, 2);
    // SAFETY: upheld by the caller.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    let found = match symbol.to_bytes() {
        b"cuInit" if version >= 2000 => init as *mut c_void,
        b"fails" => return CUresult::CUDA_ERROR_INVALID_VALUE,
        _ => return CUresult::CUDA_ERROR_NOT_FOUND,
    };
    // SAFETY: upheld by the caller.
    unsafe { pfn.write(found) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn add_kernel_node(
    node: *mut CUgraphNode,
    _: CUgraph,
    _: *const CUgraphNode,
    count: usize,
    params: *const CUDA_KERNEL_NODE_PARAMS_v1,
) -> CUresult {
    // SAFETY: upheld by the caller.
    SEEN.set(Some(unsafe { params.read() }));
    // SAFETY: upheld by the caller.
    unsafe { node.write(ptr::without_provenance_mut(0x100 + count)) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn node_get_params(_: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v1) -> CUresult {
    // SAFETY: upheld by the caller.
    unsafe { params.write(SEEN.get().unwrap()) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn node_set_params(_: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v1) -> CUresult {
    // SAFETY: upheld by the caller.
    SEEN.set(Some(unsafe { params.read() }));
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn exec_set_params(
    _: CUgraphExec,
    node: CUgraphNode,
    params: *const CUDA_KERNEL_NODE_PARAMS_v1,
) -> CUresult {
    // SAFETY: upheld by the caller.
    unsafe { node_set_params(node, params) }
}

unsafe extern "system" fn exec_update(
    _: CUgraphExec,
    graph: CUgraph,
    node: *mut CUgraphNode,
    result: *mut CUgraphExecUpdateResult,
) -> CUresult {
    // SAFETY: upheld by the caller.
    unsafe { node.write(ptr::without_provenance_mut(0x77)) };
    // SAFETY: upheld by the caller.
    unsafe { result.write(CUgraphExecUpdateResult(3)) };
    if graph.is_null() {
        CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    } else {
        CUresult::CUDA_SUCCESS
    }
}

fn resolve(name: &CStr) -> *const c_void {
    match name.to_bytes() {
        b"cuInit" => init as *const c_void,
        b"cuDriverGetVersion" => version as *const c_void,
        b"cuGetProcAddress" => get_proc_address as *const c_void,
        b"cuGraphAddKernelNode" => add_kernel_node as *const c_void,
        b"cuGraphKernelNodeGetParams" => node_get_params as *const c_void,
        b"cuGraphKernelNodeSetParams" => node_set_params as *const c_void,
        b"cuGraphExecKernelNodeSetParams" => exec_set_params as *const c_void,
        b"cuGraphExecUpdate" => exec_update as *const c_void,
        // If another export were called, the code of this function would show that.
        _ => hidden as *const c_void,
    }
}

extern "system" fn hidden() -> CUresult {
    CUresult(54_321)
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: each name above resolves to a function of its type, and the tests call no other visible export.
        let source = unsafe { Source::resolver("a driver of CUDA 11.7", resolve) };
        // SAFETY: the interposer forwards every call that it does not hide and returns the driver's result.
        let options = unsafe { Options::new().interposer(Old) };
        set_default_with(source, options).expect("no default library yet");
    });
}

fn params() -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: ptr::without_provenance_mut(0x10),
        gridDimX: 1,
        gridDimY: 2,
        gridDimZ: 3,
        blockDimX: 4,
        blockDimY: 5,
        blockDimZ: 6,
        sharedMemBytes: 7,
        kernelParams: ptr::without_provenance_mut(0x20),
        extra: ptr::without_provenance_mut(0x30),
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    }
}

#[test]
fn proc_addresses_have_a_status() {
    install();
    let ask = |symbol, version| {
        // SAFETY: the fake reads only the name.
        let found = unsafe { checked::get_proc_address(symbol, version, 2) }.unwrap();
        (!found.pfn.is_null(), found.symbol_status.0)
    };
    assert_eq!(ask(c"cuInit", 11070), (true, 0));
    assert_eq!(ask(c"cuInit", 1000), (false, 2));
    // The driver does not know this name of CUDA 12.1.
    assert_eq!(ask(c"cuMulticastCreate", 11070), (false, 1));
    assert_eq!(ask(c"cuNoSuchThing", 11070), (false, 1));
    // SAFETY: the fake reads only the name.
    let error = unsafe { checked::get_proc_address(c"fails", 11070, 2) }.unwrap_err();
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(error.location().line(), line!() - 2);
}

#[test]
fn kernel_nodes_keep_their_parameters() {
    install();
    let (graph, node, exec) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let params = params();
    let back = || {
        // SAFETY: the fake accepts any handle.
        let params = unsafe { checked::graph_kernel_node_get_params(node) };
        format!("{:?}", params.unwrap())
    };
    // SAFETY: the fake accepts any handles, and stores the parameters without following their pointers.
    unsafe {
        let added = checked::graph_add_kernel_node(graph, &[node, node], &params).unwrap();
        assert_eq!(added.addr(), 0x102);
        assert_eq!(back(), format!("{params:?}"));
        let second = CUDA_KERNEL_NODE_PARAMS { gridDimX: 9, ..params };
        checked::graph_kernel_node_set_params(node, &second).unwrap();
        assert_eq!(back(), format!("{second:?}"));
        let third = CUDA_KERNEL_NODE_PARAMS { blockDimZ: 8, ..params };
        checked::graph_exec_kernel_node_set_params(exec, node, &third).unwrap();
        assert_eq!(back(), format!("{third:?}"));
        // Parameters that only the newer form has are refused, not dropped.
        let newer = CUDA_KERNEL_NODE_PARAMS {
            kern: ptr::without_provenance_mut(1),
            ..params
        };
        let error = checked::graph_add_kernel_node(graph, &[], &newer).unwrap_err();
        assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
        assert_eq!(back(), format!("{third:?}"));
    }
}

#[test]
fn failed_updates_report_the_node_and_the_reason() {
    install();
    let mut info = CUgraphExecUpdateResultInfo::default();
    // SAFETY: the fake accepts any handles.
    let error = unsafe { checked::graph_exec_update(ptr::null_mut(), ptr::null_mut(), &mut info) }.unwrap_err();
    assert_eq!(error.code(), CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_eq!(
        (info.result.0, info.errorNode.addr(), info.errorFromNode.addr()),
        (3, 0x77, 0)
    );
    // SAFETY: the fake accepts any handles.
    unsafe { checked::graph_exec_update(ptr::null_mut(), ptr::without_provenance_mut(1), &mut info) }.unwrap();
}

#[test]
fn a_call_without_an_older_form_names_the_version_it_needs() {
    install();
    // SAFETY: the function is hidden, so nothing is called.
    let error = unsafe { checked::ctx_create_v4(None, 0, 0) }.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cuCtxCreate_v4 failed: needs CUDA 12.5, this driver supports 11.7"),
        "{error}"
    );
}
