//! Shapes of registers: how the values of a group of neighbouring lanes relate to each other.
//!
//! The analysis starts from the most precise facts, as if registers had no values, and weakens them until no
//! instruction changes anything. It also tracks facts that make shapes more precise: constants, upper bounds, and the
//! powers of two that divide the first lane's value.

use super::class::{Class, Scheduled};
use super::defined::{self, Use};
use super::regions::Region;
use super::set::Set;
use super::source::SourceFunction;
use super::steps::{Layout, Step};
use crate::memory::ALLOCATION_ALIGN;
use ptx::ir::{Address, Cvt, Formal, Inst, Op, Operand, Part, Reg, RegClass, Space, Special, Type};
use std::collections::HashSet;

/// A group: neighbouring lanes along x, which compiled code runs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Number of lanes, a power of two of at most 32. The group's first `%tid.x` is a multiple of it.
    pub(crate) lanes: u32,
    /// True if `%ntid.x` is a multiple of `lanes`, so that no group is partial.
    pub(crate) whole: bool,
}

/// The relation between the values of a register in the lanes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The value is the same in all lanes. Stored as one scalar.
    Uniform,
    /// Each lane's value is this much larger than the one before, wrapping at the register's width. Stored as one
    /// scalar, the first lane's value. Never 0. For 32-bit registers the step is a signed number of 32 bits.
    Affine(i64),
    /// Nothing is known. Stored as one value per lane.
    Any,
}

/// A condition that must hold for a group when it runs a step. If it does not hold, the step's result might not be
/// affine, so the group leaves the compiled code before the step, or begins again in code without assumptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assumption {
    /// The step.
    pub(crate) step: usize,
    /// The index of the affine source operand.
    pub(crate) source: usize,
    /// The condition.
    pub(crate) kind: Condition,
}

/// The condition of an [`Assumption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The source, a number of 32 bits, does not wrap as an unsigned number from the first lane to the last.
    Unsigned,
    /// The source, a number of 32 bits, does not wrap as a signed number from the first lane to the last.
    Signed,
    /// In all lanes, the result of the minimum or maximum is this source.
    Chosen,
}

/// The choices that shapes depend on, in addition to the group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices<'c> {
    /// Regions that a group runs under a mask when its lanes diverge at their branches. At other branches, divergent
    /// lanes leave the compiled code.
    pub(crate) masked: &'c [&'c Region],
    /// Steps, in any order, whose results must not depend on an assumption: a result that would has the shape `Any`.
    pub(crate) denied: &'c [usize],
}

/// The shapes of a function's registers for a group.
pub(crate) struct Shapes {
    group: Group,
    values: Vec<Value>,
    /// The assumptions that the shapes depend on, by step.
    pub(crate) assumptions: Vec<Assumption>,
    /// The registers that some lanes may need while others write them.
    kept: Set,
}

/// The known facts about the values of a register or operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    /// The step from lane to lane; `None` for [`Shape::Any`].
    step: Option<i64>,
    /// The first lane's value is a multiple of two to this power; at most 63.
    align: u32,
    /// No lane has a larger value. `u64::MAX` if nothing is known.
    most: u64,
    /// The constant that is the value of all lanes; `None` if no constant is known.
    constant: Option<u64>,
}

const ANY: Value = Value {
    step: None,
    align: 0,
    most: u64::MAX,
    constant: None,
};
const UNIFORM: Value = Value { step: Some(0), ..ANY };

impl Value {
    fn constant(bits: u64) -> Value {
        Value {
            step: Some(0),
            align: bits.trailing_zeros().min(63),
            most: bits,
            constant: Some(bits),
        }
    }

    fn affine(step: i64, align: u32, most: u64) -> Value {
        Value {
            step: Some(step),
            align,
            most,
            constant: None,
        }
    }

    fn is_uniform(&self) -> bool {
        self.step == Some(0)
    }

    fn is_any(&self) -> bool {
        self.step.is_none()
    }

    /// Returns the facts that hold for both values.
    fn or(self, other: Value) -> Value {
        if self.step != other.step {
            return ANY;
        }
        Value {
            step: self.step,
            align: self.align.min(other.align),
            // Do not take the larger limit: it could grow in every round of a loop.
            most: if self.most == other.most { self.most } else { u64::MAX },
            constant: self.constant.filter(|_| self.constant == other.constant),
        }
    }

    /// Returns the power of two, as an exponent, that divides the value of every lane.
    fn align_of_all(&self) -> u32 {
        match self.step {
            Some(0) => self.align,
            Some(step) => self.align.min(step.trailing_zeros()),
            None => 0,
        }
    }
}

impl Shapes {
    /// Finds the shapes. `uses` must be of the same layout.
    pub(super) fn of(
        source: &SourceFunction<'_>,
        layout: &Layout<'_>,
        uses: &[Use],
        group: Group,
        choices: Choices<'_>,
    ) -> Self {
        let body = source.body;
        let mut finder = Finder {
            source,
            group,
            denied: choices.denied.iter().copied().collect(),
            values: vec![None; body.registers.len()],
            kept: Set::empty(body.registers.len()),
        };
        for (value, used) in finder.values.iter_mut().zip(uses) {
            if *used == Use::PerhapsUndefined {
                // Such registers are zero when a frame begins.
                *value = Some(Value::constant(0));
            }
        }
        for formal in &body.params {
            if let Formal::Reg(reg) = formal {
                finder.values[reg.0 as usize] = Some(ANY);
            }
        }
        finder.run(layout, choices.masked);
        let mut assumptions = Vec::new();
        for (step, inst) in plain_steps(layout) {
            let scalar = |reg: &Reg| finder.values[reg.0 as usize].is_some_and(|value| !value.is_any());
            if let Some((_, Some((source, kind)))) = finder.result(step, inst)
                && inst.dsts.iter().flatten().all(scalar)
            {
                assumptions.push(Assumption { step, source, kind });
            }
        }
        assumptions.sort_unstable_by_key(|a| a.step);
        Shapes {
            group,
            values: finder.values.into_iter().map(|v| v.unwrap_or(ANY)).collect(),
            assumptions,
            kept: finder.kept,
        }
    }

    /// Returns true if some lanes may need a register while others write it, so that code for some lanes must keep the
    /// values of the others.
    pub(crate) fn is_kept(&self, reg: Reg) -> bool {
        self.kept.has(reg)
    }

    /// Returns the group that the shapes are for.
    pub(crate) fn group(&self) -> Group {
        self.group
    }

    /// Returns the shape of a register.
    pub(crate) fn of_register(&self, reg: Reg) -> Shape {
        shape(self.values[reg.0 as usize])
    }

    /// Returns the shape of a source operand.
    pub(crate) fn of_operand(&self, operand: &Operand) -> Shape {
        match operand {
            Operand::Reg(reg) | Operand::NotReg(reg) => self.of_register(*reg),
            Operand::Special(special) => shape(of_special(*special, self.group)),
            Operand::Imm(_) | Operand::Address(_) => Shape::Uniform,
        }
    }

    /// Returns the value of a register that is always the same constant.
    pub(crate) fn constant(&self, reg: Reg) -> Option<u64> {
        self.values[reg.0 as usize].constant
    }

    /// Returns the power of two, as an exponent, that divides the value of the first lane.
    pub(crate) fn alignment(&self, reg: Reg) -> u32 {
        self.values[reg.0 as usize].align
    }

    /// Returns true if the known facts about a register are the same in `other`.
    pub(crate) fn is_same(&self, other: &Shapes, reg: Reg) -> bool {
        self.values[reg.0 as usize] == other.values[reg.0 as usize]
    }

    /// Returns the assumption of a step.
    pub(crate) fn assumption(&self, step: usize) -> Option<Assumption> {
        let at = self.assumptions.binary_search_by_key(&step, |a| a.step).ok()?;
        Some(self.assumptions[at])
    }
}

fn shape(value: Value) -> Shape {
    match value.step {
        None => Shape::Any,
        Some(0) => Shape::Uniform,
        Some(step) => Shape::Affine(step),
    }
}

/// Returns the reachable instructions that are not branches, with their steps.
fn plain_steps<'l, 'b>(layout: &'l Layout<'b>) -> impl Iterator<Item = (usize, &'b Inst)> + 'l {
    let steps = layout.order.iter().flat_map(|block| layout.steps_of(*block));
    steps.filter_map(|number| match layout.steps[number] {
        Step::Plain(inst) => Some((number, inst)),
        Step::Branch { .. } => None,
    })
}

fn of_special(special: Special, group: Group) -> Value {
    const MOST_THREADS: u64 = 1024;
    /// The warps of a multiprocessor, which may be those of several blocks.
    const MOST_WARPS: u64 = 64;
    let lanes = group.lanes.trailing_zeros();
    match special {
        Special::Tid(0) => Value::affine(i64::from(group.lanes > 1), lanes, MOST_THREADS - 1),
        Special::Laneid => Value::affine(i64::from(group.lanes > 1), lanes, 31),
        Special::Tid(_) => Value::affine(0, 0, MOST_THREADS - 1),
        Special::Ntid(0) if group.whole => Value::affine(0, lanes, MOST_THREADS),
        Special::Ntid(_) => Value::affine(0, 0, MOST_THREADS),
        Special::Warpid => Value::affine(0, 0, 31),
        Special::Nwarpid => Value::affine(0, 0, MOST_WARPS),
        Special::Ctaid(_) | Special::Nctaid(_) => Value::affine(0, 0, i32::MAX as u64),
        Special::LanemaskEq | Special::LanemaskLt | Special::LanemaskLe | Special::LanemaskGt | Special::LanemaskGe => {
            ANY
        }
        _ => UNIFORM,
    }
}

/// The analysis while it runs.
struct Finder<'a, 'b> {
    source: &'a SourceFunction<'b>,
    group: Group,
    denied: HashSet<usize>,
    /// The values of registers; `None` for those that no instruction has written yet.
    values: Vec<Option<Value>>,
    /// [`Shapes::kept`]
    kept: Set,
}

/// The instructions that read each register, by their places in a list.
struct Readers {
    /// For each register, the end of its part of `places`.
    ends: Vec<u32>,
    places: Vec<u32>,
}

impl Readers {
    fn of(steps: &[(usize, &Inst)], registers: usize) -> Self {
        let mut ends = vec![0_u32; registers];
        let each = |f: &mut dyn FnMut(Reg, u32)| {
            for ((_, inst), place) in steps.iter().zip(0..) {
                let sources = inst.srcs.iter().filter_map(|operand| match operand {
                    Operand::Reg(reg) | Operand::NotReg(reg) => Some(*reg),
                    _ => None,
                });
                sources
                    .chain(inst.guard.map(|(reg, _)| reg))
                    .for_each(|reg| f(reg, place));
            }
        };
        each(&mut |reg, _| ends[reg.0 as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut places = vec![0; sum as usize];
        each(&mut |reg, place| {
            let end = &mut ends[reg.0 as usize];
            places[*end as usize] = place;
            *end += 1;
        });
        Readers { ends, places }
    }

    fn of_register(&self, reg: Reg) -> &[u32] {
        let at = reg.0 as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[start as usize..self.ends[at] as usize]
    }

    /// Adds to `due` the places of all instructions that read a register.
    fn mark(&self, reg: Reg, due: &mut Set) {
        for place in self.of_register(reg) {
            due.insert(Reg(*place));
        }
    }
}

/// A result, and the source operand and condition on which it depends.
type Found = (Value, Option<(usize, Condition)>);

impl Finder<'_, '_> {
    /// Runs the analysis to its end, in rounds. Each round takes the instructions in order, except for those whose
    /// sources have not changed since their last turn. This matters for kernels that pass values from register to
    /// register, where a round may change only one value.
    fn run(&mut self, layout: &Layout<'_>, regions: &[&Region]) {
        let steps: Vec<(usize, &Inst)> = plain_steps(layout).collect();
        let readers = Readers::of(&steps, self.values.len());
        let mut due = Set::all(steps.len());
        let mut mixed = vec![false; regions.len()];
        let mut changed = true;
        while changed {
            changed = false;
            let mut next = 0;
            while let Some(place) = due.first_from(next).filter(|place| *place < steps.len()) {
                next = place + 1;
                due.remove(Reg(place as u32));
                let (step, inst) = steps[place];
                let Some((value, _)) = self.result(step, inst) else {
                    continue;
                };
                defined::writes_of(inst, |reg| {
                    if self.write(reg, value) {
                        changed = true;
                        readers.mark(reg, &mut due);
                    }
                });
            }
            for (region, mixed) in regions.iter().zip(&mut mixed) {
                let uniform = self.values[region.predicate.0 as usize].is_none_or(|v| v.is_uniform());
                if uniform || std::mem::replace(mixed, true) {
                    continue;
                }
                changed = true;
                for reg in &region.kept {
                    self.kept.insert(*reg);
                    if self.write(*reg, ANY) {
                        readers.mark(*reg, &mut due);
                    }
                }
            }
        }
    }

    fn write(&mut self, reg: Reg, value: Value) -> bool {
        let at = &mut self.values[reg.0 as usize];
        let scalar = value.is_uniform() || matches!(self.source.class(reg), RegClass::B32 | RegClass::B64);
        let value = if scalar { value } else { ANY };
        let new = at.map_or(value, |old| old.or(value));
        at.replace(new) != Some(new)
    }

    /// Returns the value of an instruction's results; `None` if an operand has no value yet.
    fn result(&self, step: usize, inst: &Inst) -> Option<Found> {
        if let Some((reg, _)) = inst.guard
            && !self.values[reg.0 as usize]?.is_uniform()
        {
            return Some((ANY, None));
        }
        let plain = |value| Some((value, None));
        match Class::of_inst(inst) {
            Class::Computed => {
                let sources = inst.srcs.iter().map(|operand| self.operand(operand));
                let sources: Vec<Value> = sources.collect::<Option<_>>()?;
                let (value, condition) = self.computed(inst, &sources);
                if condition.is_some() && self.denied.contains(&step) {
                    return plain(ANY);
                }
                Some((value, condition))
            }
            // Local memory differs from thread to thread, even at the same address.
            Class::Load => {
                let Op::Ld(m) = &inst.op else { return plain(ANY) };
                let shared = matches!(m.space, Space::Global | Space::Shared | Space::Const | Space::Param);
                let same = shared && self.operand(inst.srcs.first()?)?.is_uniform();
                plain(if same { UNIFORM } else { ANY })
            }
            Class::Scheduled(Scheduled::BlockBarrier) => plain(UNIFORM),
            // Compiled code runs these only if all lanes of the warp have the same mask, so all get the same result.
            Class::Scheduled(Scheduled::Collective) if matches!(inst.op, Op::Vote { .. } | Op::Redux { .. }) => {
                plain(UNIFORM)
            }
            _ if matches!(inst.op, Op::Activemask) => plain(UNIFORM),
            _ => plain(ANY),
        }
    }

    fn operand(&self, operand: &Operand) -> Option<Value> {
        Some(match operand {
            Operand::Reg(reg) => self.values[reg.0 as usize]?,
            Operand::NotReg(reg) => match self.values[reg.0 as usize]? {
                value if value.is_uniform() => UNIFORM,
                _ => ANY,
            },
            Operand::Imm(bits) => Value::constant(*bits),
            Operand::Special(special) => of_special(*special, self.group),
            Operand::Address(Address::Variable { var, offset }) => {
                // A variable in device memory is aligned as its allocation is, even if it declares more.
                let align = self.source.module.variables[var.0 as usize].align.min(ALLOCATION_ALIGN);
                let align = align.trailing_zeros().min(offset.trailing_zeros());
                Value::affine(0, align, u64::MAX)
            }
            Operand::Address(_) => UNIFORM,
        })
    }

    /// Returns true if the source and destination registers have the width of this type. Returns false for types other
    /// than integers of 32 or 64 bits.
    fn fits(&self, inst: &Inst, ty: Type) -> bool {
        let class = match ty {
            Type::B32 | Type::U32 | Type::S32 => RegClass::B32,
            Type::B64 | Type::U64 | Type::S64 => RegClass::B64,
            _ => return false,
        };
        let of_class = |reg: &Reg| self.source.class(*reg) == class;
        inst.dsts.iter().flatten().all(of_class)
            && inst.srcs.iter().all(|operand| match operand {
                Operand::Reg(reg) => of_class(reg),
                Operand::NotReg(_) => false,
                _ => true,
            })
    }

    /// Returns the value of an instruction that computes its result from these sources alone.
    fn computed(&self, inst: &Inst, sources: &[Value]) -> Found {
        let found = self.affine(inst, sources);
        if !found.0.is_any() {
            return found;
        }
        let uniform = sources.iter().all(Value::is_uniform);
        (if uniform { UNIFORM } else { ANY }, None)
    }

    /// Returns the value of an integer instruction; `ANY` if there is no rule for these sources.
    fn affine(&self, inst: &Inst, sources: &[Value]) -> Found {
        let plain = |value: Value| (value, None);
        let fits = |ty: Type| self.fits(inst, ty);
        match (&inst.op, sources) {
            (Op::Mov { ty }, [a]) if fits(*ty) => plain(*a),
            (Op::Cvta { ty, .. }, [a]) if fits(*ty) => plain(Value {
                most: u64::MAX,
                constant: None,
                ..*a
            }),
            (Op::Add { ty, sat: false }, [a, b]) if fits(*ty) => plain(sum(*ty, *a, *b)),
            (Op::Sub { ty, sat: false }, [a, b]) if fits(*ty) => plain(sum(*ty, *a, negative(*ty, *b))),
            (Op::Neg { ty }, [a]) if fits(*ty) => plain(negative(*ty, *a)),
            (Op::Not { ty }, [a]) if fits(*ty) => plain(Value {
                align: 0,
                ..negative(*ty, *a)
            }),
            (Op::Mul { ty, part: Part::Lo }, [a, b]) if fits(*ty) => plain(product(*ty, *a, *b)),
            (
                Op::Mad {
                    ty,
                    part: Part::Lo,
                    sat: false,
                },
                [a, b, c],
            ) if fits(*ty) => plain(sum(*ty, product(*ty, *a, *b), *c)),
            (Op::Mul { ty, part: Part::Wide }, [a, b]) => self.wide_product(inst, *ty, *a, *b),
            (
                Op::Mad {
                    ty,
                    part: Part::Wide,
                    sat: false,
                },
                [a, b, c],
            ) => {
                let (product, condition) = self.wide_product(inst, *ty, *a, *b);
                (sum(Type::U64, product, *c), condition)
            }
            (Op::Shl { ty }, [a, b]) if self.fits_shift(inst, *ty) => plain(match b.constant {
                Some(by) if by < 8 * u64::from(ty.size()) => product(*ty, *a, Value::constant(1 << by)),
                _ => ANY,
            }),
            (Op::Shr { ty }, [a, b]) if self.fits_shift(inst, *ty) => plain(match b.constant {
                Some(by) if by < 8 * u64::from(ty.size()) => self.shifted(*ty, *a, by as u32),
                _ => ANY,
            }),
            (
                Op::Div {
                    ty: ty @ (Type::U32 | Type::U64),
                },
                [a, b],
            ) if fits(*ty) => plain(match b.constant {
                Some(by) if by.is_power_of_two() => self.shifted(*ty, *a, by.trailing_zeros()),
                _ => ANY,
            }),
            (
                Op::Rem {
                    ty: ty @ (Type::U32 | Type::U64),
                },
                [a, b],
            ) if fits(*ty) => plain(match b.constant {
                Some(by) if by.is_power_of_two() => self.masked(*ty, *a, by - 1),
                _ => ANY,
            }),
            (Op::And { ty }, [a, b]) if fits(*ty) => plain(match (a.constant, b.constant) {
                (_, Some(mask)) => self.masked(*ty, *a, mask),
                (Some(mask), _) => self.masked(*ty, *b, mask),
                _ => ANY,
            }),
            (Op::Or { ty }, [a, b]) if fits(*ty) => {
                // If the sources have no common bits, the result is their sum.
                let apart = |high: &Value, low: &Value| low.most >> high.align_of_all() == 0;
                plain(if apart(a, b) || apart(b, a) {
                    sum(*ty, *a, *b)
                } else {
                    ANY
                })
            }
            (Op::Min { ty, relu: false } | Op::Max { ty, relu: false }, [a, b]) if fits(*ty) => {
                match (a.step, b.step) {
                    (Some(step), Some(_)) if step != 0 => {
                        (Value::affine(step, 0, u64::MAX), Some((0, Condition::Chosen)))
                    }
                    (Some(0), Some(step)) if step != 0 => {
                        (Value::affine(step, 0, u64::MAX), Some((1, Condition::Chosen)))
                    }
                    _ => plain(ANY),
                }
            }
            (Op::Cvt(cvt), [a]) => self.converted(inst, cvt, *a),
            (Op::Selp { ty }, [a, b, p]) if p.is_uniform() => {
                let class = inst.dsts.first().copied().flatten().map(|reg| self.source.class(reg));
                let whole =
                    class == Some(RegClass::B64) && ty.size() == 8 || class == Some(RegClass::B32) && ty.size() == 4;
                plain(if whole { a.or(*b) } else { ANY })
            }
            _ => plain(ANY),
        }
    }

    /// Returns true if the registers of a shift have the width of its type; the distance has 32 bits.
    fn fits_shift(&self, inst: &Inst, ty: Type) -> bool {
        let without_distance = Inst {
            srcs: inst.srcs[..1].to_vec(),
            ..inst.clone()
        };
        self.fits(&without_distance, ty)
    }

    /// Returns the difference between the values of the last and the first lane. Returns `None` if it is negative or
    /// unknown, or if it does not fit in the lowest bits of the first lane's value that are known to be zero.
    fn reach(&self, a: &Value) -> Option<u64> {
        let reach = u64::try_from(a.step?)
            .ok()?
            .checked_mul(u64::from(self.group.lanes) - 1)?;
        (reach >> a.align == 0).then_some(reach)
    }

    /// Returns a value shifted right.
    fn shifted(&self, ty: Type, a: Value, by: u32) -> Value {
        // Only as many bits as the type has are known to be zero, and the lanes must have the sign of the first lane.
        let magnitude = 8 * ty.size() - u32::from(ty.is_signed());
        let a = Value {
            align: a.align.min(magnitude),
            ..a
        };
        let (Some(step), Some(reach)) = (a.step, self.reach(&a)) else {
            return ANY;
        };
        // An arithmetic shift keeps the sign.
        let most = if a.most > i32::MAX as u64 {
            u64::MAX
        } else {
            a.most >> by
        };
        let align = a.align.saturating_sub(by);
        if reach >> by == 0 {
            Value::affine(0, align, most)
        } else if a.align >= by && step.trailing_zeros() >= by {
            Value::affine(step >> by, align, most)
        } else {
            ANY
        }
    }

    /// Returns the bits of a value that are in `mask`.
    fn masked(&self, ty: Type, a: Value, mask: u64) -> Value {
        let (Some(step), Some(reach)) = (a.step, self.reach(&a)) else {
            return ANY;
        };
        let width = 8 * ty.size();
        let all = u64::MAX >> (64 - width);
        let low = mask.trailing_ones();
        let high = (!mask & all).trailing_ones();
        let bits = |n: u32| u64::MAX.checked_shl(n).map_or(u64::MAX, |m| !m);
        if mask == bits(low) && reach >> low.min(63) == 0 {
            // The first lane's value keeps its alignment, or becomes zero.
            let align = if a.align >= low { 63 } else { a.align };
            Value::affine(step, align, mask.min(a.most))
        } else if high > 0 && mask == all & !bits(high) && reach >> high.min(63) == 0 {
            Value::affine(0, high.min(63).max(a.align), a.most)
        } else {
            ANY
        }
    }

    /// Returns the product of two 32-bit values in 64 bits, one of which must be a constant; `ANY` otherwise.
    fn wide_product(&self, inst: &Inst, ty: Type, a: Value, b: Value) -> Found {
        let narrow = |operand: &Operand| match operand {
            Operand::Reg(reg) => self.source.class(*reg) == RegClass::B32,
            operand => !matches!(operand, Operand::NotReg(_)),
        };
        let wide = inst
            .dsts
            .iter()
            .flatten()
            .all(|reg| self.source.class(*reg) == RegClass::B64);
        if ty.size() != 4 || !wide || !inst.srcs[..2].iter().all(narrow) {
            return (ANY, None);
        }
        let (at, affine, factor) = match (a.constant, b.constant) {
            (_, Some(factor)) => (0, a, factor),
            (Some(factor), None) => (1, b, factor),
            (None, None) => return (ANY, None),
        };
        let factor = if ty.is_signed() {
            factor as i32 as u64
        } else {
            factor & 0xffff_ffff
        };
        let (wide, condition) = widened(ty, affine);
        (
            product(Type::U64, wide, Value::constant(factor)),
            condition.map(|c| (at, c)),
        )
    }

    /// Returns the result of a conversion between integers of 32 or 64 bits; `ANY` for other conversions.
    fn converted(&self, inst: &Inst, cvt: &Cvt, a: Value) -> Found {
        let class_of = |ty: Type| match ty {
            Type::U32 | Type::S32 | Type::B32 => Some(RegClass::B32),
            Type::U64 | Type::S64 | Type::B64 => Some(RegClass::B64),
            _ => None,
        };
        let (Some(to), Some(from)) = (class_of(cvt.to), class_of(cvt.from)) else {
            return (ANY, None);
        };
        let fits = inst.dsts.iter().flatten().all(|reg| self.source.class(*reg) == to)
            && matches!(inst.srcs.first(), Some(Operand::Reg(reg)) if self.source.class(*reg) == from);
        if cvt.sat || !fits || a.is_any() {
            return (ANY, None);
        }
        match (from, to) {
            (RegClass::B32, RegClass::B64) => {
                let (value, condition) = widened(cvt.from, a);
                (value, condition.map(|c| (0, c)))
            }
            (RegClass::B64, RegClass::B32) => (
                Value {
                    step: a.step.map(|step| i64::from(step as i32)),
                    align: a.align,
                    most: if a.most > u64::from(u32::MAX) { u64::MAX } else { a.most },
                    constant: a.constant.map(|bits| bits & 0xffff_ffff),
                },
                None,
            ),
            _ => (a, None),
        }
    }
}

/// Extends a value of 32 bits to 64, and returns the condition under which its step stays the same.
fn widened(ty: Type, a: Value) -> (Value, Option<Condition>) {
    let limit = if ty.is_signed() {
        i32::MAX as u64
    } else {
        u64::from(u32::MAX)
    };
    let constant = a.constant.map(|bits| {
        if ty.is_signed() {
            bits as i32 as u64
        } else {
            bits & 0xffff_ffff
        }
    });
    if let Some(bits) = constant {
        return (Value::constant(bits), None);
    }
    let wide = Value {
        most: if a.most > limit { u64::MAX } else { a.most },
        constant,
        ..a
    };
    let certain = a.is_any() || a.is_uniform() || a.most <= limit;
    let kind = if ty.is_signed() {
        Condition::Signed
    } else {
        Condition::Unsigned
    };
    (wide, (!certain).then_some(kind))
}

/// Returns the step wrapped to the width of the type, as a signed number.
fn wrapped(ty: Type, step: i64) -> i64 {
    if ty.size() == 4 { i64::from(step as i32) } else { step }
}

/// Returns the upper bound `most` if it fits in the type. Otherwise the result may wrap, and the bound is `u64::MAX`.
fn limited(ty: Type, most: Option<u64>) -> u64 {
    let limit = if ty.size() == 4 { u64::from(u32::MAX) } else { u64::MAX };
    most.filter(|most| *most <= limit).unwrap_or(u64::MAX)
}

/// Returns the sum of two values in this type.
fn sum(ty: Type, a: Value, b: Value) -> Value {
    let (Some(x), Some(y)) = (a.step, b.step) else {
        return ANY;
    };
    Value {
        step: Some(wrapped(ty, x.wrapping_add(y))),
        align: a.align.min(b.align),
        most: limited(ty, a.most.checked_add(b.most)),
        constant: None,
    }
}

/// Returns the negated value in this type.
fn negative(ty: Type, a: Value) -> Value {
    let Some(step) = a.step else { return ANY };
    Value::affine(wrapped(ty, step.wrapping_neg()), a.align, u64::MAX)
}

/// Returns the low half of a product in this type. Unless both factors are uniform, one must be a constant; `ANY`
/// otherwise.
fn product(ty: Type, a: Value, b: Value) -> Value {
    let (Some(x), Some(y)) = (a.step, b.step) else {
        return ANY;
    };
    let step = match (x, y, a.constant, b.constant) {
        (0, 0, _, _) => 0,
        (_, 0, _, Some(factor)) => x.wrapping_mul(factor as i64),
        (0, _, Some(factor), _) => y.wrapping_mul(factor as i64),
        _ => return ANY,
    };
    Value {
        step: Some(wrapped(ty, step)),
        align: (a.align + b.align).min(63),
        most: limited(ty, a.most.checked_mul(b.most)),
        constant: None,
    }
}
