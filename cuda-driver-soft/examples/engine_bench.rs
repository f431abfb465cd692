//! What the engine costs: nanoseconds of one core per thread of a kernel.
//!
//! `cargo run --release --example engine_bench -p cuda-driver-soft [-- baseline] [KERNEL]`

use cuda_driver_soft::exec::{Isa, Launch, Options, Program, Progress};
use cuda_driver_soft::memory::{Kind, space};
use cuda_driver_soft::ptx;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn program(name: &str) -> Arc<Program> {
    let path = format!(
        "{}/../tests/kernels/generated/{name}.ptx",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let loaded = ptx::load(&text, &ptx::Limits::default()).unwrap_or_else(|f| panic!("{}", f.log));
    Program::load(loaded.module, 0).unwrap_or_else(|e| panic!("{e}"))
}

fn alloc(bytes: u64) -> u64 {
    space()
        .alloc(Kind::Device, 0, bytes)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// What this thread has used of its core; the time of day where that is not known.
fn processor_time() -> Duration {
    #[cfg(unix)]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: writes the time to `time`.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(unix))]
    {
        use std::sync::LazyLock;
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// Runs a launch until two seconds are over and prints the best time, unless the command line names another kernel.
fn time(isa: Isa, name: &str, kernel: &str, grid: [u32; 3], block: [u32; 3], args: &[&[u8]]) {
    let mut asked = std::env::args()
        .skip(1)
        .filter(|a| a != "baseline")
        .peekable();
    if asked.peek().is_some() && asked.all(|a| a != kernel) {
        return;
    }
    let program = program(name);
    let kernel = program
        .kernel(kernel)
        .unwrap_or_else(|| panic!("no kernel {kernel}"));
    let mut params = vec![0; kernel.param_bytes() as usize];
    for ((offset, size), arg) in kernel.params().zip(args) {
        params[offset as usize..(offset + size) as usize].copy_from_slice(arg);
    }
    let threads: u64 = grid.iter().chain(&block).map(|n| u64::from(*n)).product();
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) {
        let launch = Launch {
            kernel: Arc::clone(&kernel),
            grid,
            block,
            dynamic_shared: 0,
            params: params.clone().into(),
            options: Options {
                isa,
                ..Options::default()
            },
        };
        let start = processor_time();
        let execution = launch.start();
        let progress = execution.work(u64::MAX);
        best = best.min(processor_time() - start);
        assert_eq!(progress, Progress::Finished);
        if let Some(fault) = execution.fault() {
            panic!("{fault}");
        }
    }
    println!(
        "{:16} {:8.2} ns a thread",
        kernel.name(),
        best.as_nanos() as f64 / threads as f64
    );
}

fn main() {
    let isa = if std::env::args().any(|a| a == "baseline") {
        Isa::Baseline
    } else {
        Isa::best()
    };
    println!("{isa:?}");
    let n: u32 = 1 << 20;
    let (a, b, c) = (
        alloc(4 * u64::from(n)),
        alloc(4 * u64::from(n)),
        alloc(4 * u64::from(n)),
    );
    let values: Vec<u8> = (0..n)
        .flat_map(|i| (i as f32 / 7.0).to_le_bytes())
        .collect();
    for address in [a, b, c] {
        space()
            .write(address, &values)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    let [a, b, c] = [a, b, c].map(u64::to_le_bytes);
    let (count, long) = (n.to_le_bytes(), u64::from(n).to_le_bytes());
    time(
        isa,
        "vector_add",
        "vector_add",
        [n / 256, 1, 1],
        [256, 1, 1],
        &[&a, &b, &c, &count],
    );
    let factor = 1.5f32.to_le_bytes();
    time(
        isa,
        "saxpy",
        "saxpy",
        [n / 256, 1, 1],
        [256, 1, 1],
        &[&factor, &a, &b, &long],
    );
    time(
        isa,
        "reduce",
        "reduce_sum_f32",
        [n / 256, 1, 1],
        [256, 1, 1],
        &[&a, &b, &count],
    );
    let side = 64u32.to_le_bytes();
    time(
        isa,
        "matmul",
        "matmul_f32",
        [4, 4, 1],
        [16, 16, 1],
        &[&a, &b, &c, &side, &side, &side],
    );
    let small = (1u32 << 14).to_le_bytes();
    let numbers: Vec<u8> = (0..1u32 << 14)
        .flat_map(|i| (i + 1).to_le_bytes())
        .collect();
    space()
        .write(u64::from_le_bytes(a), &numbers)
        .unwrap_or_else(|e| panic!("{e}"));
    for kernel in ["collatz", "nested", "loops"] {
        time(
            isa,
            "divergent",
            kernel,
            [64, 1, 1],
            [256, 1, 1],
            &[&a, &b, &small],
        );
    }
}
