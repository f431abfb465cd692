//! One run of one checked call, and the rules that follow from its line in the table.

use std::ptr;

use cuda_driver::sys::{CUresult, Function};

use crate::padding::{bytes, clear};
use crate::recorder::{PLAN, Plan, RECORD, Record, address, pattern};

/// The number of elements of an array in a trial; an array counted by `n-1` has one less.
pub(crate) const LENGTH: usize = 3;
/// The size of an untyped buffer in bytes: five elements of 16 bits.
pub(crate) const BYTES: usize = 10;
/// The size of the buffer that a call passes for a text.
const TEXT: usize = 256;

/// A line of the table.
pub(crate) struct Case {
    pub(crate) symbol: &'static str,
    /// A word for each parameter of the C function, separated by commas.
    pub(crate) parameters: &'static str,
    pub(crate) run: fn(&mut Trial),
}

impl Case {
    /// Returns the words of the line, without names of fields.
    pub(crate) fn words(&self) -> Vec<String> {
        let text: String = self.parameters.split_whitespace().collect();
        let words = text.split(',').filter(|word| !word.is_empty());
        words
            .map(|word| word.split('.').next().unwrap_or(word).to_owned())
            .collect()
    }

    /// Returns true if the call takes several slices that must have the same length.
    pub(crate) fn shares_lengths(&self) -> bool {
        let trial = Trial::new(self, Mode::Full);
        (0..trial.words.len()).any(|index| trial.must_match(index))
    }
}

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All optional parameters are passed.
    Full,
    /// No optional parameter is passed.
    Absent,
    /// Slices are as short as possible, and the library has no elements to list.
    Empty,
    /// The library returns success but writes nothing.
    Silent,
    /// Slices that must have the same length have different lengths.
    Uneven,
    /// The library returns this code.
    Failing(u32),
}

/// One run of one call.
pub(crate) struct Trial {
    pub(crate) symbol: &'static str,
    pub(crate) mode: Mode,
    words: Vec<String>,
    function: Function,
}

/// Returns the parameter that counts an array, and the number that is subtracted from it: 1 for `in[n-1]`. Returns
/// `None` if no parameter counts it.
fn counter(word: &str) -> Option<(&str, usize)> {
    let (_, rest) = word.split_once('[')?;
    let text = rest.split(']').next()?.trim_start_matches('*');
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match text.split_once('-') {
        Some((name, less)) => Some((name, less.parse().expect("a number"))),
        None => Some((text, 0)),
    }
}

/// Returns true if a word is a slice that the caller passes.
fn is_slice(word: &str) -> bool {
    word.starts_with("in[") || word.starts_with("out[")
}

/// Leaves bytes other than zero on the stack and in the heap, so that unwritten memory is not zero by chance.
#[inline(never)]
fn scribble() {
    std::hint::black_box([0xa5_u8; 1 << 14]);
    for words in 1..256 {
        std::hint::black_box(vec![0xa5_a5_a5_a5_u64; words]);
    }
}

impl Trial {
    pub(crate) fn new(case: &Case, mode: Mode) -> Self {
        let code = match mode {
            Mode::Failing(code) => code,
            _ => 0,
        };
        PLAN.set(Plan {
            code,
            silent: mode == Mode::Silent,
            ..Plan::default()
        });
        RECORD.set(Record::default());
        if mode == Mode::Silent {
            scribble();
        }
        Self {
            symbol: case.symbol,
            mode,
            words: case.words(),
            function: Function::by_symbol(case.symbol).expect("an exported function"),
        }
    }

    /// Returns true if optional parameters are passed.
    pub(crate) fn is_present(&self) -> bool {
        self.mode != Mode::Absent
    }

    pub(crate) fn is_uneven(&self) -> bool {
        self.mode == Mode::Uneven
    }

    /// Returns true if the library lists no elements.
    pub(crate) fn lists_nothing(&self) -> bool {
        matches!(self.mode, Mode::Empty | Mode::Silent)
    }

    /// Returns true if the library writes to the targets of pointers.
    fn writes_anything(&self) -> bool {
        !matches!(self.mode, Mode::Silent | Mode::Failing(_))
    }

    /// Returns `least` in an empty run, else `full`.
    pub(crate) fn length(&self, full: usize, least: usize) -> usize {
        if self.mode == Mode::Empty { least } else { full }
    }

    /// Returns the name of a parameter in C.
    pub(crate) fn name(&self, index: usize) -> &'static str {
        self.function.parameters()[index].name()
    }

    /// Returns the size of the integer that a parameter points to.
    fn count_size(&self, index: usize) -> usize {
        match self.function.parameters()[index].type_name() {
            "*mut usize" | "*mut c_ulonglong" | "*mut cuuint64_t" => 8,
            "*mut c_int" | "*mut c_uint" | "*mut cuuint32_t" => 4,
            other => panic!("{}: a count of the type {other}", self.symbol),
        }
    }

    /// Returns the words of the arrays that a parameter counts.
    fn counted_by(&self, name: &str) -> impl Iterator<Item = &String> {
        let words = self.words.iter();
        words.filter(move |word| counter(word).is_some_and(|(other, _)| other == name))
    }

    /// Returns the value of a count.
    pub(crate) fn count(&self, index: usize) -> usize {
        let name = self.name(index);
        let mut least = 0;
        for word in self.counted_by(name) {
            if ["bytes[", "buf[", "chars["].iter().any(|one| word.starts_with(one)) {
                return self.length(BYTES, 0);
            }
            if word.starts_with("string[") {
                return TEXT;
            }
            if let Some((_, less)) = counter(word).filter(|_| is_slice(word)) {
                least = least.max(less);
            }
        }
        self.length(LENGTH, least)
    }

    /// Returns true if a parameter counts a list that the call requests in two steps.
    pub(crate) fn counts_list(&self, index: usize) -> bool {
        self.counted_by(self.name(index)).any(|word| word.starts_with("list["))
    }

    /// Returns true if a parameter counts an array that the driver owns.
    pub(crate) fn counts_copied(&self, index: usize) -> bool {
        self.counted_by(self.name(index))
            .any(|word| word.starts_with("copied["))
    }

    /// Returns true if the length of a slice is checked against that of another one: the first slice with the same
    /// count that is not optional.
    pub(crate) fn must_match(&self, index: usize) -> bool {
        let Some((name, _)) = counter(&self.words[index]).filter(|_| is_slice(&self.words[index])) else {
            return false;
        };
        let first = self
            .words
            .iter()
            .position(|word| is_slice(word) && !word.ends_with('?') && counter(word).is_some_and(|(c, _)| c == name));
        first.is_some_and(|first| first != index)
    }

    /// Returns the number of elements of a slice.
    pub(crate) fn slice_length(&self, index: usize) -> usize {
        let (name, less) = counter(&self.words[index]).expect("a slice has a count");
        let counts = |at: &usize| self.name(*at) == name;
        let count = (0..self.words.len()).find(counts).expect("the count is a parameter");
        let uneven = self.is_uneven() && self.must_match(index);
        self.count(count) - less - usize::from(uneven)
    }

    /// Returns true if the count of an array is behind a pointer, as in `bytes[*n]`.
    pub(crate) fn has_counter_behind_pointer(&self, index: usize) -> bool {
        self.words[index].contains("[*")
    }

    /// Makes the library write these bytes to the target of a parameter.
    pub(crate) fn plan(&self, index: usize, bytes: Vec<u8>) {
        PLAN.with_borrow_mut(|plan| plan.writes.push((index, bytes)));
    }

    /// Makes the library write a pattern to the target of a parameter.
    pub(crate) fn plan_pattern(&self, index: usize, size: usize) {
        self.plan(index, pattern(index, true, size));
    }

    /// Returns true if a slice has fewer elements than its count.
    pub(crate) fn is_shorter(&self, index: usize) -> bool {
        counter(&self.words[index]).is_some_and(|(_, less)| less > 0)
    }

    /// Makes the library write a count to the target of a parameter.
    pub(crate) fn plan_count(&self, index: usize, count: usize) {
        self.plan_count_of(index, count as u64);
    }

    /// Makes the library write any 64-bit count to the target of a parameter.
    pub(crate) fn plan_count_of(&self, index: usize, count: u64) {
        let size = self.count_size(index);
        PLAN.with_borrow_mut(|plan| plan.counts.push((index, size, count)));
    }

    /// Returns the text that the library writes for a parameter.
    pub(crate) fn text(&self, index: usize) -> String {
        format!("{} {index}", self.symbol)
    }

    /// Checks that an argument had these bytes.
    #[track_caller]
    pub(crate) fn check_argument(&self, index: usize, expected: &[u8]) {
        RECORD.with_borrow(|record| {
            let argument = &record.arguments[index];
            assert_eq!(argument, expected, "{}: argument {index}", self.symbol);
        });
    }

    /// Checks that an argument was a pointer to this address.
    #[track_caller]
    pub(crate) fn check_pointer<T>(&self, index: usize, to: *const T) {
        RECORD.with_borrow(|record| {
            let argument = address(&record.arguments[index]).addr();
            assert_eq!(argument, to.addr(), "{}: argument {index}", self.symbol);
        });
    }

    /// Checks that an argument was an integer of this value.
    #[track_caller]
    pub(crate) fn check_integer(&self, index: usize, value: usize) {
        let size = RECORD.with_borrow(|record| record.arguments[index].len());
        self.check_argument(index, &value.to_ne_bytes()[..size]);
    }

    /// Checks the counts that an argument pointed to before the library wrote there. A call that fails is not repeated.
    #[track_caller]
    pub(crate) fn check_counts(&self, index: usize, expected: &[usize]) {
        let expected = match self.mode {
            Mode::Failing(_) => &expected[..1],
            _ => expected,
        };
        let counts: Vec<usize> = RECORD.with_borrow(|record| {
            let counts = record.counts.iter().filter(|(at, _)| *at == index);
            counts.map(|(_, count)| *count as usize).collect()
        });
        assert_eq!(counts, expected, "{}: argument {index}", self.symbol);
    }

    /// Checks a value that the caller passed by reference: the library overwrote the first `size` bytes if it wrote.
    #[track_caller]
    pub(crate) fn check_written<T>(&self, index: usize, value: &T, size: usize) {
        let mut expected = pattern(index, false, size_of::<T>());
        if self.writes_anything() {
            expected[..size].copy_from_slice(&pattern(index, true, size));
        }
        clear::<T>(&mut expected);
        assert_eq!(bytes(value), expected, "{}: argument {index}", self.symbol);
    }

    /// Checks returned values, of which there must be `count`: those that the library wrote, or zeros.
    #[track_caller]
    pub(crate) fn check_output<T>(&self, index: usize, values: &[T], count: usize) {
        let size = count * size_of::<T>();
        let mut expected = if self.mode == Mode::Silent {
            vec![0; size]
        } else {
            pattern(index, true, size)
        };
        clear::<T>(&mut expected);
        let given: Vec<u8> = values.iter().flat_map(bytes).collect();
        assert_eq!(given, expected, "{}: output {index}", self.symbol);
    }

    /// Checks that the call was refused because slices have different lengths, and that the library was not called.
    #[track_caller]
    pub(crate) fn expect_refusal<T>(&self, result: cuda_driver::Result<T>) {
        RECORD.with_borrow(|record| assert_eq!(record.functions, [""; 0], "{}", self.symbol));
        let Err(error) = result else {
            panic!("{}: slices of different lengths were accepted", self.symbol);
        };
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(error.function().name(), self.symbol);
        assert!(error.to_string().contains("different lengths"), "{error}");
    }

    /// Returns how often the call must reach the library: twice if it requests the number of elements of a list, and
    /// then the elements.
    fn calls(&self) -> usize {
        let lists = self.words.iter().any(|word| word.starts_with("list["));
        let fails = matches!(self.mode, Mode::Failing(_));
        if lists && !fails && !self.lists_nothing() { 2 } else { 1 }
    }

    /// Checks that the result corresponds to the library's code, and that only the right function was called, as often
    /// as it must be.
    #[track_caller]
    pub(crate) fn settle<T>(&self, result: cuda_driver::Result<T>) -> Option<T> {
        let symbol = self.symbol;
        RECORD.with_borrow(|record| {
            assert_eq!(record.functions, vec![symbol; self.calls()], "{symbol}: the calls");
        });
        match (result, self.mode) {
            (Err(error), Mode::Failing(code)) => {
                assert_eq!(error.code(), CUresult(code), "{symbol}");
                assert_eq!(error.function().name(), symbol);
                let file = error.location().file();
                assert!(file.ends_with("trials.rs"), "{symbol}: {file}");
                None
            }
            (Ok(_), Mode::Failing(code)) => panic!("{symbol}: {code} was taken for success"),
            (Err(error), _) => panic!("{symbol}: success was taken for {error}"),
            (Ok(value), _) => Some(value),
        }
    }
}

/// Returns a null pointer if the slice has no elements.
pub(crate) fn or_null<T>(slice: &[T]) -> *const T {
    if slice.is_empty() { ptr::null() } else { slice.as_ptr() }
}
