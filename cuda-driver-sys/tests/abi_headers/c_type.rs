//! Converts the bindings' types to C.

/// Returns the C type for a Rust type as `stringify!` or prettyplease prints it.
pub(crate) fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(pointer) = rust.strip_prefix('*') {
        let pointer = pointer.trim_start();
        let (constant, pointee) = match pointer.strip_prefix("const ") {
            Some(pointee) => (true, pointee),
            None => (false, pointer.strip_prefix("mut ").unwrap_or(pointer)),
        };
        let pointee = c_type(pointee);
        return match (constant, pointee.ends_with('*')) {
            // `const` precedes a type name, and follows a pointer.
            (true, true) => format!("{pointee}const *"),
            (true, false) => format!("const {pointee} *"),
            (false, true) => format!("{pointee}*"),
            (false, false) => format!("{pointee} *"),
        };
    }
    if let Some(callback) = rust.strip_prefix("Option<") {
        return callback_type(callback);
    }
    let name = match rust {
        "c_void" => "void",
        "c_char" => "char",
        "c_uchar" => "unsigned char",
        "c_short" => "short",
        "c_ushort" => "unsigned short",
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_ulonglong" => "unsigned long long",
        "f32" => "float",
        "usize" => "size_t",
        other => other,
    };
    name.to_owned()
}

/// Converts a callback's type without its beginning `Option<`: `unsafe extern "system" fn(a: A, b: B) -> R>` becomes
/// `R (CUDA_CB *)(A, B)`.
fn callback_type(rust: &str) -> String {
    let inside = rust.split_once("fn(").map_or(rust, |(_, rest)| rest);
    let (parameters, result) = inside.rsplit_once(')').unwrap_or((inside, ""));
    let result = result
        .trim_start()
        .strip_prefix("->")
        .map(|result| c_type(result.trim_end().trim_end_matches([',', '>', ' '])));
    let types: Vec<String> = parameters
        .split(',')
        .filter_map(|parameter| parameter.split_once(':'))
        .map(|(_, ty)| c_type(ty))
        .collect();
    format!(
        "{} (CUDA_CB *)({})",
        result.as_deref().unwrap_or("void"),
        types.join(", ")
    )
}

#[test]
fn types_are_spelled_as_in_c() {
    for (rust, c) in [
        ("*mut CUarray", "CUarray *"),
        ("* const c_void", "const void *"),
        ("*const *const c_char", "const char *const *"),
        ("*mut *mut c_void", "void **"),
        ("*mut *const c_char", "const char **"),
        ("usize", "size_t"),
        (
            "Option<unsafe extern \"system\" fn(userData: *mut c_void)>",
            "void (CUDA_CB *)(void *)",
        ),
        (
            "Option< unsafe extern \"system\" fn(n: c_int, d: CUdevice, ) -> usize, >",
            "size_t (CUDA_CB *)(int, CUdevice)",
        ),
    ] {
        assert_eq!(c_type(rust), c, "{rust}");
    }
}
