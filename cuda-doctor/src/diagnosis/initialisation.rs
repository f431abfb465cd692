//! Finds the reason why a loaded driver does not initialise or shows no device.

use cuda_driver::sys::CUresult;

use super::advice;
use super::problem::{Cause, Problem, Severity};
use crate::findings::{Access, CallFailure, Choice, Findings, LibraryFile, LibraryKind, LibraryRole, Node, Variable};

/// Returns a problem if `cuInit` or listing the devices failed, or if the driver shows no device.
pub(super) fn problems(findings: &Findings) -> Vec<Problem> {
    let problem = match &findings.driver.failure {
        Some(failure) => Some(failed(findings, failure)),
        None if findings.driver.devices.is_empty() => Some(no_device(findings)),
        None => None,
    };
    problem.into_iter().collect()
}

fn failed(findings: &Findings, failure: &CallFailure) -> Problem {
    let broken = |cause, advice: &str| Problem::new(cause, Severity::Broken, format!("{}.", failure.message), advice);
    if failure.code == 0 {
        return broken(
            Cause::Initialisation,
            "examine the driver in a process that has not used CUDA before.",
        );
    }
    let library = findings.driver.library.as_ref();
    if library.is_some_and(|library| library.kind == LibraryKind::Software) {
        return broken(
            Cause::SoftwareDriver,
            "correct the variables CUDA_SOFT_… and CUDA_VISIBLE_DEVICES; with CUDA_SOFT_LOG=1 the software driver says why it \
             fails.",
        );
    }
    match CUresult(failure.code) {
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => mismatch(findings, failure),
        CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => broken(
            Cause::VersionMismatch,
            "remove the forward compatibility library (cuda-compat) from LD_LIBRARY_PATH, or update the driver: this GPU does \
             not support forward compatibility.",
        ),
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => broken(
            Cause::Initialisation,
            "start the services that the system needs, usually nvidia-fabricmanager in the driver's version.",
        ),
        CUresult::CUDA_ERROR_NO_DEVICE => no_device(findings),
        CUresult::CUDA_ERROR_INVALID_DEVICE if findings.variable("CUDA_VISIBLE_DEVICES").is_some() => broken(
            Cause::Variable,
            "correct CUDA_VISIBLE_DEVICES: it may name each device only once.",
        ),
        _ => refused_nodes(findings)
            .or_else(|| missing_nodes(findings))
            .unwrap_or_else(|| broken(
                Cause::Initialisation,
                "restart the machine; if that does not help, install the driver again. The system's log (dmesg) may say more.",
            )),
    }
}

fn mismatch(findings: &Findings, failure: &CallFailure) -> Problem {
    let module = findings
        .system
        .kernel_module
        .as_ref()
        .and_then(|module| module.version.as_deref());
    let library = findings
        .driver
        .library
        .as_ref()
        .and_then(|library| library.version.as_deref());
    let text = match (module, library) {
        (Some(module), Some(library)) => format!(
            "The kernel module has version {module} and the driver's library {library}: {}.",
            failure.message
        ),
        _ => format!(
            "The versions of the kernel module and the driver's library differ: {}.",
            failure.message
        ),
    };
    let advice = mismatch_advice(findings, module);
    Problem::new(Cause::VersionMismatch, Severity::Broken, text, advice)
}

fn mismatch_advice(findings: &Findings, module: Option<&str>) -> String {
    if let Choice::Named { variable, .. } = &findings.choice {
        return format!("unset {variable}, so that the system's library is used.");
    }
    let loaded = findings
        .driver
        .library
        .as_ref()
        .and_then(|library| library.path.as_deref());
    let files = || findings.library_files.iter();
    let matching =
        files().find(|file| file.role == LibraryRole::Driver && file.version.as_deref() == module && module.is_some());
    if let Some(matching) = matching {
        let path_of = |file: &LibraryFile| file.real_path.clone().unwrap_or_else(|| file.path.clone());
        let listed = files().find(|file| Some(path_of(file).as_str()) == loaded);
        let path = listed.map(|file| file.path.as_str()).or(loaded).unwrap_or("the other");
        return format!(
            "keep programs from loading {path}, for example by removing its folder from LD_LIBRARY_PATH: {} has the kernel \
             module's version.",
            matching.path
        );
    }
    let advice = if findings.system.container.is_some() {
        "remove the driver's library from the image, so that the container gets the host's; or start the container again, if \
         the host's driver was updated."
    } else {
        "restart the machine, so that the kernel loads the module of the installed driver; if that does not help, install the \
         driver again."
    };
    advice.to_owned()
}

/// Returns the most likely reason why the driver shows no device. Certain reasons are checked before possible ones.
fn no_device(findings: &Findings) -> Problem {
    // An empty list or a negative number hides all devices, whatever else is wrong.
    let hides_all = |value: &str| value.is_empty() || value.starts_with('-');
    let problem = hidden(findings, hides_all)
        .or_else(|| refused_nodes(findings))
        .or_else(|| missing_nodes(findings))
        .or_else(|| hidden(findings, |_| true));
    if let Some(problem) = problem {
        return problem;
    }
    let system = &findings.system;
    if system.is_wsl {
        return Problem::new(
            Cause::NoDevice,
            Severity::NoGpu,
            "The driver finds no GPU on the Windows host.",
            "install NVIDIA's driver for Windows on the host, then run `wsl --shutdown` once.",
        );
    }
    let (text, advice) = match &system.gpus {
        Some(gpus) if !gpus.is_empty() => (
            format!(
                "The driver finds no device, but the PCI bus has an NVIDIA GPU at {}.",
                gpus[0].address
            ),
            "update the driver, which may be older than the GPU; the system's log (dmesg) may say more.".to_owned(),
        ),
        Some(_) => (
            "The driver is installed, but this machine has no NVIDIA GPU.".to_owned(),
            advice::or_software(""),
        ),
        None => (
            "The driver is installed, but finds no device.".to_owned(),
            advice::or_software("check that this machine has an NVIDIA GPU"),
        ),
    };
    Problem::new(Cause::NoDevice, Severity::NoGpu, text, advice)
}

/// Returns a problem if `hides` returns true for the value of `CUDA_VISIBLE_DEVICES`.
fn hidden(findings: &Findings, hides: impl Fn(&str) -> bool) -> Option<Problem> {
    let is_visible_devices =
        |variable: &&Variable| variable.name == "CUDA_VISIBLE_DEVICES" && hides(variable.value.trim());
    let variable = findings.variables.iter().find(is_visible_devices)?;
    Some(Problem::new(
        Cause::HiddenDevices,
        Severity::NoGpu,
        format!("CUDA_VISIBLE_DEVICES=\"{}\" leaves no device.", variable.value),
        "unset CUDA_VISIBLE_DEVICES, or set it to the numbers of devices: 0 is the first.",
    ))
}

/// Returns a problem if this user may not open a device node that CUDA needs.
fn refused_nodes(findings: &Findings) -> Option<Problem> {
    let denied: Vec<&Node> = findings
        .nodes
        .iter()
        .filter(|node| node.is_needed() && matches!(node.access, Access::Denied { .. }))
        .collect();
    let first = denied.first()?;
    let paths: Vec<&str> = denied.iter().map(|node| node.path.as_str()).collect();
    let user = findings
        .process
        .user
        .as_ref()
        .map_or_else(|| "this user".to_owned(), |user| format!("user {}", user.id));
    // If the permission bits allow all users to read and write, the container's rules forbid the access.
    let allowed_by_bits = first.mode.is_some_and(|mode| mode & 0o666 == 0o666);
    let advice = match (allowed_by_bits, &findings.system.container, first.group) {
        (true, Some(container), _) => advice::start_container(&container.runtime),
        (_, _, Some(group)) if group != 0 && first.mode.is_some_and(|mode| mode & 0o060 == 0o060) => {
            format!("add the user to group {group} (usermod --append --groups {group} USER) and log in again.")
        }
        _ => format!(
            "allow all users to use the GPU: chmod a+rw {}; a udev rule or nvidia-modprobe makes this permanent.",
            paths.join(" ")
        ),
    };
    let text = format!("{user} may not open {}.", paths.join(", "));
    let text = text[..1].to_uppercase() + &text[1..];
    Some(Problem::new(Cause::Permissions, Severity::Broken, text, advice))
}

/// Returns a problem if the library of NVIDIA's driver is loaded on Linux, but there is no device node of a GPU.
/// Outside of containers, the machine must also have an NVIDIA GPU on its PCI bus, and must not be WSL or a Jetson
/// board.
fn missing_nodes(findings: &Findings) -> Option<Problem> {
    let system = &findings.system;
    let is_real = findings
        .driver
        .library
        .as_ref()
        .is_some_and(|library| library.kind == LibraryKind::Real);
    if !is_real || findings.process.os != "linux" || findings.nodes.iter().any(Node::is_gpu) {
        return None;
    }
    if let Some(container) = &system.container {
        return Some(Problem::new(
            Cause::Container,
            Severity::NoGpu,
            format!(
                "This container ({}) has the driver's library, but no device nodes of a GPU.",
                container.runtime
            ),
            advice::start_container(&container.runtime),
        ));
    }
    let has_gpus = system.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty());
    if system.is_wsl || system.jetson.is_some() || !has_gpus {
        return None;
    }
    if system.kernel_module.is_none() {
        let (text, advice) = if system.has_nouveau {
            (
                "The GPU is driven by nouveau, not by NVIDIA's kernel module.",
                "block nouveau (the driver's installer can do it) and restart the machine.",
            )
        } else {
            (
                "NVIDIA's kernel module is not loaded.",
                "run `modprobe nvidia`. If that fails, its message says why: the module may be built for another kernel, or \
                 refused by Secure Boot.",
            )
        };
        return Some(Problem::new(Cause::NoKernelModule, Severity::Broken, text, advice));
    }
    Some(Problem::new(
        Cause::NoDevice,
        Severity::Broken,
        "NVIDIA's kernel module is loaded, but there are no device nodes of a GPU.",
        "run `nvidia-modprobe -c 0 -u` as root, which creates the device nodes.",
    ))
}
