//! Tests of launches: the calls that launch a kernel, the order of launches on a stream, refused launches, and
//! occupancy.

use crate::common::{Context, Kernel, check, cuda, expect, in_child, lacks_software, ptr, same};
use cuda_driver_sys::*;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Returns a kernel whose threads each write `value` to a word of `p`.
fn writer() -> Kernel {
    let text = ".version 6.4\n.target sm_52\n.address_size 64\n\
        .visible .entry write(.param .u64 p, .param .u32 value)\n{\n\
        .reg .b64 %rd<4>; .reg .b32 %r<6>;\n\
        ld.param.u64 %rd1, [p];\n ld.param.u32 %r1, [value];\n mov.u32 %r2, %ctaid.x;\n mov.u32 %r3, %ntid.x;\n\
        mov.u32 %r4, %tid.x;\n mad.lo.u32 %r5, %r2, %r3, %r4;\n mul.wide.u32 %rd2, %r5, 4;\n add.s64 %rd3, %rd1, %rd2;\n\
        st.global.u32 [%rd3], %r1;\n ret;\n}\n";
    Kernel::from_ptx(&CString::new(text).unwrap(), "write")
}

/// Words of device memory, initially 0: their address and their number.
struct Words(CUdeviceptr, usize);

impl Words {
    fn new(count: usize) -> Self {
        let mut address = 0;
        check(unsafe { cuda().cuMemAlloc(&mut address, count * 4) });
        check(unsafe { cuda().cuMemsetD32(address, 0, count) });
        // The fill is only queued, and non-blocking streams do not wait for it.
        check(unsafe { cuda().cuCtxSynchronize() });
        Words(address, count)
    }

    fn read(&self) -> Vec<u32> {
        let mut words = vec![0; self.1];
        check(unsafe { cuda().cuMemcpyDtoH(words.as_mut_ptr().cast(), self.0, self.1 * 4) });
        words
    }
}

#[test]
fn a_parameter_before_the_first_is_refused() {
    if lacks_software() {
        return; // NVIDIA's driver writes before its buffer
    }
    let (cuda, _context) = (cuda(), Context::new());
    expect(unsafe { cuda.cuParamSeti(writer().function, -4, 1) }, 1);
}

#[test]
fn with_a_configuration() {
    let (cuda, _context) = (cuda(), Context::new());
    let (kernel, words) = (writer(), Words::new(32));
    let (mut p, mut value) = (words.0, 0u32);
    let value = &raw mut value;
    let mut params = [ptr(&mut p), value.cast()];
    let mut attribute = CUlaunchAttribute::default();
    let mut config = CUlaunchConfig {
        gridDimX: 2,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 16,
        blockDimY: 1,
        blockDimZ: 1,
        ..CUlaunchConfig::default()
    };
    unsafe {
        value.write(3);
        check(cuda.cuLaunchKernelEx(&config, kernel.function, params.as_mut_ptr(), null_mut()));
        assert_eq!(words.read(), [3; 32]);
        (config.attrs, config.numAttrs) = (&raw mut attribute, 1);
        (*config.attrs).id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        (*config.attrs).value.cooperative = 1;
        value.write(4);
        check(cuda.cuLaunchKernelEx(&config, kernel.function, params.as_mut_ptr(), null_mut()));
        assert_eq!(words.read(), [4; 32]);
        value.write(5);
        config.gridDimX = 1 << 20;
        expect(
            cuda.cuLaunchKernelEx(&config, kernel.function, params.as_mut_ptr(), null_mut()),
            720,
        );
        config.gridDimX = 2;
        (*config.attrs).id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        (*config.attrs).value.clusterDim.x = 9;
        (*config.attrs).value.clusterDim.y = 1;
        (*config.attrs).value.clusterDim.z = 1;
        expect(
            cuda.cuLaunchKernelEx(&config, kernel.function, params.as_mut_ptr(), null_mut()),
            912,
        );
        assert_eq!(words.read(), [4; 32], "a refused launch runs nothing");
        let f = kernel.function;
        value.write(6);
        check(cuda.cuLaunchCooperativeKernel(f, 2, 1, 1, 16, 1, 1, 0, null_mut(), params.as_mut_ptr()));
        assert_eq!(words.read(), [6; 32]);
        expect(
            cuda.cuLaunchCooperativeKernel(f, 1 << 20, 1, 1, 16, 1, 1, 0, null_mut(), params.as_mut_ptr()),
            720,
        );
        check(cuda.cuCtxSynchronize());
    }
}

#[test]
fn a_short_packed_buffer_is_filled_with_zeros() {
    let (cuda, _context) = (cuda(), Context::new());
    let (kernel, words) = (writer(), Words::new(4));
    check(unsafe { cuda.cuMemsetD32(words.0, 5, 4) });
    let (mut packed, mut size) = (words.0, 8usize);
    let mut extra = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        ptr(&mut packed),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        ptr(&mut size),
        CU_LAUNCH_PARAM_END,
    ];
    let f = kernel.function;
    check(unsafe { cuda.cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, null_mut(), null_mut(), extra.as_mut_ptr()) });
    assert_eq!(words.read(), [0; 4]);
}

#[test]
fn a_kernel_of_a_library_is_a_function() {
    let (cuda, _context) = (cuda(), Context::new());
    let (mut library, mut kernel) = (null_mut(), null_mut());
    let text = crate::common::ptx("saxpy");
    let words = Words::new(8);
    let (mut a, mut x, mut y, mut n) = (2f32, words.0, words.0, 8u64);
    unsafe {
        let none = null_mut();
        check(cuda.cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            none,
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0,
        ));
        check(cuda.cuLibraryGetKernel(&mut kernel, library, c"saxpy".as_ptr()));
        check(cuda.cuMemsetD32(words.0, 1f32.to_bits(), 8));
        let mut params = [ptr(&mut a), ptr(&mut x), ptr(&mut y), ptr(&mut n)];
        check(cuda.cuLaunchKernel(
            kernel.cast(),
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            null_mut(),
            params.as_mut_ptr(),
            null_mut(),
        ));
        assert_eq!(words.read(), [3f32.to_bits(); 8]);
    }
}

#[test]
fn many_small_launches_in_order() {
    let (cuda, _context) = (cuda(), Context::new());
    let (kernel, words) = (writer(), Words::new(32));
    let mut stream = null_mut();
    check(unsafe { cuda.cuStreamCreate(&mut stream, CUstream_flags::CU_STREAM_NON_BLOCKING.0) });
    for round in 1..=2000u32 {
        let (mut p, mut value) = (words.0, round);
        check(kernel.launch(1, 32, stream, &mut [ptr(&mut p), ptr(&mut value)]));
    }
    check(unsafe { cuda.cuStreamSynchronize(stream) });
    assert_eq!(words.read(), [2000; 32]);
}

#[test]
fn work_is_done_without_a_waiting_call() {
    let (cuda, _context) = (cuda(), Context::new());
    let (kernel, words) = (writer(), Words::new(32));
    let mut event = null_mut();
    let (mut p, mut value) = (words.0, 1);
    unsafe {
        check(cuda.cuEventCreate(&mut event, 0));
        check(kernel.launch(1, 32, null_mut(), &mut [ptr(&mut p), ptr(&mut value)]));
        check(cuda.cuEventRecord(event, null_mut()));
        let began = std::time::Instant::now();
        // The test only queries: the driver's own threads run the kernel.
        loop {
            match cuda.cuEventQuery(event).0 {
                0 => break,
                600 => std::thread::yield_now(),
                code => panic!("cuEventQuery returned {code}"),
            }
            assert!(
                began.elapsed() < std::time::Duration::from_secs(60),
                "the kernel has not run"
            );
        }
    }
    assert_eq!(words.read(), [1; 32]);
}

#[test]
fn occupancy() {
    let (cuda, _context) = (cuda(), Context::new());
    let kernel = writer();
    let (mut blocks, mut grid, mut block, mut bytes) = (0, 0, 0, 0);
    let f = kernel.function;
    unsafe {
        check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, 256, 0));
        assert_eq!(blocks, 8, "2048 threads of a multiprocessor");
        // More dynamic shared memory than the function may have: 48 KiB, unless an attribute allows more.
        check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, 32, 100 << 10));
        assert_eq!(blocks, 0);
        check(cuda.cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, f, None, 100 << 10, 0));
        assert_eq!((grid, block), (0, 0));
        check(cuda.cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, f, 2, 256));
        assert_eq!(bytes, 48 << 10);
        let dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let carveout = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        check(cuda.cuFuncSetAttribute(f, dynamic, 227 << 10));
        check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, 32, 100 << 10));
        assert_eq!(blocks, 2, "228 KiB of shared memory");
        for (percent, most) in [(0, 1), (25, 3), (50, 6), (75, 9), (100, 11)] {
            check(cuda.cuFuncSetAttribute(f, carveout, percent));
            check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, 32, 20_000));
            assert_eq!(
                blocks, most,
                "with {percent} % as the preferred carveout of shared memory"
            );
        }
        check(cuda.cuFuncSetAttribute(f, carveout, -1));
        check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, 1025, 0));
        assert_eq!(blocks, 0);
        expect(
            cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, 0, 0),
            1,
        );
        expect(
            cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), f, 32, 0),
            1,
        );
        expect(
            cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, null_mut(), 32, 0),
            400,
        );
        check(cuda.cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, f, None, 0, 0));
        assert_eq!((grid, block), (2 * 132, 1024));
        check(cuda.cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, f, None, 0, 128));
        assert_eq!((grid, block), (16 * 132, 128));
        expect(
            cuda.cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, f, None, 0, -1),
            1,
        );
        check(cuda.cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, f, 8, 256));
        assert_eq!(bytes, (228 << 10) / 8);
    }
}

/// The launches of a list wait for the earlier work of all its streams, and later work waits for all launches, unless
/// flags turn this off.
#[test]
fn a_list_of_two_devices() {
    if lacks_software() {
        return; // it has any number of devices
    }
    let settings = [("CUDA_SOFT_DEVICES", "sm_90,sm_90")];
    in_child("launch::a_list_of_two_devices", &settings, || unsafe {
        static OPEN: AtomicBool = AtomicBool::new(false);
        extern "system" fn wait(_: *mut c_void) {
            while !OPEN.load(Relaxed) {
                std::thread::yield_now();
            }
        }
        let cuda = cuda();
        let mut value = 7_u32;
        let mut devices = [0, 1].map(|device| {
            let (mut context, mut stream) = (null_mut(), null_mut());
            check(cuda.cuCtxCreate(&mut context, 0, device));
            check(cuda.cuStreamCreate(&mut stream, 1));
            (context, stream, writer(), Words::new(64))
        });
        let mut arguments = devices.each_mut().map(|device| [ptr(&mut device.3.0), ptr(&mut value)]);
        let mut of = |i: usize| CUDA_LAUNCH_PARAMS {
            function: devices[i].2.function,
            gridDimX: 2,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: devices[i].1,
            kernelParams: arguments[i].as_mut_ptr(),
        };
        let list = [of(0), of(1)];
        let launch = |mut list: Vec<CUDA_LAUNCH_PARAMS>, flags| {
            cuda.cuLaunchCooperativeKernelMultiDevice(list.as_mut_ptr(), list.len() as u32, flags)
        };
        let [first, second] = [devices[0].1, devices[1].1];
        for flags in 0..4 {
            OPEN.store(false, Relaxed);
            check(cuda.cuLaunchHostFunc(first, Some(wait), null_mut()));
            check(launch(list.to_vec(), flags));
            // With both flags, the second stream does not wait for the first; otherwise it does.
            if flags == 3 {
                check(cuda.cuStreamSynchronize(second));
            } else {
                expect(cuda.cuStreamQuery(second), 600);
            }
            expect(cuda.cuStreamQuery(first), 600);
            OPEN.store(true, Relaxed);
            for (context, stream, _, words) in &devices {
                check(cuda.cuStreamSynchronize(*stream));
                check(cuda.cuCtxSetCurrent(*context));
                assert_eq!(words.read(), [7; 64], "flags {flags}");
                check(cuda.cuMemsetD32(words.0, 0, 64));
                check(cuda.cuCtxSynchronize());
            }
        }
        let [a, b] = list;
        let refused = [
            ("another grid", 1, vec![a, CUDA_LAUNCH_PARAMS { gridDimX: 1, ..b }]),
            ("one device twice", 1, vec![a, a]),
            ("three entries for two devices", 1, vec![a, b, a]),
            (
                "a function of another context",
                400,
                vec![
                    a,
                    CUDA_LAUNCH_PARAMS {
                        function: a.function,
                        ..b
                    },
                ],
            ),
            (
                "a grid that does not fit",
                720,
                vec![CUDA_LAUNCH_PARAMS { gridDimX: 1 << 20, ..a }, b],
            ),
        ];
        for (name, code, list) in refused {
            same(launch(list, 0).0, code, name);
        }
        for (context, stream, _, words) in &devices {
            check(cuda.cuStreamSynchronize(*stream));
            check(cuda.cuCtxSetCurrent(*context));
            assert_eq!(words.read(), [0; 64], "a refused list launches nothing");
        }
    });
}
