//! Every form of the instruction table is loaded and decoded: what does not run is listed here, and nothing else.

use cuda_driver_soft::exec::Program;
use cuda_driver_soft::ptx::{self, Limits, Sample};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Starts of the opcodes that load and do not run, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("addc.u16", "nobody emits carries of 16 bits"),
    ("addc.s16", "nobody emits carries of 16 bits"),
    ("subc.u16", "nobody emits carries of 16 bits"),
    ("subc.s16", "nobody emits carries of 16 bits"),
    ("madc.lo.u16", "nobody emits carries of 16 bits"),
    ("madc.lo.s16", "nobody emits carries of 16 bits"),
    ("madc.hi.u16", "nobody emits carries of 16 bits"),
    ("madc.hi.s16", "nobody emits carries of 16 bits"),
    ("addc.sat", "the manual does not have it"),
    ("subc.sat", "the manual does not have it"),
    ("madc.hi.sat", "the manual does not have it"),
    ("testp.f32", "the manual does not have it without a test"),
    ("testp.f64", "the manual does not have it without a test"),
    ("cvt.pack.sat.u2", "elements of less than 8 bits"),
    ("cvt.pack.sat.s2", "elements of less than 8 bits"),
    ("cvt.pack.sat.u4", "elements of less than 8 bits"),
    ("cvt.pack.sat.s4", "elements of less than 8 bits"),
];

/// The same for the ends of opcodes that begin so.
const NOT_RUN_ENDS: &[(&str, &str, &str)] = &[
    ("atom.", ".b128", "atomic operations on 128 bits"),
    ("cvta.", ".u32", "windows have addresses of 64 bits"),
];

fn listed(opcode: &str) -> bool {
    // Global and constant addresses are generic ones, of whatever width.
    let wide =
        opcode.starts_with("cvta") && (opcode.contains(".global") || opcode.contains(".const"));
    let ends = NOT_RUN_ENDS
        .iter()
        .any(|(start, end, _)| opcode.starts_with(start) && opcode.ends_with(end));
    NOT_RUN.iter().any(|(start, _)| opcode.starts_with(start)) || (ends && !wide)
}

#[test]
fn every_form_that_loads() {
    let samples = ptx::samples();
    assert!(samples.len() > 50_000, "{}", samples.len());
    // Without `.sync` these are not in any newer version.
    let old = |s: &&Sample| {
        let root = ["shfl.", "vote."];
        root.iter().any(|root| s.opcode.starts_with(root)) && !s.opcode.contains(".sync")
    };
    let (old, new): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(old);
    let mut wrong = BTreeSet::new();
    let mut refused = 0;
    let wide = Sample::WIDE_REGISTERS;
    let chunks = new
        .chunks(2000)
        .map(|chunk| ("9.5", "sm_90", wide, chunk))
        .chain([("6.0", "sm_60", "", old.as_slice())]);
    for (version, target, wide, chunk) in chunks {
        let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n");
        for (i, sample) in chunk.iter().enumerate() {
            let registers = Sample::REGISTERS;
            let _ = writeln!(
                text,
                ".entry k{i}() {{ {registers} {wide} {} }}",
                sample.text
            );
        }
        let loaded = match ptx::load(text.as_bytes(), &Limits::default()) {
            Ok(loaded) => loaded,
            Err(failure) => panic!("{}", failure.log),
        };
        let program = Program::load(loaded.module, 0).expect("no variables, nothing to fail");
        for kernel in program.kernels() {
            let number = kernel.name().trim_start_matches('k').parse::<usize>();
            let sample = chunk[number.expect("the name of a kernel")];
            let runs = kernel.unsupported().is_none();
            refused += usize::from(!runs);
            // `isspacep` has no suffix: the operand decides.
            let narrow = sample.opcode.starts_with("isspacep") && sample.text.contains("%r2");
            if runs == (listed(&sample.opcode) || narrow) {
                wrong.insert(format!("{}: runs: {runs}", sample.text));
            }
        }
    }
    println!("{} instructions, {refused} do not run", samples.len());
    let first: Vec<&str> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        first.join("\n")
    );
}
