//! The software CUDA driver as a system library: exports the 685 symbols of `cuda.h`, the profiler and graphics symbols
//! that every driver has, and a marker.
//!
//! This is the only crate of the project that defines these symbols, and nothing may depend on it: the symbols would
//! become the program's own. `soft-cuda run PROGRAM…` puts the library's folder on the path of the system's loader.
// All output goes through `host::console`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

use std::ffi::*;

use cuda_driver_soft::{Marker, Stubs as _, Table, note_newer};
use cuda_driver_sys::*;

/// Programs and other copies of this driver in the process recognise the software driver by this symbol.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static cuda_driver_soft_marker: Marker = Marker::new();

/// The oldest version that `CUDA_SOFT_VERSION` accepts.
const OLDEST: u32 = 11_000;

macro_rules! export {
    ([] $($symbol:ident ($($arg:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
        $(
            #[doc = concat!("`", stringify!($symbol), "`, as in [C](https://docs.nvidia.com/cuda/cuda-driver-api/index.html).\n\n")]
            /// # Safety
            /// As in C: pointers and handles must be valid as the manual requires.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe extern "system" fn $symbol($($arg: $ty),*) -> CUresult {
                if $since > OLDEST {
                    note_newer(stringify!($symbol), $since);
                }
                // SAFETY: upheld by the caller.
                unsafe { (Table::$symbol)($($arg),*) }
            }
        )*

        /// Returns the exports, so that `cuGetProcAddress` returns the same addresses as the system's loader.
        fn exported() -> Vec<(&'static str, usize)> {
            let mut all = vec![$((stringify!($symbol), $symbol as *const () as usize),)*];
            all.extend(exported_undocumented());
            all
        }
    };
}
for_each_function! { export }

macro_rules! export_undocumented {
    ([$($own:ident $own_base:ident $own_since:literal $own_mode:literal;)*] $($symbol:ident $base:ident $since:literal $mode:literal;)*) => {
        export_undocumented! { $($own)* $($symbol)* }
    };
    ($($symbol:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($symbol), "`, which is not in `cuda.h`.\n\n")]
            /// # Safety
            /// As in C.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub unsafe extern "system" fn $symbol() -> CUresult {
                // SAFETY: the function reads no arguments.
                unsafe { (Table::$symbol)() }
            }
        )*

        /// Returns the exports that are not in `cuda.h`.
        fn exported_undocumented() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($symbol), $symbol as *const () as usize),)*]
        }
    };
}
cuda_driver_soft::for_each_undocumented! { export_undocumented }

/// The system's loader calls this function when it loads the library. It registers the exports.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        cuda_driver_soft::set_exports(exported, &cuda_driver_soft_marker);
    }
    at_load
};
