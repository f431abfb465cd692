//! The threads of the process that work for the device.
//!
//! They start with the first work, never end (the library is never unloaded) and sleep when there is nothing to do. A
//! host thread that waits works as well, so there is one worker fewer than processors; the first of them also looks
//! after work that nobody waits for.

use crate::state::gate;

/// Number of threads that may work at once: `CUDA_SOFT_THREADS`, else the processors.
fn threads() -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
    host::environment::threads().unwrap_or_else(processors)
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> bool {
    match std::thread::Builder::new().name(name.clone()).spawn(body) {
        Ok(_) => true,
        Err(error) => {
            host::log!("no thread {name}: {error}");
            false
        }
    }
}

/// Starts the pool; each thread runs `work`, told whether it is the one that looks after work that nobody waits for. A
/// thread that the system refuses is done without: threads that wait work themselves. False if there is none.
pub(super) fn start(work: fn(bool)) -> bool {
    start_with(threads().saturating_sub(1).max(1), |n, watchman| {
        spawn(format!("cuda-soft-{n}"), move || work(watchman))
    })
}

/// Starts so many threads; the first that there is looks after work that nobody waits for.
fn start_with(threads: usize, mut spawn: impl FnMut(usize, bool) -> bool) -> bool {
    let mut any = false;
    for n in 0..threads {
        any |= spawn(n, !any);
    }
    any
}

/// Starts the thread for host functions, which runs `work`; false if the system refuses it.
pub(super) fn start_host(work: fn()) -> bool {
    spawn("cuda-soft-host".into(), move || {
        gate::enter_host_functions();
        work();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thread_that_there_is_watches() {
        let mut watchmen = Vec::new();
        let any = start_with(4, |n, watchman| {
            watchmen.push(watchman);
            n != 0
        });
        assert!(any);
        // The first was refused.
        assert_eq!(watchmen, [true, true, false, false]);
        assert!(!start_with(2, |_, _| false));
    }
}
