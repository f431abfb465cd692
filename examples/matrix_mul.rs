//! Multiplies two matrices in tiles of 16 x 16 values, which the threads of a block share, and checks every value
//! against the CPU.

use std::error::Error;

use cuda_driver::{Context, Device, DeviceBuffer, Event, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `matmul_f32(a, b, c, m, n, k)`: each block loads a tile of `a` and one of `b` to shared memory, adds their products,
/// and continues to the next tiles. The source is `tests/kernels/matmul.cu`.
const PTX: &str = include_str!("../tests/kernels/generated/matmul.ptx");

const TILE: u32 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let stream = Stream::new(&context)?;
    let module = Module::from_ptx(&context, PTX)?;
    let multiply = module.function("matmul_f32")?;

    // `a` has m x k values and `b` has k x n. The sizes are not multiples of a tile.
    let (m, n, k) = (200, 120, 90);
    let a: Vec<f32> = (0..m * k).map(|i| (i % 17) as f32 - 8.0).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i % 23) as f32 * 0.1).collect();
    let a_device = DeviceBuffer::from_slice(&context, &a)?;
    let b_device = DeviceBuffer::from_slice(&context, &b)?;
    let mut c_device = DeviceBuffer::<f32>::alloc(&context, m * n)?;

    // A thread for each value of the result.
    let config = LaunchConfig::covering((n as u32, m as u32), (TILE, TILE));
    let (start, end) = (Event::new(&context)?, Event::new(&context)?);
    start.record(&stream)?;
    let arguments = (
        a_device.as_slice(),
        b_device.as_slice(),
        c_device.as_mut_slice(),
        m as i32,
        n as i32,
        k as i32,
    );
    // SAFETY: the arguments match the kernel's parameters, and the buffers hold m * k, k * n and m * n values until it
    // is done.
    unsafe { multiply.launch(&stream, config, arguments) }?;
    end.record(&stream)?;
    end.synchronize()?;

    let c = c_device.to_vec()?;
    for (i, value) in c.iter().enumerate() {
        let (row, column) = (i / n, i % n);
        // The kernel adds the products in the same order, each with one rounding.
        let expected = (0..k).fold(0.0, |sum, j| a[row * k + j].mul_add(b[j * n + column], sum));
        if *value != expected {
            return Err(format!("row {row}, column {column}: {value}, expected {expected}").into());
        }
    }
    println!("{m} x {k} times {k} x {n} in {:.3} ms", start.elapsed_ms(&end)?);
    println!("Result = PASS");
    Ok(())
}
