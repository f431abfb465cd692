//! Chooses between the interpreter and machine code, once for each launch.
//!
//! The choice depends on numbers of instructions, never on time: a program that launches its kernels in the same order
//! makes the same choices on every run.

use crate::code::compiled::{Compiled, Variant};
use crate::code::function::Code;
use crate::code::isa::Isa;
use crate::code::share::Share;
use crate::compile;
use crate::lanes::LANES;
use crate::launch::{Engine, Launch};
use crate::plan::ordered::Order;
use crate::program::history::Counts;

/// Number of times that the warps of a kernel must run its instructions, on average and including the present launch,
/// for the kernel to be compiled. Compiling an instruction takes as long as interpreting it some 500 times.
const WORTH: u64 = 1_000;
/// Instructions that a kernel runs in launches with machine code before its counts decide.
const TRIAL: u64 = 10_000;

/// Returns the machine code that a launch runs where it can; `None` if the kernel is interpreted.
pub(crate) fn choose(launch: &Launch, code: &Code) -> Option<Variant> {
    // Compiled code keeps registers in another form.
    if launch.options.reports_registers {
        return None;
    }
    match launch.options.engine {
        Engine::Interpreter => None,
        Engine::Compiled { lanes } => widest(launch, code, lanes, false),
        Engine::Leaving { lanes } => widest(launch, code, lanes, true),
        Engine::Auto => automatic(launch, code),
    }
}

/// Returns the machine code of a launch with [`Engine::Auto`].
fn automatic(launch: &Launch, code: &Code) -> Option<Variant> {
    let history = launch.kernel.history();
    let steps = code.map.as_ref()?.steps.len() as u64;
    let expected = warps(launch).saturating_mul(steps);
    let often = history.interpreted.get().all.saturating_add(expected) >= WORTH * steps;
    if !often || !is_worth(history.compiled.get()) {
        return None;
    }
    let [x, y, z] = launch.block;
    let lanes = if x.is_multiple_of(16) || y * z <= 1 { 32 } else { 8 };
    let variant = widest(launch, code, lanes, false)?;
    let Share { all, called, outside } = code.compiled.made(variant)?.share;
    is_faster(all, called, outside).then_some(variant)
}

/// Returns true if compiled code is faster than the interpreter. Of `all` instructions, `called` run in calls of the
/// interpreter, and `outside` after the code has been left.
fn is_faster(all: u64, called: u64, outside: u64) -> bool {
    let native = all.saturating_sub(called).saturating_sub(outside);
    // The cost of an instruction in tenths of the interpreter's, measured with `engine_bench`. A call costs from 9
    // times (arithmetic) to 27 times as much (accesses to a column of memory). A warp that leaves compiled code often
    // has lanes at different places, which makes the interpreter slower.
    4 * native + 200 * called + 20 * outside < 10 * all
}

/// Returns true unless launches with machine code were slower than the interpreter, judged by the numbers of their
/// instructions.
fn is_worth(counts: Counts) -> bool {
    let Counts { all, compiled, called } = counts;
    all < TRIAL || is_faster(all, called, all.saturating_sub(compiled))
}

/// Returns the number of warps of a launch.
fn warps(launch: &Launch) -> u64 {
    let count = |n: [u32; 3]| n.iter().map(|n| u64::from(*n)).product::<u64>();
    count(launch.grid).saturating_mul(count(launch.block).div_ceil(LANES as u64))
}

/// Returns the variant of machine code that fits the block and cluster of a launch; `None` if the launch has to be
/// interpreted.
fn variant(launch: &Launch, lanes: u32, leaving: bool) -> Option<Variant> {
    let [x, y, z] = launch.block;
    // Code that keeps an order needs the values that are the same in the whole warp. They are known only if each warp
    // is in one row.
    let of_rows = x.is_multiple_of(LANES as u32) || y * z <= 1;
    if !of_rows && launch.kernel.order() != Order::Any {
        return None;
    }
    let whole = x.is_multiple_of(lanes);
    // In other blocks, a group would have lanes of several rows.
    let rows = whole || (y <= 1 && z <= 1);
    let threads = launch.block.iter().map(|n| u64::from(*n)).product::<u64>();
    // Compiled code runs only full warps, and shared memory of other blocks of a cluster has no quick check.
    let fits = rows && threads >= LANES as u64 && launch.options.cluster.is_none();
    fits.then_some(Variant { lanes, whole, leaving })
}

/// Makes machine code for groups of `lanes` lanes, or of 16 if 32 are too many for the launch or the kernel.
fn widest(launch: &Launch, code: &Code, lanes: u32, leaving: bool) -> Option<Variant> {
    let of = |lanes| compiled(launch, code, variant(launch, lanes, leaving)?);
    match of(lanes) {
        None if lanes == 32 => of(16),
        found => found,
    }
}

/// Makes machine code for a launch, if there is none yet. Returns `None` if that is not possible.
fn compiled(launch: &Launch, code: &Code, variant: Variant) -> Option<Variant> {
    // Observers see each instruction of a warp.
    if launch.options.isa != Isa::Wide || !code.sites.is_empty() {
        return None;
    }
    let made: Option<&Compiled> = code.compiled.get(variant, || {
        let module = &launch.kernel.loaded().module;
        let body = module.functions.get(code.id.0 as usize)?.body()?;
        let ordered = match launch.kernel.order() {
            Order::Any => false,
            Order::OfInterpreter => true,
            Order::OfClock => return None,
        };
        compile::compile(module, body, code, variant, ordered)
    });
    made.map(|_| variant)
}

/// Returns text about the machine code of a launch: the reason why there is none, or the instructions that it leaves to
/// the interpreter.
pub(crate) fn describe(launch: &Launch, code: &Code) -> String {
    let module = &launch.kernel.loaded().module;
    let order = launch.kernel.order();
    if order == Order::OfClock {
        return "not compiled: reads a clock\n".to_owned();
    }
    let Some(variant) = variant(launch, 16, false) else {
        return "not compiled: clusters, blocks smaller than a warp, groups of lanes that span rows, or warps that span \
                rows in a kernel whose results depend on the order of lanes\n"
            .to_owned();
    };
    let body = module.functions.get(code.id.0 as usize).and_then(|f| f.body());
    body.and_then(|body| compile::describe(module, body, code, variant, order == Order::OfInterpreter))
        .unwrap_or_else(|| "not compiled\n".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Counts, is_worth};

    /// Returns counts in percent of a million instructions.
    fn percent(compiled: u64, called: u64) -> Counts {
        Counts {
            all: 1_000_000,
            compiled: 10_000 * compiled,
            called: 10_000 * called,
        }
    }

    #[test]
    fn counts_decide_about_machine_code() {
        assert!(is_worth(Counts::default()), "never compiled");
        assert!(is_worth(percent(100, 0)));
        assert!(is_worth(percent(95, 2)));
        assert!(is_worth(percent(83, 0)), "collectives run outside");
        assert!(!is_worth(percent(99, 6)));
        assert!(!is_worth(percent(98, 12)), "many instructions are called");
        assert!(!is_worth(percent(30, 0)), "the code is left early");
        let few = Counts {
            all: 100,
            ..Counts::default()
        };
        assert!(is_worth(few), "too few instructions to decide");
    }
}
