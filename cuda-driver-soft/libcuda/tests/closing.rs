//! Tests of `dlclose`: like NVIDIA's driver, the library stays mapped once it is initialised. Its contexts and threads
//! continue to work after it is closed.

#![cfg(target_os = "linux")]
// The unsafe blocks call C functions with pointers to this test's own variables.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::null_mut;

const RTLD_NOW: c_int = 2;
const RTLD_NOLOAD: c_int = 4;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
}

/// A kernel in which each thread adds 1 to a word.
const PTX: &std::ffi::CStr = c".version 7.0
.target sm_52
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [p];
    atom.global.add.u32 %r, [%p], 1;
    ret;
}
";

/// Returns the function of a library with this name.
fn symbol<F: Copy>(library: *mut c_void, name: &str) -> F {
    let name = CString::new(name).unwrap();
    let address = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?}");
    assert_eq!(size_of::<F>(), size_of::<usize>());
    unsafe { std::mem::transmute_copy(&address) }
}

type Init = unsafe extern "system" fn(u32) -> u32;
type Create = unsafe extern "system" fn(*mut *mut c_void, u32, c_int) -> u32;
type Load = unsafe extern "system" fn(*mut *mut c_void, *const c_void) -> u32;
type Get = unsafe extern "system" fn(*mut *mut c_void, *mut c_void, *const c_char) -> u32;
type Alloc = unsafe extern "system" fn(*mut u64, usize) -> u32;
type Set = unsafe extern "system" fn(u64, u32, usize) -> u32;
type Read = unsafe extern "system" fn(*mut c_void, u64, usize) -> u32;
type Current = unsafe extern "system" fn(*mut c_void) -> u32;
type Synchronize = unsafe extern "system" fn() -> u32;
#[rustfmt::skip]
type Launch = unsafe extern "system" fn(
    *mut c_void, u32, u32, u32, u32, u32, u32, u32, *mut c_void, *mut *mut c_void, *mut *mut c_void,
) -> u32;

fn close_a_library_in_use() {
    let path = std::env::var(DRIVER).unwrap();
    let path = CString::new(path).unwrap();
    let open = |flags: c_int| unsafe { dlopen(path.as_ptr(), flags) };
    let close = |library| assert_eq!(unsafe { dlclose(library) }, 0);
    // The thread that initialises the driver has ended when the library is closed, so no pending destructor of its
    // thread locals keeps the library mapped.
    let library = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let library = open(RTLD_NOW);
            assert!(!library.is_null());
            assert_eq!(unsafe { symbol::<Init>(library, "cuInit")(0) }, 0);
            library as usize
        });
        first.join().unwrap()
    });
    close(library as *mut c_void);
    let library = open(RTLD_NOW | RTLD_NOLOAD);
    assert!(!library.is_null(), "unmapped");
    let launch: Launch = symbol(library, "cuLaunchKernel");
    let read: Read = symbol(library, "cuMemcpyDtoH_v2");
    let synchronize: Synchronize = symbol(library, "cuCtxSynchronize");
    let set_current: Current = symbol(library, "cuCtxSetCurrent");
    let (mut context, mut module, mut kernel, mut word) = (null_mut(), null_mut(), null_mut(), 0_u64);
    unsafe {
        assert_eq!(symbol::<Create>(library, "cuCtxCreate_v2")(&raw mut context, 0, 0), 0);
        assert_eq!(
            symbol::<Load>(library, "cuModuleLoadData")(&raw mut module, PTX.as_ptr().cast()),
            0
        );
        assert_eq!(
            symbol::<Get>(library, "cuModuleGetFunction")(&raw mut kernel, module, c"k".as_ptr()),
            0
        );
        assert_eq!(symbol::<Alloc>(library, "cuMemAlloc_v2")(&raw mut word, 4), 0);
        assert_eq!(symbol::<Set>(library, "cuMemsetD32_v2")(word, 0, 1), 0);
    }
    let (context, kernel) = (context as usize, kernel as usize);
    let work = move || {
        let mut argument = word;
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        unsafe {
            assert_eq!(set_current(context as *mut c_void), 0);
            for _ in 0..50 {
                let code = launch(
                    kernel as *mut c_void,
                    4,
                    1,
                    1,
                    64,
                    1,
                    1,
                    0,
                    null_mut(),
                    arguments.as_mut_ptr(),
                    null_mut(),
                );
                assert_eq!(code, 0);
            }
        }
    };
    work();
    let other = std::thread::spawn(work);
    // Kernels may be pending, and the driver's threads and the other thread may be in functions of the library.
    close(library);
    other.join().unwrap();
    work();
    let mut seen = 0_u32;
    unsafe {
        assert_eq!(synchronize(), 0);
        assert_eq!(read((&raw mut seen).cast(), word, 4), 0);
    }
    assert_eq!(seen, 3 * 50 * 4 * 64);
}

/// The variable with the path of the driver, in the child process.
const DRIVER: &str = "CUDA_DRIVER_SOFT_TEST_CLOSED_DRIVER";

#[test]
fn a_closed_library_continues_to_work() {
    if std::env::var_os(DRIVER).is_some() {
        return close_a_library_in_use();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_soft-cuda"))
        .arg("path")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_closed_library_continues_to_work", "--nocapture"])
        .env(DRIVER, folder.join("libcuda.so.1"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{}\n{text}\n{error}",
        output.status
    );
}
