//! From an image to a typed module: what `cuModuleLoadData` and its options do before anything is loaded.

use std::sync::Arc;

use super::device::Device;
use super::error::{Error, Result};
use crate::image::{Image, fatbin};
use crate::{ir, ptx, settings};

/// What a real driver's log says of an image that is neither PTX nor machine code.
const NOT_RECOGNIZED: &str = "Binary format for key='0', ident='' is not recognized";

/// What the options ask of the compiler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// `CU_JIT_TARGET`: the architecture to compile for.
    pub(crate) target: Option<u32>,
    /// `CU_JIT_NEW_SM3X_OPT`, which only a compiler of long ago took.
    pub(crate) sm3x: bool,
}

/// What the compiler says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) info: String,
    pub(crate) error: String,
}

/// Compiles an image for a device.
pub(crate) fn compile(
    image: &Image,
    options: &Options,
    device: &Device,
    log: &mut Log,
) -> Result<Arc<ir::Module>> {
    if options.target.is_some_and(|sm| sm != device.profile.sm) {
        return Err(Error::INVALID_SOURCE);
    }
    if options.sm3x {
        return Err(Error::INVALID_PTX);
    }
    match image {
        Image::Text(text) => text_module(text, device, log),
        Image::FatBinary(binary) => match fatbin::ptx(binary, device.profile.sm) {
            Ok(text) => text_module(&text, device, log),
            Err(failure) => {
                let (code, reason) = match failure {
                    fatbin::Failure::Malformed(what) => (
                        Error::INVALID_IMAGE,
                        format!("the fat binary is malformed: {what}"),
                    ),
                    fatbin::Failure::NoPtx => (
                        Error::NO_BINARY_FOR_GPU,
                        format!(
                            "no PTX for sm_{} or below: build with code=compute_XX",
                            device.profile.sm
                        ),
                    ),
                    fatbin::Failure::Compressed(how) => (
                        Error::NO_BINARY_FOR_GPU,
                        format!("its PTX cannot be decompressed ({how})"),
                    ),
                };
                fail(log, code, &reason)
            }
        },
        Image::Elf(bytes) => match crate::image::soft_cubin(bytes) {
            Some(text) => text_module(&text, device, log),
            None if bytes.len() < 64 => fail(log, Error::INVALID_IMAGE, NOT_RECOGNIZED),
            None => fail(
                log,
                Error::NO_BINARY_FOR_GPU,
                "SASS cannot be run; build with code=compute_XX",
            ),
        },
    }
}

fn fail<T>(log: &mut Log, code: Error, reason: &str) -> Result<T> {
    log.error.push_str(&format!("error   : {reason}\n"));
    crate::log!("{code:?}: {reason}");
    Err(code)
}

fn text_module(text: &[u8], device: &Device, log: &mut Log) -> Result<Arc<ir::Module>> {
    let limits = ptx::Limits {
        max_version: settings::newest_ptx(settings::version()),
        sm: device.profile.sm,
        unresolved: false,
    };
    match ptx::load(text, &limits) {
        Ok(loaded) => {
            log.info.push_str(&loaded.info_log);
            Ok(loaded.module)
        }
        Err(failure) if matches!(failure.kind, ptx::FailureKind::NotPtx) => {
            fail(log, Error::INVALID_IMAGE, NOT_RECOGNIZED)
        }
        Err(failure) => {
            log.error.push_str(&failure.log);
            crate::log!("{}", failure.log.trim_end());
            Err(match failure.kind {
                ptx::FailureKind::NotPtx => Error::INVALID_IMAGE,
                ptx::FailureKind::UnsupportedVersion => Error::UNSUPPORTED_PTX_VERSION,
                ptx::FailureKind::Invalid => Error::INVALID_PTX,
            })
        }
    }
}
