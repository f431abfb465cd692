//! Contexts, the stack of current ones that each thread has, and primary contexts.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::device::{self, Device};
use super::error::{Error, Result};
use super::handle::Missing;
use super::lanes::Lanes;
use super::process::{
    check_sticky, driver, driver_in_host_function, driver_without_fault, observe_fault,
};
use super::workers::graph;
use crate::exec;

/// A context: the owner of memory, modules, streams and events on one device.
pub(crate) struct Context {
    pub(crate) handle: usize,
    pub(crate) device: &'static Device,
    primary: bool,
    flags: AtomicU32,
    alive: AtomicBool,
    /// `cuCtxAttach` and `cuCtxDetach` count it; creation counts 1.
    usage: AtomicU32,
    lanes: Mutex<Lanes>,
    options: Mutex<Options>,
    /// Contexts that it has peer access to.
    peers: Mutex<BTreeSet<u64>>,
}

/// What can be set in a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) cache_config: u32,
    pub(crate) shared_config: u32,
    limits: [u64; 7],
    /// A kernel was launched that may print, or allocate from the heap: from then on their sizes are what they are.
    prints: bool,
    allocates: bool,
}

impl Default for Options {
    fn default() -> Self {
        // Stack, printf buffer, heap, (no depth of synchronisation), pending launches, fetch granularity, persisting L2.
        Options {
            cache_config: 0,
            shared_config: 1,
            limits: [1024, 7 << 20, 8 << 20, 0, 2048, 128, 0],
            prints: false,
            allocates: false,
        }
    }
}

/// `CU_LIMIT_STACK_SIZE`: bytes of local memory that a thread has for calls whose depth is not known at load.
const LIMIT_STACK_SIZE: usize = 0;
/// `CU_LIMIT_PRINTF_FIFO_SIZE`
const LIMIT_PRINTF_FIFO_SIZE: usize = 1;
/// `CU_LIMIT_MALLOC_HEAP_SIZE`: bytes that all kernels together may have from `malloc`.
const LIMIT_MALLOC_HEAP_SIZE: usize = 2;
/// `CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH`, which sm_90 no longer has.
const LIMIT_SYNC_DEPTH: u32 = 3;
/// `CU_LIMIT_MAX_L2_FETCH_GRANULARITY`
const LIMIT_FETCH_GRANULARITY: usize = 5;
/// `CU_CTX_FLAGS_MASK` of the 13.5 header.
const FLAGS_MASK: u32 = 0xFF;
/// `CU_CTX_SCHED_MASK`
const SCHED_MASK: u32 = 7;

thread_local! {
    /// Handles of the contexts current on this thread, the top last. Never destroyed, so that calls from destructors of
    /// other thread-locals still find it; a thread that used CUDA leaves a few bytes behind.
    static STACK: ManuallyDrop<RefCell<Vec<usize>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

fn stack<R>(f: impl FnOnce(&mut Vec<usize>) -> R) -> R {
    STACK.with(|stack| f(&mut stack.borrow_mut()))
}

/// The handle on top of the calling thread's stack, whether or not its context still lives; 0 if the stack is empty.
pub(crate) fn current_handle() -> usize {
    stack(|s| s.last().copied().unwrap_or(0))
}

/// The living context of this handle: 201 for what is no context, or is no more; 709 for a destroyed one that is still
/// current on this thread.
pub(crate) fn by_handle(handle: usize) -> Result<Arc<Context>> {
    match driver_in_host_function()?.contexts.get(handle) {
        Ok(context) if context.is_alive() => Ok(context),
        _ => Err(gone(handle)),
    }
}

/// What calls answer that name a context, or something of a context, that does not live.
pub(crate) fn gone(handle: usize) -> Error {
    if handle != 0 && current_handle() == handle {
        Error::CONTEXT_IS_DESTROYED
    } else {
        Error::INVALID_CONTEXT
    }
}

/// The current context for a call that works in it: 201 without one, 709 if it is destroyed, the fault after a fault.
pub(crate) fn current() -> Result<Arc<Context>> {
    driver_without_fault()?;
    current_even_after_fault()
}

/// The current context for a call that only asks something.
pub(crate) fn current_even_after_fault() -> Result<Arc<Context>> {
    driver()?;
    match current_handle() {
        0 => Err(Error::INVALID_CONTEXT),
        handle => by_handle(handle),
    }
}

/// Checks what `cuCtxCreate` and `cuDevicePrimaryCtxSetFlags` take as flags.
pub(crate) fn check_flags(flags: u32) -> Result<()> {
    let scheduling = matches!(flags & SCHED_MASK, 0 | 1 | 2 | 4);
    if scheduling && flags & !FLAGS_MASK == 0 {
        Ok(())
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// Makes a context and pushes it.
pub(crate) fn create(flags: u32, ordinal: i32) -> Result<usize> {
    driver_without_fault()?;
    check_flags(flags)?;
    let handle = make(flags, device::get(ordinal)?, false)?.handle;
    stack(|s| s.push(handle));
    Ok(handle)
}

fn make(flags: u32, device: &'static Device, primary: bool) -> Result<Arc<Context>> {
    Ok(driver()?.contexts.insert_with(|handle| Context {
        handle,
        device,
        primary,
        flags: AtomicU32::new(flags),
        alive: AtomicBool::new(true),
        usage: AtomicU32::new(1),
        lanes: Mutex::default(),
        options: Mutex::default(),
        peers: Mutex::default(),
    }))
}

/// `cuCtxDestroy`: also while it is current elsewhere, and whatever its usage count is.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    if handle == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let driver = driver()?;
    let context = driver.contexts.get(handle).map_err(|_| gone(handle))?;
    if context.primary {
        return Err(Error::INVALID_CONTEXT);
    }
    driver
        .contexts
        .remove(handle)
        .map_err(|_| Error::INVALID_CONTEXT)?;
    context.end();
    stack(|s| s.pop_if(|top| *top == handle));
    Ok(())
}

/// `cuCtxPushCurrent`
pub(crate) fn push(handle: usize) -> Result<()> {
    driver()?;
    if handle == 0 {
        return Err(Error::INVALID_VALUE);
    }
    by_handle(handle)?;
    stack(|s| s.push(handle));
    Ok(())
}

/// `cuCtxPopCurrent`: what was current, even if it is destroyed.
pub(crate) fn pop() -> Result<usize> {
    driver()?;
    stack(Vec::pop).ok_or(Error::INVALID_CONTEXT)
}

/// `cuCtxSetCurrent`: replaces the top; with NULL pops it. A destroyed context is taken as it is by a real driver.
pub(crate) fn set_current(handle: usize) -> Result<()> {
    driver()?;
    if handle == 0 {
        stack(Vec::pop);
        return Ok(());
    }
    if driver()?
        .contexts
        .get(handle)
        .is_err_and(|why| why == Missing::Unknown)
    {
        return Err(Error::INVALID_CONTEXT);
    }
    stack(|s| {
        s.pop();
        s.push(handle);
    });
    Ok(())
}

/// `cuCtxAttach`: counts one more use of the current context and gives its handle.
pub(crate) fn attach() -> Result<usize> {
    let context = current()?;
    context.usage.fetch_add(1, Relaxed);
    Ok(context.handle)
}

/// `cuCtxDetach`: only of the current context; the last one destroys it.
pub(crate) fn detach(handle: usize) -> Result<()> {
    driver()?;
    if handle == 0 {
        return Err(Error::INVALID_VALUE);
    }
    if current_handle() != handle {
        return Err(Error::INVALID_CONTEXT);
    }
    let Ok(context) = driver()?.contexts.get(handle) else {
        return Err(Error::INVALID_CONTEXT);
    };
    check_sticky()?;
    if context.primary {
        let lower = |n: u32| (n > 1).then(|| n - 1);
        let _ = context.usage.fetch_update(Relaxed, Relaxed, lower);
        return Ok(());
    }
    if context.usage.fetch_sub(1, Relaxed) > 1 {
        Ok(())
    } else {
        destroy(handle)
    }
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

    pub(crate) fn set_flags(&self, flags: u32) {
        self.flags.store(flags, Relaxed);
    }

    /// A number that names it in memory, in modules and for `cuCtxGetId`.
    pub(crate) fn id(&self) -> u64 {
        self.handle as u64
    }

    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// `cuCtxSynchronize`
    pub(crate) fn synchronize(&self) -> Result<()> {
        check_sticky()?;
        self.drain();
        observe_fault()
    }

    /// Waits for all of its work; what failed is not looked at.
    pub(crate) fn drain(&self) {
        let tails = self.lanes().all_tails();
        graph().wait_all(&tails);
    }

    /// Whether all of its work is done.
    fn is_idle(&self) -> bool {
        let tails = self.lanes().all_tails();
        graph().are_done(&tails)
    }

    /// Notes what a kernel that is about to be launched takes: as a real driver does, the stack grows to the local memory
    /// that is known to be needed.
    pub(crate) fn note_launch(&self, kernel: &exec::Kernel) {
        let local = kernel.local_bytes().next_multiple_of(16);
        let mut options = self.options();
        options.prints |= kernel.prints();
        options.allocates |= kernel.uses_heap();
        let stack = &mut options.limits[LIMIT_STACK_SIZE];
        *stack = local.max(*stack);
    }

    /// What its limits mean for a launch.
    pub(crate) fn launch_options(&self) -> exec::Options {
        let limits = self.options().limits;
        exec::Options {
            stack_limit: limits[LIMIT_STACK_SIZE],
            heap_limit: limits[LIMIT_MALLOC_HEAP_SIZE],
            ..exec::Options::default()
        }
    }

    /// Lets go of everything that it owns.
    fn end(&self) {
        self.drain();
        self.alive.store(false, Relaxed);
        super::module::unload_all_of(self);
        super::memory::release_all_of(self);
    }

    /// `cuCtxGetLimit`
    pub(crate) fn limit(&self, limit: u32) -> Result<u64> {
        match limit {
            LIMIT_SYNC_DEPTH => Err(Error::UNSUPPORTED_LIMIT),
            0..7 => Ok(self.options().limits[limit as usize]),
            7..=10 => Err(Error::UNSUPPORTED_LIMIT),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    /// `cuCtxSetLimit`
    pub(crate) fn set_limit(&self, limit: u32, value: u64) -> Result<()> {
        self.limit(limit)?;
        let Options {
            prints, allocates, ..
        } = *self.options();
        match limit as usize {
            LIMIT_PRINTF_FIFO_SIZE if prints => return Err(Error::INVALID_VALUE),
            LIMIT_MALLOC_HEAP_SIZE if allocates => return Err(Error::INVALID_VALUE),
            _ => {}
        }
        let granularity = limit as usize == LIMIT_FETCH_GRANULARITY;
        self.options().limits[limit as usize] = if granularity { value.min(128) } else { value };
        Ok(())
    }
}

/// The primary context of a device: one that all who retain it share.
#[derive(Default)]
pub(crate) struct Primary {
    flags: u32,
    retained: u32,
    /// Made by the first retain, and never again: the handle stays the same.
    context: Option<Arc<Context>>,
}

fn primary_of(ordinal: i32) -> Result<(&'static Device, MutexGuard<'static, Primary>)> {
    let device = device::get(ordinal)?;
    Ok((
        device,
        device
            .primary
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    ))
}

impl Primary {
    fn is_active(&self) -> bool {
        self.context.as_ref().is_some_and(|c| c.is_alive())
    }
}

/// `cuDevicePrimaryCtxRetain`
pub(crate) fn primary_retain(ordinal: i32) -> Result<usize> {
    driver_without_fault()?;
    let (device, mut primary) = primary_of(ordinal)?;
    let context = match &primary.context {
        Some(context) => context.clone(),
        None => make(primary.flags, device, true)?,
    };
    if !context.is_alive() {
        context.set_flags(primary.flags);
        context.usage.store(1, Relaxed);
        *context.options() = Options::default();
        context.alive.store(true, Relaxed);
    }
    primary.retained += 1;
    let handle = context.handle;
    primary.context = Some(context);
    Ok(handle)
}

/// The primary context with no work left, if it is about to end. Others can ask about it, and retain it, while its work is
/// waited for: that work may be a host function which waits for them.
fn idle_before_end(
    ordinal: i32,
    ends: impl Fn(&Primary) -> bool,
) -> Result<MutexGuard<'static, Primary>> {
    loop {
        let (_, primary) = primary_of(ordinal)?;
        let busy = match &primary.context {
            Some(c) if ends(&primary) && c.is_alive() && !c.is_idle() => c.clone(),
            _ => return Ok(primary),
        };
        drop(primary);
        busy.drain();
    }
}

/// `cuDevicePrimaryCtxRelease`: 201 when nobody holds it.
pub(crate) fn primary_release(ordinal: i32) -> Result<()> {
    let mut primary = idle_before_end(ordinal, |p| p.retained == 1)?;
    primary.retained = primary
        .retained
        .checked_sub(1)
        .ok_or(Error::INVALID_CONTEXT)?;
    if primary.retained == 0
        && primary.is_active()
        && let Some(context) = &primary.context
    {
        context.end();
    }
    Ok(())
}

/// `cuDevicePrimaryCtxReset`: the context ends though it is still held.
pub(crate) fn primary_reset(ordinal: i32) -> Result<()> {
    let primary = idle_before_end(ordinal, |_| true)?;
    if primary.is_active()
        && let Some(context) = &primary.context
    {
        context.end();
    }
    Ok(())
}

/// `cuDevicePrimaryCtxSetFlags_v2`: also while it is active.
pub(crate) fn primary_set_flags(ordinal: i32, flags: u32) -> Result<()> {
    let (_, mut primary) = primary_of(ordinal)?;
    check_flags(flags)?;
    primary.flags = flags;
    if let Some(context) = &primary.context {
        context.set_flags(flags);
    }
    Ok(())
}

/// `cuDevicePrimaryCtxGetState`: flags, and whether it is active.
pub(crate) fn primary_state(ordinal: i32) -> Result<(u32, bool)> {
    let (_, primary) = primary_of(ordinal)?;
    Ok((primary.flags, primary.is_active()))
}
