//! Exports of batches: many copies, or operations on ranges of managed memory, in one call. Also exports of single
//! copies with the attributes of a batch.

use std::ffi::{c_uint, c_ulonglong};

use cuda_driver_sys::{
    CUDA_MEMCPY3D_BATCH_OP, CUdeviceptr, CUmemLocation, CUmemcpy3DOperand, CUmemcpy3DOperandType, CUmemcpyAttributes,
    CUmemcpyFlags, CUmemcpySrcAccessOrder, CUstream,
};

use super::args::{Caller, set};
use super::copy::unified_place;
use super::exports;
use super::managed::location_of;
use crate::call::{stream, submit};
use crate::object::stream::{NullStream, StreamRef};
use crate::object::{array, context, managed};
use crate::operation::copy::Waits;
use crate::operation::region::{Base, Extent, Side};
use crate::state::error::{Error, Result};

/// Flags that a copy may have; all are hints without effect here.
const FLAGS: c_uint = CUmemcpyFlags::CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE.0;

/// Returns the stream of a batch. Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for the legacy stream.
fn stream_of(hstream: CUstream, mode: NullStream) -> Result<StreamRef> {
    let stream = stream::for_work(hstream as usize, mode)?;
    if stream.is_legacy() {
        host::log!("batches cannot run on the legacy stream: use a created stream or the per-thread default stream");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(stream)
}

/// Returns the stream of a batch of copies. Driver 580 needs a current context, and returns `CUDA_ERROR_INVALID_VALUE`
/// without one.
fn copying_stream(hstream: CUstream, mode: NullStream) -> Result<StreamRef> {
    if context::current().is_err() {
        host::log!("batches of copies need a current context: make the stream's context current");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    stream_of(hstream, mode)
}

/// Returns a function that maps the index of an item to its entry in a list: entry `i` covers the items from
/// `indexes[i]` up to the first item of the next entry. The function must be called with ascending indexes. Returns
/// `CUDA_ERROR_INVALID_VALUE` unless the entries begin at item 0, ascend, and are in the list of `count` items.
fn spread(c: Caller, indexes: *mut usize, entries: usize, count: usize) -> Result<impl FnMut(usize) -> usize> {
    let mut starts: Vec<usize> = Vec::new();
    for start in c.items(indexes.cast_const(), entries)? {
        let ascends = starts.last().map_or(start == 0, |&last| last < start);
        if !ascends || start >= count {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        starts.push(start);
    }
    if starts.is_empty() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut entry = 0;
    Ok(move |item: usize| {
        while starts.get(entry + 1).is_some_and(|&next| next <= item) {
            entry += 1;
        }
        entry
    })
}

/// Returns what a copy with this order waits for; `CUDA_ERROR_INVALID_VALUE` for an unknown order.
fn waits_of(order: CUmemcpySrcAccessOrder) -> Result<Waits> {
    use CUmemcpySrcAccessOrder as Order;
    match order {
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM | Order::CU_MEMCPY_SRC_ACCESS_ORDER_ANY => Ok(Waits::Asynchronous),
        Order::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL => Ok(Waits::UntilRead),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// The arguments of `cuMemcpyBatchAsync`. The lists of attributes and indexes have `kinds` entries, the other lists
/// `count`.
struct Batch {
    to: *mut CUdeviceptr,
    from: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    attributes: *mut CUmemcpyAttributes,
    indexes: *mut usize,
    kinds: usize,
}

impl Batch {
    /// Submits the copies. Checks all of them before the first one starts. Sets `which` to the index of each copy
    /// before it checks or submits the copy.
    fn run(self, c: Caller, stream: &StreamRef, which: &mut usize) -> Result<()> {
        let to = c.items(self.to.cast_const(), self.count)?;
        let from = c.items(self.from.cast_const(), self.count)?;
        let sizes = c.items(self.sizes.cast_const(), self.count)?;
        let mut entry = spread(c, self.indexes, self.kinds, self.count)?;
        let attributes = c.array(self.attributes.cast_const(), self.kinds)?;
        if attributes.iter().any(|a| a.flags & !FLAGS != 0) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let orders = attributes.iter().map(|a| waits_of(a.srcAccessOrder));
        let orders = orders.collect::<Result<Vec<_>>>()?;
        let mut copies = Vec::new();
        for (i, ((to, from), size)) in to.zip(from).zip(sizes).enumerate() {
            *which = i;
            if size == 0 {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            let (to, from) = (unified_place(c, to, size)?, unified_place(c, from, size)?);
            to.check_writable()?;
            copies.push((to, from, size as u64, orders[entry(i)]));
        }
        for (i, (to, from, bytes, waits)) in copies.into_iter().enumerate() {
            *which = i;
            submit::copy(to, from, bytes, stream, waits)?;
        }
        Ok(())
    }
}

/// Runs a batch. If it fails, writes the index that `run` has set: that of the copy that failed. As documented, an
/// error that does not concern one copy has the index `SIZE_MAX`.
fn with_failed(c: Caller, failed: *mut usize, run: impl FnOnce(&mut usize) -> Result<()>) -> Result<()> {
    let mut which = usize::MAX;
    let done = run(&mut which);
    if done.is_err() {
        set(c.out_or_null(failed), which);
    }
    done
}

fn batch(c: Caller, batch: Batch, failed: *mut usize, hstream: CUstream, mode: NullStream) -> Result<()> {
    with_failed(c, failed, |which| {
        let stream = copying_stream(hstream, mode)?;
        batch.run(c, &stream, which)
    })
}

/// Returns the size of a texel in bytes if the operand is an array, else `None`.
fn element_bytes(operand: &CUmemcpy3DOperand) -> Result<Option<u64>> {
    if operand.type_ != CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY {
        return Ok(None);
    }
    // SAFETY: the type says that this member was written; its pointer and integers are valid for any bits.
    let handle = unsafe { operand.op.array.array } as usize;
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(Some(array::get(handle)?.image.texel_bytes().into()))
}

/// Returns the source or destination of a box copy. The operand's row length and x offset are in elements of `element`
/// bytes.
fn side(operand: &CUmemcpy3DOperand, element: u64) -> Result<Side> {
    let bytes = |elements: usize| {
        (elements as u64)
            .checked_mul(element)
            .ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    };
    match operand.type_ {
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER => {
            // SAFETY: the type says that this member was written; its integers are valid for any bits.
            let pointer = unsafe { &operand.op.ptr };
            Ok(Side {
                base: Base::Unified(pointer.ptr),
                offset: [0; 3],
                pitch: bytes(pointer.rowLength)?,
                rows: pointer.layerHeight as u64,
            })
        }
        CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY => {
            // SAFETY: the type says that this member was written; its pointer and integers are valid for any bits.
            let of = unsafe { &operand.op.array };
            Ok(Side {
                base: Base::Array(of.array as usize, 0),
                offset: [bytes(of.offset.x)?, of.offset.y as u64, of.offset.z as u64],
                pitch: 0,
                rows: 0,
            })
        }
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// The copy of a box. Its arguments are checked, and its memory exists.
struct BoxCopy {
    to: Side,
    from: Side,
    extent: Extent,
    waits: Waits,
}

impl BoxCopy {
    fn read(c: Caller, op: &CUDA_MEMCPY3D_BATCH_OP) -> Result<BoxCopy> {
        let waits = waits_of(op.srcAccessOrder)?;
        // With an array, widths are in texels; between addresses, in bytes.
        let element = match (element_bytes(&op.dst)?, element_bytes(&op.src)?) {
            (Some(to), Some(from)) if to != from => return Err(Error::CUDA_ERROR_INVALID_VALUE),
            (to, from) => to.or(from).unwrap_or(1),
        };
        let width = (op.extent.width as u64).checked_mul(element);
        let extent = Extent {
            width: width.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?,
            height: op.extent.height as u64,
            depth: op.extent.depth as u64,
        };
        if op.flags & !FLAGS != 0 || extent.is_empty() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let (to, from) = (side(&op.dst, element)?, side(&op.src, element)?);
        let host = c.host_at();
        to.region(extent, &host)?.locate()?.place.check_writable()?;
        from.region(extent, &host)?.locate()?;
        Ok(BoxCopy {
            to,
            from,
            extent,
            waits,
        })
    }

    /// Submits the copy.
    fn run(&self, c: Caller, stream: &StreamRef) -> Result<()> {
        submit::copy_box(self.to, self.from, self.extent, stream, self.waits, c.host_at())
    }
}

/// Copies boxes. Like [`Batch::run`], checks all of them before the first one starts.
fn boxes(
    c: Caller,
    (count, list): (usize, *mut CUDA_MEMCPY3D_BATCH_OP),
    failed: *mut usize,
    flags: c_ulonglong,
    hstream: CUstream,
    mode: NullStream,
) -> Result<()> {
    with_failed(c, failed, |which| {
        let stream = copying_stream(hstream, mode)?;
        if flags != 0 || count == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let mut copies = Vec::new();
        for (i, op) in c.items(list.cast_const(), count)?.enumerate() {
            *which = i;
            copies.push(BoxCopy::read(c, &op)?);
        }
        for (i, copy) in copies.iter().enumerate() {
            *which = i;
            copy.run(c, &stream)?;
        }
        Ok(())
    })
}

/// Reads and checks ranges of managed memory.
fn ranges(
    c: Caller,
    addresses: *mut CUdeviceptr,
    sizes: *mut usize,
    count: usize,
    flags: c_ulonglong,
) -> Result<Vec<(u64, u64)>> {
    if flags != 0 || count == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let addresses = c.items(addresses.cast_const(), count)?;
    let sizes = c.items(sizes.cast_const(), count)?.map(|n| n as u64);
    let check = |(address, bytes)| managed::check(address, bytes).map(|_| (address, bytes));
    addresses.zip(sizes).map(check).collect()
}

/// Prefetches ranges of managed memory. Exports that discard the ranges first use this function, too: the contents of
/// discarded memory are undefined, so keeping the contents is correct.
fn prefetch(
    c: Caller,
    (addresses, sizes, count): (*mut CUdeviceptr, *mut usize, usize),
    (locations, indexes, entries): (*mut CUmemLocation, *mut usize, usize),
    flags: c_ulonglong,
    hstream: CUstream,
    mode: NullStream,
) -> Result<()> {
    let stream = stream_of(hstream, mode)?;
    let ranges = ranges(c, addresses, sizes, count, flags)?;
    let mut entry = spread(c, indexes, entries, ranges.len())?;
    let locations = c.array(locations.cast_const(), entries)?.into_iter();
    // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for an unknown device here, as for any other invalid location.
    let locations = locations.map(|location| match location_of(&location) {
        Err(Error::CUDA_ERROR_INVALID_DEVICE) => Err(Error::CUDA_ERROR_INVALID_VALUE),
        other => other,
    });
    let locations = locations.collect::<Result<Vec<_>>>()?;
    for (item, &(address, bytes)) in ranges.iter().enumerate() {
        managed::prefetch(address, bytes, locations[entry(item)])?;
    }
    submit::join(&stream);
    Ok(())
}

exports! {
    fn cuMemcpyBatchAsync_v2 | cuMemcpyBatchAsync_v2_ptsz [c, mode] (
        to: *mut CUdeviceptr,
        from: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        indexes: *mut usize,
        kinds: usize,
        hstream: CUstream,
    ) {
        batch(
            c,
            Batch {
                to,
                from,
                sizes,
                count,
                attributes,
                indexes,
                kinds,
            },
            std::ptr::null_mut(),
            hstream,
            mode,
        )
    }

    fn cuMemcpyBatchAsync | cuMemcpyBatchAsync_ptsz [c, mode] (
        to: *mut CUdeviceptr,
        from: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        indexes: *mut usize,
        kinds: usize,
        failed: *mut usize,
        hstream: CUstream,
    ) {
        batch(
            c,
            Batch {
                to,
                from,
                sizes,
                count,
                attributes,
                indexes,
                kinds,
            },
            failed,
            hstream,
            mode,
        )
    }

    fn cuMemcpyWithAttributesAsync | cuMemcpyWithAttributesAsync_ptsz [c, mode] (
        to: CUdeviceptr,
        from: CUdeviceptr,
        size: usize,
        attributes: *mut CUmemcpyAttributes,
        hstream: CUstream,
    ) {
        let stream = stream::for_work(hstream as usize, mode)?;
        let attributes = c.read(attributes.cast_const())?;
        let waits = waits_of(attributes.srcAccessOrder)?;
        if attributes.flags & !FLAGS != 0 || size == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let (to, from) = (unified_place(c, to, size)?, unified_place(c, from, size)?);
        submit::copy(to, from, size as u64, &stream, waits)
    }

    fn cuMemcpy3DBatchAsync_v2 | cuMemcpy3DBatchAsync_v2_ptsz [c, mode] (
        count: usize,
        list: *mut CUDA_MEMCPY3D_BATCH_OP,
        flags: c_ulonglong,
        hstream: CUstream,
    ) {
        boxes(c, (count, list), std::ptr::null_mut(), flags, hstream, mode)
    }

    fn cuMemcpy3DBatchAsync | cuMemcpy3DBatchAsync_ptsz [c, mode] (
        count: usize,
        list: *mut CUDA_MEMCPY3D_BATCH_OP,
        failed: *mut usize,
        flags: c_ulonglong,
        hstream: CUstream,
    ) {
        boxes(c, (count, list), failed, flags, hstream, mode)
    }

    fn cuMemcpy3DWithAttributesAsync | cuMemcpy3DWithAttributesAsync_ptsz [c, mode] (
        op: *mut CUDA_MEMCPY3D_BATCH_OP,
        flags: c_ulonglong,
        hstream: CUstream,
    ) {
        let stream = stream::for_work(hstream as usize, mode)?;
        if flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        BoxCopy::read(c, &c.read(op.cast_const())?)?.run(c, &stream)
    }

    fn cuMemPrefetchBatchAsync | cuMemPrefetchBatchAsync_ptsz [c, mode] (
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut CUmemLocation,
        indexes: *mut usize,
        entries: usize,
        flags: c_ulonglong,
        hstream: CUstream,
    ) {
        let (ranges, places) = ((addresses, sizes, count), (locations, indexes, entries));
        prefetch(c, ranges, places, flags, hstream, mode)
    }

    fn cuMemDiscardBatchAsync | cuMemDiscardBatchAsync_ptsz [c, mode] (
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        flags: c_ulonglong,
        hstream: CUstream,
    ) {
        let stream = stream_of(hstream, mode)?;
        // The contents of discarded memory are undefined, so they are kept.
        ranges(c, addresses, sizes, count, flags)?;
        submit::join(&stream);
        Ok(())
    }

    fn cuMemDiscardAndPrefetchBatchAsync | cuMemDiscardAndPrefetchBatchAsync_ptsz [c, mode] (
        addresses: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        locations: *mut CUmemLocation,
        indexes: *mut usize,
        entries: usize,
        flags: c_ulonglong,
        hstream: CUstream,
    ) {
        let (ranges, places) = ((addresses, sizes, count), (locations, indexes, entries));
        prefetch(c, ranges, places, flags, hstream, mode)
    }
}
