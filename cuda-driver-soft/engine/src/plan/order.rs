//! Orders basic blocks: reverse post-order in which every loop is contiguous and precedes the code after it.
//!
//! The scheduler first runs the lanes at the block that is earliest in the order. So lanes that have left a loop wait
//! after it for the lanes that are still inside, and lanes that took different sides of a branch meet where the sides
//! join.

/// Limit on the nesting of loops. Inside loops nested deeper, inner loops need not be contiguous.
const MAX_NESTING: u32 = 64;

/// Returns a weak topological order (Bourdoncle) of the blocks that are reachable from block 0. The last of a block's
/// `successors` is the one that should come next, if possible.
pub(super) fn order(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut out = Vec::with_capacity(successors.len());
    // The current region of each block. Only edges inside a region count.
    let mut region_of = vec![0u32; successors.len()];
    let mut regions = 1;
    let mut tasks = vec![Task::Region {
        roots: vec![0],
        region: 0,
        nesting: 0,
    }];
    while let Some(task) = tasks.pop() {
        let (roots, region, nesting) = match task {
            Task::Emit(block) => {
                out.push(block);
                continue;
            }
            Task::Region { roots, region, nesting } => (roots, region, nesting),
        };
        // Components come in reverse topological order, so that the one to emit first ends up on top of the stack.
        for component in components(successors, &roots, &region_of, region) {
            let is_loop = component.len() > 1;
            if !is_loop || nesting >= MAX_NESTING {
                tasks.extend(component.iter().rev().map(|block| Task::Emit(*block)));
                continue;
            }
            let head = component[0];
            let inner = regions;
            regions += 1;
            for block in &component[1..] {
                region_of[*block] = inner;
            }
            // The head is removed from the region, so that the rest of the loop has no edge back to it.
            region_of[head] = u32::MAX;
            let mut roots = successors[head].clone();
            roots.extend(&component[1..]);
            tasks.push(Task::Region {
                roots,
                region: inner,
                nesting: nesting + 1,
            });
            tasks.push(Task::Emit(head));
        }
    }
    out
}

enum Task {
    Emit(usize),
    Region {
        roots: Vec<usize>,
        region: u32,
        nesting: u32,
    },
}

/// Returns the strongly connected components of a region (Tarjan, without recursion) in reverse topological order. The
/// first block of a component is the one that was reached first.
fn components(successors: &[Vec<usize>], roots: &[usize], region_of: &[u32], region: u32) -> Vec<Vec<usize>> {
    const NEW: u32 = u32::MAX;
    let mut number = std::collections::HashMap::new();
    let mut low: Vec<u32> = Vec::new();
    let mut on_stack: Vec<bool> = Vec::new();
    let mut stack: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for root in roots {
        if region_of[*root] != region || number.contains_key(root) {
            continue;
        }
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut enter = Some(*root);
        loop {
            if let Some(block) = enter.take() {
                number.insert(block, low.len() as u32);
                low.push(low.len() as u32);
                on_stack.push(true);
                stack.push(block);
                path.push((block, 0));
            }
            let Some((block, next)) = path.last_mut() else {
                break;
            };
            let (block, me) = (*block, number[&*block] as usize);
            if let Some(to) = successors[block].get(*next) {
                *next += 1;
                if region_of[*to] != region {
                    continue;
                }
                match number.get(to).copied().unwrap_or(NEW) {
                    NEW => enter = Some(*to),
                    n if on_stack[n as usize] => low[me] = low[me].min(n),
                    _ => {}
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                let parent = number[parent] as usize;
                low[parent] = low[parent].min(low[me]);
            }
            if low[me] as usize == me {
                let start = stack.iter().rposition(|b| *b == block).unwrap_or(0);
                let component = stack.split_off(start);
                for member in &component {
                    on_stack[number[member] as usize] = false;
                }
                found.push(component);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn sides_of_a_branch_come_before_the_join() {
        //   0 → 1, 2;  1 → 3;  2 → 3
        assert_eq!(order(&[vec![2, 1], vec![3], vec![3], vec![]]), [0, 1, 2, 3]);
    }

    #[test]
    fn a_loop_is_contiguous_before_its_exit() {
        // 0 → 1 (head) → 2 or 5 (exit); 2 → 3 or 4; 3 → 1; 4 → 5 (break) or 1
        let order = order(&[vec![1], vec![5, 2], vec![4, 3], vec![1], vec![5, 1], vec![]]);
        assert_eq!(order.last(), Some(&5));
        assert_eq!(&order[..2], [0, 1]);
    }

    #[test]
    fn inner_loops_are_contiguous_in_outer_loops() {
        // outer head 1, inner head 2 with body 3, inner exit 4 back to 1, outer exit 5
        let order = order(&[vec![1], vec![5, 2], vec![4, 3], vec![2], vec![1], vec![]]);
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn irreducible_loops_and_self_loops_terminate() {
        let order = order(&[vec![2, 1], vec![2], vec![1, 3], vec![3, 4], vec![]]);
        assert_eq!(order.len(), 5);
        assert_eq!(&order[3..], [3, 4]);
    }

    #[test]
    fn deep_nesting_does_not_recurse() {
        let n = 20_000;
        let chain: Vec<Vec<usize>> = (0..n)
            .map(|i| if i + 1 < n { vec![0, i + 1] } else { vec![0] })
            .collect();
        assert_eq!(order(&chain).len(), n);
    }
}
