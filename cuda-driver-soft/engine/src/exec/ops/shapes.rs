//! From a pure function of scalars to the handlers of an instruction: loops over the lanes of a warp.
//!
//! The functions are closures that capture nothing, or plain functions: types without a value at run time, so that each
//! gets handlers of its own, compiled for each instruction set as far as it is worth it.

use super::mods::Mods;
use crate::exec::code::{Flow, Inst};
use crate::exec::isa::{Body, Common, Handlers, Hot, Rare, Worth};
use crate::exec::machine::Machine;
use crate::exec::registers::{Lane, Regs, Slot};
use crate::lanes::{self, LANES, Mask};
use ptx::ir::RegClass;
use std::marker::PhantomData;

/// An instruction's handlers, and the registers that they want.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The handlers.
    pub(crate) handlers: Handlers,
    /// Destinations: `d`, then `e`.
    pub(crate) dsts: [Option<RegClass>; 2],
    /// Sources: `a`, `b`, `c`, then `e`.
    pub(crate) srcs: [Option<RegClass>; 4],
    /// For [`Inst::mods`].
    pub(crate) mods: Mods,
}

impl Form {
    /// With the sources `a` and `b` of the instruction exchanged.
    pub(crate) fn swapped(mut self, swap: bool) -> Self {
        self.mods = if swap {
            self.mods.with_swap()
        } else {
            self.mods
        };
        self
    }

    /// With modifiers that the handler looks at when it runs.
    pub(crate) fn with(mut self, mods: Mods) -> Self {
        self.mods = mods;
        self
    }
}

/// A function without a value: a closure that captures nothing.
pub(crate) trait Pure: Copy + 'static {
    /// The function.
    #[inline(always)]
    fn get() -> Self {
        const { assert!(size_of::<Self>() == 0, "the function captures a variable") };
        // SAFETY: a value of this type exists, since shapes are only made from one; it is `Copy` and has no bytes.
        unsafe { std::ptr::NonNull::<Self>::dangling().read() }
    }
}
impl<F: Copy + 'static> Pure for F {}

/// Writes a row: all of it, or the lanes of the mask.
///
/// # Safety
/// See [`Regs`].
#[inline(always)]
unsafe fn put<T: Lane, const FULL: bool>(
    regs: Regs<'_>,
    slot: Slot,
    values: [T; LANES],
    mask: Mask,
) {
    if FULL {
        // SAFETY: as promised by the caller.
        unsafe { T::write(regs, slot, values) }
    } else {
        // SAFETY: as promised by the caller.
        unsafe { T::merge(regs, slot, values, mask) }
    }
}

/// Defines a shape: a body that reads rows, applies a function to each lane, and writes a row. The first is for a plain
/// function, the second for one that is also given the modifiers, and whether the CPU has a fused multiply-add.
macro_rules! shape {
    ($doc:literal, $name:ident, $with_mods:ident, $hot:ident, $common:ident, $once:ident, $rare:ident,
     ($($ty:ident $arg:ident $field:ident),*)) => {
        struct $name<$($ty,)* D, F>(PhantomData<($($ty,)* D, F)>);

        impl<$($ty: Lane,)* D: Lane, F: Fn($($ty),*) -> D + Pure> Body for $name<$($ty,)* D, F> {
            #[inline(always)]
            unsafe fn run<const FULL: bool, const FUSED: bool>(
                _m: &mut Machine<'_>,
                regs: Regs<'_>,
                inst: &Inst,
                mask: Mask,
            ) -> Flow {
                let f = F::get();
                $(
                    // SAFETY: the slots are of this frame and class, as promised by the caller.
                    let $arg = unsafe { $ty::read(regs, inst.$field) };
                )*
                let mut out = [D::default(); LANES];
                for i in 0..LANES {
                    out[i] = f($($arg[i]),*);
                }
                // SAFETY: as above.
                unsafe { put::<D, FULL>(regs, inst.d, out, mask) };
                Flow::Next
            }
        }

        #[allow(dead_code)]
        struct $with_mods<$($ty,)* D, F>(PhantomData<($($ty,)* D, F)>);

        impl<$($ty: Lane,)* D: Lane, F: Fn(Mods, bool, $($ty),*) -> D + Pure> Body for $with_mods<$($ty,)* D, F> {
            #[inline(always)]
            unsafe fn run<const FULL: bool, const FUSED: bool>(
                _m: &mut Machine<'_>,
                regs: Regs<'_>,
                inst: &Inst,
                mask: Mask,
            ) -> Flow {
                let f = F::get();
                let mods = Mods(inst.mods);
                $(
                    // SAFETY: the slots are of this frame and class, as promised by the caller.
                    let $arg = unsafe { $ty::read(regs, inst.$field) };
                )*
                let mut out = [D::default(); LANES];
                for i in 0..LANES {
                    out[i] = f(mods, FUSED, $($arg[i]),*);
                }
                // SAFETY: as above.
                unsafe { put::<D, FULL>(regs, inst.d, out, mask) };
                Flow::Next
            }
        }

        #[doc = concat!($doc, ", for what programs are full of")]
        #[allow(dead_code)]
        pub(crate) fn $hot<$($ty: Lane,)* D: Lane, F: Fn($($ty),*) -> D + Pure>(_f: F) -> Form {
            form(Hot::compile::<$name<$($ty,)* D, F>>(), Some(D::CLASS), &[$($ty::CLASS),*])
        }

        #[doc = $doc]
        #[allow(dead_code)]
        pub(crate) fn $common<$($ty: Lane,)* D: Lane, F: Fn($($ty),*) -> D + Pure>(_f: F) -> Form {
            form(Common::compile::<$name<$($ty,)* D, F>>(), Some(D::CLASS), &[$($ty::CLASS),*])
        }

        #[doc = concat!($doc, ", for what is rare or slow")]
        #[allow(dead_code)]
        pub(crate) fn $once<$($ty: Lane,)* D: Lane, F: Fn($($ty),*) -> D + Pure>(_f: F) -> Form {
            form(Rare::compile::<$name<$($ty,)* D, F>>(), Some(D::CLASS), &[$($ty::CLASS),*])
        }

        #[doc = concat!($doc, ", for what is rare or slow; the function looks at its modifiers when it runs")]
        #[allow(dead_code)]
        pub(crate) fn $rare<$($ty: Lane,)* D: Lane, F: Fn(Mods, bool, $($ty),*) -> D + Pure>(
            mods: Mods,
            _f: F,
        ) -> Form {
            form(Rare::compile::<$with_mods<$($ty,)* D, F>>(), Some(D::CLASS), &[$($ty::CLASS),*]).with(mods)
        }
    };
}

shape!("`d = f(a)`", Unary, UnaryMods, unary_hot, unary, unary_once, unary_rare, (A a a));
shape!("`d = f(a, b)`", Binary, BinaryMods, binary_hot, binary, binary_once, binary_rare, (A a a, B b b));
shape!("`d = f(a, b, c)`", Ternary, TernaryMods, ternary_hot, ternary, ternary_once, ternary_rare,
    (A a a, B b b, C c c));
shape!("`d = f(a, b, c, e)`", Quaternary, QuaternaryMods, quaternary_hot, quaternary, quaternary_once, quaternary_rare,
    (A a a, B b b, C c c, E e e));

/// The form of an expression of the modifiers and one to three sources, which is compiled into the handlers of both
/// instruction sets however long it is: a function that they call would be compiled once, for the lesser of them.
macro_rules! in_place {
    ($mods:expr, |$m:ident, $($arg:ident: $ty:ident $field:ident),*| -> $d:ident $f:expr) => {{
        use crate::exec::code::{Flow, Inst};
        use crate::exec::isa::{Body, Common, Worth};
        use crate::lanes::{LANES, Mask};
        use crate::exec::machine::Machine;
        use crate::exec::registers::{Lane, Regs};
        struct InPlace;
        impl Body for InPlace {
            #[inline(always)]
            unsafe fn run<const FULL: bool, const FUSED: bool>(
                _m: &mut Machine<'_>,
                regs: Regs<'_>,
                inst: &Inst,
                mask: Mask,
            ) -> Flow {
                let $m = Mods(inst.mods);
                $(
                    // SAFETY: the slots are of this frame and class, as promised by the caller.
                    let $arg = unsafe { <$ty as Lane>::read(regs, inst.$field) };
                )*
                let mut out = [<$d>::default(); LANES];
                for (i, out) in out.iter_mut().enumerate() {
                    $(let $arg = $arg[i];)*
                    *out = $f;
                }
                // SAFETY: as above.
                unsafe { <$d as Lane>::merge(regs, inst.d, out, mask) };
                Flow::Next
            }
        }
        let sources = [$(<$ty as Lane>::CLASS),*];
        $crate::exec::ops::shapes::form(Common::compile::<InPlace>(), Some(<$d as Lane>::CLASS), &sources).with($mods)
    }};
}
pub(crate) use in_place;

/// `d = f(a, b, c)`, where the function looks at its modifiers when it runs
pub(crate) fn ternary_mods<
    A: Lane,
    B: Lane,
    C: Lane,
    D: Lane,
    F: Fn(Mods, bool, A, B, C) -> D + Pure,
>(
    mods: Mods,
    _f: F,
) -> Form {
    let handlers = Common::compile::<TernaryMods<A, B, C, D, F>>();
    form(handlers, Some(D::CLASS), &[A::CLASS, B::CLASS, C::CLASS]).with(mods)
}

/// `d = f(fused, a, b, c)`, for what programs are full of
pub(crate) fn ternary_fused<A: Lane, D: Lane, F: Fn(Mods, bool, A, A, A) -> D + Pure>(
    _f: F,
) -> Form {
    form(
        Hot::compile::<TernaryMods<A, A, A, D, F>>(),
        Some(D::CLASS),
        &[A::CLASS; 3],
    )
}

pub(super) fn form(handlers: Handlers, d: Option<RegClass>, sources: &[RegClass]) -> Form {
    let mut srcs = [None; 4];
    for (to, from) in srcs.iter_mut().zip(sources) {
        *to = Some(*from);
    }
    Form {
        handlers,
        dsts: [d, None],
        srcs,
        mods: Mods(0),
    }
}

/// `d|f = f(a, b, c, e)` with a carry: `e` goes in, `f` comes out.
struct Carrying<A, F>(PhantomData<(A, F)>);

impl<A: Lane, F: Fn(A, A, A, bool) -> (A, bool) + Pure> Body for Carrying<A, F> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let f = F::get();
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (a, b, c, carry) = unsafe {
            (
                A::read(regs, inst.a),
                A::read(regs, inst.b),
                A::read(regs, inst.c),
                bool::read(regs, inst.e),
            )
        };
        let (mut out, mut carries) = ([A::default(); LANES], [false; LANES]);
        for i in 0..LANES {
            (out[i], carries[i]) = f(a[i], b[i], c[i], carry[i]);
        }
        // SAFETY: as above; `f` is a predicate.
        unsafe {
            put::<A, FULL>(regs, inst.d, out, mask);
            bool::merge(regs, inst.f, carries, mask);
        }
        Flow::Next
    }
}

/// `d = f(a, b, c)` with a carry in and out, which the decoder adds.
pub(crate) fn carrying<A: Lane, F: Fn(A, A, A, bool) -> (A, bool) + Pure>(_f: F) -> Form {
    form(
        Rare::compile::<Carrying<A, F>>(),
        Some(A::CLASS),
        &[A::CLASS, A::CLASS, A::CLASS, RegClass::Pred],
    )
}

/// `p|q = f(a, b)`, combined with a third predicate if the modifiers say so.
struct Test<A, F>(PhantomData<(A, F)>);

impl<A: Lane, F: Fn(Mods, A, A) -> bool + Pure> Body for Test<A, F> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let f = F::get();
        let mods = Mods(inst.mods);
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (a, b) = unsafe { (A::read(regs, inst.a), A::read(regs, inst.b)) };
        let mut out = [false; LANES];
        for i in 0..LANES {
            out[i] = f(mods, a[i], b[i]);
        }
        let t = lanes::pack(out);
        let (p, q) = if mods.has_bool_op() {
            // SAFETY: as above; the third source of this shape is a predicate.
            let c = unsafe { regs.mask(inst.c) };
            mods.combine(t, c)
        } else {
            (t, !t)
        };
        // SAFETY: as above; both destinations are predicates.
        unsafe {
            regs.merge_mask(inst.d, p, mask);
            if mods.has_second() {
                regs.merge_mask(inst.e, q, mask);
            }
        }
        Flow::Next
    }
}

fn test_form(handlers: Handlers, a: RegClass, mods: Mods) -> Form {
    let c = mods.has_bool_op().then_some(RegClass::Pred);
    let q = mods.has_second().then_some(RegClass::Pred);
    Form {
        handlers,
        dsts: [Some(RegClass::Pred), q],
        srcs: [Some(a), Some(a), c, None],
        mods,
    }
}

/// `p|q = f(a, b)`
pub(crate) fn test<W: Worth, A: Lane, F: Fn(A, A) -> bool + Pure>(mods: Mods, _f: F) -> Form {
    fn wrap<W: Worth, A: Lane, G: Fn(Mods, A, A) -> bool + Pure>(mods: Mods, _: G) -> Form {
        test_form(W::compile::<Test<A, G>>(), A::CLASS, mods)
    }
    wrap::<W, _, _>(mods, |_: Mods, a: A, b: A| F::get()(a, b))
}

/// The same for what is rare or slow anyway.
pub(crate) fn test_rare<A: Lane, F: Fn(Mods, A, A) -> bool + Pure>(mods: Mods, _f: F) -> Form {
    test_form(Rare::compile::<Test<A, F>>(), A::CLASS, mods)
}

/// `p|q = f(a, b)` of pairs: `p` is the outcome of the low elements, `q` that of the high ones.
struct PairTest<F>(PhantomData<F>);

impl<F: Fn(Mods, u16, u16) -> bool + Pure> Body for PairTest<F> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let f = F::get();
        let mods = Mods(inst.mods);
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (a, b) = unsafe { (u32::read(regs, inst.a), u32::read(regs, inst.b)) };
        let (mut low, mut high) = ([false; LANES], [false; LANES]);
        for i in 0..LANES {
            low[i] = f(mods, a[i] as u16, b[i] as u16);
            high[i] = f(mods, (a[i] >> 16) as u16, (b[i] >> 16) as u16);
        }
        let (mut p, mut q) = (lanes::pack(low), lanes::pack(high));
        if mods.has_bool_op() {
            // SAFETY: as above; the third source of this shape is a predicate.
            let c = unsafe { regs.mask(inst.c) };
            (p, q) = (mods.combine(p, c).0, mods.combine(q, c).0);
        }
        // SAFETY: as above; both destinations are predicates.
        unsafe {
            regs.merge_mask(inst.d, p, mask);
            if mods.has_second() {
                regs.merge_mask(inst.e, q, mask);
            }
        }
        Flow::Next
    }
}

/// `p|q = f(a, b)` of pairs
pub(crate) fn pair_test<F: Fn(Mods, u16, u16) -> bool + Pure>(mods: Mods, _f: F) -> Form {
    test_form(Rare::compile::<PairTest<F>>(), RegClass::B32, mods)
}

/// Predicates: `d = f(a, b, c)` on whole masks.
struct Masks<F>(PhantomData<F>);

impl<F: Fn(Mask, Mask, Mask) -> Mask + Pure> Body for Masks<F> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slots are predicates of this frame (those not in use are 0), as promised by the caller.
        unsafe {
            let value = F::get()(regs.mask(inst.a), regs.mask(inst.b), regs.mask(inst.c));
            regs.merge_mask(inst.d, value, mask);
        }
        Flow::Next
    }
}

/// `d = f(a, b, c)` on masks; `sources` of them are used.
pub(crate) fn masks<F: Fn(Mask, Mask, Mask) -> Mask + Pure>(sources: usize, _f: F) -> Form {
    form(
        Rare::compile::<Masks<F>>(),
        Some(RegClass::Pred),
        &[RegClass::Pred; 3][..sources],
    )
}
