//! Helpers of the driver's tests: the driver under test, checks of result codes, contexts, kernels and child processes.

use std::ffi::{CString, c_void};
use std::path::Path;
use std::sync::OnceLock;

use cuda_driver_sys::*;

use crate::needs::needs;

/// Returns the driver under test: the software driver, or the one that `CUDA_DRIVER` names.
pub(crate) fn library() -> &'static Library {
    static LIBRARY: OnceLock<&'static Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software);
        selection.unwrap_or_else(|error| panic!("{error}")).library()
    })
}

/// Returns true if the driver under test is the software driver. Tests pass arguments that crash NVIDIA's driver to the
/// software driver only.
pub(crate) fn software() -> bool {
    library().is_software()
}

/// Returns true if the driver under test is not the software driver, and prints then that the calling test needs it.
pub(crate) fn lacks_software() -> bool {
    let lacks = !software();
    if lacks {
        needs("the software driver");
    }
    lacks
}

/// Returns the driver under test, initialised.
pub(crate) fn cuda() -> &'static Library {
    static INITIALISED: OnceLock<&'static Library> = OnceLock::new();
    INITIALISED.get_or_init(|| {
        check(unsafe { library().cuInit(0) });
        library()
    })
}

/// Fails the test at the caller's line unless the call succeeded.
#[track_caller]
pub(crate) fn check(code: CUresult) {
    expect(code, 0);
}

/// Fails the test at the caller's line unless the call returned this number.
#[track_caller]
pub(crate) fn expect(code: CUresult, number: u32) {
    same(code.0, number, "");
}

/// Fails the test at the caller's line unless the code is this number. With `COLLECT` set it only prints the
/// difference, so that one run shows all differences of another driver.
#[track_caller]
pub(crate) fn same(code: u32, number: u32, label: &str) {
    if code != number && std::env::var_os("COLLECT").is_some() {
        let place = std::panic::Location::caller();
        return eprintln!("DIFFERS {place}: {code}, expected {number} {label:?}");
    }
    assert_eq!((code, CUresult(code)), (number, CUresult(number)), "{label}");
}

/// Returns an argument's address for the pointer array of a launch.
pub(crate) fn ptr<T>(value: &mut T) -> *mut c_void {
    (&raw mut *value).cast()
}

/// Returns the text of a PTX file of this repository's kernels. The file is next to the test program or, if it is not
/// there, in the source tree.
pub(crate) fn ptx(file: &str) -> CString {
    let packed = std::env::current_exe()
        .unwrap()
        .with_file_name(file)
        .with_extension("ptx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kernels/generated");
    let source = source.join(file).with_extension("ptx");
    let path = if packed.is_file() { packed } else { source };
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    CString::new(text).unwrap()
}

/// A context, current on this thread until dropped.
pub(crate) struct Context(pub(crate) CUcontext);

impl Context {
    pub(crate) fn new() -> Self {
        let mut context = std::ptr::null_mut();
        check(unsafe { cuda().cuCtxCreate(&mut context, 0, 0) });
        Context(context)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let code = unsafe { cuda().cuCtxDestroy(self.0) };
        if !std::thread::panicking() {
            check(code);
        }
    }
}

/// A kernel, and the module that was loaded for it into the current context.
pub(crate) struct Kernel {
    pub(crate) module: CUmodule,
    pub(crate) function: CUfunction,
}

impl Kernel {
    /// Loads a kernel of one of this repository's PTX files.
    pub(crate) fn load(file: &str, name: &str) -> Self {
        Self::from_ptx(&ptx(file), name)
    }

    pub(crate) fn from_ptx(text: &CString, name: &str) -> Self {
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        let name = CString::new(name).unwrap();
        check(unsafe { cuda().cuModuleLoadData(&mut module, text.as_ptr().cast()) });
        check(unsafe { cuda().cuModuleGetFunction(&mut function, module, name.as_ptr()) });
        Kernel { module, function }
    }

    /// Launches the kernel on a stream with these arguments.
    pub(crate) fn launch(&self, grid: u32, block: u32, stream: CUstream, params: &mut [*mut c_void]) -> CUresult {
        unsafe {
            cuda().cuLaunchKernel(
                self.function,
                grid,
                1,
                1,
                block,
                1,
                1,
                0,
                stream,
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
    }
}

/// Runs `body`, the body of the test with this name, in a process of its own with these environment variables. Returns
/// the standard error stream of that process in the parent, and `None` in the child.
#[track_caller]
pub(crate) fn in_child(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    const MARK: &str = "CUDA_SOFT_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        body();
        return None;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(MARK, "1")
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{test} {variables:?}: {}\n{out}\n{err}",
        output.status
    );
    // The child's output was captured, so its lines for the list of skipped tests in CI are printed again.
    err.lines()
        .filter_map(|line| line.strip_prefix("needs "))
        .for_each(needs);
    Some(err)
}
