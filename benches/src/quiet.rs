//! A driver that does nothing: compiled from C when the program starts, and set as the process's driver.

use core::ffi::c_void;
use std::path::{Path, PathBuf};

use cuda_driver::sys;
use cuda_driver::sys::library::Source;
use libloading::Library;

/// The compiled library.
pub(crate) struct Quiet {
    library: Library,
    path: PathBuf,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(folder) = self.path.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Quiet {
    /// Returns the library's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the address of a function, as a program finds it with `dlsym`.
    pub(crate) fn function(&self, name: &str) -> *mut c_void {
        // SAFETY: only the address is taken.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.as_bytes()) };
        *symbol.expect("defined in quiet.c")
    }
}

/// Compiles and loads the library.
pub(crate) fn build() -> Result<Quiet, String> {
    let folder = std::env::temp_dir().join(format!("cuda-driver-benches-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    load(&folder).inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&folder);
    })
}

fn load(folder: &Path) -> Result<Quiet, String> {
    let path = compile(folder)?;
    // SAFETY: the library has no initialisers.
    let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
    // SAFETY: the library's functions have the types of the exports with their names.
    let source = unsafe { Source::path(&path) };
    sys::set_default(source).map_err(|error| error.to_string())?;
    match cuda_driver::load() {
        Ok(_) => Ok(Quiet { library, path }),
        Err(error) => Err(error.to_string()),
    }
}

fn compile(folder: &Path) -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let compiler = cc::Build::new()
        .target(&target)
        .host(&target)
        .opt_level(3)
        .out_dir(folder)
        .cargo_metadata(false)
        .try_get_compiler()
        .map_err(|error| error.to_string())?;
    let source = folder.join("quiet.c");
    std::fs::write(&source, include_str!("quiet.c")).map_err(|error| error.to_string())?;
    let path = folder.join("libquiet.so");
    let output = compiler
        .to_command()
        .args(["-shared", "-fPIC", "-o"])
        .arg(&path)
        .arg(&source)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(path)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
