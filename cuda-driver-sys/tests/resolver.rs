//! Tests of libraries whose functions come from a resolver.
#![cfg(feature = "loader")]

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cuda_driver_sys::library::{Call, Interposer, Options, Source};
use cuda_driver_sys::{CUdeviceptr, CUresult, CUstream, Function, Library, cuuint64_t, legacy};

unsafe extern "system" fn init(flags: c_uint) -> CUresult {
    if flags == 0 {
        CUresult::CUDA_SUCCESS
    } else {
        CUresult(12345)
    }
}

unsafe extern "system" fn driver_get_version(version: *mut c_int) -> CUresult {
    // SAFETY: the library passes a pointer to an integer.
    unsafe { version.write(12020) };
    CUresult::CUDA_SUCCESS
}

/// Returns a code that identifies the called export and contains `count`, like the two functions below.
unsafe extern "system" fn memset(_: CUdeviceptr, _: u8, count: usize) -> CUresult {
    CUresult(1000 + u32::try_from(count).unwrap_or(0))
}

unsafe extern "system" fn memset_ptds(_: CUdeviceptr, _: u8, count: usize) -> CUresult {
    CUresult(2000 + u32::try_from(count).unwrap_or(0))
}

unsafe extern "system" fn memset_32bit(_: c_uint, _: u8, count: c_uint) -> CUresult {
    CUresult(3000 + count)
}

unsafe extern "system" fn get_proc_address(
    _: *const i8,
    _: *mut *mut c_void,
    _: c_int,
    flags: cuuint64_t,
    _: *mut c_void,
) -> CUresult {
    CUresult(u32::try_from(flags).unwrap_or(0))
}

fn resolve(name: &CStr) -> *const c_void {
    match name.to_bytes() {
        b"cuInit" => init as *const c_void,
        b"cuDriverGetVersion" => driver_get_version as *const c_void,
        b"cuMemsetD8_v2" => memset as *const c_void,
        b"cuMemsetD8_v2_ptds" => memset_ptds as *const c_void,
        b"cuMemsetD8" => memset_32bit as *const c_void,
        b"cuGetProcAddress_v2" => get_proc_address as *const c_void,
        _ => ptr::null(),
    }
}

fn fake(options: Options) -> &'static Library {
    // SAFETY: the functions above have the ABI of the exports that they replace.
    Library::new(unsafe { Source::resolver("a fake driver", resolve) }, options).expect("it has cuInit")
}

#[test]
fn calls_reach_the_named_export() {
    let library = fake(Options::new());
    // SAFETY: the fakes take any arguments.
    unsafe {
        for _ in 0..2 {
            assert_eq!(library.cuInit(0), CUresult::CUDA_SUCCESS);
            assert_eq!(library.cuInit(1), CUresult(12345));
            assert_eq!(library.cuMemsetD8(0, 0, 7), CUresult(1007));
            assert_eq!(library.cuMemsetD8_v2(0, 0, 8), CUresult(1008));
            assert_eq!(library.cuMemsetD8_v2_ptds(0, 0, 9), CUresult(2009));
            assert_eq!(library.legacy().cuMemsetD8(0, 0, 10), CUresult(3010));
        }
    }
    assert_eq!(library.version(), Some(12020));
    assert_eq!(format!("{:?}", CUresult(12345)), "CUresult(12345)");
}

#[test]
fn missing_functions_return_an_error_with_a_reason() {
    let library = fake(Options::new());
    // SAFETY: the fake driver lacks the function, so nothing uses the null pointers.
    let code = unsafe { library.cuCtxCreate_v4(ptr::null_mut(), ptr::null_mut(), 0, 0) };
    assert_eq!(code, CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
    assert!(!library.supports(Function::cuCtxCreate_v4));
    assert_eq!(
        library
            .missing(Function::cuCtxCreate_v4)
            .expect("it is missing")
            .to_string(),
        "cuCtxCreate_v4 needs CUDA 12.5, this driver supports 12.2 (a fake driver)"
    );
    assert_eq!(library.missing(Function::cuInit), None);
}

#[test]
fn per_thread_library_calls_the_twins() {
    let library = fake(Options::new().per_thread_default_stream(true));
    // SAFETY: the fakes take any arguments.
    unsafe {
        for _ in 0..2 {
            assert_eq!(library.cuMemsetD8(0, 0, 1), CUresult(2001));
            assert_eq!(library.cuMemsetD8_v2(0, 0, 2), CUresult(2002));
            assert_eq!(library.cuMemsetD8_v2_ptds(0, 0, 3), CUresult(2003));
            let ask = |flags| library.cuGetProcAddress(ptr::null(), ptr::null_mut(), 0, flags, ptr::null_mut());
            assert_eq!(ask(0), CUresult(2));
            assert_eq!(ask(1), CUresult(1));
            assert_eq!(ask(4), CUresult(6));
        }
    }
    assert!(library.is_per_thread());
}

struct Counter(&'static AtomicU32);

impl Interposer for Counter {
    fn call(&self, mut call: Call<'_>) -> CUresult {
        self.0.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the third parameter of cuMemsetD8_v2 is a count of type size_t; cuInit takes no pointers.
        unsafe {
            if call.function() == Function::cuMemsetD8_v2 {
                let count: usize = call.argument(2).expect("three arguments");
                assert!(call.set_argument(2, count + 1));
            }
            // This hook does not see its own calls.
            assert_eq!(call.library().cuInit(0), CUresult::CUDA_SUCCESS);
        }
        call.forward()
    }

    fn hides(&self, function: Function) -> bool {
        function == legacy::function::cuMemsetD8
    }
}

#[test]
fn interposer_sees_every_call() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    // SAFETY: only this test calls the library, and the fakes that it calls do not dereference pointers.
    let library = fake(unsafe { Options::new().interposer(Counter(&SEEN)) });
    // SAFETY: the fakes take any arguments.
    unsafe {
        assert_eq!(library.cuMemsetD8(0, 0, 7), CUresult(1008));
        assert_eq!(library.cuMemsetD8(0, 0, 7), CUresult(1008));
        assert_eq!(
            library.legacy().cuMemsetD8(0, 0, 7),
            CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        );
        let stream: CUstream = ptr::null_mut();
        assert_eq!(
            library.cuStreamQuery(stream),
            CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        );
    }
    assert_eq!(SEEN.load(Ordering::Relaxed), 4);
    assert!(!library.supports(legacy::function::cuMemsetD8));
}

#[test]
fn resolver_without_init_is_not_a_driver() {
    // SAFETY: it resolves nothing.
    let error = unsafe { Library::from_resolver("an empty resolver", |_| ptr::null()) };
    let error = error.expect_err("it has no cuInit").to_string();
    assert_eq!(
        error,
        "no CUDA driver could be loaded: an empty resolver: not a CUDA driver: it has no cuInit"
    );
}

#[test]
fn resolver_has_state_and_a_name() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let resolver = move |symbol: &CStr| {
        seen.lock().expect("no test panics").push(symbol.to_owned());
        resolve(symbol)
    };
    let number = 7;
    // SAFETY: the functions above have the ABI of the exports that they replace.
    let library = unsafe { Library::from_resolver(format!("driver {number}"), resolver) }.expect("it has cuInit");
    assert_eq!(library.description().as_deref(), Some("driver 7"));
    assert!(library.supports(Function::cuMemsetD8));
    assert_eq!(*asked.lock().expect("no test panics"), [c"cuInit", c"cuMemsetD8_v2"]);
}

#[test]
fn an_unknown_version_is_queried_once() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "system" fn nothing(version: *mut c_int) -> CUresult {
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the library passes a pointer to an integer.
        unsafe { version.write(0) };
        CUresult::CUDA_SUCCESS
    }
    let resolver = |symbol: &CStr| match symbol.to_bytes() {
        b"cuDriverGetVersion" => nothing as *const c_void,
        _ => resolve(symbol),
    };
    // SAFETY: the functions have the ABI of the exports that they replace.
    let library = unsafe { Library::from_resolver("a forked driver", resolver) }.expect("it has cuInit");
    assert_eq!(library.version(), None);
    assert_eq!(library.version(), None);
    library.note_version();
    assert_eq!(library.known_version(), None);
    assert_eq!(ASKED.load(Ordering::Relaxed), 1);
}

#[test]
fn registry_has_all_exports() {
    assert_eq!(Function::ALL.len(), 685);
    assert_eq!(Function::ALL.iter().filter(|f| f.is_legacy()).count(), 70);
    assert_eq!(Function::cuMemAlloc, Function::cuMemAlloc_v2);
    assert_eq!(Function::by_name("cuMemAlloc"), Some(Function::cuMemAlloc_v2));
    assert_eq!(Function::by_symbol("cuMemAlloc"), Some(legacy::function::cuMemAlloc));
    for &function in Function::ALL {
        assert_eq!(Function::by_symbol(function.name()), Some(function));
        assert_eq!(Function::from_index(function.index()), Some(function));
    }
}

mod table {
    //! The table of functions, used from another crate.

    use core::ffi::*;

    use cuda_driver_sys::*;

    macro_rules! exports {
        ([$answer:literal] $($symbol:ident ($($parameter:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
            mod exported {
                use super::*;
                $(pub(super) unsafe extern "system" fn $symbol($($parameter: $ty),*) -> CUresult { CUresult($answer) })*
            }

            /// Returns the address of an export.
            fn resolve(name: &CStr) -> *const c_void {
                match name.to_bytes() {
                    $(bytes if bytes == stringify!($symbol).as_bytes() => exported::$symbol as *const c_void,)*
                    _ => core::ptr::null(),
                }
            }
        };
    }
    for_each_function! { exports 801 }

    #[test]
    fn gives_every_export_to_other_crates() {
        // SAFETY: the functions have the types from the table.
        let library = unsafe { Library::from_resolver("all exports", resolve) }.expect("it has cuInit");
        assert!(Function::ALL.iter().all(|function| library.supports(*function)));
        // SAFETY: the function ignores its arguments.
        let code = unsafe { library.cuCtxSynchronize() };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
}
