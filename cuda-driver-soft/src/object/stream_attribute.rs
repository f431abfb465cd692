//! Attributes of streams: hints, kept to be asked for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::{CUdevice_attribute as Attribute, CUlaunchAttributeID as Id};

use crate::object::stream::StreamRef;
use crate::state::error::{Error, Result};

/// An access policy window, as its bytes.
pub(crate) type Window = [u8; 32];

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    /// `CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW`
    Window(Window),
    /// `CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY`, `_PRIORITY`, `_MEM_SYNC_DOMAIN`
    Number(i32),
    /// `CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP`: those of memory of the device and of others.
    Domains([u8; 2]),
}

/// What kind of value an attribute has; `None`: it it is not an attribute of streams.
pub(crate) fn kind(attribute: Id) -> Option<AttributeValue> {
    match attribute {
        WINDOW => Some(AttributeValue::Window([0; 32])),
        POLICY | PRIORITY | DOMAIN => Some(AttributeValue::Number(0)),
        DOMAINS => Some(AttributeValue::Domains([0; 2])),
        _ => None,
    }
}

const WINDOW: Id = Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
const POLICY: Id = Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
const PRIORITY: Id = Id::CU_LAUNCH_ATTRIBUTE_PRIORITY;
const DOMAINS: Id = Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
const DOMAIN: Id = Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;

/// What was set of a stream.
#[derive(Clone, Copy, Debug)]
struct Attributes {
    window: Window,
    policy: i32,
    domains: [u8; 2],
    domain: i32,
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes {
            window: [0; 32],
            // As recorded: before one is set there is none.
            policy: -1,
            domains: [0, 1],
            domain: 0,
        }
    }
}

/// By the stream's number; what is not here is as it was at first.
fn all() -> MutexGuard<'static, HashMap<u64, Attributes>> {
    static ALL: OnceLock<Mutex<HashMap<u64, Attributes>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// `cuStreamGetAttribute`
pub(crate) fn get(stream: &StreamRef, attribute: Id) -> Result<AttributeValue> {
    let known = all().get(&stream.id()).copied().unwrap_or_default();
    Ok(match attribute {
        WINDOW => AttributeValue::Window(known.window),
        POLICY => AttributeValue::Number(known.policy),
        PRIORITY => AttributeValue::Number(stream.priority),
        DOMAINS => AttributeValue::Domains(known.domains),
        DOMAIN => AttributeValue::Number(known.domain),
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    })
}

/// `cuStreamSetAttribute`
pub(crate) fn set(stream: &StreamRef, attribute: Id, value: AttributeValue) -> Result<()> {
    let mut all = all();
    let mut known = all.get(&stream.id()).copied().unwrap_or_default();
    let count = stream
        .context
        .device
        .limit(Attribute::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
    match (attribute, value) {
        (WINDOW, AttributeValue::Window(window)) => known.window = window,
        (POLICY, AttributeValue::Number(policy @ 1..=4)) => known.policy = policy,
        // As recorded: brought into its range.
        (PRIORITY, AttributeValue::Number(priority)) => stream.set_priority(priority),
        (DOMAINS, AttributeValue::Domains(domains))
            if domains.iter().all(|&d| u32::from(d) < count) =>
        {
            known.domains = domains;
        }
        (DOMAIN, AttributeValue::Number(domain @ 0..=1)) => known.domain = domain,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
    all.insert(stream.id(), known);
    Ok(())
}

/// `cuStreamCopyAttributes`
pub(crate) fn copy(to: &StreamRef, from: &StreamRef) {
    let mut all = all();
    let known = all.get(&from.id()).copied().unwrap_or_default();
    all.insert(to.id(), known);
    to.set_priority(from.priority);
}

/// A stream that is destroyed.
pub(crate) fn forget(stream: u64) {
    all().remove(&stream);
}
