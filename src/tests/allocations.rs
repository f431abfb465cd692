//! Tests that launches allocate no memory.

use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

use super::fake;
use crate::{Context, Device, DevicePtr, KernelArgs, LaunchAttribute, LaunchConfig, Module, ParamBuffer, Stream};

thread_local! {
    /// The number of allocations by this thread, without those of the fake driver.
    pub(super) static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The count has no destructor, so every thread can access its count until it ends.
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: upheld by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: upheld by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations in one launch of each kind. Calls the methods that the public ones call, because
/// with debug assertions the public ones first compare the arguments with the kernel's parameters.
fn allocations(arguments: &(impl KernelArgs + Copy)) -> usize {
    fake::install();
    let context = Context::create(Device::from_raw(3)).unwrap();
    let module = Module::from_ptx(&context, ".version 7.0\n").unwrap();
    let function = module.function("f").unwrap();
    let stream = Stream::new(&context).unwrap();
    let config = LaunchConfig::covering(1000, 256);
    let attributes = [LaunchAttribute::priority(-1)];
    let launches = || {
        // SAFETY: the fake driver runs no kernel.
        unsafe {
            function.queue(&stream, config, *arguments).unwrap();
            if !arguments.is_packed() {
                function.queue_cooperative(&stream, config, *arguments).unwrap();
            }
            function.queue_with(&stream, config, &attributes, *arguments).unwrap();
        }
    };
    // The first calls find the driver's functions.
    launches();
    let before = ALLOCATIONS.get();
    launches();
    ALLOCATIONS.get() - before
}

#[test]
fn launches_allocate_nothing() {
    let values = (DevicePtr::from_raw(256), 5_u32, 2.0_f32, 7_u64);
    assert_eq!(allocations(&values), 0, "a tuple");
    let mut packed = ParamBuffer::new();
    packed.push(values.0).push(values.1).push(values.2).push(values.3);
    assert_eq!(allocations(&&packed), 0, "a buffer");
    let mut values = values;
    let pointers = [
        (&raw mut values.0).cast(),
        (&raw mut values.1).cast(),
        (&raw mut values.2).cast(),
        (&raw mut values.3).cast(),
    ];
    assert_eq!(allocations(&pointers.as_slice()), 0, "an array of pointers");
    // Checks that an allocation is counted.
    let before = ALLOCATIONS.get();
    drop(core::hint::black_box(Box::new(before)));
    assert_eq!(ALLOCATIONS.get(), before + 1);
}
