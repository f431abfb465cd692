//! Exports of the linker.

use std::collections::HashMap;
use std::ffi::{c_char, c_uint, c_void};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cuda_driver_sys::{CUjit_option, CUjitInputType, CUlinkState};

use super::args::{Caller, set};
use super::exports;
use super::image::{Jit, readable, text_length};
use super::module::read_file;
use crate::call::lookup::{self, current_context};
use crate::object::jit;
use crate::object::linker::{self, InputKind};
use crate::state::error::{Error, Result};
use crate::state::gate;
use image::{ARCHIVE_MAGIC, ELF_MAGIC, FATBIN_MAGIC, Image};

/// Locks and returns the options of all linkers, by handle. The program must keep the array of a linker's option values
/// until it destroys the linker.
fn options_of_linkers() -> MutexGuard<'static, HashMap<usize, Jit>> {
    static TABLE: LazyLock<Mutex<HashMap<usize, Jit>>> = LazyLock::new(Mutex::default);
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the linker's logs into the buffers that `cuLinkCreate` received.
fn report(c: Caller, state: CUlinkState) {
    if let (Some(jit), Ok(linker)) = (
        options_of_linkers().get_mut(&(state as usize)),
        lookup::linker(state as usize),
    ) {
        linker.read_log(|log| jit.report(c, log));
    }
}

fn create(
    c: Caller,
    count: c_uint,
    options: *mut CUjit_option,
    values: *mut *mut c_void,
    out: *mut CUlinkState,
) -> Result<()> {
    let device = current_context()?.device;
    let out = c.out(out)?;
    let jit = Jit::read(c, count, options, values)?;
    if jit.falls_back {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let handle = linker::create(device, jit.options);
    options_of_linkers().insert(handle, jit);
    out.set(handle as CUlinkState);
    Ok(())
}

/// Checks the type of an input.
fn check_kind(kind: CUjitInputType) -> Result<InputKind> {
    match kind {
        CUjitInputType::CU_JIT_INPUT_CUBIN
        | CUjitInputType::CU_JIT_INPUT_PTX
        | CUjitInputType::CU_JIT_INPUT_FATBINARY => Ok(InputKind::Code),
        CUjitInputType::CU_JIT_INPUT_OBJECT => Ok(InputKind::Object),
        CUjitInputType::CU_JIT_INPUT_LIBRARY => Ok(InputKind::Library),
        CUjitInputType::CU_JIT_INPUT_NVVM => {
            host::log!("LTO code (CU_JIT_INPUT_NVVM) is not supported: link PTX instead");
            Err(Error::CUDA_ERROR_NOT_SUPPORTED)
        }
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// The options of a call, as C passes them: their number, the array of their names and the array of their values.
#[derive(Clone, Copy)]
struct Options(c_uint, *mut CUjit_option, *mut *mut c_void);

impl Options {
    /// Returns the options of a single input. Driver 580 accepts only options about the compilation of the input.
    fn read(self, c: Caller) -> Result<jit::Options> {
        let read = Jit::read(c, self.0, self.1, self.2)?;
        let of_input = |option: CUjit_option| {
            matches!(
                option,
                CUjit_option::CU_JIT_MAX_REGISTERS
                    | CUjit_option::CU_JIT_THREADS_PER_BLOCK
                    | CUjit_option::CU_JIT_OPTIMIZATION_LEVEL
                    | CUjit_option::CU_JIT_GENERATE_DEBUG_INFO
                    | CUjit_option::CU_JIT_LOG_VERBOSE
                    | CUjit_option::CU_JIT_GENERATE_LINE_INFO
                    | CUjit_option::CU_JIT_CACHE_MODE
                    | CUjit_option::CU_JIT_NEW_SM3X_OPT
                    | CUjit_option::CU_JIT_FAST_COMPILE
                    | CUjit_option::CU_JIT_POSITION_INDEPENDENT_CODE
                    | CUjit_option::CU_JIT_MIN_CTA_PER_SM
                    | CUjit_option::CU_JIT_MAX_THREADS_PER_BLOCK
                    | CUjit_option::CU_JIT_OVERRIDE_DIRECTIVE_VALUES
                    | CUjit_option::CU_JIT_SPLIT_COMPILE
            )
        };
        let mut names = c.items(self.1.cast_const(), self.0 as usize)?;
        if names.all(of_input) {
            Ok(read.options)
        } else {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }
}

/// Reads an input. Driver 580 ignores the size of a text and reads up to its NUL. Here a text ends at its first NUL or
/// at its size, whichever comes first, so the size of a text that ends with NUL may be too large.
fn input(c: Caller, data: *const u8, size: usize) -> Result<Image> {
    let head: Vec<u8> = c.items(data, size.min(ARCHIVE_MAGIC.len()))?.collect();
    let starts_with = |magic: &&[u8]| head.starts_with(magic);
    if [&FATBIN_MAGIC[..], &ELF_MAGIC, ARCHIVE_MAGIC].iter().any(starts_with) {
        return Ok(Image::of(readable(c, data, size)?));
    }
    Ok(Image::Text(c.array(data, text_length(c, data, size)?)?))
}

fn add_data(
    c: Caller,
    state: CUlinkState,
    kind: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: *const c_char,
    options: Options,
) -> Result<()> {
    let linker = lookup::linker(state as usize)?;
    let kind = check_kind(kind)?;
    let options = options.read(c)?;
    if data.is_null() || size == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let name = if name.is_null() { None } else { Some(c.string(name)?) };
    let added = linker.add(
        name.as_deref(),
        &input(c, data.cast_const().cast::<u8>(), size)?,
        kind,
        options,
    );
    report(c, state);
    added
}

fn add_file(c: Caller, state: CUlinkState, kind: CUjitInputType, path: *const c_char, options: Options) -> Result<()> {
    let linker = lookup::linker(state as usize)?;
    let image = read_file(c, path)?;
    let kind = check_kind(kind)?;
    let options = options.read(c)?;
    let added = linker.add(Some(&c.string(path)?), &image, kind, options);
    report(c, state);
    added
}

exports! {
    fn cuLinkCreate_v2 = cuLinkCreate [c] (
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
        out: *mut CUlinkState,
    ) {
        create(c, count, options, values, out)
    }

    fn cuLinkAddData_v2 = cuLinkAddData [c] (
        state: CUlinkState,
        kind: CUjitInputType,
        data: *mut c_void,
        size: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        add_data(
            c,
            state,
            kind,
            data,
            size,
            name,
            Options(count, options, values),
        )
    }

    fn cuLinkAddFile_v2 = cuLinkAddFile [c] (
        state: CUlinkState,
        kind: CUjitInputType,
        path: *const c_char,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) {
        add_file(c, state, kind, path, Options(count, options, values))
    }

    fn cuLinkComplete [c] (state: CUlinkState, image: *mut *mut c_void, size: *mut usize) {
        let linker = lookup::linker(state as usize)?;
        let out = c.out(image)?;
        let completed = linker.complete();
        report(c, state);
        let completed = completed?;
        set(c.out_or_null(size), completed.len());
        // Valid as long as the linker, as the manual promises.
        out.set(completed.as_ptr().cast_mut().cast());
        Ok(())
    }

    fn cuLinkDestroy [c] (state: CUlinkState) {
        gate::healthy()?;
        linker::destroy(state as usize)?;
        options_of_linkers().remove(&(state as usize));
        Ok(())
    }
}
