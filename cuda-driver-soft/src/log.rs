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
            // Not `eprintln!`, which panics where standard error cannot be written.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("cuda-driver-soft: {}\n", format_args!($($arg)*)),
            );
        }
    };
}
pub(crate) use log;
