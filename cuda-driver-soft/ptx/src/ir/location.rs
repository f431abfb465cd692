//! Places in the CUDA source, from `.file` and `.loc`.

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The number of the file in `.file`; see [`SourceMap::file`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// A `.loc` directive: the place in the source of the instructions that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Line of the directive in the PTX text.
    pub ptx_line: u32,
    /// The place.
    pub place: SourcePlace,
    /// The place of the call, if the code comes from an inlined function. The call itself may have been inlined: then
    /// a location with that place precedes this one.
    pub inlined_at: Option<SourcePlace>,
}

/// The `.file` and `.loc` directives of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap {
    /// Source files by number, from `.file`.
    pub files: Vec<(u32, String)>,
    /// `.loc` directives, in the order of the text.
    pub locations: Vec<Location>,
}

impl SourceMap {
    /// Returns the name of the file with this number.
    pub fn file(&self, number: u32) -> Option<&str> {
        let found = self.files.iter().find(|(n, _)| *n == number);
        found.map(|(_, name)| name.as_str())
    }
}
