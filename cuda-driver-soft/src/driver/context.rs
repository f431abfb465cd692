//! Contexts, the stack of current ones that each thread has, and primary contexts.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::capture;
use super::device::{self, Device};
use super::error::{Error, Result};
use super::handle::Missing;
use super::lanes::Lanes;
use super::limits::Limits;
use super::pool;
use super::process::{
    check_sticky, driver, driver_in_host_function, driver_without_fault, observe_fault,
};
use super::workers::graph;

/// A context: the owner of memory, modules, streams and events on one device.
pub(crate) struct Context {
    pub(crate) handle: usize,
    pub(crate) device: &'static Device,
    primary: bool,
    serial: AtomicU64,
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

/// `CU_CTX_FLAGS_MASK` of the 13.5 header.
const FLAGS_MASK: u32 = 0xFF;
/// `CU_CTX_SCHED_MASK`
const SCHED_MASK: u32 = 7;
/// `CU_CTX_MAP_HOST`: all page-locked memory is mapped, so it says nothing. Primary contexts have it, and nobody sets it.
const MAP_HOST: u32 = 8;
/// `CU_CTX_COREDUMP_ENABLE` and `CU_CTX_USER_COREDUMP_ENABLE`, which implies it.
const COREDUMP: u32 = 0x20;
const USER_COREDUMP: u32 = 0x40;

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
    match driver_in_host_function()?.contexts.get(handle) {
        Ok(context) if context.is_alive() => Ok(context),
        Err(Missing::Unknown) => Err(Error::INVALID_CONTEXT),
        _ => Err(Error::CONTEXT_IS_DESTROYED),
    }
}

/// What goes onto a stack for a handle. A destroyed context is taken as it is; on what never was one, a real driver
/// crashes.
fn entry(handle: usize) -> Result<Entry> {
    let context = match driver()?.contexts.get(handle) {
        Ok(context) => Some(context),
        Err(Missing::Destroyed) => None,
        Err(Missing::Unknown) => return Err(Error::INVALID_CONTEXT),
    };
    Ok(Entry { handle, context })
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

/// The current context, though it may be destroyed: its device and its flags can still be asked for.
pub(crate) fn current_or_destroyed() -> Result<Arc<Context>> {
    driver()?;
    match stack(|s| s.last().cloned()) {
        None => Err(Error::INVALID_CONTEXT),
        Some(entry) => entry.context.ok_or(Error::CONTEXT_IS_DESTROYED),
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
    let device = device::get(ordinal)?;
    check_flags(flags)?;
    let context = make(flags, device, false)?;
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

fn make(flags: u32, device: &'static Device, primary: bool) -> Result<Arc<Context>> {
    Ok(driver()?.contexts.insert_with(|handle| Context {
        handle,
        device,
        primary,
        serial: AtomicU64::new(next_serial()),
        flags: AtomicU32::new(flags_at_creation(flags)),
        alive: AtomicBool::new(true),
        usage: AtomicU32::new(1),
        lanes: Mutex::default(),
        options: Mutex::new(Options::of(device)),
        peers: Mutex::default(),
    }))
}

/// `cuCtxDestroy`: also while it is current elsewhere, and whatever its usage count is.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    if handle == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let driver = driver()?;
    let context = driver.contexts.get(handle).map_err(|why| {
        // As recorded: of a destroyed one, by whether there is another to blame.
        if why == Missing::Unknown || current_handle() == 0 {
            Error::INVALID_CONTEXT
        } else {
            Error::CONTEXT_IS_DESTROYED
        }
    })?;
    if context.primary {
        return Err(Error::INVALID_CONTEXT);
    }
    driver
        .contexts
        .remove(handle)
        .map_err(|_| Error::INVALID_CONTEXT)?;
    context.end();
    stack(|s| s.pop_if(|top| top.handle == handle));
    Ok(())
}

/// `cuCtxPushCurrent`: also of a destroyed context.
pub(crate) fn push(handle: usize) -> Result<()> {
    driver()?;
    if handle == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let entry = entry(handle)?;
    stack(|s| s.push(entry));
    Ok(())
}

/// `cuCtxPopCurrent`: what was current, even if it is destroyed.
pub(crate) fn pop() -> Result<usize> {
    driver()?;
    let popped = stack(Vec::pop).ok_or(Error::INVALID_CONTEXT)?;
    Ok(popped.handle)
}

/// `cuCtxSetCurrent`: replaces the top; with NULL pops it. Also with a destroyed context.
pub(crate) fn set_current(handle: usize) -> Result<()> {
    driver()?;
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

/// `cuCtxAttach`: counts one more use of the current context and gives its handle.
pub(crate) fn attach() -> Result<usize> {
    let context = current_even_after_fault()?;
    context.usage.fetch_add(1, Relaxed);
    Ok(context.handle)
}

/// `cuCtxDetach`: only of the current context; the last one destroys it.
pub(crate) fn detach(handle: usize) -> Result<()> {
    let context = current_even_after_fault()?;
    if context.handle != handle {
        return Err(Error::INVALID_CONTEXT);
    }
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
        capture::check_context(self.id())?;
        self.drain();
        pool::settle();
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

    /// Lets go of everything that it owns.
    fn end(&self) {
        capture::forget_context(self.id());
        self.drain();
        self.alive.store(false, Relaxed);
        super::module::unload_all_of(self);
        super::texture::forget_all_of(self);
        super::array::forget_all_of(self);
        super::memory::release_all_of(self);
    }
}

/// The primary context of a device: one that all who retain it share.
#[derive(Debug, Default)]
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
        None => make(primary.flags | MAP_HOST, device, true)?,
    };
    if !context.is_alive() {
        let flags = flags_at_creation(primary.flags | MAP_HOST);
        context.flags.store(flags, Relaxed);
        context.serial.store(next_serial(), Relaxed);
        context.usage.store(1, Relaxed);
        *context.options() = Options::of(device);
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

/// Ends the primary context if it is active. Its flags do not outlive it.
fn end_primary(primary: &mut Primary) {
    if primary.is_active()
        && let Some(context) = &primary.context
    {
        context.end();
        primary.flags = 0;
    }
}

/// `cuDevicePrimaryCtxRelease`: 201 when nobody holds it.
pub(crate) fn primary_release(ordinal: i32) -> Result<()> {
    let mut primary = idle_before_end(ordinal, |p| p.retained == 1)?;
    primary.retained = primary
        .retained
        .checked_sub(1)
        .ok_or(Error::INVALID_CONTEXT)?;
    if primary.retained == 0 {
        end_primary(&mut primary);
    }
    Ok(())
}

/// `cuDevicePrimaryCtxReset`: the context ends though it is still held.
pub(crate) fn primary_reset(ordinal: i32) -> Result<()> {
    let mut primary = idle_before_end(ordinal, |_| true)?;
    end_primary(&mut primary);
    Ok(())
}

/// `cuDevicePrimaryCtxSetFlags_v2`: also while it is active.
pub(crate) fn primary_set_flags(ordinal: i32, flags: u32) -> Result<()> {
    let (_, mut primary) = primary_of(ordinal)?;
    check_flags(flags)?;
    if flags & MAP_HOST != 0 {
        return Err(Error::INVALID_VALUE);
    }
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
