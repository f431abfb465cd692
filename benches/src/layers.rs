//! The variants of calls that the benchmark compares: raw, checked, through objects, and through a plain pointer.

use core::ffi::c_void;
use core::ptr;

use cuda_driver::{Borrowed, DevicePtr, Function, LaunchConfig, ParamBuffer, Stream, checked, sys};

use crate::measure::Variant;
use crate::quiet::Quiet;

const STREAM: sys::CUstream = ptr::without_provenance_mut(2);
const FUNCTION: sys::CUfunction = ptr::without_provenance_mut(1);

/// Makes the compiler assume that a value is used, in a register, and that memory may have changed, as
/// `asm volatile("" : : "r"(value) : "memory")` does in C.
#[inline(always)]
fn observe(value: u64) {
    // SAFETY: the text contains no instruction.
    unsafe { core::arch::asm!("/* {0} */", in(reg) value, options(nostack, preserves_flags)) };
}

/// Returns the value of a call that cannot fail here.
#[inline(always)]
fn expect_ok<T>(result: cuda_driver::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Returns every variant, those that call through plain pointers first.
pub(crate) fn all(quiet: &Quiet) -> Vec<Variant> {
    let mut all = Vec::new();
    pointers::all(quiet, &mut all);
    all.push(Variant::new("version: raw", |rounds| {
        let mut sum = 0;
        for _ in 0..rounds {
            let mut version = 0;
            // SAFETY: the pointer is to a local integer.
            sum += unsafe { sys::cuDriverGetVersion(&raw mut version) }.0;
            observe(version as u64);
        }
        observe(sum.into());
    }));
    all.push(Variant::new("version: checked", |rounds| {
        for _ in 0..rounds {
            // SAFETY: no preconditions.
            observe(expect_ok(unsafe { checked::driver_get_version() }) as u64);
        }
    }));
    all.push(Variant::new("version: checked, out of line", |rounds| {
        #[inline(never)]
        fn version() -> cuda_driver::Result<i32> {
            // SAFETY: no preconditions.
            unsafe { checked::driver_get_version() }
        }
        for _ in 0..rounds {
            observe(expect_ok(version()) as u64);
        }
    }));
    all.push(Variant::new("synchronize: raw and tested, out of line", |rounds| {
        #[cold]
        #[inline(never)]
        fn failed(code: sys::CUresult) {
            observe(code.0.into());
        }
        #[inline(never)]
        fn synchronize(stream: sys::CUstream) -> bool {
            // SAFETY: the function of `quiet.c` reads no arguments.
            let code = unsafe { sys::cuStreamSynchronize(stream) };
            if code != sys::CUresult::CUDA_SUCCESS {
                failed(code);
            }
            code == sys::CUresult::CUDA_SUCCESS
        }
        for _ in 0..rounds {
            assert!(synchronize(STREAM));
        }
    }));
    all.push(Variant::new("synchronize: checked, out of line", |rounds| {
        #[inline(never)]
        fn synchronize(stream: sys::CUstream) -> cuda_driver::Result<()> {
            // SAFETY: the function of `quiet.c` reads no arguments.
            unsafe { checked::stream_synchronize(stream) }
        }
        for _ in 0..rounds {
            expect_ok(synchronize(STREAM));
        }
    }));
    all.push(Variant::new("alloc: checked", |rounds| {
        for round in 0..rounds {
            // SAFETY: nothing is allocated.
            observe(expect_ok(unsafe { checked::mem_alloc(round) }));
        }
    }));
    launches(&mut all);
    all
}

/// The calls of a C program that finds functions with `dlsym`: through a pointer in a variable.
///
/// The callers are not compiled from C, because they must be in the same code as the other callers: the distance
/// between a caller and the function that it calls changes the time of a call by up to three cycles.
mod pointers {
    use core::sync::atomic::{AtomicPtr, Ordering};

    use super::*;

    type Version = unsafe extern "C" fn(*mut i32) -> u32;
    type Alloc = unsafe extern "C" fn(*mut u64, usize) -> u32;
    type Launch = unsafe extern "C" fn(
        *mut c_void,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        u32,
        *mut c_void,
        *mut *mut c_void,
        *mut *mut c_void,
    ) -> u32;

    static VERSION: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    static ALLOC: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    static LAUNCH: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

    /// Calls `cuLaunchKernel` through `LAUNCH`, without checking that the pointer is set.
    ///
    /// # Safety
    /// `LAUNCH` must be set.
    #[inline(always)]
    unsafe fn launch(array: *mut *mut c_void) -> u32 {
        let (function, stream) = (FUNCTION.cast(), STREAM.cast());
        // SAFETY: the function of `quiet.c` has this type, and does nothing.
        unsafe {
            let launch = core::mem::transmute::<*mut c_void, Launch>(LAUNCH.load(Ordering::Relaxed));
            launch(function, 196, 1, 1, 256, 1, 1, 0, stream, array, ptr::null_mut())
        }
    }

    pub(super) fn all(quiet: &Quiet, all: &mut Vec<Variant>) {
        for (variable, name) in [
            (&VERSION, "cuDriverGetVersion"),
            (&ALLOC, "cuMemAlloc_v2"),
            (&LAUNCH, "cuLaunchKernel"),
        ] {
            variable.store(quiet.function(name), Ordering::Relaxed);
        }
        all.push(Variant::new("version: pointer", |rounds| {
            let mut sum = 0;
            for _ in 0..rounds {
                let mut version = 0;
                let function = VERSION.load(Ordering::Relaxed);
                // SAFETY: the function of `quiet.c` has this type, and the pointer is to a local integer.
                sum += unsafe { core::mem::transmute::<*mut c_void, Version>(function)(&raw mut version) };
                observe(version as u64);
            }
            observe(sum.into());
        }));
        all.push(Variant::new("alloc: pointer", |rounds| {
            let mut sum = 0;
            for round in 0..rounds {
                let mut address = 0;
                let function = ALLOC.load(Ordering::Relaxed);
                // SAFETY: the function of `quiet.c` has this type, and the pointer is to a local integer.
                sum += unsafe { core::mem::transmute::<*mut c_void, Alloc>(function)(&raw mut address, round) };
                observe(address);
            }
            observe(sum.into());
        }));
        all.push(Variant::new("launch: pointer, array made once", |rounds| {
            let (mut a, mut b, mut c, mut n) = (1u64, 2u64, 3u64, 4u32);
            let mut params: [*mut c_void; 4] = [
                (&raw mut a).cast(),
                (&raw mut b).cast(),
                (&raw mut c).cast(),
                (&raw mut n).cast(),
            ];
            let mut sum = 0;
            for _ in 0..rounds {
                // SAFETY: `LAUNCH` was set above.
                sum += unsafe { launch(params.as_mut_ptr()) };
            }
            observe(sum.into());
        }));
        all.push(Variant::new("launch: pointer, array made each time", |rounds| {
            let mut sum = 0;
            for round in 0..rounds {
                let (mut a, mut b, mut c, mut n) = (round as u64, 2u64, 3u64, 4u32);
                let mut params: [*mut c_void; 4] = [
                    (&raw mut a).cast(),
                    (&raw mut b).cast(),
                    (&raw mut c).cast(),
                    (&raw mut n).cast(),
                ];
                // SAFETY: `LAUNCH` was set above.
                sum += unsafe { launch(params.as_mut_ptr()) };
            }
            observe(sum.into());
        }));
    }
}

fn function() -> Function {
    // SAFETY: the driver does not dereference the handle.
    unsafe { Function::borrow_raw(FUNCTION) }
}

fn stream() -> Borrowed<'static, Stream> {
    // SAFETY: the driver does not dereference the handle.
    unsafe { Stream::borrow_raw(STREAM) }
}

fn config() -> LaunchConfig {
    LaunchConfig {
        grid: 196.into(),
        block: 256.into(),
        dynamic_shared_bytes: 0,
    }
}

fn launches(all: &mut Vec<Variant>) {
    let address = DevicePtr::from_raw;
    all.push(Variant::new("launch: raw, array made once", move |rounds| {
        let (mut a, mut b, mut c, mut n) = (address(1), address(2), address(3), 4u32);
        let mut params: [*mut c_void; 4] = [
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut c).cast(),
            (&raw mut n).cast(),
        ];
        let mut sum = 0;
        for _ in 0..rounds {
            let (array, extra) = (params.as_mut_ptr(), ptr::null_mut());
            // SAFETY: nothing is launched.
            let code = unsafe { sys::cuLaunchKernel(FUNCTION, 196, 1, 1, 256, 1, 1, 0, STREAM, array, extra) };
            sum += code.0;
        }
        observe(sum.into());
    }));
    all.push(Variant::new("launch: tuple", move |rounds| {
        let (function, stream) = (function(), stream());
        for round in 0..rounds {
            let arguments = (address(round as u64), address(2), address(3), 4u32);
            // SAFETY: nothing is launched.
            expect_ok(unsafe { function.launch(&stream, config(), arguments) });
        }
    }));
    all.push(Variant::new("launch: array made once", move |rounds| {
        let (function, stream) = (function(), stream());
        let (mut a, mut b, mut c, mut n) = (address(1), address(2), address(3), 4u32);
        let params: [*mut c_void; 4] = [
            (&raw mut a).cast(),
            (&raw mut b).cast(),
            (&raw mut c).cast(),
            (&raw mut n).cast(),
        ];
        for _ in 0..rounds {
            // SAFETY: nothing is launched.
            expect_ok(unsafe { function.launch(&stream, config(), &params[..]) });
        }
    }));
    all.push(Variant::new("launch: packed, filled once", move |rounds| {
        let (function, stream) = (function(), stream());
        let mut buffer = ParamBuffer::new();
        buffer.push(address(1)).push(address(2)).push(address(3)).push(4u32);
        for _ in 0..rounds {
            // SAFETY: nothing is launched.
            expect_ok(unsafe { function.launch(&stream, config(), &buffer) });
        }
    }));
    all.push(Variant::new("launch: packed, filled each time", move |rounds| {
        let (function, stream) = (function(), stream());
        let mut buffer = ParamBuffer::new();
        for round in 0..rounds {
            buffer.clear();
            buffer
                .push(address(round as u64))
                .push(address(2))
                .push(address(3))
                .push(4u32);
            // SAFETY: nothing is launched.
            expect_ok(unsafe { function.launch(&stream, config(), &buffer) });
        }
    }));
}
