//! Load tests: many threads with streams, copies and events; many allocations; many modules. All results must be
//! correct, and the memory of the process must not grow.
//!
//! `cargo test -p cuda-driver-soft --test driver load -- --ignored` runs the large tests, which take minutes.

use crate::common::{Context, Kernel, check, cuda, in_child, ptr};
use cuda_driver_sys::*;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of a load.
struct Load {
    threads: usize,
    /// Launches by each thread, rounded up to a multiple of 4 times [`ROUND`].
    launches: u32,
    allocations: usize,
    modules: u32,
}

const SMALL: Load = Load {
    threads: 8,
    launches: 200,
    allocations: 5_000,
    modules: 60,
};
const LARGE: Load = Load {
    threads: 64,
    launches: 10_000,
    allocations: 1_000_000,
    modules: 10_000,
};

/// Returns a module with a kernel that adds a number to `p[0]`.
fn adds(number: u32) -> CString {
    CString::new(format!(
        ".version 7.7\n.target sm_52\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b64 %rd; .reg .b32 %r;\n\
        ld.param.u64 %rd, [p];\nld.global.u32 %r, [%rd];\nadd.u32 %r, %r, {number};\nst.global.u32 [%rd], %r;\nret;\n}}\n"
    ))
    .unwrap()
}

/// Returns the number of bytes of the process that are in memory; `None` if the system does not report it, or if a
/// sanitizer keeps memory of its own.
fn resident() -> Option<u64> {
    if ["ASAN_OPTIONS", "TSAN_OPTIONS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        return None;
    }
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

/// Runs `step` for each number below `count`. Checks that as much device memory is free as before, and that the memory
/// of the process has grown by less than 48 MiB since the first quarter.
fn flat(what: &str, count: usize, mut step: impl FnMut(usize)) {
    const SOME: u64 = 48 << 20;
    let free = || {
        let (mut free, mut total) = (0, 0);
        check(unsafe { cuda().cuMemGetInfo(&mut free, &mut total) });
        free
    };
    let free_before = free();
    let mut warm = None;
    for i in 0..count {
        if i == count / 4 {
            warm = resident();
        }
        step(i);
    }
    assert_eq!(free(), free_before, "{what}: device memory");
    if let (Some(warm), Some(end)) = (warm, resident()) {
        assert!(
            end < warm + SOME,
            "{what}: {warm} bytes after a quarter, {end} at the end"
        );
    }
}

/// Launches by one thread between two waits.
const ROUND: u32 = 100;

/// In each round, the stream of each thread waits for the event of the next thread and adds 1 to a number of its own
/// [`ROUND`] times, with copies in between.
fn streams(load: &Load, context: CUcontext, kernel: &Kernel) {
    let cuda = cuda();
    let function = kernel.function as usize;
    let context = context as usize;
    // The event of each thread, which stays valid until all threads have ended; 0 until the thread has recorded it.
    let events: Vec<AtomicUsize> = (0..load.threads).map(|_| AtomicUsize::new(0)).collect();
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..load.threads {
            let (events, wrong) = (&events, &wrong);
            scope.spawn(move || unsafe {
                check(cuda.cuCtxSetCurrent(context as CUcontext));
                let kernel = Kernel {
                    module: null_mut(),
                    function: function as CUfunction,
                };
                let (mut stream, mut event, mut cells) = (null_mut(), null_mut(), 0);
                check(cuda.cuStreamCreate(&mut stream, (thread % 2) as u32));
                check(cuda.cuEventCreate(&mut event, 2));
                check(cuda.cuEventRecord(event, stream));
                events[thread].store(event as usize, Ordering::SeqCst);
                check(cuda.cuMemAlloc(&mut cells, 8));
                check(cuda.cuMemsetD8Async(cells, 0, 8, stream));
                for round in 0..load.launches / ROUND {
                    let neighbour = events[(thread + 1) % events.len()].load(Ordering::SeqCst);
                    if neighbour != 0 {
                        check(cuda.cuStreamWaitEvent(stream, neighbour as CUevent, 0));
                    }
                    for launch in 0..ROUND {
                        check(kernel.launch(1, 1, stream, &mut [ptr(&mut cells)]));
                        if launch % 25 == 24 {
                            check(cuda.cuMemcpyDtoDAsync(cells + 4, cells, 4, stream));
                        }
                    }
                    check(cuda.cuEventRecord(event, stream));
                    let mut values = [0u32; 2];
                    check(cuda.cuMemcpyDtoHAsync(values.as_mut_ptr().cast(), cells, 8, stream));
                    check(cuda.cuStreamSynchronize(stream));
                    let expected = (round + 1) * ROUND;
                    if values != [expected; 2] {
                        wrong.lock().unwrap().push((thread, expected, values));
                    }
                }
                check(cuda.cuMemFree(cells));
                check(cuda.cuStreamDestroy(stream));
            });
        }
    });
    assert_eq!(*wrong.lock().unwrap(), []);
    for event in events {
        check(unsafe { cuda.cuEventDestroy(event.into_inner() as CUevent) });
    }
}

/// Keeps some allocations of different sizes live, each with its number in the first word.
fn allocations(load: &Load) {
    const LIVE: usize = 64;
    let cuda = cuda();
    let mut live: Vec<(CUdeviceptr, u32)> = Vec::new();
    flat("allocations", load.allocations, |i| unsafe {
        let (mut address, number) = (0, i as u32);
        check(cuda.cuMemAlloc(&mut address, 4 + i * 37 % 5000));
        check(cuda.cuMemsetD32(address, number, 1));
        live.push((address, number));
        if live.len() > LIVE || i + 1 == load.allocations {
            let (address, number) = live.swap_remove(i * 7919 % live.len());
            let mut value = 0u32;
            check(cuda.cuMemcpyDtoH(ptr(&mut value), address, 4));
            assert_eq!(value, number);
            check(cuda.cuMemFree(address));
        }
        if i + 1 == load.allocations {
            for (address, _) in live.drain(..) {
                check(cuda.cuMemFree(address));
            }
        }
    });
}

fn modules(load: &Load) {
    let cuda = cuda();
    let mut cell = 0;
    check(unsafe { cuda.cuMemAlloc(&mut cell, 4) });
    flat("modules", load.modules as usize, |i| unsafe {
        let kernel = Kernel::from_ptx(&adds(i as u32), "k");
        check(cuda.cuMemsetD32(cell, 1, 1));
        check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut cell)]));
        let mut value = 0u32;
        check(cuda.cuMemcpyDtoH(ptr(&mut value), cell, 4));
        assert_eq!(value, 1 + i as u32);
        check(cuda.cuModuleUnload(kernel.module));
    });
    check(unsafe { cuda.cuMemFree(cell) });
}

fn run(load: &Load) {
    let context = Context::new();
    let kernel = Kernel::from_ptx(&adds(1), "k");
    flat("streams", 4, |_| {
        let quarter = Load {
            launches: load.launches.div_ceil(4).next_multiple_of(ROUND),
            ..*load
        };
        streams(&quarter, context.0, &kernel);
    });
    check(unsafe { cuda().cuModuleUnload(kernel.module) });
    allocations(load);
    modules(load);
}

// The tests run in processes of their own, because other tests allocate memory, too.
#[test]
fn a_small_load() {
    in_child("load::a_small_load", &[], || run(&SMALL));
}

#[test]
#[ignore = "takes minutes"]
fn a_large_load() {
    in_child("load::a_large_load", &[], || run(&LARGE));
}
