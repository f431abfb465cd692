//! Reasons that errors state in place of the code's text. They explain calls that this crate rejects without making
//! them, with these exceptions: `Alignment`, `NoImage` and sometimes `Overflow` reject the result of a call, and
//! `Profiler` is for a call that failed.
#![forbid(unsafe_code)]

/// A reason, stored in an [`Error`](crate::Error).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Range,
    Unit,
    Alignment,
    Packed,
    NulByte,
    Variable,
    Count,
    Lengths,
    KernelNode,
    NotOnTop,
    Captured,
    HostMemory,
    Attribute,
    Elsewhere,
    ViewRange,
    CastSize,
    CastAlignment,
    UnitAddress,
    Texel,
    Texels,
    Box,
    Pitch,
    CapturedMemory,
    MapRange,
    Mapped,
    NotMapped,
    ViewMapped,
    Concurrent,
    Attach,
    PeerContext,
    LaunchAttribute,
    NoResource,
    Unmapped,
    Path,
    OwnChild,
    NodeIndex,
    OtherGraph,
    Profiler,
    NoImage,
    Overflow,
    AllRows,
    NoGroups,
    Ownership,
    HostAccess,
    CapturedBuffers,
    GraphContext,
    OtherContext,
}

impl Refusal {
    /// The number of reasons.
    pub(crate) const COUNT: usize = Self::ALL.len();

    const ALL: &[(Self, &'static str)] = &[
        (
            Self::Range,
            "the range is not inside the buffer: pass a smaller index or fewer values",
        ),
        (
            Self::Unit,
            "the size in bytes of the memory or of a row is not a multiple of the size of the fill value: fill with a \
             smaller value",
        ),
        (
            Self::Alignment,
            "the type needs a larger alignment than the memory has: use a type with a smaller alignment",
        ),
        (
            Self::Packed,
            "a cooperative launch does not accept packed arguments: pass a tuple",
        ),
        (Self::NulByte, "the name contains a NUL byte"),
        (
            Self::Variable,
            "the variable is smaller than the type: read or write a smaller type",
        ),
        (
            Self::Count,
            "the slice is too long, because its length does not fit into the driver's count: pass a part of it",
        ),
        (
            Self::Lengths,
            "slices that share a count have different lengths: pass slices of the same length; strides of a tensor map \
             have one entry less than its sizes, and corners have two less",
        ),
        (
            Self::KernelNode,
            "this driver only has the older function, which does not accept `kern` or `ctx`: leave both null",
        ),
        (
            Self::NotOnTop,
            "the context is not on top of this thread's stack: pop the contexts that were pushed after it first",
        ),
        (
            Self::Captured,
            "the stream is being captured, and a graph may run the function more than once: add the function to the graph \
             with `Graph::add_host_fn`",
        ),
        (Self::HostMemory, "out of host memory for the buffer or list"),
        (
            Self::Attribute,
            "there is no such attribute, or its value is not a number: pass a named constant whose value is a number",
        ),
        (
            Self::Elsewhere,
            "the stream belongs to another context than both buffers: use a stream of a buffer's context",
        ),
        (
            Self::ViewRange,
            "the range is not inside the buffer or view: pass a start that is at most the end, and an end that is at \
             most the length",
        ),
        (
            Self::CastSize,
            "the size in bytes is not a multiple of the size of the new type: take a part of another length first",
        ),
        (
            Self::CastAlignment,
            "the address is not a multiple of the alignment of the new type: start at another value",
        ),
        (
            Self::UnitAddress,
            "the memory's address is not a multiple of the size of the fill value: fill with a smaller value",
        ),
        (
            Self::Texel,
            "the type does not have the size of a texel: pass a format and a number of channels that fit the type",
        ),
        (
            Self::Texels,
            "the slice does not have as many values as the array has texels: copy a part with `copy::Copy3d`",
        ),
        (
            Self::Box,
            "the region is not inside the memory or array: pass a smaller extent or offset",
        ),
        (
            Self::Pitch,
            "the pitch is shorter than offset and width of a row, or the slices have fewer rows than offset and height: \
             pass a larger pitch or number of rows",
        ),
        (
            Self::CapturedMemory,
            "the stream is being captured, and the memory would belong to the graph: add a memory node instead",
        ),
        (
            Self::MapRange,
            "the memory is larger than the rest of the address range: map it at a smaller offset, or reserve more",
        ),
        (Self::Mapped, "memory is mapped in a part of the range: unmap it first"),
        (
            Self::NotMapped,
            "no mapping starts at the offset, or a part of the range is not mapped: pass the start of a mapping, or map \
             memory there first",
        ),
        (
            Self::ViewMapped,
            "a part of the range is not mapped: map memory there first",
        ),
        (
            Self::Concurrent,
            "the device does not let the host access managed memory while kernels run: copy with a view",
        ),
        (
            Self::Attach,
            "the flags are not one of `CU_MEM_ATTACH_GLOBAL`, `CU_MEM_ATTACH_HOST` and `CU_MEM_ATTACH_SINGLE`: pass one",
        ),
        (
            Self::PeerContext,
            "the context of a view is not known: pass it when the view is made from raw parts",
        ),
        (
            Self::LaunchAttribute,
            "the driver is older than a launch attribute: leave it out (`LaunchAttribute` lists the versions)",
        ),
        (
            Self::NoResource,
            "the list of resources is empty: pass at least one, because a driver crashes on an empty list",
        ),
        (
            Self::Unmapped,
            "an array with deferred mapping has no memory, and copies to it fault: remove the flag, or create the \
             array with `unmapped`",
        ),
        (
            Self::Path,
            "the path contains a NUL byte or, on Windows, is not Unicode: choose another path",
        ),
        (
            Self::OwnChild,
            "a graph cannot contain itself, a graph that it is part of, or its own child graph: pass a clone",
        ),
        (
            Self::NodeIndex,
            "the graph has no node at one of the positions: pass positions in `Graph::nodes`",
        ),
        (
            Self::OtherGraph,
            "the conditional handle is of another graph: create one for this graph",
        ),
        (
            Self::Profiler,
            "the failed function is cuProfilerStart or cuProfilerStop, and code 302 means that the driver does not export \
             it",
        ),
        (Self::NoImage, "the linker returned no image: add an input"),
        (Self::Overflow, "the size overflows: allocate fewer or shorter rows"),
        (
            Self::AllRows,
            "the slice does not have as many values as all rows: pass the width times the height",
        ),
        (Self::NoGroups, "the number of groups is 0: request at least one"),
        (
            Self::Ownership,
            "this driver is older than CUDA 12.9 and would copy the graph: use `Graph::add_child`",
        ),
        (
            Self::HostAccess,
            "the memory is on the host, which has no such access to it: grant it with `AddressRange::set_access`",
        ),
        (
            Self::CapturedBuffers,
            "the stream is being captured, and a graph does not return buffers: add the copy to the graph with \
             `Graph::add_copy`",
        ),
        (
            Self::GraphContext,
            "the context of the graph is not known, and nothing would keep the current one: pass one to `from_raw` with \
             the handle that `into_raw` returns",
        ),
        (
            Self::OtherContext,
            "the stream belongs to another context than the buffer would: pass the stream's context",
        ),
    ];

    /// Returns a number from 1 on, which fits into the bits of an [`Error`](crate::Error).
    #[inline]
    pub(crate) const fn number(self) -> u16 {
        self as u16 + 1
    }

    /// Returns true for the number of a reason that is about a part or a cast of a view, which no driver call has
    /// rejected.
    #[inline]
    pub(crate) const fn is_of_view(number: u16) -> bool {
        number == Self::ViewRange.number()
            || number == Self::CastSize.number()
            || number == Self::CastAlignment.number()
            || number == Self::ViewMapped.number()
            || number == Self::HostAccess.number()
    }

    /// Returns the text for a number, or `None` for 0.
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

    #[test]
    fn every_reason_has_a_text() {
        for (number, &(reason, text)) in (1..).zip(Refusal::ALL) {
            assert_eq!(
                reason.number(),
                number,
                "the reasons are in the order of the enum, without a gap"
            );
            assert_eq!(Refusal::text(number), Some(text));
        }
        assert_eq!(Refusal::text(0), None);
        assert_eq!(Refusal::text(Refusal::COUNT as u16 + 1), None);
    }
}
