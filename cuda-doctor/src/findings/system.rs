//! Findings about the machine: kernel modules, GPUs on the PCI bus, the container, WSL and the Jetson board.

use serde::{Deserialize, Serialize};

/// Kernel modules, GPUs on the PCI bus, the container, WSL and the Jetson board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// NVIDIA's kernel module, if it is loaded.
    pub kernel_module: Option<KernelModule>,
    /// True if the module `nouveau`, which does not support CUDA, is loaded.
    pub has_nouveau: bool,
    /// NVIDIA's GPUs on the PCI bus; `None` if `/sys/bus/pci/devices` does not exist.
    pub gpus: Option<Vec<Gpu>>,
    /// The container that this process runs in.
    pub container: Option<Container>,
    /// True in the Windows Subsystem for Linux.
    pub is_wsl: bool,
    /// On a Jetson board, its model, or the first line of `/etc/nv_tegra_release` if the device tree does not name a
    /// known model.
    pub jetson: Option<String>,
}

/// NVIDIA's kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelModule {
    /// Its version: `580.159.04`.
    pub version: Option<String>,
    /// True if it is known to be one of NVIDIA's open kernel modules.
    pub is_open: bool,
}

/// An NVIDIA GPU on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its address: `0000:17:00.0`.
    pub address: String,
    /// Its PCI device ID: `0x2335`.
    pub device: String,
    /// The kernel driver that is bound to it, such as `nvidia`, `nouveau` or `vfio-pci`.
    pub driver: Option<String>,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The software that runs it, as far as known, such as `docker`, `podman` or `kubernetes`.
    pub runtime: String,
    /// The sign that it was recognised by.
    pub sign: String,
}
