//! Counts the rounds of loops, for the order of faults: of two groups that are in one loop, the interpreter runs the
//! one with fewer rounds first.
//!
//! A loop without another loop inside needs no count of its own, because each of its rounds is a backward jump, and the
//! code counts those anyway.

use super::assembler::{Alu, Gpr, Mem, Shift, Width, Word};
use super::emitter::Emitter;
use super::registers::field;
use crate::code::compiled::{CompiledContext, CompiledLoop, MOST_LOOPS};
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
    pub(super) fn of(plan: &Plan<'_>, map: &SourceMap) -> Self {
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
            let mut edges = found
                .blocks
                .iter()
                .flat_map(|from| layout.blocks[*from].successors.iter().map(|to| (*from, *to)));
            let others = |(from, to): (usize, usize)| to != found.head && flow.is_backward(from, to);
            rounds.loops.push(CompiledLoop {
                head,
                range: first..end,
                by_quantum: !edges.any(others),
            });
            rounds.heads.push(found.head);
        }
        rounds
    }
}

impl Emitter<'_> {
    /// Sets the counts of all groups of a warp to their values before the first round. `CX` is the quantum. Uses `DX`.
    pub(super) fn begin_counts(&mut self) {
        let groups = LANES / self.lanes as usize;
        let asm = &mut self.asm;
        asm.constant(Gpr::DX, 0);
        for (index, found) in self.rounds.loops.iter().enumerate() {
            for group in 0..groups {
                let offset = offset_of!(CompiledContext, rounds) + size_of::<[i64; MOST_LOOPS]>() * group + 8 * index;
                let count = field(offset);
                asm.store(8, count, if found.by_quantum { Gpr::CX } else { Gpr::DX });
            }
        }
    }

    /// Adds code that counts an edge which begins a loop or one of its rounds. Uses `AX` and `CX`.
    pub(super) fn count_round(&mut self, from: usize, to: usize) {
        let Some(index) = self.rounds.heads.iter().position(|head| *head == to) else {
            return;
        };
        let by_quantum = self.rounds.loops[index].by_quantum;
        let begins = !self.input.plan.flow.is_backward(from, to);
        if by_quantum && !begins {
            return;
        }
        let wide = Width::Bits64;
        let word = |offset: usize| Word::Mem(field(offset));
        let asm = &mut self.asm;
        asm.alu(Alu::Mov, wide, Gpr::CX, word(offset_of!(CompiledContext, group)));
        asm.shift(
            Shift::Left,
            wide,
            Gpr::CX,
            size_of::<[i64; MOST_LOOPS]>().trailing_zeros(),
        );
        let count = Mem {
            index: Some(Gpr::CX),
            ..field(offset_of!(CompiledContext, rounds) + 8 * index)
        };
        if !begins {
            return asm.add_to(count, 1);
        }
        if by_quantum {
            asm.alu(Alu::Mov, wide, Gpr::AX, word(offset_of!(CompiledContext, quantum)));
        } else {
            asm.constant(Gpr::AX, 0);
        }
        asm.store(8, count, Gpr::AX);
    }
}
