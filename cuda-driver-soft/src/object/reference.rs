//! Texture and surface references: module variables that the driver binds to texels.
//!
//! Kernels name a reference by its address. A new binding takes effect after the work queued before it is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cuda_driver_sys::{CU_TRSA_OVERRIDE_FORMAT, CUaddress_mode, CUarray_format, CUdevice_attribute as Attribute};

use crate::object::array;
use crate::object::context::{self, Context};
use crate::object::leak;
use crate::object::texture::{self as objects, NORMALIZED, Resource, TextureSettings};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use engine::Program;
use engine::texture::{self, Object};
use ptx::ir::Opaque;

/// The flags that `cuTexRefSetFlags` accepts on driver 580.
const FLAGS: u32 = 0x3f;
const CLAMP: u32 = CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP.0;
const OVERRIDE_FORMAT: u32 = CU_TRSA_OVERRIDE_FORMAT;

static TABLE: Table<Reference> = Table::new(HandleKind::Reference);

/// A texture or surface reference.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) handle: usize,
    surface: bool,
    /// The module's variable; `None` for a reference that the program created and no kernel can name.
    variable: Option<Variable>,
    /// Held while the reference is changed, which may wait for work. Queries do not take it.
    changes: Mutex<()>,
    state: Mutex<ReferenceState>,
}

/// A variable of a module.
#[derive(Clone, Debug)]
struct Variable {
    address: u64,
    /// The context of the module.
    context: Weak<Context>,
}

/// The binding and the sampling settings.
#[derive(Clone, Copy, Debug)]
struct ReferenceState {
    settings: TextureSettings,
    /// The `CUarray_format` of the texels, and their number of channels.
    format: (u32, u32),
    bound: Option<Resource>,
}

impl Reference {
    fn state(&self) -> MutexGuard<'_, ReferenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the reference. Work that the module's context has queued earlier finishes first and uses the old
    /// binding.
    fn change(&self, current: &Context, change: impl FnOnce(&mut ReferenceState) -> Result<()>) -> Result<()> {
        let _one_at_a_time = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = *self.state();
        change(&mut changed)?;
        if let Some(variable) = &self.variable {
            let object = match changed.bound {
                None => Object::Nothing,
                Some(resource) => {
                    let image = objects::image(&resource, current.device)?;
                    if self.surface {
                        Object::Surface(image)
                    } else {
                        let sampler = objects::sampler(&image, &changed.settings);
                        Object::Texture(image, sampler)
                    }
                }
            };
            // The state is not locked meanwhile: the work may be a host function that waits for a thread that queries
            // the reference.
            if let Some(context) = variable.context.upgrade() {
                context.drain();
            }
            texture::bind(variable.address, object);
        }
        *self.state() = changed;
        Ok(())
    }
}

/// Removes a reference whose module is unloaded.
pub(crate) fn remove(handle: usize) {
    let _ = TABLE.remove(handle);
}

/// Returns the texture or surface reference with this handle; `CUDA_ERROR_INVALID_HANDLE` if it is of the other kind.
pub(crate) fn get(handle: usize, surface: bool) -> Result<Arc<Reference>> {
    let found = TABLE.get(handle);
    match found {
        Ok(reference) if reference.surface == surface => Ok(reference),
        Ok(_) => Err(Error::CUDA_ERROR_INVALID_HANDLE),
        Err(missing) => Err(array::missing_error("texture or surface reference", handle, missing)),
    }
}

fn insert(surface: bool, variable: Option<Variable>) -> usize {
    let reference = TABLE.insert_with(|handle| Reference {
        handle,
        surface,
        variable,
        changes: Mutex::default(),
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

/// Binds the references of a newly loaded module to nothing.
pub(crate) fn begin(program: &Program) {
    for_variables(program, |address| texture::bind(address, Object::Nothing));
}

/// Unbinds the references of a module.
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

/// Creates the reference for a module's variable and returns its handle.
pub(crate) fn of_variable(program: &Program, context: &Weak<Context>, name: &str, surface: bool) -> Result<usize> {
    let wanted = if surface { Opaque::Surface } else { Opaque::Texture };
    let variables = &program.module().variables;
    let is = variables.iter().any(|v| v.name == name && v.opaque == Some(wanted));
    let address = program.global(name).filter(|_| is);
    let (address, _) = address.ok_or_else(|| {
        let kind = if surface { "surface" } else { "texture" };
        host::log!("the module has no {kind} reference `{name}`");
        Error::CUDA_ERROR_NOT_FOUND
    })?;
    let context = Weak::clone(context);
    Ok(insert(surface, Some(Variable { address, context })))
}

/// `cuTexRefCreate`
pub(crate) fn create() -> Result<usize> {
    context::current()?;
    let handle = insert(false, None);
    leak::note("texture reference", &TABLE, handle, None);
    Ok(handle)
}

/// `cuTexRefDestroy`: driver 580 succeeds and changes nothing for a reference of a module.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    context::current()?;
    let reference = get(handle, false)?;
    if reference.variable.is_none() {
        TABLE.remove(handle).map_err(|_| Error::CUDA_ERROR_INVALID_HANDLE)?;
    }
    Ok(())
}

/// Changes the settings of a texture reference.
pub(crate) fn set(handle: usize, change: impl FnOnce(&mut TextureSettings) -> Result<()>) -> Result<()> {
    let context = context::current()?;
    get(handle, false)?.change(&context, |state| change(&mut state.settings))
}

/// Returns the settings of a texture reference.
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

/// `cuTexRefGetAddressMode`: driver 580 reports clamping unless coordinates are normalized.
pub(crate) fn address_mode(handle: usize, dimension: i32) -> Result<u32> {
    let settings = settings(handle)?;
    let mode = usize::try_from(dimension)
        .ok()
        .and_then(|i| settings.modes.get(i))
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok(if settings.flags & NORMALIZED == 0 { CLAMP } else { *mode })
}

/// `cuTexRefSetFormat`
pub(crate) fn set_format(handle: usize, format: u32, channels: i32) -> Result<()> {
    let context = context::current()?;
    let reference = get(handle, false)?;
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // Driver 580 accepts any format. The format of a module's reference is checked when memory is bound to it.
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

/// `cuTexRefSetAddress`: returns the offset of `address` in bytes from the multiple of the texture alignment that is
/// bound; without `wants_offset`, the offset must be 0. Address 0 removes the binding.
pub(crate) fn set_address(handle: usize, address: u64, bytes: u64, wants_offset: bool) -> Result<u64> {
    let context = context::current()?;
    let reference = get(handle, false)?;
    let alignment = u64::from(context.device.limit(Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
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

/// `cuTexRefSetAddress2D` with width, height, format and number of channels.
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

/// Returns the binding of a reference.
pub(crate) fn bound(handle: usize, surface: bool) -> Result<Option<Resource>> {
    context::current()?;
    Ok(get(handle, surface)?.state().bound)
}
