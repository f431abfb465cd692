//! Tests of modules, their functions and variables.

use std::ffi::CString;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::values::fma32;
use crate::common::{Codes, is_software, needs, ptx, ptx_path};
use crate::{arguments, child, is, ok};

#[test]
fn loading_a_file() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let path = CString::new(ptx_path("vector_add.ptx").to_string_lossy().into_owned()).expect("no NUL byte in a path");
    let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
    is!(c, 0, cuModuleLoad(&raw mut module, path.as_ptr()));
    is!(
        c,
        0,
        cuModuleGetFunction(&raw mut function, module, c"vector_add".as_ptr())
    );
    is!(c, 0, cuModuleUnload(module));
    is!(c, 301, cuModuleLoad(&raw mut module, c"/no/such/file.ptx".as_ptr()));
    is!(c, 1, cuModuleLoad(ptr::null_mut(), path.as_ptr()));
    is!(c, 1, cuModuleLoad(&raw mut module, c"".as_ptr()));
    // For a folder the driver returns another code than for a missing file.
    let folder = CString::new(std::env::temp_dir().to_string_lossy().into_owned()).expect("no NUL byte in a path");
    is!(c, 2, cuModuleLoad(&raw mut module, folder.as_ptr()));
    drop(gpu);
}

#[test]
fn wrong_arguments() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.module("vector_add.ptx");
    let (mut other, mut function) = (ptr::null_mut(), ptr::null_mut());
    is!(c, 1, cuModuleLoadData(&raw mut other, ptr::null()));
    is!(
        c,
        1,
        cuModuleLoadData(ptr::null_mut(), ptx("vector_add.ptx").as_ptr().cast())
    );
    is!(
        c,
        500,
        cuModuleGetFunction(&raw mut function, module, c"no_such_kernel".as_ptr())
    );
    is!(c, 1, cuModuleGetFunction(&raw mut function, module, c"".as_ptr()));
    is!(
        c,
        1,
        cuModuleGetFunction(ptr::null_mut(), module, c"vector_add".as_ptr())
    );
    is!(
        c,
        400,
        cuModuleGetFunction(&raw mut function, ptr::null_mut(), c"vector_add".as_ptr())
    );
    is!(c, 400, cuModuleUnload(ptr::null_mut()));
}

#[test]
fn handles_after_unload() {
    // Alone in its process: another thread's new module may get the handle of the unloaded one.
    child!("handles_after_unload", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let text = ptx("registers.ptx");
        let (mut module, mut function, mut again) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
        ok!(cuModuleGetFunction(&raw mut function, module, c"registers".as_ptr()));
        ok!(cuModuleGetFunction(&raw mut again, module, c"registers".as_ptr()));
        c.that(function == again, || {
            "a second query for the function returned another handle".to_owned()
        });
        is!(c, 0, cuModuleUnload(module));
        if !is_software() {
            // Driver 580 nearly always returns 400, and crashed (SIGSEGV) once.
            needs("the software driver: NVIDIA's may crash on a module that was unloaded");
            return;
        }
        is!(c, 400, cuModuleUnload(module));
        is!(
            c,
            400,
            cuModuleGetFunction(&raw mut function, module, c"registers".as_ptr())
        );
        let out = gpu.alloc(4096);
        let mut arguments = arguments![out];
        let mut pointers = arguments.pointers();
        is!(
            c,
            400,
            cuLaunchKernel(
                again,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                ptr::null_mut(),
                pointers.as_mut_ptr(),
                ptr::null_mut()
            )
        );
    });
}

#[test]
fn null_file_name() {
    child!("null_file_name", {
        let _gpu = Gpu::new();
        let mut c = Codes::new();
        let mut module = ptr::null_mut();
        is!(c, 1, cuModuleLoad(&raw mut module, ptr::null()));
    });
}

#[test]
fn null_function_name() {
    child!("null_function_name", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let module = gpu.module("vector_add.ptx");
        let mut function = ptr::null_mut();
        is!(c, 1, cuModuleGetFunction(&raw mut function, module, ptr::null()));
    });
}

#[test]
fn null_variable_name() {
    child!("null_variable_name", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let module = gpu.module("globals.ptx");
        let (mut address, mut bytes) = (0, 0);
        is!(
            c,
            1,
            cuModuleGetGlobal(&raw mut address, &raw mut bytes, module, ptr::null())
        );
    });
}

#[test]
fn globals() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.module("globals.ptx");
    let sizes = [
        ("coefficients", 64),
        ("primes", 32),
        ("table", 24),
        ("zeroed", 24),
        ("pi", 8),
        ("message", 14),
        ("inside_table", 8),
        ("record", 24),
        ("counter", 4),
    ];
    for (name, bytes) in sizes {
        let (address, size) = gpu.global(module, name);
        c.that(address != 0 && size == bytes, || {
            format!("{name} at {address:#x}: {size} bytes, expected {bytes}")
        });
    }
    c.that(
        gpu.read::<f64>(gpu.global(module, "pi").0, 1) == [std::f64::consts::PI],
        || "the initial value of pi".to_owned(),
    );
    let (table, _) = gpu.global(module, "table");
    c.that(gpu.read::<i32>(table, 6) == [-1, 2, -3, 4, -5, 6], || {
        "the initial values of table".to_owned()
    });
    c.that(
        gpu.read::<u64>(gpu.global(module, "inside_table").0, 1) == [table + 8],
        || "inside_table is not the address of table[2]".to_owned(),
    );
    c.that(
        gpu.read::<u32>(gpu.global(module, "primes").0, 8) == [2, 3, 5, 7, 11, 13, 17, 19],
        || "the initial values of primes".to_owned(),
    );

    let (mut address, mut bytes) = (0, 0);
    is!(
        c,
        500,
        cuModuleGetGlobal(&raw mut address, &raw mut bytes, module, c"no_such_variable".as_ptr())
    );
    // For a kernel's name the driver returns another code than for an unknown name.
    is!(
        c,
        1,
        cuModuleGetGlobal(&raw mut address, &raw mut bytes, module, c"use_constants".as_ptr())
    );
    is!(
        c,
        1,
        cuModuleGetGlobal(&raw mut address, &raw mut bytes, module, c"".as_ptr())
    );
    is!(
        c,
        0,
        cuModuleGetGlobal(&raw mut address, ptr::null_mut(), module, c"counter".as_ptr())
    );
    is!(
        c,
        0,
        cuModuleGetGlobal(ptr::null_mut(), &raw mut bytes, module, c"counter".as_ptr())
    );
    c.that(bytes == 4, || format!("counter has {bytes} bytes, expected 4"));
    is!(
        c,
        1,
        cuModuleGetGlobal(ptr::null_mut(), ptr::null_mut(), module, c"counter".as_ptr())
    );
    is!(
        c,
        400,
        cuModuleGetGlobal(&raw mut address, &raw mut bytes, ptr::null_mut(), c"counter".as_ptr())
    );
}

#[test]
fn kernels_use_globals() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.module("globals.ptx");

    let out = gpu.alloc(28 * 8);
    gpu.launch(
        gpu.function(module, "read_globals"),
        [1, 1, 1],
        [1, 1, 1],
        0,
        &mut arguments![out],
    );
    let mut expected: Vec<i64> = vec![
        -1,
        2,
        -3,
        4,
        -5,
        6,
        0,
        0,
        0,
        std::f64::consts::PI.to_bits().cast_signed(),
    ];
    expected.extend(b"hello, device\0".iter().map(|b| i64::from(*b)));
    expected.extend([-3, 7, 2.5_f64.to_bits().cast_signed(), 6]);
    let seen = gpu.read::<i64>(out, 28);
    c.that(seen == expected, || {
        format!("read_globals: {seen:?}, expected {expected:?}")
    });

    let write = gpu.function(module, "write_globals");
    gpu.launch(write, [1, 1, 1], [1, 1, 1], 0, &mut arguments![5_u32]);
    gpu.launch(write, [1, 1, 1], [1, 1, 1], 0, &mut arguments![7_u32]);
    gpu.launch(write, [1, 1, 1], [1, 1, 1], 0, &mut arguments![1_u32]);
    c.that(gpu.read::<u32>(gpu.global(module, "counter").0, 1) == [13], || {
        "counter is not the sum of the steps".to_owned()
    });
    c.that(
        gpu.read::<i32>(gpu.global(module, "table").0, 6) == [6, -5, 4, -3, 2, -1],
        || "table is not reversed".to_owned(),
    );

    let coefficients: Vec<f32> = (0..16).map(|i| i as f32 * 0.5 - 3.0).collect();
    gpu.write(gpu.global(module, "coefficients").0, &coefficients);
    let input: Vec<f32> = (0..100).map(|i| i as f32 * 1.25).collect();
    let results: Vec<f32> = gpu.table(gpu.function(module, "use_constants"), &[&input], 1);
    let primes = [2.0_f32, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0];
    for (i, result) in results.iter().enumerate() {
        let expected = fma32(input[i], coefficients[i % 16], primes[i % 8]);
        c.that(result.to_bits() == expected.to_bits(), || {
            format!("use_constants {i}: {result}, expected {expected}")
        });
    }
}

#[test]
fn two_modules_with_the_same_names() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (a, b) = (gpu.module("globals.ptx"), gpu.module("globals.ptx"));
    let (first, second) = (gpu.function(a, "write_globals"), gpu.function(b, "write_globals"));
    c.that(a != b && first != second, || "two loads share handles".to_owned());
    let (x, y) = (gpu.global(a, "counter").0, gpu.global(b, "counter").0);
    c.that(x != y, || "two loads share a variable".to_owned());
    gpu.launch(first, [1, 1, 1], [1, 1, 1], 0, &mut arguments![3_u32]);
    c.that(gpu.read::<u32>(x, 1) == [3] && gpu.read::<u32>(y, 1) == [0], || {
        "the wrong counter changed".to_owned()
    });
}

#[test]
fn a_kernel_without_parameters() {
    let gpu = Gpu::new();
    let module = gpu.module("params.ptx");
    let none = gpu.function(module, "param_none");
    ok!(cuLaunchKernel(
        none,
        1,
        1,
        1,
        32,
        1,
        1,
        0,
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut()
    ));
    assert_eq!(
        gpu.read::<u32>(gpu.global(module, "param_none_ran").0, 1),
        [0x600d_600d]
    );
}

#[test]
fn function_attributes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    type A = CUfunction_attribute;
    let get = |function, which| {
        let mut value = -1;
        ok!(cuFuncGetAttribute(&raw mut value, which, function));
        value
    };
    let bounded = gpu.kernel("spin.ptx", "bounded");
    let threads = get(bounded, A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    c.that(threads == 128, || {
        format!("bounded: {threads} threads per block, expected 128")
    });
    let version = get(bounded, A::CU_FUNC_ATTRIBUTE_PTX_VERSION);
    c.that(version == 52, || format!("bounded: PTX version {version}, expected 52"));
    let transpose = gpu.kernel("memory.ptx", "shared_transpose");
    let shared = get(transpose, A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    c.that(shared == 32 * 33 * 4, || {
        format!("shared_transpose: {shared} bytes of shared memory, expected 4224")
    });
    let constants = get(
        gpu.kernel("globals.ptx", "use_constants"),
        A::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
    );
    c.that(constants == 96, || {
        format!("use_constants: {constants} bytes of constant memory, expected 96")
    });
    c.that(get(transpose, A::CU_FUNC_ATTRIBUTE_NUM_REGS) > 0, || {
        "shared_transpose: no registers".to_owned()
    });

    let mut value = 0;
    is!(
        c,
        1,
        cuFuncGetAttribute(ptr::null_mut(), A::CU_FUNC_ATTRIBUTE_NUM_REGS, bounded)
    );
    is!(
        c,
        1,
        cuFuncGetAttribute(&raw mut value, CUfunction_attribute(9999), bounded)
    );
    is!(
        c,
        400,
        cuFuncGetAttribute(&raw mut value, A::CU_FUNC_ATTRIBUTE_NUM_REGS, ptr::null_mut())
    );
    let dynamic = A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    is!(c, 0, cuFuncSetAttribute(bounded, dynamic, 16384));
    is!(c, 1, cuFuncSetAttribute(bounded, dynamic, -2));
    is!(c, 1, cuFuncSetAttribute(bounded, dynamic, 1 << 30));
    is!(c, 1, cuFuncSetAttribute(bounded, A::CU_FUNC_ATTRIBUTE_NUM_REGS, 8));
    is!(c, 1, cuFuncSetAttribute(bounded, CUfunction_attribute(99), 0));
    is!(c, 400, cuFuncSetAttribute(ptr::null_mut(), dynamic, 0));
}

#[test]
fn parameter_offsets_and_the_module_of_a_function() {
    let gpu = Gpu::new();
    if crate::common::driver_version() < 12040 {
        return crate::common::needs("a driver of CUDA 12.4 or later for cuFuncGetParamInfo");
    }
    let mut c = Codes::new();
    let function = gpu.kernel("params.ptx", "param_struct");
    let (mut offset, mut size) = (99_usize, 99_usize);
    for (index, expected) in [(0, 8), (8, 1), (16, 40), (56, 1)].into_iter().enumerate() {
        is!(
            c,
            0,
            cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut size)
        );
        c.that((offset, size) == expected, || {
            format!("parameter {index}: offset {offset}, size {size}; expected {expected:?}")
        });
    }
    is!(c, 1, cuFuncGetParamInfo(function, 4, &raw mut offset, &raw mut size));
    is!(c, 0, cuFuncGetParamInfo(function, 0, &raw mut offset, ptr::null_mut()));
    c.that(offset == 0, || format!("parameter 0 without a size: offset {offset}"));
    is!(c, 1, cuFuncGetParamInfo(function, 0, ptr::null_mut(), &raw mut size));
    let mut module: CUmodule = ptr::null_mut();
    is!(c, 0, cuFuncGetModule(&raw mut module, function));
    let (_, bytes) = gpu.global(module, "param_none_ran");
    c.that(bytes == 4, || {
        format!("param_none_ran of the function's module has {bytes} bytes, expected 4")
    });
}
