//! The C ABI: every exported function of `cuda.h`, with its exact type.
//!
//! An export converts and checks its arguments and calls the [`driver`](crate::driver) room; no panic leaves it. The
//! exports that do something are written in the files of this room, one per group of the manual, with the macro
//! [`exports!`]; each becomes an inherent constant of [`Table`]. For every symbol of the registry the trait [`Stubs`] has a
//! constant of the same name, a function that answers `CUDA_ERROR_NOT_SUPPORTED`. So `Table::cuInit` is the written
//! function where there is one and else the stub, and the compiler checks that both have the type of `cuda.h`.

mod args;
mod context;
mod copy;
mod device;
mod event;
mod function;
mod image;
mod launch;
mod library;
mod memory;
mod memset;
mod module;
mod occupancy;
mod process;
mod real;
mod stream;
mod table;

pub use real::REAL;
pub use table::{Stubs, Table, resolve, set_exports};

use crate::driver::error::{Error, Result};
use cuda_driver_sys::CUresult;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an export: a panic becomes `CUDA_ERROR_UNKNOWN`.
pub(crate) fn guard(name: &str, body: impl FnOnce() -> Result<()>) -> CUresult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        Ok(Err(error)) => {
            if error != Error::NOT_READY {
                crate::log!("{name}: {error:?}");
            }
            CUresult(error.0)
        }
        Err(_) => {
            crate::log!("{name}: a panic inside the driver, see above");
            CUresult(Error::UNKNOWN.0)
        }
    }
}

/// Defines exports:
///
/// ```text
/// fn cuStreamQuery | cuStreamQuery_ptsz [c, mode] (hStream: CUstream) { …body… }
/// ```
///
/// The name after `|` is the per-thread twin, names after `=` are older exports of the same type; all have the same body. In the body, which is a `Result<()>`, the first name
/// in brackets is the [`Caller`](args::Caller), through which pointers are read and written; the second, if there is one, is
/// the [`Mode`](crate::driver::stream::Mode) that says what the NULL stream means.
macro_rules! exports {
    (@one $name:ident $which:ident [$caller:ident $(, $mode:ident)?] ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        impl $crate::abi::Table {
            #[allow(missing_docs, non_upper_case_globals)]
            pub const $name: unsafe extern "system" fn($($ty),*) -> cuda_driver_sys::CUresult = {
                #[allow(non_snake_case)]
                unsafe extern "system" fn $name($($arg: $ty),*) -> cuda_driver_sys::CUresult {
                    // SAFETY: whoever calls an export of the driver vouches for its pointers, as the manual asks.
                    let $caller = unsafe { $crate::abi::args::Caller::new() };
                    let _ = $caller;
                    $(let $mode = $crate::driver::stream::Mode::$which;)?
                    $crate::abi::guard(stringify!($name), move || -> $crate::driver::error::Result<()> { $body })
                }
                $name
            };
        }
    };
    (@twin [] $context:tt $args:tt $body:block) => {};
    (@twin [$twin:ident] $context:tt $args:tt $body:block) => {
        $crate::abi::exports!(@one $twin PerThread $context $args $body);
    };
    (@older [] $context:tt $args:tt $body:block) => {};
    (@older [$older:ident $($rest:ident)*] $context:tt $args:tt $body:block) => {
        $crate::abi::exports!(@one $older Legacy $context $args $body);
        $crate::abi::exports!(@older [$($rest)*] $context $args $body);
    };
    () => {};
    (fn $name:ident $(| $twin:ident)? $(= $older:ident)* [$($context:ident),+] ($($args:tt)*) $body:block $($rest:tt)*) => {
        $crate::abi::exports!(@one $name Legacy [$($context),+] ($($args)*) $body);
        $crate::abi::exports!(@twin [$($twin)?] [$($context),+] ($($args)*) $body);
        $crate::abi::exports!(@older [$($older)*] [$($context),+] ($($args)*) $body);
        $crate::abi::exports!($($rest)*);
    };
}
pub(crate) use exports;
