//! Compiles kernels to machine code for groups of 8, 16 or 32 neighbouring lanes.
//!
//! The code follows the kernel's [plan](crate::plan). A uniform or affine register of 32 or 64 bits is one number in a
//! general register, or if uniform the same number in all elements of a vector register. A predicate is a mask in a
//! general register. Registers of 128 bits stay in the frame. Any other register is a row of vector registers. Machine
//! registers are allocated block by block: the first edge to a block decides which registers hold which values there,
//! and later edges conform.
//!
//! The interpreter keeps the registers of a warp in a frame, in which each register has a row with the values of all
//! lanes. When the code begins or ends, all values are in the rows of the frame, and the interpreter can continue, with
//! one exception: after some exits, the row of a scalar has only the value of the first lane, and the warp completes it
//! before the interpreter reads it. The interpreter also runs most instructions that are not compiled, and each access
//! that the quick check of its bounds does not accept, so that there is one place where an access can fail.
//!
//! iced-x86 encodes samples of each kind of instruction once per process, and rare instructions each time. It was
//! chosen because it builds fast: clean builds on two cores took 3 s for its encoder (MIT, 2 crates), 15 s with its
//! `code_asm`, and 14 s for dynasmrt (15 crates).
//!
//! | file | |
//! | --- | --- |
//! | `assembler` | writes machine code |
//! | `encoding` | the bytes of machine instructions |
//! | `parts` | machine instructions on halves and elements of vector registers |
//! | `cache` | the registers of the kernel that are in machine registers |
//! | `registers` | allocation of machine registers, and moves between them and the frame |
//! | `emitter` | blocks, edges and exits |
//! | `stubs` | code that runs rarely |
//! | `live` | the registers that are needed at each step |
//! | `sections` | the sections of the code |
//! | `again` | groups that begin again in the second section |
//! | `rounds` | counts of the rounds of loops |
//! | `groups` | the beginning and end of the code, and the step from group to group |
//! | `barriers` | barriers that the code passes by itself |
//! | `masks` | the blocks at which some lanes of a group can wait while others run |
//! | `masked` | the code for some lanes of a group |
//! | `value` | sources of instructions |
//! | `scalar` | arithmetic on the first lane of a group |
//! | `vector` | arithmetic on vectors |
//! | `formula` | results of several vector instructions |
//! | `float` | floating-point arithmetic of several instructions |
//! | `approximate` | approximate functions |
//! | `integer` | integer arithmetic of several instructions, bit fields |
//! | `packed` | pairs of `.f16`, `.bf16` and integers of 16 bits |
//! | `product` | products of integers, carries |
//! | `convert` | conversions |
//! | `compare` | comparisons and predicates |
//! | `branch` | branches, and comparisons for them |
//! | `half` | registers of 16 bits, and integer arithmetic on 8 and 16 bits |
//! | `memory` | instructions with and without guards |
//! | `elements` | loads and stores |
//! | `atomic` | atomic operations whose results nothing reads |
//! | `lanes` | the places of lanes in memory, and their check |
//! | `sites` | the places of instructions that all groups of a warp run together, and of barriers |
//! | `meet` | the code of these instructions |
//! | `collective` | the code of those that are operations across lanes |
//! | `alone` | the same operations in groups of 32 lanes |
//! | `ranges` | ranges of memory that have been checked |
//! | `hull` | one check for several accesses |
//! | `uniforms` | constants in the context |
//! | `constants` | vectors of constants |
//! | `wide` | kernels that fit groups of 32 lanes |
//! | `columns` | from memory to vector registers and back |

#![forbid(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod again;
#[cfg(target_arch = "x86_64")]
mod alone;
#[cfg(target_arch = "x86_64")]
mod approximate;
#[cfg(target_arch = "x86_64")]
mod assembler;
#[cfg(target_arch = "x86_64")]
mod atomic;
#[cfg(target_arch = "x86_64")]
mod barriers;
#[cfg(target_arch = "x86_64")]
mod branch;
#[cfg(target_arch = "x86_64")]
mod cache;
#[cfg(target_arch = "x86_64")]
mod collective;
#[cfg(target_arch = "x86_64")]
mod columns;
#[cfg(target_arch = "x86_64")]
mod compare;
#[cfg(target_arch = "x86_64")]
mod constants;
#[cfg(target_arch = "x86_64")]
mod convert;
#[cfg(target_arch = "x86_64")]
mod elements;
#[cfg(target_arch = "x86_64")]
mod emitter;
#[cfg(target_arch = "x86_64")]
mod encoding;
#[cfg(target_arch = "x86_64")]
mod float;
#[cfg(target_arch = "x86_64")]
mod formula;
#[cfg(target_arch = "x86_64")]
mod groups;
#[cfg(target_arch = "x86_64")]
mod half;
#[cfg(target_arch = "x86_64")]
mod hull;
#[cfg(target_arch = "x86_64")]
mod integer;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod live;
#[cfg(target_arch = "x86_64")]
mod masked;
#[cfg(target_arch = "x86_64")]
mod masks;
#[cfg(target_arch = "x86_64")]
mod meet;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod packed;
#[cfg(target_arch = "x86_64")]
mod parts;
#[cfg(target_arch = "x86_64")]
mod product;
#[cfg(target_arch = "x86_64")]
mod ranges;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod rounds;
#[cfg(target_arch = "x86_64")]
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sections;
#[cfg(target_arch = "x86_64")]
mod sites;
#[cfg(target_arch = "x86_64")]
mod stubs;
#[cfg(target_arch = "x86_64")]
mod uniforms;
#[cfg(target_arch = "x86_64")]
mod value;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(target_arch = "x86_64")]
use crate::code::compiled::MOST_WAITS;
use crate::code::compiled::{Compiled, Variant};
use crate::code::function::Code;
#[cfg(target_arch = "x86_64")]
use crate::plan::Plan;
#[cfg(target_arch = "x86_64")]
use crate::plan::class::{Class, Scheduled};
#[cfg(target_arch = "x86_64")]
use crate::plan::ordered::depends_on_active_lanes;
#[cfg(target_arch = "x86_64")]
use crate::plan::regions::Region;
#[cfg(target_arch = "x86_64")]
use crate::plan::shape::{Assumption, Choices, Condition, Group, Shape, Shapes};
#[cfg(target_arch = "x86_64")]
use crate::plan::steps::Step;
#[cfg(target_arch = "x86_64")]
use ptx::ir::Inst;
use ptx::ir::{Body, Module};
#[cfg(target_arch = "x86_64")]
use std::collections::BTreeSet;
#[cfg(target_arch = "x86_64")]
use std::sync::Once;

/// Compiles a kernel whose code was decoded for a CPU with AVX2. If `ordered` is true, all lanes of a warp run in the
/// interpreter's order. Returns `None` if the kernel cannot be compiled.
#[cfg(target_arch = "x86_64")]
pub(crate) fn compile(module: &Module, body: &Body, code: &Code, variant: Variant, ordered: bool) -> Option<Compiled> {
    use crate::code::compiled::{CompiledEntry, CompiledSite};
    use assembler::Assembler;

    let plan = Plan::of(module, code.id, body)?;
    let output = emit(&plan, code, variant, ordered)?;
    let entries = output.ways.into_iter().map(|way| CompiledEntry {
        at: way.at,
        offset: Assembler::offset(&output.labels, way.label),
        scalars: way.scalars,
        of_warp: way.of_warp,
    });
    let site = |site: &sites::Site| CompiledSite {
        at: site.at,
        part: Assembler::offset(&output.labels, site.part),
        resume: Assembler::offset(&output.labels, site.resume),
    };
    let executable = host::executable::Executable::new(&output.bytes);
    if executable.is_none() {
        static LOGGED: Once = Once::new();
        LOGGED.call_once(|| host::log!("the system refuses executable memory: kernels are interpreted"));
    }
    Some(Compiled {
        code: executable?,
        pool: output.pool,
        lanes: variant.lanes,
        entries: entries.collect(),
        windows: output.windows,
        loops: output.loops,
        sites: output.sites.iter().map(site).collect(),
        uniforms: output.uniforms,
        share: output.share,
        ordered,
        waits: output.waits,
        leaving: variant.leaving,
        sees_active_lanes: body.insts.iter().any(depends_on_active_lanes),
    })
}

/// Returns the regions that groups run under a mask. Takes each region in turn, unless the taken ones would then have
/// more than [`MOST_WAITS`] blocks. A region inside a taken one adds no blocks, so that it is taken, too.
#[cfg(target_arch = "x86_64")]
fn masked_regions<'p>(plan: &'p Plan<'_>) -> Vec<&'p Region> {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let fits = |region: &&Region| {
        let blocks = || region.blocks.iter().chain([&region.join]).copied();
        let new = blocks().filter(|block| !taken.contains(block)).count();
        let fits = taken.len() + new <= MOST_WAITS;
        if fits {
            taken.extend(blocks());
        }
        fits
    };
    plan.regions.iter().filter(fits).collect()
}

/// Emits the machine code of a kernel.
#[cfg(target_arch = "x86_64")]
fn emit(plan: &Plan<'_>, code: &Code, variant: Variant, ordered: bool) -> Option<emitter::Output> {
    let Variant { lanes, whole, leaving } = variant;
    let map = code.map.as_ref()?;
    let group = Group { lanes, whole };
    // If lanes diverge, accesses can happen in another order than in the interpreter, and other lanes can run an
    // instruction together. In kernels that can see this, all lanes keep in step.
    let in_step = ordered || plan.source.body.insts.iter().any(depends_on_active_lanes);
    let masked = if in_step { Vec::new() } else { masked_regions(plan) };
    let choices = Choices {
        masked: &masked,
        denied: &[],
    };
    let all = plan.shapes(group, choices);
    // The assumption about a minimum or maximum is tested only if the other source is uniform.
    let chosen = all.assumptions.iter().filter(|a| {
        let other = match plan.layout.steps[a.step] {
            Step::Plain(inst) => inst.srcs.get(1 - a.source.min(1)),
            Step::Branch { .. } => None,
        };
        let uniform = other.is_some_and(|other| all.of_operand(other) == Shape::Uniform);
        a.kind == Condition::Chosen && !uniform
    });
    let denied: Vec<usize> = chosen.map(|a| a.step).collect();
    let choices = Choices {
        denied: &denied,
        ..choices
    };
    let shapes = plan.shapes(group, choices);
    if lanes == 32 && !wide::fits(plan, &shapes) {
        return None;
    }
    // A group of 32 lanes runs in the interpreter's order anyway.
    let of_warp = (ordered && lanes < 32).then(|| {
        // Nothing checks an assumption about a whole warp.
        let group = Group {
            lanes: 32,
            whole: false,
        };
        plan.shapes_without_assumptions(group, &[])
    });
    let second =
        (!in_step && begins_again(plan, &shapes, &masked)).then(|| plan.shapes_without_assumptions(group, &masked));
    let emitted = |second| {
        let input = emitter::Input {
            plan,
            shapes: &shapes,
            second,
            code,
            map,
            lanes,
            leaving,
            of_warp: of_warp.as_ref(),
            masked: &masked,
        };
        emitter::Emitter::new(&input).finish()
    };
    // The vectors of the second section may need more registers than there are.
    let of_both = second.as_ref().and_then(|second| emitted(Some(second)));
    of_both.or_else(|| emitted(None))
}

/// Returns true if groups of a kernel with these shapes and regions begin again if an assumption about a minimum or
/// maximum does not hold for them. Other assumptions hardly ever fail.
#[cfg(target_arch = "x86_64")]
fn begins_again(plan: &Plan<'_>, shapes: &Shapes, masked: &[&Region]) -> bool {
    let insts = || plan.source.body.insts.iter();
    let in_step = |inst: &Inst| {
        let class = Class::of_inst(inst);
        matches!(class, Class::Scheduled(Scheduled::Collective | Scheduled::Matrix))
    };
    let chosen = |a: &Assumption| a.kind == Condition::Chosen && plan.is_repeatable(a.step);
    let waits: BTreeSet<usize> = masked
        .iter()
        .flat_map(|region| region.blocks.iter().chain([&region.join]))
        .copied()
        .collect();
    !insts().any(in_step) && shapes.assumptions.iter().any(chosen) && 2 * waits.len() <= MOST_WAITS
}

/// Returns the instructions of a kernel that its machine code does not run, one per line. A line has four fields
/// separated by tabs: `call` if the code calls the interpreter for each group, `together` if the interpreter or the
/// scheduler runs the instruction for the whole warp, or `leave` if the code ends there; the number of loops around the
/// instruction; the operation; and the instruction.
/// Returns `None` if the kernel cannot be compiled.
#[cfg(target_arch = "x86_64")]
pub(crate) fn describe(module: &Module, body: &Body, code: &Code, variant: Variant, ordered: bool) -> Option<String> {
    use crate::code::share::RunBy;
    use std::fmt::Write;

    let plan = Plan::of(module, code.id, body)?;
    let output = emit(&plan, code, variant, ordered)?;
    let mut text = String::new();
    for (step, by) in output.ran_by {
        let how = match by {
            RunBy::MachineCode => continue,
            RunBy::Call => "call",
            RunBy::Together => "together",
            RunBy::Interpreter => "leave",
        };
        let nesting = plan.flow.nesting(plan.layout.block_of[step]);
        if let Step::Plain(inst) = plan.layout.steps[step] {
            // Writing to a `String` never fails.
            let _ = writeln!(text, "{how}\t{nesting}\t{:?}\t{inst}", inst.op);
        }
    }
    Some(text)
}

/// Returns `None`: there is no compiler for this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn compile(_: &Module, _: &Body, _: &Code, _: Variant, _: bool) -> Option<Compiled> {
    None
}

/// Returns `None`: there is no compiler for this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn describe(_: &Module, _: &Body, _: &Code, _: Variant, _: bool) -> Option<String> {
    None
}
