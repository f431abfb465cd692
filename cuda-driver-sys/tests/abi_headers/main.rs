//! Compares the bindings with each of NVIDIA's headers since CUDA 11.7.
//!
//! For each `cuda.h`, the test generates a C program that prints the layout, value or type of every struct, union,
//! enumerator, macro, typedef and function. Each difference from the bindings must be listed in `explained.rs`, with
//! the header's value and a reason; an entry without a difference also fails the test.

mod c_type;
mod explained;
mod facts;
mod header;
mod ours;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cuda_driver_sys::{CUDA_VERSION, Function, StreamMode};
use explained::{EXPLAINED, Explained};
use facts::{Difference, Facts};

/// The list of releases.
const RELEASES: &str = include_str!("../../api/headers.txt");

/// Returns the releases of the list, oldest first: `CUDA_VERSION`, and the folder that `cargo xtask every-header`
/// creates.
fn releases() -> Vec<(u32, String)> {
    let lines = RELEASES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let releases = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers: Vec<u32> = words[1]
            .split('.')
            .map(|number| number.parse().expect("a number"))
            .collect();
        (
            numbers[0] * 1000 + numbers[1] * 10,
            format!("{}-{}", words[0], words[1]),
        )
    });
    releases.collect()
}

/// Takes the place of the crate's module `enumeration`. Defines the one macro that `generated/layout.rs` uses.
mod enumeration {
    /// Defines a function that returns the layout of each record according to this compiler.
    macro_rules! layout {
        ($($name:ident: $size:literal, $align:literal { $($field:ident: $offset:literal),* })*) => {
            pub(crate) fn all() -> Vec<crate::ours::Record> {
                vec![$({
                    let record = core::mem::MaybeUninit::<$name>::uninit();
                    let at: *const $name = record.as_ptr();
                    crate::ours::Record {
                        name: stringify!($name),
                        size: size_of_val(&record),
                        align: align_of_val(&record),
                        fields: vec![$(crate::ours::Field {
                            name: stringify!($field),
                            offset: core::mem::offset_of!($name, $field),
                            // SAFETY: the address is inside a record on the stack, and nothing is read.
                            behind: unsafe { &raw const (*at).$field }.into(),
                        }),*],
                    }
                }),*]
            }
        };
    }
    pub(crate) use layout;
}

/// The types under the path that `generated/layout.rs` uses.
mod records {
    pub(crate) use cuda_driver_sys::*;
}

#[path = "../../src/generated/layout.rs"]
#[rustfmt::skip]
mod layout;

/// Returns the differences between the bindings and a header.
fn differences(version: u32, ours: &Facts, theirs: &Facts) -> Vec<Difference> {
    let newest = version == CUDA_VERSION;
    let mut found = Vec::new();
    // Headers of other releases have another version.
    for (what, theirs) in theirs.iter().filter(|(what, _)| *what != "macro CUDA_VERSION") {
        let known = ours.get(what);
        if !known.is_some_and(|known| agree(known, theirs)) {
            found.push(Difference {
                version,
                what: what.clone(),
                ours: known.cloned(),
                theirs: Some(theirs.clone()),
            });
        }
    }
    for (what, known) in ours.iter().filter(|(what, _)| !theirs.contains_key(*what)) {
        // An older header may lack any declaration, except function-pointer types of its version and earlier ones, and
        // the fields of records that it declares.
        let record = what.strip_prefix("field ").and_then(|field| field.split('.').next());
        let expected = newest
            || what.starts_with("PFN_") && since(what) <= version
            || record.is_some_and(|record| theirs.contains_key(&format!("size of {record}")));
        if expected {
            found.push(Difference {
                version,
                what: what.clone(),
                ours: Some(known.clone()),
                theirs: None,
            });
        }
    }
    found
}

/// Returns true if two descriptions of a type are equal, or differ only in a signedness that does not matter. C
/// enumerations are signed if a value is negative, but enumerations of the bindings are always unsigned. C's `char` is
/// signed on some targets, and Rust's `c_char` is `i8` or `u8` accordingly.
fn agree(ours: &str, theirs: &str) -> bool {
    let same_but_for = |kind: &str, other: &str| {
        let rest = ours.strip_prefix(kind).and_then(|ours| ours.strip_prefix(' '));
        rest.is_some() && rest == theirs.strip_prefix(other).and_then(|theirs| theirs.strip_prefix(' '))
    };
    ours == theirs
        || same_but_for("enumeration", "u32")
        || same_but_for("enumeration", "i32")
        || same_but_for(core::any::type_name::<core::ffi::c_char>(), "char")
}

/// Returns the version in the name of a function-pointer type.
fn since(pointer: &str) -> u32 {
    let digits = pointer.rsplit_once("_v").map_or("", |(_, rest)| rest);
    let digits = digits.split('_').next().unwrap_or_default();
    digits.parse().unwrap_or(u32::MAX)
}

/// Returns the folder of each release's headers, by `CUDA_VERSION`.
fn headers() -> Result<BTreeMap<u32, PathBuf>, String> {
    let cache = std::env::var_os("CUDA_ABI_HEADERS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache"),
        PathBuf::from,
    );
    let mut found = BTreeMap::new();
    let mut missing = Vec::new();
    for (version, folder) in releases() {
        let toolkits = std::fs::read_dir(cache.join(&folder).join("nvidia"));
        let include = toolkits
            .into_iter()
            .flatten()
            .flatten()
            .map(|toolkit| toolkit.path().join("include"))
            .find(|include| include.join("cuda.h").is_file());
        let Some(include) = include else {
            missing.push(folder);
            continue;
        };
        let header = include.join("cuda.h");
        let text = std::fs::read_to_string(&header).map_err(|e| e.to_string())?;
        if !text.contains(&format!("#define CUDA_VERSION {version}\n")) {
            return Err(format!("{} has another CUDA_VERSION than {version}", header.display()));
        }
        found.insert(version, include);
    }
    if missing.is_empty() {
        return Ok(found);
    }
    Err(format!(
        "{} lacks {missing:?}: run `cargo xtask every-header`",
        cache.display()
    ))
}

/// Returns the types of the bindings that the C compiler compares with each header's.
fn our_questions() -> probe::Ours {
    let callbacks = ours::typedefs()
        .into_iter()
        .filter(|(_, target)| target.starts_with("Option<"))
        .map(|(name, target)| (name, c_type::c_type(&target)));
    let pointers = cuda_driver_sys::Function::ALL
        .iter()
        .copied()
        .map(|function| (ours::pointer_name(function), function.name().to_owned()));
    probe::Ours {
        signatures: ours::signatures(),
        callbacks: callbacks.collect(),
        pointers: pointers.collect(),
    }
}

/// Returns the differences of all headers. Compares two headers at a time.
fn all_differences() -> Result<Vec<Difference>, String> {
    let headers = headers()?;
    let known = ours::facts()?;
    let questions = our_questions();
    // `ci/platforms.sh` runs this for several targets at once.
    let target = std::env::var("CUDA_ABI_TARGET").unwrap_or_default();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi_headers").join(target);
    let work = Mutex::new(headers.into_iter());
    let found = Mutex::new(Ok(Vec::new()));
    let one = |version: u32, include: PathBuf| -> Result<Vec<Difference>, String> {
        let place = probe::Place {
            include,
            scratch: scratch.join(version.to_string()),
        };
        std::fs::create_dir_all(&place.scratch).map_err(|e| e.to_string())?;
        let theirs = probe::facts(&place, &questions)?;
        println!("CUDA {version}: {} facts", theirs.len());
        Ok(differences(version, &known, &theirs))
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no thread panics").next();
                    let Some((version, include)) = next else {
                        return;
                    };
                    let result = one(version, include);
                    let mut found = found.lock().expect("no thread panics");
                    match (&mut *found, result) {
                        (Ok(list), Ok(more)) => list.extend(more),
                        (Ok(_), Err(error)) => *found = Err(format!("CUDA {version}: {error}")),
                        (Err(_), _) => {}
                    }
                }
            });
        }
    });
    found.into_inner().expect("no thread panics")
}

/// `functions.toml` has a line for every function, with the facts of this crate.
#[test]
fn the_file_of_functions_agrees_with_the_table() {
    let file = include_str!("../../api/functions.toml");
    let lines = file.lines().filter(|line| line.contains(" = {"));
    let mut seen = 0;
    for line in lines {
        let symbol = line.split(' ').next().expect("a line has a symbol");
        let function = Function::by_symbol(symbol).expect("an exported function");
        let stream = match function.stream_mode() {
            StreamMode::None => "none",
            StreamMode::Legacy => "legacy",
            StreamMode::PerThread => "per-thread",
        };
        let facts = [
            format!("{{ base = \"{}\", ", function.base()),
            format!(" since = {}, ", function.since()),
            format!(" stream = \"{stream}\", "),
            format!(" group = \"{}\" }}", function.group().unwrap_or_default()),
        ];
        for fact in facts {
            assert!(line.contains(&fact), "{line} lacks {fact}");
        }
        seen += 1;
    }
    assert_eq!(seen, Function::COUNT);
}

/// The bindings must come from the newest header in the list.
#[test]
fn the_bindings_are_of_the_last_release() {
    assert_eq!(releases().last().map(|(version, _)| *version), Some(CUDA_VERSION));
}

#[test]
#[ignore = "needs every header package: ci/abi.sh fetches them and runs this"]
fn every_difference_from_every_header_is_explained() {
    let started = std::time::Instant::now();
    let differences = all_differences().unwrap_or_else(|error| panic!("{error}"));
    let mut used: BTreeMap<(usize, usize), BTreeSet<u32>> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for difference in &differences {
        let found = EXPLAINED.iter().enumerate().find_map(|(reason, explained)| {
            let fact = explained
                .facts
                .iter()
                .position(|fact| explained::fits(fact, difference))?;
            Some((reason, fact))
        });
        match found {
            Some(place) => _ = used.entry(place).or_default().insert(difference.version),
            None => unexplained.push(difference),
        }
    }
    println!(
        "{} differences from {} headers in {:.1} s",
        differences.len(),
        releases().len(),
        started.elapsed().as_secs_f64()
    );
    for Difference {
        version,
        what,
        ours,
        theirs,
    } in &unexplained
    {
        println!("CUDA {version}: {what}: here {ours:?}, in the header {theirs:?}");
    }
    // Each entry must match a difference in the first and in the last header that it names.
    let mut stale = Vec::new();
    for (reason, Explained { why, facts }) in EXPLAINED.iter().enumerate() {
        for (place, fact) in facts.iter().enumerate() {
            let seen = used.get(&(reason, place));
            let both_ends = seen.is_some_and(|seen| seen.contains(&fact.1) && seen.contains(&fact.2));
            if !both_ends {
                println!("explains nothing: {fact:?} (\"{why}\"): seen with {seen:?}");
                stale.push(fact);
            }
        }
    }
    assert!(
        unexplained.is_empty() && stale.is_empty(),
        "{} differences without an explanation, {} explanations without a difference; see above",
        unexplained.len(),
        stale.len()
    );
}
