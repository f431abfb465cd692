//! Trace events of calls: one at the start and one at the end of each call.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::time::Duration;

use cuda_driver_sys::{CUresult, Function};

use crate::json::Object;
use crate::trace::generated::SHOWN;
use crate::trace::recorder::{event, now};
use crate::trace::{take_last_line, with, with_same};

/// The maximum number of bytes of a string that a trace shows.
const MOST_TEXT: usize = 200;

/// A call that has begun.
pub(crate) struct Call {
    name: &'static str,
    function: Option<Function>,
    /// The number of the recording, and the time of the start; `None` if nothing was being recorded.
    begin: Option<(u64, u64)>,
    /// The pointer arguments whose targets are read if the call succeeds.
    pointers: Vec<Pointer>,
}

/// A pointer argument.
struct Pointer {
    /// Index of the parameter.
    parameter: usize,
    /// True for a C string, false for one returned value.
    is_text: bool,
    address: *const c_void,
}

impl Call {
    /// Records the start of a call with its arguments. `arguments` is empty, or has one pointer for each parameter of
    /// the function.
    ///
    /// # Safety
    /// Each argument must point to a value of its parameter's type in `cuda.h`.
    #[cold]
    pub(crate) unsafe fn begin(name: &'static str, arguments: &[*const c_void]) -> Call {
        let function = Function::by_symbol(name);
        let parameters = function.map_or(&[][..], Function::parameters);
        let mut fields = Object::new();
        for (parameter, &argument) in parameters.iter().zip(arguments) {
            // SAFETY: upheld by the caller.
            let text = fmt::from_fn(|f| unsafe { parameter.show(argument, f) }).to_string();
            fields = fields.value(parameter.name(), &text);
        }
        let shown = SHOWN.binary_search_by_key(&name, |row| row.0).ok();
        let letters = shown.map_or("", |at| SHOWN[at].1);
        let pointers = letters
            .bytes()
            .zip(arguments)
            .enumerate()
            .filter(|(_, (letter, _))| *letter != b'.');
        let pointers = pointers.map(|(parameter, (letter, argument))| Pointer {
            parameter,
            is_text: letter == b's',
            // SAFETY: the parameters with a letter are pointers, and the caller passes a pointer to each.
            address: unsafe { argument.cast::<*const c_void>().read() },
        });
        let pointers = pointers.filter(|pointer| !pointer.address.is_null()).collect();
        // Lines of earlier calls are not the reason for a failure of this call.
        take_last_line();
        let begin = with(|recorder| {
            let (track, at) = (recorder.thread(), now());
            recorder.write(event(name, "call", "B", at, track).object("args", fields));
            (recorder.number, at)
        });
        Call {
            name,
            function,
            begin,
            pointers,
        }
    }

    /// Records the end of the call, with its result and the values that it returned.
    ///
    /// # Safety
    /// If the call succeeded, its pointer arguments must be as the manual requires.
    pub(crate) unsafe fn end(self, result: CUresult) {
        let mut fields = Object::new().text("result", &format!("{result:?}"));
        let mut reason = String::new();
        if result == CUresult::CUDA_SUCCESS {
            let parameters = self.function.map_or(&[][..], Function::parameters);
            for pointer in &self.pointers {
                let Some(parameter) = parameters.get(pointer.parameter) else {
                    continue;
                };
                let text = if pointer.is_text {
                    // SAFETY: the call succeeded, so the caller guarantees that this is a C string.
                    let text = unsafe { CStr::from_ptr(pointer.address.cast::<c_char>()) }.to_bytes();
                    String::from_utf8_lossy(&text[..text.len().min(MOST_TEXT)]).into_owned()
                } else {
                    // SAFETY: the call succeeded, so the caller guarantees that it wrote this value.
                    fmt::from_fn(|f| unsafe { parameter.show_target(pointer.address, f) }).to_string()
                };
                if !text.is_empty() {
                    fields = fields.value(&format!("*{}", parameter.name()), &text);
                }
            }
        } else {
            reason = take_last_line();
        }
        let Some((recording, begin)) = self.begin else {
            return;
        };
        with_same(recording, |recorder| {
            let (track, at) = (recorder.thread(), now());
            recorder.write(event(self.name, "call", "E", at, track).object("args", fields));
            let total = recorder.summary.calls.entry(self.name.into()).or_default();
            total.count += 1;
            total.time += Duration::from_nanos(at.saturating_sub(begin));
            if !matches!(result, CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY) {
                total.errors += 1;
            }
            if result == CUresult::CUDA_ERROR_NOT_SUPPORTED {
                let calls = recorder.summary.not_supported.entry(self.name.into()).or_default();
                calls.count += 1;
                calls.reason = reason;
            }
        });
    }
}
