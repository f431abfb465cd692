//! Handlers of instructions that the code for converged warps computes once per warp: see `semantics::affine`.

use super::shapes::Pure;
use crate::code::handlers::{Body, Common, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs};
use crate::lanes::{FULL as FULL_MASK, LANES, Mask};
use crate::semantics::affine::{self, Affine, Rows};
use crate::semantics::int::{self, Int};
use crate::semantics::logic;
use ptx::ir::RegClass::{B32, B64};
use ptx::ir::Type::{B32 as T32, B64 as T64, S32, S64, U32, U64};
use ptx::ir::{Compare, Op, Part, RegClass, Type};
use std::marker::PhantomData;

/// The handlers of an instruction whose result can be affine, and the classes of its registers.
pub(crate) struct Form {
    /// The handlers; `d`, `a`, `b`, `c` are affine rows.
    pub(crate) handlers: Handlers,
    /// The condition under which the result is affine.
    pub(crate) law: Law,
    /// The classes of the sources.
    pub(crate) srcs: Vec<RegClass>,
    /// The class of the destination.
    pub(crate) dst: RegClass,
    /// True if the handlers may leave the code for converged warps, for example if a value that is widened wraps
    /// around.
    pub(crate) may_leave: bool,
}

impl Form {
    fn may_leave(mut self) -> Self {
        self.may_leave = true;
        self
    }
}

/// The condition under which the result of an instruction is affine. If all sources are uniform, the result is uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    /// All sources are affine.
    Sum,
    /// All sources are affine, and the first or the second is uniform.
    Product,
    /// The first source is affine, and the others are uniform.
    Scale,
    /// All sources are affine, and none is a thread index itself. The result is one of the sources. If a source is the
    /// thread index, the choice is rarely the same for all lanes.
    Pick,
    /// The result is affine only if it is uniform.
    Uniform,
}

/// `d = f(a, b, c)`
struct Scalar<F, const GRID: bool>(PhantomData<F>);

impl<F: Fn(Rows, Affine, Affine, Affine) -> Option<Affine> + Pure, const GRID: bool> Body for Scalar<F, GRID> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        // SAFETY: the slots are of this frame, and affine or not used, as promised by the caller.
        let (a, b, c) = unsafe {
            (
                regs.affine::<GRID>(inst.a),
                regs.affine::<GRID>(inst.b),
                regs.affine::<GRID>(inst.c),
            )
        };
        match F::get()(m.lane_rows::<GRID>(), a, b, c) {
            Some(value) => {
                // SAFETY: as above.
                unsafe { regs.set_affine::<GRID>(inst.d, value) };
                Flow::Next
            }
            None => Flow::Leave,
        }
    }
}

/// Makes the form of a function of affine rows.
fn scalar<const GRID: bool, F: Fn(Rows, Affine, Affine, Affine) -> Option<Affine> + Pure>(
    law: Law,
    srcs: &[RegClass],
    dst: RegClass,
    _f: F,
) -> Option<Form> {
    Some(Form {
        handlers: Rare::compile::<Scalar<F, GRID>>(),
        law,
        srcs: srcs.to_vec(),
        dst,
        may_leave: law != Law::Scale && dst == B64 && srcs.contains(&B32),
    })
}

/// Returns the form for 32 or 64 bits of a function that is the same for signed and unsigned types.
macro_rules! any_sign {
    ($ty:expr, $law:ident, $count:literal, |$t:ident, $a:pat_param, $b:pat_param, $c:pat_param| $f:expr) => {
        match $ty {
            U32 | S32 | T32 | Type::F32 => {
                type $t = u32;
                scalar::<GRID, _>(Law::$law, &[B32; 3][..$count], B32, |_, $a, $b, $c| Some($f))
            }
            U64 | S64 | T64 | Type::F64 => {
                type $t = u64;
                scalar::<GRID, _>(Law::$law, &[B64; 3][..$count], B64, |_, $a, $b, $c| Some($f))
            }
            _ => None,
        }
    };
}

/// Returns the form of a function of two uniform values, by the type of the instruction.
macro_rules! of_uniform {
    ($ty:expr, $f:path) => {{
        match $ty {
            U32 | T32 => both::<GRID, u32, _>(|a, b| $f(a, b)),
            S32 => both::<GRID, i32, _>(|a, b| $f(a, b)),
            U64 | T64 => both::<GRID, u64, _>(|a, b| $f(a, b)),
            S64 => both::<GRID, i64, _>(|a, b| $f(a, b)),
            _ => None,
        }
    }};
}

/// Returns the form of `min` or `max`, by the type of the instruction.
macro_rules! picked {
    ($ty:expr, $f:path) => {{
        use $f as f;
        match $ty {
            U32 => pick::<GRID, u32, _>(|rows, a, b, _| f::<u32>(a, b, rows)),
            S32 => pick::<GRID, i32, _>(|rows, a, b, _| f::<i32>(a, b, rows)),
            U64 => pick::<GRID, u64, _>(|rows, a, b, _| f::<u64>(a, b, rows)),
            S64 => pick::<GRID, i64, _>(|rows, a, b, _| f::<i64>(a, b, rows)),
            _ => None,
        }
    }};
}

/// Returns the form of a function of two uniform values that have no sign.
macro_rules! of_uniform_bits {
    ($ty:expr, $f:path) => {
        match $ty {
            T32 => both::<GRID, u32, _>(|a, b| $f(a, b)),
            T64 => both::<GRID, u64, _>(|a, b| $f(a, b)),
            _ => None,
        }
    };
}

/// Makes the form of a function of two uniform values.
fn both<const GRID: bool, T: Int + 'static, F: Fn(T, T) -> T + Pure>(_f: F) -> Option<Form> {
    let class = if T::BITS == 64 { B64 } else { B32 };
    scalar::<GRID, _>(Law::Uniform, &[class; 2], class, |_, a, b, _| {
        let value = F::get()(T::from_bits(a.base), T::from_bits(b.base));
        Some(affine::uniform(value))
    })
}

/// Makes the form of `min` or `max` for one type.
fn pick<const GRID: bool, T: Int, F>(f: F) -> Option<Form>
where
    F: Fn(Rows, Affine, Affine, Affine) -> Option<Affine> + Pure,
{
    let class = if T::BITS == 64 { B64 } else { B32 };
    scalar::<GRID, _>(Law::Pick, &[class; 2], class, f).map(Form::may_leave)
}

/// Makes the form of `shr` for one type.
fn shifted<const GRID: bool, T: Int + 'static>() -> Option<Form> {
    let class = if T::BITS == 64 { B64 } else { B32 };
    let form = scalar::<GRID, _>(Law::Uniform, &[class, B32], class, |rows, a, b, _| {
        affine::shr::<T>(a, b, rows)
    });
    form.map(Form::may_leave)
}

/// Returns the handlers of `d = a`.
pub(crate) fn copy(class: RegClass, grid: bool) -> Option<Handlers> {
    let ty = if class == B64 { T64 } else { T32 };
    form(&Op::Mov { ty }, grid).map(|form| form.handlers)
}

/// Returns the form of an instruction; with `grid` for warps whose lanes are in several rows of the block.
pub(crate) fn form(op: &Op, grid: bool) -> Option<Form> {
    if grid {
        form_of::<true>(op)
    } else {
        form_of::<false>(op)
    }
}

fn form_of<const GRID: bool>(op: &Op) -> Option<Form> {
    match op {
        Op::Mov { ty } => any_sign!(*ty, Sum, 1, |_T, a, _, _| a),
        Op::Cvta { ty, .. } => any_sign!(*ty, Sum, 1, |_T, a, _, _| a),
        Op::Add { ty, sat: false } => any_sign!(*ty, Sum, 2, |T, a, b, _| affine::add::<T>(a, b)),
        Op::Sub { ty, sat: false } => any_sign!(*ty, Sum, 2, |T, a, b, _| affine::sub::<T>(a, b)),
        Op::Neg { ty } => any_sign!(*ty, Sum, 1, |T, a, _, _| affine::neg::<T>(a)),
        Op::Not { ty } => any_sign!(*ty, Sum, 1, |T, a, _, _| affine::not::<T>(a)),
        Op::Mul { ty, part: Part::Lo } => {
            any_sign!(*ty, Product, 2, |T, a, b, _| affine::mul_lo::<T>(a, b))
        }
        Op::Mad {
            ty,
            part: Part::Lo,
            sat: false,
        } => any_sign!(*ty, Product, 3, |T, a, b, c| affine::mad_lo::<T>(a, b, c)),
        Op::Mul {
            ty: U32,
            part: Part::Wide,
        } => scalar::<GRID, _>(Law::Product, &[B32; 2], B64, |rows, a, b, _| {
            affine::mul_wide::<u32>(a, b, rows)
        }),
        Op::Mul {
            ty: S32,
            part: Part::Wide,
        } => scalar::<GRID, _>(Law::Product, &[B32; 2], B64, |rows, a, b, _| {
            affine::mul_wide::<i32>(a, b, rows)
        }),
        Op::Mad {
            ty: U32,
            part: Part::Wide,
            sat: false,
        } => scalar::<GRID, _>(Law::Product, &[B32, B32, B64], B64, |rows, a, b, c| {
            affine::mad_wide::<u32>(a, b, c, rows)
        }),
        Op::Mad {
            ty: S32,
            part: Part::Wide,
            sat: false,
        } => scalar::<GRID, _>(Law::Product, &[B32, B32, B64], B64, |rows, a, b, c| {
            affine::mad_wide::<i32>(a, b, c, rows)
        }),
        Op::Shl { ty: T32 } => {
            scalar::<GRID, _>(Law::Scale, &[B32; 2], B32, |_, a, b, _| Some(affine::shl::<u32>(a, b)))
        }
        Op::Shl { ty: T64 } => scalar::<GRID, _>(Law::Scale, &[B64, B32], B64, |_, a, b, _| {
            Some(affine::shl::<u64>(a, b))
        }),
        Op::Shr { ty: U32 | T32 } => shifted::<GRID, u32>(),
        Op::Shr { ty: S32 } => shifted::<GRID, i32>(),
        Op::Shr { ty: U64 | T64 } => shifted::<GRID, u64>(),
        Op::Shr { ty: S64 } => shifted::<GRID, i64>(),
        Op::And { ty: T32 } => scalar::<GRID, _>(Law::Uniform, &[B32; 2], B32, |rows, a, b, _| {
            affine::and::<u32>(a, b, rows)
        })
        .map(Form::may_leave),
        Op::And { ty: T64 } => scalar::<GRID, _>(Law::Uniform, &[B64; 2], B64, |rows, a, b, _| {
            affine::and::<u64>(a, b, rows)
        })
        .map(Form::may_leave),
        Op::Or { ty } => of_uniform_bits!(*ty, logic::or),
        Op::Xor { ty } => of_uniform_bits!(*ty, logic::xor),
        Op::Min { ty, relu: false } => picked!(*ty, affine::min),
        Op::Max { ty, relu: false } => picked!(*ty, affine::max),
        Op::Div { ty } => of_uniform!(*ty, int::div),
        Op::Rem { ty } => of_uniform!(*ty, int::rem),
        Op::Cvt(c) if !(c.sat || c.ftz || c.relu || c.satfinite) => match (c.from, c.to) {
            (U32, U64 | S64) => {
                scalar::<GRID, _>(Law::Sum, &[B32], B64, |rows, a, _, _| affine::extend::<u32>(a, rows))
            }
            (S32, U64 | S64) => {
                scalar::<GRID, _>(Law::Sum, &[B32], B64, |rows, a, _, _| affine::extend::<i32>(a, rows))
            }
            (U64 | S64, U32 | S32) => scalar::<GRID, _>(Law::Sum, &[B64], B32, |_, a, _, _| Some(affine::truncate(a))),
            _ => None,
        },
        _ => None,
    }
}

/// `p = a cmp b`
struct Test<T, F, const GRID: bool>(PhantomData<(T, F)>);

impl<T: Int, F: Fn() -> Compare + Pure, const GRID: bool> Body for Test<T, F, GRID> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slots are of this frame, the sources affine, the destination a predicate, as promised by the
        // caller.
        unsafe {
            let (a, b) = (regs.affine::<GRID>(inst.a), regs.affine::<GRID>(inst.b));
            let holds = affine::compare::<T>(F::get()(), a, b, m.lane_rows::<GRID>());
            regs.merge_mask(inst.d, holds, mask);
        }
        Flow::Next
    }
}

/// `p = a cmp b`, and the branch to `aux` that follows: on `p`, or on `!p` if `mods` is 1.
struct TestAndBranch<T, F, const GRID: bool>(PhantomData<(T, F)>);

impl<T: Int, F: Fn() -> Compare + Pure, const GRID: bool> Body for TestAndBranch<T, F, GRID> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: as for `Test`.
        let holds = unsafe {
            let (a, b) = (regs.affine::<GRID>(inst.a), regs.affine::<GRID>(inst.b));
            let holds = affine::compare::<T>(F::get()(), a, b, m.lane_rows::<GRID>());
            regs.merge_mask(inst.d, holds, mask);
            holds
        };
        let taken = if inst.mods != 0 { !holds } else { holds };
        match taken {
            0 => Flow::Skip,
            FULL_MASK => {
                m.target = inst.aux;
                Flow::Jump
            }
            // The lanes disagree: the branch instruction itself comes next, and leaves this code.
            _ => Flow::Next,
        }
    }
}

/// A comparison of affine rows.
pub(crate) struct Comparison {
    /// The handlers; `a` and `b` are affine rows, `d` a predicate.
    pub(crate) handlers: Handlers,
    /// Handlers that also run the branch that follows, with its `aux` and `mods`.
    pub(crate) with_branch: Handlers,
    /// The class of the registers that are compared.
    pub(crate) class: RegClass,
    /// True if `a` and `b` have to be exchanged.
    pub(crate) swapped: bool,
}

/// Returns the comparison that an instruction does; with `grid` for warps whose lanes are in several rows of the block.
pub(crate) fn test(op: &Op, grid: bool) -> Option<Comparison> {
    if grid {
        test_of::<true>(op)
    } else {
        test_of::<false>(op)
    }
}

fn test_of<const GRID: bool>(op: &Op) -> Option<Comparison> {
    use Compare::*;
    let Op::Setp {
        cmp, ty, bool_op: None, ..
    } = *op
    else {
        return None;
    };
    fn of<const GRID: bool, T: Int + 'static, F: Fn() -> Compare + Pure>(_: F) -> [Handlers; 2] {
        [
            Rare::compile::<Test<T, F, GRID>>(),
            Rare::compile::<TestAndBranch<T, F, GRID>>(),
        ]
    }
    macro_rules! compared {
        ($signed:ident, $unsigned:ident) => {
            match cmp {
                Eq => of::<GRID, $unsigned, _>(|| Eq),
                Ne => of::<GRID, $unsigned, _>(|| Ne),
                Lt | Gt if ty.is_signed() => of::<GRID, $signed, _>(|| Lt),
                Le | Ge if ty.is_signed() => of::<GRID, $signed, _>(|| Le),
                Lt | Gt | Lo | Hi => of::<GRID, $unsigned, _>(|| Lt),
                Le | Ge | Ls | Hs => of::<GRID, $unsigned, _>(|| Le),
                _ => return None,
            }
        };
    }
    let ([handlers, with_branch], class) = match ty {
        U32 | S32 | T32 => (compared!(i32, u32), B32),
        U64 | S64 | T64 => (compared!(i64, u64), B64),
        _ => return None,
    };
    Some(Comparison {
        handlers,
        with_branch,
        class,
        swapped: matches!(cmp, Gt | Ge | Hi | Hs),
    })
}

/// Writes the value of each lane of an affine row.
struct Spread<T, const GRID: bool>(PhantomData<T>);

impl<T: Int + Lane, const GRID: bool> Body for Spread<T, GRID> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        _mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is affine, of this frame, as promised by the caller.
        let a = unsafe { regs.affine::<GRID>(inst.a) };
        let rows = m.lane_rows::<GRID>();
        let mut out = [T::default(); LANES];
        if GRID {
            for (i, out) in (0..).zip(&mut out) {
                *out = affine::lane(a, rows, i);
            }
        } else {
            // Compute four lanes at a time, each group from the one before.
            let mut four: [T; 4] = std::array::from_fn(|i| affine::lane(a, rows, i as u32));
            let step = T::from_bits(a.step << 2);
            for k in 0..LANES / 4 {
                for i in 0..4 {
                    out[4 * k + i] = four[i];
                    four[i] = int::add(four[i], step);
                }
            }
        }
        // SAFETY: the destination is of this frame and class, as promised by the caller.
        unsafe { T::write(regs, inst.d, out) };
        Flow::Next
    }
}

/// Returns the handlers that write the row `d` of the affine row `a`.
pub(crate) fn spread(class: RegClass, grid: bool) -> Handlers {
    match (class, grid) {
        (B64, false) => Common::compile::<Spread<u64, false>>(),
        (B64, true) => Common::compile::<Spread<u64, true>>(),
        (_, false) => Common::compile::<Spread<u32, false>>(),
        (_, true) => Common::compile::<Spread<u32, true>>(),
    }
}
