//! Describes CUDA versions and missing functions in text.

use cuda_driver::Version;

use crate::findings::MissingFunctions;

/// Returns a CUDA version as text: `12.4` for 12040.
#[must_use]
pub fn cuda_version(version: u32) -> String {
    Version::from_raw(version).to_string()
}

/// Explains the effect of missing functions; `None` if none are missing.
#[must_use]
pub fn missing_summary(missing: &[MissingFunctions], driver: Option<u32>) -> Option<String> {
    let count: usize = missing.iter().map(|group| group.functions.len()).sum();
    if count == 0 {
        return None;
    }
    let later = match driver {
        Some(version) if missing.iter().all(|group| group.since > version) => {
            format!(
                "All of them are newer than the driver's CUDA {}. ",
                cuda_version(version)
            )
        }
        _ => String::new(),
    };
    Some(format!(
        "{later}Programs that use cuda-driver run without them: calling one returns an error that names the CUDA version it \
         needs. A newer driver has them."
    ))
}
