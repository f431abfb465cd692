//! Tests of paths that are not Unicode: on Unix, a path may hold any bytes except NUL.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

use cuda_driver::graph::Graph;
use cuda_driver::sys::*;
use cuda_driver::{Context, Device, JitOptions, Linker};

use crate::common::{Codes, driver, driver_version, needs, ptx_path};
use crate::{is, ok};

/// A temporary file whose name is not Unicode, removed when dropped.
struct File(PathBuf);

impl File {
    /// Writes a file with these contents. Returns `None` if the file system refuses its name.
    fn new(name: &str, contents: &[u8]) -> Option<Self> {
        let mut bytes = format!("cuda-driver-{}-{name}-", std::process::id()).into_bytes();
        bytes.extend(b"\xff.tmp");
        let path = std::env::temp_dir().join(OsString::from_vec(bytes));
        if std::fs::write(&path, contents).is_err() {
            needs("a temporary folder that accepts names of any bytes");
            return None;
        }
        Some(File(path))
    }

    fn c_path(&self) -> CString {
        CString::new(self.0.as_os_str().as_bytes()).expect("no NUL byte in a path")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).expect("the file")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn context() -> Context {
    driver();
    let context = Context::create(Device::first().expect("a device")).expect("a context");
    context.set_current().expect("the context is live");
    context
}

fn kernel_file(name: &str) -> Option<File> {
    let contents = std::fs::read(ptx_path("vector_add.ptx")).expect("the kernel");
    File::new(name, &contents)
}

#[test]
fn modules_and_libraries() {
    let _context = context();
    let Some(file) = kernel_file("load") else { return };
    let (mut c, path) = (Codes::new(), file.c_path());
    let mut module = ptr::null_mut();
    is!(c, 0, cuModuleLoad(&raw mut module, path.as_ptr()));
    is!(c, 0, cuModuleUnload(module));
    let (mut library, none, no_values) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    is!(
        c,
        0,
        cuLibraryLoadFromFile(
            &raw mut library,
            path.as_ptr(),
            none,
            no_values,
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            0
        )
    );
    is!(c, 0, cuLibraryUnload(library));
}

#[test]
fn inputs_of_a_linker() {
    let context = context();
    let Some(file) = kernel_file("link") else { return };
    let options = JitOptions::default();
    let linker = Linker::new(&context, &options).expect("a linker");
    // SAFETY: the file is PTX.
    unsafe { linker.add_file(CUjitInputType::CU_JIT_INPUT_PTX, &file.0, &options) }.expect("an input");
    // SAFETY: a path with a NUL byte never reaches the driver.
    let nul = unsafe { linker.add_file(CUjitInputType::CU_JIT_INPUT_PTX, Path::new("a\0b"), &options) };
    assert_eq!(
        nul.expect_err("a NUL byte").error().code(),
        CUresult::CUDA_ERROR_FILE_NOT_FOUND
    );
    let module = linker.complete().expect("an image").load(&context).expect("a module");
    module.function("vector_add").expect("a kernel");
}

#[test]
fn files_that_the_driver_writes() {
    let context = context();
    let Some(file) = File::new("write", b"") else { return };
    let graph = Graph::new(&context).expect("a graph");
    graph.write_dot(&file.0, CUgraphDebugDot_flags(0)).expect("a file");
    assert!(file.text().starts_with("digraph"), "{}", file.text());
    if driver_version() < 12090 {
        return needs("a driver of CUDA 12.9 or later for cuLogsDumpToFile");
    }
    let path = file.c_path();
    ok!(cuLogsDumpToFile(ptr::null_mut(), path.as_ptr(), 0));
    assert!(!file.text().starts_with("digraph"), "{}", file.text());
}
