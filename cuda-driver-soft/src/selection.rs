//! Chooses the driver for a program that can run on both the system's driver and the software driver.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use cuda_driver_sys::library::{AlreadySet, LoadError, Source, is_privileged, set_default};
use cuda_driver_sys::{CUresult, Library};

/// Name of the environment variable that selects the driver.
const VARIABLE: &str = host::environment::DRIVER;

/// The software driver's name in messages.
const NAME: &str = "software";

/// The driver to use if `CUDA_DRIVER` is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// The software driver.
    Software,
    /// The system's driver if it has a device, else the software driver.
    System,
}

/// A driver and the reason for choosing it. `Display` prints [`reason`](Self::reason).
#[derive(Clone, Debug)]
pub struct Selection {
    library: &'static Library,
    source: Source,
    reason: String,
}

/// The error for a driver that `CUDA_DRIVER` selects and that cannot be loaded. `Display` is one line that names the
/// driver.
pub struct SelectionError {
    asked: String,
    error: LoadError,
}

/// The error for a process whose default library was already chosen or used.
pub type AlreadyInstalled = AlreadySet;

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = one_line(&self.error);
        if error.contains(&self.asked) {
            write!(f, "{VARIABLE}: {error}")?;
        } else {
            write!(f, "{VARIABLE}={}: {error}", self.asked)?;
        }
        let is_word = !self.asked.contains(std::path::MAIN_SEPARATOR);
        if is_word && self.asked != "system" {
            write!(f, "; {VARIABLE} must be `software`, `system` or a path")?;
        }
        Ok(())
    }
}

impl fmt::Debug for SelectionError {
    /// Prints the same as [`Display`](fmt::Display), because an error that `main` returns is printed with `Debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SelectionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Returns an error's text without line breaks.
fn one_line(error: &LoadError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the software driver as a [`Library`].
#[must_use]
pub fn library() -> &'static Library {
    static LIBRARY: OnceLock<&'static Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // SAFETY: `resolve` returns null or an export, and the compiler checked the export against its type in
        // `cuda.h`.
        let library = unsafe { Library::from_resolver(NAME, crate::resolve) };
        library.expect("the software driver exports cuInit at every version that it can report")
    })
}

fn software_source() -> Source {
    // SAFETY: as in `library`.
    unsafe { Source::resolver(NAME, crate::resolve) }
}

/// Chooses a driver by the environment variable `CUDA_DRIVER`: `software`, `system`, or the path of a library. If the
/// variable is unset or empty, `default` decides. `default` also decides instead of a path if the process is privileged
/// (set-user-ID, for example).
///
/// # Errors
/// Returns an error that names the driver if `CUDA_DRIVER` selects the system's driver or a library that cannot be
/// loaded.
pub fn from_env(default: Prefer) -> Result<Selection, SelectionError> {
    let asked = host::environment::driver();
    let is_word = |value: &OsString| value == "software" || value == "system";
    // In a privileged process, a path would let another user choose the code that runs with its privileges.
    let ignored = is_privileged() && asked.as_ref().is_some_and(|value| !is_word(value));
    match asked.filter(|_| !ignored) {
        None if default == Prefer::Software && ignored => Ok(software(format!(
            "{NAME}: {VARIABLE} is ignored because this process is privileged"
        ))),
        None if default == Prefer::Software => Ok(software(NAME.into())),
        None => Ok(system_with_a_device()),
        Some(value) if value == "software" => Ok(software(format!("{NAME}: asked for by {VARIABLE}"))),
        Some(value) if value == "system" => {
            let library = Library::load().map_err(|error| SelectionError {
                asked: "system".into(),
                error,
            })?;
            Ok(describe(library, Source::search()))
        }
        Some(path) => {
            let path = PathBuf::from(path);
            let failed = |error| SelectionError {
                asked: path.display().to_string(),
                error,
            };
            // SAFETY: the user who set the variable promises that the file is a CUDA driver.
            let library = unsafe { Library::load_from(&path) }.map_err(failed)?;
            // SAFETY: as above.
            Ok(describe(library, unsafe { Source::path(path) }))
        }
    }
}

fn software(reason: String) -> Selection {
    Selection {
        library: library(),
        source: software_source(),
        reason,
    }
}

/// Returns a library of the system with its path and version as the reason.
fn describe(library: &'static Library, source: Source) -> Selection {
    let name = library.description().unwrap_or_else(|| source.to_string());
    let reason = match library.version() {
        Some(version) => format!("{name}, CUDA {}.{}", version / 1000, version % 1000 / 10),
        None => name,
    };
    Selection {
        library,
        source,
        reason,
    }
}

/// Returns the system's driver, or the software driver if the system's driver is missing, is broken or has no device.
fn system_with_a_device() -> Selection {
    let library = match Library::load() {
        Ok(library) => library,
        Err(error) => return software(format!("{NAME}: {}", one_line(&error))),
    };
    let selection = describe(library, Source::search());
    // SAFETY: cuInit takes no pointer.
    let code = unsafe { library.cuInit(0) };
    if code != CUresult::CUDA_SUCCESS {
        return software(format!(
            "{NAME}: {selection} has no usable device: cuInit returns {code:?} ({})",
            code.0
        ));
    }
    let mut count = 0;
    // SAFETY: the pointer is to a local integer.
    let code = unsafe { library.cuDeviceGetCount(&raw mut count) };
    if code != CUresult::CUDA_SUCCESS || count == 0 {
        return software(format!("{NAME}: {selection} has no device"));
    }
    selection
}

impl Selection {
    /// Returns the driver.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Returns the source that the driver is loaded from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the driver in one line: the path and version of a library, or `software` and the reason for it. The
    /// reason is missing if `CUDA_DRIVER` is not set and [`Prefer::Software`] decided.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Makes this the process's default library, which the free functions and the objects of `cuda-driver` use.
    /// Installing the same driver again has no effect, so every test of a program can begin with:
    ///
    /// ```
    /// # fn test() -> Result<(), Box<dyn std::error::Error>> {
    /// cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)?.install()?;
    /// # Ok(())
    /// # }
    /// # test().unwrap();
    /// # test().unwrap();
    /// ```
    ///
    /// To use other [`Options`](cuda_driver_sys::library::Options), such as the per-thread default stream, pass
    /// [`source`](Self::source) to [`set_default_with`](cuda_driver_sys::library::set_default_with) instead.
    ///
    /// # Errors
    /// Returns an error if another default was chosen before, or if the default was already used.
    #[track_caller]
    pub fn install(&self) -> Result<(), AlreadyInstalled> {
        static INSTALLED: Mutex<Option<String>> = Mutex::new(None);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let source = self.source.to_string();
        if installed.as_ref() == Some(&source) {
            return Ok(());
        }
        set_default(self.source.clone())?;
        *installed = Some(source);
        Ok(())
    }
}
