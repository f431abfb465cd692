//! A model of tensor copies: computes the result of each copy element by element, as the PTX manual defines it, or as
//! an H200 does where the manual says nothing.

use std::ffi::c_void;

use cuda_driver::sys::*;

use crate::ok;

/// The size in bytes of the shared memory that the kernels copy to or from global memory.
pub(super) const TILE: usize = 16384;
/// The byte that the kernels fill shared memory with before a copy.
pub(super) const UNTOUCHED: u8 = 0xee;

/// The element types of sm_90 with their sizes in bytes.
pub(super) const TYPES: [(CUtensorMapDataType, usize); 13] = {
    use CUtensorMapDataType as T;
    [
        (T::CU_TENSOR_MAP_DATA_TYPE_UINT8, 1),
        (T::CU_TENSOR_MAP_DATA_TYPE_UINT16, 2),
        (T::CU_TENSOR_MAP_DATA_TYPE_UINT32, 4),
        (T::CU_TENSOR_MAP_DATA_TYPE_INT32, 4),
        (T::CU_TENSOR_MAP_DATA_TYPE_UINT64, 8),
        (T::CU_TENSOR_MAP_DATA_TYPE_INT64, 8),
        (T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2),
        (T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4),
        (T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8),
        (T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2),
        (T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 4),
        (T::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 4),
        (T::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 4),
    ]
};

/// The parameters of a tensor map.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) data_type: CUtensorMapDataType,
    /// The size of an element in bytes.
    pub(super) element: usize,
    pub(super) dims: Vec<u64>,
    /// Strides in bytes of dimensions 1 and up.
    pub(super) strides: Vec<u64>,
    pub(super) boxes: Vec<u32>,
    /// The element strides: the distances between the elements that a copy takes.
    pub(super) steps: Vec<u32>,
    /// The swizzle span in bytes, or 0.
    pub(super) swizzle: usize,
    /// True if elements outside of the tensor become NaN, not zero.
    pub(super) nan: bool,
    /// The size in bytes of a slice of an interleaved tensor, 16 or 32; 0 if the tensor is not interleaved.
    pub(super) slice: usize,
    /// The size of the tensor in memory in bytes, with the gaps after the rows.
    pub(super) bytes: usize,
}

/// The parameters of an im2col map that a tiled map does not have.
#[derive(Clone, Debug)]
pub(super) struct Pixels {
    pub(super) lower: Vec<i32>,
    pub(super) upper: Vec<i32>,
    pub(super) channels: u32,
    pub(super) count: u32,
}

/// An encoded map, as a kernel's parameter.
pub(super) type Map = [u64; 16];

impl Tensor {
    /// Returns a tensor with a gap of at least 16 bytes after each row, and no other gaps.
    pub(super) fn new((data_type, element): (CUtensorMapDataType, usize), dims: &[u64], boxes: &[u32]) -> Self {
        let mut strides = Vec::new();
        let mut stride = (dims[0] * element as u64).next_multiple_of(16) + 16;
        for dim in &dims[1..] {
            strides.push(stride);
            stride *= dim;
        }
        Tensor {
            data_type,
            element,
            dims: dims.to_vec(),
            strides,
            boxes: boxes.to_vec(),
            steps: vec![1; dims.len()],
            swizzle: 0,
            nan: false,
            slice: 0,
            bytes: stride as usize,
        }
    }

    /// Returns an interleaved tensor without gaps, whose dimension 0 counts slices of this many bytes.
    pub(super) fn interleaved(slice: usize, dims: &[u64], boxes: &[u32]) -> Self {
        let mut tensor = Tensor::new(TYPES[1], dims, boxes);
        let mut stride = dims[0] * slice as u64;
        for (to, dim) in tensor.strides.iter_mut().zip(&dims[1..]) {
            *to = stride;
            stride *= dim;
        }
        (tensor.slice, tensor.bytes) = (slice, stride as usize);
        tensor
    }

    fn modes(&self) -> (CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapFloatOOBfill) {
        (
            CUtensorMapInterleave(self.slice as u32 / 16),
            CUtensorMapSwizzle((self.swizzle / 32).next_power_of_two().trailing_zeros() + u32::from(self.swizzle > 0)),
            CUtensorMapFloatOOBfill(u32::from(self.nan)),
        )
    }

    /// Encodes a tiled map.
    pub(super) fn tiled(&self, address: CUdeviceptr) -> Map {
        let mut map = CUtensorMap_st { opaque: [0; 16] };
        let (interleave, swizzle, fill) = self.modes();
        let strides = [self.strides.as_slice(), &[0]].concat();
        ok!(cuTensorMapEncodeTiled(
            &raw mut map,
            self.data_type,
            self.dims.len() as u32,
            std::ptr::without_provenance_mut::<c_void>(address as usize),
            self.dims.as_ptr(),
            strides.as_ptr(),
            self.boxes.as_ptr(),
            self.steps.as_ptr(),
            interleave,
            swizzle,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            fill
        ));
        map.opaque
    }

    /// Encodes an im2col map.
    pub(super) fn im2col(&self, address: CUdeviceptr, pixels: &Pixels) -> Map {
        let mut map = CUtensorMap_st { opaque: [0; 16] };
        let (interleave, swizzle, fill) = self.modes();
        ok!(cuTensorMapEncodeIm2col(
            &raw mut map,
            self.data_type,
            self.dims.len() as u32,
            std::ptr::without_provenance_mut::<c_void>(address as usize),
            self.dims.as_ptr(),
            self.strides.as_ptr(),
            pixels.lower.as_ptr(),
            pixels.upper.as_ptr(),
            pixels.channels,
            pixels.count,
            self.steps.as_ptr(),
            interleave,
            swizzle,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            fill
        ));
        map.opaque
    }

    /// Returns the offset of an element in memory, or `None` outside of the tensor.
    fn offset(&self, at: &[i64]) -> Option<usize> {
        for (at, dim) in at.iter().zip(&self.dims) {
            if *at < 0 || *at as u64 >= *dim {
                return None;
            }
        }
        let mut offset = at[0] as usize * self.element;
        for (at, stride) in at[1..].iter().zip(&self.strides) {
            offset += *at as usize * *stride as usize;
        }
        Some(offset)
    }

    /// Returns for each element of a box its offset in shared memory, and its offset in global memory, or `None`
    /// outside of the tensor.
    pub(super) fn tile(&self, at: &[i32], start: usize) -> Vec<(usize, Option<usize>)> {
        if self.slice != 0 {
            return self.slices(at, start);
        }
        let rank = self.dims.len();
        let counts: Vec<usize> = (0..rank)
            .map(|i| match i {
                0 => self.boxes[0] as usize,
                _ => self.boxes[i].div_ceil(self.steps[i]) as usize,
            })
            .collect();
        let mut all = Vec::new();
        for number in 0..counts.iter().product() {
            let (mut rest, mut place, mut index) = (number, Vec::new(), Vec::new());
            for i in 0..rank {
                let n = rest % counts[i];
                rest /= counts[i];
                index.push(n);
                let step = if i == 0 { 1 } else { self.steps[i] as usize };
                place.push(i64::from(at[i]) + (n * step) as i64);
            }
            // The element's pixel in its image, and the image: the last dimension counts images.
            let (mut pixel, mut pixels) = (0, 1);
            for i in 1..rank.max(2) - 1 {
                pixel += index[i] * pixels;
                pixels *= counts[i];
            }
            let image = if rank > 1 { index[rank - 1] } else { 0 };
            let logical = self.in_shared(index[0], counts[0], pixel, pixels, image);
            all.push((self.swizzled(start + logical), self.offset(&place)));
        }
        all
    }

    /// Returns the same as [`tile`](Self::tile) for an interleaved tensor. An H200 counts dimension 0 in slices, and
    /// takes one element of the second-to-last dimension; the manual says neither.
    fn slices(&self, at: &[i32], start: usize) -> Vec<(usize, Option<usize>)> {
        let rank = self.dims.len();
        let count = |i: usize| match i + 2 == rank {
            true => 1,
            false => self.boxes[i].div_ceil(self.steps[i]) as usize,
        };
        let mut all = Vec::new();
        for number in 0..(0..rank).map(count).product() {
            let (mut rest, mut inside, mut global) = (number, true, 0);
            for (i, &coordinate) in at.iter().enumerate().take(rank) {
                let place = i64::from(coordinate) + (rest % count(i) * self.steps[i] as usize) as i64;
                rest /= count(i);
                inside &= (0..self.dims[i] as i64).contains(&place);
                let stride = if i == 0 {
                    self.slice
                } else {
                    self.strides[i - 1] as usize
                };
                global += place * stride as i64;
            }
            for byte in (0..self.slice).step_by(self.element) {
                let from = inside.then_some(global as usize + byte);
                all.push((self.swizzled(start + number * self.slice + byte), from));
            }
        }
        all
    }

    /// Returns the same as [`tile`](Self::tile), for the columns of an im2col map.
    pub(super) fn pixels(
        &self,
        pixels: &Pixels,
        at: &[i32],
        offsets: &[u16],
        start: usize,
    ) -> Vec<(usize, Option<usize>)> {
        let rank = self.dims.len();
        let mut place: Vec<i64> = at.iter().map(|n| i64::from(*n)).collect();
        let mut all = Vec::new();
        for pixel in 0..pixels.count as usize {
            for channel in 0..pixels.channels as usize {
                let mut element = place.clone();
                element[0] += channel as i64;
                for (at, offset) in element[1..rank - 1].iter_mut().zip(offsets) {
                    *at += i64::from(*offset);
                }
                let logical = self.in_shared(channel, pixels.channels as usize, pixel, pixels.count as usize, 0);
                all.push((self.swizzled(start + logical), self.offset(&element)));
            }
            let mut carried = true;
            for (i, at) in place.iter_mut().enumerate().take(rank - 1).skip(1) {
                *at += i64::from(self.steps[i]);
                if *at < self.dims[i] as i64 + i64::from(pixels.upper[i - 1]) {
                    carried = false;
                    break;
                }
                *at = i64::from(pixels.lower[i - 1]);
            }
            place[rank - 1] += i64::from(carried);
        }
        all
    }

    /// Returns the offset in shared memory of a channel of a pixel, before swizzling.
    fn in_shared(&self, channel: usize, channels: usize, pixel: usize, pixels: usize, image: usize) -> usize {
        let pitch = (channels * self.element).max(self.swizzle);
        (image * pixels + pixel) * pitch + channel * self.element
    }

    /// Returns the offset after swizzling, which XORs the index of the 16-byte chunk in the span with the index of the
    /// 128-byte line.
    fn swizzled(&self, at: usize) -> usize {
        let chunks = self.swizzle / 16;
        match chunks {
            0 => at,
            _ => at ^ (at >> 7 & (chunks - 1)) << 4,
        }
    }

    /// Returns the number of bytes that a copy of these elements signals to the barrier.
    pub(super) fn signalled(&self, elements: &[(usize, Option<usize>)]) -> u32 {
        (elements.len() * self.element) as u32
    }

    /// Returns shared memory after a load.
    pub(super) fn loaded(&self, memory: &[u8], elements: &[(usize, Option<usize>)]) -> Vec<u8> {
        use CUtensorMapDataType as T;
        let mut shared = vec![UNTOUCHED; TILE];
        for (to, from) in elements {
            let target = &mut shared[*to..*to + self.element];
            match from {
                Some(from) => target.copy_from_slice(&memory[*from..*from + self.element]),
                None if self.nan => target
                    .chunks_mut(2)
                    .for_each(|half| half.copy_from_slice(&[0xf7, 0x7f])),
                None => target.fill(0),
            }
            let tf32 = [
                T::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
                T::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
            ];
            if let (Some(_), true, Ok(word)) = (from, tf32.contains(&self.data_type), <[u8; 4]>::try_from(&*target)) {
                let word = u32::from_le_bytes(word);
                // Rounds to nearest, ties to even; infinities stay.
                let rounded = word.wrapping_add(0xfff + (word >> 13 & 1)) & 0xffff_e000;
                target.copy_from_slice(&rounded.to_le_bytes());
            }
        }
        shared
    }

    /// Returns memory after a store of these elements. `combine` computes each stored value from the old and the new
    /// one.
    pub(super) fn stored(
        &self,
        memory: &[u8],
        shared: &[u8],
        elements: &[(usize, Option<usize>)],
        combine: impl Fn(u64, u64) -> u64,
    ) -> Vec<u8> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let mut memory = memory.to_vec();
        for (from, to) in elements {
            if let Some(to) = to {
                let target = &mut memory[*to..*to + self.element];
                let value = combine(number(target), number(&shared[*from..*from + self.element]));
                target.copy_from_slice(&value.to_le_bytes()[..self.element]);
            }
        }
        memory
    }
}
