//! Comparison of arguments with a kernel's parameters.
#![forbid(unsafe_code)]

use super::arguments::KernelArgs;
use super::parameter::{ArgumentError, ParamInfo};
use crate::error::{Error, Result};
use crate::error_log::ErrorLog;
use crate::sys::{CUresult, Function};

/// Compares arguments with the parameters that `param` returns: their number and sizes, and for a packed buffer their
/// offsets. Returns false if nothing could be compared.
///
/// `param` returns `None` if the driver does not report parameters, and `CUDA_ERROR_INVALID_VALUE` after the last
/// parameter.
#[inline]
#[track_caller]
pub(crate) fn compare(
    arguments: &impl KernelArgs,
    param: impl Fn(usize) -> Result<Option<ParamInfo>>,
) -> Result<bool, ArgumentError> {
    let Some(given) = arguments.layout() else {
        return Ok(false);
    };
    let mut index = 0;
    loop {
        match (param(index), given.get(index)) {
            (Ok(None), _) => return Ok(false),
            (Ok(Some(expected)), Some(given)) => {
                if expected.size != given.size || (arguments.is_packed() && expected.offset != given.offset) {
                    return Err(ArgumentError::Mismatch {
                        index,
                        expected,
                        given: *given,
                    });
                }
            }
            (Ok(Some(_)), None) => return Err(ArgumentError::TooFew { given: given.len() }),
            (Err(error), given) if error.code() == CUresult::CUDA_ERROR_INVALID_VALUE => {
                return match given {
                    None => Ok(true),
                    Some(_) => Err(ArgumentError::TooMany { expected: index }),
                };
            }
            (Err(error), _) => return Err(ArgumentError::Driver(error)),
        }
        index += 1;
    }
}

/// Returns the end of the last of these arguments or parameters, in bytes.
#[inline]
fn end(infos: &[ParamInfo]) -> usize {
    infos.last().map_or(0, |info| info.offset + info.size)
}

/// Returns an error if the arguments of a launch do not fit the kernel's parameters. Errors name `function`; `name`
/// returns the kernel's name for the message.
#[inline]
#[track_caller]
pub(crate) fn check_launch(
    arguments: &impl KernelArgs,
    function: Function,
    param: impl Fn(usize) -> Result<Option<ParamInfo>>,
    name: impl FnOnce() -> Result<String>,
) -> Result<()> {
    let Some(given) = arguments.layout() else {
        return Ok(());
    };
    let mut params = Vec::new();
    while let Ok(Some(info)) = param(params.len()) {
        params.push(info);
    }
    let compared = if !arguments.is_packed() || params.len() == given.len() {
        compare(arguments, param).map(drop)
    } else if end(&given) >= end(&params) {
        // The caller may have packed one parameter as several values, so only the total length is compared: the driver
        // detects a buffer that is too long, but not one that is too short. If it does not report parameters, `params`
        // is empty.
        Ok(())
    } else if given.len() < params.len() {
        Err(ArgumentError::TooFew { given: given.len() })
    } else {
        Err(ArgumentError::TooShort {
            given: end(&given),
            expected: end(&params),
        })
    };
    let error = match compared {
        // If the query of the parameters failed, the launch itself returns the driver's error.
        Ok(()) | Err(ArgumentError::Driver(_)) => return Ok(()),
        Err(error) => error,
    };
    let text = match name() {
        Ok(name) => format!("`{name}`: {error}"),
        Err(_) => error.to_string(),
    };
    let log = ErrorLog { path: "", log: &text };
    Err(Error::unasked(CUresult::CUDA_ERROR_INVALID_VALUE, function).with_log(log))
}
