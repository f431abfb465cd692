//! Measures kernels against the same work as native code:
//! `cargo run --release -p cuda-driver-benches -- engine [--csv] [SECONDS] [KERNEL…]`.
//!
//! The kernel and its reference run alternately. The result is the shortest of many runs, in processor time of the host
//! thread for the three engines and in elapsed time for the other kinds. The values of the outputs must be equal,
//! except for kernels with approximate functions. The rows of the output:
//!
//! | kind | columns |
//! | --- | --- |
//! | `interpreter`, `compiled`, `auto` | nanoseconds per thread of the kernel on this engine, of the reference, and their ratio |
//! | `compile` | milliseconds to compile the kernel, KB of its PTX, and their ratio |
//! | `two_cores` | for three kernels: nanoseconds per thread with two host threads, with one, and how many times faster two are (`auto`) |
//! | `empty_launch` | nanoseconds of a launch of an empty kernel with a synchronisation, through the driver |
//!
//! With more than one kernel, the rows `geometric_mean` and `all` summarise the others. The last two kinds are measured
//! only if no kernel is named.

mod buffer;
mod cases;
pub(crate) mod checks;
mod compile;
mod native;

use cases::{Argument, Case};
use engine::memory::{AllocationKind, address_space};
use engine::{Engine, Execution, Launch, Options, Program, Progress};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The engines that are measured.
const ENGINES: [(&str, Engine); 3] = [
    ("interpreter", Engine::Interpreter),
    ("compiled", Engine::Compiled { lanes: 32 }),
    ("auto", Engine::Auto),
];

/// Returns the kernels that the arguments name, which are those that are neither options nor numbers.
///
/// # Errors
/// Returns a message for a name that no kernel has.
fn named(arguments: &[String]) -> Result<Vec<&str>, String> {
    let cases = cases::all();
    let is_name = |argument: &&String| *argument != "--csv" && argument.parse::<f64>().is_err();
    let names = arguments.iter().filter(is_name).map(String::as_str);
    names
        .map(|name| {
            let known = cases.iter().any(|case| case.name == name);
            known.then_some(name).ok_or_else(|| {
                let all: Vec<&str> = cases.iter().map(|case| case.name).collect();
                format!("there is no kernel `{name}`; the kernels are {}", all.join(", "))
            })
        })
        .collect()
}

/// Returns the seconds to spend on each kernel, which an argument gives.
fn seconds(arguments: &[String]) -> Result<f64, String> {
    let seconds = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1.0);
    if seconds > 0.0 && seconds <= 3600.0 {
        return Ok(seconds);
    }
    Err(format!(
        "{seconds} seconds for each kernel: give a positive number up to 3600"
    ))
}

/// Measures everything, and prints it.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let csv = arguments.iter().any(|a| a == "--csv");
    let seconds = seconds(arguments)?;
    let wanted = named(arguments)?;
    let print = |kind: &str, name: &str, figures: [Option<f64>; 3]| {
        if csv {
            let figures = figures.map(|f| f.map_or(String::new(), |f| format!("{f:.3}")));
            println!("{kind},{name},{}", figures.join(","));
        } else {
            let figures = figures.map(|f| f.map_or(String::new(), |f| format!("{f:10.2}")));
            println!("{kind:12} {name:16} {}", figures.join(" "));
        }
    };
    if csv {
        println!("kind,kernel,ns_per_thread,native_ns_per_thread,ratio");
    }
    let (mut logarithms, mut count) = ([0.0; 3], 0.0);
    let mut compile_time = [0.0; 2];
    for case in cases::all() {
        if !wanted.is_empty() && !wanted.contains(&case.name) {
            continue;
        }
        let (kernel, native) = measure(&case, seconds)?;
        for ((engine, kernel), logarithms) in ENGINES.iter().zip(kernel).zip(&mut logarithms) {
            let ratio = kernel / native;
            print(engine.0, case.name, [Some(kernel), Some(native), Some(ratio)]);
            *logarithms += ratio.ln();
        }
        count += 1.0;
        let [milliseconds, kilobytes, ratio] = compile::measure(&case, seconds / 4.0)?;
        print("compile", case.name, [Some(milliseconds), Some(kilobytes), Some(ratio)]);
        compile_time = [compile_time[0] + milliseconds, compile_time[1] + kilobytes];
    }
    if count > 1.0 {
        for (engine, logarithms) in ENGINES.iter().zip(logarithms) {
            let mean = f64::exp(logarithms / count);
            print(engine.0, "geometric_mean", [None, None, Some(mean)]);
        }
        let [milliseconds, kilobytes] = compile_time;
        let ratio = milliseconds / kilobytes;
        print("compile", "all", [Some(milliseconds), Some(kilobytes), Some(ratio)]);
    }
    if wanted.is_empty() {
        for case in cases::all() {
            if ["vector_add", "blur_32x8", "sort"].contains(&case.name) {
                let [one, two] = two_cores(&case, seconds)?;
                print("two_cores", case.name, [Some(two), Some(one), Some(one / two)]);
            }
        }
        print("empty_launch", "driver", [Some(empty_launch(seconds)?), None, None]);
    }
    Ok(())
}

/// A case with its kernel loaded and its buffers in device memory.
struct Loaded<'c> {
    case: &'c Case,
    launch: Launch,
    addresses: Vec<u64>,
}

impl<'c> Loaded<'c> {
    fn new(case: &'c Case) -> Result<Self, Box<dyn Error>> {
        let loaded = ptx::load(text_of(case)?.as_bytes(), &ptx::Limits::default()).map_err(|failure| failure.log)?;
        let program = Program::load(loaded.module, 0)?;
        let none = || format!("the module {} has no kernel {}", case.module, case.kernel);
        let kernel = program.kernel(case.kernel).ok_or_else(none)?;
        let addresses = case.buffers.iter().map(|buffer| {
            let bytes = buffer.to_bytes();
            address_space().alloc(AllocationKind::Device, 0, bytes.len() as u64)
        });
        let addresses = addresses.collect::<Result<Vec<u64>, _>>()?;
        let mut params = vec![0; kernel.param_bytes() as usize];
        for ((offset, size), argument) in kernel.params().zip(&case.arguments) {
            let bytes = match argument {
                Argument::Buffer(number) => addresses[*number].to_le_bytes().to_vec(),
                Argument::U32(value) => value.to_le_bytes().to_vec(),
                Argument::U64(value) => value.to_le_bytes().to_vec(),
                Argument::F32(value) => value.to_le_bytes().to_vec(),
            };
            params[offset as usize..(offset + size) as usize].copy_from_slice(&bytes);
        }
        let launch = Launch {
            kernel,
            grid: [case.grid[0], case.grid[1], 1],
            block: [case.block[0], case.block[1], 1],
            dynamic_shared: 0,
            params: params.into(),
            options: Options::default(),
        };
        let loaded = Loaded {
            case,
            launch,
            addresses,
        };
        loaded.reset()?;
        Ok(loaded)
    }

    /// Fills the buffers with their initial contents.
    fn reset(&self) -> Result<(), Box<dyn Error>> {
        for (buffer, address) in self.case.buffers.iter().zip(&self.addresses) {
            address_space().write(*address, &buffer.to_bytes())?;
        }
        Ok(())
    }

    /// Returns the launch on another engine.
    fn launch_on(&self, engine: Engine) -> Launch {
        let mut launch = self.launch.clone();
        launch.options.engine = engine;
        launch
    }

    /// Runs the kernel on an engine with one host thread.
    fn run_on(&self, engine: Engine) -> Result<(), Box<dyn Error>> {
        let execution = self.launch_on(engine).start();
        finish(&execution)
    }

    /// Runs the kernel on an engine with the help of a second host thread, and returns the elapsed time.
    fn time_with(&self, second: &SecondThread, engine: Engine) -> Result<Duration, Box<dyn Error>> {
        second.messages.send(Message::Wake)?;
        while !second.awake.swap(false, Ordering::Acquire) {
            std::thread::yield_now();
        }
        let start = Instant::now();
        let execution = self.launch_on(engine).start();
        second.messages.send(Message::Work(Arc::clone(&execution)))?;
        finish(&execution)?;
        Ok(start.elapsed())
    }

    /// Compares the results of one run of the kernel with those of the reference.
    fn check(&self) -> Result<(), Box<dyn Error>> {
        self.check_on(self.launch.options.engine)
    }

    /// As [`check`](Self::check), on another engine.
    fn check_on(&self, engine: Engine) -> Result<(), Box<dyn Error>> {
        self.reset()?;
        self.run_on(engine)?;
        let mut buffers = self.case.buffers.clone();
        (self.case.native)(&mut buffers);
        for (number, (buffer, address)) in buffers.iter().zip(&self.addresses).enumerate() {
            let mut bytes = buffer.to_bytes();
            address_space().read(*address, &mut bytes)?;
            let difference = buffer.difference(&bytes);
            if difference > self.case.tolerance {
                let name = self.case.name;
                return Err(format!("{name}: buffer {number} differs from the reference by {difference:e}").into());
            }
        }
        Ok(())
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        for address in self.addresses.drain(..) {
            // Fails only if the memory was freed before.
            let _ = address_space().free(address);
        }
    }
}

/// Works on an execution until it ends, and returns its fault as an error.
fn finish(execution: &Execution) -> Result<(), Box<dyn Error>> {
    while execution.work(u64::MAX) != Progress::Finished {
        std::thread::yield_now();
    }
    match execution.fault() {
        None => Ok(()),
        Some(fault) => Err(format!("{fault}").into()),
    }
}

/// Returns the PTX of a case's module.
fn text_of(case: &Case) -> Result<String, Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/kernels/generated");
    let path = format!("{folder}/{}.ptx", case.module);
    std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}").into())
}

/// Returns nanoseconds per thread of the kernel on each engine, and of the reference.
fn measure(case: &Case, seconds: f64) -> Result<([f64; 3], f64), Box<dyn Error>> {
    let loaded = Loaded::new(case)?;
    for (_, engine) in ENGINES {
        loaded.check_on(engine)?;
    }
    let mut buffers = case.buffers.clone();
    let (mut best, mut native) = ([Duration::MAX; 3], Duration::MAX);
    let (begin, mut settled) = (Instant::now(), false);
    while begin.elapsed().as_secs_f64() < seconds {
        if !settled && begin.elapsed().as_secs_f64() > seconds / 2.0 {
            // The first launches with `auto` were interpreted; their times do not count.
            (settled, best[2]) = (true, Duration::MAX);
        }
        for ((_, engine), best) in ENGINES.iter().zip(&mut best) {
            let start = processor_time();
            loaded.run_on(*engine)?;
            *best = (processor_time() - start).min(*best);
        }
        let start = processor_time();
        (case.native)(std::hint::black_box(&mut buffers));
        native = native.min(processor_time() - start);
    }
    Ok((best.map(|time| per_thread(case, time)), per_thread(case, native)))
}

/// A thread that helps with executions. Like a worker thread of the driver, it exists before the first of them and
/// keeps its memory from one to the next.
struct SecondThread {
    messages: mpsc::Sender<Message>,
    /// Set by the thread when it is awake.
    awake: Arc<AtomicBool>,
}

/// A message to the second thread.
enum Message {
    /// Wake up, and wait for an execution without sleeping, so that the time to wake the thread is not measured.
    Wake,
    /// Work on this execution, then sleep.
    Work(Arc<Execution>),
}

impl SecondThread {
    /// Starts the thread. It ends when the sender of messages is dropped.
    fn start() -> Self {
        let (messages, received) = mpsc::channel();
        let awake = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&awake);
        std::thread::spawn(move || {
            while let Ok(mut message) = received.recv() {
                flag.store(true, Ordering::Release);
                while let Message::Wake = message {
                    std::hint::spin_loop();
                    message = match received.try_recv() {
                        Ok(message) => message,
                        Err(mpsc::TryRecvError::Empty) => continue,
                        Err(mpsc::TryRecvError::Disconnected) => return,
                    };
                }
                if let Message::Work(execution) = message {
                    execution.work(u64::MAX);
                }
            }
        });
        SecondThread { messages, awake }
    }
}

/// Returns nanoseconds per thread of elapsed time, with one host thread and with two.
fn two_cores(case: &Case, seconds: f64) -> Result<[f64; 2], Box<dyn Error>> {
    let loaded = Loaded::new(case)?;
    loaded.run_on(Engine::Auto)?;
    let second = SecondThread::start();
    let mut best = [Duration::MAX; 2];
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        loaded.run_on(Engine::Auto)?;
        best[0] = start.elapsed().min(best[0]);
        best[1] = loaded.time_with(&second, Engine::Auto)?.min(best[1]);
    }
    Ok(best.map(|time| per_thread(case, time)))
}

fn per_thread(case: &Case, time: Duration) -> f64 {
    let threads: u64 = case.grid.iter().chain(&case.block).map(|n| u64::from(*n)).product();
    time.as_nanos() as f64 / threads as f64
}

/// Returns nanoseconds of a launch of an empty kernel with a synchronisation, through the software driver or the driver
/// that `CUDA_DRIVER` names.
fn empty_launch(seconds: f64) -> Result<f64, Box<dyn Error>> {
    const LAUNCHES: u32 = 100;
    cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)?.install()?;
    cuda_driver::init()?;
    let context = cuda_driver::Context::create(cuda_driver::Device::first()?)?;
    let text = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty() { ret; }";
    let empty = cuda_driver::Module::from_ptx(&context, text)?.function("empty")?;
    let stream = cuda_driver::Stream::new(&context)?;
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            let config = cuda_driver::LaunchConfig {
                grid: 1.into(),
                block: 32.into(),
                ..Default::default()
            };
            // SAFETY: the kernel has no parameters and accesses no memory.
            unsafe { empty.launch(&stream, config, ())? };
            stream.synchronize()?;
        }
        best = best.min(start.elapsed());
    }
    Ok(best.as_nanos() as f64 / f64::from(LAUNCHES))
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
