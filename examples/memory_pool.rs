//! Stream-ordered memory: scratch memory that a stream allocates and frees in every round of its work, and the pool
//! that keeps this memory between the rounds.

use cuda_driver::sys::CUmemPool_attribute as Attribute;
use cuda_driver::{Context, Device, HostBuffer, LaunchConfig, MemPool, Module, Stream, StreamBuffer, sys};
use cuda_driver_soft::Prefer;

/// `square(float* values, unsigned n)` squares each value.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry square(.param .u64 values, .param .u32 n)
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
    mul.rn.f32     %x, %x, %x;
    st.global.f32  [%values], %x;
    ret;
}
";

const COUNT: usize = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By default, uses the system's driver if it has a device, else the software driver.
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    if device.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
        println!("needs a device with memory pools");
        return Ok(());
    }
    let context = Context::create(device)?;
    let module = Module::from_ptx(&context, PTX)?;
    let square = module.function("square")?;
    let stream = Stream::new(&context)?;

    let pool = MemPool::new(device)?;
    // Without this, each synchronisation would give unused memory back to the system.
    pool.set_attribute(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)?;

    let mut values = HostBuffer::zeroed(&context, COUNT)?;
    for (i, value) in values.iter_mut().enumerate() {
        *value = (i % 10) as f32;
    }
    for round in 1..=3 {
        let mut scratch = StreamBuffer::<f32>::alloc_from(&pool, &context, &stream, COUNT)?;
        // SAFETY: `values` stays alive and untouched until the stream is synchronised. The arguments have the types of
        // the kernel's parameters. No other stream uses the scratch memory, which is freed after the last copy.
        unsafe {
            scratch.as_mut_slice().copy_from_async(&values, &stream)?;
            let config = LaunchConfig::covering(COUNT as u32, 256);
            square.launch(&stream, config, (scratch.ptr(), COUNT as u32))?;
            scratch.as_slice().copy_to_async(&mut values, &stream)?;
            scratch.free_async(&stream)?;
        }
        stream.synchronize()?;
        println!(
            "Round {round}: {} bytes used, {} bytes kept",
            pool.attribute(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            pool.attribute(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
        );
    }
    pool.trim_to(0)?;
    let kept = pool.attribute(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
    println!("Trimmed: {kept} bytes kept");

    let is_right = values
        .iter()
        .enumerate()
        .all(|(i, value)| *value == ((i % 10) as f32).powi(8));
    let passed = is_right && kept == 0;
    println!("Result = {}", if passed { "PASS" } else { "FAIL" });
    if passed {
        Ok(())
    } else {
        Err("wrong values, or memory that was not trimmed".into())
    }
}
