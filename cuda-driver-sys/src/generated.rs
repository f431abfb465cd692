//! What `cargo xtask bindings` wrote; with the feature `bindgen`, that and what the user's header adds to it.

/// The text of one generated file.
macro_rules! generated {
    ($file:literal) => {
        #[cfg(not(feature = "bindgen"))]
        include!(concat!("generated/", $file));
        #[cfg(feature = "bindgen")]
        include!(concat!(env!("OUT_DIR"), "/", $file));
    };
}

#[allow(missing_docs)]
pub(crate) mod constants {
    generated! { "constants.rs" }
}

#[allow(missing_docs, non_camel_case_types, non_upper_case_globals)]
pub(crate) mod enumerations {
    generated! { "enumerations.rs" }
}

pub(crate) mod facts {
    generated! { "facts.rs" }
}

#[macro_use]
mod functions {
    generated! { "functions.rs" }
}

// The committed records have the sizes and offsets of these on every platform of 64 bits, which the tests of this crate
// see to. Those of another header are checked where it is.
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
mod layout {
    generated! { "layout.rs" }
}

#[allow(missing_docs, missing_debug_implementations)]
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
pub(crate) mod records {
    generated! { "records.rs" }
}
