//! Compares the functions with `rustc_apfloat` (IEEE operations), with wide integers, and with results of an H200.

mod approx;
mod bits;
mod cvt;
mod float;
mod half;
mod int;
mod lanes;
mod random;
mod video;

use ptx::ir::Rounding;
use random::Random;

/// The rounding modes of arithmetic.
const MODES: [Rounding; 4] = [Rounding::Rn, Rounding::Rz, Rounding::Rm, Rounding::Rp];
