//! Finds kernel modules and GPUs, and recognises containers, WSL and Jetson boards.

use super::surroundings::Surroundings;
use super::{paths, pci};
use crate::findings::{Container, KernelModule, System};

/// Observes the machine around this process.
pub(super) fn observe(surroundings: &Surroundings) -> System {
    System {
        kernel_module: kernel_module(surroundings),
        has_nouveau: paths::below(&surroundings.root, "/sys/module/nouveau").is_dir(),
        gpus: pci::gpus(surroundings),
        container: container(surroundings),
        is_wsl: is_wsl(surroundings),
        jetson: jetson(surroundings),
    }
}

/// Returns NVIDIA's kernel module. The first line of `/proc/driver/nvidia/version` is
/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 …`, or for the open modules
/// `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build …`. Without that file,
/// `/sys/module/nvidia/version` contains the version.
fn kernel_module(surroundings: &Surroundings) -> Option<KernelModule> {
    let read = |path| paths::read(&surroundings.root, path);
    if let Some(text) = read("/proc/driver/nvidia/version") {
        let line = text.lines().next().unwrap_or_default();
        return Some(KernelModule {
            version: line.split_whitespace().find(|word| is_version(word)).map(str::to_owned),
            is_open: line.contains("Open Kernel Module"),
        });
    }
    let version = read("/sys/module/nvidia/version")?.trim().to_owned();
    Some(KernelModule {
        version: Some(version).filter(|text| is_version(text)),
        is_open: false,
    })
}

fn is_version(word: &str) -> bool {
    let mut parts = word.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    word.contains('.') && parts.all(is_number)
}

fn container(surroundings: &Surroundings) -> Option<Container> {
    let found = |runtime: &str, sign: &str| {
        Some(Container {
            runtime: runtime.to_owned(),
            sign: sign.to_owned(),
        })
    };
    let exists = |path| paths::below(&surroundings.root, path).exists();
    if surroundings.variable("KUBERNETES_SERVICE_HOST").is_some() {
        return found("kubernetes", "the variable KUBERNETES_SERVICE_HOST");
    }
    for variable in ["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"] {
        if surroundings.variable(variable).is_some() {
            return found("apptainer", &format!("the variable {variable}"));
        }
    }
    if exists("/.dockerenv") {
        return found("docker", "the file /.dockerenv");
    }
    if exists("/run/.containerenv") {
        return found("podman", "the file /run/.containerenv");
    }
    if let Some(runtime) = surroundings.variable("container") {
        return found(runtime, "the variable container");
    }
    let groups = paths::read(&surroundings.root, "/proc/1/cgroup")?;
    let names = [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("lxc", "lxc"),
    ];
    let (_, runtime) = names.iter().find(|(sign, _)| groups.contains(sign))?;
    found(runtime, "the file /proc/1/cgroup")
}

fn is_wsl(surroundings: &Surroundings) -> bool {
    let version = paths::read(&surroundings.root, "/proc/version").unwrap_or_default();
    version.to_ascii_lowercase().contains("microsoft") || paths::below(&surroundings.root, "/dev/dxg").exists()
}

fn jetson(surroundings: &Surroundings) -> Option<String> {
    let model = paths::read(&surroundings.root, "/proc/device-tree/model").unwrap_or_default();
    // The device tree's strings end with a NUL byte.
    let model = model.trim_end_matches('\0').trim();
    if ["Jetson", "NVIDIA Orin", "Tegra"]
        .iter()
        .any(|sign| model.contains(sign))
    {
        return Some(model.to_owned());
    }
    let release = paths::read(&surroundings.root, "/etc/nv_tegra_release")?;
    Some(
        release
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("# ")
            .to_owned(),
    )
}
