//! Tests of the checkers, most of them with pairs of a right and a wrong kernel: the checkers must find the error at
//! its line, and nothing in the right kernel.

use super::{Arg, Bench, list};
use crate::Isa;
use crate::check::{Checker, Checks, Finding, Place, footprint_of_launch};

/// Number of 32-bit words in each of the three buffers of a kernel.
const WORDS: u32 = 4096;

/// A kernel of a pair.
struct Case {
    name: String,
    grid: u32,
    block: u32,
    /// Lines at which the error may be found; none for a right kernel.
    lines: Vec<u32>,
}

/// Returns the kernels of a file. A comment before each kernel has its grid and block; `// FINDS` marks the lines of
/// the error.
fn cases(file: &str) -> Vec<Case> {
    let path = format!("{}/../../tests/kernels/{file}.cu", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut cases: Vec<Case> = Vec::new();
    let mut shape = (0, 0);
    for (line, number) in text.lines().zip(1..) {
        if let Some(inner) = line.strip_prefix("// <<<").and_then(|l| l.strip_suffix(">>>")) {
            let (grid, block) = inner.split_once(", ").unwrap();
            shape = (grid.parse().unwrap(), block.parse().unwrap());
        }
        if let Some(rest) = line.strip_prefix("extern \"C\" __global__ void ") {
            cases.push(Case {
                name: rest.split('(').next().unwrap().to_owned(),
                grid: shape.0,
                block: shape.1,
                lines: Vec::new(),
            });
        }
        if line.ends_with("// FINDS") {
            cases.last_mut().unwrap().lines.push(number);
        }
    }
    cases
}

/// Runs a kernel with these checks, and returns their findings.
fn findings(file: &str, case: &Case, checks: Checks) -> Vec<Finding> {
    let checker = Checker::new(checks);
    let mut bench = Bench::file(file, Isa::best());
    let words = |of: fn(u32) -> u32| (0..WORDS).map(of).collect::<Vec<u32>>();
    let input = bench.put(&words(|i| i), u32::to_le_bytes);
    let output = bench.bytes(u64::from(WORDS) * 4);
    let zero = bench.put(&words(|_| 0), u32::to_le_bytes);
    let args = [input, output, zero].map(Arg::U64);
    let mut launch = bench.launch(&case.name, case.grid, case.block, &args);
    launch.options.observers = checker.observers();
    let execution = Bench::run(launch);
    if let Some(fault) = execution.fault() {
        checker.add_fault(&fault, &execution.launch().kernel);
    }
    checker.findings()
}

#[test]
fn every_error_is_found_at_its_line_and_nothing_in_right_kernels() {
    let files = [
        ("check_memory", Checks::MEMORY),
        ("check_init", Checks::INIT),
        ("check_race.sm_70", Checks::RACE),
        ("check_copy.sm_80", Checks::RACE),
        ("check_sync.sm_70", Checks::SYNC),
    ];
    let mut pairs = 0;
    let mut problems = Vec::new();
    for (file, check) in files {
        for case in cases(file) {
            let found = findings(file, &case, Checks::KERNELS);
            let again = findings(file, &case, Checks::KERNELS);
            let text = |found: &[Finding]| found.iter().map(|f| format!("  {f}\n")).collect::<String>();
            // Addresses differ, because other tests allocate memory.
            let threads = |found: &[Finding]| {
                let of = |p: &Place| (p.ptx_line, p.block, p.thread);
                let all = found.iter().map(|f| f.places.iter().map(of).collect::<Vec<_>>());
                all.collect::<Vec<_>>()
            };
            if threads(&found) != threads(&again) {
                problems.push(format!(
                    "{}: another run has other findings\n{}{}",
                    case.name,
                    text(&found),
                    text(&again)
                ));
            }
            let wrong = case.name.ends_with("_wrong");
            assert_eq!(wrong, !case.lines.is_empty(), "{}", case.name);
            pairs += u32::from(wrong);
            // A race can also cause a read of uninitialised memory at the same line.
            let at_its_line = |f: &Finding| f.places.iter().any(|p| case.lines.contains(&p.line()));
            if wrong != found.iter().any(|f| f.check == check) || !found.iter().all(at_its_line) {
                let wanted = &case.lines;
                problems.push(format!(
                    "{}: wanted lines {wanted:?}, found\n{}",
                    case.name,
                    text(&found)
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(pairs >= 30, "only {pairs} pairs");
}

/// Returns a kernel for clusters of two blocks. Each thread writes a word to the shared memory of its block, and reads
/// a word from that of the other block after `barrier`.
fn exchange_in_a_cluster(barrier: &str) -> String {
    format!(
        "
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .entry exchange(.param .u64 out)
        {{
            .reg .b32 %r<9>;
            .reg .b64 %rd<3>;
            .shared .align 4 .b32 place[64];
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, place;
            mad.lo.u32 %r3, %r1, 4, %r2;
            st.shared.u32 [%r3], %r1;
            {barrier}
            mov.u32 %r4, %cluster_ctarank;
            xor.b32 %r4, %r4, 1;
            mapa.shared::cluster.u32 %r5, %r3, %r4;
            ld.shared::cluster.u32 %r6, [%r5];
            mov.u32 %r7, %ctaid.x;
            mad.lo.u32 %r7, %r7, 64, %r1;
            mad.wide.u32 %rd2, %r7, 4, %rd1;
            st.global.u32 [%rd2], %r6;
            barrier.cluster.arrive;
            barrier.cluster.wait;
            ret;
        }}"
    )
}

#[test]
fn the_barrier_of_a_cluster_orders_accesses_of_its_blocks() {
    for (barrier, races) in [
        ("barrier.cluster.arrive; barrier.cluster.wait;", 0),
        ("barrier.cluster.arrive.relaxed; barrier.cluster.wait;", 1),
        (
            "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;",
            0,
        ),
        ("bar.sync 0;", 1),
    ] {
        let mut bench = Bench::text(&exchange_in_a_cluster(barrier), Isa::best());
        let checker = Checker::new(Checks::KERNELS);
        let out = bench.bytes(4 * 64 * 4);
        let mut launch = bench.launch("exchange", 4, 64, &[Arg::U64(out)]);
        launch.options.cluster = Some([2, 1, 1]);
        launch.options.observers = checker.observers();
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
        let found = checker.findings();
        let count = found.iter().filter(|f| f.check == Checks::RACE).count();
        assert_eq!(count, races, "{barrier}: {found:?}");
        assert_eq!(found.len(), races, "{barrier}: {found:?}");
    }
}

#[test]
fn reserved_shared_memory_counts_as_written() {
    let ptx = "
        .version 8.7
        .target sm_90
        .address_size 64
        .visible .entry reserved(.param .u64 out)
        {
            .reg .b32 %r<4>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %reserved_smem_offset_1;
            ld.shared.u32 %r2, [%r1];
            st.global.u32 [%rd1], %r2;
            ret;
        }";
    let mut bench = Bench::text(ptx, Isa::best());
    let checker = Checker::new(Checks::KERNELS);
    let out = bench.bytes(4);
    let mut launch = bench.launch("reserved", 1, 32, &[Arg::U64(out)]);
    launch.options.observers = checker.observers();
    assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
    assert!(checker.findings().is_empty(), "{:?}", checker.findings());
}

#[test]
fn a_load_before_a_compare_and_swap_of_its_address_does_not_race() {
    let kernel = |guess: &str| {
        format!(
            "
            .version 7.0
            .target sm_70
            .address_size 64
            .visible .entry most(.param .u64 out)
            {{
                .reg .pred %p;
                .reg .b32 %r<4>;
                .reg .b64 %rd<3>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                {guess}
            again:
                max.u32 %r3, %r2, %r1;
                mov.u32 %r0, %r2;
                atom.global.cas.b32 %r2, [%rd1], %r0, %r3;
                setp.ne.u32 %p, %r0, %r2;
                @%p bra again;
                ret;
            }}"
        )
    };
    for (guess, races) in [
        ("ld.global.u32 %r2, [%rd1];", 0),
        ("add.u64 %rd2, %rd1, 2; ld.global.u16 %r2, [%rd2];", 1),
    ] {
        let mut bench = Bench::text(&kernel(guess), Isa::best());
        let checker = Checker::new(Checks::RACE);
        let out = bench.put(&[0_u32], u32::to_le_bytes);
        let mut launch = bench.launch("most", 2, 64, &[Arg::U64(out)]);
        launch.options.observers = checker.observers();
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
        let found = checker.findings();
        assert_eq!(found.len(), races, "{guess}: {found:?}");
    }
}

/// Returns a kernel whose warp stores a matrix of 1024 bytes to shared memory with `wmma`. After `between`, the lanes
/// read one word each of the 128 bytes from offset `first` on.
fn matrix_in_shared_memory(between: &str, first: u32) -> String {
    let stored = list("f", 8);
    format!(
        "
        .version 7.0
        .target sm_70
        .address_size 64
        .visible .entry matrix(.param .u64 out)
        {{
            .reg .b32 %r<8>;
            .reg .f32 %f<9>;
            .reg .b64 %rd<3>;
            .shared .align 32 .b32 place[512];
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, place;
            wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {{{stored}}}, [%rd1], 16;
            wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%r2], {{{stored}}}, 16;
            {between}
            xor.b32 %r3, %r1, 31;
            mad.lo.u32 %r4, %r3, 4, %r2;
            ld.shared.f32 %f8, [%r4+{first}];
            mad.wide.u32 %rd2, %r1, 4, %rd1;
            st.global.f32 [%rd2+1024], %f8;
            ret;
        }}"
    )
}

#[test]
fn matrices_of_warps_are_accesses_of_their_rows() {
    let wait = "bar.warp.sync 0xffffffff;";
    let cases = [
        (wait, 0, None),
        (wait, 896, None),
        (wait, 1024, Some(Checks::INIT)),
        ("", 0, Some(Checks::RACE)),
    ];
    for (between, first, expected) in cases {
        let mut bench = Bench::text(&matrix_in_shared_memory(between, first), Isa::best());
        let checker = Checker::new(Checks::KERNELS);
        let out = bench.put(&[1_u32; 512], u32::to_le_bytes);
        let mut launch = bench.launch("matrix", 1, 32, &[Arg::U64(out)]);
        launch.options.observers = checker.observers();
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
        let found: Vec<_> = checker.findings().iter().map(|f| f.check).collect();
        assert_eq!(found, Vec::from_iter(expected), "{between} {first}");
    }
}

#[test]
fn shared_memory_that_another_block_writes_is_initialised() {
    let kernel = |target: &str| {
        format!(
            "
            .version 8.0
            .target sm_90
            .address_size 64
            .visible .entry write_to_the_other(.param .u64 out)
            {{
                .reg .b32 %r<9>;
                .reg .b64 %rd<3>;
                .shared .align 4 .b32 place[64];
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, place;
                mad.lo.u32 %r3, %r1, 4, %r2;
                mov.u32 %r4, %cluster_ctarank;
                {target}.b32 %r4, %r4, 1;
                mapa.shared::cluster.u32 %r5, %r3, %r4;
                st.shared::cluster.u32 [%r5], %r1;
                barrier.cluster.arrive;
                barrier.cluster.wait;
                ld.shared.u32 %r6, [%r3];
                mov.u32 %r7, %ctaid.x;
                mad.lo.u32 %r7, %r7, 32, %r1;
                mad.wide.u32 %rd2, %r7, 4, %rd1;
                st.global.u32 [%rd2], %r6;
                ret;
            }}"
        )
    };
    // Each block of two writes the other one's memory. Then, all blocks of four write the memory of the first two, and
    // the other two read memory that no block has written.
    for (target, cluster, expected) in [("xor", 2, 0), ("and", 4, 1)] {
        let mut bench = Bench::text(&kernel(target), Isa::best());
        let checker = Checker::new(Checks::INIT);
        let out = bench.bytes(4 * 32 * 4);
        let mut launch = bench.launch("write_to_the_other", 4, 32, &[Arg::U64(out)]);
        launch.options.cluster = Some([cluster, 1, 1]);
        launch.options.observers = checker.observers();
        assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
        assert_eq!(checker.findings().len(), expected, "{:?}", checker.findings());
    }
}

/// Runs a kernel with these instructions, like [`checks_of_module`].
fn checks_of(body: &str, shape: (u32, u32), checks: Checks) -> Vec<Checks> {
    let text = format!(
        ".version 7.0
        .target sm_80
        .address_size 64
        .visible .entry k(.param .u64 out) {{ {body} }}"
    );
    checks_of_module(&text, shape, checks)
}

/// Runs the kernel `k`, whose parameter is a buffer of 64 words, with these checks. Returns the check of each finding.
pub(super) fn checks_of_module(text: &str, (grid, block): (u32, u32), checks: Checks) -> Vec<Checks> {
    let mut bench = Bench::text(text, Isa::best());
    let checker = Checker::new(checks);
    let out = bench.put(&[0_u32; 64], u32::to_le_bytes);
    let mut launch = bench.launch("k", grid, block, &[Arg::U64(out)]);
    launch.options.observers = checker.observers();
    assert_eq!(Bench::run(launch).fault().map(|f| f.to_string()), None);
    checker.findings().iter().map(|f| f.check).collect()
}

#[test]
fn a_footprint_does_not_grow_with_the_size_of_a_wrong_copy() {
    let text = ".version 8.6
        .target sm_90
        .address_size 64
        .shared .align 128 .b8 tile[512];
        .visible .entry k(.param .u64 out) {
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, tile;
            mov.u32 %r2, 0x4000000;
            cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;
            ret;
        }";
    let mut bench = Bench::text(text, Isa::best());
    let out = bench.bytes(512);
    let mut launch = bench.launch("k", 1, 1, &[Arg::U64(out)]);
    let (sender, receiver) = std::sync::mpsc::channel();
    launch.options.observers = footprint_of_launch(move |footprint| {
        let _ = sender.send(format!("{footprint:?}"));
    });
    assert!(Bench::run(launch).fault().is_some());
    let footprint = receiver.try_recv().unwrap();
    assert!(footprint.starts_with("Footprint { pages: 0,"), "{footprint}");
}

/// The address registers of the first half of the warp are negative: with the offset, their addresses wrap.
#[test]
fn addresses_of_32_bits_wrap() {
    let kernel = ".reg .b32 %r<5>;
        .reg .b64 %rd<3>;
        .shared .align 4 .b32 words[32];
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, words;
        mad.lo.u32 %r2, %r1, 4, %r2;
        sub.u32 %r3, %r2, 64;
        st.shared.u32 [%r3+64], %r1;
        ld.shared.u32 %r4, [%r2];
        mad.wide.u32 %rd2, %r1, 4, %rd1;
        st.global.u32 [%rd2], %r4;
        ret;";
    let found = checks_of(kernel, (1, 32), Checks::KERNELS);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_copy_to_shared_memory_must_be_waited_for() {
    let kernel = |wait: &str| {
        format!(
            ".reg .b32 %r<5>;
                .reg .b64 %rd<3>;
                .shared .align 16 .b32 place[32];
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, place;
                mad.lo.u32 %r3, %r1, 4, %r2;
                mad.wide.u32 %rd2, %r1, 4, %rd1;
                cp.async.ca.shared.global [%r3], [%rd2], 4;
                {wait}
                ld.shared.u32 %r4, [%r3];
                st.global.u32 [%rd2+128], %r4;
                ret;"
        )
    };
    for (wait, races) in [
        ("cp.async.wait_all;", 0),
        ("cp.async.commit_group; cp.async.wait_group 0;", 0),
        (
            "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;",
            0,
        ),
        ("", 1),
        ("bar.sync 0;", 1),
        ("cp.async.commit_group;", 1),
        ("cp.async.commit_group; cp.async.wait_group 1;", 1),
        ("cp.async.wait_group 0;", 1),
    ] {
        let found = checks_of(&kernel(wait), (1, 32), Checks::KERNELS);
        assert_eq!(found, vec![Checks::RACE; races], "{wait}");
    }
}

/// The threads of a block read words that other threads copied: both a wait and a barrier are needed.
#[test]
fn a_copy_of_another_thread_needs_its_wait_and_a_barrier() {
    let kernel = |between: &str| {
        format!(
            ".reg .b32 %r<6>;
                .reg .b64 %rd<3>;
                .shared .align 16 .b32 place[64];
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %tid.x;
                mov.u32 %r2, place;
                mad.lo.u32 %r3, %r1, 4, %r2;
                mad.wide.u32 %rd2, %r1, 4, %rd1;
                cp.async.ca.shared.global [%r3], [%rd2], 4;
                {between}
                xor.b32 %r4, %r1, 63;
                mad.lo.u32 %r3, %r4, 4, %r2;
                ld.shared.u32 %r5, [%r3];
                st.global.u32 [%rd2], %r5;
                ret;"
        )
    };
    for (between, races) in [
        ("cp.async.wait_all; bar.sync 0;", 0),
        ("bar.sync 0; cp.async.wait_all;", 1),
        ("cp.async.wait_all;", 1),
        ("bar.sync 0;", 1),
    ] {
        let found = checks_of(&kernel(between), (1, 64), Checks::RACE);
        assert_eq!(found, vec![Checks::RACE; races], "{between}");
    }
}

#[test]
fn a_fence_in_a_block_does_not_order_blocks() {
    let kernel = |fence: &str| {
        format!(
            ".reg .pred %p<3>;
                .reg .b32 %r<5>;
                .reg .b64 %rd<3>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %ctaid.x;
                setp.ne.u32 %p1, %r1, 0;
                @%p1 bra READ;
                st.global.u32 [%rd1+4], 7;
                {fence}
                st.volatile.global.u32 [%rd1], 1;
                ret;
            READ:
                ld.volatile.global.u32 %r2, [%rd1];
                setp.eq.u32 %p2, %r2, 0;
                @%p2 bra READ;
                ld.global.u32 %r3, [%rd1+4];
                st.global.u32 [%rd1+8], %r3;
                ret;"
        )
    };
    for (fence, races) in [
        ("membar.gl;", 0),
        ("membar.cta;", 1),
        ("fence.acq_rel.cta;", 1),
        ("membar.gl; membar.cta;", 0),
    ] {
        let found = checks_of(&kernel(fence), (2, 1), Checks::RACE);
        assert_eq!(found, vec![Checks::RACE; races], "{fence}");
    }
}

/// Two of three warps meet at barrier 1 before all three meet at barrier 0.
#[test]
fn a_fence_before_a_barrier_of_two_warps_counts_after_it() {
    let kernel = |fence: &str| {
        format!(
            ".reg .b32 %r<5>;
                .reg .b64 %rd<3>;
                .reg .pred %p<5>;
                ld.param.u64 %rd1, [out];
                mov.u32 %r1, %ctaid.x;
                mov.u32 %r2, %tid.x;
                setp.ne.u32 %p0, %r1, 0;
                @%p0 bra reader;
                mad.wide.u32 %rd2, %r2, 4, %rd1;
                setp.lt.u32 %p1, %r2, 32;
                @%p1 st.global.u32 [%rd2], %r2;
                {fence}
                setp.ge.u32 %p2, %r2, 64;
                @%p2 bra third;
                bar.sync 1, 64;
            third:
                bar.sync 0;
                setp.ne.u32 %p3, %r2, 0;
                @%p3 bra done;
                atom.global.add.u32 %r3, [%rd1+252], 1;
                bra done;
            reader:
                setp.ne.u32 %p3, %r2, 0;
                @%p3 bra done;
            again:
                atom.global.add.u32 %r3, [%rd1+252], 0;
                setp.eq.u32 %p4, %r3, 0;
                @%p4 bra again;
                membar.gl;
                ld.global.u32 %r4, [%rd1];
                st.global.u32 [%rd1+240], %r4;
            done:
                ret;"
        )
    };
    for (fence, races) in [("membar.gl;", 0), ("", 1)] {
        let found = checks_of(&kernel(fence), (2, 96), Checks::RACE);
        assert_eq!(found, vec![Checks::RACE; races], "{fence}");
    }
}

#[test]
fn a_copy_of_four_gigabytes_faults() {
    let kernel = "
        .version 8.0
        .target sm_90
        .address_size 64
        .visible .entry k(.param .u64 out)
        {
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            .shared .align 16 .b8 place[64];
            .shared .align 8 .b64 arrivals;
            ld.param.u64 %rd1, [out];
            mov.u32 %r1, place;
            mov.u32 %r2, arrivals;
            mbarrier.init.shared.b64 [%r2], 1;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 0xfffffff0, [%r2];
            ret;
        }";
    for checks in [Checks::RACE, Checks::INIT] {
        let mut bench = Bench::text(kernel, Isa::best());
        let checker = Checker::new(checks);
        let out = bench.put(&[0_u32; 64], u32::to_le_bytes);
        let mut launch = bench.launch("k", 1, 1, &[Arg::U64(out)]);
        launch.options.observers = checker.observers();
        assert!(Bench::run(launch).fault().is_some(), "{checks:?}");
        assert!(checker.findings().is_empty(), "{:?}", checker.findings());
    }
}

#[test]
fn memory_that_a_kernel_frees_and_allocates_again_is_uninitialised() {
    let kernel = |before: &str| {
        format!(
            "
            .version 7.0
            .target sm_70
            .address_size 64
            .extern .func (.param .b64 place) malloc(.param .b64 size);
            .extern .func free(.param .b64 place);
            .visible .entry k(.param .u64 out)
            {{
                .reg .b32 %r<3>;
                .reg .b64 %rd<4>;
                ld.param.u64 %rd1, [out];
                {{
                .param .b64 size; .param .b64 place;
                st.param.b64 [size], 64;
                call (place), malloc, (size);
                ld.param.b64 %rd2, [place];
                }}
                st.u32 [%rd2], 5;
                ld.u32 %r1, [%rd2];
                {{
                .param .b64 place;
                st.param.b64 [place], %rd2;
                call free, (place);
                }}
                {{
                .param .b64 size; .param .b64 place;
                st.param.b64 [size], 64;
                call (place), malloc, (size);
                ld.param.b64 %rd3, [place];
                }}
                {before}
                ld.u32 %r2, [%rd3];
                st.global.u32 [%rd1], %r2;
                ret;
            }}"
        )
    };
    for (before, expected) in [("st.u32 [%rd3], 6;", 0), ("", 1)] {
        let found = checks_of_module(&kernel(before), (1, 1), Checks::INIT);
        assert_eq!(found, vec![Checks::INIT; expected], "{before}");
    }
}
