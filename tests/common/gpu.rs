//! A context for kernel tests, made with raw calls: modules, buffers, launches. Every call here must succeed, except
//! the destruction of the context.

use std::ffi::{CString, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

use cuda_driver::sys::*;

use crate::ok;

/// Types for which every bit pattern is a valid value, so that bytes can be copied into and out of them.
///
/// # Safety
/// The type has no padding and no invalid bit pattern.
pub(crate) unsafe trait Plain: Copy + Default + 'static {}
macro_rules! plain {
    ($($t:ty)*) => { $(
        // SAFETY: numbers have neither padding nor invalid bit patterns.
        unsafe impl Plain for $t {}
    )* };
}
plain!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);
// SAFETY: an array adds neither padding nor invalid bit patterns.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] where [T; N]: Default {}

/// A context, current on this thread until dropped.
pub(crate) struct Gpu {
    pub(crate) context: CUcontext,
}

impl Gpu {
    pub(crate) fn new() -> Self {
        super::driver();
        let mut context = ptr::null_mut();
        ok!(cuCtxCreate(&raw mut context, 0, 0));
        Self { context }
    }

    /// Loads a kernel file into the context.
    pub(crate) fn module(&self, file: &str) -> CUmodule {
        let text = super::ptx(file);
        let mut module = ptr::null_mut();
        ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
        module
    }

    /// Loads PTX into the context.
    pub(crate) fn text(&self, ptx: &str) -> CUmodule {
        let Ok(text) = CString::new(ptx) else {
            panic!("NUL byte in {ptx:?}")
        };
        let mut module = ptr::null_mut();
        ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
        module
    }

    /// Loads a kernel file and returns one of its kernels.
    pub(crate) fn kernel(&self, file: &str, name: &str) -> CUfunction {
        let module = self.module(file);
        self.function(module, name)
    }

    pub(crate) fn function(&self, module: CUmodule, name: &str) -> CUfunction {
        let mut function = ptr::null_mut();
        let Ok(name) = CString::new(name) else {
            panic!("NUL byte in {name:?}")
        };
        ok!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()));
        function
    }

    /// Returns the address and the size in bytes of a module's variable.
    pub(crate) fn global(&self, module: CUmodule, name: &str) -> (CUdeviceptr, usize) {
        let (mut address, mut bytes) = (0, 0);
        let Ok(name) = CString::new(name) else {
            panic!("NUL byte in {name:?}")
        };
        ok!(cuModuleGetGlobal(
            &raw mut address,
            &raw mut bytes,
            module,
            name.as_ptr()
        ));
        (address, bytes)
    }

    pub(crate) fn alloc(&self, bytes: usize) -> CUdeviceptr {
        let mut address = 0;
        ok!(cuMemAlloc(&raw mut address, bytes.max(1)));
        address
    }

    /// Allocates device memory and copies `data` into it.
    pub(crate) fn upload<T: Plain>(&self, data: &[T]) -> CUdeviceptr {
        let address = self.alloc(size_of_val(data));
        self.write(address, data);
        address
    }

    pub(crate) fn write<T: Plain>(&self, address: CUdeviceptr, data: &[T]) {
        ok!(cuMemcpyHtoD(address, data.as_ptr().cast(), size_of_val(data)));
        // The copy may return before the data is on the device, and non-blocking streams do not wait for it.
        ok!(cuStreamSynchronize(ptr::null_mut()));
    }

    /// Reads `count` values from device memory, after all earlier work on the null stream.
    pub(crate) fn read<T: Plain>(&self, address: CUdeviceptr, count: usize) -> Vec<T> {
        let mut data = vec![T::default(); count];
        ok!(cuMemcpyDtoH(data.as_mut_ptr().cast(), address, size_of_val(&data[..])));
        data
    }

    /// Launches on the null stream and waits.
    pub(crate) fn launch(
        &self,
        function: CUfunction,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        arguments: &mut Arguments,
    ) {
        let mut pointers = arguments.pointers();
        ok!(cuLaunchKernel(
            function,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            shared,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        ));
        ok!(cuCtxSynchronize());
    }

    /// Runs a kernel `(inputs…, out, n)` over n elements in blocks of 128 threads and returns `per` results for each
    /// element.
    ///
    /// The output buffer starts as 0xA5 bytes, so that a missing result shows.
    pub(crate) fn table<I: Plain, O: Plain>(&self, function: CUfunction, inputs: &[&[I]], per: usize) -> Vec<O> {
        let n = inputs[0].len();
        let mut arguments = Arguments::new();
        let mut buffers = Vec::new();
        for input in inputs {
            assert_eq!(input.len(), n, "inputs of the same length");
            let address = self.upload(input);
            arguments.push(address);
            buffers.push(address);
        }
        let bytes = n * per * size_of::<O>();
        let out = self.alloc(bytes);
        ok!(cuMemsetD8(out, 0xa5, bytes));
        let Ok(count) = u32::try_from(n) else {
            panic!("{n} elements")
        };
        arguments.push(out);
        arguments.push(count);
        self.launch(function, [count.div_ceil(128), 1, 1], [128, 1, 1], 0, &mut arguments);
        let results = self.read(out, n * per);
        for buffer in buffers {
            ok!(cuMemFree(buffer));
        }
        ok!(cuMemFree(out));
        results
    }
}

impl Gpu {
    /// Destroys the context, and returns the code.
    pub(crate) fn destroy(self) -> CUresult {
        let gpu = ManuallyDrop::new(self);
        // SAFETY: this object owned the context.
        unsafe { cuCtxDestroy(gpu.context) }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: this object owns the context. After a fault the call may fail; the test has already seen the fault.
        let _ = unsafe { cuCtxDestroy(self.context) };
    }
}

/// A word of page-locked memory for which streams wait. Dropping it releases them, because after a failed assertion
/// destroying the context would wait for ever; the context frees the memory.
pub(crate) struct Hold(*mut u32);

impl Hold {
    pub(crate) fn new() -> Self {
        let mut word = ptr::null_mut();
        ok!(cuMemHostAlloc(&raw mut word, 4, 0));
        Self(word.cast())
    }

    /// Makes the stream wait for [`Self::release`].
    pub(crate) fn hold(&self, stream: CUstream) {
        self.write(0);
        ok!(cuStreamWaitValue32(stream, self.0.addr() as CUdeviceptr, 1, 1));
    }

    pub(crate) fn release(&self) {
        self.write(1);
    }

    fn write(&self, value: u32) {
        // SAFETY: page-locked memory of this object, which otherwise only the device reads.
        unsafe { self.0.write_volatile(value) };
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release();
    }
}

/// Memory that fills whole pages, which hold no memory of other tests: for registering.
#[derive(Clone, Copy, Debug)]
#[repr(align(4096))]
pub(crate) struct Pages<T>(pub(crate) T);

/// Kernel arguments, passed to the driver as an array of pointers.
#[derive(Default)]
pub(crate) struct Arguments {
    values: Vec<Box<[u128]>>,
}

impl Arguments {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push<T: Copy + 'static>(&mut self, value: T) {
        let words = size_of::<T>().div_ceil(16).max(1);
        let mut place = vec![0_u128; words].into_boxed_slice();
        assert!(align_of::<T>() <= 16, "an argument aligned above 16");
        // SAFETY: the place is at least as large as T and aligned to 16.
        unsafe { place.as_mut_ptr().cast::<T>().write(value) };
        self.values.push(place);
    }

    /// Returns the array for `cuLaunchKernel`, valid until `self` is changed.
    pub(crate) fn pointers(&mut self) -> Vec<*mut c_void> {
        self.values.iter_mut().map(|place| place.as_mut_ptr().cast()).collect()
    }
}

/// `arguments![a, b, c]`: the arguments of a launch, each with the type of its parameter.
#[macro_export]
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {{
        let mut arguments = $crate::common::gpu::Arguments::new();
        $( arguments.push($value); )*
        arguments
    }};
}
