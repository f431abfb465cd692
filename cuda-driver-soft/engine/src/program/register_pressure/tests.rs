//! Tests of the register estimate: the live registers of small kernels, and the limits that directives set.

use super::{Code, MOST_IF_HUGE, Need, estimate, limit};
use ptx::Limits;
use ptx::ir::{Body, Directives, FuncId, Function, Module};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HEAD: &str = ".version 8.0\n.target sm_70\n.address_size 64\n.global .align 8 .u64 slot;\n";

fn load(code: &str) -> Arc<Module> {
    let text = format!("{HEAD}{code}");
    match ptx::load(text.as_bytes(), &Limits::default()) {
        Ok(loaded) => loaded.module,
        Err(failure) => panic!("{}\n{text}", failure.log),
    }
}

fn body_of(function: &Function) -> &Body {
    function.body().expect("a body")
}

/// Returns the largest number of registers that are live at the same time in a kernel with this code.
fn live(code: &str) -> u32 {
    let module = load(&format!(".visible .entry k(.param .u64 p)\n{{\n{code}\nret;\n}}\n"));
    Code::new(body_of(&module.functions[0]))
        .pressure()
        .expect("not too large")
        .0
}

/// Estimates how many registers the first of `functions` needs.
fn estimate_of(module: &Module, functions: &[FuncId]) -> u32 {
    let needs = module.functions.iter().map(|function| function.body().map(Need::of));
    let needs: Vec<Option<Need>> = needs.collect();
    estimate(functions, |id| needs[id.0 as usize].as_ref())
}

/// Returns the largest number of registers that the directives allow.
fn limit_of(directives: &str) -> u32 {
    let module = load(&format!(".visible .entry k()\n{directives}\n{{\nret;\n}}\n"));
    limit(&module.functions[0].directives)
}

/// Returns code that loads `count` values before it stores the first, so that all are live at the same time.
fn simultaneous(class: &str, count: u32) -> String {
    let ty = format!("u{}", &class[1..]);
    let mut code = format!(".reg .{class} %v<{count}>;\n");
    for n in 0..count {
        let _ = writeln!(code, "ld.volatile.global.{ty} %v{n}, [slot];");
    }
    for n in 0..count {
        let _ = writeln!(code, "st.volatile.global.{ty} [slot], %v{n};");
    }
    code
}

#[test]
fn live_values_count_by_width() {
    assert_eq!(live(&simultaneous("b32", 20)), 20);
    assert_eq!(live(&simultaneous("b64", 20)), 40);
    assert_eq!(live(&simultaneous("b16", 20)), 20);
    assert_eq!(live(""), 0);
}

#[test]
fn values_that_are_used_immediately_share_a_register() {
    let mut code = String::from(".reg .b32 %v<100>;\n");
    for n in 0..100 {
        let _ = writeln!(
            code,
            "ld.volatile.global.u32 %v{n}, [slot];\nst.volatile.global.u32 [slot], %v{n};"
        );
    }
    assert_eq!(live(&code), 1);
}

#[test]
fn predicates_parameters_and_constants_do_not_count() {
    let code = "
        .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>;
        ld.param.u64 %d0, [p];
        cvta.to.global.u64 %d1, %d0;
        mov.u32 %r0, 7;
        mov.u32 %r1, %ctaid.x;
        mad.lo.u32 %r2, %r1, %r0, 3;
        setp.lt.u32 %p, %r2, 5;
        ld.global.u32 %r3, [%d1];
        @%p st.global.u32 [%d1+4], %r3;";
    assert_eq!(live(code), 1);
}

#[test]
fn copies_and_sums_with_constants_are_one_register() {
    let code = "
        .reg .b32 %r<2>; .reg .b64 %d<6>;
        ld.volatile.global.u64 %d0, [slot];
        add.s64 %d1, %d0, 16;
        add.s64 %d2, %d1, 16;
        mov.u64 %d3, %d2;
        ld.volatile.global.u32 %r0, [%d0];
        st.volatile.global.u32 [%d1], %r0;
        st.volatile.global.u32 [%d2], %r0;
        st.volatile.global.u32 [%d3], %r0;";
    assert_eq!(live(code), 3);
}

#[test]
fn addresses_of_shared_memory_have_32_bits() {
    let with = |space: &str| {
        live(&format!(
            ".reg .b32 %r<3>; .reg .b64 %d<5>;
            ld.volatile.global.u64 %d0, [slot];
            ld.volatile.global.u64 %d1, [slot];
            add.s64 %d2, %d0, %d1;
            mul.lo.s64 %d3, %d0, %d1;
            bar.sync 0;
            mov.u32 %r0, %tid.x;
            st.{space}.u32 [%d2], %r0;
            st.{space}.u32 [%d3], %r0;"
        ))
    };
    assert_eq!(with("global"), 6);
    assert_eq!(with("shared"), 3);
}

#[test]
fn values_live_around_a_loop() {
    // Eight sums, the counter, and the loaded value.
    let mut code = String::from(".reg .pred %p; .reg .b32 %s<8>; .reg .b32 %i; .reg .b32 %x;\n");
    for n in 0..8 {
        let _ = writeln!(code, "mov.u32 %s{n}, 0;");
    }
    code.push_str("mov.u32 %i, %tid.x;\nLoop:\nld.volatile.global.u32 %x, [slot];\n");
    for n in 0..8 {
        let _ = writeln!(code, "mad.lo.u32 %s{n}, %s{n}, %x, %i;");
    }
    code.push_str("sub.u32 %i, %i, 1;\nsetp.ne.u32 %p, %i, 0;\n@%p bra Loop;\n");
    for n in 0..8 {
        let _ = writeln!(code, "st.volatile.global.u32 [slot], %s{n};");
    }
    assert_eq!(live(&code), 10);
}

#[test]
fn guarded_writes_are_not_live_from_the_start() {
    let mut code = String::from(".reg .pred %p; .reg .b32 %t; .reg .b32 %v<20>;\n");
    code.push_str("mov.u32 %t, %tid.x;\nsetp.lt.u32 %p, %t, 5;\n");
    for n in 0..20 {
        let _ = writeln!(
            code,
            "@%p ld.volatile.global.u32 %v{n}, [slot];\n@!%p mov.u32 %v{n}, 1;\nst.volatile.global.u32 [slot], %v{n};"
        );
    }
    assert_eq!(live(&code), 1);
}

#[test]
fn directives_limit_registers() {
    // The limits of driver 580 and ptxas 13.0, for a kernel that needs 254 registers without them.
    for (directives, expected) in [
        ("", 255),
        (".minnctapersm 2", 255),
        (".maxntid 1", 255),
        (".maxntid 256", 255),
        (".maxntid 640", 96),
        (".maxntid 672", 80),
        (".maxntid 768", 80),
        (".maxntid 800", 72),
        (".maxntid 928", 64),
        (".maxntid 1024", 64),
        (".maxntid 2048", 32),
        (".maxntid 32, 8, 4", 64),
        (".reqntid 1024", 64),
        (".maxntid 384\n.minnctapersm 1", 168),
        (".maxntid 416\n.minnctapersm 1", 128),
        (".maxntid 96\n.minnctapersm 5", 128),
        (".maxntid 128\n.minnctapersm 3", 168),
        (".maxntid 128\n.minnctapersm 5", 96),
        (".maxntid 128\n.minnctapersm 16", 32),
        (".maxntid 128\n.minnctapersm 17", 255),
        (".maxntid 608\n.minnctapersm 2", 48),
        (".maxntid 1024\n.minnctapersm 2", 32),
        (".maxntid 1024\n.minnctapersm 3", 64),
        (".maxnreg 1", 24),
        (".maxnreg 32", 32),
        (".maxnreg 100", 100),
        (".maxnreg 300", 255),
        (".maxntid 1024\n.maxnreg 100", 100),
    ] {
        assert_eq!(limit_of(directives), expected, "{directives}");
    }
    let most = Some([u32::MAX; 3]);
    let huge = Directives {
        maxntid: most,
        minnctapersm: Some(u32::MAX),
        ..Directives::default()
    };
    assert_eq!(limit(&huge), 32);
}

#[test]
fn registers_of_callees_count() {
    let inside = simultaneous("b32", 60);
    let module = load(&format!(
        ".func f()\n{{\n{inside}ret;\n}}\n.func again()\n{{\ncall.uni again, ();\nret;\n}}\n\
         .visible .entry k()\n{{\n.reg .b32 %a;\nld.volatile.global.u32 %a, [slot];\n\
         call.uni f, ();\ncall.uni again, ();\nst.volatile.global.u32 [slot], %a;\nret;\n}}\n"
    ));
    let all: Vec<FuncId> = (0..3).rev().map(FuncId).collect();
    let needed = estimate_of(&module, &all);
    assert!((60..80).contains(&needed), "{needed}");
    let alone = estimate_of(&module, &all[..1]);
    assert!((24..40).contains(&alone), "{alone}");
}

#[test]
fn huge_functions_are_estimated_quickly() {
    // Each block uses its own register and the register of a distant block, so the sets of live registers have too many
    // words.
    let blocks = 6000;
    let mut code = format!(".reg .pred %p; .reg .b32 %v<{blocks}>; .reg .b32 %t;\n");
    code.push_str("mov.u32 %t, %tid.x;\nsetp.lt.u32 %p, %t, 5;\n");
    for n in 0..blocks {
        let far = (n * 7 + 3000) % blocks;
        let _ = writeln!(
            code,
            "L{n}:\nld.volatile.global.u32 %v{n}, [slot];\nst.volatile.global.u32 [slot], %v{far};\n@%p bra L{far};"
        );
    }
    let module = load(&format!(".visible .entry k()\n{{\n{code}\nret;\n}}\n"));
    let body = body_of(&module.functions[0]);
    let started = Instant::now();
    assert!(Code::new(body).pressure().is_none());
    let needed = estimate_of(&module, &[FuncId(0)]);
    assert!(needed <= MOST_IF_HUGE + 12, "{needed}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn loads_are_moved_down_to_their_use() {
    let sum = |between: &str| {
        let mut code = String::from(".reg .b32 %v<100>; .reg .b32 %sum;\nmov.u32 %sum, %tid.x;\n");
        for n in 0..100 {
            let _ = writeln!(code, "ld.global.u32 %v{n}, [slot+{}];", n % 2 * 4);
        }
        code.push_str(between);
        for n in 0..100 {
            let _ = writeln!(code, "add.u32 %sum, %sum, %v{n};");
        }
        live(&format!("{code}st.global.u32 [slot], %sum;"))
    };
    assert_eq!(sum(""), 2);
    assert_eq!(sum("bar.sync 0;\n"), 101);
}
