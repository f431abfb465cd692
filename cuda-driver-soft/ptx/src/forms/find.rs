//! Finds the form of an opcode in the instruction table.

use super::form::{Candidate, Form, FormErrors};
use super::mods::{self, Mods};
use super::operand::operand;
use super::table::{fit, name_modifiers, table};
use super::unimplemented;
use super::why_not::why_not;

/// Modifiers that are newer than the instructions that have them: root or name (empty for all), modifier, PTX version
/// times ten, lowest architecture (0 for all).
#[rustfmt::skip] // one modifier per line
const NEWER: &[(&str, &str, u32, u32)] = &[
    ("", ".L1::evict_normal", 74, 70),
    ("", ".L1::evict_unchanged", 74, 70),
    ("", ".L1::evict_first", 74, 70),
    ("", ".L1::evict_last", 74, 70),
    ("", ".L1::no_allocate", 74, 70),
    ("", ".L2::64B", 74, 75),
    ("", ".L2::128B", 74, 75),
    ("", ".L2::256B", 74, 80),
    ("", ".L2::cache_hint", 74, 80),
    ("", ".cluster", 78, 90),
    ("", ".shared::cta", 78, 0),
    ("", ".shared::cluster", 78, 90),
    ("", ".param::entry", 83, 0),
    ("", ".b128", 83, 70),
    ("tex", ".base", 31, 20),
    ("tex", ".f16", 42, 53),
    ("tex", ".f16x2", 42, 53),
    ("", ".weak", 60, 70),
    ("", ".relaxed", 60, 70),
    ("", ".acquire", 60, 70),
    ("", ".release", 60, 70),
    ("", ".acq_rel", 60, 70),
    ("atom", ".cta", 50, 60),
    ("atom", ".gpu", 50, 60),
    ("atom", ".sys", 50, 60),
    ("red", ".cta", 50, 60),
    ("red", ".gpu", 50, 60),
    ("red", ".sys", 50, 60),
    ("mbarrier", ".acquire", 80, 80),
    ("mbarrier", ".release", 80, 80),
    ("mbarrier.arrive", ".relaxed", 86, 90),
    ("mbarrier.arrive.expect_tx", ".relaxed", 86, 90),
    ("mbarrier.arrive_drop", ".relaxed", 86, 90),
    ("mbarrier.arrive_drop.expect_tx", ".relaxed", 86, 90),
    ("mbarrier.test_wait", ".relaxed", 86, 90),
    ("mbarrier.try_wait", ".relaxed", 86, 90),
    ("mbarrier", ".cluster", 80, 90),
    ("mbarrier", ".shared::cluster", 80, 90),
    ("barrier.cluster.arrive", ".release", 80, 90),
    ("barrier.cluster.arrive", ".relaxed", 80, 90),
    ("barrier.cluster.wait", ".acquire", 80, 90),
    ("multimem", ".acc::f32", 82, 90),
    ("mma", ".sp::ordered_metadata", 85, 80),
    ("bar", ".cta", 78, 0),
    ("barrier", ".cta", 78, 0),
    ("pmevent", ".mask", 30, 20),
    ("cvta", ".const", 31, 20),
    ("isspacep", ".const", 31, 20),
    ("cvta", ".param", 77, 70),
    ("isspacep", ".param", 77, 70),
    ("cvta", ".param::entry", 77, 70),
    ("isspacep", ".param::entry", 77, 70),
];

/// Returns the form of an opcode with its modifiers, such as `add.sat.s32`.
pub(crate) fn find(opcode: &str) -> Result<Form, FormErrors> {
    let (root, rest) = opcode
        .split_once('.')
        .map_or((opcode, None), |(root, rest)| (root, Some(rest)));
    let modifiers: Vec<&str> = rest.map_or_else(Vec::new, |_| mods::split(&opcode[root.len()..]));
    let table = table();
    let Some((&root, rows)) = table.roots.get_key_value(root) else {
        return unimplemented::find(root, &modifiers);
    };
    let rows = rows.compiled();
    let named = name_modifiers(root);
    let mut form = Form {
        root,
        name: modifiers
            .iter()
            .take_while(|m| named.contains(m))
            .fold(root.to_owned(), |name, m| name + m),
        candidates: Vec::new(),
        any_operands: false,
    };
    let mut reject = None;
    for compiled in rows {
        if !fit(&compiled.elements, &modifiers) {
            continue;
        }
        let row = table.rows[compiled.row];
        let mods = Mods::new(&modifiers);
        let lowering = match (row.lowering)(&mods) {
            Ok(lowering) => lowering,
            Err(why) => {
                reject.get_or_insert(why.0);
                continue;
            }
        };
        let newer = NEWER
            .iter()
            .filter(|(of, name, _, _)| (of.is_empty() || *of == root || *of == form.name) && mods.has(name))
            // `cp.async.ca` and `cp.async.cg` always had `.shared::cta`.
            .filter(|(_, name, _, _)| form.name != "cp.async" || *name != ".shared::cta" || mods.has(".mbarrier"));
        let (mut ptx, sm) = newer.fold((row.ptx, row.sm), |(ptx, sm), since| {
            (ptx.max(since.2), sm.max(since.3))
        });
        if mods.has(".b128") && mods.has(".sys") {
            ptx = ptx.max(84);
        }
        for list in &compiled.operands {
            // There is a cache policy operand if and only if the opcode has `.L2::cache_hint`.
            if list.contains(&"policy") != mods.has(".L2::cache_hint") && compiled.operands.len() > 1 {
                continue;
            }
            form.candidates.push(Candidate {
                operands: list.iter().map(|text| operand(text, &mods)).collect(),
                lowering: lowering.clone(),
                row: Some(compiled.row),
                ptx,
                sm,
            });
        }
    }
    if form.candidates.is_empty() {
        if let Ok(form) = unimplemented::find(root, &modifiers) {
            return Ok(form);
        }
        return Err(FormErrors(match reject {
            Some(why) => vec![why],
            None => why_not(&form.name, rows, &modifiers),
        }));
    }
    Ok(form)
}
