//! Shared parts of the tests: the driver under test, kernels' PTX, tables of result codes, child processes.
#![allow(dead_code)] // each test program uses only a part

pub(crate) mod gpu;
mod needs;
pub(crate) mod values;

use std::env;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use cuda_driver::sys::*;
use cuda_driver::{Context, Device, Error};
#[allow(unused_imports)] // not used by every test program
pub(crate) use needs::{needs, say};

/// Makes the driver that `CUDA_DRIVER` names (the software driver if it is unset) the process's default, without
/// initialising it. Prints its name once, except in a child process.
pub(crate) fn select_driver() {
    static SELECTED: OnceLock<()> = OnceLock::new();
    SELECTED.get_or_init(|| {
        let selection = match cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software) {
            Ok(selection) => selection,
            Err(error) => panic!("the driver under test cannot be used: {error}"),
        };
        if env::var_os(CHILD).is_none() {
            say(&format!("driver under test: {selection}"));
        }
        if let Err(error) = selection.install() {
            panic!("the process already has a default library: {error}");
        }
    });
}

/// Selects the driver under test and calls `cuInit`.
pub(crate) fn driver() {
    static STARTED: OnceLock<u32> = OnceLock::new();
    let code = *STARTED.get_or_init(|| {
        select_driver();
        // SAFETY: cuInit has no precondition.
        unsafe { cuInit(0) }.0
    });
    assert_eq!(code, 0, "cuInit(0)");
}

/// Returns the CUDA version of the driver under test: 13000 for 13.0.
pub(crate) fn driver_version() -> i32 {
    select_driver();
    let mut version = 0;
    // SAFETY: the pointer is valid for the write.
    let code = unsafe { cuDriverGetVersion(&raw mut version) }.0;
    assert_eq!(code, 0, "cuDriverGetVersion");
    version
}

/// Returns the architecture of the first device: 90 for compute capability 9.0.
pub(crate) fn architecture() -> i32 {
    driver();
    let attributes = [
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ];
    let [major, minor] = attributes.map(|attribute| {
        let mut part = 0;
        // SAFETY: the pointer is valid for the write.
        let code = unsafe { cuDeviceGetAttribute(&raw mut part, attribute, 0) }.0;
        assert_eq!(code, 0, "cuDeviceGetAttribute");
        part
    });
    10 * major + minor
}

/// Returns true if the first device has at least this architecture; otherwise reports that the test needs one.
pub(crate) fn has_architecture(least: i32) -> bool {
    let has = architecture() >= least;
    if !has {
        needs(&format!("a device of sm_{least} or later"));
    }
    has
}

/// Returns true if the driver under test has at least this version, as in 12050 for CUDA 12.5; otherwise reports that the
/// test, or a part of it, needs one.
pub(crate) fn has_version(least: i32) -> bool {
    let has = driver_version() >= least;
    if !has {
        needs(&format!("a driver of CUDA {}.{}", least / 1000, least % 1000 / 10));
    }
    has
}

/// Returns true if the driver under test is the software driver, by its device's name.
pub(crate) fn is_software() -> bool {
    driver();
    let mut name = [0_u8; 64];
    // SAFETY: the buffer has the given length.
    let code = unsafe { cuDeviceGetName(name.as_mut_ptr().cast(), 64, 0) }.0;
    assert_eq!(code, 0, "cuDeviceGetName");
    name.starts_with(b"Software CUDA device")
}

/// Like [`needs`], but fails if the driver under test is the software driver, which has every feature that the tests use.
/// With `CUDA_SOFT_VERSION` or `CUDA_SOFT_DEVICES` it may lack some.
#[track_caller]
pub(crate) fn needs_but_not_in_software(missing: &str) {
    let restricted = ["CUDA_SOFT_VERSION", "CUDA_SOFT_DEVICES"].map(|name| env::var_os(name).is_some());
    assert!(
        !is_software() || restricted.contains(&true),
        "the software driver must have {missing}"
    );
    needs(missing);
}

/// Returns the path of a kernel's PTX: next to this program in a packed folder, else in the source tree.
pub(crate) fn ptx_path(name: &str) -> PathBuf {
    let packed = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(name)));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let candidates = [
        packed.unwrap_or_default(),
        folder.join("generated").join(name),
        folder.join(name),
    ];
    match candidates.iter().find(|path| path.is_file()) {
        Some(path) => path.clone(),
        None => panic!("{name} is at none of {candidates:?}; run: cargo xtask kernels"),
    }
}

/// Returns the PTX of a kernel file, terminated by a NUL byte for the driver.
pub(crate) fn ptx(name: &str) -> Vec<u8> {
    let path = ptx_path(name);
    match std::fs::read(&path) {
        Ok(mut text) => {
            text.push(0);
            text
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Compares the result codes of a table of calls: collects every mismatch and fails at the end with all of them.
#[derive(Default)]
pub(crate) struct Codes {
    wrong: String,
    differ: usize,
    count: usize,
}

impl Codes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Expects the code `expected` from `call`.
    #[track_caller]
    pub(crate) fn is(&mut self, expected: u32, call: &str, got: u32) {
        self.that(expected == got, || format!("{call}: {got}, expected {expected}"));
    }

    /// Records a failure with its text unless `held`.
    #[track_caller]
    pub(crate) fn that(&mut self, held: bool, text: impl FnOnce() -> String) {
        self.count += 1;
        if !held {
            self.differ += 1;
            let at = std::panic::Location::caller();
            let _ = writeln!(self.wrong, "  {}:{}: {}", at.file(), at.line(), text());
        }
    }
}

impl Drop for Codes {
    fn drop(&mut self) {
        if self.wrong.is_empty() {
            return;
        }
        let text = format!("{} of {} differ:\n{}", self.differ, self.count, self.wrong);
        if std::thread::panicking() {
            eprintln!("{text}");
        } else {
            panic!("{text}");
        }
    }
}

/// Returns the first device.
pub(crate) fn device() -> Device {
    driver();
    Device::first().expect("a device")
}

/// Returns a new context on the first device. It is not current.
pub(crate) fn context() -> Context {
    Context::create(device()).expect("a context")
}

/// Returns the code of a result.
pub(crate) fn code<T>(result: Result<T, impl Into<Error>>) -> CUresult {
    match result {
        Ok(_) => CUresult::CUDA_SUCCESS,
        Err(error) => error.into().code(),
    }
}

/// `call!(cuMemFree(p))`: makes a call and returns its result.
#[macro_export]
macro_rules! call {
    ($call:expr) => {{
        // The tests pass pointers to live objects, or values that the driver is documented or known to refuse.
        #[allow(clippy::macro_metavars_in_unsafe)]
        // SAFETY: see above.
        let result = unsafe { $call };
        result
    }};
}

/// `is!(codes, 1, cuMemAlloc(&raw mut p, 0))`: expects the result code 1.
#[macro_export]
macro_rules! is {
    ($codes:expr, $expected:expr, $call:expr) => {{
        let got = $crate::call!($call).0;
        $codes.is($expected, stringify!($call), got);
    }};
}

/// `ok!(cuMemAlloc(&raw mut p, 4))`: the call must succeed, or the test fails immediately.
#[macro_export]
macro_rules! ok {
    ($call:expr) => {{
        let got = $crate::call!($call).0;
        assert_eq!(got, 0, "{}", stringify!($call));
    }};
}

/// The environment variable that tells a child process which test to run.
pub(crate) const CHILD: &str = "CUDA_TEST_CHILD";

/// The time after which a child process counts as hanging. A test takes seconds, or minutes on a busy machine.
const CHILD_LIMIT: Duration = Duration::from_secs(600);

/// Waits for a child process and returns its status and its output: the standard output stream, then the standard error
/// stream. Kills a child that hangs, and fails with the name of its test.
#[track_caller]
fn finish(mut child: Child, name: &str) -> (ExitStatus, String) {
    fn read(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            let _ = sender.send(bytes);
        });
        receiver
    }
    let streams = [
        read(child.stdout.take().expect("a pipe")),
        read(child.stderr.take().expect("a pipe")),
    ];
    let end = Instant::now() + CHILD_LIMIT;
    let text = streams.map(|stream| {
        let left = end.saturating_duration_since(Instant::now());
        let Ok(bytes) = stream.recv_timeout(left) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the child process of {name} hangs: killed after {CHILD_LIMIT:?}");
        };
        String::from_utf8_lossy(&bytes).into_owned()
    });
    // The streams end with the process, so this wait is short.
    let status = child.wait().expect("the child process can be waited for");
    (status, text.concat())
}

/// Runs `body` in a child process (this program with only this test): for faults, and for calls that must come before
/// `cuInit`.
///
/// `name` is the test's path as the harness prints it. Returns the child's output in the parent, and `None` in the
/// child.
#[track_caller]
pub(crate) fn in_child(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    in_child_with_input(name, environment, Stdio::null(), body)
}

/// Like [`in_child`], with a standard input stream for the child.
#[track_caller]
pub(crate) fn in_child_with_input(
    name: &str,
    environment: &[(&str, &str)],
    input: Stdio,
    body: impl FnOnce(),
) -> Option<String> {
    if env::var(CHILD).as_deref() == Ok(name) {
        body();
        return None;
    }
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => panic!("this program's own path is unknown: {error}"),
    };
    let child = Command::new(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .envs(environment.iter().copied())
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) => panic!("the child process did not start: {error}"),
    };
    let (status, text) = finish(child, name);
    assert!(
        status.success() && text.contains("test result: ok. 1 passed"),
        "the child process of {name} ended with {status}:\n{text}"
    );
    // The child's output was captured, so its lines for the list of skipped tests in CI are printed again.
    text.lines().filter(|line| line.starts_with("needs ")).for_each(say);
    Some(text)
}

/// The path of a test function of the calling module, as the harness prints it.
#[macro_export]
macro_rules! test_path {
    ($name:literal) => {{
        let module = module_path!();
        let inside = module.split_once("::").map_or("", |(_, rest)| rest);
        if inside.is_empty() {
            $name.to_owned()
        } else {
            format!("{inside}::{}", $name)
        }
    }};
}

/// `child!("name", { … })`: runs the body of test `name` in a process of its own.
#[macro_export]
macro_rules! child {
    ($name:literal, $body:block) => {{
        let _ = $crate::common::in_child(&$crate::test_path!($name), &[], || $body);
    }};
}
