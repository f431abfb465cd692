//! Tests of the driver's log: messages of errors, callbacks and positions.

use std::sync::{Arc, Mutex};

use super::fake;
use crate::driver_log::{self, LogCallback, LogPosition};
use crate::sys::{CUlogLevel, CUresult, Function};
use crate::{Context, Device, DeviceBuffer, Error, Module, check};

fn context() -> Context {
    fake::install();
    let context = Context::create(Device::from_raw(3)).unwrap();
    fake::calls();
    context
}

/// Returns the error of an allocation during which the driver logs a message.
fn failed(context: &Context, message: &'static str) -> Error {
    fake::fail_with_message("cuMemAlloc_v2", 2, message);
    DeviceBuffer::<u8>::alloc(context, 7).unwrap_err()
}

#[test]
fn errors_have_the_messages_of_their_thread() {
    let context = context();
    driver_log::attach().unwrap();
    fake::calls();
    driver_log::attach().unwrap();
    assert_eq!(fake::calls(), [""; 0]);

    let error = failed(&context, "Requested 7 bytes, but only 3 are free\n\0");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    assert_eq!(error.function(), Function::cuMemAlloc_v2);
    assert_eq!(error.log(), Some("Requested 7 bytes, but only 3 are free"));
    let text = error.to_string();
    assert!(
        text.starts_with("cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (2)"),
        "{text}"
    );
    assert!(text.ends_with(")\n  Requested 7 bytes, but only 3 are free"), "{text}");

    // A message that only repeats code and function is left out.
    let error = failed(&context, "Returning 2 (CUDA_ERROR_OUT_OF_MEMORY) from cuMemAlloc_v2");
    assert_eq!(error.log(), None);

    // An error has no log if the driver logged nothing, or if this crate rejected the call without calling the driver.
    fake::fail("cuMemAlloc_v2", 2);
    assert_eq!(DeviceBuffer::<u8>::alloc(&context, 7).unwrap_err().log(), None);
    fake::fail_with_message("cuMemAlloc_v2", 2, "of a raw call");
    let mut address = 0;
    // SAFETY: the pointer is to a local integer.
    let code = unsafe { crate::sys::cuMemAlloc(&raw mut address, 7) };
    let mut buffer = DeviceBuffer::<u8>::alloc(&context, 7).unwrap();
    assert_eq!(buffer.copy_from(&[0; 8]).unwrap_err().log(), None);
    let error = check(code, Function::cuMemAlloc_v2).unwrap_err();
    assert_eq!(error.log(), Some("of a raw call"));

    // Messages stay on their thread.
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(failed(&context, "elsewhere").log(), Some("elsewhere")));
    });
    fake::fail("cuMemAlloc_v2", 2);
    assert_eq!(DeviceBuffer::<u8>::alloc(&context, 7).unwrap_err().log(), None);
}

#[test]
fn messages_of_the_compiler_come_before_those_of_the_driver() {
    let context = context();
    driver_log::attach().unwrap();
    fake::fail_with_message("cuModuleLoadDataEx", 218, "the driver's words");
    let error = Module::from_ptx(&context, "nonsense").unwrap_err();
    assert_eq!(error.error().log(), Some("the driver's words"));
    let error = Error::from(error);
    assert_eq!(error.log(), Some("line 1; error : nonsense\nthe driver's words"));
}

#[test]
fn callbacks_get_messages_until_they_are_dropped() {
    let context = context();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::clone(&seen);
    let callback = LogCallback::new(move |level, message| {
        assert_eq!(level, CUlogLevel::CU_LOG_LEVEL_ERROR);
        if message.contains("for the callback") {
            inside.lock().unwrap().push(message.to_owned());
        }
    })
    .unwrap();
    let panics = LogCallback::new(|_, message| assert!(!message.contains("for the callback"), "ignored")).unwrap();
    assert!(!callback.as_raw().is_null());
    fake::calls();
    let _ = failed(&context, "for the callback 1");
    let _ = failed(&context, "for the callback 2");
    drop(panics);
    callback.unregister().unwrap();
    let _ = failed(&context, "for the callback 3");
    assert_eq!(*seen.lock().unwrap(), ["for the callback 1", "for the callback 2"]);
    // The closure was dropped.
    assert_eq!(Arc::strong_count(&seen), 1);
    let calls = fake::calls();
    let count = calls.iter().filter(|call| *call == "cuLogsUnregisterCallback").count();
    assert_eq!(count, 2, "{calls:?}");

    let inside = Arc::clone(&seen);
    fake::fail("cuLogsRegisterCallback", 2);
    let error = LogCallback::new(move |_, _| drop(inside.lock())).unwrap_err();
    assert_eq!(error.function(), Function::cuLogsRegisterCallback);
    assert_eq!(Arc::strong_count(&seen), 1);
}

#[test]
fn positions_move() {
    fake::install();
    let mut position = LogPosition::end().unwrap();
    assert_eq!(position.read().unwrap(), "[E] a message\n");
    assert_eq!(position.read().unwrap(), "[E] a message\n");
    assert_eq!(
        fake::calls(),
        [
            "cuLogsCurrent(0)",
            "cuLogsDumpToMemory(5, 0)",
            "cuLogsDumpToMemory(6, 0)"
        ]
    );
    // The fake driver does not export `cuLogsDumpToFile`.
    let error = position.write_to_file(c"/tmp/unused").unwrap_err();
    assert!(error.is_missing_function());
}
