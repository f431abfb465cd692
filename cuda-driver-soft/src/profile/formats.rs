//! Writes a profile as JSON, as an HTML page or as a table.

use std::io;
use std::path::Path;

use super::report::Report;
use super::{html, json};

impl Report {
    /// Returns the profile as JSON.
    pub fn to_json(&self) -> String {
        json::text(self)
    }

    /// Returns the profile as one HTML page that needs no other files. It contains the CUDA source lines if their files
    /// can be read now.
    pub fn to_html(&self) -> String {
        html::text(self)
    }

    /// Writes the profile to a file: as JSON if the name ends with `.json`, as an HTML page if it ends with `.html` or
    /// `.htm`, else as a table. Case does not matter.
    ///
    /// # Errors
    /// Returns the error of writing the file.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let text = match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("json") => self.to_json(),
            Some("html" | "htm") => self.to_html(),
            _ => self.to_string(),
        };
        std::fs::write(path, text)
    }
}
