//! Instructions whose results depend on the order in which threads run.

use super::class::reads_timer;
use crate::code::collective::Collective;
use crate::ops::atomic::order_matters;
use ptx::ir;
use ptx::ir::{Body, Callee, Inst, Module, Op, Space, TensorCopy, TensorDirection, Type};

/// Returns the state space of an access whose result depends on the order of accesses by several threads, such as a
/// volatile load or an atomic operation with a result; `None` for other instructions.
pub(crate) fn depends_on_threads(inst: &Inst) -> Option<Space> {
    match &inst.op {
        Op::Ld(m) if m.order != ir::Order::Weak => Some(m.space),
        Op::Mbarrier { .. } => Some(Space::Shared),
        Op::Bulk {
            to,
            reduce: Some((op, ty)),
            ..
        } => order_matters(*op, *ty, false, ir::Order::Weak).then_some(*to),
        // The type is known only from the tensor map: assume one for which the order of additions matters.
        Op::TensorCopy(TensorCopy {
            direction: TensorDirection::Store { reduce: Some(op) },
            ..
        }) => order_matters(*op, Type::F32, false, ir::Order::Weak).then_some(Space::Global),
        Op::Atom { op, mem } | Op::Red { op, mem } => {
            let used = inst.dsts.iter().any(Option::is_some);
            order_matters(*op, mem.ty, used, mem.order).then_some(mem.space)
        }
        _ => None,
    }
}

/// Returns true if the instruction must run in the interpreter's order relative to other such instructions of the
/// launch. These are the ones of [`depends_on_threads`], stores with an order, reads of a clock, calls of functions
/// that the driver provides (output of `printf`, addresses from `malloc`), and indirect calls.
pub(crate) fn keeps_order(module: &Module, inst: &Inst) -> bool {
    let provided = |callee: &Callee| match callee {
        Callee::Direct(id) => module.functions[id.0 as usize].body().is_none(),
        Callee::Indirect { .. } => true,
    };
    match &inst.op {
        Op::St(m) => m.order != ir::Order::Weak,
        Op::Call { callee, .. } => provided(callee),
        _ => depends_on_threads(inst).is_some() || reads_timer(inst),
    }
}

/// Returns true if the results of an instruction depend on the lanes that run it together.
pub(crate) fn depends_on_active_lanes(inst: &Inst) -> bool {
    matches!(inst.op, Op::Activemask) || matches!(Collective::of(&inst.op), Some((_, false)))
}

/// The order in which the lanes of a warp must run for results that do not depend on the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Any order between barriers, collectives and so on: groups of lanes may run one after another.
    Any,
    /// The interpreter's order, for instructions that [keep it](keeps_order).
    OfInterpreter,
    /// The interpreter's order, and its numbers of instructions at each of them: the function reads a clock.
    OfClock,
}

impl Order {
    /// Returns the order for code that consists of these functions.
    pub(crate) fn of<'b>(module: &Module, bodies: impl IntoIterator<Item = &'b Body>) -> Order {
        let insts = bodies.into_iter().flat_map(|body| &body.insts);
        let orders = insts.map(|inst| match inst {
            inst if reads_timer(inst) => Order::OfClock,
            inst if keeps_order(module, inst) => Order::OfInterpreter,
            _ => Order::Any,
        });
        orders.max().unwrap_or(Order::Any)
    }
}

/// Returns the lines of the PTX source with instructions that must keep the interpreter's order, in ascending order.
pub(crate) fn lines<'b>(module: &Module, bodies: impl IntoIterator<Item = &'b Body>) -> Vec<u32> {
    let insts = bodies.into_iter().flat_map(|body| &body.insts);
    let mut lines: Vec<u32> = insts.filter(|i| keeps_order(module, i)).map(|i| i.line).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
