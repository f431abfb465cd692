//! Compares an operation on `.f16` or `.bf16` with `rustc_apfloat` for all 2^32 pairs of operands.
//!
//! `cargo run --release -p cuda-driver-soft-engine --example half_pairs -- OPERATION [STEP]`, where OPERATION is
//! `add.f16`, `mul.f16`, `fma.f16`, `add.bf16`, `mul.bf16` or `fma.bf16` (the third operand is computed from the other
//! two). With STEP only every STEP-th first operand is used. All pairs take a few minutes on a few cores.

use cuda_driver_soft_engine::semantics::half::*;
use rustc_apfloat::ieee::{BFloat, Half};
use rustc_apfloat::{Float, Round};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const RN: Round = Round::NearestTiesToEven;

/// The engine's operation and the reference, for operands a, b, c.
type Operation = (fn(u16, u16, u16) -> u16, fn(u16, u16, u16) -> u16);

fn bits<F: Float>(value: F) -> u16 {
    if value.is_nan() {
        NAN_HALF
    } else {
        value.to_bits() as u16
    }
}

fn add<F: Float>(a: u16, b: u16, _: u16) -> u16 {
    bits(F::from_bits(a.into()).add_r(F::from_bits(b.into()), RN).value)
}

fn mul<F: Float>(a: u16, b: u16, _: u16) -> u16 {
    bits(F::from_bits(a.into()).mul_r(F::from_bits(b.into()), RN).value)
}

fn fma<F: Float>(a: u16, b: u16, c: u16) -> u16 {
    let [a, b, c] = [a, b, c].map(|v| F::from_bits(v.into()));
    bits(a.mul_add_r(b, c, RN).value)
}

fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "add.f16" => (|a, b, _| add_f16(a, b, false, false), add::<Half>),
        "mul.f16" => (|a, b, _| mul_f16(a, b, false, false), mul::<Half>),
        "fma.f16" => (|a, b, c| fma_f16(a, b, c, false, false, false, false), fma::<Half>),
        "add.bf16" => (|a, b, _| add_bf16(a, b), add::<BFloat>),
        "mul.bf16" => (|a, b, _| mul_bf16(a, b), mul::<BFloat>),
        "fma.bf16" => (|a, b, c| fma_bf16(a, b, c, false, false), fma::<BFloat>),
        _ => return None,
    })
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let step = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(1usize).max(1);
    let Some((ours, theirs)) = operation(&name) else {
        eprintln!(
            "unknown operation {name:?}; the operations are add.f16, mul.f16, fma.f16, add.bf16, mul.bf16 and fma.bf16"
        );
        return ExitCode::FAILURE;
    };
    let product = if name.ends_with("bf16") {
        mul_bf16
    } else {
        |a, b| mul_f16(a, b, false, false)
    };
    let (next, wrong) = (AtomicUsize::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let a = next.fetch_add(step, Ordering::Relaxed);
                    let Ok(a) = u16::try_from(a) else { return };
                    for b in 0..=u16::MAX {
                        // Some values are near the negated product, where the sum cancels.
                        let c = product(a, b) ^ 0x8000 ^ (a.wrapping_mul(b) >> (b & 15));
                        let (x, y) = (ours(a, b, c), theirs(a, b, c));
                        if x != y && wrong.fetch_add(1, Ordering::Relaxed) < 20 {
                            println!("{name} {a:04x} {b:04x} {c:04x}: {x:04x}, not {y:04x}");
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner();
    println!("{name}: {wrong} wrong of {}", 65_536usize.div_ceil(step) * 65_536);
    if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
