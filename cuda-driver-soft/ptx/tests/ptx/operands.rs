//! Tests of the operands that instructions accept: registers, constants, addresses, vectors and other kinds.
//!
//! Each operand of each instruction is replaced by each candidate, one operand at a time. As in `forms`, the number and
//! hash of the accepted instructions were computed with ptxas 13.5, and are recomputed with `PTXAS` set.

use super::forms::{accepted_lines, digest};
use super::referee;
use std::fmt::Write;

/// Candidates that replace an operand.
#[rustfmt::skip] // a list of short words
const CANDIDATES: &[&str] = &[
    "pp", "rb8", "rb16", "rb32", "rb64", "rb128", "ru16", "ru32", "ru64", "rs16", "rs32", "rs64",
    "rf16", "rf32", "rf64", "vv", "vv.x", "vw.w", "1", "-1", "1.5", "0f3f800000",
    "0d3ff8000000000000", "0x1ffffffff", "!pp", "!rb32", "-rb32", "%tid.x", "%clock64", "%laneid",
    "WARP_SZ", "gv", "gv[1]", "sv", "lv", "pa", "zzz", "{rb32,rb32}", "{rb16,rb16}", "{ru32,1}",
    "[rb64]", "[gv]", "[rb64+4]", "%r1", "1+1", "(2)", "!1", "~1", "[rf64]", "[rf32]", "[pp]",
    "[rb128]", "[vv]", "[rb16]", "[sv]", "[lv]", "[pa]", "[16]",
];

/// The instructions whose operands are replaced.
#[rustfmt::skip] // a list of short words
const INSTRUCTIONS: &[&str] = &[
    "add.s32 ru32,ru32,ru32", "add.f32 rf32,rf32,rf32", "add.f64 rf64,rf64,rf64", "add.u16 ru16,ru16,ru16",
    "add.f16 rf16,rf16,rf16", "add.bf16 rb16,rb16,rb16", "add.f16x2 rb32,rb32,rb32",
    "add.bf16x2 rb32,rb32,rb32", "add.u16x2 rb32,rb32,rb32", "add.s64 ru64,ru64,ru64",
    "mul.wide.u32 ru64,ru32,ru32", "mul.wide.s16 rs32,rs16,rs16", "mad.wide.u32 ru64,ru32,ru32,ru64",
    "mad.lo.s32 rs32,rs32,rs32,rs32", "fma.rn.f32 rf32,rf32,rf32,rf32", "div.rn.f64 rf64,rf64,rf64",
    "and.b32 rb32,rb32,rb32", "and.pred pp,pp,pp", "not.pred pp,pp", "not.b64 rb64,rb64",
    "shl.b32 rb32,rb32,ru32", "shl.b64 rb64,rb64,ru32", "shr.s16 rs16,rs16,ru32", "setp.eq.s32 pp,rs32,rs32",
    "setp.eq.f32 pp|pq,rf32,rf32", "setp.lt.and.u64 pp,ru64,ru64,pq", "setp.eq.b32 pp,rb32,rb32",
    "setp.eq.f16 pp,rf16,rf16", "set.eq.u32.f32 ru32,rf32,rf32", "set.eq.f32.s32 rf32,rs32,rs32",
    "selp.b32 rb32,rb32,rb32,pp", "selp.f32 rf32,rf32,rf32,pp", "slct.f32.s32 rf32,rf32,rf32,rs32",
    "slct.b64.f32 rb64,rb64,rb64,rf32", "mov.b32 rb32,rb32", "mov.u32 ru32,ru32", "mov.b64 rb64,rb64",
    "mov.u64 ru64,ru64", "mov.f32 rf32,rf32", "mov.f64 rf64,rf64", "mov.pred pp,pq", "mov.b16 rb16,rb16",
    "mov.u16 ru16,ru16", "mov.b128 rb128,rb128", "mov.v2.u32 {ru32,ru32},{ru32,ru32}",
    "cvt.u32.u64 ru32,ru64", "cvt.u8.s32 ru32,rs32", "cvt.rn.f32.s32 rf32,rs32", "cvt.rzi.s32.f64 rs32,rf64",
    "cvt.rn.f16.f32 rf16,rf32", "cvt.f32.f16 rf32,rf16", "cvt.f32.bf16 rf32,rb16",
    "cvt.rn.bf16.f32 rb16,rf32", "cvt.rn.f16x2.f32 rb32,rf32,rf32", "cvt.rna.tf32.f32 rb32,rf32",
    "cvt.rn.satfinite.e4m3x2.f32 rb16,rf32,rf32", "cvta.global.u64 ru64,ru64", "cvta.to.shared.u64 ru64,ru64",
    "cvta.local.u64 ru64,ru64", "cvta.param.u64 ru64,ru64", "cvta.const.u32 ru32,ru32",
    "isspacep.global pp,ru64", "ld.global.u32 ru32,[rb64]", "ld.u8 ru32,[rb64]", "ld.shared.f32 rf32,[rb64]",
    "ld.local.b64 rb64,[rb64]", "ld.const.s16 rs16,[rb64]", "ld.param.u64 ru64,[pa]",
    "ld.global.v2.f32 {rf32,rf32},[rb64]", "ld.global.v4.u8 {rb16,rb16,rb16,rb16},[rb64]",
    "ldu.global.f32 rf32,[rb64]", "st.global.u32 [rb64],ru32", "st.shared.f64 [rb64],rf64",
    "st.local.u8 [rb64],ru32", "st.global.v2.b32 [rb64],{rb32,rb32}", "st.b16 [rb64],rb16",
    "st.global.f32 [rb64],rf32", "st.param.b32 [rb64],rb32", "atom.global.add.u32 ru32,[rb64],ru32",
    "atom.global.add.f32 rf32,[rb64],rf32", "atom.shared.cas.b64 rb64,[rb64],rb64,rb64",
    "red.global.max.s32 [rb64],rs32", "atom.global.add.noftz.f16x2 rb32,[rb64],rb32", "bar.sync rb32",
    "bar.sync 0,rb32", "bar.red.popc.u32 ru32,0,pp", "bar.red.and.pred pp,0,pq", "barrier.arrive rb32,64",
    "bar.warp.sync rb32", "shfl.sync.up.b32 rb32|pp,rb32,rb32,rb32,rb32", "vote.sync.ballot.b32 rb32,pp,rb32",
    "vote.sync.all.pred pp,pq,-1", "match.all.sync.b32 rb32|pp,rb32,-1", "redux.sync.add.s32 rs32,rs32,rb32",
    "activemask.b32 rb32", "bfe.u32 ru32,ru32,ru32,ru32", "bfi.b64 rb64,rb64,rb64,ru32,ru32",
    "bfind.u32 ru32,ru32", "clz.b64 ru32,rb64", "popc.b32 ru32,rb32", "brev.b32 rb32,rb32",
    "lop3.b32 rb32,rb32,rb32,rb32,5", "prmt.b32 rb32,rb32,rb32,rb32", "shf.l.wrap.b32 rb32,rb32,rb32,rb32",
    "sad.s32 rs32,rs32,rs32,ru32", "dp4a.u32.s32 rs32,rb32,rb32,rs32", "copysign.f32 rf32,rf32,rf32",
    "testp.finite.f32 pp,rf32", "add.cc.u32 ru32,ru32,ru32", "madc.hi.u32 ru32,ru32,ru32,ru32",
    "abs.f32 rf32,rf32", "neg.s32 rs32,rs32", "sqrt.rn.f32 rf32,rf32", "ex2.approx.f16 rf16,rf16",
    "rcp.approx.ftz.f64 rf64,rf64", "min.s32 rs32,rs32,rs32", "nanosleep.u32 ru32",
    "prefetch.global.L1 [rb64]", "fns.b32 rb32,rb32,rb32,rs32", "szext.clamp.u32 ru32,ru32,ru32",
    "bmsk.clamp.b32 rb32,rb32,rb32", "pmevent 3", "ld.global.L2::cache_hint.u32 ru32,[rb64],rb64",
];

/// Number and hash of the accepted instructions.
const ACCEPTED: (usize, u64) = (2810, 0xe1a3_487b_fa9f_2714);

const HEAD: &str = ".version 9.5
.target sm_90
.address_size 64
.global .align 16 .u32 gv[8]; .shared .u32 sv;
.visible .entry k(.param .u64 pa) { .reg .pred pp,pq; .reg .b8 rb8; .reg .b16 rb16; .reg .b32 rb32; .reg .b64 rb64; \
    .reg .b128 rb128; .reg .u16 ru16; .reg .u32 ru32; .reg .u64 ru64; .reg .s16 rs16; .reg .s32 rs32; .reg .s64 rs64; \
    .reg .f16 rf16; .reg .f32 rf32; .reg .f64 rf64; .reg .v2 .b32 vv; .reg .v4 .f32 vw; .local .u32 lv;
";

/// Splits the operands of an instruction at the commas outside brackets and braces.
fn operands(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    all.push(&text[start..]);
    all
}

fn instructions() -> Vec<String> {
    let mut all = Vec::new();
    for instruction in INSTRUCTIONS {
        let (opcode, rest) = instruction.split_once(' ').expect("it has operands");
        let written = operands(rest);
        all.push(format!("{instruction};"));
        all.push(format!("@!pp {instruction};"));
        all.push(format!("@rb32 {instruction};"));
        all.push(format!("{opcode} {};", written[1..].join(",")));
        all.push(format!("{instruction},rb32;"));
        for i in 0..written.len() {
            for candidate in CANDIDATES {
                let mut changed = written.clone();
                changed[i] = candidate;
                all.push(format!("{opcode} {};", changed.join(",")));
            }
        }
    }
    all
}

#[test]
fn operands_of_every_kind() {
    let instructions = instructions();
    assert!(instructions.len() > 10_000);
    let ours = accepted_lines(HEAD, &instructions, referee::ours);
    let mut expected = ACCEPTED;
    let mut wrong = String::new();
    if let Some(ptxas) = referee::ptxas("operands") {
        let theirs = accepted_lines(HEAD, &instructions, |text| referee::theirs(&ptxas, "operands", text));
        expected = digest(&instructions, &theirs);
        if expected != ACCEPTED {
            println!("operands: ptxas accepts ({}, {:#018x})", expected.0, expected.1);
        }
        for ((instruction, ours), theirs) in instructions.iter().zip(&ours).zip(&theirs) {
            if ours != theirs {
                let _ = writeln!(
                    wrong,
                    "{instruction} accepted by ptxas: {theirs}, by the loader: {ours}"
                );
            }
        }
    }
    let found = digest(&instructions, &ours);
    if found != expected {
        let _ = writeln!(wrong, "(number, hash) {found:x?} instead of {expected:x?}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}
