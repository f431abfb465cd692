//! Formulas: results of several vector instructions, written as functions of their operands.
//!
//! A formula is evaluated once without output, to count the vector registers that it needs, and then once for each part
//! of its result.

use super::assembler::{Alu, Gpr, Source, Width, Word, Ymm};
use super::emitter::Emitter;
use super::registers::{Kind, SOURCES, TEMP};
use super::value::Value;
use super::vector::lane_bits;
use iced_x86::Code;
use ptx::ir::{Inst, Reg};

/// A value inside a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// The result of an instruction of the formula.
    Result(usize),
    /// A source, or a constant.
    Place(Source),
}

/// An instruction of a formula. A source that is in memory, but must be in a register, is loaded first.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Two sources.
    Two(Code),
    /// Two sources and a number.
    TwoImm(Code, u32),
    /// One source.
    One(Code),
    /// One source and a number.
    OneImm(Code, u32),
    /// `c + a b` or `c - a b`, rounded once.
    Fused(Code),
    /// `b` where the highest bit of `c` is set, else `a`.
    Blend(Width),
    /// Widens the lower half of a register, or 16 bytes in memory.
    Widen(Code),
    /// Narrows a register to the lower half of another.
    Narrow(Code),
    /// Narrows a register to the lower half of another, with a number.
    NarrowBy(Code, u32),
    /// The upper half of a register as the lower half of another.
    Upper,
    /// The lower half of `a`, and the lower half of `b` above it.
    Join,
    /// The number in a general register, in each element.
    Broadcast(Width, Gpr),
}

struct Line {
    action: Action,
    sources: [Option<Term>; 3],
    /// The number of the last line that reads the result; `usize::MAX` if it is a result of the formula, and 0 if
    /// nothing reads it.
    last: usize,
    /// The register of the result, once the line has been written.
    place: Ymm,
}

/// Room for the lines of most formulas, which is less than 1 KB: larger pieces of memory take longer to allocate.
const USUAL_LINES: usize = 12;

impl Line {
    /// Returns the numbers of the lines whose results the line reads.
    fn results(&self) -> impl Iterator<Item = usize> + use<> {
        self.sources.into_iter().filter_map(|source| match source {
            Some(Term::Result(number)) => Some(number),
            _ => None,
        })
    }
}

/// A formula for one part of a result.
pub(super) struct Formula<'e, 'a> {
    pub(super) emitter: &'e mut Emitter<'a>,
    lines: Vec<Line>,
    /// True in the dry run, which writes nothing. Sources count as memory.
    dry: bool,
    /// By number of the operand, true if it is in use.
    used: [bool; 3],
}

/// Makes the instructions of a formula for one part, and returns its results.
pub(super) type Body<const N: usize> = Box<dyn Fn(&mut Formula<'_, '_>, usize) -> [Term; N]>;

/// Stands for a source in the dry run, which only needs some place in memory.
const ELSEWHERE: Source = Source::Mem(super::assembler::Mem {
    base: Gpr::SP,
    index: None,
    offset: 0,
});

impl<'e, 'a> Formula<'e, 'a> {
    fn new(emitter: &'e mut Emitter<'a>, dry: bool) -> Self {
        Formula {
            emitter,
            lines: Vec::with_capacity(USUAL_LINES),
            dry,
            used: [false; 3],
        }
    }

    fn line(&mut self, action: Action, sources: [Option<Term>; 3]) -> Term {
        self.lines.push(Line {
            action,
            sources,
            last: 0,
            place: Ymm(0),
        });
        Term::Result(self.lines.len() - 1)
    }

    /// Returns a part of an operand. `at` is different for each part of each operand that is in use at one time, and
    /// less than 3.
    pub(super) fn source(&mut self, value: Value, part: usize, at: usize) -> Term {
        self.used[at] = true;
        if self.dry {
            return Term::Place(ELSEWHERE);
        }
        Term::Place(self.emitter.source(value, part, at))
    }

    /// Returns a part of 64 bits, widened from half of a part of a 32-bit operand.
    pub(super) fn widened(&mut self, code: Code, value: Value, part: usize, at: usize) -> Term {
        let whole = self.source(value, part / 2, at);
        self.widened_half(code, whole, part % 2)
    }

    /// Widens the lower (0) or upper (1) half of a value.
    pub(super) fn widened_half(&mut self, code: Code, whole: Term, half: usize) -> Term {
        let source = match whole {
            Term::Place(Source::Mem(mem)) => Term::Place(Source::Mem(mem.plus(16 * half as i32))),
            whole if half == 0 => whole,
            whole => self.line(Action::Upper, [Some(whole), None, None]),
        };
        self.line(Action::Widen(code), [Some(source), None, None])
    }

    /// Narrows two values and joins the halves.
    pub(super) fn narrowed(&mut self, code: Code, low: Term, high: Term) -> Term {
        let low = self.line(Action::Narrow(code), [Some(low), None, None]);
        let high = self.line(Action::Narrow(code), [Some(high), None, None]);
        self.line(Action::Join, [Some(low), Some(high), None])
    }

    /// Narrows a value to the lower half of a register, by an instruction with a number.
    pub(super) fn narrow_by(&mut self, code: Code, a: Term, number: u32) -> Term {
        self.line(Action::NarrowBy(code, number), [Some(a), None, None])
    }

    /// Narrows two values by an instruction with a number, and joins the halves.
    pub(super) fn narrowed_by(&mut self, code: Code, low: Term, high: Term, number: u32) -> Term {
        let [low, high] = [low, high].map(|a| self.narrow_by(code, a, number));
        self.line(Action::Join, [Some(low), Some(high), None])
    }

    pub(super) fn two(&mut self, code: Code, a: Term, b: Term) -> Term {
        self.line(Action::Two(code), [Some(a), Some(b), None])
    }

    pub(super) fn two_imm(&mut self, code: Code, a: Term, b: Term, number: u32) -> Term {
        self.line(Action::TwoImm(code, number), [Some(a), Some(b), None])
    }

    pub(super) fn one(&mut self, code: Code, a: Term) -> Term {
        self.line(Action::One(code), [Some(a), None, None])
    }

    pub(super) fn one_imm(&mut self, code: Code, a: Term, number: u32) -> Term {
        self.line(Action::OneImm(code, number), [Some(a), None, None])
    }

    /// Returns `c + a b` or `c - a b`, rounded once. `code` must be an instruction of the form 231.
    pub(super) fn fused(&mut self, code: Code, a: Term, b: Term, c: Term) -> Term {
        self.line(Action::Fused(code), [Some(a), Some(b), Some(c)])
    }

    /// Returns `yes` where the highest bit of the mask is set, else `no`.
    pub(super) fn choose(&mut self, width: Width, mask: Term, yes: Term, no: Term) -> Term {
        self.line(Action::Blend(width), [Some(no), Some(yes), Some(mask)])
    }

    /// Returns a number in each element.
    pub(super) fn number(&mut self, width: Width, bits: u64) -> Term {
        Term::Place(Source::Mem(self.emitter.same_constant(width, bits)))
    }

    /// Returns a vector of eight words.
    pub(super) fn words(&mut self, words: [u32; 8]) -> Term {
        Term::Place(Source::Mem(self.emitter.constant_vector(words)))
    }

    /// Returns all ones in the elements of a part whose lanes are in a mask, else zero.
    pub(super) fn lanes_of(&mut self, mask: Gpr, part: usize, width: Width) -> Term {
        let all = self.line(Action::Broadcast(width, mask), [None; 3]);
        let bits = self.words(lane_bits(part, width));
        let own = self.two(Code::VEX_Vpand_ymm_ymm_ymmm256, all, bits);
        let equal = match width {
            Width::Bits32 => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256,
        };
        self.two(equal, own, bits)
    }

    /// Writes the instructions, with the registers `pool` for intermediate values and `to` for the results. Returns the
    /// number of registers that are needed.
    fn write<const N: usize>(mut self, results: [Term; N], to: [Ymm; N], pool: &[Ymm]) -> usize {
        for at in 0..self.lines.len() {
            for number in self.lines[at].results() {
                self.lines[number].last = at;
            }
        }
        for result in results {
            if let Term::Result(number) = result {
                self.lines[number].last = usize::MAX;
            }
        }
        let mut homes = Homes { pool, busy: 0, most: 0 };
        for at in 0..self.lines.len() {
            let (before, [line, behind @ ..]) = self.lines.split_at_mut(at) else {
                break;
            };
            let source = |term: Option<Term>| match term {
                Some(Term::Result(number)) => Some(Source::Ymm(before[number].place)),
                Some(Term::Place(source)) => Some(source),
                None => None,
            };
            let [a, b, c] = line.sources.map(source);
            // Sources that must be in a register, but are not: two at most.
            let mut loaded = [None; 2];
            let mut in_register = |homes: &mut Homes<'_>, source: Source| match source {
                Source::Ymm(ymm) => ymm,
                Source::Mem(_) => {
                    let ymm = homes.take();
                    let free = usize::from(loaded[0].is_some());
                    loaded[free] = Some((ymm, source));
                    ymm
                }
            };
            let first = match line.action {
                Action::One(_) | Action::Widen(_) | Action::Broadcast(..) => None,
                Action::OneImm(code, _) if takes_memory(code) => None,
                Action::Narrow(_) => None,
                _ => a.map(|a| in_register(&mut homes, a)),
            };
            let second = match line.action {
                Action::Join => b.map(|b| in_register(&mut homes, b)),
                _ => None,
            };
            let mask = match line.action {
                Action::Blend(_) => c.map(|c| in_register(&mut homes, c)),
                _ => None,
            };
            let ends = |number: usize| before[number].last == at;
            let free = |homes: &mut Homes<'_>| {
                for number in line.results().filter(|number| ends(*number)) {
                    homes.free(before[number].place);
                }
                for (ymm, _) in loaded.into_iter().flatten() {
                    homes.free(ymm);
                }
            };
            let is_result = results.iter().position(|result| *result == Term::Result(at));
            let direct = is_result.map(|number| to[number]).filter(|to| {
                let reads = |term: Option<Term>| term == Some(Term::Place(Source::Ymm(*to)));
                // The register's old value may still be read: by later lines, or by this line if it writes before it
                // reads.
                let factor = matches!(line.action, Action::Fused(_)) && line.sources[..2].iter().copied().any(reads);
                !factor && !behind.iter().any(|line| line.sources.into_iter().any(reads))
            });
            // The sum of a fused instruction replaces its addend.
            let addend = match (line.action, line.sources[2]) {
                (Action::Fused(_), Some(Term::Result(number)))
                    if ends(number) && line.sources[..2].iter().all(|s| *s != Some(Term::Result(number))) =>
                {
                    Some(before[number].place)
                }
                _ => None,
            };
            let d = match (direct, line.action, addend) {
                (Some(to), ..) => {
                    free(&mut homes);
                    to
                }
                (None, Action::Fused(_), Some(addend)) => {
                    free(&mut homes);
                    homes.keep(addend);
                    addend
                }
                (None, Action::Fused(_), None) => {
                    let d = homes.take();
                    free(&mut homes);
                    homes.keep(d);
                    d
                }
                _ => {
                    free(&mut homes);
                    homes.take()
                }
            };
            line.place = d;
            if line.last == 0 && is_result.is_none() {
                homes.free(d);
            }
            if self.dry {
                continue;
            }
            let asm = &mut self.emitter.asm;
            for (ymm, source) in loaded.into_iter().flatten() {
                asm.load(ymm, source);
            }
            match (line.action, a, b, c) {
                (Action::Two(code), _, Some(b), _) => {
                    if let Some(a) = first {
                        asm.vector(code, d, a, b);
                    }
                }
                (Action::TwoImm(code, number), _, Some(b), _) => {
                    if let Some(a) = first {
                        asm.vector_imm(code, d, a, b, number);
                    }
                }
                (Action::One(code), Some(a), ..) => asm.unary(code, d, a),
                (Action::OneImm(code, number), Some(a), ..) => {
                    let a = first.map_or(a, Source::Ymm);
                    asm.unary_imm(code, d, a, number);
                }
                (Action::Fused(code), _, Some(b), Some(c)) => {
                    if let Some(a) = first {
                        asm.load(d, c);
                        asm.vector(code, d, a, b);
                    }
                }
                (Action::Blend(width), _, Some(b), _) => {
                    if let (Some(a), Some(mask)) = (first, mask) {
                        asm.blend_by(width, d, a, b, mask);
                    }
                }
                (Action::Widen(code), Some(a), ..) => asm.widen(code, d, a),
                (Action::Narrow(code), Some(a), ..) => asm.narrow(code, d, a),
                (Action::NarrowBy(code, number), ..) => {
                    if let Some(a) = first {
                        asm.narrow_by(code, d, a, number);
                    }
                }
                (Action::Upper, ..) => {
                    if let Some(a) = first {
                        asm.upper_half(d, a);
                    }
                }
                (Action::Join, ..) => {
                    if let (Some(a), Some(b)) = (first, second) {
                        asm.join(d, a, b);
                    }
                }
                (Action::Broadcast(width, gpr), ..) => asm.broadcast_gpr(width, d, gpr),
                _ => {}
            }
        }
        if !self.dry {
            for (result, to) in results.into_iter().zip(to) {
                match result {
                    Term::Result(number) => self.emitter.asm.load(to, Source::Ymm(self.lines[number].place)),
                    Term::Place(source) => self.emitter.asm.load(to, source),
                }
            }
        }
        homes.most
    }
}

/// Returns true if an instruction with one source and a number can read its source from memory.
fn takes_memory(code: Code) -> bool {
    matches!(
        code,
        Code::VEX_Vpshufd_ymm_ymmm256_imm8
            | Code::VEX_Vpermq_ymm_ymmm256_imm8
            | Code::VEX_Vroundps_ymm_ymmm256_imm8
            | Code::VEX_Vroundpd_ymm_ymmm256_imm8
    )
}

/// The registers for intermediate values.
struct Homes<'p> {
    /// Empty in a dry run, which has any number of registers.
    pool: &'p [Ymm],
    /// A bit for each register that is in use. Registers without a bit are not recorded: a kernel that needs them is
    /// not compiled.
    busy: u64,
    most: usize,
}

impl Homes<'_> {
    fn take(&mut self) -> Ymm {
        let free = self.busy.trailing_ones() as usize;
        self.most = self.most.max(free + 1);
        // The numbers beyond the machine's registers occur in a dry run, and if there are too few registers, in which
        // case the kernel is not compiled.
        let ymm = self.pool.get(free).copied().unwrap_or(Ymm(64 + free as u8));
        self.keep(ymm);
        ymm
    }

    /// Returns the bit of a register; 0 if it is not one for intermediate values.
    fn bit(&self, ymm: Ymm) -> u64 {
        let real = self.pool.iter().position(|y| *y == ymm).map(|at| at as u32);
        let at = real.or_else(|| ymm.0.checked_sub(64).map(u32::from));
        at.and_then(|at| 1u64.checked_shl(at)).unwrap_or(0)
    }

    fn free(&mut self, ymm: Ymm) {
        self.busy &= !self.bit(ymm);
    }

    fn keep(&mut self, ymm: Ymm) {
        self.busy |= self.bit(ymm);
    }
}

impl Emitter<'_> {
    /// Adds an instruction as a formula. Returns false, and adds nothing, if there is no formula for it, or if its
    /// result is kept in another way.
    pub(super) fn formula(&mut self, inst: &Inst, d: Reg) -> bool {
        let recipe = self
            .float(inst, d)
            .or_else(|| self.integers(inst))
            .or_else(|| self.pairs(inst))
            .or_else(|| self.approximate(inst, d))
            .or_else(|| self.conversion(inst, d));
        recipe.is_some_and(|recipe| self.compute(d, recipe.width, &recipe.values, &recipe.body))
    }

    /// Adds a formula whose result is a register. If the register is kept in another way, returns false and adds
    /// nothing.
    pub(super) fn compute(&mut self, d: Reg, width: Width, values: &[Value], body: &Body<1>) -> bool {
        let Some(parts) = self.parts_of(d, width, values) else {
            return false;
        };
        let pool = self.prepare_formula(Some(d), true, values, body);
        let ymms = self.define_vector(d);
        for (part, ymm) in ymms.into_iter().enumerate().take(parts) {
            self.write_part(part, [ymm], &pool, body);
        }
        self.state.reserved = 0;
        true
    }

    /// Returns the number of parts of a result in a register; `None` if it is kept in another way.
    pub(super) fn parts_of(&self, d: Reg, width: Width, values: &[Value]) -> Option<usize> {
        match self.kind(d) {
            Kind::Vector(of) if of == width => Some(self.parts(width)),
            Kind::Scalar(of, 0) if of == width && values.iter().all(Value::is_uniform) => Some(1),
            _ => None,
        }
    }

    /// Loads the sources of a formula, and returns registers for its intermediate values, which are reserved. `temp` is
    /// true if [`TEMP`] may be among them.
    pub(super) fn prepare_formula<const N: usize>(
        &mut self,
        d: Option<Reg>,
        temp: bool,
        values: &[Value],
        body: &Body<N>,
    ) -> Vec<Ymm> {
        let mut formula = Formula::new(self, true);
        let results = body(&mut formula, 0);
        let used = formula.used;
        let mut needed = formula.write(results, [Ymm(255); N], &[]);
        let replaced = d.filter(|d| values.iter().any(|value| value.is_register(*d)));
        // If the result's register is still read, the result is computed in another one.
        needed += usize::from(replaced.is_some());
        let mut pool: Vec<Ymm> = temp.then_some(TEMP).into_iter().collect();
        pool.extend((0..3).filter(|at| !used[*at]).map(|at| SOURCES[at]));
        pool.extend(self.reserve(needed.saturating_sub(pool.len())));
        for value in values {
            self.prepare(*value);
        }
        if let Some(d) = replaced {
            self.load_before_write(d);
        }
        pool
    }

    /// Writes one part of a formula.
    pub(super) fn write_part<const N: usize>(&mut self, part: usize, to: [Ymm; N], pool: &[Ymm], body: &Body<N>) {
        let mut formula = Formula::new(self, false);
        let results = body(&mut formula, part);
        let needed = formula.write(results, to, pool);
        if needed > pool.len() {
            self.asm.run_short();
        }
    }

    /// Sets the mask `d` to the highest bits of the results of a formula on elements of this width.
    pub(super) fn compute_mask(&mut self, d: Reg, width: Width, values: &[Value], body: &Body<1>) {
        let pool = self.prepare_formula(None, false, values, body);
        let uniform = values.iter().all(Value::is_uniform);
        self.collect(width, uniform, |emitter, part| {
            emitter.write_part(part, [TEMP], &pool, body);
        });
        self.state.reserved = 0;
        self.set_mask(d, Gpr::AX);
    }

    /// Returns a general register with the mask of a predicate.
    pub(super) fn mask_in_register(&mut self, predicate: Reg, temp: Gpr) -> Gpr {
        match self.word(predicate, temp) {
            Word::Gpr(gpr) => gpr,
            Word::Mem(_) | Word::Imm(_) => {
                self.copy_mask(predicate, temp);
                temp
            }
        }
    }

    /// Negates the mask in a register.
    pub(super) fn negate_mask(&mut self, gpr: Gpr) {
        self.asm.alu(Alu::Xor, Width::Bits32, gpr, Word::Imm(self.full()));
    }
}
