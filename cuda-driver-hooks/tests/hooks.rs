//! Tests of the hooks with a fake driver and, on Linux, with a complete one: by default the software driver.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr;
use std::sync::{Arc, Mutex};

use cuda_driver_hooks::{ChangeResult, Counter, DriverVersion, Fail, Hide, Watch};
use cuda_driver_sys::library::{Call, Interposer, Options, Source};
use cuda_driver_sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUdriverProcAddressQueryResult as Status, CUmem_advise,
    CUmemLocation, CUresult, CUstream, Function, Library, cuuint64_t, legacy,
};

unsafe extern "system" fn init(_: c_uint) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn version(version: *mut c_int) -> CUresult {
    // SAFETY: the library passes a pointer to an integer.
    unsafe { version.write(13000) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn alloc(pointer: *mut CUdeviceptr, size: usize) -> CUresult {
    // SAFETY: the tests pass pointers to device pointers.
    unsafe { pointer.write(size as CUdeviceptr + 1) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn alloc_of_the_32_bit_era(_: *mut c_uint, _: c_uint) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn attribute(value: *mut c_int, _: CUdevice_attribute, _: CUdevice) -> CUresult {
    // SAFETY: the tests pass pointers to integers.
    unsafe { value.write(32) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn advise(_: CUdeviceptr, _: usize, _: CUmem_advise, _: CUmemLocation) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn stream_query(_: CUstream) -> CUresult {
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn create_v2(_: *mut CUcontext, _: c_uint, _: CUdevice) -> CUresult {
    CUresult(2)
}

/// Writes the address of the newest variant that `version` has, as a driver does.
unsafe extern "system" fn get_proc_address(
    name: *const c_char,
    answer: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
    status: *mut Status,
) -> CUresult {
    // SAFETY: the tests pass a string and valid pointers.
    unsafe {
        let name = CStr::from_ptr(name).to_str().expect("a name");
        let newest = Function::ALL
            .iter()
            .copied()
            .filter(|f| f.base() == name && f.since() as c_int <= version)
            .filter(|f| f.name().contains("_pt") == (flags == 2))
            .filter(|f| !resolve(f.symbol()).is_null())
            .max_by_key(|f| f.since());
        let pointer = newest.map_or(ptr::null(), |f| resolve(f.symbol()));
        answer.write(pointer.cast_mut());
        if !status.is_null() {
            status.write(Status(u32::from(pointer.is_null())));
        }
    }
    CUresult::CUDA_SUCCESS
}

unsafe extern "system" fn get_proc_address_v1(
    name: *const c_char,
    answer: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
) -> CUresult {
    // SAFETY: upheld by the caller; the status may be null.
    unsafe { get_proc_address(name, answer, version, flags, ptr::null_mut()) }
}

fn resolve(name: &CStr) -> *const c_void {
    match name.to_bytes() {
        b"cuInit" => init as *const c_void,
        b"cuDriverGetVersion" => version as *const c_void,
        b"cuMemAlloc_v2" => alloc as *const c_void,
        b"cuMemAlloc" => alloc_of_the_32_bit_era as *const c_void,
        b"cuDeviceGetAttribute" => attribute as *const c_void,
        b"cuMemAdvise_v2" => advise as *const c_void,
        b"cuStreamQuery" => stream_query as *const c_void,
        b"cuCtxCreate_v2" => create_v2 as *const c_void,
        b"cuGetProcAddress_v2" => get_proc_address as *const c_void,
        b"cuGetProcAddress" => get_proc_address_v1 as *const c_void,
        _ => ptr::null(),
    }
}

fn fake(options: Options) -> &'static Library {
    // SAFETY: the functions above have the types of the exports that they replace.
    let source = unsafe { Source::resolver("a fake driver", resolve) };
    Library::new(source, options).expect("it has cuInit")
}

fn allocate(library: &Library, size: usize) -> (CUresult, CUdeviceptr) {
    let mut pointer = 0;
    // SAFETY: the pointer is to a device pointer.
    let code = unsafe { library.cuMemAlloc(&raw mut pointer, size) };
    (code, pointer)
}

#[test]
fn watch_shows_function_arguments_result_and_time() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let library = fake(Options::new().hook(Watch::new(move |call| {
        seen.lock().expect("no panic").push(call.to_string());
        if call.function == Function::cuMemAlloc_v2 {
            // SAFETY: the first parameter is a pointer to a device pointer, which the driver has written by now.
            let pointer = unsafe { call.arguments.get::<*mut CUdeviceptr>(0).expect("two arguments").read() };
            assert_eq!(pointer, 4097);
        }
    })));
    let mut value: c_int = 0;
    let pointer = &raw mut value;
    // SAFETY: the pointers are to values of the types that the functions write.
    unsafe {
        assert_eq!(library.cuInit(0), CUresult::CUDA_SUCCESS);
        _ = allocate(library, 4096);
        _ = library.cuDeviceGetAttribute(pointer, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1);
        _ = library.cuMemAdvise_v2(1, 2, CUmem_advise(77), CUmemLocation::device(0));
        _ = library.cuStreamQuery(ptr::null_mut());
        _ = library.cuCtxSynchronize();
    }
    let lines = lines.lock().expect("no panic");
    let without_time: Vec<String> = lines
        .iter()
        .map(|line| {
            let (call, time) = line.rsplit_once(", ").expect("a time");
            let number = time.strip_suffix(" ns").expect("nanoseconds");
            assert!(number.parse::<u64>().is_ok(), "{line}");
            call.to_owned()
        })
        .collect();
    assert_eq!(without_time[0], "cuInit(Flags: 0) = CUDA_SUCCESS");
    assert!(without_time[1].starts_with("cuMemAlloc_v2(dptr: 0x"));
    assert!(without_time[1].ends_with(", bytesize: 4096) = CUDA_SUCCESS"));
    assert_eq!(
        without_time[2],
        format!("cuDeviceGetAttribute(pi: {pointer:p}, attrib: CU_DEVICE_ATTRIBUTE_WARP_SIZE, dev: -1) = CUDA_SUCCESS")
    );
    assert_eq!(
        without_time[3..],
        [
            "cuMemAdvise_v2(devPtr: 0x1, count: 2, advice: CUmem_advise(77), location: CUmemLocation_st { .. }) = CUDA_SUCCESS",
            "cuStreamQuery(hStream: 0x0) = CUDA_SUCCESS",
            "cuCtxSynchronize() = CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
        ]
    );
}

#[test]
fn counter_counts_each_function() {
    let calls = Counter::new();
    let library = fake(Options::new().hook(calls.clone()));
    for size in 0..5 {
        _ = allocate(library, size);
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // SAFETY: cuInit takes no pointers.
            scope.spawn(|| (0..1000).for_each(|_| _ = unsafe { library.cuInit(0) }));
        }
    });
    assert_eq!(calls.calls(Function::cuMemAlloc), 5);
    assert_eq!(calls.calls(Function::cuInit), 4000);
    assert_eq!(calls.total(), 4005);
    assert!(calls.nanoseconds(Function::cuInit) > 0);
    assert_eq!(format!("{calls:?}"), "{cuInit: 4000, cuMemAlloc_v2: 5}");
    calls.reset();
    assert_eq!(calls.called().count(), 0);
}

/// Returns the outputs of `cuGetProcAddress`: the pointer and the status.
fn ask(library: &Library, name: &CStr, version: c_int) -> (*const c_void, Status) {
    let (mut answer, mut status) = (ptr::null_mut(), Status(77));
    // SAFETY: the arguments are a C string and valid output pointers.
    let code = unsafe { library.cuGetProcAddress(name.as_ptr(), &raw mut answer, version, 0, &raw mut status) };
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    (answer, status)
}

#[test]
fn hidden_functions_are_missing_everywhere() {
    let hide = Hide::functions([Function::cuMemAlloc_v2, Function::cuStreamQuery]);
    let library = fake(Options::new().hook(hide));
    let missing = CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    assert_eq!(allocate(library, 1), (missing, 0));
    assert!(!library.supports(Function::cuMemAlloc));
    assert_eq!(library.get(Function::cuMemAlloc), None);
    assert_eq!(library.symbol(c"cuMemAlloc_v2"), None);
    assert!(library.symbol(c"cuMemAlloc").is_some());
    assert_eq!(
        library.missing(Function::cuMemAlloc).expect("hidden").to_string(),
        "cuMemAlloc_v2 needs CUDA 3.2, but this driver (CUDA 13.0) does not export it (a fake driver)"
    );

    // An older variant replaces a hidden one; without an older variant, the function is not found.
    let old = alloc_of_the_32_bit_era as *const c_void;
    let success = Status::CU_GET_PROC_ADDRESS_SUCCESS;
    assert_eq!(ask(library, c"cuMemAlloc", 13000), (old, success));
    assert_eq!(ask(library, c"cuMemAlloc", 2000), (old, success));
    let not_found = Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    assert_eq!(ask(library, c"cuStreamQuery", 13000), (ptr::null(), not_found));
    assert_eq!(ask(library, c"cuInit", 13000), (init as *const c_void, success));

    // The first cuGetProcAddress has no status, so it returns an error.
    let mut answer = ptr::null_mut();
    // SAFETY: the arguments are a C string and a valid output pointer.
    let code = unsafe {
        library
            .legacy()
            .cuGetProcAddress(c"cuStreamQuery".as_ptr(), &raw mut answer, 13000, 0)
    };
    assert_eq!(code, CUresult::CUDA_ERROR_NOT_FOUND);
    assert!(answer.is_null());
}

/// A driver may return other addresses than it exports. Hidden functions are then recognised by the request.
#[test]
fn hidden_functions_are_recognised_by_the_request() {
    const ELSEWHERE: *mut c_void = ptr::without_provenance_mut(0x10);
    unsafe extern "system" fn elsewhere(
        _: *const c_char,
        answer: *mut *mut c_void,
        _: c_int,
        _: cuuint64_t,
        status: *mut Status,
    ) -> CUresult {
        // SAFETY: the test passes valid output pointers.
        unsafe {
            answer.write(ELSEWHERE);
            status.write(Status::CU_GET_PROC_ADDRESS_SUCCESS);
        }
        CUresult::CUDA_SUCCESS
    }
    let resolver = |name: &CStr| match name.to_bytes() {
        b"cuGetProcAddress_v2" => elsewhere as *const c_void,
        _ => resolve(name),
    };
    // SAFETY: the functions have the types of the exports that they replace.
    let source = unsafe { Source::resolver("a driver with trampolines", resolver) };
    let hide = Hide::functions([Function::cuMemAlloc_v2, Function::cuStreamQuery]);
    let library = Library::new(source, Options::new().hook(hide)).expect("it has cuInit");
    let success = Status::CU_GET_PROC_ADDRESS_SUCCESS;
    let old = alloc_of_the_32_bit_era as *const c_void;
    assert_eq!(ask(library, c"cuMemAlloc", 13000), (old, success));
    let not_found = Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    let query = ask(library, c"cuStreamQuery", 13000);
    assert_eq!(query, (ptr::null(), not_found));
    // Functions that are not hidden are returned unchanged.
    let unknown = (ELSEWHERE.cast_const(), success);
    assert_eq!(ask(library, c"cuInit", 13000), unknown);
    assert_eq!(ask(library, c"cuMemAlloc", 2000), unknown);
}

#[test]
fn a_version_without_a_visible_variant_is_not_sufficient() {
    // The older of two variants is hidden, so there is none for its version.
    let hide = Hide::functions([legacy::function::cuMemAlloc]);
    let library = fake(Options::new().hook(hide));
    assert_eq!(
        ask(library, c"cuMemAlloc", 2000),
        (ptr::null(), Status::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT)
    );
    assert_eq!(ask(library, c"cuMemAlloc", 3020).0, alloc as *const c_void);
}

#[test]
fn a_claimed_version_is_reported_and_hides_newer_functions() {
    let library = fake(Options::new().hook(DriverVersion::claim(12010)));
    assert_eq!(library.version(), Some(12010));
    assert!(library.supports(Function::cuMemAlloc));
    assert_eq!(
        library.missing(Function::cuMemAdvise_v2).expect("hidden").to_string(),
        "cuMemAdvise_v2 needs CUDA 12.2, this driver supports 12.1 (a fake driver)"
    );
    assert_eq!(
        ask(library, c"cuMemAdvise", 13000).1,
        Status::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    );
}

#[test]
fn calls_of_the_library_itself_are_not_seen() {
    let calls = Counter::new();
    let fail = Fail::nth_of_all(2, CUresult(12345));
    let library = fake(Options::new().hook(calls.clone()).hook(fail.clone()));
    // A call of a missing function does not reach the driver, and `note_version` makes a call that no hook sees.
    // SAFETY: the functions take any arguments, or are missing.
    unsafe {
        _ = library.cuCtxSynchronize();
        assert_eq!(library.known_version(), None);
        library.note_version();
        assert_eq!(library.known_version(), Some(13000));
        assert!(library.missing(Function::cuCtxSynchronize).is_some());
        assert_eq!((calls.total(), fail.failed()), (1, 0));
        assert_eq!(library.cuInit(0), CUresult(12345));
    }
    // Queries by the program are seen each time.
    assert_eq!(library.version(), Some(13000));
    assert_eq!(library.version(), Some(13000));
    assert_eq!(calls.calls(Function::cuDriverGetVersion), 2);
}

#[test]
fn a_claimed_version_is_noted_without_a_call() {
    let calls = Counter::new();
    let claim = DriverVersion::claim(12010);
    let library = fake(Options::new().hook(calls.clone()).hook(claim));
    library.note_version();
    assert_eq!((library.known_version(), calls.total()), (Some(12010), 0));
    // `cuMemAdvise_v2` is newer than the claimed version.
    assert!(library.missing(Function::cuMemAdvise_v2).is_some());
}

#[test]
fn a_claimed_version_is_in_messages_after_a_query() {
    struct Claim;
    impl Interposer for Claim {
        fn version(&self) -> Option<u32> {
            Some(12010)
        }

        fn hides(&self, function: Function) -> bool {
            function == Function::cuMemAdvise_v2
        }
    }
    // SAFETY: the interposer forwards every call.
    let library = fake(unsafe { Options::new().interposer(Claim) });
    assert_eq!(library.version(), Some(13000));
    let missing = library.missing(Function::cuMemAdvise_v2).expect("hidden");
    assert_eq!(missing.driver_version, Some(12010));
    assert_eq!(library.version(), Some(13000));
}

#[test]
fn results_change_and_calls_fail() {
    let out_of_memory = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let third = Fail::nth(Function::cuMemAlloc, 3, out_of_memory);
    let sticky = Fail::from_nth(Function::cuInit, 2, CUresult(700));
    let never_done = ChangeResult::of(Function::cuStreamQuery, |code| {
        assert_eq!(code, CUresult::CUDA_SUCCESS);
        CUresult::CUDA_ERROR_NOT_READY
    });
    let hooks = Options::new().hook(third.clone()).hook(sticky.clone());
    // SAFETY: only this test calls the library, and it frees nothing that a stream still uses.
    let library = fake(unsafe { hooks.interposer(never_done) });
    let allocations: Vec<u32> = (0..4).map(|_| allocate(library, 0).0.0).collect();
    assert_eq!(allocations, [0, 0, 2, 0]);
    assert_eq!(third.failed(), 1);
    // SAFETY: the functions take any arguments.
    let inits: Vec<u32> = (0..3).map(|_| unsafe { library.cuInit(0) }.0).collect();
    assert_eq!(inits, [0, 700, 700]);
    assert_eq!(sticky.failed(), 2);
    // SAFETY: the functions take any arguments.
    let query = unsafe { library.cuStreamQuery(ptr::null_mut()) };
    assert_eq!(query, CUresult::CUDA_ERROR_NOT_READY);

    let always = fake(Options::new().hook(Fail::always(Function::cuInit, CUresult(12345))));
    // SAFETY: cuInit takes no pointers.
    assert_eq!(unsafe { always.cuInit(0) }, CUresult(12345));
}

/// After a call that returns `CUDA_SUCCESS` without being made, safe code would read uninitialised outputs.
#[test]
fn calls_do_not_fail_with_success() {
    let success = CUresult::CUDA_SUCCESS;
    let lies = [
        Fail::always(Function::cuMemAlloc, success),
        Fail::nth(Function::cuMemAlloc, 1, success),
        Fail::nth_of_all(1, success),
    ];
    for lie in lies {
        let library = fake(Options::new().hook(lie.clone()));
        assert_eq!(allocate(library, 41), (success, 42));
        assert_eq!(lie.failed(), 0);
    }
}

#[test]
fn chain_begins_with_the_first() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        move |call: Call<'_>| {
            order.lock().expect("no panic").push(name);
            let code = call.forward();
            order.lock().expect("no panic").push(name);
            code
        }
    };
    let fail = Fail::always(Function::cuInit, CUresult(1));
    // SAFETY: these interposers forward every call and return its result.
    let library = fake(unsafe {
        Options::new()
            .interposer(note("a"))
            .interposer(note("b"))
            .hook(fail)
            .interposer(note("never reached"))
    });
    // SAFETY: cuInit takes no pointers.
    assert_eq!(unsafe { library.cuInit(0) }, CUresult(1));
    assert_eq!(*order.lock().expect("no panic"), ["a", "b", "b", "a"]);
}

#[test]
fn library_over_a_library_has_options_of_its_own() {
    let below = Counter::new();
    let driver = fake(Options::new().hook(below.clone()));
    let above = Counter::new();
    let library =
        Library::new(Source::library(driver), Options::new().hook(above.clone())).expect("the driver is there");
    assert_eq!(allocate(library, 6), (CUresult::CUDA_SUCCESS, 7));
    assert_eq!((above.total(), below.total()), (1, 0));
    assert_eq!(library.description().as_deref(), Some("a fake driver"));
    assert_ne!(library.number(), driver.number());
}

/// Interposers that call each other's libraries do not recurse forever, because a library's interposers do not see
/// calls of that library that are made on their thread while they run.
#[test]
fn hooks_that_call_each_other_end() {
    static LIBRARIES: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());
    struct CallsTheOther(usize);
    impl Interposer for CallsTheOther {
        fn call(&self, call: Call<'_>) -> CUresult {
            let other = LIBRARIES.lock().expect("no panic")[self.0];
            // SAFETY: cuInit takes no pointers.
            assert_eq!(unsafe { other.cuInit(0) }, CUresult::CUDA_SUCCESS);
            call.forward()
        }
    }
    // SAFETY: the interposer forwards every call and returns its result.
    let both = [1, 0].map(|other| fake(unsafe { Options::new().interposer(CallsTheOther(other)) }));
    LIBRARIES.lock().expect("no panic").extend(both);
    // SAFETY: cuInit takes no pointers.
    assert_eq!(unsafe { both[0].cuInit(0) }, CUresult::CUDA_SUCCESS);
}

/// The hooks over a complete driver: the software driver, or the system's with `CUDA_DRIVER=system`.
#[cfg(target_os = "linux")]
mod over_a_driver {
    use super::*;

    /// Allocates 1 MiB and frees it. After a failed call, still makes the calls that free the memory and destroy the
    /// context.
    fn program(library: &Library) -> CUresult {
        let (mut device, mut context, mut pointer) = (0, ptr::null_mut(), 0);
        // SAFETY: the output pointers are valid, and the handles come from earlier calls.
        unsafe {
            let mut codes = vec![library.cuInit(0)];
            if codes[0] == CUresult::CUDA_SUCCESS {
                codes.push(library.cuDeviceGet(&raw mut device, 0));
                codes.push(library.cuCtxCreate(&raw mut context, 0, device));
                if codes[2] == CUresult::CUDA_SUCCESS {
                    codes.push(library.cuMemAlloc(&raw mut pointer, 1 << 20));
                    if codes[3] == CUresult::CUDA_SUCCESS {
                        codes.push(library.cuMemFree(pointer));
                    }
                    codes.push(library.cuCtxDestroy(context));
                }
            }
            let failed = codes.iter().find(|code| **code != CUresult::CUDA_SUCCESS);
            failed.copied().unwrap_or_default()
        }
    }

    /// Returns the driver under test: the software driver, unless `CUDA_DRIVER` names another.
    fn driver() -> &'static Library {
        match cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software) {
            Ok(selection) => selection.library(),
            Err(error) => panic!("the driver under test cannot be used: {error}"),
        }
    }

    fn over(options: Options) -> &'static Library {
        Library::new(Source::library(driver()), options).expect("the driver is there")
    }

    #[test]
    fn every_call_of_a_program_can_fail() {
        for n in 1.. {
            let fail = Fail::nth_of_all(n, CUresult(12345));
            let result = program(over(Options::new().hook(fail.clone())));
            if fail.failed() == 0 {
                assert_eq!((n, result), (7, CUresult::CUDA_SUCCESS));
                break;
            }
            assert_eq!(result, CUresult(12345), "call {n}");
        }
    }

    #[test]
    fn watched_and_counted() {
        let calls = Counter::new();
        let lines = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&lines);
        let watch = Watch::new(move |call| {
            let mut lines = seen.lock().expect("no panic");
            lines.push_str(&call.to_string());
            lines.push('\n');
        });
        let library = over(Options::new().hook(watch).hook(calls.clone()));
        assert_eq!(program(library), CUresult::CUDA_SUCCESS);
        assert_eq!(calls.total(), 6);
        let lines = lines.lock().expect("no panic");
        assert!(lines.contains("cuCtxCreate_v2(pctx: 0x"), "{lines}");
        assert!(lines.contains("bytesize: 1048576) = CUDA_SUCCESS"), "{lines}");
    }

    #[test]
    fn a_driver_that_claims_to_be_older() {
        let plain = driver();
        let library = over(Options::new().hook(DriverVersion::claim(12020)));
        assert_eq!(library.version(), Some(12020));
        let mut compared = 0;
        for &function in Function::ALL {
            let is_old = function.since() <= 12020;
            let is_there = plain.supports(function);
            assert_eq!(library.supports(function), is_old && is_there, "{function}");
            // Functions that the driver does not export may be newer than its version, and a driver newer than CUDA
            // 12.5 rejects a request for a version above its own.
            if function.name().contains("_pt") || !is_there {
                continue;
            }
            let base = std::ffi::CString::new(function.base()).expect("no NUL");
            let since = function.since() as c_int;
            let (real, _) = ask(plain, &base, since);
            let (claimed, _) = ask(library, &base, since);
            assert!(!real.is_null(), "{function}");
            if is_old {
                assert_eq!(claimed, real, "{function}");
            } else {
                // A driver of CUDA 12.2 returns the newest variant that it has, if any.
                let (older, _) = ask(plain, &base, 12020);
                assert_eq!(claimed, older, "{function}");
                compared += 1;
            }
        }
        assert!(compared > 50, "{compared}");
        let mut context = ptr::null_mut();
        // SAFETY: the function is hidden, so nothing uses the pointers.
        let code = unsafe { library.cuCtxCreate_v4(&raw mut context, ptr::null_mut(), 0, 0) };
        assert_eq!(code, CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
    }

    /// Calls the `cuGetProcAddress` of CUDA 11.
    fn ask_as_of_cuda_11(library: &Library, name: &CStr, version: c_int) -> Result<*const c_void, CUresult> {
        let mut answer = ptr::null_mut();
        // SAFETY: the arguments are a C string and a valid output pointer.
        let code = unsafe {
            library
                .legacy()
                .cuGetProcAddress(name.as_ptr(), &raw mut answer, version, 0)
        };
        match code {
            CUresult::CUDA_SUCCESS => Ok(answer),
            code => Err(code),
        }
    }

    /// A driver of CUDA 11.7 has only the first `cuGetProcAddress`.
    #[test]
    fn as_old_as_cuda_11() {
        let plain = driver();
        let library = over(Options::new().hook(DriverVersion::claim(11070)));
        let (mut answer, mut status) = (ptr::null_mut(), Status(77));
        let name = c"cuInit".as_ptr();
        // SAFETY: the arguments are a C string and valid output pointers.
        let code = unsafe { library.cuGetProcAddress(name, &raw mut answer, 11070, 0, &raw mut status) };
        assert_eq!(code, CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
        let missing = library.missing(Function::cuGetProcAddress);
        let words = "cuGetProcAddress_v2 needs CUDA 12.0, this driver supports 11.7";
        assert!(missing.expect("hidden").to_string().starts_with(words));

        let mut compared = 0;
        for &function in Function::ALL {
            let since = function.since() as c_int;
            if function.name().contains("_pt") || !plain.supports(function) {
                continue;
            }
            let base = std::ffi::CString::new(function.base()).expect("no NUL");
            let claimed = ask_as_of_cuda_11(library, &base, since);
            // A driver of CUDA 11.7 returns the newest variant for a version above its own.
            let (real, _) = ask(plain, &base, since.min(11070));
            if real.is_null() {
                assert_eq!(claimed, Err(CUresult::CUDA_ERROR_NOT_FOUND), "{function}");
                compared += 1;
            } else {
                assert_eq!(claimed, Ok(real), "{function}");
            }
        }
        // A driver of CUDA 13.0 has 90 functions that are newer than CUDA 11.7 and have no older variant.
        assert!(compared > 50, "{compared}");
        let own = ask_as_of_cuda_11(library, c"cuGetProcAddress", 12000);
        let first = plain.get(legacy::function::cuGetProcAddress).expect("exported");
        assert_eq!(own, Ok(first.as_ptr().cast_const()));
    }

    #[test]
    fn arguments_can_be_changed() {
        let halve = |mut call: Call<'_>| {
            if call.function() == Function::cuMemAlloc_v2 {
                // SAFETY: the second parameter is a size_t, and the test accepts fewer bytes.
                unsafe {
                    let bytes: usize = call.argument(1).expect("two arguments");
                    assert!(call.set_argument(1, bytes / 2));
                    assert!(!call.set_argument(2, 0u8));
                }
            }
            call.forward()
        };
        let calls = Counter::new();
        // SAFETY: only this test calls the library, and it does not use the memory that it allocates.
        let library = over(unsafe { Options::new().interposer(halve) }.hook(calls.clone()));
        assert_eq!(program(library), CUresult::CUDA_SUCCESS);
        assert_eq!(calls.calls(Function::cuMemAlloc), 1);
    }
}
