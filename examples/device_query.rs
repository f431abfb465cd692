//! Lists all devices with their most important attributes, and the access of each device to the memory of the others.

use cuda_driver::Device;
use cuda_driver_soft::Prefer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    println!("CUDA {}, {} devices", cuda_driver::version()?, Device::count()?);

    let devices = Device::all()?;
    for (ordinal, device) in devices.iter().enumerate() {
        let attributes = device.attributes();
        let (major, minor) = device.compute_capability()?;
        println!("\nDevice {ordinal}: {}", device.name()?);
        println!("  UUID                     {}", device.uuid()?);
        println!("  PCI address              {}", device.pci_bus_id()?);
        println!("  compute capability       {major}.{minor}");
        println!("  memory                   {} MiB", device.total_mem()? >> 20);
        println!("  multiprocessors          {}", attributes.multiprocessor_count()?);
        println!("  clock rate               {} MHz", attributes.clock_rate()? / 1000);
        println!("  L2 cache                 {} KiB", attributes.l2_cache_size()? >> 10);
        println!("  threads in a warp        {}", attributes.warp_size()?);
        println!("  threads in a block       {}", attributes.max_threads_per_block()?);
        let block = (
            attributes.max_block_dim_x()?,
            attributes.max_block_dim_y()?,
            attributes.max_block_dim_z()?,
        );
        let grid = (
            attributes.max_grid_dim_x()?,
            attributes.max_grid_dim_y()?,
            attributes.max_grid_dim_z()?,
        );
        println!("  largest block            {block:?}");
        println!("  largest grid             {grid:?}");
        println!(
            "  shared memory of a block {} bytes",
            attributes.max_shared_memory_per_block()?
        );
        println!(
            "    if it opts in          {} bytes",
            attributes.max_shared_memory_per_block_optin()?
        );
        println!("  registers of a block     {}", attributes.max_registers_per_block()?);
        println!("  unified addressing       {}", attributes.unified_addressing()?);
        println!("  managed memory           {}", attributes.managed_memory()?);
        println!("  memory pools             {}", attributes.memory_pools_supported()?);
        println!("  cooperative launches     {}", attributes.cooperative_launch()?);
        match attributes.cluster_launch() {
            Ok(clusters) => println!("  clusters                 {clusters}"),
            // Drivers before CUDA 11.8 do not have the attribute.
            Err(error) => println!("  clusters                 unknown: {error}"),
        }

        // The PCI address and the UUID lead to the same device.
        assert_eq!(Device::by_pci_bus_id(&device.pci_bus_id()?)?, *device);
        assert_eq!(Device::by_uuid(device.uuid()?)?, *device);
    }

    println!();
    for (from, device) in devices.iter().enumerate() {
        for (to, peer) in devices.iter().enumerate().filter(|(to, _)| *to != from) {
            let can = device.can_access_peer(*peer)?;
            println!("Device {from} can access the memory of device {to}: {can}");
        }
    }
    println!("Result = PASS");
    Ok(())
}
