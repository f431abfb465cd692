//! Exports of external memory.

use std::ffi::c_int;

use cuda_driver_sys::{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC, CUDA_EXTERNAL_MEMORY_DEDICATED, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUdeviceptr, CUexternalMemory, CUexternalMemoryHandleType as Type,
    CUmipmappedArray,
};

use super::array::array_descriptor;
use super::exports;
use crate::call::lookup::current_context;
use crate::object::external;
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Checks the type of a handle: only file descriptors on Linux are supported. Like driver 580 on Linux, returns
/// `CUDA_ERROR_NOT_SUPPORTED` for some types of other platforms, and `CUDA_ERROR_INVALID_VALUE` for all other types.
fn check_type(kind: Type, descriptor: c_int) -> Result<()> {
    match kind {
        Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD if cfg!(target_os = "linux") => Ok(()),
        Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
        | Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32
        | Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT
        | Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP
        | Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF => Err(Error::CUDA_ERROR_NOT_SUPPORTED),
        Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD if descriptor >= 0 => Err(Error::CUDA_ERROR_NOT_SUPPORTED),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

exports! {
    healthy fn cuImportExternalMemory [c] (
        out: *mut CUexternalMemory,
        desc: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    ) {
        let context = current_context()?;
        let (out, desc) = (c.out(out)?, c.read(desc)?);
        if desc.size == 0 || desc.flags & !CUDA_EXTERNAL_MEMORY_DEDICATED != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: any bits are valid for this member, which a file descriptor sets.
        let descriptor = unsafe { desc.handle.fd };
        check_type(desc.type_, descriptor)?;
        let handle = external::import(&context, descriptor, desc.size);
        // Like driver 580, closes the descriptor even if the import fails. The manual says so only for an import that
        // succeeds.
        c.close(descriptor);
        out.set(handle? as CUexternalMemory);
        Ok(())
    }

    healthy fn cuExternalMemoryGetMappedBuffer [c] (
        out: *mut CUdeviceptr,
        memory: CUexternalMemory,
        desc: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    ) {
        let context = current_context()?;
        let (out, desc) = (c.out(out)?, c.read(desc)?);
        if desc.flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let memory = external::get(memory as usize)?;
        out.set(memory.map_buffer(&context, desc.offset, desc.size)?);
        Ok(())
    }

    healthy fn cuExternalMemoryGetMappedMipmappedArray [c] (
        out: *mut CUmipmappedArray,
        memory: CUexternalMemory,
        desc: *const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC,
    ) {
        let context = current_context()?;
        let (out, desc) = (c.out(out)?, c.read(desc)?);
        let memory = external::get(memory as usize)?;
        let d = desc.arrayDesc;
        let descriptor = array_descriptor!(d, d.Depth, d.Flags);
        let made = memory.map_array(&context, desc.offset, descriptor, desc.numLevels)?;
        out.set(made as CUmipmappedArray);
        Ok(())
    }

    fn cuDestroyExternalMemory [_c] (memory: CUexternalMemory) {
        gate::healthy()?;
        external::destroy(memory as usize)
    }
}
