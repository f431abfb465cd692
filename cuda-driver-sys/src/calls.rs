//! The calls: a method of [`Library`] and a free function for every name.
//!
//! A slot holds a function of the driver or null. A call through a full slot is one load, one test and the call; a
//! null slot takes the cold path of `library/resolve.rs`, which finds the function, or asks the interposer, or
//! answers a code. Nothing is ever called through a type that is not its own.

use core::ffi::*;

use crate::{CUresult, Function, Library};
#[allow(clippy::wildcard_imports)]
use crate::{generated::enumerations::*, generated::records::*};

/// The body of a method: `$slot` names the constant of `$functions` that says which export is called.
macro_rules! call {
    ($library:expr, $function:expr, ($($arg:ident: $ty:ty),*)) => {{
        let pointer = $library.slot($function);
        if !pointer.is_null() {
            // SAFETY: a slot holds null or the export of that name, and this is the type that `cuda.h` gives it.
            let function: unsafe extern "system" fn($($ty),*) -> CUresult = unsafe { core::mem::transmute(pointer) };
            // SAFETY: the caller keeps the contract of the call.
            return unsafe { function($($arg),*) };
        }

        /// The call through a null slot, out of line: the code at the call site stays small, and no argument has an
        /// address there, which would force it into memory on the path above too.
        ///
        /// # Safety
        /// As the call's.
        #[cold]
        #[inline(never)]
        #[allow(unused_mut)]
        unsafe fn unresolved(library: &Library, $(mut $arg: $ty),*) -> CUresult {
            let mut arguments = [$((&raw mut $arg).cast::<c_void>()),*];
            // SAFETY: `invoke` is made for this function and these arguments.
            unsafe { library.call_unresolved($function, &mut arguments, invoke) }
        }

        /// Calls `function` with what the pointers point to.
        ///
        /// # Safety
        /// `function` is the export that this call names; the pointers are its arguments' own.
        #[allow(unused_assignments, unused_mut, unused_variables)]
        unsafe fn invoke(function: *const c_void, mut arguments: *const *mut c_void) -> CUresult {
            // SAFETY: the caller says that it is the export of that name; this is the type that `cuda.h` gives it.
            let function: unsafe extern "system" fn($($ty),*) -> CUresult = unsafe { core::mem::transmute(function) };
            $(
                // SAFETY: the caller says that the pointers are the arguments', in order.
                let $arg = unsafe { arguments.read().cast::<$ty>().read() };
                // SAFETY: there is a pointer for each argument, so this is at most one past the last.
                arguments = unsafe { arguments.add(1) };
            )*
            // SAFETY: the caller of the method keeps the contract of the call.
            unsafe { function($($arg),*) }
        }

        // SAFETY: the caller keeps the contract of the call.
        unsafe { unresolved($library, $($arg),*) }
    }};
}

/// The documentation of one call.
macro_rules! call_doc {
    ($name:expr, $rest:expr, $page:literal) => {
        concat!(
            "Calls `",
            $name,
            "`",
            $rest,
            ".\n\nWithout a driver the answer is 303 \
             ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this export 302 \
             ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n\
             [In the manual](https://docs.nvidia.com/cuda/cuda-driver-api/",
            $page,
            ".html)\n\n\
             # Safety\nAs in C: pointers, handles and sizes must be what the manual asks for."
        )
    };
}

macro_rules! define {
    ([]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $opage:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $lpage:literal;)* }
        plain { $($plain:ident = $target:ident ($($pp:ident: $pt:ty),*) $ppage:literal;)* }
    ) => {
        /// One method per name. An unsuffixed name follows the library's
        /// [per-thread option](crate::library::Options::per_thread_default_stream) where it has a per-thread twin;
        /// the `_ptds` and `_ptsz` names call what they say.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Library {
            $(
                #[doc = call_doc!(stringify!($own), concat!(", exported since CUDA version ", $osince), $opage)]
                #[inline]
                pub unsafe fn $own(&self, $($op: $ot),*) -> CUresult {
                    call!(self, Function::$own, ($($op: $ot),*))
                }
            )*
            $(
                #[doc = call_doc!(stringify!($target), concat!(", which C programs call `", stringify!($plain), "`"), $ppage)]
                #[inline]
                pub unsafe fn $plain(&self, $($pp: $pt),*) -> CUresult {
                    // SAFETY: the caller keeps the contract of the call.
                    unsafe { self.$target($($pp),*) }
                }
            )*
        }

        /// The exports of [`legacy`](crate::legacy), as methods.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Legacy {
            $(
                #[doc = call_doc!(stringify!($old), concat!(", exported since CUDA version ", $lsince), $lpage)]
                #[inline]
                pub unsafe fn $old(&self, $($lp: $lt),*) -> CUresult {
                    call!(&self.0, crate::legacy::Function::$old, ($($lp: $lt),*))
                }
            )*
        }

        /// The free functions: calls to [`DEFAULT`](crate::DEFAULT).
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) mod free {
            use super::*;
            use crate::library::DEFAULT;
            $(
                #[doc = call_doc!(stringify!($own), concat!(", exported since CUDA version ", $osince), $opage)]
                #[inline]
                pub unsafe fn $own($($op: $ot),*) -> CUresult {
                    // SAFETY: the caller keeps the contract of the call.
                    unsafe { DEFAULT.$own($($op),*) }
                }
            )*
            $(
                #[doc = call_doc!(stringify!($target), concat!(", which C programs call `", stringify!($plain), "`"), $ppage)]
                #[inline]
                pub unsafe fn $plain($($pp: $pt),*) -> CUresult {
                    // SAFETY: the caller keeps the contract of the call.
                    unsafe { DEFAULT.$target($($pp),*) }
                }
            )*
        }

        /// The free functions of [`legacy`](crate::legacy).
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) mod old {
            use super::*;
            use crate::library::DEFAULT;
            $(
                #[doc = call_doc!(stringify!($old), concat!(", exported since CUDA version ", $lsince), $lpage)]
                #[inline]
                pub unsafe fn $old($($lp: $lt),*) -> CUresult {
                    // SAFETY: the caller keeps the contract of the call.
                    unsafe { DEFAULT.legacy().$old($($lp),*) }
                }
            )*
        }
    };
}
api_table! { define; }

/// A [`Library`] seen through the exports whose own name means another export in C.
#[repr(transparent)]
#[derive(Debug)]
pub struct Legacy(Library);

impl Library {
    /// The exports of [`legacy`](crate::legacy), as methods.
    #[inline]
    #[must_use]
    pub const fn legacy(&self) -> &Legacy {
        // SAFETY: `Legacy` is a transparent wrapper of `Library`.
        unsafe { &*core::ptr::from_ref(self).cast::<Legacy>() }
    }
}
