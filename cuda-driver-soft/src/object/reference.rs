//! Texture and surface references: variables of a module that the driver binds to texels.
//!
//! A kernel knows them by their address. What it finds there changes when the work that was queued before is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_driver_sys::{
    CU_TRSA_OVERRIDE_FORMAT, CUaddress_mode, CUarray_format, CUdevice_attribute as Attribute,
};

use crate::object::array;
use crate::object::context::{self, Context};
use crate::object::texture::{self as objects, NORMALIZED, Resource, TextureSettings};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Missing, Table};
use engine::Program;
use engine::texture::{self, Object};
use ptx::ir::Opaque;

/// As recorded: what `cuTexRefSetFlags` takes.
const FLAGS: u32 = 0x3f;
const CLAMP: u32 = CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP.0;
const OVERRIDE_FORMAT: u32 = CU_TRSA_OVERRIDE_FORMAT;

static TABLE: Table<Reference> = Table::new(HandleKind::Reference);

/// A texture or surface reference.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) handle: usize,
    surface: bool,
    /// Of the module's variable; `None` for one of the program's own, which no kernel knows.
    address: Option<u64>,
    state: Mutex<ReferenceState>,
}

/// What it is bound to, and how it is read.
#[derive(Clone, Copy, Debug)]
struct ReferenceState {
    settings: TextureSettings,
    /// Of the texels, and how many channels.
    format: (u32, u32),
    bound: Option<Resource>,
}

impl Reference {
    fn state(&self) -> MutexGuard<'_, ReferenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what it is; kernels that were queued before do not see it.
    fn change(
        &self,
        context: &Context,
        change: impl FnOnce(&mut ReferenceState) -> Result<()>,
    ) -> Result<()> {
        let mut state = self.state();
        let mut changed = *state;
        change(&mut changed)?;
        if let Some(address) = self.address {
            let object = match changed.bound {
                None => Object::Nothing,
                Some(resource) => {
                    let image = objects::image(&resource, context.device)?;
                    if self.surface {
                        Object::Surface(image)
                    } else {
                        Object::Texture(image, objects::sampler(&changed.settings))
                    }
                }
            };
            context.drain();
            texture::bind(address, object);
        }
        *state = changed;
        Ok(())
    }
}

/// Takes out a reference whose module is unloaded.
pub(crate) fn remove(handle: usize) {
    let _ = TABLE.remove(handle);
}

/// The living reference of this handle.
pub(crate) fn get(handle: usize, surface: bool) -> Result<Arc<Reference>> {
    let found = TABLE.get(handle);
    match found {
        Ok(reference) if reference.surface == surface => Ok(reference),
        Ok(_) => Err(Error::CUDA_ERROR_INVALID_HANDLE),
        Err(why) => {
            host::log!("texture or surface reference {handle:#x} is {why:?}");
            Err(match why {
                Missing::Destroyed => Error::CUDA_ERROR_CONTEXT_IS_DESTROYED,
                Missing::Unknown => Error::CUDA_ERROR_INVALID_HANDLE,
            })
        }
    }
}

fn insert(surface: bool, address: Option<u64>) -> usize {
    let reference = TABLE.insert_with(|handle| Reference {
        handle,
        surface,
        address,
        state: Mutex::new(ReferenceState {
            settings: TextureSettings {
                modes: [CLAMP; 3],
                ..TextureSettings::default()
            },
            format: (CUarray_format::CU_AD_FORMAT_FLOAT.0, 1),
            bound: None,
        }),
    });
    reference.handle
}

/// Makes the references of a module that is loaded mean nothing yet.
pub(crate) fn begin(program: &Program) {
    for_variables(program, |address| texture::bind(address, Object::Nothing));
}

/// Takes them away again.
pub(crate) fn end(program: &Program) {
    for_variables(program, texture::unbind);
}

fn for_variables(program: &Program, act: impl Fn(u64)) {
    let variables = &program.module().variables;
    for variable in variables.iter().filter(|v| v.opaque.is_some()) {
        if let Some((address, _)) = program.global(&variable.name) {
            act(address);
        }
    }
}

/// The reference that a variable of a module is.
pub(crate) fn of_variable(program: &Program, name: &str, surface: bool) -> Result<usize> {
    let wanted = if surface {
        Opaque::Surface
    } else {
        Opaque::Texture
    };
    let variables = &program.module().variables;
    let is = variables
        .iter()
        .any(|v| v.name == name && v.opaque == Some(wanted));
    let address = program.global(name).filter(|_| is);
    let (address, _) = address.ok_or_else(|| {
        host::log!("the module has no {wanted:?} reference `{name}`");
        Error::CUDA_ERROR_NOT_FOUND
    })?;
    Ok(insert(surface, Some(address)))
}

/// `cuTexRefCreate`
pub(crate) fn create() -> Result<usize> {
    context::current()?;
    Ok(insert(false, None))
}

/// `cuTexRefDestroy`. As recorded: one of a module stays as it is.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    context::current()?;
    let reference = get(handle, false)?;
    if reference.address.is_none() {
        TABLE
            .remove(handle)
            .map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    }
    Ok(())
}

/// Changes how a texture reference is read.
pub(crate) fn set(
    handle: usize,
    change: impl FnOnce(&mut TextureSettings) -> Result<()>,
) -> Result<()> {
    let context = context::current()?;
    get(handle, false)?.change(&context, |state| change(&mut state.settings))
}

/// How a texture reference is read.
pub(crate) fn settings(handle: usize) -> Result<TextureSettings> {
    context::current()?;
    Ok(get(handle, false)?.state().settings)
}

/// `cuTexRefSetFlags`
pub(crate) fn set_flags(handle: usize, flags: u32) -> Result<()> {
    set(handle, |settings| {
        if flags & !FLAGS != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        settings.flags = flags;
        Ok(())
    })
}

/// `cuTexRefGetAddressMode`. As recorded: where coordinates are not normalized, it is to clamp.
pub(crate) fn address_mode(handle: usize, dimension: i32) -> Result<u32> {
    let settings = settings(handle)?;
    let mode = usize::try_from(dimension)
        .ok()
        .and_then(|i| settings.modes.get(i))
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok(if settings.flags & NORMALIZED == 0 {
        CLAMP
    } else {
        *mode
    })
}

/// `cuTexRefSetFormat`
pub(crate) fn set_format(handle: usize, format: u32, channels: i32) -> Result<()> {
    let context = context::current()?;
    let reference = get(handle, false)?;
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // As recorded any format is taken; it counts when memory is bound.
    reference.change(&context, |state| {
        state.format = (format, channels.unsigned_abs());
        Ok(())
    })
}

/// `cuTexRefGetFormat`
pub(crate) fn format(handle: usize) -> Result<(u32, u32)> {
    context::current()?;
    Ok(get(handle, false)?.state().format)
}

/// `cuTexRefSetArray`, `cuSurfRefSetArray`
pub(crate) fn set_array(handle: usize, array: usize, flags: u32, surface: bool) -> Result<()> {
    let context = context::current()?;
    let reference = get(handle, surface)?;
    let array = array::get(array)?;
    if surface && (flags != 0 || array.descriptor.flags & array::SURFACE == 0) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    reference.change(&context, |state| {
        state.bound = Some(Resource::Array(array.handle));
        if flags & OVERRIDE_FORMAT != 0 || surface {
            state.format = (array.descriptor.format, array.descriptor.channels);
        }
        Ok(())
    })
}

/// `cuTexRefSetMipmappedArray`
pub(crate) fn set_mipmap(handle: usize, mipmap: usize, flags: u32) -> Result<()> {
    let context = context::current()?;
    let reference = get(handle, false)?;
    let descriptor = array::mipmap(mipmap)?.descriptor;
    reference.change(&context, |state| {
        state.bound = Some(Resource::Mipmap(mipmap));
        if flags & OVERRIDE_FORMAT != 0 {
            state.format = (descriptor.format, descriptor.channels);
        }
        Ok(())
    })
}

/// `cuTexRefSetAddress`: how far behind an aligned address the memory begins, in bytes. 0 takes the binding away.
pub(crate) fn set_address(
    handle: usize,
    address: u64,
    bytes: u64,
    wants_offset: bool,
) -> Result<u64> {
    let context = context::current()?;
    let reference = get(handle, false)?;
    let alignment = u64::from(
        context
            .device
            .limit(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    );
    let offset = address % alignment.max(1);
    if offset != 0 && !wants_offset {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    reference.change(&context, |state| {
        let (format, channels) = state.format;
        state.bound = (address != 0).then_some(Resource::Linear {
            address: address - offset,
            format,
            channels,
            bytes: bytes.saturating_add(offset),
        });
        Ok(())
    })?;
    Ok(offset)
}

/// `cuTexRefSetAddress2D`: width, height, format, channels.
pub(crate) fn set_address_2d(
    handle: usize,
    (width, height, format, channels): (u64, u64, u32, u32),
    address: u64,
    pitch: u64,
) -> Result<()> {
    let context = context::current()?;
    get(handle, false)?.change(&context, |state| {
        state.format = (format, channels);
        state.bound = Some(Resource::Pitch {
            address,
            format,
            channels,
            width,
            height,
            pitch,
        });
        Ok(())
    })
}

/// What a reference is bound to.
pub(crate) fn bound(handle: usize, surface: bool) -> Result<Option<Resource>> {
    context::current()?;
    Ok(get(handle, surface)?.state().bound)
}
