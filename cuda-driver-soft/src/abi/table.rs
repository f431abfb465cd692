//! The table of exports: every symbol of the registry with its function.

use std::sync::{Mutex, PoisonError};

use crate::state::gate;
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
        pub(super) fn list() -> Vec<(&'static str, usize, bool)> {
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
    match gate::initialised() {
        Ok(()) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        Err(error) => error,
    }
}
