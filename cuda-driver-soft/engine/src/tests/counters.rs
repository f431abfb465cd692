//! Counters of small kernels, compared with values that were computed by hand.

use super::{Arg, Bench, Dim};
use crate::count::{Counters, LaunchProfile, Profile};
use crate::{Isa, Progress};

/// Runs a kernel on this many host threads, and returns its counters. `out` and `more` are 64 KiB of zeros each.
fn profile_on(threads: u32, body: &str, grid: u32, block: Dim) -> LaunchProfile {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
        .visible .entry k(.param .u64 out, .param .u64 more) {{\n\
        .reg .pred %p<8>; .reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %rd<16>;\n{body}\nret;\n}}"
    );
    let mut bench = Bench::text(&text, Isa::best());
    let zeros = vec![0u32; 16 << 10];
    let (out, more) = (bench.put(&zeros, u32::to_le_bytes), bench.put(&zeros, u32::to_le_bytes));
    let profile = Profile::new();
    let mut launch = bench.launch("k", grid, block, &[Arg::U64(out), Arg::U64(more)]);
    launch.options.observers = profile.observers();
    let execution = launch.start();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| while execution.work(500) == Progress::BudgetSpent {});
        }
    });
    assert!(execution.is_finished());
    assert_eq!(execution.fault().map(|f| f.to_string()), None);
    let mut launches = profile.take();
    assert_eq!(launches.len(), 1);
    launches.remove(0)
}

/// Runs a kernel on 1, 2 and 16 host threads, which must give the same counters, and returns these.
fn profile(body: &str, grid: u32, block: impl Into<Dim>) -> LaunchProfile {
    let block = block.into();
    let size = block.0;
    let first = profile_on(1, body, grid, block);
    for threads in [2, 16] {
        let other = profile_on(threads, body, grid, Dim(size));
        assert_eq!(other.total, first.total, "{threads} threads");
        let lines = |p: &LaunchProfile| -> Vec<(u32, Counters)> {
            p.instructions.iter().map(|i| (i.ptx_line, i.counters)).collect()
        };
        assert_eq!(lines(&other), lines(&first), "{threads} threads");
    }
    first
}

fn total(body: &str, grid: u32, block: impl Into<Dim>) -> Counters {
    profile(body, grid, block).total
}

/// Loads the parameters, and makes `%rd3` and `%rd4` the addresses of the thread's word in both buffers: 8
/// instructions.
const WORD: &str = "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [more];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
    mad.wide.u32 %rd3, %r4, 4, %rd1; mad.wide.u32 %rd4, %r4, 4, %rd2;";

#[test]
fn a_copy_of_rows() {
    let found = total(
        &format!("{WORD} ld.global.u32 %r5, [%rd4]; st.global.u32 [%rd3], %r5;"),
        4,
        256,
    );
    // 4 blocks of 8 warps; 8 instructions of `WORD`, the load, the store, and `ret`.
    let warps = 4 * 8;
    assert_eq!(found.instructions, 11 * warps);
    assert_eq!(found.thread_instructions, 11 * warps * 32);
    assert_eq!(found.thread_instructions_on, found.thread_instructions);
    assert_eq!(
        (found.integer, found.memory, found.control, found.misc),
        (3 * warps, 4 * warps, warps, 3 * warps)
    );
    assert_eq!(
        (found.global_load_requests, found.global_load_sectors),
        (warps, 4 * warps)
    );
    assert_eq!(
        (found.global_store_requests, found.global_store_sectors),
        (warps, 4 * warps)
    );
    assert_eq!(
        (found.global_load_bytes, found.global_store_bytes),
        (128 * warps, 128 * warps)
    );
    assert_eq!(found.threads_per_instruction(), 32.0);
    assert_eq!(found.sectors_per_load(), 4.0);
}

#[test]
fn a_partial_block() {
    // 3 warps, the last with 6 lanes: 24 bytes, one sector.
    let found = total(&format!("{WORD} ld.global.u32 %r5, [%rd4];"), 1, 70);
    assert_eq!((found.instructions, found.thread_instructions), (10 * 3, 10 * 70));
    assert_eq!((found.global_load_requests, found.global_load_sectors), (3, 4 + 4 + 1));
    assert_eq!(found.global_load_bytes, 280);
}

#[test]
fn strides_and_offsets() {
    // Each thread loads from a sector of its own; rows begin 4 bytes after the beginning of a sector; all threads load
    // the same word, and the same 16 bytes.
    let body = format!(
        "{WORD} mad.wide.u32 %rd5, %r4, 32, %rd2; ld.global.u32 %r5, [%rd5]; ld.global.u32 %r5, [%rd4+4];
        ld.global.u32 %r5, [%rd2]; ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd2+16];"
    );
    let found = profile(&body, 2, 64);
    let loads: Vec<(u64, u64)> = found
        .instructions
        .iter()
        .filter(|i| i.opcode.starts_with("ld.global"))
        .map(|i| (i.counters.global_load_sectors, i.counters.global_load_bytes))
        .collect();
    // 4 warps.
    assert_eq!(loads, [(4 * 32, 512), (4 * 5, 512), (4, 16), (4, 64)]);
}

#[test]
fn wide_loads_and_guards() {
    let body = format!(
        "{WORD} mad.wide.u32 %rd5, %r4, 16, %rd2; ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd5];
        setp.lt.u32 %p1, %r1, 8; @%p1 ld.global.v2.u32 {{%r5, %r6}}, [%rd5]; @!%p1 add.u32 %r5, %r5, 1;
        setp.gt.u32 %p2, %r1, 99; @%p2 st.global.u32 [%rd3], %r5;"
    );
    let found = total(&body, 1, 32);
    // The load with a guard touches the first 8 bytes of 8 pieces of 16 bytes: 4 sectors. No lane stores.
    assert_eq!((found.global_load_requests, found.global_load_sectors), (2, 16 + 4));
    assert_eq!(found.global_load_bytes, 32 * 16 + 8 * 8);
    assert_eq!((found.global_store_requests, found.global_store_sectors), (0, 0));
    assert_eq!((found.instructions, found.thread_instructions), (16, 16 * 32));
    assert_eq!(found.thread_instructions_on, 13 * 32 + 8 + 24);
}

#[test]
fn columns_and_rows_of_shared_memory() {
    let body = |row: u32| {
        format!(
            ".shared .align 16 .b8 tile[8192];
            mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, tile;
            mad.lo.u32 %r4, %r2, {row}, %r3; mad.lo.u32 %r4, %r1, 4, %r4; st.shared.u32 [%r4], %r1;
            bar.sync 0;
            mad.lo.u32 %r5, %r1, {row}, %r3; mad.lo.u32 %r5, %r2, 4, %r5; ld.shared.u32 %r6, [%r5];"
        )
    };
    // A warp stores a row, and loads a column: 32 words of one bank, or of 32 banks with padding.
    let found = total(&body(128), 1, (32, 32));
    assert_eq!(
        (
            found.shared_store_requests,
            found.shared_store_wavefronts,
            found.shared_store_conflicts
        ),
        (32, 32, 0)
    );
    assert_eq!(
        (found.shared_load_requests, found.shared_load_wavefronts),
        (32, 32 * 32)
    );
    assert_eq!(found.shared_load_conflicts, 31 * 32);
    assert_eq!(found.shared_bytes, 2 * 4096);
    let padded = total(&body(132), 1, (32, 32));
    assert_eq!((padded.shared_load_wavefronts, padded.bank_conflicts()), (32, 0));
    assert_eq!((padded.barriers, padded.barrier_wait, padded.communication), (32, 0, 0));
}

#[test]
fn wide_accesses_of_shared_memory() {
    let body = ".shared .align 16 .b8 s[1024];
        mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 8, %r2; mad.lo.u32 %r4, %r1, 16, %r2;
        ld.shared.v2.u32 {%r5, %r6}, [%r3]; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]; ld.shared.u32 %r5, [%r3];
        ld.shared.u32 %r5, [s+4]; ld.shared.u8 %r5, [%r3];";
    let found = total(body, 3, 32);
    // 8 bytes take 2 wavefronts and 16 bytes 4, without conflicts; a stride of two words takes 2 instead of 1.
    assert_eq!(found.shared_load_requests, 3 * 5);
    assert_eq!(found.shared_load_wavefronts, 3 * (2 + 4 + 2 + 1 + 2));
    assert_eq!(found.shared_load_conflicts, 3 * 2);
}

#[test]
fn divergent_branches_and_uniform_ones() {
    let body = format!(
        "{WORD} and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra EVEN;
        st.global.u32 [%rd3], %r1; bra JOIN;
        EVEN: st.global.u32 [%rd3], %r2;
        JOIN: setp.lt.u32 %p2, %r1, 32; @%p2 bra END;
        add.u32 %r5, %r5, 1;
        END: mov.u32 %r6, 0;"
    );
    let found = total(&body, 1, 64);
    // Two warps. Only the first branch divides lanes; the last one is taken by the first warp.
    assert_eq!((found.branches, found.divergent_branches), (2 + 2 + 2, 2));
    assert_eq!(found.instructions, 2 * (8 + 3 + 2 + 1 + 2 + 1 + 1) + 1);
    assert_eq!(found.thread_instructions, 64 * (8 + 3 + 2 + 1 + 1) + 32 * (2 + 1) + 32);
    assert_eq!((found.global_store_requests, found.global_store_sectors), (4, 16));
}

#[test]
fn loops_of_different_lengths() {
    // Lane `i` runs the loop `i % 4 + 1` times: four rounds, with 32, 24, 16 and 8 lanes.
    let body = "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; mov.u32 %r3, 0;
        AGAIN: add.u32 %r3, %r3, 1; setp.le.u32 %p1, %r3, %r2; @%p1 bra AGAIN;";
    let found = total(body, 2, 32);
    assert_eq!(found.instructions, 2 * (3 + 4 * 3 + 1));
    assert_eq!(found.thread_instructions, 2 * (32 * 4 + 3 * (32 + 24 + 16 + 8)));
    assert_eq!((found.branches, found.divergent_branches), (2 * 4, 2 * 3));
}

#[test]
fn atomic_operations() {
    let body = format!(
        "{WORD} .shared .b32 bins[32]; mov.u32 %r5, bins; mad.lo.u32 %r6, %r1, 4, %r5; mov.u32 %r7, 0;
        st.shared.u32 [%r6], %r7;
        red.global.add.u32 [%rd1], 1; atom.global.max.u32 %r8, [%rd3], %r1;
        and.b32 %r9, %r1, 7; mad.wide.u32 %rd5, %r9, 4, %rd2; red.global.or.b32 [%rd5], %r1;
        atom.shared.add.u32 %r8, [bins], 1; red.shared.add.u32 [%r6], 1;"
    );
    let found = total(&body, 2, 32);
    assert_eq!(found.global_atomic_requests, 2 * 3);
    assert_eq!(found.global_atomic_sectors, 2 * (32 + 4 + 4));
    assert_eq!(found.global_atomic_conflicts, 2 * (31 + 24));
    assert_eq!(
        (found.shared_atomic_requests, found.shared_atomic_conflicts),
        (2 * 2, 2 * 31)
    );
}

#[test]
fn time_at_barriers() {
    // Warp 1 runs 4 rounds of 3 instructions before the barrier, warp 0 none.
    let body = "mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 5; mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT;
        AGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 4; @%p2 bra AGAIN;
        WAIT: bar.sync 0; bar.sync 1;";
    let found = profile(body, 5, 64);
    assert_eq!((found.total.barriers, found.total.barrier_wait), (5 * 4, 5 * 12));
    let arrivals: Vec<u64> = found
        .instructions
        .iter()
        .filter(|i| i.opcode.starts_with("bar"))
        .map(|i| i.counters.barriers)
        .collect();
    assert_eq!(arrivals, [10, 10]);
}

#[test]
fn shuffles_votes_and_generic_addresses() {
    let body = format!(
        "{WORD} .shared .align 4 .b32 s[32]; shfl.sync.bfly.b32 %r5, %r1, 16, 31, -1;
        vote.sync.ballot.b32 %r6, %p1, -1; bar.warp.sync -1;
        mov.u64 %rd6, s; cvta.shared.u64 %rd7, %rd6; mad.wide.u32 %rd7, %r1, 4, %rd7;
        st.u32 [%rd7], %r5; ld.u32 %r7, [%rd3];"
    );
    let found = total(&body, 1, 32);
    assert_eq!(found.communication, 2);
    assert_eq!((found.shared_store_requests, found.shared_store_wavefronts), (1, 1));
    assert_eq!((found.global_load_requests, found.global_load_sectors), (1, 4));
}

#[test]
fn barriers_of_two_functions_on_one_line_are_told_apart() {
    // As in `time_at_barriers`, warp 1 makes warp 0 wait at the kernel's barrier.
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.func f() { bar.sync 1; ret; } .visible .entry k() { \
        .reg .b32 %r<3>; .reg .pred %p<3>; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 0; \
        @%p1 bra WAIT; AGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 4; @%p2 bra AGAIN; \
        WAIT: bar.sync 0; call f; ret; }";
    let bench = Bench::text(text, Isa::best());
    let profile = Profile::new();
    let mut launch = bench.launch("k", 1, 64, &[]);
    launch.options.observers = profile.observers();
    assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
    let found = profile.take().remove(0).instructions;
    let bars = found.iter().filter(|i| i.opcode.starts_with("bar"));
    let waits: Vec<_> = bars.map(|i| (i.function.as_str(), i.counters.barrier_wait)).collect();
    assert_eq!(waits, [("f", 0), ("k", 12)]);
}

#[test]
fn local_memory_and_calls() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64
        .func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<4>; ld.param.b32 %r1, [a]; add.u32 %r1, %r1, 1;
        st.param.b32 [r], %r1; ret; }
        .visible .entry k() { .reg .b32 %r<4>; .reg .b64 %rd<4>; .local .align 8 .b8 depot[64];
        mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mov.u32 %r1, %tid.x; st.local.u32 [%rd1+8], %r1;
        st.u64 [%rd2+16], %rd1; ld.local.u32 %r2, [%rd1+8];
        st.local.u32 [depot], %r1; ld.local.u32 %r3, [depot+8];
        { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call.uni (q), f, (p); ld.param.b32 %r3, [q]; }
        ret; }";
    let bench = Bench::text(text, Isa::best());
    let profile = Profile::new();
    let mut launch = bench.launch("k", 1, 32, &[]);
    launch.options.observers = profile.observers();
    let execution = Bench::run(launch);
    assert_eq!(execution.fault().map(|f| f.to_string()), None);
    let found = profile.take().remove(0).total;
    // Arguments and results of calls are in registers, not in memory. A word of 32 lanes is 128 bytes: 4 sectors.
    assert_eq!(found.instructions, 12 + 4);
    assert_eq!((found.local_store_requests, found.local_store_sectors), (3, 4 + 8 + 4));
    assert_eq!((found.local_load_requests, found.local_load_sectors), (2, 4 + 4));
    assert_eq!((found.global_load_requests, found.global_store_requests), (0, 0));
}
