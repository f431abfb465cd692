//! Tests of bad input: each mistake must return an `Err`, mostly with the call and the reason, without a panic or an
//! abort. Only a panic of the program's own host function is resumed.
//!
//! Tests that choose another default library, or that need a process without `cuInit`, run in a process of their own.
//! The others share a process and use the driver under test.

#![allow(clippy::incompatible_msrv)] // the software driver, which tests use, needs a newer compiler

mod common;

use std::error::Error;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use cuda_driver::sys::library::Source;
use cuda_driver::sys::{CUresult, set_default};
use cuda_driver::{Context, Device, Dim3, LaunchConfig, Module, Stream};

use common::{Codes, driver, ptx_path, select_driver};

/// Returns the message of a call that must fail.
fn error<T, E: Error>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error.to_string(),
    }
}

/// Fails unless the text contains every part.
fn assert_contains(text: &str, parts: &[&str]) {
    let mut c = Codes::new();
    for part in parts {
        c.that(text.contains(part), || format!("no `{part}` in: {text}"));
    }
}

/// Makes the library at a path the process's default.
fn default_path(path: &Path) {
    // SAFETY: the tests name a missing file, a file that is not a library, or the C library.
    let source = unsafe { Source::path(path) };
    assert!(set_default(source).is_ok(), "the process already has a default library");
}

/// Makes a fake driver of a few functions the process's default.
fn default_fake(resolve: fn(&CStr) -> *const c_void) {
    // SAFETY: each function that the resolvers return has the signature of its name.
    let source = unsafe { Source::resolver("fake", resolve) };
    assert!(set_default(source).is_ok(), "the process already has a default library");
}

#[test]
fn no_driver() {
    child!("no_driver", {
        default_path(Path::new("/no/such/libcuda.so.1"));
        assert_contains(&error(cuda_driver::init()), &["cuInit", "/no/such/libcuda.so.1"]);
        assert_contains(&error(Device::count()), &["cuDeviceGetCount", "/no/such/libcuda.so.1"]);
        assert_contains(
            &error(cuda_driver::version()),
            &["cuDriverGetVersion", "/no/such/libcuda.so.1"],
        );
    });
}

#[test]
fn a_file_that_is_not_a_library() {
    child!("a_file_that_is_not_a_library", {
        let path = ptx_path("vector_add.ptx");
        default_path(&path);
        assert_contains(&error(cuda_driver::init()), &["cuInit", "vector_add.ptx"]);
    });
}

#[test]
fn a_library_without_cu_init() {
    child!("a_library_without_cu_init", {
        default_path(Path::new("libc.so.6"));
        assert_contains(&error(cuda_driver::init()), &["cuInit", "libc.so.6"]);
    });
}

#[test]
fn a_toolkit_stub() {
    unsafe extern "system" fn init(_flags: c_uint) -> CUresult {
        CUresult(34)
    }
    fn resolve(name: &CStr) -> *const c_void {
        if name == c"cuInit" {
            init as *const c_void
        } else {
            ptr::null()
        }
    }
    child!("a_toolkit_stub", {
        default_fake(resolve);
        assert_contains(
            &error(cuda_driver::init()),
            &["cuInit", "CUDA_ERROR_STUB_LIBRARY", "34"],
        );
    });
}

unsafe extern "system" fn succeed(_flags: c_uint) -> CUresult {
    CUresult(0)
}

unsafe extern "system" fn version_12_2(version: *mut c_int) -> CUresult {
    // SAFETY: the caller passes a valid output.
    unsafe { version.write(12020) };
    CUresult(0)
}

#[test]
fn a_driver_that_lacks_a_symbol() {
    fn resolve(name: &CStr) -> *const c_void {
        match name.to_bytes() {
            b"cuInit" => succeed as *const c_void,
            b"cuDriverGetVersion" => version_12_2 as *const c_void,
            _ => ptr::null(),
        }
    }
    child!("a_driver_that_lacks_a_symbol", {
        default_fake(resolve);
        assert!(cuda_driver::init().is_ok());
        assert_contains(&error(Device::count()), &["cuDeviceGetCount", "12.2"]);
    });
}

#[test]
fn an_unknown_result_code() {
    unsafe extern "system" fn init(_flags: c_uint) -> CUresult {
        CUresult(12345)
    }
    fn resolve(name: &CStr) -> *const c_void {
        if name == c"cuInit" {
            init as *const c_void
        } else {
            ptr::null()
        }
    }
    child!("an_unknown_result_code", {
        default_fake(resolve);
        let result = cuda_driver::init();
        assert_eq!(result.map_err(|e| e.code()), Err(CUresult(12345)));
        assert_contains(&error(result), &["cuInit", "12345"]);
    });
}

#[test]
fn a_driver_without_a_device() {
    unsafe extern "system" fn none(count: *mut c_int) -> CUresult {
        // SAFETY: the caller passes a valid output.
        unsafe { count.write(0) };
        CUresult(0)
    }
    fn resolve(name: &CStr) -> *const c_void {
        match name.to_bytes() {
            b"cuInit" => succeed as *const c_void,
            b"cuDriverGetVersion" => version_12_2 as *const c_void,
            b"cuDeviceGetCount" => none as *const c_void,
            _ => ptr::null(),
        }
    }
    child!("a_driver_without_a_device", {
        default_fake(resolve);
        assert!(cuda_driver::init().is_ok());
        assert_contains(&error(Device::first()), &["There is no device supporting CUDA"]);
    });
}

#[test]
fn a_call_before_init() {
    child!("a_call_before_init", {
        select_driver();
        let result = Device::count();
        assert_eq!(result.map_err(|e| e.code()), Err(CUresult(3)));
        assert_contains(
            &error(result),
            &["cuDeviceGetCount", "CUDA_ERROR_NOT_INITIALIZED (3)", "bad_input.rs"],
        );
        let result = Device::first();
        assert_contains(&error(result), &["CUDA_ERROR_NOT_INITIALIZED (3)"]);
    });
}

fn context() -> Context {
    driver();
    Context::create(Device::first().expect("a device")).expect("a context")
}

#[test]
fn ptx_with_a_syntax_error() {
    let context = context();
    let text = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k()\n{\n  mov.u32 %r1, 0;\n  ret;\n}\n";
    let error = Module::from_ptx(&context, text).expect_err("an undeclared register");
    assert_contains(
        &error.to_string(),
        &["cuModuleLoadData", "CUDA_ERROR_INVALID_PTX (218)", "line 6", "%r1"],
    );
    assert_contains(error.error_log(), &["line 6", "%r1"]);
    // A NUL byte inside the text is the caller's error: the driver is not called.
    assert!(Module::from_ptx(&context, "a\0b").is_err());
    assert_contains(
        &Module::from_ptx(&context, "").expect_err("no image").to_string(),
        &["cuModuleLoadData", "200"],
    );
}

#[test]
fn a_missing_file() {
    let context = context();
    let error = Module::load_ptx(&context, "/no/such/kernels.ptx").expect_err("a missing file");
    assert_contains(&error.to_string(), &["/no/such/kernels.ptx", "cuModuleLoad", "301"]);
    let error = Module::load_ptx(&context, env!("CARGO_MANIFEST_DIR")).expect_err("a folder");
    assert_contains(&error.to_string(), &["cuModuleLoad", "301"]);
}

#[test]
fn a_truncated_module() {
    let context = context();
    let path = std::env::temp_dir().join(format!("cuda-driver-cut-{}", std::process::id()));
    let mut cubin = vec![0; 64];
    cubin[..6].copy_from_slice(b"\x7fELF\x02\x01");
    // One section, whose entry in the section table is missing.
    cubin[0x28] = 64;
    cubin[0x3a] = 64;
    cubin[0x3c] = 1;
    let mut fat_binary = 0xba55_ed50_u32.to_le_bytes().to_vec();
    fat_binary.extend([1, 0, 16, 0, 80, 0, 0, 0, 0, 0, 0, 0]);
    // 96 bytes with the header, of which one is missing.
    fat_binary.resize(95, 0);
    for (image, reason) in [
        (cubin, "the cubin is truncated: it ends at byte 128"),
        (fat_binary, "the fat binary is truncated: it ends at byte 96"),
    ] {
        std::fs::write(&path, image).expect("a file");
        // SAFETY: the image is refused before the driver is called.
        let error = unsafe { Module::load(&context, &path) }.expect_err("a truncated file");
        assert_contains(&error.to_string(), &["cuda-driver-cut", "(200)", reason]);
        // `load_ptx` reports the same for truncated images.
        let error = Module::load_ptx(&context, &path).expect_err("a truncated file");
        assert_contains(&error.to_string(), &["cuda-driver-cut", "(200)", reason]);
    }
    std::fs::remove_file(&path).expect("the file can be removed");
}

#[test]
fn a_host_function_that_panics() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let event = cuda_driver::Event::new(&context).expect("an event");
    let buffer = cuda_driver::DeviceBuffer::<u32>::zeroed(&context, 4).expect("memory");
    let (stream, event, buffer, context) = (&stream, &event, &buffer, &context);
    type Wait<'a> = (&'static str, &'a dyn Fn());
    let waits: [Wait<'_>; 3] = [
        ("stream", &|| stream.synchronize().expect("no fault")),
        ("event", &|| event.synchronize().expect("no fault")),
        ("context", &|| context.synchronize().expect("no fault")),
    ];
    for (name, wait) in waits {
        stream.launch_host_fn(|| panic!("on purpose")).expect("queued");
        event.record(stream).expect("recorded");
        // A copy waits too, but does not resume the panic, because other libraries may make copies.
        buffer.to_vec().expect("no fault");
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait));
        let panic = panic.expect_err(name);
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"), "{name}");
        // The panic is resumed once; the stream stays usable.
        wait();
        stream.synchronize().expect("no fault");
    }
}

#[test]
fn a_missing_kernel() {
    let context = context();
    let module = Module::load_ptx(&context, ptx_path("vector_add.ptx")).expect("a module");
    assert_contains(
        &error(module.function("vector_sub")),
        &["cuModuleGetFunction", "CUDA_ERROR_NOT_FOUND (500)"],
    );
    assert_contains(
        &error(module.global("nothing")),
        &["cuModuleGetGlobal", "CUDA_ERROR_NOT_FOUND (500)"],
    );
    assert!(module.function("a\0b").is_err());
    assert!(module.function("").is_err());
}

#[test]
fn blocks_without_threads_or_with_too_many() {
    let context = context();
    let module = Module::load_ptx(&context, ptx_path("registers.ptx")).expect("a module");
    let kernel = module.function("registers").expect("a kernel");
    let stream = Stream::new(&context).expect("a stream");
    for block in [Dim3::from(1025), Dim3::from((0, 1)), Dim3::from((1, 1, 65))] {
        let config = LaunchConfig {
            grid: 1.into(),
            block,
            ..LaunchConfig::default()
        };
        // SAFETY: the launch is refused, so the kernel never uses its null argument.
        let result = unsafe { kernel.launch(&stream, config, (cuda_driver::DevicePtr::null(),)) };
        assert_contains(
            &error(result),
            &["cuLaunchKernel", "CUDA_ERROR_INVALID_VALUE (1)", "bad_input.rs"],
        );
    }
}

#[test]
fn more_memory_than_the_device_has() {
    let context = context();
    let result = cuda_driver::DeviceBuffer::<u8>::alloc(&context, 1 << 50);
    assert_contains(
        &error(result.map(|_| ())),
        &["cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY (2)", "bad_input.rs"],
    );
    // A size in bytes that overflows `usize`.
    assert!(cuda_driver::DeviceBuffer::<u64>::alloc(&context, usize::MAX / 2).is_err());
}

#[test]
fn a_missing_device() {
    driver();
    assert_contains(
        &error(Device::get(99)),
        &["cuDeviceGet", "CUDA_ERROR_INVALID_DEVICE (101)"],
    );
    assert_contains(&error(Device::get(u32::MAX)), &["cuDeviceGet"]);
}
