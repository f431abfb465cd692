//! Tests of `printf` in kernels: the driver writes the output to the process's standard output when the host
//! synchronises.

use cuda_driver::sys::*;

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::{in_child, is_software};
use crate::{ok, test_path};

/// Copies a text to device memory, terminated by a NUL byte.
fn text(gpu: &Gpu, text: &str) -> CUdeviceptr {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    gpu.upload(&bytes)
}

#[test]
fn formats() {
    let written = in_child(&test_path!("formats"), &[], || {
        let gpu = Gpu::new();
        let kernel = gpu.kernel("print.ptx", "print_formats");
        let (word, counts) = (text(&gpu, "hello"), gpu.upload(&[-7_i32; 12]));
        let mut arguments = arguments![word, 0_u64, counts];
        gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments);
        let seen = gpu.read::<i32>(counts, 12);
        assert_eq!(seen, [0, 7, 7, 6, 10, 5, 32, 4, 3, 0, -1, -7]);
    });
    let long: Vec<String> = (1..=32).map(|i| i.to_string()).collect();
    let long = long.join(" ");
    let expected = [
        "plain text",
        "-5|42|4000000000|beef|BEEF|10|A|%|",
        "   42|42   |-0042|+42| 42|007|     007|",
        "-1234567890123|18446744073709551615|deadbeef0001|-77|-3|5000000000|",
        "1.500000|0.12|  -1.000|2.2       |1.234568e+04|1.000e-07|0.0001|1e+10|100000|1E-10|",
        "hello|   hello|hello   |he|abc|",
        "    42|42    |",
        &long,
        "0.333333 -inf nan -1",
        "0xff 010 0x1.8p+0",
        "no newline",
    ]
    .join("\n");
    if let Some(text) = written {
        assert!(text.contains(&expected), "not\n{expected}\nin\n{text}");
    }
}

#[test]
fn a_null_pointer() {
    let written = in_child(&test_path!("a_null_pointer"), &[], || {
        let gpu = Gpu::new();
        let kernel = gpu.kernel("print.ptx", "print_threads");
        gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![0_u64]);
        ok!(cuCtxSynchronize());
    });
    let Some(text) = written else { return };
    assert!(text.contains("block 0 thread   0 at (nil)\n"), "{text}");
}

#[test]
fn conversions_that_differ_from_c() {
    let written = in_child(&test_path!("conversions_that_differ_from_c"), &[], || {
        let gpu = Gpu::new();
        let kernel = gpu.kernel("print.ptx", "print_unusual");
        gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![0_u64, 0_i32]);
        ok!(cuCtxSynchronize());
    });
    let expected = [
        "[(null)] [  (null)]",
        "[1] [%zu]",
        "[3] [%jd]",
        "[5] [%td]",
        "[7] [%.*f]",
        "[%k] [8] [%n]",
        "% the end\n",
    ]
    .join("\n");
    let Some(text) = written else { return };
    assert!(text.contains(&expected), "not\n{expected}\nin\n{text}");
    // Driver 580 prints bytes of the format in place of the other three values.
    assert!(text.contains("[4464] [44] [ffff] ["), "{text}");
    if is_software() {
        assert!(text.contains("[4464] [44] [ffff] [ff] [65535] [120]\n"), "{text}");
    }
}

/// PTX of a kernel `k` that prints the numbers from 0 to `n` - 1, each on a line.
const COUNTER: &str = ".version 7.0
.target sm_52
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 format[4] = {37, 100, 10, 0};
.visible .entry k(.param .u32 n) {
    .local .align 8 .b8 values[8];
    .reg .b64 %f, %a, %v;
    .reg .b32 %i, %n, %r;
    .reg .pred %p;
    ld.param.u32 %n, [n];
    mov.u64 %v, values;
    cvta.local.u64 %a, %v;
    mov.u64 %f, format;
    cvta.global.u64 %f, %f;
    mov.u32 %i, 0;
AGAIN:
    st.local.u32 [%v], %i;
    {
        .param .b64 f;
        .param .b64 a;
        .param .b32 r;
        st.param.b64 [f], %f;
        st.param.b64 [a], %a;
        call.uni (r), vprintf, (f, a);
        ld.param.b32 %r, [r];
    }
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra AGAIN;
    ret;
}
";

#[test]
fn more_lines_than_a_small_buffer_holds() {
    let written = in_child(&test_path!("more_lines_than_a_small_buffer_holds"), &[], || {
        let gpu = Gpu::new();
        ok!(cuCtxSetLimit(CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE, 512 << 10));
        let module = gpu.text(COUNTER);
        let kernel = gpu.function(module, "k");
        for count in [1000_u32, 20_000] {
            println!("lines of {count}:");
            gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![count]);
            ok!(cuCtxSynchronize());
        }
        println!("the end");
    });
    let Some(text) = written else { return };
    let between = |from: &str, to: &str| -> Vec<u32> {
        let part = text.split(from).nth(1).and_then(|rest| rest.split(to).next());
        let lines = part.unwrap_or_default().lines().filter(|line| !line.is_empty());
        lines.map(|line| line.parse().expect("a whole line")).collect()
    };
    assert_eq!(between("lines of 1000:", "lines of 20000:"), Vec::from_iter(0..1000));
    // Of 20,000 lines, a GPU loses some and writes some out of order, but the last line is never lost and stays last.
    let mut seen = between("lines of 20000:", "the end");
    assert_eq!(seen.last(), Some(&19_999));
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 1000, "{} lines", seen.len());
}

#[test]
fn lines_of_every_thread() {
    let written = in_child(&test_path!("lines_of_every_thread"), &[], || {
        let gpu = Gpu::new();
        let kernel = gpu.kernel("print.ptx", "print_threads");
        let mut arguments = arguments![0xabc000_u64];
        gpu.launch(kernel, [2, 1, 1], [40, 1, 1], 0, &mut arguments);
        let kernel = gpu.kernel("print.ptx", "print_branches");
        gpu.launch(kernel, [1, 1, 1], [10, 1, 1], 0, &mut arguments![]);
        // The kernels' output is written before the synchronisation returns.
        ok!(cuCtxSynchronize());
        println!("the host goes on");
    });
    let Some(text) = written else { return };
    let mut seen: Vec<&str> = text
        .lines()
        .filter_map(|line| line.find("block ").map(|at| &line[at..]))
        .collect();
    let mut expected: Vec<String> = (0..2)
        .flat_map(|b| (0..40).map(move |t| format!("block {b} thread {t:3} at {:#x}", 0xabc000 + t * 4)))
        .collect();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected, "{text}");
    let after: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("third ") && !line.starts_with("seven "))
        .collect();
    let mut branches: Vec<&str> = after.iter().copied().take(5).collect();
    branches.sort_unstable();
    assert_eq!(
        branches,
        ["seven is odd", "third 0", "third 3", "third 6", "third 9"],
        "{text}"
    );
    assert_eq!(after.get(5), Some(&"the host goes on"), "{text}");
}
