//! Managed memory: the host and a kernel use the same addresses, and the driver moves the pages.

use cuda_driver::sys::{CUdevice_attribute, CUmem_advise, CUmemLocation};
use cuda_driver::{Context, Device, LaunchConfig, ManagedBuffer, Module, Stream};
use cuda_driver_soft::Prefer;

/// `add(const float* x, float* y, unsigned n)` adds `x` to `y`.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32  %i, %n, %block, %size;
    .reg .b64  %at, %x, %y;
    .reg .f32  %a, %b;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;

    ld.param.u64   %x, [x];
    ld.param.u64   %y, [y];
    mul.wide.u32   %at, %i, 4;
    add.u64        %x, %x, %at;
    add.u64        %y, %y, %at;
    ld.global.f32  %a, [%x];
    ld.global.f32  %b, [%y];
    add.rn.f32     %b, %a, %b;
    st.global.f32  [%y], %b;
    ret;
}
";

const COUNT: usize = 1 << 18;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By default, uses the system's driver if it has a device, else the software driver.
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    if device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? == 0 {
        println!("needs a device with concurrent managed access");
        return Ok(());
    }
    let context = Context::create(device)?;
    let module = Module::from_ptx(&context, PTX)?;
    let add = module.function("add")?;
    let stream = Stream::new(&context)?;

    let mut x = ManagedBuffer::<f32>::alloc(&context, COUNT)?;
    let mut y = ManagedBuffer::<f32>::alloc(&context, COUNT)?;
    // The host writes the memory directly.
    for (i, value) in x.host_mut()?.iter_mut().enumerate() {
        *value = i as f32;
    }
    y.host_mut()?.fill(1.0);

    // Advice and prefetches do not change results. With them, the pages are on the device before the kernel runs.
    let on_device = CUmemLocation::device(device.as_raw());
    x.advise(.., CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, on_device)?;
    x.prefetch(.., on_device, &stream)?;
    y.prefetch(.., on_device, &stream)?;
    let config = LaunchConfig::covering(COUNT as u32, 256);
    // SAFETY: the arguments have the types of the kernel's parameters, and both buffers have this many values.
    unsafe { add.launch(&stream, config, (x.ptr(), y.ptr(), COUNT as u32))? };
    y.prefetch(.., CUmemLocation::host(), &stream)?;

    stream.synchronize()?;
    let attributes = y.attributes(..)?;
    println!(
        "Last prefetch of y: {} (-1 is the host)",
        attributes.last_prefetch_location
    );
    // `host` waits for all work of the context, so it would not need the `synchronize` above.
    let is_right = y.host()?.iter().enumerate().all(|(i, value)| *value == i as f32 + 1.0);
    println!("Result = {}", if is_right { "PASS" } else { "FAIL" });
    if is_right { Ok(()) } else { Err("wrong values".into()) }
}
