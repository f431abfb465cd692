//! The control flow of a function: dominators, post-dominators and loops.

/// The control flow of a function. Numbers are those of basic blocks, unless a field says otherwise.
pub(crate) struct Flow {
    /// For each block, the reachable blocks that have it as a successor.
    pub(crate) predecessors: Vec<Vec<usize>>,
    /// The place of each block in [`Layout::order`](super::steps::Layout::order); `usize::MAX` if it is unreachable.
    pub(crate) place: Vec<usize>,
    /// The immediate dominator of each block. `None` for the first block, and for unreachable ones.
    pub(crate) dominator: Vec<Option<usize>>,
    /// The immediate post-dominator of each block: the first block after it that all its lanes reach, unless they
    /// fault, exit in a call, or stay in an endless loop. `None` if there is none before the end of the function, and
    /// for blocks from which no path leads to the end.
    pub(crate) post_dominator: Vec<Option<usize>>,
    /// The natural loops. An inner loop comes before the loops around it.
    pub(crate) loops: Vec<Loop>,
    /// The innermost loop of each block, as an index into [`loops`](Self::loops).
    pub(crate) loop_of: Vec<Option<usize>>,
}

/// A natural loop: its head dominates all its blocks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The only block at which the loop is entered.
    pub(crate) head: usize,
    /// The blocks, in order.
    pub(crate) blocks: Vec<usize>,
    /// The blocks that branch back to the head.
    pub(crate) latches: Vec<usize>,
    /// The edges that leave the loop: a block of the loop, and one outside.
    pub(crate) exits: Vec<(usize, usize)>,
    /// The innermost loop around this one, as an index into [`Flow::loops`].
    pub(crate) parent: Option<usize>,
}

impl Flow {
    /// Analyses blocks with these successors. `order` lists the reachable ones.
    pub(super) fn of(successors: &[Vec<usize>], order: &[usize]) -> Self {
        let count = successors.len();
        let mut place = vec![usize::MAX; count];
        for (at, block) in order.iter().enumerate() {
            place[*block] = at;
        }
        let mut predecessors = vec![Vec::new(); count];
        for block in order {
            for next in &successors[*block] {
                // If a block has several edges to the same block, they are added one after another.
                if predecessors[*next].last() != Some(block) {
                    predecessors[*next].push(*block);
                }
            }
        }
        let dominator = dominators(successors, &predecessors, 0);
        // The end of the function is one more node, from which the edges are followed backwards.
        let end = count;
        let mut backwards = predecessors.clone();
        backwards.push(order.iter().copied().filter(|b| successors[*b].is_empty()).collect());
        let mut forwards = successors.to_vec();
        for block in &backwards[end] {
            forwards[*block].push(end);
        }
        forwards.push(Vec::new());
        let mut post_dominator = dominators(&backwards, &forwards, end);
        post_dominator.truncate(count);
        for next in &mut post_dominator {
            *next = next.filter(|block| *block != end);
        }
        let mut flow = Flow {
            predecessors,
            place,
            dominator,
            post_dominator,
            loops: Vec::new(),
            loop_of: vec![None; count],
        };
        flow.find_loops(successors, order);
        flow
    }

    /// Returns true if all paths to `block` lead through `by`, which may be the same block.
    pub(crate) fn is_dominated(&self, block: usize, by: usize) -> bool {
        std::iter::successors(Some(block), |b| self.dominator[*b]).any(|b| b == by)
    }

    /// Returns true if `to` does not come after `from` in the order. Every cycle has such an edge, even if it is not a
    /// natural loop, so that machine code need only count backward jumps to leave endless loops.
    pub(crate) fn is_backward(&self, from: usize, to: usize) -> bool {
        self.place[to] <= self.place[from]
    }

    /// Returns the number of loops around a block.
    pub(crate) fn nesting(&self, block: usize) -> usize {
        std::iter::successors(self.loop_of[block], |l| self.loops[*l].parent).count()
    }

    fn find_loops(&mut self, successors: &[Vec<usize>], order: &[usize]) {
        let mut loops: Vec<Loop> = Vec::new();
        // Heads of inner loops come later in the order.
        for head in order.iter().rev() {
            let latches: Vec<usize> = self.predecessors[*head]
                .iter()
                .copied()
                .filter(|from| self.is_backward(*from, *head) && self.is_dominated(*from, *head))
                .collect();
            if latches.is_empty() {
                continue;
            }
            let mut blocks = vec![*head];
            let mut next = latches.clone();
            let mut inside = vec![false; successors.len()];
            inside[*head] = true;
            while let Some(block) = next.pop() {
                if !std::mem::replace(&mut inside[block], true) {
                    blocks.push(block);
                    next.extend(&self.predecessors[block]);
                }
            }
            blocks.sort_unstable_by_key(|block| self.place[*block]);
            let edges = blocks.iter().flat_map(|b| successors[*b].iter().map(|to| (*b, *to)));
            let exits = edges.filter(|(_, to)| !inside[*to]).collect();
            loops.push(Loop {
                head: *head,
                blocks,
                latches,
                exits,
                parent: None,
            });
        }
        loops.sort_by_key(|l| l.blocks.len());
        for (number, found) in loops.iter().enumerate() {
            for block in &found.blocks {
                self.loop_of[*block].get_or_insert(number);
            }
        }
        for number in 0..loops.len() {
            let head = loops[number].head;
            let outer = (number + 1..loops.len()).find(|l| loops[*l].blocks.contains(&head));
            loops[number].parent = outer;
        }
        self.loops = loops;
    }
}

/// Returns the immediate dominator of each node that is reachable from `entry` (Cooper, Harvey and Kennedy); `None` for
/// `entry` itself and for the other nodes.
fn dominators(successors: &[Vec<usize>], predecessors: &[Vec<usize>], entry: usize) -> Vec<Option<usize>> {
    const NEW: usize = usize::MAX;
    // Numbers in post-order.
    let mut number = vec![NEW; successors.len()];
    let mut entered = vec![false; successors.len()];
    let mut order = Vec::new();
    let mut path = vec![(entry, 0)];
    entered[entry] = true;
    while let Some((node, next)) = path.last_mut() {
        if let Some(to) = successors[*node].get(*next) {
            *next += 1;
            if !std::mem::replace(&mut entered[*to], true) {
                path.push((*to, 0));
            }
        } else {
            number[*node] = order.len();
            order.push(*node);
            path.pop();
        }
    }
    let mut dominator = vec![NEW; successors.len()];
    dominator[entry] = entry;
    let mut changed = true;
    while changed {
        changed = false;
        for node in order.iter().rev().filter(|n| **n != entry) {
            let mut best = NEW;
            for from in predecessors[*node].iter().filter(|p| dominator[**p] != NEW) {
                best = match best {
                    NEW => *from,
                    best => meet(&dominator, &number, best, *from),
                };
            }
            changed |= dominator[*node] != best;
            dominator[*node] = best;
        }
    }
    let known = |(node, dominator): (usize, usize)| (node != entry && dominator != NEW).then_some(dominator);
    dominator.into_iter().enumerate().map(known).collect()
}

/// Returns the nearest node that dominates both.
fn meet(dominator: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = dominator[a];
        }
        while number[b] < number[a] {
            b = dominator[b];
        }
    }
    a
}
