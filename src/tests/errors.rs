//! Tests of error messages.

use std::path::Path;

use super::fake;
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Context, Device, DeviceBuffer, Error, JitError, Module, checked};

/// Returns the error of a call that returns `code`, and the line that the error's message must contain.
fn alloc_message(code: u32) -> (Error, u32) {
    fake::fail("cuMemAlloc_v2", code);
    // SAFETY: the fake driver takes any number.
    let error = unsafe { checked::mem_alloc(4) }.unwrap_err();
    (error, line!() - 1)
}

#[test]
fn every_known_code_is_named() {
    fake::install();
    let codes = (1..10_000).filter(|&code| !crate::error::is_fault(code));
    let mut named = 0;
    for code in codes {
        let Some(name) = CUresult(code).name() else {
            continue;
        };
        named += 1;
        let text = CUresult(code).description().unwrap();
        let (error, line) = alloc_message(code);
        assert_eq!(
            error.to_string(),
            format!("cuMemAlloc_v2 failed: {name} ({code}): {text} (src/tests/errors.rs:{line})")
        );
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(error.code(), CUresult(code));
        assert_eq!(error.function(), Function::cuMemAlloc);
        assert_eq!(error.location().line(), line);
        assert_eq!((error.name(), error.text()), (Some(name), Some(text)));
    }
    assert!(named > 50, "only {named} codes have a name");
}

#[test]
fn an_unknown_code_is_a_number() {
    fake::install();
    let (error, line) = alloc_message(12345);
    let text = format!("cuMemAlloc_v2 failed: unknown error code 12345 (src/tests/errors.rs:{line})");
    assert_eq!(error.to_string(), text);
    assert_eq!((error.name(), error.text(), error.code().0), (None, None, 12345));
}

#[test]
fn a_missing_function_says_what_it_needs() {
    fake::install();
    // SAFETY: the fake driver has no such function.
    let error = unsafe { checked::ctx_create_v4(None, 0, 0) }.unwrap_err();
    let line = line!() - 1;
    assert!(error.is_missing_function());
    assert_eq!(
        error.to_string(),
        format!("cuCtxCreate_v4 failed: needs CUDA 12.5, this driver supports 12.2 (src/tests/errors.rs:{line})")
    );
    // The fake driver's version has this function, but the fake driver does not export it.
    // SAFETY: as above.
    let error = unsafe { checked::ctx_get_flags() }.unwrap_err();
    fake::calls();
    assert!(
        error
            .to_string()
            .contains("but this driver (CUDA 12.2) does not export it"),
        "{error}"
    );
    // Printing makes no driver call.
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn the_drivers_own_302_and_303_are_codes_like_others() {
    fake::install();
    let (error, _) = alloc_message(302);
    assert!(!error.is_missing_function());
    assert!(
        error
            .to_string()
            .contains("CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND (302)"),
        "{error}"
    );
    let (error, _) = alloc_message(303);
    assert!(!error.is_no_driver());
    assert!(
        error.to_string().contains("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED (303)"),
        "{error}"
    );
}

#[test]
fn the_message_for_no_device_is_cudas() {
    fake::install();
    fake::fail("cuInit", 100);
    let error = crate::init().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cuInit failed: CUDA_ERROR_NO_DEVICE (100): There is no device supporting CUDA (")
    );
    fake::devices(0);
    let error = Device::first().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("(100): There is no device supporting CUDA ("),
        "{error}"
    );
    fake::devices(1);
    assert_eq!(Device::first().unwrap().as_raw(), 40);
}

#[test]
fn the_error_for_no_library_lists_the_attempts() {
    let text = fake::child(
        "tests::errors::no_library_child",
        &[("FAKE_SOURCE", "/no/such/file.so")],
    );
    assert!(
        text.contains("cuInit failed: no CUDA driver could be loaded: /no/such/file.so"),
        "{text}"
    );
    assert!(
        text.contains("loads: no CUDA driver could be loaded: /no/such/file.so"),
        "{text}"
    );
}

#[test]
#[ignore = "runs as a child process of the_error_for_no_library_lists_the_attempts"]
fn no_library_child() {
    if std::env::var_os("FAKE_SOURCE").is_none() {
        return;
    }
    fake::install();
    let error = crate::init().unwrap_err();
    println!("{error}");
    assert!(error.is_no_driver() && !error.is_missing_function());
    assert_eq!(error.code(), CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
    println!("loads: {}", crate::load().unwrap_err());
}

#[test]
fn a_fault_names_the_call_that_saw_it_first() {
    let text = fake::child("tests::errors::fault_child", &[]);
    assert!(
        text.contains(
            "cuCtxSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): a kernel accessed an invalid address; raised by \
             earlier work, first seen by this call (src/tests/errors.rs:"
        ),
        "{text}"
    );
    assert!(
        text.contains("raised by earlier work, first seen by cuCtxSynchronize at src/tests/errors.rs:"),
        "{text}"
    );
    // A later fault with another code also names the first one.
    let later = text.lines().find(|line| line.contains("(719)"));
    assert!(
        later.is_some_and(|line| line.contains("first seen by cuCtxSynchronize at")
            && line.contains(", as CUDA_ERROR_ILLEGAL_ADDRESS (")),
        "{text}"
    );
}

#[test]
#[ignore = "a fault sticks to the process: runs as a child of a_fault_names_the_call_that_saw_it_first"]
fn fault_child() {
    fake::install();
    // The guard that `dropping` returns also ends if an interposer panics.
    let drops = || {
        let _dropping = crate::error::dropping();
        panic!("an interposer");
    };
    std::panic::catch_unwind(drops).unwrap_err();
    fake::fail("cuCtxSynchronize", 700);
    // SAFETY: no preconditions.
    println!("{}", unsafe { checked::ctx_synchronize() }.unwrap_err());
    println!("{}", alloc_message(700).0);
    println!("{}", alloc_message(719).0);
}

#[test]
fn a_fault_that_a_drop_saw_first_names_no_line_of_ours() {
    let text = fake::child("tests::errors::dropped_fault_child", &[]);
    assert!(
        text.contains(
            "cuMemAlloc_v2 failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): a kernel accessed an invalid address; raised by \
             earlier work, first seen by cuEventDestroy_v2 when an object was dropped (src/tests/errors.rs:"
        ),
        "{text}"
    );
    assert!(
        text.contains("when an object was dropped, as CUDA_ERROR_ILLEGAL_ADDRESS ("),
        "{text}"
    );
}

#[test]
#[ignore = "a fault sticks to the process: runs as a child of a_fault_that_a_drop_saw_first_names_no_line_of_ours"]
fn dropped_fault_child() {
    fake::install();
    let context = Context::create(Device::from_raw(0)).unwrap();
    let event = crate::Event::new(&context).unwrap();
    fake::fail("cuEventDestroy_v2", 700);
    drop(event);
    println!("{}", alloc_message(700).0);
    println!("{}", alloc_message(719).0);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_without_a_driver_call() {
    fake::install();
    let context = Context::create(Device::from_raw(0)).unwrap();
    let folder = env!("CARGO_MANIFEST_DIR");
    for path in [&format!("{folder}/no such file.ptx"), folder, "a\0b"] {
        let error = Module::load_ptx(&context, path).unwrap_err();
        let line = line!() - 1;
        assert_eq!(error.error().code(), CUresult::CUDA_ERROR_FILE_NOT_FOUND);
        assert_eq!(error.error().function(), Function::cuModuleLoad);
        assert_eq!(error.error().location().line(), line);
        assert!(!error.error_log().is_empty());
        assert!(error.to_string().starts_with(path), "{error}");
        assert_eq!(Error::from(error.clone()).to_string(), error.to_string());
    }
    let name = format!("cuda-driver-module-{}.cubin", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, b"\x7fELF\x02\x01 cut").unwrap();
    fake::calls();
    // SAFETY: the image is rejected without calling the driver.
    let error = unsafe { Module::load(&context, &path) }.unwrap_err();
    let line = line!() - 1;
    std::fs::write(&path, b"some text").unwrap();
    let module = Module::load_ptx(&context, &path);
    // The file becomes a complete fat binary without entries.
    std::fs::write(&path, b"\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0").unwrap();
    let binary = Module::load_ptx(&context, &path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(binary.to_string().contains("use `Module::load`"), "{binary}");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_IMAGE);
    assert_eq!(error.error().location().line(), line);
    assert_eq!(error.path(), Some(path.as_path()));
    assert!(
        error.to_string().contains("the cubin is truncated inside its header"),
        "{error}"
    );
    drop(module.unwrap());
    assert_eq!(
        fake::calls(),
        [
            "cuCtxPushCurrent_v2",
            "cuModuleLoadDataEx(some text)",
            "cuCtxPopCurrent_v2",
            "cuModuleUnload"
        ]
    );
}

#[test]
fn objects_name_the_callers_line() {
    fake::install();
    let here =
        |error: Error, line: u32| assert_eq!((error.location().file(), error.location().line()), (file!(), line));
    fake::fail("cuDeviceGetCount", 3);
    let error = Device::all().unwrap_err();
    here(error, line!() - 1);
    let context = Context::create(Device::from_raw(0)).unwrap();
    fake::fail("cuCtxSynchronize", 1);
    let error = context.synchronize().unwrap_err();
    here(error, line!() - 1);
    fake::fail("cuModuleLoadDataEx", 218);
    let error = Module::from_ptx(&context, "nonsense").unwrap_err();
    here(error.error(), line!() - 1);
}

#[test]
fn the_compilers_messages_are_kept() {
    fake::install();
    let context = Context::create(Device::from_raw(0)).unwrap();
    fake::fail("cuModuleLoadDataEx", 218);
    let error = Module::from_ptx(&context, "nonsense").unwrap_err();
    let line = line!() - 1;
    assert_eq!(
        error.to_string(),
        format!(
            "cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218): the PTX does not compile for this device \
             (src/tests/errors.rs:{line})\n  line 1; error : nonsense"
        )
    );
    assert_eq!(error.error_log(), "line 1; error : nonsense");
    assert_eq!(error.info_log(), "4 registers");
    // An error that `?` converted to this crate's `Error` prints the same.
    let (bare, message) = (error.error(), error.to_string());
    let converted = Error::from(error.clone());
    assert_eq!(converted.to_string(), message);
    assert_eq!(converted.log(), Some("line 1; error : nonsense"));
    assert_eq!((converted, bare.log()), (bare, None));
    assert!(core::ptr::eq(converted.library(), &raw const sys::DEFAULT));
    assert_eq!(
        Error::from(error).log().map(str::as_ptr),
        converted.log().map(str::as_ptr)
    );
    let module = Module::from_ptx(&context, "sense").unwrap();
    assert_eq!(module.info_log(), "4 registers");
    assert!(fake::calls().contains(&"cuModuleLoadDataEx(nonsense)".to_owned()));

    let error = Module::from_ptx(&context, "one\0two").unwrap_err();
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_IMAGE);
    assert!(error.to_string().contains("byte 3 (0x00)"), "{error}");
    // SAFETY: the image is rejected without calling the driver.
    let error = unsafe { Module::from_image(&context, b"\x7fELF") }.unwrap_err();
    assert!(error.to_string().contains("the cubin is truncated"), "{error}");
    assert!(fake::calls().iter().all(|call| !call.starts_with("cuModuleLoad")));
}

#[test]
fn a_converted_error_keeps_its_path_and_its_reason() {
    fake::install();
    let reason = Refusal::NulByte;
    let refused = Error::refused(CUresult::CUDA_ERROR_OUT_OF_MEMORY, Function::cuModuleLoadDataEx, reason);
    let converted = Error::from(JitError::new(refused).at(Path::new("a.ptx")));
    assert_eq!(converted, refused);
    let (message, reason) = (converted.to_string(), Refusal::text(reason.number()).unwrap());
    assert!(message.starts_with("a.ptx: cuModuleLoadDataEx failed: "), "{message}");
    assert!(message.ends_with(reason), "{message}");
    assert_eq!(converted.log(), Some(reason));
}

#[test]
fn rejected_calls_state_the_reason() {
    fake::install();
    let context = Context::create(Device::from_raw(0)).unwrap();
    let mut buffer = DeviceBuffer::<u16>::alloc(&context, 3).unwrap();
    let error = buffer.copy_from(&[0; 4]).unwrap_err();
    let line = line!() - 1;
    assert_eq!(error.function(), Function::cuMemcpyHtoD);
    assert_eq!(
        error.to_string(),
        format!(
            "cuMemcpyHtoD_v2 failed: CUDA_ERROR_INVALID_VALUE (1): the range is not inside the buffer: pass a smaller \
             index or fewer values (src/tests/errors.rs:{line})"
        )
    );
    fake::fail("cuMemcpyHtoD_v2", 1);
    let asked = buffer.copy_from(&[0; 3]).unwrap_err();
    assert_eq!(asked, error);
    assert!(asked.to_string().contains("(1): an argument is not allowed ("));
    let error = buffer.fill_u32(0).unwrap_err().to_string();
    assert!(error.contains("not a multiple"), "{error}");
    let module = Module::from_ptx(&context, "").unwrap();
    let attribute = sys::CUfunction_attribute(u32::MAX);
    let function = module.function("f").unwrap();
    let error = function.set_attribute(attribute, 1).unwrap_err();
    assert_eq!(error.function(), Function::cuFuncSetAttribute);
    assert!(error.to_string().contains("(1): there is no such"), "{error}");
    let error = module.function("a\0b").unwrap_err().to_string();
    assert!(error.contains("(500): the name contains a NUL byte"), "{error}");
}

#[test]
fn a_raw_call_can_be_checked() {
    fake::install();
    fake::fail("cuInit", 1);
    // SAFETY: cuInit takes no pointers.
    let error = crate::check(unsafe { sys::cuInit(0) }, Function::cuInit).unwrap_err();
    assert_eq!(error.function(), Function::cuInit);
    assert_eq!(error.location().line(), line!() - 2);
    assert!(crate::check(CUresult::CUDA_SUCCESS, Function::cuInit).is_ok());
}

#[test]
fn errors_belong_to_the_called_library() {
    fake::install();
    unsafe extern "system" fn init(_: u32) -> CUresult {
        CUresult::CUDA_SUCCESS
    }
    let resolve = |name: &core::ffi::CStr| match name.to_bytes() {
        b"cuInit" => init as *const core::ffi::c_void,
        _ => core::ptr::null(),
    };
    // SAFETY: the function has the type of its name.
    let library = unsafe { sys::Library::from_resolver("a driver without memory", resolve) }.unwrap();
    let mut pointer = 0;
    // SAFETY: the pointer is to a device pointer.
    let code = unsafe { library.cuMemAlloc(&raw mut pointer, 4) };
    let line = line!() + 1;
    let error = crate::check_in(library, code, Function::cuMemAlloc).unwrap_err();
    assert_eq!(error.library().number(), library.number());
    assert!(error.is_missing_function());
    assert_eq!(
        error.to_string(),
        format!(
            "cuMemAlloc_v2 failed: needs CUDA 3.2, but this driver does not export it (src/tests/errors.rs:{line})"
        )
    );
    // The default library has the function, so there the same code comes from the driver.
    let of_default = crate::check(code, Function::cuMemAlloc).unwrap_err();
    assert!(!of_default.is_missing_function());
}
