//! Blocks of many shapes, interpreted and compiled, which must all give the same results. Their lanes read, compare and
//! store values, most of which are the same in all lanes or grow by a step from lane to lane.

use super::compiled::kernel;
use super::{Arg, Bench, on_each_isa};
use crate::memory::{AllocationKind, address_space};
use crate::{Engine, FaultKind, Isa};
use ptx::ir::Space;

/// Block shapes: a whole warp; a warp without its last lane; a whole warp and a partial one; a single lane; and warps
/// whose lanes lie in two or more rows. In the block of three rows, the last warp is partial.
const BLOCKS: [(u32, u32); 10] = [
    (32, 1),
    (31, 1),
    (62, 1),
    (1, 1),
    (16, 4),
    (16, 3),
    (8, 12),
    (4, 8),
    (2, 32),
    (1, 96),
];

/// Number of results. The last five threads store none, and neither do threads after them.
const THREADS: u32 = 3 * 32 * 31;

/// Number of 32-bit words of the input.
const NUMBERS: u32 = 16_384;

/// The memory that kernels read and write, shared by all runs of a test.
struct Buffers {
    input: u64,
    out: u64,
}

impl Buffers {
    fn new() -> Self {
        let bytes = |bytes| address_space().alloc(AllocationKind::Device, 77, bytes).unwrap();
        let numbers = (0..NUMBERS).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes());
        let buffers = Buffers {
            input: bytes(4 * u64::from(NUMBERS)),
            out: bytes(8 * u64::from(THREADS)),
        };
        let numbers: Vec<u8> = numbers.collect();
        address_space().write(buffers.input, &numbers).unwrap();
        buffers
    }

    /// Runs a body in blocks of every shape on each engine, compares the results, and returns them: result `i` is the
    /// value that thread `i` stored at `out + 8 * i`. `%r0` and `%rd5` are `i`, `%rd3` is that address, `%rd1` the
    /// address of the numbers; `%r2` and `%rd2` are the parameters `a` and `b`.
    fn run(&self, body: &str, a: u32, b: u64) -> Vec<u64> {
        let mut results: Vec<Vec<u64>> = Vec::new();
        let ways = Isa::available().map(|isa| (isa, Engine::Interpreter));
        let compiled = Isa::available().filter(|isa| *isa == Isa::Wide);
        for (isa, engine) in ways.chain(compiled.map(|isa| (isa, Engine::Compiled { lanes: 16 }))) {
            let bench = Bench::text(&kernel(body), isa);
            for block in BLOCKS {
                let nothing = [0xff; 8 * THREADS as usize];
                address_space().write(self.out, &nothing).unwrap();
                let pointers = [self.out, self.input].map(Arg::U64);
                let numbers = [Arg::U32(THREADS - 5), Arg::U32(a), Arg::U64(b)];
                let args: Vec<Arg> = pointers.into_iter().chain(numbers).collect();
                let mut launch = bench.launch("k", THREADS.div_ceil(block.0 * block.1), block, &args);
                launch.options.engine = engine;
                assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
                results.push(bench.get(self.out, THREADS as usize, u64::from_le_bytes));
            }
        }
        for (i, result) in results.iter().enumerate() {
            let block = BLOCKS[i % BLOCKS.len()];
            let differs = result.iter().zip(&results[0]).position(|(a, b)| a != b);
            assert_eq!(differs, None, "blocks of {block:?}, {body}");
        }
        results.swap_remove(0)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        for address in [self.input, self.out] {
            let _ = address_space().free(address);
        }
    }
}

/// Returns a body that runs an instruction, replaces its result by 77 if it equals a parameter, and stores it. The
/// result is in `%rd9` if `wide` is true, and in `%r9` otherwise.
fn value_of(instruction: &str, wide: bool) -> String {
    if wide {
        format!("{instruction} setp.eq.u64 %p1, %rd9, %rd2; selp.u64 %rd9, 77, %rd9, %p1; st.global.u64 [%rd3], %rd9;")
    } else {
        format!(
            "{instruction} setp.eq.u32 %p1, %r9, %r2; selp.u32 %r9, 77, %r9, %p1; cvt.u64.u32 %rd9, %r9;
            st.global.u64 [%rd3], %rd9;"
        )
    }
}

#[test]
fn values_that_grow_from_lane_to_lane() {
    let buffers = Buffers::new();
    let narrow = [
        "mov.b32 %r9, %r0;",
        "add.u32 %r9, %r0, %r2;",
        "sub.s32 %r9, %r2, %r0;",
        "mul.lo.s32 %r9, %r0, %r2;",
        "mad.lo.u32 %r9, %r2, %r0, %r0;",
        "neg.s32 %r9, %r0;",
        "not.b32 %r9, %r0;",
        "shl.b32 %r9, %r0, 3;",
        "shl.b32 %r9, %r0, %r2;",
        "shr.u32 %r9, %r2, 5;",
        "shr.s32 %r9, %r2, 40;",
        "shr.u32 %r9, %r0, 2;",
        "and.b32 %r9, %r2, %r1;",
        "xor.b32 %r9, %r2, %r0;",
        "min.s32 %r9, %r2, 100;",
        "max.u32 %r9, %r2, 10;",
        "min.s32 %r9, %r0, %r2;",
        "max.u32 %r9, %r2, %r0; min.u32 %r9, %r9, 2000;",
        "div.u32 %r9, %r2, 7; rem.s32 %r10, %r2, 9; add.u32 %r9, %r9, %r10;",
        "div.s32 %r9, %r2, 0;",
        "add.u64 %rd8, %rd5, %rd2; cvt.u32.u64 %r9, %rd8;",
        "mov.u32 %r9, %laneid; mov.u32 %r10, %laneid; sub.u32 %r9, %r9, %r10;",
    ];
    let wide = [
        "add.u64 %rd9, %rd5, %rd2;",
        "sub.s64 %rd9, %rd2, %rd5;",
        "mul.lo.u64 %rd9, %rd5, %rd2;",
        "mad.lo.s64 %rd9, %rd2, %rd5, %rd5;",
        "shl.b64 %rd9, %rd5, 61;",
        "neg.s64 %rd9, %rd5;",
        "max.s64 %rd9, %rd5, %rd2;",
        "sub.s64 %rd9, %rd5, 1000; max.s64 %rd9, %rd9, 0; min.u64 %rd9, %rd9, %rd2;",
        "mul.lo.u32 %r9, %r0, %r2; mul.wide.u32 %rd9, %r9, 4;",
        "mul.lo.s32 %r9, %r0, %r2; mul.wide.s32 %rd9, %r9, -4;",
        "add.u32 %r9, %r0, %r2; cvt.u64.u32 %rd9, %r9;",
        "add.u32 %r9, %r0, %r2; cvt.s64.s32 %rd9, %r9;",
        "sub.s32 %r9, %r2, %r0; mad.wide.s32 %rd9, %r9, %r2, %rd2;",
        "sub.u32 %r9, %r2, %r0; mad.wide.u32 %rd9, %r2, %r9, %rd5;",
        "or.b64 %rd9, %rd2, 5; shr.s64 %rd9, %rd9, 3;",
    ];
    let values = [0, 1, 5, 100, 0x7fff_ff00, 0x8000_0000, 0xffff_fff0, 0xffff_fa00];
    for a in values {
        let b = u64::from(a) << 32 | u64::from(a);
        for (list, is_wide) in [(&narrow[..], false), (&wide[..], true)] {
            for instruction in list {
                buffers.run(&value_of(instruction, is_wide), a, b);
            }
        }
    }
    let got = buffers.run(
        &value_of("mul.lo.s32 %r9, %r0, %r2; mul.wide.s32 %rd9, %r9, 4;", true),
        1 << 26,
        1,
    );
    for i in 0..THREADS - 5 {
        let index = (i as i32).wrapping_mul(1 << 26);
        assert_eq!(got[i as usize] as i64, i64::from(index) * 4, "thread {i}");
    }
}

#[test]
fn comparisons_with_branches() {
    let buffers = Buffers::new();
    let mut taken = 0;
    for ty in ["u32", "s32", "u64", "s64"] {
        for cmp in ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"] {
            if ty.starts_with('s') && ["lo", "ls", "hi", "hs"].contains(&cmp) {
                continue;
            }
            let (x, y) = match ty {
                "u32" | "s32" => ("%r10", "%r2"),
                _ => ("%rd10", "%rd2"),
            };
            for not in ["", "!"] {
                let body = format!(
                    "sub.u32 %r10, %r0, 40; cvt.s64.s32 %rd10, %r10; mov.u64 %rd9, 1;
                    setp.{cmp}.{ty} %p1, {x}, {y}; @{not}%p1 bra there; mov.u64 %rd9, 2; st.global.u64 [%rd3], %rd9; bra done;
                    there: st.global.u64 [%rd3], %rd9;"
                );
                for a in [0u32, 17, 23, 0xffff_fff0, 0x7fff_fff0] {
                    let got = buffers.run(&body, a, a as i32 as i64 as u64);
                    taken += got.iter().filter(|v| **v == 1).count();
                }
            }
        }
    }
    assert!(taken > 1000);
}

#[test]
fn lanes_diverge_in_and_after_loops() {
    let buffers = Buffers::new();
    // Thread `i` iterates `i % 8 + 1` times. Before the loop, the address grows from lane to lane, and the counter is
    // the same in all lanes.
    buffers.run(
        "and.b32 %r11, %r0, 7; mov.u32 %r12, 0; mov.u64 %rd10, 0; add.u64 %rd11, %rd1, %rd4; mov.u64 %rd12, %rd2;
        round: ld.global.u32 %r13, [%rd11]; cvt.u64.u32 %rd13, %r13; add.u64 %rd10, %rd10, %rd13;
        add.u64 %rd11, %rd11, 4; add.u32 %r12, %r12, 1; add.u64 %rd12, %rd12, %rd5;
        setp.le.u32 %p1, %r12, %r11; @%p1 bra round;
        add.u64 %rd10, %rd10, %rd12; st.global.u64 [%rd3], %rd10;",
        3,
        1 << 40,
    );
    // All lanes iterate together, and diverge only after the loop.
    buffers.run(
        "mov.u32 %r12, 0; mov.u64 %rd10, 0; mov.u64 %rd11, %rd1;
        round: ld.global.u32 %r13, [%rd11+4]; cvt.u64.u32 %rd13, %r13; add.u64 %rd10, %rd10, %rd13;
        add.u64 %rd11, %rd11, 12; add.u32 %r12, %r12, 1; setp.lt.u32 %p1, %r12, %r2; @%p1 bra round;
        cvt.u64.u32 %rd14, %r12; and.b32 %r14, %r0, 31; setp.gt.u32 %p2, %r14, 11; @%p2 bra more; add.u64 %rd14, %rd14, %rd11; sub.u64 %rd14, %rd14, %rd1;
        more: add.u64 %rd10, %rd10, %rd14; st.global.u64 [%rd3], %rd10;",
        9,
        0,
    );
}

#[test]
fn addresses_of_any_step() {
    let buffers = Buffers::new();
    for (step, first) in [(0, 4), (4, 0), (-4, 15_000), (8, 8), (12, 4), (-8, 32_000)] {
        let body = format!(
            "mul.wide.s32 %rd10, %r0, {step}; add.u64 %rd11, %rd1, %rd10;
            ld.global.u32 %r12, [%rd11+{first}]; ld.u32 %r13, [%rd11+{first}]; add.u32 %r12, %r12, %r13;
            cvt.u64.u32 %rd9, %r12; st.global.u64 [%rd3], %rd9;"
        );
        buffers.run(&body, 0, 0);
    }
    // Through shared memory, with addresses of 32 and of 64 bits.
    let got = buffers.run(
        "mul.lo.u32 %r10, %r8, 4; mov.u32 %r11, part; add.u32 %r12, %r11, %r10; st.shared.u32 [%r12], %r0;
        sub.u32 %r13, %r11, %r10; ld.shared.u32 %r14, [%r12];
        cvt.u64.u32 %rd10, %r10; mov.u64 %rd11, part; add.u64 %rd12, %rd11, %rd10; ld.shared.u32 %r15, [%rd12];
        add.u32 %r14, %r14, %r15; cvt.u64.u32 %rd9, %r14; st.global.u64 [%rd3], %rd9;",
        0,
        0,
    );
    assert_eq!((got[0], got[100]), (0, 200));
}

#[test]
fn narrow_numbers_and_vectors() {
    let buffers = Buffers::new();
    for (step, first) in [(0, 16), (1, 3), (2, 6), (3, 1), (-1, 9000), (4, 0)] {
        let even = if step % 2 == 0 { "" } else { "// " };
        let body = format!(
            "mul.wide.s32 %rd10, %r0, {step}; add.u64 %rd11, %rd1, %rd10;
            ld.global.u8 %r12, [%rd11+{first}]; ld.global.s8 %r13, [%rd11+{first}]; mad.lo.u32 %r12, %r13, 1000, %r12;
            ld.u8 %h0, [%rd11+{first}]; ld.global.s8 %h1, [%rd11+{first}+1]; cvt.u32.u16 %r13, %h0;
            mad.lo.u32 %r12, %r13, 77, %r12; cvt.s32.s16 %r13, %h1; mad.lo.u32 %r12, %r13, 99, %r12;
            {even} ld.global.u16 %r13, [%rd11+{first}]; mad.lo.u32 %r12, %r13, 9, %r12;
            {even} ld.global.s16 %r13, [%rd11+{first}]; ld.global.u16 %h2, [%rd11+{first}]; cvt.u32.u16 %r14, %h2;
            {even} mad.lo.u32 %r12, %r13, %r14, %r12;
            cvt.u64.u32 %rd9, %r12; st.global.u64 [%rd3], %rd9; st.global.u8 [%rd3+6], %r0; st.global.u8 [%rd3+5], %rd5;
            cvt.u16.u32 %h3, %r0; st.global.u16 [%rd3], %h3;"
        );
        buffers.run(&body, 0, 0);
    }
    for (step, first) in [(16i32, 0), (0, 32), (32, 16), (-16, 60_000)] {
        let body = format!(
            "mul.wide.s32 %rd10, %r0, {step}; rem.s64 %rd10, %rd10, 32768; add.u64 %rd11, %rd1, %rd10;
            mul.wide.s32 %rd12, %r0, {step}; add.u64 %rd13, %rd1, %rd12; setp.lt.u32 %p2, %r0, 1000; @!%p2 mov.u64 %rd13, %rd11;
            ld.global.v4.u32 {{%r12, %r13, %r14, %r15}}, [%rd13+{first}]; ld.global.v2.u32 {{%r16, %r17}}, [%rd13+{first}+8];
            ld.global.v2.u64 {{%rd14, %rd15}}, [%rd13+{first}]; ld.global.v4.u8 {{%h0, %h1, %h2, %h3}}, [%rd13+{first}+4];
            ld.global.v4.u16 {{%h4, %h5, %h6, %h7}}, [%rd13+{first}]; add.u16 %h0, %h0, %h4; sub.u16 %h1, %h1, %h7;
            mad.lo.u32 %r12, %r13, 3, %r12; mad.lo.u32 %r12, %r14, 5, %r12; mad.lo.u32 %r12, %r15, 7, %r12;
            mad.lo.u32 %r12, %r16, 11, %r12; xor.b32 %r12, %r12, %r17; cvt.u64.u32 %rd9, %r12; add.u64 %rd9, %rd9, %rd14;
            sub.u64 %rd9, %rd9, %rd15; cvt.u32.u64 %r18, %rd9; st.global.v2.u32 [%rd3], {{%r18, %r12}};
            st.global.v4.u8 [%rd3+4], {{%h0, %h1, %h2, %h3}}; st.global.v2.u16 [%rd3], {{%h1, %h0}};",
        );
        // With the guarded move, threads from 1000 on read at offsets that wrap, so that they stay in the input.
        if step.abs() * 3000 < 65_000 {
            buffers.run(&body.replace("@!%p2 mov.u64 %rd13, %rd11;", ""), 0, 0);
        }
        if step >= 0 {
            buffers.run(&body, 0, 0);
        }
    }
}

#[test]
fn accesses_under_a_guard_and_without_a_pattern() {
    let buffers = Buffers::new();
    let body = "and.b32 %r10, %r0, 7; setp.lt.u32 %p1, %r10, 3; mul.wide.u32 %rd10, %r0, 4; add.u64 %rd11, %rd1, %rd10;
        mov.u32 %r12, 5; @%p1 ld.global.u32 %r12, [%rd11]; mov.u64 %rd9, 0; st.global.u64 [%rd3], %rd9;
        @!%p1 st.global.u32 [%rd3+4], %r12; @%p1 st.global.u32 [%rd3], %r12; mov.u32 %r13, 0;
        round: and.b32 %r14, %r12, 0x3fff; mul.wide.u32 %rd12, %r14, 4; add.u64 %rd13, %rd1, %rd12;
        ld.global.u32 %r12, [%rd13]; xor.b32 %r12, %r12, %r0; and.b32 %r15, %r12, 2047; mul.wide.u32 %rd14, %r15, 4;
        ld.global.u8 %r16, [%rd13+1]; mov.u64 %rd15, part; add.u64 %rd14, %rd15, %rd14; add.u32 %r12, %r12, %r16;
        add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 9; @%p2 bra round;
        ld.global.u32 %r17, [%rd3]; add.u32 %r12, %r12, %r17; st.global.u32 [%rd3], %r12;";
    buffers.run(body, 0, 0);
}

#[test]
fn lanes_meet_before_a_loop() {
    let buffers = Buffers::new();
    buffers.run(
        "and.b32 %r14, %r0, 3; setp.eq.u32 %p2, %r14, 1; mov.u64 %rd10, 0; mov.u32 %r12, 0; mov.u64 %rd11, %rd1;
        mul.lo.u32 %r15, %r0, 4; add.u32 %r16, %r15, 4; @%p2 bra even; add.u64 %rd10, %rd10, 5; mov.u32 %r16, %r15;
        even: cvt.u64.u32 %rd14, %r15; add.u64 %rd14, %rd14, %rd1; ld.global.u32 %r13, [%rd14]; cvt.u64.u32 %rd15, %r16;
        add.u64 %rd15, %rd15, %rd1;
        round: ld.global.u32 %r13, [%rd11+4]; cvt.u64.u32 %rd13, %r13; add.u64 %rd10, %rd10, %rd13;
        ld.global.u32 %r17, [%rd14]; cvt.u64.u32 %rd13, %r17; add.u64 %rd10, %rd10, %rd13;
        ld.global.u32 %r17, [%rd15]; cvt.u64.u32 %rd13, %r17; add.u64 %rd10, %rd10, %rd13;
        add.u64 %rd11, %rd11, 12; add.u64 %rd14, %rd14, 8; add.u32 %r12, %r12, 1; setp.lt.u32 %p1, %r12, %r2; @%p1 bra round;
        setp.ne.u32 %p3, %r14, 2; @%p3 bra more; add.u64 %rd10, %rd10, 1000;
        more: ld.global.u32 %r17, [%rd14]; cvt.u64.u32 %rd13, %r17; add.u64 %rd10, %rd10, %rd13; st.global.u64 [%rd3], %rd10;",
        9,
        0,
    );
}

#[test]
fn the_last_lane_wins_in_stores_to_one_address() {
    let mut bench = Bench::text(
        &kernel("cvt.u64.u32 %rd9, %r0; st.global.u64 [%rd0], %rd9;"),
        Isa::best(),
    );
    let out = bench.bytes(8);
    let args = [Arg::U64(out), Arg::U64(0), Arg::U32(64), Arg::U32(0), Arg::U64(0)];
    bench.run_well("k", 1, 64, &args);
    assert_eq!(bench.get(out, 1, u64::from_le_bytes), [63]);
}

#[test]
fn faults_name_the_lane() {
    on_each_isa(|isa| {
        let body = "mul.wide.u32 %rd10, %r0, 4; add.u64 %rd11, %rd1, %rd10; ld.global.u32 %r10, [%rd11];
            cvt.u64.u32 %rd9, %r10; st.global.u64 [%rd3], %rd9;";
        let mut bench = Bench::text(&kernel(body), isa);
        let out = bench.bytes(8 * 256);
        let input = bench.bytes(4 * 75 + 2);
        let args = |input| [Arg::U64(out), Arg::U64(input), Arg::U32(256), Arg::U32(0), Arg::U64(0)];
        let fault = Bench::run(bench.launch("k", 4, 64, &args(input)))
            .fault()
            .expect("a fault");
        let (address, size, write, space) = (input + 4 * 75, 4, false, Space::Global);
        assert_eq!(
            fault.kind,
            FaultKind::IllegalAddress {
                address,
                size,
                write,
                space
            }
        );
        assert_eq!((fault.block, fault.thread), ([1, 0, 0], [11, 0, 0]));
        let fault = Bench::run(bench.launch("k", 1, 32, &args(input + 2)))
            .fault()
            .expect("a fault");
        let address = input + 2;
        assert_eq!(
            fault.kind,
            FaultKind::Misaligned {
                address,
                size,
                write,
                space
            }
        );
        assert_eq!(fault.thread, [0, 0, 0]);
    });
}

#[test]
fn values_of_a_thread_in_each_block() {
    let buffers = Buffers::new();
    // `4 * %tid.x` has the same value in every block, so the engine may keep it from one block to the next. The number at
    // that place in the input is `%tid.x` times a factor, and the rest of the thread's number times this factor differs
    // between blocks.
    let got = buffers.run(
        "cvt.u64.u32 %rd12, %r6; shl.b64 %rd12, %rd12, 2; add.u64 %rd13, %rd1, %rd12; ld.global.u32 %r13, [%rd13];
        mad.lo.u32 %r14, %r3, %r5, %r7; mul.lo.u32 %r14, %r14, %r4; mad.lo.u32 %r13, %r14, 0x9e3779b9, %r13;
        shr.u64 %rd12, %rd12, 2; cvt.u64.u32 %rd14, %r14; add.u64 %rd12, %rd12, %rd14; shl.b64 %rd12, %rd12, 32;
        cvt.u64.u32 %rd9, %r13; or.b64 %rd9, %rd9, %rd12; st.global.u64 [%rd3], %rd9;",
        0,
        0,
    );
    for i in 0..THREADS - 5 {
        assert_eq!(
            got[i as usize],
            u64::from(i) << 32 | u64::from(i.wrapping_mul(0x9e37_79b9)),
            "thread {i}"
        );
    }
}
