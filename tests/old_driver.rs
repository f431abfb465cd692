//! A program over a driver that is made to look as one of CUDA 11.7: everything that is newer is hidden, and what is built on
//! plain names works all the same. That driver is the process's default library, so this is a program of its own.

#![allow(clippy::incompatible_msrv)] // tests need the software driver, and with it a newer compiler

mod common;

use std::sync::OnceLock;

use cuda_driver::sys::library::hooks::DriverVersion;
use cuda_driver::sys::library::{Options, Source, set_default_with};
use cuda_driver::sys::{Function, Library};
use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream, checked};

/// Makes the driver under test the default, older than it is; the driver as it is.
fn install() -> &'static Library {
    static DRIVER: OnceLock<&'static Library> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)
            .unwrap_or_else(|error| panic!("the driver under test cannot be used: {error}"));
        let old = Options::new().hook(DriverVersion::claim(11070));
        set_default_with(Source::library(selection.library()), old).expect("nobody was first");
        cuda_driver::init().expect("cuInit");
        selection.library()
    })
}

#[test]
fn kernels_run() {
    install();
    assert_eq!(
        cuda_driver::version().expect("a version").to_string(),
        "11.7"
    );
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
    unsafe { saxpy.launch(&stream, config, (10.0_f32, x.ptr(), y.ptr(), 4_u64)) }
        .expect("a launch");
    stream.synchronize().expect("no fault");
    assert_eq!(y.to_vec().expect("a copy"), [10.5, 20.5, 30.5, 40.5]);
}

#[test]
fn functions_are_found_by_the_first_cu_get_proc_address() {
    let driver = install();
    let ask = |name, version| {
        // SAFETY: what is found is not called.
        let found = unsafe { checked::get_proc_address(name, version, 0) }.expect("an answer");
        (found.pfn.cast_const(), found.symbol_status.0)
    };
    let own = |function| {
        let pointer = driver.get(function).expect("the driver has it");
        pointer.as_ptr().cast_const()
    };
    let nothing = std::ptr::null();
    assert_eq!(ask(c"cuMemAlloc", 11070), (own(Function::cuMemAlloc_v2), 0));
    assert_eq!(
        ask(c"cuCtxCreate", 12050),
        (own(Function::cuCtxCreate_v3), 0)
    );
    assert_eq!(ask(c"cuInit", 1000), (nothing, 2));
    assert_eq!(ask(c"cuTensorMapEncodeTiled", 12000), (nothing, 1));
    assert_eq!(ask(c"cuNoSuchThing", 11070), (nothing, 1));
}

#[test]
fn what_is_missing_says_what_it_needs() {
    install();
    // SAFETY: the driver lacks it, so nothing is called.
    let error = unsafe { checked::ctx_create_v4(None, 0, 0) }.expect_err("of CUDA 12.5");
    assert!(error.is_missing_function());
    let words = "cuCtxCreate_v4 failed: needs CUDA 12.5, this driver supports 11.7 (";
    assert!(error.to_string().starts_with(words), "{error}");
}
