//! Splits a vector over all devices, with a context and a thread for each. Works with one device, too.

use std::thread;

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
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

const COUNT: usize = 100_003;

/// Squares the values on one device, and returns the device's name.
fn square(device: Device, values: &mut [f32]) -> cuda_driver::Result<String> {
    let context = Context::create(device)?;
    let kernel = Module::from_ptx(&context, PTX)?.function("square")?;
    let stream = Stream::new(&context)?;
    let buffer = DeviceBuffer::from_slice(&context, values)?;
    let n = values.len() as u32;
    // SAFETY: the kernel takes an address and a count, and accesses that many values.
    unsafe { kernel.launch(&stream, LaunchConfig::covering(n, 256), (buffer.ptr(), n))? };
    stream.synchronize()?;
    buffer.copy_to(values)?;
    device.name()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let devices = Device::all()?;
    let mut values: Vec<f32> = (0..COUNT).map(|i| (i % 1000) as f32).collect();
    let part = COUNT.div_ceil(devices.len().max(1));

    thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
        let threads: Vec<_> = devices
            .iter()
            .zip(values.chunks_mut(part))
            .map(|(device, values)| scope.spawn(move || (values.len(), square(*device, values))))
            .collect();
        for (ordinal, thread) in threads.into_iter().enumerate() {
            let (count, name) = thread.join().expect("the thread does not panic");
            println!("Device {ordinal}: {count} values on {}", name?);
        }
        Ok(())
    })?;

    for (i, value) in values.iter().enumerate() {
        let x = (i % 1000) as f32;
        assert_eq!(value.to_bits(), (x * x).to_bits(), "value {i}");
    }
    println!("Result = PASS");
    Ok(())
}
