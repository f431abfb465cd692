//! Module images and compiler options from C: pointers without a length, and arrays of untyped values.

use std::ffi::{c_char, c_uint, c_void};
use std::time::Instant;

use cuda_driver_sys::{CUjit_option, CUjit_target};

use super::args::Caller;
use crate::object::jit::{Log, Options};
use crate::object::linker;
use crate::state::error::{Error, Result};
use crate::state::settings;
use host::{Mapping, mapping};
use image::{ELF_MAGIC, FATBIN_MAGIC, Image, WRAPPER_MAGIC, fatbin};

/// Size of an ELF header in bytes.
const ELF_HEADER: usize = 64;

/// The largest size in bytes that the header of a fat binary may state. A larger one means a damaged image: reading
/// that much memory could crash.
const MOST_FAT_BINARY: usize = 4 << 30;

/// Version of a wrapper around relocatable code, which has a list of fat binaries to link.
const RELOCATABLE: u32 = 2;
/// The most fat binaries in a list.
const MOST_PARTS: usize = 1 << 16;

/// Reads an image, or the wrapper structure that a compiler puts around a fat binary. Driver 580 loads libraries from
/// the wrapper, but not modules.
pub(super) fn image_or_wrapper(c: Caller, pointer: *const c_void) -> Result<Image> {
    let bytes = pointer.cast::<u8>();
    if !pointer.is_null() && starts_with(c, bytes, &WRAPPER_MAGIC)? {
        // The members are magic, version, address of the fat binary, and a file name or (version 2) a list.
        let version = c.read(bytes.wrapping_add(4).cast::<u32>())?;
        let inner = c.read(bytes.wrapping_add(8).cast::<*const c_void>())?;
        let list = c.read(bytes.wrapping_add(16).cast::<*const *const c_void>())?;
        if version == RELOCATABLE
            && !list.is_null()
            && let Some(linked) = linker::link_parts(&parts(c, list)?)?
        {
            return Ok(Image::Elf(linked.to_vec()));
        }
        return image(c, inner);
    }
    image(c, pointer)
}

/// Reads the fat binaries of separately compiled files, from a list that ends with NULL.
fn parts(c: Caller, list: *const *const c_void) -> Result<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    loop {
        let part = c.read(list.wrapping_add(parts.len()))?;
        if part.is_null() {
            return Ok(parts);
        }
        if parts.len() == MOST_PARTS || !starts_with(c, part.cast(), &FATBIN_MAGIC)? {
            host::log!("the list at {list:p} is not a list of fat binaries that ends with NULL");
            return Err(Error::CUDA_ERROR_INVALID_IMAGE);
        }
        parts.push(fat_binary(c, part.cast())?.bytes().to_vec());
    }
}

/// Returns true if memory starts with `magic`. Stops at the first byte that differs, because a shorter text may end
/// with the last readable byte.
fn starts_with(c: Caller, bytes: *const u8, magic: &[u8]) -> Result<bool> {
    for (i, expected) in magic.iter().enumerate() {
        if c.read(bytes.wrapping_add(i))? != *expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads the image behind a pointer. Its first bytes show its format. The header of a fat binary or a linked image
/// determines its length; a text ends with a NUL byte.
pub(super) fn image(c: Caller, pointer: *const c_void) -> Result<Image> {
    if pointer.is_null() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let bytes = pointer.cast::<u8>();
    if starts_with(c, bytes, &FATBIN_MAGIC)? {
        return fat_binary(c, bytes);
    }
    if starts_with(c, bytes, &ELF_MAGIC)? {
        return elf(c, bytes);
    }
    Ok(Image::Text(c.bytes(pointer.cast::<c_char>())?))
}

/// Returns a copy of `length` bytes of the program's memory. The length may be wrong: returns an error if the system
/// can tell that the memory is not readable.
pub(super) fn readable(c: Caller, bytes: *const u8, length: usize) -> Result<Vec<u8>> {
    if mapping(bytes as u64, length as u64) == Mapping::Inaccessible {
        host::log!("the {length} bytes at {bytes:p} cannot all be read: the size is wrong, or the image is damaged");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    c.array(bytes, length)
}

/// Returns the length of a text: up to its NUL, and at most `most` bytes. Returns an error if the system can tell that
/// the memory up to there is not readable.
pub(super) fn text_length(c: Caller, text: *const u8, most: usize) -> Result<usize> {
    /// The smallest page size of all systems.
    const PAGE: usize = 4096;
    let trusted = mapping(text as u64, most as u64) != Mapping::Inaccessible;
    let mut length = 0;
    while length < most {
        let at = text.wrapping_add(length);
        let to_page = PAGE - at as usize % PAGE;
        let bytes = if trusted { most } else { to_page.min(most - length) };
        if !trusted && mapping(at as u64, bytes as u64) == Mapping::Inaccessible {
            host::log!(
                "the text at {text:p} runs into memory that cannot be read: end it with a NUL byte, or pass its size"
            );
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        if let Some(end) = c.items(at, bytes)?.position(|byte| byte == 0) {
            return Ok(length + end);
        }
        length += bytes;
    }
    Ok(most)
}

/// Returns a copy of an image whose header states its length. The header may be damaged, so long images are checked for
/// readable memory; for short ones the check would take longer than the copy.
fn stated(c: Caller, bytes: *const u8, length: usize) -> Result<Vec<u8>> {
    const LONG: usize = 1 << 20;
    if length < LONG {
        return c.array(bytes, length);
    }
    readable(c, bytes, length).map_err(|_| Error::CUDA_ERROR_INVALID_IMAGE)
}

fn fat_binary(c: Caller, bytes: *const u8) -> Result<Image> {
    let header = c.array(bytes, fatbin::HEADER)?;
    let header: &[u8; fatbin::HEADER] = header.first_chunk().ok_or(Error::CUDA_ERROR_INVALID_IMAGE)?;
    let length = fatbin::length(header).unwrap_or(usize::MAX);
    if length > MOST_FAT_BINARY {
        host::log!("the fat binary's header states more than {MOST_FAT_BINARY} bytes: the image is damaged");
        return Err(Error::CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    Ok(Image::FatBinary(stated(c, bytes, length)?))
}

/// Reads a linked image, whose header determines its length. Of any other ELF file, which cannot be loaded, reads at
/// most the header.
fn elf(c: Caller, bytes: *const u8) -> Result<Image> {
    // Class (2 for 64 bits), byte order and version follow the magic. With other values the header's layout is unknown.
    for (at, expected) in [(4, 2), (5, 1), (6, 1)] {
        if c.read(bytes.wrapping_add(at))? != expected {
            return Ok(Image::Elf(ELF_MAGIC.to_vec()));
        }
    }
    let header = c.array(bytes, ELF_HEADER)?;
    let length = image::cubin::length(&header).unwrap_or(ELF_HEADER);
    Ok(Image::Elf(stated(c, bytes, length)?))
}

/// A buffer for a log, and the option that holds the buffer's size and receives the length of the text.
struct LogBuffer {
    /// Address of the buffer. An integer, because a linker keeps it for later calls on any thread.
    buffer: usize,
    /// Size of the buffer in bytes.
    size: usize,
    /// Index of the option in the array of values.
    size_option: usize,
    /// Number of bytes of the log that are in the buffer. The log of a linker grows with each input.
    written: usize,
}

/// Compiler options of one call, and the buffers for its logs.
pub(super) struct Jit {
    pub(super) options: Options,
    /// Address of the array of values.
    values: usize,
    /// The low half of each value, as read or written last.
    seen: Vec<u32>,
    info: Option<LogBuffer>,
    error: Option<LogBuffer>,
    /// Index of `CU_JIT_WALL_TIME`, which receives the elapsed time in milliseconds.
    wall_time: Option<usize>,
    /// True if `CU_JIT_FALLBACK_STRATEGY` is given, which a linker does not accept.
    pub(super) falls_back: bool,
    started: Instant,
}

/// The architectures that driver 580 accepts as `CU_JIT_TARGET`, with or without a constant in `cuda.h`, and 0, the
/// number of compute capability 1.0 in old headers.
const TARGETS: [u32; 26] = [
    0, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121,
];
/// Driver 580 also accepts the numbers that old headers gave to these architectures, which are the indexes in this
/// list. It compiles only for the last two.
const OLD_TARGETS: [u32; 10] = [10, 11, 12, 13, 20, 21, 30, 35, 50, 52];
/// `CU_TARGET_COMPUTE_107`, which drivers before CUDA 13.4 do not know.
const NEW_TARGET: u32 = CUjit_target::CU_TARGET_COMPUTE_107.0;
/// Added to an architecture for its variant `a`.
const ACCELERATED: u32 = 1 << 16;
/// Added to an architecture for its variant `f`.
const FAMILY: u32 = 2 << 16;

/// Returns the architecture of a value of `CU_JIT_TARGET`.
fn target(value: u32) -> Result<u32> {
    let (variant, sm) = (value & !0xFFFF, value & 0xFFFF);
    let known = match variant {
        0 => true,
        ACCELERATED => sm >= 90,
        FAMILY => sm >= 100,
        _ => false,
    };
    if variant == 0 && (1..OLD_TARGETS.len()).contains(&(sm as usize)) {
        return Ok(OLD_TARGETS[sm as usize]);
    }
    let newer = || sm == NEW_TARGET && settings::version() >= 13040;
    if known && (TARGETS.contains(&sm) || newer()) {
        Ok(sm)
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

impl Jit {
    /// Reads and checks the options like driver 580.
    pub(super) fn read(c: Caller, count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void) -> Result<Jit> {
        let names = c.items(options.cast_const(), count as usize)?;
        let raw = c.items(values.cast_const(), count as usize)?;
        let mut jit = Jit {
            options: Options::default(),
            values: values as usize,
            seen: Vec::new(),
            info: None,
            error: None,
            wall_time: None,
            falls_back: false,
            started: Instant::now(),
        };
        let mut buffers: [Option<*mut c_void>; 2] = [None; 2];
        let mut sizes: [Option<(usize, usize)>; 2] = [None; 2];
        for (i, (option, value)) in names.zip(raw).enumerate() {
            // Small values are in the low half of the pointer.
            let number = value as usize as u32;
            jit.seen.push(number);
            match option {
                CUjit_option::CU_JIT_MAX_REGISTERS | CUjit_option::CU_JIT_THREADS_PER_BLOCK if number == 0 => {
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                CUjit_option::CU_JIT_MAX_REGISTERS => jit.options.most_registers = Some(number),
                CUjit_option::CU_JIT_THREADS_PER_BLOCK => {
                    jit.options.threads_per_block = Some(number);
                }
                CUjit_option::CU_JIT_LOG_VERBOSE => jit.options.verbose = number != 0,
                CUjit_option::CU_JIT_WALL_TIME => jit.wall_time = Some(i),
                CUjit_option::CU_JIT_INFO_LOG_BUFFER => buffers[0] = Some(value),
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => sizes[0] = Some((number as usize, i)),
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER => buffers[1] = Some(value),
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => sizes[1] = Some((number as usize, i)),
                CUjit_option::CU_JIT_TARGET => jit.options.target = Some(target(number)?),
                CUjit_option::CU_JIT_FALLBACK_STRATEGY => jit.falls_back = true,
                CUjit_option::CU_JIT_CACHE_MODE if number > 2 => {
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                // Only long-outdated compilers accept this option.
                CUjit_option::CU_JIT_NEW_SM3X_OPT => jit.options.refused = true,
                CUjit_option::CU_JIT_OPTIMIZATION_LEVEL
                | CUjit_option::CU_JIT_MIN_CTA_PER_SM
                | CUjit_option::CU_JIT_SPLIT_COMPILE
                    if number.cast_signed() < 0 =>
                {
                    jit.options.refused = true;
                }
                // Lists of symbols are not supported. Driver 580 accepts such a list for PTX only if the module has
                // none of the symbols.
                CUjit_option::CU_JIT_GLOBAL_SYMBOL_NAMES
                | CUjit_option::CU_JIT_GLOBAL_SYMBOL_ADDRESSES
                | CUjit_option::CU_JIT_GLOBAL_SYMBOL_COUNT => {
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                CUjit_option::CU_JIT_REFERENCED_KERNEL_NAMES | CUjit_option::CU_JIT_REFERENCED_VARIABLE_NAMES
                    if value.is_null() =>
                {
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                // Drivers before CUDA 13.1 do not know the option.
                CUjit_option::CU_JIT_BINARY_LOADER_THREAD_COUNT if settings::version() >= 13010 => {}
                known if known.0 <= CUjit_option::CU_JIT_SPLIT_COMPILE.0 => {}
                _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
            }
        }
        let [info, error] = [0, 1].map(|i| match (buffers[i], sizes[i]) {
            (None, None) => Ok(None),
            (Some(buffer), Some((size, size_option))) if !buffer.is_null() => Ok(Some(LogBuffer {
                buffer: buffer as usize,
                size,
                size_option,
                written: 0,
            })),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
        });
        (jit.info, jit.error) = (info?, error?);
        Ok(jit)
    }

    /// Writes the logs behind the parts that earlier calls have written, their lengths and the elapsed time.
    pub(super) fn report(&mut self, c: Caller, log: &Log) {
        let mut lengths = [None; 2];
        let logs = [(&mut self.info, &log.info), (&mut self.error, &log.error)];
        for ((buffer, text), length) in logs.into_iter().zip(&mut lengths) {
            let Some(buffer) = buffer else { continue };
            let more = text.as_bytes().get(buffer.written..).unwrap_or_default();
            let end = (buffer.buffer as *mut c_char).wrapping_add(buffer.written);
            c.set_text(end, buffer.size - buffer.written, more);
            buffer.written = text.len().min(buffer.size.saturating_sub(1));
            // Driver 580 writes the length without the NUL, or the whole size if the text was truncated.
            *length = Some((buffer.size_option, text.len().min(buffer.size) as u32));
        }
        for (option, length) in lengths.into_iter().flatten() {
            self.set_value(c, option, length);
        }
        if let Some(option) = self.wall_time {
            let milliseconds = self.started.elapsed().as_secs_f32() * 1e3;
            self.set_value(c, option, milliseconds.to_bits());
        }
    }

    /// Writes a result of 32 bits, which goes into the option's value itself. Some programs free the array although the
    /// linker that it belongs to still exists (cuda.core 0.7 does), so a value that has changed is left alone.
    fn set_value(&mut self, c: Caller, option: usize, value: u32) {
        let slot = (self.values as *mut *mut c_void).wrapping_add(option).cast::<u32>();
        if c.read(slot.cast_const()) != Ok(self.seen[option]) {
            host::log!(
                "the array of option values at {slot:p} has changed since cuLinkCreate: keep it until cuLinkDestroy"
            );
            return;
        }
        c.set_at(slot, 0, value);
        self.seen[option] = value;
    }
}
