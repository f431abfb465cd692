//! Clusters of several blocks: special registers, distributed shared memory, the cluster's barrier, asynchronous
//! operations, and faults.

use super::{Arg, Bench, Dim, on_each_isa};
use crate::Isa;

fn module(declarations: &str, body: &str) -> String {
    format!(
        ".version 8.1\n.target sm_90\n.address_size 64\n\
        .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;\n{declarations}\n\
        .visible .entry k(.param .u64 out) {{\n\
        .reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<32>; .reg .b64 %rd<16>;\n\
        ld.param.u64 %rd1, [out]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %tid.x; mov.u32 %r2, bar;\n\
        mov.u32 %r3, tile; setp.eq.u32 %p0, %r1, 0;\n{body}\nret; }}"
    )
}

const BARRIER: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

/// Runs a launch with clusters and returns the code of its fault.
fn run(bench: &Bench, grid: impl Into<Dim>, block: u32, cluster: [u32; 3], out: u64) -> Option<u32> {
    let mut launch = bench.launch("k", grid, block, &[Arg::U64(out)]);
    launch.options.cluster = Some(cluster);
    Bench::run(launch).fault().map(|fault| fault.code())
}

#[test]
fn special_registers_of_clusters() {
    // 16 words per block, in the order of the blocks of the 4 x 4 x 2 grid.
    let text = module(
        "",
        "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z; mad.lo.u32 %r7, %r6, 4, %r5; mad.lo.u32 %r7, %r7, 4, %r4;
        mul.wide.u32 %rd2, %r7, 64; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r0;
        mov.u32 %r8, %clusterid.x; st.global.u32 [%rd1+4], %r8; mov.u32 %r8, %clusterid.y; st.global.u32 [%rd1+8], %r8;
        mov.u32 %r8, %clusterid.z; st.global.u32 [%rd1+12], %r8; mov.u32 %r8, %nclusterid.x; st.global.u32 [%rd1+16], %r8;
        mov.u32 %r8, %nclusterid.y; st.global.u32 [%rd1+20], %r8; mov.u32 %r8, %nclusterid.z; st.global.u32 [%rd1+24], %r8;
        mov.u32 %r8, %cluster_ctaid.x; st.global.u32 [%rd1+28], %r8; mov.u32 %r8, %cluster_ctaid.y; st.global.u32 [%rd1+32], %r8;
        mov.u32 %r8, %cluster_ctaid.z; st.global.u32 [%rd1+36], %r8; mov.u32 %r8, %cluster_nctaid.x; st.global.u32 [%rd1+40], %r8;
        mov.u32 %r8, %cluster_nctaid.y; st.global.u32 [%rd1+44], %r8; mov.u32 %r8, %cluster_nctaid.z; st.global.u32 [%rd1+48], %r8;
        mov.u32 %r8, %cluster_nctarank; st.global.u32 [%rd1+52], %r8; mov.pred %p1, %is_explicit_cluster; selp.u32 %r8, 1, 0, %p1;
        st.global.u32 [%rd1+56], %r8;",
    );
    let mut bench = Bench::text(&text, Isa::best());
    let out = bench.bytes(32 * 64);
    for (explicit, [cx, cy, cz]) in [(true, [2u32, 2, 1]), (true, [1, 4, 2]), (false, [1, 1, 1])] {
        if explicit {
            assert_eq!(run(&bench, (4, 4, 2), 1, [cx, cy, cz], out), None);
        } else {
            bench.run_well("k", (4, 4, 2), 1, &[Arg::U64(out)]);
        }
        let got = bench.get(out, 32 * 16, u32::from_le_bytes);
        for (i, got) in (0..32).zip(got.chunks(16)) {
            let (x, y, z) = (i % 4, i / 4 % 4, i / 16);
            let (ix, iy, iz) = (x % cx, y % cy, z % cz);
            let want = [
                ix + cx * (iy + cy * iz),
                x / cx,
                y / cy,
                z / cz,
                4 / cx,
                4 / cy,
                2 / cz,
                ix,
                iy,
                iz,
                cx,
                cy,
                cz,
                cx * cy * cz,
                u32::from(explicit),
            ];
            assert_eq!(got[..15], want, "block {x} {y} {z}");
        }
    }
}

/// The blocks form a ring: each writes its memory, reads the next block's in two ways, and adds to the previous
/// block's.
#[test]
fn distributed_shared_memory() {
    let text = module(
        "",
        &format!(
            "shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4; mov.u32 %r6, %ctaid.x; mad.lo.u32 %r7, %r6, 1000, %r1; st.shared.u32 [%r5], %r7;
            add.u32 %r8, %r3, 256; st.shared.u32 [%r8], 0;
            {BARRIER}
            mov.u32 %r9, %cluster_nctarank; add.u32 %r10, %r0, 1; rem.u32 %r10, %r10, %r9; add.u32 %r11, %r0, %r9; sub.u32 %r11, %r11, 1; rem.u32 %r11, %r11, %r9;
            mapa.shared::cluster.u32 %r12, %r5, %r10; ld.shared::cluster.u32 %r13, [%r12];
            cvt.u64.u32 %rd2, %r5; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r10; ld.u32 %r14, [%rd3];
            getctarank.u64 %r15, %rd3; getctarank.shared::cluster.u32 %r16, %r5;
            mapa.shared::cluster.u32 %r17, %r8, %r11; atom.shared::cluster.add.u32 %r18, [%r17], 1;
            mapa.shared::cluster.u32 %r20, %r5, %r0; sub.u32 %r20, %r20, %r5;
            {BARRIER}
            ld.shared.u32 %r19, [tile+256];
            mad.lo.u32 %r21, %r6, 32, %r1; mul.wide.u32 %rd4, %r21, 32; add.u64 %rd1, %rd1, %rd4;
            st.global.v4.u32 [%rd1], {{%r13, %r14, %r15, %r16}}; st.global.v2.u32 [%rd1+16], {{%r19, %r20}};"
        ),
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(16 * 32 * 32);
        for cluster in [2, 4, 8, 16] {
            assert_eq!(run(&bench, 16, 32, [cluster, 1, 1], out), None);
            let got = bench.get(out, 16 * 32 * 8, u32::from_le_bytes);
            for (i, got) in (0..).zip(got.chunks(8)) {
                let (block, thread) = (i / 32, i % 32);
                let (first, rank) = (block / cluster * cluster, block % cluster);
                let next = (rank + 1) % cluster;
                let value = (first + next) * 1000 + thread;
                assert_eq!(
                    got[..6],
                    [value, value, next, rank, 32, 0],
                    "block {block} of {cluster}"
                );
            }
        }
    });
}

/// A generic address in a block's shared memory names the same memory in the other blocks of the cluster. Here, a
/// function that all blocks call returns the address.
#[test]
fn addresses_are_valid_in_the_whole_cluster() {
    let text = module(
        ".func (.reg .u64 a) mine() { .reg .b64 %x; mov.u64 %x, tile; cvta.shared.u64 a, %x; ret; }",
        &format!(
            "add.u32 %r4, %r0, 70; st.shared.u32 [tile], %r4; call (%rd2), mine, (); mov.u32 %r5, %ctaid.x;
            mul.wide.u32 %rd3, %r5, 8; add.u64 %rd4, %rd1, %rd3; @%p0 st.volatile.global.u64 [%rd4], %rd2; {BARRIER}
            xor.b32 %r5, %r5, 1; mul.wide.u32 %rd5, %r5, 8; add.u64 %rd6, %rd1, %rd5; ld.volatile.global.u64 %rd7, [%rd6]; ld.u32 %r6, [%rd7];
            {BARRIER} add.u64 %rd8, %rd1, 64; add.u64 %rd8, %rd8, %rd3; @%p0 st.global.u32 [%rd8], %r6;"
        ),
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(128);
        assert_eq!(run(&bench, 8, 32, [2, 1, 1], out), None);
        let got = bench.get(out + 64, 8, u64::from_le_bytes);
        assert_eq!(
            got.iter().map(|v| *v as u32).collect::<Vec<_>>(),
            [71, 70, 71, 70, 71, 70, 71, 70]
        );
    });
}

/// The lanes of a warp read from all four blocks; then the same instruction reads from the warp's own block.
#[test]
fn each_lane_reads_from_another_block() {
    let text = module(
        "",
        &format!(
            "shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4; mad.lo.u32 %r6, %r0, 100, %r1; st.shared.u32 [%r5], %r6; {BARRIER}
            mov.u32 %r10, 0; mov.u32 %r9, 0;
            L: and.b32 %r7, %r1, 3; setp.ne.u32 %p1, %r9, 0; selp.u32 %r7, %r0, %r7, %p1; mapa.shared::cluster.u32 %r8, %r5, %r7;
            ld.shared::cluster.u32 %r11, [%r8]; mad.lo.u32 %r10, %r10, 10000, %r11; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 2; @%p2 bra L;
            {BARRIER} mad.lo.u32 %r12, %r0, 32, %r1; mul.wide.u32 %rd2, %r12, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r10;"
        ),
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(4 * 32 * 4);
        assert_eq!(run(&bench, 4, 32, [4, 1, 1], out), None);
        for (i, got) in (0..).zip(bench.get(out, 128, u32::from_le_bytes)) {
            let (rank, lane) = (i / 32, i % 32);
            assert_eq!(got, (lane % 4 * 100 + lane) * 10_000 + rank * 100 + lane);
        }
    });
}

const INIT: &str = "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;";
const WAIT: &str = "W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r2], 0; @!%p4 bra W;";

/// Block 0 sends to block 1 by a store, a reduction and a bulk copy, while block 1 waits at its own mbarrier. Then
/// block 1 arrives at block 0's mbarrier.
#[test]
fn asynchronous_operations_on_another_block() {
    let text = module(
        "",
        &format!(
            "{INIT} st.shared.u32 [tile+16], 100; {BARRIER} setp.ne.u32 %p1, %r0, 0; @%p1 bra RECEIVE; @!%p0 bra DONE;
            mapa.shared::cluster.u32 %r4, %r3, 1; mapa.shared::cluster.u32 %r5, %r2, 1;
            st.shared.v4.u32 [tile+128], {{1, 2, 3, 4}}; add.u32 %r6, %r3, 128; fence.proxy.async;
            st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], 77, [%r5];
            red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4+16], 11, [%r5];
            add.u32 %r7, %r4, 32; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r7], [%r6], 16, [%r5];
            {WAIT} bra DONE;
            RECEIVE: @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 24;
            V: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r2], 0; @!%p4 bra V; @!%p0 bra DONE;
            ld.shared.u32 %r8, [tile]; ld.shared.u32 %r9, [tile+16]; ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [tile+32];
            st.global.v4.u32 [%rd1], {{%r8, %r9, %r10, %r11}}; st.global.v2.u32 [%rd1+16], {{%r12, %r13}};
            mapa.shared::cluster.u32 %r14, %r2, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14];
            DONE: {BARRIER}"
        ),
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(64);
        assert_eq!(run(&bench, 2, 64, [2, 1, 1], out), None);
        assert_eq!(bench.get(out, 6, u32::from_le_bytes), [77, 111, 1, 2, 3, 4]);
    });
}

#[test]
fn multicast_copies() {
    let text = module(
        "",
        &format!(
            "{INIT} st.shared.u32 [tile], 5; {BARRIER} mov.u16 %h1, 11; shr.u32 %r4, 11, %r0; and.b32 %r4, %r4, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra DONE;
            @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 32; setp.eq.u32 %p2, %r0, 1; and.pred %p2, %p2, %p0;
            @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd1], 32, [%r2], %h1;
            {WAIT}
            DONE: {BARRIER} ld.shared.u32 %r5, [tile]; ld.shared.u32 %r6, [tile+28]; mul.wide.u32 %rd2, %r0, 8; add.u64 %rd2, %rd2, %rd1; st.global.v2.u32 [%rd2+64], {{%r5, %r6}};"
        ),
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.put(&(1..33).collect::<Vec<u32>>(), u32::to_le_bytes);
        assert_eq!(run(&bench, 4, 32, [4, 1, 1], out), None);
        assert_eq!(bench.get(out + 64, 8, u32::from_le_bytes), [1, 8, 1, 8, 5, 0, 1, 8]);
    });
}

/// The cluster's barrier does not wait for warps that have exited, nor for a block that has.
#[test]
fn the_barrier_ignores_warps_that_have_exited() {
    let text = module(
        "",
        "mov.u32 %r4, 1; setp.eq.u32 %p1, %r0, 2; @%p1 ret; setp.gt.u32 %p2, %r1, 31; setp.eq.u32 %p3, %r0, 1; and.pred %p2, %p2, %p3; @%p2 ret;
        barrier.cluster.arrive; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd1; atom.global.add.u32 %r5, [%rd2], 1; barrier.cluster.wait;
        mov.u32 %r9, 0; ld.volatile.global.u32 %r6, [%rd1]; ld.volatile.global.u32 %r7, [%rd1+4]; ld.volatile.global.u32 %r8, [%rd1+12];
        add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; barrier.cluster.arrive; barrier.cluster.wait; @%p0 st.global.u32 [%rd2], %r6;",
    );
    let mut bench = Bench::text(&text, Isa::best());
    let out = bench.bytes(16);
    assert_eq!(run(&bench, 4, 64, [4, 1, 1], out), None);
    // All threads arrive before any passes the first wait, but some add 1 to their block's word only after others have
    // read it.
    let got = bench.get(out, 4, u32::from_le_bytes);
    assert_eq!(got[2], 0);
    assert!([0, 1, 3].iter().all(|i| got[*i] <= 160 && got[*i] >= 1), "{got:?}");
}

#[test]
fn faults_in_clusters() {
    for (body, code) in [
        (
            "mapa.shared::cluster.u32 %r4, %r3, 5; ld.shared::cluster.u32 %r5, [%r4];",
            719,
        ),
        (
            "cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, 7; ld.u32 %r5, [%rd3];",
            719,
        ),
        (
            "mapa.shared::cluster.u32 %r4, %r3, 1; ld.shared::cluster.u32 %r5, [%r4+262144];",
            700,
        ),
        (
            "mapa.shared::cluster.u32 %r4, %r3, 1; ld.shared::cta.u32 %r5, [%r4];",
            715,
        ),
        (
            "mapa.shared::cluster.u32 %r4, %r3, 1; st.shared::cluster.u32 [%r4+2], 0;",
            716,
        ),
        (
            "setp.eq.u32 %p1, %r0, 0; @%p1 bra E; barrier.cluster.arrive; barrier.cluster.wait; bra END; E: bar.sync 3, 64; END:",
            702,
        ),
    ] {
        let bench = Bench::text(&module("", body), Isa::best());
        assert_eq!(run(&bench, 2, 1, [2, 1, 1], 0), Some(code), "{body}");
    }
    // Without clusters, there is no other block to access.
    let bench = Bench::text(
        &module(
            "",
            "mapa.shared::cluster.u32 %r4, %r3, 1; ld.shared::cluster.u32 %r5, [%r4];",
        ),
        Isa::best(),
    );
    let fault = Bench::run(bench.launch("k", 2, 1, &[Arg::U64(0)])).fault();
    assert_eq!(fault.map(|f| f.code()), Some(719));
}

#[test]
fn ranks_of_addresses() {
    let text = module(
        "",
        "cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2; xor.b32 %r4, %r0, 1; mapa.u64 %rd3, %rd2, %r4;
        isspacep.shared::cta %p1, %rd2; isspacep.shared::cluster %p2, %rd2; isspacep.shared::cta %p3, %rd3; isspacep.shared::cluster %p4, %rd3;
        selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 1, 0, %p2; selp.u32 %r7, 1, 0, %p3; selp.u32 %r8, 1, 0, %p4;
        mul.wide.u32 %rd4, %r0, 16; add.u64 %rd1, %rd1, %rd4; st.global.v4.u32 [%rd1], {%r5, %r6, %r7, %r8};",
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(32);
        assert_eq!(run(&bench, 2, 1, [2, 1, 1], out), None);
        assert_eq!(bench.get(out, 8, u32::from_le_bytes), [1, 1, 0, 1, 1, 1, 0, 1]);
    });
}
