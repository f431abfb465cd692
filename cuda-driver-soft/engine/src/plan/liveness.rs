//! The registers whose values are still needed at each point of a function.

use super::defined;
use super::set::Set;
use super::steps::{Layout, Step};
use ptx::ir::{Body, Formal, Op, Reg};

/// Limit on the bits in the sets of one function.
pub(super) const MOST_BITS: usize = 1 << 25;
/// Limit on the steps of the search in one function: see [`solve`].
pub(super) const MOST_STEPS: usize = 1 << 25;

/// The registers that are live at the beginning and at the end of each basic block.
pub(crate) struct Liveness {
    /// The registers that are live at the beginning of some block, and the function's results, in ascending order. The
    /// sets hold indexes into this list.
    across: Vec<Reg>,
    at_begin: Vec<Set>,
    at_end: Vec<Set>,
    /// The function's results, which are read where it returns.
    results: Vec<Reg>,
}

impl Liveness {
    /// Returns the live registers, or `None` if the function is too large.
    pub(super) fn of(body: &Body, layout: &Layout<'_>) -> Option<Self> {
        let results: Vec<Reg> = body
            .returns
            .iter()
            .filter_map(|formal| match formal {
                Formal::Reg(reg) => Some(*reg),
                Formal::Frame { .. } => None,
            })
            .collect();
        let across = across(body, layout, &results);
        let (count, blocks) = (across.len(), layout.blocks.len());
        if 4 * count.saturating_mul(blocks) > MOST_BITS {
            return None;
        }
        let mut live = Liveness {
            at_begin: Vec::new(),
            at_end: Vec::new(),
            across,
            results,
        };
        let successors: Vec<&[usize]> = layout.blocks.iter().map(|b| b.successors.as_slice()).collect();
        let mut effects: Vec<Effect> = (0..blocks).map(|_| Effect::none(count)).collect();
        for block in &layout.order {
            effects[*block] = live.effect(layout, *block);
        }
        (live.at_begin, live.at_end) = solve(&successors, &layout.order, &effects, MOST_STEPS)?;
        Some(live)
    }

    /// Returns the registers that are live at the beginning of a block, in ascending order.
    pub(crate) fn at_begin(&self, block: usize) -> impl Iterator<Item = Reg> + '_ {
        self.registers(&self.at_begin[block])
    }

    /// Returns the registers that are live at the end of a block, in ascending order.
    pub(crate) fn at_end(&self, block: usize) -> impl Iterator<Item = Reg> + '_ {
        self.registers(&self.at_end[block])
    }

    /// Returns true if the register is live at the beginning of a block.
    pub(crate) fn is_live_at_begin(&self, block: usize, reg: Reg) -> bool {
        self.number(reg).is_some_and(|number| self.at_begin[block].has(number))
    }

    /// Returns the registers that each step of a block reads for the last time: they are not live after it.
    pub(crate) fn last_reads(&self, layout: &Layout<'_>, block: usize) -> Vec<Vec<Reg>> {
        let mut live: std::collections::HashSet<Reg> = self.at_end(block).collect();
        let mut found = Vec::new();
        for step in layout.steps_of(block).rev() {
            defined::writes(&layout.steps[step], |reg| {
                live.remove(&reg);
            });
            let mut last = Vec::new();
            reads(&layout.steps[step], &self.results, |reg| {
                if live.insert(reg) {
                    last.push(reg);
                }
            });
            found.push(last);
        }
        found.reverse();
        found
    }

    /// Returns an empty set of the numbers that [`registers`](Self::registers) turns into registers.
    pub(super) fn none(&self) -> Set {
        Set::empty(self.across.len())
    }

    /// Returns the numbers of the registers that are live at the beginning of a block.
    pub(super) fn set_at_begin(&self, block: usize) -> &Set {
        &self.at_begin[block]
    }

    /// Returns the numbers of the registers that a block may write, without those that are live only inside of blocks.
    pub(super) fn written_in(&self, layout: &Layout<'_>, block: usize) -> Set {
        let mut written = self.none();
        for step in &layout.steps[layout.steps_of(block)] {
            if let Step::Plain(inst) = step {
                defined::writes_of(inst, |reg| {
                    self.number(reg).into_iter().for_each(|number| written.insert(number))
                });
            }
        }
        written
    }

    /// Returns the registers of a set of numbers.
    pub(super) fn registers<'s>(&'s self, set: &'s Set) -> impl Iterator<Item = Reg> + 's {
        set.registers().into_iter().map(|number| self.across[number.0 as usize])
    }

    fn number(&self, reg: Reg) -> Option<Reg> {
        let number = self.across.binary_search(&reg).ok()?;
        Some(Reg(number as u32))
    }

    fn effect(&self, layout: &Layout<'_>, block: usize) -> Effect {
        let Effect { mut read, mut written } = Effect::none(self.across.len());
        for step in &layout.steps[layout.steps_of(block)] {
            reads(step, &self.results, |reg| {
                if let Some(number) = self.number(reg)
                    && !written.has(number)
                {
                    read.insert(number);
                }
            });
            defined::writes(step, |reg| {
                if let Some(number) = self.number(reg) {
                    written.insert(number);
                }
            });
        }
        if layout.blocks[block].successors.is_empty() {
            // The function may end here.
            for number in self.results.iter().filter_map(|reg| self.number(*reg)) {
                if !written.has(number) {
                    read.insert(number);
                }
            }
        }
        Effect { read, written }
    }
}

/// The registers that a block reads before it writes them, and those that it always writes.
pub(crate) struct Effect {
    pub(crate) read: Set,
    pub(crate) written: Set,
}

impl Effect {
    /// Returns the effect of an empty block, with sets of `count` registers.
    pub(crate) fn none(count: usize) -> Self {
        Effect {
            read: Set::empty(count),
            written: Set::empty(count),
        }
    }
}

/// Returns the registers that are live at the beginning and at the end of each block, or `None` if the search takes
/// more than `most_steps` steps: one for each visit of a block, and one for each word of the sets that it reads.
/// `order` are the blocks to search. The search is shortest if the blocks at the end of the function come last.
pub(crate) fn solve(
    successors: &[&[usize]],
    order: &[usize],
    effects: &[Effect],
    most_steps: usize,
) -> Option<(Vec<Set>, Vec<Set>)> {
    let mut at_begin: Vec<Set> = effects.iter().map(|effect| effect.read.clone()).collect();
    let mut at_end: Vec<Set> = effects.iter().map(|effect| effect.read.emptied()).collect();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); effects.len()];
    for block in order {
        successors[*block].iter().for_each(|next| before[*next].push(*block));
    }
    let (mut waiting, mut waits) = (order.to_vec(), vec![true; effects.len()]);
    let mut steps = 0;
    while let Some(block) = waiting.pop() {
        waits[block] = false;
        steps += 1 + at_end[block].words() * (1 + successors[block].len());
        if steps > most_steps {
            return None;
        }
        let mut end = std::mem::replace(&mut at_end[block], Set::empty(0));
        successors[block].iter().for_each(|next| end.union(&at_begin[*next]));
        let mut begin = end.clone();
        begin.subtract(&effects[block].written);
        begin.union(&effects[block].read);
        at_end[block] = end;
        if begin != at_begin[block] {
            at_begin[block] = begin;
            for from in &before[block] {
                if !std::mem::replace(&mut waits[*from], true) {
                    waiting.push(*from);
                }
            }
        }
    }
    Some((at_begin, at_end))
}

/// Calls `f` for each register that a step reads, including the function's results where it returns.
fn reads(step: &Step<'_>, results: &[Reg], mut f: impl FnMut(Reg)) {
    defined::reads(step, &mut f);
    if let Step::Plain(inst) = step
        && matches!(inst.op, Op::Ret { .. })
    {
        results.iter().for_each(|reg| f(*reg));
    }
}

/// Returns the registers that some block reads before it writes them, and the function's results.
pub(super) fn across(body: &Body, layout: &Layout<'_>, results: &[Reg]) -> Vec<Reg> {
    let mut across = Set::empty(body.registers.len());
    let mut written_in = vec![usize::MAX; body.registers.len()];
    for block in &layout.order {
        for step in &layout.steps[layout.steps_of(*block)] {
            reads(step, results, |reg| {
                if written_in[reg.0 as usize] != *block {
                    across.insert(reg);
                }
            });
            defined::writes(step, |reg| written_in[reg.0 as usize] = *block);
        }
    }
    results.iter().for_each(|reg| across.insert(*reg));
    across.registers()
}
