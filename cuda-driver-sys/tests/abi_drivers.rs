//! Tests of the loader and the registry with NVIDIA's drivers: versions 450 to 555 on a machine without a GPU, and the
//! installed driver on a machine with a GPU.
//!
//! `ci/drivers.sh` downloads the drivers and runs this test; `ci/gpu.sh` runs it on a GPU machine. Each driver is
//! loaded in a process of its own, which drops root privileges before it calls `cuInit`: as root, `cuInit` would create
//! a device node.
#![cfg(all(target_os = "linux", target_arch = "x86_64", feature = "loader"))]

use core::ffi::{c_int, c_void};
use core::ptr;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuda_driver_sys::library::{Options, Source};
use cuda_driver_sys::{CUDA_VERSION, CUresult, Function, Library, StreamMode, cuuint64_t, legacy};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSymbol as _};

/// Drivers by their major version, and the CUDA version that each supports.
const DRIVERS: [(&str, u32); 6] = [
    ("450", 11000),
    ("470", 11040),
    ("525", 12000),
    ("535", 12020),
    ("550", 12040),
    ("555", 12050),
];

/// The beginnings of the names of exports that other headers declare.
const OTHER_HEADERS: &[&str] = &[
    "cuGL",
    "cuGraphicsGL",
    "cuWGL",
    "cuEGL",
    "cuGraphicsEGL",
    "cuVDPAU",
    "cuGraphicsVDPAU",
    "cuGraphicsResourceGetMappedEglFrame",
    "cuProfiler",
    "cudbg",
    "CUDBG",
];
/// Exports that no header declares.
const UNDOCUMENTED: &[&str] = &["cuMemGetAttribute", "cuMemGetAttribute_v2"];

/// By CUDA version, the functions that a driver does not export on Linux, although the headers of its version declare
/// them.
const LACKING: &[(u32, &[&str])] = &[(11000, &["cuDeviceGetLuid"])];

/// Formats 12020 as "12.2".
fn point(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The environment variable that names the file that a child process loads.
const FILE: &str = "CUDA_ABI_DRIVER_FILE";
/// The environment variable with the CUDA version that the file must support, if that version is known.
const VERSION: &str = "CUDA_ABI_DRIVER_VERSION";

/// Runs [`one_driver`] in a process of its own. The error is the end of a process that did not pass.
fn in_a_process(file: &Path, version: Option<u32>) -> Result<(), String> {
    let mut this = Command::new(std::env::current_exe().expect("a test has a path"));
    this.args([
        "--exact",
        "a_driver_in_its_own_process",
        "--include-ignored",
        "--nocapture",
        "--quiet",
    ]);
    this.env(FILE, file);
    if let Some(version) = version {
        this.env(VERSION, version.to_string());
    }
    this.stderr(Stdio::inherit());
    let output = this.output().expect("the test starts itself");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    // A filter that matches no test also succeeds.
    if output.status.success() && text.contains("1 passed") {
        return Ok(());
    }
    Err(format!("{}: {}", file.display(), output.status))
}

/// The child process of the other tests. Does nothing on its own.
#[test]
#[ignore = "a part of the other tests here, which start it"]
fn a_driver_in_its_own_process() {
    if let Some(file) = std::env::var_os(FILE) {
        let version = std::env::var(VERSION).ok();
        let version = version.map(|version| version.parse().expect("a number"));
        one_driver(Path::new(&file), version);
    }
}

#[test]
fn this_machines_driver_matches_the_registry() {
    let file = match Library::load() {
        Ok(library) if !library.is_software() => library.path().expect("it is a file"),
        _ => {
            // Written to stderr directly, because the harness captures the output of passing tests and CI lists this
            // line.
            _ = writeln!(std::io::stderr(), "needs NVIDIA's driver");
            return;
        }
    };
    in_a_process(file, None).expect("the driver passes");
}

#[test]
#[ignore = "needs NVIDIA's drivers: ci/drivers.sh downloads them and runs this"]
fn drivers_match_the_registry() {
    let folder = std::env::var_os("CUDA_ABI_DRIVERS").expect("CUDA_ABI_DRIVERS names the folder of the drivers");
    let mut failed = Vec::new();
    for (driver, version) in DRIVERS {
        let file = find(&Path::new(&folder).join(driver))
            .unwrap_or_else(|| panic!("no libcuda.so.1 of driver {driver} in {}", folder.display()));
        failed.extend(in_a_process(&file, Some(version)).err());
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Returns the driver's file below a folder.
fn find(folder: &Path) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder {
            if let Some(found) = find(&path) {
                return Some(found);
            }
        } else if path.file_name().is_some_and(|name| name == "libcuda.so.1") {
            return Some(path);
        }
    }
    None
}

fn one_driver(file: &Path, version: Option<u32>) {
    let exported = exports(file);
    let source = || {
        // SAFETY: the file is NVIDIA's driver.
        unsafe { Source::path(file) }
    };
    let library = Library::new(source(), Options::new()).expect("the driver loads");
    let per_thread = Library::new(source(), Options::new().per_thread_default_stream(true)).expect("the driver loads");
    become_ordinary_user();
    let version = version.or(library.version()).expect("it has a version");
    assert_eq!(library.version(), Some(version));
    assert!(!library.is_software());

    // The driver exports all functions of its version and none that is newer. The error for a missing function names
    // the version that it needs.
    let mut present = 0;
    let mut lacking = Vec::new();
    for &function in Function::ALL {
        let symbol = library.symbol(function.symbol());
        assert_eq!(symbol.is_some(), exported.contains(function.name()), "{function}");
        assert_eq!(library.get(function), symbol, "{function}");
        assert_eq!(library.supports(function), symbol.is_some(), "{function}");
        let due = function.since() <= version;
        match library.missing(function) {
            None => {
                assert!(due, "{function} is exported before {}", function.since());
                present += 1;
            }
            Some(missing) => {
                assert_eq!(missing.driver_version, Some(version));
                let driver = point(version);
                let driver = if due {
                    format!("but this driver (CUDA {driver}) does not export it")
                } else {
                    format!("this driver supports {driver}")
                };
                let words = format!("{function} needs CUDA {}, {driver}", point(function.since()));
                assert!(missing.to_string().starts_with(&words), "{missing}");
                if due {
                    lacking.push(function.name());
                }
            }
        }
        if let Some(twin) = function.per_thread() {
            let expected = library
                .get(twin)
                .or(library.get(function).filter(|_| twin.since() > version));
            assert_eq!(per_thread.get(function), expected, "{function} of a per-thread library");
        }
    }
    let expected = LACKING
        .iter()
        .find(|(of, _)| *of == version)
        .map_or(&[][..], |(_, names)| names);
    assert_eq!(lacking, expected, "missing though not newer than the driver");

    // Call the newest function of the bindings if the driver does not export it.
    if !library.supports(Function::cuDeviceGetCliqueCount) {
        // SAFETY: the driver does not export it, so nothing is called.
        let code = unsafe { library.cuDeviceGetCliqueCount(ptr::null_mut(), 0) };
        assert_eq!(code, CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
    }

    // Every export is known.
    let unknown: Vec<&String> = exported
        .iter()
        .filter(|name| Function::by_symbol(name).is_none())
        .filter(|name| !OTHER_HEADERS.iter().any(|start| name.starts_with(start)))
        .filter(|name| !UNDOCUMENTED.contains(&name.as_str()))
        .collect();
    if version <= CUDA_VERSION {
        assert!(unknown.is_empty(), "exported and unknown: {unknown:?}");
    } else {
        println!("CUDA {version} is newer than these bindings; it adds {unknown:?}");
    }

    let asked = ask_the_driver(library, version);
    // SAFETY: cuInit takes no pointers.
    let code = unsafe { library.cuInit(0) };
    if !Path::new("/dev/nvidiactl").exists() {
        assert_eq!(code, CUresult::CUDA_ERROR_NO_DEVICE);
    }
    println!(
        "CUDA {version}: {} exports, {present} of {} functions, {asked} confirmed by cuGetProcAddress, cuInit {code:?}",
        exported.len(),
        Function::COUNT
    );
}

/// Checks that `cuGetProcAddress` returns the loader's address for the base name, version and stream mode of each
/// function that the driver exports. Returns the number of functions that were compared.
fn ask_the_driver(library: &'static Library, version: u32) -> usize {
    let known: Vec<Function> = Function::ALL
        .iter()
        .copied()
        .filter(|function| library.supports(*function))
        .collect();
    let old = legacy::function::cuGetProcAddress;
    if !library.supports(old) {
        assert!(version < old.since(), "{old} is missing");
        return 0;
    }
    for function in &known {
        let flags: cuuint64_t = match function.stream_mode() {
            StreamMode::None => 0,
            StreamMode::Legacy => 1,
            StreamMode::PerThread => 2,
        };
        let base = CString::new(function.base()).expect("a name holds no NUL");
        let since = c_int::try_from(function.since()).expect("a version is small");
        let mut found: *mut c_void = ptr::null_mut();
        // SAFETY: a C string, and pointers to variables on the stack.
        let code = unsafe {
            library
                .legacy()
                .cuGetProcAddress(base.as_ptr(), &raw mut found, since, flags)
        };
        assert_eq!(code, CUresult::CUDA_SUCCESS, "{function}");
        assert_eq!(
            Some(found),
            library.get(*function).map(ptr::NonNull::as_ptr),
            "{function}"
        );
        if library.supports(Function::cuGetProcAddress_v2) {
            let mut found: *mut c_void = ptr::null_mut();
            let mut status = Default::default();
            // SAFETY: as above.
            let code =
                unsafe { library.cuGetProcAddress_v2(base.as_ptr(), &raw mut found, since, flags, &raw mut status) };
            assert_eq!(code, CUresult::CUDA_SUCCESS, "{function}");
            assert_eq!(
                Some(found),
                library.get(*function).map(ptr::NonNull::as_ptr),
                "{function}: {status:?}"
            );
        }
    }
    known.len()
}

/// Returns the names of the functions and variables that a library exports.
fn exports(file: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(file).expect("the driver can be read");
    let elf: ElfFile64 = ElfFile64::parse(bytes.as_slice()).expect("the driver is an ELF file");
    let symbols = elf.dynamic_symbols().filter(|symbol| symbol.is_definition());
    symbols
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect()
}

/// Drops root privileges in all threads of this process.
fn become_ordinary_user() {
    const NOBODY: u32 = 65534;
    // SAFETY: the only pointer is null, for an empty list.
    let (group, user) = unsafe {
        if libc::geteuid() != 0 {
            return;
        }
        assert_eq!(libc::setgroups(0, ptr::null()), 0);
        (
            libc::setresgid(NOBODY, NOBODY, NOBODY),
            libc::setresuid(NOBODY, NOBODY, NOBODY),
        )
    };
    assert_eq!((group, user), (0, 0), "{}", std::io::Error::last_os_error());
}
