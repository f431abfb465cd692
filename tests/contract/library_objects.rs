//! Tests of libraries and kernels as objects: in several contexts, per device, and drops in any order.

use cuda_driver::sys::{CUfunc_cache, CUfunction_attribute, CUresult};
use cuda_driver::{
    Context, Device, DeviceBuffer, JitOptions, Kernel, LaunchAttribute, LaunchConfig, Library, Module, ParamBuffer,
    Result, Stream,
};

use crate::common::{context, driver, driver_version, has_version, needs, ptx_path};

const PTX: &str = ".version 7.0
.target sm_52
.address_size 64
.visible .global .align 4 .u32 count = 5;
.visible .global .attribute(.managed) .align 4 .u32 shared = 7;
.visible .entry increment()
{
    .reg .u32 %n;
    ld.global.u32 %n, [count];
    add.u32 %n, %n, 1;
    st.global.u32 [count], %n;
    ret;
}
.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .u32 %n;
    .reg .u64 %d;
    ld.param.u64 %d, [to];
    ld.param.u32 %n, [value];
    st.global.u32 [%d], %n;
    ret;
}
";

const DYNAMIC: CUfunction_attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

/// Loads [`PTX`] as a library. Returns `None` if the driver has no libraries, and reports that.
fn library() -> Option<Library> {
    driver();
    if driver_version() < 12000 {
        needs("a driver of CUDA 12.0 or later, which has libraries");
        return None;
    }
    Some(Library::from_ptx(PTX).expect("a library"))
}

fn increment(kernel: &Kernel, context: &Context) -> Result<()> {
    let stream = Stream::new(context)?;
    // SAFETY: the kernel has no parameters and accesses its variable only.
    unsafe { kernel.launch(&stream, LaunchConfig::default(), ()) }?;
    stream.synchronize()
}

#[test]
fn one_library_in_two_contexts() {
    let Some(library) = library() else { return };
    let kernel = library.kernel("increment").expect("a kernel");
    let contexts = [context(), context()];
    for (runs, context) in contexts.iter().enumerate() {
        for _ in 0..=runs {
            increment(&kernel, context).expect("a launch");
        }
        let count = library.global(context, "count").expect("a variable");
        assert_eq!(count.size_bytes(), 4);
        assert_eq!(count.read::<u32>().expect("a copy"), 6 + runs as u32);
    }
    // The module has the same variable.
    let module = library.module(&contexts[0]).expect("a module");
    let count = module.global("count").expect("a variable");
    assert_eq!(
        count.ptr(),
        library.global(&contexts[0], "count").expect("a variable").ptr()
    );
    count.write(&40_u32).expect("a copy");
    increment(&kernel, &contexts[0]).expect("a launch");
    assert_eq!(count.read::<u32>().expect("a copy"), 41);
    assert!(Context::current_raw().expect("the current context").is_null());
}

#[test]
fn managed_variables_are_shared() {
    let Some(library) = library() else { return };
    let shared = library.managed("shared").expect("a managed variable");
    assert_eq!(shared.size_bytes(), 4);
    let context = context();
    let _current = context.push().expect("a push");
    assert_eq!(shared.read::<u32>().expect("a copy"), 7);
    shared.write(&8_u32).expect("a copy");
    let here = library.global(&context, "shared").expect("a variable");
    assert_eq!(here.ptr(), shared.ptr());
    assert_eq!(here.read::<u32>().expect("a copy"), 8);
    let not_managed = library.managed("count").map(drop).map_err(|e| e.code());
    assert_eq!(not_managed, Err(CUresult::CUDA_ERROR_NOT_FOUND));
}

#[test]
fn kernels_and_their_parameters() {
    let Some(library) = library() else { return };
    let context = context();
    let store = library.kernel("store").expect("a kernel");
    for name in ["nothing", "", "a\0b"] {
        let code = library.kernel(name).map(drop).map_err(|e| e.code());
        assert_eq!(code, Err(CUresult::CUDA_ERROR_NOT_FOUND), "{name:?}");
        let code = library.global(&context, name).map(drop).map_err(|e| e.code());
        assert!(code.is_err(), "{name:?}");
    }
    if driver_version() < 12040 {
        return needs("a driver of CUDA 12.4 or later, which enumerates kernels");
    }
    assert_eq!(library.kernel_count().expect("a count"), 2);
    let kernels = library.kernels().expect("the kernels");
    let mut names: Vec<String> = kernels.iter().map(|k| k.name().expect("a name")).collect();
    names.sort();
    assert_eq!(names, ["increment", "store"]);
    let param = |index| store.param_info(&context, index);
    let place = |index| param(index).map(|info| info.map(|info| (info.offset, info.size)));
    assert_eq!(place(0), Ok(Some((0, 8))));
    assert_eq!(place(1), Ok(Some((8, 4))));
    assert_eq!(place(2).map_err(|e| e.code()), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    let count = store.param_count();
    if has_version(13020) {
        assert_eq!(count, Ok(2));
    } else {
        assert!(count.expect_err("an old driver").is_missing_function());
    }
    let raw = store.library_raw();
    if has_version(12050) {
        assert_eq!(raw, Ok(library.as_raw()));
    } else {
        assert!(raw.expect_err("an old driver").is_missing_function());
    }
    let out = DeviceBuffer::<u32>::zeroed(&context, 1).expect("memory");
    assert_eq!(store.check_args(&context, &(out.ptr(), 3_u32)), Ok(true));
    assert!(store.check_args(&context, &(out.ptr(), 3_u64)).is_err());
    let stream = Stream::new(&context).expect("a stream");
    if cfg!(debug_assertions) {
        // SAFETY: the launch is refused before the driver is called.
        let refused = unsafe { store.launch(&stream, LaunchConfig::default(), (out.ptr(), 3_u64)) };
        let error = refused.expect_err("a value of 8 bytes");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        let reason = "`store`: argument 1 has 8 bytes, but the kernel's parameter has 4";
        assert!(error.to_string().contains(reason), "{error}");
    }
    // SAFETY: the kernel stores one number at the address.
    unsafe { store.launch(&stream, LaunchConfig::default(), (out.ptr(), 3_u32)) }.expect("a launch");
    stream.synchronize().expect("no fault");
    assert_eq!(out.to_vec().expect("a copy"), [3]);
}

#[test]
fn launches_of_every_kind() {
    let Some(library) = library() else { return };
    let context = context();
    let store = library.kernel("store").expect("a kernel");
    let stream = Stream::new(&context).expect("a stream");
    let out = DeviceBuffer::<u32>::zeroed(&context, 1).expect("memory");
    let config = LaunchConfig::default();
    let result = || {
        stream.synchronize().expect("no fault");
        out.to_vec().expect("a copy")
    };
    // SAFETY: the kernel stores one number at the address.
    unsafe { store.launch_cooperative(&stream, config, (out.ptr(), 4_u32)) }.expect("a launch");
    assert_eq!(result(), [4]);
    let attributes = [LaunchAttribute::cooperative(), LaunchAttribute::priority(-1)];
    // SAFETY: as above.
    unsafe { store.launch_with(&stream, config, &attributes, (out.ptr(), 5_u32)) }.expect("a launch");
    assert_eq!(result(), [5]);
    let mut packed = ParamBuffer::new();
    packed.push(out.ptr()).push(6_u32);
    // SAFETY: as above.
    unsafe { store.launch_with(&stream, config, &[], &packed) }.expect("a launch");
    assert_eq!(result(), [6]);

    // `cuLaunchCooperativeKernel` has no parameter for packed arguments.
    // SAFETY: the launch is refused.
    let refused = unsafe { store.launch_cooperative(&stream, config, &packed) };
    assert_eq!(refused.map_err(|e| e.code()), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    let too_many = LaunchConfig {
        grid: 1_000_000.into(),
        block: 256.into(),
        ..config
    };
    // SAFETY: the launches are refused; the arguments would fit.
    let refused = unsafe {
        [
            store.launch_cooperative(&stream, too_many, (out.ptr(), 7_u32)),
            store.launch_with(&stream, too_many, &attributes, (out.ptr(), 7_u32)),
        ]
    };
    for result in refused {
        assert_eq!(
            result.map_err(|e| e.code()),
            Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
        );
    }
    if cfg!(debug_assertions) && has_version(12040) {
        // SAFETY: the launches are refused before the driver is called.
        let refused = unsafe {
            [
                store.launch_cooperative(&stream, config, (out.ptr(),)),
                store.launch_with(&stream, config, &attributes, (out.ptr(),)),
            ]
        };
        for result in refused {
            let error = result.expect_err("an argument is missing");
            assert!(error.to_string().contains("`store`: "), "{error}");
        }
    }
    assert_eq!(result(), [6]);
}

#[test]
fn attributes_belong_to_a_kernel_and_a_device() {
    let Some(library) = library() else { return };
    let device = Device::first().expect("a device");
    let kernel = library.kernel("increment").expect("a kernel");
    // No context is needed.
    kernel.set_attribute(DYNAMIC, 60_000, device).expect("an attribute");
    assert_eq!(kernel.attribute(DYNAMIC, device).expect("an attribute"), 60_000);
    kernel
        .set_cache_config(CUfunc_cache::CU_FUNC_CACHE_PREFER_L1, device)
        .expect("a preference");
    let no_such_device = Device::from_raw(77);
    for (code, result) in [
        (
            CUresult::CUDA_ERROR_INVALID_VALUE,
            kernel.set_attribute(DYNAMIC, -1, device),
        ),
        (
            CUresult::CUDA_ERROR_INVALID_VALUE,
            kernel.set_attribute(CUfunction_attribute(u32::MAX), 1, device),
        ),
        (
            CUresult::CUDA_ERROR_INVALID_DEVICE,
            kernel.set_attribute(DYNAMIC, 1, no_such_device),
        ),
        (
            CUresult::CUDA_ERROR_INVALID_DEVICE,
            kernel.attribute(DYNAMIC, no_such_device).map(drop),
        ),
    ] {
        assert_eq!(result.map_err(|e| e.code()), Err(code));
    }
    let context = context();
    let function = kernel.function(&context).expect("a function");
    assert_eq!(function.attribute(DYNAMIC).expect("an attribute"), 60_000);
    assert!(function.max_active_blocks_per_multiprocessor(32, 0).expect("a number") >= 1);
}

#[test]
fn compiler_errors_are_returned_at_once() {
    driver();
    if driver_version() < 12000 {
        return needs("a driver of CUDA 12.0 or later, which has libraries");
    }
    let bad = PTX.replace("add.u32", "frobnicate");
    let error = Library::from_ptx(&bad).expect_err("an unknown instruction");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(error.to_string().contains("frobnicate"), "{error}");
    let error = Library::from_ptx("junk").expect_err("text that is not PTX");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_IMAGE);
    let error = Library::load_ptx("/no/such/file").expect_err("no file");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_FILE_NOT_FOUND);
    assert!(error.to_string().contains("/no/such/file"), "{error}");
    // SAFETY: the image is refused before the driver is called.
    let error = unsafe { Library::from_image(b"\x7fELF") }.expect_err("a truncated image");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_IMAGE);
}

#[test]
fn files_and_options() {
    driver();
    if driver_version() < 12000 {
        return needs("a driver of CUDA 12.0 or later, which has libraries");
    }
    let options = JitOptions {
        optimization_level: Some(2),
        verbose: true,
        ..JitOptions::default()
    };
    let path = ptx_path("saxpy.ptx");
    let text = std::fs::read(&path).expect("PTX");
    // SAFETY: the images are PTX.
    let libraries = unsafe {
        [
            Library::load_ptx(&path),
            Library::load(&path, &options),
            Library::from_image_with(&text, &options),
            Library::from_ptx_with(PTX, &options),
            Library::from_static_image(PTX.as_bytes(), &options),
        ]
    };
    for (library, kernel) in libraries.into_iter().zip(["saxpy", "saxpy", "saxpy", "store", "store"]) {
        let library = library.expect("a library");
        assert!(library.compile_ms() >= 0.0);
        let _ = library.info_log();
        library.kernel(kernel).expect("a kernel");
        library.unload().expect("an unload");
    }
}

#[test]
fn drops_in_any_order() {
    let Some(library) = library() else { return };
    let context = context();
    let kernel = library.kernel("increment").expect("a kernel");
    let function = kernel.function(&context).expect("a function");
    let module = library.module(&context).expect("a module");
    let count = library.global(&context, "count").expect("a variable");
    // Not the last reference, so the library stays loaded.
    library.unload().expect("an unload");
    increment(&kernel, &context).expect("a launch");
    drop(kernel);
    module.unload().expect("the library owns the module");
    {
        let stream = Stream::new(&context).expect("a stream");
        // SAFETY: as in `increment`.
        unsafe { function.launch(&stream, LaunchConfig::default(), ()) }.expect("a launch");
        stream.synchronize().expect("no fault");
    }
    drop(context);
    let thread = std::thread::spawn(move || {
        drop(function);
        count.read::<u32>().expect("a copy")
    });
    assert_eq!(thread.join().expect("a thread"), 7);
}

#[test]
fn handles_are_released_and_taken() {
    let Some(library) = library() else { return };
    let raw = library.into_raw();
    // SAFETY: the handle is live, and unloaded below.
    unsafe {
        let borrowed = Library::borrow_raw(raw);
        let kernel = borrowed.kernel("increment").expect("a kernel");
        let foreign = Kernel::borrow_raw(kernel.as_raw());
        assert!(foreign.library().is_none());
        let context = context();
        increment(&foreign, &context).expect("a launch");
        let function = foreign.function(&context).expect("a function");
        assert!(function.module().is_none());
        drop((kernel, borrowed));
        let owned = Library::from_raw(raw);
        assert_eq!(owned.as_raw(), raw);
        let module = Module::borrow_raw(owned.module(&context).expect("a module").as_raw());
        module.function("increment").expect("a kernel");
        owned.unload().expect("an unload");
    }
}
