//! Objects that belong to someone else.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

/// An object over a handle that belongs to someone else, for instance another library: it is used like the object, and
/// not destroyed.
///
/// Methods that make a context current do not do so for a borrowed object, which does not know its context: the caller
/// makes it current where the call needs one.
pub struct Borrowed<'a, T> {
    object: ManuallyDrop<T>,
    owner: PhantomData<&'a ()>,
}

impl<T> Borrowed<'_, T> {
    /// The object must own nothing but its handle: it is never dropped.
    pub(crate) const fn new(object: T) -> Self {
        Self {
            object: ManuallyDrop::new(object),
            owner: PhantomData,
        }
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T> DerefMut for Borrowed<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.object
    }
}

impl<T: fmt::Debug> fmt::Debug for Borrowed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
