//! The plan of a function: the analyses that a compiler for groups of lanes needs before it emits code.
//!
//! A [`Plan`] is made from the typed IR alone. It holds the facts that do not depend on the launch. [`Plan::shapes`]
//! adds the facts that depend on the group: neighbouring lanes along x, which compiled code runs together.
//! `Kernel::describe_plan` and the example `ptx_plan` print a plan.
//!
//! | file | |
//! | --- | --- |
//! | `source` | the function, and queries about its registers, parameters and constants |
//! | `class` | the way in which an instruction runs |
//! | `order` | the order of basic blocks that the warp's scheduler prefers |
//! | `steps` | the function as basic blocks in that order |
//! | `set`, `defined` | sets of registers; registers that must be zero when a frame begins |
//! | `flow` | dominators, post-dominators, loops |
//! | `liveness` | registers that are still needed |
//! | `regions` | branches at which a group may continue under a mask |
//! | `shape` | uniform and affine registers |
//! | `swapped` | rows in another order of lanes |
//! | `roots` | the parameter or variable from which an address is computed |
//! | `payload` | registers in which the bits of a NaN matter |
//! | `pure` | registers that can be computed again |
//! | `repeatable` | the steps before which nothing has had an effect |
//! | `phases` | the parts between barriers, collectives and calls |
//! | `exchange` | accesses by which lanes of a warp exchange values without a barrier |
//! | `ordered` | instructions whose results depend on the order of threads |
//! | `print` | the plan as text |

#![forbid(unsafe_code)]

pub(crate) mod class;
pub(crate) mod defined;
mod exchange;
pub(crate) mod flow;
pub(crate) mod liveness;
mod order;
pub(crate) mod ordered;
mod payload;
pub(crate) mod phases;
mod print;
pub(crate) mod pure;
pub(crate) mod regions;
mod repeatable;
pub(crate) mod roots;
pub(crate) mod set;
pub(crate) mod shape;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod swapped;
#[cfg(test)]
mod tests;

use defined::Use;
use flow::Flow;
use liveness::Liveness;
use ordered::OrderFacts;
use phases::Phase;
use ptx::ir::{Body, FuncId, Module, Reg};
use pure::Pure;
use regions::Region;
use repeatable::Repeatable;
use roots::Roots;
use shape::{Choices, Group, Shapes};
use source::SourceFunction;
use steps::Layout;

/// Limit on the instructions of a kernel that is compiled. Each exit of the code writes all live registers, so that the
/// size of the code grows faster than that of the kernel.
pub(crate) const MOST_INSTS: usize = 8_192;

/// The plan of a function.
pub(crate) struct Plan<'b> {
    /// The function.
    pub(crate) source: SourceFunction<'b>,
    /// The basic blocks. A block ends at branches, and after each instruction that the warp's scheduler runs. Steps are
    /// numbered as in `decode`, but blocks are not.
    pub(crate) layout: Layout<'b>,
    /// The use of each register. Registers that are [`Use::PerhapsUndefined`] are zero when a
    /// frame begins.
    pub(crate) uses: Vec<Use>,
    /// Dominators, post-dominators and loops of the blocks.
    pub(crate) flow: Flow,
    /// The registers that are live at the beginning and the end of each block.
    pub(crate) live: Liveness,
    /// The branches at which a group may continue under a mask, in the order of the blocks.
    pub(crate) regions: Vec<Region>,
    /// The steps before which lanes have done nothing that they cannot do again.
    repeatable: Repeatable,
    /// The parameters and variables from which addresses are computed.
    pub(crate) roots: Roots,
    /// For each register, true if the payload of a NaN in it can be observed.
    pub(crate) payload_seen: Vec<bool>,
    /// The registers that can be computed again.
    pub(crate) pure: Pure,
    /// The parts between instructions that the scheduler runs. The first part begins at the function's entry.
    pub(crate) phases: Vec<Phase>,
    /// The facts that decide which instructions keep the order of threads.
    pub(crate) order_facts: OrderFacts,
}

impl<'b> Plan<'b> {
    /// Returns the plan of a function, or `None` if it is too large: such a function is not worth compiling.
    pub(crate) fn of(module: &'b Module, id: FuncId, body: &'b Body) -> Option<Self> {
        if body.insts.len() > MOST_INSTS {
            return None;
        }
        let source = SourceFunction { module, id, body };
        let layout = Layout::split(body);
        let uses = defined::uses(body, &layout);
        let successors: Vec<Vec<usize>> = layout.blocks.iter().map(|b| b.successors.clone()).collect();
        let flow = Flow::of(&successors, &layout.order);
        let live = Liveness::of(body, &layout)?;
        let pure = Pure::of(&source, &layout, &uses);
        Some(Plan {
            order_facts: OrderFacts::of(body),
            regions: regions::regions(&layout, &flow, &live),
            repeatable: Repeatable::of(&layout, &flow, &live),
            roots: Roots::of(&source, &layout),
            payload_seen: payload::seen(body, &layout),
            phases: phases::phases(&layout, &flow.place, &live, &pure),
            source,
            layout,
            uses,
            flow,
            live,
            pure,
        })
    }

    /// Returns the shapes of the registers for a group.
    pub(crate) fn shapes(&self, group: Group, choices: Choices<'_>) -> Shapes {
        Shapes::of(&self.source, &self.layout, &self.uses, group, choices)
    }

    /// Returns the shapes of the registers for a group, without shapes that depend on assumptions.
    pub(crate) fn shapes_without_assumptions(&self, group: Group, masked: &[&Region]) -> Shapes {
        /// Limit on the rounds in which steps are denied. Denying some can give others assumptions.
        const MOST_ROUNDS: usize = 64;
        let of = |denied: &[usize]| self.shapes(group, Choices { masked, denied });
        let mut denied: Vec<usize> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let shapes = of(&denied);
            if shapes.assumptions.is_empty() {
                return shapes;
            }
            denied.extend(shapes.assumptions.iter().map(|a| a.step));
        }
        of(&(0..self.layout.steps.len()).collect::<Vec<usize>>())
    }

    /// Returns true if lanes that reach a step have done nothing before it that they cannot do again.
    pub(crate) fn is_repeatable(&self, step: usize) -> bool {
        self.repeatable.has(&self.layout, &self.flow, step)
    }

    /// Returns true if the payload of a NaN in the register can be observed.
    pub(crate) fn is_payload_seen(&self, reg: Reg) -> bool {
        self.payload_seen[reg.0 as usize]
    }
}
