//! Tests of green contexts and of the device resources that they are made from.

use std::collections::BTreeSet;
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::{Codes, architecture, driver_version, needs};
use crate::{arguments, call, is, ok};

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;

/// Returns true if the driver and the device have green contexts; otherwise reports that they are missing.
fn has_green_contexts() -> bool {
    if driver_version() < 12050 {
        needs("a driver of CUDA 12.5 or later");
        return false;
    }
    if architecture() < 60 {
        needs("a device of compute capability 6.0 or later");
        return false;
    }
    true
}

/// The primary context of the first device, current on this thread until dropped.
struct Primary(CUcontext);

impl Primary {
    fn new() -> Self {
        let mut context = null_mut();
        ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
        ok!(cuCtxSetCurrent(context));
        Self(context)
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        let codes = [call!(cuCtxSetCurrent(null_mut())), call!(cuDevicePrimaryCtxRelease(0))];
        // A second panic would end the process and hide the first one.
        if !std::thread::panicking() {
            assert_eq!(codes, [CUresult::CUDA_SUCCESS; 2]);
        }
    }
}

/// Returns the resource of all multiprocessors of the first device.
fn device() -> CUdevResource {
    let mut whole = CUdevResource::default();
    ok!(cuDeviceGetDevResource(0, &raw mut whole, SM));
    whole
}

/// Returns the number of multiprocessors of a resource.
fn count(resource: &CUdevResource) -> u32 {
    assert_eq!(resource.type_, SM);
    // SAFETY: the type says that this member is set.
    unsafe { resource.anonymous1.sm.smCount }
}

/// Splits off at most `most` parts of at least `least` multiprocessors each. Returns the parts and the rest.
fn split(whole: &CUdevResource, most: u32, least: u32) -> (Vec<CUdevResource>, CUdevResource) {
    let mut parts: Vec<CUdevResource> = (0..most).map(|_| CUdevResource::default()).collect();
    let (mut made, mut rest) = (most, CUdevResource::default());
    ok!(cuDevSmResourceSplitByCount(
        parts.as_mut_ptr(),
        &raw mut made,
        whole,
        &raw mut rest,
        0,
        least
    ));
    parts.truncate(made as usize);
    (parts, rest)
}

/// Makes a green context of one resource.
fn green(part: &mut CUdevResource) -> CUgreenCtx {
    let (mut description, mut green) = (null_mut(), null_mut());
    ok!(cuDevResourceGenerateDesc(&raw mut description, part, 1));
    ok!(cuGreenCtxCreate(&raw mut green, description, 0, 1));
    green
}

#[test]
fn a_device_is_split_into_equal_parts_and_a_rest() {
    if !has_green_contexts() {
        return;
    }
    let _primary = Primary::new();
    let whole = device();
    let all = count(&whole);
    // SAFETY: `count` has checked the type.
    let sm = unsafe { whole.anonymous1.sm };
    assert!(sm.minSmPartitionSize >= 1 && sm.smCoscheduledAlignment >= 1);
    let least = sm.minSmPartitionSize;
    for flags in 0..3 {
        let mut possible = 0;
        ok!(cuDevSmResourceSplitByCount(
            null_mut(),
            &raw mut possible,
            &raw const whole,
            null_mut(),
            flags,
            least
        ));
        assert!(
            (1..=all / least).contains(&possible),
            "{possible} parts of {least} of {all}"
        );
    }
    let (parts, rest) = split(&whole, 2, 1);
    assert_eq!(count(&parts[0]), least);
    assert_eq!(count(&parts[1]), least);
    assert_eq!(count(&rest), all - 2 * least);
    // With the whole device as one part, nothing remains.
    let (parts, rest) = split(&whole, 2, all);
    assert_eq!((parts.len(), count(&parts[0])), (1, all));
    assert_eq!(rest.type_, CUdevResourceType::CU_DEV_RESOURCE_TYPE_INVALID);
}

/// The manual's rules for groups of given sizes.
#[test]
fn a_device_is_split_into_groups_of_given_sizes() {
    if !has_green_contexts() {
        return;
    }
    if driver_version() < 13010 {
        return needs("a driver of CUDA 13.1, which has cuDevSmResourceSplit");
    }
    const BACKFILL: u32 = CUdevSmResourceGroup_flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL.0;
    let _primary = Primary::new();
    let mut c = Codes::new();
    let whole = device();
    let all = count(&whole);
    // SAFETY: the type says that this member is set.
    let alignment = unsafe { whole.anonymous1.sm }.smCoscheduledAlignment.max(2);
    let group = |count, coscheduled, flags| CU_DEV_SM_RESOURCE_GROUP_PARAMS {
        smCount: count,
        coscheduledSmCount: coscheduled,
        flags,
        ..Default::default()
    };
    let split = |groups: &mut [CU_DEV_SM_RESOURCE_GROUP_PARAMS], results: bool| {
        let mut parts: Vec<CUdevResource> = groups.iter().map(|_| CUdevResource::default()).collect();
        let (mut rest, length) = (CUdevResource::default(), groups.len() as u32);
        let out = if results { parts.as_mut_ptr() } else { null_mut() };
        let code = call!(cuDevSmResourceSplit(
            out,
            length,
            &raw const whole,
            &raw mut rest,
            0,
            groups.as_mut_ptr()
        ))
        .0;
        (code, parts, rest)
    };

    // Two groups, and the others as the rest.
    let mut groups = [group(8, 4.min(alignment), 0), group(4, 2, 0)];
    let (code, parts, rest) = split(&mut groups, true);
    c.is(0, "two groups", code);
    assert_eq!((count(&parts[0]), count(&parts[1]), count(&rest)), (8, 4, all - 12));

    // The driver chooses the size of a group of size 0, with and without results. With `BACKFILL`, the group gets all
    // multiprocessors that are left, so there is no rest.
    for results in [false, true] {
        let mut groups = [group(8, 2, 0), group(0, 2, BACKFILL)];
        let (code, parts, rest) = split(&mut groups, results);
        c.is(0, "a group of all others", code);
        assert_eq!(
            (groups[1].smCount, rest.type_),
            (all - 8, CUdevResource::default().type_)
        );
        if results {
            assert_eq!(count(&parts[1]), all - 8);
        }
    }
    let mut groups = [group(0, 0, 0)];
    let (code, ..) = split(&mut groups, false);
    c.is(0, "a group of all that run clusters", code);
    assert!(groups[0].smCount.is_multiple_of(alignment) && groups[0].smCount <= all);

    // A group may be empty only without results.
    for (results, expected) in [(false, 0), (true, 915)] {
        let mut groups = [group(0, 2, BACKFILL), group(0, 2, 0)];
        let (code, ..) = split(&mut groups, results);
        c.is(expected, &format!("an empty group, results {results}"), code);
    }
    for (name, code, wrong) in [
        ("an odd number", 1, group(3, 2, 0)),
        ("no multiple of those that run a cluster", 1, group(6, 4, 0)),
        ("an unknown flag", 1, group(8, 2, 64)),
        ("too many", 915, group(all + 2, 2, 0)),
    ] {
        // Older architectures run no clusters.
        if alignment > 2 || wrong.coscheduledSmCount == 2 {
            c.is(code, name, split(&mut [wrong], true).0);
        }
    }

    // A green context of a group.
    let (_, mut parts, _) = split(&mut [group(4, 2, 0)], true);
    let context = green(&mut parts[0]);
    let mut seen = CUdevResource::default();
    is!(c, 0, cuGreenCtxGetDevResource(context, &raw mut seen, SM));
    assert_eq!(count(&seen), 4);
    is!(c, 0, cuGreenCtxDestroy(context));
}

#[test]
fn a_descriptor_takes_parts_of_any_splits() {
    if !has_green_contexts() {
        return;
    }
    let _primary = Primary::new();
    let mut c = Codes::new();
    let whole = device();
    let ((one, rest), (other, _)) = (split(&whole, 1, 1), split(&whole, 1, 1));
    let mut description = null_mut();
    for second in [rest, other[0], whole] {
        let mut both = [one[0], second];
        is!(
            c,
            0,
            cuDevResourceGenerateDesc(&raw mut description, both.as_mut_ptr(), 2)
        );
    }
}

/// Attaching and detaching concern the primary context, so a green context cannot be detached.
#[test]
fn a_green_context_is_not_detached() {
    if !has_green_contexts() {
        return;
    }
    let primary = Primary::new();
    let mut c = Codes::new();
    let (mut part, mut own, mut attached) = (device(), null_mut(), null_mut());
    let green = green(&mut part);
    ok!(cuCtxFromGreenCtx(&raw mut own, green));
    ok!(cuCtxPushCurrent(own));
    is!(c, 0, cuCtxAttach(&raw mut attached, 0));
    assert_ne!(attached, own);
    is!(c, 201, cuCtxDetach(own));
    let mut address = 0;
    is!(c, 0, cuMemAlloc(&raw mut address, 4));
    is!(c, 0, cuMemFree(address));
    is!(c, 0, cuCtxSynchronize());
    ok!(cuCtxPopCurrent(null_mut()));
    is!(c, 0, cuGreenCtxDestroy(green));
    drop(primary);
}

#[test]
fn wrong_resources_are_refused() {
    if !has_green_contexts() {
        return;
    }
    let _primary = Primary::new();
    let mut c = Codes::new();
    let whole = device();
    let (mut part, mut made, mut other) = (CUdevResource::default(), 1, CUdevResource::default());
    let out = &raw mut part;
    let counts = &raw mut made;
    let input = &raw const whole;
    let none = null_mut();
    is!(c, 915, cuDevSmResourceSplitByCount(out, counts, input, none, 0, 10_000));
    is!(c, 1, cuDevSmResourceSplitByCount(out, counts, input, none, 3, 8));
    is!(c, 1, cuDevSmResourceSplitByCount(out, null_mut(), input, none, 0, 8));
    is!(c, 1, cuDevSmResourceSplitByCount(out, counts, ptr::null(), none, 0, 8));
    let mut zero = 0;
    is!(c, 1, cuDevSmResourceSplitByCount(out, &raw mut zero, input, none, 0, 8));
    is!(
        c,
        914,
        cuDevSmResourceSplitByCount(out, counts, &raw const other, none, 0, 8)
    );
    // A resource that no driver call returned.
    other.type_ = SM;
    other.anonymous1.sm.smCount = 16;
    is!(
        c,
        915,
        cuDevSmResourceSplitByCount(out, counts, &raw const other, none, 0, 8)
    );
    // A part cannot be split again.
    let (parts, _) = split(&whole, 1, 1);
    is!(
        c,
        915,
        cuDevSmResourceSplitByCount(out, counts, &raw const parts[0], none, 0, 1)
    );

    let mut description = null_mut();
    let out = &raw mut description;
    is!(c, 915, cuDevResourceGenerateDesc(out, &raw mut other, 1));
    is!(c, 914, cuDevResourceGenerateDesc(out, &mut CUdevResource::default(), 1));
    is!(c, 1, cuDevResourceGenerateDesc(out, null_mut(), 1));
    is!(c, 1, cuDevResourceGenerateDesc(null_mut(), &mut device(), 1));

    let kind = CUdevResourceType;
    is!(c, 914, cuDeviceGetDevResource(0, &raw mut part, kind(0)));
    is!(c, 914, cuDeviceGetDevResource(0, &raw mut part, kind(3)));
    is!(c, 1, cuDeviceGetDevResource(0, null_mut(), SM));
    is!(c, 101, cuDeviceGetDevResource(99, &raw mut part, SM));
    is!(c, 201, cuCtxGetDevResource(null_mut(), &raw mut part, SM));
    is!(c, 201, cuGreenCtxGetDevResource(null_mut(), &raw mut part, SM));

    let mut green = null_mut();
    ok!(cuDevResourceGenerateDesc(out, &mut device(), 1));
    is!(c, 1, cuGreenCtxCreate(&raw mut green, description, 0, 0));
    is!(c, 1, cuGreenCtxCreate(&raw mut green, description, 0, 2));
    is!(c, 101, cuGreenCtxCreate(&raw mut green, description, 99, 1));
    is!(c, 201, cuGreenCtxDestroy(null_mut()));
}

#[test]
fn a_green_context_keeps_the_primary_context_active() {
    if !has_green_contexts() {
        return;
    }
    crate::child!("a_green_context_keeps_the_primary_context_active", {
        crate::common::driver();
        let mut c = Codes::new();
        let green = green(&mut device());
        let (mut flags, mut active) = (0, 0);
        ok!(cuDevicePrimaryCtxGetState(0, &raw mut flags, &raw mut active));
        assert_eq!(active, 1);
        let mut current = null_mut();
        ok!(cuCtxGetCurrent(&raw mut current));
        assert!(current.is_null());
        ok!(cuGreenCtxDestroy(green));
        ok!(cuDevicePrimaryCtxGetState(0, &raw mut flags, &raw mut active));
        assert_eq!(active, 0);
        is!(c, 709, cuGreenCtxDestroy(green));
    });
}

#[test]
fn objects_of_a_green_context_belong_to_the_primary_context() {
    if !has_green_contexts() {
        return;
    }
    let primary = Primary::new();
    let mut c = Codes::new();
    let (mut parts, _) = split(&device(), 1, 1);
    let green = green(&mut parts[0]);
    let mut context = null_mut();
    ok!(cuCtxFromGreenCtx(&raw mut context, green));
    assert!(!context.is_null() && context != primary.0);
    let mut resource = CUdevResource::default();
    ok!(cuCtxGetDevResource(context, &raw mut resource, SM));
    assert_eq!(count(&resource), count(&parts[0]));
    ok!(cuCtxGetDevResource(primary.0, &raw mut resource, SM));
    assert_eq!(count(&resource), count(&device()));

    ok!(cuCtxSetCurrent(context));
    let mut current = null_mut();
    ok!(cuCtxGetCurrent(&raw mut current));
    assert_eq!(current, context);
    let (mut address, mut owner) = (0, ptr::null_mut::<()>());
    ok!(cuMemAlloc(&raw mut address, 4096));
    ok!(cuPointerGetAttribute(
        (&raw mut owner).cast(),
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT,
        address
    ));
    assert_eq!(owner.cast(), primary.0);

    // A stream belongs to the green context that it was created for, or that was current when it was created. The null
    // stream is that of the current context.
    let (mut stream, mut plain, mut of, mut at) = (null_mut(), null_mut(), null_mut(), null_mut());
    is!(c, 1, cuGreenCtxStreamCreate(&raw mut stream, green, 0, 0));
    is!(c, 1, cuGreenCtxStreamCreate(&raw mut stream, green, 3, 0));
    is!(c, 201, cuGreenCtxStreamCreate(&raw mut stream, null_mut(), 1, 0));
    ok!(cuGreenCtxStreamCreate(&raw mut stream, green, 1, 0));
    ok!(cuStreamCreate(&raw mut plain, 1));
    for made in [stream, plain, null_mut()] {
        ok!(cuStreamGetGreenCtx(made, &raw mut of));
        assert_eq!(of, green);
    }
    for made in [stream, plain] {
        ok!(cuStreamGetCtx_v2(made, &raw mut at, &raw mut of));
        assert_eq!((at, of), (primary.0, green));
    }
    ok!(cuStreamGetCtx(stream, &raw mut at));
    assert_eq!(at, context);

    // Kernels run in streams of the green context, whichever context is current, and in the primary context's null
    // stream.
    let text = c".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %a;\n\
        ld.param.u64 %a, [p];\nred.global.add.u32 [%a], 1;\nret;\n}\n";
    let (mut module, mut function) = (null_mut(), null_mut());
    ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    ok!(cuModuleGetFunction(&raw mut function, module, c"k".as_ptr()));
    ok!(cuMemsetD32(address, 0, 1));
    ok!(cuCtxSetCurrent(primary.0));
    ok!(cuCtxSynchronize());
    let none = null_mut();
    for (current, on) in [
        (context, stream),
        (context, plain),
        (primary.0, stream),
        (primary.0, null_mut()),
    ] {
        ok!(cuCtxSetCurrent(current));
        let mut arguments = arguments![address];
        let mut pointers = arguments.pointers();
        let pointers = pointers.as_mut_ptr();
        ok!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, pointers, none));
        ok!(cuStreamSynchronize(on));
    }
    let mut event = null_mut();
    ok!(cuEventCreate(&raw mut event, 0));
    ok!(cuGreenCtxRecordEvent(green, event));
    ok!(cuEventSynchronize(event));
    ok!(cuGreenCtxWaitEvent(green, event));
    ok!(cuEventRecord(event, stream));
    ok!(cuEventRecord(event, null_mut()));
    is!(c, 201, cuGreenCtxRecordEvent(null_mut(), event));
    is!(c, 400, cuGreenCtxRecordEvent(green, null_mut()));
    let mut value = 0_u32;
    ok!(cuMemcpyDtoH((&raw mut value).cast(), address, 4));
    assert_eq!(value, 4);

    // Destroying the green context destroys its streams, but no objects of the primary context.
    is!(c, 201, cuCtxDestroy(context));
    ok!(cuCtxSetCurrent(context));
    ok!(cuGreenCtxDestroy(green));
    is!(c, 709, cuStreamQuery(stream));
    is!(c, 709, cuCtxSynchronize());
    is!(c, 709, cuMemFree(address));
    ok!(cuCtxSetCurrent(primary.0));
    ok!(cuEventQuery(event));
    ok!(cuModuleUnload(module));
    ok!(cuMemFree(address));
    ok!(cuEventDestroy(event));
}

#[test]
fn kernels_run_on_the_multiprocessors_of_their_green_context() {
    if !has_green_contexts() {
        return;
    }
    let _primary = Primary::new();
    let mut c = Codes::new();
    let text = c".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
        .reg .b64 %a, %b;\n.reg .b32 %r;\nld.param.u64 %a, [p];\nmov.u32 %r, %ctaid.x;\nmul.wide.u32 %b, %r, 4;\n\
        add.u64 %a, %a, %b;\nmov.u32 %r, %smid;\nst.global.u32 [%a], %r;\nret;\n}\n";
    let (mut module, mut function, mut out) = (null_mut(), null_mut(), 0);
    ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    ok!(cuModuleGetFunction(&raw mut function, module, c"k".as_ptr()));
    let mut each = 0;
    let per_multiprocessor = &raw mut each;
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        per_multiprocessor,
        function,
        1024,
        0
    ));
    let (mut parts, rest) = split(&device(), 2, 1);
    parts.push(rest);
    let (mut seen, mut all) = (BTreeSet::new(), 0);
    for part in &mut parts {
        let number = count(part);
        let most = u32::try_from(each).expect("a number of blocks") * number;
        ok!(cuMemAlloc(&raw mut out, most as usize * 4));
        let mut arguments = arguments![out];
        let mut pointers = arguments.pointers();
        let pointers = pointers.as_mut_ptr();
        let green = green(part);
        let mut stream = null_mut();
        ok!(cuGreenCtxStreamCreate(&raw mut stream, green, 1, 0));
        is!(
            c,
            0,
            cuLaunchCooperativeKernel(function, most, 1, 1, 1024, 1, 1, 0, stream, pointers)
        );
        ok!(cuStreamSynchronize(stream));
        let mut found = vec![0_u32; most as usize];
        ok!(cuMemcpyDtoH(found.as_mut_ptr().cast(), out, most as usize * 4));
        // All blocks of a cooperative launch are resident, so each multiprocessor has some.
        let found: BTreeSet<u32> = found.into_iter().collect();
        assert_eq!(found.len(), number as usize, "{found:?}");
        assert!(found.is_disjoint(&seen), "{found:?} and {seen:?}");
        seen.extend(found);
        all += number;
        // There is no room for one block more.
        is!(
            c,
            720,
            cuLaunchCooperativeKernel(function, most + 1, 1, 1, 1024, 1, 1, 0, stream, pointers)
        );
        ok!(cuMemFree(out));
        ok!(cuStreamDestroy(stream));
        ok!(cuGreenCtxDestroy(green));
    }
    assert_eq!(all, count(&device()));
    ok!(cuModuleUnload(module));
}
