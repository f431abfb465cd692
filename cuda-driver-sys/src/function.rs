//! The registry of exported functions, available without a driver and without any feature.

use core::ffi::CStr;
use core::fmt;

use crate::generated::facts::{FACTS, GROUPS, SYMBOLS};
use crate::text::piece;

/// The meaning of NULL as a stream for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamMode {
    /// The function has no twin for per-thread default streams.
    None,
    /// NULL is the legacy default stream; the function has a twin for per-thread default streams.
    Legacy,
    /// NULL is the calling thread's default stream: a `_ptds` or `_ptsz` export.
    PerThread,
}

/// An exported function of the driver, with its entry in the registry.
///
/// The associated constants have the names of the free functions: `Function::cuMemAlloc_v2` is that export, and
/// `Function::cuMemAlloc` is the same one under its plain C name. Exports whose own name means another export in C are
/// constants in [`legacy::function`](crate::legacy::function).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(u16);

/// The columns of the table [`FACTS`], which has one row for each function and one more that marks the end.
mod fact {
    /// Offset of the symbol in `SYMBOLS`.
    pub(super) const SYMBOL: usize = 0;
    /// Length of the base name, which is the symbol without its suffix.
    pub(super) const BASE: usize = 1;
    /// The version that introduced the function.
    pub(super) const SINCE: usize = 2;
    /// The stream mode: 0 for none, 1 for legacy, 2 for per-thread.
    pub(super) const STREAM_MODE: usize = 3;
    /// Index of the per-thread twin, or 0 for none: function 0 is no function's twin.
    pub(super) const TWIN: usize = 4;
    /// Index of the group in `GROUPS`.
    pub(super) const GROUP: usize = 5;
    /// Index of the first parameter in `PARAMETERS`.
    pub(super) const PARAMETER: usize = 6;
}

macro_rules! numbers {
    (
        $own_count:literal of $count:literal;
        own { $($own:ident = $at:literal;)* }
        legacy { $($old:ident = $old_at:literal;)* }
        plain { $($plain:ident = $target:ident;)* }
    ) => {
        /// The number of exports that have their own name in C. They come first in the table.
        const OWN: usize = $own_count;

        static PLAIN: &[(&str, Function)] = &[$((stringify!($plain), Function::$plain)),*];

        #[allow(non_upper_case_globals)]
        impl Function {
            $(
                /// The export of this name.
                pub const $own: Self = Self($at);
            )*
            $(
                /// The export that has this name in C.
                pub const $plain: Self = Self::$target;
            )*

            /// The number of exports.
            pub const COUNT: usize = $count;
        }

        /// Registry entries of the exports in [`legacy`](crate::legacy).
        #[allow(non_upper_case_globals)]
        pub mod old {
            use super::Function;

            $(
                /// The export of this name, which means another export in C.
                pub const $old: Function = Function($old_at);
            )*
        }

        /// The constants with their names in C.
        #[cfg(test)]
        const NAMED: &[(&str, Function)] = &[
            $((stringify!($own), Function::$own),)*
            $((stringify!($old), old::$old),)*
        ];
    };
}
generated! { "numbers.rs" }

const _: () = assert!(FACTS.len() == Function::COUNT + 1);

impl Function {
    /// Every function, in the order of [`index`](Self::index).
    pub const ALL: &'static [Self] = {
        const ALL: [Function; Function::COUNT] = {
            let mut all = [Function(0); Function::COUNT];
            let mut index = 0;
            while index < all.len() {
                all[index] = Function(index as u16);
                index += 1;
            }
            all
        };
        &ALL
    };

    /// Returns the function's index, below [`COUNT`](Self::COUNT). It differs between versions of these bindings.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the function with an index that [`index`](Self::index) returned, or `None` if the index is out of range.
    #[inline]
    #[must_use]
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT {
            Some(Self(index as u16))
        } else {
            None
        }
    }

    #[inline]
    const fn fact(self, which: usize) -> u16 {
        // In bounds: every `Function` is made from the table or checked against `COUNT`.
        FACTS[self.0 as usize][which]
    }

    /// Returns the offsets of this function's symbol and of the next one.
    const fn symbol_range(self) -> (usize, usize) {
        (
            self.fact(fact::SYMBOL) as usize,
            FACTS[self.0 as usize + 1][fact::SYMBOL] as usize,
        )
    }

    /// Returns the index of the first parameter of the function that is `further` rows after this one.
    pub(crate) const fn first_parameter(self, further: usize) -> usize {
        FACTS[self.0 as usize + further][fact::PARAMETER] as usize
    }

    /// Returns the exported symbol, for instance `cuMemAlloc_v2`.
    #[inline]
    #[must_use]
    pub const fn name(self) -> &'static str {
        let (start, end) = self.symbol_range();
        // The NUL byte after the symbol is left out.
        piece(SYMBOLS, start, end - 1)
    }

    /// Returns the exported symbol as a C string.
    #[inline]
    #[must_use]
    pub const fn symbol(self) -> &'static CStr {
        let (start, end) = self.symbol_range();
        let bytes = SYMBOLS.as_bytes().split_at(end).0.split_at(start).1;
        // SAFETY: both offsets are starts of symbols, and each symbol is followed by one NUL.
        unsafe { CStr::from_bytes_with_nul_unchecked(bytes) }
    }

    /// Returns the base name, which `cuGetProcAddress` takes, for instance `cuMemAlloc`.
    #[inline]
    #[must_use]
    pub const fn base(self) -> &'static str {
        let (start, _) = self.symbol_range();
        piece(SYMBOLS, start, start + self.fact(fact::BASE) as usize)
    }

    /// Returns the CUDA version that introduced the function, as 1000 × major + 10 × minor: 12050 is CUDA 12.5.
    #[inline]
    #[must_use]
    pub const fn since(self) -> u32 {
        self.fact(fact::SINCE) as u32
    }

    /// Returns the function's group in the manual, for instance `CUDA_MEM`; `None` for a function of a header that is
    /// newer than these bindings.
    #[inline]
    #[must_use]
    pub const fn group(self) -> Option<&'static str> {
        let group = GROUPS[self.fact(fact::GROUP) as usize];
        if group.is_empty() { None } else { Some(group) }
    }

    /// Returns the meaning of NULL as a stream.
    #[inline]
    #[must_use]
    pub const fn stream_mode(self) -> StreamMode {
        match self.fact(fact::STREAM_MODE) {
            0 => StreamMode::None,
            1 => StreamMode::Legacy,
            _ => StreamMode::PerThread,
        }
    }

    /// Returns the per-thread twin, for instance `cuMemcpyHtoD_v2_ptds`: its default stream is the calling thread's
    /// own.
    #[inline]
    #[must_use]
    pub const fn per_thread(self) -> Option<Self> {
        match self.fact(fact::TWIN) {
            0 => None,
            twin => Some(Self(twin)),
        }
    }

    /// Returns true if the function's own name means another export in C. It is then in [`legacy`](crate::legacy) only.
    #[inline]
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        self.0 as usize >= OWN
    }

    /// Returns true for an export from before CUDA 3.2 that was replaced by a `_v2` of CUDA 3.2. All of these have
    /// 32-bit device pointers or sizes, except the legacy `cuCtxCreate`.
    #[inline]
    #[must_use]
    pub fn is_32_bit(self) -> bool {
        const WIDENED: u32 = 3020;
        let replaced = |other: &Self| other.base() == self.base() && other.since() == WIDENED;
        self.is_legacy() && Self::ALL.iter().any(replaced)
    }

    /// Returns the export with exactly this symbol.
    #[inline]
    #[must_use]
    pub fn by_symbol(symbol: &str) -> Option<Self> {
        let (own, legacy) = Self::ALL.split_at(OWN);
        [own, legacy].into_iter().find_map(|part| {
            let place = part.binary_search_by(|function| function.name().cmp(symbol));
            place.ok().map(|place| part[place])
        })
    }

    /// Returns the function with this name in Rust and, for plain names, in C: `cuMemAlloc` is `cuMemAlloc_v2`.
    #[inline]
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match PLAIN.binary_search_by(|(plain, _)| plain.cmp(&name)) {
            Ok(at) => Some(PLAIN[at].1),
            Err(_) => Self::by_symbol(name).filter(|function| !function.is_legacy()),
        }
    }

    /// Returns the plain names whose export has another symbol, each with its export, sorted by name.
    #[inline]
    #[must_use]
    pub fn plain_names() -> &'static [(&'static str, Self)] {
        PLAIN
    }
}

impl fmt::Debug for Function {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Function {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{Function, NAMED, OWN};

    #[test]
    fn each_constant_is_the_index_of_its_name() {
        assert_eq!(NAMED.len(), Function::COUNT);
        for (index, (name, function)) in NAMED.iter().enumerate() {
            assert_eq!(function.name(), *name);
            assert_eq!(function.is_legacy(), index >= OWN, "{name}");
        }
    }
}
