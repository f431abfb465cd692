//! Exports that share memory and events with other processes.

use std::ffi::c_uint;

use cuda_driver_sys::{CUdeviceptr, CUevent, CUipcEventHandle, CUipcMem_flags, CUipcMemHandle};

use super::exports;
use crate::call::lookup::current_context;
use crate::call::{event, ipc as call};
use crate::object::context;
use crate::object::ipc::{self, BYTES};
use crate::state::error::{Error, Result};
use crate::state::gate;

/// The flag that `cuIpcOpenMemHandle` requires.
const LAZY_PEER_ACCESS: c_uint = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0;

/// Returns the bytes of a handle.
fn bytes(reserved: [std::ffi::c_char; BYTES]) -> [u8; BYTES] {
    reserved.map(|byte| byte as u8)
}

/// Returns `CUDA_ERROR_NOT_SUPPORTED` on systems other than Linux.
fn linux() -> Result<()> {
    if cfg!(target_os = "linux") {
        Ok(())
    } else {
        host::log!("sharing memory and events between processes is supported on Linux only");
        Err(Error::CUDA_ERROR_NOT_SUPPORTED)
    }
}

exports! {
    fn cuIpcGetMemHandle [c] (out: *mut CUipcMemHandle, address: CUdeviceptr) {
        linux()?;
        let out = c.out(out.cast::<[u8; BYTES]>())?;
        out.set(call::export(address)?);
        Ok(())
    }

    fn cuIpcOpenMemHandle_v2 = cuIpcOpenMemHandle [c] (
        out: *mut CUdeviceptr,
        handle: CUipcMemHandle,
        flags: c_uint,
    ) {
        linux()?;
        gate::healthy()?;
        let out = c.out(out)?;
        if flags != LAZY_PEER_ACCESS {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let context = context::current()?;
        out.set(ipc::open(&context, &bytes(handle.reserved))?);
        Ok(())
    }

    fn cuIpcCloseMemHandle [_c] (address: CUdeviceptr) {
        linux()?;
        call::close(address)
    }

    fn cuIpcGetEventHandle [c] (out: *mut CUipcEventHandle, hevent: CUevent) {
        linux()?;
        current_context()?;
        let out = c.out(out.cast::<[u8; BYTES]>())?;
        out.set(event::get(hevent as usize)?.export()?);
        Ok(())
    }

    fn cuIpcOpenEventHandle [c] (out: *mut CUevent, handle: CUipcEventHandle) {
        linux()?;
        let context = current_context()?;
        let out = c.out(out)?;
        out.set(event::open(&context, &bytes(handle.reserved))? as CUevent);
        Ok(())
    }
}
