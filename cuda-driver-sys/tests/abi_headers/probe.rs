//! Writes, compiles and runs a C program that prints the sizes, offsets, values and types in a CUDA header.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::facts::Facts;
use crate::header::{Header, Member, parse};

/// Makes the header declare all exports, including those for older programs.
const ALL_EXPORTS: &str = "-D__CUDA_API_VERSION_INTERNAL";

/// The macros of the program. `KIND` does not evaluate its argument.
const PRELUDE: &str = r#"
#define __USE_MINGW_ANSI_STDIO 1
#include <stddef.h>
#include <stdio.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#define INTEGER(x) _Generic((x), \
    char: "char", signed char: "i8", unsigned char: "u8", \
    short: "i16", unsigned short: "u16", int: "i32", unsigned int: "u32", \
    long: sizeof(long) == 8 ? "i64" : "i32", unsigned long: sizeof(long) == 8 ? "u64" : "u32", \
    long long: "i64", unsigned long long: "u64", float: "f32", double: "f64", default: "another type")
#define KIND(x) (__builtin_classify_type(x) == 5 ? "pointer" \
    : __builtin_classify_type(x) == 12 || __builtin_classify_type(x) == 13 ? "record" : INTEGER(x))
#define SIZE(name, type) printf("size of %s\t%zu\nalignment of %s\t%zu\n", name, sizeof(type), name, _Alignof(type));
#define TYPEDEF(type) printf("typedef %s\t%s of %zu aligned to %zu\n", #type, KIND(*(type *)0), sizeof(type), _Alignof(type));
#define FIELD(name, type, path) printf("field %s.%s\t%s of %zu at %zu\n", name, #path, \
    KIND(((type *)0)->path), sizeof(((type *)0)->path), offsetof(type, path));
#define ARRAY(name, type, path) printf("field %s.%s\t%s of %zu at %zu, %zu elements\n", name, #path, \
    KIND(((type *)0)->path[0]), sizeof(((type *)0)->path), offsetof(type, path), \
    sizeof(((type *)0)->path) / sizeof(((type *)0)->path[0]));
#define ENUMERATOR(in, name) printf("enumerator %s\t%s %u\n", #name, in, (unsigned)(name));
#define MACRO(name) printf("macro %s\t%lld\n", #name, (long long)(name));
#define SAME(what, pointer, yes, ...) printf("%s\t%s\n", what, _Generic(pointer, __VA_ARGS__: yes, default: "other types"));
#define SAID(what, value) printf("%s\t%s\n", what, value);
"#;

/// A folder of headers, and a folder in which to compile against them.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) include: PathBuf,
    /// The folder in which the program is written and compiled.
    pub(crate) scratch: PathBuf,
}

/// Returns the C compiler for the target whose ABI is compared.
///
/// `CUDA_ABI_TARGET` selects another target than this machine's, and `CUDA_ABI_RUNNER` names the command that runs its
/// programs.
fn compiler() -> Result<cc::Tool, String> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let target = std::env::var("CUDA_ABI_TARGET").unwrap_or_else(|_| host.clone());
    let mut build = cc::Build::new();
    build
        .cargo_metadata(false)
        .target(&target)
        .host(&host)
        .opt_level(0)
        .warnings(false);
    build.try_get_compiler().map_err(|e| e.to_string())
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let errors = || words.lines().filter(|line| line.contains("error"));
    let all = errors().next().is_none();
    let first: Vec<&str> = words
        .lines()
        .filter(|line| all || line.contains("error"))
        .take(20)
        .collect();
    Err(format!("{command:?}: {}:\n{}", output.status, first.join("\n")))
}

/// The types of the bindings that the C compiler compares with the header's.
#[derive(Debug)]
pub(crate) struct Ours {
    /// The C types of the parameters, by symbol.
    pub(crate) signatures: BTreeMap<String, Vec<String>>,
    /// The C type of each callback, by typedef.
    pub(crate) callbacks: BTreeMap<String, String>,
    /// The symbol of each `PFN_…` type.
    pub(crate) pointers: BTreeMap<String, String>,
}

/// Returns all facts of a header according to the C compiler.
pub(crate) fn facts(place: &Place, ours: &Ours) -> Result<Facts, String> {
    let compiler = compiler()?;
    let wrapper = place.scratch.join("wrapper.c");
    write(&wrapper, "#include <cuda.h>\n#include <cudaTypedefs.h>\n")?;
    let mut preprocess = compiler.to_command();
    preprocess
        .args(["-E", "-dD", "-std=c17", ALL_EXPORTS, "-I"])
        .arg(&place.include)
        .arg(&wrapper);
    let preprocessed = output(&mut preprocess)?;
    let header = parse(&preprocessed, "cuda.h");
    let typedefs = parse(&preprocessed, "cudaTypedefs.h");

    let source = place.scratch.join("probe.c");
    let program = place.scratch.join("probe.exe");
    write(&source, &text(&header, &typedefs, ours))?;
    let mut compile = compiler.to_command();
    compile
        .args(["-std=c17", "-w", ALL_EXPORTS, "-I"])
        .arg(&place.include)
        .arg(&source)
        .arg("-o")
        .arg(&program);
    output(&mut compile)?;
    let printed = match std::env::var_os("CUDA_ABI_RUNNER") {
        Some(runner) => output(Command::new(runner).arg(&program))?,
        None => output(&mut Command::new(&program))?,
    };
    let mut facts = Facts::new();
    for line in printed.lines() {
        let (what, value) = line
            .split_once('\t')
            .ok_or_else(|| format!("the probe printed a line without a tab: {line}"))?;
        facts.insert(what.to_owned(), value.to_owned());
    }
    Ok(facts)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn text(header: &Header, typedefs: &Header, ours: &Ours) -> String {
    let mut out = String::from(PRELUDE);
    out.push_str("static void records(void) {\n");
    for (name, record) in &header.records {
        let c_name = &record.c_name;
        _ = writeln!(out, "SIZE(\"{name}\", {c_name})");
        fields(&mut out, name, c_name, "", &record.members);
    }
    out.push_str("}\nstatic void values(void) {\n");
    for (enumeration, values) in &header.enumerations {
        for value in values {
            _ = writeln!(out, "ENUMERATOR(\"{enumeration}\", {value})");
        }
    }
    for name in header.macros.iter().filter(|name| is_value(name)) {
        _ = writeln!(out, "MACRO({name})");
    }
    out.push_str("}\nstatic void types(void) {\n");
    for name in &header.typedefs {
        _ = writeln!(out, "TYPEDEF({name})");
    }
    let known = known_types(header);
    for name in &header.typedefs {
        if let Some(ty) = ours.callbacks.get(name) {
            let pointer = format!("*({name} *)0");
            compare(&mut out, &format!("type of callback {name}"), &pointer, ty, ty, &known);
        }
    }
    out.push_str("}\nstatic void functions(void) {\n");
    for symbol in &header.functions {
        let what = format!("parameters of {symbol}");
        match ours.signatures.get(symbol) {
            Some(types) => {
                let list = parameters(types);
                compare(&mut out, &what, &format!("&{symbol}"), &function(&list), &list, &known);
            }
            None => said(&mut out, &what, "not in the bindings"),
        }
    }
    for name in typedefs.typedefs.iter().filter(|name| has_version(name)) {
        let symbol = ours.pointers.get(name);
        match symbol.and_then(|symbol| Some((symbol, ours.signatures.get(symbol)?))) {
            Some((symbol, types)) => {
                let pointer = format!("*({name} *)0");
                compare(&mut out, name, &pointer, &function(&parameters(types)), symbol, &known);
            }
            None => said(&mut out, name, "not in the bindings"),
        }
    }
    out.push_str("}\nint main(void) { records(); values(); types(); functions(); return 0; }\n");
    out
}

/// Returns the parameter list of a C prototype.
pub(crate) fn parameters(types: &[String]) -> String {
    if types.is_empty() {
        "void".to_owned()
    } else {
        types.join(", ")
    }
}

fn function(parameters: &str) -> String {
    format!("CUresult (CUDAAPI *)({parameters})")
}

/// Returns true for `PFN_cuInit_v2000`, and false for `PFN_cuInit`, which each header defines as its newest version.
fn has_version(name: &str) -> bool {
    let digits = |part: &str| part.chars().next().is_some_and(|c| c.is_ascii_digit());
    name.starts_with("PFN_") && name.rsplit_once("_v").is_some_and(|(_, version)| digits(version))
}

/// Adds a comparison of the type of `pointer` with `ty` to the program, which prints `yes` if they are equal.
fn compare(out: &mut String, what: &str, pointer: &str, ty: &str, yes: &str, known: &BTreeSet<String>) {
    match unknown_type(ty, known) {
        // The comparison would not compile.
        Some(word) => said(out, what, &format!("names {word}, which this header lacks")),
        None => _ = writeln!(out, "SAME(\"{what}\", {pointer}, \"{yes}\", {ty})"),
    }
}

fn said(out: &mut String, what: &str, value: &str) {
    _ = writeln!(out, "SAID(\"{what}\", \"{value}\")");
}

/// Returns true if a macro is a number of the API, according to its name.
fn is_value(name: &str) -> bool {
    // On Windows, these macros are calling conventions.
    let syntax = ["CUDAAPI", "CUDA_CB"].contains(&name);
    !syntax && (name.starts_with("CU") || name.starts_with("RESOURCE_"))
}

fn fields(out: &mut String, name: &str, c_name: &str, path: &str, members: &[Member]) {
    for member in members {
        let mut here = path.to_owned();
        if let Some(field) = &member.name {
            if !here.is_empty() {
                here.push('.');
            }
            here.push_str(field);
            let form = if member.array { "ARRAY" } else { "FIELD" };
            _ = writeln!(out, "{form}(\"{name}\", {c_name}, {here})");
            if member.array {
                here.push_str("[0]");
            }
        }
        fields(out, name, c_name, &here, member.inner.as_deref().unwrap_or_default());
    }
}

fn known_types(header: &Header) -> BTreeSet<String> {
    let c = [
        "void", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "size_t", "const", "CUDA_CB",
        "CUDAAPI", "CUresult",
    ];
    c.iter()
        .map(|name| (*name).to_owned())
        .chain(header.typedefs.iter().cloned())
        .collect()
}

/// Returns the first word of a C type that is not the name of a known type.
fn unknown_type<'a>(ty: &'a str, known: &BTreeSet<String>) -> Option<&'a str> {
    ty.split(|c: char| !c.is_alphanumeric() && c != '_')
        .find(|word| !word.is_empty() && !known.contains(*word))
}
