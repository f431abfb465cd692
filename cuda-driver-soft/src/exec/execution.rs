//! A launched kernel, driven by the host threads that call [`Execution::work`].

use super::fault::{Fault, FaultKind};
use super::kernel::Kernel;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A kernel with everything that a launch says.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Blocks of the grid: x, y, z. The caller has checked that none is zero and that the device takes them.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z; as for `grid`, at most 1024 together.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameter buffer: values at the offsets of [`Kernel::params`].
    pub params: Box<[u8]>,
    /// What most launches leave as it is.
    pub options: Options,
}

/// Settings of a launch.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Instructions of a warp that the launch may run, about; `None` for no limit.
    pub budget: Option<u64>,
}

/// What a call of [`Execution::work`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The execution has ended, by this call or before it.
    Finished,
    /// No block is left to take, but other threads still run some; one of them will see [`Finished`](Self::Finished).
    NothingToTake,
    /// The budget of the call is spent, and blocks are left.
    BudgetSpent,
}

/// A launch in progress.
#[derive(Debug)]
pub struct Execution {
    launch: Launch,
    blocks: u64,
    next: AtomicU64,
    done: AtomicU64,
    fault: Mutex<Option<Fault>>,
    finished: AtomicBool,
}

impl Launch {
    /// Makes the launch ready to be worked on; nothing runs yet.
    pub fn start(self) -> Arc<Execution> {
        let blocks = self.grid.iter().map(|n| u64::from(*n)).product();
        Arc::new(Execution {
            blocks,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            fault: Mutex::new(None),
            finished: AtomicBool::new(blocks == 0),
            launch: self,
        })
    }
}

impl Execution {
    /// Takes blocks and runs them until none is left to take, or until about `budget` instructions of a warp were run.
    /// Any number of threads may call this at once.
    pub fn work(&self, _budget: u64) -> Progress {
        if self.is_finished() {
            return Progress::Finished;
        }
        let _ = (&self.blocks, &self.next, &self.done);
        let kind = FaultKind::Unsupported {
            opcode: "any instruction".into(),
        };
        let fault = Fault {
            kind,
            kernel: self.launch.kernel.name().into(),
            line: 0,
            block: [0; 3],
            thread: [0; 3],
        };
        *self.fault.lock().unwrap_or_else(|p| p.into_inner()) = Some(fault);
        self.finished.store(true, Ordering::Release);
        Progress::Finished
    }

    /// All blocks have run, or a fault has ended the execution and no thread is at work on it any more.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// What ended the execution early; final once it is finished.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(|p| p.into_inner()).clone()
    }

    /// The launch.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }
}
