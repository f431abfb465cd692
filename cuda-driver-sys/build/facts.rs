//! Generates the tables of numbers behind `Function` and `Parameter`, and the values and names of enumerations. Macros
//! could derive the numbers from the table of functions, but about ten thousand macro calls take too long to compile.
//! Tables of structs instead of plain numbers would take four times as long to compile.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::model::{Model, type_text};
use super::registry::{Entry, StreamMode, in_order, twin};

/// Words in one text, each once, and the offsets at which they start.
#[derive(Default)]
struct Text {
    text: String,
    places: BTreeMap<String, usize>,
}

impl Text {
    fn place(&mut self, word: &str) -> usize {
        if let Some(place) = self.places.get(word) {
            return *place;
        }
        let place = self.text.len();
        self.text.push_str(word);
        self.places.insert(word.to_owned(), place);
        place
    }
}

/// Returns the text of `facts.rs` after its first line.
pub(crate) fn facts(model: &Model, registry: &[Entry]) -> String {
    let entries = in_order(registry);
    let place = |symbol: &str| entries.iter().position(|entry| entry.symbol == symbol);
    let (mut symbols, mut names, mut types) = (String::new(), Text::default(), Text::default());
    let mut groups: Vec<&str> = entries.iter().map(|entry| entry.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut kinds: Vec<&str> = Vec::new();
    let (mut facts, mut parameters, mut count) = (String::new(), String::new(), 0);
    for entry in &entries {
        let stream = match entry.stream {
            StreamMode::None => 0,
            StreamMode::Legacy => 1,
            StreamMode::PerThread => 2,
        };
        let twin = twin(entry, registry).and_then(place).unwrap_or(0);
        let group = groups.iter().position(|group| *group == entry.group);
        _ = writeln!(
            facts,
            "    [{}, {}, {}, {stream}, {twin}, {}, {count}], // {}",
            symbols.len(),
            entry.base.len(),
            entry.since,
            group.unwrap_or_default(),
            entry.symbol
        );
        symbols.push_str(&entry.symbol);
        symbols.push('\0');
        if !entry.parameters.is_empty() {
            parameters.push_str("   ");
        }
        for (name, ty) in &entry.parameters {
            if !kinds.contains(&ty.as_str()) {
                kinds.push(ty);
            }
            let kind = kinds.iter().position(|kind| kind == ty);
            // bindgen appends an underscore to names that are keywords of Rust.
            let name = name.strip_suffix('_').unwrap_or(name);
            _ = write!(
                parameters,
                " {}, {}, {},",
                names.place(name),
                name.len(),
                kind.unwrap_or_default()
            );
            count += 1;
        }
        if !entry.parameters.is_empty() {
            parameters.push('\n');
        }
    }
    _ = writeln!(facts, "    [{}, 0, 0, 0, 0, 0, {count}], // the end", symbols.len());
    let mut rows = String::new();
    for kind in kinds {
        let shape = match kind {
            pointer if pointer.starts_with('*') => "Shape::Pointer".to_owned(),
            // The type is an alias of an integer, but its values are printed as addresses.
            "CUdeviceptr" => "Shape::Address".to_owned(),
            other => match enumeration(model, other) {
                Some(number) => format!("Shape::Enumeration(Enumeration({number}))"),
                None => format!("<{other}>::SHAPE"),
            },
        };
        _ = writeln!(rows, "    Type({}, {}, {shape}),", types.place(kind), kind.len());
    }
    let results = enumeration(model, "CUresult").map_or_else(
        || "compile_error!(\"cuda.h does not define CUresult\")".to_owned(),
        |number| format!("Enumeration({number})"),
    );
    let (mut enumerations, mut values, mut value_names, mut first) = (String::new(), String::new(), String::new(), 0);
    for enumeration in &model.enumerations {
        let count = enumeration.values.len();
        _ = writeln!(
            enumerations,
            "    [{first}, {count}, {}], // {}",
            value_names.len(),
            enumeration.name
        );
        first += count;
        value_names.push_str(&enumeration.name);
        value_names.push('\0');
        values.push_str("   ");
        for (name, value) in &enumeration.values {
            _ = write!(values, " {value},");
            value_names.push_str(name);
            value_names.push('\0');
        }
        values.push('\n');
    }
    format!(
        "// The facts about the exported functions, in the order of the numbers in `numbers.rs`, and about the\n\
         // enumerations.\n\n\
         use core::ffi::*;\n\n\
         use super::records::*;\n\
         use crate::parameters::Type;\nuse crate::shape::{{Enumeration, Shape, Shown}};\n\n\
         /// All symbols, each followed by a NUL.\n\
         pub(crate) static SYMBOLS: &str = {symbols:?};\n\n\
         /// Start of the symbol, length of the base name, CUDA version that introduced it, stream mode (0 none, 1 legacy,\n\
         /// 2 per-thread), index of the per-thread twin or 0, index of the group, and index of the first parameter.\n\
         pub(crate) static FACTS: &[[u16; 7]] = &[\n{facts}];\n\n\
         /// Groups of the manual.\n\
         pub(crate) static GROUPS: &[&str] = &{groups:?};\n\n\
         /// The names of all parameters.\n\
         pub(crate) static NAMES: &str = {:?};\n\n\
         /// Three numbers for each parameter: start and length of the name, and index of the type. One line per function.\n\
         pub(crate) static PARAMETERS: &[u16] = &[\n{parameters}];\n\n\
         /// The names of all types of parameters.\n\
         pub(crate) static TYPE_NAMES: &str = {:?};\n\n\
         /// Start and length of the name of a type, and the form of its values.\n\
         pub(crate) static TYPES: &[Type] = &[\n{rows}];\n\n\
         /// Index of the first value, number of values, and start of the names, for each enumeration.\n\
         pub(crate) static ENUMERATIONS: &[[u32; 3]] = &[\n{enumerations}];\n\n\
         /// The enumeration of the result codes.\n\
         pub(crate) const RESULTS: Enumeration = {results};\n\n\
         /// The values of all enumerations.\n\
         pub(crate) static VALUES: &[u32] = &[\n{values}];\n\n\
         /// The name of each enumeration, followed by the names of its values; each name is followed by a NUL.\n\
         pub(crate) static VALUE_NAMES: &str = {value_names:?};\n",
        names.text, types.text
    )
}

/// Returns the index of the enumeration that is the type of a parameter; `None` for other types.
fn enumeration(model: &Model, ty: &str) -> Option<usize> {
    let mut name = ty.to_owned();
    while let Some(alias) = model.aliases.iter().find(|alias| alias.name == name) {
        name = type_text(&alias.target);
    }
    model
        .enumerations
        .iter()
        .position(|enumeration| enumeration.name == name || enumeration.tag.as_deref() == Some(name.as_str()))
}
