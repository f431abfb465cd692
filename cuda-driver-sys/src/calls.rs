//! The calls: a method of [`Library`] and a free function for every name. What a call does is in `calls/arity.rs`.

mod arity;

use core::ffi::*;

use self::arity::Arguments as _;
use crate::{CUresult, Function, Library};
#[allow(clippy::wildcard_imports)]
use crate::{generated::enumerations::*, generated::records::*};

macro_rules! define {
    ([]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $odoc:literal $oat:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $ldoc:literal $lat:literal;)* }
        plain { $($plain:ident = $target:ident ($($pp:ident: $pt:ty),*) $pdoc:literal;)* }
    ) => {
        /// One method per name. An unsuffixed name follows the library's
        /// [per-thread option](crate::library::Options::per_thread_default_stream) where it has a per-thread twin;
        /// the `_ptds` and `_ptsz` names call what they say.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Library {
            $(
                #[doc = $odoc]
                #[doc = "\nWithout a driver the answer is 303 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this \
                         export 302 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n# Safety\nAs in C: \
                         pointers, handles and sizes must be what the manual asks for."]
                #[inline]
                pub unsafe fn $own(&self, $($op: $ot),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the caller keeps the contract of the call.
                    unsafe { ($($op,)*).call(self, Function::$own) }
                }
            )*
            $(
                #[doc = $pdoc]
                #[doc = "\nWithout a driver the answer is 303 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this \
                         export 302 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n# Safety\nAs in C: \
                         pointers, handles and sizes must be what the manual asks for."]
                #[inline]
                pub unsafe fn $plain(&self, $($pp: $pt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the caller keeps the contract of the call.
                    unsafe { ($($pp,)*).call(self, Function::$target) }
                }
            )*
        }

        /// The exports of [`legacy`](crate::legacy), as methods.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Legacy {
            $(
                #[doc = $ldoc]
                #[doc = "\nWithout a driver the answer is 303 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this \
                         export 302 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n# Safety\nAs in C: \
                         pointers, handles and sizes must be what the manual asks for."]
                #[inline]
                pub unsafe fn $old(&self, $($lp: $lt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the caller keeps the contract of the call.
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
                #[doc = "\nWithout a driver the answer is 303 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this \
                         export 302 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n# Safety\nAs in C: \
                         pointers, handles and sizes must be what the manual asks for."]
                #[inline]
                pub unsafe fn $own($($op: $ot),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the caller keeps the contract of the call.
                    unsafe { ($($op,)*).call(&DEFAULT, Function::$own) }
                }
            )*
            $(
                #[doc = $pdoc]
                #[doc = "\nWithout a driver the answer is 303 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this \
                         export 302 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n# Safety\nAs in C: \
                         pointers, handles and sizes must be what the manual asks for."]
                #[inline]
                pub unsafe fn $plain($($pp: $pt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the caller keeps the contract of the call.
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
                #[doc = "\nWithout a driver the answer is 303 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`]), without this \
                         export 302 ([`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]).\n\n# Safety\nAs in C: \
                         pointers, handles and sizes must be what the manual asks for."]
                #[inline]
                pub unsafe fn $old($($lp: $lt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the caller keeps the contract of the call.
                    unsafe { ($($lp,)*).call(&DEFAULT, crate::legacy::function::$old) }
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
