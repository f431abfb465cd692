//! Products of matrices of integers of 4 bits and of 1 bit. The tests compute the layout of fragments by themselves, as
//! the PTX manual describes it.

use super::{Arg, Bench, list, on_each_isa, random};

struct Case {
    /// The sizes m, n and k.
    shape: [usize; 3],
    /// Bits per element of A and of B.
    bits: usize,
    /// True if the elements of A, and of B, are signed.
    signed: [bool; 2],
    opcode: &'static str,
    /// Multiplies two elements.
    times: fn(i64, i64) -> i64,
    /// True if a sum outside of `i32` becomes the nearest `i32` (`.satfinite`).
    limit: bool,
}

/// Returns the row and the column of element `i` of a lane's fragment of A.
fn place_of_a(case: &Case, lane: usize, i: usize) -> (usize, usize) {
    let per = 32 / case.bits;
    let (group, thread) = (lane / 4, lane % 4);
    let lower = case.shape[0] == 16 && i / per % 2 == 1;
    let right = if case.shape[0] == 16 { i / per / 2 } else { i / per };
    (
        group + if lower { 8 } else { 0 },
        thread * per + i % per + right * 4 * per,
    )
}

fn check(case: &Case) {
    let [m, n, k] = case.shape;
    let (per, mut state) = (32 / case.bits, 7);
    let ones = (1u32 << case.bits) - 1;
    let [a, b] = [m * k, k * n].map(|count| -> Vec<u32> { (0..count).map(|_| random(&mut state) & ones).collect() });
    let mut c: Vec<i32> = (0..m * n).map(|_| random(&mut state) as i32 >> 8).collect();
    (c[0], c[1]) = (i32::MAX - 1, i32::MIN);
    let value = |bits: u32, signed: bool| {
        let sign = 1i64 << (case.bits - 1);
        let value = i64::from(bits);
        if signed && value & sign != 0 {
            value - 2 * sign
        } else {
            value
        }
    };
    // Registers of A, B and C per lane.
    let [na, nb, nc] = [m * k / 32 / per, k * n / 32 / per, m * n / 32];
    let c_place = |lane: usize, i: usize| (lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2);
    let mut words = Vec::new();
    for lane in 0..32 {
        for r in 0..na {
            words.push((0..per).fold(0, |word, e| {
                let (row, column) = place_of_a(case, lane, r * per + e);
                word | a[row * k + column] << (e * case.bits)
            }));
        }
        for r in 0..nb {
            words.push((0..per).fold(0, |word, e| {
                let row = lane % 4 * per + e + r * 4 * per;
                word | b[row * n + lane / 4] << (e * case.bits)
            }));
        }
        for i in 0..nc {
            let (row, column) = c_place(lane, i);
            words.push(c[row * n + column] as u32);
        }
    }
    let stride = 4 * (na + nb + nc);
    let mut loads = String::new();
    for (i, name) in (0..na)
        .map(|i| format!("%a{i}"))
        .chain((0..nb).map(|i| format!("%b{i}")))
        .chain((0..nc).map(|i| format!("%c{i}")))
        .enumerate()
    {
        loads += &format!("ld.global.b32 {name}, [%rd1+{}];\n", 4 * i);
    }
    let stores: String = (0..nc)
        .map(|i| format!("st.global.b32 [%rd1+{}], %d{i};\n", 4 * (na + nb + i)))
        .collect();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
        .reg .b32 %a<4>, %b<4>, %c<4>, %d<4>, %r<2>; .reg .b64 %rd<3>;\n\
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {stride}; add.u64 %rd1, %rd1, %rd2;\n\
        {loads}mma.sync.aligned.m{m}n{n}k{k}.row.col{} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n{stores}ret; }}",
        case.opcode,
        list("d", nc),
        list("a", na),
        list("b", nb),
        list("c", nc)
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.put(&words, u32::to_le_bytes);
        bench.run_well("k", 1, 32, &[Arg::U64(out)]);
        let got = bench.get(out, words.len(), u32::from_le_bytes);
        for lane in 0..32 {
            for i in 0..nc {
                let (row, column) = c_place(lane, i);
                let sum: i64 = (0..k)
                    .map(|x| {
                        let (a, b) = (a[row * k + x], b[x * n + column]);
                        (case.times)(value(a, case.signed[0]), value(b, case.signed[1]))
                    })
                    .sum::<i64>()
                    + i64::from(c[row * n + column]);
                let want = if case.limit {
                    sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32
                } else {
                    sum as i32
                };
                let at = lane * stride / 4 + na + nb + i;
                assert_eq!(got[at] as i32, want, "{} {row} {column}", case.opcode);
            }
        }
    });
}

#[test]
fn elements_of_four_bits_and_of_one() {
    let product = |a: i64, b: i64| a * b;
    let four = |shape, signed, opcode, limit| Case {
        shape,
        bits: 4,
        signed,
        opcode,
        times: product,
        limit,
    };
    check(&four([8, 8, 32], [true, true], ".s32.s4.s4.s32", false));
    check(&four([16, 8, 32], [true, false], ".satfinite.s32.s4.u4.s32", true));
    check(&four([16, 8, 64], [false, true], ".s32.u4.s4.s32", false));
    let one = |shape, opcode, times| Case {
        shape,
        bits: 1,
        signed: [false; 2],
        opcode,
        times,
        limit: false,
    };
    check(&one([8, 8, 128], ".s32.b1.b1.s32.xor.popc", |a, b| a ^ b));
    check(&one([16, 8, 128], ".s32.b1.b1.s32.and.popc", |a, b| a & b));
    check(&one([16, 8, 256], ".s32.b1.b1.s32.xor.popc", |a, b| a ^ b));
}

/// Checks a `wmma` product of an 8 x k matrix A and a k x 8 matrix B. Rows of A and columns of B are `stride` elements
/// apart. `types` has the type of elements and the shape.
fn fragments(k: usize, bits: usize, stride: usize, types: [&str; 2], mma: &str) {
    let (mut state, per) = (11, 32 / bits);
    let words: Vec<u32> = (0..2 * 8 * stride / per).map(|_| random(&mut state)).collect();
    let [ty, shape] = types;
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
        .reg .b32 %a, %b, %c<2>, %r<2>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n\
        mov.u32 %r1, {stride};\n\
        wmma.load.a.sync.aligned.row.{shape}.global.{ty} {{%a}}, [%rd1], %r1;\n\
        wmma.load.b.sync.aligned.col.{shape}.global.{ty} {{%b}}, [%rd1+{}], %r1;\n\
        wmma.load.c.sync.aligned.row.{shape}.global.s32 {{%c0, %c1}}, [%rd2];\n\
        {mma} {{%c0, %c1}}, {{%a}}, {{%b}}, {{%c0, %c1}};\n\
        wmma.store.d.sync.aligned.row.{shape}.global.s32 [%rd2], {{%c0, %c1}};\nret; }}",
        8 * stride * bits / 8
    );
    let mut results = Vec::new();
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let input = bench.put(&words, u32::to_le_bytes);
        let c: Vec<i32> = (0..64).map(|i| 1000 * i).collect();
        let out = bench.put(&c, i32::to_le_bytes);
        bench.run_well("k", 1, 32, &[Arg::U64(input), Arg::U64(out)]);
        results.push(bench.get(out, 64, i32::from_le_bytes));
    });
    let element = |at: usize| (words[at / per] >> (at % per * bits)) & ((1 << bits) - 1);
    let signed = |bits: u32| (bits as i32) << 28 >> 28;
    let want: Vec<i32> = (0..64)
        .map(|at| {
            let (row, column) = (at / 8, at % 8);
            let sum: i32 = (0..k)
                .map(|x| {
                    let (a, b) = (element(row * stride + x), element((8 + column) * stride + x));
                    match bits {
                        4 => signed(a) * signed(b),
                        _ => (a ^ b) as i32,
                    }
                })
                .sum();
            sum + 1000 * at as i32
        })
        .collect();
    for got in &results {
        assert_eq!(*got, want);
    }
}

#[test]
fn fragments_of_small_elements() {
    fragments(
        32,
        4,
        64,
        ["s4", "m8n8k32"],
        "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32",
    );
    fragments(
        128,
        1,
        128,
        ["b1", "m8n8k128"],
        "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
    );
}
