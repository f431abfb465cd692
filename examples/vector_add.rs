//! Adds two vectors on the installed CUDA driver or on the software driver, and checks every element.
//!
//! ```text
//! cargo run --release --example vector_add [-- [--n COUNT] [--ptx FILE]]
//! ```
//!
//! `CUDA_DRIVER=software|system|PATH` chooses the driver. If it is unset, the system's driver is used if it has a
//! device, else the software driver.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cuda_driver::{Context, Device, DeviceBuffer, Dim3, LaunchConfig, Module, ParamBuffer, Stream};
use cuda_driver_soft::Prefer;

const THREADS_PER_BLOCK: u32 = 256;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(true) => {
            println!("Result = PASS");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            println!("Result = FAIL");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("vector_add: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    n: u32,
    ptx: Option<PathBuf>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self { n: 50_000, ptx: None };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--n" => {
                    let text = value()?;
                    // The kernel takes the count as an `int`.
                    options.n = match text.parse() {
                        Ok(n @ 1..=0x7fff_ffff) => n,
                        _ => {
                            return Err(format!("--n {text}: must be a number from 1 to {}", i32::MAX).into());
                        }
                    };
                }
                "--ptx" => options.ptx = Some(value()?.into()),
                _ => {
                    return Err(format!("{arg}: unknown option; the options are --n COUNT and --ptx FILE").into());
                }
            }
        }
        Ok(options)
    }
}

/// Adds the vectors with both ways of passing arguments; returns true if every element is right.
fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let started = Instant::now();
    let selection = cuda_driver_soft::from_env(Prefer::System)?;
    println!("Driver: {selection}");
    selection.install()?;

    cuda_driver::init()?;
    println!("CUDA version: {}", cuda_driver::version()?);
    let device = Device::first()?;
    println!("Device: {}", device.name()?);
    let context = Context::create(device)?;
    report("load, init and context", started.elapsed());

    let path = options.ptx.clone().unwrap_or_else(default_ptx);
    let started = Instant::now();
    let module = Module::load_ptx(&context, &path)?;
    let vector_add = module.function("vector_add")?;
    report(&format!("module {}", path.display()), started.elapsed());

    let n = options.n;
    let a: Vec<f32> = (0..n).map(|i| (i % 1_000) as f32 * 0.25).collect();
    let b: Vec<f32> = (0..n).map(|i| (i % 77) as f32 + 1.0 / (i + 1) as f32).collect();

    let stream = Stream::new(&context)?;
    let started = Instant::now();
    let device_a = DeviceBuffer::from_slice(&context, &a)?;
    let device_b = DeviceBuffer::from_slice(&context, &b)?;
    let mut device_c = DeviceBuffer::<f32>::zeroed(&context, n as usize)?;
    report("memory and copies to the device", started.elapsed());

    let config = LaunchConfig {
        grid: Dim3::from(n.div_ceil(THREADS_PER_BLOCK)),
        block: Dim3::from(THREADS_PER_BLOCK),
        ..LaunchConfig::default()
    };
    let count = n as i32;
    println!("{n} elements, {} blocks of {THREADS_PER_BLOCK} threads", config.grid.x);

    let started = Instant::now();
    // SAFETY: the arguments have the types of the kernel's parameters, and the buffers hold the `n` floats it accesses.
    unsafe { vector_add.launch(&stream, config, (device_a.ptr(), device_b.ptr(), device_c.ptr(), count))? };
    stream.synchronize()?;
    report("launch with a pointer array", started.elapsed());
    let by_pointers = check("pointer array", &a, &b, &device_c.to_vec()?);

    // Overwrites the results of the first launch, so that they cannot be taken for results of the second.
    device_c.fill_u8(0xff)?;
    let mut params = ParamBuffer::new();
    params
        .push(device_a.ptr())
        .push(device_b.ptr())
        .push(device_c.ptr())
        .push(count);
    let started = Instant::now();
    // SAFETY: as for the first launch; the buffer holds the same arguments.
    unsafe { vector_add.launch(&stream, config, &params)? };
    stream.synchronize()?;
    report("launch with a packed buffer", started.elapsed());

    let started = Instant::now();
    let results = device_c.to_vec()?;
    report("copy to the host", started.elapsed());
    let by_buffer = check("packed buffer", &a, &b, &results);
    Ok(by_pointers && by_buffer)
}

/// Returns the path of the kernel's PTX: next to this program, so that both can be copied to another machine, else in
/// the source tree.
fn default_ptx() -> PathBuf {
    let packed = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.join("vector_add.ptx")));
    match packed {
        Some(path) if path.is_file() => path,
        _ => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels/generated/vector_add.ptx").into(),
    }
}

fn report(step: &str, time: Duration) {
    println!("{:>9.3} ms  {step}", time.as_secs_f64() * 1e3);
}

/// Compares every element for equality: a single addition has only one correctly rounded result.
fn check(launch: &str, a: &[f32], b: &[f32], c: &[f32]) -> bool {
    let wrong: Vec<usize> = (0..a.len()).filter(|&i| c.get(i) != Some(&(a[i] + b[i]))).collect();
    if let Some(&i) = wrong.first() {
        eprintln!(
            "{launch}: {} of {} elements are wrong; c[{i}] = {:?}, expected {}",
            wrong.len(),
            a.len(),
            c.get(i),
            a[i] + b[i]
        );
    }
    wrong.is_empty() && c.len() == a.len()
}
