//! Primary contexts: one for each device, shared by all that retain it.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::object::context::{self, Context, MAP_HOST};
use crate::object::device::{self, Device};
use crate::object::leak;
use crate::state::error::{Error, Result};

/// The primary context of a device.
#[derive(Debug, Default)]
pub(crate) struct PrimaryContext {
    /// The flags of `cuDevicePrimaryCtxSetFlags`, without `CU_CTX_MAP_HOST`.
    pub(crate) flags: u32,
    /// Number of retains minus the number of releases.
    pub(crate) retained: u32,
    /// Created by the first retain and kept, so that its handle never changes.
    pub(crate) context: Option<Arc<Context>>,
}

/// Locks the primary context of a device.
pub(crate) fn of_device(ordinal: i32) -> Result<(&'static Device, MutexGuard<'static, PrimaryContext>)> {
    static ALL: LazyLock<Vec<Mutex<PrimaryContext>>> =
        LazyLock::new(|| device::all().iter().map(|_| Mutex::default()).collect());
    let device = device::get(ordinal)?;
    let primary = ALL.get(device.ordinal as usize);
    let primary = primary.ok_or(Error::CUDA_ERROR_INVALID_DEVICE)?;
    Ok((device, primary.lock().unwrap_or_else(PoisonError::into_inner)))
}

impl PrimaryContext {
    pub(crate) fn is_active(&self) -> bool {
        self.context.as_ref().is_some_and(|c| c.is_alive())
    }
}

/// `cuDevicePrimaryCtxRetain`
pub(crate) fn retain(ordinal: i32) -> Result<usize> {
    let (device, mut primary) = of_device(ordinal)?;
    let flags = primary.flags | MAP_HOST;
    let context = match &primary.context {
        Some(context) => context.clone(),
        None => context::make(flags, device, true),
    };
    let was_active = primary.is_active();
    if !context.is_alive() {
        context.revive(flags);
    }
    primary.retained += 1;
    let handle = context.handle;
    if !was_active {
        leak::note_primary(&context);
    }
    primary.context = Some(context);
    Ok(handle)
}

/// `cuDevicePrimaryCtxSetFlags_v2`: also changes an active context.
pub(crate) fn set_flags(ordinal: i32, flags: u32) -> Result<()> {
    let (_, mut primary) = of_device(ordinal)?;
    context::check_flags(flags)?;
    if flags & MAP_HOST != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    primary.flags = flags;
    if let Some(context) = &primary.context {
        context.set_flags(flags);
    }
    Ok(())
}

/// `cuDevicePrimaryCtxGetState`: returns the flags, and true if the context is active.
pub(crate) fn state(ordinal: i32) -> Result<(u32, bool)> {
    let (_, primary) = of_device(ordinal)?;
    Ok((primary.flags, primary.is_active()))
}
