//! Tests of the plans of small kernels. Most expectations are comments on the PTX lines.

use super::class::Scheduled;
use super::defined::Use;
use super::ordered;
use super::shape::{Choices, Condition, Group, Shape};
use super::steps::Step;
use super::{MOST_INSTS, Plan};
use ptx::ir::{FuncId, Inst, Module, Reg};
use std::sync::Arc;

const GROUP: Group = Group { lanes: 16, whole: true };

/// Returns a module with a kernel that has this body, which begins on line 11.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64
        .global .align 16 .b32 table[64]; .global .align 131072 .b8 large[64];
        .visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n, .param .u64 wide) {{
            .reg .b64 %rd<40>; .reg .b32 %r<40>; .reg .pred %p<8>; .reg .f32 %f<20>; .reg .b16 %h<8>; .reg .f64 %d<8>;
            .shared .align 8 .b8 part[8192]; .local .align 8 .b8 frame[64];
            ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd1, %rd0; ld.param.u32 %r1, [n]; ld.param.u64 %rd2, [in];
            mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
            setp.lt.u32 %p0, %r5, %r1; setp.lt.u32 %p1, %r3, %r1;\n{body}\n done: ret;\n }}"
    )
}

fn load(text: &str) -> Arc<Module> {
    let loaded = ptx::load(text.as_bytes(), &ptx::Limits::default()).unwrap_or_else(|f| panic!("{}\n{text}", f.log));
    loaded.module
}

/// Calls a test with the plan of a kernel that has this body.
fn with_plan<T>(body: &str, test: impl FnOnce(&Plan<'_>) -> T) -> T {
    let module = load(&kernel(body));
    let body = module.functions[0].body().unwrap();
    test(&Plan::of(&module, FuncId(0), body).unwrap())
}

/// Returns the first instruction on a line of a kernel's body, counted from 0.
fn on_line<'b>(plan: &Plan<'b>, line: usize) -> &'b Inst {
    let insts = &plan.source.body.insts;
    insts.iter().find(|inst| inst.line as usize == line + 11).unwrap()
}

fn result(plan: &Plan<'_>, line: usize) -> Reg {
    on_line(plan, line).dsts[0].unwrap()
}

/// Calls `check` with the result of each line that has a comment, and the comment.
fn each_expected(body: &str, mut check: impl FnMut(&Plan<'_>, Reg, &str)) {
    with_plan(body, |plan| {
        for (number, line) in body.lines().enumerate() {
            if let Some((_, expected)) = line.split_once("// ") {
                check(plan, result(plan, number), expected);
            }
        }
    });
}

fn check_shapes(body: &str, group: Group) {
    each_expected(body, |plan, reg, expected| {
        let masked: Vec<_> = plan.regions.iter().collect();
        let choices = Choices {
            masked: &masked,
            denied: &[],
        };
        let shape = plan.shapes(group, choices).of_register(reg).to_string();
        assert_eq!(shape, expected, "r{} of {body}\n{}", reg.0, plan.print(group));
    });
}

#[test]
fn shapes_of_integers() {
    check_shapes(
        "mov.u32 %r10, %tid.x; // step 1
        mov.u32 %r11, %tid.y; // uniform
        add.s32 %r12, %r5, -1; // step 1
        sub.s32 %r13, %r1, %r5; // step -1
        mul.lo.s32 %r14, %r5, 12; // step 12
        mul.lo.s32 %r15, %r5, %r1; // any
        mul.lo.s32 %r16, %r3, %r1; // uniform
        shl.b32 %r17, %r5, 2; // step 4
        shl.b32 %r18, %r3, %r1; // uniform
        neg.s32 %r19, %r14; // step -12
        not.b32 %r20, %r5; // step -1
        mul.wide.u32 %rd3, %r5, 4; // step 4
        mul.wide.s32 %rd4, %r5, -4; // step -4
        cvt.u64.u32 %rd5, %r5; // step 1
        add.s64 %rd6, %rd3, %rd1; // step 4
        cvt.u32.u64 %r21, %rd6; // step 4
        xor.b32 %r22, %r5, 1; // any
        min.s32 %r23, %r5, %r1; // step 1
        mad.wide.u32 %rd7, %r5, 8, %rd1; // step 8
        mov.u32 %r24, %laneid; // step 1
        mov.u32 %r25, %lanemask_lt; // any
        mov.u32 %r26, %clock; // any
        add.sat.s32 %r27, %r5, 1; // any
        setp.eq.u32 %p2, %r5, %r1; // any
        setp.eq.u32 %p3, %r3, %r1; // uniform
        selp.b32 %r28, %r5, %r10, %p3; // step 1
        selp.b32 %r29, %r5, %r14, %p3; // any
        selp.b32 %r30, %r5, %r10, %p2; // any
        cvt.rn.f32.u32 %f0, %r5; // any
        cvt.rn.f32.u32 %f1, %r3; // uniform
        cvt.u16.u32 %h0, %r5; // any
        cvt.u16.u32 %h1, %r3; // uniform",
        GROUP,
    );
}

#[test]
fn shapes_that_depend_on_alignment() {
    check_shapes(
        "shr.u32 %r10, %r2, 5; // uniform
        and.b32 %r11, %r2, 31; // step 1
        shr.u32 %r12, %r5, 4; // uniform
        and.b32 %r13, %r5, 15; // step 1
        and.b32 %r14, %r5, 7; // any
        and.b32 %r15, %r5, -16; // uniform
        shl.b32 %r16, %r5, 3; // step 8
        or.b32 %r17, %r16, 5; // step 8
        or.b32 %r18, %r16, 8; // any
        shr.u32 %r19, %r16, 3; // step 1
        shr.u32 %r29, %r16, 2; // step 2
        shr.u32 %r30, %r16, 4; // any
        div.u32 %r20, %r2, 32; // uniform
        rem.u32 %r21, %r2, 16; // step 1
        shl.b32 %r22, %r3, 10;
        or.b32 %r23, %r22, %r2; // step 1
        shl.b32 %r24, %r2, 3;
        shr.u32 %r25, %r24, 3; // step 1
        and.b32 %r26, %r24, 127; // step 8
        add.u32 %r27, %r2, 1;
        and.b32 %r28, %r27, 31; // any
        shl.b32 %r31, %r2, 6;
        mov.u32 %r32, %nwarpid;
        or.b32 %r33, %r31, %r32; // any
        cvt.u64.u32 %rd3, %r2; // step 1
        and.b64 %rd4, %rd3, 0; // uniform
        rem.u64 %rd5, %rd3, 1; // uniform
        shr.u64 %rd6, %rd5, 1; // uniform
        shl.b32 %r34, %r2, 28;
        shr.u32 %r35, %r34, 28; // step 1
        shr.s32 %r36, %r34, 28; // any
        shl.b32 %r37, %r2, 29;
        shr.u32 %r38, %r37, 29; // any
        mov.u64 %rd7, large;
        and.b32 %r39, %r2, 15;
        mul.wide.u32 %rd8, %r39, 4096;
        or.b64 %rd9, %rd7, %rd8; // step 4096
        mul.wide.u32 %rd10, %r39, 8192;
        or.b64 %rd11, %rd7, %rd10; // any",
        GROUP,
    );
    // The last group of a block may be partial, and the next block then begins anywhere.
    let partial = Group { whole: false, ..GROUP };
    check_shapes(
        "shr.u32 %r10, %r2, 5; // uniform
        shr.u32 %r12, %r5, 4; // any",
        partial,
    );
    let whole_warp = Group { lanes: 32, whole: true };
    check_shapes(
        "shr.u32 %r10, %r2, 5; // uniform
        shr.u32 %r12, %r2, 4; // any
        and.b32 %r13, %r2, 15; // any
        shl.b32 %r14, %r2, 24;
        shr.u32 %r15, %r14, 24; // step 1
        shl.b32 %r16, %r2, 28;
        shr.u32 %r17, %r16, 28; // any",
        whole_warp,
    );
}

#[test]
fn shapes_of_loads_follow_the_space() {
    check_shapes(
        "ld.global.u32 %r10, [%rd1]; // uniform
        ld.global.u32 %r11, [table]; // uniform
        ld.volatile.global.u32 %r12, [%rd1]; // any
        ld.u32 %r13, [%rd0]; // any
        ld.local.u32 %r14, [frame]; // any
        ld.shared.u32 %r15, [part]; // uniform
        mul.wide.u32 %rd3, %r5, 4;
        add.s64 %rd4, %rd1, %rd3;
        ld.global.u32 %r16, [%rd4]; // any
        atom.global.add.u32 %r17, [%rd1], 1; // any",
        GROUP,
    );
}

#[test]
fn shapes_of_loop_counters() {
    check_shapes(
        "mov.u32 %r10, 0; // uniform
        mov.u32 %r11, %r5; // step 1
        mov.u32 %r12, %r5; // any
        again: add.u32 %r10, %r10, 4; // uniform
        add.u32 %r11, %r11, %r4; // step 1
        shl.b32 %r12, %r12, 1; // any
        setp.lt.u32 %p2, %r10, %r1;
        @%p2 bra again;",
        GROUP,
    );
}

#[test]
fn writes_under_a_mask_or_guard_keep_other_lanes_values() {
    check_shapes(
        "mov.u32 %r10, 0; // any
        mov.u32 %r11, 0; // uniform
        @%p0 mov.u32 %r12, 1; // any
        @%p1 mov.u32 %r13, 1; // uniform
        @%p0 bra over;
        add.u32 %r14, %r3, 1; // uniform
        mov.u32 %r10, %r14;
        over:
        @%p1 bra done;
        mov.u32 %r11, 1; // uniform
        add.u32 %r10, %r10, %r11;",
        GROUP,
    );
}

#[test]
fn assumptions_name_the_operand_and_can_be_denied() {
    let body = "mul.wide.s32 %rd3, %r5, 4;
        mul.wide.u32 %rd4, %r2, 4;
        cvt.u64.u32 %rd5, %r5;
        max.s32 %r10, %r1, %r5;
        cvt.s64.s32 %rd6, %r3;";
    with_plan(body, |plan| {
        let shapes = plan.shapes(GROUP, Choices::default());
        let found: Vec<_> = shapes.assumptions.iter().map(|a| (a.source, a.kind)).collect();
        let expected = [(0, Condition::Signed), (0, Condition::Unsigned), (1, Condition::Chosen)];
        assert_eq!(found, expected);
        let denied = [shapes.assumptions[0].step];
        let choices = Choices {
            masked: &[],
            denied: &denied,
        };
        let shapes = plan.shapes(GROUP, choices);
        assert_eq!(shapes.assumptions.len(), 2);
        assert_eq!(shapes.of_register(result(plan, 0)), Shape::Any);
        assert_eq!(shapes.of_register(result(plan, 2)), Shape::Affine(1));
    });
}

#[test]
fn roots_of_addresses() {
    each_expected(
        "mul.wide.u32 %rd3, %r5, 4; // None
        add.s64 %rd4, %rd1, %rd3; // Some(Param(0))
        ld.param.u64 %rd5, [wide];
        add.s64 %rd6, %rd4, %rd5; // Some(Param(0))
        add.s64 %rd7, %rd2, %rd3; // Some(Param(8))
        mov.u64 %rd8, table; // Some(Variable(VarId(0)))
        ld.global.u64 %rd9, [%rd4]; // Some(Loaded(16))
        selp.b64 %rd10, %rd4, %rd8, %p0; // None
        sub.s64 %rd11, %rd4, %rd1; // None
        mul.lo.s64 %rd12, %rd5, 8; // None",
        |plan, reg, expected| {
            let root = plan.roots.of_register(reg);
            assert_eq!(format!("{root:?}"), expected, "{}", plan.print(GROUP));
        },
    );
}

#[test]
fn payloads_that_something_sees() {
    each_expected(
        "ld.global.f32 %f0, [%rd1]; // hidden
        add.f32 %f1, %f0, %f0; // hidden
        mul.f32 %f2, %f1, %f1; // seen
        st.global.f32 [%rd1], %f2;
        add.f32 %f3, %f1, %f2; // seen
        mov.b32 %r10, %f3; // seen
        st.global.u32 [%rd1+4], %r10;
        add.f32 %f4, %f1, %f1; // hidden
        mov.f32 %f5, %f4; // hidden
        setp.gt.f32 %p2, %f5, %f1;
        max.f32 %f6, %f4, %f1; // hidden
        cvt.rni.s32.f32 %r11, %f6;
        add.f32 %f7, %f1, %f1; // seen
        selp.f32 %f8, %f7, %f7, %p2; // seen
        st.global.f32 [%rd1+8], %f8;
        add.f64 %d0, %d1, %d2; // seen
        mul.f64 %d3, %d0, %d0; // seen
        st.global.f64 [%rd1+16], %d3;
        add.f32 %f9, %f4, %f4; // seen
        cvt.f64.f32 %d4, %f9; // seen
        st.global.f64 [%rd1+24], %d4;
        add.f32 %f12, %f4, %f4; // seen
        add.f32 %f13, %f4, %f4; // hidden
        copysign.f32 %f14, %f12, %f13; // hidden
        add.f32 %f15, %f4, %f4; // seen
        mov.b32 %r12, %f15; // seen
        add.f16x2 %r13, %r12, %r12; // hidden
        add.f32 %f16, %f4, %f4; // seen
        mov.b32 %r14, %f16; // seen
        cvt.f32.f16 %f17, %r14; // hidden
        setp.gt.f32 %p3, %f14, %f1;
        add.f32 %f10, %f4, %f4; // seen
        shfl.sync.bfly.b32 %f11, %f10, 1, 31, -1;
        add.f32 %f18, %f4, %f4; // hidden
        add.f32 %f19, %f4, %f4; // hidden
        cvt.rn.f16x2.f32 %r15, %f18, %f19; // seen
        st.global.u32 [%rd1+32], %r15;",
        |plan, reg, expected| {
            let seen = expected == "seen";
            assert_eq!(plan.is_payload_seen(reg), seen, "r{}\n{}", reg.0, plan.print(GROUP));
        },
    );
}

/// Comments are the distance between values, and the number that exchanges lanes.
#[test]
fn rows_in_another_order() {
    let check = |body: &str, lanes: u32| {
        let group = Group { lanes, whole: true };
        each_expected(body, |plan, reg, expected| {
            let swapped = plan.swapped(&plan.shapes(group, Choices::default()), reg);
            let found = swapped.map_or("none".to_owned(), |row| format!("{} {}", row.step, row.swap));
            assert_eq!(found, expected, "r{} of {body}\n{}", reg.0, plan.print(group));
        });
    };
    check(
        "xor.b32 %r10, %r2, 1; // 1 1
        shl.b32 %r11, %r10, 2; // 4 1
        mov.u32 %r12, part;
        add.u32 %r13, %r12, %r11; // 4 1
        mul.wide.u32 %rd10, %r10, 8; // 8 1
        mul.wide.s32 %rd11, %r13, 8; // none
        mul.wide.u32 %rd12, %r2, 4;
        xor.b64 %rd13, 44, %rd12; // 4 11
        add.u64 %rd14, %rd13, %rd2; // 4 11
        xor.b64 %rd15, %rd12, 46; // none
        xor.b32 %r14, %r2, 19; // 1 3
        xor.b32 %r15, %r14, 1; // none
        add.u32 %r16, %r2, 1;
        xor.b32 %r17, %r16, 1; // none
        xor.b32 %r18, %r2, %r1; // none
        xor.b32 %r19, %r2, 2;
        @%p1 add.u32 %r19, %r19, %r3; // none
        add.u32 %r20, %r10, %r10; // none
        mul.wide.s32 %rd16, %r10, -4; // none",
        16,
    );
    check("xor.b32 %r10, %r2, 19; // 1 19", 32);
    // Where the minimum is 20, its values are no row.
    check("min.u32 %r10, %r2, 20;\n xor.b32 %r11, %r10, 1; // none", 16);
    // An assumption counts only for rows that are computed from its result.
    check(
        "min.u32 %r10, %r2, 20;
        xor.b32 %r11, %r2, 1; // 1 1
        sub.u32 %r12, %r10, %r2;
        add.u32 %r13, %r11, %r12; // none",
        16,
    );
}

#[test]
fn pure_registers() {
    each_expected(
        "mov.u32 %r10, %tid.y; // Some(Thread)
        mul.lo.u32 %r11, %r3, %r4; // Some(Block)
        add.u32 %r12, %r1, 1; // Some(Launch)
        ld.global.u32 %r13, [%rd1]; // None
        add.u32 %r14, %r13, 1; // None
        @%p0 mov.u32 %r15, 1; // None
        mov.u32 %r16, 0; // None
        mov.u32 %r16, 1;
        mov.u32 %r17, %clock; // None
        setp.lt.u32 %p2, %r10, %r11; // Some(Thread)",
        |plan, reg, expected| {
            assert_eq!(format!("{:?}", plan.pure.depends_on(reg)), expected, "r{}", reg.0);
        },
    );
    with_plan("add.u32 %r10, %r3, %r5; mul.lo.u32 %r11, %r10, %r3;", |plan| {
        let last = plan
            .source
            .body
            .insts
            .iter()
            .rev()
            .find_map(|inst| inst.dsts.first().copied().flatten());
        let steps = plan.pure.steps_for(&plan.layout, last);
        let text: Vec<String> = steps
            .iter()
            .map(|step| match plan.layout.steps[*step] {
                Step::Plain(inst) => inst.op.to_string(),
                Step::Branch { .. } => "branch".to_string(),
            })
            .collect();
        // Each step follows those whose results it reads.
        assert_eq!(text.last().unwrap(), "mul.lo.u32");
        assert_eq!(text.len(), 6);
        let at = |op: &str| text.iter().position(|t| t == op).unwrap();
        assert!(at("mad.lo.u32") < at("add.u32"));
    });
}

#[test]
fn phases_end_at_scheduled_instructions() {
    let body = "mov.u32 %r10, 0; add.u32 %r11, %r5, 1;
        again: st.shared.u32 [part], %r10;
        bar.sync 0;
        ld.shared.u32 %r12, [part];
        add.u32 %r10, %r10, %r12;
        setp.lt.u32 %p2, %r10, %r11;
        @%p2 bra again;
        shfl.sync.bfly.b32 %r13, %r10, 1, 31, -1;
        st.global.u32 [%rd1], %r13;";
    with_plan(body, |plan| {
        let kinds: Vec<_> = plan.phases.iter().map(|p| p.after).collect();
        let expected = [None, Some(Scheduled::BlockBarrier), Some(Scheduled::Collective)];
        assert_eq!(kinds, expected, "{}", plan.print(GROUP));
        let behind = &plan.phases[1];
        let counter = result(plan, 4);
        assert_eq!(behind.kept, [counter]);
        let limit = plan
            .source
            .body
            .insts
            .iter()
            .filter(|i| i.line == 11)
            .nth(1)
            .and_then(|i| i.dsts[0]);
        assert!(behind.computed.contains(&limit.unwrap()));
        // The loop's head belongs to both phases.
        let head = plan.flow.loops[0].head;
        assert!(plan.phases[0].blocks.contains(&head) && behind.blocks.contains(&head));
    });
}

#[test]
fn loops_and_joins() {
    let body = "mov.u32 %r10, 0;
        outer: mov.u32 %r11, 0;
        inner: add.u32 %r11, %r11, 1;
        setp.eq.u32 %p2, %r11, %r5;
        @%p2 bra skip;
        add.u32 %r10, %r10, 2;
        skip: setp.lt.u32 %p3, %r11, %r1;
        @%p3 bra inner;
        setp.lt.u32 %p4, %r10, %r1;
        @%p4 bra outer;
        st.global.u32 [%rd1], %r10;";
    with_plan(body, |plan| {
        let loops = &plan.flow.loops;
        assert_eq!(loops.len(), 2);
        assert_eq!((loops[0].parent, loops[1].parent), (Some(1), None));
        assert_eq!(loops[0].exits.len(), 1);
        let block_of = |line: usize| {
            let line = line + 11;
            let on_line = |step: &Step<'_>| match step {
                Step::Plain(inst) => inst.line as usize == line,
                Step::Branch { line: at, .. } => *at as usize == line,
            };
            plan.layout.block_of[plan.layout.steps.iter().position(on_line).unwrap()]
        };
        let branch = block_of(4);
        assert_eq!(plan.flow.post_dominator[branch], Some(block_of(6)));
        assert_eq!(plan.flow.nesting(branch), 2);
        assert!(plan.flow.is_backward(block_of(7), loops[0].head));
        assert!(plan.flow.is_dominated(block_of(10), branch));
        let region = plan.regions.iter().find(|r| r.block == branch).unwrap();
        assert_eq!((region.blocks.len(), region.steps), (1, 1));
        // The branches of loops have regions of their own.
        assert_eq!(plan.regions.len(), 3);
    });
}

#[test]
fn endless_loops_and_empty_kernels_have_plans() {
    with_plan("again: bra again;", |plan| {
        assert_eq!(plan.flow.loops.len(), 1);
        assert!(plan.flow.post_dominator.iter().all(Option::is_none));
    });
    with_plan("@%p0 exit; @%p1 bra done; trap;", |plan| {
        assert!(!plan.layout.blocks.is_empty())
    });
    let module = load(".version 8.0 .target sm_80 .address_size 64 .entry k() {}");
    let body = module.functions[0].body().unwrap();
    let plan = Plan::of(&module, FuncId(0), body).unwrap();
    assert_eq!(plan.phases.len(), 1);
}

#[test]
fn live_registers() {
    let body = "mov.u32 %r10, 1;
        @%p0 mov.u32 %r11, 2;
        @%p0 bra over;
        add.u32 %r10, %r10, %r11;
        over: st.global.u32 [%rd1], %r10;";
    with_plan(body, |plan| {
        let guarded = result(plan, 1);
        // A write under a guard keeps the old value in other lanes.
        assert!(plan.live.at_begin(0).any(|reg| reg == guarded));
        assert_eq!(plan.uses[guarded.0 as usize], Use::PerhapsUndefined);
        let ends = plan.live.last_reads(&plan.layout, 0);
        let branch = ends.last().unwrap();
        assert_eq!(branch.len(), 1, "{}", plan.print(GROUP));
        assert!(plan.live.at_end(0).any(|reg| reg == result(plan, 0)));
    });
}

#[test]
fn ordered_instructions() {
    let lines = |body: &str| {
        let module = load(&kernel(body));
        ordered::lines(&module, module.functions[0].body())
    };
    assert_eq!(
        lines(
            "atom.global.add.u32 %r10, [%rd1], 1;
            atom.global.add.u32 %r13, [%rd1], %r10;
            atom.global.exch.b32 %r13, [%rd1], 1;
            red.global.add.u32 [%rd1], 1;
            red.global.add.f32 [%rd1], 0f3F800000;
            ld.global.u32 %r11, [%rd1];
            ld.volatile.global.u32 %r11, [%rd1];
            st.volatile.global.u32 [%rd1], %r11;
            mov.u32 %r12, %clock;
            ld.acquire.gpu.global.u32 %r11, [%rd1];
            st.global.u32 [%rd1], %r11;"
        ),
        [11, 13, 15, 17, 18, 19, 20]
    );
}

/// Accesses to shared memory on lines that end with `ordered` keep the order of threads, and no others.
#[test]
fn exchanges_between_lanes() {
    for body in [
        // The value of another thread, with and without a barrier.
        "st.shared.u32 [%r1], %r2;
        ld.shared.u32 %r10, [%r3]; // ordered",
        "st.shared.u32 [%r1], %r2;
        bar.sync 0;
        ld.shared.u32 %r10, [%r3];
        st.shared.u32 [%r1], %r10;",
        "st.shared.u32 [%r1], %r2;
        bar.warp.sync -1;
        ld.shared.u32 %r10, [%r3];",
        "st.shared.u32 [%r1], %r2;
        shfl.sync.bfly.b32 %r11, %r2, 1, 31, -1;
        ld.shared.u32 %r10, [%r3];",
        // The thread's own value.
        "st.shared.u32 [%r1], %r2;
        st.shared.u32 [%r1+4], %r2;
        ld.shared.u32 %r10, [%r1];",
        // Another address in the same register, and the neighbour of its own.
        "st.shared.u32 [%r1], %r2;
        add.u32 %r1, %r1, 4;
        ld.shared.u32 %r10, [%r1]; // ordered",
        "st.shared.u32 [%r1], %r2;
        ld.shared.u32 %r10, [%r1+4]; // ordered",
        // One thread stores for all.
        "@%p1 st.shared.u32 [part], %r2;
        ld.shared.u32 %r10, [part]; // ordered",
        // Loads may run in any order, and so may stores.
        "ld.shared.u32 %r10, [%r3];
        st.shared.u32 [%r1], %r2; // ordered
        st.shared.u32 [%r4], %r2;
        ld.shared.u32 %r11, [%r3]; // ordered
        ld.shared.u32 %r12, [%r4];",
        // The load of the next round follows the store.
        "round: ld.shared.u32 %r10, [%r3]; // ordered
        add.u32 %r10, %r10, 1;
        st.shared.u32 [%r3], %r10; // ordered
        add.u32 %r3, %r3, 4;
        @%p1 bra round;",
        "round: ld.shared.u32 %r10, [%r3];
        add.u32 %r10, %r10, 1;
        st.shared.u32 [%r3], %r10;
        bar.sync 0;
        add.u32 %r3, %r3, 4;
        @%p1 bra round;",
        // The barrier is on one side of a branch.
        "st.shared.u32 [%r1], %r2;
        @%p1 bra over;
        bar.sync 0;
        over: ld.shared.u32 %r10, [%r3]; // ordered",
        // Some lanes store for all, by a branch and by a guard.
        "@!%p1 bra over;
        st.shared.u32 [%r3], %r2;
        over: ld.shared.u32 %r10, [%r3]; // ordered",
        "@%p1 st.shared.u32 [%r3], %r2;
        ld.shared.u32 %r10, [%r3]; // ordered",
        "@!%p1 bra over;
        st.shared.u32 [%r3], %r2;
        over: bar.sync 0;
        ld.shared.u32 %r10, [%r3];",
        // Lanes store on both sides of a branch: in the same place, and in different ones.
        "@%p1 bra other;
        st.shared.u32 [%r1], %r2;
        bra join;
        other: st.shared.u32 [%r1], %r4;
        join: ld.shared.u32 %r10, [%r1];",
        "@%p1 bra other;
        st.shared.u32 [%r1], %r2;
        bra join;
        other: st.shared.u32 [%r3], %r4;
        join: ld.shared.u32 %r10, [%r1]; // ordered",
        // In the first round of a loop, no lane has stored.
        "round: ld.shared.u32 %r10, [%r1];
        ld.shared.u32 %r11, [%r1+4];
        add.u32 %r10, %r10, %r11;
        st.shared.u32 [%r1], %r10;
        st.shared.u32 [%r1+4], %r10;
        @%p1 bra round;
        ld.shared.u32 %r12, [%r1];",
        // The stores are in an outer loop only, and in an inner one only.
        "outer: mov.u32 %r11, 0;
        inner: add.u32 %r11, %r11, %r2;
        @%p1 bra inner;
        ld.shared.u32 %r10, [%r1];
        add.u32 %r10, %r10, %r11;
        st.shared.u32 [%r1], %r10;
        @%p2 bra outer;",
        "outer: mov.u32 %r11, 0;
        inner: ld.shared.u32 %r10, [%r1];
        add.u32 %r10, %r10, %r11;
        st.shared.u32 [%r1], %r10;
        @%p1 bra inner;
        @%p2 bra outer;",
        // Lanes leave the loop before or after the first store.
        "round: @%p1 bra behind;
        st.shared.u32 [%r1], %r2;
        bra round;
        behind: ld.shared.u32 %r10, [%r1]; // ordered",
        // Some lanes store in each round.
        "round: @%p1 bra next;
        st.shared.u32 [%r1], %r2; // ordered
        next: ld.shared.u32 %r10, [%r1]; // ordered
        @%p2 bra round;",
        // Atomic operations.
        "red.shared.add.u32 [%r1], %r2;
        ld.shared.u32 %r10, [%r1]; // ordered",
        "red.shared.add.u32 [%r1], %r2;
        bar.sync 0;
        ld.shared.u32 %r10, [%r1];
        red.shared.add.u32 [%r1], %r2;",
        "st.shared.u32 [%r1], %r2;
        red.shared.add.u32 [%r3], %r2;
        atom.shared.add.u32 %r11, [%r3], %r2;
        ld.shared.u32 %r10, [%r1]; // ordered
        red.shared.add.u32 [%r3], %r2; // ordered",
        // Global memory.
        "st.global.u32 [%rd1], %r2;
        ld.global.u32 %r10, [%rd2];",
    ] {
        with_plan(body, |plan| {
            for (number, line) in body.lines().enumerate() {
                let inst = on_line(plan, number);
                assert_eq!(
                    ordered::keeps_order(plan.source.module, inst, &plan.order_facts),
                    line.ends_with("// ordered"),
                    "line {number} of {body}"
                );
            }
        });
    }
}

/// The steps on lines that end with `again` are repeatable, and those on lines that end with `once` are not.
#[test]
fn repeatable_steps() {
    for body in [
        "ld.global.u32 %r10, [%rd1]; // again
        @%p1 bra other;
        ld.global.u32 %r11, [%rd2]; // again
        bra join;
        other: mov.u32 %r11, 5; // again
        join: add.u32 %r12, %r11, %r10; // again
        st.global.u32 [%rd1], %r12;
        add.u32 %r13, %r12, 1; // once",
        // Divergent lanes run the first side before the second one.
        "@%p1 bra other;
        mov.u32 %r11, 5; // again
        st.global.u32 [%rd1], %r5;
        other: mov.u32 %r12, 5; // once",
        // A loop with an effect after it, and one with an effect inside.
        "mov.u32 %r10, 0; // again
        round: add.u32 %r10, %r10, 1; // again
        setp.lt.u32 %p2, %r10, 9; // again
        @%p2 bra round;
        bar.sync 0;
        mov.u32 %r12, 5; // once",
        "mov.u32 %r10, 0; // again
        round: add.u32 %r10, %r10, 1; // once
        setp.lt.u32 %p2, %r10, 9; // once
        st.global.u32 [%rd1], %r10;
        @%p2 bra round;",
        // Loops that overlap: the effect is in the second one.
        "mov.u32 %r10, 0; // again
        first: add.u32 %r10, %r10, 1; // once
        setp.lt.u32 %p2, %r10, 9;
        second: mov.u32 %r12, 5; // once
        @%p2 bra first;
        st.global.u32 [%rd1], %r10;
        @%p1 bra second;",
        "ld.volatile.global.u32 %r10, [%rd1];
        mov.u32 %r11, 5; // once",
        // `%r30` is read before it is written, so that its value comes from before the first step.
        "mov.u32 %r11, 5; // once
        add.u32 %r30, %r30, %r11; // once",
    ] {
        with_plan(body, |plan| {
            for (number, line) in body.lines().enumerate() {
                let Some((_, expected)) = line.split_once("// ") else {
                    continue;
                };
                let inst: *const Inst = on_line(plan, number);
                let mut steps = plan.layout.steps.iter();
                let found = steps.position(|step| matches!(step, Step::Plain(other) if std::ptr::eq(*other, inst)));
                assert_eq!(
                    plan.is_repeatable(found.unwrap()),
                    expected == "again",
                    "line {number} of {body}"
                );
            }
        });
    }
}

/// Sets of all registers for each block would take gigabytes.
#[test]
fn uses_of_many_registers_in_many_blocks() {
    const BLOCKS: usize = 30_000;
    let blocks: String = (0..BLOCKS)
        .map(|i| format!("L{i}: mov.u32 %x{i}, {i}; @%p0 bra L{i};\n"))
        .collect();
    let reads: String = (0..BLOCKS).map(|i| format!("add.u32 %r6, %r5, %x{i};\n")).collect();
    let text = kernel(&format!(
        ".reg .b32 %x<{BLOCKS}>;\n{blocks}{reads}add.u32 %r7, %r6, %r6;"
    ));
    let module = load(&text);
    let body = module.functions[0].body().unwrap();
    let uses = super::defined::uses(body, &super::steps::Layout::of(body));
    let used_by = |line: usize| {
        let inst = body.insts.iter().find(|inst| inst.line as usize == line + 11).unwrap();
        uses[inst.dsts[0].unwrap().0 as usize]
    };
    // Defined, but the search would take too much memory.
    assert_eq!(used_by(1), Use::PerhapsUndefined);
    // Only the last block reads it.
    assert_eq!(used_by(2 * BLOCKS), Use::Defined);
}

#[test]
fn large_functions_have_no_plan() {
    for (insts, has_plan) in [(MOST_INSTS / 2, true), (MOST_INSTS, false)] {
        let module = load(&kernel(&"add.u32 %r10, %r10, 1;\n".repeat(insts)));
        let plan = Plan::of(&module, FuncId(0), module.functions[0].body().unwrap());
        assert_eq!(plan.is_some(), has_plan, "{insts}");
    }
}

/// The loops alone would have 200 million blocks in their lists.
#[test]
fn exchanges_in_large_functions_are_all_accesses() {
    const LOOPS: usize = 20_000;
    let heads: String = (0..LOOPS).map(|i| format!("L{i}: add.u32 %r6, %r6, 1;\n")).collect();
    let ends: String = (0..LOOPS).rev().map(|i| format!("@%p0 bra L{i};\n")).collect();
    let many: String = "@%p0 bra done;\n".repeat(100_000);
    for body in [format!("{heads}{ends}"), many] {
        let text = kernel(&format!(
            "st.shared.u32 [part], %r5; ld.shared.u32 %r7, [part];\n{body}"
        ));
        let module = load(&text);
        let lines = super::exchange::lines(module.functions[0].body().unwrap());
        assert_eq!(lines, [11]);
    }
}
