//! Advice for problems, and the last line of the report.

use super::problem::{Problem, Verdict};
use crate::findings::{Findings, LibraryKind, System};

/// The advice for a machine without a usable GPU.
const SOFTWARE: &str = "to test without a GPU, use the software driver: `soft-cuda run PROGRAM`, or CUDA_DRIVER=software for \
    programs that support it.";

/// Appends the suggestion to use the software driver to `first`. If `first` is empty, returns the suggestion alone.
pub(super) fn or_software(first: &str) -> String {
    if first.is_empty() {
        return SOFTWARE.to_owned();
    }
    format!("{first}; {SOFTWARE}")
}

/// Returns the advice in the last line of the report.
pub(super) fn last_line(findings: &Findings, problems: &[Problem], verdict: Verdict) -> String {
    let first = problems.iter().find(|problem| !problem.advice.is_empty());
    match (verdict, first) {
        (Verdict::Works, _) => works(findings, problems),
        (_, Some(problem)) => problem.advice.clone(),
        (_, None) => "see the problems above.".to_owned(),
    }
}

fn works(findings: &Findings, problems: &[Problem]) -> String {
    let library = findings.driver.library.as_ref();
    let is_software = library.is_some_and(|library| library.kind == LibraryKind::Software);
    let count = findings.kernel_runs.iter().filter(|run| run.is_correct()).count();
    let devices = match (count, is_software) {
        (1, false) => "1 GPU".to_owned(),
        (1, true) => "1 device of the software driver".to_owned(),
        (_, false) => format!("{count} GPUs"),
        (_, true) => format!("{count} devices of the software driver"),
    };
    let has_advice = problems.iter().any(|problem| !problem.advice.is_empty());
    let notes = if has_advice { "; see the notes above" } else { "" };
    format!("nothing: CUDA works on {devices}{notes}.")
}

/// Returns the advice for a machine without a driver.
pub(super) fn install(system: &System) -> String {
    if let Some(container) = &system.container {
        return start_container(&container.runtime);
    }
    if system.is_wsl {
        return "install NVIDIA's driver for Windows on the host, not a Linux driver here, then run `wsl --shutdown` once."
            .to_owned();
    }
    if system.jetson.is_some() {
        return "install the board's driver package, nvidia-l4t-cuda of JetPack.".to_owned();
    }
    match &system.gpus {
        Some(gpus) if gpus.is_empty() => or_software(""),
        Some(_) if system.has_nouveau => {
            "install NVIDIA's driver and restart the machine, so that it replaces nouveau.".to_owned()
        }
        Some(_) => "install NVIDIA's driver.".to_owned(),
        None => or_software("if this machine has an NVIDIA GPU, install NVIDIA's driver"),
    }
}

/// Returns the advice to start a container with the driver and the devices.
pub(super) fn start_container(runtime: &str) -> String {
    let how = match runtime {
        "kubernetes" => {
            "request a GPU for the container (resources.limits: nvidia.com/gpu: 1) on a node with NVIDIA's device plugin"
        }
        "podman" => {
            "start the container with `--device nvidia.com/gpu=all`; the host needs the driver and NVIDIA's container toolkit"
        }
        "apptainer" => "start the container with `--nv`; the host needs the driver",
        "lxc" => {
            "add the GPU to the container (Incus or LXD: `config device add NAME gpu gpu` and `nvidia.runtime=true`; LXC: its hook \
             `nvidia`); the host needs the driver and NVIDIA's container toolkit"
        }
        "systemd-nspawn" => {
            "start the container with `--bind=` for /dev/nvidia0, /dev/nvidiactl and /dev/nvidia-uvm, allow these devices \
             (DeviceAllow=), and install the CUDA libraries of the host's driver in it; the host needs the driver"
        }
        _ => "start the container with `--gpus all`; the host needs the driver and NVIDIA's container toolkit",
    };
    or_software(how)
}
