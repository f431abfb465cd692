//! Messages, in ptxas's words, for instructions that require a newer `.version` or `.target` than the module has.

use crate::requirement::Since::{self, Ptx, Sm};

use super::form::{Candidate, Form};
use super::mods::split;

/// The word before the name of an instruction or modifier in a message.
#[derive(Clone, Copy)]
enum Word {
    Feature,
    Instruction,
    Modifier,
}
use Word::{Feature, Instruction, Modifier};

/// A rule for messages about a modifier: roots (an empty list for all), modifier, name in messages (empty for the
/// modifier itself; `{}` stands for the root), the requirements in ptxas's order.
type Rule = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static [(Word, Since)],
);

const ARITHMETIC: &[&str] = &["add", "sub", "mul", "fma", "neg", "abs", "set", "setp"];
/// Instructions whose `.bf16` forms all require sm_90. Their messages say so with a name such as `add.bf16`.
const LATE_BF16: &[&str] = &["add", "sub", "mul", "set", "setp"];
const BF16: &[(Word, Since)] = &[(Feature, Sm(80)), (Feature, Ptx(70))];
const LATER_BF16: &[(Word, Since)] = &[(Feature, Sm(90)), (Feature, Ptx(78))];
const ORDER: &[(Word, Since)] = &[(Feature, Sm(70))];
const FRAGMENT: &[(Word, Since)] = &[(Feature, Ptx(65)), (Modifier, Sm(75))];
const HINT: &[(Word, Since)] = &[(Modifier, Ptx(74)), (Modifier, Sm(80))];

/// Rules for messages that come before the messages about the whole instruction.
#[rustfmt::skip] // one rule per line
const BEFORE: &[Rule] = &[
    (&[], ".bf16", "", BF16),
    (&[], ".bf16x2", "", &[(Feature, Sm(75)), (Feature, Sm(80)), (Feature, Ptx(70))]),
    (&["mma", "wmma"], ".tf32", "", BF16),
    (&[], ".relu", "", &[(Feature, Ptx(70))]),
];
/// Rules for messages that come after the messages about the whole instruction.
#[rustfmt::skip] // one rule per line
const AFTER: &[Rule] = &[
    (ARITHMETIC, ".f16", "f16 arithemetic and compare instructions", &[(Feature, Sm(53))]),
    (ARITHMETIC, ".f16x2", "f16 arithemetic and compare instructions", &[(Feature, Sm(53))]),
    (LATE_BF16, ".bf16", "{}.bf16", LATER_BF16),
    (LATE_BF16, ".bf16x2", "{}.bf16x2", LATER_BF16),
    (&["min", "max"], ".NaN", "", &[(Feature, Ptx(70)), (Modifier, Sm(80))]),
    (&["min", "max"], ".xorsign", "", &[(Feature, Ptx(72)), (Modifier, Sm(86))]),
    (&[], ".relu", "", &[(Modifier, Sm(80))]),
    (&["ldmatrix"], ".m8n8", "", FRAGMENT),
    (&[], ".L2::cache_hint", "", HINT),
    (&["ld", "st", "atom", "red", "fence"], ".acquire", "", ORDER),
    (&["ld", "st", "atom", "red", "fence"], ".release", "", ORDER),
    (&["ld", "st", "atom", "red", "fence"], ".acq_rel", "", ORDER),
    (&["ld", "st", "atom", "red", "fence"], ".relaxed", "", ORDER),
    (&[], ".cluster", ".cluster scope", &[(Feature, Sm(90)), (Feature, Ptx(78))]),
    (&[], ".shared::cta", "::cta", &[(Feature, Ptx(78))]),
    (&[], ".shared::cluster", "::cluster", &[(Feature, Sm(90)), (Feature, Ptx(78))]),
];

/// Instructions whose messages require the architecture with the word `Instruction`, before the PTX version.
const INSTRUCTIONS: &[&str] = &["shfl", "match", "lop3", "shf", "dp4a", "dp2a", "bmsk", "szext"];
/// Instructions whose messages require the architecture with the word `Feature`, before the PTX version.
const TARGET_FIRST: &[&str] = &["redux", "ldmatrix", "stmatrix", "movmatrix"];

/// Returns the messages about an instruction, one of the form's candidates, in a module of this PTX version, times ten,
/// and this architecture.
pub(crate) fn unmet(form: &Form, candidate: &Candidate, opcode: &str, ptx: u32, sm: u32) -> Vec<String> {
    let mut messages = Vec::new();
    if candidate.ptx <= ptx && candidate.sm <= sm {
        return messages;
    }
    let require = |(word, since): (Word, Since), name: &str| {
        let word = match word {
            Feature => "Feature",
            Instruction => "Instruction",
            Modifier => "Modifier",
        };
        since.unmet(format_args!("{word} '{name}'"), ptx, sm)
    };
    let modifiers = split(&opcode[form.root.len()..]);
    let by_rules = |rules: &[Rule]| {
        let mut found: Vec<String> = Vec::new();
        for modifier in &modifiers {
            let rules = rules
                .iter()
                .filter(|(roots, of, ..)| of == modifier && (roots.is_empty() || roots.contains(&form.root)));
            for (_, modifier, name, since) in rules {
                let name = match *name {
                    "" => (*modifier).to_owned(),
                    name => name.replace("{}", form.root),
                };
                found.extend(since.iter().filter_map(|line| require(*line, &name)));
            }
        }
        found
    };
    messages.extend(by_rules(BEFORE));
    let mut after = by_rules(AFTER);
    after.dedup();
    let instruction = INSTRUCTIONS.contains(&form.root);
    let target_first = instruction || TARGET_FIRST.contains(&form.root);
    // The form's requirements can be those of a modifier that is newer than the instruction. If a message about the
    // modifier names them already, only the instructions of `INSTRUCTIONS` and `TARGET_FIRST` repeat them.
    let named = |since: Since| {
        let text = since.text();
        !target_first && messages.iter().chain(&after).any(|m| m.ends_with(&text))
    };
    let name = match modifiers.last() {
        // A type that is newer than the instruction.
        Some(ty @ (&".s16x2" | &".u16x2")) => form.name.clone() + ty,
        _ if matches!(form.root, "ld" | "st") && candidate.sm >= 100 => "256 bit wide load/store".to_owned(),
        _ => form.name.clone(),
    };
    let word = if instruction { Instruction } else { Feature };
    let of = |word: Word, since: Since| require((word, since), &name).filter(|_| !named(since));
    let of_target = of(word, Sm(candidate.sm));
    let of_version = of(Feature, Ptx(candidate.ptx));
    let whole = match target_first {
        true => [of_target, of_version],
        false => [of_version, of_target],
    };
    messages.extend(whole.into_iter().flatten());
    messages.extend(after);
    messages
}
