//! Instructions whose results depend on the order in which threads run.

use super::class::reads_timer;
use super::defined;
use super::exchange;
use super::set::Set;
use super::steps::Step;
use crate::code::collective::Collective;
use crate::ops::atomic::order_matters;
use ptx::ir;
use ptx::ir::{AtomOp, Body, Callee, Formal, Inst, MemMods, Module, Op, Space, TensorCopy, TensorDirection, Type};

/// The registers that a function reads. Compilers give each atomic operation a result; the order of threads is visible
/// in it only if the function reads it.
struct ReadRegisters {
    /// `None` if the function has no atomic operation with a result.
    registers: Option<Set>,
}

impl ReadRegisters {
    /// Returns the registers that a function reads.
    fn of(body: &Body) -> Self {
        let has_result = |inst: &Inst| matches!(inst.op, Op::Atom { .. }) && inst.dsts.iter().any(Option::is_some);
        let registers = body.insts.iter().any(has_result).then(|| {
            let mut read = Set::empty(body.registers.len());
            for inst in &body.insts {
                defined::reads(&Step::Plain(inst), |reg| read.insert(reg));
            }
            for formal in &body.returns {
                if let Formal::Reg(reg) = formal {
                    read.insert(*reg);
                }
            }
            read
        });
        ReadRegisters { registers }
    }

    /// Returns true if the function reads a result of an instruction.
    fn has_result_of(&self, inst: &Inst) -> bool {
        let mut results = inst.dsts.iter().flatten();
        results.any(|reg| self.registers.as_ref().is_none_or(|read| read.has(*reg)))
    }
}

/// The facts about a function that decide which of its instructions keep the order of threads.
pub(crate) struct OrderFacts {
    read: ReadRegisters,
    /// The lines of the accesses by which lanes may exchange values without a barrier, in ascending order.
    exchanges: Vec<u32>,
}

impl OrderFacts {
    /// Returns the facts about a function.
    pub(crate) fn of(body: &Body) -> Self {
        OrderFacts {
            read: ReadRegisters::of(body),
            exchanges: exchange::lines(body),
        }
    }

    /// Returns true for accesses by which lanes of a warp may exchange values without a barrier.
    fn is_exchange(&self, inst: &Inst) -> bool {
        matches!(inst.op, Op::Ld(_) | Op::St(_) | Op::Red { .. } | Op::Atom { .. })
            && self.exchanges.binary_search(&inst.line).is_ok()
    }
}

/// Returns the state space of an access whose result depends on the order of accesses by several threads, such as a
/// volatile load or an atomic operation with a result; `None` for other instructions.
fn depends_on_threads(inst: &Inst, read: &ReadRegisters) -> Option<Space> {
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
            order_matters(*op, mem.ty, read.has_result_of(inst), mem.order).then_some(mem.space)
        }
        _ => None,
    }
}

/// Returns true if an atomic operation without a result has the same effect in any order of threads.
pub(crate) fn is_order_free(op: AtomOp, m: &MemMods) -> bool {
    !order_matters(op, m.ty, false, m.order)
}

/// Returns the state spaces of the accesses in these functions whose results depend on the order of accesses by several
/// threads.
pub(crate) fn spaces_of_ordered(bodies: &[&Body]) -> Vec<Space> {
    let of = |body: &&Body| {
        let read = ReadRegisters::of(body);
        let spaces = body.insts.iter().filter_map(|inst| depends_on_threads(inst, &read));
        spaces.collect::<Vec<_>>()
    };
    bodies.iter().flat_map(of).collect()
}

/// Returns true if the instruction must run in the interpreter's order relative to other such instructions of the
/// launch. These are the ones of [`depends_on_threads`], stores with an order, accesses by which lanes may exchange
/// values without a barrier, reads of a clock, calls of functions that the driver provides (output of `printf`,
/// addresses from `malloc`), and indirect calls.
pub(crate) fn keeps_order(module: &Module, inst: &Inst, facts: &OrderFacts) -> bool {
    let provided = |callee: &Callee| match callee {
        Callee::Direct(id) => module.functions[id.0 as usize].body().is_none(),
        Callee::Indirect { .. } => true,
    };
    match &inst.op {
        Op::St(m) => m.order != ir::Order::Weak || facts.is_exchange(inst),
        Op::Call { callee, .. } => provided(callee),
        _ => depends_on_threads(inst, &facts.read).is_some() || facts.is_exchange(inst) || reads_timer(inst),
    }
}

/// Returns true if the results of an instruction depend on the lanes that run it together.
pub(crate) fn depends_on_active_lanes(inst: &Inst) -> bool {
    matches!(inst.op, Op::Activemask) || matches!(Collective::of(&inst.op), Some((_, false)))
}

/// The order in which the lanes of a warp must run for the same results in the interpreter and in compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Any order between barriers, collectives and so on: groups of lanes may run one after another.
    Any,
    /// The interpreter's order, for instructions that [keep it](keeps_order).
    OfInterpreter,
    /// The interpreter's order and counts of instructions, because the virtual clock, which the code reads, advances
    /// with each instruction.
    OfClock,
}

impl Order {
    /// Returns the order for code that consists of these functions.
    pub(crate) fn of<'b>(module: &Module, bodies: impl IntoIterator<Item = &'b Body>) -> Order {
        let order = |body: &Body| {
            let facts = OrderFacts::of(body);
            let orders = body.insts.iter().map(|inst| match inst {
                inst if reads_timer(inst) => Order::OfClock,
                inst if keeps_order(module, inst, &facts) => Order::OfInterpreter,
                _ => Order::Any,
            });
            orders.max().unwrap_or(Order::Any)
        };
        bodies.into_iter().map(order).max().unwrap_or(Order::Any)
    }
}

/// Returns the lines of the PTX source with instructions that must keep the interpreter's order, in ascending order.
pub(crate) fn lines<'b>(module: &Module, bodies: impl IntoIterator<Item = &'b Body>) -> Vec<u32> {
    let of = |body: &Body| {
        let facts = OrderFacts::of(body);
        let insts = body.insts.iter().filter(|inst| keeps_order(module, inst, &facts));
        insts.map(|inst| inst.line).collect::<Vec<u32>>()
    };
    let mut lines: Vec<u32> = bodies.into_iter().flat_map(of).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
