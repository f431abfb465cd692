//! Tests of textures, surfaces, and references to both as objects.

use cuda_driver::array::ArrayShape;
use cuda_driver::copy::Copy3d;
use cuda_driver::sys::{
    self, CUaddress_mode, CUarray_format, CUfilter_mode, CUresourceViewFormat, CUresourcetype, CUresult,
};
use cuda_driver::texture::{ResourceView, TextureDescriptor, TextureResource};
use cuda_driver::{
    Array, Context, Device, DeviceBuffer, Function, LaunchConfig, MipmappedArray, Module, ParamBuffer, PitchedBuffer,
    Stream, Surface, Texture,
};

use crate::common::{code, context};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const LINEAR: CUfilter_mode = CUfilter_mode::CU_TR_FILTER_MODE_LINEAR;

/// PTX of kernels that sample at (x, y) or x, fetch at an index, or add to a texel of a surface, and of kernels that
/// use references.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64
.global .texref tr;
.global .surfref sr;
.visible .entry sample(.param .u64 ph, .param .f32 px, .param .f32 py, .param .f32 pl, .param .u64 po) {
    .reg .b64 h, o; .reg .f32 x, y, l, r<4>;
    ld.param.u64 h, [ph]; ld.param.f32 x, [px]; ld.param.f32 y, [py]; ld.param.f32 l, [pl]; ld.param.u64 o, [po];
    tex.level.2d.v4.f32.f32 {r0, r1, r2, r3}, [h, {x, y}], l;
    st.global.v4.f32 [o], {r0, r1, r2, r3};
    ret;
}
.visible .entry sample_row(.param .u64 ph, .param .f32 px, .param .u64 po) {
    .reg .b64 h, o; .reg .f32 x, r<4>;
    ld.param.u64 h, [ph]; ld.param.f32 x, [px]; ld.param.u64 o, [po];
    tex.1d.v4.f32.f32 {r0, r1, r2, r3}, [h, {x}];
    st.global.v4.f32 [o], {r0, r1, r2, r3};
    ret;
}
.visible .entry fetch(.param .u64 ph, .param .u32 pi, .param .u64 po) {
    .reg .b64 h, o; .reg .b32 i; .reg .f32 r<4>;
    ld.param.u64 h, [ph]; ld.param.u32 i, [pi]; ld.param.u64 o, [po];
    tex.1d.v4.f32.s32 {r0, r1, r2, r3}, [h, {i}];
    st.global.v4.f32 [o], {r0, r1, r2, r3};
    ret;
}
.visible .entry increase(.param .u64 ph, .param .u32 px, .param .u32 py) {
    .reg .b64 h; .reg .b32 x, y, v;
    ld.param.u64 h, [ph]; ld.param.u32 x, [px]; ld.param.u32 y, [py];
    suld.b.2d.b32.trap v, [h, {x, y}];
    add.u32 v, v, 1;
    sust.b.2d.b32.trap [h, {x, y}], v;
    ret;
}
.visible .entry fetch_reference(.param .u32 pi, .param .u64 po) {
    .reg .b64 o; .reg .b32 i; .reg .f32 r<4>;
    ld.param.u32 i, [pi]; ld.param.u64 o, [po];
    tex.1d.v4.f32.s32 {r0, r1, r2, r3}, [tr, {i}];
    st.global.v4.f32 [o], {r0, r1, r2, r3};
    ret;
}
.visible .entry sample_reference(.param .f32 px, .param .u64 po) {
    .reg .b64 o; .reg .b32 i; .reg .f32 x, r<4>;
    ld.param.f32 x, [px]; ld.param.u64 o, [po];
    tex.1d.v4.f32.f32 {r0, r1, r2, r3}, [tr, {x}];
    st.global.v4.f32 [o], {r0, r1, r2, r3};
    suld.b.1d.b32.trap i, [sr, {0}];
    add.u32 i, i, 1;
    sust.b.1d.b32.trap [sr, {0}], i;
    ret;
}
";

struct Bench {
    context: Context,
    stream: Stream,
    module: Module,
    out: DeviceBuffer<[f32; 4]>,
}

impl Bench {
    fn new() -> Self {
        let context = context();
        Self {
            stream: Stream::new(&context).expect("a stream"),
            module: Module::from_ptx(&context, PTX).expect("a module"),
            out: DeviceBuffer::zeroed(&context, 1).expect("memory"),
            context,
        }
    }

    fn function(&self, name: &str) -> Function {
        self.module.function(name).expect("a kernel")
    }

    fn result(&self) -> [f32; 4] {
        self.stream.synchronize().expect("the end");
        self.out.to_vec().expect("a copy")[0]
    }

    /// Returns the first channel of the sample at (x, y) of a level.
    fn sample_level(&self, texture: &Texture<'_>, x: f32, y: f32, level: f32) -> f32 {
        let arguments = (texture.handle(), x, y, level, self.out.ptr());
        let function = self.function("sample");
        function.check_args(&arguments).expect("arguments that fit");
        // SAFETY: the kernel takes a texture, coordinates and the address of four floats.
        unsafe { function.launch(&self.stream, LaunchConfig::default(), arguments) }.expect("a launch");
        self.result()[0]
    }

    fn sample(&self, texture: &Texture<'_>, x: f32, y: f32) -> f32 {
        self.sample_level(texture, x, y, 0.0)
    }

    /// Returns the texel with this index of a texture with one row.
    fn texel(&self, texture: &Texture<'_>, index: u8) -> [f32; 4] {
        let arguments = (texture.handle(), f32::from(index) + 0.5, self.out.ptr());
        let function = self.function("sample_row");
        // SAFETY: the kernel takes a texture, a coordinate and the address of four floats.
        unsafe { function.launch(&self.stream, LaunchConfig::default(), arguments) }.expect("a launch");
        self.result()
    }

    /// Returns the first channel of the value with this index in the device memory of a texture.
    fn fetch(&self, texture: &Texture<'_>, index: i32) -> f32 {
        let mut arguments = ParamBuffer::new();
        arguments.push(texture.handle()).push(index).push(self.out.ptr());
        let function = self.function("fetch");
        function.check_args(&&arguments).expect("arguments that fit");
        // SAFETY: the kernel takes a texture, an index and the address of four floats.
        unsafe { function.launch(&self.stream, LaunchConfig::default(), &arguments) }.expect("a launch");
        self.result()[0]
    }
}

#[test]
fn filters_and_address_modes() {
    let bench = Bench::new();
    let array = Array::<f32>::new(&bench.context, ArrayShape::d2(4, 2)).expect("an array");
    array
        .copy_from(&[0.0, 8.0, 16.0, 24.0, 100.0, 108.0, 116.0, 124.0])
        .expect("a copy");
    let plain = Texture::new(&array, &TextureDescriptor::new()).expect("a texture");
    assert_eq!(bench.sample(&plain, 1.9, 1.1), 108.0);
    assert_eq!(bench.sample(&plain, -5.0, 0.5), 0.0);
    assert_eq!(bench.sample(&plain, 9.0, 9.0), 124.0);
    let smooth = Texture::new(&array, &TextureDescriptor::new().filter_mode(LINEAR)).expect("a texture");
    assert_eq!(bench.sample(&smooth, 1.0, 0.5), 4.0);
    assert_eq!(bench.sample(&smooth, 2.0, 1.0), 62.0);
    let border = TextureDescriptor::default()
        .address_mode(CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER)
        .border_color([7.0; 4]);
    let border = Texture::new(&array, &border).expect("a texture");
    assert_eq!(bench.sample(&border, -1.0, 0.5), 7.0);
    assert_eq!(bench.sample(&border, 3.5, 0.5), 24.0);
    let normalized = TextureDescriptor::new().normalized_coordinates();
    for (mode, expected) in [
        (CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP, 8.0),
        (CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR, 16.0),
        (CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP, 24.0),
        (CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER, 0.0),
    ] {
        let texture = Texture::new(&array, &normalized.address_mode(mode)).expect("a texture");
        assert_eq!(bench.sample(&texture, 1.375, 0.25), expected, "{mode:?}");
    }
    let clamp = CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP;
    let wrap = CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP;
    let mixed = normalized.address_modes([wrap, clamp, clamp]);
    let mixed = Texture::new(&array, &mixed).expect("a texture");
    assert_eq!(bench.sample(&mixed, 1.375, 1.25), 108.0);
}

#[test]
fn conversions_of_texels() {
    let bench = Bench::new();
    let array = Array::<[u8; 4]>::new(&bench.context, ArrayShape::d1(2)).expect("an array");
    array.copy_from(&[[0, 51, 255, 0], [255; 4]]).expect("a copy");
    let texture = Texture::new(&array, &TextureDescriptor::new()).expect("a texture");
    assert_eq!(bench.texel(&texture, 0), [0.0, 0.2, 1.0, 0.0]);
    // As floats, the samples have the bits of the integers.
    let texture = Texture::new(&array, &TextureDescriptor::new().read_as_integer()).expect("a texture");
    assert_eq!(bench.texel(&texture, 0).map(f32::to_bits), [0, 51, 255, 0]);

    // The bits of 1, -2.5 and 0.125.
    let half = CUarray_format::CU_AD_FORMAT_HALF;
    let array = Array::<[u16; 2]>::with_format(&bench.context, ArrayShape::d1(2), half, 2).expect("an array");
    array.copy_from(&[[0x3c00; 2], [0xc100, 0x3000]]).expect("a copy");
    let texture = Texture::new(&array, &TextureDescriptor::new()).expect("a texture");
    assert_eq!(bench.texel(&texture, 1)[..2], [-2.5, 0.125]);
}

#[test]
fn levels_of_a_mipmapped_array() {
    let bench = Bench::new();
    let array = MipmappedArray::<f32>::new(&bench.context, ArrayShape::d2(4, 4), 3).expect("an array");
    for (number, count) in [(0_u8, 16), (1, 4), (2, 1)] {
        let level = array.level(number.into()).expect("a level");
        level.copy_from(&vec![f32::from(number); count]).expect("a copy");
    }
    let descriptor = TextureDescriptor::new().normalized_coordinates();
    let all = Texture::new(&array, &descriptor.mipmap_level_clamp(0.0, 2.0)).expect("a texture");
    for (level, expected) in [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (5.0, 2.0)] {
        assert_eq!(bench.sample_level(&all, 0.5, 0.5, level), expected, "level {level}");
    }
    let biased = descriptor
        .mipmap_level_clamp(0.0, 2.0)
        .mipmap_level_bias(1.0)
        .mipmap_filter_mode(LINEAR);
    let biased = Texture::new(&array, &biased).expect("a texture");
    assert_eq!(bench.sample_level(&biased, 0.5, 0.5, 0.0), 1.0);
    // Without a clamp, only the first level is read.
    let first = Texture::new(&array, &descriptor).expect("a texture");
    assert_eq!(bench.sample_level(&first, 0.5, 0.5, 2.0), 0.0);
    // The texture keeps the array alive.
    drop(array);
    assert_eq!(bench.sample_level(&all, 0.5, 0.5, 1.0), 1.0);
}

#[test]
fn views_of_arrays() {
    let bench = Bench::new();
    let shape = ArrayShape::d2(2, 2);
    let array = Array::<u32>::new(&bench.context, shape).expect("an array");
    array
        .copy_from(&[1.5, 2.5, 3.5, 4.5].map(f32::to_bits))
        .expect("a copy");
    let descriptor = TextureDescriptor::new();
    let create = |view: &ResourceView| Texture::with_view(&array, &descriptor, view);
    let floats = CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32;
    let view = ResourceView::new(floats, shape);
    let texture = create(&view).expect("a texture");
    assert_eq!(bench.sample(&texture, 1.5, 0.5), 2.5);
    let seen = texture.view().expect("a view");
    assert_eq!((seen.format, seen.width, seen.depth), (floats, 2, 0));
    let bytes = ResourceView::new(CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_4X8, shape);
    let texture = create(&bytes).expect("a texture");
    assert_eq!(bench.sample(&texture, 0.5, 0.5), 0.0);
    assert!(
        create(&ResourceView::new(
            CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_1X32,
            shape
        ))
        .is_ok()
    );
    for wrong in [
        ResourceView::new(CUresourceViewFormat::CU_RES_VIEW_FORMAT_NONE, shape),
        ResourceView::new(CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_2X32, shape),
        ResourceView::new(CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_1X8, shape),
        ResourceView::new(CUresourceViewFormat(99), shape),
        ResourceView::new(floats, ArrayShape::d2(1, 2)),
        ResourceView::new(floats, ArrayShape::d3(2, 2, 1)),
        view.levels(0..=1),
        view.layers(0..=1),
    ] {
        assert_eq!(code(create(&wrong)), INVALID, "{wrong:?}");
    }
}

/// Driver 580 accepts levels and layers that the array does not have.
#[test]
fn views_may_reach_past_the_array() {
    let bench = Bench::new();
    let descriptor = TextureDescriptor::new();
    let floats = CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32;
    let shape = ArrayShape::d2(8, 8);
    let levels = MipmappedArray::<f32>::new(&bench.context, shape, 4).expect("an array");
    let view = ResourceView::new(floats, shape);
    for range in [0..=3, 1..=2, 3..=3, 0..=4, 0..=5, 2..=8] {
        let made = Texture::with_view(&levels, &descriptor, &view.levels(range.clone()));
        assert!(made.is_ok(), "levels {range:?}");
    }
    let shape = ArrayShape::layered_d2(8, 8, 4);
    let layers = Array::<f32>::new(&bench.context, shape).expect("an array");
    let view = ResourceView::new(floats, shape);
    for range in [0..=3, 1..=2, 0..=0, 0..=4, 0..=5, 2..=8] {
        let made = Texture::with_view(&layers, &descriptor, &view.layers(range.clone()));
        assert!(made.is_ok(), "layers {range:?}");
    }
}

#[test]
fn textures_of_device_memory() {
    let bench = Bench::new();
    let values: Vec<f32> = (0..64_u8).map(f32::from).collect();
    let memory = DeviceBuffer::from_slice(&bench.context, &values).expect("memory");
    let descriptor = TextureDescriptor::new();
    let row = Texture::new(memory.as_slice(), &descriptor).expect("a texture");
    assert_eq!(bench.fetch(&row, 63), 63.0);
    // Outside of the memory, fetches return 0.
    assert_eq!(bench.fetch(&row, 64), 0.0);
    let part = Texture::new(memory.slice(..8).expect("a part"), &descriptor).expect("a texture");
    assert_eq!(bench.fetch(&part, 7), 7.0);
    assert_eq!(bench.fetch(&part, 8), 0.0);
    // The address must be aligned.
    assert_eq!(
        code(Texture::new(memory.slice(4..).expect("a part"), &descriptor)),
        INVALID
    );

    // Rows of 6 values at a pitch of 32 bytes.
    let picture = TextureResource::pitched(memory.as_slice(), [6, 8], 32).expect("a picture");
    let picture = Texture::new(picture, &descriptor.filter_mode(LINEAR)).expect("a texture");
    assert_eq!(bench.sample(&picture, 1.0, 1.0), 4.5);
    assert_eq!(bench.sample(&picture, 100.0, 100.0), 61.0);
    for (size, pitch) in [
        ([6, 9], 32),
        ([6, 8], 34),
        ([9, 2], 32),
        ([usize::MAX, 1], 32),
        ([6, usize::MAX], 32),
        ([6, 2], usize::MAX),
    ] {
        let refused = TextureResource::pitched(memory.as_slice(), size, pitch);
        assert_eq!(code(refused), INVALID, "{size:?} with a pitch of {pitch}");
    }

    let mut rows = PitchedBuffer::<f32>::alloc(&bench.context, 3, 2).expect("memory");
    Copy3d::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &mut rows, [3, 2, 1])
        .run()
        .expect("a copy");
    let picture = Texture::new(&rows, &descriptor).expect("a texture");
    assert_eq!(bench.sample(&picture, 1.5, 1.5), 5.0);
    let mut column = [0.0; 2];
    Copy3d::new(&rows, &mut column, [1, 2, 1])
        .source_offset([2, 0, 0])
        .run()
        .expect("a copy");
    assert_eq!(column, [3.0, 6.0]);

    let halves = DeviceBuffer::from_slice(&bench.context, &[0x3c00_u16, 0x3800]).expect("memory");
    let format = CUarray_format::CU_AD_FORMAT_HALF;
    let resource = TextureResource::linear(halves.as_slice(), format, 1).expect("a row");
    let texture = Texture::new(resource, &descriptor).expect("a texture");
    assert_eq!(bench.fetch(&texture, 1), 0.5);
    assert_eq!(code(TextureResource::linear(halves.as_slice(), format, 2)), INVALID);
    let device = Device::first().expect("a device");
    assert!(Texture::linear_max_width::<f32>(device).expect("a width") >= 1 << 27);
}

#[test]
fn settings_that_do_not_exist() {
    let context = context();
    let array = Array::<f32>::new(&context, ArrayShape::d2(4, 4)).expect("an array");
    let plain = TextureDescriptor::new();
    for wrong in [
        plain.address_mode(CUaddress_mode(7)),
        plain.filter_mode(CUfilter_mode(3)),
        plain.mipmap_filter_mode(CUfilter_mode(5)),
        plain.seamless_cubemap(),
        plain.flags(0x80),
    ] {
        assert_eq!(code(Texture::new(&array, &wrong)), INVALID, "{wrong:?}");
    }
    let cubemap = Array::<f32>::new(&context, ArrayShape::cubemap(4)).expect("an array");
    Texture::new(&cubemap, &plain.seamless_cubemap()).expect("a texture");
}

#[test]
fn descriptors_of_textures_and_surfaces() {
    let context = context();
    let array = Array::<[f32; 2]>::new(&context, ArrayShape::d2(4, 4).surface()).expect("an array");
    let descriptor = TextureDescriptor::new()
        .filter_mode(LINEAR)
        .max_anisotropy(4)
        .disable_trilinear_optimization()
        .srgb();
    let texture = Texture::new(&array, &descriptor).expect("a texture");
    let resource = texture.resource().expect("a resource");
    assert_eq!(resource.resType, CUresourcetype::CU_RESOURCE_TYPE_ARRAY);
    // SAFETY: the resource is an array.
    assert_eq!(unsafe { resource.res.array.hArray }, array.as_raw());
    let seen = texture.descriptor().expect("a descriptor");
    assert_eq!((seen.as_raw().filterMode, seen.as_raw().maxAnisotropy), (LINEAR, 4));
    assert_eq!(seen.as_raw().flags, descriptor.as_raw().flags);
    assert_eq!(texture.view().expect("no view").width, 0);
    let surface = Surface::new(&array).expect("a surface");
    let resource = surface.resource().expect("a resource");
    assert_eq!(resource.resType, CUresourcetype::CU_RESOURCE_TYPE_ARRAY);
    texture.destroy().expect("the end");
    surface.destroy().expect("the end");
}

#[test]
fn surfaces_are_read_and_written() {
    let bench = Bench::new();
    let array = Array::<u32>::new(&bench.context, ArrayShape::d2(4, 2).surface()).expect("an array");
    array.copy_from(&[10, 11, 12, 13, 20, 21, 22, 23]).expect("a copy");
    let surface = Surface::new(&array).expect("a surface");
    let increase = bench.function("increase");
    for (x, y) in [(0_u32, 0_u32), (12, 1), (12, 1)] {
        let arguments = (surface.handle(), x, y);
        increase.check_args(&arguments).expect("arguments that fit");
        // SAFETY: the kernel takes a surface, a column in bytes and a row.
        unsafe { increase.launch(&bench.stream, LaunchConfig::default(), arguments) }.expect("a launch");
    }
    bench.stream.synchronize().expect("the end");
    assert_eq!(array.to_vec().expect("a copy"), [11, 11, 12, 13, 20, 21, 22, 25]);
    // A level of a mipmapped array can also be a surface.
    let mipmapped = MipmappedArray::<u32>::new(&bench.context, ArrayShape::d2(4, 4).surface(), 2).expect("an array");
    let level = mipmapped.level(1).expect("a level");
    level.copy_from(&[1, 2, 3, 4]).expect("a copy");
    let surface = Surface::new(&level).expect("a surface");
    // SAFETY: the kernel takes a surface, a column in bytes and a row.
    unsafe { increase.launch(&bench.stream, LaunchConfig::default(), (surface.handle(), 4_u32, 1_u32)) }
        .expect("a launch");
    bench.stream.synchronize().expect("the end");
    assert_eq!(level.to_vec().expect("a copy"), [1, 2, 3, 5]);
}

#[test]
fn objects_dropped_in_any_order() {
    fn is_thread_safe<T: Send + Sync>(_: &T) {}
    let bench = Bench::new();
    let array = Array::<f32>::new(&bench.context, ArrayShape::d2(1, 1).surface()).expect("an array");
    array.copy_from(&[3.0]).expect("a copy");
    let texture = Texture::new(&array, &TextureDescriptor::new()).expect("a texture");
    let surface = Surface::new(&array).expect("a surface");
    is_thread_safe(&texture);
    is_thread_safe(&surface);
    // The texture keeps the array alive, and the array the context.
    array.destroy().expect("no last reference");
    assert_eq!(bench.sample(&texture, 0.5, 0.5), 3.0);
    drop(bench);
    let worker = std::thread::spawn(move || {
        texture.destroy().expect("the end");
        drop(surface);
    });
    worker.join().expect("no panic");
}

#[test]
fn raw_handles_of_textures_and_surfaces() {
    let bench = Bench::new();
    let array = Array::<f32>::new(&bench.context, ArrayShape::d2(1, 1).surface()).expect("an array");
    array.copy_from(&[4.0]).expect("a copy");
    let raw = Texture::new(&array, &TextureDescriptor::new())
        .expect("a texture")
        .into_raw();
    // SAFETY: the handle was released above, and the array lives longer.
    let texture = unsafe { Texture::from_raw(raw, &bench.context) };
    assert_eq!((texture.as_raw(), texture.handle().as_raw()), (raw, raw));
    assert_eq!(texture.context(), Some(&bench.context));
    assert_eq!(bench.sample(&texture, 0.5, 0.5), 4.0);
    // SAFETY: the texture lives longer.
    let borrowed = unsafe { Texture::borrow_raw(raw) };
    assert_eq!(bench.sample(&borrowed, 0.5, 0.5), 4.0);
    let raw = Surface::new(&array).expect("a surface").into_raw();
    // SAFETY: the handle was released above, and the array lives longer.
    let surface = unsafe { Surface::from_raw(raw, &bench.context) };
    assert_eq!((surface.as_raw(), surface.handle().as_raw()), (raw, raw));
    // SAFETY: the surface lives longer.
    let borrowed = unsafe { Surface::borrow_raw(raw) };
    assert!(borrowed.context().is_none());
    texture.destroy().expect("the end");
    surface.destroy().expect("the end");
}

#[test]
fn references_of_a_module() {
    let bench = Bench::new();
    let texture = bench.module.texture_reference("tr").expect("a reference");
    let surface = bench.module.surface_reference("sr").expect("a reference");
    let missing = CUresult::CUDA_ERROR_NOT_FOUND;
    for name in ["nope", "t\0r"] {
        assert_eq!(code(bench.module.texture_reference(name)), missing);
        assert_eq!(code(bench.module.surface_reference(name)), missing);
    }
    let texels = Array::<f32>::new(&bench.context, ArrayShape::d1(4)).expect("an array");
    texels.copy_from(&[1.0, 2.0, 3.0, 4.0]).expect("a copy");
    let numbers = Array::<u32>::new(&bench.context, ArrayShape::d1(4).surface()).expect("an array");
    numbers.copy_from(&[5, 6, 7, 8]).expect("a copy");
    // SAFETY: the module with the references is unloaded at the end of the test, before the arrays are destroyed.
    unsafe {
        texture.bind_array(&texels).expect("a binding");
        surface.bind_array(&numbers).expect("a binding");
    }
    assert_eq!(texture.array().expect("an array"), texels.as_raw());
    assert_eq!(surface.array().expect("an array"), numbers.as_raw());
    assert_eq!(code(texture.address()), INVALID);
    let format = texture.format().expect("a format");
    assert_eq!(
        (format.format, format.num_channels),
        (CUarray_format::CU_AD_FORMAT_FLOAT, 1)
    );
    let arguments = (2.5_f32, bench.out.ptr());
    let function = bench.function("sample_reference");
    // SAFETY: the kernel takes a coordinate and the address of four floats, and both references are bound.
    unsafe { function.launch(&bench.stream, LaunchConfig::default(), arguments) }.expect("a launch");
    drop(function);
    assert_eq!(bench.result()[0], 3.0);
    assert_eq!(numbers.to_vec().expect("a copy"), [6, 6, 7, 8]);

    // For memory, the binding returns the distance from an aligned address.
    let memory = DeviceBuffer::from_slice(&bench.context, &[9.0_f32, 8.0, 7.0, 6.0]).expect("memory");
    // SAFETY: the memory lives until the array is bound again at the end of the test.
    let offset = unsafe { texture.bind_memory(memory.slice(1..).expect("a part")) }.expect("a binding");
    assert_eq!(offset, 4);
    assert_eq!(code(texture.array()), INVALID);
    let arguments = (3, bench.out.ptr());
    let function = bench.function("fetch_reference");
    // SAFETY: the kernel takes an index and the address of four floats.
    unsafe { function.launch(&bench.stream, LaunchConfig::default(), arguments) }.expect("a launch");
    assert_eq!(bench.result()[0], 6.0);

    texture.set_flags(sys::CU_TRSF_NORMALIZED_COORDINATES).expect("flags");
    assert_eq!(texture.flags().expect("flags"), sys::CU_TRSF_NORMALIZED_COORDINATES);
    assert_eq!(code(texture.set_flags(0x40)), INVALID);
    let mirror = CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR;
    texture.set_address_mode(1, mirror).expect("a mode");
    assert_eq!(texture.address_mode(1).expect("a mode"), mirror);
    assert_eq!(code(texture.set_address_mode(3, mirror)), INVALID);
    assert_eq!(code(texture.set_address_mode(u32::MAX, mirror)), INVALID);
    assert_eq!(code(texture.set_format(CUarray_format::CU_AD_FORMAT_FLOAT, 3)), INVALID);
    // This unbinds the memory before it is freed.
    // SAFETY: the module with the reference is unloaded before the array is destroyed.
    unsafe { texture.bind_array(&texels) }.expect("a binding");
    drop((function, texture, surface, bench));
}

#[test]
fn references_of_no_module() {
    use cuda_driver::texture::TextureReference;

    let context = context();
    let reference = TextureReference::new(&context).expect("a reference");
    assert!(reference.module().is_none());
    reference.set_filter_mode(LINEAR).expect("a filter");
    assert_eq!(reference.filter_mode().expect("a filter"), LINEAR);
    reference.set_mipmap_filter_mode(LINEAR).expect("a filter");
    assert_eq!(reference.mipmap_filter_mode().expect("a filter"), LINEAR);
    reference.set_mipmap_level_bias(0.5).expect("a bias");
    assert_eq!(reference.mipmap_level_bias().expect("a bias"), 0.5);
    reference.set_mipmap_level_clamp(1.0, 2.0).expect("a clamp");
    let clamp = reference.mipmap_level_clamp().expect("a clamp");
    assert_eq!((clamp.min, clamp.max), (1.0, 2.0));
    // The driver checks the mode of `set_mipmap_filter_mode`, but not that of `set_filter_mode`.
    assert_eq!(code(reference.set_mipmap_filter_mode(CUfilter_mode(9))), INVALID);
    reference.set_max_anisotropy(8).expect("a ratio");
    assert_eq!(reference.max_anisotropy().expect("a ratio"), 8);
    reference.set_border_color(&[0.25; 4]).expect("a color");
    assert_eq!(reference.border_color().expect("a color"), [0.25; 4]);
    let mipmapped = MipmappedArray::<f32>::new(&context, ArrayShape::d2(4, 4), 2).expect("an array");
    // SAFETY: the reference is destroyed first.
    unsafe { reference.bind_mipmapped_array(&mipmapped) }.expect("a binding");
    assert_eq!(reference.mipmapped_array().expect("an array"), mipmapped.as_raw());
    assert_eq!(code(reference.array()), INVALID);
    let raw = reference.into_raw();
    // SAFETY: the handle was released above.
    let reference = unsafe { TextureReference::from_raw(raw, &context) };
    assert_eq!(reference.as_raw(), raw);
    reference.destroy().expect("the end");
}

#[test]
fn pictures_with_a_pitch_bound_to_a_reference() {
    use cuda_driver::texture::TextureReference;

    let context = context();
    let reference = TextureReference::new(&context).expect("a reference");
    let memory = DeviceBuffer::<f32>::zeroed(&context, 1024).expect("memory");
    // SAFETY: the reference is destroyed first.
    unsafe {
        reference
            .bind_pitched(memory.as_slice(), [8, 8], 512)
            .expect("a binding");
        // The picture is not inside the memory, or the pitch is shorter than a row.
        let outside = reference.bind_pitched(memory.as_slice(), [8, 9], 512);
        assert_eq!(code(outside), INVALID);
        let short = reference.bind_pitched(memory.as_slice(), [129, 2], 512);
        assert_eq!(code(short), INVALID);
    }
    assert_eq!(reference.address().expect("an address"), memory.ptr());
    drop(reference);
    let mut rows = [0.0_f32; 4];
    Copy3d::new(&memory, &mut rows, [2, 2, 1])
        .source_pitch(512)
        .run()
        .expect("the memory is still there");
}
