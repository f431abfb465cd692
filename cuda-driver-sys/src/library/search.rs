//! Where the driver is looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::{Attempt, LoadError, LoadErrorKind, Variable};
use super::object::Object;
use super::origin::Origin;

/// Names the driver's file, and is believed.
const VARIABLE: &str = "CUDA_DRIVER_LIBRARY";

/// The driver's file name.
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";

/// What the search depends on; tests make their own.
pub(crate) struct Surroundings {
    /// The value of [`VARIABLE`].
    pub(crate) named: Option<OsString>,
    /// The process has more rights than its user: the environment is not to be trusted.
    pub(crate) privileged: bool,
    /// The folder that stands for `/`.
    pub(crate) root: PathBuf,
    /// What [`LIBRARY`] is called for the system's loader.
    pub(crate) library: &'static str,
}

impl Surroundings {
    /// This process and this machine.
    fn here() -> Self {
        Self {
            named: std::env::var_os(VARIABLE),
            privileged: privileged(),
            root: PathBuf::from("/"),
            library: LIBRARY,
        }
    }
}

/// Whether the process has more rights than the user who started it, as a setuid program has: no variable of that user's may
/// choose what it loads, so `CUDA_DRIVER_LIBRARY` is ignored then. On Windows, where variables are not another user's, never.
#[inline]
#[must_use]
pub fn is_privileged() -> bool {
    privileged()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn privileged() -> bool {
    use core::ffi::c_ulong;
    /// Set by the kernel for a program that runs with other rights than its user's.
    const AT_SECURE: c_ulong = 23;
    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }
    // SAFETY: getauxval reads the process's own auxiliary vector and answers 0 for what is not in it.
    unsafe { getauxval(AT_SECURE) != 0 }
}

#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly",
    target_os = "illumos",
    target_os = "solaris",
))]
fn privileged() -> bool {
    unsafe extern "C" {
        fn issetugid() -> core::ffi::c_int;
    }
    // SAFETY: issetugid takes nothing, and says what the system noted when it started the program.
    unsafe { issetugid() != 0 }
}

/// Where nobody says so, the process may be privileged; elsewhere than on Unix the environment is not another user's.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly",
    target_os = "illumos",
    target_os = "solaris",
)))]
fn privileged() -> bool {
    cfg!(unix)
}

/// The places to try, in order.
pub(crate) fn candidates(surroundings: &Surroundings) -> Vec<PathBuf> {
    if let Some(named) = &surroundings.named {
        if !surroundings.privileged && !named.is_empty() {
            return vec![PathBuf::from(named)];
        }
    }
    let mut places = vec![PathBuf::from(surroundings.library)];
    if cfg!(target_os = "linux") {
        let mut add = |folder: String| {
            let folder = surroundings.root.join(folder);
            places.push(folder.join(surroundings.library));
        };
        add("usr/lib/wsl/lib".to_owned());
        add("run/opengl-driver/lib".to_owned());
        let target = match std::env::consts::ARCH {
            "x86_64" => "x86_64-linux-gnu",
            "aarch64" => "aarch64-linux-gnu",
            "powerpc64" => "powerpc64le-linux-gnu",
            _ => return places,
        };
        if target == "aarch64-linux-gnu" {
            add(format!("usr/lib/{target}/tegra"));
            add(format!("usr/lib/{target}/nvidia"));
        }
        add(format!("usr/lib/{target}/nvidia/current"));
        add(format!("usr/lib/{target}"));
    }
    places
}

/// Loads the first place that holds a driver.
pub(crate) fn search() -> Result<(Object, Origin), LoadError> {
    search_in(&Surroundings::here())
}

pub(crate) fn search_in(surroundings: &Surroundings) -> Result<(Object, Origin), LoadError> {
    let places = candidates(surroundings);
    let named = places.len() == 1 && surroundings.named.as_deref() == Some(places[0].as_os_str());
    if !named && cfg!(not(any(target_os = "linux", windows))) {
        return Err(LoadError::unsupported());
    }
    let mut attempts = Vec::new();
    let mut kind = if named {
        LoadErrorKind::Named
    } else {
        LoadErrorKind::NotFound
    };
    for place in places {
        match load(&place) {
            // A stub may stand in LD_LIBRARY_PATH; who names one gets it.
            Ok((object, origin)) => match origin.path() {
                Some(path) if !named && is_stub(path) => {
                    kind = LoadErrorKind::StubOnly;
                    attempts.push(Attempt {
                        place: path.to_owned(),
                        reason: "is the stub library of a CUDA toolkit, not a driver".to_owned(),
                    });
                }
                _ => return Ok((object, origin)),
            },
            Err(reason) => attempts.push(Attempt { place, reason }),
        }
    }
    let is_set = surroundings
        .named
        .as_ref()
        .is_some_and(|named| !named.is_empty());
    let variable = match (named, surroundings.privileged, is_set) {
        (true, ..) => Variable::Names,
        (false, false, _) => Variable::NotSet,
        (false, true, false) => Variable::NotBelieved,
        (false, true, true) => Variable::Ignored,
    };
    Err(LoadError::of(kind, attempts).with(variable))
}

/// Loads the library at a path.
pub(crate) fn explicit(path: &Path) -> Result<(Object, Origin), LoadError> {
    load(path).map_err(|reason| LoadError::one(path, reason))
}

fn load(place: &Path) -> Result<(Object, Origin), String> {
    let object = Object::open(place)?;
    let init = object.symbol(c"cuInit");
    if init.is_null() {
        return Err("is a library, but no CUDA driver: it exports no cuInit".to_owned());
    }
    let named = place.is_absolute().then(|| place.to_owned());
    Ok((object, Origin::of(init, named)))
}

/// Toolkits keep the library that programs are linked against in a folder of this name.
fn is_stub(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| folder.ends_with("stubs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(named: Option<&str>, privileged: bool) -> Surroundings {
        Surroundings {
            named: named.map(OsString::from),
            privileged,
            // Nobody makes this folder, so that no test finds what another one put there.
            root: PathBuf::from("/nowhere-for-the-tests-of-the-search"),
            library: "libcuda-of-the-tests.so.1",
        }
    }

    #[test]
    fn variable_comes_first_and_alone() {
        assert_eq!(
            candidates(&surroundings(Some("/opt/driver.so"), false)),
            [Path::new("/opt/driver.so")]
        );
    }

    #[test]
    fn privileged_process_and_empty_variable_are_searched_as_usual() {
        let usual = candidates(&surroundings(None, false));
        assert_eq!(
            candidates(&surroundings(Some("/opt/driver.so"), true)),
            usual
        );
        assert_eq!(candidates(&surroundings(Some(""), false)), usual);
        assert_eq!(usual[0], Path::new("libcuda-of-the-tests.so.1"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_variable_is_spoken_of_where_it_matters() {
        let said = |named, privileged| {
            let error = search_in(&surroundings(named, privileged))
                .err()
                .expect("no driver");
            error.to_string()
        };
        assert_eq!(
            said(Some("/etc/passwd"), false),
            "no CUDA driver could be loaded: CUDA_DRIVER_LIBRARY names /etc/passwd: invalid ELF header"
        );
        let not_set = said(None, false);
        let advice = ". Install NVIDIA's driver, or name its library in CUDA_DRIVER_LIBRARY";
        assert!(not_set.ends_with(advice), "{not_set}");
        assert_eq!(said(Some(""), false), not_set);
        let ignored = said(Some("/etc/passwd"), true);
        assert!(ignored.contains("is set, and ignored"), "{ignored}");
        assert!(!ignored.contains("/etc/passwd"), "{ignored}");
        let not_believed = said(None, true);
        assert!(
            not_believed.ends_with(". Install NVIDIA's driver"),
            "{not_believed}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn folders_come_in_the_documented_order() {
        let name = format!("cuda-driver-search-{}", std::process::id());
        let surroundings = Surroundings {
            root: std::env::temp_dir().join(name),
            ..surroundings(None, false)
        };
        let wsl = surroundings.root.join("usr/lib/wsl/lib");
        std::fs::create_dir_all(&wsl).expect("a temporary folder");
        std::fs::write(wsl.join(surroundings.library), "no library").expect("a temporary file");
        let error = search_in(&surroundings).err();
        std::fs::remove_dir_all(&surroundings.root).expect("it was made above");
        let error = error.expect("nothing there is a driver");
        assert_eq!(error.kind(), LoadErrorKind::NotFound);

        let places: Vec<PathBuf> = error
            .attempts()
            .iter()
            .map(|attempt| attempt.place.clone())
            .collect();
        assert_eq!(places, candidates(&surroundings));
        let reasons: Vec<&str> = error
            .attempts()
            .iter()
            .map(|attempt| attempt.reason.as_str())
            .collect();
        assert!(
            reasons[0].contains("cannot open shared object file"),
            "{reasons:?}"
        );
        assert!(reasons[1].contains("file too short"), "{reasons:?}");
        let folders: Vec<_> = places[1..]
            .iter()
            .map(|place| place.strip_prefix(&surroundings.root))
            .collect();
        let expected: &[&str] = match std::env::consts::ARCH {
            "x86_64" => &[
                "usr/lib/wsl/lib",
                "run/opengl-driver/lib",
                "usr/lib/x86_64-linux-gnu/nvidia/current",
                "usr/lib/x86_64-linux-gnu",
            ],
            "aarch64" => &[
                "usr/lib/wsl/lib",
                "run/opengl-driver/lib",
                "usr/lib/aarch64-linux-gnu/tegra",
                "usr/lib/aarch64-linux-gnu/nvidia",
                "usr/lib/aarch64-linux-gnu/nvidia/current",
                "usr/lib/aarch64-linux-gnu",
            ],
            _ => return,
        };
        for (folder, expected) in folders.iter().zip(expected) {
            assert_eq!(
                *folder,
                Ok(Path::new(expected).join(surroundings.library).as_path())
            );
        }
        assert_eq!(folders.len(), expected.len());
    }

    #[test]
    fn toolkits_stub_is_known_by_its_folder() {
        assert!(is_stub(Path::new("/usr/local/cuda/lib64/stubs/libcuda.so")));
        assert!(!is_stub(Path::new("/usr/lib/libcuda.so.1")));
    }
}
