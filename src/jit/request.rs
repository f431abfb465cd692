//! Options as the driver takes them, with the buffers that their values point to.

use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;

use super::buffer::LogBuffer;
use super::error::JitError;
use super::options::JitOptions;
use crate::sys::{self, CUjit_option, CUresult, Function};
use crate::{Error, Version};

/// The arrays of one call: options, and for each a value that is a number or an address.
///
/// The driver writes results into the values and the buffers. After a call that creates a linker, later calls for the
/// linker write to them, too: the request must live as long as the linker. The driver writes only during calls.
pub(crate) struct Request {
    options: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
    errors: Option<LogBuffer>,
    infos: Option<LogBuffer>,
    /// Lists that values point to.
    lists: Vec<Vec<*const c_void>>,
    /// The names that the lists point to.
    kept_names: Vec<CString>,
    /// The index of the value into which the driver writes the elapsed time; `usize::MAX` if there is none.
    wall_time: usize,
}

// SAFETY: the addresses are of memory that the request owns, or only passed on; see `HostSymbol`.
unsafe impl Send for Request {}
// SAFETY: as above; shared references only read. The driver writes in calls that borrow the request exclusively, and in
// calls for the linker that owns the request; a linker is not `Sync`.
unsafe impl Sync for Request {}

impl Request {
    /// Returns the arrays for a call of `function`: the options, the logs and the elapsed time.
    #[inline]
    #[track_caller]
    pub(crate) fn new(options: &JitOptions, function: Function) -> Result<Self, JitError> {
        let mut request = Self::of_input(options, function)?;
        request.wall_time = request.values.len();
        request.number(CUjit_option::CU_JIT_WALL_TIME, 0);
        if options.log_bytes > 0 {
            let (Some(errors), Some(infos)) = (LogBuffer::new(options.log_bytes), LogBuffer::new(options.log_bytes))
            else {
                let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
                let reason = "out of host memory for the logs: reduce `log_bytes`".to_owned();
                return Err(JitError::refused(Error::unasked(code, function), reason));
            };
            request.address(CUjit_option::CU_JIT_ERROR_LOG_BUFFER, errors.address().cast());
            request.number(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, options.log_bytes);
            request.address(CUjit_option::CU_JIT_INFO_LOG_BUFFER, infos.address().cast());
            request.number(CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, options.log_bytes);
            (request.errors, request.infos) = (Some(errors), Some(infos));
        }
        Ok(request)
    }

    /// Returns the arrays for an input of a linker, without logs and time: the linker's own request has them.
    #[inline]
    #[track_caller]
    pub(crate) fn of_input(options: &JitOptions, function: Function) -> Result<Self, JitError> {
        let mut request = Self {
            options: Vec::new(),
            values: Vec::new(),
            errors: None,
            infos: None,
            lists: Vec::new(),
            kept_names: Vec::new(),
            wall_time: usize::MAX,
        };
        for number in options.numbers() {
            if let (Some((field, since)), Some(version)) = (number.since, sys::DEFAULT.version()) {
                if version < since {
                    let (needed, given) = (Version::from_raw(since), Version::from_raw(version));
                    return Err(JitError::refused(
                        Error::unasked(CUresult::CUDA_ERROR_NOT_SUPPORTED, function),
                        format!(
                            "`JitOptions::{field}` needs CUDA {needed}, this driver supports {given}: do not set it"
                        ),
                    ));
                }
            }
            request.number(number.option, number.value);
        }
        request.symbols(options);
        if let Some(lto) = &options.lto {
            request.names(
                &lto.referenced_kernels,
                CUjit_option::CU_JIT_REFERENCED_KERNEL_NAMES,
                CUjit_option::CU_JIT_REFERENCED_KERNEL_COUNT,
            );
            request.names(
                &lto.referenced_variables,
                CUjit_option::CU_JIT_REFERENCED_VARIABLE_NAMES,
                CUjit_option::CU_JIT_REFERENCED_VARIABLE_COUNT,
            );
        }
        Ok(request)
    }

    #[inline]
    fn number(&mut self, option: CUjit_option, value: u32) {
        self.address(option, ptr::without_provenance_mut(value as usize));
    }

    #[inline]
    fn address(&mut self, option: CUjit_option, value: *mut c_void) {
        self.options.push(option);
        self.values.push(value);
    }

    /// Adds an option whose value is the address of a list.
    #[inline]
    fn list(&mut self, option: CUjit_option, list: Vec<*const c_void>) {
        let address = list.as_ptr().cast_mut().cast();
        self.lists.push(list);
        self.address(option, address);
    }

    /// Adds a list of names and its length.
    #[inline]
    fn names(&mut self, names: &[CString], option: CUjit_option, count: CUjit_option) {
        if names.is_empty() {
            return;
        }
        let names = names.to_vec();
        let list = names.iter().map(|name| name.as_ptr().cast()).collect();
        self.number(count, u32::try_from(names.len()).unwrap_or(u32::MAX));
        self.list(option, list);
        self.kept_names.extend(names);
    }

    #[inline]
    fn symbols(&mut self, options: &JitOptions) {
        let symbols = &options.global_symbols;
        let names: Vec<CString> = symbols.iter().map(|symbol| symbol.name.clone()).collect();
        self.names(
            &names,
            CUjit_option::CU_JIT_GLOBAL_SYMBOL_NAMES,
            CUjit_option::CU_JIT_GLOBAL_SYMBOL_COUNT,
        );
        if !symbols.is_empty() {
            let addresses = symbols.iter().map(|symbol| symbol.address.cast_const()).collect();
            self.list(CUjit_option::CU_JIT_GLOBAL_SYMBOL_ADDRESSES, addresses);
        }
    }

    /// Returns the options and their values.
    #[inline]
    pub(crate) fn arrays(&mut self) -> (&[CUjit_option], &mut [*mut c_void]) {
        (&self.options, &mut self.values)
    }

    /// Returns the compiler's error messages.
    #[inline]
    pub(crate) fn error_log(&self) -> String {
        self.errors.as_ref().map(LogBuffer::text).unwrap_or_default()
    }

    /// Returns the compiler's other messages.
    #[inline]
    pub(crate) fn info_log(&self) -> String {
        self.infos.as_ref().map(LogBuffer::text).unwrap_or_default()
    }

    /// Returns the elapsed time in milliseconds; 0 if the driver did not write it.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // the driver writes 32 bits
    pub(crate) fn wall_ms(&self) -> f32 {
        match self.values.get(self.wall_time) {
            // SAFETY: the reference is valid. A volatile read, because the driver writes a linker's value in later
            // calls than the one that the value was passed to.
            Some(value) => f32::from_bits(unsafe { ptr::from_ref(value).read_volatile() }.addr() as u32),
            None => 0.0,
        }
    }

    /// Returns the error of the call with the logs.
    #[inline]
    pub(crate) fn failed(&self, error: Error) -> JitError {
        JitError::with_logs(error, self.error_log(), self.info_log())
    }
}
