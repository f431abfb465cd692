//! The clusters of a launch that have not finished: those that have not started, and those that are parked until a
//! worker has time for them.
//!
//! Most clusters are a single block.

#![forbid(unsafe_code)]

use super::cluster::Cluster;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A worker takes at most one in this many of the clusters that may start, but at least one, so that enough are left
/// for the other workers.
const PART: u64 = 8;

/// The clusters of a launch that have not finished.
pub(crate) struct BlockQueue {
    /// Number of clusters in the launch.
    clusters: u64,
    /// Blocks of a cluster.
    cluster_blocks: u64,
    /// Instructions that a cluster runs before another one may start: the cluster may be waiting for that one.
    patience: u64,
    /// True if blocks see stores of other blocks, and may therefore wait for these blocks.
    sees_other_blocks: bool,
    waiting: Mutex<Waiting>,
    /// Number of threads that are working on the launch.
    workers: AtomicU64,
    /// Clusters that have finished or are cancelled.
    done: AtomicU64,
    finished: AtomicBool,
    /// Clusters from this number on need not run, because of a fault; `u64::MAX` if there is none.
    limit: AtomicU64,
}

/// Clusters that wait for a worker.
struct Waiting {
    /// The next cluster that has not started.
    next: u64,
    /// Clusters before `next` that were put back: the host was out of memory, or the worker that took them has ended or
    /// has parked a cluster, which may be waiting for them.
    returned: BTreeSet<u64>,
    /// Limit on `begun`.
    most_begun: u64,
    /// Clusters that workers have taken and not counted as finished, or that are parked. Some of them may not have
    /// started yet.
    begun: u64,
    parked: Parked,
    /// True if the log has reported that no more clusters can start.
    reported: bool,
}

/// Parked clusters. They continue in rounds, by their numbers, upwards and downwards in turn: blocks that wait for the
/// block before them, and blocks that wait for the block after them, all make progress within two rounds.
#[derive(Default)]
struct Parked {
    /// Clusters of this round, the next one to continue last.
    round: VecDeque<Box<Cluster>>,
    /// Clusters of the next round, in any order.
    later: VecDeque<Box<Cluster>>,
    /// True if the next round begins with the lowest number.
    upwards: bool,
}

impl Parked {
    fn is_empty(&self) -> bool {
        self.round.is_empty() && self.later.is_empty()
    }

    fn push(&mut self, cluster: Box<Cluster>) {
        self.later.push_back(cluster);
    }

    /// Returns the next cluster to continue.
    fn first_mut(&mut self) -> Option<&mut Cluster> {
        if self.round.is_empty() {
            std::mem::swap(&mut self.round, &mut self.later);
            let round = self.round.make_contiguous();
            round.sort_unstable_by_key(|cluster| cluster.number());
            if self.upwards {
                round.reverse();
            }
            self.upwards = !self.upwards;
        }
        self.round.back_mut().map(|cluster| &mut **cluster)
    }

    /// Removes the next cluster to continue.
    fn pop(&mut self) -> Option<Box<Cluster>> {
        self.first_mut()?;
        self.round.pop_back()
    }

    /// Removes the clusters that are not wanted, and returns them.
    fn remove_unwanted(&mut self, wanted: impl Fn(u64) -> bool) -> VecDeque<Box<Cluster>> {
        let mut unwanted = VecDeque::new();
        for clusters in [&mut self.round, &mut self.later] {
            let all = std::mem::take(clusters).into_iter();
            let (kept, others): (VecDeque<_>, VecDeque<_>) = all.partition(|cluster| wanted(cluster.number()));
            *clusters = kept;
            unwanted.extend(others);
        }
        unwanted
    }
}

impl Waiting {
    fn may_begin(&self, clusters: u64) -> bool {
        self.has_unbegun(clusters) && self.begun < self.most_begun
    }

    fn has_unbegun(&self, clusters: u64) -> bool {
        self.next < clusters || !self.returned.is_empty()
    }
}

/// A cluster taken from the queue.
pub(crate) enum Taken {
    /// A parked cluster.
    Parked(Box<Cluster>),
    /// The numbers of clusters to start, and true if no other cluster may be in progress.
    New(Range<u64>, bool),
}

impl BlockQueue {
    /// Returns a queue of `clusters` clusters of `cluster_blocks` blocks, of which at most `most_begun` clusters may be
    /// in progress at once.
    pub(crate) fn new(
        (clusters, cluster_blocks): (u64, u64),
        most_begun: u64,
        patience: u64,
        sees_other_blocks: bool,
    ) -> Self {
        BlockQueue {
            clusters,
            cluster_blocks,
            patience,
            sees_other_blocks,
            waiting: Mutex::new(Waiting {
                next: 0,
                returned: BTreeSet::new(),
                most_begun,
                begun: 0,
                parked: Parked::default(),
                reported: false,
            }),
            workers: AtomicU64::new(0),
            done: AtomicU64::new(0),
            finished: AtomicBool::new(clusters == 0),
            limit: AtomicU64::new(u64::MAX),
        }
    }

    /// Ends a launch that cannot run.
    pub(super) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Returns true if all clusters have finished or are cancelled.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Returns the number of clusters that have finished or are cancelled, and the number of all clusters.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Acquire), self.clusters)
    }

    /// Counts a thread as a worker until the guard is dropped.
    pub(super) fn enter(&self) -> WorkerGuard<'_> {
        self.workers.fetch_add(1, Ordering::SeqCst);
        WorkerGuard(&self.workers)
    }

    /// Returns true if there is a cluster to take.
    pub(super) fn has_work(&self) -> bool {
        let waiting = self.lock();
        !waiting.parked.is_empty() || waiting.may_begin(self.clusters)
    }

    /// Takes the next cluster to run: the next parked one, or a new one if the parked one has run for so long that it
    /// may be waiting for another. If none is parked and blocks cannot see each other, takes up to `most` new
    /// clusters. First counts `finished` of the clusters in progress as finished. `kernel` is the kernel's name, for
    /// the log.
    pub(crate) fn take(&self, kernel: &str, most: u64, finished: u64) -> Option<Taken> {
        let mut waiting = self.lock();
        if finished > 0 {
            waiting.begun -= finished;
            self.count_done(finished);
        }
        let may_begin = waiting.may_begin(self.clusters);
        let patience = self.patience;
        let another = match waiting.parked.first_mut() {
            Some(first) => may_begin && first.gives_way(patience),
            None => may_begin,
        };
        if !another {
            let first = waiting.parked.pop()?;
            let waits = self.sees_other_blocks && first.steps() >= patience;
            let report = waits && !may_begin && waiting.has_unbegun(self.clusters) && !waiting.reported;
            waiting.reported |= report;
            let begun = waiting.begun;
            drop(waiting);
            if report {
                host::log!(
                    "`{kernel}`: only {} of {} blocks are in progress, because of the memory they need or the device's \
                    limit on resident blocks. If they wait for the others, the kernel does not end; launch fewer \
                    blocks",
                    begun * self.cluster_blocks,
                    self.clusters * self.cluster_blocks
                );
            }
            return Some(Taken::Parked(first));
        }
        let numbers = match waiting.returned.pop_first() {
            Some(number) => number..number + 1,
            None => {
                let free = (waiting.most_begun - waiting.begun).min(self.clusters - waiting.next);
                let several = !self.sees_other_blocks && waiting.parked.is_empty();
                let count = if several { most.min(free / PART).max(1) } else { 1 };
                waiting.next += count;
                waiting.next - count..waiting.next
            }
        };
        waiting.begun += numbers.end - numbers.start;
        Some(Taken::New(numbers, waiting.most_begun == 1))
    }

    /// Puts back clusters that a worker has taken and not started, and counts `finished` of the clusters in progress as
    /// finished.
    pub(crate) fn settle(&self, unstarted: Range<u64>, finished: u64) {
        if unstarted.is_empty() && finished == 0 {
            return;
        }
        let mut waiting = self.lock();
        waiting.begun -= finished + (unstarted.end - unstarted.start);
        let mut done = finished;
        for number in unstarted {
            if self.wants(number) {
                waiting.returned.insert(number);
            } else {
                done += 1;
            }
        }
        drop(waiting);
        self.count_done(done);
    }

    /// Puts back a cluster that could not start because the host is out of memory. From now on, at most as many
    /// clusters are in progress as now, or one. Returns false, and changes nothing, if waiting cannot help: the cluster
    /// was `alone`, and no other worker holds memory.
    pub(crate) fn put_back(&self, number: u64, alone: bool) -> bool {
        let mut waiting = self.lock();
        if alone && self.workers.load(Ordering::SeqCst) <= 1 {
            return false;
        }
        waiting.begun -= 1;
        waiting.most_begun = waiting.begun.max(1);
        if self.wants(number) {
            waiting.returned.insert(number);
            return true;
        }
        drop(waiting);
        self.count_done(1);
        true
    }

    /// Parks a cluster that has used its share, or drops it after a fault in an earlier cluster. After a fault in a
    /// later cluster, it still continues, because a fault of its own would be the one to report. But if it sees other
    /// blocks, it continues only briefly: it may be waiting for a block that never runs.
    pub(super) fn park(&self, cluster: Box<Cluster>) {
        let old = self.sees_other_blocks && cluster.steps() >= self.patience;
        let faulted = self.limit.load(Ordering::Relaxed) != u64::MAX;
        if faulted && (old || !self.wants(cluster.number())) {
            self.count_finished();
        } else {
            self.lock().parked.push(cluster);
        }
    }

    /// Returns true if this cluster still has to run.
    pub(super) fn wants(&self, number: u64) -> bool {
        number < self.limit.load(Ordering::Relaxed)
    }

    /// Counts a cluster in progress as finished.
    pub(crate) fn count_finished(&self) {
        self.lock().begun -= 1;
        self.count_done(1);
    }

    /// Cancels the clusters from `number` on that have not started or are parked. The cluster `number` was taken from
    /// the queue, so `number` is below `next`, and all clusters from `next` on are cancelled.
    pub(crate) fn cancel_from(&self, number: u64) {
        self.limit.fetch_min(number, Ordering::Relaxed);
        let mut waiting = self.lock();
        let unbegun = self.clusters - std::mem::replace(&mut waiting.next, self.clusters);
        let returned = waiting.returned.split_off(&number).len() as u64;
        let unwanted = waiting.parked.remove_unwanted(|number| self.wants(number));
        waiting.begun -= unwanted.len() as u64;
        drop(waiting);
        self.count_done(unbegun + returned + unwanted.len() as u64);
    }

    fn count_done(&self, clusters: u64) {
        if self.done.fetch_add(clusters, Ordering::AcqRel) + clusters >= self.clusters {
            self.finished.store(true, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Counts a thread as a worker until it is dropped.
pub(super) struct WorkerGuard<'q>(&'q AtomicU64);

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
