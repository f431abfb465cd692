//! Where a library comes from, and the options it is made with.

use core::ffi::{CStr, c_void};
use core::fmt;
use std::borrow::Cow;
#[cfg(feature = "loader")]
use std::path::PathBuf;
use std::sync::Arc;

use super::interposer::{Faithful, Interposer};
use super::slots::Library;

/// Gives the address of an exported function, or null if there is none of that name.
pub(crate) type Resolver = Arc<dyn Fn(&CStr) -> *const c_void + Send + Sync>;

/// Where a driver comes from.
#[derive(Clone)]
pub struct Source(pub(crate) SourceKind);

#[derive(Clone)]
pub(crate) enum SourceKind {
    #[cfg(feature = "loader")]
    Search,
    #[cfg(feature = "loader")]
    Path(PathBuf),
    /// The address of a function of the driver's.
    #[cfg(feature = "link")]
    Linked(usize),
    /// Nobody said where the driver is, and there is no loader to find it.
    #[cfg(not(feature = "loader"))]
    Nowhere,
    Resolver {
        name: Cow<'static, str>,
        resolver: Resolver,
    },
    Library(&'static Library),
}

impl Source {
    /// The system's driver. Tried in this order:
    ///
    /// 1. the file that the environment variable `CUDA_DRIVER_LIBRARY` names, and then nothing else; the variable is
    ///    ignored in a privileged (setuid, setgid or capability-carrying) process, and on a Unix that does not tell
    ///    whether a process is one. A Windows program that runs elevated heeds it;
    /// 2. `libcuda.so.1`, as the system's loader finds it; on Windows `nvcuda.dll` in the system folder, and nothing
    ///    else;
    /// 3. on Linux the folders of WSL (`/usr/lib/wsl/lib`), of NixOS (`/run/opengl-driver/lib`), of Jetson boards
    ///    (`/usr/lib/aarch64-linux-gnu/tegra` and `…/nvidia`) and of Debian (`/usr/lib/<target>/nvidia/current`,
    ///    `/usr/lib/<target>`).
    ///
    /// The stub library of a CUDA toolkit is no driver and is passed over.
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    #[must_use]
    pub const fn search() -> Self {
        Self(SourceKind::Search)
    }

    /// The library at a path; a bare file name is left to the system's loader to find.
    ///
    /// # Safety
    /// The file runs its initialisers when it is loaded, and whatever it exports under a name of [`Function`] is
    /// called as `cuda.h` declares it. It must be a CUDA driver, or behave as one: safe code believes what it answers.
    ///
    /// [`Function`]: crate::Function
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    #[must_use]
    pub unsafe fn path(path: impl Into<PathBuf>) -> Self {
        Self(SourceKind::Path(path.into()))
    }

    /// The driver that the program is linked against: a program that asks for it starts only where the system finds
    /// `libcuda.so.1` or `nvcuda.dll`, as a C program that is linked with `-lcuda`. Functions are looked up among
    /// everything that was loaded with the program, so that a tool which `LD_PRELOAD` put before the driver is found
    /// first. Where there is no CUDA driver for the operating system, opening it fails.
    ///
    /// Windows finds the file as any of a program's libraries, in the program's own folder first. With musl a shared object
    /// that was opened with `RTLD_LOCAL`, as Python opens modules, finds nothing of the libraries that came with it.
    ///
    /// Building needs no driver and no toolkit: where pkg-config and the usual folders have no `libcuda.so`, a stub with
    /// its name takes its place in the linker's eyes.
    #[cfg(feature = "link")]
    #[cfg_attr(docsrs, doc(cfg(feature = "link")))]
    #[inline]
    #[must_use]
    pub fn linked() -> Self {
        Self(SourceKind::Linked(super::linked::reference()))
    }

    /// Where the default library comes from if nobody says it.
    #[inline]
    pub(crate) const fn by_default() -> Self {
        #[cfg(feature = "loader")]
        return Self::search();
        #[cfg(not(feature = "loader"))]
        return Self(SourceKind::Nowhere);
    }

    /// Functions that a resolver names, for instance those of a driver that is linked into the program, or that another
    /// loader opened. It is given a symbol, `cuMemAlloc_v2`, and answers with its address, or null if there is none of that
    /// name. `name` says in messages what they belong to.
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use std::ffi::{CStr, CString, c_void};
    /// use std::ptr;
    ///
    /// use cuda_driver_sys::library::Source;
    ///
    /// /// The functions of a plug-in, by name, as addresses.
    /// unsafe fn of_plugin(plugin: &str, table: HashMap<CString, usize>) -> Source {
    ///     let resolver = move |symbol: &CStr| match table.get(symbol) {
    ///         Some(address) => *address as *const c_void,
    ///         None => ptr::null(),
    ///     };
    ///     // SAFETY: the caller vouches for the table.
    ///     unsafe { Source::resolver(format!("the plug-in {plugin}"), resolver) }
    /// }
    /// ```
    ///
    /// The resolver is called when a function is first used, on the thread that uses it, perhaps on two at once, and
    /// whenever a function that it did not find is used or asked for again. Calls that it makes itself to functions of
    /// the same library which were never called before fail. A panic goes on through the call; while the library is opened,
    /// it is its end. It is kept for good, as the library is.
    ///
    /// # Safety
    /// What the resolver returns for a symbol is null or, for the rest of the process, a function of the type that
    /// `cuda.h` declares for that symbol and that does what the manual says of it: safe code believes what it answers.
    /// Where pointers are not of 64 bits, the type is that of these bindings.
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

    /// The driver of another library, with options of one's own: the other's interposers and its per-thread option
    /// are not taken over. A second [`Library`] over one driver shares everything that is the driver's: contexts,
    /// memory, its initialisation.
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
            SourceKind::Nowhere => f.write_str("nothing"),
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

/// How a library behaves; fixed when it is made.
#[derive(Default)]
pub struct Options {
    pub(crate) per_thread: bool,
    pub(crate) interposers: Vec<Box<dyn Interposer>>,
}

impl Options {
    /// The default stream is the legacy one, and nothing stands between the caller and the driver.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            per_thread: false,
            interposers: Vec::new(),
        }
    }

    /// NULL as a stream means the calling thread's own default stream, as in a C program that is compiled with
    /// `CUDA_API_PER_THREAD_DEFAULT_STREAM`: every unsuffixed function that has a `_ptds` or `_ptsz` twin calls it,
    /// and `cuGetProcAddress` finds the twins.
    #[inline]
    #[must_use]
    pub const fn per_thread_default_stream(mut self, on: bool) -> Self {
        self.per_thread = on;
        self
    }

    /// Every call through the library is handed to `hook` first. Given several times, also together with
    /// [`interposer`](Self::interposer), the first sees each call first and hands it on to the next.
    #[inline]
    #[must_use]
    pub fn hook(self, hook: impl Faithful + 'static) -> Self {
        // SAFETY: what is faithful answers as the contract asks.
        unsafe { self.interposer(hook) }
    }

    /// The same for any interposer: a closure, or one that changes results.
    ///
    /// # Safety
    /// Whoever uses the library believes its answers, safe code that is built on it too: memory that a copy is said to
    /// have filled is read, and what a refused call was given is freed. So either the interposer answers as
    /// [`Faithful`] asks, or nothing but the caller's own code, which knows better, calls the library; for the default
    /// library that is hardly ever known.
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
