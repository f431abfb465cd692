//! Two ways to pass arguments: a pointer to each value, and one packed buffer. The kernel has the parameters of the
//! example in the Driver API guide: `int, float4, char, float, CUdeviceptr, float2`. The buffer is filled value by
//! value; a second one is a struct with the layout of C.

use cuda_driver::vector::{float2, float4};
use cuda_driver::{Context, Device, DeviceBuffer, DevicePtr, LaunchConfig, Module, ParamBuffer, Stream};
use cuda_driver_soft::Prefer;

/// `store(int i, float4 f4, char c, float f, float* out, float2 f2)` writes all components to `out`.
const PTX: &str = "
.version 7.0
.target sm_52
.address_size 64

.visible .entry store(
    .param .s32 i,
    .param .align 16 .b8 f4[16],
    .param .s8 c,
    .param .f32 f,
    .param .u64 out,
    .param .align 8 .b8 f2[8])
{
    .reg .b32 %c;
    .reg .b64 %out;
    .reg .f32 %v<10>;

    ld.param.u64     %out, [out];
    ld.param.s32     %c, [i];
    cvt.rn.f32.s32   %v0, %c;
    ld.param.v4.f32  {%v1, %v2, %v3, %v4}, [f4];
    ld.param.s8      %c, [c];
    cvt.rn.f32.s32   %v5, %c;
    ld.param.f32     %v6, [f];
    ld.param.v2.f32  {%v7, %v8}, [f2];
    st.global.f32    [%out], %v0;
    st.global.f32    [%out+4], %v1;
    st.global.f32    [%out+8], %v2;
    st.global.f32    [%out+12], %v3;
    st.global.f32    [%out+16], %v4;
    st.global.f32    [%out+20], %v5;
    st.global.f32    [%out+24], %v6;
    st.global.f32    [%out+28], %v7;
    st.global.f32    [%out+32], %v8;
    ret;
}
";

/// The same parameters as a struct with the layout of C, to which the compiler adds the padding.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    i: i32,
    f4: float4,
    c: i8,
    f: f32,
    out: DevicePtr,
    f2: float2,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cuda_driver_soft::from_env(Prefer::System)?.install()?;
    cuda_driver::init()?;
    let context = Context::create(Device::first()?)?;
    let store = Module::from_ptx(&context, PTX)?.function("store")?;
    let stream = Stream::new(&context)?;
    let config = LaunchConfig::default();
    let out = DeviceBuffer::<f32>::zeroed(&context, 9)?;
    let (i, f4, c, f, f2) = (-7, float4::new(1.0, 2.0, 3.0, 4.0), -8i8, 0.5f32, float2::new(5.0, 6.0));

    // Pointers: the driver copies each value.
    // SAFETY: the arguments have the types of the kernel's parameters, and `out` has room for the nine values.
    unsafe { store.launch(&stream, config, (i, f4, c, f, out.ptr(), f2))? };
    stream.synchronize()?;
    let by_pointers = out.to_vec()?;
    println!("Pointers: {by_pointers:?}");
    assert_eq!(by_pointers, [-7.0, 1.0, 2.0, 3.0, 4.0, -8.0, 0.5, 5.0, 6.0]);

    // A buffer: each value at the next multiple of its alignment.
    let packed_out = DeviceBuffer::<f32>::zeroed(&context, 9)?;
    let mut packed = ParamBuffer::new();
    packed.push(i).push(f4).push(c).push(f).push(packed_out.ptr()).push(f2);
    let offsets: Vec<_> = packed.parameters().iter().map(|parameter| parameter.offset).collect();
    println!("Offsets in the buffer: {offsets:?}, {} bytes", packed.len());
    // SAFETY: as above.
    unsafe { store.launch(&stream, config, &packed)? };
    stream.synchronize()?;
    assert_eq!(packed_out.to_vec()?, by_pointers);

    // The struct: the compiler places its fields at the same offsets.
    let struct_out = DeviceBuffer::<f32>::zeroed(&context, 9)?;
    let parameters = Parameters {
        i,
        f4,
        c,
        f,
        out: struct_out.ptr(),
        f2,
    };
    assert_eq!(
        offsets,
        [
            std::mem::offset_of!(Parameters, i),
            std::mem::offset_of!(Parameters, f4),
            std::mem::offset_of!(Parameters, c),
            std::mem::offset_of!(Parameters, f),
            std::mem::offset_of!(Parameters, out),
            std::mem::offset_of!(Parameters, f2),
        ]
    );
    let mut size = packed.len();
    let mut extra = [
        cuda_driver::sys::CU_LAUNCH_PARAM_BUFFER_POINTER,
        (&raw const parameters).cast_mut().cast(),
        cuda_driver::sys::CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut size).cast(),
        cuda_driver::sys::CU_LAUNCH_PARAM_END,
    ];
    let (function, stream_raw, none) = (store.as_raw(), stream.as_raw(), std::ptr::null_mut());
    let list = extra.as_mut_ptr();
    // SAFETY: the handles are live, and the list points to the struct and to the number of bytes that the parameters
    // occupy.
    unsafe { cuda_driver::checked::launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream_raw, none, list)? };
    stream.synchronize()?;
    assert_eq!(struct_out.to_vec()?, by_pointers);
    println!("The buffer and the struct gave the same values");
    println!("Result = PASS");
    Ok(())
}
