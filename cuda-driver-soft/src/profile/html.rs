//! A profile as one HTML page without external resources: totals, plots and the annotated source.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;

use engine::count::{Counters, LaunchProfile};

use super::report::{KernelReport, Report};
use super::table::{configuration, file_name, grouped, size};

/// Maximum number of launches of a kernel that the page lists one by one.
const MOST_LAUNCHES: usize = 50;
/// Maximum size in bytes of a source file that the page shows.
const MOST_SOURCE: u64 = 16 << 20;
/// Number of source lines shown before and after each line with instructions.
const CONTEXT: u32 = 3;

/// Returns a text with the characters that HTML reserves replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns a profile as an HTML page.
pub(super) fn text(report: &Report) -> String {
    let kernels = report.kernels();
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Kernel profile</title>\n",
    );
    _ = writeln!(
        page,
        "<style>\n{}</style>\n</head>\n<body>\n<h1>Kernel profile</h1>",
        include_str!("style.css")
    );
    page.push_str(
        "<p>Counted by the software CUDA driver. Instructions are PTX instructions of warps; all numbers are the same on every \
         machine and in every run, unless threads race or wait for other blocks.</p>\n",
    );
    if kernels.is_empty() {
        page.push_str("<p>No kernels were launched.</p>\n");
    }
    if kernels.len() > 1 {
        page.push_str("<nav>");
        for (i, kernel) in kernels.iter().enumerate() {
            _ = write!(page, "<a href=\"#kernel{i}\">{}</a>", escaped(kernel.name));
        }
        page.push_str("</nav>\n");
    }
    let mut files = HashMap::new();
    for (i, kernel) in kernels.iter().enumerate() {
        _ = writeln!(page, "<h2 id=\"kernel{i}\">{}</h2>", escaped(kernel.name));
        head(&mut page, kernel);
        classes(&mut page, &kernel.total);
        traffic(&mut page, &kernel.total);
        source(&mut page, kernel, &mut files);
        instructions(&mut page, kernel);
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// Writes the configuration and the most important totals.
fn head(page: &mut String, kernel: &KernelReport<'_>) {
    let count = kernel.launches.len();
    if let Some(first) = kernel.launches.first() {
        let launches = if count == 1 {
            "1 launch".into()
        } else {
            format!("{} launches, the first", grouped(count as u64))
        };
        _ = writeln!(page, "<p>{launches}: {}</p>", escaped(&configuration(first)));
    }
    for fault in kernel.launches.iter().filter_map(|launch| launch.fault.as_deref()) {
        _ = writeln!(page, "<p class=\"hot\">Ended by a fault: {}</p>", escaped(fault));
    }
    let c = &kernel.total;
    page.push_str("<div class=\"tiles\">\n");
    let mut tile = |name: &str, value: String, bad: bool| {
        let class = if bad { "tile bad" } else { "tile" };
        _ = writeln!(page, "<div class=\"{class}\"><b>{value}</b><span>{name}</span></div>");
    };
    tile("warp instructions", grouped(c.instructions), false);
    let threads = c.threads_per_instruction();
    tile(
        "active threads per instruction, of 32",
        format!("{threads:.1}"),
        threads < 24.0,
    );
    tile(
        "divergent branches",
        grouped(c.divergent_branches),
        c.divergent_branches > 0,
    );
    if c.global_sectors() > 0 {
        tile("sectors of global memory", grouped(c.global_sectors()), false);
    }
    if c.shared_load_requests + c.shared_store_requests > 0 {
        tile("bank conflicts", grouped(c.bank_conflicts()), c.bank_conflicts() > 0);
    }
    if c.barriers > 0 {
        let share = c.barrier_wait as f64 / (c.instructions + c.barrier_wait).max(1) as f64;
        tile(
            "of the time at barriers",
            format!("{:.0} %", 100.0 * share),
            share > 0.2,
        );
    }
    page.push_str("</div>\n");
    if count > 1 {
        list(page, &kernel.launches);
    }
}

/// Writes the launches one by one.
fn list(page: &mut String, launches: &[&LaunchProfile]) {
    page.push_str(
        "<details><summary>Launches</summary><div class=\"wide\"><table class=\"plain\">\n<tr><th>launch</th>",
    );
    page.push_str("<th>grid</th><th>block</th><th>instructions</th><th>sectors</th><th>bank conflicts</th></tr>\n");
    for (i, launch) in launches.iter().enumerate().take(MOST_LAUNCHES) {
        let (grid, block, c) = (size(launch.grid), size(launch.block), &launch.total);
        let [instructions, sectors, conflicts] = [c.instructions, c.global_sectors(), c.bank_conflicts()].map(grouped);
        _ = writeln!(
            page,
            "<tr><td>{}</td><td>{grid}</td><td>{block}</td><td>{instructions}</td><td>{sectors}</td><td>{conflicts}</td></tr>",
            i + 1
        );
    }
    page.push_str("</table></div>");
    if launches.len() > MOST_LAUNCHES {
        _ = write!(page, "<p>and {} more</p>", launches.len() - MOST_LAUNCHES);
    }
    page.push_str("</details>\n");
}

/// Writes a plot of the classes of instructions.
fn classes(page: &mut String, c: &Counters) {
    let mut classes = vec![
        ("fp16", c.fp16),
        ("fp32", c.fp32),
        ("fp64", c.fp64),
        ("matrix", c.matrix),
        ("integer", c.integer),
        ("bits", c.bit),
        ("conversion", c.conversion),
        ("memory", c.memory),
        ("communication", c.communication),
        ("control", c.control),
        ("other", c.misc),
    ];
    classes.retain(|(_, count)| *count > 0);
    let bars: Vec<(String, f64, String)> = classes
        .into_iter()
        .map(|(name, count)| {
            let share = count as f64 / c.instructions.max(1) as f64;
            (
                name.to_owned(),
                share,
                format!("{} ({:.0} %)", grouped(count), 100.0 * share),
            )
        })
        .collect();
    page.push_str("<h3>Instructions by class</h3>\n");
    plot(page, &bars);
}

/// Writes a plot of horizontal bars: a name, a length from 0 to 1, and a label.
fn plot(page: &mut String, bars: &[(String, f64, String)]) {
    const ROW: usize = 22;
    let longest = bars.iter().map(|(_, length, _)| *length).fold(0.0, f64::max).max(1e-9);
    _ = writeln!(
        page,
        "<svg width=\"760\" height=\"{0}\" viewBox=\"0 0 760 {0}\" role=\"img\">",
        ROW * bars.len()
    );
    for (i, (name, length, label)) in bars.iter().enumerate() {
        let (y, width) = (i * ROW, 420.0 * length / longest);
        _ = writeln!(
            page,
            "<text x=\"128\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"138\" y=\"{}\" width=\"{width:.1}\" height=\"14\" rx=\"2\" \
             fill=\"var(--bar)\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            y + 15,
            escaped(name),
            y + 4,
            146.0 + width,
            y + 15,
            escaped(label)
        );
    }
    page.push_str("</svg>\n");
}

/// Writes a table of the requests to memory.
fn traffic(page: &mut String, c: &Counters) {
    struct Row {
        name: &'static str,
        requests: u64,
        units: u64,
        unit: &'static str,
        /// The fewest units that can hold the accessed bytes, if that number is known.
        ideal: Option<u64>,
        conflicts: Option<u64>,
    }
    let row = |name, requests, units, unit, ideal, conflicts| Row {
        name,
        requests,
        units,
        unit,
        ideal,
        conflicts,
    };
    let loads = Some(c.global_load_bytes.div_ceil(32));
    let stores = Some(c.global_store_bytes.div_ceil(32));
    let in_passes = |all: u64, conflicts: u64| Some(all - conflicts);
    let rows = [
        row(
            "global loads",
            c.global_load_requests,
            c.global_load_sectors,
            "sectors",
            loads,
            None,
        ),
        row(
            "global stores",
            c.global_store_requests,
            c.global_store_sectors,
            "sectors",
            stores,
            None,
        ),
        row(
            "global atomics",
            c.global_atomic_requests,
            c.global_atomic_sectors,
            "sectors",
            None,
            Some(c.global_atomic_conflicts),
        ),
        row(
            "local loads",
            c.local_load_requests,
            c.local_load_sectors,
            "sectors",
            None,
            None,
        ),
        row(
            "local stores",
            c.local_store_requests,
            c.local_store_sectors,
            "sectors",
            None,
            None,
        ),
        row(
            "shared loads",
            c.shared_load_requests,
            c.shared_load_wavefronts,
            "wavefronts",
            in_passes(c.shared_load_wavefronts, c.shared_load_conflicts),
            Some(c.shared_load_conflicts),
        ),
        row(
            "shared stores",
            c.shared_store_requests,
            c.shared_store_wavefronts,
            "wavefronts",
            in_passes(c.shared_store_wavefronts, c.shared_store_conflicts),
            Some(c.shared_store_conflicts),
        ),
        row(
            "shared atomics",
            c.shared_atomic_requests,
            0,
            "",
            None,
            Some(c.shared_atomic_conflicts),
        ),
    ];
    let rows: Vec<&Row> = rows.iter().filter(|row| row.requests > 0).collect();
    if rows.is_empty() {
        return;
    }
    page.push_str(
        "<h3>Memory</h3>\n<div class=\"wide\"><table class=\"plain\">\n<tr><th class=\"left\"></th><th>requests</th>",
    );
    page.push_str("<th>sectors or wavefronts</th><th>per request</th><th>needed</th><th>conflicts</th></tr>\n");
    for row in rows {
        let per = row.units as f64 / row.requests as f64;
        let units = if row.unit.is_empty() {
            String::new()
        } else {
            format!("{} {}", grouped(row.units), row.unit)
        };
        let per = if row.unit.is_empty() {
            String::new()
        } else {
            format!("{per:.2}")
        };
        let needed = row.ideal.map_or(String::new(), grouped);
        let wasteful = row.ideal.is_some_and(|ideal| row.units > 2 * ideal);
        let class = if wasteful { " class=\"hot\"" } else { "" };
        let conflicts = row.conflicts.map_or(String::new(), grouped);
        let hot = if row.conflicts.is_some_and(|n| n > 0) {
            " class=\"hot\""
        } else {
            ""
        };
        _ = writeln!(
            page,
            "<tr><td class=\"left\">{}</td><td>{}</td><td{class}>{units}</td><td>{per}</td><td>{needed}</td><td{hot}>{conflicts}</td></tr>",
            row.name,
            grouped(row.requests)
        );
    }
    page.push_str("</table></div>\n");
}

/// A column of the tables of lines.
struct Column {
    title: &'static str,
    /// Returns the text of a cell, empty if there is nothing to show.
    cell: fn(&Counters) -> String,
    /// Returns true for a cell that may need attention.
    hot: fn(&Counters) -> bool,
}

/// Returns a number, or an empty text for 0.
fn some(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}

/// Returns the number of requests to global memory.
fn requests(c: &Counters) -> u64 {
    c.global_load_requests + c.global_store_requests + c.global_atomic_requests
}

/// Returns the number of conflicts of all kinds.
fn conflicts(c: &Counters) -> u64 {
    c.bank_conflicts() + c.global_atomic_conflicts + c.shared_atomic_conflicts
}

const COLUMNS: [Column; 6] = [
    Column {
        title: "threads",
        cell: |c| format!("{:.1}", c.threads_per_instruction()),
        hot: |c| c.threads_per_instruction() < 24.0,
    },
    Column {
        title: "sectors",
        cell: |c| some(c.global_sectors()),
        hot: |_| false,
    },
    Column {
        title: "per request",
        cell: |c| match requests(c) {
            0 => String::new(),
            requests => format!("{:.1}", c.global_sectors() as f64 / requests as f64),
        },
        hot: |c| c.global_sectors() > 16 * requests(c),
    },
    Column {
        title: "conflicts",
        cell: |c| some(conflicts(c)),
        hot: |c| conflicts(c) > 0,
    },
    Column {
        title: "divergent",
        cell: |c| some(c.divergent_branches),
        hot: |_| true,
    },
    Column {
        title: "waited",
        cell: |c| some(c.barrier_wait),
        hot: |_| false,
    },
];

/// A table of lines.
struct Lines {
    /// The columns in which at least one line has something to show.
    columns: Vec<&'static Column>,
    /// The number of instructions of the longest bar.
    most: u64,
}

impl Lines {
    /// Writes the header of a table for lines with these counters; `last` is the title of the last column.
    fn begin<'c>(page: &mut String, last: &str, all: impl Iterator<Item = &'c Counters> + Clone) -> Self {
        let all = all.filter(|c| c.instructions > 0);
        let shown = |column: &&Column| all.clone().any(|c| !(column.cell)(c).is_empty());
        let lines = Lines {
            columns: COLUMNS.iter().filter(shown).collect(),
            most: all.clone().map(|c| c.instructions).max().unwrap_or(0),
        };
        page.push_str("<div class=\"wide\"><table class=\"source\">\n<tr><th>line</th><th>instructions</th><th></th>");
        for column in &lines.columns {
            _ = write!(page, "<th>{}</th>", column.title);
        }
        _ = writeln!(page, "<th class=\"left\">{last}</th></tr>");
        lines
    }

    /// Writes a line.
    fn line(&self, page: &mut String, number: u32, counters: Option<&Counters>, code: &str) {
        _ = write!(page, "<tr><td class=\"number\">{number}</td>");
        match counters.filter(|c| c.instructions > 0) {
            Some(c) => {
                let width = 100.0 * c.instructions as f64 / self.most.max(1) as f64;
                _ = write!(
                    page,
                    "<td>{}</td><td class=\"share\"><span class=\"bar\" style=\"width:{width:.1}%\"></span></td>",
                    grouped(c.instructions)
                );
                for column in &self.columns {
                    let class = if (column.hot)(c) { " class=\"hot\"" } else { "" };
                    _ = write!(page, "<td{class}>{}</td>", (column.cell)(c));
                }
            }
            None => page.push_str(&"<td></td>".repeat(2 + self.columns.len())),
        }
        _ = writeln!(page, "<td class=\"code\">{}</td></tr>", escaped(code));
    }
}

/// Writes the CUDA source with the counters of each line, file by file; for a file that cannot be read, the
/// instructions.
fn source(page: &mut String, kernel: &KernelReport<'_>, files: &mut HashMap<String, Option<Vec<String>>>) {
    for lines in kernel.lines.chunk_by(|a, b| a.file == b.file) {
        let Some(name) = lines.first().and_then(|line| line.file) else {
            continue;
        };
        let text = files.entry(name.to_owned()).or_insert_with(|| source_lines(name));
        _ = writeln!(page, "<h3>{}</h3>", escaped(file_name(name)));
        let table = Lines::begin(page, "source", lines.iter().map(|line| &line.counters));
        let Some(text) = text else {
            for found in lines {
                table.line(page, found.line, Some(&found.counters), &found.opcodes.join(", "));
            }
            page.push_str("</table></div>\n<p>The source file cannot be read. Instructions are shown instead.</p>\n");
            continue;
        };
        let mut last = 0;
        // The lines of the report, which are sorted, without those that are too far above the current line.
        let mut lines = lines;
        for (number, code) in (1..).zip(text.iter()) {
            while lines
                .first()
                .is_some_and(|line| line.line.saturating_add(CONTEXT) < number)
            {
                lines = &lines[1..];
            }
            if lines.first().is_none_or(|line| number + CONTEXT < line.line) {
                continue;
            }
            if last > 0 && number > last + 1 {
                page.push_str("<tr><td class=\"number\">…</td></tr>\n");
            }
            last = number;
            // Only the lines near the current one can come first.
            let found = lines.iter().take_while(|line| line.line <= number).last();
            let found = found.filter(|line| line.line == number);
            table.line(page, number, found.map(|line| &line.counters), code);
        }
        page.push_str("</table></div>\n");
    }
}

/// Returns the lines of a source file. A module can name any file, so this reads only regular files, which end.
fn source_lines(path: &str) -> Option<Vec<String>> {
    // This follows links, but opens nothing: to open a pipe could block.
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MOST_SOURCE {
        return None;
    }
    let mut text = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MOST_SOURCE).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

/// Writes all instructions of the first launch with their counters, summed over all launches.
fn instructions(page: &mut String, kernel: &KernelReport<'_>) {
    let Some(first) = kernel.launches.first() else {
        return;
    };
    let mut sums: Vec<Counters> = vec![Counters::default(); first.instructions.len()];
    for launch in &kernel.launches {
        // Launches of kernels with the same name in other modules may have other instructions.
        for ((sum, inst), own) in sums.iter_mut().zip(&launch.instructions).zip(&first.instructions) {
            if inst.ptx_line == own.ptx_line {
                *sum += inst.counters;
            }
        }
    }
    let open = if first.instructions.iter().any(|inst| inst.place.is_some()) {
        ""
    } else {
        " open"
    };
    _ = writeln!(page, "<details{open}><summary>PTX instructions</summary>");
    let table = Lines::begin(page, "instruction", sums.iter());
    for (sum, inst) in sums.iter().zip(&first.instructions) {
        table.line(page, inst.ptx_line, Some(sum), &inst.opcode);
    }
    page.push_str("</table></div></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::report::LineReport;

    #[test]
    fn the_source_is_shown_near_lines_with_instructions() {
        let lines = [2, 5, 20, 40, u32::MAX].map(|line| {
            let mut counters = Counters::default();
            counters.instructions = 1;
            LineReport {
                file: Some("k.cu"),
                line,
                opcodes: vec!["add.s32"],
                counters,
            }
        });
        let kernel = KernelReport {
            name: "k",
            launches: Vec::new(),
            total: Counters::default(),
            lines: lines.to_vec(),
        };
        let text = (1..=41).map(|number| format!("code {number}")).collect();
        let mut files = HashMap::from([("k.cu".to_owned(), Some(text))]);
        let mut page = String::new();
        source(&mut page, &kernel, &mut files);
        let rows: Vec<&str> = page
            .lines()
            .filter_map(|row| row.strip_prefix("<tr><td class=\"number\">"))
            .collect();
        let number = |row: &&str| row.split('<').next().unwrap().to_owned();
        let shown = rows.iter().map(number).collect::<Vec<_>>().join(" ");
        assert_eq!(shown, "1 2 3 4 5 6 7 8 … 17 18 19 20 21 22 23 … 37 38 39 40 41");
        for row in rows {
            let has_count = !row.contains("<td></td>") && !row.starts_with('…');
            let number = number(&row);
            assert_eq!(has_count, ["2", "5", "20", "40"].contains(&number.as_str()), "{row}");
        }
    }
}
