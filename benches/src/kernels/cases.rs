//! The kernels that are measured, with their launches and native references.

use super::buffer::Buffer;
use super::native::{self, BODIES, FFT_HALF, MATRIX, ROUNDS, SIDE};

/// An argument of a launch.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    /// The address of the buffer with this number.
    Buffer(usize),
    U32(u32),
    U64(u64),
    F32(f32),
}

/// A kernel with a launch and the same work in Rust.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The file of the kernel in `tests/kernels/generated/`, without `.ptx`.
    pub(super) module: &'static str,
    pub(super) kernel: &'static str,
    pub(super) grid: [u32; 2],
    pub(super) block: [u32; 2],
    pub(super) buffers: Vec<Buffer>,
    pub(super) arguments: Vec<Argument>,
    pub(super) native: fn(&mut [Buffer]),
    /// The largest permitted difference between the results: see [`Buffer::difference`]. With 0, all values must be
    /// equal.
    pub(super) tolerance: f64,
}

/// Returns all cases.
pub(super) fn all() -> Vec<Case> {
    use Argument::{Buffer as At, F32, U32, U64};
    const N: usize = 1 << 20;
    let n = N as u32;
    let side = SIDE as u32;
    let case = |name, module, kernel, shape: ([u32; 2], [u32; 2]), buffers, arguments, native| Case {
        name,
        module,
        kernel,
        grid: shape.0,
        block: shape.1,
        buffers,
        arguments,
        native,
        tolerance: 0.0,
    };
    let line = ([n / 256, 1], [256, 1]);
    let square = ([side / 16, side / 16], [16, 16]);
    let flat = ([side / 32, side / 8], [32, 8]);
    let divergent = ([64, 1], [256, 1]);
    let floats = Buffer::fractions;
    let image = || vec![Buffer::random_bytes(N), Buffer::zero_bytes(N)];
    let field = || vec![floats(N), Buffer::zero_floats(N)];
    let sides = vec![At(0), At(1), U32(side), U32(side)];
    let numbers = || Buffer::Words((1..=1 << 14).collect());
    let small = vec![At(0), At(1), U32(1 << 14)];
    let weights = floats(25);
    let count = 1 << 15;
    let mut all = vec![
        case(
            "vector_add",
            "vector_add",
            "vector_add",
            line,
            vec![floats(N), floats(N), Buffer::zero_floats(N)],
            vec![At(0), At(1), At(2), U32(n)],
            native::vector_add,
        ),
        case(
            "saxpy",
            "saxpy",
            "saxpy",
            line,
            vec![floats(N), floats(N)],
            vec![F32(1.5), At(0), At(1), U64(N as u64)],
            native::saxpy,
        ),
        case(
            "reduce",
            "reduce",
            "reduce_sum_f32",
            line,
            vec![floats(N), Buffer::zero_floats(N / 256)],
            vec![At(0), At(1), U32(n)],
            native::reduce,
        ),
        case(
            "matmul",
            "matmul",
            "matmul_f32",
            ([4, 4], [16, 16]),
            vec![
                floats(MATRIX * MATRIX),
                floats(MATRIX * MATRIX),
                Buffer::zero_floats(MATRIX * MATRIX),
            ],
            [vec![At(0), At(1), At(2)], vec![U32(MATRIX as u32); 3]].concat(),
            native::matmul,
        ),
        case(
            "stencil_16x16",
            "typical",
            "stencil",
            square,
            field(),
            sides.clone(),
            native::stencil,
        ),
        case(
            "stencil_32x8",
            "typical",
            "stencil",
            flat,
            field(),
            sides.clone(),
            native::stencil,
        ),
        case(
            "transpose",
            "typical",
            "transpose",
            square,
            vec![Buffer::random(N), Buffer::zero_words(N)],
            sides.clone(),
            native::transpose,
        ),
        case(
            "blur_16x16",
            "typical",
            "blur",
            square,
            image(),
            sides.clone(),
            native::blur,
        ),
        case(
            "blur_32x8",
            "typical",
            "blur",
            flat,
            image(),
            sides.clone(),
            native::blur,
        ),
        case(
            "grey",
            "typical",
            "grey",
            line,
            vec![Buffer::random_bytes(4 * N), Buffer::zero_bytes(N)],
            vec![At(0), At(1), U32(n)],
            native::grey,
        ),
        case(
            "scale_four",
            "typical",
            "scale_four",
            ([256, 1], [256, 1]),
            field(),
            vec![At(0), At(1), U32(n / 4)],
            native::scale_four,
        ),
        case(
            "histogram",
            "typical",
            "histogram",
            ([64, 1], [256, 1]),
            vec![Buffer::random_bytes(N), Buffer::zero_words(256)],
            vec![At(0), At(1), U32(n)],
            native::histogram,
        ),
        case(
            "scan",
            "typical",
            "scan",
            line,
            vec![Buffer::random(N), Buffer::zero_words(N)],
            vec![At(0), At(1)],
            native::scan,
        ),
        case(
            "softmax",
            "typical",
            "softmax",
            ([256, 1], [256, 1]),
            vec![floats(256 * SIDE), Buffer::zero_floats(256 * SIDE)],
            vec![At(0), At(1), U32(side)],
            native::softmax,
        ),
        case(
            "bodies",
            "typical",
            "bodies",
            ([4, 1], [128, 1]),
            vec![floats(4 * BODIES), Buffer::zero_floats(4 * BODIES)],
            vec![At(0), At(1), U32(BODIES as u32)],
            native::bodies,
        ),
        case(
            "hash",
            "typical",
            "hash",
            ([64, 1], [256, 1]),
            vec![Buffer::zero_words(1 << 14)],
            vec![At(0), U32(ROUNDS)],
            native::hash,
        ),
        case(
            "collatz",
            "divergent",
            "collatz",
            divergent,
            vec![numbers(), Buffer::zero_words(1 << 14)],
            small.clone(),
            native::collatz,
        ),
        case(
            "nested",
            "divergent",
            "nested",
            divergent,
            vec![numbers(), Buffer::zero_words(1 << 14)],
            small,
            native::nested,
        ),
        case(
            "convolution",
            "numeric",
            "convolution",
            flat,
            vec![floats(N), weights, Buffer::zero_floats(N)],
            vec![At(0), At(1), At(2), U32(side), U32(side)],
            native::convolution,
        ),
        case(
            "fft_step",
            "numeric",
            "fft_step",
            ([n / 1024, 1], [256, 1]),
            vec![floats(N), floats(N / 2), Buffer::zero_floats(N)],
            vec![At(0), At(1), At(2), U32(n / 2), U32(FFT_HALF as u32)],
            native::fft_step,
        ),
        case(
            "sort",
            "numeric",
            "sort",
            ([1024, 1], [256, 1]),
            vec![Buffer::random(1 << 18), Buffer::zero_words(1 << 18)],
            vec![At(0), At(1)],
            native::sort,
        ),
        case(
            "big_product",
            "numeric",
            "big_product",
            (([count / 256, 1]), [256, 1]),
            vec![
                Buffer::random(8 * count as usize),
                Buffer::random(8 * count as usize),
                Buffer::zero_words(16 * count as usize),
            ],
            vec![At(0), At(1), At(2), U32(count)],
            native::big_product,
        ),
    ];
    for case in &mut all {
        // These kernels use approximate functions: `softmax` powers of two, and `bodies` reciprocals of square roots.
        case.tolerance = match case.name {
            "softmax" => 1e-6,
            "bodies" => 1e-4,
            _ => 0.0,
        };
    }
    all
}
