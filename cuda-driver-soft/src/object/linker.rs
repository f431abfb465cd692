//! The linker: combines several inputs into one image.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::device::{self, Device};
use crate::object::jit::{self, Log, Options};
use crate::object::leak;
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use image::cubin::{self, Source};
use image::link::{self, Input};
use image::{Definitions, Image, fat_binaries};
use ptx::ir::Module;

/// Part of the file name of CUDA's device runtime library. This library contains only machine code, so the driver links
/// its own implementation of some of the functions.
const DEVICE_RUNTIME: &str = "cudadevrt";
/// The driver's implementation of the functions that synchronise a cooperative grid, in PTX.
const RUNTIME: &[u8] = include_bytes!("device_runtime.ptx");

/// The kind of a linker input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// PTX, a fat binary or a linked image.
    Code,
    /// A host object file that contains fat binaries.
    Object,
    /// A host library of such object files.
    Library,
}

static TABLE: Table<Linker> = Table::new(HandleKind::Linker);

/// A linker.
pub(crate) struct Linker {
    device: &'static Device,
    options: Options,
    state: Mutex<LinkerState>,
}

#[derive(Default)]
struct LinkerState {
    /// The PTX texts to link.
    sources: Vec<Source>,
    /// The compiled sources, in the same order.
    inputs: Vec<Input>,
    /// The definitions of the inputs.
    definitions: Definitions,
    /// Members of libraries, which are linked if they define a missing name.
    libraries: Vec<(Source, Input)>,
    /// True if the device runtime library was added and the driver's own was not linked yet.
    device_runtime: bool,
    /// Number of inputs so far, for the names of unnamed inputs.
    added: usize,
    /// True if two inputs define the same name, after which linking fails.
    broken: bool,
    /// The result of `cuLinkComplete`. The image does not move until the linker is destroyed.
    completed: Option<Result<Arc<[u8]>>>,
    log: Log,
}

/// `cuLinkCreate`
pub(crate) fn create(device: &'static Device, options: Options) -> usize {
    let mut handle = 0;
    TABLE.insert_with(|h| {
        handle = h;
        Linker {
            device,
            options,
            state: Mutex::default(),
        }
    });
    leak::note("linker", &TABLE, handle, None);
    handle
}

/// Links the fat binaries of separately compiled files for the first device; returns `None` if none of them has PTX for
/// it. Calls of the device runtime's functions for cooperative grids are linked to the driver's own implementation.
pub(crate) fn link_parts(parts: &[Vec<u8>]) -> Result<Option<Arc<[u8]>>> {
    let linker = Linker {
        device: device::all().first().ok_or(Error::CUDA_ERROR_NO_DEVICE)?,
        options: Options::default(),
        state: Mutex::default(),
    };
    linker.state().device_runtime = true;
    let mut linked = false;
    for part in parts {
        let image = Image::FatBinary(part.clone());
        match linker.add(None, &image, InputKind::Code, Options::default()) {
            Ok(()) => linked = true,
            // The device runtime library, for example, contains only machine code.
            Err(Error::CUDA_ERROR_NO_BINARY_FOR_GPU) => host::log!("ignored a relocatable file without PTX"),
            Err(error) => return Err(error),
        }
    }
    linked.then(|| linker.complete()).transpose()
}

/// Returns the linker with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Linker>> {
    TABLE.get(handle).map_err(|missing| {
        host::log!("linker {handle:#x} {missing}");
        Error::CUDA_ERROR_INVALID_HANDLE
    })
}

/// `cuLinkDestroy`
pub(crate) fn destroy(handle: usize) -> Result<()> {
    get(handle)?;
    TABLE.remove(handle).map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    Ok(())
}

impl Linker {
    fn state(&self) -> MutexGuard<'_, LinkerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `read` with the logs so far.
    pub(crate) fn read_log(&self, read: impl FnOnce(&Log)) {
        read(&self.state().log);
    }

    /// `cuLinkAddData` and `cuLinkAddFile`: compile the input immediately. The input's own options can override the
    /// linker's register limits and turn on the verbose log; the linker's other options apply. After two inputs have
    /// defined the same name, linking fails.
    pub(crate) fn add(&self, name: Option<&str>, image: &Image, kind: InputKind, own: Options) -> Result<()> {
        let options = Options {
            most_registers: own.most_registers.or(self.options.most_registers),
            threads_per_block: own.threads_per_block.or(self.options.threads_per_block),
            verbose: own.verbose || self.options.verbose,
            ..self.options
        };
        let mut guard = self.state();
        let state = &mut *guard;
        if state.completed.is_some() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        state.added += 1;
        let name = name.map_or_else(|| format!("Input {}", state.added), str::to_owned);
        if kind == InputKind::Code {
            let sources = jit::sources(&name, image, &options, self.device, &mut state.log)?;
            return Self::take(state, sources);
        }
        let Some(binaries) = fat_binaries(image.bytes()) else {
            host::log!("{name} is not a host object file or library with fat binaries");
            return Err(Error::CUDA_ERROR_INVALID_IMAGE);
        };
        if kind == InputKind::Library && name.contains(DEVICE_RUNTIME) {
            state.device_runtime = true;
            return Ok(());
        }
        for binary in binaries {
            let image = Image::FatBinary(binary);
            let mut log = Log::default();
            let sources = jit::sources(&name, &image, &options, self.device, &mut log);
            if kind == InputKind::Object {
                state.log.add_info(&log.info);
            }
            match sources {
                // A linker uses only the members of a library that it needs, so a member it cannot use is not an error.
                Err(Error::CUDA_ERROR_NO_BINARY_FOR_GPU) if kind == InputKind::Library => {
                    host::log!("{name}: ignored a member without PTX for this device");
                }
                Ok(sources) if kind == InputKind::Library => state.libraries.extend(sources),
                Ok(sources) => Self::take(state, sources)?,
                Err(error) => {
                    state.log.add_error(&log.error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn take(state: &mut LinkerState, sources: Vec<(Source, Input)>) -> Result<()> {
        for (source, input) in sources {
            if let Err(conflict) = state.definitions.add(&input.name, &input.module) {
                state.log.add_error(&format!("error   : {conflict}"));
                state.broken = true;
                return Err(Error::CUDA_ERROR_INVALID_SOURCE);
            }
            state.sources.push(source);
            state.inputs.push(input);
        }
        Ok(())
    }

    /// `cuLinkComplete`: returns the image, which lives as long as the linker. A second call returns
    /// `CUDA_ERROR_INVALID_HANDLE`, or the error of the first call.
    pub(crate) fn complete(&self) -> Result<Arc<[u8]>> {
        let mut guard = self.state();
        let state = &mut *guard;
        match &state.completed {
            Some(Ok(_)) => return Err(Error::CUDA_ERROR_INVALID_HANDLE),
            Some(Err(error)) => return Err(*error),
            None => {}
        }
        let completed = self.try_complete(state);
        state.completed = Some(completed.clone());
        completed
    }

    fn try_complete(&self, state: &mut LinkerState) -> Result<Arc<[u8]>> {
        if state.broken {
            return Err(Error::CUDA_ERROR_INVALID_SOURCE);
        }
        self.take_from_libraries(state)?;
        jit::link_verbosely(&state.inputs, &self.options, &mut state.log)?;
        Ok(cubin::write(&state.sources, self.options.target).into())
    }

    /// Adds the library members that define missing names, and the driver's device runtime if its functions are
    /// missing.
    fn take_from_libraries(&self, state: &mut LinkerState) -> Result<()> {
        loop {
            let members: Vec<&Module> = state.libraries.iter().map(|(_, input)| &*input.module).collect();
            let needed = link::needed(&state.inputs, &members);
            let ours = needed.missing.iter().any(|name| name.starts_with("cudaCG"));
            let needed = needed.members;
            let mut members: Vec<_> = std::mem::take(&mut state.libraries).into_iter().map(Some).collect();
            let taken = needed.iter().filter_map(|member| members[*member].take()).collect();
            state.libraries = members.into_iter().flatten().collect();
            Self::take(state, taken)?;
            if !ours || !std::mem::take(&mut state.device_runtime) {
                return Ok(());
            }
            let image = Image::Text(RUNTIME.to_vec());
            let name = "libcudadevrt.a";
            let runtime = jit::sources(name, &image, &self.options, self.device, &mut state.log)?;
            Self::take(state, runtime)?;
        }
    }
}
