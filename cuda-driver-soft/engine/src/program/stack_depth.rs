//! The local memory that a chain of calls needs.

use ptx::ir::{Body, Callee, FuncId, Module, Op};
use std::collections::HashMap;

/// Frames begin at multiples of this many bytes.
const FRAME_ALIGN: u64 = 16;

/// Returns the size in bytes of the frames of the deepest chain of calls from the first of `functions`, which are all
/// that it can reach. The size is a multiple of 8, as compilers report it. A recursive function counts once, because
/// its depth is known only when it runs.
pub(crate) fn deepest(module: &Module, functions: &[FuncId]) -> u64 {
    let Some(&entry) = functions.first() else {
        return 0;
    };
    let body = |id: FuncId| -> Option<&Body> { module.functions.get(id.0 as usize)?.body() };
    // The direct callees of a function, and the index in `functions` of the first that it may call indirectly.
    let callees = |id: FuncId| -> (Vec<FuncId>, usize) {
        let (mut found, mut any) = (Vec::new(), functions.len());
        for inst in body(id).iter().flat_map(|b| &b.insts) {
            let Op::Call { callee, .. } = &inst.op else {
                continue;
            };
            match callee {
                Callee::Direct(id) => found.push(*id),
                Callee::Indirect { targets: Some(targets) } => found.extend(targets),
                // Any function whose address is taken may be the target, and `functions` has them all.
                Callee::Indirect { targets: None } => any = 1,
            }
        }
        found.sort_unstable();
        found.dedup();
        (found, any)
    };
    // Depth first, without recursion, because a chain can be arbitrarily long. Functions on the current path have no
    // depth yet.
    let mut depths: HashMap<FuncId, Option<u64>> = HashMap::from([(entry, None)]);
    let mut path = vec![(entry, callees(entry), 0u64)];
    while let Some((id, (rest, any), below)) = path.last_mut() {
        let next = rest.pop().or_else(|| {
            *any += 1;
            functions.get(*any - 1).copied()
        });
        if let Some(next) = next {
            match depths.get(&next) {
                Some(known) => *below = (*below).max(known.unwrap_or(0)),
                None => {
                    depths.insert(next, None);
                    path.push((next, callees(next), 0));
                }
            }
            continue;
        }
        let (size, align) = body(*id).map_or((0, 0), |b| (b.frame_size, b.frame_align));
        let (mut depth, id) = (u64::from(size), *id);
        if *below > 0 {
            depth = depth.next_multiple_of(FRAME_ALIGN).saturating_add(*below);
        }
        path.pop();
        let Some((_, _, below)) = path.last_mut() else {
            return depth.next_multiple_of(8);
        };
        // Aligning this frame may move its base up.
        let depth = depth.saturating_add(u64::from(align).saturating_sub(FRAME_ALIGN));
        *below = (*below).max(depth);
        depths.insert(id, Some(depth));
    }
    0
}
