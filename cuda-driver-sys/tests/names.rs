//! Tests that each plain name means the right export: the one that a C program gets from a CUDA 12 header, or the first
//! variant if the function is newer.

use std::collections::BTreeSet;

use cuda_driver_sys::{CUDA_VERSION, Function, StreamMode};

/// The plain names whose export has another name, and that export. The other plain names are exports themselves.
const OTHER: &[(&str, &str)] = &[
    ("cuArray3DCreate", "cuArray3DCreate_v2"),
    ("cuArray3DGetDescriptor", "cuArray3DGetDescriptor_v2"),
    ("cuArrayCreate", "cuArrayCreate_v2"),
    ("cuArrayGetDescriptor", "cuArrayGetDescriptor_v2"),
    ("cuCtxCreate", "cuCtxCreate_v2"),
    ("cuCtxDestroy", "cuCtxDestroy_v2"),
    ("cuCtxPopCurrent", "cuCtxPopCurrent_v2"),
    ("cuCtxPushCurrent", "cuCtxPushCurrent_v2"),
    ("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2"),
    ("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"),
    ("cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2"),
    ("cuDeviceTotalMem", "cuDeviceTotalMem_v2"),
    ("cuEventDestroy", "cuEventDestroy_v2"),
    ("cuGetProcAddress", "cuGetProcAddress_v2"),
    ("cuGraphAddKernelNode", "cuGraphAddKernelNode_v2"),
    ("cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2"),
    ("cuGraphExecUpdate", "cuGraphExecUpdate_v2"),
    ("cuGraphInstantiate", "cuGraphInstantiateWithFlags"),
    ("cuGraphKernelNodeGetParams", "cuGraphKernelNodeGetParams_v2"),
    ("cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2"),
    (
        "cuGraphicsResourceGetMappedPointer",
        "cuGraphicsResourceGetMappedPointer_v2",
    ),
    ("cuGraphicsResourceSetMapFlags", "cuGraphicsResourceSetMapFlags_v2"),
    ("cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"),
    ("cuLinkAddData", "cuLinkAddData_v2"),
    ("cuLinkAddFile", "cuLinkAddFile_v2"),
    ("cuLinkCreate", "cuLinkCreate_v2"),
    ("cuMemAlloc", "cuMemAlloc_v2"),
    ("cuMemAllocHost", "cuMemAllocHost_v2"),
    ("cuMemAllocPitch", "cuMemAllocPitch_v2"),
    ("cuMemFree", "cuMemFree_v2"),
    ("cuMemGetAddressRange", "cuMemGetAddressRange_v2"),
    ("cuMemGetInfo", "cuMemGetInfo_v2"),
    ("cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2"),
    ("cuMemHostRegister", "cuMemHostRegister_v2"),
    ("cuMemcpy2D", "cuMemcpy2D_v2"),
    ("cuMemcpy2DAsync", "cuMemcpy2DAsync_v2"),
    ("cuMemcpy2DUnaligned", "cuMemcpy2DUnaligned_v2"),
    ("cuMemcpy3D", "cuMemcpy3D_v2"),
    ("cuMemcpy3DAsync", "cuMemcpy3DAsync_v2"),
    ("cuMemcpyAtoA", "cuMemcpyAtoA_v2"),
    ("cuMemcpyAtoD", "cuMemcpyAtoD_v2"),
    ("cuMemcpyAtoH", "cuMemcpyAtoH_v2"),
    ("cuMemcpyAtoHAsync", "cuMemcpyAtoHAsync_v2"),
    ("cuMemcpyDtoA", "cuMemcpyDtoA_v2"),
    ("cuMemcpyDtoD", "cuMemcpyDtoD_v2"),
    ("cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2"),
    ("cuMemcpyDtoH", "cuMemcpyDtoH_v2"),
    ("cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2"),
    ("cuMemcpyHtoA", "cuMemcpyHtoA_v2"),
    ("cuMemcpyHtoAAsync", "cuMemcpyHtoAAsync_v2"),
    ("cuMemcpyHtoD", "cuMemcpyHtoD_v2"),
    ("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"),
    ("cuMemsetD16", "cuMemsetD16_v2"),
    ("cuMemsetD2D16", "cuMemsetD2D16_v2"),
    ("cuMemsetD2D32", "cuMemsetD2D32_v2"),
    ("cuMemsetD2D8", "cuMemsetD2D8_v2"),
    ("cuMemsetD32", "cuMemsetD32_v2"),
    ("cuMemsetD8", "cuMemsetD8_v2"),
    ("cuModuleGetGlobal", "cuModuleGetGlobal_v2"),
    ("cuStreamBatchMemOp", "cuStreamBatchMemOp_v2"),
    ("cuStreamBeginCapture", "cuStreamBeginCapture_v2"),
    ("cuStreamDestroy", "cuStreamDestroy_v2"),
    ("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2"),
    ("cuStreamWaitValue32", "cuStreamWaitValue32_v2"),
    ("cuStreamWaitValue64", "cuStreamWaitValue64_v2"),
    ("cuStreamWriteValue32", "cuStreamWriteValue32_v2"),
    ("cuStreamWriteValue64", "cuStreamWriteValue64_v2"),
    ("cuTexRefGetAddress", "cuTexRefGetAddress_v2"),
    ("cuTexRefSetAddress", "cuTexRefSetAddress_v2"),
    ("cuTexRefSetAddress2D", "cuTexRefSetAddress2D_v3"),
];

/// Returns true for variants that only have their own name, not a plain one.
fn is_variant(function: Function) -> bool {
    function.name() != function.base() || function.stream_mode() == StreamMode::PerThread
}

#[test]
fn plain_names_mean_what_the_cuda_12_headers_say() {
    let table: Vec<(&str, &str)> = Function::plain_names()
        .iter()
        .map(|(name, function)| (*name, function.name()))
        .collect();
    assert_eq!(table, OTHER);
    for (name, export) in OTHER {
        assert_eq!(Function::by_name(name).map(Function::name), Some(*export));
    }
}

#[test]
fn all_other_plain_names_are_exports() {
    let other: BTreeSet<&str> = OTHER.iter().map(|(name, _)| *name).collect();
    let mut own = 0;
    // With the feature `bindgen` a newer header may add more.
    for function in Function::ALL
        .iter()
        .copied()
        .filter(|function| !is_variant(*function) && function.since() <= CUDA_VERSION)
    {
        if other.contains(function.name()) {
            assert!(
                function.is_legacy(),
                "{function} is not in `legacy`, although its name means another export"
            );
        } else {
            own += 1;
            assert_eq!(Function::by_name(function.name()), Some(function));
        }
    }
    assert_eq!(own, 415);
}

#[test]
fn legacy_holds_the_exports_whose_name_is_taken() {
    let legacy: BTreeSet<&str> = Function::ALL
        .iter()
        .filter(|function| function.is_legacy())
        .map(|function| function.name())
        .collect();
    let taken: BTreeSet<&str> = OTHER.iter().map(|(name, _)| *name).collect();
    assert_eq!(legacy, taken);
    assert_eq!(legacy.len(), 70);
    let early: Vec<Function> = Function::ALL
        .iter()
        .copied()
        .filter(|function| function.is_32_bit())
        .collect();
    assert_eq!(early.len(), 42);
    assert!(early.contains(&cuda_driver_sys::legacy::function::cuMemAlloc));
    assert!(!early.contains(&cuda_driver_sys::legacy::function::cuCtxDestroy));
}

#[test]
fn fifteen_names_mean_something_else_in_the_headers_of_cuda_13() {
    const NEWER: &[(&str, &str)] = &[
        ("cuCtxCreate", "cuCtxCreate_v4"),
        ("cuDeviceGetUuid", "cuDeviceGetUuid_v2"),
        ("cuEventElapsedTime", "cuEventElapsedTime_v2"),
        ("cuGraphAddDependencies", "cuGraphAddDependencies_v2"),
        ("cuGraphAddNode", "cuGraphAddNode_v2"),
        ("cuGraphGetEdges", "cuGraphGetEdges_v2"),
        ("cuGraphNodeGetDependencies", "cuGraphNodeGetDependencies_v2"),
        ("cuGraphNodeGetDependentNodes", "cuGraphNodeGetDependentNodes_v2"),
        ("cuGraphRemoveDependencies", "cuGraphRemoveDependencies_v2"),
        ("cuMemAdvise", "cuMemAdvise_v2"),
        ("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2"),
        ("cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_v2"),
        ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"),
        ("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3"),
        (
            "cuStreamUpdateCaptureDependencies",
            "cuStreamUpdateCaptureDependencies_v2",
        ),
    ];
    // The exports by symbol: the base name, the plain names, and true if C programs can call it by default.
    let file = include_str!("../api/functions.toml");
    let between = |line: &'static str, before: &str, after: &str| {
        let (_, rest) = line.split_once(before).expect("every line has all keys");
        rest.split_once(after).expect("a value ends").0
    };
    let exports: Vec<(&str, &str, &str, bool)> = file
        .lines()
        .filter(|line| line.contains(" = {") && !line.contains("\"per-thread\""))
        .map(|line| {
            (
                line.split(' ').next().expect("a line has a symbol"),
                between(line, "base = \"", "\""),
                between(line, "names = [", "]"),
                between(line, "current = ", ",") == "true",
            )
        })
        .collect();
    // The names of exports that C programs cannot call, although they can call another export of the function.
    let is_current = |base| exports.iter().any(|(_, other, _, current)| *other == base && *current);
    let changed = exports
        .iter()
        .filter(|(_, base, _, current)| !current && is_current(*base))
        .flat_map(|(_, _, names, _)| names.split('"').skip(1).step_by(2));
    let expected: Vec<&str> = NEWER.iter().map(|(name, _)| *name).collect();
    assert_eq!(changed.collect::<Vec<_>>(), expected);
    for (name, newer) in NEWER {
        let plain = Function::by_name(name).expect("a plain name");
        let export = exports.iter().find(|(symbol, ..)| symbol == newer);
        let (_, base, _, current) = export.expect("an export");
        assert!(*current, "{newer}");
        assert_eq!(plain.base(), *base);
    }
}

#[test]
fn per_thread_exports_have_an_unsuffixed_twin_each() {
    let suffixed: Vec<Function> = Function::ALL
        .iter()
        .copied()
        .filter(|function| function.stream_mode() == StreamMode::PerThread)
        .collect();
    assert_eq!(suffixed.len(), 105);
    let bases: BTreeSet<&str> = suffixed.iter().map(|function| function.base()).collect();
    assert_eq!(bases.len(), 91);
    let twins: BTreeSet<Function> = Function::ALL
        .iter()
        .filter_map(|function| function.per_thread())
        .collect();
    assert_eq!(twins, suffixed.into_iter().collect());
    for &function in Function::ALL {
        assert_eq!(
            function.per_thread().is_some(),
            function.stream_mode() == StreamMode::Legacy
        );
    }
}

#[test]
fn versions_are_those_of_the_typedefs() {
    for (name, since) in [
        ("cuInit", 2000),
        ("cuMemAlloc_v2", 3020),
        ("cuCtxCreate_v4", 12050),
        ("cuGetProcAddress", 11030),
        ("cuGetProcAddress_v2", 12000),
        ("cuMemcpyHtoD_v2_ptds", 7000),
        ("cuMemBatchDecompressAsync", 12060),
    ] {
        assert_eq!(Function::by_symbol(name).map(Function::since), Some(since), "{name}");
    }
    // The functions are older than the exports that their plain names mean, which drivers before 12.0 lack.
    for name in ["cuGetProcAddress", "cuGraphAddKernelNode", "cuGraphExecUpdate"] {
        assert_eq!(Function::by_name(name).map(Function::since), Some(12000), "{name}");
    }
}
