//! The driver's PTX compiler: its options and logs.

use core::ffi::c_void;
use core::num::NonZeroU32;
use core::ptr;
use std::ffi::CStr;

use super::JitError;
use crate::refusal::Refusal;
use crate::sys::{self, CUjit_option, CUresult};
use crate::{Context, Error, checked};

/// Options of the driver's PTX compiler.
///
/// Later versions may add fields: a literal ends in `..Default::default()`.
#[derive(Debug, Clone)]
pub struct JitOptions {
    /// The maximum number of registers per thread; by default, the compiler decides.
    pub max_registers: Option<NonZeroU32>,
    /// The minimum number of threads per block that must be able to run; by default, the compiler decides.
    pub threads_per_block: Option<NonZeroU32>,
    /// The optimisation level from 0 to 4; 4 by default.
    pub optimization_level: Option<u32>,
    /// True to generate debug information.
    pub debug_info: bool,
    /// True to generate line numbers.
    pub line_info: bool,
    /// True to list the resources that each kernel uses in the [info log](crate::Module::info_log).
    pub verbose: bool,
    /// The size of each of the two logs, in bytes; 0 for no logs.
    pub log_bytes: u32,
}

impl Default for JitOptions {
    #[inline]
    fn default() -> Self {
        Self {
            max_registers: None,
            threads_per_block: None,
            optimization_level: None,
            debug_info: false,
            line_info: false,
            verbose: false,
            log_bytes: 16 * 1024,
        }
    }
}

/// Options in the driver's form: each has a value that is a number or an address.
#[derive(Default)]
struct OptionList {
    options: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
}

impl OptionList {
    #[inline]
    fn number(&mut self, option: CUjit_option, value: u32) {
        self.address(option, ptr::without_provenance_mut(value as usize));
    }

    #[inline]
    fn address(&mut self, option: CUjit_option, value: *mut c_void) {
        self.options.push(option);
        self.values.push(value);
    }
}

/// Allocates a log.
#[track_caller]
fn log(bytes: u32) -> Result<Vec<u8>, Error> {
    let mut room = Vec::new();
    if room.try_reserve_exact(bytes as usize).is_err() {
        return Err(Error::refused(
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            sys::Function::cuModuleLoadDataEx,
            Refusal::LogMemory,
        ));
    }
    room.resize(bytes as usize, 0);
    Ok(room)
}

/// Loads an image, and returns the module with the compiler's info log.
///
/// # Safety
/// `image` must point to a complete cubin or fat binary, or to NUL-terminated text.
#[inline]
#[track_caller]
pub(super) unsafe fn load(
    context: &Context,
    image: *const u8,
    options: &JitOptions,
) -> Result<(sys::CUmodule, String), JitError> {
    let mut errors = log(options.log_bytes).map_err(JitError::new)?;
    let mut infos = log(options.log_bytes).map_err(JitError::new)?;
    let mut list = OptionList::default();
    if options.log_bytes > 0 {
        list.address(CUjit_option::CU_JIT_ERROR_LOG_BUFFER, errors.as_mut_ptr().cast());
        list.number(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, options.log_bytes);
        list.address(CUjit_option::CU_JIT_INFO_LOG_BUFFER, infos.as_mut_ptr().cast());
        list.number(CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, options.log_bytes);
    }
    if let Some(registers) = options.max_registers {
        list.number(CUjit_option::CU_JIT_MAX_REGISTERS, registers.get());
    }
    if let Some(threads) = options.threads_per_block {
        list.number(CUjit_option::CU_JIT_THREADS_PER_BLOCK, threads.get());
    }
    if let Some(level) = options.optimization_level {
        list.number(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, level);
    }
    for (on, option) in [
        (options.debug_info, CUjit_option::CU_JIT_GENERATE_DEBUG_INFO),
        (options.line_info, CUjit_option::CU_JIT_GENERATE_LINE_INFO),
        (options.verbose, CUjit_option::CU_JIT_LOG_VERBOSE),
    ] {
        if on {
            list.number(option, 1);
        }
    }
    let _current = match context.enter() {
        Ok(current) => current,
        Err(error) => return Err(JitError::new(error)),
    };
    // SAFETY: the image is upheld by the caller; each option has a value of its type, and the buffers have the given size.
    let loaded = unsafe { checked::module_load_data_ex(image.cast(), &list.options, &mut list.values) };
    match loaded {
        Ok(raw) => Ok((raw, text(&infos))),
        Err(error) => Err(JitError::with_logs(error, text(&errors), text(&infos))),
    }
}

/// Returns the text in a buffer, up to the first NUL byte.
fn text(buffer: &[u8]) -> String {
    let bytes = CStr::from_bytes_until_nul(buffer).map_or(buffer, CStr::to_bytes);
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}
