//! Estimates the number of registers of a kernel that the PTX compiler of a GPU would report.
//!
//! No machine registers are assigned here, so the number is an estimate: the largest number of 32-bit registers that
//! are live at the same time, and a margin for registers that a compiler adds. Values that a GPU keeps elsewhere do not
//! count: predicates, constants, kernel parameters, the block's indexes, and values computed from these alone (uniform
//! registers). Registers limit the threads of a block, so an estimate that is too high makes the driver refuse launches
//! that a GPU accepts. The margin is therefore chosen so that estimates are below the numbers of ptxas for kernels with
//! so many registers that they limit the block.

use crate::plan::liveness::{Effect, solve};
use crate::plan::set::Set;
use ptx::ir::{
    Body, CallSlot, Callee, Directives, FuncId, Inst, MatrixPart, Op, Operand, Part, Reg, RegClass, Space, Special,
    Type,
};
use std::collections::HashMap;

mod sink;
#[cfg(test)]
mod tests;

/// The largest number of registers of a thread.
const MOST: u32 = 255;
/// A limit on registers below this number is raised to it, because calls need this many.
const LEAST_LIMIT: u32 = 24;
/// Registers of a multiprocessor.
const PER_MULTIPROCESSOR: u32 = 65_536;
/// Warps of a multiprocessor.
const WARPS: u32 = 64;
/// Threads of a warp.
const WARP: u32 = 32;
/// Number of parts of a multiprocessor. Each part runs an equal share of the warps.
const PARTS: u32 = 4;
/// Registers that a called function may overwrite.
const SCRATCH: u32 = 16;
/// Limit on the rounds in which the needs of called functions are added to those of their callers.
const MOST_ROUNDS: u32 = 16;
/// Limits on the search for live registers in one function: words of one kind of bitset, and steps.
const MOST_WORDS: usize = 1 << 18;
const MOST_STEPS: usize = 1 << 22;
/// The number of live registers up to which instructions are not moved: a compiler moves them only if it would
/// otherwise run out of registers.
const MOST_FREE: u32 = 48;
/// The largest number of live registers that is assumed for a function that is too large for the search.
const MOST_IF_HUGE: u32 = 128;

/// Returns the largest number of registers that the compiler may use under these directives. `.maxnreg` takes
/// precedence; without it, one block of `.maxntid` or `.reqntid` threads fits on a multiprocessor, or `.minnctapersm`
/// of them do.
pub(crate) fn limit(directives: &Directives) -> u32 {
    if let Some(most) = directives.maxnreg {
        return most.clamp(LEAST_LIMIT, MOST);
    }
    let Some(block) = directives.maxntid.or(directives.reqntid) else {
        return MOST;
    };
    let threads = block.iter().fold(1u32, |a, n| a.saturating_mul(*n)).max(1);
    let warps = threads.div_ceil(WARP).min(WARPS);
    let blocks = directives.minnctapersm.unwrap_or(1).max(1);
    // A number of blocks that cannot be resident is ignored.
    let warps = match warps.saturating_mul(blocks) {
        all @ ..=WARPS => all,
        _ => warps,
    };
    let each = PER_MULTIPROCESSOR / (warps.next_multiple_of(PARTS) * WARP);
    (each / 8 * 8).clamp(LEAST_LIMIT, MOST)
}

/// Estimates how many registers the first of `functions` needs. The other functions are all that it may reach. `need`
/// returns the [`Need`] of a function, and `None` for one without code.
pub(super) fn estimate<'n>(functions: &[FuncId], need: impl Fn(FuncId) -> Option<&'n Need>) -> u32 {
    let index: HashMap<FuncId, usize> = functions.iter().copied().zip(0..).collect();
    let needs: Vec<Option<&Need>> = functions.iter().map(|id| need(*id)).collect();
    let mut live: Vec<u32> = needs.iter().map(|n| n.map_or(0, |n| n.live)).collect();
    let mut called = false;
    // Small functions are inlined: their registers are added to the ones that live across the call. Large ones
    // save what they overwrite. Recursion converges after a few rounds, since nothing is added to large functions.
    for _ in 0..MOST_ROUNDS {
        let mut changed = false;
        for (at, need) in needs.iter().enumerate().rev() {
            for (callee, across) in need.iter().flat_map(|n| &n.calls) {
                let callee = callee.and_then(|id| index.get(&id).copied());
                let known = callee.filter(|&c| c != at && needs[c].is_some());
                called |= known.is_none();
                let inside = known.map_or(SCRATCH, |c| live[c]);
                let both = (across + inside).min((across + SCRATCH).max(inside));
                if both > live[at] {
                    live[at] = both;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let live = live.into_iter().max().unwrap_or(0);
    let insts: usize = needs.iter().flatten().map(|n| n.insts).sum();
    let least = if called { LEAST_LIMIT } else { 8 };
    (live + margin(live, insts)).clamp(least, MOST)
}

/// Returns the number of registers in addition to the live ones: for the stack pointer, for temporaries, and for loads
/// that the compiler starts early. It starts more loads early if fewer registers are in use. The numbers are fitted to
/// ptxas 13.0.
fn margin(live: u32, insts: usize) -> u32 {
    let free = match insts {
        ..10 => 6,
        10..20 => 7,
        20..40 => 8,
        40..80 => 10,
        _ => 12,
    };
    match live {
        ..24 => free,
        24..48 => free.min(8),
        48..56 => 8,
        _ => 5,
    }
}

/// The callee of each call, if it is known, and the registers that are live across the call.
type Calls = Vec<(Option<FuncId>, u32)>;

/// The registers and calls of one function, without its callees.
#[derive(Debug)]
pub(super) struct Need {
    /// The largest number of 32-bit registers that are live at the same time.
    live: u32,
    calls: Calls,
    insts: usize,
}

impl Need {
    /// Returns the need of a function with this body.
    pub(super) fn of(body: &Body) -> Self {
        let code = Code::new(body);
        let (live, calls) = code.pressure().unwrap_or_else(|| (code.spans(), Vec::new()));
        Need {
            live,
            calls,
            insts: body.insts.len(),
        }
    }
}

/// A function's code with the analysis of its registers.
struct Code<'a> {
    body: &'a Body,
    /// For each register, the one that replaces it: copies, and sums with a constant, share a register with their
    /// source.
    stands_for: Vec<u32>,
    /// For each register, the number of 32-bit registers that it takes; 0 for registers that do not count.
    weights: Vec<u8>,
    /// For each register, the instruction that first writes it.
    first_write: Vec<u32>,
}

/// A basic block: a range of instructions.
struct Block {
    start: usize,
    end: usize,
    next: Vec<usize>,
}

impl<'a> Code<'a> {
    fn new(body: &'a Body) -> Self {
        let mut writes = vec![0u8; body.registers.len()];
        let mut first_write = vec![u32::MAX; body.registers.len()];
        for (at, inst) in body.insts.iter().enumerate() {
            for Reg(r) in written(inst) {
                let r = r as usize;
                writes[r] = writes[r].saturating_add(1);
                first_write[r] = first_write[r].min(at as u32);
            }
        }
        let held = held_elsewhere(body, &writes);
        let stands_for = stands_for(body, &writes, &held.constant);
        let weights = weights(body, &held.uniform);
        Code {
            body,
            stands_for,
            weights,
            first_write,
        }
    }

    /// Returns the registers that an instruction reads and that count.
    fn reads<'i>(&'i self, inst: &'i Inst) -> impl Iterator<Item = usize> + 'i {
        let returned: &[_] = match inst.op {
            Op::Ret { .. } => &self.body.returns,
            _ => &[],
        };
        let returned = returned.iter().filter_map(|formal| match formal {
            ptx::ir::Formal::Reg(r) => Some(*r),
            ptx::ir::Formal::Frame { .. } => None,
        });
        read(inst)
            .chain(returned)
            .map(|Reg(r)| self.stands_for[r as usize] as usize)
            .filter(|&r| self.weights[r] > 0)
    }

    /// Returns the registers that an instruction writes and that count.
    fn writes<'i>(&'i self, inst: &'i Inst) -> impl Iterator<Item = usize> + 'i {
        written(inst)
            .map(|Reg(r)| r as usize)
            .filter(|&r| self.stands_for[r] as usize == r && self.weights[r] > 0)
    }

    /// Returns true if the register is not live before this instruction, which writes it. A guarded write keeps the old
    /// value in some lanes, unless it is the first write.
    fn ends(&self, at: usize, inst: &Inst, register: usize) -> bool {
        inst.guard.is_none() || self.first_write[register] as usize == at
    }

    fn blocks(&self) -> Vec<Block> {
        let insts = &self.body.insts;
        let count = insts.len();
        let mut leads = vec![false; count + 1];
        leads[0] = true;
        for (at, inst) in insts.iter().enumerate() {
            let targets = targets(&inst.op);
            targets.iter().for_each(|t| leads[(t.0 as usize).min(count)] = true);
            leads[at + 1] |= !targets.is_empty() || leaves(&inst.op);
        }
        let starts: Vec<usize> = (0..count).filter(|&at| leads[at]).collect();
        let block_at = |at: usize| starts.binary_search(&at).ok();
        let ends = starts.iter().skip(1).copied().chain([count]);
        starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| {
                let last = &insts[end - 1];
                let jumps = targets(&last.op);
                let falls = last.guard.is_some() || (jumps.is_empty() && !leaves(&last.op));
                let mut next: Vec<usize> = jumps
                    .iter()
                    .filter_map(|t| block_at(t.0 as usize))
                    .chain(block_at(end).filter(|_| falls))
                    .collect();
                next.sort_unstable();
                next.dedup();
                Block { start, end, next }
            })
            .collect()
    }

    /// Returns the largest number of live registers, and the registers that are live across each call. Returns `None`
    /// if the function is too large.
    fn pressure(&self) -> Option<(u32, Calls)> {
        let blocks = self.blocks();
        let (globals, number) = self.globals(&blocks);
        let live_out = self.live_out(&blocks, &number, globals.len())?;
        let (mut most, mut calls) = (0, Vec::new());
        let mut live = vec![false; self.weights.len()];
        for (b, block) in blocks.iter().enumerate() {
            let out: Vec<usize> = live_out[b].registers().iter().map(|n| globals[n.0 as usize]).collect();
            let mut now = 0u32;
            // Registers that may be live at the start of the block, to be cleared for the next.
            let mut touched = Vec::new();
            for &r in &out {
                live[r] = true;
                now += u32::from(self.weights[r]);
                touched.push(r);
            }
            let mut peak = now;
            for at in (block.start..block.end).rev() {
                let inst = &self.body.insts[at];
                let unused: u32 = self
                    .writes(inst)
                    .filter(|&r| !live[r])
                    .map(|r| u32::from(self.weights[r]))
                    .sum();
                peak = peak.max(now + unused);
                for r in self.writes(inst) {
                    if live[r] && self.ends(at, inst, r) {
                        live[r] = false;
                        now -= u32::from(self.weights[r]);
                    }
                }
                if let Op::Call { callee, .. } = &inst.op {
                    let callee = match callee {
                        Callee::Direct(id) => Some(*id),
                        Callee::Indirect { .. } => None,
                    };
                    calls.push((callee, now));
                }
                for r in self.reads(inst) {
                    if !live[r] {
                        live[r] = true;
                        now += u32::from(self.weights[r]);
                        touched.push(r);
                    }
                }
                peak = peak.max(now);
            }
            if peak > MOST_FREE.max(most) {
                peak = peak.min(sink::pressure(self, block, out.iter().copied()));
            }
            most = most.max(peak);
            touched.into_iter().for_each(|r| live[r] = false);
        }
        Some((most, calls))
    }

    /// Returns the registers that are live at the start of some block, and the number of each among them.
    fn globals(&self, blocks: &[Block]) -> (Vec<usize>, Vec<u32>) {
        let mut globals = Vec::new();
        let mut number = vec![u32::MAX; self.weights.len()];
        let mut written_in = vec![usize::MAX; self.weights.len()];
        for (b, block) in blocks.iter().enumerate() {
            for at in block.start..block.end {
                let inst = &self.body.insts[at];
                for r in self.reads(inst) {
                    if written_in[r] != b && number[r] == u32::MAX {
                        number[r] = globals.len() as u32;
                        globals.push(r);
                    }
                }
                for r in self.writes(inst) {
                    if self.ends(at, inst, r) {
                        written_in[r] = b;
                    }
                }
            }
        }
        (globals, number)
    }

    /// Returns the registers that are live at the end of each block, as sets of numbers below `count`. Returns `None`
    /// if the function is too large.
    fn live_out(&self, blocks: &[Block], number: &[u32], count: usize) -> Option<Vec<Set>> {
        if blocks.len() * count.div_ceil(64) > MOST_WORDS {
            return None;
        }
        let numbered = |r: usize| Some(Reg(number[r])).filter(|n| n.0 != u32::MAX);
        let effect = |block: &Block| {
            let mut effect = Effect::none(count);
            for at in (block.start..block.end).rev() {
                let inst = &self.body.insts[at];
                let ended = self.writes(inst).filter(|&r| self.ends(at, inst, r));
                for n in ended.filter_map(numbered) {
                    effect.written.insert(n);
                    effect.read.remove(n);
                }
                self.reads(inst)
                    .filter_map(numbered)
                    .for_each(|n| effect.read.insert(n));
            }
            effect
        };
        let effects: Vec<Effect> = blocks.iter().map(effect).collect();
        let successors: Vec<&[usize]> = blocks.iter().map(|block| block.next.as_slice()).collect();
        let order: Vec<usize> = (0..blocks.len()).collect();
        let (_, at_end) = solve(&successors, &order, &effects, MOST_STEPS)?;
        Some(at_end)
    }

    /// Returns an estimate without the search: each register counts as live from its first use to its last.
    fn spans(&self) -> u32 {
        let mut spans = vec![(u32::MAX, 0u32); self.weights.len()];
        for (at, inst) in (0..).zip(&self.body.insts) {
            for r in self.reads(inst).chain(self.writes(inst)) {
                spans[r] = (spans[r].0.min(at), at);
            }
        }
        let mut change = vec![0i64; self.body.insts.len() + 1];
        for (&(first, last), &weight) in spans.iter().zip(&self.weights) {
            if first < last {
                change[first as usize] += i64::from(weight);
                change[last as usize] -= i64::from(weight);
            }
        }
        let mut now = 0;
        let all = change.into_iter().map(|c| {
            now += c;
            now
        });
        all.max().unwrap_or(0).clamp(0, MOST_IF_HUGE.into()) as u32
    }
}

fn targets(op: &Op) -> &[ptx::ir::InstId] {
    match op {
        Op::Bra { target, .. } => std::slice::from_ref(target),
        Op::Brx { targets, .. } => targets,
        _ => &[],
    }
}

/// Returns true if nothing runs after the instruction in this function, unless it is guarded.
fn leaves(op: &Op) -> bool {
    matches!(op, Op::Ret { .. } | Op::Exit | Op::Trap)
}

/// Returns the registers that an instruction reads.
fn read(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
    let register = |operand: &Operand| match operand {
        Operand::Reg(r) | Operand::NotReg(r) => Some(*r),
        _ => None,
    };
    let passed: &[CallSlot] = match &inst.op {
        Op::Call { args, .. } => args,
        _ => &[],
    };
    let passed = passed.iter().filter_map(move |slot| match slot {
        CallSlot::Value(operand) => register(operand),
        CallSlot::Frame { .. } => None,
    });
    let guard = inst.guard.iter().map(|(r, _)| *r);
    guard.chain(inst.srcs.iter().filter_map(register)).chain(passed)
}

/// Returns the registers that an instruction writes.
fn written(inst: &Inst) -> impl Iterator<Item = Reg> + '_ {
    let returned: &[CallSlot] = match &inst.op {
        Op::Call { rets, .. } => rets,
        _ => &[],
    };
    let returned = returned.iter().filter_map(|slot| match slot {
        CallSlot::Value(Operand::Reg(r)) => Some(*r),
        _ => None,
    });
    inst.dsts.iter().flatten().copied().chain(returned)
}

/// Finds the registers that are copies of others, or differ from them by a constant. Address operands contain a
/// constant offset, so both are one register in machine code.
fn stands_for(body: &Body, writes: &[u8], constant: &[bool]) -> Vec<u32> {
    let mut found: Vec<u32> = (0..body.registers.len() as u32).collect();
    for inst in body.insts.iter().filter(|i| i.guard.is_none()) {
        let from = match (&inst.op, &inst.srcs[..]) {
            (Op::Mov { .. } | Op::Cvta { .. }, [Operand::Reg(r)])
            | (Op::Add { .. }, [Operand::Reg(r), Operand::Imm(_)]) => r.0 as usize,
            (Op::Add { .. }, [Operand::Reg(r), Operand::Reg(c)]) if constant[c.0 as usize] => r.0 as usize,
            _ => continue,
        };
        let [Some(Reg(to))] = inst.dsts[..] else {
            continue;
        };
        let to = to as usize;
        if (writes[to], writes[from]) == (1, 1) && body.registers[to] == body.registers[from] {
            found[to] = found[from];
        }
    }
    found
}

/// Returns the number of 32-bit registers that each register takes.
fn weights(body: &Body, uniform: &[bool]) -> Vec<u8> {
    let high = uses_high_half(body);
    let mut weights: Vec<u8> = (body.registers.iter().zip(uniform).zip(high))
        .map(|((class, uniform), high)| match class {
            _ if *uniform => 0,
            RegClass::Pred => 0,
            RegClass::B16 | RegClass::B32 => 1,
            RegClass::B64 => 1 + u8::from(high),
            RegClass::B128 => 4,
        })
        .collect();
    // In shape m16n16k16, which stands for all shapes here, PTX stores each element of these fragments twice, and a GPU
    // stores it once.
    for inst in &body.insts {
        let Op::WmmaLd { part, ty, .. } = inst.op else {
            continue;
        };
        if ty == Type::F16 && part != MatrixPart::C {
            let twice = inst.dsts.iter().skip(1).step_by(2).flatten();
            twice.for_each(|Reg(r)| weights[*r as usize] = 0);
        }
    }
    weights
}

/// PTX registers for which a GPU needs no register of the thread.
struct HeldElsewhere {
    /// True for each constant.
    constant: Vec<bool>,
    /// True for each value that is the same in all threads of a block.
    uniform: Vec<bool>,
}

/// Finds the PTX registers that need no register of the thread: constants and kernel parameters are operands in machine
/// code, and integers computed from them and from the block's indexes are in registers of the warp.
fn held_elsewhere(body: &Body, writes: &[u8]) -> HeldElsewhere {
    let mut constant = vec![false; writes.len()];
    let mut uniform = vec![false; writes.len()];
    for inst in body.insts.iter().filter(|i| i.guard.is_none()) {
        let all = |known: &[bool], special: fn(&Special) -> bool| {
            inst.srcs.iter().all(|source| match source {
                Operand::Reg(r) | Operand::NotReg(r) => known[r.0 as usize],
                Operand::Imm(_) | Operand::Address(_) => true,
                Operand::Special(s) => special(s),
            })
        };
        let of_constants = is_computed(&inst.op) && all(&constant, |_| false);
        let of_block = is_uniform(&inst.op) && all(&uniform, is_of_block);
        if !(of_constants || of_block) {
            continue;
        }
        for Reg(r) in written(inst) {
            let r = r as usize;
            uniform[r] = writes[r] == 1;
            constant[r] = of_constants && uniform[r];
        }
    }
    HeldElsewhere { constant, uniform }
}

/// Returns true for common instructions whose result depends on the operands alone.
fn is_computed(op: &Op) -> bool {
    use Op::*;
    matches!(
        op,
        FAdd(_)
            | FSub(_)
            | FMul(_)
            | Fma(_)
            | FNeg { .. }
            | FAbs { .. }
            | FMin { .. }
            | FMax { .. }
            | FDiv { .. }
            | Sqrt { .. }
            | Rcp { .. }
            | Div { .. }
            | Rem { .. }
            | Set { .. }
            | Cvt(_)
    ) || (is_uniform(op) && !matches!(op, Ld(_)))
}

/// Returns true for instructions that a GPU can run once for a whole warp, on uniform registers.
fn is_uniform(op: &Op) -> bool {
    use Op::*;
    match op {
        Ld(mem) => matches!(mem.space, Space::Param | Space::Const),
        Cvt(cvt) => !cvt.to.is_float() && !cvt.from.is_float(),
        _ => matches!(
            op,
            Mov { .. }
                | Cvta { .. }
                | Pack { .. }
                | Unpack { .. }
                | Add { .. }
                | Sub { .. }
                | Mul { .. }
                | Mad { .. }
                | And { .. }
                | Or { .. }
                | Xor { .. }
                | Not { .. }
                | Shl { .. }
                | Shr { .. }
                | Min { .. }
                | Max { .. }
                | Neg { .. }
                | Lop3 { .. }
                | Shf { .. }
                | Prmt { .. }
                | Setp { .. }
                | Selp { .. }
        ),
    }
}

/// Returns true for special registers that are the same for all threads of a block.
fn is_of_block(special: &Special) -> bool {
    use Special::*;
    matches!(
        special,
        Ntid(_)
            | Ctaid(_)
            | Nctaid(_)
            | Clusterid(_)
            | Nclusterid(_)
            | ClusterCtaid(_)
            | ClusterNctaid(_)
            | ClusterCtarank
            | ClusterNctarank
    )
}

/// Returns true for each 64-bit register whose high half is needed. Addresses of shared and local memory have 32 bits,
/// and the high half of an extended unsigned number is zero.
fn uses_high_half(body: &Body) -> Vec<bool> {
    let mut needed = vec![false; body.registers.len()];
    let mut not_zero = vec![false; body.registers.len()];
    // In reverse order, uses are visited before definitions. Loops may need another round.
    for round in 0..4 {
        let mut changed = false;
        for inst in body.insts.iter().rev() {
            if round == 0 && !has_zero_high_half(inst) {
                written(inst).for_each(|Reg(r)| not_zero[r as usize] = true);
            }
            let result = written(inst).any(|Reg(r)| needed[r as usize]);
            let (address, others) = high_halves_read(&inst.op, result);
            let first = match inst.srcs.first() {
                Some(Operand::Reg(r)) => Some(*r),
                _ => None,
            };
            for r in read(inst) {
                let high = if Some(r) == first { address } else { others };
                let known = &mut needed[r.0 as usize];
                changed |= high && !*known;
                *known |= high;
            }
        }
        if !changed {
            break;
        }
    }
    needed.iter().zip(not_zero).map(|(a, b)| *a && b).collect()
}

/// Returns true if a 64-bit result of the instruction has a high half of zero.
fn has_zero_high_half(inst: &Inst) -> bool {
    let small = |operand: &Operand| matches!(operand, Operand::Imm(n) if *n >> 32 == 0);
    match &inst.op {
        Op::Cvt(cvt) => !cvt.to.is_float() && !cvt.from.is_float() && !cvt.from.is_signed() && cvt.from.size() <= 4,
        Op::And { .. } => inst.srcs.iter().any(small),
        Op::Mov { .. } => inst.srcs.iter().all(small),
        Op::Ld(mem) => mem.ty.size() <= 4 && !mem.ty.is_signed(),
        _ => false,
    }
}

/// Returns true if the instruction reads the high half of its first source, and true if it reads the high halves of the
/// others. `result` is true if the high half of its result is needed.
fn high_halves_read(op: &Op, result: bool) -> (bool, bool) {
    let wide = |space: Space| matches!(space, Space::Generic | Space::Global);
    match op {
        Op::Ld(mem) | Op::St(mem) => (wide(mem.space), true),
        Op::Atom { mem, .. } | Op::Red { mem, .. } => (wide(mem.space), true),
        Op::Cvt(cvt) => {
            let high = cvt.to.size() > 4 || cvt.from.is_float();
            (high, high)
        }
        Op::Add { .. }
        | Op::Sub { .. }
        | Op::Neg { .. }
        | Op::And { .. }
        | Op::Or { .. }
        | Op::Xor { .. }
        | Op::Not { .. }
        | Op::Shl { .. }
        | Op::Mov { .. }
        | Op::Selp { .. }
        | Op::Cvta { .. } => (result, result),
        Op::Mul { part: Part::Lo, .. } | Op::Mad { part: Part::Lo, .. } => (result, result),
        _ => (true, true),
    }
}
