//! Tensor maps: 128 bytes in this driver's own layout.
//!
//! `cuTensorMapEncode…` writes a map, tensor copies of kernels read it, and `tensormap.replace` changes single fields
//! in place. The layout is opaque to programs. All numbers are little-endian; dimension 0 is the innermost one.
//!
//! | offset | bytes | field |
//! | --- | --- | --- |
//! | 0 | 8 | address of the tensor |
//! | 8 | 1 | number of dimensions, 1 to 5 |
//! | 9 | 1 | element type, as `CUtensorMapDataType` |
//! | 10 | 1 | interleave, as `CUtensorMapInterleave` |
//! | 11 | 1 | swizzle, as `CUtensorMapSwizzle` |
//! | 12 | 1 | L2 promotion, ignored here |
//! | 13 | 1 | fill of elements out of bounds, as `CUtensorMapFloatOOBfill` |
//! | 14 | 1 | [`Mode`] |
//! | 15 | 1 | a constant tag, which `tensormap.replace` writes too |
//! | 16 | 5 × 4 | elements of each dimension, less 1 |
//! | 36 | 4 | zero |
//! | 40 | 4 × 8 | stride in bytes of dimensions 1 to 4 |
//! | 72 | 5 × 2 | elements of the box in each dimension, 1 to 256 ([`Mode::Tiled`]) |
//! | 82 | 3 × 2 | lower corner of the pixel box, signed: W, H, D ([`Mode::Im2col`]; W alone in the wide modes) |
//! | 88 | 3 × 2 | upper corner of the pixel box, in the same format |
//! | 94 | 2 | channels of a pixel |
//! | 96 | 2 | pixels of a column |
//! | 98 | 5 | element stride of each dimension, 1 to 8 |
//! | 103 | 25 | zero |

#![forbid(unsafe_code)]

use ptx::ir::TensorMapField;

/// Marks the 128 bytes of a map, so that other bytes are rejected.
const TAG: u8 = 0xC5;
/// Offset of the tag.
const TAG_AT: usize = 15;
/// Size of a map in bytes.
pub const BYTES: usize = 128;

/// The way in which a copy addresses the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A box of the tensor (`cuTensorMapEncodeTiled`).
    #[default]
    Tiled = 0,
    /// Columns of pixels (`cuTensorMapEncodeIm2col`).
    Im2col = 1,
    /// Columns of pixels along W (`cuTensorMapEncodeIm2colWide`).
    Im2colWide = 2,
    /// Columns of 128 pixels along W.
    Im2colWide128 = 3,
}

/// The fields of a tensor map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorMap {
    /// Address of the tensor.
    pub address: u64,
    /// Number of dimensions, 1 to 5.
    pub rank: u8,
    /// Element type, as `CUtensorMapDataType`. PTX's `tensormap.replace.elemtype` has other numbers.
    pub data_type: u8,
    /// Interleave, as `CUtensorMapInterleave`.
    pub interleave: u8,
    /// Swizzle, as `CUtensorMapSwizzle`.
    pub swizzle: u8,
    /// L2 promotion, as `CUtensorMapL2promotion`.
    pub l2_promotion: u8,
    /// Fill of elements out of bounds, as `CUtensorMapFloatOOBfill`.
    pub fill: u8,
    /// The way in which a copy addresses the tensor.
    pub mode: Mode,
    /// Elements of the first `rank` dimensions.
    pub dims: [u64; 5],
    /// Element stride of each dimension, 1 to 8.
    pub element_strides: [u8; 5],
    /// Strides in bytes of dimensions 1 to 4; dimension 0 is dense.
    pub strides: [u64; 4],
    /// Elements of the box in each dimension (tiled mode).
    pub boxes: [u16; 5],
    /// Lower corner of the pixel box: W, H, D (im2col modes).
    pub lower: [i16; 3],
    /// Upper corner of the pixel box: W, H, D (im2col modes).
    pub upper: [i16; 3],
    /// Channels of a pixel (im2col modes).
    pub channels: u16,
    /// Pixels of a column (im2col modes).
    pub pixels: u16,
}

impl TensorMap {
    /// Encodes the map.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.address.to_le_bytes());
        put(
            8,
            &[
                self.rank,
                self.data_type,
                self.interleave,
                self.swizzle,
                self.l2_promotion,
                self.fill,
                self.mode as u8,
                TAG,
            ],
        );
        for (i, dim) in self.dims.iter().enumerate() {
            put(16 + 4 * i, &(dim.wrapping_sub(1) as u32).to_le_bytes());
        }
        put(98, &self.element_strides);
        for (i, stride) in self.strides.iter().enumerate() {
            put(40 + 8 * i, &stride.to_le_bytes());
        }
        for (i, elements) in self.boxes.iter().enumerate() {
            put(72 + 2 * i, &elements.to_le_bytes());
        }
        for i in 0..3 {
            put(82 + 2 * i, &self.lower[i].to_le_bytes());
            put(88 + 2 * i, &self.upper[i].to_le_bytes());
        }
        put(94, &self.channels.to_le_bytes());
        put(96, &self.pixels.to_le_bytes());
        bytes
    }

    /// Decodes a map. Returns `None` if the bytes are not a map, or the number of dimensions, the mode or a value of a
    /// C enumeration is invalid. The other fields may have any value.
    pub fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let i16_at = |at: usize| u16_at(at) as i16;
        let u32_at = |at: usize| u64::from(u16_at(at)) | u64::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u32_at(at) | u32_at(at + 4) << 32;
        let rank = bytes[8];
        let mode = match bytes[14] {
            0 => Mode::Tiled,
            1 => Mode::Im2col,
            2 => Mode::Im2colWide,
            3 => Mode::Im2colWide128,
            _ => return None,
        };
        let known = (1..=5).contains(&rank)
            && bytes[9] <= 15
            && bytes[10] <= 2
            && bytes[11] <= 6
            && bytes[12] <= 3
            && bytes[13] <= 1;
        if bytes[TAG_AT] != TAG || !known {
            return None;
        }
        Some(TensorMap {
            address: u64_at(0),
            rank,
            data_type: bytes[9],
            interleave: bytes[10],
            swizzle: bytes[11],
            l2_promotion: bytes[12],
            fill: bytes[13],
            mode,
            dims: std::array::from_fn(|i| u32_at(16 + 4 * i) + 1),
            element_strides: std::array::from_fn(|i| bytes[98 + i]),
            strides: std::array::from_fn(|i| u64_at(40 + 8 * i)),
            boxes: std::array::from_fn(|i| u16_at(72 + 2 * i)),
            lower: std::array::from_fn(|i| i16_at(82 + 2 * i)),
            upper: std::array::from_fn(|i| i16_at(88 + 2 * i)),
            channels: u16_at(94),
            pixels: u16_at(96),
        })
    }
}

/// Replaces a field of an encoded map, as `tensormap.replace` does. If a field has a value for each dimension,
/// `dimension` selects one. Kernels also make maps from 128 zero bytes in this way, so the result carries the tag.
pub(crate) fn replace(bytes: &mut [u8; BYTES], field: TensorMapField, dimension: u8, value: u64) {
    let dimension = usize::from(dimension.min(4));
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(TAG_AT, &[TAG]);
    match field {
        TensorMapField::GlobalAddress => put(0, &value.to_le_bytes()),
        TensorMapField::Rank => put(8, &[value.wrapping_add(1) as u8]),
        TensorMapField::BoxDim => put(72 + 2 * dimension, &(value as u16).to_le_bytes()),
        TensorMapField::GlobalDim => put(16 + 4 * dimension, &(value as u32).wrapping_sub(1).to_le_bytes()),
        // There are four strides.
        TensorMapField::GlobalStride if dimension == 4 => {}
        TensorMapField::GlobalStride => put(40 + 8 * dimension, &value.to_le_bytes()),
        TensorMapField::ElementStride => put(98 + dimension, &[value as u8]),
        TensorMapField::ElemType => {
            // PTX numbers the types differently from `CUtensorMapDataType`.
            let data_type = match value {
                8 => 10,
                9 => 8,
                10 => 9,
                other => other as u8,
            };
            put(9, &[data_type]);
        }
        TensorMapField::InterleaveLayout => put(10, &[value as u8]),
        TensorMapField::SwizzleMode => put(11, &[value as u8]),
        TensorMapField::FillMode => put(13, &[value as u8]),
    }
}

/// Returns the size in bytes of an element of a `CUtensorMapDataType`; `None` for the packed types of 4 or 6 bits and
/// for unknown numbers.
pub fn element_bytes(data_type: u8) -> Option<u64> {
    match data_type {
        0 => Some(1),
        1 | 6 | 9 => Some(2),
        2 | 3 | 7 | 10..=12 => Some(4),
        4 | 5 | 8 => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES, Mode, TensorMap};

    #[test]
    fn maps_round_trip_and_other_bytes_are_rejected() {
        let map = TensorMap {
            address: 0x2000_1234_5670,
            rank: 5,
            data_type: 12,
            interleave: 2,
            swizzle: 6,
            l2_promotion: 3,
            fill: 1,
            mode: Mode::Im2col,
            dims: [1 << 32, 1, 2, 0x1234_5678, 7],
            element_strides: [1, 2, 3, 4, 8],
            strides: [16, 32, (1 << 40) - 16, 48],
            boxes: [256, 1, 2, 3, 255],
            lower: [-32768, -1, 15],
            upper: [32767, -128, -16],
            channels: 256,
            pixels: 1024,
        };
        assert_eq!(TensorMap::decode(&map.encode()), Some(map));
        assert_eq!(TensorMap::decode(&[0; BYTES]), None);
        assert_eq!(TensorMap::decode(&[0x5A; BYTES]), None);
        for (at, value) in [(8, 0), (8, 6), (9, 16), (10, 3), (11, 7), (13, 2), (14, 4), (15, 0)] {
            let mut bytes = map.encode();
            bytes[at] = value;
            assert_eq!(TensorMap::decode(&bytes), None, "byte {at} = {value}");
        }
    }
}
