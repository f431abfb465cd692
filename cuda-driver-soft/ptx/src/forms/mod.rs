//! The instruction table: which opcodes with which modifiers there are, what operands they take, since when.
//!
//! A row is a line of the PTX manual's own syntax ([`Row::syntax`]), in this notation:
//!
//! | text | meaning |
//! |--|--|
//! | `.sat` | the modifier is required |
//! | `{.a\|.b}` | one of these, or none |
//! | `(.a\|.b)` | one of these |
//! | `<int>`, `{<rnd>}` | one of a class of [`CLASSES`], required or not |
//!
//! Like ptxas, the matcher takes modifiers in any order; only types keep theirs. Operands, separated by commas:
//!
//! | text | meaning |
//! |--|--|
//! | `d`, `e` | destination register |
//! | `a`, `b`, `c` | source: register or constant |
//! | `p`, `p\|q`, `d\|p` | destination predicate; a pair whose second may be missing |
//! | `!c` | source predicate that may be negated; `!a`, `!b`: source of the type, negated only as a predicate |
//! | `#i` | constant |
//! | `[a]` | address |
//! | `:t` after any of these | of type `.t` rather than of the instruction's (last) type; `:1` of the first type in the opcode, `:w` twice as wide as the type |
//! | `~` at the end | registers may be wider than the type |
//! | `?` at the end | may be `_` |
//! | `&` at the end | of a pair, both |
//! | `policy` | cache policy, where the opcode says `.L2::cache_hint` |
//! | `*` at the end | a vector where the opcode says `.v2`, `.v4`, `.v8` |
//! | `^4` at the end | a vector of so many; `^n/2`: half as many as the shape has columns |
//! | `{, x}` | may be left out |

mod asynchronous;
mod bits;
mod control;
mod float;
mod integer;
mod later;
mod matrix;
mod memory;
mod mods;
mod movement;
mod samples;
mod texture;
mod video;
mod wgmma;

pub(super) use mods::Mods;
pub use samples::{Sample, every_form, later_roots, modifier_classes, samples};

use super::names::FastMap;
use crate::ir::{BoolOp, Op, Space, Type, VideoInst, Wgmma};
use std::sync::OnceLock;

/// A line of the table.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// In the manual's notation, see the module's text.
    pub(super) syntax: &'static str,
    /// PTX version that introduced it, times ten.
    pub(super) ptx: u32,
    /// Lowest architecture that has it.
    pub(super) sm: u32,
    /// What it is lowered to.
    pub(super) make: fn(&Mods) -> Result<Made, Reject>,
}

/// A shorthand for the tables.
const fn row(
    syntax: &'static str,
    ptx: u32,
    sm: u32,
    make: fn(&Mods) -> Result<Made, Reject>,
) -> Row {
    Row {
        syntax,
        ptx,
        sm,
        make,
    }
}

/// What an instruction is lowered to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Made {
    /// This operation, whose operands are those written.
    Op(Op),
    /// `ld`, `st`, `atom` …: the address operand's space and offset go into the operation.
    Memory(Op),
    /// `cp.async`, `mbarrier`: the addresses become the first sources.
    Pointers(Op),
    /// `st.async`, `red.async`: this, and then a barrier is told how many bytes it was.
    Told(Op),
    /// `mapa`, `getctarank`: the address may be that of a variable.
    Mapa {
        rank: bool,
    },
    /// Operands are checked, then nothing is done. The space is that of the address, if there is one.
    Hint(Space),
    /// `createpolicy`: the same, and the result is this.
    Policy(u64),
    /// `mov`: of registers, addresses, special registers; packing and unpacking.
    Mov {
        ty: Type,
        vec: u8,
    },
    /// `lop3`, whose table is a constant operand.
    Lop3(Option<BoolOp>),
    /// `cvta space d, a`, whose source may be a variable.
    Cvta(Op),
    /// `tex`, `suld` and their kin: the address operand is a handle, perhaps with coordinates.
    Texture(Op),
    /// A video instruction, whose operands may have selectors.
    Video(VideoInst),
    /// `wgmma.mma_async`: the accumulator is read too, and constants go into the operation.
    Wgmma(Wgmma),
    Bra {
        uni: bool,
    },
    Brx {
        uni: bool,
    },
    Call {
        uni: bool,
    },
    /// `add.cc` and the like: reads and writes the condition code.
    Carry {
        op: Op,
        reads: bool,
        writes: bool,
    },
    /// Known, but not run by this driver yet.
    Unsupported,
}

/// Why modifiers that are all known do not go together, in ptxas's words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reject(pub(super) String);

/// What an operand may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// `d`
    Dest,
    /// `p|q`: one or two predicates
    DestPair,
    /// `d|p`: a destination and a predicate
    DestBoth,
    /// `a`
    Source,
    /// `!c`
    Predicate,
    /// `#i`
    Constant,
    /// `[a]`
    Address,
}

/// One operand of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) role: Role,
    pub(super) ty: Type,
    /// Registers may be wider than the type.
    pub(super) wider: bool,
    /// May be `_`.
    pub(super) sink: bool,
    /// Number of elements; more than one: a vector operand.
    pub(super) vec: u8,
    /// May be written as a vector, if only of one element: `{a}`.
    pub(super) braces: bool,
    /// Has to be.
    pub(super) always_braces: bool,
}

impl Spec {
    /// The first of a pair: may be `_` where it is a predicate.
    pub(super) fn pair_first(&self) -> Spec {
        Spec {
            sink: self.sink || self.ty == Type::Pred,
            ..*self
        }
    }
}

/// An opcode with its modifiers, understood.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The opcode without modifiers.
    pub(super) root: &'static str,
    /// The opcode as messages name it: with the modifiers that are part of its name.
    pub(super) name: String,
    /// What it may be; the number of operands decides which.
    pub(super) candidates: Vec<Candidate>,
    /// The PTX version and architecture that it needs.
    pub(super) ptx: u32,
    pub(super) sm: u32,
    /// Takes any number of operands of any kind.
    pub(super) any_operands: bool,
}

/// One way to read an opcode: what it does, with which operands.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) specs: Vec<Spec>,
    pub(super) made: Made,
}

/// Classes of modifiers. A class has types only, or none.
#[rustfmt::skip] // long lists
const CLASSES: &[(&str, &str)] = &[
    ("int", ".u16|.u32|.u64|.s16|.s32|.s64"),
    ("int8", ".u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64"),
    ("int32", ".u32|.s32"),
    ("int3264", ".u32|.u64|.s32|.s64"),
    ("signed", ".s16|.s32|.s64"),
    ("bits", ".b16|.b32|.b64"),
    ("bits3264", ".b32|.b64"),
    (
        "plain",
        ".b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64",
    ),
    (
        "mem",
        ".b8|.b16|.b32|.b64|.b128|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64",
    ),
    ("half", ".f16|.f16x2"),
    ("bhalf", ".bf16|.bf16x2"),
    ("f8x2", ".e4m3x2|.e5m2x2"),
    ("size", ".u32|.u64"),
    ("rnd", ".rn|.rz|.rm|.rp"),
    ("irnd", ".rni|.rzi|.rmi|.rpi"),
    (
        "cmp",
        ".eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan",
    ),
    ("bool", ".and|.or|.xor"),
    ("scope", ".cta|.cluster|.gpu|.sys"),
    ("vec", ".v2|.v4|.v8"),
    ("shared", ".shared|.shared::cta|.shared::cluster"),
    (
        "l1",
        ".L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate",
    ),
    ("cop", ".ca|.cg|.cs|.lu|.cv"),
    ("wop", ".wb|.cg|.cs|.wt"),
    ("sharedcta", ".shared|.shared::cta"),
    ("gs", ".global|.shared|.shared::cta|.shared::cluster"),
    ("asem", ".relaxed|.acquire|.release|.acq_rel"),
    ("rsem", ".relaxed|.release"),
    ("pf", ".L2::64B|.L2::128B|.L2::256B"),
    ("m64k16", ".m64n8k16|.m64n16k16|.m64n24k16|.m64n32k16|.m64n40k16|.m64n48k16|.m64n56k16|.m64n64k16|.m64n72k16|.m64n80k16|.m64n88k16|.m64n96k16|.m64n104k16|.m64n112k16|.m64n120k16|.m64n128k16|.m64n136k16|.m64n144k16|.m64n152k16|.m64n160k16|.m64n168k16|.m64n176k16|.m64n184k16|.m64n192k16|.m64n200k16|.m64n208k16|.m64n216k16|.m64n224k16|.m64n232k16|.m64n240k16|.m64n248k16|.m64n256k16"),
    ("m64k8", ".m64n8k8|.m64n16k8|.m64n24k8|.m64n32k8|.m64n40k8|.m64n48k8|.m64n56k8|.m64n64k8|.m64n72k8|.m64n80k8|.m64n88k8|.m64n96k8|.m64n104k8|.m64n112k8|.m64n120k8|.m64n128k8|.m64n136k8|.m64n144k8|.m64n152k8|.m64n160k8|.m64n168k8|.m64n176k8|.m64n184k8|.m64n192k8|.m64n200k8|.m64n208k8|.m64n216k8|.m64n224k8|.m64n232k8|.m64n240k8|.m64n248k8|.m64n256k8"),
    ("m64k32", ".m64n8k32|.m64n16k32|.m64n24k32|.m64n32k32|.m64n40k32|.m64n48k32|.m64n56k32|.m64n64k32|.m64n72k32|.m64n80k32|.m64n88k32|.m64n96k32|.m64n104k32|.m64n112k32|.m64n120k32|.m64n128k32|.m64n136k32|.m64n144k32|.m64n152k32|.m64n160k32|.m64n168k32|.m64n176k32|.m64n184k32|.m64n192k32|.m64n200k32|.m64n208k32|.m64n216k32|.m64n224k32|.m64n232k32|.m64n240k32|.m64n248k32|.m64n256k32"),
    ("m64k32int", ".m64n8k32|.m64n16k32|.m64n24k32|.m64n32k32|.m64n48k32|.m64n64k32|.m64n80k32|.m64n96k32|.m64n112k32|.m64n128k32|.m64n144k32|.m64n160k32|.m64n176k32|.m64n192k32|.m64n208k32|.m64n224k32|.m64n240k32|.m64n256k32"),
    ("m64k256", ".m64n8k256|.m64n16k256|.m64n24k256|.m64n32k256|.m64n48k256|.m64n64k256|.m64n80k256|.m64n96k256|.m64n112k256|.m64n128k256|.m64n144k256|.m64n160k256|.m64n176k256|.m64n192k256|.m64n208k256|.m64n224k256|.m64n240k256|.m64n256k256"),
];

/// Modifiers that are younger than the instructions they go with: root (empty: any), modifier, PTX version times ten,
/// lowest architecture.
#[rustfmt::skip] // a modifier is a line
const SINCE: &[(&str, &str, u32, u32)] = &[
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

/// Modifiers that are part of an opcode's name to ptxas: they follow the root at once, in the order of the row.
#[rustfmt::skip] // a root is a line
const FIRST: &[(&str, &[&str])] = &[
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
    ("cp", &[".reduce", ".async", ".bulk", ".prefetch"]),
    ("st", &[".async"]),
    ("red", &[".async"]),
    ("mbarrier", &[".init", ".inval", ".expect_tx", ".complete_tx", ".arrive", ".arrive_drop", ".test_wait", ".try_wait", ".pending_count"]),
    ("tex", &[".base", ".level", ".grad"]),
    ("txq", &[".level"]),
    ("suld", &[".b"]),
    ("sust", &[".b", ".p"]),
    ("sured", &[".b", ".p"]),
    ("bar", &[".cta", ".warp", ".sync", ".arrive", ".red"]),
    ("barrier", &[".cta", ".cluster", ".wait", ".sync", ".arrive", ".red"]),
    ("wgmma", &[".fence", ".mma_async", ".commit_group", ".wait_group"]),
];

/// An element of a compiled row's modifiers.
#[derive(Debug)]
struct Element {
    alternatives: Vec<&'static str>,
    required: bool,
    /// The alternatives are types.
    types: bool,
    /// Stands right after the root, or after another one that does.
    first: bool,
}

#[derive(Debug)]
struct Compiled {
    row: usize,
    elements: Vec<Element>,
    /// The operand lists: the longest first.
    operands: Vec<Vec<&'static str>>,
}

/// The whole table, compiled.
struct Table {
    rows: Vec<&'static Row>,
    roots: FastMap<&'static str, Vec<Compiled>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let groups = [
            integer::ROWS,
            bits::ROWS,
            float::ROWS,
            memory::ROWS,
            movement::ROWS,
            control::ROWS,
            asynchronous::ROWS,
            matrix::ROWS,
            wgmma::ROWS,
            video::ROWS,
            texture::ROWS,
        ];
        let rows: Vec<&'static Row> = groups.into_iter().flatten().collect();
        let mut roots: FastMap<&'static str, Vec<Compiled>> = FastMap::default();
        for (index, row) in rows.iter().enumerate() {
            let (root, compiled) = compile(row.syntax, index);
            roots.entry(root).or_default().push(compiled);
        }
        Table { rows, roots }
    })
}

/// A line of the instruction table, for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// In the manual's notation: `{…}` may be left out, `(a|b)` is a choice, `<class>` one of a class of modifiers.
    pub syntax: &'static str,
    /// PTX version that introduced it, as major and minor.
    pub ptx: (u32, u32),
    /// Lowest architecture that has it; 0 for all.
    pub sm: u32,
}

/// The instruction table.
pub fn table_rows() -> Vec<TableRow> {
    let row = |row: &&Row| TableRow {
        syntax: row.syntax,
        ptx: (row.ptx / 10, row.ptx % 10),
        sm: row.sm,
    };
    table().rows.iter().map(row).collect()
}

/// Root, and the rest compiled. A mistake in the table shows in the tests, not at run time: what cannot be understood
/// makes a row that matches nothing.
fn compile(syntax: &'static str, row: usize) -> (&'static str, Compiled) {
    let (opcode, operands) = syntax.split_once(' ').unwrap_or((syntax, ""));
    let end = opcode.find(['.', '{', '<', '(']).unwrap_or(opcode.len());
    let (root, mut rest) = opcode.split_at(end);
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
                let end = rest[1..]
                    .find(['.', '{', '<', '('])
                    .map_or(rest.len(), |i| i + 1);
                (&rest[..end], true, &rest[end..])
            }
        };
        let mut alternatives = Vec::new();
        for part in inner.split('|') {
            match part.strip_prefix('<').and_then(|p| p.strip_suffix('>')) {
                Some(class) => {
                    let members = CLASSES
                        .iter()
                        .find(|(name, _)| *name == class)
                        .map_or("", |(_, members)| members);
                    alternatives.extend(members.split('|'));
                }
                None => alternatives.push(part),
            }
        }
        let types = alternatives.iter().all(|a| mods::type_of(a).is_some());
        let named = FIRST
            .iter()
            .find(|(name, _)| *name == root)
            .map_or(&[][..], |(_, named)| *named);
        let first = elements.iter().all(|e: &Element| e.first)
            && alternatives.iter().all(|a| named.contains(a));
        elements.push(Element {
            alternatives,
            required,
            types,
            first,
        });
        rest = next;
    }
    (
        root,
        Compiled {
            row,
            elements,
            operands: operand_lists(operands.trim()),
        },
    )
}

/// `d, a{, b}` as `[d, a, b]` and `[d, a]`.
fn operand_lists(text: &'static str) -> Vec<Vec<&'static str>> {
    let split = |text: &'static str| -> Vec<&'static str> {
        text.split(',')
            .map(str::trim)
            .filter(|t| !t.is_empty())
            .collect()
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

/// Which modifier of the opcode each element took; `None`: the row does not fit.
fn fit(elements: &[Element], modifiers: &[&str]) -> bool {
    fn step(elements: &[Element], modifiers: &[&str], used: &mut [bool]) -> bool {
        let Some((element, rest)) = elements.split_first() else {
            return used.iter().all(|u| *u);
        };
        let mut candidates = (0..modifiers.len()).filter(|&i| !used[i]);
        let found = if element.types {
            // Types keep their order: the next one, or none.
            let next = candidates.find(|&i| mods::type_of(modifiers[i]).is_some());
            next.filter(|&i| element.alternatives.contains(&modifiers[i]))
        } else {
            let found = candidates.find(|&i| element.alternatives.contains(&modifiers[i]));
            let taken = used.iter().filter(|used| **used).count();
            found.filter(|&i| i == taken || !element.first)
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
    step(elements, modifiers, &mut vec![false; modifiers.len()])
}

/// What is wrong with an opcode.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FormErrors(pub(super) Vec<String>);

/// Understands an opcode with its modifiers.
pub(super) fn find(opcode: &str) -> Result<Form, FormErrors> {
    let (root, rest) = opcode
        .split_once('.')
        .map_or((opcode, None), |(root, rest)| (root, Some(rest)));
    let modifiers: Vec<&str> = rest.map_or_else(Vec::new, |_| mods::split(&opcode[root.len()..]));
    let table = table();
    let Some((&root, rows)) = table.roots.get_key_value(root) else {
        return later::find(root, &modifiers);
    };
    let named = FIRST
        .iter()
        .find(|(name, _)| *name == root)
        .map_or(&[][..], |(_, named)| *named);
    let mut form = Form {
        root,
        name: modifiers
            .iter()
            .take_while(|m| named.contains(m))
            .fold(root.to_owned(), |name, m| name + m),
        candidates: Vec::new(),
        ptx: u32::MAX,
        sm: u32::MAX,
        any_operands: false,
    };
    let mut reject = None;
    for compiled in rows {
        if !fit(&compiled.elements, &modifiers) {
            continue;
        }
        let row = table.rows[compiled.row];
        let mods = Mods::new(&modifiers);
        let made = match (row.make)(&mods) {
            Ok(made) => made,
            Err(why) => {
                reject.get_or_insert(why.0);
                continue;
            }
        };
        let young = SINCE
            .iter()
            .filter(|(of, name, _, _)| (of.is_empty() || *of == root) && mods.has(name));
        let (ptx, sm) = young.fold((row.ptx, row.sm), |(ptx, sm), since| {
            (ptx.max(since.2), sm.max(since.3))
        });
        (form.ptx, form.sm) = (form.ptx.min(ptx), form.sm.min(sm));
        for list in &compiled.operands {
            // A cache policy is given exactly where the opcode says so.
            if list.contains(&"policy") != mods.has(".L2::cache_hint")
                && compiled.operands.len() > 1
            {
                continue;
            }
            let specs = list.iter().map(|text| spec(text, &mods)).collect();
            form.candidates.push(Candidate {
                specs,
                made: made.clone(),
            });
        }
    }
    if form.candidates.is_empty() {
        if let Ok(form) = later::find(root, &modifiers) {
            return Ok(form);
        }
        return Err(FormErrors(match reject {
            Some(why) => vec![why],
            None => why_not(&form.name, rows, &modifiers),
        }));
    }
    Ok(form)
}

/// The operand that a text of the table means, with these modifiers.
fn spec(text: &str, mods: &Mods) -> Spec {
    let (text, count) = text.split_once('^').unwrap_or((text, ""));
    let bare = text.trim_end_matches(['~', '?', '*', '&']);
    let flags = &text[bare.len()..];
    let (name, ty) = bare.split_once(':').unwrap_or((bare, ""));
    let role = match name {
        "d" | "e" | "p" => Role::Dest,
        "p|q" | "d|p" if flags.contains('&') => Role::DestBoth,
        "p|q" | "d|p" => Role::DestPair,
        _ if name.starts_with('!') => Role::Predicate,
        _ if name.starts_with('#') => Role::Constant,
        _ if name.starts_with('[') => Role::Address,
        _ => Role::Source,
    };
    let last = mods.types().last().copied().unwrap_or(Type::B32);
    let ty = match ty {
        _ if matches!(name, "p" | "p|q" | "!c") => Type::Pred,
        _ if name == "policy" => Type::U64,
        "" => last,
        "w" => mods::wide(last),
        "1" => mods.ty(0),
        "2" => mods.ty(1),
        name => mods::type_of_name(name).unwrap_or(last),
    };
    let vec = match count.parse() {
        Ok(count) => count,
        Err(_) if count.starts_with("n/") => wgmma::columns(mods, count),
        Err(_) if flags.contains('*') => mods.vec(),
        Err(_) => 1,
    };
    Spec {
        role,
        ty,
        wider: flags.contains('~'),
        sink: flags.contains('?'),
        vec,
        braces: flags.contains('*') || !count.is_empty(),
        always_braces: !count.is_empty(),
    }
}

/// Why no row fits, in ptxas's words: what would have to be added or left out.
fn why_not(name: &str, rows: &[Compiled], modifiers: &[&str]) -> Vec<String> {
    let unknown = modifiers
        .iter()
        .filter(|modifier| !mods::is_known(modifier));
    let mut messages: Vec<String> = unknown.map(|m| format!("Unknown modifier '{m}'")).collect();
    let fits = |modifiers: &[&str]| rows.iter().any(|row| fit(&row.elements, modifiers));
    let with = |more: &'static str| {
        let mut all = modifiers.to_vec();
        // Before the types, as it is written.
        let at = all
            .iter()
            .position(|m| mods::type_of(m).is_some())
            .unwrap_or(all.len());
        all.insert(at, more);
        fits(&all)
    };
    let without = |i: usize| {
        let mut fewer = modifiers.to_vec();
        fewer.remove(i);
        fits(&fewer)
    };
    if !messages.is_empty() {
        let known: Vec<&str> = modifiers
            .iter()
            .copied()
            .filter(|modifier| mods::is_known(modifier))
            .collect();
        if fits(&known) {
            return messages;
        }
        let at = known.iter().position(|m| mods::type_of(m).is_some());
        let mut compared = known;
        compared.insert(at.unwrap_or(compared.len()), ".eq");
        if fits(&compared) {
            let message = format!("Comparison modifier required for instruction '{name}'");
            messages.push(message);
            return messages;
        }
    }
    if messages.is_empty() {
        let rounds = with(".rn") || with(".rzi");
        let what = match (rounds, with(".approx")) {
            (true, true) => Some("Rounding modifier or '.approx' modifier required"),
            (true, false) => Some("Rounding modifier required"),
            (false, true) => Some(".approx modifier required"),
            (false, false) => None,
        };
        if let Some(what) = what {
            return vec![format!("{what} for instruction '{name}'")];
        }
        if with(".eq") {
            return vec![format!(
                "Comparison modifier required for instruction '{name}'"
            )];
        }
        if let Some(i) =
            (0..modifiers.len()).find(|&i| mods::type_of(modifiers[i]).is_none() && without(i))
        {
            let modifier = modifiers[i];
            let rounding =
                [".rn", ".rz", ".rm", ".rp", ".rni", ".rzi", ".rmi", ".rpi"].contains(&modifier);
            return vec![if rounding {
                format!("Illegal rounding modifier for instruction '{name}'")
            } else {
                format!("Illegal modifier '{modifier}' for instruction '{name}'")
            }];
        }
    }
    messages.push(format!(
        "Unexpected instruction types specified for '{name}'"
    ));
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_understood() {
        for row in &table().rows {
            let (root, compiled) = compile(row.syntax, 0);
            assert!(!root.is_empty(), "{}", row.syntax);
            for element in &compiled.elements {
                assert!(!element.alternatives.is_empty(), "{}", row.syntax);
                for alternative in &element.alternatives {
                    assert!(
                        mods::is_known(alternative),
                        "{alternative} in {}",
                        row.syntax
                    );
                }
            }
            let types = compiled
                .elements
                .iter()
                .filter(|e| e.alternatives.iter().any(|a| mods::type_of(a).is_some()));
            assert!(
                types.clone().all(|e| e.types),
                "types and others in one class: {}",
                row.syntax
            );
        }
    }

    #[test]
    fn every_row_gives_a_form() {
        let forms = every_form();
        assert!(forms.len() > 5000, "{}", forms.len());
        for row in &table().rows {
            let (root, compiled) = compile(row.syntax, 0);
            let fits = |(opcode, _): &(String, Option<Op>)| {
                let (found, rest) = opcode.split_at(root.len().min(opcode.len()));
                found == root
                    && (rest.is_empty() || rest.starts_with('.'))
                    && fit(&compiled.elements, &mods::split(rest))
            };
            assert!(forms.iter().any(fits), "no form of {}", row.syntax);
        }
    }

    #[test]
    fn operands_of_a_syntax_line() {
        assert_eq!(
            operand_lists("d, a{, b}"),
            [vec!["d", "a", "b"], vec!["d", "a"]]
        );
        assert_eq!(operand_lists("[a]"), [vec!["[a]"]]);
        assert_eq!(operand_lists(""), [Vec::<&str>::new()]);
    }
}
