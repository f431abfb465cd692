//! A section of the report: a title, and rows with a name and a text.

use std::fmt::Write as _;

/// The maximum width of the column of names; longer names do not widen it.
const WIDEST: usize = 60;

/// A section of the report.
#[derive(Debug, Default)]
pub(super) struct Section {
    rows: Vec<(String, String)>,
}

impl Section {
    /// Adds a row.
    pub(super) fn row(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.rows.push((name.into(), text.into()));
    }

    /// Writes the section with its title, unless it has no rows.
    pub(super) fn write(&self, title: &str, output: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        let lengths = self.rows.iter().map(|(name, _)| name.chars().count());
        let width = lengths.filter(|length| *length <= WIDEST).max().unwrap_or_default();
        // Writing to a string cannot fail.
        _ = writeln!(output, "{title}");
        for (name, text) in &self.rows {
            let line = format!("  {name:width$}  {text}");
            _ = writeln!(output, "{}", line.trim_end());
        }
        output.push('\n');
    }
}
