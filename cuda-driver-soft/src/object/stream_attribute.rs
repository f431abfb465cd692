//! Attributes of streams. They do not change how work runs here, but can be queried.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::{
    CUaccessPolicyWindow, CUaccessProperty, CUdevice_attribute as Attribute, CUlaunchAttributeID as Id,
};

use crate::object::device::Device;
use crate::object::stream::StreamRef;
use crate::queue::streams::QueueId;
use crate::state::error::{Error, Result};

/// The bytes of a `CUaccessPolicyWindow`.
pub(crate) type Window = [u8; size_of::<CUaccessPolicyWindow>()];

/// The value of a stream attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamAttributeValue {
    /// `CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW`
    Window(Window),
    /// `CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY`, `_PRIORITY`, `_MEM_SYNC_DOMAIN`
    Number(i32),
    /// `CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP`: the default and the remote domain.
    Domains([u8; 2]),
}

/// Returns a zero value of the attribute's type, or `None` if streams do not have this attribute.
pub(crate) fn kind(attribute: Id) -> Option<StreamAttributeValue> {
    match attribute {
        WINDOW => Some(StreamAttributeValue::Window([0; 32])),
        POLICY | PRIORITY | DOMAIN => Some(StreamAttributeValue::Number(0)),
        DOMAINS => Some(StreamAttributeValue::Domains([0; 2])),
        _ => None,
    }
}

const WINDOW: Id = Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
const POLICY: Id = Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
const PRIORITY: Id = Id::CU_LAUNCH_ATTRIBUTE_PRIORITY;
const DOMAINS: Id = Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
const DOMAIN: Id = Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;

/// The attributes of a stream.
#[derive(Clone, Copy, Debug)]
struct StreamAttributes {
    window: Window,
    policy: i32,
    domains: [u8; 2],
    domain: i32,
}

impl Default for StreamAttributes {
    fn default() -> Self {
        StreamAttributes {
            window: [0; 32],
            // Driver 580 returns -1 until a policy is set.
            policy: -1,
            domains: [0, 1],
            domain: 0,
        }
    }
}

/// The attributes of all streams by the ID of their context and their queue. A stream without an entry has the
/// defaults.
type AllAttributes = HashMap<(u64, QueueId), StreamAttributes>;

/// Locks the attributes.
fn all() -> MutexGuard<'static, AllAttributes> {
    static ALL: OnceLock<Mutex<AllAttributes>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn key(stream: &StreamRef) -> (u64, QueueId) {
    (stream.context.id(), stream.queue)
}

/// `cuStreamGetAttribute`
pub(crate) fn get(stream: &StreamRef, attribute: Id) -> Result<StreamAttributeValue> {
    let known = all().get(&key(stream)).copied().unwrap_or_default();
    Ok(match attribute {
        WINDOW => StreamAttributeValue::Window(known.window),
        POLICY => StreamAttributeValue::Number(known.policy),
        PRIORITY => StreamAttributeValue::Number(stream.priority),
        DOMAINS => StreamAttributeValue::Domains(known.domains),
        DOMAIN => StreamAttributeValue::Number(known.domain),
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    })
}

/// `cuStreamSetAttribute`
pub(crate) fn set(stream: &StreamRef, attribute: Id, value: StreamAttributeValue) -> Result<()> {
    let mut all = all();
    let mut known = all.get(&key(stream)).copied().unwrap_or_default();
    let count = stream
        .context
        .device
        .limit(Attribute::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
    match (attribute, value) {
        (WINDOW, StreamAttributeValue::Window(window)) => {
            check_window(&window, stream.context.device)?;
            known.window = window;
        }
        (POLICY, StreamAttributeValue::Number(policy @ 1..=4)) => known.policy = policy,
        // Driver 580 clamps the priority.
        (PRIORITY, StreamAttributeValue::Number(priority)) => stream.set_priority(priority),
        (DOMAINS, StreamAttributeValue::Domains(domains)) if domains.iter().all(|&d| u32::from(d) < count) => {
            known.domains = domains;
        }
        (DOMAIN, StreamAttributeValue::Number(domain @ 0..=1)) => known.domain = domain,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
    all.insert(key(stream), known);
    Ok(())
}

/// Checks an access policy window of a stream or a launch: it has at most as many bytes as the device allows and a
/// ratio from 0 to 1, and misses do not persist.
pub(crate) fn check_window(window: &Window, device: &Device) -> Result<()> {
    let longest = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    let word = |start: usize| std::array::from_fn(|i| window[start + i]);
    let bytes = std::array::from_fn(|i| window[mem::offset_of!(CUaccessPolicyWindow, num_bytes) + i]);
    let ratio = f32::from_ne_bytes(word(mem::offset_of!(CUaccessPolicyWindow, hitRatio)));
    let misses = u32::from_ne_bytes(word(mem::offset_of!(CUaccessPolicyWindow, missProp)));
    let is_possible = usize::from_ne_bytes(bytes) <= longest as usize
        && (0.0..=1.0).contains(&ratio)
        && misses != CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING.0;
    is_possible.then_some(()).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

/// `cuStreamCopyAttributes`: both streams must be of one context.
pub(crate) fn copy(to: &StreamRef, from: &StreamRef) -> Result<()> {
    if to.context.id() != from.context.id() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut all = all();
    let known = all.get(&key(from)).copied().unwrap_or_default();
    all.insert(key(to), known);
    to.set_priority(from.priority);
    Ok(())
}

/// Removes the attributes of a destroyed stream.
pub(crate) fn forget(context: u64, queue: QueueId) {
    all().remove(&(context, queue));
}

/// Removes the attributes of all streams of a context that ends, including its legacy and per-thread streams.
pub(crate) fn forget_context(context: u64) {
    all().retain(|(of, _), _| *of != context);
}
