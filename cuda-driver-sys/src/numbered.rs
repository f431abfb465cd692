//! The names that bindgen gives to structs and unions that have no name in C, for programs that use bindgen's output.
//! bindgen numbers them in the order of the header, here the header of CUDA 13.5.
#![forbid(unsafe_code)]
#![allow(non_camel_case_types, missing_docs)]

#[allow(clippy::wildcard_imports)]
use crate::generated::records::*;

#[doc(hidden)]
pub type CUDA_ARRAY_SPARSE_PROPERTIES_st__bindgen_ty_1 = CUDA_ARRAY_SPARSE_PROPERTIES_st__tileExtent;
#[doc(hidden)]
pub type CUDA_EVENT_RECORD_NODE_PARAMS_st__bindgen_ty_1 = CUDA_EVENT_RECORD_NODE_PARAMS_st__anonymous1;
#[doc(hidden)]
pub type CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st__bindgen_ty_1 = CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st__handle;
#[doc(hidden)]
pub type CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st__bindgen_ty_1__bindgen_ty_1 =
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st__handle__win32;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1 = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__handle;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__bindgen_ty_1__bindgen_ty_1 =
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st__handle__win32;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__bindgen_ty_1 = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__params;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__bindgen_ty_1__bindgen_ty_1 =
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__params__fence;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__bindgen_ty_1__bindgen_ty_2 =
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__params__nvSciSync;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__bindgen_ty_1__bindgen_ty_3 =
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st__params__keyedMutex;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__bindgen_ty_1 = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__params;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__bindgen_ty_1__bindgen_ty_1 =
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__params__fence;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__bindgen_ty_1__bindgen_ty_2 =
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__params__nvSciSync;
#[doc(hidden)]
pub type CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__bindgen_ty_1__bindgen_ty_3 =
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st__params__keyedMutex;
#[doc(hidden)]
pub type CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st__bindgen_ty_1 = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st__anonymous1;
#[doc(hidden)]
pub type CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st__bindgen_ty_1 = CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st__anonymous1;
#[doc(hidden)]
pub type CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st__bindgen_ty_1 = CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st__anonymous1;
#[doc(hidden)]
pub type CUDA_HOST_NODE_PARAMS_v2_st__bindgen_ty_1 = CUDA_HOST_NODE_PARAMS_v2_st__anonymous1;
#[doc(hidden)]
pub type CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st__bindgen_ty_1 = CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st__anonymous1;
#[doc(hidden)]
pub type CUDA_RESOURCE_DESC_st__bindgen_ty_1 = CUDA_RESOURCE_DESC_st__res;
#[doc(hidden)]
pub type CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1 = CUDA_RESOURCE_DESC_st__res__array;
#[doc(hidden)]
pub type CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_2 = CUDA_RESOURCE_DESC_st__res__mipmap;
#[doc(hidden)]
pub type CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 = CUDA_RESOURCE_DESC_st__res__linear;
#[doc(hidden)]
pub type CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 = CUDA_RESOURCE_DESC_st__res__pitch2D;
#[doc(hidden)]
pub type CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_5 = CUDA_RESOURCE_DESC_st__res__reserved;
#[doc(hidden)]
pub type CUarrayMapInfo_st__bindgen_ty_1 = CUarrayMapInfo_st__resource;
#[doc(hidden)]
pub type CUarrayMapInfo_st__bindgen_ty_2 = CUarrayMapInfo_st__subresource;
#[doc(hidden)]
pub type CUarrayMapInfo_st__bindgen_ty_2__bindgen_ty_1 = CUarrayMapInfo_st__subresource__sparseLevel;
#[doc(hidden)]
pub type CUarrayMapInfo_st__bindgen_ty_2__bindgen_ty_2 = CUarrayMapInfo_st__subresource__miptail;
#[doc(hidden)]
pub type CUarrayMapInfo_st__bindgen_ty_3 = CUarrayMapInfo_st__memHandle;
#[doc(hidden)]
pub type CUasyncNotificationInfo_st__bindgen_ty_1 = CUasyncNotificationInfo_st__info;
#[doc(hidden)]
pub type CUasyncNotificationInfo_st__bindgen_ty_1__bindgen_ty_1 = CUasyncNotificationInfo_st__info__overBudget;
#[doc(hidden)]
pub type CUdevResource_st__bindgen_ty_1 = CUdevResource_st__anonymous1;
#[doc(hidden)]
pub type CUexecAffinityParam_st__bindgen_ty_1 = CUexecAffinityParam_st__param;
#[doc(hidden)]
pub type CUfabricCpyOperand_st__bindgen_ty_1 = CUfabricCpyOperand_st__op;
#[doc(hidden)]
pub type CUfabricCpyOperand_st__bindgen_ty_1__bindgen_ty_1 = CUfabricCpyOperand_st__op__ptr;
#[doc(hidden)]
pub type CUfabricCpyOperand_st__bindgen_ty_1__bindgen_ty_2 = CUfabricCpyOperand_st__op__le;
#[doc(hidden)]
pub type CUgraphNodeParams_st__bindgen_ty_1 = CUgraphNodeParams_st__anonymous1;
#[doc(hidden)]
pub type CUlaunchAttributeValue_union__bindgen_ty_1 = CUlaunchAttributeValue_union__clusterDim;
#[doc(hidden)]
pub type CUlaunchAttributeValue_union__bindgen_ty_2 = CUlaunchAttributeValue_union__programmaticEvent;
#[doc(hidden)]
pub type CUlaunchAttributeValue_union__bindgen_ty_3 = CUlaunchAttributeValue_union__launchCompletionEvent;
#[doc(hidden)]
pub type CUlaunchAttributeValue_union__bindgen_ty_4 = CUlaunchAttributeValue_union__preferredClusterDim;
#[doc(hidden)]
pub type CUlaunchAttributeValue_union__bindgen_ty_5 = CUlaunchAttributeValue_union__deviceUpdatableKernelNode;
#[doc(hidden)]
pub type CUlogicalEndpointProp_struct__bindgen_ty_1 = CUlogicalEndpointProp_struct__anonymous1;
#[doc(hidden)]
pub type CUlogicalEndpointProp_struct__bindgen_ty_1__bindgen_ty_1 = CUlogicalEndpointProp_struct__unicast;
#[doc(hidden)]
pub type CUlogicalEndpointProp_struct__bindgen_ty_1__bindgen_ty_2 = CUlogicalEndpointProp_struct__multicast;
#[doc(hidden)]
pub type CUmemAllocationProp_st__bindgen_ty_1 = CUmemAllocationProp_st__allocFlags;
#[doc(hidden)]
pub type CUmemLocation_st__bindgen_ty_1 = CUmemLocation_st__anonymous1;
#[doc(hidden)]
pub type CUmemLocation_st__bindgen_ty_1__bindgen_ty_1 = CUmemLocation_st__localized;
#[doc(hidden)]
pub type CUmemcpy3DOperand_st__bindgen_ty_1 = CUmemcpy3DOperand_st__op;
#[doc(hidden)]
pub type CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_1 = CUmemcpy3DOperand_st__op__ptr;
#[doc(hidden)]
pub type CUmemcpy3DOperand_st__bindgen_ty_1__bindgen_ty_2 = CUmemcpy3DOperand_st__op__array;
#[doc(hidden)]
pub type CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1 =
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__anonymous1;
#[doc(hidden)]
pub type CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1 =
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__anonymous1;
