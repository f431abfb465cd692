//! The order of work within a context: what a new node of a stream has to wait for.
//!
//! Each stream is a lane of its own. The legacy stream waits for all blocking streams, and they for it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::work::{NodeId, Work};
use super::workers::graph;

/// One sequence of work in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// The stream that NULL names in the plain functions.
    Legacy,
    /// The stream that NULL names in the `_ptds` and `_ptsz` functions: one for each thread.
    PerThread(u64),
    /// A created stream, by its handle.
    Stream(usize),
}

impl Lane {
    /// The calling thread's own stream.
    pub(crate) fn of_this_thread() -> Lane {
        thread_local!(static ID: Cell<u64> = const { Cell::new(0) });
        static LAST: AtomicU64 = AtomicU64::new(0);
        if ID.get() == 0 {
            ID.set(LAST.fetch_add(1, Relaxed) + 1);
        }
        Lane::PerThread(ID.get())
    }
}

#[derive(Clone, Copy)]
struct Tail {
    node: NodeId,
    /// It and the legacy stream wait for each other.
    blocking: bool,
}

/// The last node of each lane.
#[derive(Default)]
pub(crate) struct Lanes {
    legacy: NodeId,
    tails: HashMap<Lane, Tail>,
    /// What all that comes waits for; 0 for nothing.
    gate: NodeId,
    /// Last nodes of destroyed streams.
    orphans: Vec<Tail>,
    /// At this many lanes the idle ones are forgotten.
    sweep_at: usize,
}

/// Lanes that are kept whether or not they are idle.
const FEW: usize = 64;

impl Lanes {
    /// Adds a stream that does not synchronise with the legacy stream.
    pub(crate) fn add_non_blocking(&mut self, lane: Lane) {
        self.tails.insert(
            lane,
            Tail {
                node: 0,
                blocking: false,
            },
        );
    }

    /// Forgets a destroyed stream; its work goes on.
    pub(crate) fn remove(&mut self, lane: Lane) {
        if let Some(tail) = self.tails.remove(&lane) {
            self.orphans.retain(|o| !graph().is_done(o.node));
            self.orphans.push(tail);
        }
    }

    /// Puts work at the end of a lane, also after `after`. `cost` is a guess of its duration in nanoseconds.
    pub(crate) fn submit(&mut self, lane: Lane, after: &[NodeId], work: Work, cost: u64) -> NodeId {
        let mut before = self.tails(lane);
        before.extend_from_slice(after);
        if self.gate != 0 {
            before.push(self.gate);
        }
        if let Lane::Legacy = lane {
            self.legacy = graph().submit(&before, work, cost);
            return self.legacy;
        }
        self.sweep();
        let tail = self.tails.entry(lane).or_insert(Tail {
            node: 0,
            blocking: true,
        });
        if tail.blocking && self.legacy != 0 {
            before.push(self.legacy);
        }
        tail.node = graph().submit(&before, work, cost);
        tail.node
    }

    /// Makes all work that comes wait for a node.
    pub(crate) fn hold_until(&mut self, node: NodeId) {
        let before = [self.gate, node];
        self.gate = graph().submit(&before, Work::Join, 0);
    }

    /// Forgets idle lanes when there have come to be many: threads end without telling. What is not blocking is kept, since
    /// it would be taken for blocking when it comes back.
    fn sweep(&mut self) {
        if self.tails.len() < self.sweep_at.max(FEW) {
            return;
        }
        self.tails
            .retain(|_, tail| !tail.blocking || !graph().is_done(tail.node));
        self.sweep_at = 2 * self.tails.len();
    }

    /// What must be done for a lane to be idle: for the legacy stream, the blocking streams too.
    pub(crate) fn tails(&self, lane: Lane) -> Vec<NodeId> {
        match lane {
            Lane::Legacy => {
                let blocking = self
                    .tails
                    .values()
                    .chain(&self.orphans)
                    .filter(|t| t.blocking && t.node != 0);
                blocking
                    .map(|t| t.node)
                    .chain((self.legacy != 0).then_some(self.legacy))
                    .collect()
            }
            _ => self
                .tails
                .get(&lane)
                .filter(|t| t.node != 0)
                .map(|t| t.node)
                .into_iter()
                .collect(),
        }
    }

    /// The last nodes of all lanes.
    pub(crate) fn all_tails(&self) -> Vec<NodeId> {
        let all = self
            .tails
            .values()
            .chain(&self.orphans)
            .map(|t| t.node)
            .chain([self.legacy]);
        all.filter(|&node| node != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_lanes_of_threads_that_are_gone_are_forgotten() {
        let mut lanes = Lanes::default();
        lanes.add_non_blocking(Lane::Stream(1));
        for thread in 0..10_000 {
            let node = lanes.submit(Lane::PerThread(thread), &[], Work::Join, 0);
            graph().wait(node);
        }
        assert!(lanes.tails.len() <= 2 * FEW, "{}", lanes.tails.len());
        assert!(
            lanes
                .tails
                .get(&Lane::Stream(1))
                .is_some_and(|t| !t.blocking)
        );
    }
}
