//! Tests of libraries and their kernels: without a context, in one context, in several.

use std::ffi::{CStr, c_void};
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver, ptx};
use crate::{arguments, is, ok};

const DYNAMIC: CUfunction_attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

fn load(image: &[u8]) -> CUlibrary {
    let mut library = null_mut();
    let none: *mut CUjit_option = null_mut();
    ok!(cuLibraryLoadData(
        &raw mut library,
        image.as_ptr().cast(),
        none,
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    library
}

fn kernel(library: CUlibrary, name: &CStr) -> CUkernel {
    let mut kernel = null_mut();
    ok!(cuLibraryGetKernel(&raw mut kernel, library, name.as_ptr()));
    kernel
}

#[test]
fn data_that_is_not_an_image() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (mut kernel, mut module, mut count) = (null_mut(), null_mut(), 9);
    let bad = b".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { nonsense; }\n\0";
    for (image, code) in [(&b"junk\0"[..], 200), (bad, 218)] {
        let library = load(image);
        is!(c, code, cuLibraryGetKernel(&raw mut kernel, library, c"k".as_ptr()));
        is!(c, code, cuLibraryGetModule(&raw mut module, library));
        let (mut address, mut bytes) = (0, 0);
        is!(
            c,
            code,
            cuLibraryGetGlobal(&raw mut address, &raw mut bytes, library, c"x".as_ptr())
        );
        is!(c, 0, cuLibraryGetKernelCount(&raw mut count, library));
        c.that(count == 0, || format!("{count} kernels reported for a failed load"));
        is!(c, 0, cuLibraryUnload(library));
    }
}

#[test]
fn managed_variables_without_a_context() {
    driver();
    let mut c = Codes::new();
    let library = load(
        b".version 6.0
.target sm_52
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 number = 7;
.visible .global .align 4 .u32 plain;
.visible .entry count() {
    .reg .u32 %n;
    ld.global.u32 %n, [number];
    add.u32 %n, %n, 1;
    st.global.u32 [number], %n;
    ret;
}\0",
    );
    let (mut address, mut bytes) = (0, 0);
    is!(
        c,
        0,
        cuLibraryGetManaged(&raw mut address, &raw mut bytes, library, c"number".as_ptr())
    );
    c.that(bytes == 4, || format!("{bytes} bytes"));
    let kernel = kernel(library, c"count");
    // All contexts share the variable.
    for count in [8, 9] {
        let gpu = Gpu::new();
        let mut there = 0;
        is!(
            c,
            0,
            cuLibraryGetManaged(&raw mut there, &raw mut bytes, library, c"number".as_ptr())
        );
        c.that(there == address, || {
            format!("the variable is at {there:#x}, not {address:#x}")
        });
        is!(
            c,
            0,
            cuLibraryGetGlobal(&raw mut there, &raw mut bytes, library, c"number".as_ptr())
        );
        c.that(there == address, || {
            format!("the variable is at {there:#x}, not {address:#x}")
        });
        gpu.launch(kernel.cast(), [1; 3], [1; 3], 0, &mut arguments![]);
        let number = gpu.read::<u32>(address, 1)[0];
        c.that(number == count, || format!("{number}, expected {count}"));
        let mut owner: CUcontext = ptr::dangling_mut();
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
        is!(c, 0, cuPointerGetAttribute((&raw mut owner).cast(), attribute, address));
        c.that(owner.is_null(), || format!("the variable belongs to {owner:?}"));
    }
    is!(c, 0, cuLibraryUnload(library));
}

#[test]
fn options_without_values() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let image = ptx("my_kernel.ptx");
    let mut names = [CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES];
    let mut library = null_mut();
    is!(
        c,
        1,
        cuLibraryLoadData(
            &raw mut library,
            image.as_ptr().cast(),
            names.as_mut_ptr(),
            null_mut(),
            1,
            null_mut(),
            null_mut(),
            0
        )
    );
}

#[test]
fn compiler_errors_are_reported_when_loading() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut log = [0_u8; 512];
    let mut names = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())];
    let mut library = null_mut();
    is!(
        c,
        0,
        cuLibraryLoadData(
            &raw mut library,
            c"junk".as_ptr().cast(),
            names.as_mut_ptr(),
            values.as_mut_ptr(),
            2,
            null_mut(),
            null_mut(),
            0
        )
    );
    let text = CStr::from_bytes_until_nul(&log).expect("a terminated log");
    // Driver 580 with two devices cuts off the last letter.
    let expected = b"error   : Binary format for key='0', ident='' is not recognize";
    c.that(text.to_bytes().starts_with(expected), || format!("{text:?}"));
    is!(c, 0, cuLibraryUnload(library));
}

#[test]
fn kernels_are_functions_for_launches() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let library = load(&ptx("my_kernel.ptx"));
    let kernel = kernel(library, c"my_kernel");
    let mut again = null_mut();
    is!(c, 0, cuLibraryGetKernel(&raw mut again, library, c"my_kernel".as_ptr()));
    c.that(again == kernel, || {
        "the second query returned another handle".to_owned()
    });
    is!(c, 500, cuLibraryGetKernel(&raw mut again, library, c"nothing".as_ptr()));
    is!(c, 500, cuLibraryGetKernel(&raw mut again, library, c"".as_ptr()));
    let as_function: CUfunction = kernel.cast();
    let data = gpu.upload(&[1.0_f32; 8]);
    gpu.launch(as_function, [1, 1, 1], [8, 1, 1], 0, &mut arguments![data, 8_u64]);
    c.that(gpu.read::<f32>(data, 8) == [3.0; 8], || {
        "the kernel did not run".to_owned()
    });
    let (mut value, mut name) = (0, ptr::null());
    is!(
        c,
        0,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut value, as_function, 32, 0)
    );
    // Calls for a function's attributes and name do not accept a kernel handle.
    is!(
        c,
        400,
        cuFuncGetAttribute(&raw mut value, CUfunction_attribute(0), as_function)
    );
    is!(c, 400, cuFuncSetAttribute(as_function, DYNAMIC, 4));
    is!(c, 400, cuFuncGetName(&raw mut name, as_function));
    // The library owns its module.
    let mut module = null_mut();
    is!(c, 0, cuLibraryGetModule(&raw mut module, library));
    is!(c, 800, cuModuleUnload(module));
    let mut function = null_mut();
    is!(c, 0, cuKernelGetFunction(&raw mut function, kernel));
    let mut of = null_mut();
    is!(c, 0, cuFuncGetModule(&raw mut of, function));
    c.that(of == module, || "the function is in another module".to_owned());
    is!(c, 0, cuLibraryUnload(library));
}

#[test]
fn attributes_of_kernels() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let library = load(&ptx("my_kernel.ptx"));
    let kernel = kernel(library, c"my_kernel");
    let (mut function, mut value) = (null_mut(), 0);
    // Without a current context.
    ok!(cuCtxPopCurrent(null_mut()));
    is!(c, 0, cuKernelSetAttribute(DYNAMIC, 60_000, kernel, 0));
    is!(c, 0, cuKernelGetAttribute(&raw mut value, DYNAMIC, kernel, 0));
    c.that(value == 60_000, || format!("{value} without a context"));
    is!(c, 1, cuKernelSetAttribute(DYNAMIC, -1, kernel, 0));
    is!(c, 101, cuKernelSetAttribute(DYNAMIC, 1, kernel, 77));
    is!(c, 101, cuKernelGetAttribute(&raw mut value, DYNAMIC, kernel, 77));
    is!(c, 201, cuKernelGetFunction(&raw mut function, kernel));
    ok!(cuCtxPushCurrent(gpu.context));
    // A function that is made from the kernel later has the attribute. Setting the function's attribute does not
    // change the kernel's.
    is!(c, 0, cuKernelGetFunction(&raw mut function, kernel));
    is!(c, 0, cuFuncGetAttribute(&raw mut value, DYNAMIC, function));
    c.that(value == 60_000, || format!("{value} of the function"));
    is!(c, 0, cuFuncSetAttribute(function, DYNAMIC, 70_000));
    is!(c, 0, cuKernelGetAttribute(&raw mut value, DYNAMIC, kernel, 0));
    c.that(value == 60_000, || format!("{value} of the kernel"));
    // Setting the kernel's attribute no longer changes the function.
    is!(c, 0, cuKernelSetAttribute(DYNAMIC, 50_000, kernel, 0));
    is!(c, 0, cuFuncGetAttribute(&raw mut value, DYNAMIC, function));
    c.that(value == 70_000, || format!("{value} of the function now"));
    let other = Gpu::new();
    is!(c, 0, cuKernelGetFunction(&raw mut function, kernel));
    is!(c, 0, cuFuncGetAttribute(&raw mut value, DYNAMIC, function));
    c.that(value == 50_000, || format!("{value} in another context"));
    drop(other);
    is!(c, 0, cuLibraryUnload(library));
}

#[test]
fn in_two_contexts() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let library = load(&ptx("globals.ptx"));
    let global = |c: &mut Codes| {
        let mut address = 0;
        is!(
            c,
            0,
            cuLibraryGetGlobal(&raw mut address, null_mut(), library, c"counter".as_ptr())
        );
        address
    };
    let first = global(&mut c);
    let other = Gpu::new();
    let second = global(&mut c);
    c.that(first != second, || "both contexts share the variable".to_owned());
    drop(other);
    let again = global(&mut c);
    c.that(first == again, || "the variable moved".to_owned());
    let mut bytes = 0;
    is!(
        c,
        500,
        cuLibraryGetGlobal(null_mut(), &raw mut bytes, library, c"nothing".as_ptr())
    );
    is!(
        c,
        1,
        cuLibraryGetGlobal(null_mut(), null_mut(), library, c"counter".as_ptr())
    );
    is!(c, 0, cuLibraryUnload(library));
}
