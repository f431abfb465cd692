//! Measures the time that the engine takes to compile kernels to machine code.

use super::cases::Case;
use super::{Loaded, text_of};
use engine::Engine;
use std::error::Error;
use std::time::{Duration, Instant};

/// Returns milliseconds to compile a case's kernel, the length of its PTX in KB, and their ratio.
pub(super) fn measure(case: &Case, seconds: f64) -> Result<[f64; 3], Box<dyn Error>> {
    let text = text_of(case)?;
    let kilobytes = body_of(&text, case.kernel)
        .ok_or_else(|| format!("the module {} has no kernel {}", case.module, case.kernel))?
        .len() as f64
        / 1000.0;
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        let loaded = Loaded::new(case)?;
        // Decodes the kernel, so that the measured launch only compiles it.
        let _ = loaded.launch_on(Engine::Interpreter).start();
        let start = Instant::now();
        let _ = loaded.launch_on(Engine::Compiled { lanes: 32 }).start();
        best = best.min(start.elapsed());
    }
    let milliseconds = best.as_secs_f64() * 1e3;
    Ok([milliseconds, kilobytes, milliseconds / kilobytes])
}

/// Returns the PTX of a kernel.
fn body_of<'t>(module: &'t str, kernel: &str) -> Option<&'t str> {
    let start = module.find(&format!(".entry {kernel}("))?;
    let text = &module[start..];
    Some(&text[..text.find("\n}")? + 2])
}
