//! Contexts, and the stack of current contexts of each thread.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_driver_sys::CUctx_flags;

use crate::check;
use crate::object::device::{self, Device};
use crate::object::limits::Limits;
use crate::queue::scheduler::scheduler;
use crate::queue::streams::Queues;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Missing, Table};

/// A context: the owner of memory, modules, streams and events on one device.
pub(crate) struct Context {
    pub(crate) handle: usize,
    pub(crate) device: &'static Device,
    pub(crate) primary: bool,
    /// For the context of a green context: the primary context, which owns all objects that are created in the green
    /// context.
    parent: Option<Arc<Context>>,
    /// The number that `cuCtxGetId` returns.
    serial: AtomicU64,
    flags: AtomicU32,
    /// False after the context was destroyed, and while a primary context is not active.
    alive: AtomicBool,
    /// Reference count of `cuCtxAttach` and `cuCtxDetach`; 1 at creation.
    usage: AtomicU32,
    queues: Mutex<Queues>,
    options: Mutex<ContextOptions>,
    /// IDs of the contexts that this context has peer access to.
    peers: Mutex<BTreeSet<u64>>,
}

/// Settings of a context that programs can change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextOptions {
    /// A `CUfunc_cache`.
    pub(crate) cache_config: u32,
    pub(crate) limits: Limits,
}

impl ContextOptions {
    fn of(device: &'static Device) -> ContextOptions {
        ContextOptions {
            cache_config: 0, // CU_FUNC_CACHE_PREFER_NONE
            limits: Limits::of(device),
        }
    }
}

const FLAGS_MASK: u32 = CUctx_flags::CU_CTX_FLAGS_MASK.0;
const SCHED_MASK: u32 = CUctx_flags::CU_CTX_SCHED_MASK.0;
/// Has no effect, because all page-locked memory is mapped. Primary contexts always have it, and callers cannot set it
/// on them.
pub(crate) const MAP_HOST: u32 = CUctx_flags::CU_CTX_MAP_HOST.0;

const COREDUMP: u32 = CUctx_flags::CU_CTX_COREDUMP_ENABLE.0;
/// A context that is created with this flag reports [`COREDUMP`] instead.
const USER_COREDUMP: u32 = CUctx_flags::CU_CTX_USER_COREDUMP_ENABLE.0;

/// Synchronous copies and fills in a context with this flag always wait.
const SYNC_MEMOPS: u32 = CUctx_flags::CU_CTX_SYNC_MEMOPS.0;

static TABLE: Table<Context> = Table::new(HandleKind::Context);

/// Returns the table of contexts that are not destroyed. A primary context stays in it while it is not active.
pub(crate) fn table() -> &'static Table<Context> {
    &TABLE
}

/// An entry on a thread's context stack.
#[derive(Clone)]
struct StackEntry {
    handle: usize,
    /// Keeps the object available for queries after the context is destroyed; `None` if it was already destroyed when
    /// pushed.
    context: Option<Arc<Context>>,
}

thread_local! {
    /// The calling thread's stack of current contexts; the last one is the top. It is never dropped, so that calls from
    /// destructors of other thread-locals still find it. A thread that used CUDA leaks a few bytes.
    static STACK: ManuallyDrop<RefCell<Vec<StackEntry>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

fn stack<R>(f: impl FnOnce(&mut Vec<StackEntry>) -> R) -> R {
    STACK.with(|stack| f(&mut stack.borrow_mut()))
}

/// Returns the handle on top of the calling thread's stack, or 0 if the stack is empty. The context may be destroyed.
pub(crate) fn current_handle() -> usize {
    stack(|s| s.last().map_or(0, |entry| entry.handle))
}

/// Returns the live context with this handle, or the primary context if the handle belongs to a green context. Returns
/// `CUDA_ERROR_INVALID_CONTEXT` for an unknown handle, and `CUDA_ERROR_CONTEXT_IS_DESTROYED` for a destroyed context
/// and for a primary context that is not active.
pub(crate) fn by_handle(handle: usize) -> Result<Arc<Context>> {
    exactly(handle)?.owner()
}

/// Returns the live context with this handle, like [`by_handle`], but without replacing a green context by its primary
/// one.
pub(crate) fn exactly(handle: usize) -> Result<Arc<Context>> {
    match TABLE.get(handle) {
        Ok(context) if context.is_alive() => Ok(context),
        Err(Missing::Unknown) => Err(Error::CUDA_ERROR_INVALID_CONTEXT),
        _ => Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED),
    }
}

/// Returns the stack entry for a handle. A destroyed context is accepted, as in driver 580; an unknown handle, which
/// crashes driver 580, is an error.
fn entry(handle: usize) -> Result<StackEntry> {
    let context = match TABLE.get(handle) {
        Ok(context) => Some(context),
        Err(Missing::Destroyed) => None,
        Err(Missing::Unknown) => return Err(Error::CUDA_ERROR_INVALID_CONTEXT),
    };
    Ok(StackEntry { handle, context })
}

/// Returns the current context, or the primary context if a green context is current. Returns
/// `CUDA_ERROR_INVALID_CONTEXT` if no context is current, and `CUDA_ERROR_CONTEXT_IS_DESTROYED` if the current one is
/// destroyed.
pub(crate) fn current() -> Result<Arc<Context>> {
    current_exactly()?.owner()
}

/// Returns the current context, like [`current`], but without replacing a green context by its primary one.
pub(crate) fn current_exactly() -> Result<Arc<Context>> {
    match current_handle() {
        0 => Err(Error::CUDA_ERROR_INVALID_CONTEXT),
        handle => exactly(handle),
    }
}

/// Returns the current context even if it was destroyed after it became current: its device and flags can still be
/// queried. Returns `CUDA_ERROR_CONTEXT_IS_DESTROYED` if it was destroyed before it became current.
pub(crate) fn current_or_destroyed() -> Result<Arc<Context>> {
    match stack(|s| s.last().cloned()) {
        None => Err(Error::CUDA_ERROR_INVALID_CONTEXT),
        Some(entry) => entry.context.ok_or(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED),
    }
}

/// Checks the flags of `cuCtxCreate`, `cuCtxSetFlags` and `cuDevicePrimaryCtxSetFlags`.
pub(crate) fn check_flags(flags: u32) -> Result<()> {
    let scheduling = matches!(flags & SCHED_MASK, 0 | 1 | 2 | 4);
    if scheduling && flags & !FLAGS_MASK == 0 {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Creates a context, makes it current in the calling thread, and returns its handle.
pub(crate) fn create(flags: u32, ordinal: i32) -> Result<usize> {
    let device = device::get(ordinal)?;
    check_flags(flags)?;
    let context = make(flags, device, false);
    let handle = context.handle;
    check::note_object("context", handle, move || TABLE.get(handle).is_ok());
    let context = Some(context);
    stack(|s| s.push(StackEntry { handle, context }));
    Ok(handle)
}

/// Returns a number that no other context of the process has had.
fn next_serial() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// Returns the flags that a new context reports for the requested ones.
fn flags_at_creation(flags: u32) -> u32 {
    let coredump = if flags & USER_COREDUMP != 0 { COREDUMP } else { 0 };
    flags & !USER_COREDUMP | coredump
}

/// Creates a context without making it current.
pub(crate) fn make(flags: u32, device: &'static Device, primary: bool) -> Arc<Context> {
    insert(flags, device, primary, None)
}

/// Creates a context on the first device, for a test.
#[cfg(test)]
pub(crate) fn for_test() -> Arc<Context> {
    device::set_all(device::from_environment().unwrap());
    make(0, device::get(0).unwrap(), false)
}

/// Creates the context of a green context. Calls that create or look up objects use `primary` instead of it.
pub(crate) fn make_green(primary: &Arc<Context>) -> Arc<Context> {
    insert(primary.flags(), primary.device, false, Some(primary.clone()))
}

fn insert(flags: u32, device: &'static Device, primary: bool, parent: Option<Arc<Context>>) -> Arc<Context> {
    TABLE.insert_with(|handle| Context {
        handle,
        device,
        primary,
        parent,
        serial: AtomicU64::new(next_serial()),
        flags: AtomicU32::new(flags_at_creation(flags)),
        alive: AtomicBool::new(true),
        usage: AtomicU32::new(1),
        queues: Mutex::default(),
        options: Mutex::new(ContextOptions::of(device)),
        peers: Mutex::default(),
    })
}

/// `cuCtxPushCurrent`: accepts a destroyed context.
pub(crate) fn push(handle: usize) -> Result<()> {
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let entry = entry(handle)?;
    stack(|s| s.push(entry));
    Ok(())
}

/// `cuCtxPopCurrent`: returns the handle that was current, even if its context is destroyed.
pub(crate) fn pop() -> Result<usize> {
    let popped = stack(Vec::pop).ok_or(Error::CUDA_ERROR_INVALID_CONTEXT)?;
    Ok(popped.handle)
}

/// `cuCtxSetCurrent`: replaces the top of the stack; NULL pops it. Accepts a destroyed context.
pub(crate) fn set_current(handle: usize) -> Result<()> {
    if handle == 0 {
        stack(Vec::pop);
        return Ok(());
    }
    let entry = entry(handle)?;
    stack(|s| {
        s.pop();
        s.push(entry);
    });
    Ok(())
}

/// Pops the context with this handle from the calling thread's stack if it is on top.
pub(crate) fn pop_if_current(handle: usize) {
    stack(|s| s.pop_if(|top| top.handle == handle));
}

/// `cuCtxAttach`: increments the reference count of the current context and returns its handle.
pub(crate) fn attach() -> Result<usize> {
    let context = current()?;
    context.usage.fetch_add(1, Relaxed);
    Ok(context.handle)
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("handle", &self.handle)
            .field("alive", &self.is_alive())
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Relaxed)
    }

    /// Returns `CUDA_ERROR_CONTEXT_IS_DESTROYED` if the context has ended.
    pub(crate) fn check_alive(&self) -> Result<()> {
        match self.is_alive() {
            true => Ok(()),
            false => Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED),
        }
    }

    /// Returns the context that owns the objects made in this one: for a green context, the primary context.
    pub(crate) fn owner(self: Arc<Self>) -> Result<Arc<Self>> {
        match &self.parent {
            None => Ok(self),
            Some(parent) if parent.is_alive() => Ok(parent.clone()),
            Some(_) => Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED),
        }
    }

    /// Returns true for the context of a green context.
    pub(crate) fn is_green(&self) -> bool {
        self.parent.is_some()
    }

    pub(crate) fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    /// Returns true if the context has the flag `CU_CTX_SYNC_MEMOPS`.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.flags() & SYNC_MEMOPS != 0
    }

    /// Sets the flags, except for those that are fixed at creation.
    pub(crate) fn set_flags(&self, flags: u32) {
        const FIXED: u32 = MAP_HOST | COREDUMP | USER_COREDUMP;
        self.flags.store(self.flags() & FIXED | flags & !FIXED, Relaxed);
    }

    /// `cuCtxGetId`: a primary context gets a new number each time it becomes active.
    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    /// Returns the number that identifies the context as the owner of memory and modules.
    pub(crate) fn id(&self) -> u64 {
        self.handle as u64
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn options(&self) -> MutexGuard<'_, ContextOptions> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuCtxEnablePeerAccess`: returns false if access is already enabled. All memory is in one address space, so this
    /// has no other effect.
    pub(crate) fn enable_peer(&self, id: u64) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(id)
    }

    /// `cuCtxDisablePeerAccess`: returns false if access is not enabled.
    pub(crate) fn disable_peer(&self, id: u64) -> bool {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// Submits work that runs after all work submitted to the context so far.
    pub(crate) fn submit_after_all(&self, work: Work) -> TaskId {
        scheduler().submit(&self.queues().all_tails(), work, 0)
    }

    /// Waits for all work of the context and ignores its faults.
    pub(crate) fn drain(&self) {
        let tails = self.queues().all_tails();
        scheduler().wait_all(&tails);
    }

    /// Returns true if an event that `cuCtxWaitEvent` has named holds new work.
    pub(crate) fn is_held(&self) -> bool {
        let gate = self.queues().gate();
        !scheduler().are_done(&[gate])
    }

    /// Returns true if all work of the context is done.
    pub(crate) fn is_idle(&self) -> bool {
        let tails = self.queues().all_tails();
        scheduler().are_done(&tails)
    }

    /// Makes a primary context active again after it has ended.
    pub(crate) fn revive(&self, flags: u32) {
        self.flags.store(flags_at_creation(flags), Relaxed);
        self.serial.store(next_serial(), Relaxed);
        self.usage.store(1, Relaxed);
        *self.options() = ContextOptions::of(self.device);
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.alive.store(true, Relaxed);
    }

    /// Marks the context as ended.
    pub(crate) fn set_ended(&self) {
        self.alive.store(false, Relaxed);
    }

    /// `cuCtxDetach`: decrements the reference count and returns true if it reached 0. The count of a primary context
    /// stays at least 1.
    pub(crate) fn detach(&self) -> bool {
        if self.primary {
            let lower = |n: u32| (n > 1).then(|| n - 1);
            let _ = self.usage.fetch_update(Relaxed, Relaxed, lower);
            return false;
        }
        self.usage.fetch_sub(1, Relaxed) <= 1
    }

    /// Updates the limits for a kernel that is about to be launched. As with NVIDIA's driver, the stack limit grows to
    /// the local memory that a kernel is known to need.
    pub(crate) fn note_launch(&self, kernel: &engine::Kernel) {
        let local = kernel.local_bytes().next_multiple_of(16);
        let mut options = self.options();
        let limits = &mut options.limits;
        limits.prints |= kernel.prints();
        limits.allocates |= kernel.uses_heap();
        limits.stack = limits.stack.max(local);
    }

    /// Returns the engine's options for a launch: the limits of the context, and `CUDA_SOFT_REGISTERS`.
    pub(crate) fn launch_options(&self) -> engine::Options {
        let limits = self.options().limits;
        engine::Options {
            stack_limit: limits.stack,
            heap_limit: limits.heap,
            reports_registers: host::environment::registers(),
            ..engine::Options::default()
        }
    }
}
