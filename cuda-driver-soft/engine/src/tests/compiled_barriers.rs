//! Barriers in compiled kernels: those that the code passes by itself, and blocks whose warps go different ways after
//! some of them.

use super::compiled::{arguments, counts_of, kernel, same_fault_in, same_in};
use super::{Bench, can_compile};
use crate::{Engine, Isa, Progress};

/// Blocks of one, two and eight whole warps, and blocks whose warps have several rows.
const BLOCKS: [(u32, u32); 5] = [(32, 1), (64, 1), (256, 1), (16, 6), (64, 3)];

/// Sets `%r10` to the thread's number in its block, and `%r11` to the address of its place in shared memory, where it
/// stores its first number.
const STORE: &str = "
    mov.u32 %r12, part; shl.b32 %r11, %r8, 2; add.u32 %r11, %r11, %r12; mov.u32 %r10, %r8;
    ld.global.u32 %r13, [%rd6]; st.shared.u32 [%r11], %r13; bar.sync 0;";

/// Adds three times the number of the next thread to that of each thread, in `%r14` rounds with two barriers each. A
/// round ends with a barrier and the jump to the next one.
const ROUNDS: &str = "
    mov.u32 %r15, 0;
    add.u32 %r16, %r10, 1; rem.u32 %r16, %r16, %r9; shl.b32 %r16, %r16, 2; add.u32 %r16, %r16, %r12;
ROUND:
    ld.shared.u32 %r17, [%r16]; bar.sync 0;
    ld.shared.u32 %r18, [%r11]; mad.lo.u32 %r18, %r17, 3, %r18; st.shared.u32 [%r11], %r18;
    add.u32 %r15, %r15, 1; setp.lt.u32 %p1, %r15, %r14; bar.sync 0;
    @%p1 bra ROUND;";

const RESULT: &str = "ld.shared.u32 %r18, [%r11]; cvt.u64.u32 %rd7, %r18; st.global.u64 [%rd3], %rd7;";

#[test]
fn rounds_with_barriers_give_the_same_results() {
    same_in(&BLOCKS, &format!("{STORE} mov.u32 %r14, 5; {ROUNDS} {RESULT}"));
}

#[test]
fn warps_part_after_some_barriers() {
    // In round 2, some lanes of every second warp take another path, on which they leave the code.
    let parts = "
        setp.eq.u32 %p3, %r15, 2; and.b32 %r19, %r10, 35; setp.eq.and.u32 %p3, %r19, 33, %p3; @!%p3 bra SAME;
        ld.volatile.shared.u32 %r20, [%r11]; activemask.b32 %r21; add.u32 %r20, %r20, %r21;
        st.volatile.shared.u32 [%r11], %r20;
    SAME:
        bar.sync 0; ROUND_END";
    let rounds = ROUNDS.replace(
        "add.u32 %r15, %r15, 1;",
        &parts.replace("ROUND_END", "add.u32 %r15, %r15, 1;"),
    );
    same_in(&BLOCKS, &format!("{STORE} mov.u32 %r14, 6; {rounds} {RESULT}"));
}

#[test]
fn a_fault_after_some_barriers_has_the_same_report() {
    // Lane 5 of each warp loads at an invalid address in round 3.
    let faults = "
        setp.eq.u32 %p3, %r15, 3; and.b32 %r19, %r10, 31; setp.eq.and.u32 %p3, %r19, 5, %p3;
        selp.b64 %rd9, 0x10000000000, 0, %p3; add.u64 %rd9, %rd9, %rd6; ld.global.u32 %r20, [%rd9];
        add.u32 %r15, %r15, 1;";
    let rounds = ROUNDS.replace("add.u32 %r15, %r15, 1;", faults);
    same_fault_in(&BLOCKS, &format!("{STORE} mov.u32 %r14, 6; {rounds} {RESULT}"));
}

#[test]
fn warps_exit_at_different_barriers() {
    // Half of the warps exit after the first round; the others go on without them.
    let exits = "
        and.b32 %r19, %r10, 32; setp.ne.u32 %p3, %r19, 0; ld.shared.u32 %r18, [%r11]; cvt.u64.u32 %rd7, %r18;
        st.global.u64 [%rd3], %rd7; bar.sync 0; @%p3 bra done;";
    let own = "add.u32 %r18, %r18, 1; st.shared.u32 [%r11], %r18; bar.sync 0;";
    let body = format!("{STORE} mov.u32 %r14, 1; {ROUNDS} {exits} {own} bar.sync 3; {own} {RESULT}");
    same_in(&BLOCKS, &body);
}

#[test]
fn phases_count_as_many_instructions_as_in_the_interpreter() {
    if !can_compile() {
        return;
    }
    // The last two are single blocks that run more instructions than a block may run without a break, 4 million.
    for (rounds, block, threads) in [
        (3, (64, 1), 768),
        (40, (256, 1), 768),
        (60_000, (256, 1), 256),
        (240_000, (32, 2), 64),
    ] {
        let body = format!("{STORE} mov.u32 %r14, {rounds}; {ROUNDS} {RESULT}");
        let (want, _) = counts_of(threads, block, &body, Engine::Interpreter);
        let (got, warps) = counts_of(threads, block, &body, Engine::Compiled { lanes: 32 });
        assert_eq!(got.all > 1 << 22, rounds > 40, "{rounds} rounds in blocks of {block:?}");
        assert_eq!(got.all, want.all, "{rounds} rounds in blocks of {block:?}");
        // The barriers and the end of the kernel are the scheduler's.
        let scheduled = warps * (2 + 2 * rounds);
        assert_eq!(
            got.compiled,
            got.all - scheduled,
            "{rounds} rounds in blocks of {block:?}"
        );
    }
}

/// A call of machine code runs a block from barrier to barrier. The block can be interrupted at each of them.
#[test]
fn blocks_are_interrupted_between_two_phases() {
    if !can_compile() {
        return;
    }
    const THREADS: u32 = 512;
    let body = format!("{STORE} mov.u32 %r14, 12; {ROUNDS} {RESULT}");
    let mut bench = Bench::text(&kernel(&body), Isa::Wide);
    let numbers: Vec<u32> = (0..4 * THREADS).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let input = bench.put(&numbers, u32::to_le_bytes);
    // The block is interrupted after about `piece` instructions.
    let mut results = |engine: Engine, piece: u64| {
        let out = bench.put(&vec![!0_u64; THREADS as usize], u64::to_le_bytes);
        let args = arguments(out, input, THREADS);
        let mut launch = bench.launch("k", THREADS / 256, 256, &args);
        launch.options.engine = engine;
        let execution = launch.start();
        let mut pieces = 1;
        while execution.work(piece) != Progress::Finished {
            pieces += 1;
        }
        assert_eq!(execution.fault(), None);
        (
            bench.get(out, THREADS as usize, u64::from_le_bytes),
            pieces,
            execution.counts(),
        )
    };
    let (want, _, all) = results(Engine::Interpreter, u64::MAX);
    for piece in [1, 13, 50, 137, 400] {
        let (got, pieces, counts) = results(Engine::Compiled { lanes: 32 }, piece);
        assert!(got == want, "pieces of {piece} instructions");
        assert!(pieces > 3, "{pieces} pieces of {piece} instructions");
        assert_eq!(counts.all, all.all, "pieces of {piece} instructions");
        assert_ne!(counts.compiled, 0, "pieces of {piece} instructions");
    }
}
