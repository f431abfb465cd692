//! Tests of the address space: allocations, quotas, registrations, mappings, and frees while work is in flight.

use super::AddressSpace;
use crate::memory::addresses::FreeAddresses;
use crate::memory::allocation::{Access, AllocationKind, BACKING_ALIGN};
use crate::memory::errors::OutOfMemory;
use crate::memory::pages::PAGE;
use crate::memory::record::Record;
#[cfg(target_os = "linux")]
use crate::memory::shared::{Label, Purpose, SharedFile};
use crate::memory::usage::Quota;
use crate::memory::zeroed::Zeroed;

fn leak(slack: u64) -> &'static AddressSpace {
    Box::leak(Box::new(AddressSpace::new(slack)))
}

#[test]
fn copies_return_the_bytes_and_bounds_are_exact() {
    let space = leak(0);
    let a = space.alloc(AllocationKind::Device, 1, 100).unwrap();
    assert_eq!(a % BACKING_ALIGN, 0);
    let mut out = [1u8; 100];
    space.read(a, &mut out).unwrap();
    assert_eq!(out, [0; 100], "new memory is zero");
    let pattern: Vec<u8> = (0..100).collect();
    space.write(a, &pattern).unwrap();
    space.read(a, &mut out).unwrap();
    assert_eq!(&out[..], &pattern[..]);
    assert!(space.write(a + 1, &pattern).is_err());
    assert!(space.write(a - 1, &pattern).is_err());
    assert!(space.read(a + 99, &mut out[..1]).is_ok());
    assert!(space.read(a + 100, &mut out[..1]).is_err());
    assert!(space.read(a + 100, &mut out[..0]).is_ok(), "an empty range at the end");
    assert_eq!(
        space.find(a + 99).map(|f| (f.base, f.bytes, f.owner)),
        Some((a, 100, 1))
    );
    assert_eq!(space.find(a + 100), None);
}

#[test]
fn free_takes_a_live_base_only() {
    let space = leak(0);
    let a = space.alloc(AllocationKind::Device, 1, 70_000).unwrap();
    let b = space.alloc(AllocationKind::Device, 2, 1).unwrap();
    assert_ne!(a / PAGE, b / PAGE);
    assert_eq!(space.free(a + 1).unwrap_err().inside.map(|i| i.base), Some(a));
    assert_eq!(space.free(a).unwrap().bytes, 70_000);
    assert!(space.free(a).is_err());
    assert_eq!(space.find(a), None);
    assert_ne!(
        space.alloc(AllocationKind::Device, 1, 70_000).unwrap(),
        a,
        "freed addresses are not reused at once"
    );
    assert_eq!(space.free_owned(2).len(), 1);
    assert_eq!(space.device_bytes(&[1, 2]), 70_000);
}

#[test]
fn freed_addresses_are_reused_when_the_range_is_used_up() {
    let space = leak(0);
    let start = space.range.start;
    assert!(space.range.end > start + 4 * PAGE);
    space.index().free = FreeAddresses::new(start..start + 4 * PAGE);
    let a: Vec<u64> = (0..4)
        .map(|_| space.alloc(AllocationKind::Device, 0, 1).unwrap())
        .collect();
    assert_eq!(
        space.alloc(AllocationKind::Device, 0, 1),
        Err(OutOfMemory { bytes: 1, limit: None })
    );
    space.free(a[1]).unwrap();
    space.free(a[2]).unwrap();
    assert_eq!(
        space.alloc(AllocationKind::Device, 0, 2 * PAGE),
        Ok(a[1]),
        "neighbours are joined"
    );
    assert_eq!(
        space.alloc(AllocationKind::Device, 0, u64::MAX),
        Err(OutOfMemory {
            bytes: u64::MAX,
            limit: None
        })
    );
}

#[test]
fn freed_addresses_are_reused_late() {
    let space = leak(0);
    let last = space.alloc(AllocationKind::Device, 0, 1).unwrap();
    for bytes in [1, 3 * PAGE, PAGE] {
        let freed = space.alloc(AllocationKind::Device, 0, bytes).unwrap();
        // The freed addresses are joined with the free ones that follow.
        space.free(freed).unwrap();
        let next = space.alloc(AllocationKind::Device, 0, bytes).unwrap();
        assert!(next > freed, "{next:#x} is not after the freed {freed:#x}");
        space.free(next).unwrap();
    }
    space.free(last).unwrap();
}

#[test]
fn work_in_flight_sees_a_free_as_length_zero() {
    let space = leak(16);
    let a = space.alloc(AllocationKind::Device, 1, 8).unwrap();
    let work = space.enter();
    let record = work.lookup(a + 7).unwrap();
    assert_eq!(
        (record.base(), record.length()),
        (a, 24),
        "slack is accessible to kernels"
    );
    assert!(space.write(a, &[0; 9]).is_err(), "but not to copies");
    space.free(a).unwrap();
    assert_eq!(record.length(), 0);
    assert!(work.lookup(a).is_none());
    assert!(work.lookup(u64::MAX).is_none());
}

#[test]
fn host_memory_keeps_its_address_and_pages_may_be_shared() {
    let space = leak(0);
    let mut memory = vec![7u8; 300];
    let address = memory.as_mut_ptr();
    // SAFETY: `memory` outlives both registrations.
    unsafe {
        assert_eq!(space.register_host(address, 100, 1, false), Ok(address as u64));
        assert_eq!(
            space.register_host(address.add(200), 100, 1, false),
            Ok(address as u64 + 200)
        );
        assert!(space.register_host(address.add(99), 50, 1, false).is_err());
        assert!(space.register_host(address.add(150), 0, 1, false).is_err());
    }
    let work = space.enter();
    assert_eq!(work.lookup(address as u64 + 250).unwrap().base(), address as u64 + 200);
    assert_eq!(work.lookup(address as u64 + 50).unwrap().delta(), 0);
    assert!(
        work.lookup(address as u64 + 150)
            .is_none_or(|r| r.base() + r.length() <= address as u64 + 150)
    );
    assert!(space.free(address as u64).is_err(), "registered memory is not freed");
    drop(work);
    space.fill16(address as u64, 0x0102, 50).unwrap();
    space.unregister(address).unwrap();
    assert!(space.unregister(address).is_err());
    space.unregister(address.wrapping_add(200)).unwrap();
    assert_eq!(&memory[..4], &[2, 1, 2, 1]);
    let pinned = space.alloc(AllocationKind::Pinned, 1, 64).unwrap();
    space.fill32(pinned, 0x0403_0201, 16).unwrap();
    let mut back = [0; 8];
    space.copy(pinned + 1, pinned, 32).unwrap();
    space.read(pinned, &mut back).unwrap();
    assert_eq!(back, [1, 1, 2, 3, 4, 1, 2, 3]);
}

#[test]
fn a_quota_counts_by_pool_and_owner() {
    let space = leak(0);
    let quota = Quota {
        owners: &[1, 2],
        most: 1000,
    };
    let a = space.alloc_within(AllocationKind::Device, 1, 600, quota).unwrap();
    assert_eq!(
        space.alloc_within(AllocationKind::Global, 2, 401, quota),
        Err(OutOfMemory {
            bytes: 401,
            limit: Some((600, 1000))
        })
    );
    let b = space.alloc_within(AllocationKind::Managed, 2, 400, quota).unwrap();
    assert!(space.alloc_within(AllocationKind::Constant, 1, 1, quota).is_err());
    // Page-locked memory, the allocations of other owners and the heap do not count.
    space
        .alloc_within(AllocationKind::Pinned, 1, 5000, quota)
        .expect("page-locked memory does not count");
    space.alloc(AllocationKind::Device, 3, 5000).unwrap();
    let heap = Quota { owners: &[1], most: 64 };
    let pieces: Vec<u64> = (0..4)
        .map(|_| space.alloc_within(AllocationKind::Heap, 1, 1, heap).unwrap())
        .collect();
    assert!(space.alloc_within(AllocationKind::Heap, 1, 1, heap).is_err());
    assert!(space.alloc_within(AllocationKind::Heap, 1, u64::MAX, heap).is_err());
    space.free(pieces[1]).unwrap();
    space.alloc_within(AllocationKind::Heap, 1, 16, heap).unwrap();
    // A failed allocation does not count.
    assert!(space.alloc(AllocationKind::Device, 1, u64::MAX).is_err());
    assert_eq!(space.device_bytes(&[1, 2]), 1000);
    space.free(a).unwrap();
    space.free(b).unwrap();
    assert_eq!(space.device_bytes(&[1, 2]), 0);
}

#[test]
fn a_stale_registration_ends_when_its_memory_is_allocated_again() {
    let space = leak(0);
    let backing = Zeroed::new(2 * PAGE, PAGE).unwrap();
    let given = backing.address() as u64;
    let (start, end) = (given - 3 * PAGE, given + 5 * PAGE);
    // SAFETY: nothing accesses the memory.
    unsafe { space.register_host(start as usize as *mut u8, end - start, 1, false) }.unwrap();
    let neighbour = end as usize as *mut u8;
    // SAFETY: as above.
    unsafe { space.register_host(neighbour, PAGE, 1, false) }.unwrap();
    let work = space.enter();
    let old = work.lookup(start + 1).unwrap();
    assert_eq!(old.length(), end - start);
    let pinned = space.adopt(AllocationKind::Pinned, 1, 2 * PAGE, backing);
    assert_eq!(pinned, Some(given));
    assert_eq!(old.length(), 0, "work in flight finds nothing there");
    for outside in [start, given - 1, given + 2 * PAGE, end - 1] {
        assert!(work.lookup(outside).is_none());
        assert_eq!(space.find(outside), None);
    }
    assert_eq!(space.find(given).map(|a| a.kind), Some(AllocationKind::Pinned));
    assert!(work.lookup(end).is_some(), "the neighbour stays");
    drop(work);
    assert!(space.unregister(start as usize as *mut u8).is_err());
    space.unregister(neighbour).unwrap();
    space.free(given).unwrap();
}

#[test]
fn the_end_of_a_registration_waits_for_work_in_flight() {
    let space = leak(0);
    let mut memory = vec![0u8; 4096];
    let address = memory.as_mut_ptr();
    // SAFETY: `memory` outlives the registration.
    unsafe { space.register_host(address, 4096, 1, false) }.unwrap();
    let work = space.enter();
    let at = address as usize;
    let ended = std::thread::spawn(move || space.unregister(at as *mut u8).map(|_| ()));
    while space.find(at as u64).is_some() {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(!ended.is_finished(), "work is in flight that may access the memory");
    // Enter only now: earlier, the thread may have removed the registration without having begun a new epoch.
    let later = space.enter();
    drop(work);
    // Work that began after the free cannot find the registration, so the free does not wait for it.
    ended.join().unwrap().unwrap();
    drop(later);
}

#[test]
fn the_end_of_a_registration_waits_for_copies() {
    let space = leak(0);
    let mut memory = vec![0u8; 4096];
    let at = memory.as_mut_ptr() as usize;
    // SAFETY: `memory` outlives the registration.
    unsafe { space.register_host(at as *mut u8, 4096, 1, false) }.unwrap();
    let host_access = space.host_access(at as u64 + 10, 100, false).ok().unwrap();
    let ended = std::thread::spawn(move || space.unregister(at as *mut u8).map(|_| ()));
    while space.find(at as u64).is_some() {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(!ended.is_finished(), "a copy accesses the memory");
    drop(host_access);
    ended.join().unwrap().unwrap();
}

#[test]
fn an_empty_allocation_does_not_hide_others() {
    let space = leak(0);
    let empty = space.alloc(AllocationKind::Pinned, 1, 0).unwrap();
    let register = |from: u64, to: u64| {
        // SAFETY: nothing accesses the memory.
        unsafe { space.register_host(from as usize as *mut u8, to - from, 1, false) }
    };
    register(empty - 200, empty - 100).unwrap();
    assert!(register(empty - 150, empty + 10).is_err());
    space.unregister((empty - 200) as usize as *mut u8).unwrap();
    space.free(empty).unwrap();
}

#[test]
fn free_if_frees_only_accepted_allocations() {
    let space = leak(0);
    let a = space.alloc(AllocationKind::Device, 1, 8).unwrap();
    let id = space.find(a).unwrap().id;
    assert!(space.free_if(a, |f| f.id == id + 1).is_err());
    assert_eq!(space.free_if(a, |f| f.id == id).unwrap().base, a);
}

#[test]
fn device_memory_beside_a_registered_block_does_not_end_the_registration() {
    let space = leak(0);
    let backing = Zeroed::new(PAGE, 16).unwrap();
    let page = (backing.address() as u64) & !4095;
    // SAFETY: nothing accesses the memory.
    unsafe { space.register_host(page as usize as *mut u8, PAGE + 4096, 1, false) }.unwrap();
    let device = space.adopt(AllocationKind::Device, 1, 64, backing).unwrap();
    assert_eq!(space.find(page).map(|a| a.kind), Some(AllocationKind::Registered));
    space.free(device).unwrap();
    space.unregister(page as usize as *mut u8).unwrap();
}

#[test]
fn an_unreachable_allocation_keeps_its_address_and_its_bytes() {
    let space = leak(0);
    let a = space.alloc(AllocationKind::Device, 1, 100).unwrap();
    let mut out = [0u8; 4];
    space.write(a, &[1, 2, 3, 4]).unwrap();
    space.set_reachable(a, false);
    assert_eq!(space.find(a), None);
    assert!(space.read(a, &mut out).is_err());
    let flight = space.enter();
    assert_eq!(flight.lookup(a).map(Record::length), Some(0));
    let other = space.alloc(AllocationKind::Device, 1, 100).unwrap();
    assert_ne!(other, a);
    space.set_reachable(a, true);
    assert_eq!(flight.lookup(a).map(Record::length), Some(100));
    space.read(a, &mut out).unwrap();
    assert_eq!(out, [1, 2, 3, 4]);
    // An unreachable allocation can be freed.
    space.set_reachable(a, false);
    space.free(a).unwrap();
    assert!(flight.lookup(a).is_none());
    assert_eq!(space.device_bytes(&[1]), 100);
    space.set_reachable(a, true);
    assert_eq!(space.find(a), None);
}

const EVERYTHING: Quota<'_> = Quota {
    owners: &[1],
    most: 1 << 30,
};

#[test]
fn mappings_share_bytes_and_enforce_their_access() {
    const PART: u64 = 1 << 17;
    let space = leak(0);
    let one = space.create(PART, 1, EVERYTHING, None).unwrap();
    let two = space.create(PART, 1, EVERYTHING, None).unwrap();
    assert_eq!(space.device_bytes(&[1]), 2 * PART);
    let base = space.reserve_addresses(3 * PART, 1 << 21, 0).unwrap();
    assert_eq!(base % (1 << 21), 0);
    for (n, memory) in [(0, &one), (1, &two), (2, &one)] {
        assert!(space.map(base + n * PART, PART, memory, 7, Access::None));
    }
    let mut byte = [0];
    assert!(space.read(base, &mut byte).is_err(), "no access yet");
    let work = space.enter();
    assert_eq!(work.lookup(base).map(Record::length), Some(0));
    for n in 0..3 {
        space.set_access(base + n * PART, Access::ReadWrite, Access::ReadWrite);
    }
    assert_eq!(work.lookup(base).map(Record::length), Some(PART));
    // The range crosses both borders: it starts and ends in the first memory, at different bytes.
    let pattern: Vec<u8> = (0..PART + 20).map(|i| (i * 7 + i / 256) as u8).collect();
    space.write(base + PART - 10, &pattern).unwrap();
    let mut back = vec![0; pattern.len()];
    space.read(base + PART - 10, &mut back).unwrap();
    // The last ten bytes are at the start of the first memory again, which the first mapping shows, too.
    assert_eq!(back, pattern);
    space.read(base, &mut back[..10]).unwrap();
    assert_eq!(back[..10], pattern[PART as usize + 10..]);
    space.fill16(base + PART - 2, 0xABCD, 3).unwrap();
    space.read(base + PART - 4, &mut back[..10]).unwrap();
    assert_eq!(back[2..8], [0xCD, 0xAB, 0xCD, 0xAB, 0xCD, 0xAB]);

    space.set_access(base + PART, Access::Read, Access::Read);
    assert!(space.read(base + PART, &mut byte).is_ok());
    assert!(space.write(base + PART, &byte).is_err());
    let bad = space.fill8(base, 1, PART + 1).unwrap_err().to_string();
    assert!(bad.ends_with("are in memory that does not permit this access"), "{bad}");
    let bad = space.fill8(base, 1, 3 * PART + 1).unwrap_err().to_string();
    assert!(bad.contains("run past the end"), "{bad}");
    assert!(work.lookup(base + PART).is_some_and(|r| !r.is_writable()));
    let all = space.mapped(base + 5, 2 * PART).unwrap();
    assert_eq!((all.base, all.bytes, all.access), (base, 3 * PART, Access::Read));

    drop(work);
    drop(one);
    space.free(base).unwrap();
    assert_eq!(space.device_bytes(&[1]), 2 * PART, "another mapping keeps the memory");
    space.free(base + 2 * PART).unwrap();
    assert_eq!(space.device_bytes(&[1]), PART);
    space.free(base + PART).unwrap();
    drop(two);
    assert_eq!(space.device_bytes(&[1]), 0);
    let again = space.reserve_addresses(PART, PAGE, base + PART);
    assert_ne!(again, Some(base + PART), "the addresses are still reserved");
    space.release_addresses(base, 3 * PART);
    let again = space.reserve_addresses(PART, PAGE, base + PART);
    assert_eq!(again, Some(base + PART));
}

#[test]
fn a_copy_from_two_mappings_that_fails_changes_nothing() {
    const PART: u64 = 1 << 17;
    let space = leak(0);
    let memory = space.create(2 * PART, 1, EVERYTHING, None).unwrap();
    let base = space.reserve_addresses(2 * PART, PAGE, 0).unwrap();
    for n in 0..2 {
        assert!(space.map_from(n * PART, base + n * PART, PART, &memory, 1, Access::ReadWrite));
    }
    space.fill8(base, 7, 2 * PART).unwrap();
    // The target has room for the first piece, but not for both.
    let target = space.alloc(AllocationKind::Device, 1, 15).unwrap();
    assert!(space.copy(target, base + PART - 10, 20).is_err());
    let mut back = [1; 15];
    space.read(target, &mut back).unwrap();
    assert_eq!(back, [0; 15]);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_not_shown_to_the_host_outside_of_a_reserved_range() {
    let label = Label {
        purpose: Purpose::Physical,
        number: 0,
    };
    for is_reserved in [true, false] {
        let mut space = AddressSpace::new(0);
        // A system without room for the range leaves it unreserved: other memory of the process may be there.
        space.is_reserved &= is_reserved;
        let is_reserved = space.is_reserved;
        let base = space.reserve_addresses(PAGE, PAGE, 0).expect("addresses");
        let file = SharedFile::new(PAGE, label).expect("a file");
        let physical = space.open(file);
        assert_eq!(space.show_to_host(base, &physical, Access::ReadWrite), is_reserved);
        space.hide_from_host(base, PAGE);
    }
}

#[test]
fn copies_of_uninitialised_bytes_that_overlap() {
    let space = leak(0);
    let plain = space.alloc(AllocationKind::Device, 1, 64).unwrap();
    let _tracked = space.track_writes();
    let a = space.alloc(AllocationKind::Device, 1, 64).unwrap();
    let is_written = |range: std::ops::Range<u64>| {
        let map = space.written_map(a).unwrap();
        let bits = map.bits();
        range.map(|bit| bits.any(bit..bit + 1)).collect::<Vec<bool>>()
    };
    space.fill8(a, 1, 8).unwrap();
    assert_eq!(is_written(0..12), [[true; 4], [true; 4], [false; 4]].concat());
    // The copy moves the bytes up by 4. The last four of its target come from bytes that were not written.
    space.copy(a + 4, a, 12).unwrap();
    assert_eq!(is_written(0..16), [[true; 12].as_slice(), &[false; 4]].concat());
    // A copy that fails changes nothing.
    assert!(space.copy(a + 60, a, 8).is_err());
    assert_eq!(is_written(60..64), [false; 4]);
    // Memory that is not tracked counts as written.
    space.copy(a + 32, plain, 8).unwrap();
    assert_eq!(
        is_written(28..44),
        [[false; 4], [true; 4], [true; 4], [false; 4]].concat()
    );
}
