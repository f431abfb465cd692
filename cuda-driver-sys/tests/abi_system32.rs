//! Tests that the search on Windows loads `nvcuda.dll` from the system folder only, not a file of that name in the
//! program's or the current folder. This test needs its own process, because it changes the current folder.
#![cfg(all(windows, feature = "loader"))]

use std::path::{Path, PathBuf};

use cuda_driver_sys::{CUresult, Library};

const DRIVER: &str = "nvcuda.dll";

/// A copy of a file, which is deleted when this is dropped.
struct Copy(PathBuf);

impl Copy {
    fn new(of: &Path, to: PathBuf) -> Self {
        std::fs::copy(of, &to).unwrap_or_else(|e| panic!("{}: {e}", to.display()));
        Self(to)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Fails while the file is loaded; ci/platforms.sh also removes it.
        _ = std::fs::remove_file(&self.0);
    }
}

#[test]
#[ignore = "needs a system folder to put a driver into: ci/platforms.sh runs this"]
fn driver_comes_from_the_system_folder_alone() {
    let stub = std::env::var_os("CUDA_ABI_STUB").expect("CUDA_ABI_STUB names a library with a cuInit");
    let stub = PathBuf::from(stub);
    let this = std::env::current_exe().expect("a test has a path");
    let neighbour = Copy::new(&stub, this.with_file_name(DRIVER));
    let folder = std::env::temp_dir().join("cuda-driver-sys-current");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let current = Copy::new(&stub, folder.join(DRIVER));
    std::env::set_current_dir(&folder).expect("the folder was just made");

    let error = Library::load().expect_err("neither of the two is the system's driver");
    let places: Vec<&Path> = error.attempts().iter().map(|a| a.place.as_path()).collect();
    assert_eq!(places, [Path::new(DRIVER)], "{error}");

    // A file that is named explicitly is loaded.
    // SAFETY: the stub's exports have the types of their names.
    let named = unsafe { Library::load_from(&neighbour.0) }.expect("the file is there");
    let path = named.path().expect("it was loaded from a file");
    assert_eq!(path.canonicalize().ok(), neighbour.0.canonicalize().ok());

    let root = std::env::var_os("SystemRoot").expect("Windows sets SystemRoot");
    let place = Path::new(&root).join("System32").join(DRIVER);
    assert!(!place.exists(), "this machine has a driver");
    let system = Copy::new(&stub, place);
    let library = Library::load().unwrap_or_else(|error| panic!("{error}"));
    // A library of the same name that is already loaded is not used.
    let path = library.path().expect("it was loaded from a file");
    assert_eq!(path.canonicalize().ok(), system.0.canonicalize().ok());
    // SAFETY: cuInit takes no pointers.
    assert_eq!(unsafe { library.cuInit(0) }, CUresult::CUDA_SUCCESS);
    drop((current, system));
}
