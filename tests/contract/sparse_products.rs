//! Tests of products with a sparse A (`mma.sp`, `wgmma.mma_async.sp`): the elements that registers hold, and metadata
//! that says in which columns they are. All sums are exact, except those of one test, which were recorded on an H200.

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::values::{Random, Recorded, hash};
use crate::common::{architecture, needs};

/// The type of the elements of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F16,
    Bf16,
    Tf32,
    S8,
    U8,
    S4,
    U4,
    E4m3,
    E5m2,
}

use Kind::{Bf16, E4m3, E5m2, F16, S4, S8, Tf32, U4, U8};

impl Kind {
    fn bits(self) -> usize {
        match self {
            F16 | Bf16 => 16,
            Tf32 => 32,
            S8 | U8 | E4m3 | E5m2 => 8,
            S4 | U4 => 4,
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, S8 | U8 | S4 | U4)
    }

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns the bits of an integer from -3 to 3.
    fn encode(self, value: i32) -> u32 {
        let sign = u32::from(value < 0);
        let at = value.unsigned_abs() as usize;
        match self {
            F16 => [0, 0x3c00, 0x4000, 0x4200][at] | sign << 15,
            Bf16 => (value as f32).to_bits() >> 16,
            Tf32 => (value as f32).to_bits(),
            S8 | U8 => value as u32 & 0xff,
            S4 | U4 => value as u32 & 0xf,
            E4m3 => [0, 0x38, 0x40, 0x44][at] | sign << 7,
            E5m2 => [0, 0x3c, 0x40, 0x42][at] | sign << 7,
        }
    }

    /// Returns a random integer from -3 to 3, or from 0 to 3 for an unsigned type.
    fn random(self, random: &mut Random) -> i32 {
        let value = random.below(4) as i32;
        match self {
            U8 | U4 => value,
            _ if random.below(2) == 1 => -value,
            _ => value,
        }
    }

    /// Returns the number of columns in a group. Registers hold half of them.
    fn group(self) -> usize {
        match self {
            Tf32 => 2,
            S4 | U4 => 8,
            _ => 4,
        }
    }

    /// Returns the position of the four bits of metadata for a group of a row: the lane, counted from the first one
    /// that the sparsity selector chooses, and the shift.
    fn place(self, row: usize, group: usize) -> (usize, usize) {
        match self {
            F16 | Bf16 | Tf32 => (group / 4, group % 4 * 4 + row / 8 * 16),
            _ => (group / 8 * 2 + row / 8, group % 8 * 4),
        }
    }

    /// Returns random metadata of a group, and the columns of its elements.
    fn select(self, random: &mut Random) -> (u32, Vec<usize>) {
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        let (first, second) = pairs[random.below(6) as usize];
        let bits = (first | second << 2) as u32;
        match self {
            // The metadata describes a 32-bit number as two 16-bit numbers.
            Tf32 if random.below(2) == 0 => (0b0100, vec![0]),
            Tf32 => (0b1110, vec![1]),
            S4 | U4 => (bits, vec![2 * first, 2 * first + 1, 2 * second, 2 * second + 1]),
            _ => (bits, vec![first, second]),
        }
    }
}

/// A sparse 16 x k matrix A, a k x 8 matrix B, and 16 x 8 matrices C and D = A * B + C.
struct Product {
    k: usize,
    /// All elements of A, by rows.
    a: Vec<i32>,
    /// The elements of A that registers hold, by rows.
    held: Vec<i32>,
    /// The metadata of each lane for a sparsity selector.
    metadata: Vec<u32>,
    b: Vec<i32>,
    c: Vec<i32>,
    d: Vec<i32>,
}

impl Product {
    fn new(random: &mut Random, (ka, kb): (Kind, Kind), k: usize, selector: usize) -> Self {
        let groups = k / ka.group();
        let lanes = (groups / 4).max(1);
        // Lanes that the selector does not choose have random metadata.
        let mut metadata: Vec<u32> = (0..32).map(|_| random.below(u32::MAX)).collect();
        let (mut held, mut a) = (Vec::new(), vec![0; 16 * k]);
        for row in 0..16 {
            for group in 0..groups {
                let (bits, columns) = ka.select(random);
                let (lane, shift) = ka.place(row, group);
                let lane = row % 8 * 4 + (selector * lanes + lane) % 4;
                metadata[lane] = metadata[lane] & !(15 << shift) | bits << shift;
                for column in columns {
                    let value = ka.random(random);
                    held.push(value);
                    a[row * k + group * ka.group() + column] = value;
                }
            }
        }
        let b: Vec<i32> = (0..k * 8).map(|_| kb.random(random)).collect();
        let c: Vec<i32> = (0..128).map(|_| random.below(64) as i32 - 32).collect();
        let mut product = Product {
            k,
            a,
            held,
            metadata,
            b: Vec::new(),
            c,
            d: Vec::new(),
        };
        product.multiply(b);
        product
    }

    /// Replaces B, and computes D with it.
    fn multiply(&mut self, b: Vec<i32>) {
        let element = |row: usize, column: usize| -> i32 {
            let products = (0..self.k).map(|x| self.a[row * self.k + x] * b[x * 8 + column]);
            products.sum::<i32>() + self.c[row * 8 + column]
        };
        self.d = (0..128).map(|at| element(at / 8, at % 8)).collect();
        self.b = b;
    }

    /// Returns the registers of A of a lane.
    fn a(&self, kind: Kind, lane: usize) -> Vec<u32> {
        let (per, columns) = (32 / kind.bits(), self.k / 2);
        let register = |r: usize| {
            let at = |e: usize| (lane / 4 + r % 2 * 8) * columns + r / 2 * 4 * per + lane % 4 * per + e;
            (0..per).fold(0, |word, e| word | kind.encode(self.held[at(e)]) << (e * kind.bits()))
        };
        (0..columns / per / 2).map(register).collect()
    }

    /// Returns the registers of B of a lane.
    fn b(&self, kind: Kind, lane: usize) -> Vec<u32> {
        let per = 32 / kind.bits();
        let register = |r: usize| {
            let at = |e: usize| (r * 4 * per + lane % 4 * per + e) * 8 + lane / 4;
            (0..per).fold(0, |word, e| word | kind.encode(self.b[at(e)]) << (e * kind.bits()))
        };
        (0..self.k / per / 4).map(register).collect()
    }

    /// Returns the registers of C or D of a lane.
    fn sums(values: &[i32], ty: &str, lane: usize) -> Vec<u32> {
        let at = |i: usize| values[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
        match ty {
            "f32" => (0..4).map(|i| (at(i) as f32).to_bits()).collect(),
            "s32" => (0..4).map(|i| at(i) as u32).collect(),
            _ => (0..2).map(|i| half(at(2 * i)) | half(at(2 * i + 1)) << 16).collect(),
        }
    }
}

/// Returns the bits in f16 of an integer of up to 11 bits.
fn half(value: i32) -> u32 {
    let bits = (value as f32).to_bits();
    match value {
        0 => 0,
        _ => bits >> 16 & 0x8000 | ((bits >> 23 & 0xff) + 15 - 127) << 10 | bits >> 13 & 0x3ff,
    }
}

fn list(letter: char, count: usize) -> String {
    let all: Vec<String> = (0..count).map(|i| format!("%{letter}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Returns a kernel in which each thread reads the registers of some operands, runs `body`, and writes the `results`
/// registers of D. Operands are a letter and a number of registers.
fn kernel(name: &str, operands: &[(char, usize)], results: usize, body: &str) -> String {
    let count: usize = operands.iter().map(|(_, count)| count).sum();
    let mut text = format!(
        ".visible .entry {name}(.param .u64 in, .param .u64 out, .param .u64 tile) {{\n\
        .reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %e<2>, %r<8>; .reg .b64 %rd<8>; .reg .pred %p;\n\
        .shared .align 1024 .b8 columns[512];\n\
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd5, [tile]; mov.u32 %r1, %tid.x;\n\
        mad.wide.u32 %rd3, %r1, {}, %rd1; mad.wide.u32 %rd4, %r1, {}, %rd2;\n",
        4 * count,
        4 * results
    );
    let registers = operands
        .iter()
        .flat_map(|(letter, count)| (0..*count).map(move |i| (letter, i)));
    for (at, (letter, i)) in registers.enumerate() {
        text += &format!("ld.global.b32 %{letter}{i}, [%rd3+{}];\n", 4 * at);
    }
    text += body;
    for i in 0..results {
        text += &format!("st.global.b32 [%rd4+{}], %d{i};\n", 4 * i);
    }
    text + "ret; }\n"
}

/// Returns the forms of `mma.sp` of sm_80: k, the types of A and B, the type of the sum, and the number of sparsity
/// selectors.
fn forms() -> Vec<(usize, Kind, Kind, &'static str, usize)> {
    let mut all = Vec::new();
    for sum in ["f32", "f16"] {
        all.extend([(16, F16, F16, sum, 4), (32, F16, F16, sum, 2)]);
    }
    all.extend([(16, Bf16, Bf16, "f32", 4), (32, Bf16, Bf16, "f32", 2)]);
    all.extend([(8, Tf32, Tf32, "f32", 4), (16, Tf32, Tf32, "f32", 2)]);
    for (a, b) in [(S8, S8), (S8, U8), (U8, S8), (U8, U8)] {
        all.extend([(32, a, b, "s32", 2), (64, a, b, "s32", 1)]);
    }
    for (a, b) in [(S4, S4), (S4, U4), (U4, S4), (U4, U4)] {
        all.extend([(64, a, b, "s32", 2), (128, a, b, "s32", 1)]);
    }
    all
}

/// Compares the products of these forms with [`Product`]. `version` is the beginning of the PTX.
fn check(gpu: &Gpu, version: &str, forms: Vec<(usize, Kind, Kind, &'static str, usize)>) {
    let mut random = Random::new(11);
    let mut text = version.to_owned();
    let mut cases = Vec::new();
    for (k, a, b, sum, selectors) in forms {
        for selector in 0..selectors {
            let results = if sum == "f16" { 2 } else { 4 };
            let name = format!("k{k}_{}_{}_{sum}_{selector}", a.name(), b.name());
            let registers = (k / 2 * a.bits() / 64, k * b.bits() / 128);
            let lists = [
                list('d', results),
                list('a', registers.0),
                list('b', registers.1),
                list('c', results),
            ];
            let ordered = if selector == 0 && version.contains("8.5") {
                "::ordered_metadata"
            } else {
                ""
            };
            let types = format!("{sum}.{}.{}.{sum}", a.name(), b.name());
            let body = format!(
                "mma.sp{ordered}.sync.aligned.m16n8k{k}.row.col.{types} {}, %e0, {selector};\n",
                lists.join(", ")
            );
            let operands = [('a', registers.0), ('b', registers.1), ('c', results), ('e', 1)];
            text += &kernel(&name, &operands, results, &body);
            cases.push((name, k, a, b, sum, selector, results));
        }
    }
    let module = gpu.text(&text);
    for (name, k, a, b, sum, selector, results) in cases {
        let product = Product::new(&mut random, (a, b), k, selector);
        let lane = |lane: usize| {
            let registers = [
                product.a(a, lane),
                product.b(b, lane),
                Product::sums(&product.c, sum, lane),
            ];
            [registers.concat(), vec![product.metadata[lane]]].concat()
        };
        let input: Vec<u32> = (0..32).flat_map(lane).collect();
        let (input, out) = (gpu.upload(&input), gpu.alloc(32 * results * 4));
        let function = gpu.function(module, &name);
        gpu.launch(function, [1; 3], [32, 1, 1], 0, &mut arguments![input, out, 0u64]);
        let want: Vec<u32> = (0..32).flat_map(|lane| Product::sums(&product.d, sum, lane)).collect();
        assert_eq!(gpu.read::<u32>(out, want.len()), want, "{name}");
    }
}

#[test]
fn products_of_a_warp() {
    if architecture() < 80 {
        return needs("a device of sm_80 or later, which has products of sparse matrices");
    }
    check(&Gpu::new(), ".version 7.1\n.target sm_80\n.address_size 64\n", forms());
}

#[test]
fn products_with_ordered_metadata_and_8_bit_numbers() {
    if architecture() < 89 {
        return needs("a device of sm_89 or later, which has products of 8-bit floating-point numbers");
    }
    let mut all = forms();
    for (a, b) in [(E4m3, E4m3), (E4m3, E5m2), (E5m2, E4m3), (E5m2, E5m2)] {
        all.push((64, a, b, "f32", 1));
    }
    check(&Gpu::new(), ".version 8.5\n.target sm_89\n.address_size 64\n", all);
}

#[test]
fn products_of_four_warps() {
    if architecture() != 90 {
        return needs("a device of sm_90, which has wgmma");
    }
    let gpu = Gpu::new();
    let mut random = Random::new(12);
    let forms = [
        (32, F16, "f32", 2),
        (32, Bf16, "f32", 2),
        (16, Tf32, "f32", 2),
        (64, S8, "s32", 1),
        (64, U8, "s32", 1),
        (64, E4m3, "f32", 1),
        (64, E5m2, "f32", 1),
    ];
    let mut text = ".version 8.2\n.target sm_90a\n.address_size 64\n".to_owned();
    let mut cases = Vec::new();
    for (k, kind, sum, selectors) in forms {
        for selector in 0..selectors {
            let name = format!("k{k}_{}_{selector}", kind.name());
            // The constants `imm-scale-a`, `imm-scale-b` and `imm-trans-b`.
            let constants = match kind {
                _ if kind.is_integer() => "",
                F16 | Bf16 => ", 1, 1, 0",
                _ => ", 1, 1",
            };
            // The first 32 threads write B to shared memory, where units of 16 bytes that follow each other along k are
            // 128 bytes apart.
            let body = format!(
                "mov.u32 %r2, columns; setp.lt.u32 %p, %r1, 32; mul.wide.u32 %rd6, %r1, 16; add.u64 %rd6, %rd6, %rd5;\n\
                shl.b32 %r3, %r1, 4; add.u32 %r3, %r3, %r2;\n\
                @%p ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd6];\n\
                @%p st.shared.v4.b32 [%r3], {{%r4, %r5, %r6, %r7}};\n\
                fence.proxy.async; bar.sync 0;\n\
                shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd7, %r2; or.b64 %rd7, %rd7, {};\n\
                mov.b32 %d0, %c0; mov.b32 %d1, %c1; mov.b32 %d2, %c2; mov.b32 %d3, %c3;\n\
                wgmma.fence.sync.aligned;\n\
                wgmma.mma_async.sp.sync.aligned.m64n8k{k}.{sum}.{}.{} {}, {}, %rd7, %e0, {selector}, 1{constants};\n\
                wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
                8 << 16 | 8_u64 << 32,
                kind.name(),
                kind.name(),
                list('d', 4),
                list('a', 4),
            );
            text += &kernel(&name, &[('a', 4), ('c', 4), ('e', 1)], 4, &body);
            cases.push((name, k, kind, sum, selector));
        }
    }
    let module = gpu.text(&text);
    for (name, k, kind, sum, selector) in cases {
        let mut products: Vec<Product> = (0..4)
            .map(|_| Product::new(&mut random, (kind, kind), k, selector))
            .collect();
        // All warps have the same B.
        let b = products[0].b.clone();
        let (mut input, mut want) = (Vec::new(), Vec::new());
        for product in &mut products {
            product.multiply(b.clone());
            for lane in 0..32 {
                input.extend(product.a(kind, lane));
                input.extend(Product::sums(&product.c, sum, lane));
                input.push(product.metadata[lane]);
                want.extend(Product::sums(&product.d, sum, lane));
            }
        }
        let mut tile = vec![0u8; 512];
        for x in 0..k {
            for column in 0..8 {
                let byte = x * kind.bits() / 8;
                let at = byte / 16 * 128 + column * 16 + byte % 16;
                let bits = kind.encode(b[x * 8 + column]).to_le_bytes();
                tile[at..at + kind.bits() / 8].copy_from_slice(&bits[..kind.bits() / 8]);
            }
        }
        let (input, tile, out) = (gpu.upload(&input), gpu.upload(&tile), gpu.alloc(want.len() * 4));
        let function = gpu.function(module, &name);
        gpu.launch(function, [1; 3], [128, 1, 1], 0, &mut arguments![input, out, tile]);
        assert_eq!(gpu.read::<u32>(out, want.len()), want, "{name}");
    }
}

/// The pseudo-random numbers of the program that recorded the sums of `inexact_sums_of_8_bit_numbers`.
struct Inputs(Recorded);

impl Inputs {
    fn word(&mut self) -> u32 {
        let low = self.0.next();
        low ^ self.0.next() << 16
    }

    /// Returns a number of type e4m3 that is not a NaN.
    fn small(&mut self) -> u32 {
        let bits = self.word() & 0xff;
        if bits & 0x7f == 0x7f { bits ^ 8 } else { bits }
    }

    /// Returns an f32 with an exponent from -27 to 22 if `wide` is true, else from -5 to 4.
    fn single(&mut self, wide: bool) -> u32 {
        let bits = self.word() & 0x807f_ffff;
        let exponent = if wide {
            100 + self.0.next() % 50
        } else {
            122 + self.0.next() % 10
        };
        bits | exponent << 23
    }

    /// Returns the registers of A, B and C, and the metadata, of a lane. If `wide` is 0, the exponents of C have the
    /// narrow range of [`Self::single`]; if 1, the wide one; if 2, C is 0.
    fn lane(&mut self, wide: u32) -> Vec<u32> {
        let mut words = vec![0; 13];
        for r in 0..4 {
            for e in 0..4 {
                words[r] |= self.small() << (8 * e);
                words[4 + r] |= self.small() << (8 * e);
            }
        }
        for c in &mut words[8..12] {
            *c = if wide == 2 { 0 } else { self.single(wide > 0) };
        }
        for i in 0..8 {
            words[12] |= [4, 8, 12, 9, 13, 14][self.0.next() as usize % 6] << (4 * i);
        }
        words
    }
}

#[test]
fn inexact_sums_of_8_bit_numbers() {
    if architecture() != 90 {
        return needs("a device of sm_90, whose sums were recorded");
    }
    let gpu = Gpu::new();
    let body = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 \
        {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%c0, %c1, %c2, %c3}, %e0, 0;\n";
    let operands = [('a', 4), ('b', 4), ('c', 4), ('e', 1)];
    let text = ".version 8.5\n.target sm_90\n.address_size 64\n".to_owned() + &kernel("k", &operands, 4, body);
    let module = gpu.text(&text);
    let function = gpu.function(module, "k");
    // The argument of `Inputs::lane`, the first sum, and a hash of all sums.
    for (wide, first, all) in [
        (0, 0xc4c4_71ac, 0xc726_204d_3766_6897),
        (1, 0xc82e_c5b3, 0x6e58_86ed_63f7_833d),
        (2, 0x4645_eb79, 0xff31_2d97_3b28_d6f5),
    ] {
        let mut random = Inputs(Recorded(1234 + u64::from(wide)));
        let input: Vec<u32> = (0..32).flat_map(|_| random.lane(wide)).collect();
        let (input, out) = (gpu.upload(&input), gpu.alloc(512));
        gpu.launch(function, [1; 3], [32, 1, 1], 0, &mut arguments![input, out, 0u64]);
        let sums = gpu.read::<u32>(out, 128);
        let seen = hash(sums.iter().copied());
        assert_eq!((sums[0], seen), (first, all), "`wide` {wide}: {sums:x?}");
    }
}
