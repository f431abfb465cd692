//! The registry of exported functions, as data: usable without a driver and without any feature.

use core::ffi::CStr;
use core::fmt;

use crate::generated::facts::{FACTS, GROUPS, SYMBOLS};
use crate::text::piece;

/// Expands `$callback!` once with all 685 exports in one list.
///
/// What follows the callback's name is passed on first, in brackets. Each entry reads
/// `symbol(parameter: Type, …) base-name since stream-mode;`, where the stream mode is `none`, `legacy(twin)` or
/// `per_thread`. The types are those of this crate's root and of `core::ffi`; both must be in scope.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_function {
    ($callback:ident $($extra:tt)*) => {
        $crate::api_table! { $crate::__flatten_table; $callback $($extra)* }
    };
}

/// Hands the own and the legacy exports on as one list.
#[doc(hidden)]
#[macro_export]
macro_rules! __flatten_table {
    ([$callback:ident $($extra:tt)*]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $odoc:literal $oat:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $ldoc:literal $lat:literal;)* }
        plain { $($plain:tt)* }
    ) => {
        $callback! { [$($extra)*]
            $($own ($($op: $ot),*) $obase $osince $ostream $(($otwin))?;)*
            $($old ($($lp: $lt),*) $lbase $lsince $lstream $(($ltwin))?;)*
        }
    };
}

/// How an export treats the default stream, which is what NULL means as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamMode {
    /// The function has one form only.
    None,
    /// NULL is the legacy default stream; the function has a twin for per-thread default streams.
    Legacy,
    /// A `_ptds` or `_ptsz` export: NULL is the calling thread's own default stream.
    PerThread,
}

/// One exported function of the driver: its name and what the registry knows of it.
///
/// The associated constants are named as the free functions are: `Function::cuMemAlloc_v2` is that export,
/// `Function::cuMemAlloc` the same one under its plain C name. Exports whose own name is taken by a plain name are the
/// constants of [`legacy::function`](crate::legacy::function).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(u16);

/// What is known of one function, a row of the table: these are its columns. Behind the last row stands an end.
mod fact {
    /// Where its symbol begins.
    pub(super) const SYMBOL: usize = 0;
    /// How much of the symbol is the base name: it only lacks the suffix.
    pub(super) const BASE: usize = 1;
    /// The version that introduced it.
    pub(super) const SINCE: usize = 2;
    /// The stream mode: none, legacy, per thread.
    pub(super) const STREAM_MODE: usize = 3;
    /// The place of its per-thread twin, or 0, which is none's.
    pub(super) const TWIN: usize = 4;
    /// The place of its group.
    pub(super) const GROUP: usize = 5;
    /// The place of its first parameter.
    pub(super) const PARAMETER: usize = 6;
}

macro_rules! define {
    ([]
        own { $($own:ident ($($op:ident: $ot:ty),*) $obase:ident $osince:literal $ostream:ident $(($otwin:ident))? $ogroup:literal $odoc:literal $oat:literal;)* }
        legacy { $($old:ident ($($lp:ident: $lt:ty),*) $lbase:ident $lsince:literal $lstream:ident $(($ltwin:ident))? $lgroup:literal $ldoc:literal $lat:literal;)* }
        plain { $($plain:ident = $target:ident ($($pp:ident: $pt:ty),*) $pdoc:literal;)* }
    ) => {
        /// The numbers of the table are the places in it.
        const _: () = {
            let numbers = [$($oat,)* $($lat,)*];
            let mut place = 0;
            while place < numbers.len() {
                assert!(numbers[place] == place);
                place += 1;
            }
        };

        /// How many exports go by their own name; the others follow.
        const OWN: usize = [$(stringify!($own)),*].len();

        static PLAIN: &[(&str, Function)] = &[$((stringify!($plain), Function::$plain)),*];

        #[allow(non_upper_case_globals)]
        impl Function {
            $(
                /// The export of this name.
                pub const $own: Self = Self($oat);
            )*
            $(
                /// The export that C calls by this name.
                pub const $plain: Self = Self::$target;
            )*

            /// How many exports there are.
            pub const COUNT: usize = OWN + [$(stringify!($old)),*].len();
        }

        /// The exports of [`legacy`](crate::legacy), as data: constants of the type [`Function`](crate::Function), as
        /// those of that type itself.
        #[allow(non_upper_case_globals)]
        pub mod old {
            use super::Function;

            $(
                /// The export of this name, which is not what C calls by it.
                pub const $old: Function = Function($lat);
            )*
        }
    };
}
api_table! { define; }

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

    /// The function's place among all, below [`COUNT`](Self::COUNT). It changes from one version of these bindings
    /// to the next.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The function at a place that [`index`](Self::index) gave.
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

    /// Where its symbol begins, and where the next does.
    const fn place(self) -> (usize, usize) {
        (
            self.fact(fact::SYMBOL) as usize,
            FACTS[self.0 as usize + 1][fact::SYMBOL] as usize,
        )
    }

    /// The place of its first parameter, or with 1 of the next function's.
    pub(crate) const fn first_parameter(self, further: usize) -> usize {
        FACTS[self.0 as usize + further][fact::PARAMETER] as usize
    }

    /// The exported symbol, for instance `cuMemAlloc_v2`.
    #[inline]
    #[must_use]
    pub const fn name(self) -> &'static str {
        let (start, end) = self.place();
        // Without the NUL.
        piece(SYMBOLS, start, end - 1)
    }

    /// The exported symbol as a C string.
    #[inline]
    #[must_use]
    pub const fn symbol(self) -> &'static CStr {
        let (start, end) = self.place();
        let bytes = SYMBOLS.as_bytes().split_at(end).0.split_at(start).1;
        // SAFETY: the text has one NUL behind each symbol, and the places are those where symbols begin.
        unsafe { CStr::from_bytes_with_nul_unchecked(bytes) }
    }

    /// The name that `cuGetProcAddress` knows it by, for instance `cuMemAlloc`.
    #[inline]
    #[must_use]
    pub const fn base(self) -> &'static str {
        let (start, _) = self.place();
        piece(SYMBOLS, start, start + self.fact(fact::BASE) as usize)
    }

    /// The CUDA version that introduced it, as 1000 × major + 10 × minor: 12050 is CUDA 12.5.
    #[inline]
    #[must_use]
    pub const fn since(self) -> u32 {
        self.fact(fact::SINCE) as u32
    }

    /// The group of the manual that it is in, for instance `CUDA_MEM`; `None` for a function of a header newer than
    /// these bindings.
    #[inline]
    #[must_use]
    pub const fn group(self) -> Option<&'static str> {
        let group = GROUPS[self.fact(fact::GROUP) as usize];
        if group.is_empty() { None } else { Some(group) }
    }

    /// How it treats the default stream.
    #[inline]
    #[must_use]
    pub const fn stream_mode(self) -> StreamMode {
        match self.fact(fact::STREAM_MODE) {
            0 => StreamMode::None,
            1 => StreamMode::Legacy,
            _ => StreamMode::PerThread,
        }
    }

    /// Its twin whose default stream is the calling thread's own, for instance `cuMemcpyHtoD_v2_ptds`.
    #[inline]
    #[must_use]
    pub const fn per_thread(self) -> Option<Self> {
        match self.fact(fact::TWIN) {
            0 => None,
            twin => Some(Self(twin)),
        }
    }

    /// Whether its own name means another export in C; it is then in [`legacy`](crate::legacy) only.
    #[inline]
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        self.0 as usize >= OWN
    }

    /// Whether it is of the 32-bit era: an export of before CUDA 3.2 whose device pointers or sizes have 32 bits, and
    /// which a `_v2` of CUDA 3.2 replaced.
    #[inline]
    #[must_use]
    pub fn is_32_bit(self) -> bool {
        const WIDENED: u32 = 3020;
        let replaced = |other: &Self| other.base() == self.base() && other.since() == WIDENED;
        self.is_legacy() && Self::ALL.iter().any(replaced)
    }

    /// The export with exactly this symbol.
    #[inline]
    #[must_use]
    pub fn by_symbol(symbol: &str) -> Option<Self> {
        let (own, legacy) = Self::ALL.split_at(OWN);
        [own, legacy].into_iter().find_map(|part| {
            let place = part.binary_search_by(|function| function.name().cmp(symbol));
            place.ok().map(|place| part[place])
        })
    }

    /// The function that goes by this name in Rust and, for plain names, in C: `cuMemAlloc` is `cuMemAlloc_v2`.
    #[inline]
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match PLAIN.binary_search_by(|(plain, _)| plain.cmp(&name)) {
            Ok(at) => Some(PLAIN[at].1),
            Err(_) => Self::by_symbol(name).filter(|function| !function.is_legacy()),
        }
    }

    /// The plain names that are no export's own, and what each means, sorted by name.
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
