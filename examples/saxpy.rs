//! The README's program: `y = a * x + y` on a GPU, or on the CPU if there is none.

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `saxpy(float a, const float* x, float* y, unsigned n)`; `nvcc --ptx` generates such PTX from CUDA C++.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32  %i, %n, %block, %size;
    .reg .b64  %at, %x, %y;
    .reg .f32  %a, %xi, %yi;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;

    ld.param.f32   %a, [a];
    ld.param.u64   %x, [x];
    ld.param.u64   %y, [y];
    mul.wide.u32   %at, %i, 4;
    add.u64        %x, %x, %at;
    add.u64        %y, %y, %at;
    ld.global.f32  %xi, [%x];
    ld.global.f32  %yi, [%y];
    fma.rn.f32     %yi, %a, %xi, %yi;
    st.global.f32  [%y], %yi;
    ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By default, uses the system's driver if it has a device, else the software driver.
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    let context = Context::create(device)?;
    let module = Module::from_ptx(&context, PTX)?;
    let saxpy = module.function("saxpy")?;
    let stream = Stream::new(&context)?;

    let x = DeviceBuffer::from_slice(&context, &[1.0_f32, 2.0, 3.0, 4.0])?;
    let y = DeviceBuffer::from_slice(&context, &[0.5_f32; 4])?;
    let config = LaunchConfig {
        grid: 1.into(),
        block: 32.into(),
        ..Default::default()
    };
    // SAFETY: the arguments have the types of the kernel's parameters, and both buffers hold 4 floats.
    unsafe { saxpy.launch(&stream, config, (10.0_f32, x.ptr(), y.ptr(), 4_u32))? };
    stream.synchronize()?;

    println!(
        "{}, CUDA {}: {:?}",
        device.name()?,
        cuda_driver::version()?,
        y.to_vec()?
    );
    Ok(())
}
