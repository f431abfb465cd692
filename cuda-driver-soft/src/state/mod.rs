//! The state of the process that every call looks at: the gate, the settings, the tables of handles. Knows no type of
//! object.
#![forbid(unsafe_code)]

pub(crate) mod error;
pub(crate) mod gate;
pub(crate) mod handle;
pub(crate) mod hash;
pub(crate) mod profile;
pub(crate) mod settings;
