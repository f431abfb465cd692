//! Tests of the driver's PTX compiler: accepted and refused text, options, result codes and logs.

use std::ffi::{c_uint, c_void};
use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, architecture, driver_version, has_version, needs, ptx};
use crate::{is, ok};

/// Loads `text` with a NUL byte added and returns the result code.
fn load(text: &[u8]) -> u32 {
    let mut image = text.to_vec();
    image.push(0);
    let mut module = ptr::null_mut();
    // SAFETY: the image is NUL-terminated.
    let code = unsafe { cuModuleLoadData(&raw mut module, image.as_ptr().cast()) };
    if code.0 == 0 {
        // SAFETY: the module was loaded above and has no other handle.
        let unloaded = unsafe { cuModuleUnload(module) };
        assert_eq!(unloaded.0, 0, "cuModuleUnload");
    }
    code.0
}

fn module(version: &str, target: &str, body: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n{body}\n")
}

fn kernel(body: &str) -> String {
    module("7.0", "sm_52", &format!(".visible .entry k()\n{{\n{body}\nret;\n}}"))
}

#[test]
fn data_that_is_not_an_image() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let cases: [(&str, &[u8]); 7] = [
        ("text without a PTX head", b"hello"),
        ("nothing", b""),
        (
            "a byte-order mark",
            b"\xef\xbb\xbf.version 7.0\n.target sm_52\n.address_size 64\n",
        ),
        ("zeros", &[0; 64]),
        ("a comment alone", b"// nothing\n"),
        ("an ELF magic alone", b"\x7fELF"),
        ("C", b"__global__ void k() {}"),
    ];
    for (label, image) in cases {
        c.is(200, label, load(image));
    }
}

#[test]
fn accepted() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let empty = ".visible .entry k() { ret; }";
    // A PTX version accepts the targets that existed when it was released; `.address_size` came with 2.3.
    for (version, target) in [("1.0", "sm_10"), ("1.4", "sm_13"), ("2.2", "sm_20")] {
        let text = format!(".version {version}\n.target {target}\n{empty}\n");
        c.is(0, &format!(".version {version}"), load(text.as_bytes()));
    }
    for (version, target) in [
        ("2.3", "sm_20"),
        ("3.2", "sm_30"),
        ("4.3", "sm_52"),
        ("5.0", "sm_52"),
        ("6.0", "sm_52"),
        ("6.5", "sm_52"),
        ("7.0", "sm_52"),
        ("7.8", "sm_52"),
        ("8.0", "sm_52"),
        ("8.5", "sm_52"),
        ("9.0", "sm_52"),
    ] {
        // The CUDA version of the first drivers that accept this PTX version.
        let least = match version {
            "7.8" => 11080,
            "8.0" => 12000,
            "8.5" => 12050,
            "9.0" => 13000,
            _ => 0,
        };
        if driver_version() < least {
            needs(&format!("a driver of CUDA {}.{}", least / 1000, least % 1000 / 10));
            continue;
        }
        let text = module(version, target, empty);
        c.is(0, &format!(".version {version}"), load(text.as_bytes()));
    }
    for target in [
        "sm_20",
        "sm_30",
        "sm_52",
        "sm_60",
        "sm_70",
        "sm_75",
        "sm_80",
        "compute_52",
    ] {
        c.is(0, target, load(module("7.0", target, empty).as_bytes()));
    }
    let cases = [
        ("CRLF", module("7.0", "sm_52", empty).replace('\n', "\r\n")),
        (
            "a comment before the head",
            format!("// first\n/* and\nsecond */\n{}", module("7.0", "sm_52", empty)),
        ),
        (
            "blank lines before the head",
            format!("\n\n  \t\n{}", module("7.0", "sm_52", empty)),
        ),
        ("no address size", format!(".version 7.0\n.target sm_52\n{empty}\n")),
        ("no ret", module("7.0", "sm_52", ".visible .entry k() { }")),
        ("no entry", module("7.0", "sm_52", ".visible .global .u32 x;")),
        (
            "an undefined extern variable",
            module("7.0", "sm_52", &format!(".extern .global .u32 missing;\n{empty}")),
        ),
        (
            "an undefined extern function that is not called",
            module("7.0", "sm_52", &format!(".extern .func missing();\n{empty}")),
        ),
        ("60 KiB of shared memory", kernel(".shared .align 4 .b8 s[61440];")),
    ];
    for (label, text) in cases {
        c.is(0, label, load(text.as_bytes()));
    }
}

#[test]
fn targets_and_versions() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let empty = ".visible .entry k() { ret; }";
    // Versions from before the target or `.address_size` existed.
    for (version, target) in [
        ("3.2", "sm_52"),
        ("4.0", "sm_52"),
        ("4.2", "sm_60"),
        ("5.0", "sm_70"),
        ("6.0", "sm_75"),
        ("6.5", "sm_80"),
        ("7.7", "sm_90"),
    ] {
        let text = module(version, target, empty);
        c.is(218, &format!("{version} {target}"), load(text.as_bytes()));
    }
    let early = module("2.2", "sm_20", empty);
    c.is(218, "an address size before 2.3", load(early.as_bytes()));
    // Letters after a known number are ignored; an unknown number is an error.
    for (target, code) in [
        ("sm_53x", 0),
        ("sm_52abc", 0),
        ("compute_53x", 0),
        ("sm_51b", 218),
        ("sm_54", 218),
        ("sm_1", 218),
        ("sm_", 218),
        ("SM_52", 218),
        ("sm_52, banana", 218),
    ] {
        c.is(code, target, load(module("7.0", target, empty).as_bytes()));
    }
}

#[test]
fn versions_that_do_not_exist() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    for version in ["6.99", "8.9", "99.0"] {
        c.is(
            222,
            &format!(".version {version}"),
            load(module(version, "sm_52", ".visible .entry k() { ret; }").as_bytes()),
        );
    }
    // From CUDA 13.0 on, the newest PTX version has the minor version of the driver.
    if has_version(13000) {
        let version = format!("9.{}", (driver_version() - 13000) / 10 + 1);
        let text = module(&version, "sm_52", ".visible .entry k() { ret; }");
        c.is(222, &format!(".version {version}"), load(text.as_bytes()));
    }
}

#[test]
fn errors_in_the_text() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let entry = ".visible .entry k() { ret; }";
    let mut cases = vec![
        ("an undeclared register", kernel("mov.u32 %r1, 0;")),
        (
            "an unknown instruction",
            kernel(".reg .u32 %r<2>;\nfrobnicate.u32 %r1, %r0;"),
        ),
        (
            "an unknown modifier",
            kernel(".reg .u32 %r<2>;\nadd.sideways.u32 %r1, %r0, 1;"),
        ),
        ("a missing operand", kernel(".reg .u32 %r<2>;\nadd.u32 %r1, %r0;")),
        ("a missing semicolon", kernel(".reg .u32 %r<2>;\nadd.u32 %r1, %r0, 1")),
        (
            "a type that does not fit the register",
            kernel(".reg .f32 %f<2>;\n.reg .u32 %r<2>;\nadd.u32 %r1, %f0, 1;"),
        ),
        (
            "a width that does not fit the register",
            kernel(".reg .u32 %r<2>;\n.reg .u64 %d<2>;\nadd.u32 %r1, %d0, 1;"),
        ),
        ("an undefined label", kernel("bra nowhere;")),
        ("a duplicate label", kernel("here:\nhere:")),
        ("a duplicate register", kernel(".reg .u32 %x;\n.reg .u32 %x;")),
        (
            "an undefined parameter",
            kernel(".reg .u32 %r<2>;\nld.param.u32 %r1, [nothing];"),
        ),
        (
            "a brace that is not closed",
            module("7.0", "sm_52", ".visible .entry k() { ret;"),
        ),
        (
            "a duplicate kernel",
            module("7.0", "sm_52", &format!("{entry}\n{entry}")),
        ),
        (
            "a call of an undefined function",
            module(
                "7.0",
                "sm_52",
                ".extern .func f();\n.visible .entry k() { call f; ret; }",
            ),
        ),
        ("an unknown target", module("7.0", "banana", entry)),
        (
            "no target",
            ".version 7.0\n.address_size 64\n.visible .entry k() { ret; }".to_owned(),
        ),
        (
            "32-bit addresses",
            format!(".version 7.0\n.target sm_52\n.address_size 32\n{entry}\n"),
        ),
        ("`debug` without debug data", module("7.0", "sm_52, debug", entry)),
        (
            "a byte that is not ASCII, in a comment",
            module("7.0", "sm_52", &format!("// caf\u{e9}\n{entry}")),
        ),
        (
            "an instruction newer than the target",
            kernel(".reg .u32 %r<3>;\nredux.sync.add.u32 %r1, %r0, 0xffffffff;"),
        ),
        (
            "an instruction newer than the version",
            module(
                "1.4",
                "sm_52",
                ".visible .entry k() { .reg .u32 %r<3>; bar.warp.sync 0xffffffff; ret; }",
            ),
        ),
        (
            "a store to a parameter",
            module(
                "7.0",
                "sm_52",
                ".visible .entry k(.param .u32 p) { .reg .u32 %r<2>; st.param.u32 [p], %r0; ret; }",
            ),
        ),
    ];
    if architecture() < 100 {
        cases.push(("a target above the device", module("8.7", "sm_100", entry)));
    }
    for (label, text) in cases {
        c.is(218, label, load(text.as_bytes()));
    }
}

struct Logged {
    code: u32,
    error: String,
    error_size: usize,
    info: String,
}

/// Loads text with log buffers of the given size.
fn load_logged(text: &str, bytes: usize) -> Logged {
    let mut image = text.as_bytes().to_vec();
    image.push(0);
    let (mut errors, mut infos) = (vec![0x7f_u8; bytes], vec![0x7f_u8; bytes]);
    let mut keys = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_LOG_VERBOSE,
    ];
    let mut values: [*mut c_void; 5] = [
        errors.as_mut_ptr().cast(),
        ptr::without_provenance_mut(bytes),
        infos.as_mut_ptr().cast(),
        ptr::without_provenance_mut(bytes),
        ptr::without_provenance_mut(1),
    ];
    let mut module = ptr::null_mut();
    // SAFETY: the image is NUL-terminated; there are five keys and values, and the buffers have the stated sizes.
    let code = unsafe {
        cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            5,
            keys.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    let text = |buffer: &[u8]| {
        let end = buffer.iter().position(|b| *b == 0).unwrap_or(buffer.len());
        String::from_utf8_lossy(&buffer[..end]).into_owned()
    };
    // The driver writes the sizes back as 32-bit lengths.
    let size = values[1].addr() & 0xffff_ffff;
    Logged {
        code: code.0,
        error: text(&errors),
        error_size: size,
        info: text(&infos),
    }
}

#[test]
fn the_verbose_log() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    // The driver's cache keeps compiled texts without their logs, so the text must be new.
    let since = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    let name = format!("k{}_{}", std::process::id(), since.as_nanos());
    let text = module(
        "7.0",
        "sm_52",
        &format!(
            ".global .b32 g[3];\n.shared .b8 s[100];\n.visible .entry {name}()\n{{\n.reg .b32 %r<4>;\nmov.u32 %r1, s;\n\
             ld.shared.u32 %r2, [%r1];\nbar.sync 1;\nst.global.u32 [g], %r2;\nret;\n}}"
        ),
    );
    let log = load_logged(&text, 4096);
    c.is(0, "the load", log.code);
    let lines: Vec<&str> = log.info.lines().collect();
    let expected = [
        "ptxas info    : 12 bytes gmem".to_owned(),
        format!("ptxas info    : Compiling entry function '{name}' for 'sm_"),
        format!("ptxas info    : Function properties for {name}"),
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads".to_owned(),
        "ptxas info    : Used ".to_owned(),
        "ptxas info    : Compile time = ".to_owned(),
    ];
    c.that(
        lines.len() == expected.len() && lines.iter().zip(&expected).all(|(line, start)| line.starts_with(start)),
        || log.info.clone(),
    );
    c.that(log.info.contains("registers, used 2 barriers, 100 bytes smem"), || {
        log.info.clone()
    });
}

#[test]
fn the_error_log() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let text = module(
        "7.0",
        "sm_52",
        ".visible .entry k()\n{\nmov.u32 %r1, 0;\nmov.u32 %r2, 0;\nret;\n}",
    );
    let log = load_logged(&text, 4096);
    c.is(218, "two undeclared registers", log.code);
    for (line, register) in [(6, "%r1"), (7, "%r2")] {
        let expected = format!("line {line}; error   : ");
        c.that(
            log.error.lines().any(|l| {
                l.starts_with("ptxas application ptx input, ") && l.contains(&expected) && l.contains(register)
            }),
            || format!("no line with `{expected}` and {register} in:\n{}", log.error),
        );
    }
    c.that(
        log.error.contains("ptxas fatal   : Ptx assembly aborted due to errors"),
        || log.error.clone(),
    );
    c.that(log.error_size == log.error.len(), || {
        format!("size {} of a log of {}", log.error_size, log.error.len())
    });

    // A log that does not fit is truncated and NUL-terminated; the size is then the buffer's.
    let cut = load_logged(&text, 32);
    c.is(218, "with a small buffer", cut.code);
    c.that(cut.error_size == 32, || format!("size {}", cut.error_size));
    c.that(
        !cut.error.is_empty() && cut.error.len() < 32 && log.error.starts_with(&cut.error),
        || cut.error.clone(),
    );

    let valid = load_logged(&module("7.0", "sm_52", ".visible .entry k() { ret; }"), 4096);
    c.is(0, "a valid module", valid.code);
    c.that(valid.error.is_empty(), || valid.error.clone());
}

/// Loads a valid module with one option.
fn with_option(option: u32, value: usize) -> u32 {
    let image = ptx("vector_add.ptx");
    let mut keys = [CUjit_option(option)];
    let mut values: [*mut c_void; 1] = [ptr::without_provenance_mut(value)];
    let mut module = ptr::null_mut();
    // SAFETY: the image is NUL-terminated; there is one key and one value.
    let code = unsafe {
        cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            1,
            keys.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    code.0
}

#[test]
fn options() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    for option in (20..=24).chain([26, 28, 29]) {
        c.is(0, &format!("option {option} with value 0"), with_option(option, 0));
    }
    for option in [0, 3, 4, 5, 6, 17, 18, 19, 25, 27, 9999] {
        c.is(1, &format!("option {option} with value 0"), with_option(option, 0));
    }
    let level = CUjit_option::CU_JIT_OPTIMIZATION_LEVEL.0;
    for value in [0, 4, 5] {
        c.is(0, &format!("optimisation level {value}"), with_option(level, value));
    }
    c.is(
        0,
        "line info",
        with_option(CUjit_option::CU_JIT_GENERATE_LINE_INFO.0, 1),
    );
    let target = CUjit_option::CU_JIT_TARGET.0;
    for (value, code) in [
        (120, 300),
        (52, 300),
        (70, 300),
        (121, 300),
        // Numbers of old headers: 9 is sm_52, and 8 is sm_50, which is older than the text's `.target`.
        (0, 200),
        (1, 200),
        (7, 200),
        (8, 218),
        (9, 300),
        // Values that are not targets.
        (10, 1),
        (71, 1),
        (91, 1),
        (999, 1),
    ] {
        c.is(code, &format!("target {value}"), with_option(target, value));
    }
    let cache = CUjit_option::CU_JIT_CACHE_MODE.0;
    for (value, code) in [(0, 0), (2, 0), (3, 1)] {
        c.is(code, &format!("cache mode {value}"), with_option(cache, value));
    }
    c.is(218, "optimisation level -1", with_option(level, 0xffff_ffff));
    // The text's `.target` is sm_52.
    c.is(218, "a target older than the text", with_option(target, 50));
    let blocks = CUjit_option::CU_JIT_MIN_CTA_PER_SM.0;
    for (value, code) in [(0, 0), (1, 0), (0x7fff_ffff, 0), (0x8000_0000, 218), (0xffff_ffff, 218)] {
        c.is(
            code,
            &format!("blocks of a multiprocessor {value:#x}"),
            with_option(blocks, value),
        );
    }
    let variables = CUjit_option::CU_JIT_REFERENCED_VARIABLE_NAMES.0;
    c.is(0, "names without a count", with_option(variables, 16));

    let image = ptx("vector_add.ptx");
    let mut module = ptr::null_mut();
    let none: c_uint = 0;
    is!(
        c,
        0,
        cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            none,
            ptr::null_mut(),
            ptr::null_mut()
        )
    );
    is!(
        c,
        1,
        cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            1,
            ptr::null_mut(),
            ptr::null_mut()
        )
    );
    is!(
        c,
        1,
        cuModuleLoadDataEx(&raw mut module, ptr::null(), 0, ptr::null_mut(), ptr::null_mut())
    );
}

#[test]
fn an_option_limits_registers() {
    let gpu = Gpu::new();
    let text = ptx("int_arith.ptx");
    let of = |most: Option<usize>| {
        let mut names = [CUjit_option::CU_JIT_MAX_REGISTERS];
        let mut values = [ptr::without_provenance_mut(most.unwrap_or(0))];
        let mut module = ptr::null_mut();
        ok!(cuModuleLoadDataEx(
            &raw mut module,
            text.as_ptr().cast(),
            u32::from(most.is_some()),
            names.as_mut_ptr(),
            values.as_mut_ptr()
        ));
        let mut registers = 0;
        ok!(cuFuncGetAttribute(
            &raw mut registers,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS,
            gpu.function(module, "int_ops_u64")
        ));
        ok!(cuModuleUnload(module));
        registers
    };
    assert!(of(None) >= of(Some(32)));
    assert!(of(Some(32)) <= 32);
}
