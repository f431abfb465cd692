//! The table of exports: every symbol of `cuda.h` with its function.

use std::sync::{Mutex, PoisonError};

use crate::state::{gate, settings};
use crate::trace;
use cuda_driver_sys::*;
#[allow(clippy::wildcard_imports)]
use std::ffi::*;

/// The exports, as constants named by their symbols: function pointers of the types of `cuda.h`.
#[derive(Clone, Copy, Debug)]
pub struct Table;

macro_rules! define {
    ([] $($symbol:ident ($($arg:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
        /// A stub for every symbol, which returns `CUDA_ERROR_NOT_SUPPORTED` once the driver is initialised. [`Table`]
        /// has inherent constants for the implemented symbols.
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

        /// All exports. An implemented export with another type than in `cuda.h` does not compile here.
        static LIST: &[Export] = &[$(Export {
            symbol: stringify!($symbol),
            function: {
                let function: unsafe extern "system" fn($($ty),*) -> CUresult = Table::$symbol;
                function as *const ()
            },
            stub: <Table as Stubs>::$symbol as *const (),
        },)*];
    };
}
for_each_function! { define }

/// A row of the list of exports. The list is static data, because code that fills it would take about 5 % of the time
/// that this crate takes to compile.
struct Export {
    symbol: &'static str,
    function: *const (),
    /// The function that returns `CUDA_ERROR_NOT_SUPPORTED`.
    stub: *const (),
}

// SAFETY: the pointers are addresses of functions, and are never read through.
unsafe impl Sync for Export {}

/// Returns the symbol and address of every export, and true if it is implemented.
pub(super) fn list() -> impl Iterator<Item = (&'static str, usize, bool)> {
    let row = |export: &Export| (export.symbol, export.function as usize, export.function != export.stub);
    LIST.iter().map(row)
}

/// Logs the first call of each export that is newer than the version that this driver reports. A driver of that version
/// does not have the symbol, but an export cannot be hidden from the system's loader.
#[doc(hidden)]
#[inline]
pub fn note_newer(symbol: &'static str, since: u32) {
    if since > settings::version() {
        log_newer(symbol, since);
    }
}

#[cold]
fn log_newer(symbol: &'static str, since: u32) {
    static LOGGED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if !logged.contains(&symbol) {
        logged.push(symbol);
        let (major, minor, own) = (since / 1000, since % 1000 / 10, settings::version());
        host::log!(
            "{symbol} is new in CUDA {major}.{minor}, but this driver reports version {own} (CUDA_SOFT_VERSION): find \
             functions with cuGetProcAddress, which returns only those up to the reported version"
        );
    }
}

/// Returns the result of a function that is not implemented. Logs the first call of each function if `CUDA_SOFT_LOG` is
/// on.
pub(super) fn not_supported(symbol: &'static str) -> CUresult {
    if trace::on() {
        // SAFETY: there are no arguments.
        let call = unsafe { trace::Call::begin(symbol, &[]) };
        let result = refuse(symbol);
        // SAFETY: as above.
        unsafe { call.end(result) };
        return result;
    }
    refuse(symbol)
}

fn refuse(symbol: &'static str) -> CUresult {
    if host::environment::log() {
        static LOGGED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
        let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        if !logged.contains(&symbol) {
            logged.push(symbol);
            host::log!("{symbol} is not supported by the software driver");
        }
    }
    match gate::initialised() {
        Ok(()) => CUresult::CUDA_ERROR_NOT_SUPPORTED,
        Err(error) => error,
    }
}
