//! Arithmetic in compiled code: each instruction against the interpreter, on numbers of all kinds.

use super::can_compile;
use super::compiled::{counts, same};
use crate::Engine;

/// Runs instructions such as `g:gg add.f64`: the register before the colon is the result, those after it are sources.
/// Letters name registers of 16 bits (h), 32 bits (r, f) and 64 bits (d, g), and predicates (p).
///
/// Each instruction runs several times: first on numbers from memory, then also on its own result, and with its result
/// in the register of each source of the same type. Later runs depend on earlier ones; the first result and the last
/// one are combined and stored.
fn each(instructions: &str) {
    for line in instructions.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (operands, opcodes) = line.split_once(' ').expect("operands and opcodes");
        let [to, b':', from @ ..] = operands.as_bytes() else {
            panic!("{operands} is not a result and sources");
        };
        for opcode in opcodes.split_whitespace() {
            same(&text(opcode, *to, from));
        }
    }
}

/// Returns a body that runs one instruction as [`each`] describes.
fn text(opcode: &str, to: u8, from: &[u8]) -> String {
    let register = |letter: u8, number: usize| {
        let class = match letter {
            b'h' => "%h",
            b'r' => "%r1",
            b'f' => "%f",
            b'd' => "%rd1",
            b'g' => "%fd",
            b'p' => "%p",
            letter => unreachable!("no register is called {letter}"),
        };
        format!("{class}{number}")
    };
    let sources: Vec<String> = from
        .iter()
        .zip(1..)
        .map(|(letter, number)| register(*letter, number))
        .collect();
    // Sources are registers 1 to 4, results 5 and 6.
    let mut lines = vec![
        "ld.global.b32 %r11, [%rd6]; ld.global.b32 %r12, [%rd6+4]; ld.global.b32 %r13, [%rd6+8];".to_string(),
        "ld.global.b32 %r14, [%rd6+12]; mov.b32 %f1, %r11; mov.b32 %f2, %r12; mov.b32 %f3, %r13;".to_string(),
        "ld.global.b64 %rd11, [%rd6]; ld.global.b64 %rd12, [%rd6+8]; add.u64 %rd13, %rd11, %rd12;".to_string(),
        "mov.b64 %fd1, %rd11; mov.b64 %fd2, %rd12; ld.global.f64 %fd3, [%rd6+16];".to_string(),
        "ld.global.b16 %h1, [%rd6+2]; ld.global.b16 %h2, [%rd6+6]; ld.global.b16 %h3, [%rd6+8];".to_string(),
        "setp.lt.s32 %p1, %r11, %r12; setp.lt.s32 %p2, %r13, %r12; setp.lt.s32 %p3, %r11, %r14; setp.ne.u32 %p4, %r11, 3;"
            .to_string(),
    ];
    let (first, second) = (register(to, 5), register(to, 6));
    let mut run = |result: &str, replaced: Option<(usize, &str)>| {
        let mut sources = sources.clone();
        if let Some((at, source)) = replaced {
            sources[at] = source.to_string();
        }
        lines.push(format!("{opcode} {result}, {};", sources.join(", ")));
    };
    run(&first, None);
    // In the second run, the result replaces the first source of its type, if there is one.
    let same_type = || (0..from.len()).filter(|at| from[*at] == to);
    run(&second, same_type().next().map(|at| (at, first.as_str())));
    for at in same_type() {
        run(&second, Some((at, &second)));
    }
    for (register, target) in [(&first, 20), (&second, 21)] {
        lines.push(match to {
            b'h' => format!("cvt.u64.u16 %rd{target}, {register};"),
            b'r' => format!("cvt.u64.u32 %rd{target}, {register};"),
            b'f' => format!("mov.b32 %r22, {register}; cvt.u64.u32 %rd{target}, %r22;"),
            b'd' | b'g' => format!("mov.b64 %rd{target}, {register};"),
            _ => format!("selp.b64 %rd{target}, 0x100000000000, 0x1000, {register};"),
        });
    }
    lines.push("shl.b64 %rd22, %rd21, 1; shr.u64 %rd23, %rd21, 63; or.b64 %rd22, %rd22, %rd23;".to_string());
    lines.push("xor.b64 %rd9, %rd20, %rd22; st.global.u64 [%rd3], %rd9;".to_string());
    lines.join("\n")
}

#[test]
fn single_precision() {
    each(
        "f:ff add.ftz.f32 add.sat.f32 add.ftz.sat.f32 sub.ftz.f32 sub.sat.f32 mul.ftz.f32 mul.sat.f32 mul.ftz.sat.f32
        f:fff fma.rn.ftz.f32 fma.rn.sat.f32 fma.rn.ftz.sat.f32
        f:ff div.rn.f32 div.rn.ftz.f32 copysign.f32
        f:f rcp.rn.f32 rcp.rn.ftz.f32 sqrt.rn.ftz.f32 neg.ftz.f32 abs.ftz.f32
        f:ff min.f32 max.f32 min.ftz.f32 max.ftz.f32 min.NaN.f32 max.NaN.f32 min.xorsign.abs.f32 max.NaN.xorsign.abs.f32",
    );
}

#[test]
fn double_precision() {
    each(
        "g:gg add.f64 sub.f64 mul.f64 div.rn.f64 min.f64 max.f64 copysign.f64
        g:ggg fma.rn.f64
        g:g rcp.rn.f64 sqrt.rn.f64 neg.f64 abs.f64",
    );
}

/// The signs of NaNs become the signs of numbers. Nothing else sees the NaNs, or the results.
#[test]
fn signs_of_nans() {
    for operation in [
        "copysign.f32 %f4, %f3, %f2;",
        "min.xorsign.abs.f32 %f4, %f3, %f2;",
        "max.xorsign.abs.f32 %f4, %f2, %f3;",
    ] {
        // The difference of two infinities is a NaN.
        same(&format!(
            "ld.global.v2.f32 {{%f1, %f2}}, [%rd6]; sub.f32 %f3, %f1, %f1; {operation} setp.lt.f32 %p1, %f4, 0f00000000;
            selp.u64 %rd9, 7, 9, %p1; st.global.u64 [%rd3], %rd9;"
        ));
    }
    // The sources are two NaNs with different signs, and the result is one of them.
    for operation in ["sub.f64 %fd3, %fd1, %fd2;", "fma.rn.f64 %fd3, %fd1, %fd2, %fd1;"] {
        same(&format!(
            "ld.global.u64 %rd10, [%rd6]; and.b64 %rd10, %rd10, 0xfffff; or.b64 %rd11, %rd10, 0x7ff8000000000000;
            or.b64 %rd12, %rd10, 0xfff8000000000000; mov.b64 %fd1, %rd11; mov.b64 %fd2, %rd12; {operation}
            copysign.f64 %fd4, %fd3, 0d3ff0000000000000; setp.lt.f64 %p1, %fd4, 0d0000000000000000;
            selp.u64 %rd9, 7, 9, %p1; st.global.u64 [%rd3], %rd9;"
        ));
    }
}

/// The halves of an `.f32` NaN become numbers of `.f16`. Nothing else sees the NaN.
#[test]
fn halves_of_nans() {
    for operation in [
        "add.f16x2 %r11, %r10, %r10; setp.eq.f16x2 %p1|%p2, %r11, %r11;",
        "setp.eq.f16x2 %p1|%p2, %r10, %r10;",
        "cvt.f32.f16 %f3, %r10; setp.eq.f32 %p1, %f3, %f3; mov.pred %p2, %p1;",
    ] {
        // The difference of two infinities is a NaN.
        same(&format!(
            "ld.global.f32 %f1, [%rd6]; sub.f32 %f2, %f1, %f1; mov.b32 %r10, %f2; {operation} selp.u64 %rd9, 1, 2, %p1;
            selp.u64 %rd10, 4, 8, %p2; or.b64 %rd9, %rd9, %rd10; st.global.u64 [%rd3], %rd9;"
        ));
    }
}

#[test]
fn conversions() {
    each(
        "r:f cvt.rzi.s32.f32 cvt.rni.s32.f32 cvt.rmi.ftz.s32.f32 cvt.rpi.s32.f32 cvt.rzi.u32.f32 cvt.rni.u32.f32
        r:g cvt.rzi.s32.f64 cvt.rni.s32.f64 cvt.rzi.u32.f64 cvt.rpi.u32.f64
        f:r cvt.rn.f32.s32 cvt.rn.f32.u32 cvt.rn.sat.f32.u32
        g:r cvt.rn.f64.s32 cvt.rn.f64.u32
        g:d cvt.rn.f64.s64 cvt.rn.f64.u64
        g:f cvt.f64.f32 cvt.ftz.f64.f32
        f:g cvt.rn.f32.f64
        f:f cvt.rni.f32.f32 cvt.rzi.ftz.f32.f32 cvt.rmi.sat.f32.f32 cvt.ftz.f32.f32 cvt.sat.f32.f32
        g:g cvt.rpi.f64.f64 cvt.rni.f64.f64
        r:r cvt.u32.u8 cvt.s32.s8 cvt.u32.u16 cvt.s32.s16",
    );
}

/// Registers may be wider than the result of a conversion, whose sign is then extended. The sources are the same in all
/// lanes, or differ.
#[test]
fn conversions_to_wider_registers() {
    for source in ["sub.s64 %rd10, 2, %rd2;", "sub.s64 %rd10, 2, %rd5;"] {
        for conversion in [
            "cvt.s32.s64 %rd9, %rd10;",
            "cvt.u32.s64 %rd9, %rd10;",
            "cvt.s32.s32 %rd9, %r10;",
            "cvt.s32.u32 %rd9, %r10;",
            "cvt.s16.s32 %rd9, %r10;",
        ] {
            same(&format!(
                "{source} cvt.u32.u64 %r10, %rd10; {conversion} st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
}

#[test]
fn approximate_functions() {
    each(
        "f:ff div.approx.f32 div.approx.ftz.f32 div.full.f32 div.full.ftz.f32
        f:f rcp.approx.f32 rcp.approx.ftz.f32 sqrt.approx.f32 sqrt.approx.ftz.f32 rsqrt.approx.f32 rsqrt.approx.ftz.f32
        f:f sin.approx.f32 sin.approx.ftz.f32 cos.approx.f32 cos.approx.ftz.f32 lg2.approx.f32 lg2.approx.ftz.f32
        f:f ex2.approx.f32 ex2.approx.ftz.f32 tanh.approx.f32
        g:g rcp.approx.ftz.f64 rsqrt.approx.f64 rsqrt.approx.ftz.f64",
    );
    // For `rsqrt`: numbers around the significand whose result is nearest to the middle of two floats; also zeros,
    // infinities, a NaN and a subnormal number.
    for bits in [
        "0x3fba18e3",
        "0x4b3a18e3",
        "0x4bba18e3",
        "0x80000000",
        "0",
        "0x7f800000",
        "0xff800000",
        "0x7f800001",
        "1",
    ] {
        for ftz in ["", ".ftz"] {
            same(&format!(
                "add.u32 %r10, %r0, -384; add.u32 %r10, %r10, {bits}; mov.u32 %r13, {bits}; mov.b32 %f1, %r13;
                ld.global.u32 %r12, [%rd6]; and.b32 %r12, %r12, 0; add.u32 %r10, %r10, %r12; mov.b32 %f3, %r10;
                rsqrt.approx{ftz}.f32 %f1, %f1; rsqrt.approx{ftz}.f32 %f2, %f3; mov.b32 %r10, %f1; mov.b32 %r11, %f2;
                mov.b64 %rd9, {{%r10, %r11}}; st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
    // Arguments of moderate size, for which few results are zero or infinite.
    for function in ["ex2", "sin", "cos", "lg2", "tanh", "rsqrt"] {
        for scale in ["0f3f800000", "0f40c00000", "0fc1000000", "0f42c80000", "0fc2fe0000"] {
            same(&format!(
                "ld.global.u32 %r10, [%rd6]; cvt.rn.f32.u32 %f1, %r10; mul.f32 %f1, %f1, 0f2f800000;
                mul.f32 %f1, %f1, {scale}; {function}.approx.f32 %f2, %f1; {function}.approx.f32 %f3, %f2;
                mov.b32 %r11, %f2; mov.b32 %r12, %f3; mov.b64 %rd9, {{%r11, %r12}}; st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
}

#[test]
fn carries() {
    for (ty, r) in [("b32", "r1"), ("b64", "rd1")] {
        let (u, s) = (ty.replace('b', "u"), ty.replace('b', "s"));
        for body in [
            format!("add.cc.{u} %{r}5, %{r}1, %{r}2; addc.cc.{u} %{r}6, %{r}2, %{r}3; addc.{u} %{r}7, %{r}1, %{r}3;"),
            format!("sub.cc.{u} %{r}5, %{r}1, %{r}2; subc.cc.{u} %{r}6, %{r}2, %{r}3; subc.{s} %{r}7, %{r}1, %{r}3;"),
            format!(
                "add.cc.{s} %{r}5, %{r}1, %{r}2; addc.cc.{s} %{r}5, %{r}5, %{r}5; addc.{s} %{r}6, %{r}5, 0; mov.{ty} %{r}7, %{r}5;"
            ),
            format!(
                "mad.lo.cc.{u} %{r}5, %{r}1, %{r}2, %{r}3; madc.hi.cc.{u} %{r}6, %{r}1, %{r}2, %{r}2; addc.{u} %{r}7, %{r}1, 0;"
            ),
            format!(
                "mad.hi.cc.{s} %{r}5, %{r}1, %{r}2, %{r}3; madc.lo.cc.{s} %{r}6, %{r}3, %{r}2, %{r}2; madc.hi.{s} %{r}7, %{r}1, %{r}5, 0;"
            ),
            format!(
                "mov.{ty} %{r}4, 7; add.cc.{u} %{r}5, %{r}4, -5; addc.cc.{u} %{r}6, %{r}4, %{r}1; addc.{u} %{r}7, %{r}4, 0;"
            ),
        ] {
            let fold = if ty == "b32" {
                "cvt.u64.u32 %rd15, %r15; cvt.u64.u32 %rd16, %r16; cvt.u64.u32 %rd17, %r17;"
            } else {
                ""
            };
            same(&format!(
                "ld.global.b32 %r11, [%rd6]; ld.global.b32 %r12, [%rd6+4]; ld.global.b32 %r13, [%rd6+8];
                ld.global.b64 %rd11, [%rd6]; ld.global.b64 %rd12, [%rd6+8]; add.u64 %rd13, %rd11, %rd12; {body} {fold}
                mul.lo.u64 %rd9, %rd15, 0x9e3779b97f4a7c15; xor.b64 %rd9, %rd9, %rd16;
                mul.lo.u64 %rd9, %rd9, 0x9e3779b97f4a7c15; xor.b64 %rd9, %rd9, %rd17; st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
}

#[test]
fn integers() {
    each(
        "d:dd mul.lo.s64 mul.hi.u64 mul.hi.s64 min.s64 max.s64 min.u64 max.u64
        d:ddd mad.lo.u64 mad.hi.u64 mad.hi.s64
        d:dr shr.s64
        d:d abs.s64 cnot.b64
        r:rr mul.hi.u32 mul.hi.s32 mul24.lo.u32 mul24.lo.s32 mul24.hi.u32 mul24.hi.s32 add.sat.s32 sub.sat.s32
        r:rr div.u32 div.s32 rem.u32 rem.s32 min.relu.s32 max.relu.s32
        r:rrr mad.hi.u32 mad.hi.s32 mad24.lo.u32 mad24.lo.s32 mad24.hi.s32 sad.u32 sad.s32
        r:rrr bfe.u32 bfe.s32 prmt.b32 dp4a.u32.u32 dp4a.s32.u32 dp4a.u32.s32 dp4a.s32.s32
        r:rrr shf.l.wrap.b32 shf.r.wrap.b32 shf.l.clamp.b32 shf.r.clamp.b32 slct.u32.s32
        r:rrf slct.u32.f32 slct.ftz.s32.f32
        f:fff slct.f32.f32
        r:r abs.s32 cnot.b32 brev.b32 clz.b32 popc.b32 bfind.u32 bfind.s32 bfind.shiftamt.u32 bfind.shiftamt.s32
        r:d popc.b64
        p:f testp.finite.f32 testp.infinite.f32 testp.number.f32 testp.notanumber.f32 testp.normal.f32 testp.subnormal.f32
        p:g testp.finite.f64 testp.normal.f64 testp.subnormal.f64 testp.number.f64
        p:ff setp.lt.ftz.f32 setp.geu.ftz.f32 setp.eq.ftz.f32",
    );
    for body in [
        "and.b32 %r15, %r12, 63; and.b32 %r16, %r13, 47; bfe.u32 %r17, %r11, %r15, %r16; bfe.s32 %r18, %r11, 7, %r16;
        bfe.s32 %r19, %r11, %r15, 12; bfe.u32 %r20, %r11, 3, 5;",
        "and.b32 %r15, %r12, 63; bfi.b32 %r17, %r11, %r12, %r15, 9; bfi.b32 %r18, %r11, %r12, 5, %r15;
        bfi.b32 %r19, %r11, %r12, 0, 32; bfi.b32 %r20, %r11, %r12, 16, 16;",
        "prmt.b32 %r17, %r11, %r12, 0x3210; prmt.b32 %r18, %r11, %r12, 0x7531; prmt.b32 %r19, %r11, %r12, 0x89af;
        prmt.b32 %r20, %r11, %r12, 0x6676;",
        "shr.s64 %rd15, %rd11, 7; shr.s64 %rd16, %rd11, 64; shr.s64 %rd18, %rd11, 33; xor.b64 %rd15, %rd15, %rd16;
        xor.b64 %rd15, %rd15, %rd18; cvt.u32.u64 %r17, %rd15; shr.u64 %rd15, %rd15, 32; cvt.u32.u64 %r18, %rd15;
        and.b32 %r15, %r12, 127; shr.s64 %rd15, %rd11, %r15; cvt.u32.u64 %r19, %rd15; shr.u64 %rd15, %rd15, 32;
        cvt.u32.u64 %r20, %rd15;",
        "clz.b32 %r17, %r8; brev.b32 %r18, %r2; div.u32 %r19, %r0, %r2; rem.u32 %r20, %r0, 7;",
        "and.b32 %r15, %r12, 15; div.u32 %r17, %r11, %r15; rem.s32 %r18, %r11, %r15; div.s32 %r19, %r15, %r11; rem.u32 %r20, %r13, 1000;",
    ] {
        same(&format!(
            "ld.global.b32 %r11, [%rd6]; ld.global.b32 %r12, [%rd6+4]; ld.global.b32 %r13, [%rd6+8]; ld.global.b64 %rd11, [%rd6];
            {body} mov.b64 %rd15, {{%r17, %r18}}; mov.b64 %rd16, {{%r19, %r20}}; mul.lo.u64 %rd9, %rd15, 0x9e3779b97f4a7c15;
            xor.b64 %rd9, %rd9, %rd16; st.global.u64 [%rd3], %rd9;"
        ));
    }
}

#[test]
fn pairs() {
    each(
        "r:rr add.f16x2 sub.f16x2 mul.f16x2 add.ftz.f16x2 mul.ftz.sat.f16x2 sub.sat.f16x2
        r:rr add.rn.bf16x2 sub.rn.bf16x2 mul.rn.bf16x2
        r:rrr fma.rn.f16x2 fma.rn.ftz.f16x2 fma.rn.sat.f16x2 fma.rn.relu.f16x2 fma.rn.bf16x2 fma.rn.relu.bf16x2
        r:r neg.f16x2 abs.f16x2 neg.ftz.f16x2 neg.bf16x2 abs.bf16x2
        r:rr min.f16x2 max.f16x2 max.ftz.NaN.f16x2 min.NaN.bf16x2 max.bf16x2 min.xorsign.abs.f16x2
        r:ff cvt.rn.f16x2.f32 cvt.rn.relu.f16x2.f32 cvt.rn.bf16x2.f32 cvt.rn.relu.bf16x2.f32
        r:rr add.u16x2 min.s16x2 max.u16x2 min.relu.s16x2 max.relu.s16x2",
    );
    // Numbers of similar size, whose sums and products round and cancel.
    for (scale, offset) in [
        ("0x03ff03ff", "0x3c003c00"),
        ("0x83ff83ff", "0x04000400"),
        ("0x80ff80ff", "0x3f803f80"),
    ] {
        for opcode in ["f16x2", "bf16x2"] {
            same(&format!(
                "ld.global.b32 %r11, [%rd6]; ld.global.b32 %r12, [%rd6+4]; ld.global.b32 %r13, [%rd6+8];
                and.b32 %r11, %r11, {scale}; or.b32 %r11, %r11, {offset}; and.b32 %r12, %r12, {scale};
                or.b32 %r12, %r12, {offset}; and.b32 %r13, %r13, 0x80ff87ff; or.b32 %r13, %r13, {offset};
                fma.rn.{opcode} %r14, %r11, %r12, %r13; mul.{opcode} %r15, %r11, %r12; sub.{opcode} %r16, %r15, %r13;
                fma.rn.{opcode} %r17, %r15, %r12, %r16; xor.b32 %r15, %r15, %r16;
                mov.b64 %rd15, {{%r14, %r17}}; cvt.u64.u32 %rd16, %r15; mul.lo.u64 %rd16, %rd16, 0x9e3779b97f4a7c15;
                xor.b64 %rd9, %rd15, %rd16; st.global.u64 [%rd3], %rd9;"
            ));
        }
    }
}

#[test]
fn scalars_in_place() {
    for body in [
        "mov.u32 %r10, %r6; add.u32 %r10, %r10, 5; sub.u32 %r10, 90, %r10; shl.b32 %r10, %r10, 2; mad.lo.u32 %r10, %r10, 3, %r10;
        sub.u32 %r10, %r10, %r2; sub.u32 %r10, %r2, %r10; add.u32 %r10, %r10, %r10;",
        "mov.u32 %r10, %r6; mad.lo.u32 %r10, %r2, %r10, %r10; mad.lo.u32 %r11, %r10, 4, %r2; mad.lo.u32 %r11, %r6, 4, %r11; sub.u32 %r10, %r11, %r10;",
        "mul.wide.u32 %rd10, %r6, 4; add.u64 %rd10, %rd10, %rd2; sub.u64 %rd10, %rd2, %rd10; mad.wide.u32 %rd10, %r6, 8, %rd10;
        add.u64 %rd10, %rd10, 0x123456789a; cvt.u32.u64 %r10, %rd10; shr.u64 %rd10, %rd10, 32; cvt.u32.u64 %r11, %rd10; add.u32 %r10, %r10, %r11;",
        "mov.u32 %r10, %r6; min.u32 %r10, %r10, 40; max.u32 %r10, %r10, 3; min.s32 %r10, %r2, %r10; max.s32 %r10, %r10, -7;",
        "sub.u32 %r10, 0x7fffffff, %r6; max.s32 %r10, %r10, %r2; sub.u32 %r11, 0x7fffffe8, %r6; add.u32 %r11, %r11, %r6; add.u32 %r11, %r11, %r6;
        max.s32 %r11, %r11, 5; min.s32 %r12, %r11, 0x7ffffff0; xor.b32 %r10, %r10, %r12;",
        "sub.u32 %r10, %r6, 9; cvt.s64.s32 %rd10, %r10; cvt.u64.u32 %rd11, %r10; add.u64 %rd10, %rd10, %rd11; min.s64 %rd10, %rd10, 30;
        max.u64 %rd10, %rd10, 2; cvt.u32.u64 %r10, %rd10;",
    ] {
        same(&format!("{body} cvt.u64.u32 %rd9, %r10; st.global.u64 [%rd3], %rd9;"));
    }
}

/// Conversions replace the NaNs of the host's instructions by those of the narrower formats.
#[test]
fn nans_that_conversions_replace() {
    for conversion in [
        "cvt.rn.f16x2.f32 %r12, %f3, %f4;",
        "cvt.rn.relu.f16x2.f32 %r12, %f4, %f3;",
        "cvt.rz.f16x2.f32 %r12, %f5, %f3;",
        "cvt.rn.bf16x2.f32 %r12, %f3, %f4;",
        "cvt.rn.relu.bf16x2.f32 %r12, %f4, %f5;",
        "cvt.rz.bf16x2.f32 %r12, %f5, %f3;",
        "cvt.rn.f16.f32 %h1, %f3; cvt.rn.bf16.f32 %h2, %f4; mov.b32 %r12, {%h1, %h2};",
    ] {
        same(&format!(
            "ld.global.v2.f32 {{%f1, %f2}}, [%rd6]; mul.f32 %f3, %f1, 0f7f800000; sub.f32 %f4, %f1, %f2;
            sqrt.rn.f32 %f5, %f2; {conversion} cvt.u64.u32 %rd9, %r12; st.global.u64 [%rd3], %rd9;"
        ));
    }
}

/// A shift to the left may bring bits of a thread's number into the sign or out of the register.
#[test]
fn thread_numbers_shifted_there_and_back() {
    for (ty, by) in ["s32", "u32"]
        .into_iter()
        .flat_map(|ty| (24..32).map(move |by| (ty, by)))
    {
        same(&format!(
            "shl.b32 %r11, %r6, {by}; shr.{ty} %r12, %r11, {by}; st.global.u32 [%rd3], %r12;"
        ));
    }
    for by in [56, 60, 62] {
        same(&format!(
            "cvt.u64.u32 %rd11, %r6; shl.b64 %rd11, %rd11, {by}; shr.s64 %rd11, %rd11, {by}; st.global.u64 [%rd3], %rd11;"
        ));
    }
}

/// Each instruction is compiled for groups of every size: the interpreter runs no more than for the one beside it.
#[test]
fn instructions_on_rows_of_numbers_need_no_calls() {
    let affine = "shl.b32 %r11, %r6, 3; add.u32 %r12, %r11, 5; cvt.u64.u32 %rd11, %r11; add.u64 %rd12, %rd11, %rd2;
        setp.lt.u32 %p1, %r3, 2;";
    let narrow = "add.u32 %r20, %r11, 1;";
    let wide = "add.u64 %rd20, %rd11, 1;";
    let loaded = "ld.global.b32 %r11, [%rd6]; ld.global.b32 %r12, [%rd6+4]; ld.global.b64 %rd11, [%rd6];
        ld.global.b64 %rd12, [%rd6+8]; setp.lt.s32 %p1, %r11, %r12;";
    for (start, instruction, other) in [
        (affine, "not.b32 %r20, %r11;", narrow),
        (affine, "not.b64 %rd20, %rd11;", wide),
        (affine, "neg.s32 %r20, %r11;", narrow),
        (affine, "neg.s64 %rd20, %rd11;", wide),
        (affine, "div.u32 %r20, %r11, 4;", narrow),
        (affine, "div.u32 %r20, %r11, 1;", narrow),
        (affine, "div.u64 %rd20, %rd11, 8;", wide),
        (affine, "rem.u32 %r20, %r6, 4096;", narrow),
        (affine, "rem.u64 %rd20, %rd11, 0x10000000000;", wide),
        (affine, "selp.b32 %r20, %r11, %r12, %p1;", narrow),
        (affine, "selp.b32 %r20, %r11, %r12, !%p1;", narrow),
        (affine, "selp.b64 %rd20, %rd12, %rd11, %p1;", wide),
        (affine, "selp.b32 %r11, %r12, %r11, %p1; mov.u32 %r20, %r11;", narrow),
        (loaded, "selp.b32 %r20, %r11, %r12, %p1;", narrow),
        (loaded, "selp.b32 %r20, %r11, 7, !%p1;", narrow),
        (loaded, "selp.b64 %rd20, %rd11, %rd12, %p1;", wide),
    ] {
        let unused = if instruction.contains("%rd20") {
            "mov.u32 %r20, 0;"
        } else {
            "mov.u64 %rd20, 0;"
        };
        let body = |instruction: &str| {
            format!(
                "{start} {instruction} {unused} cvt.u64.u32 %rd21, %r20; add.u64 %rd22, %rd20, %rd21;
                st.global.u64 [%rd3], %rd22;"
            )
        };
        same(&body(instruction));
        if can_compile() {
            for lanes in [8, 16, 32] {
                let called = |text: &str| counts(&body(text), Engine::Compiled { lanes }).0.called;
                assert_eq!(called(instruction), called(other), "{lanes} lanes: {instruction}");
            }
        }
    }
}

/// The lanes that run a region select between rows of numbers; the first lane of a group may not be one of them.
#[test]
fn selections_for_some_lanes() {
    for other in ["0", "1"] {
        same(&format!(
            "ld.global.b32 %r10, [%rd6]; mov.u32 %r21, %r10; and.b32 %r13, %r6, 1; setp.eq.u32 %p1, %r13, {other};
            @%p1 bra join;
            setp.lt.u32 %p2, %r3, 2; add.u32 %r11, %r6, 9; selp.b32 %r20, %r11, %r6, %p2; not.b32 %r14, %r20;
            neg.s32 %r15, %r20; sub.u32 %r14, %r14, %r15; mad.lo.u32 %r21, %r20, 16, %r14;
            join: cvt.u64.u32 %rd20, %r21; st.global.u64 [%rd3], %rd20;"
        ));
    }
}
