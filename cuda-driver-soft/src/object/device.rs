//! Devices and their attributes.

use std::sync::OnceLock;

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::state::error::{Error, Result};
use crate::state::profile::{self, Profile};
use crate::state::settings;

/// One software device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) ordinal: i32,
    pub(crate) profile: &'static Profile,
    /// Index among all devices, visible or not.
    physical: u32,
}

/// Returns the devices that `CUDA_SOFT_DEVICES` describes and `CUDA_VISIBLE_DEVICES` selects. Returns
/// `CUDA_ERROR_NO_DEVICE` if there are none, and `CUDA_ERROR_INVALID_DEVICE` if the first variable is invalid or the
/// second one repeats a number.
pub(crate) fn from_environment() -> Result<Vec<Device>> {
    let all = settings::devices().map_err(|reason| {
        host::log!("{reason}");
        Error::CUDA_ERROR_INVALID_DEVICE
    })?;
    let visible = visible(host::environment::visible_devices().as_deref(), all.len())?;
    if visible.is_empty() {
        return Err(Error::CUDA_ERROR_NO_DEVICE);
    }
    let device = |(ordinal, physical): (usize, usize)| Device {
        ordinal: ordinal as i32,
        profile: all[physical],
        physical: physical as u32,
    };
    Ok(visible.into_iter().enumerate().map(device).collect())
}

/// Returns the indices of the devices that `CUDA_VISIBLE_DEVICES` selects: its numbers up to the first one that is not
/// a device. A repeated number is an error.
fn visible(list: Option<&str>, count: usize) -> Result<Vec<usize>> {
    let Some(list) = list else {
        return Ok((0..count).collect());
    };
    let mut visible = Vec::new();
    for word in list.split(',') {
        let Some(n) = word.trim().parse::<usize>().ok().filter(|&n| n < count) else {
            break;
        };
        if visible.contains(&n) {
            return Err(Error::CUDA_ERROR_INVALID_DEVICE);
        }
        visible.push(n);
    }
    Ok(visible)
}

static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();

/// Sets the devices of the process.
pub(crate) fn set_all(devices: Vec<Device>) {
    let _ = DEVICES.set(devices);
}

/// Returns all devices; none before the driver is initialised.
pub(crate) fn all() -> &'static [Device] {
    DEVICES.get().map_or(&[], Vec::as_slice)
}

/// Returns the device with this ordinal.
pub(crate) fn get(ordinal: i32) -> Result<&'static Device> {
    let devices = all();
    usize::try_from(ordinal)
        .ok()
        .and_then(|n| devices.get(n))
        .ok_or(Error::CUDA_ERROR_INVALID_DEVICE)
}

impl Device {
    /// Returns a name such as `Software CUDA device (sm_90)`, which cannot be mistaken for a GPU's.
    pub(crate) fn name(&self) -> String {
        format!("Software CUDA device (sm_{})", self.profile.sm)
    }

    /// Returns a UUID that is different for each device, and the same in every process with the same
    /// `CUDA_SOFT_DEVICES`.
    pub(crate) fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"soft-cuda-dev\0\0\0";
        uuid[13] = self.profile.sm as u8;
        uuid[15] = self.physical as u8;
        uuid
    }

    /// Returns the size of the device's memory in bytes.
    pub(crate) fn total_memory(&self) -> u64 {
        settings::memory_bytes()
    }

    /// `cuDeviceGetPCIBusId`: an invented address, whose bus is the device's index among all devices plus 1.
    pub(crate) fn pci_bus_id(&self) -> String {
        format!("0000:{:02X}:00.0", self.pci_bus())
    }

    fn pci_bus(&self) -> u32 {
        self.physical + 1
    }

    /// Returns the value of a `CUdevice_attribute`.
    pub(crate) fn attribute(&self, attribute: Attribute) -> Result<i32> {
        match attribute {
            Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => Ok(self.pci_bus() as i32),
            _ if profile::since(attribute) > settings::version() => Err(Error::CUDA_ERROR_INVALID_VALUE),
            _ => self.profile.attribute(attribute).ok_or(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }

    /// Returns the value of an attribute that every profile has, independent of the CUDA version.
    pub(crate) fn limit(&self, attribute: Attribute) -> u32 {
        self.profile.attribute(attribute).unwrap_or(0) as u32
    }
}

/// Parses `domain:bus:device.function`, `domain:bus:device` or `bus:device.function`, and returns the four numbers;
/// missing ones are 0. Like driver 580, reads hexadecimal numbers as C's `sscanf` does, with spaces before them, a plus
/// sign and `0x`; digits behind the `0x` of the function may be missing.
fn pci_address(id: &str) -> Option<(u32, u32, u32, u32)> {
    let number = |text: &str| {
        let text = text.trim_start();
        let text = text.strip_prefix('+').unwrap_or(text);
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        are_digits.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let parts: Vec<&str> = id.split(':').collect();
    let (slot, function) = match parts.last()?.split_once('.') {
        Some((slot, "0x")) => (number(slot)?, Some(0)),
        Some((slot, function)) => (number(slot)?, Some(number(function)?)),
        None => (number(parts.last()?)?, None),
    };
    match parts[..] {
        [domain, bus, _] => Some((number(domain)?, number(bus)?, slot, function.unwrap_or(0))),
        [bus, _] => Some((0, number(bus)?, slot, function?)),
        _ => None,
    }
}

/// `cuDeviceGetByPCIBusId`
pub(crate) fn by_pci_bus_id(id: &str) -> Result<&'static Device> {
    let address = pci_address(id).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    let devices = all().iter();
    let mut found = devices.filter(|d| address == (0, d.pci_bus(), 0, 0));
    found.next().ok_or(Error::CUDA_ERROR_INVALID_DEVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_end_at_the_first_unknown_number() {
        assert_eq!(visible(None, 2), Ok(vec![0, 1]));
        for nothing in ["", "-1", "5", "x"] {
            assert_eq!(visible(Some(nothing), 1), Ok(vec![]), "{nothing:?}");
        }
        assert_eq!(visible(Some("0,5"), 1), Ok(vec![0]));
        assert_eq!(visible(Some("1,0"), 2), Ok(vec![1, 0]));
        assert_eq!(visible(Some("0,0"), 1), Err(Error::CUDA_ERROR_INVALID_DEVICE));
    }

    #[test]
    fn pci_addresses_have_three_forms() {
        for same in [
            "0000:1f:02.0",
            "0:1F:2",
            "1f:02.0",
            " 0000:1F:02.0",
            "00000000:1F:02.0",
            "0x0:0x1f:0x2.0",
            "+0:1f:2.0",
            "0000:1f:02.0x",
        ] {
            assert_eq!(pci_address(same), Some((0, 0x1f, 2, 0)), "{same}");
        }
        for bad in [
            "",
            "junk",
            "0",
            "1f:02",
            "::",
            "0000:1f:",
            "1:2:3:4",
            "0x:1f:2.0",
            "0:1fx:2.0",
            "0:1f:2x.0",
            "1f x:2.0",
            "0:1f:2.",
            "0000:1f:02.0xyz",
            "0000:1f:02.0 ",
            "0000:1f:02:0",
            "0:1f:2x",
        ] {
            assert_eq!(pci_address(bad), None, "{bad}");
        }
    }
}
