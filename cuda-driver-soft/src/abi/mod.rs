//! The C ABI: every exported function of `cuda.h`, with its exact type.
//!
//! An export converts its arguments and calls other modules; no panic leaves it. The implemented exports are in the
//! files of this module, by the objects that they work on, inside the macro [`exports!`]; each becomes an inherent
//! constant of [`Table`]. The trait [`Stubs`] has a constant of the same name for every symbol of `cuda.h`: a function
//! that returns `CUDA_ERROR_NOT_SUPPORTED` once the driver is initialised. So `Table::cuInit` is the implemented
//! function if there is one, else the stub, and the compiler checks both against their types in `cuda.h`.

mod args;
mod array;
mod batch;
mod capture;
mod context;
mod copy;
mod device;
mod event;
mod external;
mod function;
mod graph;
mod graph_exec;
mod graph_nodes;
mod graphics;
mod green;
mod image;
mod implemented;
mod ipc;
mod launch;
mod library;
mod link;
mod logs;
mod managed;
mod memory;
mod memory_operation;
mod memset;
mod module;
mod node_params;
mod node_structures;
mod occupancy;
mod pool;
mod process;
mod rect;
mod reference;
mod resolve;
mod semaphore;
mod sparse;
mod stream;
mod stream_attribute;
mod table;
mod tensor_map;
mod texture;
mod undocumented;
mod virtual_memory;

pub use implemented::IMPLEMENTED;
pub use resolve::{resolve, set_exports};
pub use table::{Stubs, Table, note_newer};

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_driver_sys::CUresult;

use crate::state::error::{Error, Result};
use crate::state::gate;
use crate::trace;

/// The bodies of the implemented exports, as associated functions named by their symbols. The variants of an export
/// share its body.
struct Bodies;

/// The conditions under which an export may be called.
#[derive(Clone, Copy)]
pub(crate) enum CallTime {
    /// At any time: before `cuInit`, in host functions and after a fault.
    Anytime,
    /// After `cuInit`, but not in a host function.
    Initialised,
    /// After `cuInit`, also in a host function.
    InHostFunctions,
    /// As [`CallTime::Initialised`], and not after a fault was reported.
    Healthy,
}

/// Runs the body of an export, and records the call if calls are recorded. All implemented exports share this function:
/// there are about 600, and a copy of this code in each would make the crate slow to build.
///
/// # Safety
/// `arguments` must have one pointer for each parameter in `cuda.h`, to a value of the parameter's type. If the call
/// succeeds, pointers among these values must be as the manual requires.
pub(crate) unsafe fn run(
    name: &'static str,
    when: CallTime,
    arguments: &[*const c_void],
    body: &mut dyn FnMut() -> Result<()>,
) -> CUresult {
    if !trace::on() {
        return guard(name, when, body);
    }
    // SAFETY: upheld by the caller.
    let call = unsafe { trace::Call::begin(name, arguments) };
    let result = guard(name, when, body);
    // SAFETY: upheld by the caller.
    unsafe { call.end(result) };
    result
}

/// Runs the body of an export if the export may be called now; a panic becomes `CUDA_ERROR_UNKNOWN`. Failures are
/// logged, except for `CUDA_ERROR_NOT_READY`, which is a normal result of queries.
fn guard(name: &str, when: CallTime, body: &mut dyn FnMut() -> Result<()>) -> CUresult {
    let checked = || {
        match when {
            CallTime::Anytime => {}
            CallTime::InHostFunctions => gate::initialised()?,
            CallTime::Initialised => gate::outside_host_functions()?,
            CallTime::Healthy => {
                gate::outside_host_functions()?;
                gate::healthy()?;
            }
        }
        body()
    };
    match catch_unwind(AssertUnwindSafe(checked)) {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        Ok(Err(Error::CUDA_ERROR_NOT_READY)) => Error::CUDA_ERROR_NOT_READY,
        Ok(Err(error)) => {
            log_result(name, error);
            error
        }
        Err(_) => {
            host::log!("{name}: internal error: a panic in the driver; its message is on standard error");
            log_result(name, Error::CUDA_ERROR_UNKNOWN);
            Error::CUDA_ERROR_UNKNOWN
        }
    }
}

/// Writes the result of a failed call to the log. The call holds no locks any more, so its messages are passed to the
/// callbacks that `cuLogsRegisterCallback` registered.
#[cold]
fn log_result(function: &str, result: CUresult) {
    host::write_result(function, result.0, result.name().unwrap_or("unknown"));
    let _ = catch_unwind(host::messages::deliver);
}

/// Defines exports:
///
/// ```text
/// fn cuStreamQuery | cuStreamQuery_ptsz [c, mode] (hStream: CUstream) { …body… }
/// ```
///
/// The name after `|` is the variant for the per-thread default stream, and names after `=` are older exports of the
/// same type. All share one body, which is a `Result<()>` and becomes a function of [`Bodies`]. The first name in
/// brackets is the [`Caller`](args::Caller), which reads and writes through pointers; the second, if there is one, is
/// the [`NullStream`](crate::object::stream::NullStream).
///
/// The gate is checked before the body runs: an `anytime fn` may be called before `cuInit`, an `inside fn` in a host
/// function, and a `healthy fn` returns the fault after one was reported. An export that must check something else
/// before the fault is a plain `fn`, and checks the fault in its body.
macro_rules! exports {
    (
        @body $name:ident [$caller:ident $(, $mode:ident)?] ($($arg:ident: $ty:ty),* $(,)?) $body:block
    ) => {
        impl $crate::abi::Bodies {
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments)]
            fn $name(
                $caller: $crate::abi::args::Caller,
                $($mode: $crate::object::stream::NullStream,)?
                $($arg: $ty),*
            ) -> $crate::state::error::Result<()> $body
        }
    };
    (
        @one $when:ident $base:ident $name:ident $which:ident [$caller:ident $(, $mode:ident)?]
        ($($arg:ident: $ty:ty),* $(,)?)
    ) => {
        impl $crate::abi::Table {
            #[allow(missing_docs, non_upper_case_globals)]
            pub const $name: unsafe extern "system" fn($($ty),*) -> cuda_driver_sys::CUresult = {
                #[allow(non_snake_case)]
                unsafe extern "system" fn $name($($arg: $ty),*) -> cuda_driver_sys::CUresult {
                    let arguments = [$((&raw const $arg).cast::<std::ffi::c_void>()),*];
                    // SAFETY: one pointer for each parameter, to a value of its type, which the compiler checks against
                    // `cuda.h`. The caller of an export promises that its pointers are as the manual requires.
                    unsafe {
                        let $caller = $crate::abi::args::Caller::new();
                        $(let $mode = $crate::object::stream::NullStream::$which;)?
                        $crate::abi::run(stringify!($name), $crate::abi::CallTime::$when, &arguments, &mut || {
                            $crate::abi::Bodies::$base($caller, $($mode,)? $($arg),*)
                        })
                    }
                }
                $name
            };
        }
    };
    (@twin $when:ident $base:ident [] $context:tt $args:tt) => {};
    (@twin $when:ident $base:ident [$twin:ident] $context:tt $args:tt) => {
        $crate::abi::exports!(@one $when $base $twin PerThread $context $args);
    };
    (@older $when:ident $base:ident [] $context:tt $args:tt) => {};
    (@older $when:ident $base:ident [$older:ident $($rest:ident)*] $context:tt $args:tt) => {
        $crate::abi::exports!(@one $when $base $older Legacy $context $args);
        $crate::abi::exports!(@older $when $base [$($rest)*] $context $args);
    };
    (
        @fn $when:ident $name:ident $(| $twin:ident)? $(= $older:ident)* [$($context:ident),+]
        ($($args:tt)*) $body:block $($rest:tt)*
    ) => {
        $crate::abi::exports!(@body $name [$($context),+] ($($args)*) $body);
        $crate::abi::exports!(@one $when $name $name Legacy [$($context),+] ($($args)*));
        $crate::abi::exports!(@twin $when $name [$($twin)?] [$($context),+] ($($args)*));
        $crate::abi::exports!(@older $when $name [$($older)*] [$($context),+] ($($args)*));
        $crate::abi::exports!($($rest)*);
    };
    () => {};
    (anytime fn $($rest:tt)*) => {
        $crate::abi::exports!(@fn Anytime $($rest)*);
    };
    (healthy fn $($rest:tt)*) => {
        $crate::abi::exports!(@fn Healthy $($rest)*);
    };
    (inside fn $($rest:tt)*) => {
        $crate::abi::exports!(@fn InHostFunctions $($rest)*);
    };
    (fn $($rest:tt)*) => {
        $crate::abi::exports!(@fn Initialised $($rest)*);
    };
}
pub(crate) use exports;
