//! Checks the bodies of a module, on several threads if the text is long.

use std::ops::Range;

use crate::diagnostics::Diagnostics;
use crate::ir::FuncId;
use crate::lower::{self, Uses};
use crate::unit::Unit;

/// Bytes of text per thread. For fewer, starting a thread costs more time than it saves.
const BYTES_PER_THREAD: usize = 128 << 10;

/// Maximum number of threads for one module: each thread that finds an error searches the whole text for the starts of
/// its lines.
const MOST_THREADS: usize = 16;

/// Checks all bodies. Returns the functions and variables that each function uses.
pub(super) fn verify(unit: &Unit, text: &[u8], threads: usize, diagnostics: &mut Diagnostics) -> Vec<Uses> {
    let parts = threads.min(MOST_THREADS).min(text.len() / BYTES_PER_THREAD).max(1);
    let mut ranges = split(unit, parts).into_iter();
    let first = ranges.next().unwrap_or(0..0);
    std::thread::scope(|scope| {
        let part = |range: Range<usize>| {
            move || {
                let mut diagnostics = Diagnostics::default();
                let uses = verify_range(unit, range, text, &mut diagnostics);
                (uses, diagnostics)
            }
        };
        let start = |range: Range<usize>| {
            let builder = std::thread::Builder::new().name("cuda-soft-ptx".to_owned());
            let thread = builder.spawn_scoped(scope, part(range.clone()));
            (range, thread.ok())
        };
        let others: Vec<_> = ranges.map(start).collect();
        let mut all = verify_range(unit, first, text, diagnostics);
        for (range, thread) in others {
            // If the thread could not be started, this thread checks the part.
            let (uses, found) = match thread.map(|thread| thread.join()) {
                Some(Ok(result)) => result,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => part(range)(),
            };
            all.extend(uses);
            diagnostics.append(found);
        }
        all
    })
}

/// Checks the bodies of some functions.
fn verify_range(unit: &Unit, range: Range<usize>, text: &[u8], diagnostics: &mut Diagnostics) -> Vec<Uses> {
    let verify = |index: usize| {
        let defined = unit.functions.get(index).is_some_and(|signature| signature.defined);
        if defined {
            lower::verify(unit, FuncId(index as u32), text, diagnostics)
        } else {
            Uses::default()
        }
    };
    range.map(verify).collect()
}

/// Splits the functions into at most `parts` ranges with about the same number of statements each.
fn split(unit: &Unit, parts: usize) -> Vec<Range<usize>> {
    let most = unit.ast.statements.len().div_ceil(parts);
    let mut ranges = Vec::new();
    let (mut start, mut statements) = (0, 0);
    for (index, signature) in unit.functions.iter().enumerate() {
        let body = unit
            .function(signature.item)
            .and_then(|function| function.body.as_ref());
        statements += body.map_or(0, |body| body.len());
        if statements >= most && ranges.len() + 1 < parts {
            ranges.push(start..index + 1);
            (start, statements) = (index + 1, 0);
        }
    }
    ranges.push(start..unit.functions.len());
    ranges
}
