//! Makes the handlers of an instruction, which loop over the lanes of a warp, from a pure function of scalars.
//!
//! The functions are closures that capture nothing, or plain functions. Each has a type of its own, so each gets
//! handlers of its own. Handlers of frequent instructions are compiled for each instruction set.

use super::mods::Mods;
use crate::code::handlers::{Body, Common, Copies, Handlers, Hot, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs, Slot};
use crate::lanes::{self, LANES, Lanes, Mask};
use ptx::ir::RegClass;
use std::marker::PhantomData;

/// The handlers of an instruction, and the classes of their registers.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The handlers.
    pub(crate) handlers: Handlers,
    /// The classes of the destinations `d` and `e`.
    pub(crate) dsts: [Option<RegClass>; 2],
    /// The classes of the sources `a`, `b`, `c` and `e`.
    pub(crate) srcs: [Option<RegClass>; 4],
    /// The value of [`Inst::mods`].
    pub(crate) mods: Mods,
}

impl Form {
    /// Exchanges the sources `a` and `b` of the instruction if `swap` is true.
    pub(crate) fn swapped(mut self, swap: bool) -> Self {
        self.mods = if swap { self.mods.with_swap() } else { self.mods };
        self
    }

    /// Sets the modifiers that the handler reads when it runs.
    pub(crate) fn with(mut self, mods: Mods) -> Self {
        self.mods = mods;
        self
    }
}

/// A function whose type has a size of 0 bytes: a plain function, or a closure that captures nothing.
pub(crate) trait Pure: Copy + 'static {
    /// Returns the function.
    #[inline(always)]
    fn get() -> Self {
        const { assert!(size_of::<Self>() == 0, "the function captures a variable") };
        // SAFETY: a value of this type exists, because forms are only made from such a value. It is `Copy` and has no
        // bytes.
        unsafe { std::ptr::NonNull::<Self>::dangling().read() }
    }
}
impl<F: Copy + 'static> Pure for F {}

/// Writes a row: all of it, or the lanes of the mask.
///
/// # Safety
/// See [`Regs`].
#[inline(always)]
pub(super) unsafe fn put<T: Lane, const FULL: bool>(regs: Regs<'_>, slot: Slot, values: Lanes<T>, mask: Mask) {
    if FULL {
        // SAFETY: as promised by the caller.
        unsafe { T::write(regs, slot, values) }
    } else {
        // SAFETY: as promised by the caller.
        unsafe { T::merge(regs, slot, values, mask) }
    }
}

/// Defines a body that reads rows, applies a function to each lane, and writes a row.
macro_rules! plain_body {
    ($name:ident, $($ty:ident $arg:ident),*) => {
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
                    let $arg = unsafe { $ty::read(regs, inst.$arg) };
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
    };
}

plain_body!(Unary, A a);
plain_body!(Binary, A a, B b);
plain_body!(Ternary, A a, B b, C c);
plain_body!(Quaternary, A a, B b, C c, E e);

/// Defines a body like [`plain_body`] for functions that also take the modifiers and the flag `FUSED` of [`Body::run`]
/// as arguments.
macro_rules! body_with_mods {
    ($name:ident, $($ty:ident $arg:ident),*) => {
        struct $name<$($ty,)* D, F>(PhantomData<($($ty,)* D, F)>);

        impl<$($ty: Lane,)* D: Lane, F: Fn(Mods, bool, $($ty),*) -> D + Pure> Body for $name<$($ty,)* D, F> {
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
                    let $arg = unsafe { $ty::read(regs, inst.$arg) };
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
    };
}

body_with_mods!(UnaryMods, A a);
body_with_mods!(BinaryMods, A a, B b);
body_with_mods!(TernaryMods, A a, B b, C c);

/// Defines a function that makes the form of a plain function.
macro_rules! plain_form {
    ($doc:literal, $name:ident, $copies:ident, $body:ident<$($ty:ident),*>) => {
        #[doc = $doc]
        pub(crate) fn $name<$($ty: Lane,)* D: Lane, F: Fn($($ty),*) -> D + Pure>(_f: F) -> Form {
            form($copies::compile::<$body<$($ty,)* D, F>>(), Some(D::CLASS), &[$($ty::CLASS),*])
        }
    };
}

plain_form!("`d = f(a)`, for frequent instructions.", unary_hot, Hot, Unary<A>);
plain_form!("`d = f(a)`.", unary, Common, Unary<A>);
plain_form!("`d = f(a)`, for rare or slow instructions.", unary_once, Rare, Unary<A>);
plain_form!("`d = f(a, b)`, for frequent instructions.", binary_hot, Hot, Binary<A, B>);
plain_form!("`d = f(a, b)`.", binary, Common, Binary<A, B>);
plain_form!("`d = f(a, b)`, for rare or slow instructions.", binary_once, Rare, Binary<A, B>);
plain_form!("`d = f(a, b, c)`, for frequent instructions.", ternary_hot, Hot, Ternary<A, B, C>);
plain_form!("`d = f(a, b, c)`.", ternary, Common, Ternary<A, B, C>);
plain_form!("`d = f(a, b, c)`, for rare or slow instructions.", ternary_once, Rare, Ternary<A, B, C>);
plain_form!("`d = f(a, b, c, e)`.", quaternary, Common, Quaternary<A, B, C, E>);
plain_form!("`d = f(a, b, c, e)`, for rare or slow instructions.", quaternary_once, Rare, Quaternary<A, B, C, E>);

/// Defines a function that makes the form of a function that reads its modifiers when it runs.
macro_rules! form_with_mods {
    ($doc:literal, $name:ident, $copies:ident, $body:ident<$($ty:ident),*>) => {
        #[doc = concat!($doc, " The function reads its modifiers when it runs.")]
        pub(crate) fn $name<$($ty: Lane,)* D: Lane, F: Fn(Mods, bool, $($ty),*) -> D + Pure>(
            mods: Mods,
            _f: F,
        ) -> Form {
            form($copies::compile::<$body<$($ty,)* D, F>>(), Some(D::CLASS), &[$($ty::CLASS),*]).with(mods)
        }
    };
}

form_with_mods!(
    "`d = f(a)`, for rare or slow instructions.",
    unary_rare,
    Rare,
    UnaryMods<A>
);
form_with_mods!("`d = f(a, b)`, for rare or slow instructions.", binary_rare, Rare, BinaryMods<A, B>);
form_with_mods!("`d = f(a, b, c)`.", ternary_mods, Common, TernaryMods<A, B, C>);
form_with_mods!("`d = f(a, b, c)`, for rare or slow instructions.", ternary_rare, Rare, TernaryMods<A, B, C>);

/// Makes the form of an expression of the modifiers and one to three sources. The expression is compiled as part of the
/// handlers, for each instruction set. A function that the compiler does not inline would be compiled for the baseline
/// only.
macro_rules! in_place {
    ($mods:expr, |$m:ident, $($arg:ident: $ty:ident $field:ident),*| -> $d:ident $f:expr) => {{
        use crate::code::inst::{Flow, Inst};
        use crate::code::handlers::{Body, Common, Copies};
        use crate::lanes::{LANES, Mask};
        use crate::code::machine::Machine;
        use crate::code::registers::{Lane, Regs};
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
        $crate::ops::shapes::form(Common::compile::<InPlace>(), Some(<$d as Lane>::CLASS), &sources).with($mods)
    }};
}
pub(crate) use in_place;

/// `d = f(a, b, c)`, for frequent instructions; the function also takes modifiers, which are 0, and the flag `FUSED` of
/// [`Body::run`].
pub(crate) fn ternary_fused<A: Lane, D: Lane, F: Fn(Mods, bool, A, A, A) -> D + Pure>(_f: F) -> Form {
    form(
        Hot::compile::<TernaryMods<A, A, A, D, F>>(),
        Some(D::CLASS),
        &[A::CLASS; 3],
    )
}

/// Makes a form with one destination at most, and no modifiers.
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

/// An operation on `a`, `b`, `c` and the carry in `e`, with the result `d` and the carry out `f`. Both carries are
/// predicates.
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

/// `d = f(a, b, c)` with a carry in and a carry out; the decoder sets their slots.
pub(crate) fn carrying<A: Lane, F: Fn(A, A, A, bool) -> (A, bool) + Pure>(_f: F) -> Form {
    form(
        Rare::compile::<Carrying<A, F>>(),
        Some(A::CLASS),
        &[A::CLASS, A::CLASS, A::CLASS, RegClass::Pred],
    )
}

/// `p|q = f(a, b)`, combined with a predicate `c` if the modifiers have a Boolean operation.
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
            // SAFETY: as above; the third source of this form is a predicate.
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
pub(crate) fn test<W: Copies, A: Lane, F: Fn(A, A) -> bool + Pure>(mods: Mods, _f: F) -> Form {
    fn wrap<W: Copies, A: Lane, G: Fn(Mods, A, A) -> bool + Pure>(mods: Mods, _: G) -> Form {
        test_form(W::compile::<Test<A, G>>(), A::CLASS, mods)
    }
    wrap::<W, _, _>(mods, |_: Mods, a: A, b: A| F::get()(a, b))
}

/// `p|q = f(a, b)`, for rare or slow instructions; the function reads its modifiers when it runs.
pub(crate) fn test_rare<A: Lane, F: Fn(Mods, A, A) -> bool + Pure>(mods: Mods, _f: F) -> Form {
    test_form(Rare::compile::<Test<A, F>>(), A::CLASS, mods)
}

/// `p|q = f(a, b)` of pairs: `p` is the result for the low elements, `q` the one for the high elements.
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
            // SAFETY: as above; the third source of this form is a predicate.
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

/// Makes the form of a test of pairs.
pub(crate) fn pair_test<F: Fn(Mods, u16, u16) -> bool + Pure>(mods: Mods, _f: F) -> Form {
    test_form(Rare::compile::<PairTest<F>>(), RegClass::B32, mods)
}

/// `d = f(a, b, c)` on the masks of predicates.
struct Masks<F>(PhantomData<F>);

impl<F: Fn(Mask, Mask, Mask) -> Mask + Pure> Body for Masks<F> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        _m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slots are predicates of this frame (slot 0 if unused), as promised by the caller.
        unsafe {
            let value = F::get()(regs.mask(inst.a), regs.mask(inst.b), regs.mask(inst.c));
            regs.merge_mask(inst.d, value, mask);
        }
        Flow::Next
    }
}

/// `d = f(a, b, c)` on masks; the function uses the first `sources` of them.
pub(crate) fn masks<F: Fn(Mask, Mask, Mask) -> Mask + Pure>(sources: usize, _f: F) -> Form {
    form(
        Rare::compile::<Masks<F>>(),
        Some(RegClass::Pred),
        &[RegClass::Pred; 3][..sources],
    )
}
