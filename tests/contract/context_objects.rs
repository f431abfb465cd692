//! Tests of devices and contexts as objects: floating contexts, guards, usage counts, and drops in any order.

use cuda_driver::sys::{CUctx_flags, CUdevice_attribute, CUlimit, CUresult};
use cuda_driver::{Context, Device, DeviceBuffer, Event, Module, PrimaryContext, Stream, Uuid};

use crate::child;
use crate::common::{context, device, driver, ptx_path};

#[test]
fn devices() {
    let device = device();
    let count = Device::count().expect("a count");
    assert!(count >= 1);
    assert_eq!(Device::all().expect("the devices").len(), count as usize);
    assert_eq!(
        Device::get(count).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_DEVICE)
    );
    assert!(!device.name().expect("a name").is_empty());
    assert!(device.total_mem().expect("a size") > 1 << 28);
    let warp = device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    assert_eq!(warp.expect("an attribute"), 32);
    let (major, minor) = device.compute_capability().expect("a capability");
    assert!(major >= 5 && minor >= 0);
    assert_ne!(device.uuid().expect("a UUID"), Uuid([0; 16]));
    assert!(cuda_driver::version().expect("a version").as_raw() >= 11070);
}

#[test]
fn a_context_is_current_only_when_pushed() {
    let context = context();
    assert!(Context::current_raw().expect("the current context").is_null());
    assert!(!context.is_current().expect("an answer"));
    {
        let current = context.push().expect("a push");
        assert!(context.is_current().expect("an answer"));
        let inner = self::context();
        let above = inner.push().expect("a second push");
        assert!(!context.is_current().expect("an answer"));
        above.pop().expect("a pop");
        assert!(context.is_current().expect("an answer"));
        drop(current);
    }
    assert!(Context::current_raw().expect("the current context").is_null());
    // Calls that need the context make it current only while they run.
    let buffer = DeviceBuffer::from_slice(&context, &[1_u8, 2, 3]).expect("memory");
    assert_eq!(buffer.to_vec().expect("a copy"), [1, 2, 3]);
    assert!(Context::current_raw().expect("the current context").is_null());
}

#[test]
fn guards_are_popped_in_order() {
    let (a, b) = (context(), context());
    let first = a.push().expect("a push");
    let second = b.push().expect("a push");
    // The first guard is not on top: its context stays on the stack.
    assert_eq!(
        first.pop().map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    );
    second.pop().expect("a pop");
    assert!(a.is_current().expect("an answer"));
}

#[test]
fn queries_and_limits() {
    driver();
    let context = Context::create_with_flags(device(), CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC).expect("a context");
    assert_eq!(context.device().expect("a device").as_raw(), device().as_raw());
    assert!(
        context
            .flags()
            .expect("flags")
            .contains(CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC)
    );
    assert_eq!(context.api_version().expect("a version"), 3020);
    let info = context.mem_info().expect("sizes");
    assert!(info.free <= info.total);
    context.set_limit(CUlimit::CU_LIMIT_STACK_SIZE, 2048).expect("a limit");
    assert!(context.limit(CUlimit::CU_LIMIT_STACK_SIZE).expect("a limit") >= 2048);
    context.synchronize().expect("nothing to wait for");
    let error = Context::create_with_flags(device(), CUctx_flags(0xffff_0000)).expect_err("unknown flags");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert!(Context::current_raw().expect("the current context").is_null());
    context.destroy().expect("the last reference");
}

#[test]
fn attach_and_detach() {
    let context = context();
    let attachment = context.attach().expect("a use");
    drop(context.attach().expect("another use"));
    attachment.detach().expect("detaching");
    context.synchronize().expect("the context is still there");
    context.destroy().expect("the last reference");
}

#[test]
fn objects_outlive_their_context_and_module() {
    let context = context();
    let module = Module::load_ptx(&context, ptx_path("my_kernel.ptx")).expect("a module");
    let kernel = module.function("my_kernel").expect("a kernel");
    let stream = Stream::new(&context).expect("a stream");
    let event = Event::new(&context).expect("an event");
    let buffer = DeviceBuffer::from_slice(&context, &[1.0_f32; 32]).expect("memory");
    drop(context);
    drop(module);
    let config = cuda_driver::LaunchConfig {
        block: 32.into(),
        ..Default::default()
    };
    // SAFETY: these are the parameters of `my_kernel(float* data, size_t N)`.
    unsafe { kernel.launch(&stream, config, (buffer.ptr(), 32_u64)) }.expect("a launch");
    event.record(&stream).expect("a record");
    drop(kernel);
    event.synchronize().expect("the end of the work");
    drop(stream);
    drop(event);
    assert_eq!(buffer.to_vec().expect("a copy"), [3.0; 32]);
    // The last owner is dropped on another thread.
    std::thread::spawn(move || drop(buffer))
        .join()
        .expect("a drop on another thread");
}

#[test]
fn contexts_on_several_threads() {
    let context = context();
    let buffer = DeviceBuffer::from_slice(&context, &[7_u32; 16]).expect("memory");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let context = context.clone();
            std::thread::spawn(move || {
                let own = DeviceBuffer::from_slice(&context, &[5_u32; 16]).expect("memory");
                let _current = context.push().expect("a push");
                own.to_vec().expect("a copy")
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), [5; 16]);
    }
    assert_eq!(buffer.to_vec().expect("a copy"), [7; 16]);
}

#[test]
fn handles_are_borrowed_and_owned() {
    let context = context();
    let raw = context.as_raw();
    // SAFETY: the context outlives the borrowed one.
    let borrowed = unsafe { Context::borrow_raw(raw) };
    borrowed.synchronize().expect("a live context");
    drop(borrowed);
    context.synchronize().expect("a borrowed context is not destroyed");
    let raw = context.into_raw();
    // SAFETY: the handle is live, and has no owner since `into_raw`.
    let again = unsafe { Context::from_raw(raw) };
    again.destroy().expect("the last reference");
}

#[test]
fn the_primary_context() {
    child!("the_primary_context", {
        let device = device();
        assert!(!PrimaryContext::state(device).expect("a state").active);
        let primary = PrimaryContext::retain(device).expect("a primary context");
        let again = PrimaryContext::retain(device).expect("a primary context");
        assert_eq!(primary.as_raw(), again.as_raw());
        again.release().expect("a release");
        assert!(PrimaryContext::state(device).expect("a state").active);
        let buffer = DeviceBuffer::from_slice(&primary, &[1_u8; 4]).expect("memory");
        // The buffer keeps the primary context retained.
        drop(primary);
        assert_eq!(buffer.to_vec().expect("a copy"), [1; 4]);
        assert!(PrimaryContext::state(device).expect("a state").active);
        drop(buffer);
        assert!(!PrimaryContext::state(device).expect("a state").active);
    });
}
