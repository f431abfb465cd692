//! Which driver serves a program that can run on both.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use cuda_driver_sys::library::{AlreadySet, LoadError, Source, is_privileged, set_default};
use cuda_driver_sys::{CUresult, Library};

/// Name of the environment variable that decides.
const VARIABLE: &str = host::environment::DRIVER;

/// What the software driver is called in messages.
const NAME: &str = "software";

/// The driver to take where `CUDA_DRIVER` is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// The software driver.
    Software,
    /// The system's driver if it has a device, else the software driver.
    System,
}

/// A driver, and why it was taken. `Display` is one line that says both.
#[derive(Clone, Debug)]
pub struct Selection {
    library: &'static Library,
    source: Source,
    reason: String,
}

/// The driver that `CUDA_DRIVER` asks for cannot be used. `Display` is one line that names it.
pub struct SelectionError {
    asked: String,
    error: LoadError,
}

/// The process's default library was chosen or used before.
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
            write!(f, "; {VARIABLE} is `software`, `system` or a path")?;
        }
        Ok(())
    }
}

impl fmt::Debug for SelectionError {
    /// As [`Display`](fmt::Display), since this is what `main` prints of an error that it returns.
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

/// An error's text without line breaks.
fn one_line(error: &LoadError) -> String {
    error
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The software driver, as a library like any other.
#[must_use]
pub fn library() -> &'static Library {
    static LIBRARY: OnceLock<&'static Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // SAFETY: what `resolve` gives is null or an export that the compiler checked against the type of `cuda.h`.
        let library = unsafe { Library::from_resolver(NAME, crate::resolve) };
        library.expect("the software driver exports cuInit at every version that it can report")
    })
}

fn software_source() -> Source {
    // SAFETY: as in `library`.
    unsafe { Source::resolver(NAME, crate::resolve) }
}

/// Chooses a driver by the environment variable `CUDA_DRIVER`: `software`, `system`, or the path of a library. Where it is
/// not set or empty, `default` decides; also where it is a path, and the process has more rights than the user who started
/// it.
///
/// # Errors
/// `CUDA_DRIVER` asks for the system's driver or for a file, and that cannot be loaded; the error names it.
pub fn from_env(default: Prefer) -> Result<Selection, SelectionError> {
    let asked = host::environment::driver();
    let is_word = |value: &OsString| value == "software" || value == "system";
    // A path would be another user's choice of what runs with this process's rights.
    let ignored = is_privileged() && asked.as_ref().is_some_and(|value| !is_word(value));
    match asked.filter(|_| !ignored) {
        None if default == Prefer::Software && ignored => Ok(software(format!(
            "{NAME}: {VARIABLE} is ignored, as the process has more rights than its user"
        ))),
        None if default == Prefer::Software => Ok(software(NAME.into())),
        None => Ok(system_with_a_device()),
        Some(value) if value == "software" => {
            Ok(software(format!("{NAME}: asked for by {VARIABLE}")))
        }
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
            // SAFETY: whoever set the variable vouches for the file that it names.
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

/// A library of the system with its path and version.
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

/// The system's driver, unless it is missing, broken or without a device.
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
            "{NAME}: {selection} has no usable device: cuInit answers {code:?} ({})",
            code.0
        ));
    }
    let mut count = 0;
    // SAFETY: the pointer is to an integer of our own.
    let code = unsafe { library.cuDeviceGetCount(&raw mut count) };
    if code != CUresult::CUDA_SUCCESS || count == 0 {
        return software(format!("{NAME}: {selection} has no device"));
    }
    selection
}

impl Selection {
    /// The driver.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Where the driver comes from.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Which driver it is and why, in one line: its path and version, or `software` and a reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Makes it the process's default library, which the free functions and the objects of `cuda-driver` use. It may be
    /// installed again, so every test of a program can begin with it:
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
    /// With other [`Options`](cuda_driver_sys::library::Options), such as the per-thread default stream, it is
    /// [`set_default_with`](cuda_driver_sys::library::set_default_with) that installs [`source`](Self::source).
    ///
    /// # Errors
    /// The default was chosen otherwise before, or used.
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
