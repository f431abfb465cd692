//! Tests of the options, logs and errors of the compiler as objects.

use std::num::{NonZeroU16, NonZeroU32};

use cuda_driver::jit::{HostSymbol, JitTarget, LtoOptions};
use cuda_driver::sys::{CUjit_cacheMode, CUjit_target, CUresult};
use cuda_driver::{JitOptions, Module};

use crate::common::{architecture, context, driver_version, is_software, needs, ptx_path};

const HEAD: &str = ".version 7.0\n.target sm_52\n.address_size 64\n";

fn number(value: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(value)
}

#[test]
fn options_of_every_driver() {
    let context = context();
    let text = std::fs::read_to_string(ptx_path("saxpy.ptx")).expect("PTX");
    let none = JitOptions::default();
    let mut all = vec![
        JitOptions {
            max_registers: number(32),
            ..none.clone()
        },
        JitOptions {
            threads_per_block: number(128),
            ..none.clone()
        },
        JitOptions {
            target: Some(JitTarget::Context),
            ..none.clone()
        },
        JitOptions {
            line_info: true,
            verbose: true,
            ..none.clone()
        },
        JitOptions {
            debug_info: true,
            ..none.clone()
        },
        JitOptions {
            log_bytes: 0,
            ..none.clone()
        },
    ];
    for level in 0..=4 {
        all.push(JitOptions {
            optimization_level: Some(level),
            ..none.clone()
        });
    }
    for mode in [
        CUjit_cacheMode::CU_JIT_CACHE_OPTION_NONE,
        CUjit_cacheMode::CU_JIT_CACHE_OPTION_CG,
        CUjit_cacheMode::CU_JIT_CACHE_OPTION_CA,
    ] {
        all.push(JitOptions {
            cache_mode: Some(mode),
            ..none.clone()
        });
    }
    for options in all {
        let module = Module::from_ptx_with(&context, &text, &options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        module.function("saxpy").expect("a kernel");
        assert!(module.compile_ms() >= 0.0);
    }
}

/// Returns the name of each newer option, the CUDA version of the first driver that has it, and options that set it.
fn newer_options() -> [(&'static str, i32, JitOptions); 6] {
    let none = JitOptions::default();
    [
        (
            "position_independent_code",
            12000,
            JitOptions {
                position_independent_code: true,
                ..none.clone()
            },
        ),
        (
            "min_blocks_per_multiprocessor",
            12030,
            JitOptions {
                min_blocks_per_multiprocessor: number(2),
                ..none.clone()
            },
        ),
        (
            "max_threads_per_block",
            12040,
            JitOptions {
                max_threads_per_block: NonZeroU16::new(256),
                ..none.clone()
            },
        ),
        (
            "override_directives",
            12040,
            JitOptions {
                override_directives: true,
                ..none.clone()
            },
        ),
        (
            "split_compile",
            13000,
            JitOptions {
                split_compile: Some(1),
                ..none.clone()
            },
        ),
        (
            "loader_threads",
            13010,
            JitOptions {
                loader_threads: Some(2),
                ..none
            },
        ),
    ]
}

#[test]
fn options_of_newer_drivers() {
    let context = context();
    let text = format!("{HEAD}.visible .entry k() {{ ret; }}");
    for (name, since, options) in newer_options() {
        let loaded = Module::from_ptx_with(&context, &text, &options);
        if driver_version() >= since {
            loaded.unwrap_or_else(|e| panic!("{name}: {e}"));
            continue;
        }
        let error = loaded.expect_err(name);
        assert_eq!(error.error().code(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
        let message = error.to_string();
        let needed = format!(
            "`JitOptions::{name}` needs CUDA {}.{}, ",
            since / 1000,
            since % 1000 / 10
        );
        assert!(message.contains(&needed), "{message}");
    }
}

#[test]
fn a_target_of_another_architecture() {
    let context = context();
    if architecture() == 75 {
        return needs("a device that is not of sm_75");
    }
    let options = JitOptions {
        target: Some(JitTarget::Compute(CUjit_target::CU_TARGET_COMPUTE_75)),
        ..JitOptions::default()
    };
    let text = format!("{HEAD}.visible .entry k() {{ ret; }}");
    let error = Module::from_ptx_with(&context, &text, &options).expect_err("code for another device");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_SOURCE, "{error}");
}

#[test]
fn logs_of_any_size() {
    let context = context();
    let body: String = (0..40).map(|i| format!("mov.u32 %undeclared{i}, 0;\n")).collect();
    let text = format!("{HEAD}.visible .entry k() {{\n{body}ret;\n}}");
    let load = |log_bytes| {
        let options = JitOptions {
            log_bytes,
            ..JitOptions::default()
        };
        Module::from_ptx_with(&context, &text, &options).expect_err("undeclared registers")
    };
    let whole = load(JitOptions::default().log_bytes);
    assert_eq!(whole.error().code(), CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(whole.error_log().contains("%undeclared0"), "{whole}");
    assert!(!whole.error_log().contains("truncated"), "{whole}");
    let cut = load(48);
    let (start, note) = cut.error_log().split_once('\n').expect("two lines");
    assert!(whole.error_log().starts_with(start), "{cut}");
    assert_eq!(note, "(truncated: set a larger `JitOptions::log_bytes`)");
    assert!(load(0).error_log().is_empty());
    // The messages survive the conversion to `Error`.
    let converted = (|| -> cuda_driver::Result<()> { Err(load(4096))? })().expect_err("an error");
    assert!(converted.to_string().contains("%undeclared0"), "{converted}");
}

#[test]
fn files_with_options() {
    let context = context();
    let options = JitOptions {
        optimization_level: Some(1),
        ..JitOptions::default()
    };
    let path = ptx_path("saxpy.ptx");
    let module = Module::load_ptx_with(&context, &path, &options).expect("a module");
    module.function("saxpy").expect("a kernel");
    // SAFETY: the file is PTX.
    let module = unsafe { Module::load_with(&context, &path, &options) }.expect("a module");
    module.function("saxpy").expect("a kernel");
    let image = std::fs::read(&path).expect("PTX");
    // SAFETY: the image is PTX.
    let module = unsafe { Module::from_image_with(&context, &image, &options) }.expect("a module");
    module.function("saxpy").expect("a kernel");
    let error = Module::load_ptx_with(&context, "/no/such/file", &options).expect_err("no file");
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_FILE_NOT_FOUND);
}

#[test]
fn symbols_and_link_time_options_are_passed_on() {
    let context = context();
    let text = format!("{HEAD}.visible .entry k() {{ ret; }}");
    let lto = LtoOptions {
        ftz: Some(true),
        prec_div: Some(false),
        prec_sqrt: Some(false),
        fma: Some(true),
        ..LtoOptions::default()
    };
    let options = JitOptions {
        lto: Some(lto),
        ..JitOptions::default()
    };
    // These options apply to LTO-IR only; the driver accepts them for PTX.
    Module::from_ptx_with(&context, &text, &options).expect("a module");
    let mut word = 7_u32;
    // SAFETY: no code declares the symbol.
    let symbol = unsafe { HostSymbol::new(c"word".to_owned(), (&raw mut word).cast()) };
    let options = JitOptions {
        global_symbols: vec![symbol],
        ..JitOptions::default()
    };
    // Driver 580 accepts symbols that the module does not have, and the software driver accepts none.
    let loaded = Module::from_ptx_with(&context, &text, &options).map(drop);
    let loaded = loaded.map_err(|error| error.error().code());
    let refused = loaded == Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    assert!(refused || loaded == Ok(()) && !is_software(), "{loaded:?}");
}
