//! The view of a library with the exports whose own name means another export in C.

use super::slots::Library;

/// A view of a [`Library`] with the exports whose own name means another export in C; see
/// [`Library::legacy`].
#[repr(transparent)]
#[derive(Debug)]
pub struct Legacy(pub(crate) Library);

impl Library {
    /// Returns a view with the exports of [`legacy`](crate::legacy) as methods.
    #[inline]
    #[must_use]
    pub const fn legacy(&self) -> &Legacy {
        // SAFETY: `Legacy` is a transparent wrapper of `Library`.
        unsafe { &*core::ptr::from_ref(self).cast::<Legacy>() }
    }
}
