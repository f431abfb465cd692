//! What `cargo xtask bindings` wrote.

#[rustfmt::skip]
#[allow(missing_docs)]
pub(crate) mod constants;
#[rustfmt::skip]
#[allow(missing_docs, non_camel_case_types, non_upper_case_globals)]
pub(crate) mod enumerations;
#[rustfmt::skip]
#[macro_use]
mod functions;
#[cfg(target_pointer_width = "64")]
#[rustfmt::skip]
mod layout;
#[rustfmt::skip]
#[allow(missing_docs, missing_debug_implementations, non_camel_case_types, non_snake_case, non_upper_case_globals)]
pub(crate) mod records;
