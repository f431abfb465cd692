//! The generated bindings. With the feature `bindgen`, the build script adds the items of a newer header.

/// Includes one generated file.
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

mod table {
    generated! { "table.rs" }
}

// Asserts the layout of records on 64-bit platforms: in this crate's tests for the committed bindings, and in every
// build for those with another header.
#[cfg(all(target_pointer_width = "64", any(test, feature = "bindgen")))]
mod layout {
    generated! { "layout.rs" }
}

#[allow(missing_docs, missing_debug_implementations)]
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
pub(crate) mod records {
    generated! { "records.rs" }
}
