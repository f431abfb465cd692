//! A library of all 685 exports that write down their arguments, and the trials that are made of that.
//!
//! Every value in a trial is a pattern of bytes that says which parameter it belongs to, and whether the caller or the
//! library wrote it.

use core::ffi::*;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;

use cuda_driver::sys::library::Source;
use cuda_driver::sys::*;

/// What the library does when it is called.
#[derive(Default)]
struct Plan {
    code: u32,
    /// For parameters that point somewhere: the bytes that are written there.
    writes: Vec<(usize, Vec<u8>)>,
    /// For parameters that point to a count: its size in bytes, and what is written there.
    counts: Vec<(usize, usize, u64)>,
}

/// What the library was asked.
#[derive(Default)]
struct Record {
    functions: Vec<&'static str>,
    /// The arguments of the last call, as bytes.
    arguments: Vec<Vec<u8>>,
    /// The counts that parameters pointed to, call by call.
    seen: Vec<(usize, u64)>,
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
    static RECORD: RefCell<Record> = RefCell::default();
}

/// Makes the recorder the process's library.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: every export is given a function of its own type.
        let source = unsafe { Source::resolver("the recorder", resolve) };
        set_default(source).expect("nothing was called before");
    });
}

/// The bytes of a value.
fn bytes<T>(value: &T) -> Vec<u8> {
    // SAFETY: so many bytes are there. C's types have padding nowhere that is compared.
    unsafe { std::slice::from_raw_parts(ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }
        .to_vec()
}

/// The address in an argument that is a pointer.
fn address(argument: &[u8]) -> *mut u8 {
    let address = usize::from_ne_bytes(argument.try_into().expect("a pointer"));
    ptr::with_exposed_provenance_mut(address)
}

fn called(function: &'static str, arguments: Vec<Vec<u8>>) -> CUresult {
    PLAN.with_borrow(|plan| {
        RECORD.with_borrow_mut(|record| {
            record.functions.push(function);
            for &(index, size, value) in &plan.counts {
                let at = address(&arguments[index]);
                let mut old = [0u8; 8];
                // SAFETY: the trial says that a count of this size is there; this machine is little-endian or the
                // counts that are compared would differ.
                unsafe { ptr::copy_nonoverlapping(at, old.as_mut_ptr(), size) };
                record.seen.push((index, u64::from_ne_bytes(old)));
                if plan.code == 0 {
                    // SAFETY: as above.
                    unsafe { ptr::copy_nonoverlapping(value.to_ne_bytes().as_ptr(), at, size) };
                }
            }
            if plan.code == 0 {
                for (index, bytes) in &plan.writes {
                    let at = address(&arguments[*index]);
                    if !at.is_null() {
                        // SAFETY: the trial says that so many bytes are there.
                        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
                    }
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

/// So many bytes that belong to a parameter: `written` by the library, or passed to it.
fn pattern(index: usize, written: bool, length: usize) -> Vec<u8> {
    let start = if written { 0x80 } else { 0x01 };
    (0..length)
        .map(|place| (start + index * 7 + place * 3) as u8 & 0x7f | (start as u8 & 0x80) | 1)
        .collect()
}

/// One run of one call.
pub(crate) struct Trial {
    name: &'static str,
    /// Whether parameters that may be absent are there.
    pub(crate) present: bool,
    /// Whether slices that must be of one length are not.
    pub(crate) uneven: bool,
    /// The code that the library answers; `None` is success.
    code: Option<u32>,
}

impl Trial {
    pub(crate) fn new(name: &'static str, present: bool, code: Option<u32>) -> Self {
        PLAN.set(Plan {
            code: code.unwrap_or(0),
            ..Plan::default()
        });
        RECORD.set(Record::default());
        Self {
            name,
            present,
            uneven: false,
            code,
        }
    }

    /// A run that must end before the driver is asked: slices that share a count are of different lengths.
    pub(crate) fn uneven(name: &'static str) -> Self {
        Self {
            uneven: true,
            ..Self::new(name, true, None)
        }
    }

    /// The length of a slice that must be as long as another one of so many.
    pub(crate) fn shorter(&self, length: usize) -> usize {
        length - usize::from(self.uneven)
    }

    /// Nothing was called, and the error says why.
    #[track_caller]
    pub(crate) fn refused<T>(&self, result: cuda_driver::Result<T>) {
        RECORD.with_borrow(|record| assert_eq!(record.functions, [""; 0], "{}", self.name));
        let Err(error) = result else {
            panic!("{}: slices of different lengths were taken", self.name);
        };
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(error.function().name(), self.name);
        assert!(error.to_string().contains("different lengths"), "{error}");
    }

    /// A value to pass.
    pub(crate) fn value<T>(&self, index: usize) -> T {
        let bytes = pattern(index, false, size_of::<T>());
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: so many bytes are there.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), bytes.len()) };
        // SAFETY: C's types are numbers, pointers and structs of them; a function pointer of this pattern is not null
        // and is never called.
        unsafe { value.assume_init() }
    }

    /// The library will write so many values where this parameter points to.
    pub(crate) fn writes<T>(&mut self, index: usize, count: usize) {
        let bytes = pattern(index, true, size_of::<T>() * count);
        PLAN.with_borrow_mut(|plan| plan.writes.push((index, bytes)));
    }

    /// The library will write a count where this parameter points to.
    pub(crate) fn counts<T>(&mut self, index: usize, value: u64) {
        PLAN.with_borrow_mut(|plan| plan.counts.push((index, size_of::<T>(), value)));
    }

    /// The library will write where this parameter points to that something is so, or in the other run that it is not.
    pub(crate) fn writes_truth<T>(&mut self, index: usize) {
        let mut bytes = vec![0; size_of::<T>()];
        bytes[0] = if self.present { 4 } else { 0 };
        PLAN.with_borrow_mut(|plan| plan.writes.push((index, bytes)));
    }

    /// The library will give the address of so many values of its own through this parameter.
    pub(crate) fn points_to<T>(&mut self, index: usize, count: usize) {
        // In words, so that they are aligned for every type of C's.
        let bytes = pattern(index, true, (size_of::<T>() * count).next_multiple_of(8));
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let address = words.leak().as_ptr().expose_provenance();
        let address = address.to_ne_bytes().to_vec();
        PLAN.with_borrow_mut(|plan| plan.writes.push((index, address)));
    }

    /// The library will write a text where this parameter points to.
    pub(crate) fn writes_text(&mut self, index: usize) {
        let text = format!("{} {index}\0", self.name).into_bytes();
        PLAN.with_borrow_mut(|plan| plan.writes.push((index, text)));
    }

    /// The library will give the address of a text through this parameter.
    pub(crate) fn points_to_text(&mut self, index: usize) {
        let text = format!("{} {index}\0", self.name).into_bytes().leak();
        let address = text.as_ptr().expose_provenance().to_ne_bytes().to_vec();
        PLAN.with_borrow_mut(|plan| plan.writes.push((index, address)));
    }

    /// An argument's bytes were those of a value.
    #[track_caller]
    pub(crate) fn passed<T>(&self, index: usize, value: &T) {
        RECORD.with_borrow(|record| {
            assert_eq!(
                record.arguments[index],
                bytes(value),
                "{}: argument {index}",
                self.name
            );
        });
    }

    /// An argument pointed to something.
    #[track_caller]
    pub(crate) fn passed_pointer<T>(&self, index: usize, to: *const T) {
        RECORD.with_borrow(|record| {
            assert_eq!(
                address(&record.arguments[index]).addr(),
                to.addr(),
                "{}: argument {index}",
                self.name
            );
        });
    }

    /// An argument pointed to something, or was null if it is absent in this run.
    #[track_caller]
    pub(crate) fn passed_if_present<T>(&self, index: usize, to: *const T) {
        self.passed_pointer(index, if self.present { to } else { ptr::null() });
    }

    /// The counts that an argument pointed to, before the library wrote there. A call that fails makes no second one.
    #[track_caller]
    pub(crate) fn saw(&self, index: usize, counts: &[u64]) {
        let seen: Vec<u64> = RECORD.with_borrow(|record| {
            record
                .seen
                .iter()
                .filter(|(at, _)| *at == index)
                .map(|(_, count)| *count)
                .collect()
        });
        let expected = if self.code.is_some() {
            &counts[..1]
        } else {
            counts
        };
        assert_eq!(seen, expected, "{}: argument {index}", self.name);
    }

    /// What was passed by reference is what the library wrote, or untouched if it failed.
    #[track_caller]
    pub(crate) fn wrote_through<T>(&self, index: usize, value: &T) {
        let expected = pattern(index, self.code.is_none(), size_of::<T>());
        assert_eq!(bytes(value), expected, "{}: argument {index}", self.name);
    }

    /// The same for a parameter that may be absent.
    #[track_caller]
    pub(crate) fn wrote_if_present<T>(&self, index: usize, value: &T) {
        if self.present {
            self.wrote_through(index, value);
        } else {
            assert_eq!(
                bytes(value),
                pattern(index, false, size_of::<T>()),
                "{}: argument {index}",
                self.name
            );
        }
    }

    /// What the call gave is what the library wrote.
    #[track_caller]
    pub(crate) fn gave<T>(&self, index: usize, value: &T) {
        assert_eq!(
            bytes(value),
            pattern(index, true, size_of::<T>()),
            "{}: output {index}",
            self.name
        );
    }

    /// The call gave whether the library wrote that it is so.
    #[track_caller]
    pub(crate) fn gave_truth(&self, value: bool, index: usize) {
        assert_eq!(value, self.present, "{}: output {index}", self.name);
    }

    /// The same for several values.
    #[track_caller]
    pub(crate) fn gave_slice<T>(&self, index: usize, values: &[T]) {
        let given: Vec<u8> = values.iter().flat_map(bytes).collect();
        assert_eq!(
            given,
            pattern(index, true, size_of::<T>() * 3),
            "{}: output {index}",
            self.name
        );
    }

    /// The call gave the library's text.
    #[track_caller]
    pub(crate) fn gave_text(&self, index: usize, text: &str) {
        assert_eq!(text, format!("{} {index}", self.name));
    }

    /// The call gave the count that the library wrote.
    #[track_caller]
    pub(crate) fn counted(&self, count: u64, index: usize) {
        let written = PLAN.with_borrow(|plan| {
            plan.counts
                .iter()
                .find(|(at, ..)| *at == index)
                .map(|plan| plan.2)
        });
        assert_eq!(Some(count), written, "{}: count {index}", self.name);
    }

    /// The result is the code's, and only the right function was called.
    #[track_caller]
    pub(crate) fn settle<T>(&self, result: cuda_driver::Result<T>) -> Option<T> {
        RECORD.with_borrow(|record| {
            assert!(
                !record.functions.is_empty(),
                "{}: nothing was called",
                self.name
            );
            assert!(
                record.functions.iter().all(|name| *name == self.name),
                "{:?} for {}",
                record.functions,
                self.name
            );
        });
        match (result, self.code) {
            (Ok(value), None) => Some(value),
            (Err(error), Some(code)) => {
                assert_eq!(error.code(), CUresult(code), "{}", self.name);
                assert_eq!(error.function().name(), self.name);
                assert!(
                    error.location().file().ends_with("trials.rs"),
                    "{}: {}",
                    self.name,
                    error.location()
                );
                None
            }
            (Ok(_), Some(code)) => panic!("{}: {code} was taken for success", self.name),
            (Err(error), None) => panic!("{}: success was taken for {error}", self.name),
        }
    }
}
