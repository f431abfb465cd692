//! The message about an image that has no PTX for the device.
//!
//! Programs that ignore `CUDA_ERROR_NO_BINARY_FOR_GPU` continue with wrong results. So this message is written to
//! standard error even if the log is off, once for each set of kernels, up to a limit.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use host::console::{self, Stream};

/// Maximum number of messages of the process.
const MOST: usize = 20;
/// Maximum number of kernels that a message names.
const NAMED: usize = 4;

/// Writes the kernels that cannot run, and the fix.
pub(super) fn tell(image: &[u8], sm: u32) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let message = message(&image::kernels(image), sm);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < MOST && told.insert(message.clone()) {
        console::write(Stream::Error, message.as_bytes());
    }
}

fn message(kernels: &[String], sm: u32) -> String {
    let what = match kernels {
        [] => "an image".to_owned(),
        [one] => format!("the image with kernel `{one}`"),
        some => {
            let names: Vec<String> = some.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
            let more = match some.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("the image with kernels {}{more}", names.join(", "))
        }
    };
    format!("cuda-driver-soft: {what} has no PTX that this sm_{sm} device can run: build with code=compute_XX\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_some_kernels() {
        let names = ["a", "b", "c", "d", "e", "f"].map(str::to_owned);
        let line = |what: &str| {
            format!("cuda-driver-soft: {what} has no PTX that this sm_90 device can run: build with code=compute_XX\n")
        };
        assert_eq!(message(&[], 90), line("an image"));
        assert_eq!(message(&names[..1], 90), line("the image with kernel `a`"));
        assert_eq!(message(&names[..2], 90), line("the image with kernels `a`, `b`"));
        assert_eq!(
            message(&names, 90),
            line("the image with kernels `a`, `b`, `c`, `d` and 2 more")
        );
    }
}
