//! Local memory of a thread: the frames of the functions that it is in.

use ptx::ir::{Body, Callee, FuncId, Module, Op};
use std::collections::HashMap;

/// Frames begin at multiples of this many bytes.
const FRAME_ALIGN: u64 = 16;

/// Bytes that the frames of the deepest chain of calls from the first of `functions` take. `functions` are all that it
/// may reach. A multiple of 8, as compilers say it. A function that calls itself, directly or not, counts once: how deep that goes shows when it runs.
pub(crate) fn deepest(module: &Module, functions: &[FuncId]) -> u64 {
    let Some(&entry) = functions.first() else {
        return 0;
    };
    let body = |id: FuncId| -> Option<&Body> { module.functions.get(id.0 as usize)?.body() };
    // Functions that one calls, and where in `functions` those begin that it may call besides.
    let callees = |id: FuncId| -> (Vec<FuncId>, usize) {
        let (mut found, mut any) = (Vec::new(), functions.len());
        for inst in body(id).iter().flat_map(|b| &b.insts) {
            let Op::Call { callee, .. } = &inst.op else {
                continue;
            };
            match callee {
                Callee::Direct(id) => found.push(*id),
                Callee::Indirect {
                    targets: Some(targets),
                } => found.extend(targets),
                // Any function whose address is taken may be meant, and those are in the list.
                Callee::Indirect { targets: None } => any = 1,
            }
        }
        found.sort_unstable();
        found.dedup();
        (found, any)
    };
    // Depth first, without recursion: chains may be as long as the module likes. A function on the path to where the
    // search is has no depth yet.
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
        // The base of this frame may have to be moved up.
        let depth = depth.saturating_add(u64::from(align).saturating_sub(FRAME_ALIGN));
        *below = (*below).max(depth);
        depths.insert(id, Some(depth));
    }
    0
}
