//! Tests of profiles: a guard counts the launches of its thread, and an environment variable those of a whole process.

use crate::common::{Context, Kernel, check, cuda, in_child, lacks_software, ptr};
use cuda_driver_soft::{KernelReport, Report, profile};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// Returns the path of a file that no other process uses.
fn file(name: &str, extension: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.{extension}", std::process::id()))
}

/// Runs the kernel `lines`, which has line information, for 100 numbers in two blocks of 64 threads.
fn work() {
    let cuda = cuda();
    let kernel = Kernel::load("lines", "lines");
    let mut a = 0;
    check(unsafe { cuda.cuMemAlloc(&mut a, 512) });
    check(unsafe { cuda.cuMemsetD32(a, 0, 128) });
    let (mut b, mut c, mut t, mut n) = (a, a, 0.5_f32, 100_u32);
    let mut arguments = [ptr(&mut a), ptr(&mut b), ptr(&mut c), ptr(&mut t), ptr(&mut n)];
    check(kernel.launch(2, 64, null_mut(), &mut arguments));
    check(unsafe { cuda.cuCtxSynchronize() });
    check(unsafe { cuda.cuMemFree(a) });
}

/// Checks the counters of `lines` after this number of launches by [`work`].
fn check_lines(kernel: &KernelReport<'_>, launches: u64) {
    assert_eq!(kernel.launches.len() as u64, launches);
    // Three warps have 32 active lanes; the fourth has 4, so its branch is divergent.
    let total = &kernel.total;
    assert_eq!((total.branches, total.divergent_branches), (4 * launches, launches));
    assert_eq!(total.global_load_requests, 2 * 4 * launches);
    assert_eq!(total.global_load_sectors, 2 * (3 * 4 + 1) * launches);
    assert_eq!(total.global_store_sectors, (3 * 4 + 1) * launches);
    assert_eq!(total.global_store_bytes, 400 * launches);
    assert_eq!(total.bank_conflicts(), 0);
    let of = |line: u32| {
        let found = kernel
            .lines
            .iter()
            .find(|l| l.line == line && l.file == Some("lines.cu"));
        found.unwrap_or_else(|| panic!("no line {line}")).counters
    };
    // `if (i < n)` is in line 13, and the body of the inlined function in line 6.
    assert_eq!(
        (of(13).instructions, of(13).thread_instructions),
        (8 * launches, 256 * launches)
    );
    assert_eq!((of(6).fp32, of(6).thread_instructions), (8 * launches, 200 * launches));
    assert_eq!(of(14).global_sectors(), total.global_sectors());
    assert_eq!(of(15).instructions, 4 * launches);
}

#[test]
fn a_guard_counts_the_launches_of_its_thread() {
    if lacks_software() {
        return;
    }
    let context = Context::new();
    work();
    let outer = profile();
    work();
    let inner = profile();
    work();
    let current = context.0 as usize;
    // A launch by another thread, which neither guard counts.
    let other = std::thread::spawn(move || {
        check(unsafe { cuda().cuCtxSetCurrent(current as _) });
        work();
    });
    other.join().unwrap();
    let (inner, outer) = (inner.finish(), outer.finish());
    work();
    check_lines(&inner.kernel("lines").unwrap(), 1);
    check_lines(&outer.kernel("lines").unwrap(), 2);
    assert!(inner.kernel("other").is_none());
    let launch = &inner.launches[0];
    assert_eq!((launch.grid, launch.block), ([2, 1, 1], [64, 1, 1]));
    assert!(launch.occupancy > 0.0 && launch.occupancy <= 1.0);
    assert_eq!(profile().finish().to_string(), "no kernels were launched\n");
    drop(context);
}

/// Returns the report of one launch.
fn report() -> Report {
    let _context = Context::new();
    let guard = profile();
    work();
    guard.finish()
}

/// A module can name any file as its source. The page reads neither a device, which may have no end, nor a pipe.
#[cfg(unix)]
#[test]
fn only_regular_files_are_source_files() {
    if lacks_software() {
        return;
    }
    let _context = Context::new();
    let guard = profile();
    let text = ".version 6.4\n.target sm_52\n.address_size 64\n.file 1 \"/dev/null\"\n\
                .visible .entry k() {\n.loc 1 1 0\nret;\n}\n";
    let kernel = Kernel::from_ptx(&std::ffi::CString::new(text).unwrap(), "k");
    check(kernel.launch(1, 1, null_mut(), &mut []));
    check(unsafe { cuda().cuCtxSynchronize() });
    let page = guard.finish().to_html();
    assert!(page.contains("The source file cannot be read."), "{page}");
}

#[test]
fn the_formats_have_the_same_numbers() {
    if lacks_software() {
        return;
    }
    let report = report();
    let table = report.to_string();
    assert!(table.contains("lines: 1 launch\n"), "{table}");
    assert!(table.contains("8 requests, 26 sectors, 800 bytes"), "{table}");
    assert!(table.contains("lines.cu:13"), "{table}");
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    let launch = &json["launches"][0];
    assert_eq!(launch["kernel"], "lines");
    assert_eq!(launch["total"]["global_load_sectors"], 26);
    assert_eq!(launch["total"]["shared_load_conflicts"], 0);
    let load = launch["instructions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|i| i["opcode"] == "ld.global.f32")
        .unwrap();
    assert_eq!(
        (load["line"].as_u64(), load["counters"]["global_load_sectors"].as_u64()),
        (Some(14), Some(13))
    );
    let page = report.to_html();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("<h2 id=\"kernel0\">lines</h2>"));
    // The page loads nothing from elsewhere.
    assert!(!page.contains("http") && !page.contains("src=") && !page.contains("<script"));
    let path = file("formats", "html");
    report.write(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_program_is_counted_by_the_environment() {
    // The driver writes the file in an exit handler, which it registers only on Unix.
    if lacks_software() || cfg!(not(unix)) {
        return;
    }
    let path = file("environment", "json");
    let test = "profile::a_program_is_counted_by_the_environment";
    let variables = [("CUDA_SOFT_PROFILE", path.to_str().unwrap())];
    let child = in_child(test, &variables, || {
        let _context = Context::new();
        work();
        // Launches by all threads count.
        std::thread::spawn(|| {
            let _context = Context::new();
            work();
        })
        .join()
        .unwrap();
    });
    if child.is_none() {
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let launches = json["launches"].as_array().unwrap();
    assert_eq!(launches.len(), 2);
    assert!(
        launches
            .iter()
            .all(|launch| launch["total"]["global_load_sectors"] == 26)
    );
    std::fs::remove_file(&path).unwrap();
    // The process runs this test again, and thus the work above.
    let child = in_child(test, &[("CUDA_SOFT_PROFILE", "1")], || {});
    let printed = child.unwrap_or_default();
    assert!(printed.contains("lines: 2 launches\n"), "{printed}");
}
