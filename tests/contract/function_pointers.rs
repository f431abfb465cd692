//! Tests of function pointers that one kernel stores and another calls.

use crate::arguments;
use crate::common::gpu::Gpu;

const KERNELS: &str = ".version 7.0\n.target sm_52\n.address_size 64\n\
    .global .align 8 .u64 table[2];\n\
    .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>;\n\
        ld.param.u32 %r1, [x]; shl.b32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }\n\
    .func (.param .b32 r) square(.param .b32 x) { .reg .b32 %r<3>;\n\
        ld.param.u32 %r1, [x]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n\
    .visible .entry keep() { .reg .b64 %rd<3>;\n\
        mov.u64 %rd1, twice; mov.u64 %rd2, square; st.global.u64 [table], %rd1; st.global.u64 [table+8], %rd2; ret; }\n\
    .visible .entry use(.param .u64 out, .param .u64 table) { .reg .b32 %r<6>; .reg .b64 %rd<8>;\n\
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [table]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;\n\
        mul.wide.u32 %rd3, %r2, 8; add.u64 %rd2, %rd2, %rd3; ld.global.u64 %rd4, [%rd2];\n\
        { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1;\n\
        prototype: .callprototype (.param .b32 _) _ (.param .b32 _);\n\
        call (r), %rd4, (a), prototype; ld.param.b32 %r3, [r]; }\n\
        mul.wide.u32 %rd5, %r1, 4; add.u64 %rd1, %rd1, %rd5; st.global.u32 [%rd1], %r3; ret; }\n";

#[test]
fn pointers_that_another_kernel_stored() {
    let gpu = Gpu::new();
    let module = gpu.text(KERNELS);
    let (keep, uses) = (gpu.function(module, "keep"), gpu.function(module, "use"));
    gpu.launch(keep, [1; 3], [1; 3], 0, &mut arguments![]);
    let (table, _) = gpu.global(module, "table");
    let out = gpu.alloc(64 * 4);
    gpu.launch(uses, [1; 3], [64, 1, 1], 0, &mut arguments![out, table]);
    let expected: Vec<u32> = (0..64).map(|i| if i % 2 == 0 { 2 * i } else { i * i }).collect();
    assert_eq!(gpu.read::<u32>(out, 64), expected);
}
