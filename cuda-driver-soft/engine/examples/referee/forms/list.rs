//! A list of the referee's forms.

use super::form::{Expect, Form, OperandKind, Width};
use ptx::ir::Rounding;

/// The rounding modes of floating-point results.
pub(super) const MODES: [(Rounding, &str); 4] = [
    (Rounding::Rn, ".rn"),
    (Rounding::Rz, ".rz"),
    (Rounding::Rm, ".rm"),
    (Rounding::Rp, ".rp"),
];

/// The rounding modes of integer results.
pub(super) const INT_MODES: [(Rounding, &str); 4] = [
    (Rounding::Rn, ".rni"),
    (Rounding::Rz, ".rzi"),
    (Rounding::Rm, ".rmi"),
    (Rounding::Rp, ".rpi"),
];

/// Returns the two choices for an optional modifier.
pub(super) fn flags(name: &'static str) -> [(bool, &'static str); 2] {
    [(false, ""), (true, name)]
}

/// The forms in order, with a method for each layout of operands and result.
#[derive(Default)]
pub(super) struct List(pub(super) Vec<Form>);

impl List {
    fn push(
        &mut self,
        kind: OperandKind,
        width: Width,
        text: String,
        expect: Expect,
        eval: impl Fn(u64, u64, u64) -> u64 + 'static,
    ) {
        self.0.push(Form {
            text,
            kind,
            width,
            expect,
            eval: Box::new(eval),
        });
    }

    pub(super) fn add(
        &mut self,
        kind: OperandKind,
        width: Width,
        text: String,
        eval: impl Fn(u64, u64, u64) -> u64 + 'static,
    ) {
        self.push(kind, width, text, Expect::Same, eval);
    }

    pub(super) fn near(
        &mut self,
        kind: OperandKind,
        width: Width,
        text: String,
        eval: impl Fn(u64, u64, u64) -> u64 + 'static,
    ) {
        self.push(kind, width, text, Expect::Near, eval);
    }

    pub(super) fn f32(&mut self, text: String, eval: impl Fn(f32, f32, f32) -> f32 + 'static) {
        let text = format!("{text} %W, %w0, %w1, %w2");
        self.add(OperandKind::F32, Width::B32, text, move |a, b, c| {
            let [a, b, c] = [a, b, c].map(|v| f32::from_bits(v as u32));
            eval(a, b, c).to_bits().into()
        });
    }

    /// Sets the expectation of the last form.
    pub(super) fn expect(&mut self, expect: Expect) {
        self.0.last_mut().expect("a form was added").expect = expect;
    }

    /// Removes the operands that the last form does not have.
    pub(super) fn operands(&mut self, count: usize) {
        let text = &mut self.0.last_mut().expect("a form was added").text;
        for _ in count..3 {
            text.truncate(text.rfind(',').expect("three operands"));
        }
    }

    pub(super) fn f64(&mut self, text: String, eval: impl Fn(f64, f64, f64) -> f64 + 'static) {
        let text = format!("{text} %D, %d0, %d1, %d2");
        self.add(OperandKind::F64, Width::B64, text, move |a, b, c| {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            eval(a, b, c).to_bits()
        });
    }

    pub(super) fn half(&mut self, kind: OperandKind, text: String, eval: impl Fn(u16, u16, u16) -> u16 + 'static) {
        let text = format!("{text} %H, %h0, %h1, %h2");
        self.add(kind, Width::B16, text, move |a, b, c| {
            eval(a as u16, b as u16, c as u16).into()
        });
    }

    pub(super) fn pair(&mut self, kind: OperandKind, text: String, eval: impl Fn(u32, u32, u32) -> u32 + 'static) {
        let text = format!("{text} %W, %w0, %w1, %w2");
        self.add(kind, Width::B32, text, move |a, b, c| {
            eval(a as u32, b as u32, c as u32).into()
        });
    }

    pub(super) fn w32(&mut self, text: &str, eval: impl Fn(u32, u32, u32) -> u32 + 'static) {
        self.add(OperandKind::Int, Width::B32, text.into(), move |a, b, c| {
            eval(a as u32, b as u32, c as u32).into()
        });
    }

    pub(super) fn d64(&mut self, text: &str, eval: impl Fn(u64, u64, u64) -> u64 + 'static) {
        self.add(OperandKind::Int, Width::B64, text.into(), eval);
    }
}
