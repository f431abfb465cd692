//! Exports of stream memory operations.
//!
//! Their first versions (CUDA 8 to 11) return `CUDA_ERROR_NOT_SUPPORTED`, as on a driver of CUDA 13.

use std::ffi::c_uint;

use cuda_driver_sys::{
    CUdeviceptr, CUstream, CUstreamBatchMemOpParams, CUstreamBatchMemOpType, cuuint32_t, cuuint64_t,
};

use super::args::Caller;
use super::exports;
use crate::call::{stream, submit};
use crate::operation::memory_operation::{self as operation, MemoryOperation};
use crate::state::error::{Error, Result};

/// Reads and checks one operation of a batch.
fn read(params: &CUstreamBatchMemOpParams) -> Result<MemoryOperation> {
    type Kind = CUstreamBatchMemOpType;
    // SAFETY: every member of the union begins with the operation.
    let kind = unsafe { params.operation };
    // SAFETY: all members are integers, which are valid for any bits; the operation says which one was written.
    unsafe {
        let (wait, write) = (&params.waitValue, &params.writeValue);
        match kind {
            Kind::CU_STREAM_MEM_OP_WAIT_VALUE_32 => {
                operation::wait(wait.address, wait.anonymous1.value.into(), 4, wait.flags)
            }
            Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
                operation::wait(wait.address, wait.anonymous1.value64, 8, wait.flags)
            }
            Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32 => {
                operation::write(write.address, write.anonymous1.value.into(), 4, write.flags)
            }
            Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
                operation::write(write.address, write.anonymous1.value64, 8, write.flags)
            }
            Kind::CU_STREAM_MEM_OP_BARRIER => operation::barrier(params.memoryBarrier.flags),
            Kind::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Err(Error::CUDA_ERROR_NOT_SUPPORTED),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }
}

/// Reads all operations of a batch; one wrong operation is an error for the whole batch.
pub(super) fn batch(
    c: Caller,
    count: c_uint,
    params: *const CUstreamBatchMemOpParams,
    flags: c_uint,
) -> Result<Vec<MemoryOperation>> {
    operation::check_count(count as usize)?;
    if flags != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let all = c.array(params, count as usize)?;
    all.iter().map(read).collect()
}

exports! {
    fn cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz [c, mode] (
        hstream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: c_uint,
    ) {
        let stream = stream::for_capture(hstream as usize, mode)?;
        submit::memory_operations(
            vec![operation::wait(address, value.into(), 4, flags)?],
            &stream,
        )
    }

    fn cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz [c, mode] (
        hstream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: c_uint,
    ) {
        let stream = stream::for_capture(hstream as usize, mode)?;
        submit::memory_operations(vec![operation::wait(address, value, 8, flags)?], &stream)
    }

    fn cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz [c, mode] (
        hstream: CUstream,
        address: CUdeviceptr,
        value: cuuint32_t,
        flags: c_uint,
    ) {
        let stream = stream::for_capture(hstream as usize, mode)?;
        submit::memory_operations(
            vec![operation::write(address, value.into(), 4, flags)?],
            &stream,
        )
    }

    fn cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz [c, mode] (
        hstream: CUstream,
        address: CUdeviceptr,
        value: cuuint64_t,
        flags: c_uint,
    ) {
        let stream = stream::for_capture(hstream as usize, mode)?;
        submit::memory_operations(vec![operation::write(address, value, 8, flags)?], &stream)
    }

    fn cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz [c, mode] (
        hstream: CUstream,
        count: c_uint,
        params: *mut CUstreamBatchMemOpParams,
        flags: c_uint,
    ) {
        let stream = stream::for_capture(hstream as usize, mode)?;
        submit::memory_operations(batch(c, count, params, flags)?, &stream)
    }
}
