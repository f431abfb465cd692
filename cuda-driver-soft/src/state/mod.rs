//! State of the process: the gate, the settings, the profiles of devices, the result codes and the tables of handles.
//! It is independent of the types of objects.
#![forbid(unsafe_code)]

pub(crate) mod error;
pub(crate) mod gate;
pub(crate) mod handle;
pub(crate) mod profile;
pub(crate) mod settings;
