//! Buffers of values that both a kernel and its native reference use.

/// Values of one type.
#[derive(Clone, Debug)]
pub(super) enum Buffer {
    Bytes(Vec<u8>),
    Words(Vec<u32>),
    Floats(Vec<f32>),
}

impl Buffer {
    /// Returns pseudo-random floats that are at least 0 and less than 1.
    pub(super) fn fractions(count: usize) -> Self {
        let all = random(count).map(|v| (v >> 8) as f32 / (1 << 24) as f32);
        Buffer::Floats(all.collect())
    }

    /// Returns pseudo-random words.
    pub(super) fn random(count: usize) -> Self {
        Buffer::Words(random(count).collect())
    }

    /// Returns pseudo-random bytes.
    pub(super) fn random_bytes(count: usize) -> Self {
        Buffer::Bytes(random(count).map(|v| v as u8).collect())
    }

    pub(super) fn zero_words(count: usize) -> Self {
        Buffer::Words(vec![0; count])
    }

    pub(super) fn zero_floats(count: usize) -> Self {
        Buffer::Floats(vec![0.0; count])
    }

    pub(super) fn zero_bytes(count: usize) -> Self {
        Buffer::Bytes(vec![0; count])
    }

    /// Returns the content as bytes of memory.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Buffer::Bytes(all) => all.clone(),
            Buffer::Words(all) => all.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Buffer::Floats(all) => all.iter().flat_map(|v| v.to_le_bytes()).collect(),
        }
    }

    /// Returns the largest difference from the values in `bytes`: 0 if all values are equal, and infinity if integers
    /// differ or a float is a NaN. A difference of floats is divided by the magnitude of this buffer's value if that is
    /// greater than 1.
    pub(super) fn difference(&self, bytes: &[u8]) -> f64 {
        match self {
            Buffer::Floats(all) => {
                let other = bytes
                    .chunks_exact(4)
                    .map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]));
                let each = all.iter().zip(other).map(|(a, b)| {
                    let (a, b) = (f64::from(*a), f64::from(b));
                    if a == b { 0.0 } else { (a - b).abs() / a.abs().max(1.0) }
                });
                each.map(|d| if d.is_nan() { f64::INFINITY } else { d })
                    .fold(0.0, f64::max)
            }
            _ if self.to_bytes() == bytes => 0.0,
            _ => f64::INFINITY,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Buffer::Bytes(all) => all,
            _ => panic!("a buffer of bytes was expected"),
        }
    }

    pub(super) fn words(&self) -> &[u32] {
        match self {
            Buffer::Words(all) => all,
            _ => panic!("a buffer of words was expected"),
        }
    }

    pub(super) fn floats(&self) -> &[f32] {
        match self {
            Buffer::Floats(all) => all,
            _ => panic!("a buffer of floats was expected"),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::Bytes(all) => all,
            _ => panic!("a buffer of bytes was expected"),
        }
    }

    pub(super) fn words_mut(&mut self) -> &mut [u32] {
        match self {
            Buffer::Words(all) => all,
            _ => panic!("a buffer of words was expected"),
        }
    }

    pub(super) fn floats_mut(&mut self) -> &mut [f32] {
        match self {
            Buffer::Floats(all) => all,
            _ => panic!("a buffer of floats was expected"),
        }
    }
}

fn random(count: usize) -> impl Iterator<Item = u32> {
    (0..count as u32).map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i % 31) ^ 0x5bd1_e995)
}
