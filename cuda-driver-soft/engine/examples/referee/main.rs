//! Runs the instruction forms of the module `forms` on a driver and compares the results, bit by bit, with the scalar
//! semantics.
//!
//! `cargo run --release -p cuda-driver-soft-engine --example referee -- [--ptx] [--record FILE] [FILTER]` uses the
//! driver that the loader finds (`CUDA_DRIVER_LIBRARY` names another). `--ptx` prints the module of all forms instead,
//! for `ptxas`. `--record` writes a fingerprint of the driver's results for each form that has to be exact, for
//! `tests/recorded.rs`. A filter selects the forms whose text contains it.
//!
//! The output has a line for each form: the verdict, the number of differing results, the largest difference in units
//! of the last place, and the text. Lines with the first operands for which the results differ follow it. The exit code
//! is 1 if a form differs that should not, if the driver refuses one, or if a call of the driver fails.

mod driver;
mod forms;
#[path = "../../src/semantics/tests/random.rs"]
mod random;

use forms::form::{COUNT, Expect, Form, OperandKind, Width, fingerprint, operands};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::process::ExitCode;

/// The command line's options.
#[derive(Default)]
struct Options {
    filter: Option<String>,
    record: Option<String>,
}

fn main() -> ExitCode {
    let (mut options, mut arguments) = (Options::default(), std::env::args().skip(1));
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--ptx" => {
                print!("{}", module(&forms::all().iter().collect::<Vec<_>>()));
                return ExitCode::SUCCESS;
            }
            "--record" => match arguments.next() {
                Some(path) => options.record = Some(path),
                None => {
                    eprintln!("--record needs the path of a file");
                    return ExitCode::FAILURE;
                }
            },
            _ => options.filter = Some(argument),
        }
    }
    match run(&options) {
        Ok(Counts { differ: 0, refused: 0 }) => ExitCode::SUCCESS,
        Ok(Counts { differ, refused }) => {
            println!("{differ} forms differ, the driver refused {refused}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns a module with one entry function per form, which loads three operands, computes, and stores 64 bits.
///
/// The narrow operands are loaded rather than cut from the wide ones, because `ptxas` 13.0 takes the wrong half of a
/// cut operand of `atom.shared.add.noftz.f16x2`.
fn module(forms: &[&Form]) -> String {
    let mut ptx = String::from(".version 8.4\n.target sm_90\n.address_size 64\n");
    for (i, form) in forms.iter().enumerate() {
        let body = form.text.split(';').map(str::trim).filter(|s| !s.is_empty());
        let body: String = body.map(|s| format!("  {s};\n")).collect();
        let pack = match form.width {
            Width::Pred => "  selp.b64 %D, 1, 0, %P;\n",
            Width::B16 => "  cvt.u64.u16 %D, %H;\n",
            Width::B32 => "  cvt.u64.u32 %D, %W;\n",
            Width::B64 => "",
        };
        ptx += &format!(
            ".visible .entry f{i}(.param .u64 in, .param .u64 out, .param .u32 n)\n{{\n\
             \x20 .reg .b64 %i, %o, %t, %D, %d<3>; .reg .b32 %W, %V, %w<3>, %x, %y, %n; .reg .b16 %H, %h<3>; .reg .pred %P, %Q, %q<3>;\n\
             \x20 ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n];\n\
             \x20 mov.u32 %x, %ctaid.x; mov.u32 %y, %ntid.x; mad.lo.u32 %x, %x, %y, 0; mov.u32 %y, %tid.x; add.u32 %x, %x, %y;\n\
             \x20 setp.ge.u32 %P, %x, %n; @%P ret;\n\
             \x20 mul.wide.u32 %t, %x, 24; add.u64 %i, %i, %t; mul.wide.u32 %t, %x, 8; add.u64 %o, %o, %t;\n\
             \x20 ld.global.b64 %d0, [%i]; ld.global.b64 %d1, [%i+8]; ld.global.b64 %d2, [%i+16];\n\
             \x20 ld.global.b32 %w0, [%i]; ld.global.b32 %w1, [%i+8]; ld.global.b32 %w2, [%i+16];\n\
             \x20 ld.global.b16 %h0, [%i]; ld.global.b16 %h1, [%i+8]; ld.global.b16 %h2, [%i+16];\n\
             \x20 and.b32 %V, %w2, 1; setp.ne.u32 %q2, %V, 0;\n\
             {body}{pack}  st.global.b64 [%o], %D;\n  ret;\n}}\n"
        );
    }
    ptx
}

/// The number of forms that went wrong.
struct Counts {
    differ: usize,
    refused: usize,
}

fn run(options: &Options) -> Result<Counts, String> {
    let mut forms = forms::all();
    if let Some(filter) = &options.filter {
        forms.retain(|form| form.text.contains(filter));
    }
    let driver = driver::Driver::start()?;
    let description = driver.description()?;
    println!("{description}");
    let output = driver.allocate(COUNT * 8)?;
    let mut inputs: HashMap<OperandKind, (Vec<[u64; 3]>, u64)> = HashMap::new();
    let mut record = format!("# A fingerprint for each form, written by `referee --record` on: {description}\n");
    let mut counts = Counts { differ: 0, refused: 0 };
    // One module for all forms, or one per form if the driver refuses that.
    let whole = driver.load(&module(&forms.iter().collect::<Vec<_>>()));
    for (i, form) in forms.iter().enumerate() {
        let (operands, address) = match inputs.entry(form.kind) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let operands = operands(form.kind);
                let address = driver.upload(&operands)?;
                entry.insert((operands, address))
            }
        };
        let results = match &whole {
            Ok(whole) => driver.launch(*whole, &format!("f{i}"), *address, output, COUNT),
            Err(_) => driver
                .load(&module(&[form]))
                .and_then(|alone| driver.launch(alone, "f0", *address, output, COUNT)),
        };
        match results {
            Ok(results) => {
                counts.differ += usize::from(!compare(form, operands, &results));
                if form.expect == Expect::Same {
                    let hash = fingerprint(results.into_iter());
                    record += &format!("{hash:016x} {}\n", form.text);
                }
            }
            Err(error) => {
                counts.refused += 1;
                println!("refused ({error}): {}", form.text);
            }
        }
    }
    if let Some(path) = &options.record {
        std::fs::write(path, record).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(counts)
}

/// Prints the result of a form; returns true if it differs only where it may.
fn compare(form: &Form, operands: &[[u64; 3]], results: &[u64]) -> bool {
    let (mut count, mut worst, mut first) = (0, 0, Vec::new());
    for (&[a, b, c], &theirs) in operands.iter().zip(results) {
        let ours = (form.eval)(a, b, c);
        if ours == theirs {
            continue;
        }
        count += 1;
        let distance = form.distance(ours, theirs);
        let exact = form.expect == Expect::Same;
        let shown = first.len() < if exact { 10 } else { 3 };
        if shown || distance > worst {
            let line = format!(
                "    {} -> {}, expected {}",
                form.show(&[a, b, c]),
                form.show_result(theirs),
                form.show_result(ours)
            );
            if shown {
                first.push(line);
            } else if !exact {
                first[2] = line;
            }
        }
        worst = worst.max(distance);
    }
    let verdict = match (count, form.expect) {
        (0, _) => "same",
        (_, Expect::Near) => "near",
        (_, Expect::Apart) => "apart",
        (_, Expect::Same) => "DIFFERS",
    };
    println!("{verdict} {count}/{} worst {worst}: {}", operands.len(), form.text);
    first.iter().for_each(|line| println!("{line}"));
    verdict != "DIFFERS"
}
