//! Calls through slots, one implementation for each number of parameters.
//!
//! A slot holds a function of the driver or null. A call through a non-null slot is one load, one test and the call. A
//! null slot takes the cold path in `library/resolve.rs`, which resolves the function, calls the interposers or returns
//! an error code. Functions are only called through their own type.
//!
//! Everything here is generic over the parameter types, so that the code is compiled in the calling crates, and only
//! for the signatures that they use.

use core::ffi::c_void;
use core::mem::transmute;

use crate::{CUresult, Function, Library};

macro_rules! calls {
    ($($call:ident $count:literal ($($ty:ident $arg:ident)*))*) => {
        $(
            /// Calls an export through its slot.
            ///
            /// # Safety
            /// The types must be the types of the parameters of `function` in `cuda.h`, and the contract of the call
            /// must hold.
            #[inline(always)]
            #[cfg_attr(feature = "bindgen", allow(dead_code))]
            #[allow(clippy::too_many_arguments)]
            pub(crate) unsafe fn $call<$($ty: Copy),*>(
                library: &Library,
                function: Function
                $(, $arg: $ty)*
            ) -> CUresult {
                /// Makes a call whose slot is null. Out of line, to keep the code at the call site small and its
                /// arguments in registers.
                ///
                /// # Safety
                /// Same as the outer function's.
                #[cold]
                #[inline(never)]
                #[allow(unused_mut, clippy::too_many_arguments)]
                unsafe fn unresolved<$($ty: Copy),*>(
                    library: &Library,
                    function: Function
                    $(, mut $arg: $ty)*
                ) -> CUresult {
                    let mut arguments = [$(&raw mut $arg as *mut c_void),*];
                    // SAFETY: `invoke` has the types of these arguments, which are the function's.
                    unsafe { library.call_unresolved(function, &mut arguments, invoke::<$($ty),*>) }
                }

                /// Calls `function` with the values that the pointers point to.
                ///
                /// # Safety
                /// `function` must be an export with parameters of these types, and each pointer must point to the
                /// argument at its index.
                unsafe fn invoke<$($ty: Copy),*>(
                    function: *const c_void,
                    arguments: *const *mut c_void,
                ) -> CUresult {
                    // SAFETY: the caller guarantees that the export has this type.
                    let function = unsafe {
                        transmute::<*const c_void, unsafe extern "system" fn($($ty),*) -> CUresult>(function)
                    };
                    // SAFETY: the caller guarantees one pointer for each argument.
                    let [$($arg),*] = unsafe { *(arguments as *const [*mut c_void; $count]) };
                    // SAFETY: the caller guarantees that the pointers point to the arguments, in order, and upholds the
                    // contract of the call.
                    unsafe { function($(*($arg as *const $ty)),*) }
                }

                let pointer = library.slot(function);
                if pointer.is_null() {
                    // SAFETY: upheld by the caller.
                    return unsafe { unresolved(library, function $(, $arg)*) };
                }
                // SAFETY: a slot holds null or the export of its function, and the caller guarantees that the types are
                // those in `cuda.h`.
                let function = unsafe {
                    transmute::<*mut c_void, unsafe extern "system" fn($($ty),*) -> CUresult>(pointer)
                };
                // SAFETY: upheld by the caller.
                unsafe { function($($arg),*) }
            }
        )*
    };
}

#[rustfmt::skip]
calls! {
    call_0 0 ()
    call_1 1 (A a)
    call_2 2 (A a B b)
    call_3 3 (A a B b C c)
    call_4 4 (A a B b C c D d)
    call_5 5 (A a B b C c D d E e)
    call_6 6 (A a B b C c D d E e F f)
    call_7 7 (A a B b C c D d E e F f G g)
    call_8 8 (A a B b C c D d E e F f G g H h)
    call_9 9 (A a B b C c D d E e F f G g H h I i)
    call_10 10 (A a B b C c D d E e F f G g H h I i J j)
    call_11 11 (A a B b C c D d E e F f G g H h I i J j K k)
    call_12 12 (A a B b C c D d E e F f G g H h I i J j K k L l)
    call_15 15 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o)
    call_16 16 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p)
}

// The numbers of parameters that no function of CUDA 13.5 has; functions of a newer header may have them. When the
// committed bindings get such a function, its line must move to the list above.
#[cfg(feature = "bindgen")]
#[rustfmt::skip]
calls! {
    call_13 13 (A a B b C c D d E e F f G g H h I i J j K k L l M m)
    call_14 14 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n)
    call_17 17 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q)
    call_18 18 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q S s)
    call_19 19 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q S s T t)
    call_20 20 (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q S s T t U u)
}
