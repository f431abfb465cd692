//! Green contexts: two kernels at the same time, each on its own part of the device's multiprocessors.

use std::collections::BTreeSet;

use cuda_driver::green_context::DeviceResource;
use cuda_driver::sys::CUdevResourceType;
use cuda_driver::{Device, DeviceBuffer, GreenContext, LaunchConfig, Library, Version};
use cuda_driver_soft::Prefer;

/// `places(unsigned* where)` writes the number of the multiprocessor that runs each block.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry places(.param .u64 where)
{
    .reg .b32 %block, %place;
    .reg .b64 %at, %where;

    mov.u32        %block, %ctaid.x;
    ld.param.u64   %where, [where];
    mul.wide.u32   %at, %block, 4;
    add.u64        %where, %where, %at;
    mov.u32        %place, %smid;
    st.global.u32  [%where], %place;
    ret;
}
";

const BLOCKS: u32 = 512;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let version = cuda_driver::version()?;
    if version < Version::new(12, 5) {
        println!("needs a driver of CUDA 12.5 or later, not {version}");
        return Ok(());
    }
    let device = Device::first()?;
    let all = device.resource(CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM)?;
    // At least 8 multiprocessors for urgent work, and the others for the rest.
    let split = all.split_by_count(1, 8, 0)?;
    let (Some(urgent), Some(rest)) = (split.groups.first(), split.remainder) else {
        println!("needs a device with more than 8 multiprocessors");
        return Ok(());
    };
    let count = |part: &DeviceResource| part.sm_count().unwrap_or(0);
    println!(
        "{} multiprocessors: {} for urgent work, and {} others",
        count(&all),
        count(urgent),
        count(&rest)
    );

    let library = Library::from_ptx(PTX)?;
    let places = library.kernel("places")?;
    let config = LaunchConfig {
        grid: BLOCKS.into(),
        ..Default::default()
    };
    let mut started = Vec::new();
    for part in [*urgent, rest] {
        let context = GreenContext::create(device, &[part])?;
        let stream = context.stream(0)?;
        let buffer = DeviceBuffer::<u32>::alloc(&context, BLOCKS as usize)?;
        // SAFETY: the kernel takes an address, and there is a value for each block.
        unsafe { places.launch(&stream, config, (buffer.ptr(),))? };
        started.push((part, stream, buffer));
    }
    // Both kernels are queued now, and can run at the same time.
    for (part, stream, buffer) in started {
        stream.synchronize()?;
        let used: BTreeSet<u32> = buffer.to_vec()?.into_iter().collect();
        println!("{BLOCKS} blocks on {} of {} multiprocessors", used.len(), count(&part));
    }
    println!("Result = PASS");
    Ok(())
}
