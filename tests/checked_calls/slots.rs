//! One type for each way in which a checked call passes, or returns, a parameter of the C function.
//!
//! `new` makes the value and plans the library's output, `argument` returns the argument of the call, `check` inspects
//! the argument that reached the library, and `check_returned` compares a returned value with the library's output.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::padding::bytes;
use crate::recorder::pattern;
use crate::trial::{BYTES, LENGTH, Mode, Trial, or_null};

/// Returns a value to pass: the caller's pattern for the parameter.
fn value<T>(index: usize) -> T {
    let bytes = pattern(index, false, size_of::<T>());
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the pattern has the size of the value.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), bytes.len()) };
    // SAFETY: C's types are numbers, pointers and structs of them. A function pointer of this pattern is not null, and
    // is never called.
    unsafe { value.assume_init() }
}

/// A value that is passed on unchanged.
pub(crate) struct Value<T> {
    index: usize,
    value: T,
}

impl<T: Copy> Value<T> {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        let value = value(index);
        Self { index, value }
    }

    pub(crate) fn argument(&self, _: &Trial) -> T {
        self.value
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_argument(self.index, &bytes(&self.value));
    }
}

/// The number of elements that a call returns, which the caller passes.
pub(crate) struct Length(usize);

impl Length {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        Self(index)
    }

    pub(crate) fn argument<C: TryFrom<usize>>(&self, trial: &Trial) -> C {
        let length = trial.length(LENGTH, 0);
        C::try_from(length).ok().expect("a small number")
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_integer(self.0, trial.length(LENGTH, 0));
    }
}

/// A truth value that is passed.
pub(crate) struct Truth(usize);

impl Truth {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        Self(index)
    }

    pub(crate) fn argument(&self, trial: &Trial) -> bool {
        trial.is_present()
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_integer(self.0, usize::from(trial.is_present()));
    }
}

/// A value that is passed by reference.
pub(crate) struct In<T> {
    index: usize,
    value: T,
}

impl<T> In<T> {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        let value = value(index);
        Self { index, value }
    }

    pub(crate) fn argument(&self, _: &Trial) -> &T {
        &self.value
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_pointer(self.index, &raw const self.value);
    }
}

/// An optional value that is passed by reference.
pub(crate) struct InOption<T>(In<T>);

impl<T> InOption<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        Self(In::new(trial, index))
    }

    pub(crate) fn argument(&self, trial: &Trial) -> Option<&T> {
        trial.is_present().then_some(&self.0.value)
    }

    pub(crate) fn check(&self, trial: &Trial) {
        if trial.is_present() {
            self.0.check(trial);
        } else {
            trial.check_pointer(self.0.index, ptr::null::<T>());
        }
    }
}

/// A value that is passed by reference, and that the library changes.
pub(crate) struct InOut<T> {
    index: usize,
    value: T,
}

impl<T> InOut<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        trial.plan_pattern(index, size_of::<T>());
        let value = value(index);
        Self { index, value }
    }

    pub(crate) fn argument(&mut self, _: &Trial) -> &mut T {
        &mut self.value
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_pointer(self.index, &raw const self.value);
        trial.check_written(self.index, &self.value, size_of::<T>());
    }
}

/// An optional value that is passed by reference, and that the library changes.
pub(crate) struct InOutOption<T>(InOut<T>);

impl<T> InOutOption<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        Self(InOut::new(trial, index))
    }

    pub(crate) fn argument(&mut self, trial: &Trial) -> Option<&mut T> {
        trial.is_present().then_some(&mut self.0.value)
    }

    pub(crate) fn check(&self, trial: &Trial) {
        if trial.is_present() {
            self.0.check(trial);
        } else {
            trial.check_pointer(self.0.index, ptr::null::<T>());
            trial.check_written(self.0.index, &self.0.value, 0);
        }
    }
}

/// A C string.
pub(crate) struct Str(usize);

impl Str {
    const TEXT: &CStr = c"a string";

    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        Self(index)
    }

    pub(crate) fn argument(&self, _: &Trial) -> &'static CStr {
        Self::TEXT
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_pointer(self.0, Self::TEXT.as_ptr());
    }
}

/// An optional C string.
pub(crate) struct StrOption(usize);

impl StrOption {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        Self(index)
    }

    pub(crate) fn argument(&self, trial: &Trial) -> Option<&'static CStr> {
        trial.is_present().then_some(Str::TEXT)
    }

    pub(crate) fn check(&self, trial: &Trial) {
        let text = self.argument(trial);
        trial.check_pointer(self.0, text.map_or(ptr::null(), CStr::as_ptr));
    }
}

/// A slice that is read.
pub(crate) struct Slice<T> {
    index: usize,
    values: [T; LENGTH],
}

impl<T> Slice<T> {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        let values = value(index);
        Self { index, values }
    }

    pub(crate) fn argument(&self, trial: &Trial) -> &[T] {
        &self.values[..trial.slice_length(self.index)]
    }

    pub(crate) fn check(&self, trial: &Trial) {
        let slice = self.argument(trial);
        // The driver requires a pointer for a list with fewer elements than its count, even if the list is empty.
        let pointer = if trial.is_shorter(self.index) {
            slice.as_ptr()
        } else {
            or_null(slice)
        };
        trial.check_pointer(self.index, pointer);
    }
}

/// An optional slice that is read.
pub(crate) struct SliceOption<T>(Slice<T>);

impl<T> SliceOption<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        Self(Slice::new(trial, index))
    }

    pub(crate) fn argument(&self, trial: &Trial) -> Option<&[T]> {
        trial.is_present().then(|| self.0.argument(trial))
    }

    pub(crate) fn check(&self, trial: &Trial) {
        let slice = self.argument(trial);
        trial.check_pointer(self.0.index, slice.map_or(ptr::null(), or_null));
    }
}

/// A slice that is written.
pub(crate) struct SliceMut<T> {
    index: usize,
    values: [T; LENGTH],
    length: usize,
}

impl<T> SliceMut<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        let (values, length) = (value(index), trial.slice_length(index));
        trial.plan_pattern(index, length * size_of::<T>());
        Self { index, values, length }
    }

    pub(crate) fn argument(&mut self, _: &Trial) -> &mut [T] {
        &mut self.values[..self.length]
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_pointer(self.index, or_null(&self.values[..self.length]));
        trial.check_written(self.index, &self.values, self.length * size_of::<T>());
    }
}

/// An optional slice that is written.
pub(crate) struct SliceMutOption<T>(SliceMut<T>);

impl<T> SliceMutOption<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        Self(SliceMut::new(trial, index))
    }

    pub(crate) fn argument(&mut self, trial: &Trial) -> Option<&mut [T]> {
        trial.is_present().then(|| self.0.argument(trial))
    }

    pub(crate) fn check(&self, trial: &Trial) {
        if trial.is_present() {
            self.0.check(trial);
        } else {
            trial.check_pointer(self.0.index, ptr::null::<T>());
            trial.check_written(self.0.index, &self.0.values, 0);
        }
    }
}

/// Checks the address of an untyped slice: null if it is empty and its count is behind a pointer, else the slice's own.
fn check_untyped<T>(trial: &Trial, index: usize, values: &[T], length: usize) {
    if trial.has_counter_behind_pointer(index) {
        trial.check_pointer(index, or_null(&values[..length]));
    } else {
        trial.check_pointer(index, values.as_ptr());
    }
}

/// A slice of any type that is read as bytes.
pub(crate) struct Bytes(usize, [u16; BYTES / 2]);

impl Bytes {
    pub(crate) fn new(_: &Trial, index: usize) -> Self {
        Self(index, value(index))
    }

    pub(crate) fn argument(&self, trial: &Trial) -> &[u16] {
        &self.1[..trial.length(BYTES / 2, 0)]
    }

    pub(crate) fn check(&self, trial: &Trial) {
        check_untyped(trial, self.0, &self.1, self.argument(trial).len());
    }
}

/// A slice that is written as bytes.
pub(crate) struct Written<T, const N: usize> {
    index: usize,
    values: [T; N],
    length: usize,
}

/// A slice of any type that is written.
pub(crate) type Buffer = Written<u16, { BYTES / 2 }>;
/// A slice of bytes that is written.
pub(crate) type Chars = Written<u8, BYTES>;

impl<T, const N: usize> Written<T, N> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        let (values, length) = (value(index), trial.length(N, 0));
        trial.plan_pattern(index, length * size_of::<T>());
        Self { index, values, length }
    }

    pub(crate) fn argument(&mut self, _: &Trial) -> &mut [T] {
        &mut self.values[..self.length]
    }

    pub(crate) fn check(&self, trial: &Trial) {
        check_untyped(trial, self.index, &self.values, self.length);
        trial.check_written(self.index, &self.values, self.length * size_of::<T>());
    }
}

/// A count that the call computes, or asks the driver for.
pub(crate) struct Count(usize);

impl Count {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        if trial.counts_list(index) || trial.counts_copied(index) {
            trial.plan_count(index, trial.length(LENGTH, 0));
        }
        Self(index)
    }

    pub(crate) fn check(&self, trial: &Trial) {
        let index = self.0;
        if trial.counts_list(index) {
            // The first call asks for the number of elements, the second one for the elements, if there are any.
            let counts: &[usize] = if trial.lists_nothing() { &[0] } else { &[0, LENGTH] };
            trial.check_counts(index, counts);
        } else if trial.counts_copied(index) {
            trial.check_counts(index, &[0]);
        } else {
            trial.check_integer(index, trial.count(index));
        }
    }
}

/// A count that the call computes, the driver changes and the call returns.
pub(crate) struct Counted(usize);

impl Counted {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        trial.plan_count(index, trial.count(index) + 1);
        Self(index)
    }

    pub(crate) fn check(&self, trial: &Trial) {
        trial.check_counts(self.0, &[trial.count(self.0)]);
    }

    pub(crate) fn check_returned<C>(&self, trial: &Trial, count: &C) {
        let changed = usize::from(trial.mode != Mode::Silent);
        let expected = (trial.count(self.0) + changed).to_ne_bytes();
        let name = trial.name(self.0);
        assert_eq!(bytes(count), expected[..size_of::<C>()], "{}: {name}", trial.symbol);
    }
}

/// A value that the library writes and the call returns.
pub(crate) struct Out<T> {
    index: usize,
    value: PhantomData<T>,
}

impl<T> Out<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        trial.plan_pattern(index, size_of::<T>());
        let value = PhantomData;
        Self { index, value }
    }

    pub(crate) fn check(&self, _: &Trial) {}

    pub(crate) fn check_returned(&self, trial: &Trial, value: &T) {
        trial.check_output(self.index, std::slice::from_ref(value), 1);
    }
}

/// A truth value that the library writes and the call returns.
pub(crate) struct Bool(usize);

impl Bool {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        // Every number except 0 is true.
        let truth = if trial.is_present() { 4_u32 } else { 0 };
        trial.plan(index, truth.to_ne_bytes().to_vec());
        Self(index)
    }

    pub(crate) fn check(&self, _: &Trial) {}

    pub(crate) fn check_returned(&self, trial: &Trial, value: &bool) {
        let truth = trial.is_present() && trial.mode != Mode::Silent;
        assert_eq!(*value, truth, "{}: output {}", trial.symbol, self.0);
    }
}

/// Compares a returned text with the library's text.
fn check_text(trial: &Trial, index: usize, text: &str) {
    if trial.mode == Mode::Silent {
        assert_eq!(text, "", "{}: output {index}", trial.symbol);
    } else {
        assert_eq!(text, trial.text(index), "{}: output {index}", trial.symbol);
    }
}

/// A text that the library owns, and whose address it writes.
pub(crate) struct Text(usize);

impl Text {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        let text = format!("{}\0", trial.text(index)).into_bytes().leak();
        let address = text.as_ptr().expose_provenance();
        trial.plan(index, address.to_ne_bytes().to_vec());
        Self(index)
    }

    pub(crate) fn check(&self, _: &Trial) {}

    pub(crate) fn check_returned(&self, trial: &Trial, text: &str) {
        check_text(trial, self.0, text);
    }
}

/// A text that the library writes into a buffer.
pub(crate) struct Buffered(usize);

impl Buffered {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        trial.plan(index, format!("{}\0", trial.text(index)).into_bytes());
        Self(index)
    }

    pub(crate) fn check(&self, _: &Trial) {}

    pub(crate) fn check_returned(&self, trial: &Trial, text: &str) {
        check_text(trial, self.0, text);
    }
}

/// Values that the library writes and the call returns, as many as the caller requests.
pub(crate) struct Vector<T> {
    index: usize,
    value: PhantomData<T>,
}

impl<T> Vector<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        trial.plan_pattern(index, size_of::<T>() * trial.length(LENGTH, 0));
        let value = PhantomData;
        Self { index, value }
    }

    pub(crate) fn check(&self, _: &Trial) {}

    pub(crate) fn check_returned(&self, trial: &Trial, values: &[T]) {
        trial.check_output(self.index, values, trial.length(LENGTH, 0));
    }
}

/// All values that the library lists. The call requests their number first, and then the values, if there are any.
pub(crate) struct List<T>(Vector<T>);

impl<T> List<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        Self(Vector::new(trial, index))
    }

    pub(crate) fn check(&self, trial: &Trial) {
        // The only call was the one for the count, which passes no array.
        if trial.lists_nothing() {
            trial.check_pointer(self.0.index, ptr::null::<u8>());
        }
    }

    pub(crate) fn check_returned(&self, trial: &Trial, values: &[T]) {
        if trial.lists_nothing() {
            assert_eq!(values.len(), 0, "{}: output {}", trial.symbol, self.0.index);
        } else {
            self.0.check_returned(trial, values);
        }
    }
}

/// An array that the library owns, and whose address it writes. The call returns a copy.
pub(crate) struct Copied<T>(List<T>);

impl<T> Copied<T> {
    pub(crate) fn new(trial: &Trial, index: usize) -> Self {
        // In 64-bit words, so that they are aligned for every type.
        let size = (size_of::<T>() * LENGTH).next_multiple_of(8);
        let words: Vec<u64> = pattern(index, true, size)
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
            .collect();
        let address = words.leak().as_ptr().expose_provenance();
        trial.plan(index, address.to_ne_bytes().to_vec());
        let value = PhantomData;
        Self(List(Vector { index, value }))
    }

    pub(crate) fn check(&self, _: &Trial) {}

    pub(crate) fn check_returned(&self, trial: &Trial, values: &[T]) {
        self.0.check_returned(trial, values);
    }
}
