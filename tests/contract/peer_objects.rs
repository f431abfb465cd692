//! Tests of copies between contexts and of peer access as objects.

use cuda_driver::graph::exchange_capture_mode;
use cuda_driver::sys::{CUresult, CUstreamCaptureMode};
use cuda_driver::{Context, Device, DeviceBuffer, DeviceSlice, Stream};

use crate::child;
use crate::common::{driver, needs};

/// Returns contexts on the first and on the last device, which may be the same device.
fn contexts() -> (Context, Context) {
    driver();
    let devices = Device::all().expect("devices");
    let create = |device: &Device| Context::create(*device).expect("a context");
    (create(&devices[0]), create(devices.last().expect("a device")))
}

#[test]
fn copies_between_contexts() {
    let (first, second) = contexts();
    let values: Vec<u32> = (0..10_000).collect();
    let from = DeviceBuffer::from_slice(&first, &values).expect("memory");
    let mut to = DeviceBuffer::<u32>::zeroed(&second, 10_000).expect("memory");
    to.as_mut_slice().copy_from_peer(&from).expect("a copy");
    assert_eq!(to.to_vec().expect("a copy"), values);
    to.fill_u32(0).expect("a fill");
    // `copy_from_device` also copies between contexts.
    to.copy_from_device(&from).expect("a copy");
    from.free().expect("a free after the copy");
    assert_eq!(to.to_vec().expect("a copy"), values);

    let stream = Stream::new(&first).expect("a stream");
    let mut back = DeviceBuffer::<u32>::zeroed(&first, 5000).expect("memory");
    // SAFETY: both buffers live longer than the copy.
    unsafe { back.as_mut_slice().copy_from_peer_async(&to, &stream) }.expect("a copy");
    stream.synchronize().expect("its end");
    assert_eq!(back.to_vec().expect("a copy"), values[..5000]);
}

/// The modes forbid waits for other streams. A copy between contexts waits nevertheless, and the capture goes on.
#[test]
fn copies_between_contexts_during_a_capture() {
    // In a process of its own, because a capture in global mode forbids some calls in all threads.
    child!("copies_between_contexts_during_a_capture", {
        let (first, second) = contexts();
        let from = DeviceBuffer::from_slice(&first, &[1_u32, 2, 3]).expect("memory");
        let mut to = DeviceBuffer::<u32>::zeroed(&second, 3).expect("memory");
        for context in [&first, &second] {
            let stream = Stream::non_blocking(context).expect("a stream");
            for mode in (0..3).map(CUstreamCaptureMode) {
                let graph = stream.capture(mode, |stream| {
                    to.as_mut_slice().copy_from_peer(&from)?;
                    to.copy_from_device(&from)?;
                    assert_eq!(stream.capture_status()?.0, 1);
                    assert_eq!(exchange_capture_mode(mode)?.0, 0, "the thread's mode is unchanged");
                    exchange_capture_mode(CUstreamCaptureMode(0)).map(drop)
                });
                assert!(graph.expect("a graph").nodes().expect("nodes").is_empty());
            }
        }
        assert_eq!(to.to_vec().expect("a copy"), [1, 2, 3]);
    });
}

#[test]
fn copies_that_are_not_possible() {
    let (first, second) = contexts();
    let from = DeviceBuffer::<u32>::zeroed(&first, 10).expect("memory");
    let mut to = DeviceBuffer::<u32>::zeroed(&second, 11).expect("memory");
    let error = to.as_mut_slice().copy_from_peer(&from).expect_err("too short");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    // SAFETY: the buffer has 10 values and lives longer than the view.
    let unknown = unsafe { DeviceSlice::<u32>::from_raw_parts(from.ptr(), 10, None) };
    let mut part = to.slice_mut(..10).expect("a view");
    let error = part.copy_from_peer(unknown).expect_err("a view without a context");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    let mut nothing = to.slice_mut(..0).expect("a view");
    nothing.copy_from_peer(&from).expect("a copy of nothing");
}

#[test]
fn access_of_one_context_to_itself() {
    let (context, _) = contexts();
    let error = context.enable_peer_access(&context).expect_err("itself");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

#[test]
fn access_to_another_device() {
    driver();
    let devices = Device::all().expect("devices");
    let [one, two, ..] = devices[..] else {
        needs("two devices");
        return;
    };
    let (first, second) = (
        Context::create(one).expect("a context"),
        Context::create(two).expect("a context"),
    );
    let access = match first.enable_peer_access(&second) {
        Ok(access) => access,
        Err(error) => {
            assert_eq!(error.code(), CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
            needs("devices with peer access");
            return;
        }
    };
    assert_eq!((access.context(), access.peer()), (&first, &second));
    let again = first
        .enable_peer_access(&second)
        .expect_err("access that is already enabled");
    assert_eq!(again.code(), CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    access.disable().expect("its end");
    drop(first.enable_peer_access(&second).expect("access again"));
    let access = first.enable_peer_access(&second).expect("access again");
    drop((first, second));
    std::thread::spawn(move || drop(access)).join().expect("no panic");
}
