//! The variants that are compared.

use core::ffi::c_void;
use core::ptr;

use cuda_driver::{Borrowed, DevicePtr, Function, LaunchConfig, ParamBuffer, Stream, checked, sys};

use crate::measure::Variant;
use crate::quiet::Quiet;

const STREAM: sys::CUstream = ptr::without_provenance_mut(2);
const FUNCTION: sys::CUfunction = ptr::without_provenance_mut(1);

/// Makes the compiler believe that a value is used, in a register, and that memory may have changed: what the callers in C
/// do with an empty `asm`.
#[inline(always)]
fn observe(value: u64) {
    // SAFETY: no instruction.
    unsafe { core::arch::asm!("/* {0} */", in(reg) value, options(nostack, preserves_flags)) };
}

/// The value of a call that cannot fail here.
#[inline(always)]
fn good<T>(result: cuda_driver::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}

/// Every variant, those that are compared with each other together.
pub(crate) fn all(quiet: &Quiet) -> Vec<Variant> {
    let mut all = Vec::new();
    for (name, caller) in [
        ("version: C", "bench_version"),
        ("alloc: C", "bench_alloc"),
        ("launch: C, array made once", "bench_launch_once"),
        ("launch: C, array made each time", "bench_launch_each"),
    ] {
        let caller = quiet.caller(caller);
        all.push(Variant::new(name, move |rounds| {
            // SAFETY: it makes calls that do nothing.
            observe(unsafe { caller(rounds) }.into());
        }));
    }
    all.push(Variant::new("version: raw", |rounds| {
        let mut sum = 0;
        for _ in 0..rounds {
            let mut version = 0;
            // SAFETY: the pointer is to an integer of our own.
            sum += unsafe { sys::cuDriverGetVersion(&raw mut version) }.0;
            observe(version as u64);
        }
        observe(sum.into());
    }));
    all.push(Variant::new("version: checked", |rounds| {
        for _ in 0..rounds {
            // SAFETY: it takes nothing.
            observe(good(unsafe { checked::driver_get_version() }) as u64);
        }
    }));
    all.push(Variant::new("alloc: checked", |rounds| {
        for round in 0..rounds {
            // SAFETY: nothing is allocated.
            observe(good(unsafe { checked::mem_alloc(round) }));
        }
    }));
    launches(&mut all);
    all
}

fn function() -> Function {
    // SAFETY: nothing follows the handle.
    unsafe { Function::borrow_raw(FUNCTION) }
}

fn stream() -> Borrowed<'static, Stream> {
    // SAFETY: nothing follows the handle.
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
    all.push(Variant::new(
        "launch: raw, array made once",
        move |rounds| {
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
                let code = unsafe {
                    sys::cuLaunchKernel(FUNCTION, 196, 1, 1, 256, 1, 1, 0, STREAM, array, extra)
                };
                sum += code.0;
            }
            observe(sum.into());
        },
    ));
    all.push(Variant::new("launch: tuple", move |rounds| {
        let (function, stream) = (function(), stream());
        for round in 0..rounds {
            let arguments = (address(round as u64), address(2), address(3), 4u32);
            // SAFETY: nothing is launched.
            good(unsafe { function.launch(&stream, config(), arguments) });
        }
    }));
    all.push(Variant::new("launch: packed, filled once", move |rounds| {
        let (function, stream) = (function(), stream());
        let mut buffer = ParamBuffer::new();
        buffer
            .push(address(1))
            .push(address(2))
            .push(address(3))
            .push(4u32);
        for _ in 0..rounds {
            // SAFETY: nothing is launched.
            good(unsafe { function.launch(&stream, config(), &buffer) });
        }
    }));
    all.push(Variant::new(
        "launch: packed, filled each time",
        move |rounds| {
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
                good(unsafe { function.launch(&stream, config(), &buffer) });
            }
        },
    ));
}
