//! Tests of modules: valid and invalid images, compiler options and logs, functions and variables, refused launches,
//! libraries, and the linker.

use crate::common::{Context, Kernel, check, cuda, expect, ptx, same, software};
use cuda_driver_sys::*;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

const HEAD: &str = ".version 6.4\n.target sm_52\n.address_size 64\n";

fn text(ptx: &str) -> CString {
    CString::new(ptx).unwrap()
}

/// Loads an image as a module, and unloads it again; returns the code of the load.
fn load(image: &[u8]) -> u32 {
    let (cuda, mut module) = (cuda(), null_mut());
    let code = unsafe { cuda.cuModuleLoadData(&mut module, image.as_ptr().cast()) };
    if code == CUresult::CUDA_SUCCESS {
        check(unsafe { cuda.cuModuleUnload(module) });
    }
    code.0
}

/// Like [`load`], with options and their values; returns the code and the values after the call.
fn load_ex(image: &CStr, options: &mut [(CUjit_option, usize)]) -> (u32, Vec<usize>) {
    let (cuda, mut module) = (cuda(), null_mut());
    let mut names: Vec<CUjit_option> = options.iter().map(|o| o.0).collect();
    let mut values: Vec<*mut c_void> = options.iter().map(|o| o.1 as *mut c_void).collect();
    let (names, slots) = (names.as_mut_ptr(), values.as_mut_ptr());
    let count = options.len() as u32;
    let code = unsafe { cuda.cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), count, names, slots) };
    if code == CUresult::CUDA_SUCCESS {
        check(unsafe { cuda.cuModuleUnload(module) });
    }
    (code.0, values.into_iter().map(|v| v as usize).collect())
}

#[test]
fn images_and_their_codes() {
    let _context = Context::new();
    let kernel = |head: &str| format!("{head}.visible .entry k() {{ ret; }}\n\0");
    let with =
        |version: &str, target: &str| kernel(&format!(".version {version}\n.target {target}\n.address_size 64\n"));
    for (image, code) in [
        (with("6.4", "sm_52"), 0),
        (with("9.0", "sm_90a"), 0),
        (with("7.0", "compute_52"), 0),
        (with("99.0", "sm_52"), 222),
        (with("6.99", "sm_52"), 222),
        (with("9.0", "sm_100"), 218),
        (with("6.4", "sm_1"), 218),
        ("\0".into(), 200),
        ("hello\0".into(), 200),
        ("\u{feff}.version 6.4\n\0".into(), 200),
        (format!("{HEAD}.visible .entry k() {{ mov.u32 %r1, 0; }}\0"), 218),
        (format!("{HEAD}.visible .entry k() {{ nonsense; }}\0"), 218),
        (format!("{HEAD}// \u{e4}\n\0"), 218),
        (kernel(&HEAD.replace('\n', "\r\n")), 0),
        (kernel(&format!("// a comment first\n\n{HEAD}")), 0),
        ("\x7fELF\0".into(), 200),
    ] {
        same(load(image.as_bytes()), code, &image);
    }
    // A 64-bit ELF header, first without a machine, then with CUDA's.
    let mut elf = [0u8; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    assert_eq!(load(&elf), 200);
    if software() {
        // With CUDA's machine the image contains machine code, which the software driver cannot run. NVIDIA's driver
        // looks for the architecture of the code, and finds none in this image.
        elf[18] = 190;
        assert_eq!(load(&elf), 209);
    }
    // A fat binary without entries.
    let mut fat = [0u8; 16];
    fat[..8].copy_from_slice(&[0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0]);
    assert_eq!(load(&fat), 209);
    unsafe {
        let mut module = null_mut();
        expect(cuda().cuModuleLoadData(&mut module, std::ptr::null()), 1);
        expect(cuda().cuModuleLoadData(null_mut(), text(HEAD).as_ptr().cast()), 1);
        expect(cuda().cuModuleLoad(&mut module, c"/no/such/file.ptx".as_ptr()), 301);
        expect(cuda().cuModuleLoad(&mut module, std::ptr::null()), 1);
    }
}

/// Returns a fat binary with one entry of PTX text, as a compiler writes it: the fat binary itself, or a wrapper that
/// has its address. A wrapped fat binary is leaked.
pub(crate) fn fat_binary(ptx: &[u8], sm: u32, wrapper: bool) -> Vec<u8> {
    const HEADER: usize = 80;
    let padded = ptx.len().next_multiple_of(8);
    let mut entry = vec![0u8; HEADER + padded];
    entry[..2].copy_from_slice(&1u16.to_le_bytes());
    entry[4..8].copy_from_slice(&(HEADER as u32).to_le_bytes());
    entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    // The offset of the compiler's options. There are none.
    entry[20..24].copy_from_slice(&64u32.to_le_bytes());
    entry[28..32].copy_from_slice(&sm.to_le_bytes());
    entry[40..48].copy_from_slice(&0x11u64.to_le_bytes());
    entry[HEADER..HEADER + ptx.len()].copy_from_slice(ptx);
    let mut fat = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0];
    fat.extend((entry.len() as u64).to_le_bytes());
    fat.extend(entry);
    if wrapper {
        let address = Vec::leak(fat).as_ptr() as u64;
        let mut outer = vec![0xB1, 0x43, 0x62, 0x46, 1, 0, 0, 0];
        outer.extend(address.to_le_bytes());
        outer.extend([0u8; 8]);
        return outer;
    }
    fat
}

#[test]
fn fat_binaries() {
    let _context = Context::new();
    let ptx = format!("{HEAD}.visible .entry k() {{ ret; }}\n");
    assert_eq!(load(&fat_binary(ptx.as_bytes(), 52, false)), 0);
    // The wrapper that a compiler puts around a fat binary is accepted for libraries, not for modules.
    let wrapper = fat_binary(ptx.as_bytes(), 52, true);
    assert_eq!(load(&wrapper), 200);
    let (mut library, mut kernel, none) = (null_mut(), null_mut(), null_mut());
    unsafe {
        let (options, values) = (null_mut(), null_mut());
        check(cuda().cuLibraryLoadData(
            &mut library,
            wrapper.as_ptr().cast(),
            none,
            null_mut(),
            0,
            options,
            values,
            0,
        ));
        check(cuda().cuLibraryGetKernel(&mut kernel, library, c"k".as_ptr()));
        check(cuda().cuLibraryUnload(library));
    }
    // A fat binary whose header states a length of 1 TiB is refused, not read.
    let mut endless = fat_binary(ptx.as_bytes(), 52, false);
    endless[8..16].copy_from_slice(&(1u64 << 40).to_le_bytes());
    assert_eq!(load(&endless), 209);
    // The only entry is for a newer device.
    assert_eq!(load(&fat_binary(ptx.as_bytes(), 100, false)), 209);
}

#[test]
fn logs() {
    let _context = Context::new();
    let bad = text(&format!(
        "{HEAD}.visible .entry k()\n{{\n    mov.u32 %r1, 0;\n    ret;\n}}\n"
    ));
    let mut buffer = [1u8; 4096];
    let error_log = (CUjit_option::CU_JIT_ERROR_LOG_BUFFER, buffer.as_mut_ptr() as usize);
    let size = |n| (CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, n);
    let (code, values) = load_ex(&bad, &mut [error_log, size(4096)]);
    let log = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
    assert_eq!(code, 218);
    assert!(
        log.starts_with("ptxas application ptx input, line 6; error   : "),
        "{log}"
    );
    assert!(log.contains("'%r1'"), "{log}");
    assert!(
        log.trim_end()
            .ends_with("ptxas fatal   : Ptx assembly aborted due to errors"),
        "{log}"
    );
    // The size option is set to the length without the NUL byte.
    assert_eq!(values[1], log.len());
    // A log that does not fit is truncated and NUL-terminated.
    let whole = log.to_owned();
    buffer.fill(1);
    let (_, values) = load_ex(&bad, &mut [error_log, size(10)]);
    assert_eq!((&buffer[..9], buffer[9], buffer[10]), (&whole.as_bytes()[..9], 0, 1));
    // The size option is then set to the buffer's size.
    assert_eq!(values[1], 10);
    // Text that is not PTX.
    let (code, _) = load_ex(c"hello", &mut [error_log, size(4096)]);
    let log = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
    assert_eq!(
        (code, log.trim_end()),
        (200, "error   : Binary format for key='0', ident='' is not recognized")
    );
    // Without an error the log is empty.
    let good = text(&format!("{HEAD}.visible .entry k() {{ ret; }}\n"));
    let (code, values) = load_ex(&good, &mut [error_log, size(4096)]);
    assert_eq!((code, values[1], buffer[0]), (0, 0, 0));
}

#[test]
fn single_compiler_options_with_value_0() {
    let _context = Context::new();
    let good = text(&format!("{HEAD}.visible .entry k() {{ ret; }}\n"));
    let mut version = 0;
    check(unsafe { cuda().cuDriverGetVersion(&mut version) });
    for option in 0..40 {
        if option == 1 && !software() {
            continue;
        }
        let code = match option {
            // CU_JIT_BINARY_LOADER_THREAD_COUNT is new in 13.1.
            35 if version >= 13010 => 0,
            // Option 1 ends the process on NVIDIA's driver, so only the software driver is tested with it.
            0 | 1 | 3..=6 | 17..=19 | 25 | 27 | 35.. => 1,
            9 => 200,
            15 => 218,
            _ => 0,
        };
        let (got, _) = load_ex(&good, &mut [(CUjit_option(option), 0)]);
        same(got, code, &format!("option {option}"));
    }
    assert_eq!(load_ex(&good, &mut [(CUjit_option::CU_JIT_TARGET, 80)]).0, 300);
    assert_eq!(load_ex(&good, &mut [(CUjit_option::CU_JIT_TARGET, 90)]).0, 0);
    assert_eq!(load_ex(&good, &mut [(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, 5)]).0, 0);
    // A list of names is missing only if all 64 bits of its address are 0.
    let names = CUjit_option::CU_JIT_REFERENCED_KERNEL_NAMES;
    assert_eq!(load_ex(&good, &mut [(names, 0)]).0, 1);
    if software() {
        assert_eq!(load_ex(&good, &mut [(names, 1 << 32)]).0, 0);
    }
    // The time in milliseconds is written into the value itself, in place of these bits of a NaN.
    let (_, values) = load_ex(&good, &mut [(CUjit_option::CU_JIT_WALL_TIME, u32::MAX as usize)]);
    let ms = f32::from_bits(values[0] as u32);
    // The time is 0 if NVIDIA's driver has the result in its cache.
    assert!(ms.is_finite() && ms >= 0.0, "{ms}");
}

#[test]
fn functions_and_variables() {
    let (cuda, _context) = (cuda(), Context::new());
    let ptx = text(&format!(
        "{HEAD}.visible .global .align 4 .u32 counter = 7;\n.visible .const .align 8 .b8 table[24];\n\
         .visible .entry one(.param .u64 p, .param .u32 n) {{ ret; }}\n.visible .entry two() .maxntid 64 {{ ret; }}\n"
    ));
    let (mut module, mut function, mut again) = (null_mut(), null_mut(), null_mut());
    let (mut address, mut bytes, mut word, mut count) = (0, 0, 0u32, 0);
    unsafe {
        check(cuda.cuModuleLoadData(&mut module, ptx.as_ptr().cast()));
        check(cuda.cuModuleGetFunction(&mut function, module, c"one".as_ptr()));
        check(cuda.cuModuleGetFunction(&mut again, module, c"one".as_ptr()));
        assert_eq!(function, again);
        expect(cuda.cuModuleGetFunction(&mut again, module, c"three".as_ptr()), 500);
        expect(cuda.cuModuleGetFunction(&mut again, module, c"".as_ptr()), 1);
        expect(cuda.cuModuleGetFunction(&mut again, null_mut(), c"one".as_ptr()), 400);
        expect(cuda.cuModuleGetFunction(null_mut(), module, c"one".as_ptr()), 1);
        expect(cuda.cuModuleGetFunction(&mut again, module, std::ptr::null()), 1);
        check(cuda.cuModuleGetFunctionCount(&mut count, module));
        assert_eq!(count, 2);
        let mut all = [null_mut(); 2];
        check(cuda.cuModuleEnumerateFunctions(all.as_mut_ptr(), 2, module));
        assert!(all.contains(&function));
        check(cuda.cuModuleGetGlobal(&mut address, &mut bytes, module, c"counter".as_ptr()));
        check(cuda.cuMemcpyDtoH((&raw mut word).cast(), address, 4));
        assert_eq!((bytes, word), (4, 7));
        check(cuda.cuModuleGetGlobal(null_mut(), &mut bytes, module, c"table".as_ptr()));
        assert_eq!(bytes, 24);
        check(cuda.cuModuleGetGlobal(&mut address, null_mut(), module, c"table".as_ptr()));
        expect(
            cuda.cuModuleGetGlobal(null_mut(), null_mut(), module, c"table".as_ptr()),
            1,
        );
        expect(
            cuda.cuModuleGetGlobal(&mut address, &mut bytes, module, c"nothing".as_ptr()),
            500,
        );
        if software() {
            // NVIDIA's driver frees the variable, and the module continues to use it.
            expect(cuda.cuMemFree(address), 1);
        }
        // The attributes of a function.
        let ask = |attribute, function| {
            let mut value = -1;
            check(cuda.cuFuncGetAttribute(&mut value, attribute, function));
            value
        };
        assert_eq!(ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION, function), 52);
        assert_eq!(
            ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION, function),
            90
        );
        assert_eq!(
            ask(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
            1024
        );
        let (mut offset, mut size, mut name, mut of) = (9, 9, std::ptr::null(), null_mut());
        check(cuda.cuFuncGetParamInfo(function, 1, &mut offset, &mut size));
        assert_eq!((offset, size), (8, 4));
        expect(cuda.cuFuncGetParamInfo(function, 2, &mut offset, &mut size), 1);
        check(cuda.cuFuncGetName(&mut name, function));
        assert_eq!(CStr::from_ptr(name), c"one");
        check(cuda.cuFuncGetModule(&mut of, function));
        assert_eq!(of, module);
        let shared = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        check(cuda.cuFuncSetAttribute(function, shared, 227 << 10));
        assert_eq!(ask(shared, function), 227 << 10);
        expect(cuda.cuFuncSetAttribute(function, shared, (227 << 10) + 1), 1);
        expect(
            cuda.cuFuncSetAttribute(function, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS, 1),
            1,
        );
        expect(cuda.cuFuncGetAttribute(&mut 0, CUfunction_attribute(99), function), 1);
        expect(cuda.cuFuncGetAttribute(&mut 0, shared, null_mut()), 400);
        let mut mode = CUmoduleLoadingMode(0);
        check(cuda.cuModuleGetLoadingMode(&mut mode));
        assert_eq!(mode, CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING);
        // The handles of the module and of its functions are invalid after the module is unloaded.
        check(cuda.cuModuleUnload(module));
        expect(cuda.cuModuleUnload(module), 400);
        expect(cuda.cuFuncGetAttribute(&mut 0, shared, function), 400);
        expect(cuda.cuModuleUnload(null_mut()), 400);
    }
}

#[test]
fn refused_launches() {
    let (cuda, context) = (cuda(), Context::new());
    let ptx = text(&format!(
        "{HEAD}.visible .entry k(.param .u64 p) {{ ret; }}\n.visible .entry small() .maxntid 64 {{ ret; }}\n"
    ));
    let (takes, small) = (Kernel::from_ptx(&ptx, "k"), Kernel::from_ptx(&ptx, "small"));
    let mut pointer = 0u64;
    let mut params = [(&raw mut pointer).cast::<c_void>()];
    let params = params.as_mut_ptr();
    let launch = |f: CUfunction, grid: [u32; 3], block: [u32; 3], shared, params, extra| {
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        unsafe { cuda.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, null_mut(), params, extra) }
    };
    let one = [1, 1, 1];
    let null = null_mut();
    for (label, grid, block, shared) in [
        ("no block", [0, 1, 1], one, 0),
        ("no thread", one, [1, 0, 1], 0),
        ("too many threads", one, [1025, 1, 1], 0),
        ("too many threads", one, [32, 32, 2], 0),
        ("too deep a block", one, [1, 1, 65], 0),
        ("too high a grid", [1, 65536, 1], one, 0),
        ("too deep a grid", [1, 1, 65536], one, 0),
        ("too much shared memory", one, one, (48 << 10) + 1),
    ] {
        same(launch(takes.function, grid, block, shared, params, null).0, 1, label);
    }
    expect(launch(small.function, one, [65, 1, 1], 0, null, null), 1);
    expect(launch(null_mut(), one, one, 0, params, null), 400);
    expect(launch(takes.function, one, one, 0, null, null), 1);
    let mut nothing = [null_mut()];
    expect(launch(takes.function, one, one, 0, nothing.as_mut_ptr(), null), 1);
    let (mut packed, mut size) = ([0u8; 64], 64usize);
    let mut extra = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        packed.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut size).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    expect(launch(takes.function, one, one, 0, params, extra.as_mut_ptr()), 1);
    expect(launch(takes.function, one, one, 0, null, extra.as_mut_ptr()), 701);
    // The null stream belongs to the current context. A launch is refused if the function belongs to another context.
    let other = Context::new();
    expect(launch(takes.function, one, one, 0, params, null), 400);
    unsafe {
        expect(cuda.cuLaunchKernelEx(std::ptr::null(), takes.function, params, null), 1);
        check(cuda.cuModuleUnload(small.module));
        expect(launch(small.function, one, one, 0, null, null), 400);
    }
    drop((other, context));
}

#[test]
fn a_library_is_compiled_when_a_kernel_is_requested() {
    let (cuda, context) = (cuda(), Context::new());
    let load = |image: &CStr| {
        let mut library = null_mut();
        let none = null_mut();
        check(unsafe {
            cuda.cuLibraryLoadData(
                &mut library,
                image.as_ptr().cast(),
                none,
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                0,
            )
        });
        library
    };
    let (mut kernel, mut again, mut function) = (null_mut(), null_mut(), null_mut());
    unsafe {
        let junk = load(c"junk");
        let mut count = 9;
        check(cuda.cuLibraryGetKernelCount(&mut count, junk));
        assert_eq!(count, 0);
        expect(cuda.cuLibraryGetKernel(&mut kernel, junk, c"k".as_ptr()), 200);
        check(cuda.cuLibraryUnload(junk));
        let bad = load(&text(&format!("{HEAD}.visible .entry k() {{ nonsense; }}")));
        expect(cuda.cuLibraryGetKernel(&mut kernel, bad, c"k".as_ptr()), 218);
        let library = load(&ptx("vector_add"));
        check(cuda.cuCtxPopCurrent(null_mut()));
        // Without a context, the kernel and its attributes can be queried, but the kernel has no function.
        check(cuda.cuLibraryGetKernel(&mut kernel, library, c"vector_add".as_ptr()));
        check(cuda.cuLibraryGetKernel(&mut again, library, c"vector_add".as_ptr()));
        assert_eq!(kernel, again);
        expect(cuda.cuLibraryGetKernel(&mut again, library, c"nothing".as_ptr()), 500);
        let mut value = 0;
        check(cuda.cuKernelGetAttribute(
            &mut value,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION,
            kernel,
            0,
        ));
        assert_eq!(value, 52);
        expect(cuda.cuKernelGetFunction(&mut function, kernel), 201);
        let mut module = null_mut();
        expect(cuda.cuLibraryGetModule(&mut module, library), 201);
        check(cuda.cuCtxPushCurrent(context.0));
        check(cuda.cuKernelGetFunction(&mut function, kernel));
        check(cuda.cuLibraryGetModule(&mut module, library));
        let (mut of, mut name) = (null_mut(), std::ptr::null());
        check(cuda.cuFuncGetModule(&mut of, function));
        assert_eq!(of, module);
        check(cuda.cuKernelGetName(&mut name, kernel));
        assert_eq!(CStr::from_ptr(name), c"vector_add");
        // A kernel handle is accepted for launches, but not for queries.
        expect(
            cuda.cuFuncGetAttribute(
                &mut value,
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION,
                kernel.cast(),
            ),
            400,
        );
        // `cuModuleUnload` refuses the module of a library.
        expect(cuda.cuModuleUnload(module), 800);
        // An attribute that is set in a kernel applies to its functions in all contexts. One that is set in a function
        // does not apply to the kernel.
        let shared = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        check(cuda.cuKernelSetAttribute(shared, 60_000, kernel, 0));
        check(cuda.cuFuncGetAttribute(&mut value, shared, function));
        assert_eq!(value, 60_000);
        check(cuda.cuFuncSetAttribute(function, shared, 70_000));
        check(cuda.cuKernelGetAttribute(&mut value, shared, kernel, 0));
        assert_eq!(value, 60_000);
        expect(cuda.cuKernelSetAttribute(shared, 1 << 20, kernel, 0), 1);
        expect(cuda.cuKernelSetAttribute(shared, 1, kernel, 7), 101);
        let mut other = null_mut();
        check(cuda.cuCtxCreate(&mut other, 0, 0));
        let mut there = null_mut();
        check(cuda.cuKernelGetFunction(&mut there, kernel));
        assert_ne!(there, function);
        check(cuda.cuFuncGetAttribute(&mut value, shared, there));
        assert_eq!(value, 60_000);
        check(cuda.cuCtxDestroy(other));
        check(cuda.cuLibraryUnload(library));
        if software() {
            // NVIDIA's driver crashes in these calls.
            expect(cuda.cuLibraryUnload(library), 400);
            expect(cuda.cuKernelGetFunction(&mut function, kernel), 400);
        }
    }
}

#[test]
fn two_modules_with_the_same_names() {
    let (cuda, _context) = (cuda(), Context::new());
    let ptx = text(&format!(
        "{HEAD}.visible .global .u32 x = 1;\n.visible .entry k() {{ ret; }}\n"
    ));
    let (a, b) = (Kernel::from_ptx(&ptx, "k"), Kernel::from_ptx(&ptx, "k"));
    let (mut xa, mut xb) = (0, 0);
    unsafe {
        check(cuda.cuModuleGetGlobal(&mut xa, null_mut(), a.module, c"x".as_ptr()));
        check(cuda.cuModuleGetGlobal(&mut xb, null_mut(), b.module, c"x".as_ptr()));
    }
    assert!(xa != xb && a.function != b.function);
}

/// The kernel `k(p)`, which stores the result of `square(7)` in `p[0]`.
const CALLER: &str = ".extern .func (.param .u32 r) square(.param .u32 x);\n\
    .visible .entry k(.param .u64 p)\n{\n .reg .b64 %rd<2>; .reg .b32 %r<3>;\n\
     ld.param.u64 %rd1, [p];\n\
     { .param .b32 a; .param .b32 b; mov.u32 %r1, 7; st.param.b32 [a], %r1; call.uni (b), square, (a); ld.param.b32 %r2, [b]; }\n\
     st.global.u32 [%rd1], %r2;\n ret;\n}\n";
/// The function `square(x)`.
const CALLEE: &str = ".visible .func (.param .u32 r) square(.param .u32 x)\n{\n .reg .b32 %r<3>;\n\
     ld.param.u32 %r1, [x];\n mul.lo.u32 %r2, %r1, %r1;\n st.param.u32 [r], %r2;\n ret;\n}\n";

struct Linker(CUlinkState);

impl Linker {
    fn new() -> Self {
        let mut state = null_mut();
        check(unsafe { cuda().cuLinkCreate(0, null_mut(), null_mut(), &mut state) });
        Linker(state)
    }

    fn add(&self, name: &CStr, text: &str) -> CUresult {
        let text = CString::new(text).unwrap();
        let bytes = text.as_bytes_with_nul();
        let kind = CUjitInputType::CU_JIT_INPUT_PTX;
        let (data, none) = (bytes.as_ptr().cast_mut().cast(), null_mut());
        unsafe { cuda().cuLinkAddData(self.0, kind, data, bytes.len(), name.as_ptr(), 0, none, null_mut()) }
    }

    fn complete(&self) -> (u32, *mut c_void, usize) {
        let (mut image, mut size) = (null_mut(), 0);
        let code = unsafe { cuda().cuLinkComplete(self.0, &mut image, &mut size) };
        (code.0, image, size)
    }
}

#[test]
fn the_linker() {
    let (cuda, _context) = (cuda(), Context::new());
    let with_head = |text: &str| format!("{HEAD}{text}");
    unsafe {
        let linker = Linker::new();
        check(linker.add(c"a.ptx", &with_head(CALLER)));
        check(linker.add(c"b.ptx", &with_head(CALLEE)));
        let (code, image, size) = linker.complete();
        assert_eq!(code, 0);
        assert_eq!(std::slice::from_raw_parts(image.cast::<u8>(), 4), b"\x7fELF");
        assert_eq!(linker.complete().0, 400);
        expect(linker.add(c"c.ptx", &with_head("")), 1);
        let file = std::env::temp_dir().join(format!("soft-cuda-linked-{}", std::process::id()));
        std::fs::write(&file, std::slice::from_raw_parts(image.cast::<u8>(), size)).unwrap();
        // The image runs, loaded from the linker's memory, and from a file after the linker is destroyed.
        for from_file in [false, true] {
            let (mut module, mut function) = (null_mut(), null_mut());
            if from_file {
                check(cuda.cuLinkDestroy(linker.0));
                let name = CString::new(file.to_str().unwrap()).unwrap();
                check(cuda.cuModuleLoad(&mut module, name.as_ptr()));
            } else {
                check(cuda.cuModuleLoadData(&mut module, image));
            }
            check(cuda.cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
            let (mut address, mut word) = (0u64, 0u32);
            check(cuda.cuMemAlloc(&mut address, 4));
            let mut params = [(&raw mut address).cast()];
            check(Kernel { module, function }.launch(1, 1, null_mut(), &mut params));
            check(cuda.cuMemcpyDtoH((&raw mut word).cast(), address, 4));
            assert_eq!(word, 49);
        }
        std::fs::remove_file(file).unwrap();
        if software() {
            // NVIDIA's driver crashes in this call.
            expect(cuda.cuLinkDestroy(linker.0), 400);
        }
        // A link without inputs makes an empty module.
        let linker = Linker::new();
        let (code, image, _) = linker.complete();
        assert_eq!(code, 0);
        let (mut module, mut count) = (null_mut(), 9);
        check(cuda.cuModuleLoadData(&mut module, image));
        check(cuda.cuModuleGetFunctionCount(&mut count, module));
        assert_eq!(count, 0);
        // An image that is linked for another architecture than the device's cannot be loaded.
        let mut state = null_mut();
        let (mut target, mut sm_80) = (CUjit_option::CU_JIT_TARGET, 80 as *mut c_void);
        check(cuda.cuLinkCreate(1, &mut target, &mut sm_80, &mut state));
        let linker = Linker(state);
        check(linker.add(c"b.ptx", &with_head(CALLEE)));
        let (code, image, _) = linker.complete();
        assert_eq!(code, 0);
        expect(cuda.cuModuleLoadData(&mut module, image), 209);
        // The log names undefined functions.
        let mut log = [0u8; 512];
        let mut names = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), 512 as *mut c_void];
        let mut state = null_mut();
        check(cuda.cuLinkCreate(2, names.as_mut_ptr(), values.as_mut_ptr(), &mut state));
        let linker = Linker(state);
        check(linker.add(c"a.ptx", &with_head(CALLER)));
        assert_eq!(linker.complete().0, 300);
        let log = CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap();
        assert_eq!(log.trim_end(), "error   : Undefined reference to 'square' in 'a.ptx'");
        assert_eq!(values[1] as usize, log.len());
        // A duplicate function is refused.
        let linker = Linker::new();
        check(linker.add(c"a.ptx", &with_head(CALLEE)));
        expect(linker.add(c"b.ptx", &with_head(CALLEE)), 300);
        assert_eq!(linker.complete().0, 300);
        let linker = Linker::new();
        expect(linker.add(c"a.ptx", "junk"), 200);
        expect(linker.add(c"a.ptx", &with_head("nonsense")), 218);
        // A refused input does not become part of the image.
        check(linker.add(c"b.ptx", &with_head(CALLEE)));
        assert_eq!(linker.complete().0, 0);
        expect(cuda.cuLinkDestroy(null_mut()), 400);
    }
}
