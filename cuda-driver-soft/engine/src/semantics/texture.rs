//! Sampling of textures: addressing, weights, and filtering; and the conversion of texels that `sust.p` stores.
//!
//! The manual leaves many details open. This module computes what an H200 was seen to compute: coordinates of filtered
//! texels have eight fraction bits, weights are multiples of 1/256, and sums are rounded once.
//!
//! | module | computes |
//! | --- | --- |
//! | [`place`] | the texels for a coordinate |
//! | [`weights`] | the weights of up to eight texels |
//! | [`texel`] | the values of texels, and their weighted mean |
//! | [`block`] | the texels of block-compressed formats |
//! | [`cube`] | the face of a cube for a direction |
//! | [`gradient`] | the footprint of gradients, and its level of detail |
//! | [`anisotropy`] | the samples along the longer axis of a footprint |
//! | [`level`] | the levels of a mipmap for a level of detail |

pub mod anisotropy;
pub mod block;
pub mod cube;
pub mod gradient;
pub mod level;
pub mod place;
pub mod texel;
pub mod weights;
