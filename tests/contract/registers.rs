//! Tests of a kernel's number of registers, and of the largest block, the occupancy and the launches that follow from
//! it.

use std::ffi::{CString, c_void};
use std::fmt::Write;
use std::fs;
use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, architecture, ptx_path};
use crate::{call, is, ok};

/// Block sizes to query.
const BLOCKS: [i32; 8] = [32, 64, 128, 256, 288, 512, 768, 1024];

fn attribute(kernel: CUfunction, which: CUfunction_attribute) -> i32 {
    let mut value = -1;
    ok!(cuFuncGetAttribute(&raw mut value, which, kernel));
    value
}

fn registers(kernel: CUfunction) -> i32 {
    attribute(kernel, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
}

fn most_threads(kernel: CUfunction) -> i32 {
    attribute(kernel, CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
}

fn occupancy(kernel: CUfunction, block: i32) -> i32 {
    let mut blocks = -1;
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &raw mut blocks,
        kernel,
        block,
        0
    ));
    blocks
}

/// Returns the result of a launch of one block without arguments.
fn launch(kernel: CUfunction, block: i32, cooperative: bool) -> u32 {
    let block = block.cast_unsigned();
    let none = null_mut();
    let result = if cooperative {
        call!(cuLaunchCooperativeKernel(
            kernel,
            1,
            1,
            1,
            block,
            1,
            1,
            0,
            none,
            null_mut()
        ))
    } else {
        call!(cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            block,
            1,
            1,
            0,
            none,
            null_mut(),
            null_mut()
        ))
    };
    ok!(cuCtxSynchronize());
    result.0
}

/// Returns the PTX of a kernel `k` that has these directives, and `count` 64-bit values that are live at once.
fn with_live_values(count: u32, directives: &str) -> String {
    let mut text = format!(
        ".version 6.0\n.target sm_52\n.address_size 64\n.global .align 8 .u64 slot;\n\
         .visible .entry k() {directives} {{\n.reg .b64 %r<{count}>;\n"
    );
    for n in 0..count {
        let _ = writeln!(text, "ld.volatile.global.u64 %r{n}, [slot];");
    }
    for n in 0..count {
        let _ = writeln!(text, "st.volatile.global.u64 [slot], %r{n};");
    }
    text + "ret;\n}\n"
}

/// Returns the names and handles of the kernels in all PTX files that this architecture can run.
fn kernels(gpu: &Gpu) -> Vec<(String, CUfunction)> {
    let folders = ["vector_add.ptx", "elect.ptx"].map(|file| {
        let path = ptx_path(file);
        path.parent().expect("a folder").to_owned()
    });
    let mut files: Vec<String> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter(|name| name.ends_with(".ptx"))
        .collect();
    files.sort_unstable();
    files.dedup();
    let architecture = architecture();
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(ptx_path(&file)).expect("PTX");
        let target = text.split(".target sm_").nth(1).unwrap_or_default();
        let digits: String = target.chars().take_while(char::is_ascii_digit).collect();
        if digits.parse::<i32>().is_ok_and(|sm| sm > architecture) {
            continue;
        }
        let module = gpu.text(&text);
        for entry in text.split(".entry ").skip(1) {
            let name = entry.split(['(', '\n', ' ']).next().unwrap_or_default();
            found.push((format!("{file}: {name}"), gpu.function(module, name)));
        }
    }
    found
}

#[test]
fn the_largest_block_is_resident() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernels = kernels(&gpu);
    assert!(kernels.len() > 100, "only {} kernels", kernels.len());
    for (name, kernel) in kernels {
        let (most, registers) = (most_threads(kernel), registers(kernel));
        c.that((1..=255).contains(&registers), || {
            format!("{name} has {registers} registers")
        });
        c.that(occupancy(kernel, most) >= 1, || {
            format!("{name}: no block of {most} threads fits, with {registers} registers")
        });
        // With any number of registers, a block of 256 threads fits. A smaller limit comes from a directive, which
        // occupancy ignores.
        for block in BLOCKS {
            let fits = occupancy(kernel, block) >= 1;
            c.that(fits == (block <= most) || most < 256, || {
                format!("{name}: blocks of {block} fit: {fits}, at most {most} threads")
            });
        }
    }
}

/// Compares NUM_REGS with values recorded on an H200. The software driver's estimates may differ by about half, but not
/// by so much that blocks of 1,024 threads no longer fit.
#[test]
fn register_counts_are_close_to_a_compilers() {
    const RECORDED: &[(&str, &str, i32)] = &[
        ("atomics.ptx", "histogram", 12),
        ("calls.ptx", "call_direct", 10),
        ("calls.ptx", "call_recursive", 27),
        ("float_arith.ptx", "f64_binary", 32),
        ("heap.ptx", "linked_list", 24),
        ("int_arith.ptx", "int_ops_u64", 28),
        ("matmul.ptx", "matmul_f32", 32),
        ("matmul.ptx", "matmul_f64", 32),
        ("memory.ptx", "shared_large", 48),
        ("order.ptx", "last_block", 29),
        ("print.ptx", "print_threads", 24),
        ("reduce.ptx", "reduce_dynamic", 10),
        ("reduce.ptx", "reduce_max_s32", 10),
        ("reduce.ptx", "reduce_sum_f32", 10),
        ("reduce.ptx", "reduce_sum_u64", 12),
        ("registers.ptx", "registers", 30),
        ("saxpy.ptx", "daxpy", 12),
        ("typical.ptx", "blur", 26),
        ("typical.ptx", "bodies", 32),
        ("typical.ptx", "grey", 10),
        ("typical.ptx", "hash", 11),
        ("typical.ptx", "histogram", 10),
        ("typical.ptx", "scale_four", 18),
        ("typical.ptx", "scan", 17),
        ("typical.ptx", "softmax", 25),
        ("typical.ptx", "stencil", 18),
        ("typical.ptx", "transpose", 14),
        ("typical.ptx", "transpose_rows", 22),
        ("vector_add.ptx", "vector_add", 12),
        ("warp.ptx", "shuffles", 32),
    ];
    let gpu = Gpu::new();
    let mut c = Codes::new();
    for &(file, name, recorded) in RECORDED {
        let kernel = gpu.kernel(file, name);
        let (found, most) = (registers(kernel), most_threads(kernel));
        c.that((recorded / 2 - 2..=recorded * 3 / 2 + 4).contains(&found), || {
            format!("{name} has {found} registers, {recorded} on an H200")
        });
        c.that(most == 1024, || {
            format!("{name} has blocks of at most {most} threads, expected 1024")
        });
    }
}

/// A kernel without directives that has 140 live 64-bit values is limited to blocks of 256 threads.
#[test]
fn registers_limit_blocks() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(&with_live_values(140, ""));
    let kernel = gpu.function(module, "k");
    c.that((240..=255).contains(&registers(kernel)), || {
        format!("{} registers, expected 240 to 255", registers(kernel))
    });
    c.that(most_threads(kernel) == 256, || {
        format!("at most {} threads, expected 256", most_threads(kernel))
    });
    for (block, blocks, plain, cooperative) in [
        (32, 8, 0, 0),
        (64, 4, 0, 0),
        (128, 2, 0, 0),
        (192, 1, 0, 0),
        (256, 1, 0, 0),
        (288, 0, 701, 720),
        (512, 0, 701, 720),
        (1024, 0, 701, 720),
        (1025, 0, 1, 1),
    ] {
        let found = occupancy(kernel, block);
        c.that(found == blocks, || {
            format!("{found} blocks of {block} threads, expected {blocks}")
        });
        c.is(plain, &format!("a block of {block}"), launch(kernel, block, false));
        let call = format!("a cooperative block of {block}");
        c.is(cooperative, &call, launch(kernel, block, true));
    }
    let (mut grid, mut block) = (-1, -1);
    is!(
        c,
        0,
        cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, kernel, None, 0, 0)
    );
    c.that(block == 256, || {
        format!("the suggested block has {block} threads, expected 256")
    });
}

#[test]
fn directives_limit_registers() {
    // The directives, then MAX_THREADS_PER_BLOCK and NUM_REGS, and the results of launches of 128, 512 and 1024
    // threads.
    const CASES: &[(&str, i32, i32, [u32; 3])] = &[
        (".maxntid 1024", 1024, 64, [0, 0, 0]),
        (".maxntid 896", 896, 72, [0, 0, 1]),
        (".maxntid 768", 768, 80, [0, 0, 1]),
        (".maxntid 640", 640, 96, [0, 0, 1]),
        (".maxntid 2048", 1024, 32, [0, 0, 0]),
        (".maxntid 544\n.minnctapersm 1", 544, 96, [0, 0, 1]),
        (".maxntid 608\n.minnctapersm 2", 608, 48, [0, 0, 1]),
        (".maxntid 128\n.minnctapersm 4", 128, 128, [0, 1, 1]),
        (".maxntid 128\n.minnctapersm 8", 128, 64, [0, 1, 1]),
        (".maxntid 1024\n.minnctapersm 2", 1024, 32, [0, 0, 0]),
        (".reqntid 1024", 1024, 64, [1, 1, 0]),
        (".reqntid 1024\n.maxnreg 100", 512, 100, [1, 1, 701]),
        (".maxntid 1024\n.maxnreg 100", 512, 100, [0, 0, 701]),
        (".maxntid 1024\n.maxnreg 32", 1024, 32, [0, 0, 0]),
        (".maxnreg 1", 1024, 24, [0, 0, 0]),
        (".maxnreg 64", 1024, 64, [0, 0, 0]),
        (".maxnreg 68", 896, 68, [0, 0, 701]),
        (".maxnreg 72", 896, 72, [0, 0, 701]),
        (".maxnreg 76", 768, 76, [0, 0, 701]),
        (".maxnreg 96", 640, 96, [0, 0, 701]),
        (".maxnreg 128", 512, 128, [0, 0, 701]),
        (".maxnreg 136", 384, 136, [0, 701, 701]),
        (".maxnreg 176", 256, 176, [0, 701, 701]),
    ];
    let gpu = Gpu::new();
    let mut c = Codes::new();
    for &(directives, most, expected, launches) in CASES {
        let module = gpu.text(&with_live_values(140, directives));
        let kernel = gpu.function(module, "k");
        let found = (most_threads(kernel), registers(kernel));
        c.that(found == (most, expected), || {
            format!("{directives}: {found:?}, expected {most} threads and {expected} registers")
        });
        for (block, expected) in [128, 512, 1024].into_iter().zip(launches) {
            let call = format!("{directives}: a block of {block}");
            c.is(expected, &call, launch(kernel, block, false));
        }
    }
}

/// Options of the compiler apply to kernels without `.maxnreg` and `.maxntid`.
#[test]
fn options_limit_registers() {
    const MOST: CUjit_option = CUjit_option::CU_JIT_MAX_REGISTERS;
    const THREADS: CUjit_option = CUjit_option::CU_JIT_THREADS_PER_BLOCK;
    let mut c = Codes::new();
    let _gpu = Gpu::new();
    for (option, value, directives, most, expected) in [
        (MOST, 1_usize, "", 1024, 24),
        (MOST, 32, "", 1024, 32),
        (MOST, 100, "", 512, 100),
        (MOST, 100, ".minnctapersm 4", 512, 100),
        (MOST, 100, ".maxnreg 64", 1024, 64),
        (MOST, 32, ".maxnreg 64", 1024, 64),
        (MOST, 32, ".maxntid 1024", 1024, 64),
        (MOST, 32, ".maxntid 128\n.minnctapersm 4", 128, 128),
        (THREADS, 512, "", 512, 128),
        (THREADS, 544, "", 640, 96),
        (THREADS, 768, "", 768, 80),
        (THREADS, 1024, "", 1024, 64),
        (THREADS, 1024, ".maxnreg 100", 512, 100),
    ] {
        let text = CString::new(with_live_values(140, directives)).expect("PTX");
        let mut module = null_mut();
        ok!(cuModuleLoadDataEx(
            &raw mut module,
            text.as_ptr().cast(),
            1,
            [option].as_mut_ptr(),
            [std::ptr::without_provenance_mut::<c_void>(value)].as_mut_ptr()
        ));
        let mut kernel = null_mut();
        ok!(cuModuleGetFunction(&raw mut kernel, module, c"k".as_ptr()));
        let found = (most_threads(kernel), registers(kernel));
        c.that(found == (most, expected), || {
            format!(
                "{directives:?} with option {} of {value}: {found:?}, expected {most} threads and {expected} registers",
                option.0
            )
        });
        ok!(cuModuleUnload(module));
    }
}

/// Links one PTX text with a register limit for the linker or for the input, and returns the number of registers of the
/// linked kernel.
fn linked(of_linker: Option<usize>, of_input: Option<usize>) -> i32 {
    let values = |limit: Option<usize>| limit.map(std::ptr::without_provenance_mut::<c_void>);
    let mut names = [CUjit_option::CU_JIT_MAX_REGISTERS];
    let (mut first, mut second) = (values(of_linker), values(of_input));
    let count = |limit: Option<usize>| u32::from(limit.is_some());
    let mut linker = null_mut();
    let slot = |value: &mut Option<*mut c_void>| value.as_mut().map_or(null_mut(), std::ptr::from_mut);
    ok!(cuLinkCreate(
        count(of_linker),
        names.as_mut_ptr(),
        slot(&mut first),
        &raw mut linker
    ));
    let text = CString::new(with_live_values(70, "")).expect("PTX");
    ok!(cuLinkAddData(
        linker,
        CUjitInputType::CU_JIT_INPUT_PTX,
        text.as_ptr().cast_mut().cast(),
        text.as_bytes_with_nul().len(),
        c"input".as_ptr(),
        count(of_input),
        names.as_mut_ptr(),
        slot(&mut second)
    ));
    let (mut image, mut size, mut module, mut kernel) = (null_mut(), 0, null_mut(), null_mut());
    ok!(cuLinkComplete(linker, &raw mut image, &raw mut size));
    ok!(cuModuleLoadData(&raw mut module, image));
    ok!(cuModuleGetFunction(&raw mut kernel, module, c"k".as_ptr()));
    let registers = registers(kernel);
    ok!(cuModuleUnload(module));
    ok!(cuLinkDestroy(linker));
    registers
}

/// The linker compiles PTX within its own limit, and within the limit of the input.
#[test]
fn the_linker_limits_registers() {
    let mut c = Codes::new();
    let _gpu = Gpu::new();
    let free = linked(None, None);
    c.that(free > 100, || format!("{free} registers without a limit"));
    for (of_linker, of_input) in [(Some(40), None), (None, Some(40))] {
        let found = linked(of_linker, of_input);
        c.that(found <= 40, || {
            format!("{found} registers with a limit of {of_linker:?} for the linker and {of_input:?} for the input")
        });
    }
}

/// A graph accepts a node whose block is too large for the kernel's registers, but cannot be instantiated then.
#[test]
fn registers_of_graph_nodes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(&with_live_values(140, ""));
    let kernel = gpu.function(module, "k");
    let mut stream = null_mut();
    ok!(cuStreamCreate(&raw mut stream, 0));
    for (block, expected) in [(256, 0), (512, 701)] {
        ok!(cuStreamBeginCapture(
            stream,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED
        ));
        is!(
            c,
            0,
            cuLaunchKernel(kernel, 1, 1, 1, block, 1, 1, 0, stream, null_mut(), null_mut())
        );
        let (mut graph, mut exec) = (null_mut(), null_mut());
        ok!(cuStreamEndCapture(stream, &raw mut graph));
        is!(c, expected, cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
        if expected == 0 {
            is!(c, 0, cuGraphLaunch(exec, stream));
            is!(c, 0, cuStreamSynchronize(stream));
            ok!(cuGraphExecDestroy(exec));
        }
        ok!(cuGraphDestroy(graph));
    }
    ok!(cuStreamDestroy(stream));
}
