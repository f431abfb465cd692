//! Kernel images and compiler options, as C hands them over: pointers without a length, and arrays of untyped values.

use std::ffi::{c_char, c_uint, c_void};
use std::time::Instant;

use cuda_driver_sys::CUjit_option;

use super::args::Caller;
use crate::driver::error::{Error, Result};
use crate::driver::jit::{Log, Options};
use crate::image::{ELF_MAGIC, FATBIN_MAGIC, Image, WRAPPER_MAGIC, fatbin};

/// Bytes of the header of an ELF file.
const ELF_HEADER: usize = 64;

/// The image behind a pointer; its first bytes say what it is and how long.
pub(super) fn image(c: Caller, pointer: *const c_void) -> Result<Image> {
    if pointer.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    let bytes = pointer.cast::<u8>();
    // Byte by byte: text may end, with a NUL, before four bytes are there.
    let starts_with = |magic: &[u8]| -> Result<bool> {
        for (i, expected) in magic.iter().enumerate() {
            if c.read(bytes.wrapping_add(i))? != *expected {
                return Ok(false);
            }
        }
        Ok(true)
    };
    if starts_with(&WRAPPER_MAGIC)? {
        // magic, version, address of the fat binary, name of a file
        let inner = c.read(bytes.wrapping_add(8).cast::<*const c_void>())?;
        let is_fatbin = c.array(inner.cast::<u8>(), 4)? == FATBIN_MAGIC;
        return if is_fatbin {
            fat_binary(c, inner.cast())
        } else {
            Err(Error::INVALID_IMAGE)
        };
    }
    if starts_with(&FATBIN_MAGIC)? {
        return fat_binary(c, bytes);
    }
    if starts_with(&ELF_MAGIC)? {
        return elf(c, bytes);
    }
    Ok(Image::Text(c.bytes(pointer.cast::<c_char>())?))
}

fn fat_binary(c: Caller, bytes: *const u8) -> Result<Image> {
    let header = c.array(bytes, fatbin::HEADER)?;
    let header: &[u8; fatbin::HEADER] = header.first_chunk().ok_or(Error::INVALID_IMAGE)?;
    let length = fatbin::length(header).ok_or(Error::INVALID_IMAGE)?;
    Ok(Image::FatBinary(c.array(bytes, length)?))
}

/// An ELF file: as much of it as its header vouches for.
fn elf(c: Caller, bytes: *const u8) -> Result<Image> {
    // After the magic come class (2 for 64 bits), byte order and version: without them there is nothing more to read.
    for (at, expected) in [(4, 2), (5, 1), (6, 1)] {
        if c.read(bytes.wrapping_add(at))? != expected {
            return Ok(Image::Elf(ELF_MAGIC.to_vec()));
        }
    }
    let header = c.array(bytes, ELF_HEADER)?;
    let length = crate::image::cubin::length(&header).unwrap_or(ELF_HEADER);
    Ok(Image::Elf(c.array(bytes, length)?))
}

/// A buffer for a log, and the option whose value says its size and gets the length written.
struct LogBuffer {
    /// Address of the buffer. Addresses, not pointers: a linker keeps them for later calls on any thread.
    buffer: usize,
    size: usize,
    size_option: usize,
}

/// Compiler options of one call, and where its logs go.
pub(super) struct Jit {
    pub(super) options: Options,
    /// Address of the array of values.
    values: usize,
    info: Option<LogBuffer>,
    error: Option<LogBuffer>,
    wall_time: Option<usize>,
    started: Instant,
}

impl Jit {
    /// Reads and checks the options, as recorded on a real driver.
    pub(super) fn read(
        c: Caller,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) -> Result<Jit> {
        let names = c.array(options.cast_const(), count as usize)?;
        let raw: Vec<*mut c_void> = c.array(values.cast_const(), count as usize)?;
        let mut jit = Jit {
            options: Options::default(),
            values: values as usize,
            info: None,
            error: None,
            wall_time: None,
            started: Instant::now(),
        };
        let mut buffers: [Option<*mut c_void>; 2] = [None; 2];
        let mut sizes: [Option<(usize, usize)>; 2] = [None; 2];
        for (i, (option, value)) in names.iter().zip(&raw).enumerate() {
            // Small values are in the low half of the pointer.
            let number = *value as usize as u32;
            match *option {
                CUjit_option::CU_JIT_MAX_REGISTERS | CUjit_option::CU_JIT_THREADS_PER_BLOCK
                    if number == 0 =>
                {
                    return Err(Error::INVALID_VALUE);
                }
                CUjit_option::CU_JIT_WALL_TIME => jit.wall_time = Some(i),
                CUjit_option::CU_JIT_INFO_LOG_BUFFER => buffers[0] = Some(*value),
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => {
                    sizes[0] = Some((number as usize, i))
                }
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER => buffers[1] = Some(*value),
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                    sizes[1] = Some((number as usize, i))
                }
                CUjit_option::CU_JIT_TARGET => jit.options.target = Some(number),
                CUjit_option::CU_JIT_NEW_SM3X_OPT => jit.options.sm3x = true,
                // Symbols given by address, and lists of names: nothing here can do with them what they ask.
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_NAMES
                | CUjit_option::CU_JIT_GLOBAL_SYMBOL_ADDRESSES
                | CUjit_option::CU_JIT_GLOBAL_SYMBOL_COUNT
                | CUjit_option::CU_JIT_REFERENCED_KERNEL_NAMES
                | CUjit_option::CU_JIT_REFERENCED_VARIABLE_NAMES => {
                    return Err(Error::INVALID_VALUE);
                }
                known if known.0 <= CUjit_option::CU_JIT_SPLIT_COMPILE.0 => {}
                _ => return Err(Error::INVALID_VALUE),
            }
        }
        let [info, error] = [0, 1].map(|i| match (buffers[i], sizes[i]) {
            (None, None) => Ok(None),
            (Some(buffer), Some((size, size_option))) => Ok(Some(LogBuffer {
                buffer: buffer as usize,
                size,
                size_option,
            })),
            _ => Err(Error::INVALID_VALUE),
        });
        (jit.info, jit.error) = (info?, error?);
        Ok(jit)
    }

    /// Writes logs, their lengths and the time that passed.
    pub(super) fn report(&self, c: Caller, log: &Log) {
        for (buffer, text) in [(&self.info, &log.info), (&self.error, &log.error)] {
            let Some(buffer) = buffer else { continue };
            c.set_text(buffer.buffer as *mut c_char, buffer.size, text.as_bytes());
            let length = if buffer.buffer == 0 {
                0
            } else {
                text.len().min(buffer.size.saturating_sub(1))
            };
            self.set_value(c, buffer.size_option, length as u32);
        }
        if let Some(option) = self.wall_time {
            let milliseconds = self.started.elapsed().as_secs_f32() * 1e3;
            self.set_value(c, option, milliseconds.to_bits());
        }
    }

    /// Results of 32 bits go into the option's value itself, not behind it.
    fn set_value(&self, c: Caller, option: usize, value: u32) {
        c.set_at(
            (self.values as *mut *mut c_void)
                .wrapping_add(option)
                .cast::<u32>(),
            0,
            value,
        );
    }
}
