//! User objects: Rust values that graphs own.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::owner::Graph;
use crate::error::dropping;
use crate::sys::{self, CUuserObject_flags, CUuserObjectRetain_flags};
use crate::{Borrowed, Result, checked};

/// A Rust value that the driver drops when no `UserObject`, graph, executable graph or pending launch refers to it.
/// [`Graph::keep`] does not wait for pending launches, but its values may call the driver when they are dropped.
///
/// The value is dropped on a thread of the driver, where no driver call may be made: an object of this crate that is
/// dropped there is leaked. Use this type for host memory and other resources of the host.
///
/// ```
/// # use cuda_driver::{Context, Device, Graph};
/// use cuda_driver::graph::UserObject;
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
///
/// let table = vec![1.0f32; 1000];
/// let address = table.as_ptr();
/// let graph = Graph::new(&context)?;
/// graph.retain(&UserObject::new(table)?)?;
/// // Copies from `address` can be added: the table lives as long as the graph, and until pending launches are done.
/// # let _ = address;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug)]
pub struct UserObject {
    raw: sys::CUuserObject,
    /// The value may be of any type that is `Send`.
    value: PhantomData<fn()>,
}

// SAFETY: the driver counts references atomically. The value can only be dropped, and is `Send`.
unsafe impl Send for UserObject {}
// SAFETY: as above.
unsafe impl Sync for UserObject {}

/// Drops the value. The driver calls this function once, with the pointer of [`UserObject::new`].
#[inline]
unsafe extern "system" fn destroy<T>(value: *mut c_void) {
    // SAFETY: the pointer came from `Box::into_raw` of a `T`, and is used once.
    let value = unsafe { Box::from_raw(value.cast::<T>()) };
    // Unwind safe, because the value is consumed.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // Dropping the payload may panic, too.
        mem::forget(payload);
    }
}

impl UserObject {
    /// Passes ownership of a value to the driver ([`cuUserObjectCreate`](checked::user_object_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory. If the call fails, the value is dropped.
    #[inline]
    #[doc(alias = "cuUserObjectCreate")]
    #[track_caller]
    pub fn new<T: Send + 'static>(value: T) -> Result<Self> {
        let value = Box::into_raw(Box::new(value));
        let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
        // SAFETY: `destroy` does not unwind, and the pointer is valid until `destroy` is called. If a destructor of the
        // caller's type calls the driver, the driver returns an error.
        match unsafe { checked::user_object_create(value.cast(), Some(destroy::<T>), 1, flags.0) } {
            Ok(raw) => Ok(Self {
                raw,
                value: PhantomData,
            }),
            Err(error) => {
                // SAFETY: the driver did not take the pointer.
                drop(unsafe { Box::from_raw(value) });
                Err(error)
            }
        }
    }

    /// Returns another reference to the same value ([`cuUserObjectRetain`](checked::user_object_retain)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there are too many references.
    #[inline]
    #[doc(alias = "cuUserObjectRetain")]
    #[track_caller]
    pub fn try_clone(&self) -> Result<Self> {
        // SAFETY: the handle is live.
        unsafe { checked::user_object_retain(self.raw, 1) }?;
        Ok(Self {
            raw: self.raw,
            value: PhantomData,
        })
    }

    /// Releases this reference ([`cuUserObjectRelease`](checked::user_object_release)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuUserObjectRelease")]
    #[track_caller]
    pub fn release(self) -> Result<()> {
        // SAFETY: this object owns one reference, which is not used again.
        unsafe { checked::user_object_release(self.into_raw(), 1) }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUuserObject {
        self.raw
    }

    /// Takes ownership of one reference to a user object.
    ///
    /// # Safety
    /// The caller must own a reference, and no other code may release it.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: sys::CUuserObject) -> Self {
        Self {
            raw,
            value: PhantomData,
        }
    }

    /// Borrows a user object, for instance to give a graph a reference to it.
    ///
    /// # Safety
    /// Another reference must keep the object alive as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUuserObject) -> Borrowed<'a, Self> {
        Borrowed::new(Self {
            raw,
            value: PhantomData,
        })
    }

    /// Releases ownership of the reference.
    #[inline]
    #[must_use]
    pub const fn into_raw(self) -> sys::CUuserObject {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

impl Drop for UserObject {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            // SAFETY: this object owns one reference, and this is its last use.
            dropping.done(unsafe { checked::user_object_release(self.raw, 1) });
        }
    }
}

impl Graph {
    /// Gives the graph a reference to a user object ([`cuGraphRetainUserObject`](checked::graph_retain_user_object)).
    /// Clones and executable graphs that are made afterwards have their own references.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphRetainUserObject")]
    #[track_caller]
    pub fn retain(&self, object: &UserObject) -> Result<()> {
        let copy = CUuserObjectRetain_flags(0);
        // SAFETY: both handles are live, and without `CU_GRAPH_USER_OBJECT_MOVE` the graph gets a new reference.
        unsafe { checked::graph_retain_user_object(self.as_raw(), object.raw, 1, copy.0) }
    }

    /// Releases the graph's reference to a user object
    /// ([`cuGraphReleaseUserObject`](checked::graph_release_user_object)).
    ///
    /// # Safety
    /// The graph must have a reference to the object: the driver does not count the references of each graph.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphReleaseUserObject")]
    #[track_caller]
    pub unsafe fn release(&self, object: &UserObject) -> Result<()> {
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::graph_release_user_object(self.as_raw(), object.raw, 1) }
    }
}
