//! A library with every export of `cuda.h`. Each function records its arguments and writes planned values.
//!
//! Most values in a trial are patterns of bytes that identify their parameter and their writer: the caller or the
//! library.

use core::ffi::*;
use std::cell::RefCell;
use std::ptr;
use std::sync::Once;

use cuda_driver::sys::library::Source;
use cuda_driver::sys::*;

use crate::padding::bytes;

/// The behaviour of the library in the next calls.
#[derive(Default)]
pub(crate) struct Plan {
    /// The result code.
    pub(crate) code: u32,
    /// True if the library returns success but writes nothing.
    pub(crate) silent: bool,
    /// For parameters that are pointers: the bytes that are written to the target.
    pub(crate) writes: Vec<(usize, Vec<u8>)>,
    /// For parameters that point to a count: its size in bytes, and the value that is written.
    pub(crate) counts: Vec<(usize, usize, u64)>,
}

/// The calls that reached the library.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) functions: Vec<&'static str>,
    /// The arguments of the last call, as bytes.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// The counts that parameters pointed to, call by call.
    pub(crate) counts: Vec<(usize, u64)>,
}

thread_local! {
    pub(crate) static PLAN: RefCell<Plan> = RefCell::default();
    pub(crate) static RECORD: RefCell<Record> = RefCell::default();
}

/// Makes the recorder the default library of the process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: every export is resolved to a function of its own type.
        let source = unsafe { Source::resolver("the recorder", resolve) };
        set_default(source).expect("no call was made before");
    });
}

/// Returns the address in an argument that is a pointer.
pub(crate) fn address(argument: &[u8]) -> *mut u8 {
    let address = usize::from_ne_bytes(argument.try_into().expect("a pointer"));
    ptr::with_exposed_provenance_mut(address)
}

/// Returns bytes that identify a parameter and the side that wrote them: the library if `written` is true, else the
/// caller.
pub(crate) fn pattern(index: usize, written: bool, length: usize) -> Vec<u8> {
    let start = if written { 0x80 } else { 0x01 };
    (0..length)
        .map(|place| (start + index * 7 + place * 3) as u8 & 0x7f | (start as u8 & 0x80) | 1)
        .collect()
}

/// Records a call, and writes the planned values.
fn called(function: &'static str, arguments: Vec<Vec<u8>>) -> CUresult {
    PLAN.with_borrow(|plan| {
        RECORD.with_borrow_mut(|record| {
            record.functions.push(function);
            let writes = plan.code == 0 && !plan.silent;
            for &(index, size, value) in &plan.counts {
                let at = address(&arguments[index]);
                let mut old = [0u8; 8];
                // SAFETY: the trial points to a count of this size. On a big-endian machine the comparison of
                // the counts fails.
                unsafe { ptr::copy_nonoverlapping(at, old.as_mut_ptr(), size) };
                record.counts.push((index, u64::from_ne_bytes(old)));
                if writes {
                    // SAFETY: as above.
                    unsafe { ptr::copy_nonoverlapping(value.to_ne_bytes().as_ptr(), at, size) };
                }
            }
            for (index, bytes) in plan.writes.iter().filter(|_| writes) {
                let at = address(&arguments[*index]);
                if !at.is_null() {
                    // SAFETY: the trial points to this many bytes.
                    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
                }
            }
            record.arguments = arguments;
        });
        CUresult(plan.code)
    })
}

macro_rules! exports {
    ([] $($symbol:ident ($($parameter:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
        /// One function for each export, of the export's own type.
        #[allow(non_snake_case)]
        mod exports {
            use super::*;
            $(
                pub(super) unsafe extern "system" fn $symbol($($parameter: $ty),*) -> CUresult {
                    called(stringify!($symbol), vec![$(bytes(&$parameter)),*])
                }
            )*
        }

        fn resolve(name: &CStr) -> *const c_void {
            match name.to_str().unwrap_or_default() {
                $(stringify!($symbol) => exports::$symbol as *const c_void,)*
                _ => ptr::null(),
            }
        }
    };
}
for_each_function! { exports }
