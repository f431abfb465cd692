//! Exports that initialise the driver, and return its version, the names and descriptions of result codes, and the
//! addresses of functions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_driver_sys::{
    CUdriverProcAddress_flags, CUdriverProcAddressQueryResult, CUresult, CUuuid, StreamMode, cuuint64_t,
};

use super::args::set;
use super::exports;
use super::resolve::{address, find_undocumented, variants};
use crate::call::init;
#[cfg(unix)]
use crate::check;
use crate::state::error::{Error, Result};
use crate::state::{gate, settings};
#[cfg(unix)]
use crate::{profile, trace};

/// Registers handlers for forks and for the end of the process, on Unix only.
fn watch() {
    #[cfg(unix)]
    {
        extern "C" fn forked() {
            gate::mark_forked();
            host::messages::mark_forked();
            trace::mark_forked();
        }
        extern "C" fn exiting() {
            gate::mark_exiting();
            // A forked child has only copies of its parent's objects and counts, and a thread that it does not have may
            // hold their locks.
            if gate::is_forked() {
                return;
            }
            check::at_exit();
            trace::at_exit();
            profile::at_exit();
        }
        // SAFETY: the handler only uses atomics and tries a lock, which is permitted in the child of a fork.
        let atfork = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        // SAFETY: a handler of `atexit` may run arbitrary code.
        let atexit = unsafe { libc::atexit(exiting) };
        if atfork != 0 || atexit != 0 {
            host::log!(
                "cannot register the handlers of fork and exit: calls after fork or during exit are not detected, and \
                 reports at exit may be missing"
            );
        }
    }
}

const PER_THREAD: u64 = CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0 as u64;
/// All flags of `cuGetProcAddress`.
const FLAGS: u64 = PER_THREAD | CUdriverProcAddress_flags::CU_GET_PROC_ADDRESS_LEGACY_STREAM.0 as u64;

/// Returns the address and the status for `cuGetProcAddress`.
fn query(name: &[u8], version: c_int, flags: u64) -> Result<(*const c_void, CUdriverProcAddressQueryResult)> {
    let own = settings::version();
    let version = match u32::try_from(version) {
        // Drivers of CUDA 12.5 and older return the newest function for versions above their own.
        Ok(version) if version > own && own > 12050 => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        Ok(version) => version.min(own),
        // Driver 580 returns the newest function for version −1. This driver does so for all negative versions.
        Err(_) => own,
    };
    if flags & !FLAGS != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // Functions that are newer than the reported version do not exist for the caller.
    let variants = variants(name);
    let of_base = || variants.iter().copied().filter(|f| f.since() <= own);
    if variants.is_empty()
        && let Some(address) = find_undocumented(name, version, flags & PER_THREAD != 0)
    {
        let status = if address.is_null() {
            CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
        } else {
            CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
        };
        return Ok((address, status));
    }
    if of_base().next().is_none() {
        return Ok((
            std::ptr::null(),
            CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        ));
    }
    let has_per_thread = of_base().any(|f| f.stream_mode() == StreamMode::PerThread);
    let per_thread = flags & PER_THREAD != 0 && has_per_thread;
    let of_mode = of_base().filter(|f| (f.stream_mode() == StreamMode::PerThread) == per_thread);
    let newest = of_mode.filter(|f| f.since() <= version).max_by_key(|f| f.since());
    Ok(match newest {
        Some(function) => (
            address(function),
            CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS,
        ),
        None => (
            std::ptr::null(),
            CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
        ),
    })
}

/// Writes the name or the description of a result code. For an unknown code, writes NULL and returns
/// `CUDA_ERROR_INVALID_VALUE`.
fn describe(text: Option<&'static std::ffi::CStr>, out: super::args::Out<*const c_char>) -> Result<()> {
    out.set(text.map_or(std::ptr::null(), |t| t.as_ptr()));
    text.map(|_| ()).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

exports! {
    anytime fn cuInit [c] (flags: c_uint) {
        init::init(flags, watch)
    }

    anytime fn cuDriverGetVersion [c] (version: *mut c_int) {
        gate::not_exiting()?;
        c.out(version)?.set(settings::version() as c_int);
        Ok(())
    }

    anytime fn cuGetErrorName [c] (error: CUresult, text: *mut *const c_char) {
        describe(error.name_c(), c.out(text)?)
    }

    anytime fn cuGetErrorString [c] (error: CUresult, text: *mut *const c_char) {
        describe(error.description_c(), c.out(text)?)
    }

    anytime fn cuGetProcAddress [c] (
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: cuuint64_t,
    ) {
        let (name, function) = (c.bytes(symbol)?, c.out(function)?);
        let (address, _) = query(&name, version, flags)?;
        // Drivers 470 to 580 return `CUDA_ERROR_NOT_FOUND` here and write nothing; this variant has no status.
        if address.is_null() {
            return Err(Error::CUDA_ERROR_NOT_FOUND);
        }
        function.set(address.cast_mut());
        Ok(())
    }

    anytime fn cuGetProcAddress_v2 [c] (
        symbol: *const c_char,
        function: *mut *mut c_void,
        version: c_int,
        flags: cuuint64_t,
        status: *mut CUdriverProcAddressQueryResult,
    ) {
        let (name, function, status) = (c.bytes(symbol)?, c.out(function)?, c.out_or_null(status));
        let (address, answer) = query(&name, version, flags)?;
        function.set(address.cast_mut());
        set(status, answer);
        Ok(())
    }

    anytime fn cuGetExportTable [c] (table: *mut *const c_void, _id: *const CUuuid) {
        // This driver has no export tables. NVIDIA's driver returns the same code for an unknown id.
        c.out(table)?.set(std::ptr::null());
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

#[cfg(test)]
mod tests {
    use cuda_driver_sys::Function;

    use super::*;
    use crate::abi::resolve::resolve;

    const SUCCESS: CUdriverProcAddressQueryResult = CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS;
    const UNKNOWN: CUdriverProcAddressQueryResult =
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const TOO_NEW: CUdriverProcAddressQueryResult =
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;

    fn symbol(name: &str, version: c_int, flags: u64) -> Result<(&'static str, CUdriverProcAddressQueryResult)> {
        let (address, status) = query(name.as_bytes(), version, flags)?;
        let named = Function::ALL.iter().find(|f| super::address(**f) == address);
        Ok((named.map_or("", |f| f.name()), status))
    }

    #[test]
    fn the_newest_variant_up_to_the_requested_version() {
        assert_eq!(symbol("cuMemAlloc", 12020, 0), Ok(("cuMemAlloc_v2", SUCCESS)));
        assert_eq!(symbol("cuMemAlloc", 2000, 0), Ok(("cuMemAlloc", SUCCESS)));
        assert_eq!(symbol("cuCtxCreate", 12040, 1), Ok(("cuCtxCreate_v3", SUCCESS)));
        assert_eq!(symbol("cuCtxCreate", -1, 0), Ok(("cuCtxCreate_v4", SUCCESS)));
    }

    #[test]
    fn undocumented_functions_are_found() {
        let (address, status) = query(b"cuProfilerStart", 12020, 0).unwrap();
        assert_eq!((address, status), (resolve(c"cuProfilerStart"), SUCCESS));
        assert!(!address.is_null());
        assert_eq!(query(b"cuProfilerStart", 3000, 0), Ok((std::ptr::null(), TOO_NEW)));
        let map = |version, flags| query(b"cuGLMapBufferObject", version, flags).unwrap().0;
        assert_eq!(map(2000, 0), resolve(c"cuGLMapBufferObject"));
        assert_eq!(map(12000, 0), resolve(c"cuGLMapBufferObject_v2"));
        assert_eq!(map(12000, 2), resolve(c"cuGLMapBufferObject_v2_ptds"));
    }

    #[test]
    fn per_thread_variants_are_found_if_they_exist() {
        assert_eq!(symbol("cuMemcpyHtoD", 12020, 2), Ok(("cuMemcpyHtoD_v2_ptds", SUCCESS)));
        assert_eq!(symbol("cuMemcpyHtoD", 12020, 3), Ok(("cuMemcpyHtoD_v2_ptds", SUCCESS)));
        assert_eq!(symbol("cuMemcpyHtoD", 6000, 2), Ok(("", TOO_NEW)));
        assert_eq!(symbol("cuInit", 12020, 2), Ok(("cuInit", SUCCESS)));
    }

    #[test]
    fn unknown_names_too_new_functions_and_invalid_flags() {
        assert_eq!(symbol("", 12020, 0), Ok(("", UNKNOWN)));
        assert_eq!(symbol("cuMemAlloc_v2", 12020, 0), Ok(("", UNKNOWN)));
        assert_eq!(symbol("cuMemAlloc", 0, 0), Ok(("", TOO_NEW)));
        assert_eq!(symbol("cuLibraryLoadData", 11080, 0), Ok(("", TOO_NEW)));
        assert_eq!(
            symbol("cuInit", settings::version() as c_int + 10, 0),
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        );
        assert_eq!(symbol("cuInit", 12020, 4), Err(Error::CUDA_ERROR_INVALID_VALUE));
        assert_eq!(symbol("cuInit", 12020, 99), Err(Error::CUDA_ERROR_INVALID_VALUE));
    }
}
