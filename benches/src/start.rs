//! Measures the start of the software driver, or of the driver that `CUDA_DRIVER` names, from `cuInit` to the end of
//! the first launch, and the load of a large module: `cargo run --release -p cuda-driver-benches -- start`. The results
//! are medians.

use std::error::Error;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};

/// The number of processes whose start is measured.
const STARTS: usize = 31;
/// The number of loads of the large module.
const LOADS: usize = 11;
/// The minimum length of the large module's text in bytes.
const LARGE: usize = 1 << 20;
/// The limits in milliseconds, which are only printed.
const START_LIMIT: f64 = 1.0;
const LOAD_LIMIT: f64 = 10.0;

/// The parts of a start that are measured.
const PARTS: [&str; 4] = [
    "cuInit",
    "the context and the stream",
    "the module",
    "memory and the first launch",
];

const HEAD: &str = ".version 7.0\n.target sm_52\n.address_size 64\n";

/// Returns the text of a kernel that scales floats.
fn kernel(number: usize) -> String {
    format!(
        ".visible .entry k{number}(.param .u64 x, .param .f32 a, .param .u32 n)\n{{\n\
         .reg .pred %p;\n.reg .b32 %i, %n, %block, %size;\n.reg .b64 %at, %x;\n.reg .f32 %a, %v;\n\
         mov.u32 %block, %ctaid.x;\nmov.u32 %size, %ntid.x;\nmov.u32 %i, %tid.x;\n\
         mad.lo.u32 %i, %block, %size, %i;\nld.param.u32 %n, [n];\nsetp.ge.u32 %p, %i, %n;\n@%p bra END;\n\
         ld.param.f32 %a, [a];\nld.param.u64 %x, [x];\nmul.wide.u32 %at, %i, 4;\nadd.u64 %x, %x, %at;\n\
         ld.global.f32 %v, [%x];\nmul.rn.f32 %v, %v, %a;\nst.global.f32 [%x], %v;\nEND:\nret;\n}}\n"
    )
}

/// Runs this program `STARTS` times, loads a large module `LOADS` times, and prints the medians. With the argument
/// `once`, prints the times of this process's start in milliseconds instead.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)?.install()?;
    if arguments.first().is_some_and(|first| first == "once") {
        let times = once()?.map(|time| time.to_string());
        println!("{}", times.join(" "));
        return Ok(());
    }
    let mut parts: [Vec<f64>; PARTS.len()] = Default::default();
    let mut all = Vec::new();
    for _ in 0..STARTS {
        let output = Command::new(std::env::current_exe()?)
            .args(["start", "once"])
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let times: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        if times.len() != PARTS.len() {
            return Err(format!("a start failed: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        all.push(times.iter().sum());
        for (part, time) in parts.iter_mut().zip(times) {
            part.push(time);
        }
    }
    for (name, times) in PARTS.iter().zip(parts) {
        println!("{:8.3} ms  {name}", median(times));
    }
    print("from cuInit to the end of the first launch", median(all), START_LIMIT);

    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let mut text = HEAD.to_owned();
    for number in 0.. {
        write!(text, "{}", kernel(number))?;
        if text.len() >= LARGE {
            break;
        }
    }
    let mut loads = Vec::new();
    for _ in 0..LOADS {
        let start = Instant::now();
        let module = Module::from_ptx(&context, &text)?;
        loads.push(start.elapsed().as_secs_f64() * 1e3);
        drop(module);
    }
    print("a module of 1 MiB of PTX", median(loads), LOAD_LIMIT);
    Ok(())
}

fn print(name: &str, time: f64, limit: f64) {
    println!("{time:8.3} ms  {name}: {:.2} of the limit of {limit} ms", time / limit);
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the milliseconds of each part of this process's start.
fn once() -> Result<[f64; PARTS.len()], Box<dyn Error>> {
    let text = format!("{HEAD}{}", kernel(0));
    let mut times = [0.0; PARTS.len()];
    let mut last = Instant::now();
    let mut note = |part: usize| {
        times[part] = last.elapsed().as_secs_f64() * 1e3;
        last = Instant::now();
    };
    cuda_driver::init()?;
    note(0);
    let context = Context::create(Device::first()?)?;
    let stream = Stream::new(&context)?;
    note(1);
    let module = Module::from_ptx(&context, &text)?;
    let function = module.function("k0")?;
    note(2);
    let values = DeviceBuffer::from_slice(&context, &[1.0_f32; 32])?;
    let config = LaunchConfig {
        grid: 1.into(),
        block: 32.into(),
        ..Default::default()
    };
    // SAFETY: the arguments have the types of the kernel's parameters, and the buffer holds 32 floats.
    unsafe { function.launch(&stream, config, (values.ptr(), 2.0_f32, 32_u32))? };
    stream.synchronize()?;
    note(3);
    if values.to_vec()? != [2.0; 32] {
        return Err("wrong results".into());
    }
    Ok(times)
}
