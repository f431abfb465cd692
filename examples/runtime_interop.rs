//! The CUDA runtime and cuBLAS next to this crate: they share the primary context, so each can use the other's
//! pointers.
//!
//! Needs a GPU, `libcudart.so` and, for the last part, `libcublas.so`, which are loaded at run time: set
//! `LD_LIBRARY_PATH` to the toolkit's `lib64` if the system's loader does not find them.

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::ffi::{CStr, c_char, c_int, c_void};

    use cuda_driver::{Context, Device, DeviceBuffer, PrimaryContext, sys};
    use cuda_driver_soft::Prefer;

    type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

    unsafe extern "C" {
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// A library that stays loaded.
    #[derive(Clone, Copy)]
    struct Library(*mut c_void);

    impl Library {
        /// Opens the first of these libraries that the system's loader finds.
        fn open(names: &[&CStr]) -> Option<Self> {
            // `RTLD_NOW`
            const NOW: c_int = 2;
            names.iter().find_map(|name| {
                // SAFETY: the name is a C string; NVIDIA's libraries may be loaded at any time.
                let library = unsafe { dlopen(name.as_ptr(), NOW) };
                (!library.is_null()).then_some(Self(library))
            })
        }

        /// Returns a pointer to an exported function.
        ///
        /// # Safety
        /// `F` must be the pointer type of the function that the library exports by this name.
        unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F> {
            assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
            // SAFETY: the library is open, and the name is a C string.
            let address = unsafe { dlsym(self.0, name.as_ptr()) };
            if address.is_null() {
                return Err(format!("the library does not export {}", name.to_string_lossy()).into());
            }
            // SAFETY: upheld by the caller; `F` has the size of a pointer.
            Ok(unsafe { std::mem::transmute_copy(&address) })
        }
    }

    /// Converts the result code of the runtime or of cuBLAS.
    fn ok(code: c_int, call: &str) -> Result {
        if code == 0 {
            Ok(())
        } else {
            Err(format!("{call} returned {code}").into())
        }
    }

    pub(crate) fn run() -> Result {
        let driver = cuda_driver_soft::from_env(Prefer::System)?;
        driver.install()?;
        cuda_driver::init()?;
        if sys::DEFAULT.is_software() {
            println!("needs a GPU: the CUDA runtime does not run on the software driver");
            return Ok(());
        }
        let Some(runtime) = Library::open(&[
            c"libcudart.so",
            c"libcudart.so.13",
            c"libcudart.so.12",
            c"libcudart.so.11.0",
        ]) else {
            println!("needs libcudart.so");
            return Ok(());
        };
        // SAFETY: these are the types of the runtime's functions.
        let (get_device_count, set_device, malloc, free) = unsafe {
            (
                runtime.function::<unsafe extern "C" fn(*mut c_int) -> c_int>(c"cudaGetDeviceCount")?,
                runtime.function::<unsafe extern "C" fn(c_int) -> c_int>(c"cudaSetDevice")?,
                runtime.function::<unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int>(c"cudaMalloc")?,
                runtime.function::<unsafe extern "C" fn(*mut c_void) -> c_int>(c"cudaFree")?,
            )
        };

        // The runtime makes no context current when it counts devices.
        let device = Device::first()?;
        let mut count = 0;
        // SAFETY: the pointer is valid for the write.
        ok(unsafe { get_device_count(&raw mut count) }, "cudaGetDeviceCount")?;
        assert_eq!(Device::count()?, u32::try_from(count)?);
        assert!(Context::current_raw()?.is_null());
        println!("cudaGetDeviceCount: {count}, no current context");

        // The runtime makes the primary context current: from CUDA 12 on in `cudaSetDevice`, before that in the first
        // call that needs a context. This crate then retains the same context.
        // SAFETY: the device exists; `cudaFree` ignores null.
        unsafe {
            ok(set_device(device.as_raw()), "cudaSetDevice")?;
            ok(free(std::ptr::null_mut()), "cudaFree")?;
        }
        let context = PrimaryContext::retain(device)?.into_context();
        assert!(context.is_current()?);
        println!("the runtime made the primary context current");

        // Memory of the runtime, owned and freed by this crate.
        let mut address = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the write.
        ok(unsafe { malloc(&raw mut address, 4 * 1000) }, "cudaMalloc")?;
        // SAFETY: `cudaMalloc` allocated 1000 values in this context, and no other code frees them.
        let mut theirs = unsafe { DeviceBuffer::<f32>::from_raw(address as sys::CUdeviceptr, 1000, &context) };
        theirs.copy_from(&[1.5; 1000])?;
        assert_eq!(theirs.to_vec()?, [1.5; 1000]);
        theirs.free()?;
        println!("memory of cudaMalloc was freed by this crate");

        // Memory of this crate, freed by the runtime.
        let ours = DeviceBuffer::from_slice(&context, &[2.5_f32; 1000])?;
        // SAFETY: the address is the start of an allocation, whose ownership was released.
        ok(unsafe { free(ours.into_raw() as *mut c_void) }, "cudaFree")?;
        println!("memory of this crate was freed by cudaFree");

        match Library::open(&[
            c"libcublas.so",
            c"libcublas.so.13",
            c"libcublas.so.12",
            c"libcublas.so.11",
        ]) {
            Some(blas) => dot_product(blas, &context)?,
            None => println!("needs libcublas.so for a dot product"),
        }
        println!("Result = PASS");
        Ok(())
    }

    /// Computes a dot product of two vectors in this crate's memory with cuBLAS, which works in the current context.
    fn dot_product(blas: Library, context: &Context) -> Result {
        type Handle = *mut c_void;
        type Dot = unsafe extern "C" fn(Handle, c_int, *const f32, c_int, *const f32, c_int, *mut f32) -> c_int;
        // SAFETY: these are the types of cuBLAS's functions.
        let (create, destroy, dot) = unsafe {
            (
                blas.function::<unsafe extern "C" fn(*mut Handle) -> c_int>(c"cublasCreate_v2")?,
                blas.function::<unsafe extern "C" fn(Handle) -> c_int>(c"cublasDestroy_v2")?,
                blas.function::<Dot>(c"cublasSdot_v2")?,
            )
        };
        let _current = context.push()?;
        let x = DeviceBuffer::from_slice(context, &[2.0_f32; 1000])?;
        let y = DeviceBuffer::from_slice(context, &[3.0_f32; 1000])?;
        let (mut handle, mut sum) = (std::ptr::null_mut(), 0.0);
        // SAFETY: both vectors have 1000 values, and cuBLAS waits for the result before it returns.
        unsafe {
            ok(create(&raw mut handle), "cublasCreate")?;
            let (x, y) = (x.as_raw() as *const f32, y.as_raw() as *const f32);
            ok(dot(handle, 1000, x, 1, y, 1, &raw mut sum), "cublasSdot")?;
            ok(destroy(handle), "cublasDestroy")?;
        }
        assert_eq!(sum, 6000.0);
        println!("cublasSdot over this crate's memory: {sum}");
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("needs Linux");
}
