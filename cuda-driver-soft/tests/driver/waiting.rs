//! Tests of kernels that wait for a later block, another kernel or the host, and of streams that wait for a value.

use crate::common::{Context, Kernel, check, cuda, ptr};
use cuda_driver_sys::*;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Returns the kernel `k(flags, n)` with this body, which finds `flags` in `%rd1`, `n` in `%r9`, and the numbers of its
/// block and thread in `%r1` and `%r2`.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        ".version 6.4\n.target sm_52\n.address_size 64\n\
        .visible .entry k(.param .u64 flags, .param .u32 n)\n{{\n\
        .reg .b64 %rd<8>; .reg .b32 %r<12>; .reg .pred %p<6>;\n\
        ld.param.u64 %rd1, [flags];\nld.param.u32 %r9, [n];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n\
        {body}\n}}\n"
    );
    Kernel::from_ptx(&CString::new(text).unwrap(), "k")
}

/// Words that host and device share.
struct Words(*mut u32, usize);

impl Words {
    fn new(count: usize) -> Self {
        let mut address = null_mut();
        check(unsafe { cuda().cuMemHostAlloc(&mut address, count * 4, 0) });
        let words = Words(address.cast(), count);
        words.all().iter().for_each(|word| word.store(0, SeqCst));
        words
    }

    fn all(&self) -> &[AtomicU32] {
        unsafe { std::slice::from_raw_parts(self.0.cast(), self.1) }
    }

    fn get(&self) -> Vec<u32> {
        self.all().iter().map(|word| word.load(SeqCst)).collect()
    }

    fn launch(&self, kernel: &Kernel, grid: u32, block: u32, stream: CUstream, n: u32) {
        let (mut flags, mut n) = (self.0, n);
        check(kernel.launch(grid, block, stream, &mut [ptr(&mut flags), ptr(&mut n)]));
    }
}

/// Sets a flag when it is dropped, so that a test that fails does not leave a kernel waiting.
struct Release<'a>(&'a AtomicU32);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(1, SeqCst);
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        let code = unsafe { cuda().cuMemFreeHost(self.0.cast()) };
        if !std::thread::panicking() {
            check(code);
        }
    }
}

/// Block `n` sets word 0. Blocks below `n` wait for it; each then adds 1 to word 1.
const FOR_A_LATER_BLOCK: &str = "
        setp.ge.u32 %p1, %r1, %r9;
        @%p1 bra SET;
    L:  ld.volatile.global.u32 %r3, [%rd1];
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra L;
        setp.ne.u32 %p3, %r2, 0;
        @%p3 ret;
        atom.global.add.u32 %r4, [%rd1+4], 1;
        ret;
    SET: mov.u32 %r5, 1; st.volatile.global.u32 [%rd1], %r5; ret;";

#[test]
fn blocks_wait_for_a_later_one() {
    let _context = Context::new();
    let kernel = kernel(FOR_A_LATER_BLOCK);
    for (n, block) in [(1, 32), (63, 32), (3, 256)] {
        let words = Words::new(2);
        words.launch(&kernel, n + 1, block, null_mut(), n);
        check(unsafe { cuda().cuCtxSynchronize() });
        assert_eq!(words.get(), [1, n]);
    }
}

#[test]
fn blocks_with_a_barrier_in_the_loop_wait_for_a_later_one() {
    let _context = Context::new();
    let kernel = kernel(&FOR_A_LATER_BLOCK.replace("L:  ", "L:  bar.sync 0;\n"));
    let words = Words::new(2);
    words.launch(&kernel, 6, 64, null_mut(), 5);
    check(unsafe { cuda().cuCtxSynchronize() });
    assert_eq!(words.get(), [1, 5]);
}

#[test]
fn all_blocks_of_a_grid_meet() {
    // A barrier of the whole grid, three times, as in persistent kernels.
    let _context = Context::new();
    let kernel = kernel(
        "mov.u32 %r8, 0;
         mov.u32 %r7, %nctaid.x;
    NEXT: bar.sync 0;
        add.u32 %r8, %r8, %r7;
        setp.ne.u32 %p1, %r2, 0;
        @%p1 bra MET;
        membar.gl;
        atom.global.add.u32 %r3, [%rd1], 1;
    L:  ld.volatile.global.u32 %r3, [%rd1];
        setp.lt.u32 %p2, %r3, %r8;
        @%p2 bra L;
    MET: bar.sync 0;
        sub.u32 %r9, %r9, 1;
        setp.ne.u32 %p3, %r9, 0;
        @%p3 bra NEXT;
        ret;",
    );
    let words = Words::new(1);
    words.launch(&kernel, 132, 128, null_mut(), 3);
    check(unsafe { cuda().cuCtxSynchronize() });
    assert_eq!(words.get(), [3 * 132]);
}

/// Sets word `n`, waits for the other of words 0 and 1, and then sets word `n + 2`.
const FOR_EACH_OTHER: &str = "
        mul.wide.u32 %rd2, %r9, 4;
        add.u64 %rd2, %rd1, %rd2;
        mov.u32 %r3, 1;
        st.volatile.global.u32 [%rd2], %r3;
    L:  ld.volatile.global.v2.u32 {%r4, %r5}, [%rd1];
        add.u32 %r4, %r4, %r5;
        setp.ne.u32 %p1, %r4, 2;
        @%p1 bra L;
        st.global.u32 [%rd2+8], %r3;
        ret;";

#[test]
fn kernels_in_two_streams_wait_for_each_other() {
    let _context = Context::new();
    let kernel = kernel(FOR_EACH_OTHER);
    let mut streams = [null_mut(); 2];
    for stream in &mut streams {
        check(unsafe { cuda().cuStreamCreate(stream, 1) });
    }
    for grid in [1, 40] {
        let words = Words::new(4);
        for (n, stream) in streams.into_iter().enumerate() {
            words.launch(&kernel, grid, 64, stream, n as u32);
        }
        for stream in streams {
            check(unsafe { cuda().cuStreamSynchronize(stream) });
        }
        assert_eq!(words.get(), [1; 4]);
    }
    for stream in streams {
        check(unsafe { cuda().cuStreamDestroy(stream) });
    }
}

/// Stores `n` in word 1, waits in a divergent loop for word 0, which the host sets, and then stores `n` in word 2.
const FOR_THE_HOST: &str = "
        and.b32 %r3, %r2, 1;
        setp.eq.u32 %p1, %r3, 0;
        st.volatile.global.u32 [%rd1+4], %r9;
    L:  @%p1 bra EVEN;
        add.u32 %r4, %r4, 1;
        bra J;
    EVEN: add.u32 %r5, %r5, 1;
    J:  ld.volatile.global.u32 %r6, [%rd1];
        setp.eq.u32 %p2, %r6, 0;
        @%p2 bra L;
        st.volatile.global.u32 [%rd1+8], %r9;
        ret;";

#[test]
fn a_kernel_waits_for_the_host() {
    let _context = Context::new();
    let kernel = kernel(FOR_THE_HOST);
    // The host sets the flag, then waits.
    let words = Words::new(3);
    words.launch(&kernel, 2, 64, null_mut(), 7);
    words.all()[0].store(1, SeqCst);
    check(unsafe { cuda().cuCtxSynchronize() });
    assert_eq!(words.get(), [1, 7, 7]);
    // Another thread sets the flag while this one waits.
    let words = Words::new(3);
    words.launch(&kernel, 2, 64, null_mut(), 8);
    let flags = words.all();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _release = Release(&flags[0]);
            while flags[1].load(SeqCst) != 8 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(flags[2].load(SeqCst), 0);
        });
        check(unsafe { cuda().cuCtxSynchronize() });
    });
    assert_eq!(words.get(), [1, 8, 8]);
}

#[test]
fn other_streams_continue_during_a_waiting_kernel() {
    let _context = Context::new();
    let (waits, writes) = (kernel(FOR_THE_HOST), kernel(FOR_A_LATER_BLOCK));
    let mut stream = null_mut();
    check(unsafe { cuda().cuStreamCreate(&mut stream, 1) });
    let (flags, words) = (Words::new(3), Words::new(2));
    let release = Release(&flags.all()[0]);
    flags.launch(&waits, 1, 1024, stream, 7);
    words.launch(&writes, 33, 64, null_mut(), 32);
    check(unsafe { cuda().cuStreamSynchronize(null_mut()) });
    assert_eq!((words.get(), flags.get()[2]), (vec![1, 32], 0));
    drop(release);
    check(unsafe { cuda().cuStreamSynchronize(stream) });
    check(unsafe { cuda().cuStreamDestroy(stream) });
    assert_eq!(flags.get()[2], 7);
}

/// A wait for a value polls, but it sleeps after each poll.
#[cfg(target_os = "linux")]
#[test]
fn a_stream_that_waits_for_a_value_sleeps() {
    fn processor_ms() -> u64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        // User and system time are fields 14 and 15 of the line, in units of 10 ms. Field 2, the command's name, may
        // contain any character, so the fields are counted from its end.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        10 * (fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap())
    }
    /// Returns how often the threads of this process went to sleep.
    fn sleeps() -> u64 {
        let of_thread = |task: std::io::Result<std::fs::DirEntry>| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
            let count = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            count.map_or(0, |count| count.trim().parse::<u64>().unwrap())
        };
        std::fs::read_dir("/proc/self/task").unwrap().map(of_thread).sum()
    }
    /// Checks that threads sleep after little work during this wait: less than a millisecond each time.
    fn check_wait(wait: impl FnOnce()) {
        let (work, count) = (processor_ms(), sleeps());
        wait();
        let (work, count) = (processor_ms() - work, sleeps().saturating_sub(count));
        assert!(work <= 20 + count, "{work} ms of processor time with {count} sleeps");
    }
    crate::common::in_child("waiting::a_stream_that_waits_for_a_value_sleeps", &[], || {
        let _context = Context::new();
        let words = Words::new(1);
        let release = Release(&words.all()[0]);
        let mut stream = null_mut();
        check(unsafe { cuda().cuStreamCreate(&mut stream, 1) });
        let address = words.0 as CUdeviceptr;
        check(unsafe { cuda().cuStreamWaitValue32_v2(stream, address, 1, 1) });
        check_wait(|| std::thread::sleep(Duration::from_millis(600)));
        assert_eq!(unsafe { cuda().cuStreamQuery(stream) }.0, 600);
        // The same holds for a thread that waits for the stream.
        let waiting = stream as usize;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| check(unsafe { cuda().cuStreamSynchronize(waiting as CUstream) }));
            check_wait(|| std::thread::sleep(Duration::from_millis(600)));
            drop(release);
            thread.join().unwrap();
        });
    });
}
