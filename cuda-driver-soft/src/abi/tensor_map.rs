//! Exports that encode tensor maps and replace the address in them.

use std::ffi::{c_int, c_uint, c_void};

use cuda_driver_sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle, cuuint32_t, cuuint64_t,
};

use super::args::Caller;
use super::exports;
use crate::object::tensor_map;
use crate::state::error::{Error, Result};
use engine::tensor_map::{BYTES, Mode, TensorMap};

/// The parameters that all three kinds of map have in common.
struct CommonParams {
    data_type: CUtensorMapDataType,
    rank: cuuint32_t,
    address: *mut c_void,
    dims: *const cuuint64_t,
    strides: *const cuuint64_t,
    element_strides: *const cuuint32_t,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2_promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
}

/// Converts a number to a byte. A number that does not fit becomes one that [`tensor_map::encode`] rejects.
fn byte(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// Reads up to `N` of the `count` numbers in the caller's array; the remaining numbers of the result are 0.
fn numbers<const N: usize, T: Copy + Default, U: Copy>(
    c: Caller,
    from: *const U,
    count: usize,
    convert: impl Fn(U) -> T,
) -> Result<[T; N]> {
    let mut all = [T::default(); N];
    let given = c.array(from, count.min(N))?;
    for (to, from) in all.iter_mut().zip(given) {
        *to = convert(from);
    }
    Ok(all)
}

impl CommonParams {
    fn read(self, c: Caller) -> Result<TensorMap> {
        let rank = self.rank as usize;
        // Driver 580 requires strides even for rank 1, which has none.
        if !(1..=5).contains(&rank) || self.strides.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(TensorMap {
            address: self.address as u64,
            rank: byte(self.rank),
            data_type: byte(self.data_type.0),
            interleave: byte(self.interleave.0),
            swizzle: byte(self.swizzle.0),
            l2_promotion: byte(self.l2_promotion.0),
            fill: byte(self.fill.0),
            dims: numbers(c, self.dims, rank, |n| n)?,
            element_strides: numbers(c, self.element_strides, rank, byte)?,
            strides: numbers(c, self.strides, rank - 1, |n| n)?,
            ..TensorMap::default()
        })
    }
}

/// Writes the map, if it is valid. Driver 580 accepts any address of `out`, although kernels need the map at a multiple
/// of 64.
fn write(c: Caller, out: *mut CUtensorMap, map: &TensorMap) -> Result<()> {
    let out = c.out(out.cast::<[u8; BYTES]>())?;
    out.set(tensor_map::encode(map)?);
    Ok(())
}

/// Converts one coordinate of a corner of a pixel box to 16 bits. Returns `CUDA_ERROR_INVALID_VALUE` if it does not
/// fit.
fn corner(value: c_int) -> Result<i16> {
    i16::try_from(value).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
}

/// Converts a number to 16 bits. A number that does not fit becomes one that [`tensor_map::encode`] rejects.
fn narrow(value: c_uint) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

exports! {
    healthy fn cuTensorMapEncodeTiled [c] (
        out: *mut CUtensorMap,
        data_type: CUtensorMapDataType,
        rank: cuuint32_t,
        address: *mut c_void,
        dims: *const cuuint64_t,
        strides: *const cuuint64_t,
        boxes: *const cuuint32_t,
        element_strides: *const cuuint32_t,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    ) {
        let common = CommonParams {
            data_type,
            rank,
            address,
            dims,
            strides,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            fill,
        };
        let mut map = common.read(c)?;
        map.boxes = numbers(c, boxes, rank as usize, narrow)?;
        write(c, out, &map)
    }

    healthy fn cuTensorMapEncodeIm2col [c] (
        out: *mut CUtensorMap,
        data_type: CUtensorMapDataType,
        rank: cuuint32_t,
        address: *mut c_void,
        dims: *const cuuint64_t,
        strides: *const cuuint64_t,
        lower: *const c_int,
        upper: *const c_int,
        channels: cuuint32_t,
        pixels: cuuint32_t,
        element_strides: *const cuuint32_t,
        interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    ) {
        let common = CommonParams {
            data_type,
            rank,
            address,
            dims,
            strides,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            fill,
        };
        let mut map = common.read(c)?;
        map.mode = Mode::Im2col;
        let corners = (rank as usize).saturating_sub(2);
        for (to, from) in [(&mut map.lower, lower), (&mut map.upper, upper)] {
            for (to, from) in to.iter_mut().zip(c.array(from, corners)?) {
                *to = corner(from)?;
            }
        }
        (map.channels, map.pixels) = (narrow(channels), narrow(pixels));
        write(c, out, &map)
    }

    healthy fn cuTensorMapEncodeIm2colWide [c] (
        out: *mut CUtensorMap,
        data_type: CUtensorMapDataType,
        rank: cuuint32_t,
        address: *mut c_void,
        dims: *const cuuint64_t,
        strides: *const cuuint64_t,
        lower: c_int,
        upper: c_int,
        channels: cuuint32_t,
        pixels: cuuint32_t,
        element_strides: *const cuuint32_t,
        interleave: CUtensorMapInterleave,
        mode: CUtensorMapIm2ColWideMode,
        swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill,
    ) {
        let common = CommonParams {
            data_type,
            rank,
            address,
            dims,
            strides,
            element_strides,
            interleave,
            swizzle,
            l2_promotion,
            fill,
        };
        let mut map = common.read(c)?;
        map.mode = match mode.0 {
            0 => Mode::Im2colWide,
            1 => Mode::Im2colWide128,
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        };
        (map.lower[0], map.upper[0]) = (corner(lower)?, corner(upper)?);
        (map.channels, map.pixels) = (narrow(channels), narrow(pixels));
        write(c, out, &map)
    }

    healthy fn cuTensorMapReplaceAddress [c] (map: *mut CUtensorMap, address: *mut c_void) {
        let map = map.cast::<[u8; BYTES]>();
        let replaced = tensor_map::replace_address(&c.read(map.cast_const())?, address as u64)?;
        c.out(map)?.set(replaced);
        Ok(())
    }
}
