//! Two processes that share device memory: one fills a buffer, the other doubles its values in place, and an event of
//! each process orders the work.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

use cuda_driver::ipc::{EventHandle, HANDLE_BYTES, MemoryHandle};
use cuda_driver::{Context, Device, DeviceBuffer, Event, IpcBuffer, LaunchConfig, Module, Stream};
use cuda_driver_soft::Prefer;

/// `scale(float* values, unsigned n, float factor)` multiplies each value by `factor`.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry scale(.param .u64 values, .param .u32 n, .param .f32 factor)
{
    .reg .pred %p;
    .reg .b32  %i, %n, %block, %size;
    .reg .b64  %at, %values;
    .reg .f32  %x, %factor;

    mov.u32        %block, %ctaid.x;
    mov.u32        %size, %ntid.x;
    mov.u32        %i, %tid.x;
    mad.lo.u32     %i, %block, %size, %i;
    ld.param.u32   %n, [n];
    setp.ge.u32    %p, %i, %n;
    @%p ret;

    ld.param.u64   %values, [values];
    ld.param.f32   %factor, [factor];
    mul.wide.u32   %at, %i, 4;
    add.u64        %at, %values, %at;
    ld.global.f32  %x, [%at];
    mul.f32        %x, %x, %factor;
    st.global.f32  [%at], %x;
    ret;
}
";

const N: usize = 10_000;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("other") => other_process(),
        _ => first_process(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn context() -> Result<Context> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    Ok(Context::create(Device::first()?)?)
}

fn first_process() -> Result {
    if !cfg!(target_os = "linux") {
        println!("needs Linux");
        return Ok(());
    }
    let context = context()?;
    let stream = Stream::new(&context)?;
    let values: Vec<f32> = (0..N as u16).map(f32::from).collect();
    let buffer = DeviceBuffer::from_slice(&context, &values)?;
    context.synchronize()?;
    let filled = Event::interprocess(&context)?;
    filled.record(&stream)?;

    // The handles, of 64 bytes each, are sent through a pipe.
    let mut other = Command::new(std::env::current_exe()?)
        .arg("other")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = other.stdin.take().ok_or("no pipe")?;
    pipe.write_all(&buffer.ipc_handle()?.to_bytes())?;
    pipe.write_all(&filled.ipc_handle()?.to_bytes())?;

    // The other process sends the handle of its event, and ends when this process closes the pipe.
    let mut bytes = [0; HANDLE_BYTES];
    other.stdout.take().ok_or("no pipe")?.read_exact(&mut bytes)?;
    // SAFETY: the other process keeps its event until the pipe is closed.
    let doubled = unsafe { Event::open_ipc(&context, EventHandle::from_bytes(bytes)) }?;
    stream.wait_event(&doubled)?;
    stream.synchronize()?;
    doubled.destroy()?;
    drop(pipe);
    if !other.wait()?.success() {
        return Err("the other process failed".into());
    }

    let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
    let pass = buffer.to_vec()? == doubled;
    println!("{N} values of this process were doubled by process {}", other.id());
    println!("Result = {}", if pass { "PASS" } else { "FAIL" });
    if pass { Ok(()) } else { Err("wrong values".into()) }
}

fn other_process() -> Result {
    let context = context()?;
    let (mut memory, mut event) = ([0; HANDLE_BYTES], [0; HANDLE_BYTES]);
    let mut pipe = std::io::stdin();
    pipe.read_exact(&mut memory)?;
    pipe.read_exact(&mut event)?;
    // SAFETY: the first process keeps the memory and its event until this process ends.
    let (buffer, filled) = unsafe {
        (
            IpcBuffer::<f32>::open(&context, MemoryHandle::from_bytes(memory))?,
            Event::open_ipc(&context, EventHandle::from_bytes(event))?,
        )
    };
    let module = Module::from_ptx(&context, PTX)?;
    let scale = module.function("scale")?;
    let stream = Stream::new(&context)?;
    stream.wait_event(&filled)?;
    let config = LaunchConfig::covering(N as u32, 256);
    // SAFETY: the arguments have the types of the kernel's parameters, and the buffer has `N` values.
    unsafe { scale.launch(&stream, config, (buffer.ptr(), N as u32, 2.0_f32)) }?;
    let doubled = Event::interprocess(&context)?;
    doubled.record(&stream)?;
    let mut out = std::io::stdout();
    out.write_all(&doubled.ipc_handle()?.to_bytes())?;
    out.flush()?;

    // The event and the memory must live until the first process is done.
    pipe.read_to_end(&mut Vec::new())?;
    stream.synchronize()?;
    Ok(())
}
