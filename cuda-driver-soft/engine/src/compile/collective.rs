//! Operations across the lanes of a warp in machine code. All lanes take part; their values are in rows of the frame.
//! In groups of 32 lanes, [`alone`](super::alone) runs most of these operations on machine registers instead.

use super::assembler::{Alu, Gpr, Mem, Source, When, Width, Word, Ymm};
use super::emitter::Emitter;
use super::registers::{Kind, ROWS32, SOURCES, TEMP};
use super::value::Value;
use crate::code::collective::Collective;
use crate::lanes::{FULL, LANES};
use crate::plan::class::{Class, Scheduled};
use crate::semantics::collective::source_lane;
use iced_x86::Code;
use ptx::ir::{AtomOp, Inst, Op, Operand, Reg, RegClass, VoteMode};

/// Parts of a row of 32-bit values.
const PARTS: usize = LANES / 8;

/// The way in which a warp runs an operation across its lanes.
pub(super) enum Together {
    /// In machine code: a shuffle whose source lanes are known.
    Shuffle {
        a: Value,
        /// The lane from which each lane gets its value.
        from: [u32; LANES],
        /// The second result: a mask of the lanes in which the predicate is true.
        inside: u32,
    },
    /// In machine code: a vote over a predicate, which may be negated.
    Vote(VoteMode, (Reg, bool)),
    /// In machine code: a reduction by an instruction on integers.
    Reduce(Value, Code),
    /// In machine code: the mask of all lanes.
    AllLanes,
    /// There is nothing to run.
    Nothing,
    /// The interpreter runs the instruction.
    Interpreted,
    /// The scheduler runs the instruction.
    Scheduled,
}

impl Emitter<'_> {
    /// Returns the way in which a warp runs an instruction.
    pub(super) fn together(&self, inst: &Inst) -> Together {
        if matches!(inst.op, Op::Activemask) {
            return Together::AllLanes;
        }
        match Class::of_inst(inst) {
            Class::Scheduled(Scheduled::Collective) => self.collective(inst).unwrap_or(Together::Interpreted),
            Class::Scheduled(_) => Together::Scheduled,
            _ => Together::Interpreted,
        }
    }

    pub(super) fn collective(&self, inst: &Inst) -> Option<Together> {
        let (what, sync) = Collective::of(&inst.op)?;
        let number = |operand: &Operand| Some(self.value(operand, Width::Bits32)?.number()? as u32);
        if sync && number(inst.srcs.last()?)? != FULL {
            return None;
        }
        let d = inst.dsts.first().copied().flatten();
        let fits = |class| d.is_none_or(|d| self.class(d) == class);
        let row = || {
            self.value(inst.srcs.first()?, Width::Bits32)
                .filter(|_| fits(RegClass::B32))
        };
        Some(match what {
            Collective::Shuffle(mode) => {
                let (b, c) = (number(inst.srcs.get(1)?)?, number(inst.srcs.get(2)?)?);
                let lanes: [(u32, bool); LANES] = std::array::from_fn(|lane| source_lane(mode, lane as u32, b, c));
                let bit = |lane: usize| u32::from(lanes[lane].1) << lane;
                Together::Shuffle {
                    a: row()?,
                    from: lanes.map(|(from, _)| from),
                    inside: (0..LANES).map(bit).sum(),
                }
            }
            Collective::Vote(mode) => {
                let class = if mode == VoteMode::Ballot {
                    RegClass::B32
                } else {
                    RegClass::Pred
                };
                Together::Vote(mode, self.mask_of(inst.srcs.first()?).filter(|_| fits(class))?)
            }
            Collective::Reduce { op, signed } => {
                let code = match (op, signed) {
                    (AtomOp::And, _) => Code::VEX_Vpand_ymm_ymm_ymmm256,
                    (AtomOp::Or, _) => Code::VEX_Vpor_ymm_ymm_ymmm256,
                    (AtomOp::Xor, _) => Code::VEX_Vpxor_ymm_ymm_ymmm256,
                    (AtomOp::Add, _) => Code::VEX_Vpaddd_ymm_ymm_ymmm256,
                    (AtomOp::Min, false) => Code::VEX_Vpminud_ymm_ymm_ymmm256,
                    (AtomOp::Max, false) => Code::VEX_Vpmaxud_ymm_ymm_ymmm256,
                    (AtomOp::Min, true) => Code::VEX_Vpminsd_ymm_ymm_ymmm256,
                    (AtomOp::Max, true) => Code::VEX_Vpmaxsd_ymm_ymm_ymmm256,
                    _ => return None,
                };
                Together::Reduce(row()?, code)
            }
            Collective::Barrier => Together::Nothing,
            Collective::Elect | Collective::MatchAny { .. } | Collective::MatchAll { .. } => return None,
        })
    }

    /// Runs an instruction for the whole warp. The registers for the frame have the addresses of the last group.
    pub(super) fn run_together(&mut self, together: &Together, inst: &Inst) {
        let [d, p] = [0, 1].map(|at| inst.dsts.get(at).copied().flatten());
        match together {
            Together::Shuffle { a, from, inside } => {
                if let Some(d) = d {
                    self.shuffle(*a, from, d);
                }
                if let Some(p) = p {
                    self.asm.constant(Gpr::AX, u64::from(*inside));
                    self.store_mask(p);
                }
            }
            Together::Vote(mode, (predicate, negated)) => {
                let home = self.lanes_of_all_groups(*predicate);
                self.asm.alu(Alu::Mov, Width::Bits32, Gpr::AX, Word::Mem(home));
                if *negated {
                    self.asm.alu(Alu::Xor, Width::Bits32, Gpr::AX, Word::Imm(-1));
                }
                if let Some(d) = d {
                    self.vote(*mode, d);
                }
            }
            Together::Reduce(a, code) => {
                if let Some(d) = d {
                    self.reduce(*a, *code, d);
                }
            }
            Together::AllLanes => {
                if let Some(d) = d {
                    self.asm.constant(Gpr::AX, u64::from(FULL));
                    self.asm.broadcast_gpr(Width::Bits32, TEMP, Gpr::AX);
                    self.store_in_all_lanes(d, TEMP);
                }
            }
            Together::Nothing | Together::Interpreted | Together::Scheduled => {}
        }
    }

    /// Returns a part of a row that has the values of all lanes.
    fn part_of_all(&mut self, value: Value, part: usize) -> Mem {
        let place = self.memory_of(value, part);
        if place.base == ROWS32 {
            place.plus(-self.before_last(4))
        } else {
            place
        }
    }

    /// Returns the bytes before the last group in a row of `bytes` bytes per lane.
    fn before_last(&self, bytes: i32) -> i32 {
        bytes * self.lanes as i32 * (self.groups() as i32 - 1)
    }

    /// Returns the place of the mask of all lanes of a predicate.
    pub(super) fn lanes_of_all_groups(&self, predicate: Reg) -> Mem {
        let before = self.lanes / 8 * (self.groups() - 1);
        self.mask_row(self.slot(predicate)).plus(-(before as i32))
    }

    /// Writes the mask in `AX` to a predicate.
    fn store_mask(&mut self, predicate: Reg) {
        let to = self.lanes_of_all_groups(predicate);
        self.asm.store(4, to, Gpr::AX);
    }

    /// Writes a vector of the same values to all lanes of a register.
    fn store_in_all_lanes(&mut self, d: Reg, ymm: Ymm) {
        let home = self.home(d).plus(-self.before_last(4));
        for part in 0..PARTS as i32 {
            self.asm.store_vector(home.plus(32 * part), ymm);
        }
    }

    fn shuffle(&mut self, a: Value, from: &[u32; LANES], d: Reg) {
        debug_assert!(
            matches!(self.kind(d), Kind::Vector(Width::Bits32)),
            "the result of a shuffle is a vector"
        );
        // The results are written when all sources have been read: the destination may be one of them.
        let results: [Ymm; PARTS] = std::array::from_fn(|part| Ymm(part as u8));
        self.permute(from, &results, |emitter, part| {
            Source::Mem(emitter.part_of_all(a, part))
        });
        let home = self.home(d).plus(-self.before_last(4));
        for (part, result) in (0..).zip(results) {
            self.asm.store_vector(home.plus(32 * part), result);
        }
    }

    /// Sets `results` to the elements of the lanes `from`. `source` returns a part of all elements; it may use the last
    /// of `SOURCES`.
    pub(super) fn permute(
        &mut self,
        from: &[u32; LANES],
        results: &[Ymm],
        mut source: impl FnMut(&mut Self, usize) -> Source,
    ) {
        let [index, other, _] = SOURCES;
        let mut loaded = None;
        for (part, result) in results.iter().copied().enumerate() {
            let sources = &from[8 * part..8 * part + 8];
            let inside: [u32; 8] = std::array::from_fn(|i| sources[i] % 8);
            let moves = inside.iter().zip(0..).any(|(at, i)| *at != i);
            if moves && loaded != Some(inside) {
                let indexes = self.constant_vector(inside);
                self.asm.load(index, Source::Mem(indexes));
                loaded = Some(inside);
            }
            let mut first = true;
            for of in 0..PARTS as u32 {
                let lanes = (0..8).filter(|i| sources[*i] / 8 == of);
                let lanes = lanes.fold(0, |lanes, i| lanes | 1u32 << i);
                if lanes == 0 {
                    continue;
                }
                let place = source(self, of as usize);
                let to = if first { result } else { other };
                if moves {
                    let code = Code::VEX_Vpermd_ymm_ymm_ymmm256;
                    self.asm.vector(code, to, index, place);
                } else {
                    self.asm.load(to, place);
                }
                if !first {
                    let code = Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8;
                    self.asm.vector_imm(code, result, result, Source::Ymm(other), lanes);
                }
                first = false;
            }
        }
    }

    /// Sets `d` to a vote over the lanes in `AX`.
    fn vote(&mut self, mode: VoteMode, d: Reg) {
        if mode == VoteMode::Ballot {
            self.asm.broadcast_gpr(Width::Bits32, TEMP, Gpr::AX);
            return self.store_in_all_lanes(d, TEMP);
        }
        self.decide_vote(mode);
        self.store_mask(d);
    }

    /// Sets all bits of `AX` if a vote over the lanes in it is true, else clears them. For a ballot, leaves them as
    /// they are.
    pub(super) fn decide_vote(&mut self, mode: VoteMode) {
        let narrow = Width::Bits32;
        let when = match mode {
            VoteMode::Ballot => return,
            VoteMode::All => {
                self.asm.alu(Alu::Cmp, narrow, Gpr::AX, Word::Imm(-1));
                When::Equal
            }
            VoteMode::Any => {
                self.asm.alu(Alu::Test, narrow, Gpr::AX, Word::Gpr(Gpr::AX));
                When::NotEqual
            }
            VoteMode::Uni => {
                // The mask has all or no bits if adding 1 gives 0 or 1.
                self.asm.alu(Alu::Add, narrow, Gpr::AX, Word::Imm(1));
                self.asm.alu(Alu::Cmp, narrow, Gpr::AX, Word::Imm(1));
                When::BelowOrEqual
            }
        };
        self.asm.all_when(when, Gpr::AX);
    }

    fn reduce(&mut self, a: Value, code: Code, d: Reg) {
        self.reduce_parts(code, |emitter, part| Source::Mem(emitter.part_of_all(a, part)));
        self.store_in_all_lanes(d, TEMP);
    }

    /// Sets all elements of `TEMP` to the reduction of all elements. `source` returns a part of them; it may use the
    /// last of `SOURCES`.
    pub(super) fn reduce_parts(&mut self, code: Code, mut source: impl FnMut(&mut Self, usize) -> Source) {
        let [other, ..] = SOURCES;
        let first = source(self, 0);
        self.asm.load(TEMP, first);
        for part in 1..PARTS {
            let next = source(self, part);
            self.asm.vector(code, TEMP, TEMP, next);
        }
        self.asm.upper_half(other, TEMP);
        self.asm.vector(code, TEMP, TEMP, Source::Ymm(other));
        // Swaps the pairs of a half, then the elements of a pair.
        for order in [0b01_00_11_10, 0b10_11_00_01] {
            let shuffle = Code::VEX_Vpshufd_ymm_ymmm256_imm8;
            self.asm.unary_imm(shuffle, other, Source::Ymm(TEMP), order);
            self.asm.vector(code, TEMP, TEMP, Source::Ymm(other));
        }
        self.asm
            .widen(Code::VEX_Vpbroadcastd_ymm_xmmm32, TEMP, Source::Ymm(TEMP));
    }
}
