//! The search for the system's driver.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::{Attempt, LoadError, LoadErrorKind, Variable};
use super::object::Object;
use super::origin::Origin;

/// The environment variable that names the driver's file: the only variable that this crate reads at run time.
const VARIABLE: &str = "CUDA_DRIVER_LIBRARY";

/// The driver's file name.
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";
#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";

/// The inputs of a search. Tests make their own.
pub(crate) struct Environment {
    /// The value of [`VARIABLE`].
    pub(crate) named: Option<OsString>,
    /// True if the process is privileged, so that its environment must not be trusted.
    pub(crate) privileged: bool,
    /// The folder used as `/`.
    pub(crate) root: PathBuf,
    /// The file name of the driver's library; [`LIBRARY`] outside of tests.
    pub(crate) library: &'static str,
}

impl Environment {
    /// Returns the environment of this process.
    fn of_process() -> Self {
        Self {
            named: std::env::var_os(VARIABLE),
            privileged: privileged(),
            root: PathBuf::from("/"),
            library: LIBRARY,
        }
    }
}

/// Returns true if the process is privileged, for example setuid: its environment is controlled by a less privileged
/// user and must not choose which code it loads, so `CUDA_DRIVER_LIBRARY` is ignored. Always false on Windows, where
/// the environment is not another user's.
#[inline]
#[must_use]
pub fn is_privileged() -> bool {
    privileged()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn privileged() -> bool {
    use core::ffi::c_ulong;
    /// Set by the kernel for privileged programs.
    const AT_SECURE: c_ulong = 23;
    unsafe extern "C" {
        fn getauxval(kind: c_ulong) -> c_ulong;
    }
    // SAFETY: getauxval reads the process's auxiliary vector and returns 0 for missing entries.
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
    // SAFETY: no preconditions.
    unsafe { issetugid() != 0 }
}

/// No query is known for these systems. On a Unix the process may be privileged, so it counts as privileged. On other
/// systems the environment is not another user's.
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

/// Returns the file that the environment names, unless the variable is ignored.
fn named(environment: &Environment) -> Option<&Path> {
    let named = environment.named.as_deref().map(Path::new);
    named.filter(|named| !environment.privileged && !named.as_os_str().is_empty())
}

/// Returns the places to try, in order.
pub(crate) fn candidates(environment: &Environment) -> Vec<PathBuf> {
    if let Some(named) = named(environment) {
        return vec![named.to_owned()];
    }
    let mut places = vec![PathBuf::from(environment.library)];
    if cfg!(target_os = "linux") {
        let mut add = |folder: String| {
            let folder = environment.root.join(folder);
            places.push(folder.join(environment.library));
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

/// Returns the places that [`Source::search`](crate::library::Source::search) tries, in order, for programs that
/// explain a search. `named` is the value of `CUDA_DRIVER_LIBRARY`: if it is not empty and this process is not
/// privileged, it is the only place. Otherwise the first place is a bare file name for the system's loader; on Linux,
/// files below `root` follow. For this machine's own files, `root` is `/`.
#[must_use]
pub fn search_places(root: impl Into<PathBuf>, named: Option<OsString>) -> Vec<PathBuf> {
    candidates(&Environment {
        root: root.into(),
        named,
        ..Environment::of_process()
    })
}

/// Loads the first driver found.
pub(crate) fn search() -> Result<(Object, Origin), LoadError> {
    search_in(&Environment::of_process())
}

pub(crate) fn search_in(environment: &Environment) -> Result<(Object, Origin), LoadError> {
    let places = candidates(environment);
    let named = named(environment).is_some();
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
            // A toolkit's stub may be in LD_LIBRARY_PATH. It is only loaded if it is named explicitly.
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
    let is_set = environment.named.as_ref().is_some_and(|named| !named.is_empty());
    let variable = match (named, environment.privileged, is_set) {
        (true, ..) => Variable::Named,
        (false, false, _) => Variable::NotSet,
        (false, true, false) => Variable::Useless,
        (false, true, true) => Variable::Ignored,
    };
    Err(LoadError::of(kind, attempts).with(variable))
}

/// Loads the library at a path.
pub(crate) fn explicit(path: &Path) -> Result<(Object, Origin), LoadError> {
    load(path).map_err(|reason| LoadError::named(path, reason))
}

fn load(place: &Path) -> Result<(Object, Origin), String> {
    let object = Object::open(place)?;
    let init = object.symbol(c"cuInit");
    if init.is_null() {
        return Err("is a library, but not a CUDA driver: it exports no cuInit".to_owned());
    }
    let named = place.is_absolute().then(|| place.to_owned());
    Ok((object, Origin::of(init, named)))
}

/// Returns true if a path names a toolkit's stub library, which the search skips: toolkits keep it in a folder named
/// `stubs`.
#[must_use]
pub fn is_stub(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("stubs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(named: Option<&str>, privileged: bool) -> Environment {
        Environment {
            named: named.map(OsString::from),
            privileged,
            // No test creates this folder.
            root: PathBuf::from("/nowhere-for-the-tests-of-the-search"),
            library: "libcuda-of-the-tests.so.1",
        }
    }

    #[test]
    fn variable_comes_first_and_alone() {
        assert_eq!(
            candidates(&environment(Some("/opt/driver.so"), false)),
            [Path::new("/opt/driver.so")]
        );
    }

    #[test]
    fn privileged_process_and_empty_variable_are_searched_as_usual() {
        let usual = candidates(&environment(None, false));
        assert_eq!(candidates(&environment(Some("/opt/driver.so"), true)), usual);
        assert_eq!(candidates(&environment(Some(""), false)), usual);
        // The name of the driver's library does not count as chosen either.
        assert_eq!(named(&environment(usual[0].to_str(), true)), None);
        assert_eq!(usual[0], Path::new("libcuda-of-the-tests.so.1"));
    }

    #[test]
    fn places_are_those_of_the_search() {
        let named = Some(OsString::from("/opt/driver.so"));
        assert_eq!(search_places("/", named), [Path::new("/opt/driver.so")]);
        let usual = Environment {
            root: PathBuf::from("/root"),
            library: LIBRARY,
            ..environment(None, false)
        };
        assert_eq!(search_places("/root", None), candidates(&usual));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn messages_mention_the_variable_if_it_matters() {
        let said = |named, privileged| {
            let error = search_in(&environment(named, privileged)).expect_err("no driver");
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
        assert!(ignored.contains("CUDA_DRIVER_LIBRARY is ignored"), "{ignored}");
        assert!(!ignored.contains("/etc/passwd"), "{ignored}");
        let useless = said(None, true);
        assert!(useless.ends_with(". Install NVIDIA's driver"), "{useless}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn folders_come_in_the_documented_order() {
        let name = format!("cuda-driver-search-{}", std::process::id());
        let environment = Environment {
            root: std::env::temp_dir().join(name),
            ..environment(None, false)
        };
        let wsl = environment.root.join("usr/lib/wsl/lib");
        std::fs::create_dir_all(&wsl).expect("a temporary folder");
        std::fs::write(wsl.join(environment.library), "no library").expect("a temporary file");
        let error = search_in(&environment).err();
        std::fs::remove_dir_all(&environment.root).expect("created above");
        let error = error.expect("no driver in these folders");
        assert_eq!(error.kind(), LoadErrorKind::NotFound);

        let places: Vec<PathBuf> = error.attempts().iter().map(|attempt| attempt.place.clone()).collect();
        assert_eq!(places, candidates(&environment));
        let reasons: Vec<&str> = error.attempts().iter().map(|attempt| attempt.reason.as_str()).collect();
        assert!(reasons[0].contains("cannot open shared object file"), "{reasons:?}");
        assert!(reasons[1].contains("file too short"), "{reasons:?}");
        let folders: Vec<_> = places[1..]
            .iter()
            .map(|place| place.strip_prefix(&environment.root))
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
            assert_eq!(*folder, Ok(Path::new(expected).join(environment.library).as_path()));
        }
        assert_eq!(folders.len(), expected.len());
    }

    #[test]
    fn a_stub_is_recognised_by_its_folder() {
        assert!(is_stub(Path::new("/usr/local/cuda/lib64/stubs/libcuda.so")));
        assert!(!is_stub(Path::new("/usr/lib/libcuda.so.1")));
    }
}
