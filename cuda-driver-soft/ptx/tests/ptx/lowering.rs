//! Tests of lowering: spot checks of the intermediate representation of single statements and small modules.

use super::referee::LIMITS;

use ptx::ir::{Module, Op, RelocTarget, SourcePlace, VarId};
use std::sync::Arc;

fn load(text: &str) -> Arc<Module> {
    let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n{text}");
    ptx::load(text.as_bytes(), &LIMITS)
        .unwrap_or_else(|failure| panic!("{text}\n{failure}"))
        .module
}

/// Returns the instructions of the last function, each printed without its line number.
fn body(text: &str) -> Vec<String> {
    let module = load(text);
    let body = module.functions.last().and_then(|f| f.body()).expect("it has a body");
    let line = |inst: String| inst.split("  // line").next().unwrap_or("").to_owned();
    body.insts.iter().map(|inst| line(inst.to_string())).collect()
}

/// Returns the instructions of a kernel with some registers: `%p`, `%h`, `%r`, `%d` (b64), `%f`, four of each, numbered
/// from 0 in this order.
fn kernel(statements: &str) -> Vec<String> {
    body(&format!(
        ".entry k(.param .u32 a, .param .u64 b) {{ .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; \
         .reg .f32 %f<4>;\n{statements}\n}}"
    ))
}

#[test]
fn constants_have_the_bits_of_the_type() {
    assert_eq!(
        kernel("add.s32 %r0, %r1, -1;"),
        ["r8 = Add { ty: S32, sat: false } r9, 0xffffffff"]
    );
    assert_eq!(kernel("mov.b64 %d0, -1;"), ["r12 = Mov { ty: B64 } 0xffffffffffffffff"]);
    assert_eq!(kernel("mov.f32 %f0, 1.5;"), ["r16 = Mov { ty: F32 } 0x3fc00000"]);
    assert_eq!(
        kernel("mov.f32 %f0, 0d3ff8000000000000;"),
        ["r16 = Mov { ty: F32 } 0x3fc00000"]
    );
    assert_eq!(kernel("mov.b32 %r0, 0f3FC00000;"), ["r8 = Mov { ty: B32 } 0x3fc00000"]);
    assert_eq!(kernel("mov.f64 %d0, 0f3FC00000;"), ["r12 = Mov { ty: F64 } 0x3fc00000"]);
    assert_eq!(kernel("mov.u16 %h0, 70000;"), ["r4 = Mov { ty: U16 } 0x1170"]);
    assert_eq!(kernel("mov.pred %p0, 2;"), ["r0 = Mov { ty: Pred } 0x1"]);
    assert_eq!(
        kernel("mov.u32 %r0, (1 + 2) * 3 - -4 << 1;"),
        ["r8 = Mov { ty: U32 } 0x1a"]
    );
    assert_eq!(kernel("mov.u32 %r0, 1 ? 2 : 3;"), ["r8 = Mov { ty: U32 } 0x2"]);
    assert_eq!(kernel("mov.s32 %r0, -7 / 2;"), ["r8 = Mov { ty: S32 } 0xfffffffd"]);
    assert_eq!(kernel("mov.u32 %r0, !0 + ~0;"), ["r8 = Mov { ty: U32 } 0x0"]);
    assert_eq!(kernel("mov.u32 %r0, WARP_SZ;"), ["r8 = Mov { ty: U32 } 0x20"]);
}

#[test]
fn constant_expressions_match_ptxas() {
    // The initial values that ptxas 13.5 computes for a variable.
    let cases: &[(&str, u64)] = &[
        ("18446744073709551617", 1),
        ("0x10000000000000001", 1),
        ("-1 >> 1", u64::MAX),
        ("-1U >> 1", u64::MAX >> 1),
        ("(.u64)-16 >> 2", 0x3fff_ffff_ffff_fffc),
        ("(.s64)0xFFFFFFFFFFFFFFF0 >> 2", -4i64 as u64),
        ("1 << 70", 0x40),
        ("1 << -1", 1 << 63),
        ("8 >> -1", 0),
        ("(-5) / 2", -2i64 as u64),
        ("-8 / 3U", 0x5555_5555_5555_5552),
        ("-9223372036854775808 / -1", 0),
        ("-7 % 3", 0),
        ("7 % -3", 7),
        ("-1 > 1U", 1),
        ("-1 > 1", 0),
        ("1 - 2U > 0", 1),
        ("~0 < 0", 0),
        ("1 - 2 < 0", 1),
        ("2 + 3 * 4 << 1 | 1", 0x1d),
        ("6 & 3 == 3", 0),
        ("1 || 0 && 0", 1),
        ("0 ? 1 : 2 ? 3 : 4", 3),
        ("(0 ? -1 : 1U) - 2 < 0", 0),
        ("100 / 10 / 5", 2),
        ("077 + 0b11 + 0XfF + WARP_SZ", 63 + 3 + 255 + 32),
        ("- -5", 5),
        ("!-1", 0),
    ];
    for (expression, value) in cases {
        let module = load(&format!(".global .u64 x = {expression};"));
        let found = u64::from_le_bytes(module.variables[0].init.clone().try_into().expect("8 bytes"));
        assert_eq!(found, *value, "{expression}");
    }
}

#[test]
fn addresses_of_variables_frames_and_parameters() {
    let text =
        ".global .u32 g[8]; .shared .u32 s; .entry k(.param .u32 a, .param .u64 b) { .reg .b64 %d<2>; .reg .b32 %r<2>;
        .local .align 8 .b8 x[16]; .local .u32 y;";
    let lines = |statements: &str| body(&format!("{text}\n{statements}\n}}"));
    assert_eq!(
        lines("mov.u64 %d0, g+8;"),
        ["r0 = Mov { ty: U64 } Variable { var: VarId(0), offset: 8 }"]
    );
    assert_eq!(
        lines("mov.u64 %d0, g[2];"),
        ["r0 = Mov { ty: U64 } Variable { var: VarId(0), offset: 8 }"]
    );
    assert_eq!(lines("mov.u64 %d0, y;"), ["r0 = Mov { ty: U64 } Frame { offset: 16 }"]);
    assert_eq!(
        lines("cvta.shared.u64 %d0, s;"),
        ["r0 = Cvta { space: Shared, to: false, ty: U64 } Variable { var: VarId(1), offset: 0 }"]
    );
    let ld = |space: &str, offset: i64| {
        format!("r2 = Ld(MemMods {{ space: {space}, ty: U32, vec: 1, order: Weak, offset: {offset} }})")
    };
    assert_eq!(
        lines("ld.param.u32 %r0, [b+4];"),
        [format!("{} Param {{ offset: 12 }}", ld("Param", 0))]
    );
    assert_eq!(
        lines("ld.local.u32 %r0, [x+4];"),
        [format!("{} Frame {{ offset: 4 }}", ld("Local", 0))]
    );
    assert_eq!(
        lines("ld.u32 %r0, [s];"),
        [format!("{} Variable {{ var: VarId(1), offset: 0 }}", ld("Shared", 0))]
    );
    assert_eq!(
        lines("ld.global.u32 %r0, [%d0+-8];"),
        [format!("{} r0", ld("Global", -8))]
    );
    assert_eq!(lines("ld.local.u32 %r0, [16];"), [format!("{} 0x10", ld("Local", 0))]);
}

#[test]
fn vectors_pack_and_unpack() {
    assert_eq!(kernel("mov.b64 %d0, {%r0, %r1};"), ["r12 = Pack { ty: B64 } r8, r9"]);
    assert_eq!(kernel("mov.b64 {%r0, _}, %d0;"), ["r8, _ = Unpack { ty: B64 } r12"]);
    assert_eq!(kernel("mov.b32 %r0, {%h0, 1};"), ["r8 = Pack { ty: B32 } r4, 0x1"]);
    assert_eq!(
        kernel(".reg .v2 .b32 v; mov.b64 %d0, v;"),
        ["r12 = Pack { ty: B64 } r20, r21"]
    );
    assert_eq!(
        kernel(".reg .v4 .f32 v; mov.f32 %f0, v.w;"),
        ["r16 = Mov { ty: F32 } r23"]
    );
    // A swap needs the old values of both registers.
    assert_eq!(
        kernel("mov.v2.u32 {%r0, %r1}, {%r1, %r0};"),
        [
            "r20 = Mov { ty: U32 } r9",
            "r21 = Mov { ty: U32 } r8",
            "r8 = Mov { ty: U32 } r20",
            "r9 = Mov { ty: U32 } r21",
        ]
    );
    assert_eq!(
        kernel("ld.global.v2.f32 {%f0, _}, [%d0];"),
        ["r16, _ = Ld(MemMods { space: Global, ty: F32, vec: 2, order: Weak, offset: 0 }) r12"]
    );
}

#[test]
fn special_registers() {
    assert_eq!(kernel("mov.u32 %r0, %tid.y;"), ["r8 = Mov { ty: U32 } %Tid(1)"]);
    assert_eq!(kernel("mov.u32 %r0, %ctaid.w;"), ["r8 = Mov { ty: U32 } 0x0"]);
    assert_eq!(
        kernel("cvt.u64.u32 %d0, %ntid.x;"),
        [
            "r20 = Mov { ty: U32 } %Ntid(0)",
            "r12 = Cvt(Cvt { to: U64, from: U32, rnd: None, int_rnd: None, ftz: false, sat: false, relu: false, satfinite: false }) r20",
        ]
    );
    assert_eq!(kernel("mov.u64 %d0, %clock64;"), ["r12 = Mov { ty: U64 } %Clock64"]);
    assert_eq!(kernel("mov.v4.u32 {%r0, %r1, %r2, %r3}, %tid;").len(), 4);
}

#[test]
fn labels_belong_to_their_scope() {
    assert_eq!(
        kernel("L: { bra L; L: ret; } bra L;"),
        [
            "Bra { target: InstId(1), uni: false }",
            "Ret { uni: false }",
            "Bra { target: InstId(0), uni: false }",
        ]
    );
    assert_eq!(
        kernel("@!%p1 bra.uni end; T: .branchtargets end, T2; brx.idx %r0, T; T2: exit; end:"),
        [
            "@!r1 Bra { target: InstId(3), uni: true }",
            "Brx { targets: [InstId(3), InstId(2)], uni: false } r8",
            "Exit",
        ]
    );
}

#[test]
fn registers_are_shadowed_in_inner_scopes() {
    assert_eq!(
        kernel("{ .reg .b32 %r<2>; not.b32 %r0, %r3; } not.b32 %r0, %r0;"),
        ["r20 = Not { ty: B32 } r11", "r8 = Not { ty: B32 } r8",]
    );
}

#[test]
fn the_condition_code_is_a_register() {
    assert_eq!(
        kernel("add.cc.u32 %r0, %r1, %r2; addc.u32 %r1, 0, 0;"),
        [
            "r8, r20 = AddC { ty: U32, sub: false, carry_in: false, carry_out: true } r9, r10",
            "r9 = AddC { ty: U32, sub: false, carry_in: true, carry_out: false } 0x0, 0x0, r20",
        ]
    );
}

#[test]
fn names_of_a_range_are_neighbouring_variables() {
    let text = ".func f(.param .u64 a, .param .u64 b) { ret; }
        .entry k() { .reg .b64 %r; .local .align 16 .b32 x<3>; .shared .u64 s<2>;
            st.local.b32 [x2], 1; st.shared.u64 [s1], %r;
            { .param .u64 %P<2>; st.param.u64 [%P1], %r; call f, (%P0, %P1); } ret; }";
    let shown = body(text);
    assert!(shown[0].contains("Frame { offset: 32 }"), "{}", shown[0]);
    assert!(
        shown[1].contains("Variable { var: VarId(1), offset: 0 }"),
        "{}",
        shown[1]
    );
    assert!(shown[2].contains("Frame { offset: 56 }"), "{}", shown[2]);
    assert!(
        shown[3].contains("args: [Frame { offset: 48, size: 8 }, Frame { offset: 56, size: 8 }]"),
        "{}",
        shown[3]
    );
    let names: Vec<String> = load(text).variables.iter().map(|v| v.name.clone()).collect();
    assert_eq!(names, ["k$s0", "k$s1"]);
}

#[test]
fn calls_by_memory_and_by_register() {
    let text = ".func (.param .b32 r) f(.param .b32 a, .reg .u32 b);
        .func (.param .b32 r) f(.param .b32 a, .reg .u32 b) { ret; }
        .entry k() { .reg .b32 %r<3>; { .param .b32 x; .param .b32 y; call (y), f, (x, %r1); } { .param .b64 z; call (_), f, (%r2, 7); } }";
    assert_eq!(
        body(text),
        [
            "Call { callee: Direct(FuncId(0)), args: [Frame { offset: 0, size: 4 }, Value(Reg(Reg(1)))], \
         rets: [Frame { offset: 4, size: 4 }], uni: false }",
            "Call { callee: Direct(FuncId(0)), args: [Value(Reg(Reg(2))), Value(Imm(7))], rets: [Value(Reg(Reg(3)))], \
         uni: false }",
        ]
    );
    let module = load(text);
    let caller = module.functions[1].body().expect("defined");
    // The second block reuses the first block's memory.
    assert_eq!((caller.frame_size, caller.frame_align), (8, 8));
    let callee = module.functions[0].body().expect("defined");
    assert_eq!(
        format!("{:?}", callee.params),
        "[Frame { offset: 4, size: 4 }, Reg(Reg(0))]"
    );
}

#[test]
fn initial_values() {
    let module = load(
        ".func f() {ret;} .global .u32 a[2][3] = {{1, 2}, {-1}}; .global .f32 b[] = {1.5, 0f40000000};
         .global .u64 c[3] = {a+4, generic(a)+8, f}; .global .u8 d[2] = {0xff(a), 0xff00(a)}; .const .v2 .u16 e = {7, 8};
         .global .b32 g = -2.0; .global .u32 h[2] = {}; .global .f64 i = 0f3FC00000; .global .b64 j = 0f3FC00000;
         .global .b16 k = 1.5; .global .b8 l[2] = {1.5, 2}; .global .b16 m = 0f3F80ABCD; .global .b128 n = 1.5;",
    );
    let variable = |i: usize| &module.variables[i];
    assert_eq!(variable(0).size, 24);
    assert_eq!(variable(0).init, [1u32, 2, 0, u32::MAX].map(u32::to_le_bytes).concat());
    assert_eq!(
        (variable(1).size, variable(1).init.clone()),
        (8, [1.5f32, 2.0].map(f32::to_le_bytes).concat())
    );
    let relocs: Vec<_> = variable(2)
        .relocs
        .iter()
        .map(|r| (r.offset, r.width, r.addend, r.generic))
        .collect();
    assert_eq!(relocs, [(0, 8, 4, false), (8, 8, 8, true), (16, 8, 0, false)]);
    assert_eq!(variable(2).relocs[0].target, RelocTarget::Variable(VarId(0)));
    let shifts: Vec<_> = variable(3)
        .relocs
        .iter()
        .map(|r| (r.offset, r.width, r.shift))
        .collect();
    assert_eq!(shifts, [(0, 1, 0), (1, 1, 8)]);
    assert_eq!((variable(4).align, variable(4).init.clone()), (4, vec![7, 0, 8, 0]));
    assert_eq!(variable(5).init, (-2.0f32).to_le_bytes());
    assert_eq!((variable(6).size, variable(6).init.len()), (8, 0));
    assert_eq!(variable(7).init, 0x3fc0_0000_u64.to_le_bytes());
    assert_eq!(variable(8).init, 0x3fc0_0000_u64.to_le_bytes());
    assert_eq!(variable(9).init, [0, 0]);
    assert_eq!(variable(10).init, [0, 2]);
    assert_eq!(variable(11).init, [0xcd, 0xab]);
    assert_eq!(variable(12).init, u128::from(1.5_f64.to_bits()).to_le_bytes());
}

#[test]
fn device_functions_read_parameters_of_kernels() {
    let lines = body(
        ".func f(.reg .u64 l) { .reg .u32 u; ld.param::entry.u32 u, [l]; ld.param::func.u32 u, [l]; ld.param.u32 u, [l]; }",
    );
    let spaces = ["Param", "Local", "Local"];
    assert!(lines.len() >= spaces.len(), "{lines:#?}");
    for (line, space) in lines.iter().zip(spaces) {
        assert!(line.contains(&format!("space: {space}")), "{lines:#?}");
    }
}

#[test]
fn elements_after_the_coordinates_are_ignored() {
    let sources = |coordinates: &str| {
        let module = load(&format!(
            ".entry k() {{ .reg .b64 t; .reg .f32 f, g; .reg .v4 .f32 v; tex.2d.v4.f32.f32 v, [t, {coordinates}]; }}"
        ));
        let body = module.functions[0].body().expect("defined");
        body.insts[0].srcs.clone()
    };
    assert_eq!(sources("{f, g, f, f}"), sources("{f, g}"));
    assert_eq!(sources("v").len(), 3);
}

#[test]
fn variables_of_a_function_get_its_name() {
    let module = load(".entry k() { .shared .u32 s; .reg .b32 r; ld.shared.u32 r, [s]; }");
    assert_eq!(module.variables[0].name, "k$s");
}

#[test]
fn unsupported_instructions_are_named() {
    let lines = kernel("txq.array_size.b32 %r0, [%d0];");
    assert_eq!(lines, ["Unsupported { opcode: \"txq.array_size.b32\" }"]);
}

#[test]
fn instructions_know_their_place_in_the_source() {
    let text = ".entry a() { .loc 1 7 3\nret; }\n.entry b() {\nbar.sync 0;\n.loc 2 9 5, function_name $f, inlined_at 1 14 18\n\
                bar.sync 1;\n.loc 1 0 0\nret; }\n.file 1 \"a.cu\"\n.file 2 \"b.h\", 3, 4\n.section .debug_str { $f: .b8 97, 0 }";
    let module = load(text);
    let place = |function: usize, inst: usize| {
        let function = &module.functions[function];
        let line = function.body().expect("it has a body").insts[inst].line;
        function.location(line).map(|found| {
            let name = |place: SourcePlace| (function.source.file(place.file), place.line, place.column);
            (name(found.place), found.inlined_at.map(name))
        })
    };
    assert_eq!(place(0, 0), Some(((Some("a.cu"), 7, 3), None)));
    // A `.loc` of another function does not apply, and one with line 0 is not a place.
    assert_eq!(place(1, 0), None);
    assert_eq!(place(1, 1), Some(((Some("b.h"), 9, 5), Some((Some("a.cu"), 14, 18)))));
    assert_eq!(place(1, 2), None);
}

#[test]
fn a_special_register_indexes_an_array() {
    let lowered = |statement: &str| {
        let registers = ".reg .b32 %r<4>; .reg .b64 %d<4>;";
        body(&format!(
            ".global .u32 g[4];\n.entry k() {{ {registers}\n{statement}\n}}"
        ))
    };
    for statement in [
        "ld.global.u32 %r1, g[INDEX+1];",
        "st.global.u32 g[INDEX], %r1;",
        "mov.u64 %d1, g[INDEX];",
    ] {
        let (of_special, of_register) = (
            lowered(&statement.replace("INDEX", "%laneid")),
            lowered(&statement.replace("INDEX", "%r2")),
        );
        assert_eq!(of_special.len(), of_register.len() + 1, "{of_special:?}");
        assert!(of_special[0].starts_with("r8 = Mov { ty: U32 } "), "{of_special:?}");
        let used = of_special[1..].iter().any(|line| line.contains(" r8"));
        assert!(used, "the index is used: {of_special:?}");
    }
    let wide = lowered("ld.global.u32 %r1, g[%clock64];");
    assert!(wide[0].starts_with("r8 = Mov { ty: U64 } "), "{wide:?}");
}

#[test]
fn only_declared_registers_have_names() {
    let module = load(
        ".global .u32 g[4];\n.entry k() { .reg .v2 .b32 v; .reg .b32 %r<2>; .reg .b64 d;\nld.global.u32 %r1, g[%r0]; }",
    );
    let body = module.functions.last().and_then(|f| f.body()).expect("it has a body");
    let registers = (0..).map(ptx::ir::Reg).take(body.registers.len());
    let names: Vec<_> = registers.map(|reg| body.register_name(reg)).collect();
    let declared = ["v.x", "v.y", "%r0", "%r1", "d"];
    assert!(names.len() > declared.len(), "lowering adds the address");
    for (index, name) in names.iter().enumerate() {
        assert_eq!(name.as_deref(), declared.get(index).copied());
    }
}

#[test]
fn the_first_priority_of_a_policy_is_its_value() {
    let policy = |priorities: &str| kernel(&format!("createpolicy.fractional{priorities}.b64 %d0;"));
    for primary in [
        ".L2::evict_last",
        ".L2::evict_normal",
        ".L2::evict_first",
        ".L2::evict_unchanged",
    ] {
        let alone = policy(primary);
        for secondary in [".L2::evict_first", ".L2::evict_unchanged"] {
            assert_eq!(policy(&format!("{primary}{secondary}")), alone);
        }
    }
    assert_eq!(
        policy(".L2::evict_normal"),
        ["r12 = Mov { ty: B64 } 0x16f0000000000000"]
    );
}

#[test]
fn checks_for_clusters_print_their_instruction() {
    let module = load(
        ".entry k() { .reg .b32 %r<3>;
         st.async.mbarrier::complete_tx::bytes.b32 [%r0], %r1, [%r2];
         red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%r0], %r1, [%r2]; }",
    );
    let body = module.functions.last().and_then(|f| f.body()).expect("it has a body");
    let checks = body
        .insts
        .iter()
        .filter(|inst| matches!(inst.op, Op::WantsCluster { .. }));
    let printed: Vec<String> = checks.map(|inst| inst.op.to_string()).collect();
    assert_eq!(printed, ["st.async", "red.async"]);
}
