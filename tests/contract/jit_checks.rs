//! Tests of unusual compiler options and texts: targets with letters, reused arrays of options, variables that are too
//! large.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, architecture, driver_version, in_child, needs};
use crate::{is, test_path};

type JitOption = CUjit_option;

const PTX: &CStr = c".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";
const WRONG: &CStr = c".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry k() { nonsense; }\n";

/// Loads a text with options, and unloads it. Returns the code of the load.
fn load(text: &CStr, options: &mut [JitOption], values: &mut [*mut c_void]) -> u32 {
    assert_eq!(options.len(), values.len());
    let count = u32::try_from(options.len()).unwrap_or(u32::MAX);
    let mut module = null_mut();
    let code = crate::call!(cuModuleLoadDataEx(
        &raw mut module,
        text.as_ptr().cast(),
        count,
        options.as_mut_ptr(),
        values.as_mut_ptr()
    ));
    if code.0 == 0 {
        crate::ok!(cuModuleUnload(module));
    }
    code.0
}

/// Returns a number as the value of an option.
fn number(value: usize) -> *mut c_void {
    ptr::without_provenance_mut(value)
}

#[test]
fn targets_of_other_architectures() {
    let _gpu = Gpu::new();
    if driver_version() < 13000 {
        return needs("a driver of CUDA 13.0 or later, which no longer compiles for old architectures");
    }
    let mut c = Codes::new();
    // Numbers with a letter: 1 << 16 stands for `a`, which exists from 90 on, and 2 << 16 for `f`, from 100 on.
    const A: usize = 1 << 16;
    const F: usize = 2 << 16;
    for (target, right, wrong) in [
        (30, 200, 200),
        (35, 200, 200),
        (37, 200, 200),
        (53, 200, 200),
        (62, 200, 200),
        (50, 218, 218),
        (54, 1, 1),
        (80 + A, 1, 1),
        (90 + F, 1, 1),
        // The driver reports an error in the text rather than the wrong target.
        (75, 300, 218),
        (80, 300, 218),
        (100, 300, 218),
        (100 + A, 300, 218),
        (100 + F, 300, 218),
        (120 + F, 300, 218),
    ] {
        // Code for the first architecture of the device's generation may run on the device.
        if target % A == 10 * (architecture() / 10) as usize {
            continue;
        }
        for (text, code) in [(PTX, right), (WRONG, wrong)] {
            let got = load(text, &mut [JitOption::CU_JIT_TARGET], &mut [number(target)]);
            c.is(code, &format!("target {target:#x} of {text:?}"), got);
        }
    }
}

/// Checks the codes of loads for `CU_TARGET_COMPUTE_107` and its variants, which came with CUDA 13.4.
fn load_for_107() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let known = driver_version() >= 13040;
    for target in [
        CUjit_target::CU_TARGET_COMPUTE_107,
        CUjit_target::CU_TARGET_COMPUTE_107A,
        CUjit_target::CU_TARGET_COMPUTE_107F,
    ] {
        for (text, code) in [(PTX, 300), (WRONG, 218)] {
            let got = load(text, &mut [JitOption::CU_JIT_TARGET], &mut [number(target.0 as usize)]);
            c.is(if known { code } else { 1 }, &format!("{target:?} of {text:?}"), got);
        }
    }
}

#[test]
fn a_target_that_older_drivers_do_not_know() {
    if architecture() == 107 {
        return needs("a device of another architecture than sm_107");
    }
    // The software driver reports CUDA 13.3 in the child process.
    let name = test_path!("a_target_that_older_drivers_do_not_know");
    if in_child(&name, &[("CUDA_SOFT_VERSION", "13.3")], load_for_107).is_some() {
        load_for_107();
    }
}

#[test]
fn sizes_of_logs_are_read_and_written() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut log = [0_u8; 512];
    let mut options = [
        JitOption::CU_JIT_ERROR_LOG_BUFFER,
        JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [log.as_mut_ptr().cast(), number(log.len())];
    let mut loaded = |text| {
        let code = load(text, &mut options, &mut values);
        // The driver writes 32 bits.
        let size = values[1].addr() & 0xffff_ffff;
        values[1] = number(size);
        let written = CStr::from_bytes_until_nul(&log).unwrap_or_default();
        (code, size, written.to_string_lossy().into_owned())
    };
    let first = loaded(c"hello");
    let expected = "error   : Binary format for key='0', ident='' is not recognized";
    c.that(first == (200, expected.len(), expected.to_owned()), || {
        format!("{first:?}")
    });
    // The length of the first log is the size of the buffer for the second.
    let (code, size, text) = loaded(WRONG);
    let longest = expected.len() - 1;
    c.that((code, size, text.len()) == (218, expected.len(), longest), || {
        format!("{code} {size} {text}")
    });
}

#[test]
fn the_time_is_written_into_the_value() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let behind = 77_f32;
    let place = (&raw const behind).cast_mut().cast();
    for before in [null_mut(), place] {
        let mut values = [before];
        c.is(
            0,
            "the load",
            load(PTX, &mut [JitOption::CU_JIT_WALL_TIME], &mut values),
        );
        let time = f32::from_bits((values[0].addr() & 0xffff_ffff) as u32);
        // The time is 0 if the driver has compiled the text before.
        c.that((0.0..100_000.0).contains(&time), || format!("{time} ms"));
    }
    c.that(behind == 77.0, || {
        format!("the driver wrote {behind} to the address in the value")
    });
}

#[test]
fn too_large_shared_variables() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut most = 0;
    let optin = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    is!(c, 0, cuDeviceGetAttribute(&raw mut most, optin, 0));
    let text = format!(
        ".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry k()\n{{\n.shared .align 8 .b8 s[{}];\n\
         .reg .u32 %r<3>;\nmov.u32 %r1, s;\nld.volatile.shared.u32 %r2, [%r1];\nret;\n}}\n",
        most + 1
    );
    let mut log = [0_u8; 512];
    let mut options = [
        JitOption::CU_JIT_ERROR_LOG_BUFFER,
        JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [log.as_mut_ptr().cast(), number(log.len())];
    let text = CString::new(text).unwrap_or_default();
    c.is(218, "the load", load(&text, &mut options, &mut values));
    let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
    let expected = format!(
        "ptxas error   : Entry function 'k' uses too much shared data ({:#x} bytes, {most:#x} max)",
        most + 1
    );
    c.that(log.trim_end() == expected, || log.to_string());
}

#[test]
fn a_library_for_another_target() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (mut library, mut kernel, mut function, mut module) = (null_mut(), null_mut(), null_mut(), null_mut());
    let other = if architecture() == 80 { 90 } else { 80 };
    let (mut option, mut value) = (JitOption::CU_JIT_TARGET, number(other));
    let (names, values): (*mut CUlibraryOption, *mut *mut c_void) = (null_mut(), null_mut());
    is!(
        c,
        0,
        cuLibraryLoadData(
            &raw mut library,
            PTX.as_ptr().cast(),
            &raw mut option,
            &raw mut value,
            1,
            names,
            values,
            0
        )
    );
    is!(c, 0, cuLibraryGetKernel(&raw mut kernel, library, c"k".as_ptr()));
    is!(c, 300, cuLibraryGetModule(&raw mut module, library));
    is!(c, 300, cuKernelGetFunction(&raw mut function, kernel));
    is!(c, 0, cuLibraryUnload(library));
}
