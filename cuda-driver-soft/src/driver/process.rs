//! The state of the process: initialised or not, forked, exiting, faulted.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::array::{Array, Mipmap};
use super::context::Context;
use super::device::{self, Device};
use super::error::{Error, Result};
use super::event::Event;
use super::function::Function;
use super::graph::exec::Exec;
use super::graph::object::UserObject;
use super::handle::{Kind, Table};
use super::library::{Kernel, Library};
use super::link::Linker;
use super::module::Module;
use super::pool::Pool;
use super::reference::Reference;
use super::stream::Stream;
use super::virtual_memory::Generic;
use super::workers::{graph, in_host_function};

/// Everything that `cuInit` makes.
pub(crate) struct Driver {
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Table<Context>,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) libraries: Table<Library>,
    pub(crate) kernels: Table<Kernel>,
    pub(crate) linkers: Table<Linker>,
    pub(crate) pools: Table<Pool>,
    pub(crate) arrays: Table<Array>,
    pub(crate) mipmaps: Table<Mipmap>,
    pub(crate) references: Table<Reference>,
    pub(crate) generics: Table<Generic>,
    pub(crate) graph_execs: Table<Exec>,
    pub(crate) user_objects: Table<UserObject>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);
static EXITING: AtomicBool = AtomicBool::new(false);
/// The fault that this process has been told of; from then on it is the answer to every call that touches a context.
static STICKY: AtomicU32 = AtomicU32::new(0);

/// Marks this process as the child of an initialised one.
#[cfg(unix)]
pub(crate) fn mark_forked() {
    FORKED.store(true, Relaxed);
}

/// Marks this process as one that runs its exit handlers.
#[cfg(unix)]
pub(crate) fn mark_exiting() {
    EXITING.store(true, Relaxed);
}

/// `CUDA_ERROR_DEINITIALIZED` once the process has begun to exit.
pub(crate) fn check_exit() -> Result<()> {
    if EXITING.load(Relaxed) {
        Err(Error::DEINITIALIZED)
    } else {
        Ok(())
    }
}

/// `cuInit`. `watch` is called once, before the driver counts as initialised: it arranges for [`mark_forked`] and
/// [`mark_exiting`].
pub(crate) fn init(flags: u32, watch: impl FnOnce()) -> Result<()> {
    check_exit()?;
    if FORKED.load(Relaxed) {
        return Err(Error::NOT_INITIALIZED);
    }
    if flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    static INIT: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INIT.lock().unwrap_or_else(PoisonError::into_inner);
    if DRIVER.get().is_some() {
        return Ok(());
    }
    let devices = device::from_environment()?;
    if !crate::marker::take() {
        host::log!(
            "another copy of the software driver is at work in this process (the library and libcuda.so.1)"
        );
        return Err(Error::SYSTEM_DRIVER_MISMATCH);
    }
    watch();
    if !engine::built_with_optimisation() {
        host::log!(
            "built without optimisation: kernels run about 100 times slower (see README, [profile.dev.package])"
        );
    }
    let driver = Driver {
        devices,
        contexts: Table::new(Kind::Context),
        modules: Table::new(Kind::Module),
        functions: Table::new(Kind::Function),
        streams: Table::new(Kind::Stream),
        events: Table::new(Kind::Event),
        libraries: Table::new(Kind::Library),
        kernels: Table::new(Kind::Kernel),
        linkers: Table::new(Kind::Linker),
        pools: Table::new(Kind::Pool),
        arrays: Table::new(Kind::Array),
        mipmaps: Table::new(Kind::Mipmap),
        references: Table::new(Kind::Reference),
        generics: Table::new(Kind::Generic),
        graph_execs: Table::new(Kind::GraphExec),
        user_objects: Table::new(Kind::UserObject),
    };
    DRIVER.get_or_init(|| driver);
    Ok(())
}

/// The driver, for a call that is permitted in a host function too.
pub(crate) fn driver_in_host_function() -> Result<&'static Driver> {
    check_exit()?;
    if FORKED.load(Relaxed) {
        return Err(Error::NOT_INITIALIZED);
    }
    DRIVER.get().ok_or(Error::NOT_INITIALIZED)
}

/// The driver: initialised, in the process that initialised it, outside of host functions.
pub(crate) fn driver() -> Result<&'static Driver> {
    let driver = driver_in_host_function()?;
    if in_host_function() {
        Err(Error::NOT_PERMITTED)
    } else {
        Ok(driver)
    }
}

/// The driver for a call that touches a context: refused after a fault was reported.
pub(crate) fn driver_without_fault() -> Result<&'static Driver> {
    let driver = driver()?;
    check_sticky()?;
    Ok(driver)
}

/// The fault that was reported earlier, if any.
pub(crate) fn check_sticky() -> Result<()> {
    match STICKY.load(Relaxed) {
        0 => Ok(()),
        code => Err(Error(code)),
    }
}

/// Looks whether work has failed, as a query or a synchronisation does: from here on the fault sticks.
pub(crate) fn observe_fault() -> Result<()> {
    if let Some(code) = graph().fault() {
        STICKY.store(code, Relaxed);
    }
    check_sticky()
}
