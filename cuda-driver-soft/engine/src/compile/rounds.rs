//! Counts the rounds of loops, for the order of faults: of two groups that are in one loop, the interpreter runs the
//! one with fewer rounds first.
//!
//! A loop without another loop inside needs no count of its own, because each of its rounds is a backward jump, and the
//! code counts those anyway.

use super::assembler::{Alu, Gpr, Mem, Shift, Width, Word};
use super::emitter::Emitter;
use super::registers::field;
use crate::code::compiled::{CompiledContext, CompiledLoop, MOST_LOOPS, NOT_BEGUN};
use crate::code::function::SourceMap;
use crate::lanes::LANES;
use crate::plan::Plan;
use std::mem::{offset_of, size_of};

/// The loops whose rounds are counted.
#[derive(Default)]
pub(super) struct Rounds {
    /// Outer loops come before inner ones.
    pub(super) loops: Vec<CompiledLoop>,
    /// The head of each loop: a block of the plan.
    heads: Vec<usize>,
}

impl Rounds {
    /// Returns the loops of a kernel whose rounds are counted, at most [`MOST_LOOPS`]. If some lanes of a group can run
    /// while others wait, these are only loops whose rounds all lanes of a group begin together.
    pub(super) fn of(plan: &Plan<'_>, map: &SourceMap, masked: bool) -> Self {
        let (layout, flow) = (&plan.layout, &plan.flow);
        let mut rounds = Rounds::default();
        // Only loops with one backward jump are counted. In other loops, lanes that begin a round early run ahead of
        // those that are still in the previous round.
        let even = flow.loops.iter().rev().filter(|found| found.latches.len() == 1);
        for found in even.take(MOST_LOOPS) {
            let steps = || found.blocks.iter().flat_map(|block| layout.steps_of(*block));
            let first = steps().map(|step| map.steps[step].0).min();
            let end = steps().map(|step| map.steps[step].1).max();
            let head = layout.steps_of(found.head).next().map(|step| map.steps[step].0);
            let (Some(first), Some(end), Some(head)) = (first, end, head) else {
                continue;
            };
            let edges = found
                .blocks
                .iter()
                .flat_map(|from| layout.blocks[*from].successors.iter().map(|to| (*from, *to)));
            let others = |(from, to): (usize, usize)| to != found.head && flow.is_backward(from, to);
            // Lanes that jump back to an outer loop's head begin this loop again while others are in the middle of it.
            let outer = |edge: (usize, usize)| others(edge) && !found.blocks.contains(&edge.1);
            if masked && edges.clone().any(outer) {
                continue;
            }
            rounds.loops.push(CompiledLoop {
                head,
                range: first..end,
                by_quantum: !edges.clone().any(others),
            });
            rounds.heads.push(found.head);
        }
        rounds
    }

    /// Returns the index of the loop with this head; `None` if the block is no head of a counted loop.
    pub(super) fn index(&self, head: usize) -> Option<usize> {
        self.heads.iter().position(|other| *other == head)
    }
}

impl Emitter<'_> {
    /// Sets the counts of all groups of a warp to their values before the first round. `CX` is the quantum. Uses `DX`.
    pub(super) fn begin_counts(&mut self) {
        let groups = LANES / self.lanes as usize;
        let asm = &mut self.asm;
        if self.rounds.loops.iter().any(|found| !found.by_quantum) {
            asm.constant(Gpr::DX, 0);
        }
        for (index, found) in self.rounds.loops.iter().enumerate() {
            for group in 0..groups {
                let offset = offset_of!(CompiledContext, rounds) + size_of::<[i64; MOST_LOOPS]>() * group + 8 * index;
                let count = field(offset);
                asm.store(8, count, if found.by_quantum { Gpr::CX } else { Gpr::DX });
            }
        }
    }

    /// Sets the counts of the running group to their values before the first round. Uses `AX` and `CX`.
    pub(super) fn begin_counts_of_group(&mut self) {
        for index in 0..self.rounds.loops.len() {
            self.begin_count(index);
        }
    }

    /// Adds code that counts an edge which begins a loop or one of its rounds. Uses `CX`, and `AX` only for an edge
    /// that goes forward: code for some lanes keeps lanes in `AX` when it begins another round.
    pub(super) fn count_round(&mut self, from: usize, to: usize) {
        if !self.input.plan.flow.is_backward(from, to) {
            return self.begin_loop(to);
        }
        if let Some(index) = self
            .rounds
            .index(to)
            .filter(|index| !self.rounds.loops[*index].by_quantum)
        {
            let count = self.count_of(index);
            self.asm.add_to(count, 1);
        }
    }

    /// Sets the count of the loop with this head to its value before the first round. Uses `AX` and `CX`.
    pub(super) fn begin_loop(&mut self, head: usize) {
        if let Some(index) = self.rounds.index(head) {
            self.begin_count(index);
        }
    }

    /// Sets the count of a loop to its value before the first round. Uses `AX` and `CX`.
    fn begin_count(&mut self, index: usize) {
        let count = self.count_of(index);
        if self.rounds.loops[index].by_quantum {
            let quantum = Word::Mem(field(offset_of!(CompiledContext, quantum)));
            self.asm.alu(Alu::Mov, Width::Bits64, Gpr::AX, quantum);
        } else {
            self.asm.constant(Gpr::AX, 0);
        }
        self.asm.store(8, count, Gpr::AX);
    }

    /// Records that lanes wait at the head of a loop that they have not begun. Uses `AX` and `CX`.
    pub(super) fn wait_for_loop(&mut self, head: usize) {
        if let Some(index) = self.rounds.index(head) {
            let count = self.count_of(index);
            self.asm.constant(Gpr::AX, NOT_BEGUN.cast_unsigned());
            self.asm.store(8, count, Gpr::AX);
        }
    }

    /// Returns the place of a loop's count. Uses `CX`.
    fn count_of(&mut self, index: usize) -> Mem {
        let counts = field(offset_of!(CompiledContext, rounds) + 8 * index);
        if self.is_whole_warp() {
            return counts;
        }
        let group = Word::Mem(field(offset_of!(CompiledContext, group)));
        let shift = size_of::<[i64; MOST_LOOPS]>().trailing_zeros();
        self.asm.alu(Alu::Mov, Width::Bits64, Gpr::CX, group);
        self.asm.shift(Shift::Left, Width::Bits64, Gpr::CX, shift);
        Mem {
            index: Some(Gpr::CX),
            ..counts
        }
    }
}
