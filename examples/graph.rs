//! Graphs: work that is captured from a stream or built node by node, and then launched many times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::graph::CopyParams;
use cuda_driver::sys::CUstreamCaptureMode;
use cuda_driver::{Context, Device, DeviceBuffer, Graph, HostBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `scale(float* x, float factor, unsigned n)` multiplies each value by `factor`.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32  %i, %n, %block, %size;
    .reg .b64  %at, %x;
    .reg .f32  %f, %v;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;

    ld.param.f32   %f, [factor];
    ld.param.u64   %x, [x];
    mul.wide.u32   %at, %i, 4;
    add.u64        %x, %x, %at;
    ld.global.f32  %v, [%x];
    mul.rn.f32     %v, %v, %f;
    st.global.f32  [%x], %v;
    ret;
}
";

const N: u32 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By default, uses the system's driver if it has a device, else the software driver.
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let module = Module::from_ptx(&context, PTX)?;
    let scale = module.function("scale")?;
    let stream = Stream::non_blocking(&context)?;
    let mut host = HostBuffer::from_slice(&context, &[1.0_f32; N as usize])?;
    let mut values = DeviceBuffer::<f32>::alloc(&context, N as usize)?;
    let config = LaunchConfig::covering(N, 256);

    // The closure queues a copy, a kernel and a copy back. They do not run: they become the nodes of a graph.
    let captured = stream.capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, |stream| {
        // SAFETY: buffers and module outlive the graph, and the arguments have the types of the kernel's parameters.
        unsafe {
            values.copy_from_async(&host, stream)?;
            scale.launch(stream, config, (values.ptr(), 2.0_f32, N))?;
            values.copy_to_async(&mut host, stream)
        }
    })?;
    let exec = captured.instantiate()?;
    for _ in 0..3 {
        // SAFETY: both buffers are live, and no other work uses them.
        unsafe { exec.launch(&stream)? };
    }
    stream.synchronize()?;
    println!(
        "captured: {} nodes, three launches: {}",
        captured.nodes()?.len(),
        host[0]
    );
    assert!(host.iter().all(|value| *value == 8.0));

    // The same nodes, added one by one, and a host function after them.
    let launches = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&launches);
    let graph = Graph::new(&context)?;
    let upload = graph.add_copy(&[], CopyParams::host_to_device(values.as_mut_slice(), host.as_raw()))?;
    // SAFETY: the arguments have the types of the kernel's parameters.
    let kernel = unsafe { graph.add_kernel(&[upload], &scale, config, (values.ptr(), 0.5_f32, N))? };
    let download = graph.add_copy(&[kernel], CopyParams::device_to_host(host.as_raw(), &values))?;
    graph.add_host_fn(&[download], move || {
        count.fetch_add(1, Ordering::Relaxed);
    })?;
    let exec = graph.instantiate()?;
    // SAFETY: both buffers are live, and no other work uses them.
    unsafe { exec.launch(&stream)? };

    // Later launches use another argument; the pending launch keeps the first one.
    // SAFETY: the arguments have the types of the kernel's parameters.
    unsafe { exec.set_kernel(kernel, &scale, config, (values.ptr(), 10.0_f32, N))? };
    // SAFETY: both buffers are live, and no other work uses them.
    unsafe { exec.launch(&stream)? };
    // A launch without the kernel.
    exec.set_enabled(kernel, false)?;
    // SAFETY: both buffers are live, and no other work uses them.
    unsafe { exec.launch(&stream)? };
    stream.synchronize()?;
    let launches = launches.load(Ordering::Relaxed);
    println!(
        "built: {} nodes, {launches} launches: {}",
        graph.nodes()?.len(),
        host[0]
    );
    assert!(launches == 3 && host.iter().all(|value| *value == 40.0));

    // An executable graph takes new parameters only from a graph with the same nodes and edges. `captured` does not
    // have the host function.
    if let Err(error) = exec.update(&captured) {
        println!("{error}");
    }
    println!("Result = PASS");
    Ok(())
}
