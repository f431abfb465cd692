//! Tests of loading drivers, and files that are not drivers. Tests of the default library or the environment run in a
//! process of their own: this test binary, started again with the name of one test.
#![cfg(all(feature = "loader", target_os = "linux"))]

mod fakes;

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use cuda_driver_sys::library::{ClaimedBy, LoadError, LoadErrorKind, Options, Source};
use cuda_driver_sys::{CUresult, DEFAULT, Function, Library, cuDriverGetVersion, cuInit, set_default};
use fakes::{configured, driver as fake, folder, needs};

fn load_from(path: impl AsRef<Path>) -> Result<&'static Library, LoadError> {
    // SAFETY: the functions of the fake drivers have the types of the exports that they replace.
    unsafe { Library::load_from(path) }
}

/// Returns the message of a load that must fail, without its beginning.
fn refusal(path: &Path) -> String {
    let error = load_from(path).expect_err("no driver").to_string();
    let start = format!("no CUDA driver could be loaded: {}: ", path.display());
    error
        .strip_prefix(&start)
        .unwrap_or_else(|| panic!("{error} does not begin with {start}"))
        .to_owned()
}

#[test]
fn missing_file() {
    assert_eq!(
        refusal(Path::new("/no/such/file")),
        "No such file or directory (os error 2)"
    );
    let error = load_from("/no/such/file").expect_err("no driver");
    assert_eq!(error.kind(), LoadErrorKind::Named);
}

/// For an empty path, the system's loader would return the program itself.
#[test]
fn empty_path() {
    let error = load_from("").expect_err("no driver").to_string();
    assert_eq!(error, "no CUDA driver could be loaded: the path is empty");
}

#[test]
fn relative_path_is_kept_as_absolute() {
    let Some(path) = fake("relative.so", &[]) else {
        return;
    };
    let text = child("children::changes_the_folder", &[("FAKE", &path)]);
    assert!(text.contains(&format!("path {}\n", path.display())), "{text}");
}

#[test]
fn file_that_is_not_a_library() {
    let file = folder().join("text.so");
    std::fs::write(
        &file,
        "This is not a library. It is longer than an ELF header, or the loader would reject it as too short.\n",
    )
    .expect("a file");
    assert_eq!(refusal(&file), "invalid ELF header");
}

#[test]
fn folder_and_pipe() {
    assert_eq!(refusal(folder()), "is a directory, not a library");
    let pipe = folder().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    assert_eq!(refusal(&pipe), "is not a regular file");
}

#[test]
fn library_without_init() {
    let Some(path) = fake("no_init.so", &["no_init"]) else {
        return;
    };
    assert_eq!(
        refusal(&path),
        "is a library, but not a CUDA driver: it exports no cuInit"
    );
}

#[test]
fn a_bare_name_is_left_to_the_systems_loader() {
    let error = load_from("libno-such-driver.so.7").expect_err("no driver").to_string();
    assert_eq!(
        error,
        "no CUDA driver could be loaded: libno-such-driver.so.7: cannot open shared object file: No such file or directory"
    );
}

#[test]
fn driver_with_a_version_and_without_a_function() {
    let Some(path) = fake("driver.so.1.2.3", &[]) else {
        return;
    };
    let link = folder().join("driver.so.1");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let library = load_from(&link).expect("a driver");
    assert_eq!(library.path(), Some(path.as_path()));
    assert_eq!(library.version(), Some(12020));
    assert!(!library.is_software());
    assert_eq!(
        Library::by_number(library.number()).map(Library::path),
        Some(Some(path.as_path()))
    );
    // SAFETY: the function is missing, so nothing is called.
    let code = unsafe { library.cuCtxSynchronize() };
    assert_eq!(code, CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
    let missing = library
        .missing(Function::cuDeviceGetLuid)
        .expect("it is missing")
        .to_string();
    let at = path.display();
    assert_eq!(
        missing,
        format!("cuDeviceGetLuid needs CUDA 10.0, but this driver (CUDA 12.2) does not export it ({at})")
    );
}

#[test]
fn driver_with_an_unknown_code() {
    let Some(path) = fake("strange.so", &["strange"]) else {
        return;
    };
    let library = load_from(path).expect("a driver");
    // SAFETY: cuInit takes no pointers.
    let code = unsafe { library.cuInit(0) };
    assert_eq!(code, CUresult(12345));
    assert_eq!(code.name(), None);
}

#[test]
fn a_stub_that_is_named_is_loaded() {
    let Some(path) = fake("stubs/libcuda.so", &["stub"]) else {
        return;
    };
    let library = load_from(path).expect("a stub that is named is loaded");
    // SAFETY: cuInit takes no pointers.
    let code = unsafe { library.cuInit(0) };
    assert_eq!(code, CUresult::CUDA_ERROR_STUB_LIBRARY);
}

/// A privileged process must not load a driver that the user who starts it chooses.
#[test]
fn privileged_process_ignores_the_variable() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        needs("root, to make a setuid program and start it as another user");
        return;
    }
    let Some(path) = fake("ignored_driver.so", &[]) else {
        return;
    };
    let program = folder().join("setuid");
    std::fs::copy(std::env::current_exe().expect("this test"), &program).expect("a copy");
    // The test harness has options that write files, so only the user that starts the setuid copy below may run it, and
    // only during the test.
    chown(&program, None, Some(NOBODY)).expect("this process owns the file");
    let mode = std::fs::Permissions::from_mode(0o4750);
    std::fs::set_permissions(&program, mode).expect("this process owns the file");
    let mut command = Command::new(&program);
    command
        .args(["--exact", "--ignored", "--nocapture"])
        .args(["children::reports_its_rights", REPORTS])
        .env("CUDA_DRIVER_LIBRARY", &path)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/");
    let mut output = command.output();
    // Processes that other tests fork at this moment may still have the copy open for writing.
    for _ in 0..1000 {
        match &output {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
                output = command.output();
            }
            _ => break,
        }
    }
    std::fs::remove_file(&program).expect("this process owns the file");
    if matches!(&output, Err(error) if error.kind() == ErrorKind::PermissionDenied) {
        needs("a folder for temporary files that other users can start programs in");
        return;
    }
    let output = output.expect("this test starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("2 passed"), "{text}");
    if !text.contains(&format!("user {NOBODY} has the rights of 0\n")) {
        println!("{text}");
        needs("a folder for temporary files where setuid takes effect, and no emulator");
        return;
    }
    assert!(!text.contains("ignored_driver"), "{text}");
    assert!(
        text.contains("error none") || text.contains("CUDA_DRIVER_LIBRARY is ignored"),
        "{text}"
    );
}

const REPORTS: &str = "children::reports_the_default";

/// Runs one of the tests below in a process of its own, with variables set, and returns its output.
fn child(test: &str, variables: &[(&str, &Path)]) -> String {
    let this = std::env::current_exe().expect("this test");
    let mut command = match configured("RUNNER") {
        None => Command::new(this),
        Some(runner) => {
            let mut command = Command::new(runner);
            command.arg(this);
            command
        }
    };
    command
        .args(["--exact", "--ignored", "--nocapture", test])
        .env_remove("CUDA_DRIVER_LIBRARY");
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().expect("this test starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {text}");
    assert!(text.contains("1 passed"), "{test} did not run: {text}");
    text
}

#[test]
fn variable_names_the_driver() {
    let Some(path) = fake("named.so", &[]) else {
        return;
    };
    let text = child(REPORTS, &[("CUDA_DRIVER_LIBRARY", &path)]);
    assert!(
        text.contains(&format!("path {}\ncuInit CUDA_SUCCESS\nerror none\n", path.display())),
        "{text}"
    );
}

#[test]
fn variable_without_a_file_stops_the_search() {
    let text = child(REPORTS, &[("CUDA_DRIVER_LIBRARY", Path::new("/no/such/file"))]);
    let expected = "path none\ncuInit CUDA_ERROR_SHARED_OBJECT_INIT_FAILED\n\
                    error no CUDA driver could be loaded: CUDA_DRIVER_LIBRARY names /no/such/file: No such file or directory (os error 2)\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn stub_in_the_library_path_is_skipped() {
    let Some(stub) = fake("path/stubs/libcuda.so.1", &["stub"]) else {
        return;
    };
    let text = child(REPORTS, &[("LD_LIBRARY_PATH", stub.parent().expect("a folder"))]);
    let stub_is_refused = format!(
        "{}: is the stub library of a CUDA toolkit, not a driver",
        stub.display()
    );
    let real_driver = text.contains("error none");
    assert!(real_driver || text.contains(&stub_is_refused), "{text}");
    assert!(!text.contains(&format!("path {}", stub.display())), "{text}");
}

#[test]
fn default_is_set_once_and_before_its_use() {
    child("children::sets_the_default_twice", &[]);
    child("children::sets_the_default_too_late", &[]);
}

#[test]
fn resolver_that_calls_its_own_library_gets_an_error() {
    child("children::resolves_through_itself", &[]);
}

#[test]
fn panic_of_a_resolver_does_not_deadlock() {
    child("children::panics_in_the_resolver", &[]);
}

#[test]
fn threads_open_a_library_once() {
    child("children::starts_on_many_threads", &[]);
}

/// Run by the tests above, each in a process of its own.
mod children {
    use core::ffi::{CStr, c_int, c_uint, c_void};
    use core::ptr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn changes_the_folder() {
        let path = std::env::var_os("FAKE").expect("a path");
        let here = std::env::current_dir().expect("a folder");
        let up = "../".repeat(here.components().count() - 1);
        let relative = Path::new(&up).join(Path::new(&path).strip_prefix("/").expect("absolute"));
        let library = load_from(relative).expect("a driver");
        std::env::set_current_dir("/").expect("the root");
        println!("path {}", library.path().expect("a file").display());
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn reports_the_default() {
        // SAFETY: cuInit takes no pointers.
        let code = unsafe { cuInit(0) };
        println!(
            "path {}",
            DEFAULT
                .path()
                .map_or("none".to_owned(), |path| path.display().to_string())
        );
        println!("cuInit {code:?}");
        println!(
            "error {}",
            DEFAULT.load_error().map_or("none".to_owned(), ToString::to_string)
        );
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn reports_its_rights() {
        // SAFETY: no preconditions.
        let (user, rights) = unsafe { (libc::getuid(), libc::geteuid()) };
        println!("user {user} has the rights of {rights}");
    }

    unsafe extern "system" fn init(_: c_uint) -> CUresult {
        CUresult::CUDA_SUCCESS
    }

    unsafe extern "system" fn version(version: *mut c_int) -> CUresult {
        // SAFETY: the tests pass pointers to integers.
        unsafe { version.write(13000) };
        CUresult::CUDA_SUCCESS
    }

    fn resolve(name: &CStr) -> *const c_void {
        match name.to_bytes() {
            b"cuInit" => init as *const c_void,
            b"cuDriverGetVersion" => version as *const c_void,
            _ => ptr::null(),
        }
    }

    fn default_version() -> (CUresult, c_int) {
        let mut version = 0;
        // SAFETY: the pointer is to an integer.
        let code = unsafe { cuDriverGetVersion(&raw mut version) };
        (code, version)
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn sets_the_default_twice() {
        // SAFETY: the functions above have the types of the exports that they replace.
        let source = unsafe { Source::resolver("the first", resolve) };
        set_default(source.clone()).expect("the default is not set yet");
        let error = set_default(source).expect_err("it was set before");
        let ClaimedBy::Set { source, location } = error.by() else {
            panic!("{error}")
        };
        assert_eq!(source, "the first");
        assert_eq!(
            error.to_string(),
            format!("the default CUDA library can no longer be set: it was set to the first at {location}")
        );
        assert!(location.file().ends_with("loader.rs"));
        assert_eq!(default_version(), (CUresult::CUDA_SUCCESS, 13000));
        assert_eq!(DEFAULT.description().as_deref(), Some("the first"));
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn sets_the_default_too_late() {
        _ = default_version();
        let error = set_default(Source::search()).expect_err("it was used before");
        assert_eq!(*error.by(), ClaimedBy::FirstUse(Some(Function::cuDriverGetVersion)));
        assert_eq!(
            error.to_string(),
            "the default CUDA library can no longer be set: it was first used by a call to cuDriverGetVersion"
        );
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn resolves_through_itself() {
        static REFUSED: AtomicU32 = AtomicU32::new(0);
        fn calls_the_default(name: &CStr) -> *const c_void {
            let (code, _) = default_version();
            if code == CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED {
                REFUSED.fetch_add(1, Ordering::Relaxed);
            }
            resolve(name)
        }
        // SAFETY: the functions above have the types of the exports that they replace.
        set_default(unsafe { Source::resolver("a loop", calls_the_default) }).expect("the default is not set yet");
        assert_eq!(default_version(), (CUresult::CUDA_SUCCESS, 13000));
        // Once while the library was opened, once while the function was resolved.
        assert_eq!(REFUSED.load(Ordering::Relaxed), 2);
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn panics_in_the_resolver() {
        // SAFETY: it resolves nothing.
        let source = unsafe { Source::resolver("a panic", |_| panic!("on purpose")) };
        set_default(source).expect("the default is not set yet");
        assert!(std::panic::catch_unwind(default_version).is_err());
        assert_eq!(default_version().0, CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED);
        assert_eq!(
            DEFAULT.load_error().expect("it panicked").to_string(),
            "the resolver panicked while the library was being opened"
        );
    }

    #[test]
    #[ignore = "run by other tests, in a process of its own"]
    fn starts_on_many_threads() {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        fn slowly(name: &CStr) -> *const c_void {
            if name == c"cuInit" {
                OPENED.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            resolve(name)
        }
        // SAFETY: the functions above have the types of the exports that they replace.
        set_default(unsafe { Source::resolver("a slow one", slowly) }).expect("the default is not set yet");
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(default_version(), (CUresult::CUDA_SUCCESS, 13000)));
            }
        });
        assert_eq!(OPENED.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn options_apply_to_files() {
    let Some(path) = fake("options.so", &[]) else {
        return;
    };
    // SAFETY: the functions of the fake driver have the types of the exports that they replace.
    let source = unsafe { Source::path(path) };
    let library = Library::new(source, Options::new().per_thread_default_stream(true)).expect("a driver");
    assert!(library.is_per_thread());
    assert_eq!(library.version(), Some(12020));
}
