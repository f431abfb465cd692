//! Messages, in ptxas's words, about a PTX version or an architecture that a module lacks.

use std::fmt::Display;

/// A requirement: of a PTX version, times ten, or of an architecture.
#[derive(Clone, Copy)]
pub(crate) enum Since {
    Ptx(u32),
    Sm(u32),
}

impl Since {
    /// Returns the message about something that requires this, such as `Feature '.weak'`, in a module of this PTX
    /// version, times ten, and this architecture; `None` if the module has what is required.
    pub(crate) fn unmet(self, what: impl Display, ptx: u32, sm: u32) -> Option<String> {
        let (since, has) = match self {
            Since::Ptx(since) => (since, ptx),
            Since::Sm(since) => (since, sm),
        };
        (has < since).then(|| format!("{what} {}", self.text()))
    }

    /// Returns the end of the message.
    pub(crate) fn text(self) -> String {
        match self {
            Since::Ptx(since) => format!("requires PTX ISA .version {}.{} or later", since / 10, since % 10),
            Since::Sm(since) => format!("requires .target sm_{since} or higher"),
        }
    }
}
