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
    /// Success, and yet nothing is written.
    silent: bool,
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
                if plan.code == 0 && !plan.silent {
                    // SAFETY: as above.
                    unsafe { ptr::copy_nonoverlapping(value.to_ne_bytes().as_ptr(), at, size) };
                }
            }
            if plan.code == 0 && !plan.silent {
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

/// What is special about a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Full,
    /// Slices that must be of one length are not.
    Uneven,
    /// Slices are as short as can be, and the library has nothing to list.
    Empty,
    /// The library says that it succeeded, and writes nothing.
    Silent,
}

/// One run of one call.
pub(crate) struct Trial {
    name: &'static str,
    /// Whether parameters that may be absent are there.
    pub(crate) present: bool,
    /// Whether slices that must be of one length are not.
    pub(crate) uneven: bool,
    mode: Mode,
    /// The code that the library answers; `None` is success.
    code: Option<u32>,
}

/// Leaves something on the stack and in the heap where what is not written would otherwise often be zero.
#[inline(never)]
fn scribble() {
    std::hint::black_box([0xa5_u8; 1 << 14]);
    for words in 1..256 {
        std::hint::black_box(vec![0xa5_a5_a5_a5_u64; words]);
    }
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
            mode: Mode::Full,
            code,
        }
    }

    /// A run that must end before the driver is asked: slices that share a count are of different lengths.
    pub(crate) fn uneven(name: &'static str) -> Self {
        Self {
            uneven: true,
            mode: Mode::Uneven,
            ..Self::new(name, true, None)
        }
    }

    /// A run without elements: slices are passed as null, and a list of none is asked for once.
    pub(crate) fn empty(name: &'static str) -> Self {
        Self {
            mode: Mode::Empty,
            ..Self::new(name, true, None)
        }
    }

    /// A run whose outputs nobody writes: they must be zero, as they were made before the call.
    pub(crate) fn silent(name: &'static str) -> Self {
        let trial = Self {
            mode: Mode::Silent,
            ..Self::new(name, true, None)
        };
        PLAN.with_borrow_mut(|plan| plan.silent = true);
        scribble();
        trial
    }

    /// The length of a slice of so many, or of so few.
    pub(crate) fn length(&self, full: usize, least: usize) -> usize {
        if self.mode == Mode::Empty {
            least
        } else {
            full
        }
    }

    /// The length of a slice that must be as long as another one.
    pub(crate) fn shorter(&self, full: usize, least: usize) -> usize {
        self.length(full, least) - usize::from(self.uneven)
    }

    /// The length as C counts it.
    pub(crate) fn count<C: TryFrom<usize>>(&self, full: usize, least: usize) -> C {
        let count = C::try_from(self.length(full, least));
        count.unwrap_or_else(|_| panic!("{}: {full} is too many", self.name))
    }

    /// So many bytes of an output: those that the library wrote, or zeros.
    fn written(&self, index: usize, length: usize) -> Vec<u8> {
        if self.mode == Mode::Silent {
            vec![0; length]
        } else {
            pattern(index, true, length)
        }
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

    /// The library will write so many elements of an array where this parameter points to, if it has any.
    pub(crate) fn writes_array<T>(&mut self, index: usize, count: usize) {
        if self.mode != Mode::Empty {
            self.writes::<T>(index, count);
        }
    }

    /// The library will write this count where this parameter points to.
    pub(crate) fn says<T>(&self, index: usize, count: u64) {
        PLAN.with_borrow_mut(|plan| plan.counts.push((index, size_of::<T>(), count)));
    }

    /// The library will write a count where this parameter points to: another one than it is given.
    pub(crate) fn counts<T>(&mut self, index: usize, full: usize, least: usize) {
        self.says::<T>(index, self.length(full, least) as u64 + 1);
    }

    /// The library will say through this parameter how many a list has.
    pub(crate) fn lists<T>(&mut self, index: usize, count: usize) {
        self.says::<T>(index, self.length(count, 0) as u64);
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

    /// An argument was a length.
    #[track_caller]
    pub(crate) fn passed_count<C: TryFrom<usize>>(&self, index: usize, full: usize, least: usize) {
        self.passed::<C>(index, &self.count(full, least));
    }

    /// An argument pointed to a slice, or was null if that had no elements in this run.
    #[track_caller]
    pub(crate) fn passed_slice<T>(&self, index: usize, slice: &[T], least: usize) {
        let is_empty = self.length(slice.len(), least) == 0;
        self.passed_pointer(
            index,
            if is_empty {
                ptr::null()
            } else {
                slice.as_ptr()
            },
        );
    }

    /// The same for a slice that may be absent.
    #[track_caller]
    pub(crate) fn passed_slice_if_present<T>(&self, index: usize, slice: &[T], least: usize) {
        if self.present {
            self.passed_slice(index, slice, least);
        } else {
            self.passed_pointer(index, ptr::null::<T>());
        }
    }

    /// Where there was one call only, its array was null.
    #[track_caller]
    pub(crate) fn asked_with_null(&self, index: usize) {
        if matches!(self.mode, Mode::Empty | Mode::Silent) {
            self.passed_pointer(index, ptr::null::<u8>());
        }
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

    /// An argument pointed to a length.
    #[track_caller]
    pub(crate) fn saw_count(&self, index: usize, full: usize, least: usize) {
        self.saw(index, &[self.length(full, least) as u64]);
    }

    /// A list was asked for twice: how many there are, and which. None are not asked for again.
    #[track_caller]
    pub(crate) fn saw_list(&self, index: usize, count: u64) {
        if matches!(self.mode, Mode::Empty | Mode::Silent) {
            self.saw(index, &[0]);
        } else {
            self.saw(index, &[0, count]);
        }
    }

    /// What was passed by reference is what the library wrote, or untouched if it wrote nothing.
    #[track_caller]
    pub(crate) fn wrote_through<T>(&self, index: usize, value: &T) {
        let wrote = self.code.is_none() && self.mode != Mode::Silent;
        let expected = pattern(index, wrote, size_of::<T>());
        assert_eq!(bytes(value), expected, "{}: argument {index}", self.name);
    }

    /// The same for a slice, which is untouched if nothing of it was passed.
    #[track_caller]
    pub(crate) fn wrote_slice<T, const N: usize>(
        &self,
        index: usize,
        slice: &[T; N],
        least: usize,
    ) {
        if self.length(N, least) > 0 {
            self.wrote_through(index, slice);
        } else {
            self.untouched(index, slice);
        }
    }

    /// The same for one that may be absent.
    #[track_caller]
    pub(crate) fn wrote_slice_if_present<T, const N: usize>(
        &self,
        index: usize,
        slice: &[T; N],
        least: usize,
    ) {
        if self.present {
            self.wrote_slice(index, slice, least);
        } else {
            self.untouched(index, slice);
        }
    }

    /// A value is the caller's still.
    #[track_caller]
    fn untouched<T>(&self, index: usize, value: &T) {
        let expected = pattern(index, false, size_of::<T>());
        assert_eq!(bytes(value), expected, "{}: argument {index}", self.name);
    }

    /// The same for a parameter that may be absent.
    #[track_caller]
    pub(crate) fn wrote_if_present<T>(&self, index: usize, value: &T) {
        if self.present {
            self.wrote_through(index, value);
        } else {
            self.untouched(index, value);
        }
    }

    /// What the call gave is what the library wrote, or zero.
    #[track_caller]
    pub(crate) fn gave<T>(&self, index: usize, value: &T) {
        assert_eq!(
            bytes(value),
            self.written(index, size_of::<T>()),
            "{}: output {index}",
            self.name
        );
    }

    /// The call gave whether the library wrote that it is so.
    #[track_caller]
    pub(crate) fn gave_truth(&self, value: bool, index: usize) {
        let truth = self.present && self.mode != Mode::Silent;
        assert_eq!(value, truth, "{}: output {index}", self.name);
    }

    /// The call gave as many values as it was asked for.
    #[track_caller]
    pub(crate) fn gave_vector<T>(&self, index: usize, values: &[T]) {
        let given: Vec<u8> = values.iter().flat_map(bytes).collect();
        let expected = self.written(index, size_of::<T>() * self.length(3, 0));
        assert_eq!(given, expected, "{}: output {index}", self.name);
    }

    /// The call gave as many values as the library said that there are.
    #[track_caller]
    pub(crate) fn gave_list<T>(&self, index: usize, values: &[T]) {
        if matches!(self.mode, Mode::Empty | Mode::Silent) {
            assert_eq!(values.len(), 0, "{}: output {index}", self.name);
        } else {
            self.gave_vector(index, values);
        }
    }

    /// The call gave the library's text, or none.
    #[track_caller]
    pub(crate) fn gave_text(&self, index: usize, text: &str) {
        if self.mode == Mode::Silent {
            assert_eq!(text, "", "{}: output {index}", self.name);
        } else {
            assert_eq!(text, format!("{} {index}", self.name));
        }
    }

    /// The call gave the count that the library wrote, or its own.
    #[track_caller]
    pub(crate) fn counted(&self, count: u64, index: usize) {
        if self.mode == Mode::Silent {
            return self.saw(index, &[count]);
        }
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
