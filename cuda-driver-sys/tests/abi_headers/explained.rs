//! The expected differences between headers and the bindings, with reasons.

use crate::facts::Difference;

/// The version of the header that the bindings are made from.
const NEWEST: u32 = cuda_driver_sys::CUDA_VERSION;

/// A reason, and the differences that it explains.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) why: &'static str,
    /// The name of a fact, the first and the last header that differ from the bindings, and the value in these headers:
    /// `nothing` if they do not declare it. A `*` at the end of a string matches any text.
    pub(crate) facts: &'static [Fact],
}

pub(crate) type Fact = (&'static str, u32, u32, &'static str);

/// Returns true if a fact describes a difference.
pub(crate) fn fits((what, first, last, says): &Fact, difference: &Difference) -> bool {
    matches(what, &difference.what)
        && (*first..=*last).contains(&difference.version)
        && matches(says, difference.theirs.as_deref().unwrap_or("nothing"))
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == pattern,
    }
}

#[rustfmt::skip]
pub(crate) const EXPLAINED: &[Explained] = &[
    Explained {
        why: "Enumerators that mark the end of an enumeration. Many change when a release adds values, so the bindings omit all of them: a program that uses one may be wrong on the next driver.",
        facts: &[
            ("enumerator CU_AD_FORMAT_MAX", 12050, NEWEST, "CUarray_format 2147483647"),
            ("enumerator CU_ATOMIC_OPERATION_MAX", 13000, NEWEST, "CUatomicOperation 13"),
            ("enumerator CU_COREDUMP_MAX", 12010, NEWEST, "CUcoredumpSettings *"),
            ("enumerator CU_DEVICE_ATTRIBUTE_MAX", 11070, NEWEST, "CUdevice_attribute *"),
            ("enumerator CU_EXEC_AFFINITY_TYPE_MAX", 11070, NEWEST, "CUexecAffinityType 1"),
            ("enumerator CU_FABRIC_COPY_OPERAND_TYPE_MAX", 13050, NEWEST, "CUfabricCpyOperandType 2147483647"),
            ("enumerator CU_FUNCTION_LOADING_STATE_MAX", 12040, NEWEST, "CUfunctionLoadingState 2"),
            ("enumerator CU_FUNC_ATTRIBUTE_MAX", 11070, NEWEST, "CUfunction_attribute *"),
            ("enumerator CU_JIT_NUM_INPUT_TYPES", 11070, NEWEST, "CUjitInputType 6"),
            ("enumerator CU_JIT_NUM_OPTIONS", 11070, NEWEST, "CUjit_option *"),
            ("enumerator CU_LAUNCH_ATTRIBUTE_MAX", 12010, NEWEST, "CUlaunchAttributeID *"),
            ("enumerator CU_LIBRARY_NUM_OPTIONS", 12000, NEWEST, "CUlibraryOption 2"),
            ("enumerator CU_LIMIT_MAX", 11070, NEWEST, "CUlimit *"),
            ("enumerator CU_MEMCPY_OPERAND_TYPE_MAX", 12080, NEWEST, "CUmemcpy3DOperandType 2147483647"),
            ("enumerator CU_MEMCPY_SRC_ACCESS_ORDER_MAX", 12080, NEWEST, "CUmemcpySrcAccessOrder 2147483647"),
            ("enumerator CU_MEM_ACCESS_FLAGS_PROT_MAX", 11070, NEWEST, "CUmemAccess_flags 2147483647"),
            ("enumerator CU_MEM_ALLOCATION_TYPE_MAX", 11070, NEWEST, "CUmemAllocationType 2147483647"),
            ("enumerator CU_MEM_HANDLE_TYPE_MAX", 11070, NEWEST, "CUmemAllocationHandleType 2147483647"),
            ("enumerator CU_MEM_LOCATION_TYPE_MAX", 11070, NEWEST, "CUmemLocationType 2147483647"),
            ("enumerator CU_MEM_RANGE_HANDLE_TYPE_MAX", 11070, NEWEST, "CUmemRangeHandleType 2147483647"),
        ],
    },
    Explained {
        why: "Another enumerator that marks the end of an enumeration. Later headers do not declare it.",
        facts: &[
            ("enumerator CU_DEV_RESOURCE_TYPE_MAX", 12040, 13000, "CUdevResourceType 2"),
        ],
    },
    Explained {
        why: "CUDA 12 renamed the values of CUDA 11 to names with the suffix _V1, and gave the plain names the values of _V2. The values in the bindings mean the same to every driver.",
        facts: &[
            ("enumerator CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS", 11070, 11080, "CUdevice_attribute 93"),
            ("enumerator CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR", 11070, 11080, "CUdevice_attribute 94"),
        ],
    },
    Explained {
        why: "Names of earlier headers, which the bindings keep for programs that were written with them.",
        facts: &[
            ("enumerator CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V2", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V2", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_TARGET_COMPUTE_20", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_TARGET_COMPUTE_21", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_TARGET_COMPUTE_101", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_TARGET_COMPUTE_101A", NEWEST, NEWEST, "nothing"),
            ("enumerator CU_TARGET_COMPUTE_101F", NEWEST, NEWEST, "nothing"),
        ],
    },
    Explained {
        why: "Masks of several flags, to which later releases added bits.",
        facts: &[
            ("enumerator CU_COREDUMP_LIGHTWEIGHT_FLAGS", 12050, 12050, "CUCoredumpGenerationFlags 15"),
            ("enumerator CU_COREDUMP_LIGHTWEIGHT_FLAGS", 12060, 13040, "CUCoredumpGenerationFlags 47"),
            ("enumerator CU_CTX_FLAGS_MASK", 11070, 12000, "CUctx_flags 31"),
        ],
    },
    Explained {
        why: "Enumerators of 11.7 that 11.8 replaced with macros of the same value. In the bindings they are constants.",
        facts: &[
            ("enumerator CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW", 11070, 11070, "CUkernelNodeAttrID 1"),
            ("enumerator CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE", 11070, 11070, "CUkernelNodeAttrID 2"),
            ("enumerator CU_KERNEL_NODE_ATTRIBUTE_PRIORITY", 11070, 11070, "CUkernelNodeAttrID 8"),
            ("enumerator CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW", 11070, 11070, "CUstreamAttrID 1"),
            ("enumerator CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY", 11070, 11070, "CUstreamAttrID 3"),
        ],
    },
    Explained {
        why: "An enumeration that 13.1 renamed without changing its values. The bindings have the old name as an alias.",
        facts: &[
            ("enumerator CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING", 12050, 13000, "CUdevSmResourceSplit_flags 1"),
            ("enumerator CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE", 12050, 13000, "CUdevSmResourceSplit_flags 2"),
            ("typedef CUdevSmResourceSplit_flags", 12050, 13000, "u32 of 4 aligned to 4"),
        ],
    },
    Explained {
        why: "Unions of 32 bytes that 11.8 replaced with CUlaunchAttributeValue, which has 64 bytes and the same members at the same offsets.",
        facts: &[
            ("alignment of CUkernelNodeAttrValue_union", 11070, 11070, "8"),
            ("alignment of CUstreamAttrValue_union", 11070, 11070, "8"),
            ("field CUkernelNodeAttrValue_union.accessPolicyWindow", 11070, 11070, "record of 32 at 0"),
            ("field CUkernelNodeAttrValue_union.cooperative", 11070, 11070, "i32 of 4 at 0"),
            ("field CUkernelNodeAttrValue_union.priority", 11070, 11070, "i32 of 4 at 0"),
            ("field CUstreamAttrValue_union.accessPolicyWindow", 11070, 11070, "record of 32 at 0"),
            ("field CUstreamAttrValue_union.syncPolicy", 11070, 11070, "u32 of 4 at 0"),
            ("size of CUkernelNodeAttrValue_union", 11070, 11070, "32"),
            ("size of CUstreamAttrValue_union", 11070, 11070, "32"),
            ("typedef CUkernelNodeAttrValue", 11070, 11070, "record of 32 aligned to 8"),
            ("typedef CUkernelNodeAttrValue_v1", 11070, 11070, "record of 32 aligned to 8"),
            ("typedef CUstreamAttrValue", 11070, 11070, "record of 32 aligned to 8"),
            ("typedef CUstreamAttrValue_v1", 11070, 11070, "record of 32 aligned to 8"),
        ],
    },
    Explained {
        why: "Struct tags to which a later header added a version suffix. Size and fields are the same.",
        facts: &[
            ("alignment of CUDA_BATCH_MEM_OP_NODE_PARAMS_st", 11070, 12010, "8"),
            ("alignment of CUDA_MEM_ALLOC_NODE_PARAMS_st", 11070, 12010, "8"),
            ("field CUDA_BATCH_MEM_OP_NODE_PARAMS_st.count", 11070, 12010, "u32 of 4 at 8"),
            ("field CUDA_BATCH_MEM_OP_NODE_PARAMS_st.ctx", 11070, 12010, "pointer of 8 at 0"),
            ("field CUDA_BATCH_MEM_OP_NODE_PARAMS_st.flags", 11070, 12010, "u32 of 4 at 24"),
            ("field CUDA_BATCH_MEM_OP_NODE_PARAMS_st.paramArray", 11070, 12010, "pointer of 8 at 16"),
            ("field CUDA_MEM_ALLOC_NODE_PARAMS_st.accessDescCount", 11070, 12010, "u64 of 8 at 96"),
            ("field CUDA_MEM_ALLOC_NODE_PARAMS_st.accessDescs", 11070, 12010, "pointer of 8 at 88"),
            ("field CUDA_MEM_ALLOC_NODE_PARAMS_st.bytesize", 11070, 12010, "u64 of 8 at 104"),
            ("field CUDA_MEM_ALLOC_NODE_PARAMS_st.dptr", 11070, 12010, "u64 of 8 at 112"),
            ("field CUDA_MEM_ALLOC_NODE_PARAMS_st.poolProps", 11070, 12010, "record of 88 at 0"),
            ("size of CUDA_BATCH_MEM_OP_NODE_PARAMS_st", 11070, 12010, "32"),
            ("size of CUDA_MEM_ALLOC_NODE_PARAMS_st", 11070, 12010, "120"),
        ],
    },
    Explained {
        why: "In CUDA 11 the typedef means the first version of the record, which the bindings call CUDA_KERNEL_NODE_PARAMS_v1.",
        facts: &[
            ("typedef CUDA_KERNEL_NODE_PARAMS", 11070, 11080, "record of 56 aligned to 8"),
        ],
    },
    Explained {
        why: "CUDA 12 aligned this record to 64 bytes. It is passed by pointer only, and every address that is aligned to 128 bytes is aligned to 64 bytes.",
        facts: &[
            ("alignment of CUtensorMap_st", 12000, 12090, "64"),
            ("typedef CUtensorMap", 12000, 12090, "record of 128 aligned to 64"),
        ],
    },
    Explained {
        why: "Macros that only the header itself uses. From 13.1 on, it undefines them at its end.",
        facts: &[
            ("macro RESOURCE_ABI_EXTERNAL_BYTES", 12040, 13000, "48"),
            ("macro RESOURCE_ABI_VERSION", 12040, 13000, "1"),
        ],
    },
    Explained {
        why: "13.1 replaced the last reserved bytes with the pointer `nextResource`. The size is still 144. Older drivers do not write the new field, so zero it before the call.",
        facts: &[
            ("alignment of CUdevResource_st", 12040, 13000, "4"),
            ("field CUdevResource_st._oversize", 12040, 13000, "u8 of 48 at 96, 48 elements"),
            ("field CUdevResource_st.nextResource", 12040, 13000, "nothing"),
            ("field CUdevResource_st.wq", 12040, 13000, "nothing"),
            ("field CUdevResource_st.wqConfig", 12040, 13000, "nothing"),
            ("typedef CUdevResource", 12040, 13000, "record of 144 aligned to 4"),
            ("typedef CUdevResource_v1", 12040, 13000, "record of 144 aligned to 4"),
        ],
    },
    Explained {
        why: "A record that grows inside the union of CUdevResource, whose size is constant.",
        facts: &[
            ("field CUdevResource_st.sm", 13000, 13000, "record of 12 at 96"),
            ("field CUdevResource_st.sm", 13010, 13030, "record of 16 at 96"),
            ("field CUdevResource_st.sm", 12040, 12090, "record of 4 at 96"),
            ("field CUdevSmResource_st.flags", 12040, 13000, "nothing"),
            ("field CUdevSmResource_st.localityDomainId", 12040, 13030, "nothing"),
            ("field CUdevSmResource_st.minSmPartitionSize", 12040, 12090, "nothing"),
            ("field CUdevSmResource_st.smCoscheduledAlignment", 12040, 12090, "nothing"),
            ("size of CUdevSmResource_st", 13000, 13000, "12"),
            ("size of CUdevSmResource_st", 13010, 13030, "16"),
            ("size of CUdevSmResource_st", 12040, 12090, "4"),
            ("typedef CUdevSmResource", 13000, 13000, "record of 12 aligned to 4"),
            ("typedef CUdevSmResource", 13010, 13030, "record of 16 aligned to 4"),
            ("typedef CUdevSmResource", 12040, 12090, "record of 4 aligned to 4"),
        ],
    },
    Explained {
        why: "Records that grow inside the union of CUgraphNodeParams, whose size is constant; zero in a new field selects the behaviour of older drivers.",
        facts: &[
            ("field CUDA_CHILD_GRAPH_NODE_PARAMS_st.ownership", 12020, 12080, "nothing"),
            ("field CUDA_EVENT_RECORD_NODE_PARAMS_st.ctx", 12020, 13030, "nothing"),
            ("field CUDA_EVENT_RECORD_NODE_PARAMS_st.gCtx", 12020, 13030, "nothing"),
            ("field CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st.ctx", 12020, 13030, "nothing"),
            ("field CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st.gCtx", 12020, 13030, "nothing"),
            ("field CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st.ctx", 12020, 13030, "nothing"),
            ("field CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st.gCtx", 12020, 13030, "nothing"),
            ("field CUDA_HOST_NODE_PARAMS_v2_st.ctx", 12020, 13030, "nothing"),
            ("field CUDA_HOST_NODE_PARAMS_v2_st.gCtx", 12020, 13030, "nothing"),
            ("field CUDA_HOST_NODE_PARAMS_v2_st.syncMode", 12020, 13010, "nothing"),
            ("field CUgraphNodeParams_st.eventRecord", 12020, 13030, "record of 8 at 16"),
            ("field CUgraphNodeParams_st.extSemSignal", 12020, 13030, "record of 24 at 16"),
            ("field CUgraphNodeParams_st.extSemWait", 12020, 13030, "record of 24 at 16"),
            ("field CUgraphNodeParams_st.graph", 12020, 12080, "record of 8 at 16"),
            ("field CUgraphNodeParams_st.host", 12020, 13010, "record of 16 at 16"),
            ("field CUgraphNodeParams_st.host", 13020, 13030, "record of 24 at 16"),
            ("size of CUDA_CHILD_GRAPH_NODE_PARAMS_st", 12020, 12080, "8"),
            ("size of CUDA_EVENT_RECORD_NODE_PARAMS_st", 12020, 13030, "8"),
            ("size of CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st", 12020, 13030, "24"),
            ("size of CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st", 12020, 13030, "24"),
            ("size of CUDA_HOST_NODE_PARAMS_v2_st", 12020, 13010, "16"),
            ("size of CUDA_HOST_NODE_PARAMS_v2_st", 13020, 13030, "24"),
            ("typedef CUDA_CHILD_GRAPH_NODE_PARAMS", 12020, 12080, "record of 8 aligned to 8"),
            ("typedef CUDA_EVENT_RECORD_NODE_PARAMS", 12020, 13030, "record of 8 aligned to 8"),
            ("typedef CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2", 12020, 13030, "record of 24 aligned to 8"),
            ("typedef CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2", 12020, 13030, "record of 24 aligned to 8"),
            ("typedef CUDA_HOST_NODE_PARAMS_v2", 12020, 13010, "record of 16 aligned to 8"),
            ("typedef CUDA_HOST_NODE_PARAMS_v2", 13020, 13030, "record of 24 aligned to 8"),
        ],
    },
    Explained {
        why: "Fields that replaced reserved bytes. They must be zero for an older driver.",
        facts: &[
            ("field CU_DEV_SM_RESOURCE_GROUP_PARAMS_st.localityDomainId", 13010, 13030, "nothing"),
            ("field CU_DEV_SM_RESOURCE_GROUP_PARAMS_st.reserved", 13010, 13030, "u32 of 48 at 16, 12 elements"),
            ("field CUcheckpointCheckpointArgs_st.customStorageInfo_out", 12080, 13030, "nothing"),
            ("field CUcheckpointCheckpointArgs_st.reserved", 12080, 13030, "u64 of 64 at 0, 8 elements"),
            ("field CUcheckpointRestoreArgs_st.customStorageInfo_out", 12080, 13030, "nothing"),
            ("field CUcheckpointRestoreArgs_st.gpuPairs", 12080, 12090, "nothing"),
            ("field CUcheckpointRestoreArgs_st.gpuPairsCount", 12080, 12090, "nothing"),
            ("field CUcheckpointRestoreArgs_st.padding0", 12080, 13030, "nothing"),
            ("field CUcheckpointRestoreArgs_st.reserved", 13000, 13020, "char of 44 at 12, 44 elements"),
            ("field CUcheckpointRestoreArgs_st.reserved", 13030, 13030, "char of 52 at 12, 52 elements"),
            ("field CUcheckpointRestoreArgs_st.reserved", 12080, 12090, "u64 of 64 at 0, 8 elements"),
            ("field CUcheckpointRestoreArgs_st.reserved1", 13000, 13020, "u64 of 8 at 56"),
            ("field CUmemPoolProps_st.gpuDirectRDMACapable", 11070, 13030, "nothing"),
            ("field CUmemPoolProps_st.maxSize", 11070, 12010, "nothing"),
            ("field CUmemPoolProps_st.reserved", 12060, 13030, "u8 of 54 at 34, 54 elements"),
            ("field CUmemPoolProps_st.reserved", 12020, 12050, "u8 of 56 at 32, 56 elements"),
            ("field CUmemPoolProps_st.reserved", 11070, 12010, "u8 of 64 at 24, 64 elements"),
            ("field CUmemPoolProps_st.usage", 11070, 12050, "nothing"),
        ],
    },
    Explained {
        why: "Members that were added to a union without changing its size.",
        facts: &[
            ("field CUgraphNodeParams_st.asBytes", 12020, 13020, "nothing"),
            ("field CUgraphNodeParams_st.conditional", 12020, 12020, "nothing"),
            ("field CUgraphNodeParams_st.fabricCpyBatch", 12020, 13040, "nothing"),
            ("field CUgraphNodeParams_st.memcpyBatch", 12020, 13040, "nothing"),
            ("field CUlaunchAttributeValue_union.deviceUpdatableKernelNode", 11080, 12030, "nothing"),
            ("field CUlaunchAttributeValue_union.deviceUpdatableKernelNode.devNode", 11080, 12030, "nothing"),
            ("field CUlaunchAttributeValue_union.deviceUpdatableKernelNode.deviceUpdatable", 11080, 12030, "nothing"),
            ("field CUlaunchAttributeValue_union.launchCompletionEvent", 11080, 12020, "nothing"),
            ("field CUlaunchAttributeValue_union.launchCompletionEvent.event", 11080, 12020, "nothing"),
            ("field CUlaunchAttributeValue_union.launchCompletionEvent.flags", 11080, 12020, "nothing"),
            ("field CUlaunchAttributeValue_union.memSyncDomain", 11080, 11080, "nothing"),
            ("field CUlaunchAttributeValue_union.memSyncDomainMap", 11080, 11080, "nothing"),
            ("field CUlaunchAttributeValue_union.nvlinkUtilCentricScheduling", 11080, 12090, "nothing"),
            ("field CUlaunchAttributeValue_union.portableClusterSizeMode", 11080, 13010, "nothing"),
            ("field CUlaunchAttributeValue_union.preferredClusterDim", 11080, 12060, "nothing"),
            ("field CUlaunchAttributeValue_union.preferredClusterDim.x", 11080, 12060, "nothing"),
            ("field CUlaunchAttributeValue_union.preferredClusterDim.y", 11080, 12060, "nothing"),
            ("field CUlaunchAttributeValue_union.preferredClusterDim.z", 11080, 12060, "nothing"),
            ("field CUlaunchAttributeValue_union.sharedMemCarveout", 11080, 12040, "nothing"),
            ("field CUlaunchAttributeValue_union.sharedMemoryMode", 11080, 13010, "nothing"),
            ("field CUmemLocation_st.localized", 11070, 13030, "nothing"),
            ("field CUmemLocation_st.localized.deviceId", 11070, 13030, "nothing"),
            ("field CUmemLocation_st.localized.localityDomainId", 11070, 13030, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.address", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.alias", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.dataType", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.flags", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.operation", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.reductionOp", 11070, 13000, "nothing"),
            ("field CUstreamBatchMemOpParams_union.atomicReduction.value", 11070, 13000, "nothing"),
        ],
    },
    Explained {
        why: "Exports that were added to the headers one release later than to the driver. The name of the function-pointer type contains the version that introduced them.",
        facts: &[
            ("PFN_cuGreenCtxGetId_v12090", 12090, 12090, "nothing"),
            ("PFN_cuLaunchHostFunc_v13010", 13010, 13010, "nothing"),
            ("PFN_cuLaunchHostFunc_v13010_ptsz", 13010, 13010, "nothing"),
            ("PFN_cuLaunchKernelEx_v11060", 11070, 11070, "nothing"),
            ("PFN_cuLaunchKernelEx_v11060_ptsz", 11070, 11070, "nothing"),
            ("PFN_cuMemBatchDecompressAsync_v12060", 12060, 12060, "nothing"),
            ("PFN_cuMemBatchDecompressAsync_v12060_ptsz", 12060, 12060, "nothing"),
            ("PFN_cuOccupancyMaxActiveClusters_v11070", 11070, 11070, "nothing"),
            ("PFN_cuOccupancyMaxPotentialClusterSize_v11070", 11070, 11070, "nothing"),
            ("PFN_cuStreamBeginCaptureToCig_v13010", 13010, 13010, "nothing"),
            ("PFN_cuStreamBeginCaptureToCig_v13010_ptsz", 13010, 13010, "nothing"),
            ("PFN_cuStreamEndCaptureToCig_v13010", 13010, 13010, "nothing"),
            ("PFN_cuStreamEndCaptureToCig_v13010_ptsz", 13010, 13010, "nothing"),
        ],
    },
];
