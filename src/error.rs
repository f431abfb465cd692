//! Errors of driver calls: the code, the function, the library and the caller's line.

use core::cell::Cell;
use core::fmt;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering};
use std::process;
use std::sync::OnceLock;

use crate::error_log::{self, ErrorLog};
use crate::refusal::Refusal;
use crate::sys::{CUresult, DEFAULT, Function, Library};

/// The result of a driver call.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A driver call that failed. An error is 16 bytes and `Copy`, and printing it makes no driver call.
///
/// ```text
/// cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory (src/main.rs:12)
/// cuCtxCreate_v4 failed: needs CUDA 12.5, this driver supports 12.2 (src/main.rs:12)
/// ```
///
/// The location is the line outside this crate that made the call. An error that `?` converted from a
/// [`JitError`](crate::JitError) or a [`GraphError`](crate::graph::GraphError) also prints the [messages](Self::log) of
/// that error. If the [driver's log](crate::driver_log) is attached, an error also prints the driver's messages.
#[derive(Clone, Copy)]
#[must_use]
pub struct Error {
    location: &'static Location<'static>,
    /// Four bit fields, from the lowest bit: 32 bits for the code, [`FUNCTION_BITS`] for the function's index, 6 for
    /// the number of a [`Refusal`] or [`HAS_LOG`], and 16 for the library's number, or with `HAS_LOG` for the number of
    /// an [`ErrorLog`]. They are packed so that a `Result<()>` has two words and is returned in registers.
    packed: u64,
}

/// The number of bits for a function's index.
const FUNCTION_BITS: u32 = 10;

/// The value of the bit field for the [`Refusal`] in an error with an [`ErrorLog`].
const HAS_LOG: u16 = (1 << (16 - FUNCTION_BITS)) - 1;

/// The bits for the code and the function's index.
const CALL_BITS: u64 = (1 << (32 + FUNCTION_BITS)) - 1;

const _: () = assert!(Refusal::COUNT < HAS_LOG as usize);
const _: () = assert!(Function::ALL.len() <= 1 << FUNCTION_BITS);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Error>() == 16);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Result<u64>>() == 16);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Result<*mut u8>>() == 16);

/// The first fault seen in this process, and true if it was seen while an object was dropped. Faults are sticky, so
/// each driver has at most one; of several drivers in a process, only the first fault is stored.
static FIRST_FAULT: OnceLock<(Error, bool)> = OnceLock::new();

/// Adds the driver's messages to an error, if the program asked for them. A function pointer, so that only such
/// programs contain the code.
static ATTACH_LOG: OnceLock<fn(Error) -> Error> = OnceLock::new();

/// Converts the code of a raw call of `function` through [`sys::DEFAULT`](crate::sys::DEFAULT) to a result.
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
/// Returns an error if the code is not `CUDA_SUCCESS`.
#[inline]
#[track_caller]
pub fn check(code: CUresult, function: Function) -> Result<()> {
    if code.0 == 0 {
        return Ok(());
    }
    Err(Error::new(code, function, Location::caller()))
}

/// Converts the code of a raw call of `function` through `library` to a result.
///
/// # Errors
/// Returns an error if the code is not `CUDA_SUCCESS`.
#[inline]
#[track_caller]
pub fn check_in(library: &Library, code: CUresult, function: Function) -> Result<()> {
    if code.0 == 0 {
        return Ok(());
    }
    Err(Error::of(library, code, function, Location::caller()))
}

impl Error {
    /// Returns the error of a call of [`DEFAULT`], with the messages that the driver logged.
    // Not inline, so that the code is compiled once and not in each crate that makes calls.
    #[cold]
    pub(crate) fn new(code: CUresult, function: Function, location: &'static Location<'static>) -> Self {
        let error = Self::of(&DEFAULT, code, function, location);
        match ATTACH_LOG.get() {
            Some(attach) => attach(error),
            None => error,
        }
    }

    /// Adds the messages that the driver logs from now on to the errors of its calls.
    #[inline]
    pub(crate) fn attach_driver_log() {
        let _ = ATTACH_LOG.set(|error| {
            let log = error_log::take_noted();
            error.with_log(ErrorLog { path: "", log: &log })
        });
    }

    #[cold]
    #[inline]
    fn of(library: &Library, code: CUresult, function: Function, location: &'static Location<'static>) -> Self {
        let error = Self {
            location,
            // The index fits into `FUNCTION_BITS`, as asserted above.
            packed: u64::from(code.0) | (function.index() as u64) << 32 | u64::from(library.number()) << 48,
        };
        if code == CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND && !library.supports(function) {
            // The message contains the driver's version, and printing must not call the driver.
            library.note_version();
        }
        if error.is_fault() {
            let _ = FIRST_FAULT.get_or_init(|| (error, DROPPING.get()));
        }
        error
    }

    /// Returns an error that this crate detected, not the driver. Messages of the driver are not added to it.
    #[cold]
    #[inline]
    #[track_caller]
    pub(crate) fn unasked(code: CUresult, function: Function) -> Self {
        Self::of(&DEFAULT, code, function, Location::caller())
    }

    /// Same as [`unasked`](Self::unasked), with a reason in place of the code's text.
    #[cold]
    #[inline]
    #[track_caller]
    pub(crate) fn refused(code: CUresult, function: Function, reason: Refusal) -> Self {
        let mut error = Self::unasked(code, function);
        error.packed |= u64::from(reason.number()) << (32 + FUNCTION_BITS);
        error
    }

    /// Returns the error with `log`. An error of another library than [`DEFAULT`] stays unchanged, because the bits for
    /// the number of the messages are in use. The text of a [`Refusal`] comes before the messages, and messages that
    /// the error already has come after the new ones.
    #[cold]
    #[inline]
    pub(crate) fn with_log(mut self, log: ErrorLog<'_>) -> Self {
        if log.path.is_empty() && log.log.is_empty() {
            return self;
        }
        if let Some(earlier) = self.kept() {
            let both = format!("{}\n{}", log.log.trim_end(), earlier.log);
            return self.bare().with_log(ErrorLog {
                log: both.trim_start(),
                ..log
            });
        }
        if let Some(reason) = Refusal::text(self.refusal_number()) {
            let both = format!("{reason}\n{}", log.log);
            return self.bare().with_log(ErrorLog {
                log: both.trim_end(),
                ..log
            });
        }
        if self.packed >> (32 + FUNCTION_BITS) == 0 {
            self.packed |= u64::from(HAS_LOG) << (32 + FUNCTION_BITS) | u64::from(log.keep()) << 48;
        }
        self
    }

    /// Returns the error without its messages.
    #[inline]
    const fn bare(self) -> Self {
        Self {
            packed: self.packed & CALL_BITS,
            ..self
        }
    }

    /// Returns messages that belong to the error: those of the [`JitError`](crate::JitError) or
    /// [`GraphError`](crate::graph::GraphError) that was converted to it, the reason why a launch rejected its
    /// arguments, and the driver's, if its [log](crate::driver_log) is attached.
    ///
    /// The messages are kept as long as the process runs, equal messages only once, up to 1 MiB in total. For later
    /// messages, this method returns a sentence that says that they were not kept.
    #[inline]
    #[must_use]
    pub fn log(&self) -> Option<&'static str> {
        self.kept().map(|kept| kept.log)
    }

    #[inline]
    fn kept(&self) -> Option<ErrorLog<'static>> {
        (self.refusal_number() == HAS_LOG).then(|| ErrorLog::by_number((self.packed >> 48) as u16))
    }

    /// Returns the result code. It may be unknown to these bindings.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn code(&self) -> CUresult {
        CUresult(self.packed as u32)
    }

    /// Returns the function that failed. For an error of a [view](crate::DeviceSlice) that was not created, for which
    /// no function is called, it is `cuMemGetAddressRange`; for one of the [profiler's
    /// functions](crate::Context::profile), for which [`Function`] has no values, it is `cuCtxGetCurrent`.
    #[inline]
    #[must_use]
    pub fn function(&self) -> Function {
        // The fallback is not reached, because the index came from a `Function`.
        let index = (self.packed >> 32) & ((1 << FUNCTION_BITS) - 1);
        Function::from_index(index as usize).unwrap_or(Function::cuInit)
    }

    /// Returns the location of the caller.
    #[inline]
    #[must_use]
    pub const fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// Returns the called library: [`sys::DEFAULT`](crate::sys::DEFAULT), or the one passed to [`check_in`].
    #[inline]
    #[must_use]
    pub fn library(&self) -> &'static Library {
        // The fallback is not reached, because the number came from a library, and libraries are never freed.
        Library::by_number(self.library_number()).unwrap_or(&DEFAULT)
    }

    /// Returns the C name of the code, for instance `CUDA_ERROR_OUT_OF_MEMORY`; `None` for an unknown code.
    #[inline]
    #[doc(alias = "cuGetErrorName")]
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        self.code().name()
    }

    /// Returns a short description of the code; `None` for an unknown code. The text differs from the one
    /// that `cuGetErrorString` returns.
    #[inline]
    #[doc(alias = "cuGetErrorString")]
    #[must_use]
    pub fn text(&self) -> Option<&'static str> {
        self.code().description()
    }

    /// Returns true for a sticky error: a kernel faulted, and from then on every call that uses a context returns such
    /// an error.
    #[inline]
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        is_fault(self.code().0)
    }

    /// Returns true if the code is about the call itself, which then had no effect: a library or function that is
    /// missing, a driver that is not initialised, an invalid argument, device, handle or context, lack of memory, a
    /// call that is not permitted or not supported, or a rule of stream capture.
    #[inline]
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(
            self.code().0,
            1..=4 | 101 | 201 | 302 | 303 | 400 | 709 | 800 | 801 | 900..=907
        )
    }

    /// Returns true if no driver could be loaded. The library's [`load_error`](Library::load_error) gives the reason.
    #[inline]
    #[must_use]
    pub fn is_no_driver(&self) -> bool {
        self.code() == CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED && self.library().load_error().is_some()
    }

    /// Returns true if the driver does not export the function.
    #[inline]
    #[must_use]
    pub fn is_missing_function(&self) -> bool {
        // A driver may return this code for other reasons.
        self.code() == CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
            && self.library().load_error().is_none()
            && !self.library().supports(self.function())
    }

    /// Prints the part of the message between "failed: " and the location.
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
        let number = self.code().0;
        match self.name() {
            Some(name) => write!(f, "{name} ({number})")?,
            None => write!(f, "unknown error code {number}")?,
        }
        let refusal = Refusal::text(self.refusal_number());
        if let Some(text) = refusal.or(self.text()) {
            write!(f, ": {text}")?;
        }
        if self.is_fault() {
            f.write_str("; raised by earlier work, first seen by ")?;
            match FIRST_FAULT.get() {
                Some((first, dropping)) if first.has_library_of(self) && (*dropping || !first.is_same_call(self)) => {
                    write!(f, "{}", first.function())?;
                    if *dropping {
                        // The location would be a line of this crate.
                        f.write_str(" when an object was dropped")?;
                    } else {
                        write!(f, " at {}", FileAndLine(first.location))?;
                    }
                    if first.code() != self.code() {
                        match first.name() {
                            Some(name) => write!(f, ", as {name}")?,
                            None => write!(f, ", as code {}", first.code().0)?,
                        }
                    }
                }
                _ => f.write_str("this call")?,
            }
        }
        Ok(())
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    const fn refusal_number(&self) -> u16 {
        (self.packed >> 32) as u16 >> FUNCTION_BITS
    }

    #[inline]
    const fn library_number(&self) -> u16 {
        if self.refusal_number() == HAS_LOG {
            return DEFAULT.number();
        }
        (self.packed >> 48) as u16
    }

    #[inline]
    fn has_library_of(&self, other: &Self) -> bool {
        self.library_number() == other.library_number()
    }

    #[inline]
    fn is_same_call(&self, other: &Self) -> bool {
        (self.packed ^ other.packed) & CALL_BITS == 0 && self.location == other.location
    }
}

/// Returns true for the codes that a call returns because an earlier kernel faulted.
#[inline]
pub(crate) const fn is_fault(code: u32) -> bool {
    matches!(code, 226 | 700 | 702 | 710 | 714..=719 | 721)
}

thread_local! {
    /// True while an object is being dropped on this thread.
    static DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// Guard of the last call of an object in its `Drop`.
#[derive(Debug)]
pub(crate) struct Dropping {
    /// True if an object that contains this one is also being dropped.
    before: bool,
}

/// The process that uses the driver; 0 before [`note_process`] is called.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Remembers the calling process as the one that uses the driver, unless a process is already remembered.
#[inline]
pub(crate) fn note_process() {
    if PROCESS.load(Ordering::Relaxed) == 0 {
        PROCESS.store(process::id(), Ordering::Relaxed);
    }
}

/// Marks the calls of this thread as calls of a `Drop` until the guard is dropped.
///
/// Returns `None` in a process that was forked from the one that uses the driver. There is nothing to release there,
/// and some calls crash: driver 580 does not check all handles after a fork.
#[inline]
pub(crate) fn dropping() -> Option<Dropping> {
    let owner = PROCESS.load(Ordering::Relaxed);
    if owner != 0 && owner != process::id() {
        return None;
    }
    Some(Dropping {
        before: DROPPING.replace(true),
    })
}

impl Dropping {
    /// Ignores the result of a call in a `Drop`, which cannot report it. At process exit, in a destroyed context and
    /// after a fault there is nothing left to release; after other errors nothing more can be done.
    #[inline]
    pub(crate) fn done(self, result: Result<()>) {
        let _ = result;
    }
}

impl Drop for Dropping {
    /// Runs even if an interposer panics in the call.
    #[inline]
    fn drop(&mut self) {
        DROPPING.set(self.before);
    }
}

/// A location, printed as file and line.
struct FileAndLine(&'static Location<'static>);

impl fmt::Display for FileAndLine {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

impl fmt::Display for Error {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(log) = self.kept() {
            return log.show(f, &self.bare());
        }
        if Refusal::is_of_view(self.refusal_number()) {
            f.write_str("a view of device memory failed: ")?;
        } else {
            write!(f, "{} failed: ", self.function())?;
        }
        self.reason(f)?;
        write!(f, " ({})", FileAndLine(self.location))
    }
}

impl fmt::Debug for Error {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` prints errors with `Debug`.
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Error {}

/// Two errors are equal if code, function and library are equal; location, reason and messages may differ.
impl PartialEq for Error {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.code() == other.code()
            && self.function() == other.function()
            && self.library_number() == other.library_number()
    }
}

impl Eq for Error {}
