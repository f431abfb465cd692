//! The registry, read and checked: what each call takes and gives.

use std::collections::{BTreeMap, BTreeSet};

/// The oldest driver that is supported: CUDA 11.7.
const OLDEST: u32 = 11070;

/// One checked call.
#[derive(Debug)]
pub(super) struct Call {
    /// The exported symbol, `cuMemAlloc_v2`.
    pub(super) symbol: String,
    /// The name that the sys crate has it under, `cuMemAlloc`.
    pub(super) name: String,
    /// Every name that C programs call it by.
    pub(super) plain: Vec<String>,
    /// Whether the sys crate has it in `legacy` only.
    pub(super) legacy: bool,
    pub(super) since: u32,
    pub(super) group: String,
    pub(super) does: String,
    pub(super) safety: Option<String>,
    /// The older export that `src/checked/fallback.rs` does without this one with.
    pub(super) fallback: Option<Older>,
    /// The call that does the same better.
    pub(super) replaced_by: Option<Other>,
    /// The result codes that the manual names.
    pub(super) results: Vec<String>,
    /// Parameters that hold flags, and what is allowed there.
    pub(super) flags: Vec<(String, String)>,
    pub(super) parameters: Vec<Parameter>,
}

/// What is called where an export is lacking.
#[derive(Debug)]
pub(super) struct Older {
    pub(super) symbol: String,
    pub(super) since: u32,
    /// A sentence on what it cannot do.
    pub(super) lacks: Option<String>,
}

/// Another checked call: the name that the sys crate has it under, and whether that is in `legacy`.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) name: String,
    pub(super) legacy: bool,
}

/// One parameter of the C function.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) ty: CType,
    pub(super) kind: Kind,
    /// Whether C may pass null for it.
    pub(super) nullable: bool,
}

/// A C type: a base and how many pointers there are to it.
#[derive(Debug, Clone)]
pub(super) struct CType {
    pub(super) base: String,
    pub(super) constant: bool,
    pub(super) pointers: usize,
}

/// How many elements an array has.
#[derive(Debug, Clone)]
pub(super) enum Count {
    /// What a parameter says, less a number.
    Parameter {
        name: String,
        less: usize,
    },
    /// What a parameter points to; the call may change it.
    Pointer {
        name: String,
    },
    Fixed(usize),
}

/// What a parameter is; see the head of `annotations.toml`.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Value,
    Destroyed,
    Released,
    Raw,
    In { optional: bool },
    InOut { optional: bool },
    Out { name: Option<String>, owner: Owner },
    Truth,
    OutArray(usize),
    Text,
    String { count: String },
    Str { optional: bool },
    Slice { count: Count, optional: bool },
    SliceMut { count: Count, optional: bool },
    Bytes { count: Count },
    Buffer { count: Count },
    Vector { count: String },
    List { count: String },
    Copied { count: String },
}

/// Whose a value is that a call gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is a plain value.
    Nobody,
    /// The caller's, to destroy.
    Caller,
    /// The driver's, or whose it was before.
    Other,
    /// It goes with what this parameter names.
    Parameter(String),
}

/// The calls that both files describe, in the order of `annotations.toml`'s groups and then of names.
pub(super) fn calls(functions: &str, annotations: &str) -> Result<Vec<Call>, String> {
    let functions: toml::Table = functions
        .parse()
        .map_err(|e| format!("functions.toml: {e}"))?;
    let mut annotations: toml::Table = annotations
        .parse()
        .map_err(|e| format!("annotations.toml: {e}"))?;
    let list = functions
        .get("function")
        .and_then(toml::Value::as_array)
        .ok_or("functions.toml: no [[function]]")?;

    let mut plain = BTreeSet::new();
    for function in list {
        for name in strings(function.get("plain"))? {
            plain.insert(name);
        }
    }
    let mut calls = Vec::new();
    let mut missing = Vec::new();
    for function in list {
        let symbol = text(function, "symbol")?;
        let stream = text(function, "stream")?;
        let Some(annotation) = annotations.remove(&symbol) else {
            // What says its stream mode in its name is as its twin.
            if stream != "per-thread" {
                missing.push(symbol);
            }
            continue;
        };
        if let Some(newer) = annotation.get("replaced_by") {
            let known = newer.as_str().is_some_and(|newer| {
                list.iter()
                    .any(|function| text(function, "symbol").as_deref() == Ok(newer))
            });
            if !known {
                return Err(format!(
                    "annotations.toml: [{symbol}] is replaced by an unknown function"
                ));
            }
        }
        if annotation.get("does").is_none() && annotation.get("replaced_by").is_some() {
            continue;
        }
        let call = read(&symbol, function, &annotation, list, &plain)
            .map_err(|e| format!("annotations.toml: [{symbol}] {e}"))?;
        calls.push(call);
    }
    if !missing.is_empty() {
        return Err(format!(
            "annotations.toml lacks {}: {}",
            missing.len(),
            missing.join(", ")
        ));
    }
    if let Some((unknown, _)) = annotations.into_iter().next() {
        return Err(format!(
            "annotations.toml: [{unknown}] is no exported function"
        ));
    }
    let mut names = BTreeMap::new();
    for call in &calls {
        if let Some(other) =
            names.insert((super::names::call(&call.name), call.legacy), &call.symbol)
        {
            return Err(format!(
                "{other} and {} would have the same name in Rust",
                call.symbol
            ));
        }
    }
    Ok(calls)
}

fn read(
    symbol: &str,
    function: &toml::Value,
    annotation: &toml::Value,
    list: &[toml::Value],
    plain: &BTreeSet<String>,
) -> Result<Call, String> {
    let own_plain = strings(function.get("plain"))?;
    let Other { name, legacy } = rust_name(symbol, function, plain)?;
    let since = since_of(function)?;
    let empty = toml::Table::new();
    let kinds = match annotation.get("parameters") {
        None => &empty,
        Some(table) => table.as_table().ok_or("`parameters` is no table")?,
    };
    let mut parameters = Vec::new();
    for parameter in function
        .get("parameters")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = text(parameter, "name")?;
        let ty = CType::parse(&text(parameter, "type")?);
        let (kind, nullable) = match kinds.get(&name) {
            None => (Kind::Value, false),
            Some(kind) => {
                let kind = kind
                    .as_str()
                    .ok_or_else(|| format!("the kind of {name} is no string"))?;
                let parsed =
                    Kind::parse(kind).ok_or_else(|| format!("{name}: unknown kind {kind:?}"))?;
                (parsed, kind.ends_with('?'))
            }
        };
        parameters.push(Parameter {
            name,
            ty,
            kind,
            nullable,
        });
    }
    for name in kinds.keys() {
        if !parameters.iter().any(|parameter| parameter.name == *name) {
            return Err(format!("there is no parameter {name}"));
        }
    }
    let call = Call {
        symbol: symbol.to_owned(),
        name,
        plain: own_plain,
        legacy,
        since,
        group: text(annotation, "group")?,
        does: text(annotation, "does")?,
        safety: annotation
            .get("safety")
            .and_then(toml::Value::as_str)
            .map(str::to_owned),
        fallback: match annotation.get("fallback") {
            None => None,
            Some(older) => {
                let (older, entry) = other(older, list)?;
                Some(Older {
                    since: since_of(entry)?,
                    symbol: older,
                    lacks: text(annotation, "older_lacks").ok(),
                })
            }
        },
        replaced_by: match annotation.get("replaced_by") {
            None => None,
            Some(newer) => {
                let (newer, entry) = other(newer, list)?;
                Some(rust_name(&newer, entry, plain)?)
            }
        },
        results: strings(annotation.get("results"))?,
        flags: flags(annotation),
        parameters,
    };
    call.check()?;
    Ok(call)
}

/// The name that the sys crate has an export under.
fn rust_name(
    symbol: &str,
    function: &toml::Value,
    plain: &BTreeSet<String>,
) -> Result<Other, String> {
    let own_plain = strings(function.get("plain"))?;
    Ok(Other {
        legacy: plain.contains(symbol) && !own_plain.iter().any(|name| name == symbol),
        name: own_plain
            .first()
            .cloned()
            .unwrap_or_else(|| symbol.to_owned()),
    })
}

/// An export that an annotation names, and what `functions.toml` says of it.
fn other<'a>(
    named: &toml::Value,
    list: &'a [toml::Value],
) -> Result<(String, &'a toml::Value), String> {
    let symbol = named.as_str().ok_or("the name of an export is no string")?;
    let entry = list
        .iter()
        .find(|function| text(function, "symbol").as_deref() == Ok(symbol));
    let entry = entry.ok_or_else(|| format!("{symbol} is no exported function"))?;
    Ok((symbol.to_owned(), entry))
}

fn since_of(function: &toml::Value) -> Result<u32, String> {
    function
        .get("since")
        .and_then(toml::Value::as_integer)
        .and_then(|since| u32::try_from(since).ok())
        .ok_or_else(|| "functions.toml has no `since` for it".to_owned())
}

/// Parameters that hold flags, with what the annotation says of each.
fn flags(annotation: &toml::Value) -> Vec<(String, String)> {
    let table = annotation.get("flags").and_then(toml::Value::as_table);
    table
        .into_iter()
        .flatten()
        .filter_map(|(name, flags)| Some((name.clone(), flags.as_str()?.to_owned())))
        .collect()
}

impl Call {
    /// Whether some array is counted by this parameter, so that the caller does not give it.
    pub(super) fn is_counted(&self, name: &str) -> bool {
        self.parameters
            .iter()
            .any(|parameter| match &parameter.kind {
                Kind::String { count } | Kind::List { count } | Kind::Copied { count } => {
                    count == name
                }
                Kind::Slice { count, .. }
                | Kind::SliceMut { count, .. }
                | Kind::Bytes { count }
                | Kind::Buffer { count } => count.is(name),
                _ => false,
            })
    }

    /// Every direction must agree with the type, and a plain name of C must work on the oldest driver.
    fn check(&self) -> Result<(), String> {
        let is_plain = self.name != self.symbol;
        if is_plain && self.since > OLDEST && self.fallback.is_none() {
            return Err(format!(
                "`{}` is a plain name of C, and this export is newer than the oldest driver: it needs a `fallback`",
                self.name
            ));
        }
        for parameter in &self.parameters {
            let Parameter { name, ty, kind, .. } = parameter;
            let counted = self.is_counted(name);
            let fits = match kind {
                Kind::Value => ty.pointers == 0 || counted,
                Kind::Destroyed | Kind::Released => ty.pointers == 0,
                Kind::Raw => ty.pointers > 0,
                Kind::In { .. } => ty.pointers == 1 && ty.base != "void",
                Kind::InOut { .. } | Kind::OutArray(_) | Kind::Vector { .. } => {
                    ty.pointers == 1 && !ty.constant && ty.base != "void"
                }
                Kind::List { .. } => ty.pointers == 1 && !ty.constant,
                Kind::Truth => {
                    ty.pointers < 2 && ["int", "unsigned int"].contains(&ty.base.as_str())
                }
                Kind::Copied { .. } => ty.pointers == 2 && ty.constant && ty.base != "void",
                // `const T **` gives a pointer to constant data.
                Kind::Out { .. } => {
                    (ty.pointers == 1 && !ty.constant && ty.base != "void") || ty.pointers == 2
                }
                Kind::Text => ty.pointers == 2 && ty.constant && ty.base == "char",
                Kind::String { .. } => ty.pointers == 1 && !ty.constant && ty.base == "char",
                Kind::Str { .. } => ty.pointers == 1 && ty.constant && ty.base == "char",
                Kind::Slice { .. } => {
                    (ty.pointers == 1 && ty.base != "void")
                        || (ty.pointers == 2 && ty.base == "void")
                }
                Kind::SliceMut { .. } => {
                    !ty.constant
                        && ((ty.pointers == 1 && ty.base != "void")
                            || (ty.pointers == 2 && ty.base == "void"))
                }
                Kind::Bytes { .. } => ty.pointers == 1 && ty.base == "void",
                Kind::Buffer { .. } => {
                    ty.pointers == 1 && !ty.constant && (ty.base == "void" || ty.base == "char")
                }
            };
            if !fits {
                return Err(format!("{name}: {kind:?} does not fit the type {ty:?}"));
            }
        }
        self.check_safety()?;
        Ok(())
    }
}

impl Call {
    /// What a caller must promise can only be of what is there.
    fn check_safety(&self) -> Result<(), String> {
        let names: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| super::names::parameter(&parameter.name))
            .collect();
        for word in self
            .safety
            .iter()
            .flat_map(|text| text.split('`'))
            .skip(1)
            .step_by(2)
        {
            if !names.iter().any(|name| name == word) {
                return Err(format!(
                    "`safety` speaks of `{word}`, which is no parameter"
                ));
            }
        }
        Ok(())
    }
}

impl Parameter {
    /// Whether a call gives it back.
    pub(super) fn is_output(&self) -> bool {
        match self.kind {
            // Passed by value, it is the caller's word.
            Kind::Truth => self.ty.pointers > 0,
            Kind::Out { .. }
            | Kind::OutArray(_)
            | Kind::Text
            | Kind::String { .. }
            | Kind::Vector { .. }
            | Kind::List { .. }
            | Kind::Copied { .. } => true,
            _ => false,
        }
    }

    /// What it is called in what a call gives.
    pub(super) fn field(&self) -> String {
        match &self.kind {
            Kind::Out {
                name: Some(name), ..
            } => name.clone(),
            _ => super::names::parameter(&self.name),
        }
    }
}

impl CType {
    fn parse(text: &str) -> Self {
        let pointers = text.matches('*').count();
        let rest = text.replace('*', " ");
        let mut words: Vec<&str> = rest.split_whitespace().collect();
        let constant = words.first() == Some(&"const");
        if constant {
            words.remove(0);
        }
        Self {
            base: words.join(" "),
            constant,
            pointers,
        }
    }

    /// The base in Rust.
    pub(super) fn base(&self) -> String {
        match self.base.as_str() {
            "void" => "c_void".to_owned(),
            "char" => "c_char".to_owned(),
            "int" => "i32".to_owned(),
            "unsigned int" | "cuuint32_t" => "u32".to_owned(),
            "unsigned short" => "u16".to_owned(),
            "unsigned char" => "u8".to_owned(),
            "unsigned long long" | "cuuint64_t" => "u64".to_owned(),
            "size_t" => "usize".to_owned(),
            "float" => "f32".to_owned(),
            "double" => "f64".to_owned(),
            other => format!("sys::{other}"),
        }
    }

    /// The whole type in Rust.
    pub(super) fn rust(&self) -> String {
        self.with_pointers(self.pointers)
    }

    /// What the outermost pointer points to.
    pub(super) fn pointee(&self) -> String {
        self.with_pointers(self.pointers.saturating_sub(1))
    }

    fn with_pointers(&self, pointers: usize) -> String {
        let mut out = self.base();
        for level in 0..pointers {
            // C's leading `const` belongs to the innermost level.
            let constant = self.constant && level == 0;
            out = format!("*{} {out}", if constant { "const" } else { "mut" });
        }
        out
    }

    /// An element of an array of these, as Rust has it: bytes where C does not say.
    pub(super) fn element(&self) -> String {
        match self.base.as_str() {
            "void" if self.pointers == 1 => "u8".to_owned(),
            _ => self.pointee(),
        }
    }

    /// A handle or an address: something that must be live.
    pub(super) fn is_handle(&self) -> bool {
        is_handle(&self.base)
    }
}

/// A version of CUDA as people write it.
pub(crate) fn version(since: u32) -> String {
    format!("{}.{}", since / 1000, since % 1000 / 10)
}

/// Whether a C type is that of handles: a pointer to a structure that nobody sees into, or one of the numbers below.
pub(crate) fn is_handle(base: &str) -> bool {
    const NUMBERS: &[&str] = &[
        "CUtexObject",
        "CUsurfObject",
        "CUmemGenericAllocationHandle",
        "CUgraphConditionalHandle",
    ];
    const RECORDS: &str = include_str!("../../../cuda-driver-sys/src/generated/records.rs");
    NUMBERS.contains(&base) || RECORDS.contains(&format!("\npub type {base} = *mut CU"))
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        let (text, optional) = match text.strip_suffix('?') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (word, count) = match text.split_once('[') {
            Some((word, rest)) => (word, Some(rest.strip_suffix(']')?)),
            None => (text, None),
        };
        let kind = match (word, count) {
            ("destroyed", None) => Self::Destroyed,
            ("released", None) => Self::Released,
            ("raw", None) => Self::Raw,
            ("in", None) => Self::In { optional },
            ("inout", None) => Self::InOut { optional },
            ("text", None) => Self::Text,
            ("bool", None) => Self::Truth,
            ("str", None) => Self::Str { optional },
            ("string", Some(count)) => Self::String {
                count: count.to_owned(),
            },
            ("vec", Some(count)) => Self::Vector {
                count: count.to_owned(),
            },
            ("list", Some(count)) => Self::List {
                count: count.to_owned(),
            },
            ("copied", Some(count)) => Self::Copied {
                count: count.to_owned(),
            },
            ("bytes", Some(count)) => Self::Bytes {
                count: Count::parse(count)?,
            },
            ("buf", Some(count)) => Self::Buffer {
                count: Count::parse(count)?,
            },
            ("in", Some(count)) => Self::Slice {
                count: Count::parse(count)?,
                optional,
            },
            ("out", Some(count)) => match Count::parse(count)? {
                Count::Fixed(count) => Self::OutArray(count),
                count => Self::SliceMut { count, optional },
            },
            (word, None) => {
                let (word, owner) = match word.split_once('@') {
                    Some((word, owner)) => (word, Some(owner.to_owned())),
                    None => (word, None),
                };
                let (word, name) = match word.split_once(':') {
                    Some((word, name)) => (word, Some(name.to_owned())),
                    None => (word, None),
                };
                let owner = match (word, owner) {
                    ("out", None) => Owner::Nobody,
                    ("new", None) => Owner::Caller,
                    ("lent", None) => Owner::Other,
                    ("lent", Some(owner)) => Owner::Parameter(owner),
                    _ => return None,
                };
                Self::Out { name, owner }
            }
            _ => return None,
        };
        let may_be_optional = matches!(
            kind,
            Self::In { .. }
                | Self::InOut { .. }
                | Self::Str { .. }
                | Self::Slice { .. }
                | Self::SliceMut { .. }
                | Self::Out { .. }
                | Self::List { .. }
                | Self::Copied { .. }
        );
        (may_be_optional || !optional).then_some(kind)
    }
}

impl Count {
    /// Whether this parameter says the count.
    pub(super) fn is(&self, parameter: &str) -> bool {
        match self {
            Self::Parameter { name, .. } | Self::Pointer { name } => name == parameter,
            Self::Fixed(_) => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(count) = text.parse() {
            return Some(Self::Fixed(count));
        }
        if let Some(name) = text.strip_prefix('*') {
            return Some(Self::Pointer {
                name: name.to_owned(),
            });
        }
        Some(match text.split_once('-') {
            Some((name, less)) => Self::Parameter {
                name: name.to_owned(),
                less: less.parse().ok()?,
            },
            None => Self::Parameter {
                name: text.to_owned(),
                less: 0,
            },
        })
    }
}

fn text(value: &toml::Value, key: &str) -> Result<String, String> {
    value
        .get(key)
        .and_then(toml::Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| format!("no {key:?}"))
}

fn strings(value: Option<&toml::Value>) -> Result<Vec<String>, String> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    value
        .as_array()
        .ok_or("not an array")?
        .iter()
        .map(|item| {
            item.as_str()
                .map(str::to_owned)
                .ok_or_else(|| "not a string".to_owned())
        })
        .collect()
}
