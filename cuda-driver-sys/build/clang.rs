//! Error messages for a header that could not be read. The usual cause is an incomplete clang, which bindgen reports
//! with a panic or with clang's own message.

use std::panic;

use super::model::Model;

/// The advice for users who do not need the feature.
const OFF: &str = "or switch the feature `bindgen` off: the committed bindings need neither header nor libclang";

/// Reads a header. Errors, and panics of bindgen, become messages that say how to fix the cause.
///
/// # Errors
/// An error of bindgen, or output of bindgen that this generator does not know.
pub(crate) fn read(work: impl FnOnce() -> Result<Model, String>) -> Result<Model, String> {
    // The message of a panic becomes the error; its location in bindgen is of no use.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(panic::AssertUnwindSafe(work));
    panic::set_hook(hook);
    let outcome = outcome.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(text.unwrap_or("bindgen panicked without a message").to_owned())
    });
    outcome.map_err(|error| explained(&error))
}

/// Returns the error, with its cause if it is known, and with the fix.
fn explained(error: &str) -> String {
    if error.contains("Unable to find libclang") {
        return format!(
            "the feature `bindgen` needs libclang, which was not found {}. Install it (Debian and Ubuntu: libclang-dev; \
             Fedora: clang-devel; elsewhere LLVM), or set LIBCLANG_PATH to the folder that holds it, {OFF}.\n{error}",
            searched()
        );
    }
    if error.contains("'stddef.h' file not found") {
        return format!(
            "libclang was found, but not its headers. Install them (Debian and Ubuntu: \
             libclang-common-N-dev, where N is libclang's version), or set BINDGEN_EXTRA_CLANG_ARGS to `-resource-dir FOLDER`, the \
             folder that holds include/stddef.h, {OFF}.\n{error}"
        );
    }
    if error.contains("file not found") {
        return format!(
            "a header of the C library is missing. Install its headers (Debian and Ubuntu: libc6-dev, for other targets \
             libc6-dev-ARCH-cross), or set BINDGEN_EXTRA_CLANG_ARGS to `-I FOLDER` or `--sysroot=FOLDER`, {OFF}.\n{error}"
        );
    }
    format!("{error}\nPlease report this, {OFF}.")
}

/// Returns the places where the crate clang-sys, which bindgen uses, looks for libclang.
fn searched() -> String {
    let value = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let set = |name: &str| {
        let value = value(name);
        format!("{name} ({})", value.as_deref().unwrap_or("not set"))
    };
    match value("LIBCLANG_PATH") {
        Some(path) => {
            format!("in LIBCLANG_PATH ({path}), which is the only place searched while it is set")
        }
        None => format!(
            "in the folders that llvm-config names, {}, {}, or in the usual folders of this system (on Linux \
             /usr/lib*, /usr/local/lib* and below)",
            set("LD_LIBRARY_PATH"),
            set("LIBRARY_PATH")
        ),
    }
}
