//! `wgmma`: products that four warps compute together. The tests compute the layouts of shared memory (in units of 16
//! bytes) and of the result by themselves, as the PTX manual describes them. All sums are exact.

use super::{Arg, Bench, list, on_each_isa, random};

/// Size of each half of shared memory in bytes. A is in the first half, B in the second.
const HALF: usize = 64 << 10;

/// The layout of a matrix in shared memory.
#[derive(Clone, Copy)]
struct Placed {
    /// Bytes per row of the swizzling pattern; 16 for no swizzling.
    width: usize,
    /// The leading dimension byte offset.
    leading: usize,
    /// The stride dimension byte offset.
    stride: usize,
    /// The unit of the pattern's rows at which the matrix starts.
    first: usize,
    /// True if elements that are adjacent in memory are not adjacent along k.
    transposed: bool,
}

const fn along_k(width: usize, leading: usize, stride: usize) -> Placed {
    Placed {
        width,
        leading,
        stride,
        first: 0,
        transposed: false,
    }
}

const fn across_k(width: usize, leading: usize, stride: usize) -> Placed {
    Placed {
        transposed: true,
        ..along_k(width, leading, stride)
    }
}

impl Placed {
    /// Returns the descriptor of a matrix in the half of shared memory that begins at `base`.
    fn descriptor(&self, base: usize) -> u64 {
        let mode = match self.width {
            16 => 0u64,
            128 => 1,
            64 => 2,
            _ => 3,
        };
        let start = base + 16 * self.first;
        let field = |bytes: usize, shift: u32| (bytes as u64 >> 4) << shift;
        field(start, 0) | field(self.leading, 16) | field(self.stride, 32) | mode << 62
    }

    /// Returns the offset in bytes of a unit of a line. A line is a row of A or a column of B; if the matrix is
    /// transposed, it is a column of A or a row of B.
    fn unit(&self, unit: usize, line: usize) -> usize {
        let (row, part, units) = (line % 8, line / 8, self.width / 16);
        let in_pattern = |unit: usize| row * units + (unit ^ (row * units / 8));
        match (self.transposed, self.width) {
            (false, 16) => unit * self.leading + part * self.stride + row * 16,
            (false, _) => part * self.stride + 16 * in_pattern(self.first + unit),
            (true, 16) => unit * self.stride + part * self.leading + row * 16,
            (true, _) => unit / units * self.leading + part * self.stride + 16 * in_pattern(unit % units),
        }
    }
}

struct Case {
    n: usize,
    k: usize,
    /// Bits per element of A and of B.
    bits: usize,
    types: &'static str,
    /// True if each register of the result is a pair of f16.
    halves: bool,
    /// Layout of A in shared memory; `None` if A is in registers.
    a: Option<Placed>,
    b: Placed,
    /// True if A, and if B, is negated; `None` if the instruction has no such operands.
    negated: Option<[bool; 2]>,
    /// The operand `scale-d`, which is a predicate or a constant, and its value: true if the accumulator's first value
    /// is added.
    counts: (&'static str, bool),
    /// Conversion from the bits of an element of A, and of B, to its value.
    values: [fn(u32) -> i64; 2],
    /// Multiplies two elements.
    times: fn(i64, i64) -> i64,
    /// True if a sum outside of `i32` becomes the nearest `i32` (`.satfinite`).
    limit: bool,
}

const F16: Case = Case {
    n: 16,
    k: 16,
    bits: 16,
    types: ".f32.f16.f16",
    halves: false,
    a: Some(along_k(16, 128, 256)),
    b: along_k(16, 1024, 128),
    negated: Some([false; 2]),
    counts: ("%q", true),
    values: [f16_value; 2],
    times: |a, b| a * b,
    limit: false,
};

/// The integers from -3 to 3 as f16.
const F16_BITS: [u32; 7] = [0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200];

fn f16_value(bits: u32) -> i64 {
    F16_BITS.iter().position(|b| *b == bits).unwrap() as i64 - 3
}

/// Writes an element of `bits` bits.
fn put(image: &mut [u8], byte: usize, index: usize, bits: usize, value: u32) {
    let at = byte * 8 + index * bits;
    for bit in 0..bits {
        image[(at + bit) / 8] |= ((value >> bit & 1) as u8) << ((at + bit) % 8);
    }
}

/// Writes a matrix to its half of shared memory: `lines` rows of A or columns of B, each of `k` elements.
fn lay_out(image: &mut [u8], placed: &Placed, elements: &[u32], k: usize, bits: usize) {
    let per = 128 / bits;
    for (i, value) in elements.iter().enumerate() {
        let (line, x) = (i / k, i % k);
        let (along, across) = if placed.transposed { (line, x) } else { (x, line) };
        put(image, placed.unit(along / per, across), along % per, bits, *value);
    }
}

/// Returns a module with the kernel of a case. `registers` is the number of result registers of a thread.
fn text(case: &Case, registers: usize) -> String {
    let ty = if case.types.starts_with(".f32") { "f32" } else { "b32" };
    let (n, k) = (case.n, case.k);
    let lines = |op: &str| -> String {
        let line = |i: usize| match op {
            "ld" => format!("ld.global.{ty} %d{i}, [%rd2+{}];\n", 4 * i),
            _ => format!("st.global.{ty} [%rd2+{}], %d{i};\n", 4 * i),
        };
        (0..registers).map(line).collect()
    };
    let a = match case.a {
        Some(_) => "%rd4".to_owned(),
        None => format!("{{{}}}", list("a", 4)),
    };
    let sign = |negated: bool| if negated { "-1" } else { "1" };
    let mut constants = case
        .negated
        .map_or(String::new(), |[a, b]| format!(", {}, {}", sign(a), sign(b)));
    if case.bits == 16 {
        if let Some(a) = case.a {
            constants += &format!(", {}", u8::from(a.transposed));
        }
        constants += &format!(", {}", u8::from(case.b.transposed));
    }
    format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n\
        .visible .entry k(.param .u64 in, .param .u64 out, .param .u64 a, .param .u64 b) {{\n\
        .reg .pred %p, %q, %no; .reg .b32 %r<8>, %a<4>; .reg .b64 %rd<8>; .reg .{ty} %d<{registers}>;\n\
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd4, [a]; ld.param.u64 %rd5, [b];\n\
        mov.u32 %r1, %tid.x; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2;\n\
        L: cvt.u64.u32 %rd6, %r3; add.u64 %rd7, %rd1, %rd6; ld.global.u32 %r4, [%rd7]; add.u32 %r5, %r2, %r3;\n\
        st.shared.u32 [%r5], %r4; add.u32 %r3, %r3, 512; setp.lt.u32 %p, %r3, {}; @%p bra L;\n\
        fence.proxy.async; bar.sync 0; setp.eq.u32 %q, 0, 0; setp.ne.u32 %no, 0, 0;\n\
        mul.wide.u32 %rd6, %r1, {}; add.u64 %rd2, %rd2, %rd6; mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd1, %rd6;\n\
        ld.global.v4.b32 {{{}}}, [%rd7];\n{}\
        wgmma.fence.sync.aligned;\n\
        wgmma.mma_async.sync.aligned.m64n{n}k{k}{} {{{}}}, {a}, %rd5, {}{constants};\n\
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n{}ret; }}",
        2 * HALF,
        4 * registers,
        list("a", 4),
        lines("ld"),
        case.types,
        list("d", registers),
        case.counts.0,
        lines("st"),
    )
}

fn check(case: &Case) {
    let (n, k, per) = (case.n, case.k, 32 / case.bits.min(32));
    let mut state = (n * 31 + k) as u64;
    let mut element = || match case.bits {
        16 => F16_BITS[random(&mut state) as usize % F16_BITS.len()],
        32 => ((random(&mut state) % 9) as f32 - 4.0).to_bits(),
        bits => random(&mut state) & ((1 << bits) - 1),
    };
    let a: Vec<u32> = (0..64 * k).map(|_| element()).collect();
    let b: Vec<u32> = (0..n * k).map(|_| element()).collect();
    let mut image = vec![0; 2 * HALF];
    match &case.a {
        Some(placed) => lay_out(&mut image, placed, &a, k, case.bits),
        None => {
            // Four registers per thread: two rows that are eight apart, then the other half of k.
            for (i, value) in a.iter().enumerate() {
                let (row, x) = (i / k, i % k);
                let thread = row / 16 * 32 + row % 8 * 4 + x / per % 4;
                let register = row % 16 / 8 + x / per / 4 * 2;
                put(&mut image, thread * 16 + register * 4, x % per, case.bits, *value);
            }
        }
    }
    lay_out(&mut image[HALF..], &case.b, &b, k, case.bits);
    let registers = if case.halves { n / 4 } else { n / 2 };
    // Values in a thread's registers, and the row and the column of one of them.
    let values = n / 2;
    let place = |thread: usize, i: usize| {
        let lane = thread % 32;
        let row = thread / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
        (row, i / 4 * 8 + lane % 4 * 2 + i % 2)
    };
    let before = |row: usize, column: usize| (row * 7 + column) as i64 % 50 - 20;
    let encode = |value: i64| match (case.halves, case.types.starts_with(".f32")) {
        (true, _) => u32::from(crate::semantics::half::f32_to_f16(value as f32)),
        (_, true) => (value as f32).to_bits(),
        _ => value as i32 as u32,
    };
    let words = |value: &dyn Fn(usize, usize) -> i64| -> Vec<u32> {
        let mut words = vec![0; 128 * registers];
        for thread in 0..128 {
            for i in 0..values {
                let (row, column) = place(thread, i);
                let bits = encode(value(row, column));
                if case.halves {
                    words[thread * registers + i / 2] |= bits << (i % 2 * 16);
                } else {
                    words[thread * registers + i] = bits;
                }
            }
        }
        words
    };
    let signs = case.negated.unwrap_or_default().map(|no| if no { -1 } else { 1 });
    let want = words(&|row, column| {
        let products = (0..k).map(|x| {
            let a = (case.values[0])(a[row * k + x]) * signs[0];
            (case.times)(a, (case.values[1])(b[column * k + x]) * signs[1])
        });
        let old = if case.counts.1 { before(row, column) } else { 0 };
        let sum = products.sum::<i64>() + old;
        if case.limit {
            sum.clamp(i32::MIN.into(), i32::MAX.into())
        } else {
            sum
        }
    });
    let text = text(case, registers);
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let input = bench.put(&image, |byte: u8| [byte]);
        let out = bench.put(&words(&before), u32::to_le_bytes);
        let descriptors = [case.a.map_or(0, |a| a.descriptor(0)), case.b.descriptor(HALF)];
        let [a, b] = descriptors.map(Arg::U64);
        assert_eq!(run(&bench, &[Arg::U64(input), Arg::U64(out), a, b]), None);
        let got = bench.get(out, want.len(), u32::from_le_bytes);
        let differs = got.iter().zip(&want).position(|(got, want)| got != want);
        assert_eq!(differs, None, "{} {:x?}", case.types, &got[..8]);
    });
}

/// Runs the kernel of a case, and returns the code of its fault.
fn run(bench: &Bench, args: &[Arg]) -> Option<u32> {
    let mut launch = bench.launch("k", 1, 128, args);
    launch.dynamic_shared = 2 * HALF as u32;
    Bench::run(launch).fault().map(|fault| fault.code())
}

#[test]
fn every_layout() {
    for (a, b) in [
        (along_k(16, 128, 256), along_k(16, 1024, 128)),
        (along_k(32, 0, 256), along_k(64, 0, 512)),
        (along_k(64, 0, 1024), along_k(128, 0, 1024)),
        (along_k(128, 0, 2048), along_k(32, 0, 512)),
    ] {
        check(&Case {
            a: Some(a),
            b,
            n: 24,
            ..F16
        });
    }
    // The matrix starts inside the rows of the pattern.
    let inside = |width, first| Placed {
        first,
        ..along_k(width, 0, width * 8)
    };
    for (a, b) in [(inside(128, 2), inside(128, 6)), (inside(64, 2), inside(128, 4))] {
        check(&Case { a: Some(a), b, ..F16 });
    }
    for (a, b) in [
        (across_k(16, 4096, 128), across_k(16, 128, 256)),
        (across_k(32, 1024, 256), across_k(64, 1024, 512)),
        (across_k(64, 4096, 2048), across_k(128, 2048, 1024)),
        (across_k(128, 0, 1024), across_k(32, 512, 256)),
        (along_k(128, 0, 1024), across_k(128, 8192, 1024)),
    ] {
        check(&Case {
            a: Some(a),
            b,
            n: 128,
            ..F16
        });
    }
}

#[test]
fn signs_and_accumulators() {
    let b = along_k(128, 0, 1024);
    for negated in [[true, false], [false, true], [true, true]] {
        check(&Case {
            b,
            negated: Some(negated),
            ..F16
        });
    }
    for counts in [
        ("%no", false),
        ("!%no", true),
        ("!%q", false),
        ("1", true),
        ("0", false),
    ] {
        check(&Case { b, counts, ..F16 });
        check(&Case {
            a: None,
            b,
            counts,
            n: 256,
            ..F16
        });
    }
}

#[test]
fn every_type() {
    let f = |bits: u32| f32::from_bits(bits) as i64;
    let (a, b) = (Some(along_k(128, 0, 1024)), along_k(64, 0, 512));
    check(&Case {
        types: ".f16.f16.f16",
        halves: true,
        n: 8,
        ..F16
    });
    check(&Case {
        types: ".f16.f16.f16",
        halves: true,
        a: None,
        b: across_k(128, 1024, 1024),
        n: 64,
        ..F16
    });
    let tf32 = Case {
        types: ".f32.tf32.tf32",
        bits: 32,
        k: 8,
        values: [f; 2],
        b,
        ..F16
    };
    check(&Case { a, n: 40, ..tf32 });
    check(&Case { a: None, n: 8, ..tf32 });
    let eight = |types, values, limit| Case {
        types,
        values,
        limit,
        bits: 8,
        k: 32,
        negated: None,
        b,
        ..F16
    };
    let signed = |bits: u32| i64::from(bits as u8 as i8);
    check(&Case {
        a,
        n: 240,
        ..eight(".s32.s8.s8", [signed; 2], false)
    });
    check(&Case {
        a: None,
        n: 48,
        ..eight(".s32.s8.u8", [signed, i64::from], true)
    });
    check(&Case {
        a,
        n: 16,
        ..eight(".satfinite.s32.u8.s8", [i64::from, signed], true)
    });
    check(&Case {
        a,
        n: 256,
        ..eight(".s32.u8.u8", [i64::from; 2], false)
    });
    let bits = Case {
        types: ".s32.b1.b1.and.popc",
        bits: 1,
        k: 256,
        negated: None,
        times: |a, b| a & b,
        values: [i64::from; 2],
        b,
        ..F16
    };
    check(&Case { a, n: 256, ..bits });
    check(&Case { a: None, n: 8, ..bits });
}

/// Multiplies every other positive value of e4m3, decoded by its definition (times 512), by powers of two in e5m2. Each
/// result is a single product, so it is exact.
#[test]
fn products_of_eight_bit_floats() {
    fn e4m3(bits: u32) -> i64 {
        let (field, fraction) = (bits >> 3 & 15, i64::from(bits & 7));
        let magnitude = if field == 0 {
            fraction
        } else {
            (fraction + 8) << (field - 1)
        };
        if bits & 0x80 != 0 { -magnitude } else { magnitude }
    }
    let mut image = vec![0u8; 2 * HALF];
    let (a, b) = (along_k(128, 0, 1024), along_k(32, 0, 256));
    let mut expected = vec![0.0f32; 64 * 8];
    for row in 0..64 {
        // At most one element of each row is not zero; all elements of a column are 2^(column - 4).
        let (x, bits) = (row % 32, (row * 2 + 1) as u32 % 0x7f);
        put(&mut image, a.unit(x / 16, row), x % 16, 8, bits);
        for column in 0..8 {
            expected[row * 8 + column] = e4m3(bits) as f32 / 512.0 * 2.0f32.powi(column as i32 - 4);
        }
    }
    for column in 0..8 {
        for x in 0..32 {
            let bits = (column as u32 + 11) << 2;
            put(&mut image[HALF..], b.unit(x / 16, column), x % 16, 8, bits);
        }
    }
    let case = Case {
        types: ".f32.e4m3.e5m2",
        bits: 8,
        k: 32,
        n: 8,
        a: Some(a),
        b,
        ..F16
    };
    let text = text(&case, 4);
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let input = bench.put(&image, |byte: u8| [byte]);
        let out = bench.put(&[0u32; 512], u32::to_le_bytes);
        let args = [input, out, a.descriptor(0), b.descriptor(HALF)].map(Arg::U64);
        assert_eq!(run(&bench, &args), None);
        let got = bench.get(out, 512, f32::from_le_bytes);
        for thread in 0..128 {
            for i in 0..4 {
                let row = thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8;
                let column = thread % 4 * 2 + i % 2;
                assert_eq!(got[thread * 4 + i], expected[row * 8 + column], "{row} {column}");
            }
        }
    });
}

#[test]
fn a_matrix_outside_shared_memory_faults() {
    let outside = Placed {
        stride: 65_536,
        ..along_k(16, 128, 256)
    };
    let text = text(&F16, 8);
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let input = bench.bytes(2 * HALF as u64);
        let out = bench.bytes(4096);
        let args = [input, out, outside.descriptor(0), F16.b.descriptor(HALF)].map(Arg::U64);
        assert_eq!(run(&bench, &args), Some(700));
    });
}
