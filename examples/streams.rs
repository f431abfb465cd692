//! Streams and events: a copy and a kernel in two streams, an event that orders them, events that measure their time, a
//! host function, and stream priorities.

use std::sync::mpsc;

use cuda_driver::{Context, Device, DeviceBuffer, Event, HostBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `double(float* values, unsigned n)` doubles each value.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry double(.param .u64 values, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32  %i, %n, %block, %size;
    .reg .b64  %at, %values;
    .reg .f32  %x;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;

    ld.param.u64   %values, [values];
    mul.wide.u32   %at, %i, 4;
    add.u64        %values, %values, %at;
    ld.global.f32  %x, [%values];
    add.f32        %x, %x, %x;
    st.global.f32  [%values], %x;
    ret;
}
";

const COUNT: usize = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let double = Module::from_ptx(&context, PTX)?.function("double")?;
    let (copies, work) = (Stream::non_blocking(&context)?, Stream::non_blocking(&context)?);
    let (start, copied, end) = (Event::new(&context)?, Event::new(&context)?, Event::new(&context)?);

    // A copy from page-locked memory does not block this thread. `upload` owns both buffers until `wait` returns them.
    let host = HostBuffer::from_slice(&context, &[1.5f32; COUNT])?;
    let device = DeviceBuffer::alloc(&context, COUNT)?;
    let values = device.ptr();
    start.record(&copies)?;
    let upload = copies.upload(host, device)?;
    copied.record(&copies)?;

    // The kernel in the other stream waits for the copy, but this thread does not.
    work.wait_event(&copied)?;
    let config = LaunchConfig::covering(COUNT as u32, 256);
    // SAFETY: the kernel takes an address and a count. `upload` keeps the memory until `upload.wait()`, which this
    // thread calls after it has waited for `work`.
    unsafe { double.launch(&work, config, (values, COUNT as u32))? };
    end.record(&work)?;

    // A host function runs after the work that was queued before it.
    let (sender, receiver) = mpsc::channel();
    work.launch_host_fn(move || sender.send("the kernel is done").expect("the receiver waits"))?;
    println!("Host function: {}", receiver.recv()?);
    work.synchronize()?;
    assert!(work.query()? && end.query()?);
    println!("Copy and kernel took {} ms", start.elapsed_ms(&end)?);

    // The copy is done, so `wait` returns both buffers immediately. The next copy takes them.
    let (host, device) = upload.wait()?;
    let (_, host) = copies.download(device, host)?.wait()?;
    assert!(host.iter().all(|value| value.to_bits() == 3.0f32.to_bits()));

    let range = context.stream_priority_range()?;
    let flags = cuda_driver::sys::CUstream_flags::CU_STREAM_NON_BLOCKING;
    let urgent = Stream::with_priority(&context, flags, range.greatest_priority)?;
    println!(
        "Priorities: {} to {}, urgent {}",
        range.least_priority,
        range.greatest_priority,
        urgent.priority()?
    );
    println!("Result = PASS");
    Ok(())
}
