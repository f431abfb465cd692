//! The worker threads of the process, and the thread for host functions.
//!
//! The workers start with the first work, never end (the library is never unloaded) and sleep when there is nothing to
//! do. A host thread that waits also works, so there is one worker fewer than `CUDA_SOFT_THREADS` (default: the number
//! of processors), but at least one. The first worker is the watcher: it also takes small work that no other thread has
//! taken.

use crate::state::{gate, settings};

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> bool {
    match std::thread::Builder::new().name(name.clone()).spawn(body) {
        Ok(_) => true,
        Err(error) => {
            host::log!("cannot start thread `{name}`: {error}");
            false
        }
    }
}

/// Starts the workers; each runs `work`, with true for the watcher. If the system refuses some threads, the others are
/// enough, because threads that wait also work. Returns false if the system refuses all of them.
pub(super) fn start(work: fn(bool)) -> bool {
    start_with(settings::threads().saturating_sub(1).max(1), |n, is_watcher| {
        spawn(format!("cuda-soft-{n}"), move || work(is_watcher))
    })
}

/// Starts `threads` threads; the first that starts is the watcher.
fn start_with(threads: usize, mut spawn: impl FnMut(usize, bool) -> bool) -> bool {
    let mut any = false;
    for n in 0..threads {
        any |= spawn(n, !any);
    }
    any
}

/// Starts the thread for host functions, which runs `work`; returns false if the system refuses it.
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
    fn the_first_thread_that_starts_is_the_watcher() {
        let mut watchers = Vec::new();
        let any = start_with(4, |n, is_watcher| {
            watchers.push(is_watcher);
            n != 0
        });
        assert!(any);
        // The system refused the first one.
        assert_eq!(watchers, [true, true, false, false]);
        assert!(!start_with(2, |_, _| false));
    }
}
