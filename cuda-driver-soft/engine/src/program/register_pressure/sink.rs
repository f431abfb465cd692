//! Counts the live registers of a basic block after loads and computations are moved down to the first use of their
//! results.
//!
//! Programs often load or compute many values before they use the first. A compiler that runs out of registers moves
//! such instructions down, so the order of the text alone would count too many live registers.

use super::{Block, Code, is_computed};
use ptx::ir::{Inst, Op, Operand, Order, Space};
use std::collections::HashMap;

/// One value of a register, from one write to the next.
#[derive(Default)]
struct Value {
    weight: u32,
    /// The positions of the first and the last instruction that uses the value, as far as they have been visited.
    first: Option<usize>,
    last: usize,
    live: bool,
}

/// The values that an instruction reads and writes.
struct Step {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

/// Returns the largest number of registers that are live at the same time in a block after which `live_out` are live.
pub(super) fn pressure(code: &Code<'_>, block: &Block, live_out: impl Iterator<Item = usize>) -> u32 {
    let insts = &code.body.insts[block.start..block.end];
    let end = insts.len();
    let mut values: Vec<Value> = Vec::new();
    let mut current: HashMap<usize, usize> = HashMap::new();
    let new = |values: &mut Vec<Value>, register: usize| {
        values.push(Value {
            weight: code.weights[register].into(),
            ..Value::default()
        });
        values.len() - 1
    };
    let mut steps = Vec::with_capacity(end);
    for (at, inst) in (block.start..).zip(insts) {
        let mut reads: Vec<usize> = code.reads(inst).collect();
        // A guarded write keeps the old value in some lanes.
        reads.extend(code.writes(inst).filter(|&r| !code.ends(at, inst, r)));
        for read in &mut reads {
            *read = *current.entry(*read).or_insert_with(|| new(&mut values, *read));
        }
        reads.sort_unstable();
        reads.dedup();
        let writes = code.writes(inst).map(|r| {
            let value = new(&mut values, r);
            current.insert(r, value);
            value
        });
        let writes = writes.collect();
        steps.push(Step { reads, writes });
    }
    let mut now = 0;
    for r in live_out {
        let value = *current.entry(r).or_insert_with(|| new(&mut values, r));
        values[value].live = true;
        values[value].last = end;
        now += values[value].weight;
    }

    let order = places(insts, &steps, &mut values);
    let mut most = now;
    for step in order.into_iter().rev().map(|at| &steps[at]) {
        let weight = |live: bool, list: &[usize]| -> u32 {
            let values = list.iter().map(|&v| &values[v]);
            values.filter(|v| v.live == live).map(|v| v.weight).sum()
        };
        most = most.max(now + weight(false, &step.writes));
        now -= weight(true, &step.writes);
        step.writes.iter().for_each(|&v| values[v].live = false);
        let weight: u32 = step
            .reads
            .iter()
            .map(|&v| &values[v])
            .filter(|v| !v.live)
            .map(|v| v.weight)
            .sum();
        now += weight;
        step.reads.iter().for_each(|&v| values[v].live = true);
        most = most.max(now);
    }
    most
}

/// Moves instructions down and returns them in their new order.
fn places(insts: &[Inst], steps: &[Step], values: &mut [Value]) -> Vec<usize> {
    let end = insts.len();
    let mut places: Vec<usize> = (0..end).collect();
    // The next instruction across which loads cannot be moved.
    let mut fence = end;
    for (at, inst) in insts.iter().enumerate().rev() {
        let step = &steps[at];
        let most = match movable(inst) {
            Movable::Anywhere => end,
            Movable::UpToFence => fence,
            Movable::Fence => {
                fence = at;
                at
            }
        };
        let used = |v: &usize| values[*v].first.unwrap_or(values[*v].last);
        let target = step.writes.iter().map(used).min().unwrap_or(at).min(most);
        let longer = step.reads.iter().filter(|&&v| values[v].last < target);
        let longer: u32 = longer.map(|&v| values[v].weight).sum();
        let shorter: u32 = step.writes.iter().map(|&v| values[v].weight).sum();
        if target > at && longer <= shorter {
            places[at] = target;
        }
        for &v in &step.reads {
            let value = &mut values[v];
            value.first = Some(value.first.map_or(places[at], |first| first.min(places[at])));
            value.last = value.last.max(places[at]);
        }
    }
    let mut order: Vec<usize> = (0..end).collect();
    order.sort_by_key(|&at| (places[at], at));
    order
}

/// The distance over which an instruction can be moved down.
enum Movable {
    Anywhere,
    /// The instruction can be moved down as far as the next [`Fence`](Self::Fence).
    UpToFence,
    /// The instruction cannot be moved, and loads of memory that may change cannot be moved across it: a store, a
    /// barrier, and others.
    Fence,
}

fn movable(inst: &Inst) -> Movable {
    let special = inst.srcs.iter().any(|s| matches!(s, Operand::Special(_)));
    match &inst.op {
        Op::Ld(mem) if matches!(mem.space, Space::Param | Space::Const) => Movable::Anywhere,
        Op::Ld(mem) if mem.order == Order::Weak => Movable::UpToFence,
        op if !special && is_computed(op) => Movable::Anywhere,
        _ => Movable::Fence,
    }
}
