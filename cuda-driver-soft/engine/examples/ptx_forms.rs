//! Lists the PTX instructions that run: all samples of the instruction table are loaded and decoded.
//!
//! `cargo xtask generate` makes PTX.md from the output: for each row its syntax, PTX version, architecture, number of
//! forms with samples, and those of them that do not run; then the instructions of which at most the forms in the table
//! are implemented, and the classes of modifiers.

use cuda_driver_soft_engine::Program;
use ptx::{Limits, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The maximum number of kernels in one module, one kernel for each sample.
const CHUNK: usize = 2000;

fn main() -> std::process::ExitCode {
    let samples = ptx::samples();
    let mut wrong = Vec::new();
    // By row: forms, and forms that do not run.
    let mut rows: BTreeMap<usize, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    // Without `.sync`, PTX 6.4 and later have these instructions only for architectures before sm_70.
    let old =
        |s: &Sample| ["shfl.", "vote."].iter().any(|root| s.opcode.starts_with(root)) && !s.opcode.contains(".sync");
    let (old, new): (Vec<Sample>, Vec<Sample>) = samples.into_iter().partition(old);
    // The others are loaded for sm_90a, for which alone some of them exist, or for sm_100 if they need a later
    // architecture than sm_90.
    let table = ptx::table_rows();
    let (newest, new): (Vec<Sample>, Vec<Sample>) = new.into_iter().partition(|sample| table[sample.row].sm > 90);
    let chunks = new.chunks(CHUNK).map(|chunk| ("9.5", "sm_90a", chunk));
    let newest = newest.chunks(CHUNK).map(|chunk| ("9.5", "sm_100", chunk));
    for (version, target, chunk) in chunks.chain(newest).chain([("6.0", "sm_60", old.as_slice())]) {
        let unsupported = unsupported(version, target, chunk, &mut wrong);
        for (i, sample) in chunk.iter().enumerate() {
            let (forms, missing) = rows.entry(sample.row).or_default();
            forms.insert(&sample.opcode);
            if unsupported.contains(&i) {
                missing.insert(&sample.opcode);
            }
        }
    }
    for (number, row) in table.iter().enumerate() {
        let (forms, missing) = rows.remove(&number).unwrap_or_default();
        let missing: Vec<&str> = missing.into_iter().collect();
        println!(
            "{}\t{}.{}\t{}\t{}\t{}",
            row.syntax,
            row.ptx.0,
            row.ptx.1,
            row.sm,
            forms.len(),
            missing.join(" ")
        );
    }
    for opcode in ptx::unimplemented_opcodes() {
        let (major, minor) = opcode.ptx;
        println!("later\t{}\t{major}.{minor}\t{}", opcode.root, opcode.sm);
    }
    for (class, members) in ptx::modifier_classes() {
        println!("class\t{class}\t{members}");
    }
    for text in &wrong {
        eprintln!("{text}");
    }
    std::process::ExitCode::from(u8::from(!wrong.is_empty()))
}

/// Returns the indexes of the samples that load but do not run. If samples do not load, adds them to `wrong` with the
/// errors.
fn unsupported(version: &str, target: &str, samples: &[Sample], wrong: &mut Vec<String>) -> BTreeSet<usize> {
    let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n");
    let wide = if version == "9.5" { Sample::WIDE_REGISTERS } else { "" };
    for (i, sample) in samples.iter().enumerate() {
        let _ = writeln!(text, ".entry k{i}() {{ {} {wide} {} }}", Sample::REGISTERS, sample.text);
    }
    let limits = Limits {
        sm: if target == "sm_100" { 100 } else { 90 },
        ..Limits::default()
    };
    let module = match ptx::load(text.as_bytes(), &limits) {
        Ok(loaded) => loaded.module,
        Err(failure) => {
            for diagnostic in &failure.diagnostics {
                let line = (diagnostic.line as usize).checked_sub(4);
                let sample = line.and_then(|i| samples.get(i)).map_or("", |s| &s.text);
                wrong.push(format!("{sample}: {}", diagnostic.message));
            }
            return BTreeSet::new();
        }
    };
    let program = match Program::load(module, 0) {
        Ok(program) => program,
        Err(error) => {
            wrong.push(format!("{error:?}"));
            return BTreeSet::new();
        }
    };
    program
        .kernels()
        .filter(|kernel| kernel.unsupported().is_some())
        .filter_map(|kernel| kernel.name().strip_prefix('k')?.parse().ok())
        .collect()
}
