//! The calls: a method of [`Library`] and a free function for every name. Each forwards to `calls/arity.rs`.

mod arity;

use core::ffi::*;

use self::arity::Arguments as _;
use crate::library::Legacy;
use crate::{CUresult, Function, Library};
#[allow(clippy::wildcard_imports)]
use crate::{generated::enumerations::*, generated::records::*};

macro_rules! define {
    ([]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $odoc:literal $oat:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $ldoc:literal $lat:literal;)* }
        plain { $($plain:ident = $target:ident ($($pp:ident: $pt:ty),*) $pdoc:literal;)* }
    ) => {
        /// The driver's functions. In a library with
        /// [per-thread default streams](crate::library::Options::per_thread_default_stream), unsuffixed names call
        /// their per-thread twins; `_ptds` and `_ptsz` names always call the export of that name.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Library {
            $(
                #[doc = $odoc]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $own(&self, $($op: $ot),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { ($($op,)*).call(self, Function::$own) }
                }
            )*
            $(
                #[doc = $pdoc]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $plain(&self, $($pp: $pt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { ($($pp,)*).call(self, Function::$target) }
                }
            )*
        }

        /// The exports of [`legacy`](crate::legacy), as methods.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Legacy {
            $(
                #[doc = $ldoc]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $old(&self, $($lp: $lt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { ($($lp,)*).call(&self.0, crate::legacy::function::$old) }
                }
            )*
        }

        /// The free functions: calls to [`DEFAULT`](crate::DEFAULT).
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) mod free {
            use super::*;
            use crate::library::DEFAULT;
            $(
                #[doc = $odoc]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $own($($op: $ot),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { ($($op,)*).call(&DEFAULT, Function::$own) }
                }
            )*
            $(
                #[doc = $pdoc]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $plain($($pp: $pt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { ($($pp,)*).call(&DEFAULT, Function::$target) }
                }
            )*
        }

        /// The free functions of [`legacy`](crate::legacy).
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub(crate) mod old {
            use super::*;
            use crate::library::DEFAULT;
            $(
                #[doc = $ldoc]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $old($($lp: $lt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { ($($lp,)*).call(&DEFAULT, crate::legacy::function::$old) }
                }
            )*
        }
    };
}
api_table! { define; }
