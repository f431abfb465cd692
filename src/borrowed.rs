//! Borrowed objects, whose handles another owner destroys, and a macro that defines the accessors of owners.
#![forbid(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;

/// An object over a handle that another owner destroys, for instance another library.
///
/// The context of a borrowed object is not known, so its methods do not make one current: the caller must do so for the
/// calls that need it.
///
/// ```
/// # use cuda_driver::{Context, Device, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// # let owner = Stream::new(&context)?;
/// # let theirs = owner.as_raw();
/// // SAFETY: the owner destroys the stream after this call.
/// let stream = unsafe { Stream::borrow_raw(theirs) };
/// stream.synchronize()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// The object cannot be moved out or replaced, so that the handle is never destroyed here:
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
    /// Wraps an object, which is never dropped and so must own nothing but its handle.
    #[inline]
    pub(crate) const fn new(object: T) -> Self {
        Self {
            object: ManuallyDrop::new(object),
            owner: PhantomData,
        }
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: fmt::Debug> fmt::Debug for Borrowed<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

/// Defines the accessors of an owner with the fields `raw` and `context`. `leaked` and `context` complete their
/// documentation. The module that uses the macro imports `Context`, because `borrowed` must not depend on `context`.
macro_rules! handle {
    ([$($owner:tt)+] $raw:ident, leaked: $leaked:literal, context: $context:literal) => {
        impl $($owner)+ {
            /// Returns the raw handle, which is valid as long as `self`.
            #[inline]
            #[must_use]
            pub const fn as_raw(&self) -> $crate::sys::$raw {
                self.raw
            }

            #[doc = concat!("Releases ownership of the handle. ", $leaked)]
            #[inline]
            #[must_use]
            pub fn into_raw(self) -> $crate::sys::$raw {
                let raw = self.raw;
                core::mem::forget(self);
                raw
            }

            #[doc = concat!("Returns the context ", $context)]
            #[inline]
            #[must_use]
            pub const fn context(&self) -> Option<&Context> {
                self.context.as_ref()
            }
        }
    };
}
pub(crate) use handle;
