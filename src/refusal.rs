//! Why this crate refused a call without asking the driver.

/// A reason, kept in an error beside its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Range,
    Unit,
    Alignment,
    Packed,
    ZeroByte,
    Variable,
    Count,
    Lengths,
    KernelNode,
    NotOnTop,
    Captured,
    HostMemory,
    Attribute,
    Elsewhere,
    LogMemory,
}

impl Refusal {
    const ALL: [(Self, &'static str); 15] = [
        (
            Self::Range,
            "the values do not lie inside the buffer: their index or number is too large",
        ),
        (
            Self::Unit,
            "the buffer's size in bytes is no multiple of what it is to be filled with",
        ),
        (
            Self::Alignment,
            "the type needs a larger alignment than page-locked memory has",
        ),
        (
            Self::Packed,
            "a cooperative launch takes no packed buffer: pass a tuple",
        ),
        (
            Self::ZeroByte,
            "no name holds a zero byte, and this one does",
        ),
        (Self::Variable, "the variable is smaller than the type"),
        (Self::Count, "the slice is longer than the driver can count"),
        (
            Self::Lengths,
            "slices that belong together are of different lengths",
        ),
        (
            Self::KernelNode,
            "this driver only has the older function, which takes neither `kern` nor `ctx`",
        ),
        (
            Self::NotOnTop,
            "the context is not on top of this thread's stack: another one was pushed and not popped",
        ),
        (
            Self::Captured,
            "the stream is captured, and a graph could run the function more than once",
        ),
        (
            Self::HostMemory,
            "the host has not so much memory as the buffer or the list",
        ),
        (
            Self::Attribute,
            "there is no such attribute, and a driver crashes on a number below 0",
        ),
        (
            Self::Elsewhere,
            "the stream is one of a context that is neither buffer's",
        ),
        (
            Self::LogMemory,
            "the host has not so much memory as the logs are to have",
        ),
    ];

    /// A small number, and not 0.
    #[inline]
    pub(crate) const fn number(self) -> u16 {
        self as u16 + 1
    }

    /// What to say for a number.
    #[inline]
    pub(crate) fn text(number: u16) -> Option<&'static str> {
        Self::ALL
            .iter()
            .find(|(reason, _)| reason.number() == number)
            .map(|(_, text)| *text)
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[inline]
    #[test]
    fn every_reason_has_a_text_of_its_own() {
        for (reason, text) in Refusal::ALL {
            assert_eq!(Refusal::text(reason.number()), Some(text));
        }
        assert_eq!(Refusal::text(0), None);
        assert_eq!(Refusal::text(Refusal::LogMemory.number() + 1), None);
    }
}
