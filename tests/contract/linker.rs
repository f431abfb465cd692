//! Tests of the linker: accepted inputs, errors and logs, and the linked image.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, is, ok};

const CALLER: &str = ".version 6.4\n.target sm_52\n.address_size 64\n\
    .extern .func (.param .u32 r) square(.param .u32 x);\n\
    .visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<3>;\nld.param.u64 %d1, [p];\n\
    { .param .b32 a; .param .b32 b; mov.u32 %r1, 7; st.param.b32 [a], %r1; call.uni (b), square, (a);\n\
    ld.param.b32 %r2, [b]; }\nst.global.u32 [%d1], %r2;\nret;\n}\n";
const CALLEE: &str = ".version 6.4\n.target sm_52\n.address_size 64\n\
    .visible .func (.param .u32 r) square(.param .u32 x)\n{\n.reg .b32 %r<3>;\n\
    ld.param.u32 %r1, [x];\nmul.lo.u32 %r2, %r1, %r1;\nst.param.u32 [r], %r2;\nret;\n}\n";

/// A linker, with the log buffer and the options that it writes to: their addresses must not change.
struct Linker {
    state: CUlinkState,
    log: Box<[u8; 1024]>,
    _options: Box<([CUjit_option; 2], [*mut c_void; 2])>,
}

impl Linker {
    fn new() -> Self {
        let mut log = Box::new([0; 1024]);
        let mut options = Box::new((
            [
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            ],
            [log.as_mut_ptr().cast(), ptr::without_provenance_mut(1024)],
        ));
        let mut state = null_mut();
        ok!(cuLinkCreate(
            2,
            options.0.as_mut_ptr(),
            options.1.as_mut_ptr(),
            &raw mut state
        ));
        Self {
            state,
            log,
            _options: options,
        }
    }

    fn add(&self, name: Option<&CStr>, text: &str) -> u32 {
        let text = CString::new(text).expect("no NUL byte");
        let bytes = text.as_bytes_with_nul();
        // SAFETY: data and name outlive the call.
        unsafe {
            cuLinkAddData(
                self.state,
                CUjitInputType::CU_JIT_INPUT_PTX,
                bytes.as_ptr().cast_mut().cast(),
                bytes.len(),
                name.map_or(ptr::null(), CStr::as_ptr),
                0,
                null_mut(),
                null_mut(),
            )
        }
        .0
    }

    fn complete(&self) -> (u32, *mut c_void) {
        let (mut image, mut bytes) = (null_mut(), 0);
        // SAFETY: the outputs are valid for the writes.
        let code = unsafe { cuLinkComplete(self.state, &raw mut image, &raw mut bytes) };
        (code.0, image)
    }

    fn log(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.log[..]).expect("a terminated log");
        text.to_string_lossy().into_owned()
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        ok!(cuLinkDestroy(self.state));
    }
}

#[test]
fn a_source_that_calls_another() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let linker = Linker::new();
    c.is(0, "the caller", linker.add(Some(c"a.ptx"), CALLER));
    c.is(0, "the callee", linker.add(Some(c"b.ptx"), CALLEE));
    let (code, image) = linker.complete();
    c.is(0, "complete", code);
    c.is(400, "complete again", linker.complete().0);
    c.is(1, "add after it", linker.add(None, CALLEE));
    let (mut module, mut function) = (null_mut(), null_mut());
    is!(c, 0, cuModuleLoadData(&raw mut module, image));
    is!(c, 0, cuModuleGetFunction(&raw mut function, module, c"k".as_ptr()));
    let out = gpu.alloc(4);
    gpu.launch(function, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    c.that(gpu.read::<u32>(out, 1) == [49], || {
        "the kernel did not store 7 squared".to_owned()
    });
}

#[test]
fn shared_memory_that_another_source_defines() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let head = ".version 6.4\n.target sm_52\n.address_size 64\n";
    let writer = format!(
        "{head}.extern .shared .u64 cells[4]; .extern .func (.param .u64 r) second();\n\
         .visible .entry k(.param .u64 p) {{ .reg .u64 %d<3>; .shared .u64 own[2]; ld.param.u64 %d0, [p];\n\
         st.shared.u64 [own+8], 5; st.shared.u64 [cells+8], 7;\n\
         {{ .param .u64 r; call (r), second, (); ld.param.u64 %d1, [r]; }} st.global.u64 [%d0], %d1;\n\
         ld.shared.u64 %d1, [own+8]; st.global.u64 [%d0+8], %d1; ret; }}\n"
    );
    let reader = format!(
        "{head}.extern .shared .u64 cells[4];\n.visible .func (.param .u64 r) second() {{ .reg .u64 %d;\n\
         ld.shared.u64 %d, [cells+8]; st.param.u64 [r], %d; ret; }}\n"
    );
    let definition = format!("{head}.visible .shared .u64 cells[4];\n");
    let linker = Linker::new();
    for text in [&writer, &reader, &definition] {
        c.is(0, "a source", linker.add(None, text));
    }
    let (code, image) = linker.complete();
    c.is(0, "complete", code);
    let (mut module, mut function) = (null_mut(), null_mut());
    is!(c, 0, cuModuleLoadData(&raw mut module, image));
    is!(c, 0, cuModuleGetFunction(&raw mut function, module, c"k".as_ptr()));
    let out = gpu.alloc(16);
    gpu.launch(function, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    let found = gpu.read::<u64>(out, 2);
    c.that(found == [7, 5], || format!("the kernel stored {found:?}"));
    let linker = Linker::new();
    for text in [&writer, &reader] {
        c.is(0, "a source", linker.add(Some(c"a.ptx"), text));
    }
    c.is(300, "without the definition", linker.complete().0);
    let log = linker.log();
    let undefined = "error   : Undefined reference to 'cells' in 'a.ptx'";
    c.that(log.contains(undefined), || log.clone());
}

#[test]
fn undefined_and_duplicate_symbols() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let linker = Linker::new();
    c.is(0, "the caller alone", linker.add(None, CALLER));
    c.is(300, "complete", linker.complete().0);
    c.is(300, "complete again", linker.complete().0);
    c.is(1, "the callee, too late", linker.add(None, CALLEE));
    let log = linker.log();
    c.that(log == "error   : Undefined reference to 'square' in 'Input 1'", || {
        log.clone()
    });
    let user = ".version 6.4\n.target sm_52\n.address_size 64\n.extern .global .u32 word;\n\
        .visible .entry k(.param .u64 p) { .reg .b64 %d<3>; ld.param.u64 %d1, [p]; mov.u64 %d2, word;\n\
        st.global.u64 [%d1], %d2; ret; }\n";
    let linker = Linker::new();
    c.is(0, "the user of a variable", linker.add(None, user));
    c.is(300, "complete", linker.complete().0);
    let log = linker.log();
    c.that(log == "error   : Undefined reference to 'word' in 'Input 1'", || {
        log.clone()
    });
    let linker = Linker::new();
    c.is(0, "the callee", linker.add(Some(c"a.ptx"), CALLEE));
    c.is(300, "the callee again", linker.add(Some(c"b.ptx"), CALLEE));
    c.is(300, "complete", linker.complete().0);
    let log = linker.log();
    c.that(
        log == "error   : Multiple definition of 'square' in 'b.ptx', first defined in 'a.ptx'",
        || log.clone(),
    );
}

#[test]
fn a_text_ends_at_its_nul() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let bytes = CString::new(CALLEE).expect("no NUL byte").into_bytes_with_nul();
    for size in [bytes.len() + 1, 1 << 20, 1 << 43, usize::MAX] {
        let mut state = null_mut();
        ok!(cuLinkCreate(0, null_mut(), null_mut(), &raw mut state));
        let data = bytes.as_ptr().cast_mut().cast();
        let kind = CUjitInputType::CU_JIT_INPUT_PTX;
        is!(
            c,
            0,
            cuLinkAddData(state, kind, data, size, ptr::null(), 0, null_mut(), null_mut())
        );
        let (mut image, mut length) = (null_mut(), 0);
        is!(c, 0, cuLinkComplete(state, &raw mut image, &raw mut length));
        ok!(cuLinkDestroy(state));
    }
}

#[test]
fn refused_inputs_change_nothing() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let linker = Linker::new();
    let (ptx, none) = (CUjitInputType::CU_JIT_INPUT_PTX, null_mut());
    c.is(200, "junk", linker.add(None, "junk"));
    c.is(
        218,
        "bad PTX",
        linker.add(None, ".version 6.4\n.target sm_52\n.address_size 64\nnonsense\n"),
    );
    is!(
        c,
        1,
        cuLinkAddData(linker.state, ptx, null_mut(), 4, ptr::null(), 0, none, null_mut())
    );
    is!(
        c,
        301,
        cuLinkAddFile(linker.state, ptx, c"/no/such/file".as_ptr(), 0, none, null_mut())
    );
    // A single input accepts only options of its compilation; MAX_REGISTERS (0) is refused for its value, 0.
    // THREADS_PER_BLOCK (1) is left out, because NVIDIA's driver divides by its value.
    let mut text = CString::new(CALLEE).expect("no NUL byte").into_bytes_with_nul();
    for option in (0..=34).filter(|option| *option != 1) {
        let code = match option {
            7 | 11..=16 | 30..=34 => 0,
            _ => 1,
        };
        let other = Linker::new();
        let (mut key, mut value) = (CUjit_option(option), ptr::without_provenance_mut(0));
        let data = text.as_mut_ptr().cast();
        let bytes = text.len();
        let name = ptr::null();
        let added = crate::call!(cuLinkAddData(
            other.state,
            ptx,
            data,
            bytes,
            name,
            1,
            &raw mut key,
            &raw mut value
        ));
        c.is(code, &format!("option {option} of an input"), added.0);
    }
    c.is(0, "the callee", linker.add(None, CALLEE));
    c.is(0, "complete", linker.complete().0);
}

#[test]
fn no_inputs_link_to_an_empty_module() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let linker = Linker::new();
    let (code, image) = linker.complete();
    c.is(0, "complete", code);
    let (mut module, mut count) = (null_mut(), 9);
    is!(c, 0, cuModuleLoadData(&raw mut module, image));
    is!(c, 0, cuModuleGetFunctionCount(&raw mut count, module));
    c.that(count == 0, || format!("{count} functions"));
}

#[test]
fn definitions_of_several_sizes() {
    let gpu = Gpu::new();
    let source = |definition: &str, kernel: &str| {
        format!(
            ".version 6.4\n.target sm_52\n.address_size 64\n{definition}\n.visible .entry {kernel}(.param .u64 p)\n{{\n\
             .reg .b64 %d;\n.reg .b32 %r;\nld.param.u64 %d, [p];\nld.global.u32 %r, [w];\nst.global.u32 [%d], %r;\nret;\n}}\n"
        )
    };
    let different = "error   : Size doesn't match for 'w' in 'b', first specified in 'a'";
    let larger =
        |file: &str| format!("error   : Common symbol 'w' in file '{file}' has larger size than initialization");
    for (first, new, expected) in [
        (".common .global .b32 w[4];", ".common .global .b32 w[1];", Ok([0, 0])),
        (".common .global .b32 w[1];", ".common .global .b32 w[4];", Ok([0, 0])),
        (
            ".common .global .b32 w[4] = {7};",
            ".common .global .b32 w[1];",
            Ok([7, 0]),
        ),
        // The linker takes the first definition, although only the second has a value.
        (
            ".weak .global .b32 w[4];",
            ".weak .global .b32 w[4] = {7, 8};",
            Ok([0, 0]),
        ),
        (
            ".weak .global .b32 w[4];",
            ".weak .global .b32 w[1] = {7};",
            Err(different.to_owned()),
        ),
        (
            ".weak .global .b32 w[1] = {7};",
            ".weak .global .b32 w[4];",
            Err(different.to_owned()),
        ),
        (
            ".weak .global .b32 w[4];",
            ".visible .global .b32 w[1] = {7};",
            Err(different.to_owned()),
        ),
        (
            ".visible .global .b32 w[1] = {7};",
            ".weak .global .b32 w[4];",
            Err(different.to_owned()),
        ),
        (
            ".common .global .b32 w[4];",
            ".weak .global .b32 w[1] = {7};",
            Err(larger("a")),
        ),
        (
            ".weak .global .b32 w[1] = {7};",
            ".common .global .b32 w[4];",
            Err(larger("b")),
        ),
        (
            ".common .global .b32 w[4];",
            ".visible .global .b32 w[1] = {7};",
            Err(larger("a")),
        ),
        (
            ".visible .global .b32 w[1] = {7};",
            ".common .global .b32 w[4];",
            Err(larger("b")),
        ),
    ] {
        let linker = Linker::new();
        assert_eq!(linker.add(Some(c"a"), &source(first, "ka")), 0);
        let added = linker.add(Some(c"b"), &source(new, "kb"));
        let (completed, image) = linker.complete();
        let found = if added == 0 && completed == 0 {
            let (mut module, mut address, mut bytes) = (null_mut(), 0, 0);
            ok!(cuModuleLoadData(&raw mut module, image));
            ok!(cuModuleGetGlobal(
                &raw mut address,
                &raw mut bytes,
                module,
                c"w".as_ptr()
            ));
            assert_eq!(bytes, 16, "{first} {new}");
            let words: Vec<u32> = gpu.read(address, 2);
            ok!(cuModuleUnload(module));
            Ok([words[0], words[1]])
        } else {
            assert_eq!([added, completed], [300, 300], "{first} {new}");
            Err(linker.log())
        };
        assert_eq!(found, expected, "{first} {new}");
    }
}

/// In the verbose log, the compiler names the kernels of each input in reverse order, and the linker begins with those
/// of the last input.
#[test]
fn the_verbose_log_of_a_link() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    // The driver's cache keeps compiled texts without their logs, so the texts must be new.
    let since = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    let unique = format!("{}_{}", std::process::id(), since.as_nanos());
    let mut log = vec![0_u8; 1 << 16];
    let mut options = [
        CUjit_option::CU_JIT_INFO_LOG_BUFFER,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_LOG_VERBOSE,
    ];
    let mut values: [*mut c_void; 3] = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(log.len()),
        ptr::without_provenance_mut(1),
    ];
    let mut state = null_mut();
    ok!(cuLinkCreate(
        3,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
        &raw mut state
    ));
    for names in [["a", "b"], ["c", "d"]] {
        let kernels: String = names
            .iter()
            .map(|name| format!(".visible .entry {name}_{unique}() {{ ret; }}\n"))
            .collect();
        let text = format!(".version 6.4\n.target sm_52\n.address_size 64\n{kernels}\0");
        is!(
            c,
            0,
            cuLinkAddData(
                state,
                CUjitInputType::CU_JIT_INPUT_PTX,
                text.as_ptr().cast_mut().cast(),
                text.len(),
                c"input".as_ptr(),
                0,
                null_mut(),
                null_mut()
            )
        );
    }
    let (mut image, mut bytes) = (null_mut(), 0);
    is!(c, 0, cuLinkComplete(state, &raw mut image, &raw mut bytes));
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]).into_owned();
    let listed = |start: &str| -> String {
        let names = text.lines().filter_map(|line| line.strip_prefix(start));
        names.map(|name| name.chars().next().unwrap_or(' ')).collect()
    };
    let compiled = listed("ptxas info    : Compiling entry function '");
    let linked = listed("info    : Function properties for '");
    c.that((&*compiled, &*linked) == ("badc", "cdab"), || text.clone());
    is!(c, 0, cuLinkDestroy(state));
}
