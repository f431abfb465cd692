//! The cold path of a call: resolves the function and calls it through the interposers, or returns an error code.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use super::arguments::{Arguments, Invoke};
use super::error::LoadError;
use super::interposer::Call;
use super::nested::{self, INTERPOSING, RESOLVING};
use super::open::{Opened, SymbolProvider};
use super::proc_address;
use super::slots::Library;
use crate::{CUresult, Function};

impl Library {
    /// Opens the library if it is not open yet.
    pub(crate) fn opened(&self) -> Result<&Opened, &LoadError> {
        self.state.get(None)
    }

    /// Makes a call whose slot is null.
    ///
    /// # Safety
    /// `invoke` must have the signature of `function`, and the arguments must satisfy the contract of `function`.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn call_unresolved(
        &self,
        function: Function,
        arguments: &mut [*mut c_void],
        invoke: Invoke,
    ) -> CUresult {
        let Ok(opened) = self.state.get(Some(function)) else {
            return CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
        };
        if nested::holds(&RESOLVING, self) {
            // The resolver called its own library. Resolving this function as well could recurse forever.
            return CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
        }
        // SAFETY: the arguments are the function's, in the caller's frame.
        let arguments = unsafe { Arguments::new(function, arguments) };
        let gets_addresses = proc_address::is_get_proc_address(function);
        if opened.per_thread && gets_addresses {
            // SAFETY: the function is cuGetProcAddress.
            unsafe { proc_address::request_per_thread(arguments) };
        }
        let target = self.find(opened, function);
        if let Some(interposed) = &opened.interposed {
            if !nested::holds(&INTERPOSING, self) {
                let call = Call {
                    library: self,
                    opened,
                    function,
                    arguments,
                    target,
                    invoke,
                    rest: &interposed.hooks,
                };
                return nested::with(&INTERPOSING, self, || call.forward());
            }
        }
        if target.is_null() {
            return CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
        }
        // The slot stays null if every call must take this path.
        if opened.interposed.is_none() && !(opened.per_thread && gets_addresses) {
            self.slots[function.index()].store(target.cast_mut(), Ordering::Release);
        }
        // SAFETY: the target is the export that `invoke` has the signature of; the rest is upheld by the caller.
        unsafe { invoke(target, arguments.pointers()) }
    }

    /// Returns the export that calls of `function` go to: in a per-thread library its per-thread twin, if it has one.
    pub(crate) fn export_of(opened: &Opened, function: Function) -> Function {
        match function.per_thread() {
            Some(twin) if opened.per_thread => twin,
            _ => function,
        }
    }

    /// Returns the address of the export that calls of `function` go to, or null if it is missing or hidden.
    pub(crate) fn find(&self, opened: &Opened, function: Function) -> *const c_void {
        let known = opened
            .interposed
            .as_ref()
            .map(|interposed| &interposed.functions[function.index()]);
        let pointer = known.unwrap_or(&self.slots[function.index()]).load(Ordering::Acquire);
        if !pointer.is_null() {
            return pointer;
        }
        let export = Self::export_of(opened, function);
        if opened
            .interposed
            .as_ref()
            .is_some_and(|interposed| interposed.hides(function) || interposed.hides(export))
        {
            return ptr::null();
        }
        let found = self.look_up(opened, export.symbol());
        if let (Some(known), false) = (known, found.is_null()) {
            known.store(found.cast_mut(), Ordering::Release);
        }
        found
    }

    /// Returns the address of a symbol of the driver, or null. Functions that interposers hide are also found.
    pub(crate) fn look_up(&self, opened: &Opened, symbol: &CStr) -> *const c_void {
        match &opened.symbols {
            #[cfg(feature = "loader")]
            SymbolProvider::Object(object) => object.symbol(symbol),
            #[cfg(feature = "link")]
            SymbolProvider::Linked => super::linked::symbol(symbol),
            SymbolProvider::Resolver(resolver) => nested::with(&RESOLVING, self, || resolver(symbol)),
            SymbolProvider::Library(library) => match library.opened() {
                Ok(opened) => nested::with(&RESOLVING, self, || library.look_up(opened, symbol)),
                Err(_) => ptr::null(),
            },
        }
    }
}

impl Call<'_> {
    /// Forwards the call to the next interposer, and after the last to the driver. Returns
    /// [`CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`](CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) if the driver
    /// does not export the function or an interposer hides it.
    #[inline]
    pub fn forward(mut self) -> CUresult {
        if let Some((next, rest)) = self.rest.split_first() {
            self.rest = rest;
            return next.call(self);
        }
        if self.target.is_null() {
            return CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
        }
        let code = nested::without(&INTERPOSING, || {
            // SAFETY: the target is the export that `invoke` has the signature of. The arguments satisfy the contract
            // of the call, which is made once.
            unsafe { (self.invoke)(self.target, self.arguments.pointers()) }
        });
        if code == CUresult::CUDA_SUCCESS && proc_address::is_get_proc_address(self.function) {
            // SAFETY: these are the arguments of a call of cuGetProcAddress that succeeded.
            return unsafe { proc_address::replace_hidden(self.library, self.opened, self.arguments) };
        }
        code
    }
}
