//! What the user is told where the header could not be read: mostly that clang lacks something, which bindgen says by a
//! panic or in clang's words.

use std::panic;

use super::Model;

/// What everybody can do who does not need the feature.
const OFF: &str =
    "or switch the feature `bindgen` off: the committed bindings need neither header nor libclang";

/// Reads a header. What goes wrong, a panic of bindgen's too, is an error that says what to do.
///
/// # Errors
/// What bindgen or the reader of its output objects to.
pub(crate) fn read(work: impl FnOnce() -> Result<Model, String>) -> Result<Model, String> {
    // The panic's text is the error's; where in bindgen it was thrown helps nobody.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(panic::AssertUnwindSafe(work));
    panic::set_hook(hook);
    let outcome = outcome.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(text.unwrap_or("bindgen panicked without a word").to_owned())
    });
    outcome.map_err(|error| explained(&error))
}

fn explained(error: &str) -> String {
    if error.contains("Unable to find libclang") {
        return format!(
            "the feature `bindgen` needs libclang, and there is none {}. Install it (Debian and Ubuntu: libclang-dev; \
             Fedora: clang-devel; elsewhere LLVM), or set LIBCLANG_PATH to the folder that holds it, {OFF}.\n{error}",
            searched()
        );
    }
    if error.contains("'stddef.h' file not found") {
        return format!(
            "libclang is there, but not the headers that belong to it. Install them (Debian and Ubuntu: \
             libclang-common-N-dev with libclang's number), or set BINDGEN_EXTRA_CLANG_ARGS to `-resource-dir FOLDER`, the \
             folder that holds include/stddef.h, {OFF}.\n{error}"
        );
    }
    if error.contains("file not found") {
        return format!(
            "a header of the C library is missing. Install them (Debian and Ubuntu: libc6-dev, for other targets \
             libc6-dev-ARCH-cross), or set BINDGEN_EXTRA_CLANG_ARGS to `-I FOLDER` or `--sysroot=FOLDER`, {OFF}.\n{error}"
        );
    }
    format!("{error}\nPlease report this, {OFF}.")
}

/// Where libclang is looked for, by the crate clang-sys.
fn searched() -> String {
    let value =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let set = |name: &str| {
        let value = value(name);
        format!("{name} ({})", value.as_deref().unwrap_or("not set"))
    };
    match value("LIBCLANG_PATH") {
        Some(path) => format!(
            "in LIBCLANG_PATH ({path}), which is the only place where it is looked for as long as that is set"
        ),
        None => format!(
            "in the folders that llvm-config names, {}, {}, or in the usual folders of this system (/usr/lib*, \
             /usr/local/lib* and below)",
            set("LD_LIBRARY_PATH"),
            set("LIBRARY_PATH")
        ),
    }
}
