//! Contexts, the stack of current ones that each thread has, and primary contexts.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_driver_sys::CUctx_flags;

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
    serial: AtomicU64,
    flags: AtomicU32,
    alive: AtomicBool,
    /// `cuCtxAttach` and `cuCtxDetach` count it; creation counts 1.
    usage: AtomicU32,
    queues: Mutex<Queues>,
    options: Mutex<Options>,
    /// Contexts that it has peer access to.
    peers: Mutex<BTreeSet<u64>>,
}

/// What can be set in a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) cache_config: u32,
    pub(crate) shared_config: u32,
    pub(crate) limits: Limits,
}

impl Options {
    fn of(device: &'static Device) -> Options {
        Options {
            cache_config: 0,
            shared_config: 1,
            limits: Limits::of(device),
        }
    }
}

const FLAGS_MASK: u32 = CUctx_flags::CU_CTX_FLAGS_MASK.0;
const SCHED_MASK: u32 = CUctx_flags::CU_CTX_SCHED_MASK.0;
/// All page-locked memory is mapped, so it says nothing. Primary contexts have it, and nobody sets it.
pub(crate) const MAP_HOST: u32 = CUctx_flags::CU_CTX_MAP_HOST.0;

const COREDUMP: u32 = CUctx_flags::CU_CTX_COREDUMP_ENABLE.0;
/// Implies [`COREDUMP`].
const USER_COREDUMP: u32 = CUctx_flags::CU_CTX_USER_COREDUMP_ENABLE.0;

static TABLE: Table<Context> = Table::new(HandleKind::Context);

/// The contexts that are not destroyed.
pub(crate) fn table() -> &'static Table<Context> {
    &TABLE
}

/// A context that a thread has made current.
#[derive(Clone)]
struct Entry {
    handle: usize,
    /// What can be asked of it when it is destroyed; `None` where it was so before.
    context: Option<Arc<Context>>,
}

thread_local! {
    /// The contexts current on this thread, the top last. Never destroyed, so that calls from destructors of other
    /// thread-locals still find it; a thread that used CUDA leaves a few bytes behind.
    static STACK: ManuallyDrop<RefCell<Vec<Entry>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

fn stack<R>(f: impl FnOnce(&mut Vec<Entry>) -> R) -> R {
    STACK.with(|stack| f(&mut stack.borrow_mut()))
}

/// The handle on top of the calling thread's stack, whether or not its context still lives; 0 if the stack is empty.
pub(crate) fn current_handle() -> usize {
    stack(|s| s.last().map_or(0, |entry| entry.handle))
}

/// The living context of this handle: 201 for what never was a context, 709 for one that is destroyed.
pub(crate) fn by_handle(handle: usize) -> Result<Arc<Context>> {
    match TABLE.get(handle) {
        Ok(context) if context.is_alive() => Ok(context),
        Err(Missing::Unknown) => Err(Error::CUDA_ERROR_INVALID_CONTEXT),
        _ => Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED),
    }
}

/// What goes onto a stack for a handle. A destroyed context is taken as it is; on what never was one, a real driver
/// crashes.
fn entry(handle: usize) -> Result<Entry> {
    let context = match TABLE.get(handle) {
        Ok(context) => Some(context),
        Err(Missing::Destroyed) => None,
        Err(Missing::Unknown) => return Err(Error::CUDA_ERROR_INVALID_CONTEXT),
    };
    Ok(Entry { handle, context })
}

/// The current context: `CUDA_ERROR_INVALID_CONTEXT` without one, `CUDA_ERROR_CONTEXT_IS_DESTROYED` if it is destroyed.
pub(crate) fn current() -> Result<Arc<Context>> {
    match current_handle() {
        0 => Err(Error::CUDA_ERROR_INVALID_CONTEXT),
        handle => by_handle(handle),
    }
}

/// The current context, though it may be destroyed: its device and its flags can still be asked for.
pub(crate) fn current_or_destroyed() -> Result<Arc<Context>> {
    match stack(|s| s.last().cloned()) {
        None => Err(Error::CUDA_ERROR_INVALID_CONTEXT),
        Some(entry) => entry.context.ok_or(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED),
    }
}

/// Checks what `cuCtxCreate` and `cuDevicePrimaryCtxSetFlags` take as flags.
pub(crate) fn check_flags(flags: u32) -> Result<()> {
    let scheduling = matches!(flags & SCHED_MASK, 0 | 1 | 2 | 4);
    if scheduling && flags & !FLAGS_MASK == 0 {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Makes a context and pushes it.
pub(crate) fn create(flags: u32, ordinal: i32) -> Result<usize> {
    let device = device::get(ordinal)?;
    check_flags(flags)?;
    let context = make(flags, device, false);
    let handle = context.handle;
    let context = Some(context);
    stack(|s| s.push(Entry { handle, context }));
    Ok(handle)
}

/// A number that no other context of the process has had.
fn next_serial() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// What a new context says of its flags.
fn flags_at_creation(flags: u32) -> u32 {
    let coredump = if flags & USER_COREDUMP != 0 {
        COREDUMP
    } else {
        0
    };
    flags & !USER_COREDUMP | coredump
}

pub(crate) fn make(flags: u32, device: &'static Device, primary: bool) -> Arc<Context> {
    TABLE.insert_with(|handle| Context {
        handle,
        device,
        primary,
        serial: AtomicU64::new(next_serial()),
        flags: AtomicU32::new(flags_at_creation(flags)),
        alive: AtomicBool::new(true),
        usage: AtomicU32::new(1),
        queues: Mutex::default(),
        options: Mutex::new(Options::of(device)),
        peers: Mutex::default(),
    })
}

/// `cuCtxPushCurrent`: also of a destroyed context.
pub(crate) fn push(handle: usize) -> Result<()> {
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let entry = entry(handle)?;
    stack(|s| s.push(entry));
    Ok(())
}

/// `cuCtxPopCurrent`: what was current, even if it is destroyed.
pub(crate) fn pop() -> Result<usize> {
    let popped = stack(Vec::pop).ok_or(Error::CUDA_ERROR_INVALID_CONTEXT)?;
    Ok(popped.handle)
}

/// `cuCtxSetCurrent`: replaces the top; with NULL pops it. Also with a destroyed context.
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

/// Pops the context of this handle from the calling thread's stack, if it is the top.
pub(crate) fn pop_if_current(handle: usize) {
    stack(|s| s.pop_if(|top| top.handle == handle));
}

/// `cuCtxAttach`: counts one more use of the current context and gives its handle.
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

    pub(crate) fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    /// Sets the flags; some are as they were when the context was made.
    pub(crate) fn set_flags(&self, flags: u32) {
        const FIXED: u32 = MAP_HOST | COREDUMP | USER_COREDUMP;
        self.flags
            .store(self.flags() & FIXED | flags & !FIXED, Relaxed);
    }

    /// `cuCtxGetId`: another one each time that a primary context becomes active.
    pub(crate) fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    /// A number that names it in memory and in modules.
    pub(crate) fn id(&self) -> u64 {
        self.handle as u64
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuCtxEnablePeerAccess`; false if it is enabled already. All memory is in one address space, so nothing else changes.
    pub(crate) fn enable_peer(&self, id: u64) -> bool {
        self.peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id)
    }

    /// `cuCtxDisablePeerAccess`; false if it is not enabled.
    pub(crate) fn disable_peer(&self, id: u64) -> bool {
        self.peers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id)
    }

    /// Submits work that waits for all of its work so far.
    pub(crate) fn submit_after_all(&self, work: Work) -> TaskId {
        scheduler().submit(&self.queues().all_tails(), work, 0)
    }

    /// Waits for all of its work; what failed is not looked at.
    pub(crate) fn drain(&self) {
        let tails = self.queues().all_tails();
        scheduler().wait_all(&tails);
    }

    /// Whether all of its work is done.
    pub(crate) fn is_idle(&self) -> bool {
        let tails = self.queues().all_tails();
        scheduler().are_done(&tails)
    }

    /// Begins a primary context anew, which has ended and is retained again.
    pub(crate) fn revive(&self, flags: u32) {
        self.flags.store(flags_at_creation(flags), Relaxed);
        self.serial.store(next_serial(), Relaxed);
        self.usage.store(1, Relaxed);
        *self.options() = Options::of(self.device);
        self.alive.store(true, Relaxed);
    }

    /// Notes that it has ended.
    pub(crate) fn set_ended(&self) {
        self.alive.store(false, Relaxed);
    }

    /// `cuCtxDetach`: counts one use less; true if that was the last one. A primary context keeps its last one.
    pub(crate) fn detach(&self) -> bool {
        if self.primary {
            let lower = |n: u32| (n > 1).then(|| n - 1);
            let _ = self.usage.fetch_update(Relaxed, Relaxed, lower);
            return false;
        }
        self.usage.fetch_sub(1, Relaxed) <= 1
    }

    /// Notes what a kernel that is about to be launched takes: as a real driver does, the stack grows to the local memory
    /// that is known to be needed.
    pub(crate) fn note_launch(&self, kernel: &engine::Kernel) {
        let local = kernel.local_bytes().next_multiple_of(16);
        let mut options = self.options();
        let limits = &mut options.limits;
        limits.prints |= kernel.prints();
        limits.allocates |= kernel.uses_heap();
        limits.stack = limits.stack.max(local);
    }

    /// What its limits mean for a launch.
    pub(crate) fn launch_options(&self) -> engine::Options {
        let limits = self.options().limits;
        engine::Options {
            stack_limit: limits.stack,
            heap_limit: limits.heap,
            ..engine::Options::default()
        }
    }
}
