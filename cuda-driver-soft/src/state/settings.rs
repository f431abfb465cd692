//! Settings from environment variables: the reported version, the devices and their memory; and the PTX versions that a
//! driver of the reported version accepts.

use std::sync::OnceLock;

use crate::state::profile::Profile;
use host::environment;

/// The version that this driver reports by default: `CUDA_VERSION` of the bindings.
pub(crate) const BINDINGS_VERSION: u32 = cuda_driver_sys::CUDA_VERSION;

/// Returns the version that `cuDriverGetVersion` reports: `CUDA_SOFT_VERSION` (`12040` or `12.4`) or the version of the
/// bindings.
pub(crate) fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(|| match environment::version() {
        Some(text) => parse_version(&text).unwrap_or_else(|| {
            host::log!(
                "CUDA_SOFT_VERSION={text} is not a CUDA version from 11.0 on, such as 12.4 or 12040; reporting \
                 {BINDINGS_VERSION}"
            );
            BINDINGS_VERSION
        }),
        None => BINDINGS_VERSION,
    })
}

/// Parses a CUDA version from 11.0 on: `12.4` and `12040` are both 12040.
fn parse_version(text: &str) -> Option<u32> {
    let version = match text.split_once('.') {
        Some((major, minor)) => major
            .parse::<u32>()
            .ok()?
            .checked_mul(1000)?
            .checked_add(minor.parse::<u32>().ok()?.checked_mul(10)?)?,
        None => text.parse().ok()?,
    };
    (11000..100_000).contains(&version).then_some(version)
}

/// Returns the newest PTX version that a driver of this CUDA version accepts.
pub(crate) fn newest_ptx(version: u32) -> (u32, u32) {
    // (CUDA version, PTX version) for the releases from 9.0 to 12.8 that changed the PTX version.
    const RELEASES: [(u32, (u32, u32)); 23] = [
        (9000, (6, 0)),
        (9010, (6, 1)),
        (9020, (6, 2)),
        (10000, (6, 3)),
        (10010, (6, 4)),
        (10020, (6, 5)),
        (11000, (7, 0)),
        (11010, (7, 1)),
        (11020, (7, 2)),
        (11030, (7, 3)),
        (11040, (7, 4)),
        (11050, (7, 5)),
        (11060, (7, 6)),
        (11070, (7, 7)),
        (11080, (7, 8)),
        (12000, (8, 0)),
        (12010, (8, 1)),
        (12020, (8, 2)),
        (12030, (8, 3)),
        (12040, (8, 4)),
        (12050, (8, 5)),
        (12070, (8, 6)),
        (12080, (8, 7)),
    ];
    match version {
        13000.. => (9, (version - 13000) / 10),
        12090.. => (8, 8),
        _ => RELEASES.iter().rev().find(|r| r.0 <= version).map_or((5, 0), |r| r.1),
    }
}

/// Returns the devices that `CUDA_SOFT_DEVICES` describes: their number (`2`) or their architectures (`sm_90,sm_80`).
/// The default is one sm_90.
pub(crate) fn devices() -> Result<Vec<&'static Profile>, String> {
    parse_devices(environment::devices().as_deref().unwrap_or("1"))
}

fn parse_devices(text: &str) -> Result<Vec<&'static Profile>, String> {
    const MOST: usize = 64;
    let bad = |word: &str| {
        format!(
            "CUDA_SOFT_DEVICES={text}: \"{word}\" is neither a number of devices (at most {MOST}) nor one of {}",
            Profile::names()
        )
    };
    if let Ok(count) = text.trim().parse::<usize>() {
        let default = Profile::of("sm_90").ok_or_else(|| bad("sm_90"))?;
        return if count <= MOST {
            Ok(vec![default; count])
        } else {
            Err(bad(text))
        };
    }
    let words: Vec<&str> = text.split(',').collect();
    if words.len() > MOST {
        return Err(bad(text));
    }
    words
        .into_iter()
        .map(|word| Profile::of(word.trim()).ok_or_else(|| bad(word)))
        .collect()
}

/// Returns the memory of each device in bytes: `CUDA_SOFT_MEMORY`, or an equal share of the memory that the process can
/// have, or 4 GiB if the system does not report that.
pub(crate) fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let share = || Some(host::memory()? / devices().map_or(1, |d| d.len().max(1)) as u64);
        environment::memory().or_else(share).unwrap_or(4 << 30)
    })
}

/// Returns the number of threads that may work at the same time: `CUDA_SOFT_THREADS`, else the number of processors.
pub(crate) fn threads() -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
    host::environment::threads().unwrap_or_else(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(parse_version("12.4"), Some(12040));
        assert_eq!(parse_version("12040"), Some(12040));
        assert_eq!(parse_version("13.5"), Some(13050));
        for bad in ["", "x", "1", "12.x", "99999999999"] {
            assert_eq!(parse_version(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_newest_ptx_of_a_driver() {
        assert_eq!(newest_ptx(13050), (9, 5));
        assert_eq!(newest_ptx(13000), (9, 0));
        assert_eq!(newest_ptx(12090), (8, 8));
        assert_eq!(newest_ptx(12080), (8, 7));
        assert_eq!(newest_ptx(12070), (8, 6));
        assert_eq!(newest_ptx(12060), (8, 5));
        assert_eq!(newest_ptx(11070), (7, 7));
    }

    #[test]
    fn device_lists() {
        let sms = |text| parse_devices(text).map(|d| d.iter().map(|p| p.sm).collect::<Vec<_>>());
        assert_eq!(sms("1"), Ok(vec![90]));
        assert_eq!(sms("0"), Ok(vec![]));
        assert_eq!(sms("sm_90, sm_80"), Ok(vec![90, 80]));
        assert!(sms("65").is_err());
        assert!(sms("sm_31").unwrap_err().contains("\"sm_31\""));
    }
}
