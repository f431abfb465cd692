//! Typed kernels: the compiler checks the types of a launch's arguments.

use std::marker::PhantomData;

use cuda_driver::{Function, KernelArgs, LaunchConfig, Result, Stream};

/// A kernel whose parameters have the types of the tuple `A`.
#[derive(Debug)]
pub(crate) struct Kernel<A> {
    function: Function,
    arguments: PhantomData<fn(A)>,
}

impl<A: KernelArgs> Kernel<A> {
    /// Returns the kernel with the types of its parameters.
    ///
    /// # Safety
    /// The kernel must have parameters of these types.
    pub(crate) unsafe fn new(function: Function) -> Self {
        Kernel {
            function,
            arguments: PhantomData,
        }
    }

    /// Queues a launch in a stream.
    ///
    /// # Safety
    /// The memory that the kernel accesses with these arguments must stay valid until the kernel is done, and nothing
    /// else may access the memory that it writes.
    pub(crate) unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, arguments: A) -> Result<()> {
        // SAFETY: upheld by the callers of `new` and of this function.
        unsafe { self.function.launch(stream, config, arguments) }
    }
}
