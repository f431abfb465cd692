//! The README's program: `y = a * x + y` on a GPU, or in software where there is none.

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(cuda_driver_soft::Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    let context = Context::create(device)?;
    let module = Module::from_ptx(
        &context,
        include_str!("../tests/kernels/generated/saxpy.ptx"),
    )?;
    let saxpy = module.function("saxpy")?;
    let stream = Stream::new(&context)?;

    let x = DeviceBuffer::from_slice(&context, &[1.0_f32, 2.0, 3.0, 4.0])?;
    let y = DeviceBuffer::from_slice(&context, &[0.5_f32; 4])?;
    let config = LaunchConfig {
        grid: 1.into(),
        block: 32.into(),
        ..Default::default()
    };
    // SAFETY: these are the parameters of `saxpy(float a, const float* x, float* y, size_t n)`.
    unsafe { saxpy.launch(&stream, config, (10.0_f32, x.ptr(), y.ptr(), 4_u64))? };
    stream.synchronize()?;

    println!(
        "{}, CUDA {}: {:?}",
        device.name()?,
        cuda_driver::version()?,
        y.to_vec()?
    );
    Ok(())
}
