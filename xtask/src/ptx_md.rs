//! Writes `PTX.md`: the PTX instructions that the software driver runs.
//!
//! The example `ptx_forms` of the software driver's engine loads and decodes the samples of the instruction table, and
//! prints the result. All forms have samples except those of `mov`, `bra`, `brx`, `call`, `mapa` and `getctarank`, and
//! those with `.param::func`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::software::output_of_example;

/// The groups of the document: titles and roots. A root is the first word of an opcode, for example `add`. Roots in no
/// group come last.
const GROUPS: &[(&str, &str)] = &[
    (
        "Integers, floating point, memory, control",
        "abs add and bar barrier bra brx call cnot cvt cvta div exit fma isspacep ld ldu mad mad24 max min mov mul mul24 \
         neg not or rem ret selp set setp shl shr slct sqrt st sub trap xor",
    ),
    (
        "Bits, carries, approximate functions, fences, hints",
        "addc subc madc bfe bfi bfind bmsk brev clz popc fns lop3 prmt shf sad dp2a dp4a szext copysign testp rcp rsqrt \
         sin cos lg2 ex2 tanh fence membar nanosleep prefetch prefetchu applypriority discard createpolicy alloca \
         stacksave stackrestore brkpt pmevent",
    ),
    (
        "Video",
        "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 \
         vset4 vshl vshr vsub vsub2 vsub4",
    ),
    (
        "Across the lanes of a warp, and atomic operations",
        "activemask atom elect match red redux shfl vote",
    ),
    ("Textures and surfaces", "istypep suld suq sured sust tex tld4 txq"),
    (
        "Asynchronous copies and matrices",
        "cp ldmatrix stmatrix movmatrix mma wmma",
    ),
    (
        "sm_90 and later",
        "clusterlaunchcontrol getctarank griddepcontrol mapa mbarrier multimem setmaxnreg tcgen05 tensormap wgmma",
    ),
];

/// The meaning of the columns, and of the syntax of the instruction table (the documentation of `ptx::forms`).
const LEGEND: &str = "\
- **Syntax**: an opcode with its modifiers, and its operands, in a notation like that of NVIDIA's manual; see below.
- **Forms**: the number of opcodes with modifiers for which the line stands, without those with `.param::func`. Empty for
  `mov`, `bra`, `brx`, `call`, `mapa` and `getctarank`, which also take operands that their lines do not describe, such
  as labels, functions and variables; and for an opcode with `…`, which stands for its forms outside the table.
- **PTX**, **sm**: the PTX version and the architecture that the line needs; a modifier may need more.
- **Missing**: the forms that do not run, and in italics the differences from a GPU.

| In an opcode | Meaning |
| --- | --- |
| `.sat` | this modifier |
| `{.a\\|.b}` | one of these modifiers or none |
| `(.a\\|.b)` | one of these modifiers |
| `<int>`, `{<rnd>}` | one modifier of a class (see the end of this file), required or optional |

| Operand | Meaning |
| --- | --- |
| `d` | destination |
| `p` | destination, a predicate |
| `p\\|q`, `d\\|p` | two destinations; the second is a predicate and may be left out |
| `a`, `b`, `c`, `f`, `m`, `n` | source: a register or a constant |
| `!a`, `!b` | source, which may be negated if it is a predicate |
| `!c` | source predicate, which may be negated |
| `#i` and other letters | constant |
| `[a]` and other letters | address |
| `[t]` | address of a tensor map, with coordinates |
| `policy` | cache policy, present if the opcode has `.L2::cache_hint` |
| `{, x}` | operand that may be left out |

A predicate has the type `.pred`, and a cache policy `.u64`. Every other operand has the last type of the opcode. Marks
after an operand change this:

| Mark | Meaning |
| --- | --- |
| `:u32` and other types | of this type |
| `:1`, `:2` | of the first or second type of the opcode |
| `:w` | of twice the width of the last type |
| `~` | registers may be wider than the type |
| `?` | may be `_` |
| `&` | both destinations of a pair are required |
| `*` | a vector if the opcode has `.v2`, `.v4` or `.v8` |
| `^4` and other numbers | a vector of 4 elements |
| `^n/2`, `^n/4` | a vector with one element for each 2 or 4 columns (`n`) of the shape |
";

const NOTE_APPROX: &str = "`.approx`: within the manual's error bounds, but the last bits can differ from a GPU's";

const NOTE_MMA: &str = "floating-point sums that are not exact follow a model of sm_90 from the literature";

const NOTE_VIDEO: &str =
    "as in the manual; driver 580 truncates results to 32 bits before it saturates, scales or compares them";

/// Differences from a GPU of instructions that run, by root.
const NOTES: &[(&str, &str)] = &[
    ("rcp", NOTE_APPROX),
    ("sqrt", NOTE_APPROX),
    ("div", "`.approx` and `.full`: as `rcp.approx`"),
    ("rsqrt", NOTE_APPROX),
    ("sin", NOTE_APPROX),
    ("cos", NOTE_APPROX),
    ("lg2", NOTE_APPROX),
    ("ex2", NOTE_APPROX),
    ("tanh", NOTE_APPROX),
    ("prefetch", "checked, but has no effect"),
    ("prefetchu", "checked, but has no effect"),
    ("applypriority", "checked, but has no effect"),
    ("discard", "checked, but has no effect"),
    ("pmevent", "checked, but has no effect"),
    ("brkpt", "no effect"),
    ("nanosleep", "does not wait"),
    ("setmaxnreg", "no effect"),
    (
        "griddepcontrol",
        "no effect: a kernel starts when the previous one has ended",
    ),
    ("mma", NOTE_MMA),
    ("vadd", NOTE_VIDEO),
    ("vsub", NOTE_VIDEO),
    ("vabsdiff", NOTE_VIDEO),
    ("vshl", NOTE_VIDEO),
    ("vmad", NOTE_VIDEO),
    ("wmma", NOTE_MMA),
    ("wgmma", NOTE_MMA),
    (
        "cp",
        "copies complete with their instruction; im2col copies of interleaved tensors do not run",
    ),
    ("alloca", "limited by the stack limit of the context"),
    ("createpolicy", "returns a number that no instruction uses"),
];

/// A line of the instruction table.
struct Row {
    syntax: String,
    ptx: String,
    sm: u32,
    forms: usize,
    missing: Vec<String>,
}

/// The forms of the instruction table.
pub(crate) struct Forms {
    /// The forms of each root.
    rows: BTreeMap<String, Vec<Row>>,
    /// Roots whose forms outside the table load but do not run, with their PTX version and architecture.
    later: BTreeMap<String, (String, u32)>,
    /// Classes of modifiers: name and members.
    classes: Vec<(String, String)>,
}

impl Forms {
    /// Reads the forms from the output of the software driver's example.
    pub(crate) fn read() -> Result<Self, String> {
        Self::parse(&output_of_example("cuda-driver-soft-engine", "ptx_forms")?)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut known = Forms {
            rows: BTreeMap::new(),
            later: BTreeMap::new(),
            classes: Vec::new(),
        };
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |text: &str| text.parse::<u32>().map_err(|e| format!("`{line}` of ptx_forms: {e}"));
            match fields.as_slice() {
                ["later", name, ptx, sm] => {
                    let since = ((*ptx).to_owned(), number(sm)?);
                    known.later.insert((*name).to_owned(), since);
                }
                ["class", name, members] => {
                    known.classes.push(((*name).to_owned(), (*members).to_owned()));
                }
                [syntax, ptx, sm, forms, missing] => {
                    let end = syntax.find(|c: char| !c.is_alphanumeric()).unwrap_or(syntax.len());
                    let rows = known.rows.entry(syntax[..end].to_owned()).or_default();
                    rows.push(Row {
                        syntax: (*syntax).to_owned(),
                        ptx: (*ptx).to_owned(),
                        sm: number(sm)?,
                        forms: number(forms)? as usize,
                        missing: missing.split_whitespace().map(str::to_owned).collect(),
                    });
                }
                _ => return Err(format!("`{line}` of ptx_forms is of no known kind")),
            }
        }
        Ok(known)
    }

    /// Returns the counts as two sentences.
    pub(crate) fn summary(&self) -> String {
        // The forms of a row with 0 forms are not counted, but run.
        let runs = |rows: &&Vec<Row>| rows.iter().any(|row| row.forms == 0 || row.missing.len() < row.forms);
        let running: Vec<&Vec<Row>> = self.rows.values().filter(runs).collect();
        let rows = || running.iter().copied().flatten();
        let forms: usize = rows().map(|row| row.forms).sum();
        let missing: usize = rows().map(|row| row.missing.len()).sum();
        let later = self.later.keys().filter(|root| !self.rows.contains_key(*root));
        format!(
            "{} instructions run, in {} forms. {} other forms of them and {} more instructions load, but the launch of a \
             kernel that reaches them returns `CUDA_ERROR_NOT_SUPPORTED`, and the log names the instruction.",
            running.len(),
            forms - missing,
            missing,
            later.count() + self.rows.len() - running.len(),
        )
    }

    /// Returns the text of the file.
    pub(crate) fn text(&self) -> String {
        let mut out = String::from(
            "<!-- @generated by `cargo xtask generate` from the instruction table of cuda-driver-soft -->\n\n\
             # Which PTX runs on the software driver\n\n",
        );
        _ = writeln!(
            out,
            "{} Modules up to PTX 9.5 are accepted, for targets up to the device's architecture.\n",
            self.summary()
        );
        out.push_str(LEGEND);
        let mut left: BTreeSet<&str> = self.rows.keys().chain(self.later.keys()).map(String::as_str).collect();
        for (title, roots) in GROUPS {
            let roots: Vec<&str> = roots.split_whitespace().collect();
            for root in &roots {
                left.remove(root);
            }
            self.group(&mut out, title, &roots);
        }
        let left: Vec<&str> = left.into_iter().collect();
        if !left.is_empty() {
            self.group(&mut out, "Others", &left);
        }
        out.push_str("\n## Classes of modifiers\n\n| Class | Members |\n| --- | --- |\n");
        for (name, members) in &self.classes {
            _ = writeln!(out, "| `<{name}>` | {} |", code(members));
        }
        out
    }

    fn group(&self, out: &mut String, title: &str, roots: &[&str]) {
        _ = writeln!(
            out,
            "\n## {title}\n\n| Syntax | Forms | PTX | sm | Missing |\n| --- | --- | --- | --- | --- |"
        );
        for name in roots {
            let note = NOTES.iter().find(|(root, _)| root == name).map(|(_, note)| *note);
            let mut note = note.map(|note| format!("*{name}: {note}*"));
            for row in self.rows.get(*name).into_iter().flatten() {
                let forms = match row.forms {
                    0 => String::new(),
                    n => n.to_string(),
                };
                let mut last = missing(row);
                if let Some(note) = note.take() {
                    let separator = if last.is_empty() { "" } else { "; " };
                    last = format!("{note}{separator}{last}");
                }
                _ = writeln!(
                    out,
                    "| {} | {forms} | {} | {} | {last} |",
                    code(&row.syntax),
                    row.ptx,
                    sm(row.sm)
                );
            }
            if let Some((ptx, least)) = self.later.get(*name) {
                let what = if self.rows.contains_key(*name) {
                    "every other form"
                } else {
                    "all of it"
                };
                _ = writeln!(out, "| `{name}` … | | {ptx} | {} | {what} |", sm(*least));
            }
        }
    }
}

/// Returns code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

fn sm(least: u32) -> String {
    match least {
        0 => String::new(),
        least => least.to_string(),
    }
}

/// Returns the forms of a row that do not run.
fn missing(row: &Row) -> String {
    match row.missing.len() {
        0 => String::new(),
        n if n == row.forms => "all of it".to_owned(),
        n if n > 8 => format!("{n} of them, such as {}", code(&row.missing[0])),
        _ => {
            let forms: Vec<String> = row.missing.iter().map(|form| code(form)).collect();
            forms.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_do_not_run_are_listed() {
        let text = "add<int> d, a, b\t1.0\t0\t6\tadd.s16 add.u16\n\
            sin.approx{.ftz}.f32 d, a\t1.0\t0\t2\t\n\
            addc.sat.s32 d, a, b\t1.2\t20\t1\taddc.sat.s32\n\
            later\ttex\t1.0\t0\nlater\tcp\t7.0\t80\nclass\tint\t.u16|.s16\n";
        let known = Forms::parse(text).expect("the text is right");
        assert_eq!(
            known.summary(),
            "2 instructions run, in 6 forms. 2 other forms of them and 3 more instructions load, but the launch of a kernel \
             that reaches them returns `CUDA_ERROR_NOT_SUPPORTED`, and the log names the instruction."
        );
        let document = known.text();
        for line in [
            "| `add<int> d, a, b` | 6 | 1.0 |  | `add.s16`, `add.u16` |",
            "| `sin.approx{.ftz}.f32 d, a` | 2 | 1.0 |  | *sin: `.approx`: within the manual's error bounds, but the last bits can differ from a GPU's* |",
            "| `addc.sat.s32 d, a, b` | 1 | 1.2 | 20 | all of it |",
            "| `tex` … | | 1.0 |  | all of it |",
            "| `<int>` | `.u16\\|.s16` |",
        ] {
            assert!(document.contains(line), "no {line} in\n{document}");
        }
        assert!(Forms::parse("nonsense").is_err());
    }
}
