//! Kernels that run one tensor copy.

use std::fmt::Write;

use cuda_driver::sys::*;

use super::model::{Map, TILE};
use crate::arguments;
use crate::common::gpu::Gpu;

/// Returns the operand with the coordinates of a copy of `dims` dimensions.
fn coordinates(dims: usize) -> String {
    let all: Vec<String> = (1..=dims).map(|i| format!("%c{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Returns the PTX of a kernel for each number of dimensions and mode: `load2`, `columns4`, `store2` and so on.
pub(super) fn loads_and_stores() -> String {
    let mut text = ".version 8.6\n.target sm_90\n.address_size 64\n".to_owned();
    for dims in 1..=5 {
        let at = coordinates(dims);
        let copy = format!(
            "cp.async.bulk.tensor.{dims}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [%tile], [%map, {at}], [%bar];"
        );
        text += &load(&format!("load{dims}"), &copy);
        let copy = format!("cp.async.bulk.tensor.{dims}d.global.shared::cta.bulk_group [%map, {at}], [%tile];");
        text += &store(&format!("store{dims}"), &copy);
        if dims < 3 {
            continue;
        }
        let offsets = ["{%o1}", "{%o1, %o2}", "{%o1, %o2, %o3}"][dims - 3];
        let copy = format!(
            "cp.async.bulk.tensor.{dims}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes \
             [%tile], [%map, {at}], [%bar], {offsets};"
        );
        text += &load(&format!("columns{dims}"), &copy);
        let copy =
            format!("cp.async.bulk.tensor.{dims}d.global.shared::cta.im2col_no_offs.bulk_group [%map, {at}], [%tile];");
        text += &store(&format!("columns_out{dims}"), &copy);
    }
    text
}

/// The parameters and registers of all kernels of this file. `%map` is the address of the map, `%tile` the address in
/// shared memory where the copy begins, `%bar` a barrier, `%out` a buffer in global memory.
const HEAD: &str = "(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, \
    .param .align 4 .b8 at[20], .param .align 2 .b8 offsets[6], .param .u32 start) {\n\
    .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;\n\
    .reg .pred %p<4>; .reg .b16 %o<4>; .reg .b32 %c<6>; .reg .b32 %r<16>; .reg .b32 %tile, %bar; .reg .b64 %map, %out, %rd<4>;\n\
    mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;\n\
    ld.param.u32 %c1, [at]; ld.param.u32 %c2, [at+4]; ld.param.u32 %c3, [at+8]; ld.param.u32 %c4, [at+12]; ld.param.u32 %c5, [at+16];\n\
    ld.param.u16 %o1, [offsets]; ld.param.u16 %o2, [offsets+2]; ld.param.u16 %o3, [offsets+4];\n\
    mov.u32 %tile, tile; mov.u32 %bar, bar; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; shl.b32 %r2, %r1, 4;\n";

/// Returns a kernel that fills shared memory, runs `copy`, and writes shared memory to `out`, followed by a flag that
/// is 1 if the barrier did not see all bytes.
pub(super) fn load(name: &str, copy: &str) -> String {
    format!(
        ".visible .entry {name}{HEAD}\
        mov.u32 %r3, 0xeeeeeeee; mov.u32 %r4, %r2;\n\
        F: add.u32 %r5, %tile, %r4; st.shared.v4.u32 [%r5], {{%r3, %r3, %r3, %r3}}; add.u32 %r4, %r4, 2048;\n\
        setp.lt.u32 %p2, %r4, 16384; @%p2 bra F;\n\
        @!%p1 mbarrier.init.shared.b64 [%bar], 1; fence.proxy.async; bar.sync 0;\n\
        ld.param.u32 %r6, [start]; add.u32 %tile, %tile, %r6; mov.u32 %r8, 0; mov.u32 %r9, 0;\n\
        @%p1 bra D;\n\
        ld.param.u32 %r7, [bytes]; mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %r7;\n\
        {copy}\n\
        W: mbarrier.try_wait.parity.shared.b64 %p3, [%bar], 0; @%p3 bra D; add.u32 %r8, %r8, 1;\n\
        setp.lt.u32 %p3, %r8, 1000; @%p3 bra W; mov.u32 %r9, 1;\n\
        D: bar.sync 0; mov.u32 %tile, tile; mov.u32 %r4, %r2;\n\
        O: add.u32 %r5, %tile, %r4; ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [%r5]; cvt.u64.u32 %rd1, %r4;\n\
        add.u64 %rd1, %rd1, %out; st.global.v4.u32 [%rd1], {{%r10, %r11, %r12, %r13}}; add.u32 %r4, %r4, 2048;\n\
        setp.lt.u32 %p2, %r4, 16384; @%p2 bra O; @!%p1 st.global.u32 [%out+16384], %r9; ret; }}\n"
    )
}

/// Returns a kernel that copies `out` to shared memory and runs `copy`.
pub(super) fn store(name: &str, copy: &str) -> String {
    format!(
        ".visible .entry {name}{HEAD}\
        mov.u32 %r4, %r2;\n\
        O: add.u32 %r5, %tile, %r4; cvt.u64.u32 %rd1, %r4; add.u64 %rd1, %rd1, %out;\n\
        ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd1]; st.shared.v4.u32 [%r5], {{%r10, %r11, %r12, %r13}};\n\
        add.u32 %r4, %r4, 2048; setp.lt.u32 %p2, %r4, 16384; @%p2 bra O;\n\
        fence.proxy.async; bar.sync 0; ld.param.u32 %r6, [start]; add.u32 %tile, %tile, %r6;\n\
        @%p1 bra E; {copy}\n\
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; E: ret; }}\n"
    )
}

/// The operands of a copy.
pub(super) struct Copy<'a> {
    pub(super) map: Map,
    /// The number of bytes that the barrier waits for.
    pub(super) bytes: u32,
    pub(super) at: &'a [i32],
    pub(super) offsets: &'a [u16],
    /// The offset in shared memory at which the copy begins.
    pub(super) start: usize,
}

impl Copy<'_> {
    /// Launches a kernel of this file. A load writes [`TILE`] bytes and a flag to `out`; a store reads [`TILE`] bytes
    /// there.
    pub(super) fn launch(&self, gpu: &Gpu, kernel: CUfunction, out: CUdeviceptr) {
        let (mut at, mut offsets) = ([0_i32; 5], [0_u16; 3]);
        at[..self.at.len()].copy_from_slice(self.at);
        offsets[..self.offsets.len()].copy_from_slice(self.offsets);
        let mut arguments = arguments![self.map, out, self.bytes, at, offsets, self.start as u32];
        gpu.launch(kernel, [1; 3], [128, 1, 1], 0, &mut arguments);
    }

    /// Runs a load. Returns shared memory, or `None` if the barrier did not see all bytes.
    pub(super) fn load(&self, gpu: &Gpu, kernel: CUfunction) -> Option<Vec<u8>> {
        let out = gpu.alloc(TILE + 16);
        self.launch(gpu, kernel, out);
        let mut shared = gpu.read::<u8>(out, TILE + 4);
        crate::ok!(cuMemFree(out));
        let flag = shared.split_off(TILE);
        (flag == [0; 4]).then_some(shared)
    }

    /// Runs a store of these bytes.
    pub(super) fn store(&self, gpu: &Gpu, kernel: CUfunction, shared: &[u8]) {
        let from = gpu.upload(shared);
        self.launch(gpu, kernel, from);
        crate::ok!(cuMemFree(from));
    }
}

/// Describes the bytes from the first difference on. Returns `None` if there is none.
pub(super) fn difference(got: &[u8], want: &[u8]) -> Option<String> {
    let first = got.iter().zip(want).position(|(a, b)| a != b)?;
    let count = got.iter().zip(want).filter(|(a, b)| a != b).count();
    let (line, mut text) = (first / 16 * 16, format!("{count} bytes differ, the first at {first}:"));
    for row in 0..8 {
        let at = line + 16 * row;
        if let (Some(got), Some(want)) = (got.get(at..at + 16), want.get(at..at + 16)) {
            let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
            let _ = write!(text, "\n{at:5}: got {} want {}", hex(got), hex(want));
        }
    }
    Some(text)
}
