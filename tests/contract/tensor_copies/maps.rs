//! Tests of tensor maps in global and constant memory, of `tensormap.replace`, of prefetches, and of copies to several
//! blocks.

use std::ptr::null_mut;

use cuda_driver::sys::*;

use super::kernels::{Copy, difference, load};
use super::model::{TILE, TYPES, Tensor};
use super::{bytes, has_tensor_copies};
use crate::common::gpu::Gpu;
use crate::{arguments, ok};

const HEAD: &str = ".version 8.6\n.target sm_90\n.address_size 64\n";
const COMPLETION: &str = "mbarrier::complete_tx::bytes";

/// Runs a kernel that loads a box of a tensor at `address`, which holds `memory`, and compares the result with the
/// model's.
fn check(gpu: &Gpu, kernel: CUfunction, tensor: &Tensor, memory: &[u8], address: CUdeviceptr) {
    let at = [16, 2];
    let elements = tensor.tile(&at, 0);
    let copy = Copy {
        map: tensor.tiled(address),
        bytes: tensor.signalled(&elements),
        at: &at,
        offsets: &[],
        start: 0,
    };
    let got = copy.load(gpu, kernel).expect("all bytes are signalled");
    let difference = difference(&got, &tensor.loaded(memory, &elements));
    assert_eq!(difference, None, "{tensor:?}");
}

#[test]
fn maps_in_global_and_constant_memory() {
    if !has_tensor_copies() {
        return;
    }
    let gpu = Gpu::new();
    let tensor = Tensor::new(TYPES[2], &[48, 9], &[32, 4]);
    let memory = bytes(tensor.bytes, 31);
    let address = gpu.upload(&memory);
    for space in ["global", "const"] {
        let copy = format!(
            "mov.u64 %rd2, kept; cvta.{space}.u64 %rd2, %rd2; prefetch.tensormap [%rd2];\n\
             cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {{%c1, %c2}}];\n\
             cp.async.bulk.tensor.2d.shared::cta.global.{COMPLETION} [%tile], [%rd2, {{%c1, %c2}}], [%bar];"
        );
        let text = format!("{HEAD}.visible .{space} .align 64 .b8 kept[128];\n{}", load("k", &copy));
        let module = gpu.text(&text);
        let (kept, _) = gpu.global(module, "kept");
        gpu.write(kept, &tensor.tiled(address));
        let kernel = gpu.function(module, "k");
        check(&gpu, kernel, &tensor, &memory, address);
    }
}

/// Changes every field of a map in shared memory, copies it to global memory, and uses it there.
#[test]
fn replaced_fields() {
    replace_fields(false);
}

/// Makes a map from zeros, as compilers do that encode maps on the device.
#[test]
fn fields_of_zeros_are_replaced() {
    replace_fields(true);
}

/// Replaces every field of a map, or of zeros, in shared memory, copies the map to global memory, and uses it there.
fn replace_fields(of_zeros: bool) {
    if !has_tensor_copies() {
        return;
    }
    let gpu = Gpu::new();
    let old = Tensor::new(TYPES[7], &[64, 7, 2], &[16, 3, 2]);
    let mut new = Tensor::new(TYPES[6], &[96, 11], &[64, 4]);
    new.steps = vec![1, 2];
    new.swizzle = 128;
    new.nan = true;
    let memory = bytes(new.bytes.max(old.bytes) + 64, 32);
    let address = gpu.upload(&memory);
    let replace = |field: &str, rest: &str| {
        let ty = match field {
            "global_address" | "global_stride" => "b64",
            _ => "b32",
        };
        format!("tensormap.replace.tile.{field}.shared::cta.b1024.{ty} [fresh], {rest};\n")
    };
    let fields = [
        replace("global_address", "%rd3"),
        replace("rank", "1"),
        replace("box_dim", "0, 64"),
        replace("box_dim", "1, %r14"),
        replace("global_dim", "0, 96"),
        replace("global_dim", "1, 11"),
        replace("global_stride", &format!("0, {}", new.strides[0])),
        replace("element_stride", "0, 1"),
        replace("element_stride", "1, 2"),
        replace("elemtype", "6"),
        replace("interleave_layout", "0"),
        replace("swizzle_mode", "3"),
        replace("fill_mode", "1"),
    ]
    .concat();
    // The map is written to shared memory in words of 8 bytes.
    let copies: String = (0..16)
        .map(|i| {
            let word = match of_zeros {
                true => "mov.u64 %rd1, 0;".to_owned(),
                false => format!("ld.param.u64 %rd1, [map+{}];", 8 * i),
            };
            format!("{word} st.shared.u64 [fresh+{}], %rd1;\n", 8 * i)
        })
        .collect();
    let kernel = load("k", "COPY").replace(
        "@%p1 bra D;",
        &format!(
            "shr.u32 %r14, %r1, 5; setp.ne.u32 %p3, %r14, 0; @%p3 bra L;\n\
             mov.u64 %rd2, place; cvta.global.u64 %rd2, %rd2; ld.global.u64 %rd3, [address]; mov.u32 %r14, 4;\n\
             @%p1 bra C; {copies}{fields}\
             C: bar.warp.sync 0xffffffff;\n\
             tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [fresh], 128;\n\
             fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n\
             L: @%p1 bra D;"
        ),
    );
    let copy =
        format!("cp.async.bulk.tensor.2d.shared::cluster.global.{COMPLETION} [%tile], [%rd2, {{%c1, %c2}}], [%bar];");
    let text = format!(
        "{}.visible .global .align 128 .b8 place[128]; .visible .global .align 8 .u64 address;\n\
         .shared .align 128 .b8 fresh[128];\n{}",
        HEAD.replace("sm_90", "sm_90a"),
        kernel.replace("COPY", &copy)
    );
    let module = gpu.text(&text);
    let (variable, _) = gpu.global(module, "address");
    gpu.write(variable, &[address + 64]);
    let kernel = gpu.function(module, "k");
    let at = [16, 2];
    let elements = new.tile(&at, 0);
    let copy = Copy {
        map: old.tiled(address),
        bytes: new.signalled(&elements),
        at: &at,
        offsets: &[],
        start: 0,
    };
    let got = copy.load(&gpu, kernel).expect("all bytes are signalled");
    let difference = difference(&got, &new.loaded(&memory[64..], &elements));
    assert_eq!(difference, None);
}

/// Block 0 of a cluster copies a box into the shared memory of the blocks in a mask, at the same offset in each.
#[test]
fn copies_to_several_blocks() {
    if !has_tensor_copies() {
        return;
    }
    const BOX: usize = 2048;
    let gpu = Gpu::new();
    let text = format!(
        "{HEAD}.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 mask) {{\n\
        .shared .align 1024 .b8 tile[2048]; .shared .align 8 .b64 bar;\n\
        .reg .pred %p<5>; .reg .b16 %h<2>; .reg .b32 %r<16>; .reg .b64 %rd<4>;\n\
        mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [mask];\n\
        mov.u32 %r2, %tid.x; setp.ne.u32 %p1, %r2, 0; mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, tile; mov.u32 %r5, bar;\n\
        shl.b32 %r6, %r2, 4; add.u32 %r7, %r4, %r6; mov.u32 %r8, 0xeeeeeeee;\n\
        st.shared.v4.u32 [%r7], {{%r8, %r8, %r8, %r8}};\n\
        shr.u32 %r9, %r1, %r3; and.b32 %r9, %r9, 1; setp.eq.u32 %p2, %r9, 0;\n\
        @%p1 bra A; mbarrier.init.shared.b64 [%r5], 1; fence.mbarrier_init.release.cluster; fence.proxy.async;\n\
        @!%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 2048;\n\
        A: barrier.cluster.arrive; barrier.cluster.wait;\n\
        setp.ne.or.u32 %p3, %r3, 0, %p1; @%p3 bra B; cvt.u16.u32 %h1, %r1; mov.u32 %r10, 0; mov.u32 %r11, 3;\n\
        cp.async.bulk.tensor.2d.shared::cluster.global.{COMPLETION}.multicast::cluster \
            [%r4], [%rd1, {{%r10, %r11}}], [%r5], %h1;\n\
        B: @%p2 bra D;\n\
        W: mbarrier.try_wait.parity.shared.b64 %p4, [%r5], 0; @!%p4 bra W;\n\
        D: bar.sync 0; ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [%r7];\n\
        mov.u32 %r14, %ctaid.x; mad.lo.u32 %r14, %r14, 2048, %r6; cvt.u64.u32 %rd3, %r14; add.u64 %rd2, %rd2, %rd3;\n\
        st.global.v4.u32 [%rd2], {{%r10, %r11, %r12, %r13}};\n\
        barrier.cluster.arrive; barrier.cluster.wait; ret; }}\n"
    );
    let module = gpu.text(&text);
    let kernel = gpu.function(module, "k");
    let mut tensor = Tensor::new(TYPES[1], &[64, 40], &[64, 16]);
    tensor.swizzle = 128;
    let memory = bytes(tensor.bytes, 33);
    let address = gpu.upload(&memory);
    let want = tensor.loaded(&memory, &tensor.tile(&[0, 3], 0));
    for (blocks, mask) in [(2_u32, 0b11_u32), (4, 0b1010), (4, 0b1111), (1, 1), (8, 0b1000_0001)] {
        let out = gpu.alloc(TILE);
        let mut arguments = arguments![tensor.tiled(address), out, mask];
        let mut pointers = arguments.pointers();
        let mut attribute = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            pad: [0; 4],
            value: CUlaunchAttributeValue { pad: [0; 64] },
        };
        attribute.value.clusterDim = CUlaunchAttributeValue_union__clusterDim { x: blocks, y: 1, z: 1 };
        let config = CUlaunchConfig {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 128,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: null_mut(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        ok!(cuLaunchKernelEx(
            &raw const config,
            kernel,
            pointers.as_mut_ptr(),
            null_mut()
        ));
        ok!(cuCtxSynchronize());
        let got = gpu.read::<u8>(out, blocks as usize * BOX);
        for (block, got) in got.chunks(BOX).enumerate() {
            let difference = match mask >> block & 1 {
                0 => difference(got, &[0xee; BOX]),
                _ => difference(got, &want[..BOX]),
            };
            assert_eq!(difference, None, "block {block} of {blocks}, mask {mask:#b}");
        }
        ok!(cuMemFree(out));
    }
}
