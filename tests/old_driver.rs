//! Tests on a driver that is made to look like CUDA 11.7: newer exports are hidden, and calls by plain names still
//! work.
//!
//! That driver is the process's default library, so these tests are a program of their own.

#![allow(clippy::incompatible_msrv)] // the software driver, which tests use, needs a newer compiler

mod common;

use std::ffi::c_void;
use std::sync::OnceLock;

use cuda_driver::sys::library::{Options, Source, set_default_with};
use cuda_driver::sys::{
    CUDA_KERNEL_NODE_PARAMS as NodeParams, CUfunction, CUgraphExecUpdateResultInfo, Function, Library,
};
use cuda_driver::{Context, Device, DeviceBuffer, JitOptions, LaunchConfig, Linker, Module, Stream, checked};
use cuda_driver_hooks::DriverVersion;

/// Makes the driver under test, with newer exports hidden, the default. Returns the driver with all of its exports.
fn install() -> &'static Library {
    static DRIVER: OnceLock<&'static Library> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)
            .unwrap_or_else(|error| panic!("the driver under test cannot be used: {error}"));
        let old = Options::new().hook(DriverVersion::claim(11070));
        set_default_with(Source::library(selection.library()), old).expect("no default library yet");
        cuda_driver::init().expect("cuInit");
        selection.library()
    })
}

#[test]
fn kernels_run() {
    install();
    assert_eq!(cuda_driver::version().expect("a version").to_string(), "11.7");
    let context = Context::create(Device::first().expect("a device")).expect("a context");
    let ptx = std::fs::read_to_string(common::ptx_path("saxpy.ptx")).expect("the kernel's PTX");
    let module = Module::from_ptx(&context, &ptx).expect("PTX 7.7");
    let saxpy = module.function("saxpy").expect("it is in the module");
    let stream = Stream::new(&context).expect("a stream");
    let x = DeviceBuffer::from_slice(&context, &[1.0_f32, 2.0, 3.0, 4.0]).expect("memory");
    let y = DeviceBuffer::from_slice(&context, &[0.5_f32; 4]).expect("memory");
    let config = LaunchConfig {
        grid: 1.into(),
        block: 32.into(),
        ..Default::default()
    };
    // SAFETY: these are the parameters of `saxpy(float a, const float* x, float* y, size_t n)`.
    unsafe { saxpy.launch(&stream, config, (10.0_f32, x.ptr(), y.ptr(), 4_u64)) }.expect("a launch");
    stream.synchronize().expect("no fault");
    assert_eq!(y.to_vec().expect("a copy"), [10.5, 20.5, 30.5, 40.5]);
}

#[test]
fn options_and_objects_of_newer_drivers_are_refused() {
    install();
    let context = Context::create(Device::first().expect("a device")).expect("a context");
    let ptx = ".version 7.0\n.target sm_52\n.address_size 64\n";
    let options = JitOptions {
        override_directives: true,
        ..JitOptions::default()
    };
    let reason = "`JitOptions::override_directives` needs CUDA 12.4, this driver supports 11.7";
    let error = Module::from_ptx_with(&context, ptx, &options).expect_err("a newer option");
    assert_eq!(error.error().code().0, 801);
    assert!(error.to_string().contains(reason), "{error}");
    let error = Linker::new(&context, &options).expect_err("a newer option");
    assert!(error.to_string().contains(reason), "{error}");
    let linker = Linker::new(&context, &JitOptions::default()).expect("a linker");
    let error = linker.add_ptx_with("a.ptx", ptx, &options).expect_err("a newer option");
    assert!(error.to_string().contains(reason), "{error}");
    let error = cuda_driver::Library::from_ptx(ptx).expect_err("libraries are of CUDA 12.0");
    assert!(error.error().is_missing_function(), "{error}");
    let module = Module::from_ptx(&context, ptx).expect("a module");
    assert!(module.functions().expect_err("of CUDA 12.4").is_missing_function());
}

#[test]
fn the_first_cu_get_proc_address_finds_functions() {
    let driver = install();
    let ask = |name, version| {
        // SAFETY: the function found is not called.
        let found = unsafe { checked::get_proc_address(name, version, 0) }.expect("an answer");
        (found.pfn.cast_const(), found.symbol_status.0)
    };
    let own = |function| {
        let pointer = driver.get(function).expect("the driver has it");
        pointer.as_ptr().cast_const()
    };
    let nothing = std::ptr::null();
    assert_eq!(ask(c"cuMemAlloc", 11070), (own(Function::cuMemAlloc_v2), 0));
    assert_eq!(ask(c"cuCtxCreate", 12050), (own(Function::cuCtxCreate_v3), 0));
    assert_eq!(ask(c"cuInit", 1000), (nothing, 2));
    assert_eq!(ask(c"cuTensorMapEncodeTiled", 12000), (nothing, 1));
    assert_eq!(ask(c"cuNoSuchThing", 11070), (nothing, 1));
}

#[test]
fn a_missing_function_names_the_version_it_needs() {
    install();
    // SAFETY: the driver lacks the function, so nothing is called.
    let error = unsafe { checked::ctx_create_v4(None, 0, 0) }.expect_err("of CUDA 12.5");
    assert!(error.is_missing_function());
    let message = "cuCtxCreate_v4 failed: needs CUDA 12.5, this driver supports 11.7 (";
    assert!(error.to_string().starts_with(message), "{error}");
}

/// The arguments of `saxpy(float a, const float* x, float* y, size_t n)`, at addresses from which a graph can copy
/// them.
struct Arguments {
    a: f32,
    x: u64,
    y: u64,
    n: u64,
}

impl Arguments {
    /// Returns the parameters of a node that launches `saxpy`; they point to `self` and to `places`.
    fn node(&mut self, function: CUfunction, places: &mut [*mut c_void; 4]) -> NodeParams {
        *places = [
            (&raw mut self.a).cast(),
            (&raw mut self.x).cast(),
            (&raw mut self.y).cast(),
            (&raw mut self.n).cast(),
        ];
        NodeParams {
            func: function,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: places.as_mut_ptr(),
            ..NodeParams::default()
        }
    }
}

/// Returns a node's function, grid and block dimensions, and first argument (the factor `a` of `saxpy`).
fn summary(params: &NodeParams) -> (CUfunction, [u32; 6], f32) {
    let dimensions = [
        params.gridDimX,
        params.gridDimY,
        params.gridDimZ,
        params.blockDimX,
        params.blockDimY,
        params.blockDimZ,
    ];
    // SAFETY: the driver returns pointers to the node's own arguments; the first is a float.
    let a = unsafe { (*params.kernelParams).cast::<f32>().read() };
    (params.func, dimensions, a)
}

/// Graphs built with the older exports look the same to the newer exports, and run.
#[test]
fn graphs_built_with_the_older_exports() {
    let driver = install();
    let context = Context::create(Device::first().expect("a device")).expect("a context");
    // SAFETY: the call takes only flags.
    let graph = unsafe { checked::graph_create(0) }.expect("a graph");
    assert!(!has_newer(), "the newer exports are hidden");
    // NVIDIA's driver crashes if a kernel node is added and no context is current.
    let _current = context.push().expect("a push");
    let ptx = std::fs::read_to_string(common::ptx_path("saxpy.ptx")).expect("the kernel's PTX");
    let module = Module::from_ptx(&context, &ptx).expect("PTX 7.7");
    let saxpy = module.function("saxpy").expect("it is in the module");
    let stream = Stream::new(&context).expect("a stream");
    let x = DeviceBuffer::from_slice(&context, &[1.0_f32, 2.0, 3.0, 4.0]).expect("memory");
    let y = DeviceBuffer::from_slice(&context, &[0.5_f32; 4]).expect("memory");
    let mut arguments = Arguments {
        a: 10.0,
        x: x.ptr().as_raw(),
        y: y.ptr().as_raw(),
        n: 4,
    };
    let mut places = [std::ptr::null_mut(); 4];
    let with = |arguments: &mut Arguments, places: &mut [*mut c_void; 4], a| {
        arguments.a = a;
        arguments.node(saxpy.as_raw(), places)
    };
    // SAFETY: in this block every handle is live, and the parameters are those of `saxpy`.
    unsafe {
        let run = |exec| {
            checked::graph_launch(exec, stream.as_raw()).expect("a launch");
            stream.synchronize().expect("no fault");
            y.to_vec().expect("a copy")
        };
        let newer = |node| {
            let mut params = NodeParams::default();
            let code = driver.cuGraphKernelNodeGetParams(node, &raw mut params);
            assert_eq!(code.0, 0);
            // The parameters read can be set again, with their `kern` and `ctx`.
            assert_eq!(driver.cuGraphKernelNodeSetParams(node, &raw const params).0, 0);
            summary(&params)
        };
        let params = with(&mut arguments, &mut places, 10.0);
        let node = checked::graph_add_kernel_node(graph, &[], &params).expect("a node");
        let got = checked::graph_kernel_node_get_params(node).expect("its parameters");
        assert_eq!(summary(&got), (saxpy.as_raw(), [1, 1, 1, 32, 1, 1], 10.0));
        assert!(got.kern.is_null() && got.ctx.is_null());
        assert_eq!(newer(node), summary(&got));
        let exec = checked::graph_instantiate_with_flags(graph, 0).expect("an executable graph");
        assert_eq!(run(exec), [10.5, 20.5, 30.5, 40.5]);

        // Changed in the graph; an update applies the change to the executable graph.
        let params = with(&mut arguments, &mut places, -10.0);
        checked::graph_kernel_node_set_params(node, &params).expect("a change");
        assert_eq!(newer(node).2, -10.0);
        let mut info = CUgraphExecUpdateResultInfo::default();
        checked::graph_exec_update(exec, graph, &mut info).expect("an update");
        assert_eq!(info.result.0, 0);
        assert_eq!(run(exec), [0.5; 4]);

        // Changed in the executable graph only.
        let params = with(&mut arguments, &mut places, 1.0);
        checked::graph_exec_kernel_node_set_params(exec, node, &params).expect("a change");
        assert_eq!(run(exec), [1.5, 2.5, 3.5, 4.5]);
        assert_eq!(newer(node).2, -10.0);

        // An update that must fail: the graph has another node.
        let second = checked::graph_add_kernel_node(graph, &[node], &params).expect("another node");
        let error = checked::graph_exec_update(exec, graph, &mut info).expect_err("another shape");
        let mut truth = CUgraphExecUpdateResultInfo::default();
        let code = driver.cuGraphExecUpdate(exec, graph, &raw mut truth);
        assert_eq!(error.code(), code);
        // Both report a reason more specific than `CU_GRAPH_EXEC_UPDATE_ERROR`, and one of the nodes or none. The
        // reasons may differ, because the older export has fewer.
        for report in [&info, &truth] {
            assert!(report.result.0 > 1, "{:?}", report.result);
            assert!([std::ptr::null_mut(), node, second].contains(&report.errorNode));
        }
        checked::graph_exec_destroy(exec).expect("destroyed");
        checked::graph_destroy(graph).expect("destroyed");
    }
}

/// Returns true if the default library has the exports of CUDA 12.0.
fn has_newer() -> bool {
    cuda_driver::sys::DEFAULT.supports(Function::cuGraphAddKernelNode_v2)
}
