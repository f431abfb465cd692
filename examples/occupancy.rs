//! Occupancy: the block size with the most active threads, for a kernel whose shared memory depends on the block size.

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `reverse(unsigned* values)` reverses the values of each block. It needs 4 bytes of dynamic shared memory for each
/// thread.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.extern .shared .align 4 .b8 memory[];

.visible .entry reverse(.param .u64 values)
{
    .reg .b32 %i, %size, %at, %mirror, %base, %x;
    .reg .b64 %address, %values;

    mov.u32        %i, %tid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %at, %ctaid.x;
    mad.lo.u32     %at, %at, %size, %i;
    ld.param.u64   %values, [values];
    mul.wide.u32   %address, %at, 4;
    add.u64        %address, %address, %values;
    ld.global.u32  %x, [%address];
    mov.u32        %base, memory;
    mad.lo.u32     %at, %i, 4, %base;
    st.shared.u32  [%at], %x;
    bar.sync       0;
    sub.u32        %mirror, %size, %i;
    sub.u32        %mirror, %mirror, 1;
    mad.lo.u32     %at, %mirror, 4, %base;
    ld.shared.u32  %x, [%at];
    st.global.u32  [%address], %x;
    ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    let context = Context::create(device)?;
    let reverse = Module::from_ptx(&context, PTX)?.function("reverse")?;
    println!(
        "Kernel: {} registers, {} bytes of static shared memory",
        reverse.registers()?,
        reverse.static_shared_bytes()?
    );

    // The driver calls the closure for each block size that it considers.
    let shared_bytes = |threads: u32| 4 * threads as usize;
    let best = reverse.max_potential_block_size_with(shared_bytes, 0)?;
    println!(
        "Best: blocks of {} threads; at least {} of them fill the device",
        best.threads, best.min_grid
    );

    let per_processor = reverse.max_active_blocks_per_multiprocessor(best.threads, shared_bytes(best.threads))?;
    let threads = device.attributes().max_threads_per_multiprocessor()?;
    let active = per_processor * best.threads;
    println!("Active: {per_processor} blocks on a multiprocessor, {active} of {threads} threads");
    println!(
        "Each of these blocks could have {} bytes of dynamic shared memory",
        reverse.available_dynamic_shared(per_processor, best.threads)?
    );

    let config = LaunchConfig {
        grid: 4.into(),
        block: best.threads.into(),
        dynamic_shared_bytes: 4 * best.threads,
    };
    let values: Vec<u32> = (0..4 * best.threads).collect();
    let buffer = DeviceBuffer::from_slice(&context, &values)?;
    let stream = Stream::new(&context)?;
    // SAFETY: the kernel takes an address, and accesses one value for each thread.
    unsafe { reverse.launch(&stream, config, (buffer.ptr(),))? };
    stream.synchronize()?;
    let expected: Vec<u32> = values
        .chunks(best.threads as usize)
        .flat_map(|block| block.iter().rev().copied())
        .collect();
    assert_eq!(buffer.to_vec()?, expected);
    println!("Result = PASS");
    Ok(())
}
