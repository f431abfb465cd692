//! Tests of `mma` forms for which sm_90 has no instruction: 8-bit floating-point numbers, and shape m8n8k4 of f16
//! numbers. The driver's compiler replaces them with other instructions, which determine where sums are rounded.

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::values::{Random, fma32};
use crate::common::{architecture, needs};

/// Returns a kernel in which each lane reads its registers of A, B and C, and writes those of D. The last argument is
/// the number of registers of each matrix in a lane.
fn kernel(name: &str, opcode: &str, [a, b, c, d]: [usize; 4]) -> String {
    let list = |letter: char, count: usize| {
        let all: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    let mut text = format!(
        ".visible .entry {name}(.param .u64 in, .param .u64 out) {{\n\
        .reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %r<3>; .reg .b64 %rd<6>;\n\
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x;\n\
        mad.wide.u32 %rd3, %r1, {}, %rd1; mad.wide.u32 %rd4, %r1, {}, %rd2;\n",
        4 * (a + b + c),
        4 * d
    );
    let registers = [('a', a), ('b', b), ('c', c)].into_iter();
    let registers = registers.flat_map(|(letter, count)| (0..count).map(move |i| (letter, i)));
    for (at, (letter, i)) in registers.enumerate() {
        text += &format!("ld.global.b32 %{letter}{i}, [%rd3+{}];\n", 4 * at);
    }
    let lists = [list('d', d), list('a', a), list('b', b), list('c', c)].join(", ");
    text += &format!("mma.sync.aligned.{opcode} {lists};\n");
    for i in 0..d {
        text += &format!("st.global.b32 [%rd4+{}], %d{i};\n", 4 * i);
    }
    text + "ret; }\n"
}

fn run(gpu: &Gpu, function: cuda_driver::sys::CUfunction, fragments: &[Vec<u32>], results: usize) -> Vec<u32> {
    let input = gpu.upload(&fragments.concat());
    let out = gpu.alloc(32 * results * 4);
    gpu.launch(function, [1; 3], [32, 1, 1], 0, &mut arguments![input, out]);
    gpu.read(out, 32 * results)
}

/// Returns the bits in f16 of zero, or of a number that is exact and normal in f16.
fn f16(value: f32) -> u32 {
    let bits = value.to_bits();
    if value == 0.0 {
        return bits >> 16;
    }
    let exponent = (bits >> 23 & 0xff) + 15 - 127;
    bits >> 16 & 0x8000 | exponent << 10 | bits >> 13 & 0x3ff
}

/// Rounds to the nearest f16, ties to even. The number must be in the range of normal numbers of f16.
fn rounded(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits((bits + 0xfff + (bits >> 13 & 1)) & !0x1fff)
}

/// Returns the bits of a random number in an 8-bit type, and its value: of either sign, with a magnitude from 1 to 15.
fn small(random: &mut Random, e5m2: bool) -> (u32, f32) {
    let (fraction, bias) = if e5m2 { (2, 15) } else { (3, 7) };
    let power = random.below(4);
    let bits = random.below(1 << fraction);
    let sign = random.below(2);
    let magnitude = (1.0 + bits as f32 / (1 << fraction) as f32) * (1 << power) as f32;
    (
        sign << 7 | (power + bias) << fraction | bits,
        if sign == 1 { -magnitude } else { magnitude },
    )
}

#[test]
fn products_of_8_bit_numbers() {
    if architecture() < 89 {
        return needs("a device of sm_89 or later, which has products of 8-bit floating-point numbers");
    }
    let gpu = Gpu::new();
    let mut random = Random::new(5);
    let mut text = ".version 8.7\n.target sm_89\n.address_size 64\n".to_owned();
    let mut cases = Vec::new();
    for k in [16_usize, 32] {
        for types in ["e4m3.e4m3", "e4m3.e5m2", "e5m2.e4m3", "e5m2.e5m2"] {
            for sum in ["f32", "f16"] {
                let results = if sum == "f32" { 4 } else { 2 };
                let name = format!("k{k}_{}_{sum}", types.replace('.', "_"));
                let opcode = format!("m16n8k{k}.row.col.{sum}.{types}.{sum}");
                text += &kernel(&name, &opcode, [k / 8, k / 16, results, results]);
                cases.push((name, k, types, sum == "f32"));
            }
        }
    }
    let module = gpu.text(&text);
    for (name, k, types, single) in cases {
        let e5m2 = [types.starts_with("e5m2"), types.ends_with("e5m2")];
        let a: Vec<(u32, f32)> = (0..16 * k).map(|_| small(&mut random, e5m2[0])).collect();
        let b: Vec<(u32, f32)> = (0..8 * k).map(|_| small(&mut random, e5m2[1])).collect();
        // These fractions have so many bits that the sum with the products is rounded.
        let c: Vec<f32> = (0..128)
            .map(|_| match single {
                true => f32::from_bits(0x3f80_0000 | random.below(1 << 23)),
                false => rounded(1.0 + random.below(1024) as f32 / 1024.0),
            })
            .collect();
        let fragments: Vec<Vec<u32>> = (0..32)
            .map(|lane: usize| {
                let (group, thread) = (lane / 4, lane % 4);
                let mut words = Vec::new();
                for r in 0..k / 8 {
                    let at = |e: usize| (group + r % 2 * 8) * k + r / 2 * 16 + thread * 4 + e;
                    words.push((0..4).fold(0, |word, e| word | a[at(e)].0 << (8 * e)));
                }
                for r in 0..k / 16 {
                    let at = |e: usize| group * k + r * 16 + thread * 4 + e;
                    words.push((0..4).fold(0, |word, e| word | b[at(e)].0 << (8 * e)));
                }
                for half in 0..2 {
                    let at = (group + 8 * half) * 8 + thread * 2;
                    match single {
                        true => words.extend([c[at].to_bits(), c[at + 1].to_bits()]),
                        false => words.push(f16(c[at]) | f16(c[at + 1]) << 16),
                    }
                }
                words
            })
            .collect();
        let function = gpu.function(module, &name);
        let got = run(&gpu, function, &fragments, if single { 4 } else { 2 });
        let element = |row: usize, column: usize| {
            let products = |upper: usize| -> f32 {
                let chosen = (0..k).filter(|x| x % 4 / 2 == upper);
                chosen.map(|x| a[row * k + x].1 * b[column * k + x].1).sum()
            };
            // Sums of products are exact in f32. In f16, the sum is rounded after the first two of every four columns
            // of A, after the other two, and after the addition of C.
            match single {
                true => (products(0) + products(1)) + c[row * 8 + column],
                false => {
                    let sum = rounded(rounded(products(0)) + products(1));
                    rounded(sum + c[row * 8 + column])
                }
            }
        };
        for lane in 0..32 {
            for half in 0..2 {
                let (row, column) = (lane / 4 + 8 * half, lane % 4 * 2);
                let want = [element(row, column), element(row, column + 1)];
                let got = match single {
                    true => [got[lane * 4 + 2 * half], got[lane * 4 + 2 * half + 1]],
                    false => [got[lane * 2 + half] & 0xffff, got[lane * 2 + half] >> 16],
                };
                let want = want.map(|x| if single { x.to_bits() } else { f16(x) });
                assert_eq!(got, want, "{name}: row {row}, column {column}");
            }
        }
    }
}

/// Returns the lane that has the index `line` among the eight lanes of a product.
fn lane_of(product: usize, line: usize) -> usize {
    4 * product + line % 4 + line / 4 * 16
}

#[test]
fn products_of_four_quad_pairs() {
    if architecture() < 70 {
        return needs("a device of sm_70 or later, which has matrix products");
    }
    let gpu = Gpu::new();
    let mut random = Random::new(6);
    let mut text = ".version 6.4\n.target sm_70\n.address_size 64\n".to_owned();
    let mut cases = Vec::new();
    for layouts in ["row.col", "row.row", "col.col", "col.row"] {
        for (d, c) in [("f16", "f16"), ("f32", "f16"), ("f32", "f32")] {
            let name = format!("k_{}_{d}_{c}", layouts.replace('.', "_"));
            let registers = |ty: &str| if ty == "f32" { 8 } else { 4 };
            let opcode = format!("m8n8k4.{layouts}.{d}.f16.f16.{c}");
            text += &kernel(&name, &opcode, [2, 2, registers(c), registers(d)]);
            cases.push((name, layouts, d == "f32", c == "f32"));
        }
    }
    let module = gpu.text(&text);
    // Returns a number of either sign, with a magnitude from 1 to 2 and this many random bits in its fraction.
    let mut number = |bits: u32| {
        let sign = random.below(2) << 31;
        f32::from_bits(sign | 0x3f80_0000 | random.below(1 << bits) << (23 - bits))
    };
    for (name, layouts, wide_d, wide_c) in cases {
        let a: Vec<f32> = (0..4 * 8 * 4).map(|_| number(10)).collect();
        let b: Vec<f32> = (0..4 * 8 * 4).map(|_| number(10)).collect();
        // C is so large that no sum is subnormal in f16, and that sums are rounded.
        let c: Vec<f32> = (0..4 * 64)
            .map(|_| 32.0 * number(if wide_c { 23 } else { 10 }))
            .collect();
        // Return an element of A by row, and of B by column, of one product.
        let (a_at, b_at) = (
            |p: usize, row: usize, x: usize| a[(p * 8 + row) * 4 + x],
            |p: usize, column: usize, x: usize| b[(p * 8 + column) * 4 + x],
        );
        // Returns the row and column of register `i` of a sum in f32.
        let single = |line: usize, i: usize| ((line & 1) + (i & 2) + line / 4 * 4, (i & 4) + (line & 2) + (i & 1));
        let mut fragments = vec![Vec::new(); 32];
        for product in 0..4 {
            for line in 0..8 {
                let pair = |low: f32, high: f32| f16(low) | f16(high) << 16;
                let element_of_a = |i: usize| match layouts.starts_with("row") {
                    true => a_at(product, line, i),
                    false => a_at(product, i + line / 4 * 4, line % 4),
                };
                let element_of_b = |i: usize| match layouts.ends_with("col") {
                    true => b_at(product, line, i),
                    false => b_at(product, i + line / 4 * 4, line % 4),
                };
                let mut words = Vec::new();
                for i in [0, 2] {
                    words.push(pair(element_of_a(i), element_of_a(i + 1)));
                }
                for i in [0, 2] {
                    words.push(pair(element_of_b(i), element_of_b(i + 1)));
                }
                for i in 0..if wide_c { 8 } else { 4 } {
                    let row = (product * 8 + line) * 8;
                    words.push(match wide_c {
                        true => {
                            let (row, column) = single(line, i);
                            c[(product * 8 + row) * 8 + column].to_bits()
                        }
                        false => pair(c[row + 2 * i], c[row + 2 * i + 1]),
                    });
                }
                fragments[lane_of(product, line)] = words;
            }
        }
        let function = gpu.function(module, &name);
        let registers = if wide_d { 8 } else { 4 };
        let got = run(&gpu, function, &fragments, registers);
        for product in 0..4 {
            let element = |row: usize, column: usize| {
                let factors = |x: usize| (a_at(product, row, x), b_at(product, column, x));
                let fma = |x: usize, sum: f32| fma32(factors(x).0, factors(x).1, sum);
                let c = c[(product * 8 + row) * 8 + column];
                match wide_d {
                    true => c + fma(3, fma(2, fma(1, fma(0, 0.0)))),
                    false => rounded((c + fma(1, fma(0, 0.0))) + fma(3, fma(2, 0.0))),
                }
            };
            for line in 0..8 {
                for i in 0..registers {
                    let got = got[lane_of(product, line) * registers + i];
                    let want = match wide_d {
                        true => {
                            let (row, column) = single(line, i);
                            element(row, column).to_bits()
                        }
                        false => f16(element(line, 2 * i)) | f16(element(line, 2 * i + 1)) << 16,
                    };
                    assert_eq!(got, want, "{name}: product {product}, line {line}, register {i}");
                }
            }
        }
    }
}
