//! Green contexts: a kernel is launched twice, on two separate parts of the device's multiprocessors.

use cuda_driver::green_context::DeviceResource;
use cuda_driver::sys::CUdevResourceType;
use cuda_driver::{Device, DeviceBuffer, GreenContext, LaunchConfig, Library, Version};
use cuda_driver_soft::Prefer;

/// `squares(unsigned* values)` writes the square of each block's index. It runs with one thread per block.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry squares(.param .u64 values)
{
    .reg .b32 %block, %square;
    .reg .b64 %at, %values;

    mov.u32        %block, %ctaid.x;
    ld.param.u64   %values, [values];
    mul.wide.u32   %at, %block, 4;
    add.u64        %values, %values, %at;
    mul.lo.u32     %square, %block, %block;
    st.global.u32  [%values], %square;
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
    let squares = library.kernel("squares")?;
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
        unsafe { squares.launch(&stream, config, (buffer.ptr(),))? };
        started.push((part, stream, buffer));
    }
    // Both launches are queued now, and can run at the same time.
    for (part, stream, buffer) in started {
        stream.synchronize()?;
        assert_eq!(
            buffer.to_vec()?,
            (0..BLOCKS).map(|block| block * block).collect::<Vec<_>>()
        );
        println!("{BLOCKS} blocks are done on {} multiprocessors", count(&part));
    }
    println!("Result = PASS");
    Ok(())
}
