//! Instructions on textures (`tex`, `tld4`), and the queries (`txq`, `suq`, `istypep`). The other instructions on
//! surfaces are in `surface`.
//!
//! The manual leaves many details open. Comments that name an H200 describe observations on that GPU.

use super::texels::{RESULTS, Texels};
use crate::code::machine::Machine;
use crate::code::registers::RegFile;
use crate::code::texture::TextureInst;
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::semantics::texture::anisotropy::Sample;
use crate::semantics::texture::level::{self, Choice, Levels};
use crate::semantics::texture::place::{self, Address, TexelPair};
use crate::semantics::texture::texel::{self, Channel, Read, WeightedTexel};
use crate::semantics::texture::{cube, gradient, weights};
use crate::texture::{Object, Plane, Sampler, Storage, TexelArray, TextureShape, object};
use ptx::ir::{Geometry, Level, Op, Query, Space, Tex, Type};
use std::sync::Arc;

/// Maximum number of sources after the handle: the coordinates, two gradients and the offsets, each of four elements.
const SOURCES: usize = 16;

/// Runs an instruction for the lanes of the mask. Returns `Err` if a lane faults; the machine then has the fault.
pub(crate) fn run(m: &mut Machine<'_>, file: &mut RegFile, call: &TextureInst, mask: Mask) -> Result<(), ()> {
    // One lane takes about as long as eight plain instructions.
    m.steps += 8 * u64::from(mask.count_ones());
    // Most lanes use the same object.
    let mut last: Option<(u64, Option<Arc<Object>>)> = None;
    let mut results = [[0u64; RESULTS]; lanes::LANES];
    for lane in lanes::iter(mask) {
        let handle = file.get(call.handle, 8, lane);
        let found = match &last {
            Some((same, found)) if *same == handle => found.clone(),
            _ => object(handle),
        };
        last = Some((handle, found.clone()));
        if found.is_none() && handle != 0 {
            // An H200 faults, too, but treats handle 0 as an object without texels.
            m.fault = Some((no_object(handle), lane));
            return Err(());
        }
        let mut sources = [0u64; SOURCES];
        for (source, (slot, width)) in sources.iter_mut().zip(&call.srcs) {
            *source = file.get(*slot, *width, lane);
        }
        let mut view = Texels::new(m, lane);
        results[lane] = match (&call.op, found.as_deref()) {
            (Op::Tex(tex), Some(Object::Texture(image, sampler))) => sample(&mut view, tex, image, sampler, &sources)?,
            (Op::Surface(surface), Some(Object::Surface(image))) => {
                super::surface::access(&mut view, surface, image, &sources)?
            }
            (Op::Query { query, surface }, Some(object)) => {
                let level = (!call.srcs.is_empty()).then_some(sources[0] as u32);
                [answer(*query, *surface, object, level), 0, 0, 0, 0]
            }
            (Op::Istypep(opaque), found) => {
                let is = match found {
                    Some(Object::Texture(..)) => *opaque == ptx::ir::Opaque::Texture,
                    Some(Object::Surface(_)) => *opaque == ptx::ir::Opaque::Surface,
                    _ => false,
                };
                [u64::from(is), 0, 0, 0, 0]
            }
            // If the object is of another kind than the instruction needs, an H200 reads zeros and writes nothing.
            _ => [0; RESULTS],
        };
    }
    for (i, (slot, width)) in call.dsts.iter().enumerate().take(RESULTS) {
        file.set(*slot, *width, mask, |lane| results[lane][i]);
    }
    Ok(())
}

/// Returns the fault of a handle that names no object.
fn no_object(handle: u64) -> FaultKind {
    FaultKind::IllegalAddress {
        address: handle,
        size: 1,
        write: false,
        space: Space::Global,
    }
}

/// Returns the result of `txq` or `suq`. As on an H200, layers count as one more axis, and the faces of cubes are
/// layers of a surface. The extent of an axis that does not exist is 0, except that the height of a one-dimensional
/// texture that is not linear memory is 1.
fn answer(query: Query, surface: bool, object: &Object, level: Option<u32>) -> u64 {
    let image = match object {
        Object::Texture(image, _) | Object::Surface(image) => image,
        Object::Nothing => return 0,
    };
    let Some(plane) = image.levels.get(level.unwrap_or(0) as usize) else {
        return 0;
    };
    let [width, height, depth] = plane.size;
    let cubes = if surface { depth } else { depth / 6 };
    u64::from(match (query, image.shape) {
        (Query::Width, _) => width,
        (Query::Height, TextureShape::D1) => u32::from(!surface),
        (Query::Height, TextureShape::Linear) => 0,
        (Query::Height, TextureShape::A1) => depth,
        (Query::Height, _) => height,
        (Query::Depth, TextureShape::D3 | TextureShape::A2) => depth,
        (Query::Depth, TextureShape::ACube) => cubes,
        (Query::Depth, TextureShape::Cube) if surface => depth,
        _ => 0,
    })
}

/// Returns the shape of the images that an instruction with this geometry reads.
fn shape_of(geometry: Geometry) -> TextureShape {
    match geometry {
        Geometry::D1 => TextureShape::D1,
        Geometry::D2 => TextureShape::D2,
        Geometry::D3 => TextureShape::D3,
        Geometry::A1 => TextureShape::A1,
        Geometry::A2 => TextureShape::A2,
        Geometry::Cube => TextureShape::Cube,
        Geometry::ACube => TextureShape::ACube,
    }
}

/// The point of one mipmap level at which an instruction samples.
struct SamplePoint<'a> {
    image: &'a TexelArray,
    sampler: &'a Sampler,
    plane: Plane,
    /// Layer, or face, counted over all cubes.
    layer: u32,
    /// Coordinates; 0 for axes beyond `axes`.
    at: [f32; 3],
    /// The offset of the point from these coordinates along the first two axes, in texels.
    shift: [f64; 2],
    /// The number of axes.
    axes: usize,
    offsets: [i64; 3],
}

/// Returns the result of `tex` or `tld4`: four components, and the predicate for resident texels. The predicate is
/// false if a texel that contributes has no memory, and for `.f32` coordinates in an image of another shape.
fn sample(
    view: &mut Texels<'_, '_>,
    tex: &Tex,
    image: &TexelArray,
    sampler: &Sampler,
    sources: &[u64; SOURCES],
) -> Result<[u64; RESULTS], ()> {
    let layered = usize::from(tex.geometry.is_layered());
    let written = usize::from(tex.geometry.written());
    let axes = tex.geometry.axes();
    let word = |i: usize| sources[i] as u32;
    let integers = tex.coordinates == Type::S32;
    let layer = if layered == 1 { word(0) } else { 0 };
    let offsets_at = match tex.level {
        Level::Base | Level::Gather(_) => written,
        Level::Given => written + 1,
        Level::Gradient(each) => written + 2 * usize::from(each),
    };
    let mut offsets = [0; 3];
    for (i, offset) in offsets.iter_mut().take(axes.min(tex.offsets.into())).enumerate() {
        // Each offset is a signed number of four bits.
        *offset = i64::from((word(offsets_at + i) as i32) << 28 >> 28);
    }
    if integers {
        let index = std::array::from_fn(|i| {
            if i < axes {
                i64::from(word(layered + i) as i32) + offsets[i]
            } else {
                0
            }
        });
        let level = (tex.level == Level::Given).then(|| word(written));
        let texel = fetch(view, tex, image, layer, index, level)?;
        let values = texel.map_or([0; 4], |texel| unfiltered(image, sampler, texel));
        return Ok(convert(tex, values, view));
    }
    if image.shape != shape_of(tex.geometry) {
        return Ok([0; RESULTS]);
    }
    let mut at: [f32; 3] = std::array::from_fn(|i| {
        if i < axes {
            f32::from_bits(word(layered + i))
        } else {
            0.0
        }
    });
    let direction = at;
    let base = image.levels[0];
    let mut sampler = sampler.clone();
    let (mut axes, mut layer) = (axes, layer);
    let of_cube = matches!(image.shape, TextureShape::Cube | TextureShape::ACube);
    match image.shape {
        TextureShape::Cube | TextureShape::ACube => {
            let (face, on_face) = cube::face(at);
            let cubes = (base.size[2] / 6).max(1);
            layer = layer.min(cubes - 1) * 6 + face;
            at = [on_face[0], on_face[1], 0.0];
            axes = 2;
            sampler.normalized = true;
            if sampler.seamless {
                sampler.modes = [Address::Clamp; 3];
            }
        }
        // An H200 uses the last layer for one that is too large, which includes negative numbers.
        TextureShape::A1 | TextureShape::A2 => layer = layer.min(base.size[2] - 1),
        _ => layer = 0,
    }
    let choice = Choice {
        linear: sampler.mip_linear,
        bias: sampler.bias,
        clamp: sampler.clamp,
        count: image.levels.len() as u32,
        anisotropy: sampler.anisotropy,
    };
    let mut line = None;
    let lod = match tex.level {
        Level::Base | Level::Gather(_) => 0.0,
        Level::Given => f32::from_bits(word(written)),
        Level::Gradient(each) => {
            // An H200 multiplies by the size for coordinates that are not normalized, too.
            let part = |first: usize| -> [f32; 3] {
                std::array::from_fn(|i| {
                    if i >= usize::from(each).min(tex.geometry.axes()) {
                        return 0.0;
                    }
                    let scale = if of_cube { 1.0 } else { base.size[i] as f32 };
                    f32::from_bits(word(first + i)) * scale
                })
            };
            let (x, y) = (part(written), part(written + usize::from(each)));
            let footprint = if of_cube {
                gradient::footprint_on_cube(direction, x, y, base.size[0])
            } else {
                gradient::footprint(x, y, axes)
            };
            let (lod, along) = match sampler.anisotropy {
                Some(anisotropy) => anisotropy.samples(&footprint),
                None => (footprint.longer, None),
            };
            line = along;
            lod
        }
    };
    let levels = match tex.level {
        _ if image.levels.len() == 1 => Levels { first: 0, fraction: 0 },
        // An H200 does not add the bias here.
        Level::Base | Level::Gather(_) => level::levels(lod, &Choice { bias: 0.0, ..choice }),
        _ => level::levels(lod, &choice),
    };
    let point = SamplePoint {
        image,
        sampler: &sampler,
        plane: image.levels[levels.first as usize],
        layer,
        at,
        shift: [0.0; 2],
        axes,
        offsets,
    };
    if let Level::Gather(component) = tex.level {
        let texels = gather(view, &point, usize::from(component))?;
        return Ok(convert(tex, texels, view));
    }
    let next = image.levels.get(levels.first as usize + 1);
    let next = next.filter(|_| levels.fraction != 0);
    if let Some(line) = line.filter(|_| point.has_means()) {
        let direction = of_cube.then_some(direction);
        let second = next.map_or(0, |_| levels.fraction);
        let mut sums = Sums::default();
        sums.add(view, &point, direction, line.in_larger(second), 256 - second)?;
        if let Some(next) = next {
            let point = SamplePoint { plane: *next, ..point };
            sums.add(view, &point, direction, line.in_smaller(second), second)?;
        }
        return Ok(convert(tex, sums.0.map(|sum| (sum as f32).to_bits()), view));
    }
    let Some(next) = next else {
        let color = point.color(view)?;
        return Ok(convert(tex, color, view));
    };
    let mut parts = Parts::default();
    point.parts(view, 256 - levels.fraction, &mut parts)?;
    SamplePoint { plane: *next, ..point }.parts(view, levels.fraction, &mut parts)?;
    Ok(convert(tex, parts.mean(image, &sampler), view))
}

/// Reads a texel by its indices. Returns `None` outside of the image, regardless of the address mode; indices are
/// clamped only if the instruction gives a level of a mipmap. As on an H200, linear memory is read this way, but
/// one-dimensional arrays are not: the result for them is `None`.
fn fetch(
    view: &mut Texels<'_, '_>,
    tex: &Tex,
    image: &TexelArray,
    layer: u32,
    index: [i64; 3],
    level: Option<u32>,
) -> Result<Option<[u32; 4]>, ()> {
    let fits = match image.shape {
        TextureShape::Linear => tex.geometry == Geometry::D1,
        TextureShape::D1 => false,
        shape => shape == shape_of(tex.geometry),
    };
    let number = level.unwrap_or(0) as usize;
    let Some(plane) = image.levels.get(number).filter(|_| fits) else {
        return Ok(None);
    };
    let clamps = level.is_some() && image.levels.len() > 1;
    let axes = tex.geometry.axes();
    let mut at = [0; 3];
    for (i, at) in at.iter_mut().enumerate().take(axes) {
        let most = i64::from(plane.size[i]) - 1;
        *at = match index[i] {
            inside if (0..=most).contains(&inside) => inside as u32,
            outside if clamps => outside.clamp(0, most) as u32,
            _ => return Ok(None),
        };
    }
    if tex.geometry.is_layered() {
        if layer >= plane.size[2] {
            return Ok(None);
        }
        at[2] = layer;
    }
    view.texel(image, plane, at).map(Some)
}

/// Returns the number of a component for conversions from sRGB, which leave number 3 alone. As on an H200, the second
/// of two channels counts as alpha.
fn color(image: &TexelArray, component: usize) -> usize {
    if image.channels == 2 && component == 1 {
        3
    } else {
        component
    }
}

/// Returns the components of a texel that is read without filtering.
fn unfiltered(image: &TexelArray, sampler: &Sampler, texel: [u32; 4]) -> [u32; 4] {
    std::array::from_fn(|i| {
        if i < image.channels as usize {
            // An unfiltered packed channel has its own scale.
            match image.storage {
                Storage::Packed if i < 3 => ((f64::from(texel[i] >> 6) / 1023.0) as f32).to_bits(),
                _ => texel::value(image.channel, sampler.read, color(image, i), texel[i]),
            }
        } else {
            0
        }
    })
}

/// Converts components to the type of the results, and appends the predicate for resident texels.
fn convert(tex: &Tex, values: [u32; 4], view: &Texels<'_, '_>) -> [u64; RESULTS] {
    let half = |bits: u32| u64::from(texel::as_half(bits));
    let [a, b, c, d] = values;
    let resident = view.all_resident.into();
    match tex.ty {
        Type::F16 => [half(a), half(b), half(c), half(d), resident],
        Type::F16x2 => [half(a) | half(b) << 16, half(c) | half(d) << 16, resident, 0, 0],
        _ => [a.into(), b.into(), c.into(), d.into(), resident],
    }
}

impl SamplePoint<'_> {
    /// Returns the address mode of an axis.
    fn mode(&self, axis: usize) -> Address {
        let mode = self.sampler.modes[axis];
        if self.sampler.normalized {
            mode
        } else {
            mode.unnormalized()
        }
    }

    /// Returns the offset from the coordinate of an axis, in texels.
    fn shift(&self, axis: usize) -> f64 {
        self.shift.get(axis).copied().unwrap_or(0.0)
    }

    /// Returns the two texels around each coordinate. On an H200 a one-dimensional image has a second axis of one texel
    /// here.
    fn around(&self) -> [TexelPair; 3] {
        std::array::from_fn(|axis| {
            if axis >= self.axes.max(2) {
                return TexelPair { first: 0, fraction: 0 };
            }
            let (size, mode) = (self.size(axis), self.mode(axis));
            let mut place = place::around(self.at[axis], self.shift(axis), size, mode, self.sampler.normalized);
            place.first += self.offsets[axis];
            place
        })
    }

    /// Returns the number of texels along an axis, which is 1 for axes beyond `axes`.
    fn size(&self, axis: usize) -> u32 {
        if axis < self.axes { self.plane.size[axis] } else { 1 }
    }

    /// Reads the texel at these indices, or the border color.
    fn read(&self, view: &mut Texels<'_, '_>, index: [i64; 3]) -> Result<[u32; 4], ()> {
        let mut at = [0; 3];
        for (axis, at) in at.iter_mut().enumerate() {
            // A third axis that does not exist has no border.
            let mode = if axis >= self.axes.max(2) {
                Address::Clamp
            } else {
                self.mode(axis)
            };
            match mode.index(index[axis], self.size(axis)) {
                Some(inside) => *at = inside,
                None => {
                    let color = self.sampler.border;
                    return Ok(std::array::from_fn(|i| {
                        let border =
                            texel::border(self.image.channel, self.sampler.read, color[i], self.image.normalized);
                        match self.image.storage {
                            Storage::Blocks(block) => block.border(i, border),
                            _ => border,
                        }
                    }));
                }
            }
        }
        if self.axes < 3 {
            at[2] = self.layer;
        }
        view.texel(self.image, &self.plane, at)
    }
}

impl SamplePoint<'_> {
    /// Returns true if texels are filtered. Integers that are read as elements never are.
    fn is_filtered(&self) -> bool {
        self.sampler.linear && self.has_means()
    }

    /// Returns true if a mean of texels is not an integer that is read as an element.
    fn has_means(&self) -> bool {
        let is_float = matches!(self.image.channel, Channel::Float | Channel::Half);
        self.sampler.read != Read::Element || is_float
    }

    /// Returns the result for this level alone, without the conversion to the type of the instruction.
    fn color(&self, view: &mut Texels<'_, '_>) -> Result<[u32; 4], ()> {
        if !self.is_filtered() {
            let texel = self.nearest(view)?;
            return Ok(unfiltered(self.image, self.sampler, texel));
        }
        let mut parts = Parts::default();
        self.parts(view, 256, &mut parts)?;
        Ok(parts.mean(self.image, self.sampler))
    }

    /// Returns the point at an offset. `direction` selects this point in a cube map.
    fn shifted(&self, direction: Option<[f32; 3]>, offset: [f64; 2]) -> Self {
        let Some(direction) = direction else {
            return SamplePoint { shift: offset, ..*self };
        };
        let edge = f64::from(self.plane.size[0]);
        let (face, on_face) = cube::face(cube::stepped(direction, offset.map(|texels| texels * 2.0 / edge)));
        SamplePoint {
            layer: self.layer / 6 * 6 + face,
            at: [on_face[0], on_face[1], 0.0],
            ..*self
        }
    }

    /// Reads the nearest texel.
    fn nearest(&self, view: &mut Texels<'_, '_>) -> Result<[u32; 4], ()> {
        let index = std::array::from_fn(|axis| {
            let (size, mode) = (self.size(axis), self.mode(axis));
            let index = place::nearest(self.at[axis], self.shift(axis), size, mode, self.sampler.normalized);
            index + self.offsets[axis]
        });
        self.read(view, index)
    }

    /// Adds the part of the result that comes from this level, with a weight of `share` / 256.
    fn parts(&self, view: &mut Texels<'_, '_>, share: u32, parts: &mut Parts) -> Result<(), ()> {
        if !self.is_filtered() {
            let texel = self.nearest(view)?;
            parts.add(&[share, 0, 0, 0], &[texel, [0; 4], [0; 4], [0; 4]]);
            return Ok(());
        }
        let around = self.around();
        let mut shares = weights::weights(share, around[0].fraction, around[1].fraction, around[2].fraction);
        let is_cube = matches!(self.image.shape, TextureShape::Cube | TextureShape::ACube);
        let mut texels = [[0; 4]; 8];
        let step = |i: usize, axis: usize| around[axis].first + (i >> axis & 1) as i64;
        if is_cube && self.sampler.seamless {
            let edge = self.plane.size[0];
            let places: [_; 4] = std::array::from_fn(|i| cube::across(self.layer % 6, [step(i, 0), step(i, 1)], edge));
            // At a corner of the cube three faces meet, and there is no fourth texel. Its weight goes to the other
            // three.
            if let Some(corner) = places.iter().position(Option::is_none) {
                let third = (shares[corner] + 1) / 3;
                shares[corner ^ 1] += third;
                shares[corner ^ 2] += third;
                shares[corner ^ 3] += shares[corner] - 2 * third;
                shares[corner] = 0;
            }
            for (i, place) in places.into_iter().enumerate() {
                if let Some((face, at)) = place.filter(|_| shares[i] != 0) {
                    let layer = self.layer / 6 * 6 + face;
                    texels[i] = view.texel(self.image, &self.plane, [at[0], at[1], layer])?;
                }
            }
        } else {
            for (i, texel) in texels.iter_mut().enumerate() {
                if shares[i] != 0 {
                    *texel = self.read(view, [step(i, 0), step(i, 1), step(i, 2)])?;
                }
            }
        }
        for (shares, texels) in shares.chunks(4).zip(texels.chunks(4)) {
            parts.add(shares, texels);
        }
        Ok(())
    }
}

/// The weighted texels of a filtered result, by channel and by planes of four texels.
#[derive(Default)]
struct Parts {
    planes: [[[WeightedTexel; 4]; 4]; 4],
    count: usize,
}

impl Parts {
    /// Adds a plane, unless all its weights are 0.
    fn add(&mut self, shares: &[u32], texels: &[[u32; 4]]) {
        if shares.iter().all(|share| *share == 0) || self.count >= self.planes[0].len() {
            return;
        }
        for (component, planes) in self.planes.iter_mut().enumerate() {
            let each = shares.iter().zip(texels).zip(&mut planes[self.count]);
            for ((share, texel), part) in each {
                *part = (*share, texel[component]);
            }
        }
        self.count += 1;
    }

    /// Returns the weighted mean of each channel.
    fn mean(&self, image: &TexelArray, sampler: &Sampler) -> [u32; 4] {
        std::array::from_fn(|component| {
            if component >= image.channels as usize {
                return 0;
            }
            let planes = &self.planes[component][..self.count];
            texel::mean(image.channel, sampler.read, color(image, component), planes)
        })
    }
}

/// The weighted sums of the samples along a line, by channel.
#[derive(Default)]
struct Sums([f64; 4]);

impl Sums {
    /// Adds the samples of a level, with a weight of `share` / 256. `direction` selects the point in a cube map.
    fn add(
        &mut self,
        view: &mut Texels<'_, '_>,
        point: &SamplePoint<'_>,
        direction: Option<[f32; 3]>,
        samples: impl Iterator<Item = Sample>,
        share: u32,
    ) -> Result<(), ()> {
        for sample in samples.filter(|sample| sample.weight > 0.0) {
            let color = point.shifted(direction, sample.offset).color(view)?;
            for (sum, channel) in self.0.iter_mut().zip(color) {
                *sum += f64::from(f32::from_bits(channel)) * sample.weight * f64::from(share) / 256.0;
            }
        }
        Ok(())
    }
}

/// Returns one component of the four texels that a filter would use, counterclockwise from the bottom left.
fn gather(view: &mut Texels<'_, '_>, point: &SamplePoint<'_>, component: usize) -> Result<[u32; 4], ()> {
    let around = point.around();
    let mut values = [0; 4];
    for (value, [right, below]) in values.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
        let index = [around[0].first + right, around[1].first + below, 0];
        let texel = point.read(view, index)?;
        *value = unfiltered(point.image, point.sampler, texel)[component];
    }
    Ok(values)
}
