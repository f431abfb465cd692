//! Lays out a function's frame: the offsets of its `.local` and `.param` variables.

/// Offsets of `.local` and `.param` variables. The space of a closed scope is used again, unless the scope declared
/// `.local` variables, whose addresses may still be in use.
#[derive(Default)]
pub(super) struct Frame {
    /// End of the variables of the open scopes, and of the closed ones that keep their space.
    top: u64,
    /// Largest value of `top` so far.
    size: u64,
    /// Largest alignment of a variable so far.
    align: u64,
    /// Bytes of the `.local` variables, with the padding between them.
    locals: u64,
    scopes: Vec<FrameScope>,
}

/// An open scope.
struct FrameScope {
    /// Offset at which the variables of the scope begin.
    start: u64,
    /// True if the scope, or a scope inside of it, declared `.local` variables.
    keeps_space: bool,
}

impl Frame {
    pub(super) fn open(&mut self) {
        self.scopes.push(FrameScope {
            start: self.top,
            keeps_space: false,
        });
    }

    pub(super) fn close(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            if !scope.keeps_space {
                self.top = scope.start;
            } else if let Some(outer) = self.scopes.last_mut() {
                outer.keeps_space = true;
            }
        }
    }

    /// Returns the offset of a new variable; `None` if the frame would reach 2 GiB.
    pub(super) fn allocate(&mut self, size: u64, align: u64, local: bool) -> Option<u32> {
        let start = self.top.checked_next_multiple_of(align)?;
        let end = start.checked_add(size).filter(|end| *end <= i32::MAX as u64)?;
        self.top = end;
        self.size = self.size.max(end);
        self.align = self.align.max(align);
        if local {
            self.locals = self.locals.next_multiple_of(align).saturating_add(size);
            if let Some(scope) = self.scopes.last_mut() {
                scope.keeps_space = true;
            }
        }
        Some(start as u32)
    }

    /// Returns the size of the frame in bytes.
    pub(super) fn size(&self) -> u32 {
        self.size as u32
    }

    /// Returns the bytes of the `.local` variables, which a compiler cannot keep in registers.
    pub(super) fn locals(&self) -> u32 {
        self.locals.min(u64::from(u32::MAX)) as u32
    }

    /// Returns the alignment of the frame in bytes.
    pub(super) fn align(&self) -> u32 {
        self.align.clamp(1, 1 << 30) as u32
    }
}
