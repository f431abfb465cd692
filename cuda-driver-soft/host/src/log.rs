//! The driver's log: lines on standard error if `CUDA_SOFT_LOG` is on.

/// Writes one line to the log. The arguments are evaluated only if the log is on.
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => {
        if $crate::environment::log() {
            let line = format!("cuda-driver-soft: {}\n", format_args!($($arg)*));
            $crate::console::write($crate::console::Stream::Error, line.as_bytes());
        }
    };
}
