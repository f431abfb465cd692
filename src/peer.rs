//! Access to memory of other contexts, and copies between contexts.

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::stream::synchronize_null;
use crate::sys::{CUresult, Function};
use crate::{Context, DeviceSlice, DeviceSliceMut, Result, Stream, checked};

/// The right of kernels in one context to access memory of a context on another device.
///
/// ```
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # if Device::count()? < 2 { return Ok(()); }
/// let (first, second) = (Context::create(Device::get(0)?)?, Context::create(Device::get(1)?)?);
/// let access = first.enable_peer_access(&second)?;
/// // … launches in `first` that use memory of `second` …
/// access.disable()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// The right applies to one direction. Dropping waits for all work of the context and revokes the right: a kernel that
/// is still running could access the peer's memory, and would fault.
#[derive(Debug)]
#[must_use = "dropping it revokes the access"]
pub struct PeerAccess {
    context: Context,
    peer: Context,
    disabled: bool,
}

impl Context {
    /// Lets kernels of this context access memory of another context
    /// ([`cuCtxEnablePeerAccess`](checked::ctx_enable_peer_access)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_PEER_ACCESS_UNSUPPORTED` if the device cannot access the other device or both are the same,
    /// and `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED` if this context has the right already.
    #[inline]
    #[doc(alias = "cuCtxEnablePeerAccess")]
    #[track_caller]
    pub fn enable_peer_access(&self, peer: &Self) -> Result<PeerAccess> {
        let _current = self.enter()?;
        // SAFETY: the handle is live; 0 is the only valid value for the flags.
        unsafe { checked::ctx_enable_peer_access(peer.as_raw(), 0) }?;
        Ok(PeerAccess {
            context: self.clone(),
            peer: peer.clone(),
            disabled: false,
        })
    }
}

impl PeerAccess {
    /// Returns the context whose kernels have the right.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the context whose memory these kernels may access.
    #[inline]
    #[must_use]
    pub const fn peer(&self) -> &Context {
        &self.peer
    }

    /// Waits for all work of the context and revokes the right
    /// ([`cuCtxDisablePeerAccess`](checked::ctx_disable_peer_access)). Dropping does the same.
    ///
    /// # Errors
    /// Returns an error from the work that was waited for, and `CUDA_ERROR_PEER_ACCESS_NOT_ENABLED` if other code has
    /// revoked the right.
    #[inline]
    #[doc(alias = "cuCtxDisablePeerAccess")]
    #[track_caller]
    pub fn disable(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        self.disabled = true;
        let _current = self.context.enter()?;
        // Driver 580 does not wait, and a kernel that then accesses the peer's memory faults with
        // `CUDA_ERROR_ILLEGAL_ADDRESS`.
        // SAFETY: the context is live.
        let waited = unsafe { checked::ctx_synchronize() };
        // SAFETY: the handle is live.
        let disabled = unsafe { checked::ctx_disable_peer_access(self.peer.as_raw()) };
        waited.and(disabled)
    }
}

impl Drop for PeerAccess {
    #[inline]
    fn drop(&mut self) {
        if !self.disabled {
            let Some(dropping) = dropping() else { return };
            dropping.done(self.end());
        }
    }
}

impl<T> DeviceSliceMut<'_, T> {
    /// Fills this view with the first values of a view of another context, and waits for the copy
    /// ([`cuMemcpyPeer`](checked::memcpy_peer)). The copy does not need [`PeerAccess`]: without it, the driver may copy
    /// through the host.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the other view is shorter, and `CUDA_ERROR_INVALID_CONTEXT` if the context
    /// of one of the views is not known.
    #[inline]
    #[doc(alias = "cuMemcpyPeer")]
    #[track_caller]
    pub fn copy_from_peer<'b>(&mut self, other: impl Into<DeviceSlice<'b, T>>) -> Result<()>
    where
        T: 'b,
    {
        let other = other.into();
        let Some((context, peer)) = contexts(self, &other, Function::cuMemcpyPeer)? else {
            return Ok(());
        };
        let (to, from) = (self.ptr().as_raw(), other.ptr().as_raw());
        let _current = context.enter()?;
        // SAFETY: both ranges are inside their memory, and both contexts are live.
        unsafe { checked::memcpy_peer(to, context.as_raw(), from, peer.as_raw(), self.size_bytes()) }?;
        synchronize_null()
    }

    /// Queues a copy of the first values of a view of another context to this one
    /// ([`cuMemcpyPeerAsync`](checked::memcpy_peer_async)).
    ///
    /// # Safety
    /// Until the copy is done, neither memory may be freed or used by work that does not wait for the copy. The end of
    /// the views' lifetimes does not wait for it.
    ///
    /// # Errors
    /// Same as [`copy_from_peer`](Self::copy_from_peer), and `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no
    /// context is current.
    #[inline]
    #[doc(alias = "cuMemcpyPeerAsync")]
    #[track_caller]
    pub unsafe fn copy_from_peer_async<'b>(
        &mut self,
        other: impl Into<DeviceSlice<'b, T>>,
        stream: &Stream,
    ) -> Result<()>
    where
        T: 'b,
    {
        let other = other.into();
        let Some((context, peer)) = contexts(self, &other, Function::cuMemcpyPeerAsync)? else {
            return Ok(());
        };
        let (to, from, bytes) = (self.ptr().as_raw(), other.ptr().as_raw(), self.size_bytes());
        // SAFETY: both ranges are inside their memory, and both contexts are live; the rest is upheld by the caller.
        unsafe { checked::memcpy_peer_async(to, context.as_raw(), from, peer.as_raw(), bytes, stream.as_raw()) }
    }
}

/// Returns the contexts of both sides of a copy by `function`, or `None` if there is nothing to copy.
#[inline]
#[track_caller]
fn contexts<'v, T>(
    to: &DeviceSliceMut<'v, T>,
    from: &DeviceSlice<'v, T>,
    function: Function,
) -> Result<Option<(&'v Context, &'v Context)>> {
    if to.len() > from.len() {
        let code = CUresult::CUDA_ERROR_INVALID_VALUE;
        return Err(Error::refused(code, function, Refusal::Range));
    }
    if to.size_bytes() == 0 {
        return Ok(None);
    }
    match (to.context(), from.context()) {
        (Some(to), Some(from)) => Ok(Some((to, from))),
        _ => {
            let code = CUresult::CUDA_ERROR_INVALID_CONTEXT;
            Err(Error::refused(code, function, Refusal::PeerContext))
        }
    }
}
