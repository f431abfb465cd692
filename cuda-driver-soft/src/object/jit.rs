//! Compiles images to typed modules (`ir::Module`) for `cuModuleLoadData`, libraries and the linker.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::object::device::Device;
use crate::object::{jit_info, no_ptx};
use crate::state::error::{Error, Result};
use crate::state::settings;
use image::cubin::{self, Source};
use image::link::{self, Input};
use image::{Image, fatbin};
use ptx::{NOT_RECOGNIZED, ir};

/// Size of an ELF header in bytes; a shorter image is not ELF.
const ELF_HEADER: usize = 64;

/// JIT compiler options.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// `CU_JIT_TARGET`: the architecture to compile for.
    pub(crate) target: Option<u32>,
    /// `CU_JIT_MAX_REGISTERS`: the register limit of a kernel that has no directives for it.
    pub(crate) most_registers: Option<u32>,
    /// `CU_JIT_THREADS_PER_BLOCK`: block size that the register limit must permit, for the same kernels.
    pub(crate) threads_per_block: Option<u32>,
    /// `CU_JIT_LOG_VERBOSE`: list the resources of each kernel in the info log.
    pub(crate) verbose: bool,
    /// True if an option that only the compiler checks has an invalid value.
    pub(crate) refused: bool,
}

impl Options {
    /// Returns the register limit that follows from the options: the smaller of the two limits.
    fn register_limit(&self) -> Option<u32> {
        let by_threads = self.threads_per_block.map(|threads| {
            // The warps, a multiple of 4, share the 65,536 registers of a multiprocessor. A thread gets a multiple of
            // 8.
            let warps = threads.div_ceil(32).clamp(1, 32).next_multiple_of(4);
            65_536 / (warps * 32) / 8 * 8
        });
        self.most_registers.into_iter().chain(by_threads).min()
    }
}

/// Returns true for the architectures that `CU_JIT_TARGET` can name but driver 580 does not compile for: those before
/// sm_50, and sm_53 and sm_62.
fn is_not_compiled_for(sm: u32) -> bool {
    sm < 50 || matches!(sm, 53 | 62)
}

/// The compiler's logs. The last line has no newline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) info: String,
    pub(crate) error: String,
}

impl Log {
    /// Adds lines to the error log.
    pub(crate) fn add_error(&mut self, lines: &str) {
        if !self.error.is_empty() {
            self.error.push('\n');
        }
        self.error.push_str(lines.trim_end_matches('\n'));
    }

    /// Adds lines to the info log.
    pub(crate) fn add_info(&mut self, lines: &str) {
        if !self.info.is_empty() && !lines.is_empty() {
            self.info.push('\n');
        }
        self.info.push_str(lines);
    }
}

/// Compiles an image for a device. Does not check that `CU_JIT_TARGET` is the device's architecture: before code is
/// loaded into a context, [`check_target`] does so, because errors in the image are reported first. Reports an image
/// without PTX on standard error, too.
pub(crate) fn compile(image: &Image, options: &Options, device: &Device, log: &mut Log) -> Result<Arc<ir::Module>> {
    check_options(options)?;
    compiled(image, options, device, log).inspect_err(|&error| {
        if error == Error::CUDA_ERROR_NO_BINARY_FOR_GPU {
            no_ptx::tell(image.bytes(), device.profile.sm);
        }
    })
}

/// Limits the registers of a module's functions, if the module was just created. A shared module is not changed.
fn limit_registers(module: &mut Arc<ir::Module>, most: Option<u32>) {
    let (Some(most), Some(module)) = (most, Arc::get_mut(module)) else {
        return;
    };
    // Driver 580 ignores the options for kernels with `.maxnreg` or `.maxntid`; `.reqntid` limits registers as
    // `.maxntid` does.
    let limited = |own: &ir::Directives| own.maxnreg.is_some() || own.maxntid.is_some() || own.reqntid.is_some();
    let directives = module.functions.iter_mut().map(|f| &mut f.directives);
    for directives in directives.filter(|own| !limited(own)) {
        directives.maxnreg = Some(most);
    }
}

fn compiled(image: &Image, options: &Options, device: &Device, log: &mut Log) -> Result<Arc<ir::Module>> {
    match image {
        Image::Elf(bytes) => match cubin::read(bytes) {
            Some(image) if image.sm.is_some_and(|sm| sm != device.profile.sm) => fail(
                log,
                Error::CUDA_ERROR_NO_BINARY_FOR_GPU,
                "the image was linked for another architecture; link it for the architecture of this device",
            ),
            Some(image) => linked(&image.sources, device, log),
            None if bytes.len() < ELF_HEADER || !cubin::is_cuda(bytes) => {
                fail(log, Error::CUDA_ERROR_INVALID_IMAGE, NOT_RECOGNIZED)
            }
            None => fail(
                log,
                Error::CUDA_ERROR_NO_BINARY_FOR_GPU,
                "the image has no PTX, and SASS cannot be run; build with code=compute_XX",
            ),
        },
        _ => {
            // Driver 580 returns `CUDA_ERROR_INVALID_PTX` for a text whose `.target` is newer than `CU_JIT_TARGET`.
            let own = device.profile.sm;
            let sm = options.target.map_or(own, |sm| sm.min(own));
            let started = Instant::now();
            let mut module = text_module(&text(image, device, log)?, false, sm, log)?;
            limit_registers(&mut module, options.register_limit());
            if options.verbose {
                log.add_info(&jit_info::of_compiler(&module, device, started.elapsed()));
            }
            Ok(module)
        }
    }
}

/// Returns the compiler's error for invalid options: `CUDA_ERROR_INVALID_PTX`, or `CUDA_ERROR_INVALID_IMAGE` for a
/// target that it does not support.
fn check_options(options: &Options) -> Result<()> {
    if options.refused {
        return Err(Error::CUDA_ERROR_INVALID_PTX);
    }
    match options.target {
        Some(sm) if is_not_compiled_for(sm) => Err(Error::CUDA_ERROR_INVALID_IMAGE),
        _ => Ok(()),
    }
}

/// Returns `CUDA_ERROR_INVALID_SOURCE` if `CU_JIT_TARGET` is not the architecture of the device.
pub(crate) fn check_target(options: &Options, device: &Device) -> Result<()> {
    if options.target.is_some_and(|sm| sm != device.profile.sm) {
        Err(Error::CUDA_ERROR_INVALID_SOURCE)
    } else {
        Ok(())
    }
}

/// Returns the PTX text of an image.
fn text<'a>(image: &'a Image, device: &Device, log: &mut Log) -> Result<Cow<'a, [u8]>> {
    match image {
        Image::Text(text) => Ok(Cow::Borrowed(text)),
        Image::FatBinary(binary) => fatbin::ptx(binary, device.profile.sm)
            .map(Cow::Owned)
            .or_else(|failure| {
                let (code, reason) = match failure {
                    fatbin::Failure::Malformed(cause) => (
                        Error::CUDA_ERROR_INVALID_IMAGE,
                        format!("the fat binary is malformed: {cause}"),
                    ),
                    // Driver 580 decompresses the entry without checking its header.
                    fatbin::Failure::Damaged(cause) => {
                        (Error::CUDA_ERROR_UNKNOWN, format!("the fat binary is damaged: {cause}"))
                    }
                    fatbin::Failure::NoPtx => (
                        Error::CUDA_ERROR_NO_BINARY_FOR_GPU,
                        format!(
                            "no PTX for sm_{} or below: build with code=compute_XX",
                            device.profile.sm
                        ),
                    ),
                };
                fail(log, code, &reason)
            }),
        Image::Elf(_) => fail(
            log,
            Error::CUDA_ERROR_NO_BINARY_FOR_GPU,
            "the input has no PTX, and SASS cannot be linked; build with code=compute_XX",
        ),
    }
}

/// Compiles the sources of a linker input. They may call functions that another input defines.
pub(crate) fn sources(
    name: &str,
    image: &Image,
    options: &Options,
    device: &Device,
    log: &mut Log,
) -> Result<Vec<(Source, Input)>> {
    check_options(options)?;
    let sources = match image {
        Image::Elf(bytes) => match cubin::read(bytes) {
            Some(image) => image.sources,
            None => vec![source(name, text(image, device, log)?.into_owned(), options)],
        },
        _ => vec![source(name, text(image, device, log)?.into_owned(), options)],
    };
    let compile = |source: Source| {
        let started = Instant::now();
        let input = input(&source, device, log)?;
        if options.verbose {
            log.add_info(&jit_info::of_compiler(&input.module, device, started.elapsed()));
        }
        Ok((source, input))
    };
    sources.into_iter().map(compile).collect()
}

fn source(name: &str, text: Vec<u8>, options: &Options) -> Source {
    Source {
        name: name.to_owned(),
        text,
        most_registers: options.register_limit(),
    }
}

/// Compiles a source for the linker.
fn input(source: &Source, device: &Device, log: &mut Log) -> Result<Input> {
    let mut module = text_module(&source.text, true, device.profile.sm, log)?;
    limit_registers(&mut module, source.most_registers);
    Ok(Input {
        name: source.name.clone(),
        module,
    })
}

/// Checks that the inputs of the linker can be linked, and adds the resources of the kernels to a verbose info log.
pub(crate) fn link_verbosely(inputs: &[Input], options: &Options, log: &mut Log) -> Result<()> {
    let module = link(inputs, log)?;
    if options.verbose {
        log.add_info(&jit_info::of_linker(&module, inputs));
    }
    Ok(())
}

/// Links modules. Each undefined reference becomes one line of the error log.
fn link(inputs: &[Input], log: &mut Log) -> Result<Arc<ir::Module>> {
    link::link(inputs).map_err(|undefined| {
        for reference in undefined {
            let text = reference.to_string();
            let _: Result<()> = fail(log, Error::CUDA_ERROR_INVALID_SOURCE, &text);
            if is_device_launch(&reference.symbol) {
                host::log!("kernels that launch kernels (dynamic parallelism) are not supported");
            }
        }
        Error::CUDA_ERROR_INVALID_SOURCE
    })
}

/// Returns true for the functions of the device runtime with which a kernel launches another kernel.
fn is_device_launch(symbol: &str) -> bool {
    symbol.starts_with("__cudaCDP2Launch") || symbol.starts_with("cudaLaunchDevice")
}

fn linked(sources: &[Source], device: &Device, log: &mut Log) -> Result<Arc<ir::Module>> {
    let inputs: Vec<Input> = sources
        .iter()
        .map(|source| input(source, device, log))
        .collect::<Result<_>>()?;
    link(&inputs, log)
}

/// Adds an error to the compiler's error log and to the driver's log, and returns it.
fn fail<T>(log: &mut Log, code: Error, reason: &str) -> Result<T> {
    log.add_error(&format!("error   : {reason}"));
    host::log!("{code:?}: {reason}");
    Err(code)
}

/// Number of bytes from which a text is checked on several threads.
const LONG_TEXT: usize = 256 << 10;

fn text_module(text: &[u8], unresolved: bool, sm: u32, log: &mut Log) -> Result<Arc<ir::Module>> {
    let limits = ptx::Limits {
        max_version: settings::newest_ptx(settings::version()),
        sm,
        unresolved,
        threads: if text.len() < LONG_TEXT { 1 } else { settings::threads() },
    };
    match ptx::load(text, &limits) {
        Ok(loaded) => {
            log.add_info(&loaded.info_log);
            Ok(loaded.module)
        }
        Err(failure) => {
            log.add_error(&failure.log);
            host::log!("{}", failure.log.trim_end());
            Err(match failure.kind {
                ptx::FailureKind::NotPtx => Error::CUDA_ERROR_INVALID_IMAGE,
                ptx::FailureKind::UnsupportedVersion => Error::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                ptx::FailureKind::Invalid => Error::CUDA_ERROR_INVALID_PTX,
            })
        }
    }
}
