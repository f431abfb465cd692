//! Tests of injected failures: each test makes chosen calls fail, or a hook panic in them, on its own thread, while
//! other tests run in the same process.
//!
//! The hooks are part of the process's default library, so these tests are a program of their own.

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use cuda_driver::sys::library::{Call, Faithful, Interposer, Options, Source, set_default_with};
use cuda_driver::sys::{CUresult, Function};
use cuda_driver::{Context, Device, DeviceBuffer, Error, Module, Result, Stream};
use cuda_driver_hooks::{Fail, FailInThread};

const OUT_OF_MEMORY: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

thread_local! {
    /// The hook panics in the next call of this function: after the driver's call if `true`, instead of it if `false`.
    static PANIC_IN: Cell<Option<(Function, bool)>> = const { Cell::new(None) };
}

thread_local! {
    /// The number of this thread's calls of `cuModuleUnload`.
    static UNLOADS: Cell<u32> = const { Cell::new(0) };
}

/// A hook that counts the calls of `cuModuleUnload`, and panics in the call that a test has chosen.
struct PanicHook;

impl Interposer for PanicHook {
    fn call(&self, call: Call<'_>) -> CUresult {
        if call.function() == Function::cuModuleUnload {
            UNLOADS.set(UNLOADS.get() + 1);
        }
        match PANIC_IN.get() {
            Some((function, after)) if function == call.function() => {
                PANIC_IN.set(None);
                if after {
                    _ = call.forward();
                }
                panic!("requested by the test");
            }
            _ => call.forward(),
        }
    }
}

// SAFETY: unless it panics, the hook forwards each call unchanged and returns the driver's result.
unsafe impl Faithful for PanicHook {}

fn context() -> Context {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap();
        println!("driver under test: {selection}");
        let options = Options::new().hook(FailInThread).hook(PanicHook);
        set_default_with(Source::library(selection.library()), options).unwrap();
    });
    cuda_driver::init().unwrap();
    Context::create(Device::get(0).unwrap()).unwrap()
}

/// Allocates two buffers; the second is not allocated if the first fails.
fn two_buffers(context: &Context) -> Result<[DeviceBuffer<u32>; 2]> {
    Ok([
        DeviceBuffer::from_slice(context, &[1, 2])?,
        DeviceBuffer::from_slice(context, &[3, 4])?,
    ])
}

#[test]
fn the_first_allocation_fails() {
    let context = context();
    let first = Fail::nth(Function::cuMemAlloc, 1, OUT_OF_MEMORY);
    let failing = first.in_this_thread();
    let line = line!() + 1;
    let error = DeviceBuffer::<u32>::from_slice(&context, &[1]).unwrap_err();
    assert_eq!((error.code(), error.function()), (OUT_OF_MEMORY, Function::cuMemAlloc));
    assert_eq!(error.location().line(), line);
    assert_eq!(first.failed(), 1);
    // Later allocations succeed.
    two_buffers(&context).unwrap();
    drop(failing);
}

#[test]
fn the_second_allocation_fails() {
    let context = context();
    let second = Fail::nth(Function::cuMemAlloc, 2, OUT_OF_MEMORY);
    {
        let _failing = second.in_this_thread();
        assert_eq!(two_buffers(&context).unwrap_err().code(), OUT_OF_MEMORY);
        // Other threads are not affected.
        let other = second.clone();
        let context = context.clone();
        std::thread::spawn(move || {
            two_buffers(&context).unwrap();
            assert_eq!(other.failed(), 1);
        })
        .join()
        .unwrap();
    }
    let [_, second] = two_buffers(&context).unwrap();
    assert_eq!(second.to_vec().unwrap(), [3, 4]);
}

#[test]
fn failures_of_one_thread_are_independent() {
    let context = context();
    let outer = Fail::always(Function::cuMemAlloc, OUT_OF_MEMORY).in_this_thread();
    let inner = Fail::always(Function::cuStreamCreate, CUresult::CUDA_ERROR_UNKNOWN);
    let inner = inner.in_this_thread();
    let code = |result: Result<()>| result.map_err(|error: Error| error.code());
    let alloc = || code(two_buffers(&context).map(drop));
    let create = || code(Stream::new(&context).map(drop));
    assert_eq!(alloc(), Err(OUT_OF_MEMORY));
    assert_eq!(create(), Err(CUresult::CUDA_ERROR_UNKNOWN));
    // The guards may be dropped in any order: here, the first one first.
    drop(outer);
    assert_eq!(alloc(), Ok(()));
    assert_eq!(create(), Err(CUresult::CUDA_ERROR_UNKNOWN));
    drop(inner);
    assert_eq!(create(), Ok(()));
}

#[test]
fn two_guards_count_a_call_once() {
    let context = context();
    let second = Fail::nth(Function::cuMemAlloc, 2, OUT_OF_MEMORY);
    let (one, other) = (second.in_this_thread(), second.clone().in_this_thread());
    let buffer = || DeviceBuffer::from_slice(&context, &[1]).map_err(|error| error.code());
    buffer().unwrap();
    assert_eq!(second.failed(), 0);
    assert_eq!(buffer().unwrap_err(), OUT_OF_MEMORY);
    assert_eq!(second.failed(), 1);
    drop(one);
    buffer().unwrap();
    drop(other);
    assert_eq!(second.failed(), 1);
}

/// A context that could not be popped is still current and must not be destroyed.
#[test]
fn a_context_that_could_not_be_popped_stays() {
    for panics in [None, Some(false)] {
        let context = context();
        let buffer = DeviceBuffer::from_slice(&context, &[1, 2, 3]).unwrap();
        let pop = Fail::nth(Function::cuCtxPopCurrent, 1, CUresult::CUDA_ERROR_UNKNOWN);
        match panics {
            None => {
                let _failing = pop.in_this_thread();
                assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3]);
                assert_eq!(pop.failed(), 1);
            }
            Some(after) => {
                PANIC_IN.set(Some((Function::cuCtxPopCurrent, after)));
                catch_unwind(AssertUnwindSafe(|| buffer.to_vec())).expect_err("the hook's panic");
            }
        }
        let raw = context.as_raw();
        assert_eq!(Context::current_raw().unwrap(), raw);
        // The other thread drops the last owner while the context is still current on this thread.
        let ended = std::thread::spawn(move || drop((buffer, context)));
        ended.join().unwrap();
        Stream::null().synchronize().unwrap();
    }
}

#[test]
fn a_context_that_was_made_current_before_a_panic_stays() {
    type Call = fn(&Context) -> Result<()>;
    let calls: [(Function, Call); 2] = [
        (Function::cuCtxPushCurrent, |context| context.push().map(drop)),
        (Function::cuCtxSetCurrent, Context::set_current),
    ];
    for (function, call) in calls {
        let context = context();
        let raw = context.as_raw();
        PANIC_IN.set(Some((function, true)));
        catch_unwind(AssertUnwindSafe(|| call(&context))).expect_err("the hook's panic");
        assert_eq!(Context::current_raw().unwrap(), raw);
        std::thread::spawn(move || drop(context)).join().unwrap();
        Stream::null().synchronize().unwrap();
    }
}

/// The driver may have closed the descriptor before the panic, so it must not be closed again.
#[cfg(unix)]
#[test]
fn a_descriptor_is_not_closed_after_a_panic() {
    use std::io::{ErrorKind, Read};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use cuda_driver::external::{ExternalMemory, ExternalSemaphore};
    use cuda_driver::sys::CUexternalSemaphoreHandleType;

    let kind = CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    type Import = fn(&Context, OwnedFd, CUexternalSemaphoreHandleType) -> Result<()>;
    let calls: [(Function, Import); 2] = [
        // SAFETY: the hook does not make the call.
        (Function::cuImportExternalMemory, |context, fd, _| unsafe {
            ExternalMemory::import_fd(context, fd, 4096).map(drop)
        }),
        // SAFETY: as above.
        (Function::cuImportExternalSemaphore, |context, fd, kind| unsafe {
            ExternalSemaphore::import_fd(context, fd, kind).map(drop)
        }),
    ];
    let context = context();
    for (function, import) in calls {
        let (sent, mut other_end) = UnixStream::pair().unwrap();
        let number = sent.as_raw_fd();
        PANIC_IN.set(Some((function, false)));
        catch_unwind(AssertUnwindSafe(|| import(&context, sent.into(), kind))).expect_err("the hook's panic");
        // The read would return 0 if the descriptor were closed.
        other_end.set_nonblocking(true).unwrap();
        assert_eq!(other_end.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        // SAFETY: the descriptor is open, and `import` left it without an owner.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

#[test]
fn a_module_is_unloaded_once_if_a_hook_panics() {
    let context = context();
    let module = Module::from_ptx(&context, ".version 7.0\n.target sm_52\n.address_size 64\n").unwrap();
    PANIC_IN.set(Some((Function::cuModuleUnload, true)));
    UNLOADS.set(0);
    catch_unwind(AssertUnwindSafe(|| module.unload())).expect_err("the hook's panic");
    assert_eq!(UNLOADS.get(), 1);
    context.destroy().unwrap();
}
