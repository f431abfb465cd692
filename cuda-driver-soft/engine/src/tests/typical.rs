//! Kernels as users write them, in blocks of many shapes. Results are compared with ones computed here, and must be the
//! same bits interpreted and compiled.

use super::{Arg, Bench, on_each_isa};
use crate::{Engine, Isa};

const ENGINES: [Engine; 3] = [
    Engine::Interpreter,
    Engine::Compiled { lanes: 32 },
    Engine::Compiled { lanes: 8 },
];

/// A launch and its output.
struct Trial<'a> {
    module: &'a str,
    kernel: &'a str,
    grid: (u32, u32),
    block: (u32, u32),
    input: &'a [u8],
    /// Size of the output in bytes. All bytes are zero at first.
    output: usize,
    /// Arguments after the two pointers.
    rest: &'a [Arg],
}

/// Runs a launch on each instruction set, interpreted and compiled. All outputs must be the same bytes.
fn run(trial: &Trial<'_>) -> Vec<u8> {
    let mut found: Option<Vec<u8>> = None;
    on_each_isa(|isa: Isa| {
        let mut bench = Bench::file(trial.module, isa);
        let input = bench.put(trial.input, |b| [b]);
        for engine in ENGINES {
            let output = bench.put(&vec![0u8; trial.output], |b| [b]);
            let mut args = vec![Arg::U64(input), Arg::U64(output)];
            args.extend(trial.rest.iter().copied());
            let mut launch = bench.launch(trial.kernel, trial.grid, trial.block, &args);
            launch.options.engine = engine;
            let execution = Bench::run(launch);
            assert_eq!(execution.fault().map(|f| f.to_string()), None);
            let got = bench.get(output, trial.output, |[b]: [u8; 1]| b);
            let first = found.get_or_insert_with(|| got.clone());
            let differs = got.iter().zip(first.iter()).position(|(a, b)| a != b);
            let Trial { kernel, block, .. } = trial;
            assert_eq!(differs, None, "{kernel} {block:?} {isa:?} {engine:?}");
        }
    });
    found.expect("this CPU has an instruction set")
}

fn bytes<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    values.into_iter().flatten().collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    words(bytes).into_iter().map(f32::from_bits).collect()
}

/// Returns pseudo-random numbers.
fn random(n: usize) -> Vec<u32> {
    (0..n as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i % 31) ^ 0x5bd1_e995)
        .collect()
}

/// Returns pseudo-random floats from 0 to below 1.
fn fractions(n: usize) -> Vec<f32> {
    let all = random(n).into_iter();
    all.map(|v| (v >> 8) as f32 / (1 << 24) as f32).collect()
}

const SHAPES: [(u32, u32); 7] = [(16, 16), (32, 8), (8, 8), (4, 32), (1, 64), (24, 5), (64, 2)];

/// Returns the grid of blocks that covers `size` elements.
fn over(size: (usize, usize), block: (u32, u32)) -> (u32, u32) {
    let across = (size.0 as u32).div_ceil(block.0);
    (across, (size.1 as u32).div_ceil(block.1))
}

#[test]
fn a_stencil() {
    let (w, h) = (75, 50);
    let grid = fractions(w * h);
    let input = bytes(grid.iter().map(|v| v.to_le_bytes()));
    for block in SHAPES {
        let got = floats(&run(&Trial {
            module: "typical",
            kernel: "stencil",
            grid: over((w, h), block),
            block,
            input: &input,
            output: 4 * w * h,
            rest: &[Arg::U32(w as u32), Arg::U32(h as u32)],
        }));
        for (i, got) in got.iter().enumerate() {
            let (x, y) = (i % w, i / w);
            let rim = x == 0 || y == 0 || x == w - 1 || y == h - 1;
            let around = || grid[i - 1] + grid[i + 1] + grid[i - w] + grid[i + w];
            let wanted = if rim { grid[i] } else { 0.5 * grid[i] + 0.125 * around() };
            assert!((got - wanted).abs() < 1e-6, "{block:?} {x} {y}: {got} {wanted}");
        }
    }
}

#[test]
fn transposes() {
    let (w, h) = (64, 96);
    let input = random(w * h);
    for (kernel, block, grid) in [("transpose", (16, 16), (4, 6)), ("transpose_rows", (32, 8), (2, 3))] {
        let got = words(&run(&Trial {
            module: "typical",
            kernel,
            grid,
            block,
            input: &bytes(input.iter().map(|v| v.to_le_bytes())),
            output: 4 * w * h,
            rest: &[Arg::U32(w as u32), Arg::U32(h as u32)],
        }));
        assert!((0..w * h).all(|i| got[i] == input[i % h * w + i / h]), "{kernel}");
    }
}

#[test]
fn image_filters() {
    let (w, h) = (77, 41);
    let input: Vec<u8> = random(w * h).into_iter().map(|v| v as u8).collect();
    for block in SHAPES {
        let got = run(&Trial {
            module: "typical",
            kernel: "blur",
            grid: over((w, h), block),
            block,
            input: &input,
            output: w * h,
            rest: &[Arg::U32(w as u32), Arg::U32(h as u32)],
        });
        for (i, got) in got.iter().enumerate() {
            let (x, y) = (i % w, i / w);
            let mut sum = 0;
            for y in [y.saturating_sub(1), y, (y + 1).min(h - 1)] {
                for x in [x.saturating_sub(1), x, (x + 1).min(w - 1)] {
                    sum += u32::from(input[y * w + x]);
                }
            }
            assert_eq!(u32::from(*got), sum / 9, "{block:?} {x} {y}");
        }
    }
    let n = 1000;
    let input: Vec<u8> = random(n).into_iter().flat_map(u32::to_le_bytes).collect();
    let got = run(&Trial {
        module: "typical",
        kernel: "grey",
        grid: (4, 1),
        block: (256, 1),
        input: &input,
        output: n,
        rest: &[Arg::U32(n as u32)],
    });
    for (i, c) in input.chunks_exact(4).enumerate() {
        let [r, g, b] = [c[0], c[1], c[2]].map(u32::from);
        assert_eq!(u32::from(got[i]), (77 * r + 150 * g + 29 * b) >> 8, "{i}");
    }
}

#[test]
fn vectors_of_four() {
    let n = 777;
    let input = fractions(4 * n);
    let got = floats(&run(&Trial {
        module: "typical",
        kernel: "scale_four",
        grid: (2, 1),
        block: (96, 1),
        input: &bytes(input.iter().map(|v| v.to_le_bytes())),
        output: 16 * n,
        rest: &[Arg::U32(n as u32)],
    }));
    assert!((0..4 * n).all(|i| got[i] == 2.0 * input[i]));
}

#[test]
fn histograms() {
    let n = 10_001;
    let input: Vec<u8> = random(n).into_iter().map(|v| (v % 200) as u8).collect();
    let got = words(&run(&Trial {
        module: "typical",
        kernel: "histogram",
        grid: (5, 1),
        block: (256, 1),
        input: &input,
        output: 4 * 256,
        rest: &[Arg::U32(n as u32)],
    }));
    for (v, count) in (0..=255).zip(got) {
        assert_eq!(input.iter().filter(|i| **i == v).count(), count as usize);
    }
}

#[test]
fn prefix_sums() {
    for threads in [32, 64, 256, 1024] {
        let input = random(2 * threads);
        let got = words(&run(&Trial {
            module: "typical",
            kernel: "scan",
            grid: (2, 1),
            block: (threads as u32, 1),
            input: &bytes(input.iter().map(|v| v.to_le_bytes())),
            output: 8 * threads,
            rest: &[],
        }));
        for (input, got) in input.chunks(threads).zip(got.chunks(threads)) {
            let mut sum = 0u32;
            for (input, got) in input.iter().zip(got) {
                sum = sum.wrapping_add(*input);
                assert_eq!(*got, sum);
            }
        }
    }
}

#[test]
fn a_softmax() {
    let (rows, columns) = (3, 333);
    let input = fractions(rows * columns);
    for threads in [32, 96, 256] {
        let got = floats(&run(&Trial {
            module: "typical",
            kernel: "softmax",
            grid: (rows as u32, 1),
            block: (threads, 1),
            input: &bytes(input.iter().map(|v| (8.0 * v).to_le_bytes())),
            output: 4 * rows * columns,
            rest: &[Arg::U32(columns as u32)],
        }));
        for (input, got) in input.chunks(columns).zip(got.chunks(columns)) {
            let powers: Vec<f64> = input.iter().map(|v| f64::from(8.0 * v).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for (power, got) in powers.iter().zip(got) {
                assert!((f64::from(*got) * sum / power - 1.0).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn n_bodies() {
    let n = 256;
    let input = fractions(4 * n);
    let got = floats(&run(&Trial {
        module: "typical",
        kernel: "bodies",
        grid: (2, 1),
        block: (128, 1),
        input: &bytes(input.iter().map(|v| v.to_le_bytes())),
        output: 16 * n,
        rest: &[Arg::U32(n as u32)],
    }));
    for (me, got) in input.chunks(4).zip(got.chunks(4)) {
        let mut sum = [0f64; 3];
        for body in input.chunks(4) {
            let d: Vec<f64> = (0..3).map(|k| f64::from(body[k]) - f64::from(me[k])).collect();
            let r = (d.iter().map(|d| d * d).sum::<f64>() + 0.01).sqrt().recip();
            for k in 0..3 {
                sum[k] += f64::from(body[3]) * r * r * r * d[k];
            }
        }
        for k in 0..3 {
            assert!((f64::from(got[k]) - sum[k]).abs() < 1e-3 * (1.0 + sum[k].abs()));
        }
    }
}

#[test]
fn a_hash() {
    let (threads, rounds) = (96u32, 20);
    let mut results = Vec::new();
    on_each_isa(|isa| {
        let mut bench = Bench::file("typical", isa);
        for engine in ENGINES {
            let out = bench.bytes(4 * u64::from(threads));
            let mut launch = bench.launch("hash", 3, 32, &[Arg::U64(out), Arg::U32(rounds)]);
            launch.options.engine = engine;
            assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
            let got = bench.get(out, threads as usize, u32::from_le_bytes);
            results.extend((0..).zip(got).map(|(i, got)| (i, got, engine)));
        }
    });
    for (i, got, engine) in results {
        let (mut s, mut h) = (
            747_796_405u32.wrapping_mul(i).wrapping_add(2_891_336_453),
            2_166_136_261u32,
        );
        for _ in 0..rounds {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            h = (h ^ (s & 0xff)).wrapping_mul(16_777_619);
            h = h.rotate_left(7).wrapping_add(s >> 8);
        }
        assert_eq!(got, h, "thread {i}, {engine:?}");
    }
}

/// Returns the bytes of a small integer as f16.
fn half(v: i32) -> [u8; 2] {
    let bits = match v.unsigned_abs() {
        0 => 0,
        size => {
            let exponent = size.ilog2();
            let mantissa = (size << (10 - exponent)) & 0x3ff;
            (u32::from(v < 0) << 15 | (exponent + 15) << 10 | mantissa) as u16
        }
    };
    bits.to_le_bytes()
}

#[test]
fn a_product_by_tensor_cores() {
    let (m, n, k) = (64usize, 32, 48);
    // Small integers, so that all sums are exact.
    let whole = |v: u32| (v % 9) as i32 - 4;
    let a: Vec<i32> = random(m * k).into_iter().map(whole).collect();
    let b: Vec<i32> = random(k * n + 7)[7..].iter().copied().map(whole).collect();
    for engine in ENGINES {
        let mut bench = Bench::file("typical.sm_80", Isa::best());
        let da = bench.put(&a, half);
        let db = bench.put(&b, half);
        let dc = bench.bytes(4 * (m * n) as u64);
        let sizes = [m, n, k].map(|v| Arg::U32(v as u32));
        let args: Vec<Arg> = [da, db, dc].map(Arg::U64).into_iter().chain(sizes).collect();
        let mut launch = bench.launch("gemm_half", ((n / 16) as u32, (m / 32) as u32), 64, &args);
        launch.options.engine = engine;
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
        let c = bench.get(dc, m * n, f32::from_le_bytes);
        for (i, c) in c.into_iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let sum: i32 = (0..k).map(|j| a[row * k + j] * b[j * n + column]).sum();
            assert_eq!(c, sum as f32, "{row} {column}");
        }
    }
}
