//! Memory and events that another process of the same user opens by a handle of 64 bytes.
//!
//! A handle says where the exporting process has a shared file open: it can be opened as long as that process lives and has
//! not freed what it exported.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::context::Context;
use crate::object::memory;
use crate::queue::scheduler::scheduler;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use engine::memory::shared::{Label, Purpose, SharedFile};
use engine::memory::{Access, Allocation, Kind, space};

/// Bytes of a handle.
pub(crate) const BYTES: usize = cuda_driver_sys::CU_IPC_HANDLE_SIZE as usize;
/// What handles begin with.
const MAGIC: [u8; 8] = *b"softcuda";
/// Alignment in bytes of what is opened.
const ALIGN: u64 = 2 << 20;

/// What a handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handle {
    process: u32,
    descriptor: i32,
    /// Of the file: device and number.
    identity: (u64, u64),
    /// Bytes of the allocation; 0 for an event.
    bytes: u64,
}

impl Handle {
    fn of(file: &SharedFile, bytes: u64) -> Self {
        Handle {
            process: std::process::id(),
            descriptor: file.descriptor(),
            identity: file.identity(),
            bytes,
        }
    }

    fn encode(&self) -> [u8; BYTES] {
        let mut all = MAGIC.to_vec();
        all.extend(self.process.to_le_bytes());
        all.extend(self.descriptor.to_le_bytes());
        for number in [self.identity.0, self.identity.1, self.bytes] {
            all.extend(number.to_le_bytes());
        }
        let mut bytes = [0; BYTES];
        bytes[..all.len()].copy_from_slice(&all);
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let number = |at: usize| Some(u64::from_le_bytes(*rest.get(at..)?.first_chunk()?));
        Some(Handle {
            process: number(0)? as u32,
            descriptor: (number(0)? >> 32) as i32,
            identity: (number(8)?, number(16)?),
            bytes: number(24)?,
        })
    }

    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// As recorded, the process that made it cannot open it.
    fn check_foreign(&self) -> Result<()> {
        if self.is_own() {
            host::log!("a handle is opened by another process than the one that made it");
            return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
        }
        Ok(())
    }

    /// Opens the file.
    fn open(&self, purpose: Purpose) -> Result<SharedFile> {
        let file = SharedFile::open_of(self.process, self.descriptor, purpose);
        let file = file.filter(|file| file.identity() == self.identity);
        file.ok_or_else(|| {
            host::log!("process {} does not have what it exported", self.process);
            Error::CUDA_ERROR_INVALID_VALUE
        })
    }
}

/// Moves an allocation to where another process can open it; its handle.
pub(crate) fn share(allocation: Allocation) -> Result<[u8; BYTES]> {
    // What is done to it now is done before it moves.
    memory::drain_owner(&allocation);
    let label = Label {
        purpose: Purpose::Allocation,
        number: memory::device_of(&allocation)? as u32,
    };
    let physical = space().share(&allocation, label);
    let file = physical.as_ref().and_then(|physical| physical.file());
    let file = file.ok_or_else(|| {
        host::log!("the system has no memory that processes share");
        Error::CUDA_ERROR_NOT_SUPPORTED
    })?;
    Ok(Handle::of(file, allocation.bytes).encode())
}

/// Memory of another process that this one has opened.
struct Opened {
    identity: (u64, u64),
    /// Of the mapping.
    id: u64,
    bytes: u64,
    /// How often it is to be closed.
    times: u64,
    /// It came from a pool: it is freed rather than closed.
    is_pooled: bool,
}

/// By its address.
fn opened() -> MutexGuard<'static, BTreeMap<u64, Opened>> {
    static OPENED: Mutex<BTreeMap<u64, Opened>> = Mutex::new(BTreeMap::new());
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cuIpcOpenMemHandle`: its address here. What is open already is there once more.
pub(crate) fn open(context: &Context, handle: &[u8; BYTES]) -> Result<u64> {
    let handle = Handle::decode(handle).ok_or_else(|| {
        host::log!("these bytes are no handle of memory");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    handle.check_foreign()?;
    let file = handle.open(Purpose::Allocation)?;
    let mut opened = opened();
    let again = opened
        .iter_mut()
        .find(|(_, o)| o.identity == handle.identity && !o.is_pooled);
    if let Some((address, again)) = again {
        again.times += 1;
        return Ok(*address);
    }
    keep(&mut opened, &handle, file, context.id(), false)
}

/// `cuMemPoolImportPointer`: its address here, a new one each time, and in the exporting process too.
pub(crate) fn import_pooled(context: &Context, handle: &[u8; BYTES]) -> Result<u64> {
    let handle = Handle::decode(handle).ok_or_else(|| {
        host::log!("these bytes are no pointer of a pool");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    let file = handle.open(Purpose::Allocation)?;
    keep(&mut opened(), &handle, file, context.id(), true)
}

/// `cuIpcCloseMemHandle`: the number of the mapping to unmap, once it was closed as often as opened.
pub(crate) fn close(address: u64) -> Result<Option<u64>> {
    let mut opened = opened();
    let entry = opened.get_mut(&address).filter(|o| !o.is_pooled);
    let entry = entry.ok_or_else(|| {
        host::log!("{address:#x} is not memory of another process");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    if entry.times > 1 {
        entry.times -= 1;
        return Ok(None);
    }
    Ok(Some(entry.id))
}

/// Maps what was opened.
fn keep(
    opened: &mut BTreeMap<u64, Opened>,
    handle: &Handle,
    file: SharedFile,
    owner: u64,
    is_pooled: bool,
) -> Result<u64> {
    let bytes = handle.bytes.min(file.bytes());
    let physical = space().open(file);
    let base = space().reserve_addresses(bytes, ALIGN, 0);
    let base = base.ok_or(Error::CUDA_ERROR_OUT_OF_MEMORY)?;
    if !space().map(base, bytes, &physical, owner, Access::ReadWrite) {
        return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
    }
    let id = space().find(base).map_or(0, |found| found.id);
    let entry = Opened {
        identity: handle.identity,
        id,
        bytes,
        times: 1,
        is_pooled,
    };
    opened.insert(base, entry);
    Ok(base)
}

/// Whether it is memory of another process's pool.
pub(crate) fn is_pooled(allocation: &Allocation) -> bool {
    let opened = opened();
    let entry = opened.get(&allocation.base);
    entry.is_some_and(|o| o.id == allocation.id && o.is_pooled)
}

/// Memory of another process that is closed, or goes with its context.
pub(crate) fn forget(freed: &Allocation) {
    if freed.kind != Kind::Mapped {
        return;
    }
    let mut opened = opened();
    if opened.get(&freed.base).is_some_and(|o| o.id == freed.id)
        && let Some(gone) = opened.remove(&freed.base)
    {
        space().release_addresses(freed.base, gone.bytes);
    }
}

/// What processes know together of an event: how often it was recorded, and up to which of these all is done.
#[derive(Clone, Debug)]
pub(crate) struct Counts(Arc<SharedFile>);

impl Counts {
    /// Of a new event; `None` where processes share no memory.
    pub(crate) fn new() -> Option<Self> {
        let label = Label {
            purpose: Purpose::Event,
            number: 0,
        };
        SharedFile::new(16, label).map(|file| Counts(Arc::new(file)))
    }

    /// `cuIpcGetEventHandle`
    pub(crate) fn export(&self) -> [u8; BYTES] {
        Handle::of(&self.0, 0).encode()
    }

    /// `cuIpcOpenEventHandle`: as recorded, other bytes are what cannot be mapped.
    pub(crate) fn open(handle: &[u8; BYTES]) -> Result<Self> {
        let handle = Handle::decode(handle).ok_or(Error::CUDA_ERROR_MAP_FAILED)?;
        handle.check_foreign()?;
        Ok(Counts(Arc::new(handle.open(Purpose::Event)?)))
    }

    /// One of the counters, which all processes access by atomics.
    #[allow(unsafe_code)] // the memory is that of a shared file
    fn count(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the file has a page at least, aligned, which lives as long as `self`; all processes access it by atomics.
        unsafe { &*self.0.address().cast::<AtomicU64>().add(index) }
    }

    /// Notes that it is being recorded: the work that says when that is done.
    pub(crate) fn record(&self) -> Work {
        let (number, counts) = (self.count(0).fetch_add(1, SeqCst) + 1, self.clone());
        Work::Run(Box::new(move || {
            counts.count(1).fetch_max(number, SeqCst);
            Ok(())
        }))
    }

    /// Whether all that was recorded is done.
    pub(crate) fn are_done(&self) -> bool {
        self.count(1).load(SeqCst) >= self.count(0).load(SeqCst)
    }

    /// A task that waits for what was recorded last.
    pub(crate) fn task(&self) -> TaskId {
        let (number, counts) = (self.count(0).load(SeqCst), self.clone());
        let done = move || Ok(counts.count(1).load(SeqCst) >= number);
        scheduler().submit(&[], Work::Until(Box::new(done)), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_and_junk_is_none() {
        let handle = Handle {
            process: 0x89AB_CDEF,
            descriptor: 77,
            identity: (u64::MAX, 5),
            bytes: 1 << 40,
        };
        assert_eq!(Handle::decode(&handle.encode()), Some(handle));
        assert_eq!(Handle::decode(&[0; BYTES]), None);
        assert_eq!(Handle::decode(&[0x5A; BYTES]), None);
    }
}
