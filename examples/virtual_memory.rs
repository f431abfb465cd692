//! Virtual memory: a vector in device memory that grows without moving. It reserves a large address range, and maps
//! more memory there when the mapped part is full.

use cuda_driver::bytemuck::NoUninit;
use cuda_driver::virtual_memory::{AddressRange, MemoryOptions, PhysicalMemory, read_write};
use cuda_driver::{Context, Device, DevicePtr, DeviceSlice, Result, sys};
use cuda_driver_soft::Prefer;

/// A vector in device memory, whose address never changes.
struct DeviceVec<T> {
    range: AddressRange,
    options: MemoryOptions,
    /// The number of bytes that are mapped.
    mapped: usize,
    len: usize,
    values: std::marker::PhantomData<T>,
}

impl<T: NoUninit> DeviceVec<T> {
    /// Creates an empty vector that can grow up to `max_len` values. It has addresses, but no memory yet.
    fn new(context: &Context, max_len: usize) -> Result<Self> {
        let options = MemoryOptions::on_device(context.device()?);
        let bytes = (max_len * size_of::<T>()).next_multiple_of(options.granularity()?);
        Ok(Self {
            range: AddressRange::reserve(context, bytes)?,
            options,
            mapped: 0,
            len: 0,
            values: std::marker::PhantomData,
        })
    }

    fn ptr(&self) -> DevicePtr {
        self.range.ptr()
    }

    fn as_slice(&self) -> Result<DeviceSlice<'_, T>> {
        self.range.slice(0, self.len)
    }

    /// Appends values. Maps more memory after the mapped part if they do not fit.
    fn extend(&mut self, values: &[T]) -> Result<()> {
        let start = self.len * size_of::<T>();
        let end = start + size_of_val(values);
        if end > self.mapped {
            let bytes = (end - self.mapped).next_multiple_of(self.options.granularity()?);
            // The handle can be released at the end of this block: the mapping keeps the memory.
            let memory = PhysicalMemory::new(&self.options, bytes)?;
            self.range.map(self.mapped, &memory)?;
            let access = read_write(self.options.location);
            if let Err(error) = self.range.set_access(self.mapped..self.mapped + bytes, &[access]) {
                // Otherwise the next call could not map memory there.
                self.range.unmap(self.mapped)?;
                return Err(error);
            }
            self.mapped += bytes;
        }
        self.range.slice_mut(start, values.len())?.copy_from(values)?;
        self.len += values.len();
        Ok(())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    // By default, uses the system's driver if it has a device, else the software driver.
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let device = Device::first()?;
    if device.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)? == 0 {
        println!("needs a device with virtual memory management");
        return Ok(());
    }
    let context = Context::create(device)?;

    let mut vector = DeviceVec::<u32>::new(&context, 1 << 28)?;
    let address = vector.ptr();
    let mut expected = Vec::new();
    for round in 0..4_u32 {
        let values: Vec<u32> = (0..400_000).map(|i| i * 4 + round).collect();
        vector.extend(&values)?;
        expected.extend(values);
        println!(
            "{} values in {} mappings, {} bytes in total, at {:?}",
            vector.len,
            vector.range.mappings().len(),
            vector.mapped,
            vector.ptr()
        );
    }

    let is_right = vector.ptr() == address && vector.as_slice()?.to_vec()? == expected;
    println!("Result = {}", if is_right { "PASS" } else { "FAIL" });
    if is_right { Ok(()) } else { Err("wrong values".into()) }
}
