//! Sampling of textures: which texels, with which weights, and what comes of them.
//!
//! All of it is as an H200 was seen to do it: coordinates of eight fraction bits where texels are filtered, weights of which
//! there are 256 parts, and sums that are rounded once. [`place`] says which texels, [`weights`] how much of each, [`texel`]
//! what their bits mean, [`cube`] which face a direction goes through, [`level`] which level of a mipmap is sampled.

pub mod cube;
pub mod level;
pub mod place;
pub mod texel;
pub mod weights;
