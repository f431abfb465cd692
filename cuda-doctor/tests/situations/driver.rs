//! Drivers of the fake machines: most are the software driver with some functions replaced.

use std::ffi::{CStr, c_uint, c_void};
use std::path::Path;
use std::str::FromStr;

use cuda_doctor::Place;
use cuda_driver::sys::library::{SOFTWARE_MARKER, Source, set_default};
use cuda_driver::sys::{CUfunction, CUresult, CUstream, Library};

/// The driver that is loaded on a fake machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The driver of this machine, opened at the places of the search.
    System,
    /// The file in the tree, which is only a header.
    File,
    /// The software driver.
    Software,
    /// The software driver without its marker, so that it is reported as NVIDIA's driver.
    Gpu,
    /// A driver whose `cuInit` returns this code if it is 803, 100 or 34, and 999 otherwise.
    Init(u32),
    /// A driver whose `cuInit` ends the process.
    Crash,
    /// A library that ends the process when it is loaded.
    CrashAtLoad,
    /// A driver without devices that starts another process, which lives for a minute.
    Helper,
    /// A driver that starts such a process, and whose `cuInit` ends its own.
    HelperAndCrash,
    /// A driver whose `cuInit` never returns.
    Hang,
    /// A driver that reports launches as successful and does nothing.
    LazyLaunch,
    /// A driver in a process that has set another default library.
    Late,
}

impl Driver {
    /// Opens the driver at a place, if the tree has a library there.
    pub(crate) fn open(self, place: &Place) -> Result<&'static Library, String> {
        let Place::File(path) = place else {
            return Err("not part of the tests".to_owned());
        };
        if self == Self::System {
            return cuda_doctor::open(place);
        }
        if Path::new(path).is_relative() {
            // The system's loader would look on this machine.
            return Err(format!(
                "{path}: cannot open shared object file: No such file or directory"
            ));
        }
        if self == Self::File || !Path::new(path).exists() {
            return cuda_doctor::open(place);
        }
        if self == Self::CrashAtLoad {
            std::process::abort();
        }
        if matches!(self, Self::Helper | Self::HelperAndCrash) {
            let helper = std::process::Command::new("sleep").arg("60").spawn();
            drop(helper.map_err(|error| error.to_string())?);
        }
        if self == Self::Late {
            set_default(Source::search()).map_err(|error| error.to_string())?;
        }
        // SAFETY: the functions are the software driver's, or have the same types.
        let library = unsafe { Library::from_resolver("the driver of a test", move |symbol| self.resolve(symbol)) };
        library.map_err(|error| error.to_string())
    }

    fn resolve(self, symbol: &CStr) -> *const c_void {
        let fake = match (self, symbol.to_bytes()) {
            (Self::Init(803), b"cuInit") => init::<803> as *const c_void,
            (Self::Init(100) | Self::Helper, b"cuInit") => init::<100> as *const c_void,
            (Self::Init(34), b"cuInit") => init::<34> as *const c_void,
            (Self::Init(_), b"cuInit") => init::<999> as *const c_void,
            (Self::Crash | Self::HelperAndCrash, b"cuInit") => crash as *const c_void,
            (Self::Hang, b"cuInit") => hang as *const c_void,
            (Self::LazyLaunch, b"cuLaunchKernel") => launch as *const c_void,
            _ => std::ptr::null(),
        };
        if !fake.is_null() {
            fake
        } else if self != Self::Software && symbol == SOFTWARE_MARKER {
            std::ptr::null()
        } else {
            cuda_driver_soft::resolve(symbol)
        }
    }
}

extern "system" fn init<const CODE: u32>(_flags: c_uint) -> CUresult {
    CUresult(CODE)
}

extern "system" fn crash(_flags: c_uint) -> CUresult {
    eprintln!("the driver is about to crash");
    std::process::abort()
}

extern "system" fn hang(_flags: c_uint) -> CUresult {
    loop {
        std::thread::park();
    }
}

#[allow(clippy::too_many_arguments)]
extern "system" fn launch(
    _function: CUfunction,
    _grid_x: c_uint,
    _grid_y: c_uint,
    _grid_z: c_uint,
    _block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    _shared: c_uint,
    _stream: CUstream,
    _parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> CUresult {
    CUresult::CUDA_SUCCESS
}

impl std::fmt::Display for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Init(code) => write!(f, "init-{code}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl FromStr for Driver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [
            Self::System,
            Self::File,
            Self::Software,
            Self::Gpu,
            Self::Late,
            Self::Crash,
            Self::CrashAtLoad,
            Self::Helper,
            Self::HelperAndCrash,
            Self::Hang,
            Self::LazyLaunch,
            Self::Init(803),
            Self::Init(100),
            Self::Init(34),
            Self::Init(999),
        ];
        known
            .into_iter()
            .find(|driver| driver.to_string() == text)
            .ok_or_else(|| format!("no driver is called {text}"))
    }
}
