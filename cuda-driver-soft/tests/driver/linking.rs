//! Tests of linking: objects and libraries of the host compiler, which contain fat binaries; relocatable code; the
//! device runtime; and the linker's options and logs.

use crate::common::{Context, check, cuda, expect, in_child, lacks_software};
use crate::module::fat_binary;
use cuda_driver_sys::*;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

const HEAD: &str = ".version 6.4\n.target sm_52\n.address_size 64\n";

/// Returns a host ELF object that contains a fat binary of this PTX for devices of compute capability `sm`.
fn object(ptx: &str, sm: u32) -> Vec<u8> {
    let content = fat_binary(ptx.as_bytes(), sm, false);
    let names = b"\0.nv_fatbin\0.shstrtab\0";
    let mut elf = vec![0; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let contents_at = elf.len();
    elf.extend(&content);
    let names_at = elf.len();
    elf.extend(names);
    let table = elf.len() as u64;
    elf[18..20].copy_from_slice(&62u16.to_le_bytes());
    elf[40..48].copy_from_slice(&table.to_le_bytes());
    for (at, value) in [(58, 64u16), (60, 3), (62, 2)] {
        elf[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    elf.extend([0; 64]);
    for (name, at, size) in [(1u32, contents_at, content.len()), (12, names_at, names.len())] {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        elf.extend(header);
    }
    elf
}

/// Returns an archive (`.a`) of these objects.
fn library(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for object in objects {
        bytes.extend(format!("{:48}{:<10}`\n", "o/", object.len()).bytes());
        bytes.extend(object);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

type Kind = CUjitInputType;

/// Links these inputs; returns the image, or the code of the failed call.
fn link(inputs: &[(Kind, &CStr, Vec<u8>)]) -> Result<Vec<u8>, CUresult> {
    let cuda = cuda();
    let mut state = null_mut();
    check(unsafe { cuda.cuLinkCreate(0, null_mut(), null_mut(), &mut state) });
    let linked = (|| {
        for (kind, name, bytes) in inputs {
            let mut bytes = bytes.clone();
            bytes.push(0);
            let (data, size) = (bytes.as_mut_ptr().cast::<c_void>(), bytes.len());
            let (name, none) = (name.as_ptr(), null_mut());
            match unsafe { cuda.cuLinkAddData(state, *kind, data, size, name, 0, none, null_mut()) } {
                CUresult::CUDA_SUCCESS => {}
                failed => return Err(failed),
            }
        }
        let (mut image, mut size) = (null_mut(), 0);
        match unsafe { cuda.cuLinkComplete(state, &mut image, &mut size) } {
            CUresult::CUDA_SUCCESS => {
                let image = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), size) };
                Ok(image.to_vec())
            }
            failed => Err(failed),
        }
    })();
    check(unsafe { cuda.cuLinkDestroy(state) });
    linked
}

/// Runs the kernel `k(p)` of an image on zeroed words, and returns the words.
fn run(image: &[u8], words: usize, (grid, block): (u32, u32)) -> Vec<u32> {
    let cuda = cuda();
    let (mut module, mut function, mut memory) = (null_mut(), null_mut(), 0);
    let mut out = vec![0u32; words];
    unsafe {
        check(cuda.cuModuleLoadData(&mut module, image.as_ptr().cast()));
        check(cuda.cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
        check(cuda.cuMemAlloc(&mut memory, words * 4));
        check(cuda.cuMemsetD32(memory, 0, words));
        let mut params = [(&raw mut memory).cast::<c_void>()];
        let params = params.as_mut_ptr();
        check(cuda.cuLaunchCooperativeKernel(function, grid, 1, 1, block, 1, 1, 0, null_mut(), params));
        check(cuda.cuMemcpyDtoH(out.as_mut_ptr().cast(), memory, words * 4));
        check(cuda.cuMemFree(memory));
        check(cuda.cuModuleUnload(module));
    }
    out
}

/// Returns the PTX of the function `name`, which returns its argument plus `n`.
fn adds(name: &str, n: u32) -> String {
    format!(
        "{HEAD}.visible .func (.param .b32 r) {name}(.param .b32 a)\n{{\n.reg .b32 %r<3>;\nld.param.b32 %r1,[a];\n\
        add.s32 %r2,%r1,{n};\nst.param.b32 [r],%r2;\nret;\n}}\n"
    )
}

/// Returns the PTX of the kernel `k(p)`, which stores the result of `name(5)` in `p[0]`.
fn caller(name: &str) -> Vec<u8> {
    format!(
        "{HEAD}.extern .func (.param .b32 r) {name}(.param .b32 a);\n.visible .entry k(.param .u64 p)\n{{\n\
        .reg .b32 %r<3>; .reg .b64 %rd<2>;\nld.param.u64 %rd1,[p];\nmov.b32 %r1,5;\n{{\n.param .b32 x;\n.param .b32 y;\n\
        st.param.b32 [x],%r1;\ncall.uni (y),{name},(x);\nld.param.b32 %r2,[y];\n}}\nst.global.u32 [%rd1],%r2;\nret;\n}}\n"
    )
    .into_bytes()
}

#[test]
fn objects_and_libraries_are_linked() {
    let _context = Context::new();
    let ptx = (Kind::CU_JIT_INPUT_PTX, c"main.ptx", caller("two"));
    let one = object(&adds("one", 1), 52);
    let two = object(&adds("two", 2), 52);
    let newer = object(&adds("three", 3), 120);
    let as_object = |bytes: &[u8]| (Kind::CU_JIT_INPUT_OBJECT, c"a.o", bytes.to_vec());
    let as_library = |objects: &[Vec<u8>]| (Kind::CU_JIT_INPUT_LIBRARY, c"a.a", library(objects));
    for second in [as_object(&two), as_library(&[one.clone(), newer.clone(), two.clone()])] {
        let image = link(&[ptx.clone(), second]).unwrap();
        assert_eq!(run(&image, 1, (1, 1)), [7]);
    }
    // The linker takes only undefined functions from a library, so the `two` of this library does not conflict with the
    // one that the PTX defines.
    let defined = (Kind::CU_JIT_INPUT_PTX, c"two.ptx", adds("two", 20).into_bytes());
    let image = link(&[ptx.clone(), as_library(&[one.clone(), two.clone()]), defined.clone()]);
    assert_eq!(run(&image.unwrap(), 1, (1, 1)), [25]);
    // A function with two definitions, and one without a definition.
    expect(link(&[defined, as_object(&two)]).unwrap_err(), 300);
    expect(link(&[ptx.clone(), as_library(&[one])]).unwrap_err(), 300);
    // An object with code only for other devices has nothing to link.
    expect(link(&[as_object(&newer)]).unwrap_err(), 209);
    let text = (Kind::CU_JIT_INPUT_OBJECT, c"a.o", adds("two", 2).into_bytes());
    expect(link(&[text]).unwrap_err(), 200);
}

#[test]
fn the_device_runtime_has_barriers_of_a_grid() {
    let _context = Context::new();
    // In each of three rounds, each thread adds 1 to a counter and reads the counter after a barrier of the grid, when
    // all threads have added. A second barrier ends the round.
    let kernel = format!(
        "{HEAD}.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n\
        .extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n\
        .visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<8>; .reg .b64 %rd<6>; .reg .pred %p<3>;\n\
        ld.param.u64 %rd1,[p];\nmov.u32 %r1,%tid.x;\nmov.u32 %r2,%ctaid.x;\nmov.b32 %r3,1;\n\
        {{\n.param .b32 x;\n.param .b64 y;\nst.param.b32 [x],%r3;\ncall.uni (y),cudaCGGetIntrinsicHandle,(x);\n\
        ld.param.b64 %rd2,[y];\n}}\nmov.b32 %r7,0;\n\
        ROUND:\nadd.s32 %r7,%r7,1;\natom.global.add.u32 %r4,[%rd1],1;\n\
        {{\n.param .b64 x;\n.param .b32 f;\n.param .b32 y;\nst.param.b64 [x],%rd2;\nmov.b32 %r5,0;\nst.param.b32 [f],%r5;\n\
        call.uni (y),cudaCGSynchronize,(x,f);\nld.param.b32 %r6,[y];\n}}\n\
        ld.volatile.global.u32 %r5,[%rd1];\n\
        {{\n.param .b64 x;\n.param .b32 f;\n.param .b32 y;\nst.param.b64 [x],%rd2;\nst.param.b32 [f],%r6;\n\
        call.uni (y),cudaCGSynchronize,(x,f);\nld.param.b32 %r6,[y];\n}}\n\
        setp.lt.s32 %p1,%r7,3;\n@%p1 bra ROUND;\n\
        mad.lo.s32 %r4,%r2,64,%r1;\nmul.wide.u32 %rd3,%r4,4;\nadd.s64 %rd3,%rd1,%rd3;\nst.global.u32 [%rd3+4],%r5;\nret;\n}}\n"
    );
    let kernel = CString::new(kernel).unwrap();
    let ptx = (Kind::CU_JIT_INPUT_PTX, c"main.ptx", kernel.as_bytes().to_vec());
    // The library's own code is for other devices, like the code in the toolkit's library.
    let code = vec![object(&adds("unused", 1), 121)];
    let runtime = (Kind::CU_JIT_INPUT_LIBRARY, c"/usr/lib/libcudadevrt.a", library(&code));
    let image = link(&[runtime, ptx.clone()]).unwrap();
    let words = run(&image, 1 + 7 * 64, (7, 64));
    assert!(words.iter().all(|word| *word == 3 * 7 * 64), "{words:?}");
    expect(link(&[ptx]).unwrap_err(), 300);
}

/// The linker does not write to option values that were changed after `cuLinkCreate`: cuda.core 0.7 frees their array
/// too early and reuses the memory.
#[test]
fn changed_option_values_are_left_alone() {
    let _context = Context::new();
    let cuda = cuda();
    let mut log = [0_u8; 64];
    let mut names = [
        CUjit_option::CU_JIT_INFO_LOG_BUFFER,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_WALL_TIME,
    ];
    let value = std::ptr::without_provenance_mut::<c_void>;
    let mut values = [log.as_mut_ptr().cast(), value(64), value(0)];
    let (mut state, mut image) = (null_mut(), null_mut());
    check(unsafe { cuda.cuLinkCreate(3, names.as_mut_ptr(), values.as_mut_ptr(), &mut state) });
    values[1] = value(0x1234);
    values[2] = value(0x5678);
    check(unsafe { cuda.cuLinkComplete(state, &mut image, null_mut()) });
    check(unsafe { cuda.cuLinkDestroy(state) });
    assert_eq!(values[1..], [value(0x1234), value(0x5678)]);
}

/// Each input adds its messages to the log; the messages of earlier inputs are not written again.
#[test]
fn an_input_adds_to_the_log() {
    if lacks_software() {
        return; // it is not known which part of the log a GPU's driver writes
    }
    let _context = Context::new();
    let cuda = cuda();
    let mut log = [0_u8; 256];
    let mut names = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let size = std::ptr::without_provenance_mut::<c_void>(log.len());
    let buffer = log.as_mut_ptr();
    let mut values = [buffer.cast(), size];
    let mut state = null_mut();
    check(unsafe { cuda.cuLinkCreate(2, names.as_mut_ptr(), values.as_mut_ptr(), &mut state) });
    let text = || unsafe {
        CStr::from_ptr(buffer.cast_const().cast())
            .to_string_lossy()
            .into_owned()
    };
    let mut expected = String::new();
    for (number, name) in [c"a", c"b", c"c", c"d", c"e", c"f"].into_iter().enumerate() {
        let source = b".version 8.0\n.target sm_52\nnonsense\n\0";
        let data = source.as_ptr().cast_mut().cast::<c_void>();
        let (kind, none) = (CUjitInputType::CU_JIT_INPUT_PTX, null_mut());
        let added = unsafe { cuda.cuLinkAddData(state, kind, data, source.len(), name.as_ptr(), 0, none, null_mut()) };
        expect(added, 218);
        let log = text();
        assert!(
            log.starts_with(&expected) && log.len() > expected.len(),
            "{number}: {log}"
        );
        assert_eq!(
            values[1].addr(),
            log.len() + usize::from(log.len() == 255),
            "{number}: {log}"
        );
        // A rewritten log would not have this mark.
        unsafe { buffer.write(b'#') };
        expected = text();
        if log.len() == 255 {
            check(unsafe { cuda.cuLinkDestroy(state) });
            return;
        }
    }
    panic!("the log has room for more: {expected}");
}

/// A wrapper of version 2, which a compiler writes for relocatable device code, lists the fat binaries to link.
#[test]
fn relocatable_code_is_linked() {
    let _context = Context::new();
    let cuda = cuda();
    let parts = [
        fat_binary(&caller("two"), 52, false),
        fat_binary(adds("two", 2).as_bytes(), 52, false),
        // Code for other devices only.
        fat_binary(adds("three", 3).as_bytes(), 120, false),
    ];
    let list: Vec<u64> = parts.iter().map(|part| part.as_ptr() as u64).chain([0]).collect();
    let wrapper = [0x2_4662_43B1, parts[2].as_ptr() as u64, list.as_ptr() as u64];
    let (mut library, mut kernel, mut memory, none) = (null_mut(), null_mut(), 0, null_mut());
    unsafe {
        let image = wrapper.as_ptr().cast();
        let (options, values) = (null_mut(), null_mut());
        check(cuda.cuLibraryLoadData(&mut library, image, none, null_mut(), 0, options, values, 0));
        check(cuda.cuLibraryGetKernel(&mut kernel, library, c"k".as_ptr()));
        check(cuda.cuMemAlloc(&mut memory, 4));
        let mut params = [(&raw mut memory).cast::<c_void>()];
        let params = params.as_mut_ptr();
        check(cuda.cuLaunchKernel(kernel.cast(), 1, 1, 1, 1, 1, 1, 0, null_mut(), params, null_mut()));
        let mut word = 0u32;
        check(cuda.cuMemcpyDtoH((&raw mut word).cast(), memory, 4));
        assert_eq!(word, 7);
        check(cuda.cuMemFree(memory));
        check(cuda.cuLibraryUnload(library));
    }
}

#[test]
fn launches_by_kernels_are_named_in_the_log() {
    if lacks_software() {
        return; // NVIDIA's driver can link such kernels
    }
    let test = "linking::launches_by_kernels_are_named_in_the_log";
    let log = in_child(test, &[("CUDA_SOFT_LOG", "1")], || {
        let _context = Context::new();
        let launching = caller("__cudaCDP2LaunchDeviceV2");
        let code = link(&[(Kind::CU_JIT_INPUT_PTX, c"a.ptx", launching)]).unwrap_err();
        expect(code, 300);
    });
    assert!(log.is_none_or(|log| log.contains("(dynamic parallelism) are not supported")));
}

/// The info log names the kernels of host objects, like those of PTX.
#[test]
fn the_info_log_contains_objects() {
    let _context = Context::new();
    let cuda = cuda();
    let text = format!("{HEAD}.visible .entry k()\n{{\nret;\n}}\n");
    let mut bytes = object(&text, 52);
    let mut log = [0_u8; 4096];
    let mut names = [
        CUjit_option::CU_JIT_INFO_LOG_BUFFER,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_LOG_VERBOSE,
    ];
    let value = std::ptr::without_provenance_mut::<c_void>;
    let mut values = [log.as_mut_ptr().cast(), value(log.len()), value(1)];
    let (mut state, none) = (null_mut(), null_mut());
    unsafe {
        check(cuda.cuLinkCreate(3, names.as_mut_ptr(), values.as_mut_ptr(), &mut state));
        let (data, kind) = (bytes.as_mut_ptr().cast(), Kind::CU_JIT_INPUT_OBJECT);
        check(cuda.cuLinkAddData(state, kind, data, bytes.len(), c"a.o".as_ptr(), 0, none, null_mut()));
        check(cuda.cuLinkComplete(state, &mut null_mut(), null_mut()));
        check(cuda.cuLinkDestroy(state));
    }
    let log = CStr::from_bytes_until_nul(&log).unwrap().to_string_lossy();
    assert!(log.contains("Compiling entry function 'k'"), "{log}");
}
