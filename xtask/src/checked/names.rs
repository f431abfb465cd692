//! Converts names of C to Rust's naming conventions.

/// Words that the rules below would split in the wrong place, and their correct form.
const WORDS: &[(&str, &str)] = &[
    ("HtoD", "Htod"),
    ("DtoH", "Dtoh"),
    ("DtoD", "Dtod"),
    ("DtoA", "Dtoa"),
    ("AtoD", "Atod"),
    ("HtoA", "Htoa"),
    ("AtoH", "Atoh"),
    ("AtoA", "Atoa"),
    ("D2D8", "D2d8"),
    ("D2D16", "D2d16"),
    ("D2D32", "D2d32"),
    ("SMem", "Smem"),
    ("smemSize", "SmemSize"),
    ("P2P", "P2p"),
    ("Texture1D", "Texture_1d"),
    ("Address2D", "Address_2d"),
    ("Memcpy2D", "Memcpy_2d"),
    ("memcpy2D", "memcpy_2d"),
    ("Memcpy3D", "Memcpy_3d"),
    ("memcpy3D", "memcpy_3d"),
    ("Array3D", "Array_3d"),
    ("array3D", "array_3d"),
    ("OOB", "Oob"),
    ("IDs", "Ids"),
];

/// Converts a name to snake case: `MemAllocPitch` to `mem_alloc_pitch`, and `hStream` to `h_stream`.
pub(super) fn snake(name: &str) -> String {
    let mut name = name.to_owned();
    for (from, to) in WORDS {
        name = name.replace(from, to);
    }
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let after = letters.get(at + 1);
        let starts_word = letter.is_uppercase()
            && match before {
                None | Some('_') => false,
                Some(before) if before.is_uppercase() => after.is_some_and(|after| after.is_lowercase()),
                Some(_) => true,
            };
        if starts_word {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Converts a name from snake case to camel case: `mem_get_info` to `MemGetInfo`.
pub(super) fn camel(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

/// Returns the name of a checked call: the name in `cuda-driver-sys` without `cu`.
pub(super) fn call(name: &str) -> String {
    snake(name.strip_prefix("cu").unwrap_or(name))
}

/// Returns the name of a parameter: the name in C without the prefix for handles and pointers, without the suffix
/// `_out`, and in snake case.
pub(super) fn parameter(name: &str) -> String {
    let bare = ["ph", "pp", "h", "p"].iter().find_map(|prefix| {
        name.strip_prefix(prefix)
            .filter(|rest| rest.starts_with(|letter: char| letter.is_uppercase()))
    });
    let bare = bare.unwrap_or(name);
    let name = snake(bare.strip_suffix("_out").unwrap_or(bare));
    match name.as_str() {
        // Irregular short names in C.
        "hfunc" => "func".to_owned(),
        "hmod" | "mod" | "mod_" => "module".to_owned(),
        "lib" => "library".to_owned(),
        "fn_" => "function".to_owned(),
        "type" | "fn" | "struct" | "move" | "in" | "ref" => format!("{name}_"),
        _ => name,
    }
}

/// Returns the name of the file for a group of the manual.
pub(super) fn file(group: &str) -> String {
    let name = group.trim_start_matches("CUDA_").to_lowercase();
    match name.as_str() {
        "ctx" => "context".to_owned(),
        "ctx_deprecated" => "context_deprecated".to_owned(),
        "primary_ctx" => "primary_context".to_owned(),
        "mem" => "memory".to_owned(),
        "va" => "virtual_memory".to_owned(),
        "exec" => "execution".to_owned(),
        "exec_deprecated" => "execution_deprecated".to_owned(),
        "memop" => "stream_memory_operations".to_owned(),
        _ => name,
    }
}
