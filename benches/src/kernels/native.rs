//! Native references: the computation of each kernel, in plain Rust for one core.

use super::buffer::Buffer;

/// Returns true if this CPU has the instructions for which the wide versions of the references are compiled.
#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Defines references. On x86-64, each is compiled twice, once with AVX2 and FMA, which the engine's machine code uses,
/// too. That version runs if the CPU has them.
macro_rules! native {
    ($($name:ident($buffers:ident) $body:block)*) => { $(
        pub(super) fn $name($buffers: &mut [Buffer]) {
            #[inline(always)]
            fn plain($buffers: &mut [Buffer]) $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
            fn wide($buffers: &mut [Buffer]) { plain($buffers) }
            #[cfg(target_arch = "x86_64")]
            if is_wide() {
                // SAFETY: the CPU has AVX2 and FMA, and every such CPU has the other instructions.
                return unsafe { wide($buffers) };
            }
            plain($buffers)
        }
    )* };
}

/// Side of images, and length of the rows of `softmax`.
pub(super) const SIDE: usize = 1024;
/// Side of matrices.
pub(super) const MATRIX: usize = 64;
/// Number of bodies in `bodies`.
pub(super) const BODIES: usize = 512;
/// Number of rounds of `hash`.
pub(super) const ROUNDS: u32 = 64;

native! {
    vector_add(buffers) {
        let [a, b, c] = buffers else { return };
        for ((c, a), b) in c.floats_mut().iter_mut().zip(a.floats()).zip(b.floats()) {
            *c = a + b;
        }
    }

    saxpy(buffers) {
        let [x, y] = buffers else { return };
        for (y, x) in y.floats_mut().iter_mut().zip(x.floats()) {
            *y = 1.5f32.mul_add(*x, *y);
        }
    }

    reduce(buffers) {
        let [input, out] = buffers else { return };
        for (part, out) in input.floats().chunks_exact(256).zip(out.floats_mut()) {
            let mut sums = [0f32; 256];
            sums.copy_from_slice(part);
            let mut step = 128;
            while step > 0 {
                let (low, high) = sums.split_at_mut(step);
                for (a, b) in low.iter_mut().zip(high) {
                    *a += *b;
                }
                step /= 2;
            }
            *out = sums[0];
        }
    }

    matmul(buffers) {
        let [a, b, c] = buffers else { return };
        let (a, b) = (a.floats(), b.floats());
        for (row, c) in a.chunks_exact(MATRIX).zip(c.floats_mut().chunks_exact_mut(MATRIX)) {
            c.fill(0.0);
            for (a, b) in row.iter().zip(b.chunks_exact(MATRIX)) {
                for (c, b) in c.iter_mut().zip(b) {
                    *c = a.mul_add(*b, *c);
                }
            }
        }
    }

    stencil(buffers) {
        let [input, out] = buffers else { return };
        let (input, out) = (input.floats(), out.floats_mut());
        out[..SIDE].copy_from_slice(&input[..SIDE]);
        out[SIDE * (SIDE - 1)..].copy_from_slice(&input[SIDE * (SIDE - 1)..]);
        for y in 1..SIDE - 1 {
            let row = |y: usize| &input[y * SIDE..(y + 1) * SIDE];
            let (above, here, below) = (row(y - 1), row(y), row(y + 1));
            let out = &mut out[y * SIDE..(y + 1) * SIDE];
            (out[0], out[SIDE - 1]) = (here[0], here[SIDE - 1]);
            for x in 1..SIDE - 1 {
                let around = here[x - 1] + here[x + 1] + above[x] + below[x];
                out[x] = here[x].mul_add(0.5, around * 0.125);
            }
        }
    }

    transpose(buffers) {
        let [input, out] = buffers else { return };
        let (input, out) = (input.words(), out.words_mut());
        for tile in 0..(SIDE / 16) * (SIDE / 16) {
            let (ty, tx) = (tile / (SIDE / 16) * 16, tile % (SIDE / 16) * 16);
            for y in ty..ty + 16 {
                for x in tx..tx + 16 {
                    out[x * SIDE + y] = input[y * SIDE + x];
                }
            }
        }
    }

    blur(buffers) {
        let [input, out] = buffers else { return };
        let (input, out) = (input.bytes(), out.bytes_mut());
        for y in 0..SIDE {
            let row = |y: usize| &input[y * SIDE..(y + 1) * SIDE];
            let rows = [row(y.saturating_sub(1)), row(y), row((y + 1).min(SIDE - 1))];
            let out = &mut out[y * SIDE..(y + 1) * SIDE];
            let mean = |xs: [usize; 3]| {
                let sum: u32 = rows.iter().map(|row| xs.iter().map(|x| u32::from(row[*x])).sum::<u32>()).sum();
                (sum / 9) as u8
            };
            (out[0], out[SIDE - 1]) = (mean([0, 0, 1]), mean([SIDE - 2, SIDE - 1, SIDE - 1]));
            for (x, out) in (1..SIDE - 1).zip(&mut out[1..]) {
                *out = mean([x - 1, x, x + 1]);
            }
        }
    }

    grey(buffers) {
        let [input, out] = buffers else { return };
        for (c, out) in input.bytes().chunks_exact(4).zip(out.bytes_mut()) {
            let [r, g, b] = [c[0], c[1], c[2]].map(u32::from);
            *out = ((77 * r + 150 * g + 29 * b) >> 8) as u8;
        }
    }

    scale_four(buffers) {
        let [input, out] = buffers else { return };
        for (out, v) in out.floats_mut().iter_mut().zip(input.floats()) {
            *out = 2.0 * v;
        }
    }

    histogram(buffers) {
        let [input, counts] = buffers else { return };
        let counts = counts.words_mut();
        for v in input.bytes() {
            counts[usize::from(*v)] = counts[usize::from(*v)].wrapping_add(1);
        }
    }

    scan(buffers) {
        let [input, out] = buffers else { return };
        for (input, out) in input.words().chunks_exact(256).zip(out.words_mut().chunks_exact_mut(256)) {
            let mut sum = 0u32;
            for (v, out) in input.iter().zip(out) {
                sum = sum.wrapping_add(*v);
                *out = sum;
            }
        }
    }

    softmax(buffers) {
        let [input, out] = buffers else { return };
        for (row, out) in input.floats().chunks_exact(SIDE).zip(out.floats_mut().chunks_exact_mut(SIDE)) {
            let most = row.iter().copied().fold(f32::MIN, f32::max);
            let mut sum = 0.0;
            for (v, out) in row.iter().zip(&mut *out) {
                *out = (v - most).exp();
                sum += *out;
            }
            for out in out {
                *out /= sum;
            }
        }
    }

    bodies(buffers) {
        let [input, out] = buffers else { return };
        let input = input.floats();
        // Groups of 8 bodies, so that the compiler vectorises the loops over `i`.
        for (me, out) in input.chunks_exact(32).zip(out.floats_mut().chunks_exact_mut(32)) {
            let me: [[f32; 8]; 3] = std::array::from_fn(|axis| std::array::from_fn(|i| me[4 * i + axis]));
            let mut sum = [[0f32; 8]; 3];
            for body in input.chunks_exact(4) {
                for i in 0..8 {
                    let d = [body[0] - me[0][i], body[1] - me[1][i], body[2] - me[2][i]];
                    let square = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2].mul_add(d[2], 0.01)));
                    let r = 1.0 / square.sqrt();
                    let s = body[3] * r * r * r;
                    for (sum, d) in sum.iter_mut().zip(d) {
                        sum[i] = d.mul_add(s, sum[i]);
                    }
                }
            }
            for (i, out) in out.chunks_exact_mut(4).enumerate() {
                out.copy_from_slice(&[sum[0][i], sum[1][i], sum[2][i], 0.0]);
            }
        }
    }

    hash(buffers) {
        let [out] = buffers else { return };
        for (chunk, out) in (0u32..).zip(out.words_mut().chunks_exact_mut(32)) {
            let mut s: [u32; 32] = std::array::from_fn(|i| {
                (32 * chunk + i as u32).wrapping_mul(747_796_405).wrapping_add(2_891_336_453)
            });
            let mut h = [2_166_136_261u32; 32];
            for _ in 0..ROUNDS {
                for (s, h) in s.iter_mut().zip(&mut h) {
                    *s ^= *s << 13;
                    *s ^= *s >> 17;
                    *s ^= *s << 5;
                    *h = (*h ^ (*s & 0xff)).wrapping_mul(16_777_619);
                    *h = h.rotate_left(7).wrapping_add(*s >> 8);
                }
            }
            out.copy_from_slice(&h);
        }
    }

    collatz(buffers) {
        let [input, out] = buffers else { return };
        for (x, out) in input.words().iter().zip(out.words_mut()) {
            let (mut x, mut steps) = (u64::from(*x), 0);
            while x > 1 && steps < 10_000 {
                x = if x & 1 != 0 { x.wrapping_mul(3).wrapping_add(1) } else { x >> 1 };
                steps += 1;
            }
            *out = steps;
        }
    }

    nested(buffers) {
        let [input, out] = buffers else { return };
        for (x, out) in input.words().iter().zip(out.words_mut()) {
            let (x, mut r) = (*x as i32, 0i32);
            if x & 1 != 0 {
                r += 1;
                if x & 2 != 0 {
                    r += 10;
                    if x & 4 != 0 {
                        for j in 0..x & 15 {
                            r = r.wrapping_add(x ^ j);
                        }
                    } else {
                        r = r.wrapping_sub(x);
                    }
                } else if x & 8 != 0 {
                    r ^= 0x55;
                }
                r = r.wrapping_mul(3);
            } else {
                while r < x & 31 {
                    r += 3;
                }
            }
            *out = r as u32;
        }
    }

    convolution(buffers) {
        let [input, weights, out] = buffers else { return };
        let (input, weights, out) = (input.floats(), weights.floats(), out.floats_mut());
        for y in 0..SIDE - 4 {
            let out = &mut out[y * SIDE..y * SIDE + SIDE - 4];
            out.fill(0.0);
            for (dy, weights) in weights.chunks_exact(5).enumerate() {
                for (dx, weight) in weights.iter().enumerate() {
                    let from = &input[(y + dy) * SIDE + dx..][..SIDE - 4];
                    for (out, v) in out.iter_mut().zip(from) {
                        *out = v.mul_add(*weight, *out);
                    }
                }
            }
        }
    }

    fft_step(buffers) {
        let [input, roots, out] = buffers else { return };
        let (input, roots, out) = (input.floats(), roots.floats(), out.floats_mut());
        let (low, high) = input.split_at(input.len() / 2);
        let (count, half) = (low.len() / 2, FFT_HALF);
        for i in 0..count {
            let k = i & (half - 1);
            let (a, b) = (&low[2 * i..2 * i + 2], &high[2 * i..2 * i + 2]);
            let r = &roots[2 * k * (count / half)..][..2];
            let re = b[0].mul_add(r[0], -(b[1] * r[1]));
            let im = b[0].mul_add(r[1], b[1] * r[0]);
            let to = 2 * (2 * i - k);
            out[to..to + 2].copy_from_slice(&[a[0] + re, a[1] + im]);
            out[to + 2 * half..to + 2 * half + 2].copy_from_slice(&[a[0] - re, a[1] - im]);
        }
    }

    sort(buffers) {
        let [input, out] = buffers else { return };
        for (input, out) in input.words().chunks_exact(256).zip(out.words_mut().chunks_exact_mut(256)) {
            out.copy_from_slice(input);
            out.sort_unstable();
        }
    }

    big_product(buffers) {
        let [a, b, out] = buffers else { return };
        let (a, b, out) = (a.words(), b.words(), out.words_mut());
        let n = a.len() / 8;
        for i in 0..n {
            let mut r = [0u32; 16];
            for k in 0..8 {
                let mut carry = 0u64;
                for j in 0..8 {
                    let sum = u64::from(a[j * n + i]) * u64::from(b[k * n + i]) + u64::from(r[k + j]) + carry;
                    r[k + j] = sum as u32;
                    carry = sum >> 32;
                }
                r[k + 8] = carry as u32;
            }
            for (j, r) in r.into_iter().enumerate() {
                out[j * n + i] = r;
            }
        }
    }
}

/// The parameter `half` of `fft_step`, one step of a Fourier transform.
pub(super) const FFT_HALF: usize = 64;
