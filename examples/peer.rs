//! Two devices and peer access: a kernel on one device reads the memory of the other, and a copy goes directly from one
//! to the other. Needs two devices that can access each other's memory; the software driver has them with
//! `CUDA_SOFT_DEVICES=2`.

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `twice(float* to, const float* from, unsigned n)` stores twice each value.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry twice(.param .u64 to, .param .u64 from, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32  %i, %n, %block, %size;
    .reg .b64  %at, %to, %from;
    .reg .f32  %x;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;

    ld.param.u64   %to, [to];
    ld.param.u64   %from, [from];
    mul.wide.u32   %at, %i, 4;
    add.u64        %from, %from, %at;
    add.u64        %to, %to, %at;
    ld.global.f32  %x, [%from];
    add.f32        %x, %x, %x;
    st.global.f32  [%to], %x;
    ret;
}
";

const N: usize = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let devices = Device::all()?;
    let [near_device, far_device, ..] = devices[..] else {
        println!("needs two devices");
        return Ok(());
    };
    let (near, far) = (Context::create(near_device)?, Context::create(far_device)?);
    // Dropping the guard ends the access, which is one-way: kernels of `near` may access memory of `far`.
    let access = match near.enable_peer_access(&far) {
        Ok(access) => access,
        Err(error) => {
            println!("needs two devices that can access each other's memory: {error}");
            return Ok(());
        }
    };

    let values: Vec<f32> = (0..N as u16).map(f32::from).collect();
    let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
    let source = DeviceBuffer::from_slice(&far, &values)?;
    let target = DeviceBuffer::<f32>::zeroed(&near, N)?;
    far.synchronize()?;

    // The kernel runs on one device and reads the other device's memory by its address.
    let module = Module::from_ptx(&near, PTX)?;
    let twice = module.function("twice")?;
    let stream = Stream::new(&near)?;
    let config = LaunchConfig::covering(N as u32, 256);
    // SAFETY: the arguments have the types of the kernel's parameters, and both buffers have `N` values.
    unsafe { twice.launch(&stream, config, (target.ptr(), source.ptr(), N as u32)) }?;
    stream.synchronize()?;
    let by_kernel = target.to_vec()? == doubled;

    // A copy between devices does not need the access, but may be faster with it.
    let mut back = DeviceBuffer::<f32>::zeroed(&far, N)?;
    back.as_mut_slice().copy_from_peer(&target)?;
    let by_copy = back.to_vec()? == doubled;
    drop(access);

    println!("{} read {N} values of {}", near_device.name()?, far_device.name()?);
    let pass = by_kernel && by_copy;
    println!("Result = {}", if pass { "PASS" } else { "FAIL" });
    if pass { Ok(()) } else { Err("wrong values".into()) }
}
