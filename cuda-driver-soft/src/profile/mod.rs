//! Profiles: counters of launches by source line, written as a table, JSON or an HTML page.
//!
//! | file | |
//! | --- | --- |
//! | `report` | the launches of a profile, by kernel and source line |
//! | `formats` | the methods that write a profile |
//! | `table`, `json`, `html` | one format each |
//! | `exit` | writes the profile of a process that exits |

#[cfg(unix)]
mod exit;
mod formats;
mod html;
mod json;
mod report;
mod table;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use engine::Observers;
use engine::count::Profile as Collection;
use host::environment;

#[cfg(unix)]
pub(crate) use exit::at_exit;
pub use report::{KernelReport, LineReport, Report};

/// The profile of the whole process, if the environment requests one.
static WHOLE: OnceLock<Option<Collection>> = OnceLock::new();

/// The number of the next guard.
static NUMBER: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The profiles that guards of this thread collect, with the numbers of the guards.
    static GUARDS: RefCell<Vec<(u64, Collection)>> = const { RefCell::new(Vec::new()) };
}

fn whole() -> Option<&'static Collection> {
    let made = WHOLE.get_or_init(|| environment::profile().map(|_| Collection::new()));
    made.as_ref()
}

/// Returns the observers that add a launch of the calling thread to its profiles and to that of the process.
pub(crate) fn observers() -> Observers {
    let mut observers = whole().map(Collection::observers).unwrap_or_default();
    let _ = GUARDS.try_with(|guards| {
        for (_, collection) in guards.borrow().iter() {
            observers.add(collection.observers());
        }
    });
    observers
}

/// A profile that is being collected. It ends when this guard is dropped.
#[must_use = "the profile ends when this is dropped"]
#[derive(Debug)]
pub struct Profile {
    number: u64,
    collection: Collection,
    /// Makes the guard stay on its thread, whose list contains the profile.
    _thread: PhantomData<*const ()>,
}

/// Counts the work of the kernels that the calling thread launches from now on: instructions, active lanes, divergent
/// branches, sectors, bank conflicts, atomic conflicts and time at barriers.
///
/// The numbers depend on the kernels and their data only. They are the same on every machine and for every number of
/// host threads, so tests can assert them; the exceptions are kernels whose threads race or wait for other blocks.
/// Launches of other threads are not counted, so that tests can run in parallel. Kernels run slower while they are
/// counted.
///
/// ```
/// # use std::ptr::null_mut;
/// # let cuda = cuda_driver_soft::library();
/// # let (mut context, mut module, mut function, mut buffer) = (null_mut(), null_mut(), null_mut(), 0u64);
/// # let text = c".version 8.0 .target sm_80 .address_size 64
/// #     .entry fill(.param .u64 out) { .reg .b64 %a; .reg .b32 %i; ld.param.u64 %a, [out]; mov.u32 %i, %tid.x;
/// #     mad.wide.u32 %a, %i, 4, %a; st.global.u32 [%a], %i; ret; }";
/// # unsafe {
/// #     cuda.cuInit(0);
/// #     cuda.cuCtxCreate(&mut context, 0, 0);
/// #     cuda.cuModuleLoadData(&mut module, text.as_ptr().cast());
/// #     cuda.cuModuleGetFunction(&mut function, module, c"fill".as_ptr());
/// #     cuda.cuMemAlloc(&mut buffer, 1024);
/// # }
/// # let mut arguments = [(&raw mut buffer).cast()];
/// # let mut launch = || unsafe {
/// #     cuda.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, null_mut(), arguments.as_mut_ptr(), null_mut());
/// #     cuda.cuCtxSynchronize();
/// # };
/// let profile = cuda_driver_soft::profile();
/// launch(); // `fill`, which stores 256 numbers, and synchronises
/// let report = profile.finish();
/// let fill = report.kernel("fill").ok_or("it was not launched")?;
/// assert_eq!(fill.total.global_store_requests, 8);
/// assert_eq!(fill.total.global_store_sectors, 32);
/// assert_eq!((fill.total.divergent_branches, fill.total.bank_conflicts()), (0, 0));
/// # Ok::<(), &str>(())
/// ```
pub fn profile() -> Profile {
    let number = NUMBER.fetch_add(1, Relaxed);
    let collection = Collection::new();
    GUARDS.with_borrow_mut(|guards| guards.push((number, collection.clone())));
    Profile {
        number,
        collection,
        _thread: PhantomData,
    }
}

impl Profile {
    /// Ends the profile and returns the launches that have ended. Synchronise first: a launch that still runs is
    /// missing.
    #[must_use]
    pub fn finish(self) -> Report {
        Report {
            launches: self.collection.take(),
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let _ = GUARDS.try_with(|guards| guards.borrow_mut().retain(|(number, _)| *number != self.number));
    }
}
