//! Tests of types that own handles: each handle passes through `into_raw` and `from_raw` if its type has them, and is
//! destroyed once, in any order of drops and on any thread. After a fault, at exit and in a forked process, it is
//! destroyed once or leaked.
//!
//! Each test counts the calls of its process, so it runs in a process of its own.

use std::sync::{Mutex, OnceLock};

use cuda_driver::array::ArrayShape;
use cuda_driver::driver_log::LogCallback;
use cuda_driver::graph::UserObject;
use cuda_driver::pool::{MemPool, StreamBuffer};
use cuda_driver::sys::library::{Options, Source, set_default_with};
use cuda_driver::sys::{CUdevResourceType, CUresult, Function};
use cuda_driver::texture::{TextureDescriptor, TextureReference};
use cuda_driver::virtual_memory::{AddressRange, MemoryOptions, PhysicalMemory};
use cuda_driver::{
    Array, Context, Device, DeviceBuffer, Event, Graph, GraphExec, GreenContext, HostBuffer, JitOptions, LaunchConfig,
    Library, Linker, ManagedBuffer, MipmappedArray, Module, PitchedBuffer, PrimaryContext, Stream, Surface, Texture,
};
use cuda_driver_hooks::Counter;

use crate::common::{in_child, needs, ptx_path};
use crate::test_path;

/// An owner of any type.
type Owner = Box<dyn Send>;

/// A type that owns handles.
struct Row {
    name: &'static str,
    /// The functions that destroy the handles of one owner. A function that is called twice is listed twice.
    ends: &'static [Function],
    /// Makes an owner, or returns `None` if the driver has no such objects.
    make: fn(&Context) -> Option<Owner>,
    /// Passes a handle through `into_raw`, the borrowed form and `from_raw`, as far as the type has them, and returns
    /// the owner; `None` if it has none of them. `into_raw` leaks the references to other objects, so only the first of
    /// `ends` is called.
    pass: fn(&Context) -> Option<Owner>,
}

const PTX: &str = "
.version 6.4
.target sm_52
.address_size 64
.global .u32 word;
.global .texref texels;
.visible .entry nothing() { ret; }
";

/// Passes a handle through `into_raw`, `$borrow` and `$from`, and returns the new owner.
macro_rules! pass {
    ($context:expr, $made:expr, $from:expr, $borrow:expr) => {{
        let owner = $made;
        let raw = owner.as_raw();
        assert_eq!(owner.into_raw(), raw);
        // SAFETY: the handle is live, and its owner gave it up.
        #[allow(clippy::redundant_closure_call)]
        let (borrowed, owner) = unsafe { ($borrow(raw), $from(raw, $context)) };
        assert_eq!(borrowed.as_raw(), raw);
        assert_eq!(owner.as_raw(), raw);
        Some(Box::new(owner) as Owner)
    }};
}

fn shape() -> ArrayShape {
    ArrayShape::d2(8, 8)
}

fn array(context: &Context) -> Array<f32> {
    Array::new(context, shape()).expect("an array")
}

fn surface_array(context: &Context) -> Array<f32> {
    Array::new(context, shape().surface()).expect("an array")
}

fn physical_memory() -> Option<PhysicalMemory> {
    let options = MemoryOptions::on_device(Device::first().ok()?);
    let size = options.granularity().expect("a granularity");
    Some(PhysicalMemory::new(&options, size).expect("memory"))
}

fn pending(context: &Context) -> Option<Owner> {
    let host = HostBuffer::<u32>::zeroed(context, 16).expect("memory");
    let device = DeviceBuffer::<u32>::alloc(context, 16).expect("memory");
    let stream = Stream::new(context).expect("a stream");
    let pending = stream.upload(host, device).expect("a copy");
    Some(Box::new((pending, stream)))
}

fn graph(context: &Context) -> Graph {
    let graph = Graph::new(context).expect("a graph");
    graph.add_empty(&[]).expect("a node");
    graph
}

fn green_context() -> Option<GreenContext> {
    let device = Device::first().expect("a device");
    let all = match device.resource(CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM) {
        Ok(all) => all,
        // Older drivers do not have green contexts.
        Err(error) if error.is_missing_function() => {
            needs("a driver with green contexts");
            return None;
        }
        Err(error) => panic!("multiprocessors of the device: {error}"),
    };
    let split = all.split_by_count(1, 2, 0).expect("a split");
    Some(GreenContext::create(device, &split.groups).expect("a green context"))
}

/// Returns access to a context of the second device, which the access alone keeps alive.
fn peer_access(context: &Context) -> Option<Owner> {
    let Some(&second) = Device::all().expect("the devices").get(1) else {
        needs("two devices");
        return None;
    };
    let peer = Context::create(second).expect("a context");
    match context.enable_peer_access(&peer) {
        Ok(access) => Some(Box::new(access)),
        Err(error) => {
            assert_eq!(error.code(), CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "{error}");
            needs("devices that can access each other's memory");
            // Leaked, so that its destruction is not counted.
            let _ = peer.into_raw();
            None
        }
    }
}

const ROWS: &[Row] = &[
    Row {
        name: "Context",
        ends: &[Function::cuCtxDestroy_v2],
        make: |_| Some(Box::new(Context::create(Device::first().ok()?).expect("a context"))),
        pass: |_| {
            let context = Context::create(Device::first().ok()?).expect("a context");
            pass!((), context, |raw, _| Context::from_raw(raw), |raw| {
                Context::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "PrimaryContext",
        ends: &[Function::cuDevicePrimaryCtxRelease_v2],
        make: |_| {
            Some(Box::new(
                PrimaryContext::retain(Device::first().ok()?).expect("a context"),
            ))
        },
        pass: |_| {
            let primary = PrimaryContext::retain(Device::first().ok()?).expect("a context");
            Some(Box::new(primary.into_context()))
        },
    },
    Row {
        name: "Attachment",
        ends: &[Function::cuCtxDetach],
        make: |context| Some(Box::new(context.attach().expect("an attachment"))),
        pass: |_| None,
    },
    Row {
        name: "Stream",
        ends: &[Function::cuStreamDestroy_v2],
        make: |context| Some(Box::new(Stream::new(context).expect("a stream"))),
        pass: |context| {
            let stream = Stream::new(context).expect("a stream");
            pass!(context, stream, |raw, c| Stream::from_raw(raw, c), |raw| {
                Stream::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "Event",
        ends: &[Function::cuEventDestroy_v2],
        make: |context| Some(Box::new(Event::new(context).expect("an event"))),
        pass: |context| {
            let event = Event::new(context).expect("an event");
            pass!(context, event, |raw, c| Event::from_raw(raw, c), |raw| {
                Event::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "Module",
        ends: &[Function::cuModuleUnload],
        make: |context| Some(Box::new(Module::from_ptx(context, PTX).expect("a module"))),
        pass: |context| {
            let module = Module::from_ptx(context, PTX).expect("a module");
            pass!(context, module, |raw, c| Module::from_raw(raw, c), |raw| {
                Module::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "Function",
        ends: &[Function::cuModuleUnload],
        make: |context| {
            let module = Module::from_ptx(context, PTX).expect("a module");
            Some(Box::new(module.function("nothing").expect("a function")))
        },
        pass: |_| None,
    },
    Row {
        name: "Global",
        ends: &[Function::cuModuleUnload],
        make: |context| {
            let module = Module::from_ptx(context, PTX).expect("a module");
            Some(Box::new(module.global("word").expect("a variable")))
        },
        pass: |_| None,
    },
    Row {
        name: "Library",
        ends: &[Function::cuLibraryUnload],
        make: |_| Some(Box::new(Library::from_ptx(PTX).expect("a library"))),
        pass: |_| {
            let library = Library::from_ptx(PTX).expect("a library");
            pass!((), library, |raw, _| Library::from_raw(raw), |raw| {
                Library::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "Linker",
        ends: &[Function::cuLinkDestroy],
        make: |context| {
            Some(Box::new(
                Linker::new(context, &JitOptions::default()).expect("a linker"),
            ))
        },
        pass: |context| {
            let linker = Linker::new(context, &JitOptions::default()).expect("a linker");
            pass!(context, linker, |raw, c| Linker::from_raw(raw, c), |raw| {
                Linker::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "DeviceBuffer",
        ends: &[Function::cuMemFree_v2],
        make: |context| Some(Box::new(DeviceBuffer::<u32>::zeroed(context, 16).expect("memory"))),
        pass: |context| {
            let buffer = DeviceBuffer::<u32>::zeroed(context, 16).expect("memory");
            let raw = buffer.as_raw();
            assert_eq!(buffer.into_raw(), raw);
            // SAFETY: the memory is allocated, and its owner gave it up.
            Some(Box::new(unsafe { DeviceBuffer::<u32>::from_raw(raw, 16, context) }))
        },
    },
    Row {
        name: "HostBuffer",
        ends: &[Function::cuMemFreeHost],
        make: |context| Some(Box::new(HostBuffer::<u32>::zeroed(context, 16).expect("memory"))),
        pass: |context| {
            let buffer = HostBuffer::<u32>::zeroed(context, 16).expect("memory");
            let raw = buffer.as_raw();
            assert_eq!(buffer.into_raw(), raw);
            let raw = std::ptr::NonNull::new(raw).expect("memory");
            // SAFETY: the memory is allocated, and its owner gave it up.
            Some(Box::new(unsafe { HostBuffer::from_raw(raw, 16, context) }))
        },
    },
    Row {
        name: "Pending",
        ends: &[
            Function::cuMemFreeHost,
            Function::cuMemFree_v2,
            Function::cuEventDestroy_v2,
            Function::cuStreamDestroy_v2,
        ],
        make: pending,
        pass: |_| None,
    },
    Row {
        name: "StreamBuffer",
        ends: &[Function::cuMemFree_v2, Function::cuStreamDestroy_v2],
        make: |context| {
            let stream = Stream::new(context).expect("a stream");
            let buffer = StreamBuffer::<u32>::alloc(context, &stream, 16).expect("memory");
            Some(Box::new((buffer, stream)))
        },
        pass: |context| {
            let raw = {
                let stream = Stream::new(context).expect("a stream");
                let buffer = StreamBuffer::<u32>::alloc(context, &stream, 16).expect("memory");
                stream.synchronize().expect("memory");
                // Leaked, so that its destruction is not counted.
                let _ = stream.into_raw();
                buffer.into_raw()
            };
            // SAFETY: the memory is allocated, and its owner gave it up.
            let buffer = unsafe { StreamBuffer::<u32>::from_raw(raw, 16, context) };
            assert_eq!(buffer.as_raw(), raw);
            Some(Box::new(buffer))
        },
    },
    Row {
        name: "MemPool",
        ends: &[Function::cuMemPoolDestroy],
        make: |_| Some(Box::new(MemPool::new(Device::first().ok()?).expect("a pool"))),
        pass: |context| {
            let pool = MemPool::new(Device::first().ok()?).expect("a pool");
            pass!(context, pool, |raw, _| MemPool::from_raw(raw), |raw| {
                MemPool::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "ManagedBuffer",
        ends: &[Function::cuMemFree_v2],
        make: |context| Some(Box::new(ManagedBuffer::<u32>::alloc(context, 16).expect("memory"))),
        pass: |context| {
            let raw = ManagedBuffer::<u32>::alloc(context, 16).expect("memory").into_raw();
            // SAFETY: the memory is allocated, and its owner gave it up.
            let buffer = unsafe { ManagedBuffer::<u32>::from_raw(raw, 16, context) }.expect("an owner");
            assert_eq!(buffer.as_raw(), raw);
            Some(Box::new(buffer))
        },
    },
    Row {
        name: "PitchedBuffer",
        ends: &[Function::cuMemFree_v2],
        make: |context| Some(Box::new(PitchedBuffer::<u32>::alloc(context, 5, 3).expect("memory"))),
        pass: |context| {
            let raw = PitchedBuffer::<u32>::alloc(context, 5, 3).expect("memory").into_raw();
            // SAFETY: the memory is allocated with at least this pitch, and its owner gave it up.
            let buffer = unsafe { PitchedBuffer::<u32>::from_raw(raw, 512, 5, 3, context) };
            assert_eq!(buffer.as_raw(), raw);
            Some(Box::new(buffer))
        },
    },
    Row {
        name: "PhysicalMemory",
        ends: &[Function::cuMemRelease],
        make: |_| Some(Box::new(physical_memory()?)),
        pass: |context| {
            let memory = physical_memory()?;
            let size = memory.size_bytes();
            pass!(context, memory, |raw, _| PhysicalMemory::from_raw(raw, size), |raw| {
                PhysicalMemory::borrow_raw(raw, size)
            })
        },
    },
    Row {
        name: "AddressRange",
        ends: &[Function::cuMemAddressFree],
        make: |context| Some(Box::new(AddressRange::reserve(context, 1 << 21).expect("addresses"))),
        pass: |context| {
            let raw = AddressRange::reserve(context, 1 << 21).expect("addresses").into_raw();
            // SAFETY: the range is reserved, and its owner gave it up.
            let range = unsafe { AddressRange::from_raw(raw, 1 << 21, context) };
            assert_eq!(range.as_raw(), raw);
            Some(Box::new(range))
        },
    },
    Row {
        name: "Array",
        ends: &[Function::cuArrayDestroy],
        make: |context| Some(Box::new(array(context))),
        pass: |context| {
            let array = array(context);
            pass!(context, array, |raw, c| Array::<f32>::from_raw(raw, c), |raw| {
                Array::<f32>::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "MipmappedArray",
        ends: &[Function::cuMipmappedArrayDestroy],
        make: |context| {
            Some(Box::new(
                MipmappedArray::<f32>::new(context, shape(), 2).expect("an array"),
            ))
        },
        pass: |context| {
            let array = MipmappedArray::<f32>::new(context, shape(), 2).expect("an array");
            pass!(
                context,
                array,
                |raw, c| MipmappedArray::<f32>::from_raw(raw, c),
                |raw| MipmappedArray::<f32>::borrow_raw(raw)
            )
        },
    },
    Row {
        name: "Texture",
        ends: &[Function::cuTexObjectDestroy, Function::cuArrayDestroy],
        make: |context| {
            let texture = Texture::new(&array(context), &TextureDescriptor::new());
            Some(Box::new(texture.expect("a texture")))
        },
        pass: |context| {
            let texture = Texture::new(&array(context), &TextureDescriptor::new()).expect("a texture");
            pass!(context, texture, |raw, c| Texture::from_raw(raw, c), |raw| {
                Texture::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "Surface",
        ends: &[Function::cuSurfObjectDestroy, Function::cuArrayDestroy],
        make: |context| Some(Box::new(Surface::new(&surface_array(context)).expect("a surface"))),
        pass: |context| {
            let surface = Surface::new(&surface_array(context)).expect("a surface");
            pass!(context, surface, |raw, c| Surface::from_raw(raw, c), |raw| {
                Surface::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "TextureReference of a module",
        ends: &[Function::cuModuleUnload],
        make: |context| {
            let module = Module::from_ptx(context, PTX).expect("a module");
            Some(Box::new(module.texture_reference("texels").expect("a reference")))
        },
        pass: |_| None,
    },
    Row {
        name: "TextureReference",
        ends: &[Function::cuTexRefDestroy],
        make: |context| Some(Box::new(TextureReference::new(context).expect("a reference"))),
        pass: |context| {
            let reference = TextureReference::new(context).expect("a reference");
            pass!(context, reference, |raw, c| TextureReference::from_raw(raw, c), |raw| {
                TextureReference::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "Graph",
        ends: &[Function::cuGraphDestroy],
        make: |context| Some(Box::new(graph(context))),
        pass: |context| {
            let graph = graph(context);
            pass!(context, graph, |raw, c| Graph::from_raw(raw, c), |raw| {
                Graph::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "GraphExec",
        ends: &[Function::cuGraphExecDestroy, Function::cuGraphDestroy],
        make: |context| {
            let graph = graph(context);
            Some(Box::new((graph.instantiate().expect("an executable graph"), graph)))
        },
        pass: |context| {
            let graph = graph(context);
            let exec = graph.instantiate().expect("an executable graph");
            let _ = graph.into_raw();
            pass!(context, exec, |raw, c| GraphExec::from_raw(raw, c), |raw| {
                GraphExec::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "UserObject",
        ends: &[Function::cuUserObjectRelease],
        make: |_| Some(Box::new(UserObject::new(vec![1]).expect("a user object"))),
        pass: |_| {
            let object = UserObject::new(vec![1]).expect("a user object");
            pass!((), object, |raw, ()| UserObject::from_raw(raw), |raw| {
                UserObject::borrow_raw(raw)
            })
        },
    },
    Row {
        name: "GreenContext",
        ends: &[Function::cuGreenCtxDestroy],
        make: |_| Some(Box::new(green_context()?)),
        pass: |_| {
            let green = green_context()?;
            let raw = green.as_raw_green();
            assert_eq!(green.into_raw(), raw);
            // SAFETY: the handle is live, and its owner gave it up.
            let (borrowed, green) = unsafe {
                (
                    GreenContext::borrow_raw(raw).expect("a borrowed form"),
                    GreenContext::from_raw(raw).expect("an owner"),
                )
            };
            assert_eq!((borrowed.as_raw_green(), green.as_raw_green()), (raw, raw));
            Some(Box::new(green))
        },
    },
    Row {
        name: "PeerAccess",
        ends: &[Function::cuCtxDisablePeerAccess, Function::cuCtxDestroy_v2],
        make: peer_access,
        pass: |_| None,
    },
    Row {
        name: "LogCallback",
        ends: &[Function::cuLogsUnregisterCallback],
        make: |_| match LogCallback::new(|_, _| ()) {
            Ok(callback) => Some(Box::new(callback)),
            Err(error) => {
                assert!(error.is_missing_function(), "{error}");
                needs("a driver with log callbacks");
                None
            }
        },
        pass: |_| None,
    },
];

/// Runs a test in a process of its own, in which the software driver has two devices.
macro_rules! child {
    ($name:literal, $body:block) => {{
        let _ = in_child(&test_path!($name), &[("CUDA_SOFT_DEVICES", "2")], || $body);
    }};
}

/// Makes the driver under test the default library, with a hook that counts the calls of the process.
fn counter() -> &'static Counter {
    static COUNTER: OnceLock<Counter> = OnceLock::new();
    COUNTER.get_or_init(|| {
        let selection = match cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software) {
            Ok(selection) => selection,
            Err(error) => panic!("the driver under test cannot be used: {error}"),
        };
        let counter = Counter::new();
        let options = Options::new().hook(counter.clone());
        set_default_with(Source::library(selection.library()), options).expect("no default library yet");
        counter
    })
}

fn context() -> Context {
    counter();
    cuda_driver::init().expect("cuInit");
    Context::create(Device::first().expect("a device")).expect("a context")
}

/// Owners, with the calls that must destroy their handles.
struct Owners {
    owners: Vec<Owner>,
    ends: Vec<Function>,
}

/// Makes an owner of each type in `rows`, then a second one of each, and resets the counts.
fn owners_of<'a>(context: &Context, rows: impl Iterator<Item = &'a Row> + Clone) -> Owners {
    let mut all = Owners {
        owners: Vec::new(),
        ends: Vec::new(),
    };
    for _ in 0..2 {
        for row in rows.clone() {
            if let Some(owner) = (row.make)(context) {
                all.owners.push(owner);
                all.ends.extend(row.ends);
            }
        }
    }
    counter().reset();
    all
}

/// Makes two owners of each type, and resets the counts.
fn owners(context: &Context) -> Owners {
    owners_of(context, ROWS.iter())
}

/// Returns the functions of [`ROWS`] that were not called as often as `ends` lists them: name, calls, expected calls.
fn differences(ends: &[Function]) -> Vec<(&'static str, u64, u64)> {
    let mut differences = Vec::new();
    let all = ROWS.iter().flat_map(|row| row.ends);
    for function in all {
        let expected = ends.iter().filter(|other| *other == function).count() as u64;
        let calls = counter().calls(*function);
        let difference = (function.name(), calls, expected);
        if calls != expected && !differences.contains(&difference) {
            differences.push(difference);
        }
    }
    differences
}

#[test]
fn handles_pass_through_owners() {
    child!("handles_pass_through_owners", {
        let context = context();
        for row in ROWS {
            counter().reset();
            let Some(owner) = (row.pass)(&context) else { continue };
            assert_eq!(differences(&[]), [], "{}: before the drop", row.name);
            drop(owner);
            assert_eq!(differences(&row.ends[..1]), [], "{}", row.name);
        }
    });
}

#[test]
fn owners_are_dropped_in_any_order() {
    child!("owners_are_dropped_in_any_order", {
        type TakeOne = fn(&mut Vec<Owner>) -> Option<Owner>;
        let orders: [TakeOne; 3] = [
            Vec::pop,
            |owners| (!owners.is_empty()).then(|| owners.remove(0)),
            |owners| (!owners.is_empty()).then(|| owners.swap_remove(owners.len() / 3)),
        ];
        for order in orders {
            let context = context();
            let mut all = owners(&context);
            // The context is destroyed with the last owner that refers to it.
            all.ends.push(Function::cuCtxDestroy_v2);
            context.destroy().expect("other references");
            while let Some(owner) = order(&mut all.owners) {
                drop(owner);
            }
            assert_eq!(differences(&all.ends), []);
        }
        assert!(Context::current_raw().expect("the current context").is_null());
    });
}

#[test]
fn owners_are_dropped_on_other_threads() {
    child!("owners_are_dropped_on_other_threads", {
        let context = context();
        let mut all = owners(&context);
        all.ends.push(Function::cuCtxDestroy_v2);
        drop(context);
        let threads: Vec<_> = all
            .owners
            .into_iter()
            .map(|owner| std::thread::spawn(move || drop(owner)))
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(differences(&all.ends), []);
    });
}

#[test]
fn owners_are_dropped_after_a_fault() {
    child!("owners_are_dropped_after_a_fault", {
        let context = context();
        // `Pending` and `StreamBuffer` wait for work when they are dropped. If the wait fails, the work may still use
        // the memory, so it is leaked.
        const WAITING: [&str; 2] = ["Pending", "StreamBuffer"];
        let rows = || ROWS.iter().filter(|row| WAITING.contains(&row.name));
        let waiting: Vec<_> = rows().map(|row| (row.make)(&context).expect("an owner")).collect();
        let mut all = owners_of(&context, ROWS.iter().filter(|row| !WAITING.contains(&row.name)));
        let text = std::fs::read_to_string(ptx_path("faults.ptx")).expect("the kernels");
        let module = Module::from_ptx(&context, &text).expect("a module");
        let kernel = module.function("fault_trap").expect("a kernel");
        let stream = Stream::new(&context).expect("a stream");
        // SAFETY: the arguments have the types of the kernel's parameters. Because the first one is not 0, the kernel
        // traps, and does not write to the second one.
        unsafe { kernel.launch(&stream, LaunchConfig::covering(1, 1), (1_u32, 0_u64)) }.expect("a launch");
        assert!(stream.synchronize().expect_err("a fault").is_fault());
        all.ends
            .extend([Function::cuModuleUnload, Function::cuStreamDestroy_v2]);
        drop((module, kernel, stream));
        drop(all.owners);
        assert_eq!(differences(&all.ends), []);
        drop(waiting);
        all.ends.extend(rows().flat_map(|row| row.ends));
        let differences = differences(&all.ends);
        assert!(
            differences.iter().all(|(_, calls, expected)| calls < expected),
            "{differences:?}"
        );
    });
}

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
}

/// The owners that an exit handler drops.
static LAST: Mutex<Option<Owners>> = Mutex::new(None);

#[test]
fn owners_are_dropped_at_exit() {
    // A panic here aborts the process, which fails the test.
    extern "C" fn late() {
        let all = LAST.lock().expect("no panic").take().expect("owners");
        drop(all.owners);
        // Values that device work may still use are leaked, because the driver no longer reports the end of work.
        assert!(
            differences(&all.ends)
                .iter()
                .all(|(_, calls, expected)| calls < expected)
        );
    }
    child!("owners_are_dropped_at_exit", {
        counter();
        // The last handler that was registered runs first, so this one runs after the driver's own.
        // SAFETY: the handler uses only statics.
        assert_eq!(unsafe { atexit(late) }, 0);
        let context = context();
        // Without log callbacks: the manual does not define unregistering one after the driver has shut down.
        let mut all = owners_of(&context, ROWS.iter().filter(|row| row.name != "LogCallback"));
        all.ends.push(Function::cuCtxDestroy_v2);
        drop(context);
        *LAST.lock().expect("no panic") = Some(all);
    });
}

#[test]
#[cfg(unix)]
fn owners_are_dropped_in_a_forked_process() {
    use std::ffi::c_int;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(code: c_int) -> !;
    }
    child!("owners_are_dropped_in_a_forked_process", {
        let context = context();
        let mut all = owners(&context);
        all.ends.push(Function::cuCtxDestroy_v2);
        drop(context);
        // SAFETY: the forked process only drops the owners and ends.
        let process = unsafe { fork() };
        if process == 0 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                drop(all.owners);
                differences(&all.ends)
                    .iter()
                    .all(|(_, calls, expected)| calls < expected)
            }));
            // SAFETY: ends the forked process without running this program's exit handlers.
            unsafe { _exit(c_int::from(!matches!(result, Ok(true)))) };
        }
        let mut status = -1;
        // SAFETY: the pointer is valid for the write.
        assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
        assert_eq!(status, 0, "the forked process");
        // Drops in the forked process are not counted in this one.
        assert_eq!(differences(&[]), []);
        drop(all.owners);
        assert_eq!(differences(&all.ends), []);
    });
}
