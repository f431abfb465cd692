//! Tests of reserved addresses and physical memory as objects.

use cuda_driver::sys::{CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUresult};
use cuda_driver::virtual_memory::{AddressRange, MemoryOptions, PhysicalMemory, read_write};
use cuda_driver::{Context, DevicePtr, Stream};

use crate::child;
use crate::common::{context, device, needs};

fn options() -> (MemoryOptions, usize) {
    let options = MemoryOptions::on_device(device());
    let granularity = options.granularity().expect("a granularity");
    (options, granularity)
}

/// Returns a range of four units with memory of one unit mapped at the second and at the third, and the size of a unit
/// (the granularity of memory on the device).
fn mapped(context: &Context) -> (AddressRange, usize) {
    let (options, unit) = options();
    let mut range = AddressRange::reserve(context, 4 * unit).expect("addresses");
    for at in [2 * unit, unit] {
        let memory = PhysicalMemory::new(&options, unit).expect("memory");
        range.map(at, &memory).expect("a mapping");
    }
    range
        .set_access(unit..3 * unit, &[read_write(options.location)])
        .expect("access");
    (range, unit)
}

#[test]
fn views_extend_over_mappings() {
    let context = context();
    let (mut range, unit) = mapped(&context);
    assert_eq!(range.mappings(), [unit..2 * unit, 2 * unit..3 * unit]);
    let values: Vec<u32> = (0..100).collect();
    let mut view = range.slice_mut::<u32>(2 * unit - 200, 100).expect("a view");
    view.copy_from(&values).expect("a copy");
    assert_eq!(
        range
            .slice::<u32>(2 * unit, 50)
            .expect("a view")
            .to_vec()
            .expect("a copy"),
        values[50..]
    );
    let whole = range.slice_mut::<u8>(unit, 2 * unit).expect("a view of everything");
    assert_eq!(whole.ptr(), range.ptr().byte_add(unit as u64));
    // Views that are not mapped, not aligned, or outside of the range.
    for (offset, len) in [
        (0, 1),
        (unit - 4, 2),
        (3 * unit - 4, 2),
        (4 * unit, 1),
        (unit + 1, 1),
        (usize::MAX - 3, 1),
        (unit, usize::MAX),
    ] {
        let error = range.slice::<u32>(offset, len).expect_err("no view");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE, "{error}");
        assert!(range.slice_mut::<u32>(offset, len).is_err());
    }
    let empty = range.slice::<u32>(0, 0).expect("an empty view");
    assert!(empty.is_empty());
    range.free().expect("a free");
}

#[test]
fn memory_at_two_addresses() {
    let context = context();
    let (options, unit) = options();
    let memory = PhysicalMemory::new(&options, unit).expect("memory");
    let mut range = AddressRange::reserve(&context, 2 * unit).expect("addresses");
    range.map(0, &memory).expect("a mapping");
    range.map(unit, &memory).expect("another mapping");
    memory.release().expect("a release");
    range
        .set_access(0..2 * unit, &[read_write(options.location)])
        .expect("access");
    range
        .slice_mut::<u32>(0, 10)
        .expect("a view")
        .fill_u32(9)
        .expect("a fill");
    let second = range.slice::<u32>(unit, 10).expect("a view");
    assert_eq!(second.to_vec().expect("a copy"), [9; 10]);
    // The memory stays mapped at its second address, and can be mapped in another range.
    range.unmap(0).expect("an unmapping");
    assert_eq!(range.mappings().first(), Some(&(unit..2 * unit)));
    assert!(range.slice::<u32>(0, 1).is_err());
    let again = range.memory_at(unit + 5).expect("the memory");
    assert_eq!(again.size_bytes(), unit);
    let properties = again.properties().expect("the properties");
    assert_eq!(properties.location.type_, options.location.type_);
    let mut other = AddressRange::reserve(&context, unit).expect("addresses");
    other.map(0, &again).expect("a mapping");
    drop(range);
    other
        .set_access(0..unit, &[read_write(options.location)])
        .expect("access");
    let view = other.slice::<u32>(0, 10).expect("a view");
    assert_eq!(view.to_vec().expect("a copy"), [9; 10]);
}

#[test]
fn mappings_that_are_not_possible() {
    let context = context();
    let (mut range, unit) = mapped(&context);
    let (options, _) = options();
    let memory = PhysicalMemory::new(&options, 2 * unit).expect("memory");
    // The memory does not fit at the offset, or overlaps a mapping.
    for offset in [0, unit, 3 * unit, 4 * unit, usize::MAX] {
        let error = range.map(offset, &memory).expect_err("no mapping");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE, "{error}");
    }
    for offset in [0, unit + 1, 3 * unit] {
        let error = range.unmap(offset).expect_err("no mapping");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE, "{error}");
        assert!(offset == unit + 1 || range.memory_at(offset).is_err());
    }
    let access = [read_write(options.location)];
    assert!(range.set_access(0..2 * unit, &access).is_err());
    assert!(range.set_access(unit..4 * unit, &access).is_err());
    assert!(range.access(0, &options.location).is_err());
    assert_eq!(range.mappings().len(), 2);
    // Zero, and sizes that are not multiples of the granularity.
    assert!(PhysicalMemory::new(&options, 0).is_err());
    assert!(PhysicalMemory::new(&options, unit + 1).is_err());
    assert!(AddressRange::reserve(&context, 0).is_err());
    assert!(AddressRange::reserve(&context, 100).is_err());
}

#[test]
fn access_to_mappings() {
    let context = context();
    let (options, unit) = options();
    let memory = PhysicalMemory::new(&options, unit).expect("memory");
    let mut range = AddressRange::reserve(&context, unit).expect("addresses");
    range.map(0, &memory).expect("a mapping");
    let rights = |range: &AddressRange| range.access(0, &options.location).expect("rights");
    assert_eq!(rights(&range), CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE);
    // Without access, copies and fills fail, and the context stays usable.
    let mut view = range.slice_mut::<u32>(0, 4).expect("a view");
    assert!(view.copy_from(&[1; 4]).is_err());
    assert!(view.fill_u32(1).is_err());
    range
        .set_access(0..unit, &[read_write(options.location)])
        .expect("access");
    assert_eq!(rights(&range), CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    let mut view = range.slice_mut::<u32>(0, 4).expect("a view");
    view.copy_from(&[1; 4]).expect("a copy");
    let read = CUmemAccessDesc {
        location: options.location,
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
    };
    range.set_access(0..unit, &[read]).expect("access");
    assert_eq!(
        range.slice::<u32>(0, 4).expect("a view").to_vec().expect("a copy"),
        [1; 4]
    );
    let wrong = [read_write(CUmemLocation::device(99))];
    assert!(range.set_access(0..unit, &wrong).is_err());
}

#[test]
fn views_of_host_memory_need_the_host() {
    // In a child process, because driver 580 crashes in the copies that the views prevent.
    child!("views_of_host_memory_need_the_host", { host_memory() });
}

fn host_memory() {
    let device = device();
    if device.attributes().host_numa_virtual_memory_management_supported() != Ok(true) {
        return needs("virtual memory on NUMA nodes of the host");
    }
    let context = context();
    let (on_device, granularity) = options();
    let mut on_host = on_device;
    on_host.location = CUmemLocation::host_numa(0);
    let unit = granularity.max(on_host.granularity().expect("a granularity"));
    let mut range = AddressRange::reserve(&context, 2 * unit).expect("addresses");
    for (at, options) in [(0, &on_device), (unit, &on_host)] {
        let memory = PhysicalMemory::new(options, unit).expect("memory");
        range.map(at, &memory).expect("a mapping");
    }
    // Views that only touch the mapping on the host, and views that reach into it.
    let views = |range: &mut AddressRange| {
        let reaching = unit - 4;
        let read = [
            range.slice::<u32>(unit, 4).is_ok(),
            range.slice::<u32>(reaching, 2).is_ok(),
        ];
        let written = [
            range.slice_mut::<u32>(unit, 4).is_ok(),
            range.slice_mut::<u32>(reaching, 2).is_ok(),
        ];
        assert!(range.slice::<u32>(reaching, 1).is_ok() && range.slice_mut::<u32>(unit, 0).is_ok());
        (read, written)
    };
    let none = ([false; 2], [false; 2]);
    assert_eq!(views(&mut range), none);
    let error = range.slice::<u32>(unit, 4).expect_err("no view");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert!(error.to_string().contains("on the host"), "{error}");
    range
        .set_access(0..2 * unit, &[read_write(on_device.location)])
        .expect("access");
    assert_eq!(views(&mut range), none);
    let read = CUmemAccessDesc {
        location: on_host.location,
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
    };
    range.set_access(unit..2 * unit, &[read]).expect("access");
    assert_eq!(views(&mut range), ([true; 2], [false; 2]));
    let zeros = range.slice::<u32>(unit, 4).expect("a view").to_vec();
    assert_eq!(zeros.expect("a copy"), [0; 4]);
    range
        .set_access(unit..2 * unit, &[read_write(on_host.location)])
        .expect("access");
    assert_eq!(views(&mut range), ([true; 2], [true; 2]));
    let mut view = range.slice_mut::<u32>(unit, 3).expect("a view");
    view.copy_from(&[1, 2, 3]).expect("a copy");
    assert_eq!(view.to_vec().expect("a copy"), [1, 2, 3]);
    // Memory on the device that is mapped at the same place needs no access of the host.
    range.unmap(unit).expect("an unmapping");
    let memory = PhysicalMemory::new(&on_device, unit).expect("memory");
    range.map(unit, &memory).expect("a mapping");
    assert_eq!(views(&mut range), ([true; 2], [true; 2]));
}

#[test]
fn raw_handles_of_ranges_and_memory() {
    let context = context();
    let (options, unit) = options();
    let range = AddressRange::reserve_at(&context, unit, 2 * unit, DevicePtr::null()).expect("addresses");
    assert_eq!(range.as_raw() % (2 * unit) as u64, 0);
    let raw = range.into_raw();
    // SAFETY: the range was owned above, and nothing is mapped in it.
    let mut range = unsafe { AddressRange::from_raw(raw, unit, &context) };
    let memory = PhysicalMemory::new(&options, unit).expect("memory");
    let raw = memory.into_raw();
    // SAFETY: the handle was owned above.
    let memory = unsafe { PhysicalMemory::from_raw(raw, unit) };
    // SAFETY: `memory` owns the handle and outlives `borrowed`.
    let borrowed = unsafe { PhysicalMemory::borrow_raw(memory.as_raw(), unit) };
    range.map(0, &borrowed).expect("a mapping");
    assert!(format!("{range:?} {memory:?} {options:?}").contains("AddressRange"));
}

#[test]
fn dropped_on_another_thread_behind_queued_work() {
    let context = context();
    let (mut range, unit) = mapped(&context);
    let stream = Stream::new(&context).expect("a stream");
    let (send, receive) = std::sync::mpsc::channel::<()>();
    // The fill waits for the host function, and dropping the range waits for the fill.
    stream
        .launch_host_fn(move || {
            let _ = receive.recv();
        })
        .expect("a host function");
    let mut view = range.slice_mut::<u8>(unit, unit).expect("a view");
    // SAFETY: the range stays mapped until the fill is done, because dropping it waits for the fill.
    unsafe { view.fill_u8_async(1, &stream) }.expect("a fill");
    drop(context);
    let dropper = std::thread::spawn(move || drop(range));
    // Gives a drop that does not wait the time to unmap the memory before the fill.
    std::thread::sleep(std::time::Duration::from_millis(20));
    send.send(()).expect("the host function");
    dropper.join().expect("no panic");
    stream.synchronize().expect("no fault");
}

#[cfg(target_os = "linux")]
#[test]
fn exported_and_imported() {
    use std::fs::File;
    use std::os::fd::AsFd;

    use cuda_driver::MemPool;
    use cuda_driver::pool::PoolOptions;
    use cuda_driver::sys::CUmemAllocationHandleType as HandleType;

    let context = context();
    let (mut options, unit) = options();
    let private = PhysicalMemory::new(&options, unit).expect("memory");
    assert!(private.export_fd().is_err());
    options.handle_types = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let memory = PhysicalMemory::new(&options, unit).expect("memory");
    let fd = memory.export_fd().expect("a descriptor");
    let imported = PhysicalMemory::import_fd(fd.as_fd(), unit).expect("the memory again");
    let other = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .expect("a file");
    let code = |result: cuda_driver::Result<()>| result.expect_err("no memory").code();
    let import = |fd| code(PhysicalMemory::import_fd(fd, unit).map(drop));
    assert_eq!(import(other.as_fd()), CUresult::CUDA_ERROR_UNKNOWN);
    let mut pool = PoolOptions::on_device(device());
    pool.handle_types = options.handle_types;
    let pool = MemPool::with_options(&pool).expect("a pool");
    let pool = pool.export_fd().expect("a descriptor");
    assert_eq!(import(pool.as_fd()), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    let import = |fd| code(MemPool::import_fd(fd).map(drop));
    assert_eq!(import(other.as_fd()), CUresult::CUDA_ERROR_UNKNOWN);
    assert_eq!(import(fd.as_fd()), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    let mut range = AddressRange::reserve(&context, 2 * unit).expect("addresses");
    range.map(0, &memory).expect("a mapping");
    let larger = PhysicalMemory::import_fd(fd.as_fd(), 2 * unit).expect("the memory again");
    let mut there = AddressRange::reserve(&context, 2 * unit).expect("addresses");
    let error = there.map(0, &larger).expect_err("another size");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    range.map(unit, &imported).expect("a mapping");
    range
        .set_access(0..2 * unit, &[read_write(options.location)])
        .expect("access");
    range
        .slice_mut::<u32>(0, 5)
        .expect("a view")
        .fill_u32(3)
        .expect("a fill");
    let same = range.slice::<u32>(unit, 5).expect("a view");
    assert_eq!(same.to_vec().expect("a copy"), [3; 5]);
}
