//! Reports the chosen threads that are about to run the line of the source or of the PTX text that `CUDA_SOFT_STOP_AT`
//! names.

use std::sync::{Arc, OnceLock};

use engine::Observers;
use engine::stop::{Stop, StopAt};
use host::console;

/// Returns the observers of a launch that report stops; none if `CUDA_SOFT_STOP_AT` is not set or cannot be parsed.
pub(crate) fn observers() -> Observers {
    static OBSERVERS: OnceLock<Observers> = OnceLock::new();
    let observers = OBSERVERS.get_or_init(|| {
        let Some(text) = host::environment::stop_at() else {
            return Observers::default();
        };
        match text.parse::<StopAt>() {
            Ok(stop) => stop.observers(Arc::new(show)),
            Err(error) => {
                let line = format!("cuda-driver-soft: CUDA_SOFT_STOP_AT: {error}\n");
                console::write(console::Stream::Error, line.as_bytes());
                Observers::default()
            }
        }
    });
    observers.clone()
}

/// Writes a stop to standard error.
fn show(stop: &Stop) {
    let mut text = format!("cuda-driver-soft: {stop}\n");
    for line in stop.report.lines() {
        text += &format!("cuda-driver-soft:   {line}\n");
    }
    console::write(console::Stream::Error, text.as_bytes());
}
