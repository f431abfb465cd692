//! Advice and prefetches for managed memory. Host and device share this memory here, so advice and prefetches have no
//! effect, but programs can query them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::{CUmem_range_attribute as Id, CUmemLocationType as LocationType};

use crate::object::{device, memory};
use crate::state::error::{Error, Result};
use engine::memory::{Allocation, AllocationKind};

/// Advice applies to whole pages of this many bytes.
const PAGE: u64 = 4096;
/// `CU_DEVICE_CPU`
pub(crate) const CPU: i32 = -1;
/// `CU_DEVICE_INVALID`
const INVALID: i32 = -2;

/// A location of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Location {
    Device(i32),
    Host,
    /// A NUMA node of the host.
    HostNuma(i32),
}

impl Location {
    /// Returns the location for calls that take a device ordinal or `CU_DEVICE_CPU`.
    pub(crate) fn of_device(ordinal: i32) -> Result<Self> {
        if ordinal == CPU {
            return Ok(Location::Host);
        }
        device::get(ordinal)?;
        Ok(Location::Device(ordinal))
    }

    /// Returns the location of a `CUmemLocation`.
    pub(crate) fn of_type(kind: u32, id: i32) -> Result<Self> {
        match LocationType(kind) {
            LocationType::CU_MEM_LOCATION_TYPE_DEVICE => {
                device::get(id)?;
                Ok(Location::Device(id))
            }
            LocationType::CU_MEM_LOCATION_TYPE_HOST => Ok(Location::Host),
            LocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA if id >= 0 => Ok(Location::HostNuma(id)),
            // All threads are treated as threads of node 0.
            LocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(Location::HostNuma(0)),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }

    /// Returns the device ordinal, or `CU_DEVICE_CPU` for the host.
    fn ordinal(self) -> i32 {
        match self {
            Location::Device(ordinal) => ordinal,
            Location::Host | Location::HostNuma(_) => CPU,
        }
    }

    /// Returns the `CUmemLocationType` of the location.
    pub(crate) fn kind(self) -> i32 {
        let kind = match self {
            Location::Device(_) => LocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            Location::Host => LocationType::CU_MEM_LOCATION_TYPE_HOST,
            Location::HostNuma(_) => LocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA,
        };
        kind.0 as i32
    }

    /// Returns the number of the device or NUMA node, or `CU_DEVICE_CPU` for the host.
    pub(crate) fn id(self) -> i32 {
        match self {
            Location::Device(id) | Location::HostNuma(id) => id,
            Location::Host => CPU,
        }
    }
}

/// Advice given by `cuMemAdvise`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Advice {
    ReadMostly(bool),
    Preferred(Option<Location>),
    AccessedBy(Location, bool),
}

/// The advice and the last prefetch of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PageAdvice {
    read_mostly: bool,
    preferred: Option<Location>,
    accessed_by: BTreeSet<i32>,
    prefetched: Option<Location>,
}

/// The advice for the pages of an allocation. Each key is a byte offset and applies up to the next key.
#[derive(Debug)]
struct Pages(BTreeMap<u64, PageAdvice>);

impl Pages {
    fn new() -> Self {
        Pages(BTreeMap::from([(0, PageAdvice::default())]))
    }

    /// Makes an offset a key, with the advice that applies there.
    fn split(&mut self, at: u64) {
        let before = self.0.range(..=at).next_back();
        if let Some(page) = before.map(|(_, page)| page.clone()) {
            self.0.entry(at).or_insert(page);
        }
    }

    /// Changes the advice for a range of offsets, and removes keys with the same advice as the key before. Looks only at
    /// keys from the start to the end of the range, because all others differ from the key before already.
    fn change(&mut self, range: Range<u64>, change: impl Fn(&mut PageAdvice)) {
        self.split(range.start);
        self.split(range.end);
        let before = self.0.range(..range.start).next_back();
        let mut last = before.map(|(_, page)| page.clone());
        let mut repeated = Vec::new();
        for (&at, page) in self.0.range_mut(range.start..=range.end) {
            if at < range.end {
                change(page);
            }
            if last.as_ref() == Some(&*page) {
                repeated.push(at);
            } else {
                last = Some(page.clone());
            }
        }
        for at in repeated {
            self.0.remove(&at);
        }
    }

    /// Returns the advice that applies in a range of offsets.
    fn of(&self, range: &Range<u64>) -> impl Iterator<Item = &PageAdvice> {
        let first = self.0.range(..=range.start).next_back();
        let first = first.map_or(0, |(&at, _)| at);
        self.0.range(first..range.end).map(|(_, page)| page)
    }
}

/// Locks the advice, which has the allocation ID as its key.
fn all() -> MutexGuard<'static, HashMap<u64, Pages>> {
    static ALL: OnceLock<Mutex<HashMap<u64, Pages>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Removes the advice for freed memory.
pub(crate) fn forget(freed: &Allocation) {
    if freed.kind == AllocationKind::Managed {
        all().remove(&freed.id);
    }
}

/// Returns the managed allocation that contains a range, and the offsets of the range's pages. Returns
/// `CUDA_ERROR_INVALID_VALUE` if the range is empty, or is not in one managed allocation.
fn pages(address: u64, bytes: u64) -> Result<(Allocation, Range<u64>)> {
    let found = memory::find(address).filter(|a| a.kind == AllocationKind::Managed);
    let allocation = found.ok_or_else(|| {
        host::log!("{address:#x} is not managed memory");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    let length = allocation.bytes.next_multiple_of(PAGE);
    let start = address - allocation.base;
    let end = start.checked_add(bytes).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    if bytes == 0 || end > length {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok((allocation, start / PAGE * PAGE..end.next_multiple_of(PAGE)))
}

/// Returns `CUDA_ERROR_INVALID_VALUE` if a range is empty, or is not in one managed allocation.
pub(crate) fn check(address: u64, bytes: u64) -> Result<()> {
    pages(address, bytes).map(|_| ())
}

/// `cuMemAdvise`
pub(crate) fn advise(address: u64, bytes: u64, advice: Advice) -> Result<()> {
    let (allocation, range) = pages(address, bytes)?;
    let mut all = all();
    let pages = all.entry(allocation.id).or_insert_with(Pages::new);
    pages.change(range, |page| match advice {
        Advice::ReadMostly(is_set) => page.read_mostly = is_set,
        Advice::Preferred(location) => page.preferred = location,
        Advice::AccessedBy(location, true) => {
            page.accessed_by.insert(location.ordinal());
        }
        Advice::AccessedBy(location, false) => {
            page.accessed_by.remove(&location.ordinal());
        }
    });
    Ok(())
}

/// `cuMemPrefetchAsync`: records the location; nothing moves, because all memory is shared.
pub(crate) fn prefetch(address: u64, bytes: u64, location: Location) -> Result<()> {
    let (allocation, range) = pages(address, bytes)?;
    let mut all = all();
    let pages = all.entry(allocation.id).or_insert_with(Pages::new);
    pages.change(range, |page| page.prefetched = Some(location));
    Ok(())
}

/// The advice that all pages of a range have in common, for `cuMemRangeGetAttribute`.
pub(crate) struct CommonAdvice {
    read_mostly: bool,
    preferred: Option<Location>,
    accessed_by: BTreeSet<i32>,
    prefetched: Option<Location>,
}

/// Returns the advice that all pages of a range have in common.
pub(crate) fn common(address: u64, bytes: u64) -> Result<CommonAdvice> {
    let (allocation, range) = pages(address, bytes)?;
    let all = all();
    let without_advice = Pages::new();
    let all_pages: Vec<&PageAdvice> = all.get(&allocation.id).unwrap_or(&without_advice).of(&range).collect();
    let same = |field: fn(&PageAdvice) -> Option<Location>| {
        let first = all_pages.first().and_then(|page| field(page));
        first.filter(|_| all_pages.iter().all(|page| field(page) == first))
    };
    let by_all = |ordinal: &i32| all_pages.iter().all(|page| page.accessed_by.contains(ordinal));
    let accessed_by = all_pages.first().map(|page| page.accessed_by.clone());
    Ok(CommonAdvice {
        read_mostly: all_pages.iter().all(|page| page.read_mostly),
        preferred: same(|page| page.preferred),
        prefetched: same(|page| page.prefetched),
        accessed_by: accessed_by.unwrap_or_default().into_iter().filter(by_all).collect(),
    })
}

impl CommonAdvice {
    /// Returns the value of an attribute as integers that fill `bytes` bytes. Without a location, the ID is
    /// `CU_DEVICE_INVALID`, and the type is `CU_MEM_LOCATION_TYPE_INVALID`. `CU_DEVICE_INVALID` also fills the rest of
    /// a list.
    pub(crate) fn attribute(&self, attribute: Id, bytes: usize) -> Result<impl Iterator<Item = i32>> {
        // The caller chooses the length of the list, so the padding is not stored.
        let fill = |known: Vec<i32>| {
            let filled = known.into_iter().chain(std::iter::repeat(INVALID));
            filled.take(bytes / 4)
        };
        let ordinal = |l: Option<Location>| l.map_or(INVALID, Location::ordinal);
        // CU_MEM_LOCATION_TYPE_INVALID
        let kind = |l: Option<Location>| l.map_or(0, Location::kind);
        let id = |l: Option<Location>| l.map_or(INVALID, Location::id);
        let value = match attribute {
            Id::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY => self.read_mostly.into(),
            Id::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION => ordinal(self.preferred),
            Id::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY => {
                if bytes == 0 || !bytes.is_multiple_of(4) {
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                return Ok(fill(self.accessed_by.iter().copied().collect()));
            }
            Id::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION => ordinal(self.prefetched),
            Id::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE => kind(self.preferred),
            Id::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID => id(self.preferred),
            Id::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE => kind(self.prefetched),
            Id::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID => id(self.prefetched),
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        };
        if bytes == 4 {
            Ok(fill(vec![value]))
        } else {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares ranges of advice with advice that is stored for each page.
    #[test]
    fn pages_have_the_advice_of_the_last_range() {
        const PAGES: u64 = 40;
        let mut ranges = Pages::new();
        let mut each = vec![PageAdvice::default(); PAGES as usize];
        let mut random = 1_u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let start = (random >> 40) % PAGES;
            let end = start + 1 + (random >> 50) % (PAGES - start);
            let location = (!(random >> 33).is_multiple_of(3)).then_some(Location::Device((random >> 35) as i32 & 1));
            ranges.change(start * PAGE..end * PAGE, |page| page.preferred = location);
            each[start as usize..end as usize]
                .iter_mut()
                .for_each(|page| page.preferred = location);
            for (page, advice) in (0..).zip(&each) {
                let here: Vec<_> = ranges.of(&(page * PAGE..(page + 1) * PAGE)).collect();
                assert_eq!(here, [advice]);
            }
            // Neighbours with the same advice share a key.
            let keys: Vec<_> = ranges.0.values().collect();
            assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
        }
    }

    /// Each change looks at its own range only.
    #[test]
    fn many_ranges_have_advice() {
        const MANY: u64 = 100_000;
        let mut ranges = Pages::new();
        for page in 0..MANY {
            let at = 2 * page * PAGE;
            ranges.change(at..at + PAGE, |page| page.read_mostly = true);
        }
        assert_eq!(ranges.0.len() as u64, 2 * MANY);
        ranges.change(0..2 * MANY * PAGE, |page| page.read_mostly = true);
        assert_eq!(ranges.0.len(), 2);
    }
}
