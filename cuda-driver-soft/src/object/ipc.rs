//! Memory and events that other processes of the same user open through a 64-byte handle.
//!
//! A handle identifies a shared file that the exporting process has open. It can be opened as long as that process runs
//! and has not freed the exported object.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::object::context::Context;
use crate::object::mappings::{self, Mappings, Origin};
use crate::object::memory;
use crate::queue::scheduler::scheduler;
use crate::queue::work::{TaskId, Work};
use crate::state::error::{Error, Result};
use engine::memory::shared::{Label, Purpose, SharedFile};
use engine::memory::{Allocation, address_space};

/// Size of a handle in bytes.
pub(crate) const BYTES: usize = cuda_driver_sys::CU_IPC_HANDLE_SIZE as usize;
/// The first bytes of each handle.
const MAGIC: [u8; 8] = *b"softcuda";

/// The decoded contents of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IpcHandle {
    process: u32,
    descriptor: i32,
    /// Device and inode number of the file.
    identity: (u64, u64),
    /// Size of the allocation in bytes; 0 for an event.
    bytes: u64,
    /// Device and inode number of the file of the memory's pool; 0 if there is none.
    pool: (u64, u64),
}

impl IpcHandle {
    fn of(file: &SharedFile, bytes: u64) -> Self {
        IpcHandle {
            process: std::process::id(),
            descriptor: file.descriptor(),
            identity: file.identity(),
            bytes,
            pool: (0, 0),
        }
    }

    fn encode(&self) -> [u8; BYTES] {
        let mut all = MAGIC.to_vec();
        all.extend(self.process.to_le_bytes());
        all.extend(self.descriptor.to_le_bytes());
        for number in [self.identity.0, self.identity.1, self.bytes, self.pool.0, self.pool.1] {
            all.extend(number.to_le_bytes());
        }
        let mut bytes = [0; BYTES];
        bytes[..all.len()].copy_from_slice(&all);
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let number = |at: usize| Some(u64::from_le_bytes(*rest.get(at..)?.first_chunk()?));
        Some(IpcHandle {
            process: number(0)? as u32,
            descriptor: (number(0)? >> 32) as i32,
            identity: (number(8)?, number(16)?),
            bytes: number(24)?,
            pool: (number(32)?, number(40)?),
        })
    }

    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Refuses a handle of this process: driver 580 returns `CUDA_ERROR_INVALID_CONTEXT` for it.
    fn check_foreign(&self) -> Result<()> {
        if self.is_own() {
            host::log!("IPC handle belongs to this process; only other processes can open it");
            return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
        }
        Ok(())
    }

    /// Opens the file of the exporting process.
    fn open(&self, purpose: Purpose) -> Result<SharedFile> {
        let file = SharedFile::open_of(self.process, self.descriptor, purpose);
        let file = file.filter(|file| file.identity() == self.identity);
        file.ok_or_else(|| {
            host::log!(
                "cannot open the handle: process {} has ended, has freed the exported object or belongs to another \
                 user, or the handle is of another kind",
                self.process
            );
            Error::CUDA_ERROR_INVALID_VALUE
        })
    }
}

/// `cuIpcGetMemHandle`
pub(crate) fn share(allocation: Allocation) -> Result<[u8; BYTES]> {
    Ok(handle_of(allocation)?.encode())
}

/// `cuMemPoolExportPointer` of memory of the pool that the file with this identity represents.
pub(crate) fn share_pooled(allocation: Allocation, pool: (u64, u64)) -> Result<[u8; BYTES]> {
    let handle = handle_of(allocation)?;
    Ok(IpcHandle { pool, ..handle }.encode())
}

/// Moves an allocation to shared memory, if it is not there yet, and returns a handle of it.
fn handle_of(allocation: Allocation) -> Result<IpcHandle> {
    // Finish pending work before the memory moves.
    memory::drain_users(&allocation);
    let label = Label {
        purpose: Purpose::Allocation,
        number: memory::device_of(&allocation)? as u32,
    };
    let physical = address_space().share(&allocation, label);
    let file = physical.as_ref().and_then(|physical| physical.file());
    let file = file.ok_or_else(|| {
        host::log!("shared memory is not available on this system");
        Error::CUDA_ERROR_NOT_SUPPORTED
    })?;
    Ok(IpcHandle::of(file, allocation.bytes))
}

/// `cuIpcOpenMemHandle`: returns the address in this process, which is the same for a handle that is already open.
pub(crate) fn open(context: &Context, handle: &[u8; BYTES]) -> Result<u64> {
    let handle = IpcHandle::decode(handle).ok_or_else(|| {
        host::log!("not an IPC memory handle");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    handle.check_foreign()?;
    let file = handle.open(Purpose::Allocation)?;
    let mut mappings = mappings::lock();
    for (address, mapping) in mappings.all() {
        if let Origin::Opened { identity, times } = &mut mapping.origin
            && *identity == handle.identity
            && *times > 0
        {
            *times += 1;
            return Ok(address);
        }
    }
    let origin = Origin::Opened {
        identity: handle.identity,
        times: 1,
    };
    map(&mut mappings, context, &handle, file, origin)
}

/// `cuMemPoolImportPointer` into the pool that the file with this identity represents: returns a new address each time.
/// The exporting process can import its own pointer.
pub(crate) fn import_pooled(context: &Context, handle: &[u8; BYTES], pool: (u64, u64)) -> Result<u64> {
    let handle = IpcHandle::decode(handle).ok_or_else(|| {
        host::log!("not the exported pointer of a memory pool");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    if handle.pool != pool {
        host::log!("the exported pointer is memory of another pool: import that pool, and pass it");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let file = handle.open(Purpose::Allocation)?;
    map(&mut mappings::lock(), context, &handle, file, Origin::Pooled)
}

/// `cuIpcCloseMemHandle`: returns the ID of the allocation that the caller must free, or `None` if the memory was
/// opened more often than it was closed, including this call.
pub(crate) fn close(address: u64) -> Result<Option<u64>> {
    let mut mappings = mappings::lock();
    let Some(mapping) = mappings.at(address) else {
        return Err(not_opened(address));
    };
    match &mut mapping.origin {
        Origin::Opened { times, .. } if *times > 0 => {
            *times -= 1;
            Ok((*times == 0).then_some(mapping.id))
        }
        _ => Err(not_opened(address)),
    }
}

fn not_opened(address: u64) -> Error {
    host::log!("{address:#x} was not opened by cuIpcOpenMemHandle");
    Error::CUDA_ERROR_INVALID_VALUE
}

/// Maps an opened file.
fn map(
    mappings: &mut Mappings,
    context: &Context,
    handle: &IpcHandle,
    file: SharedFile,
    origin: Origin,
) -> Result<u64> {
    let bytes = handle.bytes.min(file.bytes());
    if bytes == 0 {
        host::log!("the handle is damaged: its memory has no bytes");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let memory = address_space().open(file);
    Ok(mappings.map(context, &memory, (0, bytes), origin)?.base)
}

/// The counters of an interprocess event, shared by all its processes: the latest record, and the number of the latest
/// record that is done.
#[derive(Clone, Debug)]
pub(crate) struct EventCounters(Arc<SharedFile>);

/// A record of an interprocess event. It counts as done once its process has ended, because other processes would wait
/// for it without end.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// The number of the record, from 1; 0 if there is none.
    number: u64,
    process: u32,
}

impl Record {
    /// Bits of the number. The other bits are enough for the process IDs of Linux, which are below 2^22.
    const BITS: u32 = 40;

    fn encode(self) -> u64 {
        u64::from(self.process) << Record::BITS | self.number
    }

    fn decode(code: u64) -> Self {
        Record {
            number: code & ((1 << Record::BITS) - 1),
            process: (code >> Record::BITS) as u32,
        }
    }
}

/// Returns true if a process has ended, even if its parent has not asked for its exit status yet.
fn has_ended(process: u32) -> bool {
    // The main thread may end before others, so each thread is checked.
    match std::fs::read_dir(format!("/proc/{process}/task")) {
        Ok(threads) => threads.flatten().all(|thread| thread_has_ended(&thread.path())),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Returns true if the thread with this folder in `/proc` has ended.
fn thread_has_ended(folder: &Path) -> bool {
    match std::fs::read(folder.join("stat")) {
        // The state follows the name, which is in parentheses and may contain any byte.
        Ok(stat) => {
            let name_end = stat.iter().rposition(|&byte| byte == b')');
            let state = name_end.and_then(|end| stat.get(end + 2));
            matches!(state, Some(b'Z' | b'X'))
        }
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

impl EventCounters {
    /// Creates counters for a new event; `None` if processes cannot share memory on this system.
    pub(crate) fn new() -> Option<Self> {
        let label = Label {
            purpose: Purpose::Event,
            number: 0,
        };
        SharedFile::new(16, label).map(|file| EventCounters(Arc::new(file)))
    }

    /// `cuIpcGetEventHandle`
    pub(crate) fn export(&self) -> [u8; BYTES] {
        IpcHandle::of(&self.0, 0).encode()
    }

    /// `cuIpcOpenEventHandle`: driver 580 returns `CUDA_ERROR_MAP_FAILED` for bytes that are not a handle.
    pub(crate) fn open(handle: &[u8; BYTES]) -> Result<Self> {
        let handle = IpcHandle::decode(handle).ok_or(Error::CUDA_ERROR_MAP_FAILED)?;
        handle.check_foreign()?;
        Ok(EventCounters(Arc::new(handle.open(Purpose::Event)?)))
    }

    /// Returns a counter: 0 is the latest [`Record`], 1 the number of the latest record that is done.
    #[allow(unsafe_code)] // the counter is in memory shared by processes
    fn count(&self, index: usize) -> &AtomicU64 {
        // SAFETY: the file has at least one page, which is aligned and lives as long as `self`; all processes access it
        // with atomics only.
        unsafe { &*self.0.address().cast::<AtomicU64>().add(index) }
    }

    /// Counts a record and returns the work that completes it. If a fault ends the work before it has run, the record
    /// is complete as well, because other processes would wait for it without end.
    pub(crate) fn record(&self) -> Work {
        let record = OpenRecord(self.clone(), self.begin(std::process::id()));
        Work::Run(Box::new(move || {
            drop(record);
            Ok(())
        }))
    }

    /// Counts a record of a process, and returns the number of the record.
    fn begin(&self, process: u32) -> u64 {
        let next = |latest| {
            let number = Record::decode(latest).number + 1;
            Record { number, process }.encode()
        };
        let latest = self.count(0).fetch_update(SeqCst, SeqCst, |latest| Some(next(latest)));
        // The update cannot fail.
        Record::decode(latest.unwrap_or_else(|latest| latest)).number + 1
    }

    /// Returns the latest record.
    fn latest(&self) -> Record {
        Record::decode(self.count(0).load(SeqCst))
    }

    fn is_done(&self, record: Record) -> bool {
        let is_own = record.process == std::process::id();
        self.count(1).load(SeqCst) >= record.number || !is_own && has_ended(record.process)
    }

    /// Returns true if the last record is done.
    pub(crate) fn are_done(&self) -> bool {
        self.is_done(self.latest())
    }

    /// Submits a task that waits for the last record, and returns the task.
    pub(crate) fn task(&self) -> TaskId {
        let (latest, counts) = (self.latest(), self.clone());
        let done = move || Ok(counts.is_done(latest));
        scheduler().submit(&[], Work::Until(Box::new(done)), 0)
    }
}

/// A record with this number, which is complete when the value is dropped.
struct OpenRecord(EventCounters, u64);

impl Drop for OpenRecord {
    fn drop(&mut self) {
        self.0.count(1).fetch_max(self.1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a fault, the scheduler drops work without running it.
    #[test]
    fn a_record_that_does_not_run_releases_those_that_wait() {
        let Some(counters) = EventCounters::new() else {
            return;
        };
        let record = counters.record();
        assert!(!counters.are_done());
        drop(record);
        assert!(counters.are_done());
    }

    /// Waits for a child process to end, and leaves its exit status for another call.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn wait_for_end(process: u32) {
        // SAFETY: all bits zero are valid, and the call writes to it only.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid for the write.
        let ended = unsafe { libc::waitid(libc::P_PID, process, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
        assert_eq!(ended, 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_record_of_a_process_that_has_ended_is_done() {
        let counters = EventCounters::new().unwrap();
        let mut child = std::process::Command::new("cat");
        let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
        assert_eq!(counters.begin(child.id()), 1);
        assert!(!counters.are_done());
        let task = counters.task();
        drop(child.stdin.take());
        wait_for_end(child.id());
        assert!(counters.are_done());
        scheduler().wait(task);
        child.wait().unwrap();
        assert!(counters.are_done());
        // The next record is of a process that runs.
        let record = counters.record();
        assert!(!counters.are_done());
        drop(record);
        assert!(counters.are_done());
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[allow(unsafe_code)]
    fn a_process_runs_until_its_last_thread_has_ended() {
        extern "C" fn pause(_: *mut libc::c_void) -> *mut libc::c_void {
            loop {
                // SAFETY: only waits.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: the child only calls functions of the C library, and its main thread ends here. The alarm ends it if
        // this test fails.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above; the arguments are valid.
            unsafe {
                libc::alarm(60);
                // A name that is not UTF-8 and looks like the end of the name.
                libc::prctl(libc::PR_SET_NAME, c"\xFF) R 1".as_ptr());
                let mut thread = std::mem::zeroed();
                libc::pthread_create(&raw mut thread, std::ptr::null(), pause, std::ptr::null_mut());
                // Unlike `exit`, ends only this thread.
                libc::syscall(libc::SYS_exit, 0);
            }
        }
        let process = child.cast_unsigned();
        while !thread_has_ended(Path::new(&format!("/proc/{process}"))) {
            std::thread::yield_now();
        }
        assert!(!has_ended(process));
        // SAFETY: ends our child.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        wait_for_end(process);
        assert!(has_ended(process));
        // SAFETY: the child is ours, and its status is not asked for.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        assert!(has_ended(process));
    }

    #[test]
    fn handles_round_trip_and_junk_is_refused() {
        let handle = IpcHandle {
            process: 0x89AB_CDEF,
            descriptor: 77,
            identity: (u64::MAX, 5),
            bytes: 1 << 40,
            pool: (5, 6),
        };
        assert_eq!(IpcHandle::decode(&handle.encode()), Some(handle));
        assert_eq!(IpcHandle::decode(&[0; BYTES]), None);
        assert_eq!(IpcHandle::decode(&[0x5A; BYTES]), None);
        // Arbitrary bytes may identify a file of some process. Only a shared file of the right kind is opened.
        for at in 0..BYTES {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bytes = handle.encode();
                bytes[at] = value;
                if let Some(handle) = IpcHandle::decode(&bytes) {
                    assert!(handle.open(Purpose::Allocation).is_err());
                }
            }
        }
    }
}
