//! Fake drivers, built as shared libraries, and the temporary folder that holds them.

use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString, c_int};
use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns a temporary folder, which is created at the first call and removed when the process ends. Other users may
/// read it, because one test starts a program in it as another user.
pub(crate) fn folder() -> &'static Path {
    FOLDER.get_or_init(|| {
        let folder = new_folder().canonicalize().expect("the folder was just created");
        let rights = Permissions::from_mode(0o755);
        std::fs::set_permissions(&folder, rights).expect("this process owns the folder");
        // SAFETY: the handler is a function of this program.
        let registered = unsafe { atexit(remove_folder) };
        assert_eq!(registered, 0, "atexit did not accept the handler");
        folder
    })
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// Removes the folder at the end of the process, because the test harness has no hook for that.
extern "C" fn remove_folder() {
    if let Some(folder) = FOLDER.get() {
        _ = std::fs::remove_dir_all(folder);
    }
}

/// Creates a folder with a new name: an earlier process with the same ID may have crashed and left its folder.
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
    unreachable!("the loop does not end")
}

/// Returns a setting of cargo's environment for a foreign target: the linker (`LINKER`) or the command that runs
/// programs (`RUNNER`).
pub(crate) fn configured(what: &str) -> Option<OsString> {
    let name = format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_{what}", ARCH.to_uppercase());
    std::env::var_os(name)
}

/// Reports that a test was skipped because this machine lacks `missing`. Prints directly to the standard error stream,
/// because the harness hides the output of a passing test and CI lists these lines.
pub(crate) fn needs(missing: &str) {
    _ = writeln!(std::io::stderr(), "needs {missing}");
}

/// Builds the fake driver with some `--cfg`s, at a path below [`folder`]; prints a message and returns `None` if there
/// is no compiler.
pub(crate) fn driver(path: &str, cfgs: &[&str]) -> Option<PathBuf> {
    let library = folder().join(path);
    std::fs::create_dir_all(library.parent().expect("a folder")).expect("a folder for the fake");
    let source = library.with_extension("rs");
    std::fs::write(&source, include_str!("driver.rs")).expect("a file for its source");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "-Cpanic=abort", "-Copt-level=1", "--crate-name=fake"]);
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
            needs(&format!("rustc: {error}"));
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(library)
        }
    }
}
