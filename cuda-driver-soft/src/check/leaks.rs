//! Records the memory and objects that calls create, and finds those that the program has not freed: leaks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::check::Finding;
use engine::memory::{Allocation, address_space};

/// An object that a call has created.
#[derive(Clone)]
pub(super) struct CreatedObject {
    pub(super) kind: &'static str,
    pub(super) handle: usize,
    /// The line of the program that created the object.
    pub(super) origin: Option<String>,
    /// Returns true until the object is destroyed.
    pub(super) is_live: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Allocations and objects that calls have created.
pub(super) struct Created {
    allocations: Vec<Allocation>,
    objects: Vec<CreatedObject>,
    /// The lengths of the two lists at which entries of freed memory and of destroyed objects are next removed.
    sweep_at: [usize; 2],
}

/// No entries are removed from a list that has fewer than this.
const FEW: usize = 1024;

impl Created {
    pub(super) const fn new() -> Self {
        Created {
            allocations: Vec::new(),
            objects: Vec::new(),
            sweep_at: [FEW; 2],
        }
    }

    pub(super) fn add(&mut self, allocation: &Allocation) {
        if self.allocations.len() >= self.sweep_at[0] {
            self.allocations.retain(is_live);
            self.sweep_at[0] = FEW.max(2 * self.allocations.len());
        }
        self.allocations.push(*allocation);
    }

    pub(super) fn add_object(&mut self, object: CreatedObject) {
        if self.objects.len() >= self.sweep_at[1] {
            self.objects.retain(|object| (object.is_live)());
            self.sweep_at[1] = FEW.max(2 * self.objects.len());
        }
        self.objects.push(object);
    }

    /// Returns a finding for each allocation and object that is live.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let memory = self.allocations.iter().filter(|created| is_live(created));
        let memory = memory.filter_map(|leaked| Finding::leak(leaked.base));
        let objects = self.objects.iter().filter(|object| (object.is_live)());
        let objects = objects.map(|o| Finding::leaked_object(o.kind, o.handle, o.origin.as_deref()));
        memory.chain(objects).collect()
    }
}

fn is_live(created: &Allocation) -> bool {
    let now = address_space().find(created.base);
    now.is_some_and(|now| now.id == created.id)
}

/// Returns the allocations and objects of the process.
pub(super) fn of_process() -> MutexGuard<'static, Created> {
    static CREATED: Mutex<Created> = Mutex::new(Created::new());
    CREATED.lock().unwrap_or_else(PoisonError::into_inner)
}
