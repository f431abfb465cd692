//! Writes the sections about the machine, its device nodes and the environment variables.

use super::section::Section;
use crate::findings::{Access, Findings, Node};

/// The maximum number of nodes that are listed. Jetson boards have many that CUDA does not need.
const LISTED: usize = 24;

/// Writes the sections.
pub(super) fn write(findings: &Findings, output: &mut String) {
    machine(findings).write("Machine", output);
    nodes(findings).write("Device nodes", output);
    variables(findings).write("Environment", output);
}

fn machine(findings: &Findings) -> Section {
    let (process, system) = (&findings.process, &findings.system);
    let mut section = Section::default();
    let user = process
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!(", user {}", user.id));
    section.row(
        "program",
        format!("{}-bit, {}, {}{user}", process.bits, process.architecture, process.os),
    );
    match &system.kernel_module {
        Some(module) => {
            let kind = if module.is_open { " (open)" } else { "" };
            section.row(
                "kernel module",
                format!(
                    "nvidia {}{kind}",
                    module.version.as_deref().unwrap_or("of unknown version")
                ),
            );
        }
        None if process.os == "linux" => section.row("kernel module", "nvidia is not loaded"),
        None => {}
    }
    if system.has_nouveau {
        section.row("kernel module", "nouveau, which does not support CUDA");
    }
    match &system.gpus {
        Some(gpus) if gpus.is_empty() => section.row("PCI bus", "no NVIDIA GPU"),
        Some(gpus) => {
            for gpu in gpus {
                let driver = gpu.driver.as_deref().unwrap_or("none");
                section.row(
                    "PCI bus",
                    format!("GPU {} at {}, kernel driver: {driver}", gpu.device, gpu.address),
                );
            }
        }
        None => {}
    }
    if let Some(container) = &system.container {
        section.row(
            "container",
            format!("{} (recognised by {})", container.runtime, container.sign),
        );
    }
    if system.is_wsl {
        section.row("WSL", "yes: the driver of Windows is used, in /usr/lib/wsl/lib");
    }
    if let Some(model) = &system.jetson {
        section.row("Jetson", model);
    }
    section
}

fn nodes(findings: &Findings) -> Section {
    let mut section = Section::default();
    if findings.nodes.is_empty() && findings.process.os == "linux" {
        section.row("none", "");
    }
    let (needed, others): (Vec<&Node>, Vec<&Node>) = findings.nodes.iter().partition(|node| node.is_needed());
    for node in needed.iter().chain(&others).take(LISTED) {
        let mode = node.mode.map_or_else(String::new, |mode| format!("{mode:04o} "));
        let owner = match (node.owner, node.group) {
            (Some(owner), Some(group)) => format!("owner {owner}:{group}, "),
            _ => String::new(),
        };
        let access = match &node.access {
            Access::Usable => "usable".to_owned(),
            Access::Denied { .. } if !node.is_needed() => "no access, which CUDA does not need".to_owned(),
            Access::Denied { message } => format!("DENIED: {message}"),
            Access::Failed { message } => format!("cannot be opened: {message}"),
        };
        section.row(&node.path, format!("{mode}{owner}{access}"));
    }
    if findings.nodes.len() > LISTED {
        section.row(format!("and {} more", findings.nodes.len() - LISTED), "");
    }
    section
}

fn variables(findings: &Findings) -> Section {
    let mut section = Section::default();
    for variable in &findings.variables {
        section.row(format!("{}={}", variable.name, variable.value), &variable.effect);
    }
    section
}
