//! The facts of the bindings, with the layout from this compiler.

use core::any::type_name;
use std::collections::BTreeMap;

use cuda_driver_sys::Function;

use crate::c_type::c_type;
use crate::facts::Facts;

/// A record of the bindings.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) fields: Vec<Field>,
}

/// A field, with its offset in bytes.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) offset: usize,
    pub(crate) behind: Behind,
}

/// The size in bytes and the Rust type of a pointer's target.
#[derive(Debug)]
pub(crate) struct Behind {
    size: usize,
    ty: &'static str,
}

impl<T> From<*const T> for Behind {
    fn from(_: *const T) -> Self {
        Self {
            size: size_of::<T>(),
            ty: type_name::<T>(),
        }
    }
}

/// Returns the fields that have no name in C and are therefore missing in the generated table, each with its record. If
/// one is missing here, the test fails, because the members of that field are not found in the bindings.
fn unnamed_fields() -> Vec<(&'static str, Field)> {
    macro_rules! fields {
        ($($record:ident)*) => {
            vec![$({
                let record = core::mem::MaybeUninit::<cuda_driver_sys::$record>::uninit();
                let at: *const cuda_driver_sys::$record = record.as_ptr();
                (stringify!($record), Field {
                    name: UNNAMED,
                    offset: core::mem::offset_of!(cuda_driver_sys::$record, anonymous1),
                    // SAFETY: the address is inside a record on the stack, and nothing is read.
                    behind: unsafe { &raw const (*at).anonymous1 }.into(),
                })
            }),*]
        };
    }
    fields! {
        CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st
        CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st
        CUDA_HOST_NODE_PARAMS_v2_st
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st
        CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st
        CUmemLocation_st
        CUDA_EVENT_RECORD_NODE_PARAMS_st
        CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st
        CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st
        CUgraphNodeParams_st
        CUlogicalEndpointProp_struct
        CUdevResource_st
    }
}

/// The placeholder for the name of an unnamed field.
const UNNAMED: &str = "";

/// An enumeration of the bindings.
#[derive(Debug)]
struct Enumeration {
    name: &'static str,
    values: Vec<(&'static str, u32)>,
}

/// An export of the bindings, with the names and Rust types of its parameters.
#[derive(Debug)]
struct Export {
    symbol: &'static str,
    parameters: Vec<(&'static str, &'static str)>,
}

macro_rules! exports {
    ([] $($symbol:ident ($($name:ident: $ty:ty),*) $base:ident $since:literal $mode:ident $(($twin:ident))?;)*) => {
        vec![$(Export {
            symbol: stringify!($symbol),
            parameters: vec![$((stringify!($name), stringify!($ty))),*],
        }),*]
    };
}

fn exports() -> Vec<Export> {
    cuda_driver_sys::for_each_function! { exports }
}

/// Returns the macros that the crate defines by hand, with their values in the crate.
fn macros_by_hand() -> Vec<(&'static str, i128)> {
    macro_rules! values {
        (pointers: $($pointer:ident)*; integers: $($integer:ident)*; attributes: $($attribute:ident)*;) => {
            vec![
                $((stringify!($pointer), cuda_driver_sys::$pointer.addr() as i128),)*
                $((stringify!($integer), i128::from(cuda_driver_sys::$integer)),)*
                $((stringify!($attribute), i128::from(cuda_driver_sys::$attribute.0)),)*
            ]
        };
    }
    values! {
        pointers:
            CU_STREAM_LEGACY CU_STREAM_PER_THREAD
            CU_LAUNCH_PARAM_END CU_LAUNCH_PARAM_BUFFER_POINTER CU_LAUNCH_PARAM_BUFFER_SIZE;
        integers:
            CU_DEVICE_CPU CU_DEVICE_INVALID CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY;
        attributes:
            CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE
            CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION
            CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE CU_KERNEL_NODE_ATTRIBUTE_PRIORITY
            CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN
            CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
            CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
            CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY
            CU_STREAM_ATTRIBUTE_PRIORITY CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN;
    }
}

/// Returns the names of earlier headers that the crate defines by hand: enumeration, enumerator, value.
fn retired() -> Vec<(&'static str, &'static str, u32)> {
    macro_rules! values {
        ($($enumeration:ident::$name:ident)*) => {
            vec![$((
                stringify!($enumeration),
                stringify!($name),
                cuda_driver_sys::$enumeration::$name.0,
            )),*]
        };
    }
    values! {
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V2
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V2
        CUjit_target::CU_TARGET_COMPUTE_20
        CUjit_target::CU_TARGET_COMPUTE_21
        CUjit_target::CU_TARGET_COMPUTE_101
        CUjit_target::CU_TARGET_COMPUTE_101A
        CUjit_target::CU_TARGET_COMPUTE_101F
    }
}

/// Committed files that are parsed here, because no macro can collect their items.
const RECORDS: &str = include_str!("../../src/generated/records.rs");
const CONSTANTS: &str = include_str!("../../src/generated/constants.rs");
const ENUMERATIONS: &str = include_str!("../../src/generated/enumerations.rs");

/// Returns the enumerations of the bindings, with values as unsigned 32-bit numbers.
fn enumerations() -> Result<Vec<Enumeration>, String> {
    let mut found: Vec<Enumeration> = Vec::new();
    for line in ENUMERATIONS.lines() {
        let head = line
            .strip_prefix("enumeration ")
            .or_else(|| line.strip_prefix("flags "));
        if let Some(head) = head {
            found.push(Enumeration {
                name: head.split(' ').next().unwrap_or_default(),
                values: Vec::new(),
            });
        } else if let Some((name, value)) = line.strip_prefix("    ").and_then(|l| l.split_once(" = ")) {
            let value = value.trim_end_matches(',');
            let number = match value.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => value.parse(),
            };
            let number = number.map_err(|e| format!("enumerations.rs: {line}: {e}"))?;
            let last = found.last_mut();
            last.ok_or_else(|| format!("enumerations.rs: {line}"))?
                .values
                .push((name, number));
        }
    }
    Ok(found)
}

/// Returns the typedefs of the bindings with their Rust types, each on one line.
pub(crate) fn typedefs() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in RECORDS.split("\npub type ").skip(1) {
        let item = part.split_once(';').map_or(part, |(item, _)| item);
        if let Some((name, target)) = item.split_once('=') {
            let words: Vec<&str> = target.split_whitespace().collect();
            found.insert(name.trim().to_owned(), words.join(" "));
        }
    }
    found
}

/// Returns the functions with the C types of their parameters.
pub(crate) fn signatures() -> BTreeMap<String, Vec<String>> {
    let signature = |export: Export| {
        let types = export.parameters.iter().map(|(_, ty)| c_type(ty));
        (export.symbol.to_owned(), types.collect())
    };
    exports().into_iter().map(signature).collect()
}

/// The types of the bindings, to find the size, alignment and kind of each.
struct Types {
    records: BTreeMap<&'static str, (usize, usize)>,
    enumerations: Vec<&'static str>,
    typedefs: BTreeMap<String, String>,
}

impl Types {
    fn describe(&self, ty: &str) -> Result<(usize, usize, String), String> {
        if ty.starts_with('*') || ty.starts_with("Option<") {
            return Ok((8, 8, "pointer".to_owned()));
        }
        if let Some(target) = self.typedefs.get(ty) {
            return self.describe(target);
        }
        if let Some((size, align)) = self.records.get(ty) {
            return Ok((*size, *align, "record".to_owned()));
        }
        if self.enumerations.contains(&ty) {
            return Ok((4, 4, "enumeration".to_owned()));
        }
        let (size, name) = match ty {
            "c_int" | "i32" => (4, "i32"),
            "c_uint" | "u32" => (4, "u32"),
            "c_ulonglong" | "u64" => (8, "u64"),
            _ => return Err(format!("the type {ty} of the bindings is not known")),
        };
        Ok((size, size, name.to_owned()))
    }
}

/// Returns the name of a function's pointer type in `cudaTypedefs.h`, according to the registry.
pub(crate) fn pointer_name(function: Function) -> String {
    let suffixes = ["_ptds", "_ptsz"];
    let suffix = suffixes.into_iter().find(|suffix| function.name().ends_with(suffix));
    format!(
        "PFN_{}_v{}{}",
        function.base(),
        function.since(),
        suffix.unwrap_or_default()
    )
}

/// Returns all facts of the bindings.
pub(crate) fn facts() -> Result<Facts, String> {
    let mut records = crate::layout::all();
    for (name, field) in unnamed_fields() {
        let record = records.iter_mut().find(|record| record.name == name);
        record
            .ok_or_else(|| format!("layout.rs has no {name}"))?
            .fields
            .push(field);
    }
    let enumerations = enumerations()?;
    let mut facts = Facts::new();

    for record in records.iter().filter(|r| !is_nested(r.name, &records)) {
        facts.insert(format!("size of {}", record.name), record.size.to_string());
        facts.insert(format!("alignment of {}", record.name), record.align.to_string());
        add_fields(record, record.name, "", 0, &records, &mut facts)?;
    }
    for enumeration in &enumerations {
        for (name, value) in &enumeration.values {
            facts.insert(format!("enumerator {name}"), format!("{} {value}", enumeration.name));
        }
    }
    for (enumeration, name, value) in retired() {
        facts.insert(format!("enumerator {name}"), format!("{enumeration} {value}"));
    }
    for line in CONSTANTS.lines().filter_map(|line| line.strip_prefix("pub const ")) {
        let (name, value) = line
            .split_once(": ")
            .and_then(|(name, rest)| Some((name, rest.split_once(" = ")?.1.trim_end_matches(';'))))
            .ok_or_else(|| format!("constants.rs: not a constant: {line}"))?;
        facts.insert(format!("macro {name}"), value.to_owned());
    }
    for (name, value) in macros_by_hand() {
        facts.insert(format!("macro {name}"), value.to_string());
    }

    let types = Types {
        records: records.iter().map(|r| (r.name, (r.size, r.align))).collect(),
        enumerations: enumerations.iter().map(|e| e.name).collect(),
        typedefs: typedefs(),
    };
    // A record without a typedef is listed under its own name.
    let aliased = |name: &str| types.typedefs.values().any(|target| target == name);
    let own = types
        .records
        .keys()
        .copied()
        .filter(|name| !is_nested(name, &records) && !aliased(name));
    let named = types.typedefs.keys().map(String::as_str);
    for name in named.chain(types.enumerations.iter().copied()).chain(own) {
        let (size, align, kind) = types.describe(name)?;
        facts.insert(
            format!("typedef {name}"),
            format!("{kind} of {size} aligned to {align}"),
        );
    }
    for (name, target) in &types.typedefs {
        if target.starts_with("Option<") {
            facts.insert(format!("type of callback {name}"), c_type(target));
        }
    }
    for (symbol, parameters) in signatures() {
        facts.insert(format!("parameters of {symbol}"), crate::probe::parameters(&parameters));
    }
    for &function in Function::ALL {
        facts.insert(pointer_name(function), function.name().to_owned());
    }
    Ok(facts)
}

/// Returns true if a record is defined inside another one: its name begins with the name of the outer record.
fn is_nested(name: &str, records: &[Record]) -> bool {
    let within = |outer: &Record| name.strip_prefix(outer.name).is_some_and(|rest| rest.starts_with('_'));
    records.iter().any(within)
}

fn add_fields(
    record: &Record,
    outer: &str,
    path: &str,
    base: usize,
    records: &[Record],
    facts: &mut Facts,
) -> Result<(), String> {
    for Field { name, offset, behind } in &record.fields {
        let name = without_escape(name);
        let unnamed = name == UNNAMED;
        let mut here = match (unnamed, path.is_empty()) {
            (true, _) => path.to_owned(),
            (false, true) => name.to_owned(),
            (false, false) => format!("{path}.{name}"),
        };
        let offset = base + offset;
        let (element, count) = match behind.ty.strip_prefix('[').and_then(|t| t.rsplit_once("; ")) {
            Some((element, count)) => {
                let count: usize = count
                    .trim_end_matches(']')
                    .parse()
                    .map_err(|_| format!("{}::{name}: {}", record.name, behind.ty))?;
                (element, Some(count))
            }
            None => (behind.ty, None),
        };
        let kind = kind(element);
        if !unnamed {
            let size = behind.size;
            let count = count.map_or(String::new(), |count| format!(", {count} elements"));
            facts.insert(
                format!("field {outer}.{here}"),
                format!("{kind} of {size} at {offset}{count}"),
            );
        }
        let inner = element.rsplit("::").next().unwrap_or_default();
        if kind == "record" && inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('_')) {
            if count.is_some() {
                here.push_str("[0]");
            }
            let inner = records.iter().find(|r| r.name == inner);
            let inner = inner.ok_or_else(|| format!("{element} has no layout"))?;
            add_fields(inner, outer, &here, offset, records, facts)?;
        }
    }
    Ok(())
}

/// Removes the underscore that bindgen appends to Rust's keywords.
fn without_escape(name: &str) -> &str {
    match name {
        "type_" => "type",
        "fn_" => "fn",
        other => other,
    }
}

/// Returns the kind of a field, as facts name it, from its Rust type with paths.
fn kind(ty: &str) -> &str {
    if ty.starts_with('*') || ty.contains("Option<") {
        "pointer"
    } else if ty.contains("::enumerations::") {
        "enumeration"
    } else if ty.contains("::records::") {
        "record"
    } else if ty == "usize" {
        "u64"
    } else {
        ty
    }
}
