//! The table of exports: every symbol of the registry with its function.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::beside;
use cuda_driver_sys::*;
#[allow(clippy::wildcard_imports)]
use std::ffi::*;

/// The exports, as constants named by their symbols: function pointers of the types of `cuda.h`.
#[derive(Clone, Copy, Debug)]
pub struct Table;

macro_rules! define {
    ([] $($symbol:ident ($($arg:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
        /// For every symbol a function that answers `CUDA_ERROR_NOT_SUPPORTED`; [`Table`] has inherent constants for those
        /// that do more.
        #[allow(missing_docs, non_upper_case_globals)]
        pub trait Stubs {
            $(const $symbol: unsafe extern "system" fn($($ty),*) -> CUresult = {
                #[allow(non_snake_case)]
                unsafe extern "system" fn $symbol($(_: $ty),*) -> CUresult {
                    not_supported(stringify!($symbol))
                }
                $symbol
            };)*
        }
        impl Stubs for Table {}

        /// What [`Table`] has under each symbol, where its type can be asked for.
        #[allow(missing_docs, non_snake_case)]
        #[derive(Debug)]
        pub(super) struct TypedTable {
            $(pub(super) $symbol: unsafe extern "system" fn($($ty),*) -> CUresult,)*
        }

        /// All exports. A written export whose type is not that of `cuda.h` does not compile here.
        pub(super) static EXPORTS: TypedTable = TypedTable { $($symbol: Table::$symbol,)* };

        /// (symbol, address of the export, whether it is more than a stub)
        fn list() -> Vec<(&'static str, usize, bool)> {
            vec![$((
                stringify!($symbol),
                EXPORTS.$symbol as usize,
                EXPORTS.$symbol as usize != <Table as Stubs>::$symbol as usize,
            ),)*]
        }
    };
}
for_each_function! { define }

/// The answer of a function that is not implemented; the log says so once.
pub(super) fn not_supported(symbol: &'static str) -> CUresult {
    if host::environment::log() {
        static SAID: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.contains(&symbol) {
            said.push(symbol);
            host::log!("{symbol} is not supported by the software driver");
        }
    }
    match crate::driver::process::driver_in_host_function() {
        Ok(_) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        Err(error) => CUresult(error.0),
    }
}

/// Addresses by symbol.
fn addresses() -> &'static HashMap<&'static str, usize> {
    static ADDRESSES: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    ADDRESSES.get_or_init(|| match EXPORTED.get() {
        Some(exported) => exported().into_iter().collect(),
        None => list()
            .into_iter()
            .map(|(symbol, address, _)| (symbol, address))
            .chain(beside::ALL.iter().map(|f| (f.symbol, f.own as usize)))
            .collect(),
    })
}

/// A symbol and its address.
type Address = (&'static str, usize);

static EXPORTED: OnceLock<fn() -> Vec<Address>> = OnceLock::new();

/// Tells which addresses the symbols have for the system's loader, so that `cuGetProcAddress` gives the same, and where the
/// marker is. For the library that exports them, when it is loaded.
#[doc(hidden)]
pub fn set_exports(exported: fn() -> Vec<Address>, marker: &'static crate::Marker) {
    let _ = EXPORTED.set(exported);
    crate::marker::set(marker);
}

/// The address of an export; null for a symbol that this driver lacks, at the version that it reports.
pub(crate) fn address(function: Function) -> *const c_void {
    if function.since() > crate::settings::version() {
        return std::ptr::null();
    }
    addresses()
        .get(function.name())
        .map_or(std::ptr::null(), |&address| address as *const c_void)
}

/// The address of a function that drivers export though `cuda.h` does not have it; null for any other name.
pub(super) fn beside_header(name: &[u8]) -> *const c_void {
    let found = beside::ALL.iter().find(|f| f.symbol.as_bytes() == name);
    found
        .and_then(|f| addresses().get(f.symbol))
        .map_or(std::ptr::null(), |&address| address as *const c_void)
}

/// Finds a symbol of the software driver, as `dlsym` does: the 685 exports of `cuda.h` (those that the reported version
/// has), those of the profiler and of graphics, and the marker by which a software driver is known; null for any other.
#[must_use]
pub fn resolve(symbol: &CStr) -> *const c_void {
    if symbol == crate::MARKER {
        return std::ptr::from_ref(crate::marker::own()).cast();
    }
    match symbol.to_str().ok().and_then(Function::by_symbol) {
        Some(function) => address(function),
        None => beside_header(symbol.to_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_real_functions_is_what_is_written() {
        let mut written: Vec<&str> = list().into_iter().filter(|e| e.2).map(|e| e.0).collect();
        written.sort_unstable();
        let mut listed = super::super::REAL.to_vec();
        listed.sort_unstable();
        let missing: Vec<_> = written.iter().filter(|s| !listed.contains(s)).collect();
        let extra: Vec<_> = listed.iter().filter(|s| !written.contains(s)).collect();
        assert!(
            missing.is_empty() && extra.is_empty(),
            "written, not in abi/real.rs: {missing:?}; in abi/real.rs, not written: {extra:?}"
        );
    }

    #[test]
    fn every_symbol_of_the_registry_resolves_to_a_function_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        assert_eq!(Function::ALL.len(), 685);
        for &function in Function::ALL {
            let address = resolve(function.symbol());
            assert!(!address.is_null(), "{}", function.name());
            assert!(
                seen.insert(address),
                "{} shares its address",
                function.name()
            );
        }
        assert!(resolve(c"cuNoSuchFunction").is_null());
    }
}
