//! What went wrong: the code, the call, the library, and the line that made the call.

use core::cell::Cell;
use core::fmt;
use core::panic::Location;
use std::sync::OnceLock;

use crate::error_table;
use crate::refusal::Refusal;
use crate::sys::{CUresult, DEFAULT, Function, Library};

/// The result of a driver call.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A driver call that failed: 16 bytes, `Copy`, and printable at any time without asking the driver for anything.
///
/// ```text
/// cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory (src/main.rs:12)
/// cuCtxCreate_v4 failed: needs CUDA 12.5, this driver supports 12.2 (src/main.rs:12)
/// ```
///
/// The location is that of the code outside this crate which made the call.
#[derive(Clone, Copy)]
#[must_use]
pub struct Error {
    location: &'static Location<'static>,
    /// The code; above it 16 bits of the function's index, with the number of a [`Refusal`] above [`FUNCTION_BITS`]; above
    /// these 16 bits of the library's number. One number, and not three fields: so a `Result<()>` is two words, which are
    /// returned in registers.
    what: u64,
}

/// How many bits a function's index takes.
const FUNCTION_BITS: u32 = 10;

const _: () = assert!(Function::ALL.len() <= 1 << FUNCTION_BITS);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Error>() == 16);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Result<u64>>() == 16);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Result<*mut u8>>() == 16);

/// The first fault that this process was told of, and whether it was told while it dropped an object. Faults stick to the
/// process, so there is one at most, unless it has several drivers.
static FIRST_FAULT: OnceLock<(Error, bool)> = OnceLock::new();

/// Turns the code of a raw call into a result. The code 0 is success; every other one is an error of `function`,
/// called through [`sys::DEFAULT`](crate::sys::DEFAULT).
///
/// ```
/// use cuda_driver::{check, sys};
///
/// // SAFETY: cuInit takes no pointers.
/// let error = check(unsafe { sys::cuInit(1) }, sys::Function::cuInit).unwrap_err();
/// assert_eq!(error.function(), sys::Function::cuInit);
/// ```
///
/// # Errors
/// The code, if it is not 0.
#[inline]
#[track_caller]
pub fn check(code: CUresult, function: Function) -> Result<()> {
    if code.0 == 0 {
        return Ok(());
    }
    Err(Error::new(code, function, Location::caller()))
}

/// The same for a function called through another library than [`sys::DEFAULT`](crate::sys::DEFAULT).
///
/// # Errors
/// The code, if it is not 0.
#[inline]
#[track_caller]
pub fn check_in(library: &Library, code: CUresult, function: Function) -> Result<()> {
    if code.0 == 0 {
        return Ok(());
    }
    Err(Error::of(library, code, function, Location::caller()))
}

impl Error {
    #[cold]
    pub(crate) fn new(
        code: CUresult,
        function: Function,
        location: &'static Location<'static>,
    ) -> Self {
        Self::of(&DEFAULT, code, function, location)
    }

    #[cold]
    fn of(
        library: &Library,
        code: CUresult,
        function: Function,
        location: &'static Location<'static>,
    ) -> Self {
        let error = Self {
            location,
            // No index has more bits, as is asserted above.
            what: u64::from(code.0)
                | (function.index() as u64) << 32
                | u64::from(library.number()) << 48,
        };
        if code == CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
            && !library.supports(function)
        {
            // The message says which version is there, and must not have to ask then.
            library.note_version();
        }
        if error.is_fault() {
            let _ = FIRST_FAULT.get_or_init(|| (error, DROPPING.get()));
        }
        error
    }

    /// An error that this crate found itself: the driver would have answered the same or could not have been asked.
    #[cold]
    #[track_caller]
    pub(crate) fn unasked(code: CUresult, function: Function) -> Self {
        Self::new(code, function, Location::caller())
    }

    /// The same, with the reason in place of the code's text.
    #[cold]
    #[track_caller]
    pub(crate) fn refused(code: CUresult, function: Function, reason: Refusal) -> Self {
        let mut error = Self::unasked(code, function);
        error.what |= u64::from(reason.number()) << (32 + FUNCTION_BITS);
        error
    }

    /// The result code, known to these bindings or not.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn code(&self) -> CUresult {
        CUresult(self.what as u32)
    }

    /// The function that failed.
    #[inline]
    #[must_use]
    pub fn function(&self) -> Function {
        // The index came from a `Function`.
        let index = (self.what >> 32) & ((1 << FUNCTION_BITS) - 1);
        Function::from_index(index as usize).unwrap_or(Function::cuInit)
    }

    /// The line that made the call.
    #[inline]
    #[must_use]
    pub const fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// The library that was called: [`sys::DEFAULT`](crate::sys::DEFAULT), or that of [`check_in`].
    #[inline]
    #[must_use]
    pub fn library(&self) -> &'static Library {
        // The number came from a library, and none ever goes.
        Library::by_number(self.library_number()).unwrap_or(&DEFAULT)
    }

    /// The C name of the code, for instance `CUDA_ERROR_OUT_OF_MEMORY`; `None` for a code that this crate does not know.
    #[inline]
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        error_table::find(self.code().0).map(|entry| entry.name)
    }

    /// What the code means, in a few words of our own; `None` for a code that this crate does not know.
    #[inline]
    #[must_use]
    pub fn text(&self) -> Option<&'static str> {
        error_table::find(self.code().0).map(|entry| entry.text)
    }

    /// Whether the code can only come from earlier work: a kernel that faulted. It sticks to the process, and every
    /// call that touches a context answers it from then on.
    #[inline]
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        is_fault(self.code().0)
    }

    /// Whether the code is about the call itself, which then has done nothing: no library, no such function, a parameter, a
    /// handle, the context, memory, what the device cannot do, what a capture forbids.
    #[inline]
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(
            self.code().0,
            1..=4 | 101 | 201 | 302 | 303 | 400 | 709 | 800 | 801 | 900..=907
        )
    }

    /// Whether no driver could be loaded. [`load_error`](Library::load_error) of the library says why.
    #[inline]
    #[must_use]
    pub fn is_no_driver(&self) -> bool {
        self.code() == CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
            && self.library().load_error().is_some()
    }

    /// Whether the driver does not export the function.
    #[inline]
    #[must_use]
    pub fn is_missing_function(&self) -> bool {
        // The driver may answer 302 too, so the code alone says nothing.
        self.code() == CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
            && self.library().load_error().is_none()
            && !self.library().supports(self.function())
    }

    /// The part of the message between "failed: " and the location.
    #[inline]
    fn reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_no_driver() {
            if let Some(error) = self.library().load_error() {
                return write!(f, "{error}");
            }
        }
        if self.is_missing_function() {
            if let Some(missing) = self.library().missing(self.function()) {
                return write!(f, "{}", missing.reason());
            }
        }
        match error_table::find(self.code().0) {
            Some(entry) => {
                let text =
                    Refusal::text((self.what >> 32) as u16 >> FUNCTION_BITS).unwrap_or(entry.text);
                write!(f, "{} ({}): {text}", entry.name, self.code().0)?;
            }
            None => write!(f, "unknown error code {}", self.code().0)?,
        }
        if self.is_fault() {
            f.write_str("; raised by earlier work, first seen by ")?;
            match FIRST_FAULT.get() {
                Some((first, dropping))
                    if first.has_library_of(self) && (*dropping || !first.is_same_call(self)) =>
                {
                    write!(f, "{}", first.function())?;
                    if *dropping {
                        // The line is one of this crate, which would tell nobody anything.
                        f.write_str(" when an object was dropped")?;
                    } else {
                        write!(f, " at {}", Place(first.location))?;
                    }
                    if first.code() != self.code() {
                        write!(f, ", as code {}", first.code().0)?;
                    }
                }
                _ => f.write_str("this call")?,
            }
        }
        Ok(())
    }

    #[inline]
    const fn library_number(&self) -> u16 {
        (self.what >> 48) as u16
    }

    #[inline]
    fn has_library_of(&self, other: &Self) -> bool {
        self.what >> 48 == other.what >> 48
    }

    #[inline]
    fn is_same_call(&self, other: &Self) -> bool {
        self.what == other.what && self.location == other.location
    }
}

/// Codes that a call answers because of what an earlier kernel did.
#[inline]
pub(crate) const fn is_fault(code: u32) -> bool {
    matches!(code, 226 | 700 | 702 | 710 | 714..=719 | 721)
}

thread_local! {
    /// Whether this thread's calls come from a `Drop`.
    static DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// The last call of an object that is dropped: `dropping().done(unsafe { … })`.
#[derive(Debug)]
pub(crate) struct Dropping {
    /// Whether an object around this one is being dropped.
    before: bool,
}

/// Calls from here on, until what this returns is gone, come from a `Drop`.
#[inline]
pub(crate) fn dropping() -> Dropping {
    Dropping {
        before: DROPPING.replace(true),
    }
}

impl Dropping {
    /// A drop can report nothing. Not initialised (after `fork`), deinitialised (at exit), the context gone, and faults all
    /// mean that there is nothing left to release; with any other code there is nothing that could still be done.
    #[inline]
    pub(crate) fn done(self, result: Result<()>) {
        let _ = result;
    }
}

impl Drop for Dropping {
    /// Also where an interposer panics in the call.
    #[inline]
    fn drop(&mut self) {
        DROPPING.set(self.before);
    }
}

/// A location as file and line.
struct Place(&'static Location<'static>);

impl fmt::Display for Place {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

impl fmt::Display for Error {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: ", self.function())?;
        self.reason(f)?;
        write!(f, " ({})", Place(self.location))
    }
}

impl fmt::Debug for Error {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` that returns an error prints it with `Debug`: the sentence serves better there than a struct.
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Error {}

/// Two errors are equal when code, function and library are; the line may differ.
impl PartialEq for Error {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
            && self.function() == other.function()
            && self.library_number() == other.library_number()
    }
}

impl Eq for Error {}
