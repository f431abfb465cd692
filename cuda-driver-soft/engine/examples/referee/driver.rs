//! The CUDA driver calls of the referee: loading a module, launching its kernels, copying results.

use cuda_driver_sys as cu;
use std::ffi::{CString, c_void};

/// A context on the first device, current on this thread.
pub(crate) struct Driver {}

/// A loaded module.
#[derive(Clone, Copy)]
pub(crate) struct Module(cu::CUmodule);

fn check(code: cu::CUresult, call: &str) -> Result<(), String> {
    if code == cu::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let reason = cu::DEFAULT.load_error().map(|e| format!(": {e}")).unwrap_or_default();
    Err(format!("{call}: {code:?}{reason}"))
}

impl Driver {
    /// Initialises the driver and creates a context.
    pub(crate) fn start() -> Result<Self, String> {
        let (mut device, mut context) = (0, std::ptr::null_mut());
        // SAFETY: every pointer is to a local variable of the right type.
        unsafe {
            check(cu::cuInit(0), "cuInit")?;
            check(cu::cuDeviceGet(&raw mut device, 0), "cuDeviceGet")?;
            check(cu::cuCtxCreate(&raw mut context, 0, device), "cuCtxCreate")?;
        }
        Ok(Driver {})
    }

    /// Loads PTX; modules are never unloaded.
    pub(crate) fn load(&self, ptx: &str) -> Result<Module, String> {
        let ptx = CString::new(ptx).map_err(|e| e.to_string())?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable of the right type, and the text ends with a NUL byte.
        let code = unsafe { cu::cuModuleLoadData(&raw mut module, ptx.as_ptr().cast()) };
        check(code, "cuModuleLoadData")?;
        Ok(Module(module))
    }

    /// Returns the CUDA version and the device's name.
    pub(crate) fn description(&self) -> Result<String, String> {
        let (mut version, mut name) = (0, [0u8; 100]);
        // SAFETY: the pointers are to local variables, and the name's buffer has the given length.
        unsafe {
            check(cu::cuDriverGetVersion(&raw mut version), "cuDriverGetVersion")?;
            check(cu::cuDeviceGetName(name.as_mut_ptr().cast(), 100, 0), "cuDeviceGetName")?;
        }
        let name = String::from_utf8_lossy(&name);
        let (major, minor) = (version / 1000, version % 1000 / 10);
        Ok(format!(
            "driver for CUDA {major}.{minor}, {}",
            name.trim_end_matches('\0')
        ))
    }

    /// Allocates device memory that lives as long as the process.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, String> {
        let mut address = 0;
        // SAFETY: the pointer is to a local variable of the right type.
        let code = unsafe { cu::cuMemAlloc(&raw mut address, bytes) };
        check(code, "cuMemAlloc")?;
        Ok(address)
    }

    /// Copies the operands to new device memory and returns its address.
    pub(crate) fn upload(&self, operands: &[[u64; 3]]) -> Result<u64, String> {
        let address = self.allocate(size_of_val(operands))?;
        // SAFETY: source and destination both have this many bytes.
        let code = unsafe { cu::cuMemcpyHtoD(address, operands.as_ptr().cast(), size_of_val(operands)) };
        check(code, "cuMemcpyHtoD")?;
        Ok(address)
    }

    /// Runs one entry function of a module over `count` operands and returns its results.
    pub(crate) fn launch(
        &self,
        module: Module,
        name: &str,
        input: u64,
        output: u64,
        count: usize,
    ) -> Result<Vec<u64>, String> {
        let symbol = CString::new(name).map_err(|e| e.to_string())?;
        let mut function = std::ptr::null_mut();
        let mut results = vec![0u64; count];
        let (mut input, mut output, mut n) = (input, output, count as u32);
        let mut parameters: [*mut c_void; 3] = [(&raw mut input).cast(), (&raw mut output).cast(), (&raw mut n).cast()];
        let (grid, stream, extra) = (count.div_ceil(256) as u32, std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: every entry function of the module has these parameters, and both buffers hold `count` items.
        unsafe {
            check(
                cu::cuModuleGetFunction(&raw mut function, module.0, symbol.as_ptr()),
                name,
            )?;
            let code = cu::cuLaunchKernel(
                function,
                grid,
                1,
                1,
                256,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                extra,
            );
            check(code, name)?;
            check(cu::cuMemcpyDtoH(results.as_mut_ptr().cast(), output, count * 8), name)?;
        }
        Ok(results)
    }
}
