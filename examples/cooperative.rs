//! A cooperative launch: all blocks run at once, so that they can wait for each other in the middle of the kernel.

use cuda_driver::sys::CUresult;
use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `others(unsigned* values, unsigned* total, unsigned* arrived)` replaces each value with the sum of all other values.
/// `*total` and `*arrived` must be 0 before the launch.
const PTX: &str = "
.version 7.0
.target sm_60
.address_size 64

.visible .entry others(.param .u64 values, .param .u64 total, .param .u64 arrived)
{
    .reg .pred %p;
    .reg .b32  %i, %block, %size, %blocks, %seen, %x, %sum, %thread;
    .reg .b64  %at, %values, %total, %arrived;

    mov.u32          %block, %ctaid.x;
    mov.u32          %size, %ntid.x;
    mov.u32          %thread, %tid.x;
    mad.lo.u32       %i, %block, %size, %thread;
    ld.param.u64     %values, [values];
    ld.param.u64     %total, [total];
    ld.param.u64     %arrived, [arrived];
    mul.wide.u32     %at, %i, 4;
    add.u64          %at, %values, %at;
    ld.global.u32    %x, [%at];
    red.global.add.u32 [%total], %x;

    // The barrier of the grid: one thread of each block arrives, and waits for the other blocks.
    bar.sync         0;
    setp.ne.u32      %p, %thread, 0;
    @%p bra          all_arrived;
    membar.gl;
    red.global.add.u32 [%arrived], 1;
    mov.u32          %blocks, %nctaid.x;
waiting:
    ld.volatile.global.u32 %seen, [%arrived];
    setp.lt.u32      %p, %seen, %blocks;
    @%p bra          waiting;
    membar.gl;
all_arrived:
    bar.sync         0;

    ld.volatile.global.u32 %sum, [%total];
    sub.u32          %x, %sum, %x;
    st.global.u32    [%at], %x;
    ret;
}
";

const THREADS: u32 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    if !device.attributes().cooperative_launch()? {
        println!("needs a device with cooperative launches");
        return Ok(());
    }
    let context = Context::create(device)?;
    let others = Module::from_ptx(&context, PTX)?.function("others")?;
    let stream = Stream::new(&context)?;

    // A block that waits keeps its place on a multiprocessor, so there must be a place for every block.
    let places =
        others.max_active_blocks_per_multiprocessor(THREADS, 0)? * device.attributes().multiprocessor_count()?;
    let blocks = places.min(16);
    println!("The device can run {places} blocks at once: launching {blocks}");
    let count = blocks * THREADS;
    let values = DeviceBuffer::from_slice(&context, &(0..count).collect::<Vec<_>>())?;
    let (total, arrived) = (
        DeviceBuffer::from_slice(&context, &[0u32])?,
        DeviceBuffer::from_slice(&context, &[0u32])?,
    );
    let arguments = (values.ptr(), total.ptr(), arrived.ptr());
    let config = |blocks: u32| LaunchConfig {
        grid: blocks.into(),
        block: THREADS.into(),
        ..Default::default()
    };
    // SAFETY: the kernel takes three addresses, and there is a value for each thread; the buffers live until it is
    // done.
    unsafe { others.launch_cooperative(&stream, config(blocks), arguments)? };
    stream.synchronize()?;
    let sum: u32 = (0..count).sum();
    assert_eq!(values.to_vec()?, (0..count).map(|x| sum - x).collect::<Vec<_>>());

    // The driver rejects a grid whose blocks would wait for blocks that cannot start.
    // SAFETY: nothing is launched, because there are more blocks than places.
    let rejected = unsafe { others.launch_cooperative(&stream, config(places + 1), arguments) };
    let error = rejected.expect_err("there are more blocks than places");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    println!("{error}");
    println!("Result = PASS");
    Ok(())
}
