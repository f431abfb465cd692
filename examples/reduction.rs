//! Adds a million numbers: each block adds 256 of them in shared memory, and further launches add the sums of the
//! blocks.

use std::error::Error;

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `reduce_sum_u64(in, out, n)` stores the sum of the 256 values of each block, whose threads add them in pairs. The
/// source is `tests/kernels/reduce.cu`.
const PTX: &str = include_str!("../tests/kernels/generated/reduce.ptx");

const BLOCK: u32 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let stream = Stream::new(&context)?;
    let module = Module::from_ptx(&context, PTX)?;
    let reduce = module.function("reduce_sum_u64")?;

    let values: Vec<u64> = (0..1_000_000).map(|i| i * i).collect();
    let mut sums = DeviceBuffer::from_slice(&context, &values)?;
    // Keeps the buffers that queued kernels read.
    let mut read = Vec::new();
    while sums.len() > 1 {
        let count = u32::try_from(sums.len())?;
        let mut out = DeviceBuffer::<u64>::alloc(&context, count.div_ceil(BLOCK) as usize)?;
        println!("{count} values to {}", out.len());
        let arguments = (sums.as_slice(), out.as_mut_slice(), count);
        // SAFETY: the kernel reads `count` values, and writes one for each block; both buffers stay until it is done.
        // Kernels of one stream run one after the other.
        unsafe { reduce.launch(&stream, LaunchConfig::covering(count, BLOCK), arguments) }?;
        read.push(std::mem::replace(&mut sums, out));
    }
    stream.synchronize()?;

    let sum = sums.to_vec()?;
    let expected: u64 = values.iter().sum();
    if sum != [expected] {
        return Err(format!("the sum is {sum:?}, expected {expected}").into());
    }
    println!("sum: {expected}");
    println!("Result = PASS");
    Ok(())
}
