//! Findings of the checkers.

use crate::memory::{Allocation, address_space};
use ptx::ir::Function;
use std::fmt;
use std::ops::BitOr;

/// A set of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks(u32);

impl Checks {
    /// No check.
    pub const NONE: Checks = Checks(0);
    /// Accesses out of bounds, misaligned, to freed memory or to the wrong space, memory that is freed twice, and stack
    /// overflows. Costs nothing: kernels always run with these checks.
    pub const MEMORY: Checks = Checks(1);
    /// Reads of uninitialised memory.
    pub const INIT: Checks = Checks(2);
    /// Unordered accesses to the same byte, one of them a write.
    pub const RACE: Checks = Checks(4);
    /// Barriers that only some of the threads reach, wrong masks of warp-level instructions, and deadlocks.
    pub const SYNC: Checks = Checks(8);
    /// Memory that the program did not free, and objects that it did not destroy.
    pub const LEAKS: Checks = Checks(16);
    /// All checks of kernels: memory, init, race and sync.
    pub const KERNELS: Checks = Checks(15);

    /// Returns true if this set has all checks of another set.
    #[must_use]
    pub fn contains(self, other: Checks) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if there is no check in the set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the checks in a list of names, such as `memory,race`.
    ///
    /// # Errors
    /// Returns the first name that is not one of `memory`, `init`, `race`, `sync`, `leaks` and `all`.
    pub fn parse(names: &str) -> Result<Checks, UnknownCheck> {
        let mut checks = Checks::NONE;
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            checks = checks
                | match name {
                    "memory" => Checks::MEMORY,
                    "init" => Checks::INIT,
                    "race" => Checks::RACE,
                    "sync" => Checks::SYNC,
                    "leaks" => Checks::LEAKS,
                    "all" => Checks::KERNELS | Checks::LEAKS,
                    _ => return Err(UnknownCheck(name.to_owned())),
                };
        }
        Ok(checks)
    }

    /// Returns the name of a single check, as findings display it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Checks::MEMORY => "memory",
            Checks::INIT => "init",
            Checks::RACE => "race",
            Checks::SYNC => "sync",
            _ => "leak",
        }
    }
}

impl BitOr for Checks {
    type Output = Checks;

    fn bitor(self, other: Checks) -> Checks {
        Checks(self.0 | other.0)
    }
}

/// The name of a check that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCheck(pub String);

impl fmt::Display for UnknownCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a check: use memory, init, race, sync, leaks or all",
            self.0
        )
    }
}

impl std::error::Error for UnknownCheck {}

/// An error that a checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The check that found the error, never a set of several.
    pub check: Checks,
    /// Name of the kernel; empty for a leak, and for a race without a kernel, such as one between two copies.
    pub kernel: String,
    /// A description of the error, without its places.
    pub problem: String,
    /// The instructions that cause the error, the later one of a race first. Leaks, copies, fills and the program's own
    /// code have none.
    pub places: Vec<Place>,
    /// The allocation of global memory that was accessed or not freed.
    pub allocation: Option<AllocationPlace>,
    /// A way to correct the program.
    pub advice: &'static str,
}

/// An instruction of a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Place {
    /// The access or other operation, as a verb phrase such as `writes 4 bytes`.
    pub action: String,
    /// File and line in the CUDA source, if the kernel was compiled with line information.
    pub source: Option<(String, u32)>,
    /// Line in the PTX source.
    pub ptx_line: u32,
    /// Coordinates of the block.
    pub block: [u32; 3],
    /// Coordinates of the thread in its block.
    pub thread: [u32; 3],
}

/// A place in an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationPlace {
    /// First address of the allocation.
    pub base: u64,
    /// Size of the allocation in bytes.
    pub bytes: u64,
    /// Distance in bytes from `base` to the accessed address, which may be past the end; 0 for a leak.
    pub offset: u64,
    /// The kind of memory and, if known, the place in the program that allocated it.
    pub origin: String,
}

impl AllocationPlace {
    /// Returns the place of an address in global memory.
    pub(crate) fn of(address: u64) -> Option<Self> {
        let Allocation { base, bytes, kind, .. } = address_space().nearest(address)?;
        let offset = address.checked_sub(base)?;
        // An address far past an allocation is not related to it.
        (offset < bytes.saturating_add(512)).then(|| AllocationPlace {
            base,
            bytes,
            offset,
            origin: match address_space().origin(base) {
                Some(origin) => format!("{}, allocated at {origin}", kind.description()),
                None => kind.description().to_owned(),
            },
        })
    }
}

impl Place {
    /// Returns the place of an instruction of a function.
    pub(crate) fn new(
        function: Option<&Function>,
        action: String,
        ptx_line: u32,
        block: [u32; 3],
        thread: [u32; 3],
    ) -> Self {
        let source = function.and_then(|f| {
            let place = f.location(ptx_line)?.place;
            Some((f.source.file(place.file)?.to_owned(), place.line))
        });
        Place {
            action,
            source,
            ptx_line,
            block,
            thread,
        }
    }

    /// Returns the line in the CUDA source, or the PTX line without line information.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.source.as_ref().map_or(self.ptx_line, |(_, line)| *line)
    }
}

impl Finding {
    /// Returns the finding that the allocation at an address was not freed; `None` if there is no allocation.
    #[must_use]
    pub fn leak(address: u64) -> Option<Finding> {
        let allocation = AllocationPlace::of(address)?;
        Some(Finding {
            check: Checks::LEAKS,
            kernel: String::new(),
            problem: format!("{} bytes were not freed", allocation.bytes),
            places: Vec::new(),
            allocation: Some(allocation),
            advice: "free the memory, or drop its owner",
        })
    }
}

impl Finding {
    /// Returns the finding that an object, such as a stream, was not destroyed.
    #[must_use]
    pub fn leaked_object(kind: &str, handle: usize, origin: Option<&str>) -> Finding {
        let made = origin.map_or_else(String::new, |origin| format!(", made at {origin},"));
        Finding {
            check: Checks::LEAKS,
            kernel: String::new(),
            problem: format!("{kind} {handle:#x}{made} was not destroyed"),
            places: Vec::new(),
            allocation: None,
            advice: "destroy it, or drop its owner",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        match &self.source {
            Some((file, line)) => write!(f, "{file}:{line}")?,
            None => write!(f, "PTX line {}", self.ptx_line)?,
        }
        write!(f, ": thread [{tx},{ty},{tz}] of block [{bx},{by},{bz}] {}", self.action)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.check.name())?;
        if !self.kernel.is_empty() {
            write!(f, "`{}`: ", self.kernel)?;
        }
        f.write_str(&self.problem)?;
        for place in &self.places {
            write!(f, "\n    {place}")?;
        }
        if let Some(AllocationPlace {
            base,
            bytes,
            offset,
            origin,
        }) = &self.allocation
        {
            f.write_str("\n    ")?;
            if self.check != Checks::LEAKS {
                write!(f, "the address is {offset} bytes into ")?;
            }
            write!(f, "the {bytes} bytes at {base:#x}: {origin}")?;
        }
        if !self.advice.is_empty() {
            write!(f, "\n    {}", self.advice)?;
        }
        Ok(())
    }
}
