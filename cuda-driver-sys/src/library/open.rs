//! Opening the source of a library, once, without deadlocks on re-entrant calls.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::claim::ClaimedBy;
use super::error::{LoadError, REENTRANT};
use super::interposer::Interposed;
#[cfg(feature = "loader")]
use super::object::Object;
use super::origin::Origin;
#[cfg(feature = "loader")]
use super::search;
use super::slots::Library;
use super::source::{Options, Resolver, Source, SourceKind};
use crate::Function;

/// The object in which a library's symbols are looked up.
pub(crate) enum SymbolProvider {
    #[cfg(feature = "loader")]
    Object(Object),
    #[cfg(feature = "link")]
    Linked,
    Resolver(Resolver),
    Library(&'static Library),
}

/// An open library.
pub(crate) struct Opened {
    pub(crate) symbols: SymbolProvider,
    pub(crate) origin: Origin,
    pub(crate) name: String,
    pub(crate) per_thread: bool,
    pub(crate) interposed: Option<Interposed>,
}

impl Opened {
    /// Returns the driver's path or, if it is not known, the name of the source, for messages.
    pub(crate) fn description(&self) -> String {
        let path = self.origin.path();
        path.map_or_else(|| self.name.clone(), |path| path.display().to_string())
    }
}

/// Opens a source.
pub(crate) fn open(source: Source, options: Options) -> Result<Opened, LoadError> {
    // In 32-bit programs device pointers have 32 bits in `cuda.h`, but 64 in these bindings. Functions from a resolver
    // have the types of these bindings.
    let has_our_types = matches!(source.0, SourceKind::Resolver { .. } | SourceKind::Library(_));
    if cfg!(not(target_pointer_width = "64")) && !has_our_types {
        return Err(LoadError::unsupported());
    }
    let name = source.to_string();
    let (symbols, origin) = match source.0 {
        #[cfg(feature = "loader")]
        SourceKind::Search => of_object(search::search()?),
        #[cfg(feature = "loader")]
        SourceKind::Path(path) => of_object(search::explicit(&path)?),
        #[cfg(feature = "link")]
        SourceKind::Linked(reference) => {
            // `black_box` keeps the compiler from removing the reference.
            if std::hint::black_box(reference) == 0 {
                return Err(LoadError::unsupported());
            }
            let init = super::linked::symbol(c"cuInit");
            if init.is_null() {
                return Err(LoadError::named(name, "not a CUDA driver: it has no cuInit"));
            }
            (SymbolProvider::Linked, Origin::of(init, None))
        }
        #[cfg(not(feature = "loader"))]
        SourceKind::NotChosen => return Err(LoadError::not_chosen()),
        SourceKind::Resolver { resolver, .. } => {
            let init = resolver(c"cuInit");
            if init.is_null() {
                return Err(LoadError::named(name, "not a CUDA driver: it has no cuInit"));
            }
            (SymbolProvider::Resolver(resolver), Origin::none())
        }
        SourceKind::Library(library) => match library.opened() {
            Ok(opened) => (SymbolProvider::Library(library), opened.origin.clone()),
            Err(error) => return Err(error.clone()),
        },
    };
    Ok(Opened {
        symbols,
        origin,
        name,
        per_thread: options.per_thread,
        interposed: Interposed::new(options.interposers),
    })
}

#[cfg(feature = "loader")]
fn of_object((object, origin): (Object, Origin)) -> (SymbolProvider, Origin) {
    (SymbolProvider::Object(object), origin)
}

/// The state of a library: unopened, being opened by one thread, or opened.
pub(crate) struct OpenOnce {
    opened: OnceLock<Result<Opened, LoadError>>,
    opening: Mutex<Opening>,
    changed: Condvar,
}

/// The state that is changed under a lock while the library is set or opened.
struct Opening {
    /// The source and options that were set; taken when the library is opened.
    config: Option<(Source, Options)>,
    /// The call that set or first used the library.
    claimed: Option<ClaimedBy>,
    /// The thread that is opening the library.
    thread: Option<usize>,
}

impl OpenOnce {
    pub(crate) const fn new() -> Self {
        Self {
            opened: OnceLock::new(),
            opening: Mutex::new(Opening {
                config: None,
                claimed: None,
                thread: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns the result of opening, or `None` if the library was not opened yet.
    pub(crate) fn peek(&self) -> Option<&Result<Opened, LoadError>> {
        self.opened.get()
    }

    /// Sets the result of opening, for a new library.
    pub(crate) fn fill(&self, opened: Opened) {
        // Cannot fail, because the library is not shared yet.
        _ = self.opened.set(Ok(opened));
    }

    fn lock(&self) -> MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the source to open at the first use. The error is the earlier claim.
    pub(crate) fn configure(&self, config: (Source, Options), claim: ClaimedBy) -> Result<(), ClaimedBy> {
        let mut opening = self.lock();
        if let Some(first) = &opening.claimed {
            return Err(first.clone());
        }
        opening.claimed = Some(claim);
        opening.config = Some(config);
        Ok(())
    }

    /// Returns the open library, and opens it at the first use. `function` is recorded as the first use, unless the
    /// source was set before.
    pub(crate) fn get(&self, function: Option<Function>) -> Result<&Opened, &LoadError> {
        match self.opened.get() {
            Some(done) => done.as_ref(),
            None => self.open_now(function),
        }
    }

    #[cold]
    fn open_now(&self, function: Option<Function>) -> Result<&Opened, &LoadError> {
        let this = this_thread();
        let mut opening = self.lock();
        loop {
            if let Some(done) = self.opened.get() {
                return done.as_ref();
            }
            match opening.thread {
                None => break,
                Some(thread) if thread == this => return Err(&REENTRANT),
                Some(_) => opening = self.changed.wait(opening).unwrap_or_else(PoisonError::into_inner),
            }
        }
        opening.thread = Some(this);
        opening.claimed.get_or_insert(ClaimedBy::FirstUse(function));
        let (source, options) = opening
            .config
            .take()
            .unwrap_or_else(|| (Source::by_default(), Options::new()));
        drop(opening);

        // The lock is not held here, because the resolver may use this library: such a call must fail, not deadlock.
        let wake = WakeWaiters(self);
        let result = open(source, options);
        _ = self.opened.set(result);
        drop(wake);
        match self.opened.get() {
            Some(done) => done.as_ref(),
            None => Err(&REENTRANT),
        }
    }
}

/// Returns a number that is unique among the running threads. `std::thread::current` could panic while a thread ends.
fn this_thread() -> usize {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| core::ptr::from_ref(here).addr())
}

/// Wakes the waiting threads when dropped, even after a panic of the resolver.
struct WakeWaiters<'a>(&'a OpenOnce);

impl Drop for WakeWaiters<'_> {
    fn drop(&mut self) {
        if self.0.opened.get().is_none() {
            _ = self.0.opened.set(Err(LoadError::panicked()));
        }
        self.0.lock().thread = None;
        self.0.changed.notify_all();
    }
}
