//! Describes failed driver calls for the findings.

use cuda_driver::sys::{CUresult, Function, Library};
use cuda_driver::{Error, check_in};

use crate::findings::CallFailure;

/// Returns the description of a failed call.
pub(crate) fn call_failure(error: &Error) -> CallFailure {
    let message = match (error.name(), error.text()) {
        (Some(name), Some(text)) => format!("{} failed: {name} ({}): {text}", error.function(), error.code().0),
        _ => format!("{} failed with the unknown code {}", error.function(), error.code().0),
    };
    CallFailure {
        function: error.function().name().to_owned(),
        code: error.code().0,
        name: error.name().map(str::to_owned),
        message,
    }
}

/// Returns the description of a raw call that returned `code`.
pub(crate) fn failure_of(library: &Library, code: CUresult, function: Function) -> CallFailure {
    match check_in(library, code, function) {
        Err(error) => call_failure(&error),
        Ok(()) => CallFailure {
            function: function.name().to_owned(),
            code: 0,
            name: None,
            message: format!("{function} succeeded"),
        },
    }
}
