//! Tests of calls with impossible sizes and counts, and of a text with many errors. Each call must return an error, or
//! ignore the size, without reading far beyond the argument and without allocating memory for the stated size. NVIDIA's
//! driver crashes in most of these calls.

use crate::common::{Context, check, cuda, expect, lacks_software};
use cuda_driver_sys::*;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

/// A number of bytes (8 TiB) larger than the memory of the machines that run these tests.
const HUGE: usize = 1 << 43;
/// A number of list elements that need as much memory, with 8 bytes each.
const COUNT: usize = 1 << 40;

const PTX: &std::ffi::CStr = c".version 7.7\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";

#[test]
fn lists_of_options_end_at_the_first_invalid_option() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let mut options = [CUjit_option::CU_JIT_GENERATE_LINE_INFO, CUjit_option(999)];
    let (options, mut values) = (options.as_mut_ptr(), [null_mut(); 2]);
    let values = values.as_mut_ptr();
    let (mut linker, mut module, mut library) = (null_mut(), null_mut(), null_mut());
    let image = PTX.as_ptr().cast();
    unsafe {
        expect(cuda.cuLinkCreate(u32::MAX, options, values, &mut linker), 1);
        expect(
            cuda.cuModuleLoadDataEx(&mut module, image, u32::MAX, options, values),
            1,
        );
        let data = |jit, library_options: *mut CUlibraryOption, library| {
            let count = |list: bool| if list { u32::MAX } else { 0 };
            let jit: *mut CUjit_option = jit;
            cuda.cuLibraryLoadData(
                library,
                image,
                jit,
                values,
                count(!jit.is_null()),
                library_options,
                values,
                count(!library_options.is_null()),
            )
        };
        expect(data(options, null_mut(), &mut library), 1);
        let mut wrong = [CUlibraryOption::CU_LIBRARY_BINARY_IS_PRESERVED, CUlibraryOption(999)];
        expect(data(null_mut(), wrong.as_mut_ptr(), &mut library), 1);
        check(cuda.cuLinkCreate(0, null_mut(), null_mut(), &mut linker));
        let text = PTX.as_ptr().cast_mut().cast();
        let kind = CUjitInputType::CU_JIT_INPUT_PTX;
        let name = c"a".as_ptr();
        expect(
            cuda.cuLinkAddData(linker, kind, text, PTX.count_bytes(), name, u32::MAX, options, values),
            1,
        );
        check(cuda.cuLinkDestroy(linker));
        let mut attributes = [
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT,
            CUpointer_attribute(999),
        ];
        let mut place = [0u64; 2];
        let mut data: [*mut c_void; 2] = [place.as_mut_ptr().cast(), null_mut()];
        expect(
            cuda.cuPointerGetAttributes(u32::MAX, attributes.as_mut_ptr(), data.as_mut_ptr(), 0),
            1,
        );
    }
}

#[test]
fn lists_of_nodes_end_at_the_first_invalid_handle() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (mut graph, mut a, mut b) = (null_mut(), null_mut(), null_mut());
    unsafe {
        check(cuda.cuGraphCreate(&mut graph, 0));
        check(cuda.cuGraphAddEmptyNode(&mut a, graph, null_mut(), 0));
        check(cuda.cuGraphAddEmptyNode(&mut b, graph, null_mut(), 0));
        let (from, to) = ([a, null_mut()], [b, null_mut()]);
        expect(cuda.cuGraphAddDependencies(graph, from.as_ptr(), to.as_ptr(), COUNT), 1);
        expect(
            cuda.cuGraphRemoveDependencies(graph, from.as_ptr(), to.as_ptr(), COUNT),
            1,
        );
        let mut node = null_mut();
        expect(cuda.cuGraphAddEmptyNode(&mut node, graph, from.as_ptr(), COUNT), 1);
        let mut edges = 9;
        check(cuda.cuGraphGetEdges(graph, null_mut(), null_mut(), &mut edges));
        assert_eq!(edges, 0);
        check(cuda.cuGraphDestroy(graph));
    }
}

#[test]
fn sizes_of_linker_inputs_are_checked() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let mut linker = null_mut();
    let kind = CUjitInputType::CU_JIT_INPUT_PTX;
    let mut add = |text: &[u8], size: usize| unsafe {
        let data = text.as_ptr().cast_mut().cast();
        check(cuda.cuLinkCreate(0, null_mut(), null_mut(), &mut linker));
        let added = cuda.cuLinkAddData(linker, kind, data, size, c"a".as_ptr(), 0, null_mut(), null_mut());
        check(cuda.cuLinkDestroy(linker));
        added
    };
    let without_nul = PTX.to_bytes().to_vec();
    check(add(&without_nul, without_nul.len()));
    // Two bytes are not PTX text.
    expect(add(&without_nul, 2), 200);
    let text = PTX.to_bytes_with_nul();
    expect(add(text, 0), 1);
    // PTX text ends at its NUL byte, so a larger size is ignored.
    for size in [text.len(), text.len() + 1, COUNT, HUGE, usize::MAX] {
        check(add(text, size));
    }
    let mut fat_binary = vec![0u8; 256];
    fat_binary[..4].copy_from_slice(&[0x50, 0xED, 0x55, 0xBA]);
    for size in [COUNT, HUGE, usize::MAX] {
        expect(add(&fat_binary, size), 1);
    }
}

#[test]
fn headers_with_too_large_sizes_are_errors() {
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let mut module = null_mut();
    for stated in [COUNT as u64, u64::MAX] {
        let mut image = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0];
        image.extend(stated.to_le_bytes());
        image.resize(256, 0);
        expect(
            unsafe { cuda.cuModuleLoadData(&mut module, image.as_ptr().cast()) },
            209,
        );
    }
}

#[test]
fn impossible_sizes_of_copies_and_allocations_are_errors() {
    let (cuda, _context) = (cuda(), Context::new());
    let (mut a, mut b, mut other, mut pointer) = (0, 0, 0, null_mut());
    let mut host = [0u8; 64];
    let host: *mut c_void = host.as_mut_ptr().cast();
    unsafe {
        check(cuda.cuMemAlloc(&mut a, 64));
        check(cuda.cuMemAlloc(&mut b, 64));
        expect(cuda.cuMemcpyHtoD(a, host, HUGE), 1);
        expect(cuda.cuMemcpyDtoH(host, a, HUGE), 1);
        expect(cuda.cuMemcpyDtoD(a, b, HUGE), 1);
        expect(cuda.cuMemcpy(a, b, HUGE), 1);
        expect(cuda.cuMemcpyHtoDAsync(a, host, HUGE, null_mut()), 1);
        expect(cuda.cuMemcpyDtoHAsync(host, a, HUGE, null_mut()), 1);
        expect(cuda.cuMemAlloc(&mut other, HUGE), 2);
        expect(cuda.cuMemAlloc(&mut other, usize::MAX), 2);
        expect(cuda.cuMemHostAlloc(&mut pointer, HUGE, 0), 2);
        let mut pitch = 0;
        expect(cuda.cuMemAllocPitch(&mut other, &mut pitch, HUGE, 1 << 20, 4), 2);
        check(cuda.cuMemFree(a));
        check(cuda.cuMemFree(b));
    }
}

#[test]
fn a_text_of_many_errors_is_refused() {
    let (cuda, _context) = (cuda(), Context::new());
    let mut text = String::from(".version 7.7\n.target sm_52\n.address_size 64\n.visible .entry k()\n{\n");
    text.extend((0..100_000).map(|i| format!("mov.u32 %r{i}, 0;\n")));
    let text = CString::new(text + "ret;\n}\n").unwrap();
    let mut module = null_mut();
    expect(unsafe { cuda.cuModuleLoadData(&mut module, text.as_ptr().cast()) }, 218);
}

/// The log describes each kernel, which takes time for each function that the kernel can reach. Without a limit, the
/// time could be the product of the numbers of kernels and functions.
#[test]
fn verbose_logs_of_many_kernels_that_reach_many_functions_are_cut() {
    if lacks_software() {
        return; // a GPU's compiler compiles each kernel with all functions that it reaches
    }
    const COUNT: usize = 4_000;
    let (cuda, _context) = (cuda(), Context::new());
    let mut text = String::from(".version 7.7\n.target sm_52\n.address_size 64\n.func f0() { ret; }\n");
    text.extend((1..COUNT).map(|i| format!(".func f{i}() {{ call f{}; ret; }}\n", i - 1)));
    text.extend((0..COUNT).map(|i| format!(".visible .entry k{i}() {{ call f{}; ret; }}\n", COUNT - 1)));
    let text = CString::new(text).unwrap();
    let mut log = vec![0_u8; 4 << 20];
    let mut options = [
        CUjit_option::CU_JIT_INFO_LOG_BUFFER,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_LOG_VERBOSE,
    ];
    let mut values: [*mut c_void; 3] = [
        log.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(log.len()),
        std::ptr::without_provenance_mut(1),
    ];
    let mut module = null_mut();
    check(unsafe {
        cuda.cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            3,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    });
    let log = String::from_utf8_lossy(&log);
    let described = log.matches("Compiling entry function").count();
    assert!((100..1_000).contains(&described), "{described} kernels");
    check(unsafe { cuda.cuModuleUnload(module) });
}
