//! Tests of modules, functions and launches as objects, with arguments as a tuple and as a packed buffer.

use cuda_driver::sys::{CUfunction_attribute, CUresult};
use cuda_driver::vector::{char3, double2, float2, float4, int3, short2, uchar4, ulonglong2};
use cuda_driver::{Context, DeviceBuffer, Dim3, JitOptions, KernelArg, LaunchConfig, Module, ParamBuffer, Stream};

use crate::common::{context, driver_version, needs, ptx_path};

fn module(context: &Context, file: &str) -> Module {
    Module::load_ptx(context, ptx_path(file)).expect("a module")
}

#[test]
fn the_three_ways_to_load() {
    let context = context();
    let text = std::fs::read_to_string(ptx_path("saxpy.ptx")).expect("PTX");
    let from_file = module(&context, "saxpy.ptx");
    let from_text = Module::from_ptx(&context, &text).expect("a module");
    let mut image = text.clone().into_bytes();
    image.push(0);
    // SAFETY: PTX is safe to load.
    let from_bytes = unsafe { Module::from_image(&context, &image) }.expect("a module");
    for module in [from_file, from_text, from_bytes] {
        assert_eq!(
            module.function("saxpy").expect("a kernel").name().expect("a name"),
            "saxpy"
        );
        module.unload().expect("an unload");
    }
    let options = JitOptions {
        optimization_level: Some(2),
        line_info: true,
        ..JitOptions::default()
    };
    Module::from_ptx_with(&context, &text, &options).expect("a module with options");
    // Truncated images.
    for image in [b"\x7fELF".as_slice(), &[]] {
        // SAFETY: the image is refused before the driver is called.
        assert!(unsafe { Module::from_image(&context, image) }.is_err());
    }
}

#[test]
fn variables() {
    let context = context();
    let module = module(&context, "globals.ptx");
    let pi = module.global("pi").expect("a variable");
    assert_eq!(pi.size_bytes(), 8);
    assert_eq!(
        pi.read::<f64>().expect("a copy").to_bits(),
        std::f64::consts::PI.to_bits()
    );
    pi.write(&2.5_f64).expect("a copy");
    assert_eq!(pi.read::<f64>().expect("a copy").to_bits(), 2.5_f64.to_bits());
    // More bytes than the variable has.
    assert_eq!(
        pi.read::<[u8; 9]>().map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    assert_eq!(
        pi.write(&[0_u8; 9]).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    assert_eq!(
        module.global("nothing").map(drop).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_NOT_FOUND)
    );
}

#[test]
fn attributes() {
    let context = context();
    let bounded = module(&context, "spin.ptx").function("bounded").expect("a kernel");
    let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    assert_eq!(bounded.attribute(most).expect("an attribute"), 128);
    let dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    bounded.set_attribute(dynamic, 1024).expect("an attribute");
    assert_eq!(
        bounded.set_attribute(most, 64).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
    assert!(bounded.max_active_blocks_per_multiprocessor(128, 0).expect("a number") >= 1);
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Mixed {
    tag: u8,
    weight: f64,
    half: u16,
    scale: f32,
    count: u64,
    tail: [u8; 3],
}
// SAFETY: the kernel's struct has these members in this order and C's layout.
unsafe impl KernelArg for Mixed {}

/// Launches one thread twice on a new stream, with the arguments as a tuple and as a packed buffer, and returns the
/// `count` words that it writes. Both launches must give the same words.
macro_rules! received {
    ($context:expr, $kernel:literal, $count:literal, $($argument:expr),+) => {{
        let context = $context;
        let kernel = module(context, "params.ptx").function($kernel).expect("a kernel");
        let stream = Stream::new(context).expect("a stream");
        let out = DeviceBuffer::<u64>::zeroed(context, $count).expect("memory");
        // SAFETY: the arguments have the types of the kernel's parameters, and `out` has room for the results.
        unsafe { kernel.launch(&stream, LaunchConfig::default(), (out.ptr(), $($argument),+)) }.expect("a launch");
        stream.synchronize().expect("no fault");
        let by_pointers = out.to_vec().expect("a copy");

        let again = DeviceBuffer::<u64>::zeroed(context, $count).expect("memory");
        let mut packed = ParamBuffer::new();
        packed.push(again.ptr());
        $( packed.push($argument); )+
        // SAFETY: as above.
        unsafe { kernel.launch(&stream, LaunchConfig::default(), &packed) }.expect("a launch");
        stream.synchronize().expect("no fault");
        assert_eq!(again.to_vec().expect("a copy"), by_pointers, "packed and pointer arguments differ");
        if driver_version() >= 12040 {
            assert!(kernel.check_args(&&packed).expect("arguments that fit"), "the driver does not report the parameters");
        } else {
            needs("a driver of CUDA 12.4 or later, which reports a kernel's parameters");
        }
        by_pointers
    }};
}

#[test]
fn vectors_and_structs() {
    let context = context();
    let seen = received!(
        &context,
        "param_vectors",
        31,
        10_u8,
        float4::new(1.0, -2.0, 3.0, -4.0),
        11_u8,
        double2::new(5.5, -6.5),
        12_u8,
        int3::new(7, -8, 9),
        13_u8,
        short2::new(-10, 11),
        14_u8,
        uchar4::new(12, 13, 200, 255),
        15_u8,
        ulonglong2::new(u64::MAX, 1),
        16_u8,
        float2::new(0.125, -0.25),
        17_u8,
        char3::new(-1, 2, -3),
        18_u8
    );
    let f = |x: f32| u64::from(x.to_bits());
    let s = |x: i64| x as u64;
    let expected = [
        [10, f(1.0), f(-2.0), f(3.0), f(-4.0)].as_slice(),
        &[
            11,
            5.5_f64.to_bits(),
            (-6.5_f64).to_bits(),
            12,
            7,
            s(-8),
            9,
            13,
            s(-10),
            11,
            14,
            12,
            13,
            200,
            255,
        ],
        &[15, u64::MAX, 1, 16, f(0.125), f(-0.25), 17, s(-1), 2, s(-3), 18],
    ]
    .concat();
    assert_eq!(seen, expected);

    let mixed = Mixed {
        tag: 3,
        weight: -0.75,
        half: 54321,
        scale: 0.5,
        count: 1 << 40,
        tail: [7, 8, 9],
    };
    let seen = received!(&context, "param_struct", 11, 200_u8, mixed, 201_u8);
    let expected = [200, 3, (-0.75_f64).to_bits(), 54321, f(0.5), 1 << 40, 7, 8, 9, 201, 40];
    assert_eq!(seen, expected);
}

#[test]
fn scalars() {
    let context = context();
    let seen = received!(
        &context,
        "param_scalars",
        12,
        -5_i8,
        250_u8,
        -30_000_i16,
        65_000_u16,
        -7_i32,
        4_000_000_000_u32,
        i64::MIN,
        u64::MAX,
        1.5_f32,
        -2.5_f64,
        true,
        77_u8
    );
    let expected = [
        -5_i64 as u64,
        250,
        -30_000_i64 as u64,
        65_000,
        -7_i64 as u64,
        4_000_000_000,
        i64::MIN as u64,
        u64::MAX,
        u64::from(1.5_f32.to_bits()),
        (-2.5_f64).to_bits(),
        1,
        77,
    ];
    assert_eq!(seen, expected);
}

#[test]
fn check_args_finds_wrong_arguments() {
    let context = context();
    if driver_version() < 12040 {
        return needs("a driver of CUDA 12.4 or later, which reports a kernel's parameters");
    }
    let kernel = module(&context, "my_kernel.ptx")
        .function("my_kernel")
        .expect("a kernel");
    let buffer = DeviceBuffer::<f32>::zeroed(&context, 8).expect("memory");
    assert_eq!(kernel.check_args(&(buffer.ptr(), 8_u64)), Ok(true));
    assert!(kernel.check_args(&(buffer.ptr(),)).is_err(), "a missing argument");
    assert!(kernel.check_args(&(buffer.ptr(), 8_u32)).is_err(), "a count of 32 bits");
    assert!(
        kernel.check_args(&(buffer.ptr(), 8_u64, 1_u8)).is_err(),
        "an extra argument"
    );
}

#[test]
fn launches_check_their_arguments_with_debug_assertions() {
    let context = context();
    if driver_version() < 12040 {
        return needs("a driver of CUDA 12.4 or later, which reports a kernel's parameters");
    }
    if !cfg!(debug_assertions) {
        return needs("a build with debug assertions");
    }
    let kernel = module(&context, "my_kernel.ptx")
        .function("my_kernel")
        .expect("a kernel");
    let stream = Stream::new(&context).expect("a stream");
    let buffer = DeviceBuffer::<f32>::zeroed(&context, 8).expect("memory");
    let one = LaunchConfig::default();
    let refused = |result: cuda_driver::Result<()>, reason: &str| {
        let error = result.expect_err(reason);
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        let text = error.to_string();
        assert!(text.contains("`my_kernel`: ") && text.contains(reason), "{text}");
        assert!(text.contains("launch_objects.rs"), "{text}");
    };
    let mut packed = ParamBuffer::new();
    packed.push(buffer.ptr()).push(4_i32);
    let mut short = ParamBuffer::new();
    short.push(buffer.ptr());
    let mut halves = ParamBuffer::new();
    halves.push(1_u32).push(2_u32).push(3_u32);
    // SAFETY: the launches are refused before the driver is called.
    unsafe {
        refused(
            kernel.launch(&stream, one, &halves),
            "the packed arguments have 12 bytes, but the kernel's parameters have 16",
        );
        refused(
            kernel.launch(&stream, one, (buffer.ptr(), 4_i32)),
            "argument 1 has 4 bytes, but the kernel's parameter has 8",
        );
        refused(
            kernel.launch(&stream, one, (buffer.ptr(),)),
            "too few arguments: 1 given",
        );
        refused(kernel.launch(&stream, one, ()), "too few arguments: 0 given");
        refused(
            kernel.launch(&stream, one, (buffer.ptr(), 8_u64, 1_u8)),
            "too many arguments: the kernel has 2 parameters",
        );
        refused(
            kernel.launch_cooperative(&stream, one, (buffer.ptr(), 4_i32)),
            "argument 1 has 4 bytes",
        );
        refused(kernel.launch(&stream, one, &packed), "argument 1 has 4 bytes");
        refused(kernel.launch(&stream, one, &short), "too few arguments: 1 given");
    }
    // Sizes are not compared if one parameter is packed as several values, or if the arguments are raw pointers.
    let mut pieces = ParamBuffer::new();
    pieces.push(buffer.ptr()).push(8_u32).push(0_u32);
    let (mut address, mut count) = (buffer.ptr(), 8_u64);
    let pointers = [(&raw mut address).cast(), (&raw mut count).cast()];
    // SAFETY: the arguments have the types of the kernel's parameters, and the count is the length of the buffer.
    unsafe {
        kernel.launch(&stream, one, &pieces).expect("a launch");
        kernel.launch(&stream, one, &pointers[..]).expect("a launch");
    }
    stream.synchronize().expect("no fault");
}

#[test]
fn functions_are_enumerated() {
    let context = context();
    if driver_version() < 12040 {
        return needs("a driver of CUDA 12.4 or later, which enumerates functions");
    }
    let text = ".version 7.0\n.target sm_52\n.address_size 64\n
.visible .entry none() { ret; }\n.visible .entry two(.param .u8 a, .param .align 16 .b8 b[16]) { ret; }\n";
    let module = Module::from_ptx(&context, text).expect("a module");
    assert_eq!(module.function_count().expect("a count"), 2);
    let functions = module.functions().expect("the functions");
    let mut names: Vec<String> = functions.iter().map(|f| f.name().expect("a name")).collect();
    names.sort();
    assert_eq!(names, ["none", "two"]);
    let two = module.function("two").expect("a kernel");
    let param = |index| {
        two.param_info(index)
            .map(|info| info.map(|info| (info.offset, info.size)))
    };
    assert_eq!(param(0), Ok(Some((0, 1))));
    assert_eq!(param(1), Ok(Some((16, 16))));
    assert_eq!(param(2).map_err(|e| e.code()), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    assert_eq!(two.module_raw().expect("a module"), module.as_raw());
    match two.param_count() {
        Ok(count) => assert_eq!(count, 2),
        Err(error) => assert!(error.is_missing_function(), "{error}"),
    }
    // The functions keep the module loaded.
    drop((module, context));
    assert_eq!(two.name().expect("a name"), "two");
    drop(functions);
    let _ = Module::loading_mode().expect("a mode");
}

#[test]
fn refused_launches() {
    let context = context();
    let kernel = module(&context, "my_kernel.ptx")
        .function("my_kernel")
        .expect("a kernel");
    let stream = Stream::new(&context).expect("a stream");
    let buffer = DeviceBuffer::<f32>::zeroed(&context, 8).expect("memory");
    let one = LaunchConfig::default();
    let configs = [
        LaunchConfig {
            block: Dim3::from(1025),
            ..one
        },
        LaunchConfig {
            block: Dim3::from(0),
            ..one
        },
        LaunchConfig {
            grid: Dim3::from((1, 70_000)),
            ..one
        },
        LaunchConfig {
            dynamic_shared_bytes: 1 << 20,
            ..one
        },
    ];
    for config in configs {
        // SAFETY: the launch is refused; the arguments would fit.
        let result = unsafe { kernel.launch(&stream, config, (buffer.ptr(), 8_u64)) };
        assert_eq!(
            result.map_err(|e| e.code()),
            Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            "{config:?}"
        );
    }
    // A launch on the null stream needs a current context.
    // SAFETY: as above.
    let result = unsafe { kernel.launch(&Stream::null(), one, (buffer.ptr(), 8_u64)) };
    assert_eq!(result.map_err(|e| e.code()), Err(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    let _current = context.push().expect("a push");
    // SAFETY: the arguments have the types of the kernel's parameters, and the count is the length of the buffer.
    unsafe { kernel.launch(&Stream::null(), one, (buffer.ptr(), 8_u64)) }.expect("a launch");
    assert_eq!(buffer.to_vec().expect("a copy")[0].to_bits(), 1.0_f32.to_bits());
}
