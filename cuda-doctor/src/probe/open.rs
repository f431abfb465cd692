//! Opens the driver that a task names.

use cuda_driver::sys::Library;

use super::task::Place;

/// Opens the driver at a place. The error is the reason: the system's message, where there is one.
pub type Open<'a> = &'a dyn Fn(&Place) -> Result<&'static Library, String>;

/// Opens the driver at a place of this machine.
///
/// # Errors
/// Returns the reason why the driver could not be opened.
pub fn open(place: &Place) -> Result<&'static Library, String> {
    match place {
        Place::File(path) => {
            // SAFETY: the user, or the system's search order, names the file as a CUDA driver.
            let library = unsafe { Library::load_from(path) };
            library.map_err(|error| match error.attempts() {
                [attempt] => attempt.reason.clone(),
                _ => error.to_string(),
            })
        }
        #[cfg(feature = "software")]
        Place::Software => Ok(cuda_driver_soft::library()),
        #[cfg(not(feature = "software"))]
        Place::Software => Err("this program was built without the software driver".to_owned()),
    }
}
