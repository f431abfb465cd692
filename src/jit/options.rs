//! The options of the driver's compiler and linker.

use core::ffi::c_void;
use core::num::{NonZeroU16, NonZeroU32};
use std::ffi::CString;

use crate::sys::{CUjit_cacheMode, CUjit_fallback, CUjit_option, CUjit_target};

/// Options of the driver's PTX compiler and linker: all of CUDA 13.5. The elapsed time (`CU_JIT_WALL_TIME`) is always
/// requested; [`Module::compile_ms`](crate::Module::compile_ms) returns it.
///
/// An option with a version in its documentation is rejected before the call if the driver is older. The other options
/// are older than CUDA 11.7, the oldest driver that this crate supports.
///
/// ```
/// use cuda_driver::JitOptions;
///
/// let options = JitOptions { line_info: true, optimization_level: Some(2), ..Default::default() };
/// ```
///
/// Later versions may add fields, so end a literal with `..Default::default()`.
#[derive(Debug, Clone)]
pub struct JitOptions {
    /// The maximum number of registers per thread; by default, the compiler decides (`CU_JIT_MAX_REGISTERS`).
    pub max_registers: Option<NonZeroU32>,
    /// The minimum number of threads that a block must be able to have, which limits the registers; by default, the
    /// compiler decides (`CU_JIT_THREADS_PER_BLOCK`). It cannot be combined with a [chosen target](JitTarget::Compute).
    /// Driver 580 crashes on 0, which the type excludes.
    pub threads_per_block: Option<NonZeroU32>,
    /// The optimisation level from 0 to 4; 4 by default (`CU_JIT_OPTIMIZATION_LEVEL`).
    pub optimization_level: Option<u32>,
    /// The architecture to compile for; by default, the architecture of the context's device (`CU_JIT_TARGET`,
    /// `CU_JIT_TARGET_FROM_CUCONTEXT`).
    pub target: Option<JitTarget>,
    /// The preferred code, PTX or compatible machine code, if a fat binary has no machine code for exactly the target
    /// (`CU_JIT_FALLBACK_STRATEGY`). A linker does not accept this option.
    pub fallback: Option<CUjit_fallback>,
    /// True to generate debug information (`CU_JIT_GENERATE_DEBUG_INFO`).
    pub debug_info: bool,
    /// True to generate line numbers (`CU_JIT_GENERATE_LINE_INFO`).
    pub line_info: bool,
    /// True to list the resources that each kernel uses in the [info log](crate::Module::info_log)
    /// (`CU_JIT_LOG_VERBOSE`).
    pub verbose: bool,
    /// The size of each of the two logs, in bytes; 0 for no logs, and 256 KiB by default. A longer log is truncated,
    /// and ends in a line that says so (`CU_JIT_ERROR_LOG_BUFFER`, `CU_JIT_INFO_LOG_BUFFER`, and their sizes).
    pub log_bytes: u32,
    /// The caching of global loads in the L1 cache (`CU_JIT_CACHE_MODE`).
    pub cache_mode: Option<CUjit_cacheMode>,
    /// Deprecated; driver 580 returns `CUDA_ERROR_INVALID_PTX` for it (`CU_JIT_NEW_SM3X_OPT`).
    pub new_sm3x_opt: bool,
    /// For internal use by NVIDIA (`CU_JIT_FAST_COMPILE`).
    pub fast_compile: bool,
    /// Addresses of variables that the code declares `.extern` (`CU_JIT_GLOBAL_SYMBOL_NAMES`,
    /// `CU_JIT_GLOBAL_SYMBOL_ADDRESSES` and `CU_JIT_GLOBAL_SYMBOL_COUNT`). Driver 580 returns
    /// `CUDA_ERROR_INVALID_VALUE` for PTX with symbols.
    pub global_symbols: Vec<HostSymbol>,
    /// Link-time optimisation of LTO-IR that was compiled by toolkits before CUDA 12.0; deprecated.
    pub lto: Option<LtoOptions>,
    /// Deprecated and ignored by drivers (`CU_JIT_POSITION_INDEPENDENT_CODE`, since CUDA 12.0).
    pub position_independent_code: bool,
    /// A hint: the minimum number of blocks on a multiprocessor. It needs
    /// [`max_threads_per_block`](Self::max_threads_per_block), and is ignored with
    /// [`max_registers`](Self::max_registers) or [`threads_per_block`](Self::threads_per_block)
    /// (`CU_JIT_MIN_CTA_PER_SM`, since CUDA 12.3).
    pub min_blocks_per_multiprocessor: Option<NonZeroU32>,
    /// The maximum number of threads of a block, which no launch may exceed (`CU_JIT_MAX_THREADS_PER_BLOCK`, since CUDA
    /// 12.4). Driver 580 crashes on 2³² − 1, which the type excludes; no device has blocks of more than 1,024 threads.
    pub max_threads_per_block: Option<NonZeroU16>,
    /// True if [`max_registers`](Self::max_registers), [`threads_per_block`](Self::threads_per_block),
    /// [`max_threads_per_block`](Self::max_threads_per_block) and
    /// [`min_blocks_per_multiprocessor`](Self::min_blocks_per_multiprocessor) override the directives in the PTX
    /// (`CU_JIT_OVERRIDE_DIRECTIVE_VALUES`, since CUDA 12.4).
    pub override_directives: bool,
    /// The maximum number of host threads that optimise; 0 for one per CPU of this machine (`CU_JIT_SPLIT_COMPILE`,
    /// since CUDA 13.0). Driver 580 hangs with huge numbers, which the type excludes.
    pub split_compile: Option<u8>,
    /// The maximum number of host threads that compile; 0 for one per CPU of this machine
    /// (`CU_JIT_BINARY_LOADER_THREAD_COUNT`, since CUDA 13.1).
    pub loader_threads: Option<u8>,
}

impl Default for JitOptions {
    #[inline]
    fn default() -> Self {
        Self {
            max_registers: None,
            threads_per_block: None,
            optimization_level: None,
            target: None,
            fallback: None,
            debug_info: false,
            line_info: false,
            verbose: false,
            log_bytes: 256 << 10,
            cache_mode: None,
            new_sm3x_opt: false,
            fast_compile: false,
            global_symbols: Vec::new(),
            lto: None,
            position_independent_code: false,
            min_blocks_per_multiprocessor: None,
            max_threads_per_block: None,
            override_directives: false,
            split_compile: None,
            loader_threads: None,
        }
    }
}

/// The architecture to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JitTarget {
    /// The architecture of the context's device.
    Context,
    /// A chosen architecture. If driver 580 can compile for it but the device has another one, a load returns
    /// `CUDA_ERROR_INVALID_SOURCE`, and a linker makes an image for it.
    Compute(CUjit_target),
}

/// Options of link-time optimisation (`CU_JIT_LTO`), which is deprecated.
#[derive(Debug, Clone, Default)]
pub struct LtoOptions {
    /// True to flush single-precision denormals to zero; false by default (`CU_JIT_FTZ`).
    pub ftz: Option<bool>,
    /// True for divisions that round to nearest; true by default (`CU_JIT_PREC_DIV`).
    pub prec_div: Option<bool>,
    /// True for square roots that round to nearest; true by default (`CU_JIT_PREC_SQRT`).
    pub prec_sqrt: Option<bool>,
    /// True to contract multiplications and additions; true by default (`CU_JIT_FMA`).
    pub fma: Option<bool>,
    /// Names of kernels to keep, while others may be removed (`CU_JIT_REFERENCED_KERNEL_NAMES` and
    /// `CU_JIT_REFERENCED_KERNEL_COUNT`).
    pub referenced_kernels: Vec<CString>,
    /// Names of variables to keep, while others may be removed (`CU_JIT_REFERENCED_VARIABLE_NAMES` and
    /// `CU_JIT_REFERENCED_VARIABLE_COUNT`).
    pub referenced_variables: Vec<CString>,
    /// True to remove variables that device code does not use (`CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES`).
    pub optimize_unused_variables: bool,
}

/// A host variable, for code that declares it `.extern`.
#[derive(Debug, Clone)]
pub struct HostSymbol {
    pub(super) name: CString,
    pub(super) address: *mut c_void,
}

// SAFETY: the address is only passed on; see `HostSymbol::new` for its use.
unsafe impl Send for HostSymbol {}
// SAFETY: as above.
unsafe impl Sync for HostSymbol {}

impl HostSymbol {
    /// Returns the symbol with this name at an address.
    ///
    /// # Safety
    /// The address must be of a variable of the declared size that the device may access, as long as code that was
    /// loaded with the symbol stays loaded.
    #[inline]
    #[must_use]
    pub const unsafe fn new(name: CString, address: *mut c_void) -> Self {
        Self { name, address }
    }
}

/// An option with a number as its value.
pub(super) struct Number {
    pub(super) option: CUjit_option,
    pub(super) value: u32,
    /// The field's name and the number of its first CUDA version (12030 for 12.3), if that is later than 11.7.
    pub(super) since: Option<(&'static str, u32)>,
}

impl JitOptions {
    /// Returns the options that are set and are numbers, except the options of the logs.
    #[inline]
    pub(super) fn numbers(&self) -> Vec<Number> {
        let mut numbers = Vec::new();
        let mut add = |option, value: Option<u32>, since| {
            if let Some(value) = value {
                numbers.push(Number { option, value, since });
            }
        };
        let one = |on: bool| on.then_some(1);
        let some = |value: Option<NonZeroU32>| value.map(NonZeroU32::get);
        add(CUjit_option::CU_JIT_MAX_REGISTERS, some(self.max_registers), None);
        add(
            CUjit_option::CU_JIT_THREADS_PER_BLOCK,
            some(self.threads_per_block),
            None,
        );
        add(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, self.optimization_level, None);
        match self.target {
            Some(JitTarget::Context) => add(CUjit_option::CU_JIT_TARGET_FROM_CUCONTEXT, Some(0), None),
            Some(JitTarget::Compute(target)) => add(CUjit_option::CU_JIT_TARGET, Some(target.0), None),
            None => {}
        }
        add(
            CUjit_option::CU_JIT_FALLBACK_STRATEGY,
            self.fallback.map(|it| it.0),
            None,
        );
        add(CUjit_option::CU_JIT_GENERATE_DEBUG_INFO, one(self.debug_info), None);
        add(CUjit_option::CU_JIT_LOG_VERBOSE, one(self.verbose), None);
        add(CUjit_option::CU_JIT_GENERATE_LINE_INFO, one(self.line_info), None);
        add(CUjit_option::CU_JIT_CACHE_MODE, self.cache_mode.map(|it| it.0), None);
        add(CUjit_option::CU_JIT_NEW_SM3X_OPT, one(self.new_sm3x_opt), None);
        add(CUjit_option::CU_JIT_FAST_COMPILE, one(self.fast_compile), None);
        if let Some(lto) = &self.lto {
            add(CUjit_option::CU_JIT_LTO, Some(1), None);
            for (option, on) in [
                (CUjit_option::CU_JIT_FTZ, lto.ftz),
                (CUjit_option::CU_JIT_PREC_DIV, lto.prec_div),
                (CUjit_option::CU_JIT_PREC_SQRT, lto.prec_sqrt),
                (CUjit_option::CU_JIT_FMA, lto.fma),
            ] {
                add(option, on.map(u32::from), None);
            }
            let unused = one(lto.optimize_unused_variables);
            add(CUjit_option::CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES, unused, None);
        }
        add(
            CUjit_option::CU_JIT_POSITION_INDEPENDENT_CODE,
            one(self.position_independent_code),
            Some(("position_independent_code", 12000)),
        );
        add(
            CUjit_option::CU_JIT_MIN_CTA_PER_SM,
            some(self.min_blocks_per_multiprocessor),
            Some(("min_blocks_per_multiprocessor", 12030)),
        );
        add(
            CUjit_option::CU_JIT_MAX_THREADS_PER_BLOCK,
            self.max_threads_per_block.map(|threads| threads.get().into()),
            Some(("max_threads_per_block", 12040)),
        );
        add(
            CUjit_option::CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
            one(self.override_directives),
            Some(("override_directives", 12040)),
        );
        add(
            CUjit_option::CU_JIT_SPLIT_COMPILE,
            self.split_compile.map(u32::from),
            Some(("split_compile", 13000)),
        );
        add(
            CUjit_option::CU_JIT_BINARY_LOADER_THREAD_COUNT,
            self.loader_threads.map(u32::from),
            Some(("loader_threads", 13010)),
        );
        numbers
    }
}
