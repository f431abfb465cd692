//! Tests of the driver's log (`cuLogs*`).

use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::ptr::null_mut;
use std::sync::Mutex;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version, is_software, needs, ptx, select_driver};
use crate::{child, is, ok};

/// Messages that the callback received: the value of its argument, and the text.
static HEARD: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());

/// Returns true if the driver has a log that programs can read; otherwise reports that it has none.
fn has_log() -> bool {
    let has = driver_version() >= 12090;
    if !has {
        needs("a driver of CUDA 12.9 or later, which has cuLogs*");
    }
    has
}

/// Stores each message, and calls the driver, which callbacks are allowed to do.
unsafe extern "system" fn listen(data: *mut c_void, level: CUlogLevel, message: *mut c_char, length: usize) {
    assert_eq!(level, CUlogLevel::CU_LOG_LEVEL_ERROR);
    // SAFETY: the driver passes a NUL-terminated text.
    let text = unsafe { CStr::from_ptr(message) };
    assert_eq!(text.count_bytes(), length);
    HEARD
        .lock()
        .unwrap()
        .push((data as usize, text.to_str().unwrap().to_owned()));
    let mut version = 0;
    ok!(cuDriverGetVersion(&raw mut version));
}

/// Returns the stored messages and removes them.
fn heard() -> Vec<(usize, String)> {
    std::mem::take(&mut *HEARD.lock().unwrap())
}

const REFUSED: &str = "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2";

#[test]
fn callbacks_get_the_messages_of_failed_calls() {
    child!("callbacks_get_the_messages_of_failed_calls", {
        if !has_log() {
            return;
        }
        let mut c = Codes::new();
        select_driver();
        let (mut first, mut second) = (null_mut(), null_mut());
        // Callbacks can be registered before cuInit.
        ok!(cuLogsRegisterCallback(
            Some(listen),
            std::ptr::without_provenance_mut(1),
            &raw mut first
        ));
        let _gpu = Gpu::new();
        heard();
        let mut address = 0;
        is!(c, 1, cuMemAlloc(&raw mut address, 0));
        let messages = heard();
        assert_eq!(messages.last(), Some(&(1, REFUSED.to_owned())), "{messages:?}");

        ok!(cuLogsRegisterCallback(
            Some(listen),
            std::ptr::without_provenance_mut(2),
            &raw mut second
        ));
        is!(c, 1, cuMemAlloc(&raw mut address, 0));
        let mut messages = heard();
        let last = messages.split_off(messages.len() - 2);
        assert_eq!(last, [(1, REFUSED.to_owned()), (2, REFUSED.to_owned())]);

        ok!(cuLogsUnregisterCallback(first));
        // The callback also receives messages of other threads.
        let thread = std::thread::spawn(|| {
            let mut address = 0;
            // SAFETY: the pointer is valid for the write.
            unsafe { cuMemAlloc(&raw mut address, 0) }.0
        });
        assert!(matches!(thread.join(), Ok(1 | 201)));
        let messages = heard();
        assert!(
            !messages.is_empty() && messages.iter().all(|(data, _)| *data == 2),
            "{messages:?}"
        );

        // A successful call logs nothing.
        ok!(cuMemAlloc(&raw mut address, 16));
        assert_eq!(heard(), []);

        is!(c, 1, cuLogsRegisterCallback(None, null_mut(), &raw mut first));
        is!(c, 1, cuLogsUnregisterCallback(null_mut()));
        ok!(cuLogsUnregisterCallback(second));
        heard();
        is!(c, 1, cuMemAlloc(&raw mut address, 0));
        assert_eq!(heard(), []);
    });
}

#[test]
fn a_compile_error_is_named_in_the_log() {
    child!("a_compile_error_is_named_in_the_log", {
        if !has_log() {
            return;
        }
        let mut c = Codes::new();
        let _gpu = Gpu::new();
        let mut handle = null_mut();
        ok!(cuLogsRegisterCallback(Some(listen), null_mut(), &raw mut handle));
        let mut module = null_mut();
        let text = c".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { nonsense; }\n";
        is!(c, 218, cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
        let messages = heard();
        // Driver 580 keeps the compiler's own words for the error log of `cuModuleLoadDataEx`.
        let words = if is_software() {
            "nonsense"
        } else {
            "JIT compilation failed"
        };
        assert!(messages.iter().any(|(_, text)| text.contains(words)), "{messages:?}");
        assert_eq!(
            messages[messages.len() - 1].1,
            "Returning 218 (CUDA_ERROR_INVALID_PTX) from cuModuleLoadData"
        );
        let good = ptx("faults.ptx");
        ok!(cuModuleLoadData(&raw mut module, good.as_ptr().cast()));
        assert_eq!(heard(), []);
    });
}

/// Returns the messages after the position of an iterator, and advances it.
fn dump(iterator: &mut CUlogIterator) -> String {
    let mut buffer = vec![0_u8; 1 << 16];
    let mut size = buffer.len();
    ok!(cuLogsDumpToMemory(
        &raw mut *iterator,
        buffer.as_mut_ptr().cast(),
        &raw mut size,
        0
    ));
    assert_eq!(buffer[size], 0);
    buffer.truncate(size);
    String::from_utf8(buffer).unwrap()
}

#[test]
fn the_log_is_read_from_an_iterator() {
    child!("the_log_is_read_from_an_iterator", {
        if !has_log() {
            return;
        }
        let mut c = Codes::new();
        let _gpu = Gpu::new();
        let (mut iterator, mut address) = (0, 0);
        ok!(cuLogsCurrent(&raw mut iterator, 0));
        assert_eq!(dump(&mut iterator), "");
        let start = iterator;
        is!(c, 1, cuMemAlloc(&raw mut address, 0));
        let text = dump(&mut iterator);
        assert!(text.ends_with(&format!("[CUDA][E] {REFUSED}\n")), "{text}");
        assert_eq!(dump(&mut iterator), "");

        // The file has the same lines.
        let path = std::env::temp_dir().join(format!("cuda-driver-log-{}", std::process::id()));
        let c_path = CString::new(path.to_str().unwrap()).unwrap();
        let mut from = start;
        ok!(cuLogsDumpToFile(&raw mut from, c_path.as_ptr(), 0));
        let file = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((file, from), (text, iterator));

        let nowhere = c"/no/such/folder/log";
        is!(c, 1, cuLogsDumpToFile(null_mut(), nowhere.as_ptr(), 0));
        is!(c, 1, cuLogsCurrent(null_mut(), 0));
        let mut buffer = [0_u8; 10];
        let mut size = buffer.len();
        let (into, bytes) = (buffer.as_mut_ptr().cast(), &raw mut size);
        is!(c, 1, cuLogsDumpToMemory(null_mut(), into, bytes, 0));
        assert_eq!(size, 0);
        is!(c, 1, cuLogsDumpToMemory(null_mut(), into, null_mut(), 0));
        is!(c, 1, cuLogsDumpToMemory(null_mut(), null_mut(), bytes, 0));
        let mut beyond = 1 << 20;
        let mut large = vec![0_u8; 1 << 16];
        size = large.len();
        is!(
            c,
            1,
            cuLogsDumpToMemory(&raw mut beyond, large.as_mut_ptr().cast(), &raw mut size, 0)
        );
        assert_eq!(beyond, 1 << 20);

        // The driver keeps the last 100 messages.
        for _ in 0..200 {
            is!(c, 1, cuMemAlloc(&raw mut address, 0));
        }
        let mut from = start;
        let text = dump(&mut from);
        assert!(
            text.starts_with("Log buffer has rolled over since the previous dump."),
            "{text}"
        );
        assert_eq!(text.lines().count(), 101);
    });
}
