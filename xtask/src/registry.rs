//! The registry: all facts about the driver's functions and types.
//!
//! The newest `cuda.h` and `cudaTypedefs.h` give signatures, types and versions; the last `cuda.h` of CUDA 12 gives the
//! plain names; `annotations.toml` gives the descriptions and rules. The enumerations that are flag sets and the
//! integers that are handles are lists in the code. Every file that `cargo xtask generate` writes, except `PTX.md`, is
//! written from the registry.

use std::collections::BTreeSet;

use crate::annotations::Annotations;
use crate::bindings::model::{Enumeration, Model, type_text};
use crate::bindings::registry::{Entry, StreamMode};
use crate::bindings::{self, render};
use crate::files::read;
use crate::{headers, plain_names};

/// The newest header together with the annotations.
pub(crate) struct Registry {
    pub(crate) header: Model,
    /// Every exported function, sorted by symbol.
    pub(crate) functions: Vec<Entry>,
    /// The symbols that a C program compiled with this header and default options can call; per-thread variants are not
    /// among them.
    pub(crate) current: BTreeSet<String>,
    pub(crate) annotations: Annotations,
}

impl Registry {
    /// Reads the header and the annotations.
    pub(crate) fn read() -> Result<Self, String> {
        let input = headers::generator_input()?;
        let header = bindings::read_header(&input)?;
        // Without this macro, the header declares the exports that C programs call by default.
        let mut plainly = input;
        plainly.clang_args.push("-U__CUDA_API_VERSION_INTERNAL".to_owned());
        let current = bindings::read_header(&plainly)?.functions;
        let annotations = Annotations::read()?;
        let typedefs = read(&headers::current()?.join("cudaTypedefs.h"))?;
        let frozen = read(&headers::frozen()?.join("cuda.h"))?;
        let mut functions = plain_names::registry(&header.functions, &typedefs, &frozen)?;
        for function in &mut functions {
            function.group = annotations.group(&function.symbol).to_owned();
            function.does = annotations.does(&function.symbol).to_owned();
        }
        Ok(Self {
            header,
            functions,
            current: current.into_iter().map(|function| function.name).collect(),
            annotations,
        })
    }

    /// Returns the registry for a test; `None` if the headers have not been fetched.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Option<Self> {
        if !headers::are_fetched() {
            println!("needs the headers: run `cargo xtask headers`");
            return None;
        }
        Some(Self::read().expect("the header and the annotations"))
    }

    /// Returns the exported function of this name.
    pub(crate) fn find(&self, symbol: &str) -> Option<&Entry> {
        self.functions.iter().find(|entry| entry.symbol == symbol)
    }

    /// Returns the header's enumeration of this name.
    fn enumeration(&self, name: &str) -> Option<&Enumeration> {
        let mut all = self.header.enumerations.iter();
        all.find(|enumeration| enumeration.name == name)
    }

    /// Returns true if the header has an enumeration of this name.
    pub(crate) fn is_enumeration(&self, name: &str) -> bool {
        self.enumeration(name).is_some()
    }

    /// Returns true if this is an enumeration whose values are bits that are combined.
    pub(crate) fn is_flag_set(&self, name: &str) -> bool {
        self.is_enumeration(name) && render::FLAG_SETS.contains(&name)
    }

    /// Returns true if the header has this result code, written without `CUDA_ERROR_`.
    pub(crate) fn is_result(&self, code: &str) -> bool {
        let name = format!("CUDA_ERROR_{code}");
        self.enumeration("CUresult")
            .is_some_and(|results| results.values.iter().any(|(value, _)| *value == name))
    }

    /// Returns the constants that `of` stands for: one name, or a prefix followed by `*`.
    pub(crate) fn constants<'a>(&'a self, of: &'a str) -> impl Iterator<Item = &'a str> {
        let prefix = of.strip_suffix('*');
        let names = self.header.constants.iter().map(|one| one.name.as_str());
        names.filter(move |name| match prefix {
            Some(prefix) => name.starts_with(prefix),
            None => *name == of,
        })
    }

    /// Returns true if a type is a handle: a pointer to an opaque structure, or one of the integers that the driver
    /// uses as handles.
    pub(crate) fn is_handle(&self, base: &str) -> bool {
        const NUMBERS: &[&str] = &[
            "CUtexObject",
            "CUsurfObject",
            "CUmemGenericAllocationHandle",
            "CUgraphConditionalHandle",
        ];
        let alias = self.header.aliases.iter().find(|alias| alias.name == base);
        NUMBERS.contains(&base) || alias.is_some_and(|alias| type_text(&alias.target).starts_with("*mut CU"))
    }
}

/// Returns the plain names (without a version or stream suffix) that mean this export: its own symbol if it is one and
/// means this export, then the aliases. Empty for exports that C programs call only by a versioned name, such as
/// `cuCtxSynchronize_v2`.
pub(crate) fn plain_names_of(entry: &Entry) -> Vec<&str> {
    let mut plain: Vec<&str> = entry.aliases.iter().map(String::as_str).collect();
    if entry.stream != StreamMode::PerThread && !entry.legacy && entry.symbol == entry.base {
        plain.insert(0, &entry.symbol);
    }
    plain
}
