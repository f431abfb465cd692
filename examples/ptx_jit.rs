//! Compiling and linking PTX at run time: options, logs, errors, and a global variable.

use cuda_driver::jit::JitTarget;
use cuda_driver::{Context, Device, DeviceBuffer, JitOptions, LaunchConfig, Linker, Module, Stream, Version};
use cuda_driver_soft::Prefer;

/// `extern __device__ unsigned scale(unsigned);` and a kernel that stores `scale(i)` for each thread `i`.
const CALLER: &str = "
.version 7.0
.target sm_52
.address_size 64

.extern .func (.param .u32 result) scale(.param .u32 value);

.visible .entry store(.param .u64 values)
{
    .reg .u32 %i, %result;
    .reg .u64 %values, %at;

    mov.u32        %i, %tid.x;
    {
        .param .u32 value, result;
        st.param.u32 [value], %i;
        call.uni (result), scale, (value);
        ld.param.u32 %result, [result];
    }
    ld.param.u64   %values, [values];
    mul.wide.u32   %at, %i, 4;
    add.u64        %values, %values, %at;
    st.global.u32  [%values], %result;
    ret;
}
";

/// `__device__ unsigned factor = 2; __device__ unsigned scale(unsigned value) { return value * factor; }`
const CALLEE: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .global .u32 factor = 2;

.visible .func (.param .u32 result) scale(.param .u32 value)
{
    .reg .u32 %value, %factor;

    ld.param.u32   %value, [value];
    ld.global.u32  %factor, [factor];
    mul.lo.u32     %value, %value, %factor;
    st.param.u32   [result], %value;
    ret;
}
";

/// Runs `store` with four threads and returns the stored values.
fn run(context: &Context, module: &Module) -> cuda_driver::Result<Vec<u32>> {
    let store = module.function("store")?;
    let stream = Stream::new(context)?;
    let values = DeviceBuffer::from_slice(context, &[0_u32; 4])?;
    // SAFETY: the kernel takes an address and stores one number for each of the four threads.
    unsafe { store.launch(&stream, LaunchConfig::covering(4, 4), (values.ptr(),))? };
    stream.synchronize()?;
    values.to_vec()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By default, uses the system's driver if it has a device, else the software driver.
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;

    // The error contains the compiler's messages, and `?` keeps them.
    let error = Module::from_ptx(&context, &CALLEE.replace("mul.lo.u32", "mul.u32")).expect_err("a syntax error");
    println!("A syntax error:\n{error}\n");

    // Both sources are compiled for the context's device and linked.
    let mut options = JitOptions {
        target: Some(JitTarget::Context),
        verbose: true,
        ..Default::default()
    };
    if cuda_driver::version()? >= Version::new(13, 1) {
        options.loader_threads = Some(2);
    } else {
        println!("The option `loader_threads` needs a driver of CUDA 13.1 or later\n");
    }
    let linker = Linker::new(&context, &options)?;
    linker.add_ptx("caller.ptx", CALLER)?;
    linker.add_ptx("callee.ptx", CALLEE)?;
    let image = linker.complete()?;
    println!(
        "Link completed in {:.3} ms: {} bytes",
        image.link_ms(),
        image.as_bytes().len()
    );
    // On a GPU, the log lists the resources that each kernel uses.
    println!("{}", image.info_log());

    let module = image.load(&context)?;
    let twice = run(&context, &module)?;
    // A variable of the module keeps its value between launches.
    module.global("factor")?.write(&10_u32)?;
    let tenfold = run(&context, &module)?;
    println!("{twice:?}, then {tenfold:?}");

    let passed = twice == [0, 2, 4, 6] && tenfold == [0, 10, 20, 30];
    println!("Result = {}", if passed { "PASS" } else { "FAIL" });
    if !passed {
        std::process::exit(1);
    }
    Ok(())
}
