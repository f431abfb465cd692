//! Video instructions where GPUs differ from the manual, and the ways to write their operands. The contract tests cover
//! the others.

use super::{Arg, Bench, on_each_isa};

const A: u32 = 0x80ff_7f01;
const B: u32 = 0x0002_0003;
const C: u32 = 0x1122_3344;

/// Instructions, and their results in `%d` if `%a`, `%b` and `%c` hold `A`, `B` and `C`. The results were computed by
/// hand.
#[rustfmt::skip] // One line per instruction.
const CASES: &[(&str, u32)] = &[
    ("vadd.u32.u32.u32 %d, %a.b1, %b.h1, %c;", 0x81),
    ("vadd.u32.s32.u32.sat %d.h1, %a.b2, %b.h1, %c;", 0x0001_3344),
    ("vadd.u32.u32.u32 %d, %a.b0, 7;", 8),
    ("vsub.u32.u32.u32.sat %d, %b.h0, %a.b1;", 0),
    ("vsub.sat.u32.u32.u32 %d, %b.h0, %a.b1;", 0),
    ("vmin.u32.u32.u32.min %d, %a.h1, %b.h1, 1;", 1),
    ("vmad.s32.u32.u32 %d, %a.b0, -%b.h0, %c;", C - 3),
    ("vmad.s32.s32.u32.sat.shr15 %d, %a, %b, 0;", 0x8000_0000),
];

#[test]
fn operands_and_their_selectors() {
    let body: String = CASES
        .iter()
        .enumerate()
        .map(|(i, (text, _))| format!("mov.u32 %d, 0; {text} st.global.u32 [%rd1+{}], %d;\n", 4 * i))
        .collect();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 out, .param .u32 a, .param .u32 b, .param .u32 c) {{\n\
        .reg .b32 %a, %b, %c, %d; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];\n\
        ld.param.u32 %a, [a]; ld.param.u32 %b, [b]; ld.param.u32 %c, [c];\n{body}ret; }}"
    );
    on_each_isa(|isa| {
        let mut bench = Bench::text(&text, isa);
        let out = bench.bytes(4 * CASES.len() as u64);
        let args = [Arg::U64(out), Arg::U32(A), Arg::U32(B), Arg::U32(C)];
        bench.run_well("k", 1, 1, &args);
        let got = bench.get(out, CASES.len(), u32::from_le_bytes);
        for ((text, want), got) in CASES.iter().zip(got) {
            assert_eq!(got, *want, "{text} gives {got:#x}, not {want:#x}");
        }
    });
}
