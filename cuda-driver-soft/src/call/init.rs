//! Initialises the driver: `cuInit`.

use crate::marker;
use crate::object::device;
use crate::state::error::{Error, Result};
use crate::state::gate;
use host::{console, environment};

/// `cuInit`: initialises the driver if it is not initialised yet. `watch` is called once, before the driver counts as
/// initialised. On Unix it registers two handlers: one marks a forked child, the other marks an exiting process and
/// writes its reports.
pub(crate) fn init(flags: u32, watch: impl FnOnce()) -> Result<()> {
    gate::usable_process()?;
    if flags != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    gate::initialise(|| {
        let devices = device::from_environment()?;
        marker::take().map_err(|reason| {
            host::log!("{reason}");
            Error::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        })?;
        watch();
        for sentence in environment::ignored() {
            let line = format!("cuda-driver-soft: {sentence}\n");
            console::write(console::Stream::Error, line.as_bytes());
        }
        if !engine::built_with_optimisation() {
            host::log!(
                "built without optimisation: kernels run about 100 times slower (see README, [profile.dev.package])"
            );
        }
        device::set_all(devices);
        Ok(())
    })
}
