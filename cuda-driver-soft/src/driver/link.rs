//! The linker: several sources into one image.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context;
use super::device::Device;
use super::error::{Error, Result};
use super::jit::{self, Log, Options};
use super::process::driver_without_fault;
use crate::image::Image;
use crate::image::cubin::{self, Source};
use crate::image::link::{self, Input};

/// A linker in use.
pub(crate) struct Linker {
    device: &'static Device,
    options: Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sources: Vec<Source>,
    inputs: Vec<Input>,
    /// Inputs without a name of their own are numbered.
    added: usize,
    /// Two inputs define the same: nothing can be linked any more.
    broken: bool,
    /// `cuLinkComplete` was called. The image stays where it is until the linker is destroyed.
    completed: Option<Result<Arc<[u8]>>>,
    log: Log,
}

/// `cuLinkCreate`
pub(crate) fn create(options: Options) -> Result<usize> {
    let device = context::current()?.device;
    let mut handle = 0;
    driver_without_fault()?.linkers.insert_with(|h| {
        handle = h;
        Linker {
            device,
            options,
            state: Mutex::default(),
        }
    });
    Ok(handle)
}

/// The living linker of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Linker>> {
    driver_without_fault()?.linkers.get(handle).map_err(|why| {
        crate::log!("linker {handle:#x} is {why:?}");
        Error::INVALID_HANDLE
    })
}

/// `cuLinkDestroy`
pub(crate) fn destroy(handle: usize) -> Result<()> {
    get(handle)?;
    driver_without_fault()?
        .linkers
        .remove(handle)
        .map_err(|_| Error::INVALID_HANDLE)?;
    Ok(())
}

impl Linker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was said so far.
    pub(crate) fn log(&self) -> Log {
        self.state().log.clone()
    }

    /// `cuLinkAddData` and `cuLinkAddFile`: compiled at once; a name that is defined twice breaks the linker.
    pub(crate) fn add(&self, name: Option<&str>, image: &Image) -> Result<()> {
        let mut guard = self.state();
        let state = &mut *guard;
        if state.completed.is_some() {
            return Err(Error::INVALID_VALUE);
        }
        state.added += 1;
        let name = name.map_or_else(|| format!("Input {}", state.added), str::to_owned);
        let sources = jit::sources(&name, image, &self.options, self.device, &mut state.log)?;
        for (source, input) in sources {
            if let Some((twice, first)) = link::duplicate(&state.inputs, &input.module) {
                state.log.say(&format!(
                    "error   : Multiple definition of '{twice}' in '{}', first defined in '{first}'",
                    input.name
                ));
                state.broken = true;
                return Err(Error::INVALID_SOURCE);
            }
            state.sources.push(source);
            state.inputs.push(input);
        }
        Ok(())
    }

    /// `cuLinkComplete`: the image, which lives as long as the linker. Only once.
    pub(crate) fn complete(&self) -> Result<Arc<[u8]>> {
        let mut guard = self.state();
        let state = &mut *guard;
        match &state.completed {
            Some(Ok(_)) => return Err(Error::INVALID_HANDLE),
            Some(Err(error)) => return Err(*error),
            None => {}
        }
        let completed = self.try_complete(state);
        state.completed = Some(completed.clone());
        completed
    }

    fn try_complete(&self, state: &mut State) -> Result<Arc<[u8]>> {
        if state.broken {
            return Err(Error::INVALID_SOURCE);
        }
        jit::link(&state.inputs, &mut state.log)?;
        Ok(cubin::write(&state.sources, self.options.target).into())
    }
}
