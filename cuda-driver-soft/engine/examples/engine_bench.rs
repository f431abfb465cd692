//! Measures the engine: nanoseconds of one core per thread of a kernel.
//!
//! `cargo run --release --example engine_bench -p cuda-driver-soft-engine -- [baseline] [compiled] [auto] [profile]
//! [checks] [short] [KERNEL…]`
//!
//! Each output line has the kernel, the size of its blocks, and the time of the interpreter. `baseline` uses only
//! instructions that every CPU has. These words add columns:
//!
//! * `compiled`: the time of compiled kernels, in groups of 16 or 32 lanes, and how many times as long the interpreter
//!   takes;
//! * `auto`: the same for kernels that are compiled once they have run often, then the percentage of instructions that
//!   ran in compiled code, and the percentage that this code left to the interpreter one at a time;
//! * `profile`: the time with counters of the kernel, and how many times as long that takes;
//! * `checks`: the same with the checker of uninitialised reads, and then with the checker of races.
//!
//! `short` measures each kernel for a fifth of a second instead of two seconds. If kernels are named, only these are
//! measured.

use cuda_driver_soft_engine::check::{Checker, Checks};
use cuda_driver_soft_engine::count::Profile;
use cuda_driver_soft_engine::memory::{AllocationKind, address_space};
use cuda_driver_soft_engine::{Counts, Engine, Isa, Launch, Observers, Options, Program, Progress};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn program(name: &str) -> Arc<Program> {
    let path = format!(
        "{}/../../tests/kernels/generated/{name}.ptx",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let loaded = ptx::load(&text, &ptx::Limits::default()).unwrap_or_else(|f| panic!("{}", f.log));
    Program::load(loaded.module, 0).unwrap_or_else(|e| panic!("{e}"))
}

fn alloc(bytes: u64) -> u64 {
    address_space()
        .alloc(AllocationKind::Device, 0, bytes)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the processor time of this thread; outside of Unix, the time since the first call.
fn processor_time() -> Duration {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes only to `time`.
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

/// A launch to be timed.
struct Case<'a> {
    module: &'a str,
    kernel: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    args: &'a [&'a [u8]],
}

/// Runs launches in turn in all ways that are asked for, and prints the best time of each.
fn time(asked: &CommandLine, case: &Case<'_>) {
    let Case {
        module,
        kernel,
        grid,
        block,
        args,
    } = *case;
    if !asked.kernels.is_empty() && asked.kernels.iter().all(|k| k != kernel) {
        return;
    }
    let program = program(module);
    let kernel = program.kernel(kernel).unwrap_or_else(|| panic!("no kernel {kernel}"));
    let mut params = vec![0; kernel.param_bytes() as usize];
    for ((offset, size), arg) in kernel.params().zip(args) {
        params[offset as usize..(offset + size) as usize].copy_from_slice(arg);
    }
    let threads: u64 = grid.iter().chain(&block).map(|n| u64::from(*n)).product();
    let ways = [
        (true, Engine::Interpreter),
        (asked.compiled, Engine::Compiled { lanes: 32 }),
        (asked.profile, Engine::Interpreter),
        (asked.checks, Engine::Interpreter),
        (asked.checks, Engine::Interpreter),
        (asked.auto, Engine::Auto),
    ];
    let mut best = [Duration::MAX; 6];
    let mut counts = Counts::default();
    let profile = Profile::new();
    let races = Checker::new(Checks::RACE);
    let (begin, mut settled) = (Instant::now(), false);
    while begin.elapsed() < asked.long {
        if !settled && begin.elapsed() > asked.long / 2 {
            // The first launches with `Auto` were interpreted, so their times do not count.
            (settled, best[5]) = (true, Duration::MAX);
        }
        for (way, ((wanted, engine), best)) in ways.into_iter().zip(&mut best).enumerate() {
            if !wanted {
                continue;
            }
            let launch = Launch {
                kernel: Arc::clone(&kernel),
                grid,
                block,
                dynamic_shared: 0,
                params: params.clone().into(),
                options: Options {
                    isa: asked.isa,
                    engine,
                    observers: match way {
                        2 => profile.observers(),
                        3 => asked.init.observers(),
                        4 => races.observers(),
                        _ => Observers::default(),
                    },
                    ..Options::default()
                },
            };
            let start = processor_time();
            let execution = launch.start();
            let progress = execution.work(u64::MAX);
            *best = (processor_time() - start).min(*best);
            assert_eq!(progress, Progress::Finished);
            if way == 5 {
                counts = execution.counts();
            }
            if let Some(fault) = execution.fault() {
                panic!("{fault}");
            }
        }
    }
    let each = |time: Duration| time.as_nanos() as f64 / threads as f64;
    let [x, y, _] = block;
    let block = format!("{x} x {y}");
    print!("{:16} {block:8} {:8.2}", kernel.name(), each(best[0]));
    if asked.compiled {
        print!(" {:8.2} {:5.2}", each(best[1]), each(best[0]) / each(best[1]));
    }
    if asked.auto {
        let percent = |steps: u64| 100 * steps / counts.all.max(1);
        let (compiled, called) = (percent(counts.compiled), percent(counts.called));
        let times = each(best[0]) / each(best[5]);
        print!(" {:8.2} {times:5.2} {compiled:3} % {called:3} %", each(best[5]));
    }
    if asked.profile {
        print!(" {:8.2} {:5.2}", each(best[2]), each(best[2]) / each(best[0]));
    }
    if asked.checks {
        for best_of in &best[3..5] {
            print!(" {:8.2} {:5.2}", each(*best_of), each(*best_of) / each(best[0]));
        }
    }
    println!();
}

/// The command line's options.
struct CommandLine {
    isa: Isa,
    compiled: bool,
    auto: bool,
    profile: bool,
    checks: bool,
    /// The checker is made before the buffers, because it only tracks memory that is allocated later.
    init: Checker,
    long: Duration,
    kernels: Vec<String>,
}

fn main() {
    let mut asked = CommandLine {
        isa: Isa::best(),
        compiled: false,
        auto: false,
        profile: false,
        checks: false,
        init: Checker::new(Checks::INIT),
        long: Duration::from_secs(2),
        kernels: Vec::new(),
    };
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "baseline" => asked.isa = Isa::Baseline,
            "compiled" => asked.compiled = true,
            "auto" => asked.auto = true,
            "profile" => asked.profile = true,
            "checks" => asked.checks = true,
            "short" => asked.long = Duration::from_millis(200),
            _ => asked.kernels.push(argument),
        }
    }
    println!("{:?}; nanoseconds per thread", asked.isa);
    let n: u32 = 1 << 20;
    let [a, b, c] = [(); 3].map(|()| alloc(4 * u64::from(n)));
    let values: Vec<u8> = (0..n).flat_map(|i| (i as f32 / 7.0).to_le_bytes()).collect();
    for address in [a, b, c] {
        address_space()
            .write(address, &values)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    let [a, b, c] = [a, b, c].map(u64::to_le_bytes);
    let time = |module, kernel, grid: (u32, u32), block: (u32, u32), args: &[&[u8]]| {
        let case = Case {
            module,
            kernel,
            grid: [grid.0, grid.1, 1],
            block: [block.0, block.1, 1],
            args,
        };
        time(&asked, &case);
    };
    let number = u32::to_le_bytes;
    let (count, long) = (number(n), u64::from(n).to_le_bytes());
    let blocks = (n / 256, 1);
    let row = (256, 1);
    time("vector_add", "vector_add", blocks, row, &[&a, &b, &c, &count]);
    let factor = 1.5f32.to_le_bytes();
    time("saxpy", "saxpy", blocks, row, &[&factor, &a, &b, &long]);
    time("reduce", "reduce_sum_f32", blocks, row, &[&a, &b, &count]);
    let side = number(64);
    let product: [&[u8]; 6] = [&a, &b, &c, &side, &side, &side];
    time("matmul", "matmul_f32", (4, 4), (16, 16), &product);

    let side = number(1024);
    let picture: [&[u8]; 4] = [&a, &b, &side, &side];
    time("typical", "stencil", (64, 64), (16, 16), &picture);
    time("typical", "stencil", (32, 128), (32, 8), &picture);
    time("typical", "transpose", (64, 64), (16, 16), &picture);
    time("typical", "transpose_rows", (32, 32), (32, 8), &picture);
    time("typical", "blur", (64, 64), (16, 16), &picture);
    time("typical", "blur", (32, 128), (32, 8), &picture);
    time("typical", "grey", blocks, row, &[&a, &b, &count]);
    time("typical", "scale_four", (256, 1), row, &[&a, &b, &number(n / 4)]);
    time("typical", "histogram", (64, 1), row, &[&a, &c, &count]);
    time("typical", "scan", blocks, row, &[&a, &b]);
    time("typical", "softmax", (256, 1), row, &[&a, &b, &side]);
    time("typical", "bodies", (4, 1), (128, 1), &[&a, &b, &number(512)]);
    time("typical", "hash", (64, 1), row, &[&b, &number(64)]);
    let side = number(128);
    let product: [&[u8]; 6] = [&a, &b, &c, &side, &side, &side];
    time("typical.sm_80", "gemm_half", (8, 4), (64, 1), &product);

    let small = number(1 << 14);
    let numbers: Vec<u8> = (0..1u32 << 14).flat_map(|i| (i + 1).to_le_bytes()).collect();
    address_space()
        .write(u64::from_le_bytes(a), &numbers)
        .unwrap_or_else(|e| panic!("{e}"));
    for kernel in ["collatz", "nested", "loops"] {
        time("divergent", kernel, (64, 1), row, &[&a, &b, &small]);
    }
}
