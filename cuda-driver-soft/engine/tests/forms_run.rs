//! Tests that every form of every instruction that the loader accepts can be run, or is listed here with the reason.
//!
//! The instructions are generated from the instruction table: each opcode with each choice of its modifiers, with the
//! operands of each row of its root. The accepted ones are put into kernels, which are decoded and run twice: by a
//! whole warp and by a partial one.

#[path = "../../ptx/tests/ptx/forms.rs"]
#[allow(dead_code)] // the loader's tests use the rest
mod forms;
#[path = "../../ptx/tests/ptx/referee.rs"]
#[allow(dead_code)]
mod referee;

use cuda_driver_soft_engine::{FaultKind, Launch, Options, Program, Progress};
use forms::{REGISTERS, TYPES, accepted_lines};
use ptx::Limits;
use std::collections::{BTreeMap, BTreeSet};

/// Limits that include the forms of sm_100.
const LIMITS: Limits = Limits {
    max_version: (9, 5),
    sm: 100,
    unresolved: false,
    threads: 1,
};

const HEAD: &str = ".version 9.5\n.target sm_100\n.address_size 64\n\
    .global .align 128 .b8 gv[1024]; .const .align 128 .b8 cv[1024]; .shared .align 128 .b8 sv[1024];\n";

const UNDOCUMENTED: &str = "accepted by ptxas, but not in the manual";
const DEPTHS: &str = "depth textures cannot be created";
const WINDOWS: &str = "shared, local and parameter memory have no 32-bit generic addresses";

/// Accepted forms that do not run: the start of the opcode, another part of the instruction, and the reason. Launching
/// a kernel with such a form fails with `CUDA_ERROR_NOT_SUPPORTED`.
#[rustfmt::skip] // a form is a line
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("addc.u16", "", UNDOCUMENTED),
    ("addc.s16", "", UNDOCUMENTED),
    ("addc.sat", "", UNDOCUMENTED),
    ("subc.u16", "", UNDOCUMENTED),
    ("subc.s16", "", UNDOCUMENTED),
    ("subc.sat", "", UNDOCUMENTED),
    ("madc.lo.u16", "", UNDOCUMENTED),
    ("madc.lo.s16", "", UNDOCUMENTED),
    ("madc.hi.u16", "", UNDOCUMENTED),
    ("madc.hi.s16", "", UNDOCUMENTED),
    ("madc.hi.sat", "", UNDOCUMENTED),
    ("testp.f32", "", UNDOCUMENTED),
    ("testp.f64", "", UNDOCUMENTED),
    ("cvta.local", ".u32", WINDOWS),
    ("cvta.param", ".u32", WINDOWS),
    ("cvta.shared", ".u32", WINDOWS),
    ("cvta.to.local", ".u32", WINDOWS),
    ("cvta.to.param", ".u32", WINDOWS),
    ("cvta.to.shared", ".u32", WINDOWS),
    ("isspacep", "pp,ru32;", WINDOWS),
    ("tex.1d", "],rf32", DEPTHS),
    ("tex.2d", "],rf32", DEPTHS),
    ("tex.a1d", "],rf32", DEPTHS),
    ("tex.a2d", "],rf32", DEPTHS),
    ("tex.cube", "],rf32", DEPTHS),
    ("tex.acube", "],rf32", DEPTHS),
    ("tex.base", "],rf32", DEPTHS),
    ("tld4", "],rf32", DEPTHS),
    ("tex.level", "],rf32,rf32", DEPTHS),
    ("tex.grad", "},rf32", DEPTHS),
    ("tex", ",{rs32},rf32", DEPTHS),
    ("tex", ",{rs32,rs32},rf32", DEPTHS),
];

/// Returns true if the instruction may end with this fault here.
fn may_fault(opcode: &str, kind: &FaultKind) -> bool {
    match kind {
        FaultKind::Trap => opcode == "trap",
        // The address is not a tensor map's.
        FaultKind::TensorCopy { .. } => opcode.contains(".bulk.tensor"),
        // The barrier's number and count are arbitrary.
        FaultKind::BarrierMisuse { .. } | FaultKind::BarrierConflict { .. } | FaultKind::Deadlock { .. } => {
            opcode.starts_with("bar")
        }
        // The size is arbitrary.
        FaultKind::StackOverflow { .. } => opcode == "alloca.u32",
        // The size is arbitrary, and both addresses of a copy are the same.
        FaultKind::IllegalAddress { .. }
        | FaultKind::LocalOutOfRange { .. }
        | FaultKind::SharedOutOfRange { .. }
        | FaultKind::Misaligned { .. }
        | FaultKind::BulkCopySize { .. }
            if opcode.contains(".async.bulk") || opcode.contains(".cp_fenceproxy") =>
        {
            true
        }
        // Both addresses are the same, so the source is an offset in shared memory instead of a global address.
        FaultKind::IllegalAddress { write: false, .. } if opcode.starts_with("cp.async") => true,
        // Without a space, the address is a generic one outside of shared memory.
        FaultKind::SharedOutOfRange { .. } | FaultKind::BarrierNotShared { .. } if opcode.contains("mbarrier") => true,
        // Missing lanes of a partial warp provide no row addresses.
        FaultKind::IllegalAddress { .. } | FaultKind::LocalOutOfRange { .. } if opcode.contains("matrix") => true,
        // The stride is arbitrary.
        FaultKind::IllegalAddress { .. } | FaultKind::SharedOutOfRange { .. } if opcode.starts_with("wmma") => true,
        // Parameters cannot be written.
        FaultKind::IllegalAddress { write: true, .. } => opcode.contains(".param"),
        _ => false,
    }
}

/// Returns operands for the table's notation, as text.
fn operand(spec: &str, types: &[&str], elements: usize) -> Vec<String> {
    // A vector with this number of elements.
    if let Some((spec, count)) = spec.split_once('^') {
        let one = operand(spec, types, 1).swap_remove(0);
        let count = count.parse().unwrap_or(1);
        let vector = format!("{{{}}}", vec![one; count].join(","));
        return match spec.starts_with("d|p") {
            true => vec![format!("{vector}|pp"), vector],
            false => vec![vector],
        };
    }
    let bare = spec.trim_end_matches(['*', '~', '?', '&']);
    let flags = &spec[bare.len()..];
    let (name, ty) = bare.split_once(':').unwrap_or((bare, ""));
    let ty = match ty {
        "" => types.last().copied().unwrap_or("b32"),
        "1" => types.first().copied().unwrap_or("b32"),
        "2" => types.get(1).copied().unwrap_or("b32"),
        "w" => match types.last().copied() {
            Some("u16" | "s16") => "b32",
            _ => "b64",
        },
        ty => ty,
    };
    let register = TYPES.iter().find(|(name, _)| *name == ty).map_or("rb32", |(_, r)| *r);
    let vector = match elements {
        n if flags.contains('*') && n > 1 => format!("{{{}}}", vec![register; n].join(",")),
        _ => register.into(),
    };
    match name {
        "[a]" | "[d]" => vec!["[at]".into()],
        "[t]" => vec!["[at,tensor]".into()],
        "policy" => vec!["rb64".into()],
        "p" | "!c" => vec!["pp".into()],
        "p|q" => vec!["pp".into(), "pp|pq".into()],
        "d|p" => vec![register.into(), format!("{register}|pp")],
        name if name.starts_with('#') => vec!["1".into(), "16".into(), "128".into()],
        // Registers may be wider than the type.
        _ if flags.contains('~') && elements == 1 => vec![vector, "rb64".into()],
        _ => vec![vector],
    }
}

/// Returns the operand lists of a row of the table, as text, for an opcode with these modifiers.
fn operand_lists(syntax: &str, modifiers: &[&str]) -> Vec<String> {
    let types: Vec<&str> = modifiers
        .iter()
        .copied()
        .filter(|m| TYPES.iter().any(|(name, _)| name == m))
        .collect();
    let elements = modifiers
        .iter()
        .find_map(|m| m.strip_prefix('v')?.parse().ok())
        .unwrap_or(1);
    let written = syntax.split_once(' ').map_or("", |(_, operands)| operands);
    let with = written.replace("{,", ",").replace('}', "");
    let without = written.split("{,").next().unwrap_or("");
    let mut lists = BTreeSet::new();
    for list in [with.as_str(), without] {
        let mut all = vec![String::new()];
        for spec in list.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let choices = operand(spec, &types, elements);
            all = all
                .iter()
                .flat_map(|before| {
                    choices.iter().map(move |choice| {
                        let comma = if before.is_empty() { "" } else { "," };
                        format!("{before}{comma}{choice}")
                    })
                })
                .collect();
        }
        lists.extend(all);
    }
    lists.into_iter().collect()
}

/// Returns an address operand; for textures and surfaces with coordinates.
fn texel(root: &str, modifiers: &[&str]) -> String {
    if !matches!(root, "tex" | "tld4" | "suld" | "sust" | "sured") {
        return "[at]".into();
    }
    let integers = !root.starts_with('t') || modifiers.last() == Some(&"s32");
    let one = if integers { "rs32" } else { "rf32" };
    let has = |geometry| modifiers.contains(&geometry);
    let (layer, count) = match () {
        () if has("1d") => (None, 1),
        () if has("2d") => (None, 2),
        () if has("a1d") => (Some("ru32"), 1),
        () if has("a2d") || has("acube") => (Some("ru32"), 3),
        () => (None, 4),
    };
    let all: Vec<&str> = layer.into_iter().chain([one].repeat(count)).collect();
    format!("[at,{{{}}}]", all.join(","))
}

/// Returns every opcode with the operands of every row of its root.
fn candidates() -> Vec<String> {
    let mut by_root: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let rows = ptx::table_rows();
    for row in &rows {
        let end = row.syntax.find(['.', '{', '<', '(', ' ']).unwrap_or(row.syntax.len());
        by_root.entry(&row.syntax[..end]).or_default().push(row.syntax);
    }
    let opcodes: BTreeSet<String> = ptx::every_form().into_iter().map(|(opcode, _)| opcode).collect();
    // Cache hints do nothing: one of each kind is enough.
    const ALIKE: &[&str] = &[
        ".L1::evict_normal",
        ".L1::evict_unchanged",
        ".L1::evict_first",
        ".L1::no_allocate",
        ".L2::64B",
        ".L2::128B",
    ];
    let mut all = Vec::new();
    for opcode in &opcodes {
        if ALIKE.iter().any(|hint| opcode.contains(hint)) {
            continue;
        }
        let mut parts = opcode.split('.');
        let root = parts.next().unwrap_or("");
        let modifiers: Vec<&str> = parts.collect();
        let lists: BTreeSet<String> = by_root[root]
            .iter()
            .flat_map(|syntax| operand_lists(syntax, &modifiers))
            .collect();
        let at = texel(root, &modifiers);
        let dims = (1..=5)
            .find(|n| modifiers.contains(&format!("{n}d").as_str()))
            .unwrap_or(1);
        let tensor = format!("{{{}}}", vec!["rs32"; dims].join(","));
        all.extend(lists.iter().map(|list| {
            let list = list.replace("[at]", &at).replace("tensor", &tensor);
            format!("{opcode} {list};")
        }));
    }
    all
}

/// Returns a kernel with this instruction.
fn kernel(number: usize, instruction: &str) -> String {
    let variable = [(".shared", "sv"), (".local", "lv"), (".const", "cv"), (".param", "pv")]
        .iter()
        .find(|(space, _)| instruction.contains(space))
        .map_or("gv", |(_, name)| *name);
    // 0 is a texture without texels.
    let handle = ["tex", "tld4", "txq", "su"]
        .iter()
        .any(|root| instruction.starts_with(root));
    let variable = if handle && !instruction.starts_with("sub") {
        "0"
    } else {
        variable
    };
    format!(
        ".entry k{number}(.param .align 16 .b8 pv[1024]) {{ {REGISTERS} .reg .b64 at; .local .align 128 .b8 lv[1024];\n\
        mov.u64 at, {variable}; mov.b32 ru32, -1; mov.b32 rb32, 5;\n{instruction}\nret; }}\n"
    )
}

#[test]
fn accepted_instructions_run() {
    let judge = |text: &str| referee::judged(text, &LIMITS);
    let candidates = candidates();
    let head = format!(
        "{HEAD}.entry k(.param .align 16 .b8 pv[1024]) {{ {REGISTERS} .reg .b64 at; .local .align 128 .b8 lv[1024];\n"
    );
    let accepted = accepted_lines(&head, &candidates, judge);
    let mut runs: Vec<&str> = Vec::new();
    for (instruction, accepted) in candidates.iter().zip(&accepted) {
        if *accepted {
            runs.push(instruction);
        }
    }
    let opcodes: BTreeSet<&str> = runs.iter().filter_map(|i| i.split(' ').next()).collect();
    println!("{} instructions with {} opcodes", runs.len(), opcodes.len());
    assert!(opcodes.len() > 10_000, "only {} opcodes are accepted", opcodes.len());

    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for part in runs.chunks(64) {
        let text: String = part.iter().enumerate().map(|(n, i)| kernel(n, i)).collect();
        let module = ptx::load(format!("{HEAD}{text}").as_bytes(), &LIMITS)
            .unwrap_or_else(|failure| panic!("{}", failure.log))
            .module;
        let program = Program::load(module, 1).expect("memory for a few variables");
        for (n, instruction) in part.iter().enumerate() {
            let opcode = instruction.split(' ').next().unwrap_or("").trim_end_matches(';');
            let kernel = program.kernel(&format!("k{n}")).expect("it is in the text");
            let listed = NOT_RUN
                .iter()
                .position(|(begins, has, _)| opcode.starts_with(begins) && instruction.contains(has));
            match (kernel.unsupported(), listed) {
                (None, None) => {}
                (Some(_), Some(line)) => {
                    used.insert(line);
                    continue;
                }
                (Some(why), None) => {
                    wrong.push(format!("{instruction} does not run: {why}"));
                    continue;
                }
                (None, Some(_)) => wrong.push(format!("{instruction} runs, but is on the list")),
            }
            for threads in [32, 20] {
                let execution = Launch {
                    kernel: kernel.clone(),
                    grid: [1; 3],
                    block: [threads, 1, 1],
                    dynamic_shared: 0,
                    params: Box::default(),
                    options: Options {
                        budget: Some(1000),
                        ..Options::default()
                    },
                }
                .start();
                if execution.work(u64::MAX) != Progress::Finished {
                    wrong.push(format!("{instruction} with {threads} threads does not end"));
                }
                if let Some(fault) = execution.fault()
                    && !may_fault(opcode, &fault.kind)
                {
                    wrong.push(format!("{instruction} with {threads} threads: {fault}"));
                }
            }
        }
    }
    for (line, listed) in NOT_RUN.iter().enumerate() {
        if !used.contains(&line) {
            wrong.push(format!("no accepted instruction matches {listed:?} on the list"));
        }
    }
    let count = wrong.len();
    wrong.truncate(100);
    assert!(
        wrong.is_empty(),
        "{count} differences, of which at most 100 follow:\n{}",
        wrong.join("\n")
    );
}
