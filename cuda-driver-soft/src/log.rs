//! What the driver says about itself: lines on standard error when `CUDA_SOFT_LOG=1`.

use std::sync::OnceLock;

/// Whether the log is on.
pub(crate) fn on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os("CUDA_SOFT_LOG").is_some_and(|v| !v.is_empty() && v != "0"))
}

/// One line of the log: why a call failed, what was not done. The arguments are evaluated only when the log is on.
macro_rules! log {
    ($($arg:tt)*) => {
        if $crate::log::on() {
            let line = format!("cuda-driver-soft: {}\n", format_args!($($arg)*));
            $crate::console::write($crate::console::Stream::Error, line.as_bytes());
        }
    };
}
pub(crate) use log;
