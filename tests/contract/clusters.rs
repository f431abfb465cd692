//! Tests of launches in clusters: blocks that share memory, sizes of clusters, the number that run at once, and faults.

use std::ptr::{null_mut, without_provenance_mut};

use cuda_driver::sys::*;

use crate::common::gpu::{Arguments, Gpu};
use crate::common::{Codes, architecture, driver_version, needs};
use crate::{arguments, child, is, ok};

const KERNELS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry plain() { ret; }\n\
    .visible .entry pairs() .reqnctapercluster 2,1,1 { ret; }\n\
    .visible .entry explicit() .explicitcluster { ret; }\n\
    .visible .entry most() .maxclusterrank 4 { ret; }\n";

/// Returns true if the device has clusters; otherwise reports that it has none.
fn has_clusters() -> bool {
    let has = architecture() >= 90;
    if !has {
        needs("a device of sm_90 or later, which has clusters");
    }
    has
}

/// Calls `call` with the description of a launch of `grid` blocks of `threads` threads with `shared` bytes of dynamic
/// shared memory, in clusters of `cluster` unless that is empty.
fn with_config<R>(
    (grid, threads, shared): (u32, u32, u32),
    cluster: &[u32],
    call: impl FnOnce(&CUlaunchConfig) -> R,
) -> R {
    let of = |i: usize| cluster.get(i).copied().unwrap_or(1);
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { pad: [0; 64] },
    };
    attribute.value.clusterDim = CUlaunchAttributeValue_union__clusterDim {
        x: of(0),
        y: of(1),
        z: of(2),
    };
    call(&CUlaunchConfig {
        gridDimX: grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared,
        hStream: null_mut(),
        attrs: &raw mut attribute,
        numAttrs: u32::from(!cluster.is_empty()),
    })
}

fn launch(function: CUfunction, grid: u32, threads: u32, cluster: &[u32], arguments: &mut Arguments) -> u32 {
    let mut pointers = arguments.pointers();
    with_config((grid, threads, 0), cluster, |config| {
        crate::call!(cuLaunchKernelEx(config, function, pointers.as_mut_ptr(), null_mut())).0
    })
}

/// Each block of a cluster reads the shared memory of the block with the mirrored rank, and adds its own value to a sum
/// in block 0.
#[test]
fn blocks_that_share_memory() {
    if !has_clusters() {
        return;
    }
    let gpu = Gpu::new();
    let module = gpu.text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .u32 own; .shared .align 4 .u32 sum;\n\
        .visible .entry k(.param .u64 out) { .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p;\n\
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank;\n\
        mad.lo.u32 %r4, %r1, 10, 7; st.shared.u32 [own], %r4; st.shared.u32 [sum], 0;\n\
        barrier.cluster.arrive; barrier.cluster.wait;\n\
        sub.u32 %r5, %r3, %r2; sub.u32 %r5, %r5, 1; mov.u32 %r6, own; mapa.shared::cluster.u32 %r7, %r6, %r5; ld.shared::cluster.u32 %r8, [%r7];\n\
        mov.u64 %rd2, sum; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, 0; atom.add.u32 %r9, [%rd3], %r4;\n\
        barrier.cluster.arrive; barrier.cluster.wait;\n\
        ld.shared.u32 %r10, [sum]; mul.wide.u32 %rd4, %r1, 8; add.u64 %rd1, %rd1, %rd4; st.global.v2.u32 [%rd1], {%r8, %r10}; ret; }",
    );
    let kernel = gpu.function(module, "k");
    for cluster in [1_u32, 2, 4, 8] {
        let out = gpu.upload(&[u32::MAX; 32]);
        let code = launch(kernel, 16, 1, &[cluster], &mut arguments![out]);
        assert_eq!(code, 0);
        ok!(cuCtxSynchronize());
        let got: Vec<[u32; 2]> = gpu.read(out, 16);
        let value = |block: u32| block * 10 + 7;
        for (block, got) in (0..).zip(got) {
            let (first, rank) = (block / cluster * cluster, block % cluster);
            let sum: u32 = (first..first + cluster).map(value).sum();
            let sum = if rank == 0 { sum } else { 0 };
            let want = [value(first + cluster - 1 - rank), sum];
            assert_eq!(got, want, "block {block} in clusters of {cluster}");
        }
    }
}

#[test]
fn sizes_of_clusters() {
    if !has_clusters() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(KERNELS);
    // Grid, cluster, and the codes of the four kernels.
    #[rustfmt::skip] // a table
    let cases: &[(u32, &[u32], [u32; 4])] = &[
        (4, &[], [0, 0, 912, 0]),
        (3, &[], [0, 912, 912, 0]),
        (4, &[0, 0, 0], [0, 0, 912, 0]),
        (4, &[1], [0, 912, 0, 0]),
        (4, &[2], [0, 0, 0, 0]),
        (4, &[4], [0, 912, 0, 0]),
        (3, &[2], [912, 912, 912, 912]),
        (4, &[1, 2], [912, 912, 912, 912]),
        (4, &[2, 0, 0], [912, 912, 912, 912]),
        (5, &[5], [0, 912, 0, 912]),
        (16, &[8], [0, 912, 0, 912]),
        (16, &[16], [912, 912, 912, 912]),
        (32, &[32], [912, 912, 912, 912]),
    ];
    for (grid, cluster, codes) in cases {
        for (name, want) in ["plain", "pairs", "explicit", "most"].iter().zip(codes) {
            let function = gpu.function(module, name);
            let got = launch(function, *grid, 32, cluster, &mut arguments![]);
            c.is(*want, &format!("{name}: {grid} blocks in {cluster:?}"), got);
        }
    }
    // A cluster has more than 8 blocks, up to 16, only if the function allows it.
    let function = gpu.function(module, "plain");
    let large = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    is!(c, 0, cuFuncSetAttribute(function, large, 1));
    for (cluster, want) in [(16, 0), (12, 0), (32, 912)] {
        let got = launch(function, cluster, 32, &[cluster], &mut arguments![]);
        c.is(want, &format!("clusters of {cluster}"), got);
    }
    // A size set as an attribute has the same effect as one in the kernel's text.
    for (attribute, value) in [
        (CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2),
        (CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1),
        (CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1),
    ] {
        is!(c, 0, cuFuncSetAttribute(function, attribute, value));
    }
    for (cluster, want) in [(2, 0), (4, 912), (1, 912)] {
        let got = launch(function, 4, 32, &[cluster], &mut arguments![]);
        c.is(want, &format!("clusters of {cluster} where 2 was set"), got);
    }
    ok!(cuCtxSynchronize());
}

#[test]
fn attributes_of_kernels() {
    if !has_clusters() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(KERNELS);
    let must = CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET;
    let width = CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
    for (name, is_must, is_width) in [("plain", 0, 0), ("pairs", 0, 2), ("explicit", 1, 0)] {
        let function = gpu.function(module, name);
        for (attribute, want) in [(must, is_must), (width, is_width)] {
            let mut value = -1;
            is!(c, 0, cuFuncGetAttribute(&raw mut value, attribute, function));
            c.that(value == want, || {
                format!("{name}: {attribute:?} is {value}, expected {want}")
            });
        }
        is!(c, 1, cuFuncSetAttribute(function, must, 1));
        is!(c, 1, cuFuncSetAttribute(function, width, -1));
    }
    // A size in the kernel's text cannot be changed.
    let function = gpu.function(module, "pairs");
    for (value, want) in [(0, 1), (1, 1), (2, 0), (4, 1)] {
        is!(c, want, cuFuncSetAttribute(function, width, value));
    }
}

#[test]
fn numbers_of_active_clusters() {
    if !has_clusters() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(KERNELS);
    let function = gpu.function(module, "plain");
    let (mut multiprocessors, mut blocks) = (0, 0);
    let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    ok!(cuDeviceGetAttribute(&raw mut multiprocessors, count, 0));
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &raw mut blocks,
        function,
        1024,
        0
    ));
    let active = |c: &mut Codes, function, cluster: &[u32], want| {
        let mut value = -7;
        let grid = 8 * cluster.first().copied().unwrap_or(1);
        with_config((grid, 1024, 0), cluster, |config| {
            is!(c, want, cuOccupancyMaxActiveClusters(&raw mut value, function, config));
        });
        value
    };
    let all = multiprocessors * blocks;
    for (cluster, want) in [(1, all), (2, all / 2)] {
        let got = active(&mut c, function, &[cluster], 0);
        c.that(got == want, || format!("{got} clusters of {cluster}, expected {want}"));
    }
    let got = active(&mut c, function, &[8], 0);
    c.that(got > 0 && got <= all / 8, || format!("{got} clusters of 8"));
    let got = active(&mut c, function, &[], 0);
    c.that(got == 0, || format!("{got} clusters of a launch without clusters"));
    active(&mut c, function, &[16], 912);
    let pairs = gpu.function(module, "pairs");
    let got = active(&mut c, pairs, &[], 0);
    c.that(got == all / 2, || format!("{got} clusters that the kernel requires"));

    let large = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
    for (allowed, want) in [(0, 8), (1, 16)] {
        is!(c, 0, cuFuncSetAttribute(function, large, allowed));
        let mut size = -7;
        with_config((64, 1024, 0), &[], |config| {
            is!(
                c,
                0,
                cuOccupancyMaxPotentialClusterSize(&raw mut size, function, config)
            );
        });
        c.that(size == want, || format!("clusters of up to {size}, expected {want}"));
    }
    let mut size = -7;
    with_config((64, 32, 0), &[], |config| {
        is!(c, 0, cuOccupancyMaxPotentialClusterSize(&raw mut size, pairs, config));
    });
    // The size that the kernel requires does not limit the result.
    c.that(size == 8, || format!("clusters of up to {size}, expected 8"));
    // Invalid queries.
    let mut value = -7;
    for (grid, threads, cluster, want) in [(63, 32, &[2][..], 912), (0, 32, &[], 1), (64, 0, &[], 1)] {
        with_config((grid, threads, 0), cluster, |config| {
            is!(c, want, cuOccupancyMaxActiveClusters(&raw mut value, function, config));
            is!(
                c,
                want,
                cuOccupancyMaxPotentialClusterSize(&raw mut value, function, config)
            );
        });
    }
    with_config((64, 32, 0), &[], |config| {
        is!(c, 1, cuOccupancyMaxActiveClusters(null_mut(), function, config));
        is!(c, 1, cuOccupancyMaxActiveClusters(&raw mut value, null_mut(), config));
    });
    let none = without_provenance_mut::<CUlaunchConfig>(0);
    is!(c, 1, cuOccupancyMaxActiveClusters(&raw mut value, function, none));
}

/// Runs a kernel with this body in a cluster of two blocks. The kernel must fault with `code`.
fn fault(body: &str, code: u32) {
    if !has_clusters() {
        return;
    }
    let gpu = Gpu::new();
    let module = gpu.text(&format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 own[64];\n.visible .entry k() {{\n\
        .reg .b32 %r<8>; .reg .b64 %rd<4>; mov.u32 %r1, own; barrier.cluster.arrive; barrier.cluster.wait;\n{body}\n\
        st.shared.u32 [own], %r3; barrier.cluster.arrive; barrier.cluster.wait; ret; }}"
    ));
    let kernel = gpu.function(module, "k");
    assert_eq!(launch(kernel, 2, 1, &[2], &mut arguments![]), 0);
    let mut c = Codes::new();
    is!(c, code, cuCtxSynchronize());
}

#[test]
fn a_missing_block() {
    child!("a_missing_block", {
        fault(
            "mapa.shared::cluster.u32 %r2, %r1, 5; ld.shared::cluster.u32 %r3, [%r2];",
            719,
        );
    });
}

#[test]
fn beyond_a_blocks_shared_memory() {
    child!("beyond_a_blocks_shared_memory", {
        fault(
            "mapa.shared::cluster.u32 %r2, %r1, 1; ld.shared::cluster.u32 %r3, [%r2+262144];",
            700,
        );
    });
}

#[test]
fn another_blocks_address_in_a_load_for_the_own_block() {
    child!("another_blocks_address_in_a_load_for_the_own_block", {
        fault(
            "mapa.shared::cluster.u32 %r2, %r1, 1; ld.shared::cta.u32 %r3, [%r2];",
            715,
        );
    });
}

/// The grid of a kernel with `.blocksareclusters` counts clusters, also if the launch names the size of the clusters.
#[test]
fn grids_of_clusters() {
    if !has_clusters() {
        return;
    }
    if driver_version() < 13000 {
        needs("a driver of CUDA 13.0, which knows .blocksareclusters");
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 out) .blocksareclusters .reqntid 32 .reqnctapercluster 2, 2 {\n\
        .reg .b32 %r<6>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y;\n\
        mov.u32 %r3, %nclusterid.x; mov.u32 %r4, %nclusterid.y; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\n\
        red.global.add.u32 [%rd1+16], 1; ret; }",
    );
    let kernel = gpu.function(module, "k");
    for (grid, cluster) in [(1, &[][..]), (4, &[]), (5, &[2, 2])] {
        let out = gpu.upload(&[0_u32; 5]);
        assert_eq!(launch(kernel, grid, 32, cluster, &mut arguments![out]), 0);
        ok!(cuCtxSynchronize());
        // The grid has one cluster in y.
        let threads = grid * 4 * 32;
        assert_eq!(
            gpu.read::<u32>(out, 5),
            [grid * 2, 2, grid, 1, threads],
            "{grid} {cluster:?}"
        );
    }
    let out = gpu.upload(&[0_u32; 5]);
    let launch = |grid, cluster: &[u32]| launch(kernel, grid, 32, cluster, &mut arguments![out]);
    c.is(912, "another size of clusters", launch(4, &[4, 1]));
    c.is(1, "2^32 blocks", launch(0x7fff_ffff, &[]));
}
