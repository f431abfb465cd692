//! The order that streams, events, graphs and the host define between tasks. The check for races compares the memory
//! of tasks that are not ordered.
//!
//! Tasks are numbered along chains: a task continues the chain of one that it waits for, so there are about as many
//! chains as streams. The place of a task gives, for each chain, the number of the last task in the chain that it is
//! ordered after. All threads of the host count as ordered among themselves. From its submission on, a host function and
//! the tasks before it count as tasks that the host has waited for, because the function may tell the host that they are
//! done. The place of work after conditions and conditional nodes is incomplete, and work in conditional nodes has no
//! place, because the order is not known when the work is submitted.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::queue::work::{TaskId, Work};

/// For each chain, the number of its last task that is ordered before a task or an access.
type Reach = HashMap<u32, u64>;

/// A task or an access by the host: its chain, and its number there.
pub(crate) type Moment = (u32, u64);

/// The place of a task in the order.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) moment: Moment,
    /// A number that increases with each submission.
    pub(crate) serial: u64,
    /// The tasks that this task waits for, apart from those that the host had waited for.
    before: Arc<Reach>,
    /// The tasks that the host had waited for when it submitted this task.
    host: Arc<Reach>,
}

impl Place {
    /// Returns true if a moment is ordered before this place.
    pub(crate) fn is_after(&self, moment: Moment) -> bool {
        covers(&self.before, moment) || covers(&self.host, moment)
    }
}

fn covers(reach: &Reach, (chain, number): Moment) -> bool {
    reach.get(&chain).is_some_and(|last| number <= *last)
}

fn add(reach: &mut Reach, (chain, number): Moment) {
    let last = reach.entry(chain).or_default();
    *last = number.max(*last);
}

/// The place of a task, as far as it is known.
struct Known {
    place: Place,
    /// False if the task may be ordered after tasks that are not in the place.
    whole: bool,
    /// True once the task is done.
    done: bool,
}

/// The order of all tasks that are not done or that the host has not waited for.
#[derive(Default)]
struct Order {
    /// The tasks that the host has waited for.
    host: Arc<Reach>,
    /// The last number of each chain.
    chains: Reach,
    tasks: HashMap<TaskId, Known>,
    /// The last serial number.
    serial: u64,
}

static ON: AtomicBool = AtomicBool::new(false);
static SEVERAL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The task that the thread runs.
    static CURRENT: Cell<TaskId> = const { Cell::new(0) };
    /// True while the thread runs a [`Work::Then`], which submits the work that follows.
    static DECIDES: Cell<bool> = const { Cell::new(false) };
}

fn order() -> MutexGuard<'static, Order> {
    static ORDER: LazyLock<Mutex<Order>> = LazyLock::new(Mutex::default);
    ORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to record the order of tasks if `is_wanted` returns true, else stops. Returns true if the order is recorded.
pub(crate) fn note_order(is_wanted: fn() -> bool) -> bool {
    if ON.load(Relaxed) != is_wanted() {
        // Called again under the lock: another thread may have begun a check in the meantime.
        let mut order = order();
        let wanted = is_wanted();
        if ON.swap(wanted, Relaxed) != wanted {
            *order = Order::default();
        }
    }
    ON.load(Relaxed)
}

/// Returns true if the order of tasks is recorded.
#[inline]
pub(super) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Records that the process may have work outside the legacy stream.
pub(crate) fn note_several() {
    SEVERAL.store(true, Relaxed);
}

/// Returns true if the process may have work that is not ordered.
pub(crate) fn are_several() -> bool {
    SEVERAL.load(Relaxed)
}

/// Records a task that waits for others. Tasks in conditional nodes are not recorded: no recorded task waits for
/// them, so their records would never be removed, and a loop may submit any number of them.
pub(super) fn submitted(id: TaskId, after: &[TaskId], work: &Work) {
    if DECIDES.get() {
        return;
    }
    let unknown = matches!(work, Work::Until(_) | Work::Then(_));
    let mut order = order();
    let partial = |id| order.tasks.get(id).is_some_and(|known| !known.whole);
    let whole = !unknown && !after.iter().any(partial);
    let place = order.place(after);
    if matches!(work, Work::Host(_)) {
        order.reach(std::slice::from_ref(&place));
    }
    let done = false;
    order.tasks.insert(id, Known { place, whole, done });
}

/// Records that a task is done.
pub(super) fn ended(id: TaskId) {
    let mut order = order();
    let Order { host, tasks, .. } = &mut *order;
    if let Some(known) = tasks.get_mut(&id) {
        known.done = true;
        if covers(host, known.place.moment) {
            tasks.remove(&id);
        }
    }
}

/// Records that the host has waited for tasks.
pub(super) fn waited(ids: &[TaskId]) {
    let mut order = order();
    let places: Vec<Place> = ids
        .iter()
        .filter_map(|id| Some(order.tasks.remove(id)?.place))
        .collect();
    order.reach(&places);
}

/// Returns true if a task that is done must be kept, because the host is not yet ordered after it.
pub(super) fn is_open(id: TaskId) -> bool {
    is_on() && order().tasks.contains_key(&id)
}

/// Records an access by the host on the calling thread, and returns its place; `None` if the order is not recorded.
pub(crate) fn by_host() -> Option<Place> {
    if !is_on() {
        return None;
    }
    let mut order = order();
    let place = order.place(&[]);
    order.reach(std::slice::from_ref(&place));
    Some(place)
}

/// Runs a function as a part of a task; `decides` is true for the function of a [`Work::Then`].
pub(super) fn run<R>(id: TaskId, decides: bool, run: impl FnOnce() -> R) -> R {
    if !is_on() {
        return run();
    }
    /// Restores the state of the thread, also after a panic.
    struct Restored(TaskId, bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            CURRENT.set(self.0);
            DECIDES.set(self.1);
        }
    }
    let _restored = Restored(CURRENT.replace(id), DECIDES.replace(decides));
    run()
}

/// Returns the place of the task that the calling thread runs. Returns `None` if the place is unknown or only partly
/// known, or if the order is not recorded.
pub(crate) fn current() -> Option<Place> {
    if !is_on() {
        return None;
    }
    let order = order();
    let known = order.tasks.get(&CURRENT.get()).filter(|known| known.whole)?;
    Some(known.place.clone())
}

/// Returns true if a moment needs no more comparisons: all later work, and all other tasks that the host has not waited
/// for, are ordered after it.
pub(crate) fn is_past(moment: Moment) -> bool {
    let order = order();
    covers(&order.host, moment)
        && order
            .tasks
            .values()
            .all(|known| known.place.moment == moment || known.place.is_after(moment))
}

impl Order {
    /// Returns the place of a new task that waits for others.
    fn place(&mut self, after: &[TaskId]) -> Place {
        let mut before = Reach::new();
        let mut chain = None;
        for id in after {
            let Some(Known { place, .. }) = self.tasks.get(id) else {
                continue;
            };
            for (&chain, &number) in &*place.before {
                if !covers(&self.host, (chain, number)) {
                    add(&mut before, (chain, number));
                }
            }
            add(&mut before, place.moment);
            if self.chains.get(&place.moment.0) == Some(&place.moment.1) {
                chain = Some(place.moment.0);
            }
        }
        let ended = || {
            let mut ended = self
                .chains
                .iter()
                .filter(|(chain, last)| covers(&self.host, (**chain, **last)));
            ended.next().map(|(chain, _)| *chain)
        };
        let chain = chain.or_else(ended).unwrap_or(self.chains.len() as u32);
        let number = self.chains.entry(chain).or_default();
        *number += 1;
        self.serial += 1;
        Place {
            moment: (chain, *number),
            serial: self.serial,
            before: Arc::new(before),
            host: self.host.clone(),
        }
    }

    /// Orders these places before all that the host does from now on.
    fn reach(&mut self, places: &[Place]) {
        if places.is_empty() {
            return;
        }
        let host = Arc::make_mut(&mut self.host);
        for place in places {
            place
                .before
                .iter()
                .for_each(|(&chain, &number)| add(host, (chain, number)));
            add(host, place.moment);
        }
        let host = &self.host;
        // A task that is not done needs its place: a host function counts as waited for when it is submitted.
        self.tasks
            .retain(|_, known| !known.done || !covers(host, known.place.moment));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_conditional_nodes_is_not_recorded() {
        // No scheduler gives these numbers to tasks.
        const FIRST: TaskId = TaskId::MAX - 1;
        const SECOND: TaskId = TaskId::MAX;
        let is_recorded = |id| order().tasks.contains_key(&id);
        submitted(FIRST, &[], &Work::Join);
        DECIDES.set(true);
        submitted(SECOND, &[], &Work::Join);
        DECIDES.set(false);
        assert!(is_recorded(FIRST) && !is_recorded(SECOND));
        waited(&[FIRST]);
        assert!(!is_recorded(FIRST));
    }
}
