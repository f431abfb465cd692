//! Tests, on the fake driver, of the types that own handles and that `tests/contract/every_handle.rs` does not test.
//! Each handle is destroyed once: also after it passed through `into_raw`, after its context was dropped, on another
//! thread, and if the call that destroys it fails.

use super::fake;
use crate::coredump::CoredumpCallback;
use crate::external::{ExternalBuffer, ExternalMemory, ExternalSemaphore};
use crate::graphics::GraphicsResource;
use crate::ipc::{HANDLE_BYTES, MemoryHandle};
use crate::multicast::Multicast;
use crate::sys::{CUDA_EXTERNAL_MEMORY_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUmulticastObjectProp};
use crate::{Context, Device, IpcBuffer};

type Owner = Box<dyn Send>;

/// A type that owns a handle.
struct Row {
    name: &'static str,
    /// The functions that destroy the handles of one owner.
    ends: &'static [&'static str],
    /// Makes an owner.
    make: fn(&Context) -> Owner,
    /// Passes a handle through `into_raw`, the borrowed form if there is one, and `from_raw`, and returns the owner.
    pass: fn(&Context) -> Owner,
}

fn memory(context: &Context) -> ExternalMemory {
    // SAFETY: the fake driver takes any handle.
    unsafe { ExternalMemory::import(context, &CUDA_EXTERNAL_MEMORY_HANDLE_DESC::default()) }.unwrap()
}

fn semaphore(context: &Context) -> ExternalSemaphore {
    // SAFETY: the fake driver takes any handle.
    unsafe { ExternalSemaphore::import(context, &CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default()) }.unwrap()
}

fn resource(context: &Context) -> GraphicsResource {
    // SAFETY: the fake driver takes any handle.
    unsafe { GraphicsResource::from_raw(core::ptr::without_provenance_mut(0x50), context) }
}

fn multicast() -> Multicast {
    Multicast::create(&CUmulticastObjectProp::default()).unwrap()
}

fn buffer(context: &Context) -> IpcBuffer<u32> {
    // SAFETY: the fake driver takes any handle.
    unsafe { IpcBuffer::open(context, MemoryHandle::from_bytes([1; HANDLE_BYTES])) }.unwrap()
}

// SAFETY of all rows: the fake driver takes any handle, and each one is destroyed by its last owner.
#[allow(clippy::undocumented_unsafe_blocks)]
const ROWS: &[Row] = &[
    Row {
        name: "ExternalMemory",
        ends: &["cuDestroyExternalMemory"],
        make: |context| Box::new(memory(context)),
        pass: |context| {
            let raw = memory(context).into_raw();
            let (borrowed, owner) = unsafe {
                (
                    ExternalMemory::borrow_raw(raw, context),
                    ExternalMemory::from_raw(raw, context),
                )
            };
            assert_eq!((borrowed.as_raw(), owner.as_raw()), (raw, raw));
            borrowed.clone().destroy().unwrap();
            borrowed.destroy().unwrap();
            Box::new(owner)
        },
    },
    Row {
        name: "ExternalBuffer",
        ends: &["cuMemFree_v2", "cuDestroyExternalMemory"],
        make: |context| Box::new(memory(context).buffer::<u32>(16, 10).unwrap()),
        pass: |context| {
            let memory = memory(context);
            let buffer = memory.buffer::<u32>(16, 10).unwrap();
            let raw = buffer.as_raw();
            assert_eq!(buffer.into_raw(), raw);
            // `into_raw` leaked a reference to the memory.
            let again = unsafe { ExternalMemory::from_raw(memory.as_raw(), context) };
            Box::new(unsafe { ExternalBuffer::<u32>::from_raw(raw, 10, &again) })
        },
    },
    Row {
        name: "ExternalSemaphore",
        ends: &["cuDestroyExternalSemaphore"],
        make: |context| Box::new(semaphore(context)),
        pass: |context| {
            let raw = semaphore(context).into_raw();
            let (borrowed, owner) = unsafe {
                (
                    ExternalSemaphore::borrow_raw(raw),
                    ExternalSemaphore::from_raw(raw, context),
                )
            };
            assert_eq!((borrowed.as_raw(), owner.as_raw()), (raw, raw));
            Box::new(owner)
        },
    },
    Row {
        name: "GraphicsResource",
        ends: &["cuGraphicsUnregisterResource"],
        make: |context| Box::new(resource(context)),
        pass: |context| {
            let raw = resource(context).into_raw();
            let (borrowed, owner) = unsafe {
                (
                    GraphicsResource::borrow_raw(raw),
                    GraphicsResource::from_raw(raw, context),
                )
            };
            assert_eq!((borrowed.as_raw(), owner.as_raw()), (raw, raw));
            Box::new(owner)
        },
    },
    Row {
        name: "Multicast",
        ends: &["cuMemRelease"],
        make: |_| Box::new(multicast()),
        pass: |_| {
            let raw = multicast().into_raw();
            let (borrowed, owner) = unsafe { (Multicast::borrow_raw(raw), Multicast::from_raw(raw)) };
            assert_eq!((borrowed.as_raw(), owner.as_raw()), (raw, raw));
            Box::new(owner)
        },
    },
    Row {
        name: "IpcBuffer",
        ends: &["cuIpcCloseMemHandle"],
        make: |context| Box::new(buffer(context)),
        pass: |context| {
            let raw = buffer(context).into_raw();
            let owner = unsafe { IpcBuffer::<u32>::from_raw(raw, 4, context) };
            assert_eq!(owner.as_raw(), raw);
            Box::new(owner)
        },
    },
    // A callback owns its closure, so no owner can be made from the handle alone: `pass` only makes an owner.
    Row {
        name: "CoredumpCallback",
        ends: &["cuCoredumpDeregisterStartCallback"],
        make: |_| Box::new(CoredumpCallback::on_start(|_, _| ()).unwrap()),
        pass: |_| Box::new(CoredumpCallback::on_start(|_, _| ()).unwrap()),
    },
];

fn context() -> Context {
    fake::install();
    Context::create(Device::from_raw(3)).unwrap()
}

/// Returns the names of the functions that this thread called to destroy handles since the last call of `fake::calls`.
fn ends() -> Vec<String> {
    let calls = fake::calls().into_iter();
    let names = calls.map(|call| call.split('(').next().unwrap_or_default().to_owned());
    names
        .filter(|name| ROWS.iter().any(|row| row.ends.contains(&name.as_str())))
        .collect()
}

#[test]
fn handles_pass_through_owners() {
    let context = context();
    for row in ROWS {
        ends();
        let owner = (row.pass)(&context);
        assert_eq!(ends(), [""; 0], "{}", row.name);
        drop(owner);
        // `into_raw` of a buffer leaks a reference to the external memory, so only the new owner destroys the memory.
        assert_eq!(ends(), row.ends, "{}", row.name);
    }
}

#[test]
fn owners_are_dropped_on_another_thread_after_their_context() {
    for row in ROWS {
        let context = context();
        let owner = (row.make)(&context);
        drop(context);
        let thread = std::thread::spawn(move || {
            drop(owner);
            ends()
        });
        assert_eq!(thread.join().unwrap(), row.ends, "{}", row.name);
    }
}

#[test]
fn owners_are_dropped_once_if_the_driver_fails() {
    let context = context();
    for row in ROWS {
        // `CUDA_ERROR_DEINITIALIZED`, `CUDA_ERROR_CONTEXT_IS_DESTROYED` and `CUDA_ERROR_LAUNCH_FAILED`.
        for code in [4, 709, 719] {
            let owner = (row.make)(&context);
            ends();
            fake::fail(row.ends[0], code);
            drop(owner);
            assert_eq!(ends(), row.ends, "{}", row.name);
        }
    }
}
