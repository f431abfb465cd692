//! Faults of several lanes in compiled kernels: the report must be the interpreter's, even if lanes run different
//! numbers of rounds of loops, or leave the compiled code at different places.

use super::{Arg, Bench, can_compile, random};
use crate::{Counts, Engine, Isa};

const THREADS: u32 = 64;
const WARP: u32 = 32;
/// Count of the numbers that each thread loads.
const NUMBERS: u32 = 4;

/// Returns a kernel `k` with a body. `%r10` to `%r13` are the thread's numbers. `CHECK` reads at an address that is
/// invalid if `%p7` is true. `ASSERT` is an assertion in line `%r14` of the source, which fails if `%p7` is true.
/// `CALLED` calls a function with such an assertion. `LONG` is 4,000 instructions.
fn kernel(body: &str) -> String {
    let check = "selp.b64 %rd9, 0x10000000000, 0, %p7;
        add.u64 %rd9, %rd9, %rd2;
        ld.global.u32 %r20, [%rd9];";
    let assert = "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
        mov.b64 %rd10, text; mov.b64 %rd11, 1; st.param.b64 [a], %rd10; st.param.b64 [b], %rd10;
        st.param.b32 [c], %r14; st.param.b64 [d], %rd10; st.param.b64 [e], %rd11; @%p7 call __assertfail, (a, b, c, d, e); }";
    let called = "selp.b32 %r21, 1, 0, %p7;
        { .param .b32 fails; .param .b32 line; st.param.b32 [fails], %r21; st.param.b32 [line], %r14;
        call g, (fails, line); }";
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .b8 text[3] = {{65, 66, 0}};
.func g(.param .b32 fails, .param .b32 line) {{
    .reg .b64 %rd<12>; .reg .b32 %r<24>; .reg .pred %p<8>;
    ld.param.b32 %r21, [fails]; ld.param.b32 %r14, [line]; setp.ne.u32 %p7, %r21, 0; @!%p7 bra done;
    {assert}
done:
    ret;
}}
.visible .entry k(.param .u64 in) {{
    .reg .b64 %rd<12>; .reg .b32 %r<24>; .reg .pred %p<8>; .shared .b32 part[64];
    ld.param.u64 %rd1, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {};
    add.u64 %rd2, %rd1, %rd2; and.b32 %r2, %r1, 31; mov.u32 %r5, 0; mov.u32 %r6, 0;
    ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd2];
    {}
done:
    ret;
}}",
        4 * NUMBERS,
        body.replace("CHECK", check)
            .replace("ASSERT", assert)
            .replace("CALLED", called)
            .replace("LONG", &"xor.b32 %r8, %r8, %r6;\n".repeat(4_000))
    )
}

/// Runs the kernel `k` on each engine with these numbers, and compares the reports. Returns true if there is a fault,
/// and true if a group of 16 lanes left compiled code before. `body` is for the message.
fn same_report(bench: &mut Bench, threads: u32, body: &str, numbers: &[[u32; NUMBERS as usize]]) -> (bool, bool) {
    let input = bench.put(numbers.as_flattened(), u32::to_le_bytes);
    let (mut first, mut leaves) = (None, false);
    for engine in [
        Engine::Interpreter,
        Engine::Compiled { lanes: 32 },
        Engine::Compiled { lanes: 16 },
        Engine::Compiled { lanes: 8 },
        Engine::Leaving { lanes: 16 },
    ] {
        let mut launch = bench.launch("k", 1, threads, &[Arg::U64(input)]);
        launch.options.engine = engine;
        let execution = Bench::run(launch);
        if engine == (Engine::Compiled { lanes: 16 }) {
            let Counts { all, compiled, .. } = execution.counts();
            leaves = compiled < all;
        }
        let report = execution.fault().map(|fault| (fault.to_string(), fault.assertion()));
        let expected = first.get_or_insert_with(|| report.clone());
        assert_eq!(report, *expected, "{engine:?} with {numbers:?}: {body}");
    }
    (first.flatten().is_some(), leaves)
}

#[test]
fn the_first_fault_is_reported() {
    if !can_compile() {
        return;
    }
    let assertions =
        "again: setp.eq.u32 %p7, %r5, %r11; setp.ne.u32 %p1, %r5, %r12; @%p1 bra next; add.u32 %r6, %r6, 1;
        next: and.b32 %r14, %r13, 1;
        ASSERT
        add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra again;
        setp.eq.u32 %p7, %r13, 3; mov.u32 %r14, 7;
        ASSERT";
    let bodies = [
        // On either side of a branch, and after it.
        (
            THREADS,
            "setp.eq.u32 %p7, %r13, 1; setp.lt.u32 %p1, %r10, 4; @%p1 bra other;
        CHECK
        bra join;
        other: setp.eq.u32 %p7, %r13, 2;
        CHECK
        join: setp.eq.u32 %p7, %r13, 3;
        CHECK",
        ),
        // In a loop, with a branch at which lanes diverge.
        (
            THREADS,
            "again: setp.eq.u32 %p7, %r5, %r11; setp.ne.u32 %p1, %r5, %r12; @%p1 bra next; add.u32 %r6, %r6, 1;
        next:
        CHECK
        add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra again;
        setp.eq.u32 %p7, %r13, 3;
        CHECK",
        ),
        // In a loop that only some lanes run; the others run another loop.
        (
            THREADS,
            "setp.lt.u32 %p1, %r13, 3; @%p1 bra second;
        first: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, %r12; @%p2 bra first; bra join;
        second: setp.eq.u32 %p7, %r5, %r11;
        CHECK
        add.u32 %r5, %r5, 1; setp.le.u32 %p2, %r5, %r10; @%p2 bra second;
        join: setp.eq.u32 %p7, %r13, 9;
        CHECK",
        ),
        // In nested loops: in the outer one, in the inner one, and after both.
        (
            THREADS,
            "outer: mov.u32 %r7, 0;
        inner: mad.lo.u32 %r8, %r5, 2, %r7; setp.eq.u32 %p7, %r8, %r11;
        CHECK
        add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r12; @%p1 bra inner;
        setp.eq.u32 %p7, %r5, %r13;
        CHECK
        add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra outer;
        setp.gt.u32 %p7, %r13, 9;
        CHECK",
        ),
        // Groups stop in different rounds of a loop, because they have taken as many backward jumps as a warp may take
        // at a time: about 1,000, as that number falls with the length of the kernel. No thread runs the last
        // instructions. The block has only one warp: another one would run then, earlier or later than in the
        // interpreter.
        (
            WARP,
            "outer: mov.u32 %r7, 0; mad.lo.u32 %r9, %r12, 300, 7;
        inner: add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r9; @%p1 bra inner;
        setp.eq.u32 %p7, %r5, %r11;
        CHECK
        add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra outer;
        setp.lt.u32 %p1, %r10, 99; @%p1 bra done;
        LONG",
        ),
        // Stores, in some lanes, and an instruction that the interpreter runs in the loop.
        (
            THREADS,
            "mov.u32 %r21, part; shl.b32 %r22, %r2, 2; add.u32 %r21, %r21, %r22;
        again: setp.eq.u32 %p7, %r5, %r11; selp.b32 %r22, 0x100000, 0, %p7; add.u32 %r22, %r22, %r21;
        setp.lt.u32 %p2, %r5, %r12;
        @%p2 st.shared.u32 [%r22], %r5;
        @%p2 activemask.b32 %r6;
        @!%p2 st.shared.u32 [%r22], %r6;
        add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra again;",
        ),
        // On both sides of a barrier in a loop. One call of compiled code runs all groups of the block from barrier to
        // barrier.
        (
            THREADS,
            "again: setp.eq.u32 %p7, %r5, %r11;
        CHECK
        bar.sync 0; setp.eq.u32 %p7, %r5, %r13;
        CHECK
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 30; @%p1 bra again;",
        ),
        // The same, in the outer one of two nested loops.
        (
            THREADS,
            "outer: mov.u32 %r7, 0; setp.eq.u32 %p7, %r5, %r11;
        CHECK
        inner: add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r12; @%p1 bra inner;
        bar.sync 0; setp.eq.u32 %p7, %r5, %r13;
        CHECK
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 30; @%p1 bra outer;",
        ),
        // Groups of the first warp, which has no fault, do different numbers of rounds between two barriers.
        (
            THREADS,
            "mul.lo.u32 %r9, %r12, 0x9e3779b1; setp.ge.u32 %p3, %r1, 32; add.u32 %r11, %r11, 5; add.u32 %r13, %r13, 5;
        again: mov.u32 %r7, 0;
        inner: add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 2; @%p1 bra inner;
        shr.u32 %r8, %r9, %r5; and.b32 %r8, %r8, 1; setp.eq.u32 %p2, %r8, 1; @%p2 bra skip;
        add.u32 %r6, %r6, 1;
        bar.sync 0;
        skip: setp.eq.and.u32 %p7, %r5, %r11, %p3;
        CHECK
        setp.eq.and.u32 %p7, %r5, %r13, %p3;
        CHECK
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r6, 8; @%p1 bra again;",
        ),
        // The second half of a warp diverges in a loop, and reconverges before the barrier.
        (
            THREADS,
            "and.b32 %r8, %r1, 16; setp.eq.u32 %p3, %r8, 0; selp.b32 %r9, 100, %r2, %p3;
        add.u32 %r11, %r11, 5; add.u32 %r13, %r13, 5;
        again: setp.eq.u32 %p2, %r5, 0; @%p2 bra even; setp.lt.u32 %p2, %r9, 20; @%p2 bra even;
        add.u32 %r6, %r6, 1;
        even: bar.sync 0; setp.eq.u32 %p7, %r5, %r11;
        CHECK
        setp.eq.u32 %p7, %r5, %r13;
        CHECK
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 30; @%p1 bra again;",
        ),
        // If the assertion of one line fails for several lanes at once, they are in one report.
        (THREADS, assertions),
        // The same in two nested loops, together with another fault.
        (
            THREADS,
            "mov.u32 %r14, 3;
        outer: mov.u32 %r7, 0;
        inner: mad.lo.u32 %r8, %r5, 2, %r7; setp.eq.u32 %p7, %r8, %r11;
        ASSERT
        add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, %r12; @%p1 bra inner;
        setp.eq.u32 %p7, %r5, %r13;
        CHECK
        add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra outer;",
        ),
        // The same assertions in a called function.
        (THREADS, &assertions.replace("ASSERT", "CALLED")),
        // The same on one side of a branch in a loop, with the other side in the kernel's own code.
        (
            THREADS,
            "mov.u32 %r14, 3;
        again: setp.eq.u32 %p7, %r5, %r11; and.b32 %r7, %r12, 1; setp.eq.u32 %p1, %r7, 0; @%p1 bra other;
        CALLED
        bra join;
        other:
        ASSERT
        join: add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r10; @%p1 bra again;",
        ),
    ];
    let mut state = 1u64;
    let mut below = |n: u32| random(&mut state) % n;
    for (threads, body) in bodies {
        let mut bench = Bench::text(&kernel(body), Isa::Wide);
        let (mut faults, mut left) = (0, 0);
        for round in 0..24 {
            // Some numbers are the same in all lanes of a group, so that not all groups diverge.
            let [mut rare, mut together] = [0; 2].map(|_| below(4));
            rare += 1;
            together %= 3;
            let mut group = [0; NUMBERS as usize];
            let numbers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    if thread % 8 == 0 || round % 2 == 0 {
                        group = [below(12), below(12 * rare), below(12), below(12 * rare)];
                    }
                    let mut own = group;
                    if together == 0 {
                        own[1] = below(40);
                    }
                    own
                })
                .collect();
            let (fails, leaves) = same_report(&mut bench, threads, body, &numbers);
            faults += u32::from(fails);
            left += u32::from(fails && leaves);
        }
        assert!(faults > 5, "only {faults} of 24 rounds have a fault: {body}");
        assert!(
            threads > WARP || left > 5,
            "groups stop in {left} of 24 rounds only: {body}"
        );
    }
}
