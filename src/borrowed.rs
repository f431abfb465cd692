//! Objects that belong to someone else.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;

/// An object over a handle that belongs to someone else, for instance another library: it is used like the object, and
/// not destroyed.
///
/// Methods that make a context current do not do so for a borrowed object, which does not know its context: the caller
/// makes it current where the call needs one.
///
/// ```no_run
/// # use cuda_driver::{Stream, sys};
/// # fn f(theirs: sys::CUstream) -> cuda_driver::Result<()> {
/// // SAFETY: the library that made it destroys it later than this.
/// let stream = unsafe { Stream::borrow_raw(theirs) };
/// stream.synchronize()
/// # }
/// ```
///
/// It cannot be moved out or replaced, so that what it borrows is never destroyed as something of ours:
///
/// ```compile_fail,E0594
/// # fn f(context: &cuda_driver::Context) -> cuda_driver::Result<()> {
/// let mut stream = cuda_driver::Stream::legacy();
/// *stream = cuda_driver::Stream::new(context)?;
/// # Ok(())
/// # }
/// ```
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

    /// For this crate's own methods. A public `&mut T` could be swapped with an object that is destroyed when it goes,
    /// and that knows no lifetime.
    pub(crate) fn object_mut(&mut self) -> &mut T {
        &mut self.object
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: fmt::Debug> fmt::Debug for Borrowed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}
