//! Sources of libraries, and the options that libraries are made with.

use core::ffi::{CStr, c_void};
use core::fmt;
use std::borrow::Cow;
#[cfg(feature = "loader")]
use std::path::PathBuf;
use std::sync::Arc;

use super::interposer::{Faithful, Interposer};
use super::slots::Library;

/// Returns the address of an exported function, or null if there is no such function.
pub(crate) type Resolver = Arc<dyn Fn(&CStr) -> *const c_void + Send + Sync>;

/// The source of a library's functions.
#[derive(Clone)]
pub struct Source(pub(crate) SourceKind);

#[derive(Clone)]
pub(crate) enum SourceKind {
    #[cfg(feature = "loader")]
    Search,
    #[cfg(feature = "loader")]
    Path(PathBuf),
    /// The address of `cuInit`, or 0 if there is no driver for this operating system.
    #[cfg(feature = "link")]
    Linked(usize),
    /// No source was chosen, and there is no loader to search for one.
    #[cfg(not(feature = "loader"))]
    NotChosen,
    Resolver {
        name: Cow<'static, str>,
        resolver: Resolver,
    },
    Library(&'static Library),
}

impl Source {
    /// Returns the system's driver as a source. These places are tried in order:
    ///
    /// 1. the file that the environment variable `CUDA_DRIVER_LIBRARY` names; if it is set and not empty, no other
    ///    place is tried. The variable is ignored in a privileged process (setuid, setgid or with capabilities), and on
    ///    a Unix that cannot tell if a process is privileged. An elevated Windows program does use it;
    /// 2. on Linux `libcuda.so.1`, as the system's loader finds it; on Windows `nvcuda.dll`, from the system folder
    ///    only;
    /// 3. on Linux, the folders of WSL (`/usr/lib/wsl/lib`), NixOS (`/run/opengl-driver/lib`), Jetson boards
    ///    (`/usr/lib/aarch64-linux-gnu/tegra` and `…/nvidia`) and Debian (`/usr/lib/<target>/nvidia/current`,
    ///    `/usr/lib/<target>`).
    ///
    /// The stub library of a CUDA toolkit is not a driver and is skipped, unless the variable names it.
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    #[must_use]
    pub const fn search() -> Self {
        Self(SourceKind::Search)
    }

    /// Returns the library at a path as a source. The system's loader searches for a bare file name; on Windows, only
    /// in the system folder.
    ///
    /// # Safety
    /// The file must be a CUDA driver or behave like one: loading it runs its initialisers, its exports that are a
    /// [`Function`] are called as `cuda.h` declares them, and safe code relies on their results.
    ///
    /// [`Function`]: crate::Function
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    #[must_use]
    pub unsafe fn path(path: impl Into<PathBuf>) -> Self {
        Self(SourceKind::Path(path.into()))
    }

    /// Returns the driver that the program is linked against as a source.
    ///
    /// A program that calls this function only starts if the system finds `libcuda.so.1` or `nvcuda.dll`, like a C
    /// program linked with `-lcuda`. On Linux, functions are looked up among all objects that were loaded with the
    /// program, so that a tool in `LD_PRELOAD` takes precedence over the driver. On an operating system without a CUDA
    /// driver, opening the source fails.
    ///
    /// Windows searches for the file as for any other library of the program, in the program's own folder first. With
    /// musl, a shared object that was opened with `RTLD_LOCAL`, as Python opens modules, cannot see the symbols of the
    /// libraries that were loaded with it.
    ///
    /// Building needs no driver and no toolkit: on Linux, if pkg-config and the usual folders have no `libcuda.so`, the
    /// program is linked against a generated stub of that name.
    #[cfg(feature = "link")]
    #[cfg_attr(docsrs, doc(cfg(feature = "link")))]
    #[inline]
    #[must_use]
    pub fn linked() -> Self {
        Self(SourceKind::Linked(super::linked::reference()))
    }

    /// Returns the source of the default library if none was set.
    #[inline]
    pub(crate) const fn by_default() -> Self {
        #[cfg(feature = "loader")]
        return Self::search();
        #[cfg(not(feature = "loader"))]
        return Self(SourceKind::NotChosen);
    }

    /// Returns functions from a resolver as a source, for instance of a driver that is linked into the program or was
    /// opened by another loader. The resolver gets a symbol, such as `cuMemAlloc_v2`, and returns its address, or null
    /// if there is none. Messages call the library `name`.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use std::ffi::{CStr, CString, c_void};
    /// use std::ptr;
    ///
    /// use cuda_driver_sys::library::Source;
    ///
    /// /// Returns a source over a plug-in's table of function addresses.
    /// unsafe fn of_plugin(plugin: &str, table: HashMap<CString, usize>) -> Source {
    ///     let resolver = move |symbol: &CStr| match table.get(symbol) {
    ///         Some(address) => *address as *const c_void,
    ///         None => ptr::null(),
    ///     };
    ///     // SAFETY: upheld by the caller.
    ///     unsafe { Source::resolver(format!("the plug-in {plugin}"), resolver) }
    /// }
    /// ```
    ///
    /// The resolver is called when a function is first used, on the thread that uses it and possibly on several threads
    /// at once. It may be called again for the same symbol, for instance each time a function that it did not find is
    /// used. The resolver must not call functions of its own library: calls of functions that were not used before
    /// fail, and in a library with interposers all calls fail. A panic passes through the call that needed the
    /// function; a panic while the library is being opened also makes opening fail. An open library never drops its
    /// resolver.
    ///
    /// # Safety
    /// For each symbol, the resolver must return null or a function that stays valid for the rest of the process, has
    /// the type that `cuda.h` declares for that symbol, and behaves as the manual says: safe code relies on its
    /// results. If pointers are not 64-bit, the type must be the one in these bindings.
    #[inline]
    #[must_use]
    pub unsafe fn resolver(
        name: impl Into<Cow<'static, str>>,
        resolver: impl Fn(&CStr) -> *const c_void + Send + Sync + 'static,
    ) -> Self {
        Self(SourceKind::Resolver {
            name: name.into(),
            resolver: Arc::new(resolver),
        })
    }

    /// Returns the driver of another library as a source. The new library has its own options: the other library's
    /// interposers and per-thread option do not apply. Both libraries share the driver's state, such as initialisation,
    /// contexts and memory.
    #[inline]
    #[must_use]
    pub const fn library(library: &'static Library) -> Self {
        Self(SourceKind::Library(library))
    }
}

impl fmt::Display for Source {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            #[cfg(feature = "loader")]
            SourceKind::Search => f.write_str("the system's driver"),
            #[cfg(feature = "loader")]
            SourceKind::Path(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "link")]
            SourceKind::Linked(_) => f.write_str("the driver that the program is linked against"),
            #[cfg(not(feature = "loader"))]
            SourceKind::NotChosen => f.write_str("no source"),
            SourceKind::Resolver { name, .. } => f.write_str(name),
            SourceKind::Library(library) => match library.described() {
                Some(description) => f.write_str(&description),
                None => f.write_str("the driver of the default library"),
            },
        }
    }
}

impl fmt::Debug for Source {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}

/// Options of a library, fixed when it is made.
#[derive(Default)]
pub struct Options {
    pub(crate) per_thread: bool,
    pub(crate) interposers: Vec<Box<dyn Interposer>>,
}

impl Options {
    /// Returns the default options: the legacy default stream and no interposers.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            per_thread: false,
            interposers: Vec::new(),
        }
    }

    /// Selects per-thread default streams: the NULL stream is the calling thread's own default stream, as in a C
    /// program compiled with `CUDA_API_PER_THREAD_DEFAULT_STREAM`. Every unsuffixed function with a `_ptds` or `_ptsz`
    /// twin calls that twin, and `cuGetProcAddress` returns the twins unless its flags request otherwise.
    #[inline]
    #[must_use]
    pub const fn per_thread_default_stream(mut self, on: bool) -> Self {
        self.per_thread = on;
        self
    }

    /// Adds an interposer that every call passes through. With several, including those added with
    /// [`interposer`](Self::interposer), the one added first sees each call first and may forward it to the next.
    #[inline]
    #[must_use]
    pub fn hook(self, hook: impl Faithful + 'static) -> Self {
        // SAFETY: `Faithful` is exactly this contract.
        unsafe { self.interposer(hook) }
    }

    /// Adds any interposer, for instance a closure or one that changes results.
    ///
    /// # Safety
    /// Safe code relies on a library's results: it reads memory after a copy that succeeded, and frees memory after a
    /// call that failed. Either the interposer must satisfy the contract of [`Faithful`], or the library must only be
    /// called by code that expects the altered results. The latter can rarely be guaranteed for the default library.
    #[inline]
    #[must_use]
    pub unsafe fn interposer(mut self, interposer: impl Interposer + 'static) -> Self {
        self.interposers.push(Box::new(interposer));
        self
    }
}

impl fmt::Debug for Options {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Options");
        out.field("per_thread_default_stream", &self.per_thread);
        out.field("interposers", &self.interposers.len()).finish()
    }
}
