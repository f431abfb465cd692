//! The instruction table, compiled from the syntax of its rows for matching.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::classes;
use super::mods::type_of;
use super::row::Row;
use super::rows;

/// Modifiers that ptxas counts as part of the opcode's name. They stand directly after the root, in the order of the
/// row.
#[rustfmt::skip] // one root per line
const NAME_MODIFIERS: &[(&str, &[&str])] = &[
    ("mul", &[".lo", ".hi", ".wide"]),
    ("mad", &[".lo", ".hi", ".wide"]),
    ("madc", &[".lo", ".hi"]),
    ("mul24", &[".lo", ".hi"]),
    ("mad24", &[".lo", ".hi"]),
    ("dp2a", &[".lo", ".hi"]),
    ("div", &[".full"]),
    ("shf", &[".l", ".r"]),
    ("brx", &[".idx"]),
    ("cvta", &[".to"]),
    ("cvt", &[".pack"]),
    ("createpolicy", &[".fractional", ".range", ".cvt"]),
    ("fence", &[".proxy"]),
    ("membar", &[".proxy"]),
    ("cp", &[".reduce", ".async", ".bulk", ".prefetch", ".tensor"]),
    ("tensormap", &[".replace", ".cp_fenceproxy"]),
    ("st", &[".async"]),
    ("red", &[".async"]),
    ("multimem", &[".ld_reduce", ".st", ".red"]),
    ("mbarrier", &[".init", ".inval", ".expect_tx", ".complete_tx", ".arrive", ".arrive_drop", ".test_wait", ".try_wait", ".pending_count"]),
    ("tex", &[".base", ".level", ".grad"]),
    ("txq", &[".level"]),
    ("suld", &[".b"]),
    ("sust", &[".b", ".p"]),
    ("sured", &[".b", ".p"]),
    ("bar", &[".cta", ".warp", ".sync", ".arrive", ".red"]),
    ("barrier", &[".cta", ".cluster", ".wait", ".sync", ".arrive", ".red"]),
    ("wmma", &[".load", ".store", ".mma", ".a", ".b", ".c", ".d"]),
    ("wgmma", &[".fence", ".mma_async", ".commit_group", ".wait_group"]),
];

/// Returns the modifiers that ptxas counts as part of a root's name.
pub(super) fn name_modifiers(root: &str) -> &'static [&'static str] {
    let found = NAME_MODIFIERS.iter().find(|(name, _)| *name == root);
    found.map_or(&[], |(_, modifiers)| *modifiers)
}

/// A modifier of a compiled row, with its alternatives.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) alternatives: Vec<&'static str>,
    pub(super) required: bool,
    /// True if the alternatives are types.
    pub(super) types: bool,
    /// True if the modifier is part of the opcode's name: see [`name_modifiers`].
    in_name: bool,
}

/// A compiled row.
#[derive(Debug)]
pub(super) struct CompiledRow {
    /// Index of the row in [`Table::rows`].
    pub(super) row: usize,
    pub(super) elements: Vec<Element>,
    /// The possible operand lists, the longest first.
    pub(super) operands: Vec<Vec<&'static str>>,
}

/// The compiled table.
pub(super) struct Table {
    pub(super) rows: Vec<&'static Row>,
    /// The rows of each root.
    pub(super) roots: BTreeMap<&'static str, RowsOfRoot>,
}

/// The rows of one root, which are compiled on first use: most modules use few of the roots.
pub(super) struct RowsOfRoot {
    rows: Vec<(usize, &'static str)>,
    compiled: OnceLock<Vec<CompiledRow>>,
}

impl RowsOfRoot {
    /// Returns the compiled rows.
    pub(super) fn compiled(&self) -> &[CompiledRow] {
        self.compiled.get_or_init(|| {
            let rows = self.rows.iter();
            rows.map(|(index, syntax)| compile(syntax, *index).1).collect()
        })
    }
}

/// Returns the table.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows: Vec<&'static Row> = rows::GROUPS.iter().copied().flatten().collect();
        let mut roots: BTreeMap<&'static str, RowsOfRoot> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let of_root = roots.entry(root_of(row.syntax)).or_insert_with(|| RowsOfRoot {
                rows: Vec::new(),
                compiled: OnceLock::new(),
            });
            of_root.rows.push((index, row.syntax));
        }
        Table { rows, roots }
    })
}

/// A row of the instruction table, for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The instruction in a notation like the manual's: `{…}` is optional, `(a|b)` is a choice, `<class>` is one
    /// modifier of a class (see [`modifier_classes`](crate::modifier_classes)).
    pub syntax: &'static str,
    /// PTX version that introduced the instruction, as major and minor.
    pub ptx: (u32, u32),
    /// Lowest architecture that has the instruction; 0 for all.
    pub sm: u32,
}

/// Returns the instruction table.
pub fn table_rows() -> Vec<TableRow> {
    let row = |row: &&Row| TableRow {
        syntax: row.syntax,
        ptx: (row.ptx / 10, row.ptx % 10),
        sm: row.sm,
    };
    table().rows.iter().map(row).collect()
}

/// Returns the root of a row: its opcode without modifiers.
fn root_of(syntax: &'static str) -> &'static str {
    let end = syntax.find([' ', '.', '{', '<', '(']).unwrap_or(syntax.len());
    &syntax[..end]
}

/// Returns the root and the compiled row. Mistakes in the syntax are not reported here; the tests find them.
pub(super) fn compile(syntax: &'static str, row: usize) -> (&'static str, CompiledRow) {
    let (opcode, operands) = syntax.split_once(' ').unwrap_or((syntax, ""));
    let root = root_of(opcode);
    let mut rest = &opcode[root.len()..];
    let mut elements = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (inner, required, next) = match first {
            '{' | '(' => {
                let close = rest
                    .find(if first == '{' { '}' } else { ')' })
                    .unwrap_or(rest.len() - 1);
                (&rest[1..close], first == '(', &rest[close + 1..])
            }
            '<' => {
                let close = rest.find('>').unwrap_or(rest.len() - 1);
                (&rest[..=close], true, &rest[close + 1..])
            }
            _ => {
                let end = rest[1..].find(['.', '{', '<', '(']).map_or(rest.len(), |i| i + 1);
                (&rest[..end], true, &rest[end..])
            }
        };
        let mut alternatives = Vec::new();
        for part in inner.split('|') {
            match part.strip_prefix('<').and_then(|p| p.strip_suffix('>')) {
                Some(class) => alternatives.extend(classes::members(class)),
                None => alternatives.push(part),
            }
        }
        let types = alternatives.iter().all(|a| type_of(a).is_some());
        let in_name = elements.iter().all(|e: &Element| e.in_name)
            && alternatives.iter().all(|a| name_modifiers(root).contains(a));
        elements.push(Element {
            alternatives,
            required,
            types,
            in_name,
        });
        rest = next;
    }
    (
        root,
        CompiledRow {
            row,
            elements,
            operands: operand_lists(operands.trim()),
        },
    )
}

/// Returns the lists of operands for which a text such as `d, a{, b}` stands: `[d, a, b]` and `[d, a]`.
pub(super) fn operand_lists(text: &'static str) -> Vec<Vec<&'static str>> {
    let split = |text: &'static str| -> Vec<&'static str> {
        text.split(',').map(str::trim).filter(|t| !t.is_empty()).collect()
    };
    let (required, optional) = match text.find("{,") {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let mut lists = vec![split(required)];
    for part in optional.split("{,") {
        let part = part.trim_end_matches('}').trim_start_matches(',').trim();
        if !part.is_empty() {
            let mut longer = lists[0].clone();
            longer.extend(split(part));
            lists.insert(0, longer);
        }
    }
    lists
}

/// Returns true if the modifiers of an opcode match the modifiers of a row.
pub(super) fn fit(elements: &[Element], modifiers: &[&str]) -> bool {
    fn step(elements: &[Element], modifiers: &[&str], used: &mut [bool]) -> bool {
        let Some((element, rest)) = elements.split_first() else {
            return used.iter().all(|u| *u);
        };
        let mut candidates = (0..modifiers.len()).filter(|&i| !used[i]);
        let found = if element.types {
            // Types keep their order: only the next type of the opcode can match.
            let next = candidates.find(|&i| type_of(modifiers[i]).is_some());
            next.filter(|&i| element.alternatives.contains(&modifiers[i]))
        } else {
            let found = candidates.find(|&i| element.alternatives.contains(&modifiers[i]));
            let taken = used.iter().filter(|used| **used).count();
            found.filter(|&i| i == taken || !element.in_name)
        };
        if let Some(i) = found {
            used[i] = true;
            if step(rest, modifiers, used) {
                return true;
            }
            used[i] = false;
        }
        !element.required && step(rest, modifiers, used)
    }
    // Each element matches at most one modifier.
    modifiers.len() <= elements.len() && step(elements, modifiers, &mut vec![false; modifiers.len()])
}
