//! Writes the sections about devices: properties, attributes, and the result of the test kernel.

use super::section::Section;
use crate::attributes::{ATTRIBUTES, Attribute, CAPABILITY_MAJOR, CAPABILITY_MINOR, Unit};
use crate::findings::{Device, Ending, Findings, KernelResult, KernelRun};

/// Writes a section for each device.
pub(super) fn write(findings: &Findings, output: &mut String) {
    for device in &findings.driver.devices {
        let run = findings.kernel_runs.iter().find(|run| run.ordinal == device.ordinal);
        let name = device.name.as_deref().unwrap_or("(no name)");
        section(device, run).write(&format!("Device {}: {name}", device.ordinal), output);
    }
}

fn section(device: &Device, run: Option<&KernelRun>) -> Section {
    let mut section = Section::default();
    let capability = (
        device.attributes.get(CAPABILITY_MAJOR),
        device.attributes.get(CAPABILITY_MINOR),
    );
    if let (Some(major), Some(minor)) = capability {
        section.row("compute capability", format!("{major}.{minor} (sm_{major}{minor})"));
    }
    if let Some(memory) = device.memory {
        section.row("memory", bytes(memory));
    }
    if let Some(uuid) = &device.uuid {
        section.row("UUID", uuid);
    }
    if let Some(address) = &device.pci_bus_id {
        section.row("PCI address", address);
    }
    for attribute in ATTRIBUTES {
        let is_shown_above = matches!(attribute.key, CAPABILITY_MAJOR | CAPABILITY_MINOR);
        if let (Some(value), false) = (device.attributes.get(attribute.key), is_shown_above) {
            section.row(attribute.label, value_text(&attribute, *value));
        }
    }
    section.row("test kernel", run.map_or_else(|| "not run".to_owned(), result_text));
    section
}

fn value_text(attribute: &Attribute, value: i32) -> String {
    match attribute.unit {
        Unit::Number => value.to_string(),
        Unit::Bytes => bytes(u64::from(value.max(0).unsigned_abs())),
        Unit::Kilohertz => format!("{} MHz", value / 1000),
        Unit::Flag if value == 0 => "no".to_owned(),
        Unit::Flag => "yes".to_owned(),
        Unit::ComputeMode => match value {
            0 => "default: any number of processes".to_owned(),
            2 => "prohibited: no process may use the device".to_owned(),
            3 => "exclusive: one process at a time".to_owned(),
            other => other.to_string(),
        },
    }
}

fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) if bytes % size == 0 => format!("{} {unit}", bytes / size),
        Some((unit, size)) => format!("{}.{} {unit}", bytes / size, bytes % size * 10 / size),
        None => format!("{bytes} B"),
    }
}

fn result_text(run: &KernelRun) -> String {
    match (&run.ending, &run.result) {
        (Ending::Completed, Some(KernelResult::Correct)) => "correct".to_owned(),
        (
            Ending::Completed,
            Some(KernelResult::Wrong {
                index,
                expected,
                actual,
            }),
        ) => {
            format!("WRONG: value {index} is {actual} instead of {expected}")
        }
        (Ending::Completed, Some(KernelResult::Failed(failure))) => {
            format!("FAILED: {}", failure.message)
        }
        (Ending::Completed, None) => "no result".to_owned(),
        (other, _) => format!("FAILED: {}", ending(other)),
    }
}

/// Describes the end of a child process.
pub(super) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::NotNeeded => "not needed".to_owned(),
        Ending::Completed => "completed".to_owned(),
        Ending::TimedOut { step, seconds } => format!("no answer within {seconds} seconds: {step}"),
        Ending::Crashed { step, status, .. } => format!("crashed with {status}: {step}"),
        Ending::NotStarted { message } => format!("could not be started: {message}"),
    }
}
