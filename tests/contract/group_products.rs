//! Tests of matrix products of 8-bit floating-point numbers by four warps (`wgmma.mma_async`), bit for bit against the
//! results of an H200. The products are inexact: their sums have fewer bits than `f32`.

use std::fmt::Write as _;

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::values::{Recorded, hash};
use crate::common::{architecture, needs};

/// Bytes of A: eight steps of 64 by 32 numbers.
const A: usize = 16_384;
/// Bytes of B: eight steps of 32 by 8 numbers.
const B: usize = 2048;

/// The types (after `sp.` if A is sparse), the number of steps, the range of exponents (see [`numbers`]), the first four
/// results, and a hash of all 512.
#[rustfmt::skip]
const RECORDED: [(&str, u64, u64, [u32; 4], u64); 24] = [
("f32.e5m2.e5m2", 1, 0, [0xc17a3800, 0x42295800, 0x423aac00, 0x4177b800], 0x58e553f226db8432),
("f32.e5m2.e5m2", 8, 0, [0x4259a400, 0x43383c00, 0x43a2f000, 0x42ca6c00], 0x00f96eeb306d2e4b),
("f32.e5m2.e5m2", 1, 1, [0x4a100800, 0xcbda5000, 0xcadef000, 0x4b08fc00], 0xbc759af45dd5c426),
("f32.e5m2.e5m2", 8, 1, [0xcda69000, 0xcdaba800, 0xce02f800, 0xcdac2c00], 0x4793c63132607eaa),
("f32.e4m3.e4m3", 1, 0, [0xc1966800, 0x410d6c00, 0xc146b800, 0xc1dbdc00], 0x972f78f5ec9c16a8),
("f32.e4m3.e4m3", 8, 0, [0xc2bb7000, 0x42316400, 0xc009d000, 0x40126000], 0xebdb65b19ea2eca0),
("f32.e4m3.e4m3", 1, 1, [0x43630000, 0x469edc00, 0x4502d800, 0x47192c00], 0xae02b2730f284183),
("f32.e4m3.e4m3", 8, 1, [0x45058000, 0xc66b5c00, 0xc7294400, 0xc635d000], 0xe82149ea8df6596b),
("f32.e5m2.e4m3", 1, 0, [0xc12ba400, 0x41591c00, 0x41c12800, 0x409aa000], 0x94eef88d305fbffb),
("f32.e5m2.e4m3", 8, 0, [0xc271c400, 0x42b16400, 0x4362a400, 0x41c2e800], 0x909bf65f664e9256),
("f32.e5m2.e4m3", 1, 1, [0xc7047000, 0x4725fc00, 0x47fcc800, 0x47c47400], 0x9cea34bec3026c0d),
("f32.e5m2.e4m3", 8, 1, [0xcab48000, 0x49881000, 0xc9ea0000, 0xca29f800], 0xea89bd8872b4e68e),
("f32.e4m3.e5m2", 1, 0, [0xc1a3f400, 0x418a4800, 0xbee60000, 0xc1f09000], 0x4c26b26e1beda8f4),
("f32.e4m3.e5m2", 8, 0, [0xc229c000, 0x42f20800, 0xc1d7b800, 0x41079800], 0x8f38b8e1e049dc0a),
("f32.e4m3.e5m2", 1, 1, [0x49485800, 0x4aaa5000, 0x4647c000, 0x4b116000], 0xcf5778ee39f8fb9b),
("f32.e4m3.e5m2", 8, 1, [0x4a801800, 0x4ae1b400, 0x49ed4000, 0x4a87f800], 0x4fd634546fd89e5b),
("sp.f32.e5m2.e5m2", 1, 0, [0xc1752400, 0x41b14c00, 0x41e78800, 0xc0ee5000], 0xa48f27f595e87fb2),
("sp.f32.e5m2.e5m2", 1, 1, [0xcabf8000, 0x4b7f4c00, 0xc9d2bc00, 0xca9c9000], 0xdae87bee2782c1d0),
("sp.f32.e5m2.e5m2", 4, 0, [0x420d9400, 0xc26b4800, 0xc2729400, 0x42a31400], 0xe89b824216d86ecf),
("sp.f32.e5m2.e5m2", 4, 1, [0x4dd85c00, 0xcb46a000, 0x4c98e400, 0x4cb19000], 0x4878e700797383c9),
("sp.f32.e4m3.e4m3", 1, 0, [0xc04be000, 0xc111a000, 0xc1de2000, 0xc112c000], 0x8d158568eb761829),
("sp.f32.e4m3.e4m3", 1, 1, [0x46448800, 0x45c71400, 0xc5a41c00, 0xc4279400], 0xba891264ff8539eb),
("sp.f32.e4m3.e4m3", 4, 0, [0xc1444800, 0x418c0400, 0xc275c000, 0xc1bcd000], 0x21ed107189468817),
("sp.f32.e4m3.e4m3", 4, 1, [0xc6c48c00, 0xc69bac00, 0xc6688000, 0xc6c3d800], 0x8d3d71a2463f1f85),
];

/// The sparsity metadata of each thread: the positions of two of every four columns, in all six ways.
const METADATA: u32 = 0x9c48_ed9c;

/// Returns a kernel that multiplies in this number of steps of 32 columns of A, or 64 columns of which A stores 32.
/// Matrices are in shared memory in blocks of 8 rows of 16 bytes.
fn kernel(types: &str, steps: u64) -> String {
    // Encodes the distances in bytes between blocks along a row and along a column, in units of 16 bytes.
    let descriptor = |along_row: u64, along_column: u64| (along_row / 16) << 16 | (along_column / 16) << 32;
    let (form, sparsity, b_step) = match types.strip_prefix("sp.") {
        Some(types) => (format!("sp.sync.aligned.m64n8k64.{types}"), "%e, 0, ", 512),
        None => (format!("sync.aligned.m64n8k32.{types}"), "", 256),
    };
    let mut products = String::new();
    for step in 0..steps {
        let _ = writeln!(
            products,
            "add.s64 %da, %a, {}; add.s64 %db, %b, {};\n\
             wgmma.mma_async.{form} {{%f0, %f1, %f2, %f3}}, %da, %db, {sparsity}1, 1, 1;",
            step * 2048 / 16,
            step * b_step / 16
        );
    }
    format!(
        ".version 8.2\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 x, .param .u64 y) {{\n\
         .shared .align 1024 .b8 sa[{A}]; .shared .align 1024 .b8 sb[{B}];\n\
         .reg .b32 %t, %r, %i, %e, %w<4>; .reg .f32 %f<4>; .reg .b64 %x, %y, %q, %a, %b, %da, %db; .reg .pred %p;\n\
         ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %e, {METADATA};\n\
         mov.u32 %t, %tid.x; mul.wide.u32 %q, %t, 16; add.u64 %x, %x, %q; add.u64 %y, %y, %q;\n\
         mov.u32 %i, %t; mov.u32 %r, sa; mad.lo.u32 %r, %t, 16, %r;\n\
         NEXT: ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [%x]; st.shared.v4.b32 [%r], {{%w0, %w1, %w2, %w3}};\n\
         add.u64 %x, %x, 2048; add.u32 %r, %r, 2048; add.u32 %i, %i, 128;\n\
         setp.lt.u32 %p, %i, 1024; @%p bra NEXT;\n\
         mov.u32 %r, sb; mad.lo.u32 %r, %t, 16, %r;\n\
         ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [%x]; st.shared.v4.b32 [%r], {{%w0, %w1, %w2, %w3}};\n\
         fence.proxy.async; bar.sync 0;\n\
         mov.u64 %a, sa; shr.u64 %a, %a, 4; and.b64 %a, %a, 0x3fff; or.b64 %a, %a, {};\n\
         mov.u64 %b, sb; shr.u64 %b, %b, 4; and.b64 %b, %b, 0x3fff; or.b64 %b, %b, {};\n\
         mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n\
         wgmma.fence.sync.aligned;\n{products}\
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n\
         st.global.v4.f32 [%y], {{%f0, %f1, %f2, %f3}}; ret; }}\n",
        descriptor(1024, 128),
        descriptor(128, 128)
    )
}

/// Returns the bytes of A and B, numbers of both signs. In range 0 their exponents are near each other; range 1 has all
/// exponents of normal numbers but the largest.
fn numbers(types: &str, range: u64) -> Vec<u8> {
    let mut random = Recorded(4242 + range);
    let has_five_exponent_bits = |i: usize| types.split('.').rev().nth(usize::from(i < A)) == Some("e5m2");
    let number = |i: usize| {
        let bits = random.next();
        let exponent = bits >> 8;
        let bits = match (has_five_exponent_bits(i), range) {
            (true, 0) => bits & 0x83 | (12 + exponent % 6) << 2,
            (true, _) => bits & 0x83 | (1 + exponent % 29) << 2,
            (false, 0) => bits & 0x87 | (5 + exponent % 4) << 3,
            (false, _) => bits & 0x87 | (1 + exponent % 14) << 3,
        };
        bits as u8
    };
    (0..A + B).map(number).collect()
}

#[test]
fn inexact_sums() {
    if architecture() != 90 {
        return needs("a device of architecture sm_90");
    }
    let gpu = Gpu::new();
    let out = gpu.alloc(512 * 4);
    let mut wrong = String::new();
    for (types, steps, range, first, all) in RECORDED {
        let module = gpu.text(&kernel(types, steps));
        let function = gpu.function(module, "k");
        let input = gpu.upload(&numbers(types, range));
        gpu.launch(function, [1, 1, 1], [128, 1, 1], 0, &mut arguments![input, out]);
        let seen = gpu.read::<u32>(out, 512);
        let seen = (&seen[..4], hash(seen.iter().flat_map(|word| word.to_le_bytes())));
        if seen != (&first, all) {
            let _ = writeln!(
                wrong,
                "{types}, {steps} steps, range {range}: {seen:x?}, not {first:x?}"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
