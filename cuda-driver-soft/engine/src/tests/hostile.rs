//! Tests of kernels that use much host memory, and of small overruns that a GPU does not detect.

use super::{Arg, Bench};
use crate::{Execution, Isa, Launch, Options, Progress};
use std::sync::Arc;

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

#[test]
fn memory_that_kernels_free_returns_to_the_host() {
    let ptx = format!(
        "{HEAD}.extern .func (.param .b64 r) malloc (.param .b64 n);
        .extern .func free (.param .b64 p);
        .visible .entry k(.param .u64 out) {{
            .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<3>;
            ld.param.u64 %rd0, [out];
            mov.u32 %r0, 0;
            mov.u32 %r1, 0;
        L:  {{ .param .b64 n; .param .b64 r; st.param.b64 [n], 1000000; call (r), malloc, (n); ld.param.b64 %rd1, [r]; }}
            setp.eq.u64 %p0, %rd1, 0;
            @%p0 add.u32 %r1, %r1, 1;
            @!%p0 st.u32 [%rd1], %r0;
            {{ .param .b64 p; st.param.b64 [p], %rd1; call free, (p); }}
            add.u32 %r0, %r0, 1;
            setp.lt.u32 %p1, %r0, 2000;
            @%p1 bra L;
            st.global.u32 [%rd0], %r1;
            ret;
        }}"
    );
    // A single block, and two blocks of a cluster.
    for cluster in [None, Some([2, 1, 1])] {
        let mut bench = Bench::text(&ptx, Isa::best());
        let out = bench.bytes(4);
        let blocks: u32 = cluster.map_or(1, |[x, _, _]| x);
        let mut launch = bench.launch("k", blocks, 1, &[Arg::U64(out)]);
        launch.options.cluster = cluster;
        let execution = launch.start();
        let mut workers = 1;
        while execution.work(u64::MAX) != Progress::Finished {
            workers += 1;
        }
        // Each call of `work` is a worker. Memory that it frees returns to the host when it ends, so it ends early if
        // it has freed much. Each block frees 2 GB, which takes many workers.
        assert!(workers > 30, "{workers} workers, {cluster:?}");
        assert_eq!(
            (execution.fault(), bench.get(out, 1, u32::from_le_bytes)),
            (None, vec![0])
        );
    }
}

#[test]
fn large_local_memory_is_zero_in_each_block() {
    let ptx = format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{
            .local .align 16 .b8 room[500000];
            .reg .b64 %rd<4>; .reg .b32 %r<6>;
            ld.param.u64 %rd0, [out];
            mov.u64 %rd1, room;
            mov.u32 %r0, %tid.x;
            mul.lo.u32 %r1, %r0, 400;
            cvt.u64.u32 %rd2, %r1;
            add.u64 %rd1, %rd1, %rd2;
            ld.local.u32 %r2, [%rd1];
            add.u32 %r2, %r2, 1;
            st.local.u32 [%rd1], %r2;
            ld.local.u32 %r3, [%rd1];
            atom.global.add.u32 %r4, [%rd0], %r3;
            ret;
        }}"
    );
    let mut bench = Bench::text(&ptx, Isa::best());
    let out = bench.put(&[0u32], u32::to_le_bytes);
    Bench::run(bench.launch("k", 16, 1024, &[Arg::U64(out)]));
    // Each block reads zeros, although its memory is reused.
    assert_eq!(bench.get(out, 1, u32::from_le_bytes), [16 * 1024]);
}

/// Runs one thread of a kernel with 64 bytes of shared or of local memory, which reads four bytes at an offset.
fn overrun(space: &str, offset: u32, slack: u64) -> Arc<Execution> {
    let ptx = format!(
        "{HEAD}.visible .entry k(.param .u32 offset, .param .u64 out) {{
            .{space} .align 8 .b8 room[64];
            .reg .b64 %rd<4>; .reg .b32 %r<4>;
            ld.param.u32 %r0, [offset];
            ld.param.u64 %rd0, [out];
            mov.u64 %rd1, room;
            cvt.u64.u32 %rd2, %r0;
            add.u64 %rd1, %rd1, %rd2;
            ld.{space}.u32 %r1, [%rd1];
            st.global.u32 [%rd0], %r1;
            ret;
        }}"
    );
    let mut bench = Bench::text(&ptx, Isa::best());
    let out = bench.bytes(4);
    let mut launch: Launch = bench.launch("k", 1, 1, &[Arg::U32(offset), Arg::U64(out)]);
    launch.options = Options {
        slack,
        ..launch.options
    };
    Bench::run(launch)
}

#[test]
fn slack_covers_shared_and_local_memory() {
    for space in ["shared", "local"] {
        assert_eq!(overrun(space, 60, 0).fault(), None);
        for offset in [64, 508 + 64] {
            let fault = overrun(space, offset, 0).fault().expect("a fault");
            let hint = fault.to_string().contains("CUDA_SOFT_SLACK=512 allows such accesses");
            assert!(hint && fault.to_string().contains("only 64 bytes"), "{fault}");
            assert_eq!(overrun(space, offset, 512).fault(), None);
        }
        let fault = overrun(space, 512 + 64, 512).fault().expect("a fault");
        assert!(!fault.to_string().contains("CUDA_SOFT_SLACK"), "{fault}");
        assert!(fault.to_string().contains("only 64 bytes"), "{fault}");
    }
}
