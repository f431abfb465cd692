//! Tests that no input makes the loader panic, hang, or run out of memory, and that its results do not depend on the
//! number of threads.

use super::referee::LIMITS;
use std::path::PathBuf;

/// A small generator of pseudo-random numbers, which are the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Loads a text. If the text is accepted, lowers it and returns true.
fn run(text: &[u8]) -> bool {
    match ptx::load(text, &LIMITS) {
        Ok(loaded) => {
            for function in &loaded.module.functions {
                if let Some(body) = function.body() {
                    assert!(body.insts.iter().all(|inst| inst.line > 0));
                }
            }
            true
        }
        Err(failure) => {
            assert!(!failure.log.is_empty());
            false
        }
    }
}

/// Returns the paths of this repository's PTX modules.
fn kernels() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kernels/generated");
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    assert!(paths.len() > 10, "only {} files", paths.len());
    paths
}

/// Returns the PTX modules of this repository, followed by the texts of `verdicts.txt`, each as a module and as the
/// body of a kernel; and the number of modules of this repository.
fn seeds() -> (Vec<Vec<u8>>, usize) {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for path in kernels() {
        seeds.push(std::fs::read(path).expect("it can be read"));
    }
    seeds.sort();
    let modules = seeds.len();
    for block in include_str!("verdicts.txt").split("#### ") {
        let text: Vec<&str> = block.lines().skip(1).filter(|line| !line.starts_with("= ")).collect();
        let head = ".version 9.0\n.target sm_90\n.address_size 64\n";
        seeds.push(format!("{head}{}", text.join("\n")).into_bytes());
        seeds.push(
            format!(
                "{head}.entry k(){{ .reg .b32 u, b; .reg .b64 l;\n{}\n}}",
                text.join("\n")
            )
            .into_bytes(),
        );
    }
    (seeds, modules)
}

#[test]
fn every_kernel_of_this_repository_loads() {
    for path in kernels() {
        let text = std::fs::read(&path).expect("it can be read");
        let loaded = ptx::load(&text, &LIMITS);
        let module = loaded.unwrap_or_else(|failure| panic!("{path:?}: {failure}")).module;
        assert!(module.functions.iter().any(|f| f.code.is_some()));
    }
}

#[test]
fn mutations() {
    let (seeds, modules) = seeds();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let pieces: [&[u8]; 24] = [
        b"{",
        b"}",
        b"(",
        b")",
        b"[",
        b"]",
        b";",
        b",",
        b"+",
        b"-",
        b"!",
        b"|",
        b"<",
        b".reg .b32 %r<",
        b"%r1",
        b"0x",
        b"0f",
        b"99999999999999999999",
        b".v4",
        b"\n",
        b"\"",
        b"/*",
        b"_",
        b".param .b8 x[",
    ];
    let mut accepted = 0;
    for round in 0..20000 {
        let some = if random.below(2) == 0 { modules } else { seeds.len() };
        let mut text = seeds[random.below(some)].clone();
        // Cuts most large modules, so that the test is fast.
        if text.len() > 6000 && random.below(4) > 0 {
            let cut = 200 + random.below(5000);
            text.truncate(cut);
        }
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len());
            match random.below(6) {
                0 => text[at] = random.next() as u8 & 0x7f,
                1 => text.truncate(at),
                2 => {
                    let piece = pieces[random.below(pieces.len())];
                    text.splice(at..at, piece.iter().copied());
                }
                3 => {
                    let end = (at + random.below(20)).min(text.len());
                    text.drain(at..end);
                }
                4 => {
                    let end = (at + random.below(200)).min(text.len());
                    let copy = text[at..end].to_vec();
                    let to = random.below(text.len());
                    text.splice(to..to, copy);
                }
                _ => text[at] = text[random.below(text.len())],
            }
            if text.is_empty() {
                break;
            }
        }
        accepted += usize::from(run(&text));
        assert!(round < 1000 || accepted > 0, "no mutated module loads");
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(42);
    for _ in 0..2000 {
        let mut text = b".version 9.0\n.target sm_90\n".to_vec();
        let length = random.below(200);
        text.extend((0..length).map(|_| random.next() as u8));
        run(&text);
    }
}

#[test]
fn depth_and_size_are_limited() {
    let head = ".version 9.0\n.target sm_90\n";
    let refused = |text: String| {
        let failure = ptx::load(format!("{head}{text}").as_bytes(), &LIMITS).expect_err("refused");
        failure.log
    };
    let deep = |open: &str, close: &str, n: usize| open.repeat(n) + "1" + &close.repeat(n);
    assert!(refused(format!(".global .u32 a = {};", deep("(", ")", 100_000))).contains("nested too deeply"));
    assert!(refused(format!(".global .u32 a = {};", deep("-", "", 100_000))).contains("nested too deeply"));
    assert!(refused(format!(".global .u32 a = {};", deep("1?", ":1", 100_000))).contains("nested too deeply"));
    assert!(refused(format!(".global .u32 a[1] = {};", deep("{", "}", 100_000))).contains("nested too deeply"));
    assert!(refused(".entry k() {".to_owned() + &"{".repeat(100_000)).contains("nested too deeply"));
    assert!(refused(format!(".entry k() {{ tex {}", "[a,".repeat(100_000))).contains("Parsing error near '['"));
    assert!(refused(".entry k() { .reg .b32 %r<4000000000>; }".to_owned()).contains("Too many registers"));
    assert!(refused(".entry k() { .local .b8 x[9223372036854775807]; }".to_owned()).contains("too large"));
    assert!(refused(".global .b64 x[9223372036854775807];".to_owned()).contains("too large"));
    assert!(refused(".global .b64 x[9223372036854775807] = {1};".to_owned()).contains("too large"));
    let sparse = |bytes: u64| format!(".global .b8 a[2][{bytes}] = {{{{1}},{{1}}}};");
    assert!(refused(sparse(1 << 40)).contains("too many bytes"));
    assert!(refused(sparse(1 << 61)).contains("too many bytes"));
    assert!(refused(sparse(150 << 20).replace(" a[", " b[") + &sparse(150 << 20)).contains("too many bytes"));
    assert!(run(format!("{head}{}", sparse(1 << 20)).as_bytes()));
    // A long chain is not deeply nested.
    assert!(run(
        format!("{head}.global .u32 a = {}1;", "1+".repeat(100_000)).as_bytes()
    ));
    assert!(run(
        format!("{head}.entry k() {{ {} }}", "{ } ".repeat(100_000)).as_bytes()
    ));
}

/// Checks that a text is refused, and returns the number of lines of its log.
fn errors(text: &str) -> usize {
    let failure = ptx::load(text.as_bytes(), &LIMITS).expect_err("refused");
    // A line consists of a message of bounded length and a name from the text.
    assert!(failure.log.len() < 300 * failure.log.lines().count() + 4 * text.len());
    failure.log.lines().count()
}

#[test]
fn logs_are_linear_in_the_number_of_errors() {
    let head = ".version 9.0\n.target sm_90\n.entry k() {\n";
    let undefined = |n: usize| (0..n).map(|i| format!("mov.u32 %r{i}, 0;\n")).collect::<String>();
    let few = errors(&format!("{head}{}}}", undefined(1000)));
    let many = errors(&format!("{head}{}}}", undefined(100_000)));
    assert!(many <= 100 * few, "{few} lines for 1000 errors, {many} for 100000");
    let long = "n".repeat(1 << 16);
    errors(&format!("{head}{}}}", format!("bra {long};\n").repeat(100)));
}

#[test]
fn products_of_a_short_text_are_limited() {
    let head = ".version 9.0\n.target sm_90\n";
    let load = |text: String| match ptx::load(text.as_bytes(), &LIMITS) {
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.log),
    };
    let labels: Vec<String> = (0..5000).map(|i| format!("L{i}")).collect();
    let table = format!("T: .branchtargets {};", labels.join(","));
    let jumps = |n: usize| {
        let jumps = "brx.idx r, T;\n".repeat(n);
        let text = format!(
            "{head}.entry k() {{ .reg .b32 r; mov.u32 r, 0; {table} {jumps} {}: ret; }}",
            labels.join(": ")
        );
        load(text)
    };
    assert_eq!(jumps(10), Ok(()));
    assert!(jumps(5000).expect_err("refused").contains("Too many branch targets"));
    let names: Vec<String> = (0..5000).map(|i| format!("f{i}")).collect();
    let callees: String = names.iter().map(|name| format!(".func {name}() {{ret;}}\n")).collect();
    let calls = |n: usize| {
        let table = format!("T: .calltargets {};", names.join(","));
        let calls = "call r, T;\n".repeat(n);
        let text = format!("{head}{callees}.entry k() {{ .reg .b64 r; mov.u64 r, f0; {table} {calls} ret; }}");
        load(text)
    };
    assert_eq!(calls(10), Ok(()));
    assert!(calls(5000).expect_err("refused").contains("Too many call targets"));
    // The limit for a function depends on its length, so that many short functions have few targets in total.
    assert!(jumps(200).expect_err("refused").contains("Too many branch targets"));
    assert!(calls(200).expect_err("refused").contains("Too many call targets"));
    let statics = |name_bytes: usize, count: usize| {
        let name = "n".repeat(name_bytes);
        let variables = (0..count).map(|i| format!(".global .b8 v{i};\n"));
        load(format!(
            "{head}.entry {name}() {{ {} ret; }}",
            variables.collect::<String>()
        ))
    };
    assert_eq!(statics(1000, 1000), Ok(()));
    assert!(
        statics(1 << 16, 4096)
            .expect_err("refused")
            .contains("Too many variables of ranges or functions")
    );
    let functions = |n: usize| {
        let all = (0..n).map(|i| format!(".func f{i}() {{ .reg .b32 %r<999999>; ret; }}\n"));
        let text = format!("{head}{}", all.collect::<String>());
        load(text)
    };
    assert_eq!(functions(4), Ok(()));
    assert!(
        functions(100)
            .expect_err("refused")
            .contains("Too many registers in one module")
    );
}

/// Loads large texts of kinds that once took quadratic time to load; the test would then take many minutes. Each error
/// is reported, so that loading is not cut short.
#[test]
fn large_texts_and_their_errors() {
    let head = ".version 9.0\n.target sm_90\n.entry k() {";
    let errors = |text: String| {
        let failure = ptx::load(text.as_bytes(), &LIMITS).expect_err("refused");
        let all = failure.diagnostics.iter();
        all.filter(|diagnostic| diagnostic.severity == ptx::Severity::Error)
            .count()
    };
    // 100,000 instructions in one line with undeclared operands, and as many jumps to an undefined label.
    let undeclared = format!("{head}{}}}", "add.s32 x,y,z;".repeat(100_000));
    assert_eq!(errors(undeclared), 100_000);
    let labels: String = (0..100_000).map(|i| format!("L{i}:bra x;\n")).collect();
    assert_eq!(errors(format!("{head}{labels}}}")), 100_000);
    let declarations: String = (0..50_000)
        .map(|i| format!(".reg .b32 a{i}; .reg .b32 b{i}x<9>;\n"))
        .collect();
    assert!(run(format!("{head}{declarations}}}").as_bytes()));
    // Ranges without registers do not clash.
    let empty = ".reg .b32 %r<0>;".repeat(100_000);
    assert!(run(format!("{head}{empty}}}").as_bytes()));
    let functions: String = (0..20_000).map(|i| format!(".entry f{i}() {{ret;}}\n")).collect();
    assert!(run(format!(".version 9.0\n.target sm_90\n{functions}").as_bytes()));
    // Ranges at module scope whose names the module mentions.
    let mentions: String = (0..20_000).map(|i| format!("a{i} ")).collect();
    let ranges = ".extern .global .b32 a<20000>;".repeat(20_000);
    let text = format!(".version 9.0\n.target sm_90\n{ranges}\n// {mentions}\n");
    let failure = ptx::load(text.as_bytes(), &LIMITS).expect_err("refused");
    assert!(failure.log.contains("Too many variables of ranges"));
    // A range in a function, whose variables need no mention.
    let text = ".version 9.0\n.target sm_90\n.func f() { .shared .b8 a<4000000000>; ret; }";
    let failure = ptx::load(format!("{text}{}", " ".repeat(1_000_000)).as_bytes(), &LIMITS).expect_err("refused");
    assert!(failure.log.contains("Too many variables of ranges"));
    // Many variables of a function with a long name.
    let (name, variables) = ("f".repeat(500_000), ".shared .b8 a;".repeat(25_000));
    let text = format!(".version 9.0\n.target sm_90\n.func {name}() {{ {variables} ret; }}");
    let failure = ptx::load(text.as_bytes(), &LIMITS).expect_err("refused");
    assert!(failure.log.contains("Too many variables of ranges"));
    // Kernels that reach many functions, in a module with much shared memory.
    let chain: String = (1..10_000)
        .map(|i| format!(".func f{i}() {{call f{};ret;}}\n", i - 1))
        .collect();
    let kernels: String = (0..10_000)
        .map(|i| format!(".entry k{i}() {{call f9999;ret;}}\n"))
        .collect();
    let shared = ".shared .b8 s[200000]; .shared .b8 t[200000]; .func f0() {ret;}";
    assert!(run(
        format!(".version 9.0\n.target sm_90\n{shared}{chain}{kernels}").as_bytes()
    ));
    // Opcodes with many modifiers.
    for root in ["ld", "mma", "createpolicy"] {
        let opcode = format!("{root}{}", ".sat".repeat(100_000));
        assert_eq!(errors(format!("{head} {opcode} a, b; }}")), 1);
    }
    // A long name in many errors.
    let long = "n".repeat(100_000);
    let uses = format!("add.s32 {long},1,1;").repeat(20);
    assert_eq!(errors(format!("{head} .reg .f32 {long}; {uses}}}")), 20);
    // A long name of a parameter in errors of many calls.
    let calls = "call f, (%r);".repeat(300_000);
    let text = format!(
        ".version 9.0\n.target sm_90\n.func f(.param .b8 {}[4]) {{ret;}}\n.entry k() {{ .reg .f32 %r; {calls}}}",
        "n".repeat(5_000_000)
    );
    let failure = ptx::load(text.as_bytes(), &LIMITS).expect_err("refused");
    assert!(failure.log.contains("does not match formal parameter 'nnn"));
    // Functions with long names and many parameters that differ from those of a declaration or an alias.
    let long = "n".repeat(1_000_000);
    let parameters = |ty: &str| vec![format!(".reg {ty} _x"); 25_000].join(",");
    let (bits, floats) = (parameters(".b32"), parameters(".f32"));
    for (second, end) in [
        (long.clone(), String::new()),
        (format!("{long}b"), format!(".alias {long}, {long}b;")),
    ] {
        let functions = format!(".func {long}({bits}); .func {second}({floats});");
        assert_eq!(errors(format!(".version 9.0\n.target sm_90\n{functions}{end}")), 25_000);
    }
    // Many targets that are one mention of a long name with leading zeros.
    let padded = format!("{}1", "0".repeat(1_000_000));
    let jumps = "brx.idx r,T;".repeat(90_000);
    assert_eq!(
        errors(format!("{head} .reg .b32 r; T: .branchtargets L{padded}; {jumps}}}")),
        90_000
    );
    // Ranges of many names among many single names.
    let declarations: String = (0..100_000)
        .map(|i| format!(".reg .b32 a{i}; .local .b8 b{i}x<9000>;\n"))
        .collect();
    assert!(run(format!("{head}{declarations}}}").as_bytes()));
    // An argument with many dimensions.
    let dimensions = "[1]".repeat(100_000);
    let calls = "call f,(x);".repeat(100_000);
    let function = ".func f(.param .b8 a[1]) {ret;}";
    assert!(run(format!(
        ".version 9.0\n.target sm_90\n{function}.entry k() {{ .param .b8 x{dimensions}; {calls}}}"
    )
    .as_bytes()));
    // Functions with many registers, which are too many in total.
    let functions: String = (0..50_000)
        .map(|i| format!(".func f{i}() {{ .reg .b32 %r<4000000>; }}"))
        .collect();
    assert_eq!(errors(format!(".version 9.0\n.target sm_90\n{functions}")), 1);
    // Accesses to one of many parameters.
    let parameters: Vec<String> = (0..50_000).map(|i| format!(".param .texref t{i}")).collect();
    let accesses = "tex.1d.v4.u32.s32 {r,r,r,r},[t49999,{r}];".repeat(50_000);
    let text = format!(
        ".version 9.0\n.target sm_90\n.entry k({}) {{ .reg .b32 r; {accesses}}}",
        parameters.join(",")
    );
    // The parameters take too many bytes.
    assert_eq!(errors(text), 1);
}

/// Returns a module with this number of functions, each with 1,000 `shfl` instructions, which cause two warnings each.
/// A function for whose number `is_wrong` returns true also has 100 errors.
fn shuffles(functions: usize, is_wrong: impl Fn(usize) -> bool) -> String {
    let function = |number: usize| {
        let errors = if is_wrong(number) { "neg.s32 %r, %x;\n" } else { "" }.repeat(100);
        let shuffles = "shfl.up.b32 %r, %r, 1, 0;\n".repeat(1000);
        format!(".entry k{number}() {{ .reg .b32 %r; mov.b32 %r, 0;\n{shuffles}{errors}ret; }}\n")
    };
    let all: String = (0..functions).map(function).collect();
    format!(".version 6.0\n.target sm_60\n{all}")
}

#[test]
fn warnings_are_bounded_and_hide_no_error() {
    let info = |functions: usize| {
        let text = shuffles(functions, |_| false);
        ptx::load(text.as_bytes(), &LIMITS).expect("accepted").info_log
    };
    assert_eq!(info(2).lines().count(), 4000);
    let log = info(60);
    assert_eq!(log.lines().count(), 100_001);
    assert!(log.ends_with("ptxas warning : 20000 more messages left out"));
    // The errors follow more warnings than are kept.
    let wrong = shuffles(60, |number| number == 59);
    for threads in [1, 4, 100] {
        let limits = ptx::Limits { threads, ..LIMITS };
        let failure = ptx::load(wrong.as_bytes(), &limits).expect_err("refused");
        assert_eq!(
            failure.log.matches("Unknown symbol '%x'").count(),
            100,
            "{threads} threads"
        );
        assert!(failure.log.ends_with("Ptx assembly aborted due to errors"));
        assert!(!failure.log.contains("left out"), "{threads} threads");
        let warnings = failure.diagnostics.iter();
        let warnings = warnings.filter(|diagnostic| diagnostic.severity == ptx::Severity::Warning);
        assert_eq!(warnings.count(), 100_000, "{threads} threads");
    }
}

/// Loads a module with more errors than are kept.
#[test]
fn many_errors_do_not_depend_on_threads() {
    // Each pair of instructions has two errors and a fatal one.
    let errors = "neg.s32 %r, %x;\nneg.s32 _, %r;\n".repeat(1000);
    let function = |number: usize| format!(".entry k{number}() {{ .reg .b32 %r;\n{errors}ret; }}\n");
    let all: String = (0..150).map(function).collect();
    let text = format!(".version 9.0\n.target sm_90\n{all}");
    assert!(text.len() > 1 << 20);
    let log = |threads: usize| {
        let limits = ptx::Limits { threads, ..LIMITS };
        ptx::load(text.as_bytes(), &limits).expect_err("refused").log
    };
    let serial = log(1);
    assert_eq!(serial.matches("Unknown symbol '%x'").count(), 50_000);
    assert_eq!(serial.matches("Result discard mode is not allowed").count(), 100_000);
    assert!(serial.contains("ptxas error   : 250000 more messages left out"));
    for threads in [2, 7, 100] {
        assert!(log(threads) == serial, "{threads} threads");
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let kernel = |number: usize, wrong: bool| {
        let operand = if wrong { "%x" } else { "%r" };
        let filler = "add.s32 %r, %r, 1;\n".repeat(100);
        format!(".entry k{number}() {{ .reg .b32 %r; mov.b32 %r, {number};\n{filler}neg.s32 %r, {operand}; ret; }}\n")
    };
    let text = |wrong: &[usize]| {
        let kernels = (0..600).map(|number| kernel(number, wrong.contains(&number)));
        format!(".version 9.0\n.target sm_90\n{}", kernels.collect::<String>())
    };
    let load = |text: &str, threads: usize| ptx::load(text.as_bytes(), &ptx::Limits { threads, ..LIMITS });
    let right = text(&[]);
    assert!(right.len() > 1 << 20);
    let wrong = text(&[0, 7, 199, 200, 201, 333, 598, 599]);
    let serial = load(&wrong, 1).expect_err("refused");
    for threads in [2, 3, 8, 100] {
        assert_eq!(
            load(&wrong, threads).expect_err("refused").log,
            serial.log,
            "{threads} threads"
        );
        let module = load(&right, threads).expect("accepted").module;
        assert_eq!(module.functions.len(), 600);
        let last = module.functions[599].body().expect("a kernel has a body");
        assert_eq!(last.insts.len(), 103);
    }
    assert_eq!(serial.log.matches("Unknown symbol '%x'").count(), 8);
}

/// Loads a module with these parameters of an entry function, and returns the log of the failure.
fn parameters(list: &str) -> String {
    let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n.entry k({list}) {{ ret; }}\n");
    let failure = ptx::load(text.as_bytes(), &LIMITS).expect_err(list);
    failure.log
}

#[test]
fn sums_of_parameters_do_not_overflow() {
    const ALIGN: &str = "4611686018427387904"; // 2^62
    const MOST: &str = "9223372036854775807";
    for list in [
        format!(".param .align {ALIGN} .b32 a, ").repeat(5) + ".param .b32 z",
        format!(".param .b8 a[{MOST}], .param .b8 b[{MOST}], .param .b8 c[{MOST}]"),
        format!(".param .b8 a[{MOST}], .param .b8 b[{MOST}], .param .b64 c"),
    ] {
        let log = parameters(&list);
        assert!(log.contains("uses too much parameter space"), "{log}");
    }
    let log = parameters(".param .align 9223372036854775808 .b32 a");
    assert!(log.contains("Alignment must be a power of two"), "{log}");
}

#[test]
fn variables_of_a_range_exist_if_they_are_mentioned() {
    let head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global .b32 a<4000000000>;\n";
    let load = |rest: &str| ptx::load(format!("{head}{rest}").as_bytes(), &LIMITS);
    let names = |rest: &str| -> Vec<String> {
        let loaded = load(rest).expect(rest);
        loaded.module.variables.iter().map(|v| v.name.clone()).collect()
    };
    assert!(names(".entry k() { ret; }").is_empty());
    let mentioned = ".entry k() { .reg .b32 %r; ld.global.b32 %r, [a3999999999]; st.global.b32 [a70000], %r; ret; }";
    assert_eq!(names(mentioned), ["a70000", "a3999999999"]);
    let failure = load(".entry k() { .reg .b32 %r; ld.global.b32 %r, [a4000000000]; ret; }").expect_err("beyond");
    assert!(failure.log.contains("Unknown symbol 'a4000000000'"), "{}", failure.log);
}
