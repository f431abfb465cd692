//! Drivers of a few functions, built as shared libraries.

use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString, c_int};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A folder for this run's files, made by it and gone when it ends. Other users may look into it: one of the tests starts a
/// program there as somebody else.
pub(crate) fn folder() -> &'static Path {
    FOLDER.get_or_init(|| {
        let folder = new_folder().canonicalize().expect("it was just made");
        let rights = Permissions::from_mode(0o755);
        std::fs::set_permissions(&folder, rights).expect("a folder of ours");
        // SAFETY: the handler stays as long as the program.
        let registered = unsafe { atexit(remove_folder) };
        assert_eq!(registered, 0, "a handler for the end of the process");
        folder
    })
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// The test harness has no end of its own, and the process may begin to end in it.
extern "C" fn remove_folder() {
    if let Some(folder) = FOLDER.get() {
        _ = std::fs::remove_dir_all(folder);
    }
}

/// A folder that was not there before: an earlier process of this number, which came to a bad end, may have left one.
fn new_folder() -> PathBuf {
    for n in 0.. {
        let name = format!("cuda-driver-sys-{}-{n}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return folder,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", folder.display()),
        }
    }
    unreachable!("there are as many names as numbers")
}

/// What cargo's environment says about this target where it is not the machine's own: how to link for it (`LINKER`),
/// and what runs its programs (`RUNNER`).
pub(crate) fn configured(what: &str) -> Option<OsString> {
    let name = format!(
        "CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_{what}",
        ARCH.to_uppercase()
    );
    std::env::var_os(name)
}

/// Builds the fake driver with some `--cfg`s; `None`, said aloud, where there is no compiler.
pub(crate) fn driver(path: &str, cfgs: &[&str]) -> Option<PathBuf> {
    let library = folder().join(path);
    std::fs::create_dir_all(library.parent().expect("a folder")).expect("a folder for the fake");
    let source = library.with_extension("rs");
    std::fs::write(&source, include_str!("driver.rs")).expect("a file for its source");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args([
        "--edition=2024",
        "-Cpanic=abort",
        "-Copt-level=1",
        "--crate-name=fake",
    ]);
    if let Some(linker) = configured("LINKER") {
        rustc.arg(format!("--target={ARCH}-unknown-linux-gnu"));
        rustc
            .arg("-C")
            .arg([OsStr::new("linker="), &linker].join(OsStr::new("")));
    }
    rustc.arg(source).arg("-o").arg(&library);
    for cfg in cfgs {
        rustc.args(["--cfg", cfg]);
    }
    match rustc.output() {
        Err(error) => {
            println!("needs rustc: {error}");
            None
        }
        Ok(output) => {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(library)
        }
    }
}
