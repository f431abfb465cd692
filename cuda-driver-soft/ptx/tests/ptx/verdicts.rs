//! Tests of the loader's verdicts on the modules and snippets in `verdicts.txt`, and of its logs.
//!
//! A block of that file is a line `#### kind`, the text, and lines that start with `= `: `= ok`, or the messages as
//! `= line: message`. Lines are counted from the text's first line; 0 is the module as a whole. `= ptxas accepts` or
//! `= ptxas refuses` marks an intended difference. Only empty lines may follow the lines that start with `= `.
//! [`module()`] describes the kinds.

use super::referee::{self, Verdict};

/// The registers of the snippets.
const REGISTERS: &str = "
.reg .pred p, q;
.reg .b16 h;
.reg .b32 b, b1;
.reg .u32 u, u1;
.reg .s32 s, s1;
.reg .b64 l, l1;
.reg .u64 ul;
.reg .f32 f, f1;
.reg .f64 d;
";

/// The variables and the function of blocks of kind `variables`.
const VARIABLES: &str = "
.global .align 8 .u32 g[4];
.shared .u32 sh;
.const .u32 c = 3;
.func fn() {ret;}
";

/// The functions of blocks of kind `calls`.
const FUNCTIONS: &str = "
.func (.reg .u32 r) fr(.reg .u32 a) {mov.u32 r,a; ret;}
.func (.param .b32 r) fp(.param .b32 a, .param .align 8 .b8 v[16]) {ret;}
.func none() {ret;}
";

/// A block of `verdicts.txt`.
struct Block {
    /// Number of the line with the kind.
    line: usize,
    kind: String,
    text: String,
    /// The lines that start with `= `, without that start.
    verdict: Vec<String>,
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (line, text) in include_str!("verdicts.txt").lines().enumerate() {
        if let Some(kind) = text.strip_prefix("#### ") {
            let kind = kind.to_owned();
            blocks.push(Block {
                line: line + 1,
                kind,
                text: String::new(),
                verdict: Vec::new(),
            });
            continue;
        }
        let Some(block) = blocks.last_mut() else {
            continue;
        };
        match text.strip_prefix("= ") {
            Some(verdict) => block.verdict.push(verdict.to_owned()),
            // Carriage returns are invisible, so the file writes them as an escape.
            None if block.verdict.is_empty() => block.text += &format!("{}\n", text.replace("\\r", "\r")),
            None => assert_eq!(text, "", "line {}: text after the verdict", line + 1),
        }
    }
    blocks
}

/// Returns the module of a block, and the number of lines before its text.
///
/// The text of a `module` is a module. It gets a header, unless it starts with `.version`, or contains `.version` and
/// `.target` anywhere. The text of the other kinds is the start of the body of a kernel with [`REGISTERS`], which gets
/// a header and, at the end, `ret;`. Kernels of kind `params` have parameters. [`VARIABLES`] precede the kernel for
/// `variables`, and [`FUNCTIONS`] for `calls`.
fn module(block: &Block) -> (String, u32) {
    let head = ".version 9.0\n.target sm_90\n.address_size 64\n";
    let (before, after) = match block.kind.as_str() {
        "module"
            if block.text.starts_with(".version")
                || (block.text.contains(".version") && block.text.contains(".target")) =>
        {
            return (block.text.clone(), 0);
        }
        "module" => (String::new(), ""),
        "body" => (format!(".entry k() {{{REGISTERS}"), "ret;\n}\n"),
        "params" => {
            let params = ".param .u32 a, .param .align 8 .b8 v[8]";
            (format!(".entry k({params}) {{{REGISTERS}"), "ret;\n}\n")
        }
        "variables" => (format!("{VARIABLES}.entry k() {{{REGISTERS}"), "ret;\n}\n"),
        "calls" => (format!("{FUNCTIONS}.entry k() {{{REGISTERS}"), "ret;\n}\n"),
        kind => panic!("line {}: unknown kind of block '{kind}'", block.line),
    };
    let before = format!("{head}{before}");
    let lines = before.matches('\n').count() as u32;
    (format!("{before}{}{after}", block.text), lines)
}

/// Formats a verdict as in the file.
fn written(verdict: &Verdict, before: u32) -> Vec<String> {
    if verdict.is_empty() {
        return vec!["ok".to_owned()];
    }
    let number = |line: u32| {
        if line == 0 {
            0
        } else {
            i64::from(line) - i64::from(before)
        }
    };
    let mut all = Vec::new();
    for (line, messages) in verdict {
        all.extend(messages.iter().map(|message| format!("{}: {message}", number(*line))));
    }
    all
}

#[test]
fn stored() {
    let blocks = blocks();
    assert!(blocks.len() > 500, "only {} blocks", blocks.len());
    let ptxas = referee::ptxas("verdicts");
    let mut wrong = Vec::new();
    for block in &blocks {
        let (text, before) = module(block);
        let lines = block.verdict.iter().cloned();
        let (marks, mut expected): (Vec<String>, Vec<String>) = lines.partition(|line| line.starts_with("ptxas "));
        expected.sort();
        // The mark names the verdict of ptxas, which is the opposite of the loader's.
        let accepted = expected == ["ok"];
        let opposite = if accepted { "ptxas refuses" } else { "ptxas accepts" };
        assert!(
            marks.len() <= 1 && marks.iter().all(|mark| mark == opposite),
            "line {}: {marks:?}, expected `= {opposite}` or no mark",
            block.line
        );
        let ours = referee::ours(&text);
        let mut found = written(&ours, before);
        found.sort();
        if found != expected {
            wrong.push(format!(
                "line {}: {}expected {expected:?}\n   found {found:?}",
                block.line, block.text
            ));
        }
        if let Some(ptxas) = &ptxas {
            let theirs = referee::theirs(ptxas, "verdicts", &text);
            let differs = !marks.is_empty();
            if (theirs.is_empty() == ours.is_empty()) == differs {
                wrong.push(format!("line {}: {}ptxas says {theirs:?}", block.line, block.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{} blocks:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn columns_count_from_one() {
    let text = b".version 9.0\n.target sm_90\n.entry k() {\n  add.s32 %r1, 2, 3;\n}\n";
    let failure = ptx::load(text, &referee::LIMITS).expect_err("%r1 is undeclared");
    let positions: Vec<String> = failure.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        positions,
        [
            "4:3: error: Arguments mismatch for instruction 'add'",
            "4:11: error: Unknown symbol '%r1'",
        ]
    );
}

#[test]
fn the_log_matches_a_drivers() {
    let text = b".version 9.0\n.target sm_90\n.entry k() {\nbra away;\n}\n";
    let failure = ptx::load(text, &referee::LIMITS).expect_err("the label is undefined");
    assert_eq!(
        failure.log,
        "ptxas application ptx input, line 4; error   : Unknown symbol 'away'\n\
         ptxas fatal   : Ptx assembly aborted due to errors"
    );
}

#[test]
fn logs_of_a_driver() {
    // The logs of driver 580 on an H200, except for the PTX version that it states as its current one.
    let last = "\nptxas fatal   : Ptx assembly aborted due to errors";
    let line = |text: &str| format!("ptxas application ptx input, line {text}");
    let head = ".version 6.4\n.target sm_52\n.address_size 64\n";
    let body =
        |text: &str| format!("{head}.entry k() {{ .reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n{text}\n}}\n");
    for (text, log) in [
        (
            ".version 99.0\n.target sm_52\n".to_owned(),
            line("1; fatal   : Unsupported .version 99.0; current version is '9.5'"),
        ),
        (
            ".version 9.0\n.target sm_100\n".to_owned(),
            "ptxas fatal   : SM version specified by .target is higher than default SM version assumed".to_owned(),
        ),
        (
            ".version 6.4\n.target banana\n".to_owned(),
            line("2; fatal   : Target architecture not defined at start of file 'application ptx input'") + last,
        ),
        (
            ".version 6.4\n.address_size 64\n".to_owned(),
            line("2; fatal   : Missing .target directive at start of file 'application ptx input'") + last,
        ),
        (
            format!("{head}// \u{e4}\n"),
            format!("ptxas fatal   : Unexpected non-ASCII character encountered on line 4{last}"),
        ),
        (
            format!("{head}.extern .func zz(); .extern .func yy();\n.entry k() {{ call zz; call yy; }}\n"),
            "ptxas fatal   : Unresolved extern function 'zz'".to_owned(),
        ),
        (
            body("add.sideways.u32 %r1, %r0, 1;"),
            line("5; error   : Unknown modifier '.sideways'") + last,
        ),
        (
            body("setp.banana.u32 %p1, %r1, %r2;"),
            line("5; error   : Unknown modifier '.banana'\n")
                + &line("5; error   : Comparison modifier required for instruction 'setp'")
                + last,
        ),
        (
            body("ld.param.u32 %r1, [nothing];"),
            line("5; error   : Illegal operand type to instruction 'ld'\n")
                + &line("5; error   : Unknown symbol 'nothing'")
                + last,
        ),
        (
            body("@%p9 ret;"),
            line("5; error   : Predicate expression expected\n") + &line("5; error   : Unknown symbol '%p9'") + last,
        ),
    ] {
        let failure = ptx::load(text.as_bytes(), &referee::LIMITS);
        assert_eq!(failure.expect_err("refused").log, log, "{text}");
    }
    let text = body("vote.ballot.b32 %r1, %p1;");
    let loaded = ptx::load(text.as_bytes(), &referee::LIMITS);
    let expected = line(
        "5; warning : Instruction 'vote' without '.sync' may produce unpredictable results on sm_70 and later architectures\n",
    ) + &line(
        "5; warning : Instruction 'vote' without '.sync' is deprecated since PTX ISA version 6.0 and will be discontinued in a future PTX ISA version",
    );
    assert_eq!(loaded.expect("accepted").info_log, expected);
    // The dynamic shared memory needs no definition.
    for missing in [".global .u32 missing", ".shared .u32 missing[2]"] {
        let text = format!("{head}.extern .shared .u32 dynamic[]; .extern {missing};\n.entry k() {{ ret; }}\n");
        let loaded = ptx::load(text.as_bytes(), &referee::LIMITS);
        assert_eq!(
            loaded.expect("accepted").info_log,
            "ptxas warning : Unresolved extern variable 'missing' in whole program compilation, \
             ignoring extern qualifier"
        );
    }
}

#[test]
fn kinds_of_failure() {
    use ptx::{FailureKind, Limits, load};
    let kind = |text: &[u8]| load(text, &referee::LIMITS).expect_err("refused").kind;
    for text in [
        &b""[..],
        b"hello",
        b"\0",
        b"\xef\xbb\xbf.version 9.0\n",
        b"\x7fELF",
        b".target sm_90\n",
    ] {
        assert_eq!(kind(text), FailureKind::NotPtx, "{text:?}");
    }
    assert_eq!(kind(b".version 9.6\n.target sm_90\n"), FailureKind::UnsupportedVersion);
    assert_eq!(kind(b".version 8.9\n.target sm_90\n"), FailureKind::UnsupportedVersion);
    assert_eq!(
        kind(b".version 9.0\n.target sm_90\n// \xc3\xa9\n"),
        FailureKind::Invalid
    );
    assert_eq!(kind(b".version 9.0\n.target sm_100\n"), FailureKind::Invalid);
    // The limits determine the verdict.
    let older = Limits {
        max_version: (9, 0),
        ..referee::LIMITS
    };
    let text = b".version 9.5\n.target sm_90\n";
    assert!(load(text, &referee::LIMITS).is_ok());
    assert_eq!(
        load(text, &older).expect_err("refused").kind,
        FailureKind::UnsupportedVersion
    );
    let newer = Limits {
        sm: 100,
        ..referee::LIMITS
    };
    assert!(load(b".version 9.0\n.target sm_100\n", &newer).is_ok());
    let wide = b".version 8.8 .target sm_100 .entry k() { .reg .b64 l;
        ld.global.L2::evict_first.v4.b64 {l, l, l, l}, [l]; st.L2::evict_last.v4.b64 [l], {l, l, l, l}; }";
    assert!(load(wide, &newer).is_ok());
    // Text after a NUL byte is ignored.
    assert!(load(b".version 9.0\n.target sm_90\n\0 garbage", &referee::LIMITS).is_ok());
    let calls = b".version 9.0\n.target sm_90\n.extern .func f();\n.entry k() {call f; ret;}\n";
    assert!(
        load(calls, &referee::LIMITS)
            .expect_err("refused")
            .log
            .contains("Unresolved extern function 'f'")
    );
    assert!(
        load(
            calls,
            &Limits {
                unresolved: true,
                ..referee::LIMITS
            }
        )
        .is_ok()
    );
}
