//! Exports of green contexts and device resources.

use std::ffi::{c_int, c_uint, c_ulonglong};

use cuda_driver_sys::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceDesc, CUdevResourceType, CUdevSmResource,
    CUdevSmResourceSplit_flags, CUdevice, CUevent, CUgreenCtx, CUstream,
};

use super::args::{Caller, set};
use super::exports;
use crate::call::{green as calls, stream};
use crate::object::resource::{self, Granularity, GroupRequest, Multiprocessors};
use crate::object::{context, green};
use crate::state::error::{Error, Result};
use crate::state::gate;

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
const SCATTERED: c_uint = CUdevSmResourceSplit_flags::CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING.0;
const CLUSTERS: c_uint = CUdevSmResourceSplit_flags::CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE.0;

/// Marks a resource that this driver wrote: the start of the private bytes, followed by the device and the number of
/// the first multiprocessor.
const SIGNATURE: [u8; 8] = *b"softpart";

/// Returns the C structure of a resource, with its device and first multiprocessor in the private bytes.
fn to_c(part: Multiprocessors) -> CUdevResource {
    let mut out = CUdevResource {
        type_: SM,
        ..CUdevResource::default()
    };
    out._internal_padding[..8].copy_from_slice(&SIGNATURE);
    out._internal_padding[8..12].copy_from_slice(&part.device.to_le_bytes());
    out._internal_padding[12..16].copy_from_slice(&part.first.to_le_bytes());
    out.anonymous1.sm = CUdevSmResource {
        smCount: part.count,
        minSmPartitionSize: part.granularity.least,
        smCoscheduledAlignment: part.granularity.multiple,
        flags: part.flags,
        localityDomainId: 0,
    };
    out
}

/// Returns the C structure of a remainder: of the invalid type if no multiprocessor is left.
fn to_c_or_none(rest: Multiprocessors) -> CUdevResource {
    if rest.count == 0 {
        CUdevResource::default()
    } else {
        to_c(rest)
    }
}

/// Reads a resource. Returns `CUDA_ERROR_INVALID_RESOURCE_TYPE` if it does not consist of multiprocessors, and
/// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` if this driver did not write it or if the device does not have these
/// multiprocessors.
fn from_c(c: &CUdevResource) -> Result<Multiprocessors> {
    if c.type_ != SM {
        return Err(Error::CUDA_ERROR_INVALID_RESOURCE_TYPE);
    }
    let word = |start: usize| std::array::from_fn(|i| c._internal_padding[start + i]);
    // SAFETY: the type selects this member; any bytes are valid for it.
    let sm = unsafe { c.anonymous1.sm };
    if c._internal_padding[..8] != SIGNATURE {
        return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    let whole = resource::of_device(c_int::from_le_bytes(word(8)))?;
    let first = c_uint::from_le_bytes(word(12));
    if sm.smCount == 0 || first > whole.count || sm.smCount > whole.count - first {
        return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    Ok(Multiprocessors {
        first,
        count: sm.smCount,
        granularity: Granularity {
            least: sm.minSmPartitionSize,
            multiple: sm.smCoscheduledAlignment,
        },
        flags: sm.flags,
        ..whole
    })
}

/// Writes the multiprocessors of a device, a context, a green context or a stream. Returns
/// `CUDA_ERROR_INVALID_RESOURCE_TYPE` for a type other than [`SM`].
fn answer(c: Caller, out: *mut CUdevResource, kind: CUdevResourceType, part: Multiprocessors) -> Result<()> {
    let out = c.out(out)?;
    if kind != SM {
        return Err(Error::CUDA_ERROR_INVALID_RESOURCE_TYPE);
    }
    out.set(to_c(part));
    Ok(())
}

/// Returns the multiprocessors of a context: those of its green context, or all of its device.
fn of_context(handle: usize) -> Result<Multiprocessors> {
    let context = context::exactly(handle)?;
    match green::of(&context) {
        Some(green) => Ok(green.resource),
        None => resource::of_device(context.device.ordinal),
    }
}

exports! {
    healthy fn cuDeviceGetDevResource [c] (device: CUdevice, out: *mut CUdevResource, kind: CUdevResourceType) {
        answer(c, out, kind, resource::of_device(device)?)
    }

    healthy fn cuCtxGetDevResource [c] (context: CUcontext, out: *mut CUdevResource, kind: CUdevResourceType) {
        answer(c, out, kind, of_context(context as usize)?)
    }

    healthy fn cuGreenCtxGetDevResource [c] (
        context: CUgreenCtx,
        out: *mut CUdevResource,
        kind: CUdevResourceType,
    ) {
        answer(c, out, kind, green::get(context as usize)?.resource)
    }

    healthy fn cuStreamGetDevResource | cuStreamGetDevResource_ptsz [c, mode] (
        hstream: CUstream,
        out: *mut CUdevResource,
        kind: CUdevResourceType,
    ) {
        let stream = stream::named(hstream as usize, mode)?;
        let part = match stream.green {
            0 => resource::of_device(stream.context.device.ordinal)?,
            handle => green::get(handle)?.resource,
        };
        answer(c, out, kind, part)
    }

    healthy fn cuDevSmResourceSplitByCount [c] (
        result: *mut CUdevResource,
        count: *mut c_uint,
        input: *const CUdevResource,
        remaining: *mut CUdevResource,
        flags: c_uint,
        least: c_uint,
    ) {
        let asked = c.read(count)?;
        let whole = from_c(&c.read(input)?)?;
        if flags & SCATTERED != 0 && flags & CLUSTERS != 0 || !result.is_null() && asked == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let split = whole.split(least, flags & SCATTERED != 0)?;
        if result.is_null() {
            c.out(count)?.set(split.parts);
            return Ok(());
        }
        let made = asked.min(split.parts);
        let part = |number: u32, count| Multiprocessors {
            first: whole.first + number * split.each,
            count,
            // Driver 580 leaves these fields of a part at 0.
            granularity: Granularity { least: 0, multiple: 0 },
            ..whole
        };
        for i in 0..made {
            c.set_at(result, i as usize, to_c(part(i, split.each)));
        }
        let rest = whole.count - made * split.each;
        set(c.out_or_null(remaining), to_c_or_none(part(made, rest)));
        c.out(count)?.set(made);
        Ok(())
    }

    healthy fn cuDevSmResourceSplit [c] (
        result: *mut CUdevResource,
        count: c_uint,
        input: *const CUdevResource,
        remainder: *mut CUdevResource,
        flags: c_uint,
        params: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS,
    ) {
        let whole = from_c(&c.read(input)?)?;
        let mut params_now = c.array(params.cast_const(), count as usize)?;
        if flags != 0 || count == 0 || params_now.iter().any(|group| group.reserved != [0; 11]) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let requests: Vec<_> = params_now.iter().map(|group| GroupRequest {
            count: group.smCount,
            coscheduled: group.coscheduledSmCount,
            preferred: group.preferredCoscheduledSmCount,
            flags: group.flags,
        }).collect();
        let (groups, rest) = whole.groups(&requests)?;
        // Without results, a group may have no multiprocessors.
        if !result.is_null() && groups.iter().any(|group| group.count == 0) {
            return Err(Error::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
        }
        for (i, (group, params_now)) in groups.iter().zip(&mut params_now).enumerate() {
            params_now.smCount = group.count;
            c.set_at(params, i, *params_now);
            c.set_at(result, i, to_c(*group));
        }
        set(c.out_or_null(remainder), to_c_or_none(rest));
        Ok(())
    }

    healthy fn cuDevResourceGenerateDesc [c] (
        out: *mut CUdevResourceDesc,
        resources: *mut CUdevResource,
        count: c_uint,
    ) {
        let out = c.out(out)?;
        let mut parts = Vec::new();
        for i in 0..count as usize {
            parts.push(from_c(&c.read(resources.wrapping_add(i))?)?);
        }
        out.set(resource::describe(&parts)? as CUdevResourceDesc);
        Ok(())
    }

    healthy fn cuGreenCtxCreate [c] (
        out: *mut CUgreenCtx,
        descriptor: CUdevResourceDesc,
        device: CUdevice,
        flags: c_uint,
    ) {
        let out = c.out(out)?;
        out.set(calls::create(descriptor as usize, device, flags)? as CUgreenCtx);
        Ok(())
    }

    fn cuGreenCtxDestroy [c] (context: CUgreenCtx) {
        calls::destroy(context as usize)
    }

    healthy fn cuCtxFromGreenCtx [c] (out: *mut CUcontext, context: CUgreenCtx) {
        let out = c.out(out)?;
        out.set(green::get(context as usize)?.context.handle as CUcontext);
        Ok(())
    }

    healthy fn cuGreenCtxGetId [c] (context: CUgreenCtx, out: *mut c_ulonglong) {
        let out = c.out(out)?;
        out.set(green::get(context as usize)?.context.serial());
        Ok(())
    }

    healthy fn cuGreenCtxStreamCreate [c] (
        out: *mut CUstream,
        context: CUgreenCtx,
        flags: c_uint,
        priority: c_int,
    ) {
        let out = c.out(out)?;
        let green = green::get(context as usize)?;
        out.set(calls::create_stream(&green, flags, priority)? as CUstream);
        Ok(())
    }

    fn cuGreenCtxRecordEvent [_c] (context: CUgreenCtx, event: CUevent) {
        gate::healthy()?;
        let green = green::get(context as usize)?;
        calls::record(&green, event as usize)
    }

    fn cuGreenCtxWaitEvent [_c] (context: CUgreenCtx, event: CUevent) {
        gate::healthy()?;
        let green = green::get(context as usize)?;
        calls::hold(&green, event as usize)
    }
}
