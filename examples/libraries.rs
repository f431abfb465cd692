//! Libraries: code that is loaded once for the whole process, before there is a context, and used in all contexts.

use cuda_driver::sys::CUfunction_attribute;
use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Library, Stream, Version};
use cuda_driver_soft::Prefer;

/// `scale(float* values, unsigned n)` multiplies each value by the variable `factor`, and counts its launches in
/// the variable `launches`. It runs in one block.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .global .align 4 .f32 factor = 0f3F800000;
.visible .global .align 4 .u32 launches = 0;

.visible .entry scale(.param .u64 values, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32  %i, %n;
    .reg .b64  %at, %values;
    .reg .f32  %x, %factor;

    mov.u32        %i, %tid.x;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;
    setp.eq.u32    %p, %i, 0;
    @%p red.global.add.u32 [launches], 1;
    ld.param.u64   %values, [values];
    mul.wide.u32   %at, %i, 4;
    add.u64        %values, %values, %at;
    ld.global.f32  %x, [%values];
    ld.global.f32  %factor, [factor];
    mul.f32        %x, %x, %factor;
    st.global.f32  [%values], %x;
    ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let version = cuda_driver::version()?;
    if version < Version::new(12, 0) {
        println!("needs a driver of CUDA 12.0 or later, not {version}");
        return Ok(());
    }

    // No context yet: the driver loads the code into a context when it is first used there.
    let library = Library::from_ptx(PTX)?;
    let scale = library.kernel("scale")?;
    let device = Device::first()?;
    println!(
        "Loaded without a context: a kernel with {} registers",
        scale.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS, device)?
    );

    // Each context has its own variables.
    for factor in [2.0f32, 10.0] {
        let context = Context::create(device)?;
        library.global(&context, "factor")?.write(&factor)?;
        let stream = Stream::new(&context)?;
        let values = DeviceBuffer::from_slice(&context, &[1.0f32, 2.0, 3.0])?;
        let arguments = (values.as_slice(), 3u32);
        // SAFETY: the arguments have the types of the kernel's parameters, and the buffer holds 3 floats.
        unsafe { scale.launch(&stream, LaunchConfig::covering(3, 32), arguments)? };
        stream.synchronize()?;
        let seen = values.to_vec()?;
        assert_eq!(seen, [factor, 2.0 * factor, 3.0 * factor]);
        let launches: u32 = library.global(&context, "launches")?.read()?;
        assert_eq!(launches, 1);
        println!("In a context with the factor {factor}: {seen:?}, {launches} launch");
    }
    println!("Result = PASS");
    Ok(())
}
