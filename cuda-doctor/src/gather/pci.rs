//! Finds NVIDIA's GPUs on the PCI bus.

use std::fs;

use super::paths;
use super::surroundings::Surroundings;
use crate::findings::Gpu;

const DEVICES: &str = "/sys/bus/pci/devices";

/// NVIDIA's PCI vendor ID.
const NVIDIA: &str = "0x10de";

/// The beginning of the class codes of display controllers. A graphics card may also have audio and USB functions,
/// which are other entries of the bus.
const DISPLAY: &str = "0x03";

/// Returns NVIDIA's GPUs, or `None` if the bus cannot be listed.
pub(super) fn gpus(surroundings: &Surroundings) -> Option<Vec<Gpu>> {
    let root = &surroundings.root;
    fs::read_dir(paths::below(root, DEVICES)).ok()?;
    let gpu = |address: String| {
        let value = |name: &str| {
            let text = paths::read(root, &format!("{DEVICES}/{address}/{name}"))?;
            Some(text.trim().to_owned())
        };
        if value("vendor")? != NVIDIA || !value("class")?.starts_with(DISPLAY) {
            return None;
        }
        let link = fs::read_link(paths::below(root, &format!("{DEVICES}/{address}/driver"))).ok();
        let driver = link.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        Some(Gpu {
            device: value("device").unwrap_or_default(),
            driver,
            address,
        })
    };
    Some(paths::names(root, DEVICES).into_iter().filter_map(gpu).collect())
}
