//! Virtual memory management: address reservations, physical memory, and mappings of physical memory into reservations.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cuda_driver_sys::CUmemAccess_flags;

use crate::object::device::{self, Device};
use crate::object::managed::{CPU, Location};
use crate::object::{foreign_use, leak, memory};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use engine::memory::shared::{Label, Purpose, SharedFile};
use engine::memory::{Access, Allocation, AllocationKind, Physical, address_space};

/// Sizes and addresses must be multiples of this many bytes.
pub(crate) const GRANULE: u64 = 2 << 20;

static TABLE: Table<GenericAllocation> = Table::new(HandleKind::GenericAllocation);

/// Memory that `cuMemCreate` created or `cuMemImportFromShareableHandle` imported.
#[derive(Debug)]
pub(crate) struct GenericAllocation {
    handle: usize,
    pub(crate) location: Location,
    /// True if the memory can be exported to another process.
    pub(crate) is_shareable: bool,
    /// True if the memory can be mapped only to tiles of arrays.
    is_tile_pool: bool,
    memory: Arc<Physical>,
    uses: Mutex<UseCounts>,
    /// The mapping for tiles of arrays; it lives as long as an array uses it.
    tiles: Mutex<Weak<TilePool>>,
}

/// The references to an allocation.
#[derive(Debug)]
struct UseCounts {
    /// Number of calls that returned the handle, minus the number of releases.
    handles: u64,
    mappings: u64,
}

impl UseCounts {
    fn are_none(&self) -> bool {
        self.handles == 0 && self.mappings == 0
    }
}

impl GenericAllocation {
    /// Returns the device that the memory belongs to. Memory on the host belongs to the first device.
    fn device(&self) -> Result<&'static Device> {
        match self.location {
            Location::Device(ordinal) => device::get(ordinal),
            Location::Host | Location::HostNuma(_) => device::get(0),
        }
    }

    fn is_on_host(&self) -> bool {
        !matches!(self.location, Location::Device(_))
    }

    fn uses(&self) -> MutexGuard<'_, UseCounts> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the use counts; returns an error if the handle is released. The memory is not removed while they are
    /// locked.
    fn unreleased_uses(&self) -> Result<MutexGuard<'_, UseCounts>> {
        let uses = self.uses();
        if uses.handles == 0 {
            return refuse("the memory handle is already released");
        }
        Ok(uses)
    }

    /// Removes the allocation if nothing refers to it.
    fn drop_unused(&self, uses: &UseCounts) -> Result<()> {
        if uses.are_none() {
            let removed = TABLE.remove(self.handle);
            removed.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
        }
        Ok(())
    }
}

/// A mapping of physical memory.
struct Mapping {
    bytes: u64,
    memory: Arc<GenericAllocation>,
    /// `CUmemAccess_flags` by the number of a device; [`CPU`] stands for the host.
    access: HashMap<i32, u32>,
}

/// The process's address reservations and mappings, by first address.
struct AddressMap {
    reservations: BTreeMap<u64, u64>,
    mappings: BTreeMap<u64, Mapping>,
}

fn map() -> MutexGuard<'static, AddressMap> {
    static MAP: Mutex<AddressMap> = Mutex::new(AddressMap {
        reservations: BTreeMap::new(),
        mappings: BTreeMap::new(),
    });
    MAP.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AddressMap {
    /// Returns true if a range lies in one reservation.
    fn is_reserved(&self, address: u64, bytes: u64) -> bool {
        let around = self.reservations.range(..=address).next_back();
        around.is_some_and(|(&base, &length)| bytes <= length && address - base <= length - bytes)
    }

    /// Returns the first addresses of the mappings that overlap a range.
    fn in_range(&self, address: u64, bytes: u64) -> Vec<u64> {
        let below = self.mappings.range(..address.saturating_add(bytes)).rev();
        let inside = below.take_while(|(base, mapping)| **base + mapping.bytes > address);
        let mut bases: Vec<u64> = inside.map(|(base, _)| *base).collect();
        bases.reverse();
        bases
    }

    /// Returns the mappings of a range, which must consist of whole mappings without a gap.
    fn exactly(&self, address: u64, bytes: u64) -> Result<Vec<u64>> {
        let bases = self.in_range(address, bytes);
        let mut at = address;
        for base in &bases {
            if *base != at {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            at += self.mappings.get(base).map_or(0, |mapping| mapping.bytes);
        }
        let all = bytes > 0 && address.checked_add(bytes) == Some(at);
        all.then_some(bases).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }

    fn at(&self, address: u64) -> Result<&Mapping> {
        let below = self.mappings.range(..=address).next_back();
        let found = below.filter(|(base, mapping)| address - **base < mapping.bytes);
        found.map(|(_, mapping)| mapping).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Logs why a call is refused and returns `CUDA_ERROR_INVALID_VALUE`.
fn refuse<T>(why: &str) -> Result<T> {
    host::log!("virtual memory: {why}");
    Err(Error::CUDA_ERROR_INVALID_VALUE)
}

fn is_granular(number: u64) -> bool {
    number.is_multiple_of(GRANULE)
}

/// `cuMemAddressReserve`
pub(crate) fn reserve(bytes: u64, align: u64, requested: u64) -> Result<u64> {
    if bytes == 0 || !is_granular(bytes) || !is_granular(requested) {
        return refuse(
            "size and requested address of a reservation must be multiples of 2 MiB, and the size must not be 0",
        );
    }
    if align != 0 && !align.is_power_of_two() {
        return refuse("the alignment of a reservation must be a power of two");
    }
    let mut map = map();
    let taken = address_space().reserve_addresses(bytes, align.max(GRANULE), requested);
    let base = taken.ok_or_else(|| {
        host::log!("no free address range of {bytes} bytes");
        Error::CUDA_ERROR_OUT_OF_MEMORY
    })?;
    map.reservations.insert(base, bytes);
    drop(map);
    let exists = move || self::map().reservations.get(&base) == Some(&bytes);
    leak::note_unless_gone("address range", base as usize, None, exists);
    Ok(base)
}

/// `cuMemAddressFree`
pub(crate) fn free_addresses(base: u64, bytes: u64) -> Result<()> {
    let mut map = map();
    if map.reservations.get(&base) != Some(&bytes) {
        return refuse("no reservation with this address and size");
    }
    if !map.in_range(base, bytes).is_empty() {
        return refuse("cannot free a reservation that has mappings; unmap them first");
    }
    map.reservations.remove(&base);
    address_space().release_addresses(base, bytes);
    Ok(())
}

/// `cuMemCreate`: returns the handle. With `shareable`, the memory can be exported; with `is_tile_pool`, it can be
/// mapped to tiles of arrays only.
pub(crate) fn create(location: Location, bytes: u64, shareable: bool, is_tile_pool: bool) -> Result<usize> {
    if bytes == 0 || !is_granular(bytes) {
        return refuse("the size of memory must be a multiple of 2 MiB and not 0");
    }
    let memory = match location {
        Location::Device(ordinal) => create_on_device(ordinal, bytes, shareable)?,
        Location::Host | Location::HostNuma(_) => create_on_host(location, bytes)?,
    };
    Ok(insert(location, memory, shareable, is_tile_pool))
}

/// Creates memory on the host. It does not count against the memory of a device.
fn create_on_host(location: Location, bytes: u64) -> Result<Arc<Physical>> {
    if !cfg!(target_os = "linux") {
        host::log!("virtual memory on the host is supported on Linux only");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    let label = Label {
        purpose: Purpose::Physical,
        number: label_of(location),
    };
    let fits = host::memory().is_none_or(|most| bytes <= most);
    let file = if fits { SharedFile::new(bytes, label) } else { None };
    let file = file.ok_or_else(|| {
        host::log!("out of host memory for {bytes} bytes of virtual memory");
        Error::CUDA_ERROR_OUT_OF_MEMORY
    })?;
    Ok(address_space().open(file))
}

/// The number in the label of memory on the host.
const ON_HOST: u32 = u32::MAX;
/// The bit that is set in the label of memory on a NUMA node of the host; the other bits are the node's number.
const ON_NODE: u32 = 1 << 31;

/// Returns the number in the label of memory at a location.
fn label_of(location: Location) -> u32 {
    match location {
        Location::Device(ordinal) => ordinal.cast_unsigned(),
        Location::Host => ON_HOST,
        Location::HostNuma(node) => ON_NODE | node.cast_unsigned(),
    }
}

/// Returns the location of imported memory. Memory of a device that only the exporting process has belongs to the first
/// device here.
fn location_of(label: u32) -> Location {
    match label {
        ON_HOST => Location::Host,
        node if node & ON_NODE != 0 => Location::HostNuma((node & !ON_NODE).cast_signed()),
        ordinal => Location::Device(device::get(ordinal.cast_signed()).map_or(0, |device| device.ordinal)),
    }
}

fn create_on_device(ordinal: i32, bytes: u64, shareable: bool) -> Result<Arc<Physical>> {
    let device = device::get(ordinal)?;
    let owners = memory::owners_on(device);
    let quota = memory::quota(device, &owners);
    let label = shareable.then_some(Label {
        purpose: Purpose::Physical,
        number: ordinal as u32,
    });
    let made = address_space().create(bytes, memory::owner_of(device), quota, label);
    made.map_err(|error| memory::out_of_memory(&error))
}

/// Inserts memory into the table and returns its handle.
fn insert(location: Location, memory: Arc<Physical>, is_shareable: bool, is_tile_pool: bool) -> usize {
    let made = TABLE.insert_with(|handle| GenericAllocation {
        handle,
        location,
        is_shareable,
        is_tile_pool,
        memory,
        uses: Mutex::new(UseCounts {
            handles: 1,
            mappings: 0,
        }),
        tiles: Mutex::default(),
    });
    leak::note("memory handle of cuMemCreate", &TABLE, made.handle, None);
    made.handle
}

/// Returns the memory with this handle. On driver 580, a released handle stays valid for queries and mappings as long
/// as the memory is mapped.
pub(crate) fn get(handle: usize) -> Result<Arc<GenericAllocation>> {
    let found = TABLE.get(handle).ok();
    found.ok_or_else(|| {
        host::log!("{handle:#x} is not a live memory handle; the NVIDIA driver may crash here");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Returns the memory with this handle; an error if the handle is released.
fn unreleased(handle: usize) -> Result<Arc<GenericAllocation>> {
    let memory = get(handle)?;
    memory.unreleased_uses().map(drop)?;
    Ok(memory)
}

/// `cuMemRelease`
pub(crate) fn release(handle: usize) -> Result<()> {
    let memory = get(handle)?;
    let mut uses = memory.unreleased_uses()?;
    uses.handles -= 1;
    memory.drop_unused(&uses)
}

/// `cuMemMap`
pub(crate) fn map_memory(base: u64, bytes: u64, offset: u64, handle: usize) -> Result<()> {
    let memory = get(handle)?;
    if memory.is_tile_pool {
        return refuse("memory with CU_MEM_CREATE_USAGE_TILE_POOL can be mapped to arrays only");
    }
    let mut map = map();
    if bytes == 0 || !is_granular(base) || !is_granular(bytes) || !is_granular(offset) {
        return refuse("address, size and offset of a mapping must be multiples of 2 MiB, and the size must not be 0");
    }
    // Driver 580 maps only whole allocations.
    if offset != 0 || bytes != memory.memory.bytes() {
        host::log!(
            "virtual memory: cannot map {bytes} bytes at offset {offset}: a mapping must cover the whole allocation \
             of {} bytes",
            memory.memory.bytes()
        );
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    if !map.is_reserved(base, bytes) {
        return refuse("the range of a mapping is not inside a reservation");
    }
    if !map.in_range(base, bytes).is_empty() {
        return refuse("the range is already mapped");
    }
    let owner = memory::owner_of(memory.device()?);
    // Another thread may have released the handle, or removed its last mapping, since it was looked up.
    let mut uses = memory.uses();
    if uses.are_none() {
        return refuse("the memory handle is already released");
    }
    if !address_space().map(base, bytes, &memory.memory, owner, Access::None) {
        return refuse("the range is above the addresses that a device can have");
    }
    uses.mappings += 1;
    drop(uses);
    let mapping = Mapping {
        bytes,
        memory,
        access: HashMap::new(),
    };
    map.mappings.insert(base, mapping);
    Ok(())
}

/// `cuMemUnmap` of whole mappings. Driver 580 does not wait for work.
pub(crate) fn unmap(address: u64, bytes: u64) -> Result<()> {
    let mut map = map();
    let Ok(bases) = map.exactly(address, bytes) else {
        return refuse("cannot unmap part of a mapping, or addresses without a mapping");
    };
    for base in bases {
        let Some(gone) = map.mappings.remove(&base) else {
            continue;
        };
        let freed = address_space().free_if(base, |a| a.kind == AllocationKind::Mapped);
        let freed = freed.map_err(|_| Error::CUDA_ERROR_UNKNOWN)?;
        memory::forget_notes(&freed);
        foreign_use::forget(&freed);
        if gone.memory.is_on_host() {
            address_space().hide_from_host(base, gone.bytes);
        }
        let mut uses = gone.memory.uses();
        uses.mappings -= 1;
        gone.memory.drop_unused(&uses)?;
    }
    Ok(())
}

/// Returns the access that flags permit.
fn permitted(flags: u32) -> Access {
    match CUmemAccess_flags(flags) {
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE => Access::None,
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ => Access::Read,
        _ => Access::ReadWrite,
    }
}

/// `cuMemSetAccess`: sets the access of devices, and of the host as [`CPU`], to all mappings of the range. The host
/// can have access only to memory that is on the host.
pub(crate) fn set_access(address: u64, bytes: u64, requests: &[(i32, u32)]) -> Result<()> {
    let mut map = map();
    let Ok(bases) = map.exactly(address, bytes) else {
        return refuse("cannot set access for part of a mapping, or for addresses without a mapping");
    };
    let of_host = requests
        .iter()
        .rev()
        .find(|(who, _)| *who == CPU)
        .map(|(_, flags)| *flags);
    let on_host = |base| {
        map.mappings
            .get(base)
            .is_some_and(|mapping| mapping.memory.is_on_host())
    };
    if of_host.is_some_and(|flags| flags != 0) && !bases.iter().all(on_host) {
        host::log!("virtual memory: cannot give the host access to memory of a device");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    if let Some(flags) = of_host {
        show_to_host(&map, &bases, flags)?;
    }
    for base in bases {
        let Some(mapping) = map.mappings.get_mut(&base) else {
            continue;
        };
        mapping.access.extend(requests.iter().copied());
        // All devices share the memory here, so the widest access applies.
        let devices = mapping.access.iter().filter(|(who, _)| **who != CPU);
        let most = devices.fold(0, |most, (_, flags)| most | flags);
        let of_host = mapping.access.get(&CPU).copied().unwrap_or(0);
        address_space().set_access(base, permitted(most), permitted(most | of_host));
    }
    Ok(())
}

/// Gives the host this access to all mappings of memory that is on the host. If the system refuses one, the others keep
/// the access that they had.
fn show_to_host(map: &AddressMap, bases: &[u64], flags: u32) -> Result<()> {
    let on_host = bases.iter().filter_map(|base| Some((*base, map.mappings.get(base)?)));
    let on_host: Vec<(u64, &Mapping)> = on_host.filter(|(_, mapping)| mapping.memory.is_on_host()).collect();
    let show = |(base, mapping): &(u64, &Mapping), flags| {
        address_space().show_to_host(*base, &mapping.memory.memory, permitted(flags))
    };
    let before = |(_, mapping): &(u64, &Mapping)| mapping.access.get(&CPU).copied().unwrap_or(0);
    let Err(refused) = all_or_none(&on_host, |one| show(one, flags), |one| show(one, before(one))) else {
        return Ok(());
    };
    let (base, _) = on_host[refused];
    host::log!("the system does not map memory at {base:#x} for the host");
    Err(Error::CUDA_ERROR_OUT_OF_MEMORY)
}

/// Changes all items, or none: if a change fails, the changes before it are undone. Returns the index of the item whose
/// change failed.
fn all_or_none<T>(
    items: &[T],
    change: impl Fn(&T) -> bool,
    undo: impl Fn(&T) -> bool,
) -> std::result::Result<(), usize> {
    match items.iter().position(|item| !change(item)) {
        None => Ok(()),
        Some(failed) => {
            // An item that cannot be undone keeps its new value.
            items[..failed].iter().for_each(|item| _ = undo(item));
            Err(failed)
        }
    }
}

/// `cuMemGetAccess`
pub(crate) fn access(address: u64, ordinal: i32) -> Result<u32> {
    let map = map();
    let mapping = map.at(address)?;
    Ok(mapping.access.get(&ordinal).copied().unwrap_or(0))
}

/// `cuMemRetainAllocationHandle`: returns the handle of the memory mapped at an address and counts one more reference.
pub(crate) fn retain(address: u64) -> Result<usize> {
    let map = map();
    let memory = &map.at(address)?.memory;
    memory.uses().handles += 1;
    Ok(memory.handle)
}

/// Returns the first address and the size of the reservation that contains an address.
pub(crate) fn reservation(address: u64) -> Option<(u64, u64)> {
    let map = map();
    let (&base, &bytes) = map.reservations.range(..=address).next_back()?;
    (address - base < bytes).then_some((base, bytes))
}

/// Returns the memory that is mapped at an address.
pub(crate) fn mapped_at(address: u64) -> Option<Arc<GenericAllocation>> {
    map().at(address).ok().map(|m| Arc::clone(&m.memory))
}

/// Returns true if memory on the host is mapped at an address.
pub(crate) fn is_on_host(address: u64) -> bool {
    mapped_at(address).is_some_and(|memory| memory.is_on_host())
}

/// `cuMemExportToShareableHandle`: returns a file descriptor that the caller owns.
pub(crate) fn export(handle: usize) -> Result<i32> {
    let memory = unreleased(handle)?;
    let Some(file) = memory.memory.file().filter(|_| memory.is_shareable) else {
        return refuse("this memory cannot be exported: it is imported or has no shareable handle type");
    };
    file.export().ok_or(Error::CUDA_ERROR_OPERATING_SYSTEM)
}

/// `cuMemImportFromShareableHandle`
pub(crate) fn import(descriptor: i32) -> Result<usize> {
    let (location, memory) = open(descriptor).ok_or_else(|| memory::not_importable(descriptor, Purpose::Pool))?;
    // Driver 580 does not export imported memory.
    Ok(insert(location, memory, false, false))
}

/// Opens the memory of a file descriptor that `export` returned in this process or in another. Returns it with its
/// location, or `None` if the descriptor is something else.
pub(crate) fn open(descriptor: i32) -> Option<(Location, Arc<Physical>)> {
    let Some(file) = SharedFile::open(descriptor, Purpose::Physical) else {
        host::log!("file descriptor {descriptor} is not exported memory");
        return None;
    };
    // Memory that this process already has counts once.
    let identity = file.identity();
    let same = |known: &Arc<GenericAllocation>| known.memory.file().is_some_and(|f| f.identity() == identity);
    let known = TABLE.all().into_iter().find(same);
    Some(match known {
        Some(known) => (known.location, Arc::clone(&known.memory)),
        None => (location_of(file.label().number), address_space().open(file)),
    })
}

/// A mapping of memory for tiles of arrays, at addresses that the program does not know.
pub(crate) struct TilePool {
    base: u64,
    memory: Arc<GenericAllocation>,
}

impl TilePool {
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.memory.bytes()
    }
}

impl Drop for TilePool {
    fn drop(&mut self) {
        let is_mapping = |found: &Allocation| found.kind == AllocationKind::Mapped;
        if address_space().free_if(self.base, is_mapping).is_ok() {
            address_space().release_addresses(self.base, self.bytes());
        }
        let mut uses = self.memory.uses();
        uses.mappings -= 1;
        let _ = self.memory.drop_unused(&uses);
    }
}

/// Returns the mapping of memory for tiles of arrays. The memory stays while the mapping is used, even if its handle is
/// released.
pub(crate) fn map_tiles(handle: usize) -> Result<Arc<TilePool>> {
    let memory = unreleased(handle)?;
    if !memory.is_tile_pool {
        return refuse("memory for tiles of arrays must be created with CU_MEM_CREATE_USAGE_TILE_POOL");
    }
    let mut known = memory.tiles.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = known.upgrade() {
        return Ok(pool);
    }
    let bytes = memory.memory.bytes();
    let owner = memory::owner_of(memory.device()?);
    // Another thread may have released the handle since the first check.
    let mut uses = memory.unreleased_uses()?;
    let base = address_space().reserve_addresses(bytes, GRANULE, 0);
    let base = base.ok_or(Error::CUDA_ERROR_OUT_OF_MEMORY)?;
    if !address_space().map(base, bytes, &memory.memory, owner, Access::ReadWrite) {
        address_space().release_addresses(base, bytes);
        return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
    }
    uses.mappings += 1;
    drop(uses);
    let pool = Arc::new(TilePool {
        base,
        memory: Arc::clone(&memory),
    });
    *known = Arc::downgrade(&pool);
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_release_ends_a_mapping_that_is_about_to_begin() {
        device::set_all(device::from_environment().unwrap());
        let base = reserve(GRANULE, 0, 0).unwrap();
        let handle = create(Location::Device(0), GRANULE, false, false).unwrap();
        let map = map();
        let mapping = std::thread::spawn(move || map_memory(base, GRANULE, 0, handle));
        // Gives the thread time to look up the handle. The thread then waits for the lock of the map.
        std::thread::sleep(Duration::from_millis(100));
        release(handle).unwrap();
        drop(map);
        assert_eq!(mapping.join().unwrap(), Err(Error::CUDA_ERROR_INVALID_VALUE));
        free_addresses(base, GRANULE).unwrap();
    }

    #[test]
    fn the_end_of_a_mapping_ends_its_notes() {
        device::set_all(device::from_environment().unwrap());
        let base = reserve(GRANULE, 0, 0).unwrap();
        let handle = create(Location::Device(0), GRANULE, false, false).unwrap();
        map_memory(base, GRANULE, 0, handle).unwrap();
        let allocation = memory::find(base).unwrap();
        memory::set_synchronous(&allocation, true);
        unmap(base, GRANULE).unwrap();
        assert!(!memory::is_synchronous(&allocation));
        release(handle).unwrap();
        free_addresses(base, GRANULE).unwrap();
    }

    #[test]
    fn a_failed_change_leaves_nothing_changed() {
        let cells = [1, 2, 3, 4].map(|old| Cell::new((old, old)));
        let change = |cell: &Cell<(i32, i32)>| {
            let (old, _) = cell.get();
            cell.set((old, 9));
            old != 3
        };
        let undo = |cell: &Cell<(i32, i32)>| {
            let (old, _) = cell.get();
            cell.set((old, old));
            true
        };
        assert_eq!(all_or_none(&cells, change, undo), Err(2));
        assert_eq!([0, 1, 3].map(|i| cells[i].get().1), [1, 2, 4]);
        assert_eq!(all_or_none(&cells[..2], change, undo), Ok(()));
        assert_eq!([0, 1].map(|i| cells[i].get().1), [9, 9]);
    }
}
