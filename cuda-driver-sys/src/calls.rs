//! The calls: a method of [`Library`](crate::Library) and a free function for every name. Exports in
//! [`legacy`](crate::legacy) are methods of [`Legacy`](crate::library::Legacy) instead. Each call forwards to
//! `calls/arity.rs`.

pub(crate) mod arity;

/// Defines the calls. It is used in the crate's root, which has the names of all types; a module would have to import
/// them, and a crate's metadata lists what each module imports. The sentence about result codes and safety is repeated,
/// because a macro for it makes the compiled crate 100 KB larger.
macro_rules! functions {
    (
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $odoc:literal $opage:literal $ocall:ident;)* }
        types { $($type:ident)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $ldoc:literal $lpage:literal $lcall:ident;)* }
        plain { $($plain:ident = $target:ident ($($pp:ident: $pt:ty),*) $pdoc:literal $ppage:literal $pcall:ident;)* }
    ) => {
        /// The driver's functions. In a library with
        /// [per-thread default streams](crate::library::Options::per_thread_default_stream), unsuffixed names call
        /// their per-thread twins, where they have one; `_ptds` and `_ptsz` names always call the export of that name.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Library {
            $(
                #[doc = $odoc]
                #[doc = $opage]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $own(&self, $($op: $ot),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { calls::arity::$ocall(self, Function::$own $(, $op)*) }
                }
            )*
            $(
                #[doc = $pdoc]
                #[doc = $ppage]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $plain(&self, $($pp: $pt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { calls::arity::$pcall(self, Function::$target $(, $pp)*) }
                }
            )*
        }

        /// The exports of [`legacy`](crate::legacy), as methods.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl library::Legacy {
            $(
                #[doc = $ldoc]
                #[doc = $lpage]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $old(&self, $($lp: $lt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { calls::arity::$lcall(&self.0, legacy::function::$old $(, $lp)*) }
                }
            )*
        }

        $(
            #[doc = $odoc]
            #[doc = $opage]
            #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                     [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                     function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
            #[inline]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe fn $own($($op: $ot),*) -> CUresult {
                // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                unsafe { calls::arity::$ocall(&DEFAULT, Function::$own $(, $op)*) }
            }
        )*
        $(
            #[doc = $pdoc]
            #[doc = $ppage]
            #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                     [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                     function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
            #[inline]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe fn $plain($($pp: $pt),*) -> CUresult {
                // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                unsafe { calls::arity::$pcall(&DEFAULT, Function::$target $(, $pp)*) }
            }
        )*

        /// The free functions of [`legacy`](crate::legacy).
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod old {
            use core::ffi::*;

            use super::{CUresult, DEFAULT, calls, legacy, $($type),*};

            $(
                #[doc = $ldoc]
                #[doc = $lpage]
                #[doc = "\nReturns [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and \
                         [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the \
                         function.\n\n# Safety\nAs in C: pointers, handles and sizes must be valid as the manual requires."]
                #[inline]
                pub unsafe fn $old($($lp: $lt),*) -> CUresult {
                    // SAFETY: these are the export's arguments; the rest is upheld by the caller.
                    unsafe { calls::arity::$lcall(&DEFAULT, legacy::function::$old $(, $lp)*) }
                }
            )*
        }
    };
}
