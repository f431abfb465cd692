//! Tests of linkers as objects: inputs of each kind, messages, and drops in any order.

use cuda_driver::jit::JitTarget;
use cuda_driver::sys::{CUjit_target, CUjitInputType, CUresult};
use cuda_driver::{Context, DeviceBuffer, JitOptions, LaunchConfig, Linker, Module, Stream};

use crate::common::{code, context, is_software, needs, ptx_path};

const HEAD: &str = ".version 6.4\n.target sm_52\n.address_size 64\n";

fn linker(context: &Context) -> Linker {
    Linker::new(context, &JitOptions::default()).expect("a linker")
}

/// Returns the PTX of a kernel that stores `square(7)`, but does not define the function.
fn caller() -> String {
    format!(
        "{HEAD}.extern .func (.param .b32 r) square(.param .b32 a);
.visible .entry k(.param .u64 p)
{{
    .reg .b32 %r<3>;
    .reg .b64 %d;
    ld.param.u64 %d, [p];
    mov.b32 %r1, 7;
    {{
        .param .b32 x;
        .param .b32 y;
        st.param.b32 [x], %r1;
        call.uni (y), square, (x);
        ld.param.b32 %r2, [y];
    }}
    st.global.u32 [%d], %r2;
    ret;
}}
"
    )
}

/// Returns the PTX of the function `square`.
fn callee() -> String {
    format!(
        "{HEAD}.visible .func (.param .b32 r) square(.param .b32 a)
{{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [a];
    mul.lo.s32 %r2, %r1, %r1;
    st.param.b32 [r], %r2;
    ret;
}}
"
    )
}

/// Runs the kernel `k` of a module and returns the number that it stores.
fn run(context: &Context, module: &Module) -> u32 {
    let k = module.function("k").expect("a kernel");
    let stream = Stream::new(context).expect("a stream");
    let out = DeviceBuffer::<u32>::zeroed(context, 1).expect("memory");
    // SAFETY: the kernel stores one number at the address.
    unsafe { k.launch(&stream, LaunchConfig::default(), (out.ptr(),)) }.expect("a launch");
    stream.synchronize().expect("no fault");
    out.to_vec().expect("a copy")[0]
}

#[test]
fn two_sources_are_linked_and_run() {
    let context = context();
    let linker = linker(&context);
    linker.add_ptx("a.ptx", &caller()).expect("the caller");
    linker.add_ptx("b.ptx", &callee()).expect("the callee");
    let image = linker.complete().expect("an image");
    assert!(image.as_bytes().starts_with(b"\x7fELF"));
    assert!(image.link_ms() >= 0.0);
    let _ = image.info_log();
    let other = self::context();
    let bytes = image.as_bytes().to_vec();
    let modules = [
        image.load(&context).expect("a module"),
        image.load(&other).expect("a module"),
        // SAFETY: the driver made the image.
        unsafe { Module::from_image(&other, &bytes) }.expect("a module"),
    ];
    let library = image.load_library();
    // Modules do not need the image.
    image.destroy().expect("the end of the linker");
    for module in &modules {
        assert_eq!(run(module.context().expect("a context"), module), 49);
    }
    match library {
        Ok(library) => assert_eq!(run(&other, &library.module(&other).expect("a module")), 49),
        Err(error) => assert!(error.error().is_missing_function(), "{error}"),
    }
}

#[test]
fn messages_name_inputs_and_symbols() {
    let context = context();
    let linker = linker(&context);
    linker.add_ptx("a.ptx", &caller()).expect("the caller");
    let error = linker.complete().expect_err("an undefined function");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_SOURCE);
    assert!(
        error.error_log().contains("Undefined reference to 'square' in 'a.ptx'"),
        "{error}"
    );

    let linker = self::linker(&context);
    linker.add_ptx("a.ptx", &callee()).expect("the callee");
    let error = linker.add_ptx("b.ptx", &callee()).expect_err("a second definition");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_SOURCE);
    assert!(error.error_log().contains("'square' in 'b.ptx'"), "{error}");
    assert_eq!(linker.error_log(), error.error_log());
    assert_eq!(code(linker.complete()), CUresult::CUDA_ERROR_INVALID_SOURCE);

    let linker = self::linker(&context);
    let error = linker.add_ptx("bad.ptx", &format!("{HEAD}nonsense\n"));
    let error = error.expect_err("a syntax error");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(error.to_string().contains("line 4"), "{error}");
    // A refused input changes nothing.
    linker.add_ptx("a.ptx", &caller()).expect("the caller");
    linker.add_ptx("b.ptx", &callee()).expect("the callee");
    linker.complete().expect("an image");
}

#[test]
fn refused_inputs() {
    let context = context();
    let linker = linker(&context);
    let options = JitOptions::default();
    assert_eq!(code(linker.add_ptx("a", "junk")), CUresult::CUDA_ERROR_INVALID_IMAGE);
    assert_eq!(code(linker.add_ptx("a", "\x7fELF")), CUresult::CUDA_ERROR_INVALID_IMAGE);
    assert_eq!(
        code(linker.add_ptx("a\0b", &callee())),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        code(linker.add_ptx_file("/no/such/file")),
        CUresult::CUDA_ERROR_FILE_NOT_FOUND
    );
    let (cubin, ptx) = (CUjitInputType::CU_JIT_INPUT_CUBIN, CUjitInputType::CU_JIT_INPUT_PTX);
    // SAFETY: the inputs are refused before the driver reads them, or do not exist.
    unsafe {
        let missing = linker.add_file(ptx, "/no/such/file", &options);
        assert_eq!(code(missing), CUresult::CUDA_ERROR_FILE_NOT_FOUND);
        for (kind, data) in [
            (cubin, &b"\x7fELF\x02\x01\x01"[..]),
            (cubin, b"text"),
            (
                CUjitInputType::CU_JIT_INPUT_FATBINARY,
                b"\x50\xed\x55\xba\x01\x00\x10\x00",
            ),
            (ptx, b"\x7fELF"),
        ] {
            assert_eq!(
                code(linker.add_data(kind, "x", data, &options)),
                CUresult::CUDA_ERROR_INVALID_IMAGE
            );
        }
    }
    // An input accepts only options that concern its own compilation, so not `target`.
    let level = JitOptions {
        optimization_level: Some(1),
        ..JitOptions::default()
    };
    linker
        .add_ptx_with("b.ptx", &callee(), &level)
        .expect("an option for compiling");
    let target = JitOptions {
        target: Some(JitTarget::Context),
        ..JitOptions::default()
    };
    assert_eq!(
        code(linker.add_ptx_with("a.ptx", &caller(), &target)),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    linker.add_ptx("a.ptx", &caller()).expect("the caller");
    let image = linker.complete().expect("an image");
    assert_eq!(run(&context, &image.load(&context).expect("a module")), 49);
}

#[test]
fn inputs_from_files() {
    let context = context();
    for by_driver in [false, true] {
        let linker = linker(&context);
        let path = ptx_path("saxpy.ptx");
        if by_driver {
            // SAFETY: the file is PTX.
            unsafe { linker.add_file(CUjitInputType::CU_JIT_INPUT_PTX, &path, &JitOptions::default()) }
                .expect("an input");
        } else {
            linker.add_ptx_file(&path).expect("an input");
        }
        let image = linker.complete().expect("an image");
        let module = image.load(&context).expect("a module");
        module.function("saxpy").expect("a kernel");
    }
}

#[test]
fn options_of_a_linker() {
    let context = context();
    let options = JitOptions {
        target: Some(JitTarget::Context),
        verbose: true,
        optimization_level: Some(3),
        log_bytes: 4096,
        ..JitOptions::default()
    };
    let linker = Linker::new(&context, &options).expect("a linker");
    linker.add_ptx("a.ptx", &caller()).expect("the caller");
    linker.add_ptx("b.ptx", &callee()).expect("the callee");
    let image = linker.complete().expect("an image");
    assert_eq!(run(&context, &image.load(&context).expect("a module")), 49);
    // A linker requires exact matches, so it accepts no fallback.
    let options = JitOptions {
        fallback: Some(cuda_driver::sys::CUjit_fallback::CU_PREFER_PTX),
        ..JitOptions::default()
    };
    assert_eq!(
        code(Linker::new(&context, &options)),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    // An image for another architecture is made, but cannot be loaded.
    let options = JitOptions {
        target: Some(JitTarget::Compute(CUjit_target::CU_TARGET_COMPUTE_75)),
        ..JitOptions::default()
    };
    if crate::common::architecture() == 75 {
        return needs("a device other than sm_75");
    }
    let linker = Linker::new(&context, &options).expect("a linker");
    linker.add_ptx("b.ptx", &callee()).expect("the callee");
    linker.add_ptx("a.ptx", &caller()).expect("the caller");
    let image = linker.complete().expect("an image");
    assert_eq!(code(image.load(&context)), CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
}

#[test]
fn drops_in_any_order() {
    let context = context();
    let first = linker(&context);
    first.add_ptx("b.ptx", &callee()).expect("an input");
    let second = linker(&context);
    second.add_ptx("b.ptx", &callee()).expect("an input");
    let image = second.complete().expect("an image");
    let first_context = self::context();
    let raw = linker(&first_context).into_raw();
    // The linkers keep the context alive.
    drop(context);
    std::thread::spawn(move || drop(first)).join().expect("a thread");
    let size = image.as_bytes().len();
    let image = std::thread::spawn(move || image).join().expect("a thread");
    assert_eq!(image.as_bytes().len(), size);
    drop(image);

    let context = self::context();
    {
        let _current = context.push().expect("a push");
        // SAFETY: the handle is live, and destroyed below.
        let borrowed = unsafe { Linker::borrow_raw(raw) };
        assert!(borrowed.context().is_none());
        borrowed.add_ptx("b.ptx", &callee()).expect("an input");
    }
    // SAFETY: the handle was released above, in the context that `first_context` keeps.
    let owned = unsafe { Linker::from_raw(raw, &first_context) };
    assert_eq!(owned.as_raw(), raw);
    assert!(owned.error_log().is_empty());
    owned.destroy().expect("the end of the linker");
}

/// Returns a fat binary with one entry of PTX.
fn fat_binary(ptx: &str) -> Vec<u8> {
    const HEADER: usize = 80;
    let padded = ptx.len().next_multiple_of(8);
    let mut entry = vec![0; HEADER + padded];
    entry[..2].copy_from_slice(&1_u16.to_le_bytes());
    // Sizes of the header and the payload, place of the compiler's options, architecture, flags.
    for (at, value) in [(4, HEADER as u32), (8, padded as u32), (20, 64), (28, 52), (40, 0x11)] {
        entry[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    entry[HEADER..HEADER + ptx.len()].copy_from_slice(ptx.as_bytes());
    // Magic number, version 1, a header of 16 bytes, the size of the rest.
    let mut fat = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    fat.extend((entry.len() as u64).to_le_bytes());
    fat.extend(entry);
    fat
}

/// Returns a host object file with a fat binary of this PTX.
fn object(ptx: &str) -> Vec<u8> {
    let content = fat_binary(ptx);
    let names = b"\0.nv_fatbin\0.shstrtab\0";
    let mut elf = vec![0; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let contents_at = elf.len();
    elf.extend(&content);
    let names_at = elf.len();
    elf.extend(names);
    let table = elf.len() as u64;
    // The machine (x86-64), the offset of the section headers, their size and number, and the section of their names.
    elf[18..20].copy_from_slice(&62_u16.to_le_bytes());
    elf[40..48].copy_from_slice(&table.to_le_bytes());
    for (at, value) in [(58, 64_u16), (60, 3), (62, 2)] {
        elf[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    // The header of the null section, then name, offset and size of each section.
    elf.extend([0; 64]);
    for (name, at, size) in [(1_u32, contents_at, content.len()), (12, names_at, names.len())] {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        elf.extend(header);
    }
    elf
}

/// Returns an archive with one object file.
fn archive(object: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    bytes.extend(format!("{:48}{:<10}`\n", "o/", object.len()).bytes());
    bytes.extend(object);
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes
}

#[test]
fn inputs_of_every_kind() {
    let context = context();
    if !is_software() {
        return needs("the software driver: the inputs are not complete output of NVIDIA's tools");
    }
    let options = JitOptions::default();
    let linked = {
        let linker = linker(&context);
        linker.add_ptx("b.ptx", &callee()).expect("an input");
        linker.complete().expect("an image")
    };
    for (kind, name, data) in [
        (
            CUjitInputType::CU_JIT_INPUT_CUBIN,
            "b.cubin",
            linked.as_bytes().to_vec(),
        ),
        (CUjitInputType::CU_JIT_INPUT_PTX, "b.ptx", callee().into_bytes()),
        (
            CUjitInputType::CU_JIT_INPUT_FATBINARY,
            "b.fatbin",
            fat_binary(&callee()),
        ),
        (CUjitInputType::CU_JIT_INPUT_OBJECT, "b.o", object(&callee())),
        (CUjitInputType::CU_JIT_INPUT_LIBRARY, "b.a", archive(&object(&callee()))),
    ] {
        let path = std::env::temp_dir().join(format!("cuda-driver-{}-{name}", std::process::id()));
        std::fs::write(&path, &data).expect("a file");
        for from_file in [false, true] {
            let linker = linker(&context);
            linker.add_ptx("a.ptx", &caller()).expect("the caller");
            // SAFETY: the software driver checks all inputs.
            let added = unsafe {
                if from_file {
                    linker.add_file(kind, &path, &options)
                } else {
                    linker.add_data(kind, name, &data, &options)
                }
            };
            added.unwrap_or_else(|e| panic!("{name}: {e}"));
            let image = linker.complete().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(run(&context, &image.load(&context).expect("a module")), 49, "{name}");
        }
        std::fs::remove_file(&path).expect("the file is ours");
    }
}
