//! Compiled kernels against the interpreter: both run the same kernels on the same numbers, and must give the same
//! results.

use super::{Arg, Bench, can_compile};
use crate::memory::address_space;
use crate::plan::ordered::Order;
use crate::{Counts, Engine, Isa, Launch};

/// Block shapes: whole warps, partial ones, and warps with several rows of the block.
const BLOCKS: [(u32, u32); 4] = [(64, 1), (40, 1), (16, 4), (8, 12)];

/// Number of results. In [`same`], the last five threads store none, and neither do threads after them.
const THREADS: u32 = 3 * 256;

/// Returns a kernel `k` with a body for each thread below `n`. These registers have values:
/// * `%r0` and `%rd5`: the number of the thread in the grid,
/// * `%rd3`: the address of its 8 bytes of `out`, and `%rd6`: that of its 16 bytes of `in`,
/// * `%r8` and `%r9`: the number of the thread in its block, and the number of threads of a block,
/// * `%r6` and `%r7`: `%tid.x` and `%tid.y`, `%r3`: `%ctaid.x`, `%r4` and `%r5`: `%ntid.x` and `%ntid.y`,
/// * `%rd0`, `%rd1`, `%r1`, `%r2` and `%rd2`: the parameters.
///
/// The variable `part` is 8 KiB of shared memory.
pub(super) fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n, .param .u32 a, .param .u64 b) {{
            .reg .b64 %rd<40>; .reg .b32 %r<40>; .reg .pred %p<8>; .reg .f32 %f<16>; .reg .f64 %fd<8>; .reg .b16 %h<8>;
            .shared .align 8 .b8 part[8192];
            ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in];
            ld.param.u32 %r1, [n]; ld.param.u32 %r2, [a]; ld.param.u64 %rd2, [b];
            mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.y;
            mad.lo.u32 %r8, %r7, %r4, %r6; mul.lo.u32 %r9, %r4, %r5; mad.lo.u32 %r0, %r3, %r9, %r8;
            setp.ge.u32 %p0, %r0, %r1; @%p0 bra done;
            mul.wide.u32 %rd4, %r0, 8; add.u64 %rd3, %rd0, %rd4; cvt.u64.u32 %rd5, %r0;
            mul.wide.u32 %rd6, %r0, 16; add.u64 %rd6, %rd1, %rd6;
            {body}
        done: ret;
        }}"
    )
}

/// Returns numbers of all kinds: random bits, numbers near 1 or -1, and special values of `.f32` or `.f64`.
fn input() -> Vec<u32> {
    const SPECIAL: [u32; 20] = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_1234,
        0x7f80_0001,
        0x7fff_ffff,
        0x3f80_0000,
        0xbf80_0000,
        0x4b00_0000,
        // Upper halves of `.f64`.
        0x7ff0_0000,
        0xfff8_0000,
        0x7ff4_0000,
        0x3ff0_0000,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let random = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    let numbers = random.map(|bits| match bits % 3 {
        0 => SPECIAL[(bits >> 32) as usize % SPECIAL.len()],
        // A number near 1 or -1, so that not all sums and products overflow.
        1 => 0x3f00_0000 | (bits >> 32) as u32 & 0x80ff_ffff,
        _ => (bits >> 32) as u32,
    });
    numbers.take(4 * THREADS as usize + 64).collect()
}

/// Returns the arguments of the kernel for its output, its input and its number of threads.
pub(super) fn arguments(out: u64, input: u64, threads: u32) -> [Arg; 5] {
    [
        Arg::U64(out),
        Arg::U64(input),
        Arg::U32(threads),
        Arg::U32(3),
        Arg::U64(5),
    ]
}

/// Runs a body in blocks of 64 threads, and returns the counts of its instructions and the number of its warps.
pub(super) fn counts(body: &str, engine: Engine) -> (Counts, u64) {
    counts_in((64, 1), body, engine)
}

/// As [`counts`], in blocks of this shape.
pub(super) fn counts_in(block: (u32, u32), body: &str, engine: Engine) -> (Counts, u64) {
    counts_of(THREADS, block, body, engine)
}

/// As [`counts_in`], with this number of threads.
pub(super) fn counts_of(threads: u32, (x, y): (u32, u32), body: &str, engine: Engine) -> (Counts, u64) {
    let mut bench = Bench::text(&kernel(body), Isa::Wide);
    let input = bench.put(&input(), u32::to_le_bytes);
    let out = bench.put(&vec![!0u64; threads as usize], u64::to_le_bytes);
    let mut launch = bench.launch("k", threads / (x * y), (x, y), &arguments(out, input, threads));
    launch.options.engine = engine;
    let execution = Bench::run(launch);
    assert_eq!(execution.fault().map(|f| f.to_string()), None, "{engine:?}: {body}");
    (execution.counts(), u64::from(threads / 32))
}

/// Runs a body on each engine in blocks of every shape, and compares the values that each thread `i` stores at
/// `out + 8 * i`. `%r0` and `%rd5` are `i`, `%rd3` is that address, and `%rd6` is the address of the thread's four
/// numbers of 32 bits. The parameters are `%r2`, which is 3, and `%rd2`, which is 5.
///
/// Does nothing on a CPU for which nothing is compiled.
pub(super) fn same(body: &str) {
    same_in(&BLOCKS, body);
}

/// Like [`same`], in blocks of these shapes.
pub(super) fn same_in(blocks: &[(u32, u32)], body: &str) {
    compare(blocks, THREADS, body, false);
}

/// Like [`same`], for a body that has a fault in each shape: compares the faults.
pub(super) fn same_fault(body: &str) {
    same_fault_in(&BLOCKS, body);
}

/// Like [`same_fault`], in blocks of these shapes.
pub(super) fn same_fault_in(blocks: &[(u32, u32)], body: &str) {
    compare(blocks, THREADS, body, true);
}

/// Like [`same`], in one block, for a body in which warps take more backward jumps than they may take at a time. If
/// `returns` is true, they must continue in compiled code, and otherwise in the interpreter.
pub(super) fn same_beyond_a_share(body: &str, returns: bool) {
    let block = (64, 1);
    compare(&[block], 64, body, false);
    if can_compile() {
        let (Counts { all, compiled, .. }, warps) = counts_of(64, block, body, Engine::Compiled { lanes: 16 });
        // The end of each warp does not count as compiled.
        let least = if returns { all - warps } else { all / 10 };
        let most = if returns { all } else { all / 10 * 9 };
        assert!((least..=most).contains(&compiled), "{compiled} of {all}: {body}");
    }
}

/// Runs a body with this number of threads on each engine in blocks of these shapes. All engines must store the same
/// values, or report the same fault if the body `faults`.
fn compare(blocks: &[(u32, u32)], threads: u32, body: &str, faults: bool) {
    if !can_compile() {
        return;
    }
    let mut bench = Bench::text(&kernel(body), Isa::Wide);
    let numbers: Vec<u8> = input().into_iter().flat_map(u32::to_le_bytes).collect();
    // All runs use the same memory, so that faults name the same addresses.
    let input = bench.bytes(numbers.len() as u64);
    let out = bench.bytes(8 * u64::from(threads));
    let args = arguments(out, input, threads - 5);
    for block in blocks.iter().copied() {
        let mut first = None;
        for engine in [
            Engine::Interpreter,
            Engine::Compiled { lanes: 32 },
            Engine::Compiled { lanes: 16 },
            Engine::Compiled { lanes: 8 },
            Engine::Leaving { lanes: 16 },
        ] {
            let at = || format!("{engine:?}, blocks of {block:?}: {body}");
            address_space().write(input, &numbers).unwrap();
            address_space().write(out, &vec![0xff; 8 * threads as usize]).unwrap();
            let mut launch = bench.launch("k", threads.div_ceil(block.0 * block.1), block, &args);
            launch.options.engine = engine;
            let compiles = has_code(&launch);
            let execution = Bench::run(launch);
            assert_eq!(execution.counts().compiled > 0, compiles, "{}", at());
            // Other lanes of the warp, which are in the report, may have run further than in the interpreter.
            let fault = execution
                .fault()
                .map(|f| (f.kind, f.line, f.block, f.thread, f.report.calls));
            assert_eq!(fault.is_some(), faults, "{fault:?}, {}", at());
            let got = bench.get(out, threads as usize, u64::from_le_bytes);
            let (want, report) = first.get_or_insert_with(|| (got.clone(), fault.clone()));
            assert_eq!(fault, *report, "{}", at());
            if !faults {
                let differs = (0..got.len()).find(|i| got[*i] != want[*i]);
                let values = differs.map(|i| (i, format!("{:#x} instead of {:#x}", got[i], want[i])));
                assert_eq!(values, None, "{}", at());
            }
        }
    }
}

/// Returns true if the groups of lanes of a launch fit the rows of its blocks, so that it must run machine code.
fn has_code(launch: &Launch) -> bool {
    let (Engine::Compiled { lanes } | Engine::Leaving { lanes }) = launch.options.engine else {
        return false;
    };
    let [x, y, _] = launch.block;
    // Groups of 32 lanes become groups of 16 lanes where they do not fit. A kernel whose results depend on the order of
    // lanes needs warps of one row.
    let fits = |lanes| y == 1 || x.is_multiple_of(lanes);
    fits(lanes.min(16)) && (launch.kernel.order() == Order::Any || fits(32))
}

#[test]
fn guards() {
    same(
        "and.b32 %r10, %r0, 7; setp.lt.u32 %p1, %r10, 3; mul.wide.u32 %rd10, %r0, 4; add.u64 %rd11, %rd1, %rd10;
        mov.u32 %r12, 5; @%p1 ld.global.u32 %r12, [%rd11]; cvt.u64.u32 %rd9, %r12; st.global.u64 [%rd3], %rd9;",
    );
}

#[test]
fn loops() {
    for body in [
        "mov.u32 %r13, 0; mov.u32 %r12, 7;
        round: and.b32 %r14, %r12, 0xff; mul.wide.u32 %rd12, %r14, 4; add.u64 %rd13, %rd1, %rd12;
        ld.global.u32 %r12, [%rd13]; xor.b32 %r12, %r12, %r0;
        add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 9; @%p2 bra round;
        cvt.u64.u32 %rd9, %r12;",
        // Lanes that leave the loop at different times.
        "mov.u32 %r12, 0; and.b32 %r13, %r0, 31;
        round: mad.lo.u32 %r12, %r12, 5, %r0; add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 29; @%p2 bra round;
        cvt.u64.u32 %rd9, %r12;",
        // Nested, with a branch that all lanes of some groups take.
        "mov.u32 %r12, 0; mov.u32 %r13, 0; mov.u64 %rd9, 1; shr.u32 %r17, %r0, 3;
        outer: mov.u32 %r14, 0; add.u64 %rd9, %rd9, %rd5;
        inner: add.u32 %r12, %r12, %r14; add.u32 %r14, %r14, 1; setp.le.u32 %p1, %r14, %r13; @%p1 bra inner;
        and.b32 %r18, %r17, 1; setp.eq.u32 %p2, %r18, 0; @%p2 bra next; mad.lo.u32 %r12, %r12, 3, 1; mul.lo.u64 %rd9, %rd9, %rd9;
        next: add.u32 %r13, %r13, 1; setp.lt.u32 %p1, %r13, %r2; @%p1 bra outer;
        cvt.u64.u32 %rd10, %r12; xor.b64 %rd9, %rd9, %rd10;",
        // More values than registers.
        "cvt.rn.f32.u32 %f0, %r0; mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40400000;
        add.f32 %f4, %f0, %f1; add.f32 %f5, %f4, %f2; mul.f32 %f6, %f5, %f5; sub.f32 %f7, %f6, %f0; mov.u32 %r13, 0;
        round: fma.rn.f32 %f8, %f0, %f1, %f2; fma.rn.f32 %f9, %f3, %f4, %f5; fma.rn.f32 %f10, %f6, %f7, %f8;
        sub.f32 %f0, %f10, %f9; add.f32 %f1, %f1, %f8; fma.rn.f32 %f2, %f0, %f3, %f9; mul.f32 %f3, %f4, 0f3f000000;
        add.f32 %f4, %f5, %f6; sub.f32 %f5, %f7, %f10; fma.rn.f32 %f6, %f6, 0f3e800000, %f1; mov.f32 %f7, %f8;
        add.u32 %r13, %r13, 1; setp.ne.u32 %p1, %r13, 5; @%p1 bra round;
        add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f4, %f4, %f5; add.f32 %f6, %f6, %f7; add.f32 %f0, %f0, %f2;
        add.f32 %f4, %f4, %f6; add.f32 %f0, %f0, %f4; mov.b32 %r19, %f0; cvt.u64.u32 %rd9, %r19;",
    ] {
        same(&format!("{body} st.global.u64 [%rd3], %rd9;"));
    }
    // So many backward jumps that the warp is suspended.
    same_beyond_a_share(
        "mov.u32 %r12, %r0; mov.u32 %r13, 0;
        round: mad.lo.u32 %r12, %r12, 1664525, 1013904223; add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 220000; @%p2 bra round;
        cvt.u64.u32 %rd9, %r12; st.global.u64 [%rd3], %rd9;",
        true,
    );
}

#[test]
fn branches() {
    for body in [
        "and.b32 %r11, %r0, 7; mov.u64 %rd9, 0; setp.eq.u32 %p1, %r11, 3; @%p1 bra join; add.u64 %rd9, %rd5, 1;
        join: add.u64 %rd9, %rd9, 3;",
        "setp.lt.u32 %p1, %r0, 100; mov.u64 %rd9, 7; @!%p1 bra join; mul.lo.u64 %rd9, %rd5, 11;
        join: setp.lt.u32 %p1, %r0, 200; @%p1 bra end; add.u64 %rd9, %rd9, %rd5; end: add.u64 %rd9, %rd9, 1;",
        "setp.ge.u32 %p1, %r0, 77; @%p1 exit; mov.u64 %rd9, %rd5;",
        // No branches: numbers that wrap from one lane to the next, and an index that a minimum limits.
        "add.u32 %r10, %r0, 0xfffffff0; cvt.u64.u32 %rd9, %r10; mul.wide.s32 %rd10, %r10, 3; add.u64 %rd9, %rd9, %rd10;",
        "min.u32 %r10, %r0, 50; mul.wide.u32 %rd10, %r10, 4; add.u64 %rd11, %rd1, %rd10; ld.global.u32 %r11, [%rd11];
        cvt.u64.u32 %rd9, %r11;",
    ] {
        same(&format!("{body} st.global.u64 [%rd3], %rd9;"));
    }
}

#[test]
fn shared_memory_and_barriers() {
    for body in [
        // A reversed copy within the block.
        "shl.b32 %r10, %r8, 2; mov.u32 %r11, part; add.u32 %r12, %r11, %r10; st.shared.u32 [%r12], %r0; bar.sync 0;
        sub.u32 %r13, %r9, 1; sub.u32 %r13, %r13, %r8; shl.b32 %r13, %r13, 2; add.u32 %r13, %r13, %r11;
        ld.shared.u32 %r14, [%r13]; cvt.u64.u32 %rd9, %r14;",
        // A sum over the block's first 8 threads, in a loop with barriers.
        "shl.b32 %r10, %r8, 2; mov.u32 %r11, part; add.u32 %r12, %r11, %r10; mov.u32 %r13, 0; mov.u32 %r14, 0;
        round: add.u32 %r15, %r0, %r13; st.shared.u32 [%r12], %r15; bar.sync 0; mov.u32 %r16, 0;
        inner: shl.b32 %r17, %r16, 2; add.u32 %r17, %r17, %r11; ld.shared.u32 %r18, [%r17]; mad.lo.u32 %r14, %r14, 3, %r18;
        add.u32 %r16, %r16, 1; setp.lt.u32 %p1, %r16, 8; @%p1 bra inner;
        bar.sync 0; add.u32 %r13, %r13, 1; setp.lt.u32 %p1, %r13, 4; @%p1 bra round; cvt.u64.u32 %rd9, %r14;",
    ] {
        same(&format!("{body} st.global.u64 [%rd3], %rd9;"));
    }
}

/// Accesses that fail in one lane of a warp, or from one thread on. The engines must report the same fault for any
/// place of the lane in its group.
#[test]
fn faults() {
    for lane in [0, 1, 7, 8, 15, 16, 17, 31] {
        for access in [
            // An access far from any allocation, a misaligned one, one that moves on in each round of a loop, one to
            // shared memory, and a trap.
            "@%p1 add.u64 %rd11, %rd11, 0x7000000000; st.global.u32 [%rd11], %r0;",
            "@%p1 add.u64 %rd11, %rd11, 2; ld.global.u32 %r12, [%rd11];",
            "mov.u32 %r14, 0; round: @%p1 add.u64 %rd11, %rd11, 0x7000000; ld.global.u32 %r12, [%rd11]; add.u32 %r14, %r14, 1;
            setp.lt.u32 %p2, %r14, 40; @%p2 bra round;",
            "mov.u32 %r13, part; @%p1 add.u32 %r13, %r13, 0x100000; bar.sync 0; ld.shared.u32 %r12, [%r13];",
            "@%p1 trap;",
        ] {
            same_fault(&format!(
                "and.b32 %r10, %r8, 31; setp.eq.u32 %p1, %r10, {lane}; mul.wide.u32 %rd10, %r0, 4; add.u64 %rd11, %rd1, %rd10;
                {access} st.global.u64 [%rd3], %rd5;"
            ));
        }
    }
    // Consecutive addresses, which are invalid from one thread on; for the last offset, no thread reads there.
    for offset in [0, 4 * 3, 4 * 16, 4 * 100, 4 * 765] {
        let bytes = 4 * (4 * THREADS + 64) - offset;
        let compare = if offset < 4 * 763 { same_fault } else { same };
        compare(&format!(
            "mul.wide.u32 %rd10, %r0, 4; add.u64 %rd11, %rd1, %rd10; ld.global.u32 %r12, [%rd11+{bytes}];
            st.global.u64 [%rd3], %rd5;"
        ));
    }
}

/// Two accesses at offsets from one register. At some of these offsets, only the second, wider access is misaligned.
#[test]
fn misaligned_after_a_narrow_access() {
    for (first, second) in [("u8", "u32"), ("u16", "u64"), ("u8", "u16"), ("u32", "v4.u32")] {
        let to = |ty: &str| match ty {
            "u64" => "%rd12",
            "v4.u32" => "{%r13, %r14, %r15, %r16}",
            "u16" => "%h0",
            _ => "%r12",
        };
        let size = |ty: &str| match ty {
            "v4.u32" => 16,
            ty => ty[1..].parse::<u32>().expect("a number of bits") / 8,
        };
        for offset in [0_u32, 1, 2, 4] {
            let aligned = offset.is_multiple_of(size(first)) && offset.is_multiple_of(size(second));
            for step in [0, 16] {
                let compare = if aligned { same } else { same_fault };
                compare(&format!(
                    "mul.wide.u32 %rd10, %r0, {step}; add.u64 %rd11, %rd1, %rd10; add.u64 %rd11, %rd11, {offset};
                    ld.global.{first} {}, [%rd11]; ld.global.{second} {}, [%rd11+16]; st.global.u64 [%rd3], %rd5;",
                    to(if first == "u8" { "u32" } else { first }),
                    to(second),
                ));
            }
        }
    }
}

/// Addresses of local memory that grow from lane to lane by at most the size of the access. Only that of the first lane
/// of a group is known to be aligned.
#[test]
fn misaligned_lanes_in_local_memory() {
    for (access, step) in [("u32", 1), ("u32", 2), ("u64", 4), ("u32", 4)] {
        let register = if access == "u64" { "%rd12" } else { "%r12" };
        let compare = if step < 4 || register == "%rd12" {
            same_fault_in
        } else {
            same_in
        };
        for access in [
            format!("ld.local.{access} {register}, [%rd11];"),
            format!("st.local.{access} [%rd11], {register};"),
        ] {
            compare(
                &[(64, 1)],
                &format!(
                    "{{ .local .align 16 .b8 own[512]; mov.u64 %rd13, own; add.u64 %rd14, %rd13, 15; and.b64 %rd10, %rd14, -16;
                    mul.wide.u32 %rd11, %r6, {step}; add.u64 %rd11, %rd10, %rd11; mov.u32 %r12, 5; mov.u64 %rd12, 5;
                    {access} st.global.u64 [%rd3], %rd5; }}"
                ),
            );
        }
    }
}

/// The guard is the same in all lanes, so the address still grows by one step from lane to lane.
#[test]
fn an_address_changes_under_a_guard() {
    for limit in [3, 4] {
        same(&format!(
            "setp.eq.u32 %p1, %r2, {limit}; mov.b64 %rd10, %rd6; ld.global.u32 %r10, [%rd10]; ld.global.u32 %r11, [%rd10+4];
            @%p1 add.s64 %rd10, %rd10, 4; ld.global.u32 %r12, [%rd10]; ld.global.u32 %r13, [%rd10+4];
            mul.lo.u32 %r10, %r10, 3; xor.b32 %r10, %r10, %r11; mul.lo.u32 %r10, %r10, 3; xor.b32 %r10, %r10, %r12;
            mul.lo.u32 %r10, %r10, 3; xor.b32 %r10, %r10, %r13; cvt.u64.u32 %rd9, %r10; st.global.u64 [%rd3], %rd9;"
        ));
    }
}

/// Minima and maxima of values whose step from lane to lane is so large that its product with the number of lanes
/// overflows.
#[test]
fn choices_of_steps_that_overflow() {
    for step in ["0xeeeeeeeeeeeeeeef", "0x1111111111111112", "0x8000000000000000"] {
        for choice in ["min.u64", "max.u64", "min.s64", "max.s64"] {
            same(&format!(
                "mul.lo.u64 %rd9, %rd5, {step}; {choice} %rd9, %rd9, 100; st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
}

/// Instructions with two sources. Each runs four times, first on numbers from memory, then also on its own results; the
/// last result is stored.
#[test]
fn arithmetic() {
    for (ty, reg, instructions) in [
        ("b32", "r", "and or xor"),
        ("u32", "r", "min max add sub mul.lo mul.hi"),
        ("s32", "r", "min max add sub mul.lo mul.hi"),
        ("b64", "rd", "and or xor"),
        ("u64", "rd", "min max add sub mul.lo mul.hi"),
        ("s64", "rd", "min max add sub mul.lo mul.hi"),
        ("f32", "f", "add.rn sub.rn mul.rn add.rz add.ftz mul.ftz div.rn min max"),
        ("f64", "fd", "add.rn sub.rn mul.rn div.rn min max"),
    ] {
        let wide = ty.ends_with("64");
        let (offset, move_out) = match (wide, reg) {
            (true, _) => (8, format!("mov.b64 %rd9, %{reg}7;")),
            (false, _) => (4, format!("mov.b32 %r19, %{reg}7; cvt.u64.u32 %rd9, %r19;")),
        };
        let bits = if wide { 64 } else { 32 };
        // `%r0` to `%r9` are in use.
        let [x, y, d, last] = if reg == "r" || reg == "rd" {
            [20, 21, 22, 23]
        } else {
            [1, 2, 3, 7]
        };
        let move_out = move_out.replace(&format!("%{reg}7"), &format!("%{reg}{last}"));
        for instruction in instructions.split(' ') {
            same(&format!(
                "ld.global.b{bits} %{reg}{x}, [%rd6]; ld.global.b{bits} %{reg}{y}, [%rd6+{offset}];
                {instruction}.{ty} %{reg}{d}, %{reg}{x}, %{reg}{y}; {instruction}.{ty} %{reg}{last}, %{reg}{d}, %{reg}{x};
                {instruction}.{ty} %{reg}{d}, %{reg}{last}, %{reg}{d};
                {instruction}.{ty} %{reg}{last}, %{reg}{d}, %{reg}{last}; {move_out} st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
}

#[test]
fn three_operands_shifts_and_conversions() {
    for body in [
        "fma.rn.f32 %f3, %f1, %f2, %f0; fma.rn.f32 %f3, %f3, %f2, %f3; fma.rn.f32 %f3, %f1, %f3, %f1;",
        "fma.rn.f32 %f1, %f1, %f2, %f0; fma.rn.f32 %f2, %f0, %f2, %f1; fma.rn.f32 %f3, %f1, %f2, %f2;",
        "fma.rn.ftz.f32 %f3, %f1, %f2, %f0;",
        "fma.rn.sat.f32 %f3, %f1, %f2, %f0;",
        "neg.f32 %f3, %f1; abs.f32 %f4, %f2; sqrt.rn.f32 %f4, %f4; sub.f32 %f3, %f3, %f4;",
        "neg.f32 %f3, %f1;",
        "abs.f32 %f3, %f1;",
        "sqrt.rn.f32 %f3, %f1;",
        "cvt.rn.f32.s32 %f3, %r10;",
        "cvt.rn.f32.u32 %f3, %r10;",
        "cvt.rzi.s32.f32 %r12, %f1; cvt.rn.f32.s32 %f3, %r12;",
        "mad.lo.u32 %r12, %r10, %r11, %r20; mad.lo.u32 %r12, %r12, %r12, %r12; mov.b32 %f3, %r12;",
        "shf.l.wrap.b32 %r12, %r10, %r11, 7; shf.r.wrap.b32 %r12, %r12, %r10, 39; mov.b32 %f3, %r12;",
        "shf.l.wrap.b32 %r12, %r10, %r11, %r20; shf.r.clamp.b32 %r12, %r12, %r10, 39; mov.b32 %f3, %r12;",
        "shl.b32 %r12, %r10, %r11; shr.u32 %r13, %r10, %r20; shr.s32 %r14, %r20, %r11; xor.b32 %r12, %r12, %r13;
         xor.b32 %r12, %r12, %r14; mov.b32 %f3, %r12;",
        "and.b32 %r11, %r11, 63; shl.b32 %r12, %r10, %r11; shr.u32 %r13, %r10, %r11; shr.s32 %r14, %r20, %r11;
         xor.b32 %r12, %r12, %r13; add.u32 %r12, %r12, %r14; shl.b32 %r12, %r12, 3; shr.s32 %r12, %r12, 5; mov.b32 %f3, %r12;",
        "shr.u32 %r12, %r10, 33; shl.b32 %r13, %r10, 32; shr.s32 %r14, %r10, 40; add.u32 %r12, %r12, %r13;
         add.u32 %r12, %r12, %r14; mov.b32 %f3, %r12;",
        "not.b32 %r12, %r10; neg.s32 %r12, %r12; mov.b32 %f3, %r12;",
        "setp.lt.f32 %p1, %f1, %f2; selp.f32 %f3, %f1, %f2, %p1; setp.geu.f32 %p2|%p3, %f1, %f0;
         @%p3 add.f32 %f3, %f3, %f0; @!%p2 mov.f32 %f3, %f1;",
        "setp.eq.f32 %p1, %f1, %f2; setp.neu.and.f32 %p2|%p3, %f1, %f0, %p1; setp.num.or.f32 %p4, %f2, %f0, !%p3;
         xor.pred %p5, %p4, %p2; not.pred %p5, %p5; selp.b32 %r12, %r10, %r11, %p5; mov.b32 %f3, %r12;",
        "setp.lt.u32 %p1, %r10, %r11; setp.le.s32 %p2, %r11, %r20; setp.hi.u32 %p3, %r20, 77; setp.ne.s32 %p4, %r10, %r20;
         selp.b32 %r12, 1, 0, %p1; selp.b32 %r13, 2, %r12, %p2; selp.b32 %r14, %r10, %r13, %p3; selp.b32 %r15, %r14, %r11, %p4;
         mov.b32 %f3, %r15;",
        "selp.b32 %r12, %r0, %r3, %p0; setp.lt.u32 %p1, %r0, 37; selp.b32 %r13, %r10, %r12, %p1; mov.b32 %f3, %r13;",
        "setp.gt.s32 %p1, 50, %r0; @%p1 mov.u32 %r10, %r0; setp.ge.u32 %p2|%p3, %r0, 100; @%p3 add.u32 %r10, %r10, 9;
         mov.b32 %f3, %r10;",
    ] {
        same(&format!(
            "ld.global.f32 %f0, [%rd6]; ld.global.f32 %f1, [%rd6+4]; ld.global.f32 %f2, [%rd6+8];
            mov.b32 %r10, %f0; mov.b32 %r11, %f1; mov.b32 %r20, %f2; {body}
            mov.b32 %r19, %f3; cvt.u64.u32 %rd9, %r19; st.global.u64 [%rd3], %rd9;"
        ));
    }
    for lut in (0..=255).step_by(11).chain([0x96, 0xca, 0xe8]) {
        same(&format!(
            "ld.global.u32 %r10, [%rd6]; ld.global.u32 %r11, [%rd6+4]; ld.global.u32 %r12, [%rd6+8];
            lop3.b32 %r13, %r10, %r11, %r12, {lut}; lop3.b32 %r13, %r13, %r11, %r13, {lut};
            cvt.u64.u32 %rd9, %r13; st.global.u64 [%rd3], %rd9;"
        ));
    }
    for body in [
        "mul.wide.u32 %rd9, %r10, %r11; mad.wide.u32 %rd9, %r12, %r10, %rd9;",
        "mul.wide.s32 %rd9, %r10, %r11; mad.wide.s32 %rd9, %r12, %r10, %rd9;",
        "cvt.s64.s32 %rd9, %r10; cvt.u64.u32 %rd10, %r11; sub.u64 %rd9, %rd9, %rd10; cvt.u32.u64 %r13, %rd9;
         cvt.s64.s32 %rd10, %r13; xor.b64 %rd9, %rd9, %rd10;",
        "and.b32 %r13, %r11, 127; shl.b64 %rd9, %rd12, %r13; shr.u64 %rd10, %rd13, %r13; shr.s64 %rd11, %rd12, %r13;
         xor.b64 %rd9, %rd9, %rd10; add.u64 %rd9, %rd9, %rd11; shl.b64 %rd9, %rd9, 9; shr.u64 %rd9, %rd9, 3;",
        "setp.lt.u64 %p1, %rd12, %rd13; setp.ge.s64 %p2, %rd12, %rd13; selp.b64 %rd9, %rd12, %rd13, %p1;
         selp.b64 %rd9, %rd9, 77, %p2; not.b64 %rd9, %rd9; neg.s64 %rd9, %rd9;",
        "mul.lo.u64 %rd9, %rd12, %rd13; mad.lo.u64 %rd9, %rd9, %rd13, %rd12;",
        "setp.lt.u64 %p1, %rd5, 40; setp.gt.u64 %p2, %rd5, %rd12; selp.b64 %rd9, %rd12, %rd13, %p1; selp.b64 %rd9, %rd9, %rd5, %p2;",
        "mov.b64 %fd1, %rd12; mov.b64 %fd2, %rd13; fma.rn.f64 %fd3, %fd1, %fd2, %fd1; setp.lt.f64 %p1, %fd3, %fd2;
         selp.f64 %fd3, %fd3, %fd1, %p1; mov.b64 %rd9, %fd3;",
    ] {
        same(&format!(
            "ld.global.u32 %r10, [%rd6]; ld.global.u32 %r11, [%rd6+4]; ld.global.u32 %r12, [%rd6+8];
            ld.global.u64 %rd12, [%rd6]; ld.global.u64 %rd13, [%rd6+8]; {body} st.global.u64 [%rd3], %rd9;"
        ));
    }
}

/// Loads and stores of every size and arrangement.
#[test]
fn memory() {
    // Addresses of the lanes: consecutive, 16 bytes apart, backwards, in another order, and the same in all lanes.
    let addresses = [
        "mul.wide.u32 %rd10, %r0, SIZE; add.u64 %rd11, %rd1, %rd10;",
        "mul.wide.u32 %rd10, %r0, 16; add.u64 %rd11, %rd1, %rd10;",
        "sub.u32 %r10, 767, %r0; mul.wide.u32 %rd10, %r10, SIZE; add.u64 %rd11, %rd1, %rd10;",
        "xor.b32 %r10, %r0, 5; mul.wide.u32 %rd10, %r10, SIZE; add.u64 %rd11, %rd1, %rd10;",
        "mul.lo.u32 %r10, %r2, SIZE; cvt.u64.u32 %rd10, %r10; add.u64 %rd11, %rd1, %rd10;",
    ];
    let sum = "mov.u64 %rd9, 1; mad.lo.u64 %rd9, %rd9, 31, %rd20; mad.lo.u64 %rd9, %rd9, 31, %rd21;
        mad.lo.u64 %rd9, %rd9, 31, %rd22; mad.lo.u64 %rd9, %rd9, 31, %rd23; st.global.u64 [%rd3], %rd9;";
    let halves = "cvt.u64.u16 %rd20, %h0; cvt.s64.s16 %rd21, %h1; cvt.u64.u16 %rd22, %h2; cvt.u64.u16 %rd23, %h3;";
    let words = "cvt.u64.u32 %rd20, %r20; cvt.u64.u32 %rd21, %r21; cvt.u64.u32 %rd22, %r22; cvt.u64.u32 %rd23, %r23;";
    let start = "mov.b16 %h0, 1; mov.b16 %h1, 2; mov.b16 %h2, 3; mov.b16 %h3, 4; mov.u32 %r20, %r0; mov.u32 %r21, 6;
        mov.u32 %r22, %r0; mov.u32 %r23, 8; mov.u64 %rd20, %rd5; mov.u64 %rd21, 10; mov.u64 %rd22, %rd5; mov.u64 %rd23, 12;";
    for (registers, widen, types) in [
        ("%h", halves, "u8 s8 b16 s16"),
        ("%r2", words, "u8 s8 u16 s16 b32"),
        ("%rd2", "", "u8 s8 u16 s16 u32 s32 b64"),
    ] {
        for ty in types.split(' ') {
            let bits: usize = ty[1..].parse().unwrap_or(8);
            for count in [1, 2, 4] {
                let size = bits / 8 * count;
                // An access has at most 16 bytes.
                if size > 16 {
                    continue;
                }
                let list: Vec<String> = (0..count).map(|i| format!("{registers}{i}")).collect();
                let (vector, list) = match count {
                    1 => (String::new(), list.concat()),
                    _ => (format!(".v{count}"), format!("{{{}}}", list.join(", "))),
                };
                for address in addresses {
                    let address = address.replace("SIZE", &size.to_string());
                    same_in(
                        &BLOCKS[..1],
                        &format!("{start} {address} ld.global{vector}.{ty} {list}, [%rd11+{size}]; {widen} {sum}"),
                    );
                }
                // A store to the thread's place in shared or local memory. The first and the last byte are loaded.
                let store = format!("st.SPACE{vector}.{ty} [%rd15+16], {list};");
                let back = "ld.SPACE.u8 %rd20, [%rd15+16]; ld.SPACE.u8 %rd21, [%rd15+LAST]; mov.u64 %rd22, 0; mov.u64 %rd23, 0;"
                    .replace("LAST", &(15 + size).to_string());
                let input = "ld.global.u64 %rd20, [%rd6]; ld.global.u64 %rd21, [%rd6+8]; cvt.u32.u64 %r20, %rd20;
                    cvt.u32.u64 %r21, %rd21; cvt.u16.u32 %h0, %r21; cvt.u16.u32 %h1, %r20;";
                for place in [
                    "mov.u64 %rd15, part; mul.wide.u32 %rd16, %r8, SIZE; add.u64 %rd15, %rd15, %rd16;",
                    "mov.u64 %rd15, part; xor.b32 %r10, %r8, 3; mul.wide.u32 %rd16, %r10, 16; add.u64 %rd15, %rd15, %rd16;",
                ] {
                    let place = place.replace("SIZE", &size.to_string());
                    same_in(
                        &BLOCKS[..1],
                        &format!("{start} {input} {place} {store} {back} {sum}").replace("SPACE", "shared"),
                    );
                }
                for place in [
                    "mov.u64 %rd15, own;",
                    "and.b32 %r10, %r20, 1; mul.wide.u32 %rd16, %r10, 16; mov.u64 %rd15, own; add.u64 %rd15, %rd15, %rd16;",
                ] {
                    let own = ".local .align 16 .b8 own[64];";
                    same_in(
                        &BLOCKS[..1],
                        &format!("{own} {start} {input} {place} {store} {back} {sum}").replace("SPACE", "local"),
                    );
                }
            }
        }
    }
}
