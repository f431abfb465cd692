//! A profile as a table for a terminal.

use std::fmt::{Display, Formatter, Result};

use engine::count::LaunchProfile;

use super::report::{KernelReport, LineReport, Report};

/// Maximum number of source lines that the table shows for each kernel. It shows those with the most instructions.
const MOST_LINES: usize = 12;

/// Returns a number with commas between groups of three digits, such as `12,345`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the size of a grid or block, such as `4 x 2`.
pub(super) fn size([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x} x {y}"),
        _ => format!("{x} x {y} x {z}"),
    }
}

/// Returns the last part of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the place of a line, such as `saxpy.cu:12`, or `PTX line 7`.
fn place(line: &LineReport<'_>) -> String {
    match line.file {
        Some(file) => format!("{}:{}", file_name(file), line.line),
        None => format!("PTX line {}", line.line),
    }
}

/// Returns the configuration of a launch.
pub(super) fn configuration(launch: &LaunchProfile) -> String {
    let mut text = format!("grid {}, block {}", size(launch.grid), size(launch.block));
    if launch.cluster != [1; 3] {
        text += &format!(", clusters of {}", size(launch.cluster));
    }
    text += &format!(", {} registers (estimated)", launch.registers);
    let shared = launch.static_shared + launch.dynamic_shared;
    if shared > 0 {
        text += &format!(", {} bytes of shared memory", grouped(shared.into()));
    }
    if launch.occupancy > 0.0 {
        text += &format!(", theoretical occupancy {:.0} %", 100.0 * launch.occupancy);
    }
    text
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.launches.is_empty() {
            return writeln!(f, "no kernels were launched");
        }
        for kernel in self.kernels() {
            write(&kernel, f)?;
        }
        Ok(())
    }
}

fn write(kernel: &KernelReport<'_>, f: &mut Formatter<'_>) -> Result {
    let c = &kernel.total;
    let count = kernel.launches.len();
    let launches = if count == 1 { "launch" } else { "launches" };
    writeln!(f, "{}: {} {launches}", kernel.name, grouped(count as u64))?;
    if let Some(first) = kernel.launches.first() {
        writeln!(f, "  {}", configuration(first))?;
    }
    for launch in &kernel.launches {
        if let Some(fault) = &launch.fault {
            writeln!(f, "  ended by a fault: {fault}")?;
        }
    }
    let mut row = |name: &str, values: &[(u64, &str)]| -> Result {
        if values.iter().all(|(value, _)| *value == 0) {
            return Ok(());
        }
        let values: Vec<String> = values
            .iter()
            .map(|(n, unit)| format!("{} {unit}", grouped(*n)))
            .collect();
        writeln!(f, "  {name:<15} {}", values.join(", "))
    };
    row(
        "instructions",
        &[(c.instructions, "of warps"), (c.thread_instructions, "of threads")],
    )?;
    row(
        "branches",
        &[(c.branches, "branches"), (c.divergent_branches, "divergent")],
    )?;
    row(
        "global loads",
        &[
            (c.global_load_requests, "requests"),
            (c.global_load_sectors, "sectors"),
            (c.global_load_bytes, "bytes"),
        ],
    )?;
    row(
        "global stores",
        &[
            (c.global_store_requests, "requests"),
            (c.global_store_sectors, "sectors"),
            (c.global_store_bytes, "bytes"),
        ],
    )?;
    row(
        "global atomics",
        &[
            (c.global_atomic_requests, "requests"),
            (c.global_atomic_sectors, "sectors"),
            (c.global_atomic_conflicts, "conflicts"),
        ],
    )?;
    row(
        "local memory",
        &[
            (c.local_load_requests, "loads"),
            (c.local_store_requests, "stores"),
            (c.local_load_sectors + c.local_store_sectors, "sectors"),
        ],
    )?;
    row(
        "shared loads",
        &[
            (c.shared_load_requests, "requests"),
            (c.shared_load_conflicts, "bank conflicts"),
        ],
    )?;
    row(
        "shared stores",
        &[
            (c.shared_store_requests, "requests"),
            (c.shared_store_conflicts, "bank conflicts"),
        ],
    )?;
    row(
        "shared atomics",
        &[
            (c.shared_atomic_requests, "requests"),
            (c.shared_atomic_conflicts, "conflicts"),
        ],
    )?;
    row("bulk copies", &[(c.bulk_bytes, "bytes")])?;
    row(
        "barriers",
        &[(c.barriers, "arrivals"), (c.barrier_wait, "instructions waited")],
    )?;
    write_lines(kernel, f)?;
    writeln!(f)
}

/// Writes the lines with the most instructions, in the order of the source.
fn write_lines(kernel: &KernelReport<'_>, f: &mut Formatter<'_>) -> Result {
    let mut lines: Vec<&LineReport<'_>> = kernel.lines.iter().filter(|l| l.counters.instructions > 0).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.counters.instructions));
    let left = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    lines.sort_by_key(|line| (line.file, line.line));
    writeln!(
        f,
        "  {:<24} {:>13} {:>8} {:>11} {:>10} {:>11}",
        "line", "instructions", "threads", "sectors", "conflicts", "divergent"
    )?;
    for line in lines {
        let c = &line.counters;
        let some = |n: u64| if n == 0 { String::new() } else { grouped(n) };
        let row = format!(
            "  {:<24} {:>13} {:>8.1} {:>11} {:>10} {:>11}",
            place(line),
            grouped(c.instructions),
            c.threads_per_instruction(),
            some(c.global_sectors()),
            some(c.bank_conflicts() + c.global_atomic_conflicts + c.shared_atomic_conflicts),
            some(c.divergent_branches),
        );
        writeln!(f, "{}", row.trim_end())?;
    }
    if left > 0 {
        writeln!(f, "  and {left} more")?;
    }
    Ok(())
}
