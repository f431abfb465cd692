//! What a call does, once for every number of parameters; the types are those of the arguments.
//!
//! A slot holds a function of the driver or null. A call through a full slot is one load, one test and the call; a
//! null slot takes the cold path of `library/resolve.rs`, which finds the function, or asks the interposer, or
//! answers a code. Nothing is ever called through a type that is not its own.
//!
//! All of this is generic, so that it becomes code where it is called, once for each list of types, and none in this crate.

use core::ffi::c_void;
use core::mem::transmute;

use crate::{CUresult, Function, Library};

/// The arguments of a call: a tuple.
pub(super) trait Arguments {
    /// Calls an export through its slot.
    ///
    /// # Safety
    /// The types are those that `cuda.h` gives the parameters of `function`, so `Copy`, which is not asked for because it
    /// takes long to compile; as the call's.
    unsafe fn call(self, library: &Library, function: Function) -> CUresult;
}

macro_rules! arguments {
    ($(($($ty:ident $arg:ident)*))*) => {
        $(
            impl<$($ty),*> Arguments for ($($ty,)*) {
                #[inline(always)]
                unsafe fn call(self, library: &Library, function: Function) -> CUresult {
                    /// The call through a null slot, out of line: the code at the call site stays small, and no argument
                    /// has an address there, which would force it into memory on the other path too.
                    ///
                    /// # Safety
                    /// As the call's.
                    #[cold]
                    #[inline(never)]
                    #[allow(unused_mut, clippy::too_many_arguments)]
                    unsafe fn unresolved<$($ty),*>(
                        library: &Library,
                        function: Function
                        $(, mut $arg: $ty)*
                    ) -> CUresult {
                        let mut arguments = [$((&raw mut $arg).cast::<c_void>()),*];
                        // SAFETY: `invoke` is made for the types of these arguments, which are the function's.
                        unsafe { library.call_unresolved(function, &mut arguments, invoke::<$($ty),*>) }
                    }

                    /// Calls `function` with what the pointers point to.
                    ///
                    /// # Safety
                    /// `function` is an export with parameters of these types; the pointers are its arguments' own.
                    #[allow(unused_assignments, unused_mut, unused_variables)]
                    unsafe fn invoke<$($ty),*>(
                        function: *const c_void,
                        mut arguments: *const *mut c_void,
                    ) -> CUresult {
                        // SAFETY: the caller says that it is an export of this type.
                        let function = unsafe {
                            transmute::<*const c_void, unsafe extern "system" fn($($ty),*) -> CUresult>(function)
                        };
                        $(
                            // SAFETY: the caller says that the pointers are the arguments', in order.
                            let $arg = unsafe { arguments.read().cast::<$ty>().read() };
                            // SAFETY: there is a pointer for each argument, so this is at most one past the last.
                            arguments = unsafe { arguments.add(1) };
                        )*
                        // SAFETY: the caller of the method keeps the contract of the call.
                        unsafe { function($($arg),*) }
                    }

                    let ($($arg,)*) = self;
                    let pointer = library.slot(function);
                    if pointer.is_null() {
                        // SAFETY: the caller keeps the contract.
                        return unsafe { unresolved(library, function $(, $arg)*) };
                    }
                    // SAFETY: a slot holds null or the export of that name, and the caller says that this is the type that
                    // `cuda.h` gives it.
                    let function = unsafe {
                        transmute::<*mut c_void, unsafe extern "system" fn($($ty),*) -> CUresult>(pointer)
                    };
                    // SAFETY: the caller keeps the contract of the call.
                    unsafe { function($($arg),*) }
                }
            }
        )*
    };
}

// A function has 16 at most today; a header that is newer may bring more.
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
