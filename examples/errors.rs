//! Prints errors of several kinds. Errors of calls name the call, the reason and the caller's line.

use cuda_driver::sys::CUresult;
use cuda_driver::{Context, Device, DeviceBuffer, Error, LaunchConfig, Module, Stream, sys};
use cuda_driver_soft::Prefer;

/// `trap()` faults; `fill(float* values, unsigned n)` is never run.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry trap() { trap; }
.visible .entry fill(.param .u64 values, .param .u32 n) { ret; }
";

/// Prints an error and checks its code.
fn show(kind: &str, error: Error, code: CUresult) {
    println!("{kind}: {error}");
    assert_eq!(error.code(), code);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A library that cannot be loaded: the error lists every attempt.
    // SAFETY: there is no such file.
    let missing = unsafe { sys::library::Source::path("/no/such/libcuda.so.1") };
    let error = sys::Library::new(missing, sys::library::Options::new()).expect_err("there is no such file");
    println!("No driver: {error}");

    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    let error = Device::count().expect_err("the driver is not initialised");
    show("Before init", error, CUresult::CUDA_ERROR_NOT_INITIALIZED);
    cuda_driver::init()?;
    let error = Device::get(1000).expect_err("there are fewer devices");
    show("No device", error, CUresult::CUDA_ERROR_INVALID_DEVICE);

    let context = Context::create(Device::first()?)?;
    let error = DeviceBuffer::<u8>::alloc(&context, 1 << 50).expect_err("the device has less memory");
    show("No memory", error, CUresult::CUDA_ERROR_OUT_OF_MEMORY);

    // The compiler's messages are in the error, and survive `?`.
    let syntax = PTX.replace("trap;", "tarp;");
    let error = Module::from_ptx(&context, &syntax).expect_err("there is no such instruction");
    println!("Compiler: {error}");
    let module = Module::from_ptx(&context, PTX)?;
    let error = module.function("fil").expect_err("there is no such kernel");
    show("No kernel", error, CUresult::CUDA_ERROR_NOT_FOUND);

    // A mistake that this crate finds before it calls the driver.
    let mut buffer = DeviceBuffer::<f32>::zeroed(&context, 4)?;
    let error = buffer.copy_from(&[0.0; 5]).expect_err("too many values");
    show("Range", error, CUresult::CUDA_ERROR_INVALID_VALUE);
    let fill = module.function("fill")?;
    // The count must be a `u32`: the crate compares arguments with the parameters that the driver reports.
    match fill.check_args(&(buffer.ptr(), 4u64)) {
        Err(error) => println!("Arguments: {error}"),
        Ok(_) => println!("Arguments: not compared, because the driver is too old to report the parameters"),
    }

    // The error of a function that the driver does not export names the CUDA version that added the function.
    // SAFETY: the function is live.
    let result = unsafe { cuda_driver::checked::func_get_param_count(fill.as_raw()) };
    match result {
        Err(error) if error.is_missing_function() => println!("Missing: {error}"),
        _ => println!("Missing: this driver has cuFuncGetParamCount"),
    }

    // A kernel's fault is returned by a later call, and is sticky: every later call that uses a context returns it,
    // too.
    let stream = Stream::new(&context)?;
    // SAFETY: the kernel has no parameters. The context is not used for other work.
    unsafe { module.function("trap")?.launch(&stream, LaunchConfig::default(), ())? };
    let error = stream.synchronize().expect_err("the kernel traps");
    show("Fault", error, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert!(error.is_fault());
    let error = DeviceBuffer::<u8>::alloc(&context, 1).expect_err("the fault is sticky");
    show("Afterwards", error, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    println!("Result = PASS");
    Ok(())
}
