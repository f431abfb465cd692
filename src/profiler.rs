//! The range that a profiler records.

use crate::checked::{profiler_start, profiler_stop};
use crate::error::dropping;
use crate::{Context, Result};

/// A guard of [`Context::profile`]: an attached profiler records until the guard is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard stops the profiler at once"]
pub struct Profiling {
    context: Context,
    stopped: bool,
}

impl Context {
    /// Starts recording by an attached profiler that was told to wait for this call, such as `nsys profile
    /// --capture-range=cudaProfilerApi` or `ncu --profile-from-start off`. Without a profiler, this has no effect.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// {
    ///     let _profiling = context.profile()?;
    ///     // … launches that the profiler records …
    ///     context.synchronize()?;
    /// }
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the code of `cuProfilerStart`. The error names `cuCtxGetCurrent`, because `cuda.h` does not declare the
    /// profiler's functions.
    #[inline]
    #[doc(alias = "cuProfilerStart")]
    #[track_caller]
    pub fn profile(&self) -> Result<Profiling> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { profiler_start() }?;
        Ok(Profiling {
            context: self.clone(),
            stopped: false,
        })
    }
}

impl Profiling {
    /// Stops recording. Dropping does the same.
    ///
    /// # Errors
    /// Returns the code of `cuProfilerStop`. The error names `cuCtxGetCurrent`, as for [`Context::profile`].
    #[inline]
    #[doc(alias = "cuProfilerStop")]
    #[track_caller]
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        self.stopped = true;
        let _current = self.context.enter()?;
        // SAFETY: the current context is live.
        unsafe { profiler_stop() }
    }
}

impl Drop for Profiling {
    #[inline]
    fn drop(&mut self) {
        if !self.stopped {
            let Some(dropping) = dropping() else { return };
            dropping.done(self.end());
        }
    }
}
