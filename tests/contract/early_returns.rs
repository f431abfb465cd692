//! Tests that no handle leaks when a program returns early: there is a program for each chapter of the Driver API
//! guide, each of its calls fails once, and a hook counts the handles that are left.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;

use cuda_driver::array::ArrayShape;
use cuda_driver::sys::library::{Call, Faithful, Interposer, Options, Source, set_default_with};
use cuda_driver::sys::{CUresult, CUstreamCaptureMode, Function};
use cuda_driver::texture::TextureDescriptor;
use cuda_driver::virtual_memory::{AddressRange, MemoryOptions, PhysicalMemory};
use cuda_driver::{
    Array, Context, Device, DeviceBuffer, Event, Graph, HostBuffer, JitOptions, LaunchConfig, Library, Linker,
    ManagedBuffer, MemPool, Module, PitchedBuffer, PrimaryContext, Stream, StreamBuffer, Surface, Texture,
};

use crate::child;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Functions that create a handle, each with the function that its owner calls to destroy it.
const CREATE: &[(Function, Function)] = &[
    (Function::cuCtxCreate_v2, Function::cuCtxDestroy_v2),
    (
        Function::cuDevicePrimaryCtxRetain,
        Function::cuDevicePrimaryCtxRelease_v2,
    ),
    (Function::cuStreamCreate, Function::cuStreamDestroy_v2),
    (Function::cuEventCreate, Function::cuEventDestroy_v2),
    (Function::cuModuleLoadData, Function::cuModuleUnload),
    (Function::cuModuleLoadDataEx, Function::cuModuleUnload),
    (Function::cuLibraryLoadData, Function::cuLibraryUnload),
    (Function::cuLinkCreate_v2, Function::cuLinkDestroy),
    (Function::cuMemAlloc_v2, Function::cuMemFree_v2),
    (Function::cuMemAllocPitch_v2, Function::cuMemFree_v2),
    (Function::cuMemAllocManaged, Function::cuMemFree_v2),
    (Function::cuMemAllocAsync, Function::cuMemFree_v2),
    (Function::cuMemAllocFromPoolAsync, Function::cuMemFree_v2),
    (Function::cuMemHostAlloc, Function::cuMemFreeHost),
    (Function::cuMemPoolCreate, Function::cuMemPoolDestroy),
    (Function::cuArray3DCreate_v2, Function::cuArrayDestroy),
    (Function::cuTexObjectCreate, Function::cuTexObjectDestroy),
    (Function::cuSurfObjectCreate, Function::cuSurfObjectDestroy),
    (Function::cuGraphCreate, Function::cuGraphDestroy),
    (Function::cuStreamEndCapture, Function::cuGraphDestroy),
    (Function::cuGraphInstantiateWithFlags, Function::cuGraphExecDestroy),
    (Function::cuGraphInstantiateWithParams, Function::cuGraphExecDestroy),
    (Function::cuMemAddressReserve, Function::cuMemAddressFree),
    (Function::cuMemCreate, Function::cuMemRelease),
    (Function::cuMemMap, Function::cuMemUnmap),
];

/// Functions that are not made to fail. A context that could not be popped would be leaked, because it is still
/// current. While a stream captures, no memory can be freed.
const NEVER_FAIL: [Function; 3] = [
    Function::cuCtxGetCurrent,
    Function::cuCtxPopCurrent_v2,
    Function::cuStreamEndCapture,
];

/// The number of live handles by the name of the function that destroys them.
static LIVE: Mutex<BTreeMap<&str, i64>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The number of calls until one fails, counting that one; 0 if none does.
    static UNTIL_FAILURE: Cell<u32> = const { Cell::new(0) };
    /// True after a call was made to fail.
    static FAILED: Cell<bool> = const { Cell::new(false) };
}

/// Counts handles, and makes a call fail.
struct Hook;

impl Interposer for Hook {
    fn call(&self, call: Call<'_>) -> CUresult {
        let function = call.function();
        let left = UNTIL_FAILURE.get();
        if left > 0 && !NEVER_FAIL.contains(&function) {
            UNTIL_FAILURE.set(left - 1);
            if left == 1 {
                FAILED.set(true);
                return CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            }
        }
        let code = call.forward();
        if code == CUresult::CUDA_SUCCESS {
            let mut live = LIVE.lock().expect("no panic");
            if let Some((_, end)) = CREATE.iter().find(|(create, _)| *create == function) {
                *live.entry(end.name()).or_default() += 1;
            }
            if CREATE.iter().any(|(_, end)| *end == function) {
                *live.entry(function.name()).or_default() -= 1;
            }
        }
        code
    }
}

// SAFETY: the hook returns the driver's own results, or a failure of a call that it does not make.
unsafe impl Faithful for Hook {}

const PTX: &str = "
.version 6.4
.target sm_52
.address_size 64
.visible .entry store(.param .u64 to) {
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    st.global.u32 [%to], 7;
    ret;
}
";

fn contexts(_: &Context) -> Result {
    let context = Context::create(Device::first()?)?;
    let primary = PrimaryContext::retain(Device::first()?)?;
    let other = context.clone();
    std::thread::spawn(move || other.synchronize())
        .join()
        .expect("no panic")?;
    let _current = primary.push()?;
    assert_eq!(context.flags()?.0 & 7, 0);
    done()
}

fn modules(context: &Context) -> Result {
    let module = Module::from_ptx(context, PTX)?;
    let options = JitOptions::default();
    let second = Module::from_ptx_with(context, PTX, &options)?;
    let linker = Linker::new(context, &options)?;
    linker.add_ptx("store", PTX)?;
    let _image = linker.complete()?;
    let library = Library::from_ptx(PTX)?;
    let _kernel = library.kernel("store")?;
    let _functions = (module.function("store")?, second.function("store")?);
    done()
}

fn launches(context: &Context) -> Result {
    let module = Module::from_ptx(context, PTX)?;
    let store = module.function("store")?;
    let stream = Stream::new(context)?;
    let to = DeviceBuffer::<u32>::zeroed(context, 1)?;
    // SAFETY: the kernel stores one value, and freeing the buffer waits for it.
    unsafe { store.launch(&stream, LaunchConfig::covering(1, 1), (to.ptr(),)) }?;
    stream.synchronize()?;
    assert_eq!(to.to_vec()?, [7]);
    done()
}

fn memory(context: &Context) -> Result {
    let host = HostBuffer::from_slice(context, &[1_u32, 2, 3])?;
    let mut device = DeviceBuffer::from_slice(context, &host)?;
    device.slice_mut(1..)?.fill_u32(5)?;
    let mut rows = PitchedBuffer::<u32>::alloc(context, 3, 2)?;
    rows.fill_u32(1)?;
    let _managed = ManagedBuffer::<u32>::alloc(context, 10)?;
    assert_eq!(device.to_vec()?, [1, 5, 5]);
    done()
}

fn streams(context: &Context) -> Result {
    let (copies, work) = (Stream::new(context)?, Stream::non_blocking(context)?);
    let (start, end) = (Event::new(context)?, Event::new(context)?);
    start.record(&copies)?;
    work.wait_event(&start)?;
    let host = HostBuffer::from_slice(context, &[1_u32, 2, 3])?;
    let device = DeviceBuffer::alloc(context, 3)?;
    let pending = copies.upload(host, device)?;
    end.record(&copies)?;
    work.launch_host_fn(|| ())?;
    work.synchronize()?;
    copies.synchronize()?;
    start.elapsed_ms(&end)?;
    done()?;
    pending.wait()?;
    Ok(())
}

fn pools(context: &Context) -> Result {
    let stream = Stream::new(context)?;
    let pool = MemPool::new(Device::first()?)?;
    let _first = StreamBuffer::<u32>::alloc(context, &stream, 100)?;
    let _second = StreamBuffer::<u32>::alloc(context, &stream, 100)?;
    pool.trim_to(0)?;
    stream.synchronize()?;
    done()
}

fn graphs(context: &Context) -> Result {
    let stream = Stream::new(context)?;
    let module = Module::from_ptx(context, PTX)?;
    let store = module.function("store")?;
    let value = DeviceBuffer::<u32>::zeroed(context, 1)?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    let captured = stream.capture(mode, |stream| {
        // SAFETY: the kernel stores one value in the buffer, which lives until all launches are done.
        unsafe { store.launch(stream, LaunchConfig::covering(1, 1), (value.ptr(),)) }
    })?;
    captured.keep(module);
    let graph = Graph::new(context)?;
    let first = graph.add_host_fn(&[], || ())?;
    graph.add_empty(&[first])?;
    let (exec, _host) = (captured.instantiate()?, graph.instantiate()?);
    // SAFETY: as above.
    unsafe { exec.launch(&stream) }?;
    stream.synchronize()?;
    assert_eq!(value.to_vec()?, [7]);
    done()
}

fn textures(context: &Context) -> Result {
    let array = Array::<f32>::new(context, ArrayShape::d2(4, 4).surface())?;
    array.copy_from(&[1.0; 16])?;
    let _texture = Texture::new(&array, &TextureDescriptor::new())?;
    let _surface = Surface::new(&array)?;
    done()
}

fn virtual_memory(context: &Context) -> Result {
    let options = MemoryOptions::on_device(Device::first()?);
    let size = options.granularity()?;
    let mut range = AddressRange::reserve(context, 2 * size)?;
    let memory = PhysicalMemory::new(&options, size)?;
    range.map(0, &memory)?;
    range.map(size, &memory)?;
    done()
}

/// Stops injecting a failure: the calls that follow destroy objects, and drops cannot report a failure.
fn done() -> Result {
    UNTIL_FAILURE.set(0);
    Ok(())
}

type Program = fn(&Context) -> Result;

const PROGRAMS: [(&str, Program); 9] = [
    ("contexts", contexts),
    ("modules", modules),
    ("launches", launches),
    ("memory", memory),
    ("streams", streams),
    ("pools", pools),
    ("graphs", graphs),
    ("textures", textures),
    ("virtual memory", virtual_memory),
];

#[test]
fn no_handle_leaks_on_an_early_return() {
    child!("no_handle_leaks_on_an_early_return", {
        let selection = match cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software) {
            Ok(selection) => selection,
            Err(error) => panic!("the driver under test cannot be used: {error}"),
        };
        let options = Options::new().hook(Hook);
        set_default_with(Source::library(selection.library()), options).expect("no default library yet");
        cuda_driver::init().expect("cuInit");
        let context = Context::create(Device::first().expect("a device")).expect("a context");
        let before = LIVE.lock().expect("no panic").clone();
        for (name, program) in PROGRAMS {
            program(&context).unwrap_or_else(|error| panic!("{name}: {error}"));
            for call in 1.. {
                UNTIL_FAILURE.set(call);
                let result = program(&context);
                UNTIL_FAILURE.set(0);
                // A program may succeed although a call has failed: some failures are ignored. The error may own
                // buffers.
                let text = format!("{result:?}");
                drop(result);
                let mut live = LIVE.lock().expect("no panic").clone();
                live.retain(|end, count| *count != before.get(end).copied().unwrap_or_default());
                assert_eq!(live, BTreeMap::new(), "{name}: call {call}: {text}");
                if !FAILED.replace(false) {
                    assert!(call > 5, "{name}: only {call} calls");
                    break;
                }
            }
        }
    });
}

/// The objects cover the chapters of the guide: programs need `unsafe` for launches only.
#[test]
fn programs_are_unsafe_in_launches_only() {
    let text = include_str!("early_returns.rs");
    let (_, text) = text.split_once("\nfn contexts(").expect("the first program");
    let (programs, _) = text.split_once("\ntype Program").expect("the end of the last program");
    let lines: Vec<&str> = programs.lines().filter(|line| line.contains("unsafe")).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(".launch(")), "{lines:?}");
}
