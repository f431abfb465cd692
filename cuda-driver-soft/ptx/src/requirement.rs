//! Messages, in ptxas's words, that something requires a later PTX version or a higher architecture than the module's.

use std::fmt::Display;

/// The lowest PTX version, times ten, or the lowest architecture that has something.
#[derive(Clone, Copy)]
pub(crate) enum Since {
    Ptx(u32),
    Sm(u32),
}

impl Since {
    /// Returns the message for a module that does not meet the requirement; `None` if it does. `what` names the thing
    /// that has the requirement, such as `Feature '.weak'`; `ptx`, times ten, and `sm` are the module's version and
    /// architecture.
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
