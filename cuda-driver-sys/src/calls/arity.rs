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

/// The arguments of a call: a tuple.
pub(super) trait Arguments {
    /// Calls an export through its slot.
    ///
    /// # Safety
    /// The types must be the types of the parameters of `function` in `cuda.h`, and the contract of the call must hold.
    /// These types are `Copy`; the trait does not require it, because that bound is slow to compile.
    unsafe fn call(self, library: &Library, function: Function) -> CUresult;
}

macro_rules! arguments {
    ($(($($ty:ident $arg:ident)*))*) => {
        $(
            impl<$($ty),*> Arguments for ($($ty,)*) {
                #[inline(always)]
                unsafe fn call(self, library: &Library, function: Function) -> CUresult {
                    /// Makes a call whose slot is null. Out of line, to keep the code at the call site small and its
                    /// arguments in registers.
                    ///
                    /// # Safety
                    /// Same as `call`.
                    #[cold]
                    #[inline(never)]
                    #[allow(unused_mut, clippy::too_many_arguments)]
                    unsafe fn unresolved<$($ty),*>(
                        library: &Library,
                        function: Function
                        $(, mut $arg: $ty)*
                    ) -> CUresult {
                        let mut arguments = [$((&raw mut $arg).cast::<c_void>()),*];
                        // SAFETY: `invoke` has the types of these arguments, which are the function's.
                        unsafe { library.call_unresolved(function, &mut arguments, invoke::<$($ty),*>) }
                    }

                    /// Calls `function` with the values that the pointers point to.
                    ///
                    /// # Safety
                    /// `function` must be an export with parameters of these types, and each pointer must point to the
                    /// argument at its index.
                    #[allow(unused_assignments, unused_mut, unused_variables)]
                    unsafe fn invoke<$($ty),*>(
                        function: *const c_void,
                        mut arguments: *const *mut c_void,
                    ) -> CUresult {
                        // SAFETY: the caller guarantees that the export has this type.
                        let function = unsafe {
                            transmute::<*const c_void, unsafe extern "system" fn($($ty),*) -> CUresult>(function)
                        };
                        $(
                            // SAFETY: the caller guarantees that the pointers point to the arguments, in order.
                            let $arg = unsafe { arguments.read().cast::<$ty>().read() };
                            // SAFETY: there is one pointer for each argument, so the result is at most one past the
                            // end.
                            arguments = unsafe { arguments.add(1) };
                        )*
                        // SAFETY: the contract of the call is upheld by the caller of the method.
                        unsafe { function($($arg),*) }
                    }

                    let ($($arg,)*) = self;
                    let pointer = library.slot(function);
                    if pointer.is_null() {
                        // SAFETY: upheld by the caller.
                        return unsafe { unresolved(library, function $(, $arg)*) };
                    }
                    // SAFETY: a slot holds null or the export of its function, and the caller guarantees that the types
                    // are those in `cuda.h`.
                    let function = unsafe {
                        transmute::<*mut c_void, unsafe extern "system" fn($($ty),*) -> CUresult>(pointer)
                    };
                    // SAFETY: upheld by the caller.
                    unsafe { function($($arg),*) }
                }
            }
        )*
    };
}

// Functions of CUDA 13.5 have at most 16 parameters; newer headers may have more.
#[rustfmt::skip]
arguments! {
    ()
    (A a)
    (A a B b)
    (A a B b C c)
    (A a B b C c D d)
    (A a B b C c D d E e)
    (A a B b C c D d E e F f)
    (A a B b C c D d E e F f G g)
    (A a B b C c D d E e F f G g H h)
    (A a B b C c D d E e F f G g H h I i)
    (A a B b C c D d E e F f G g H h I i J j)
    (A a B b C c D d E e F f G g H h I i J j K k)
    (A a B b C c D d E e F f G g H h I i J j K k L l)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q S s)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q S s T t)
    (A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q S s T t U u)
}
