//! The special registers of PTX, such as `%tid.x`, by name.

use crate::hash::NumberMap;
use crate::ir::{Special, Type};
use crate::names::{Name, Names};

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpecialReg {
    /// The register; the first element of a vector.
    pub(crate) register: Special,
    pub(crate) ty: Type,
    /// True if the register has elements `.x` to `.w`.
    pub(crate) vector: bool,
    /// PTX version that introduced the register, times ten.
    pub(crate) ptx: u32,
    /// Lowest architecture that has the register; 0 for all.
    pub(crate) sm: u32,
}

/// Returns the special registers that can occur in a module, by name: those whose prefix is interned.
pub(crate) fn specials(names: &Names) -> NumberMap<Name, SpecialReg> {
    use Special::*;
    use Type::{Pred, U32, U64};
    let mut map = NumberMap::default();
    let mut add = |text: &str, register: Special, ty: Type, vector: bool, (ptx, sm): (u32, u32)| {
        if let Some(name) = names.find(text.as_bytes()) {
            let special = SpecialReg {
                register,
                ty,
                vector,
                ptx,
                sm,
            };
            map.insert(name, special);
        }
    };
    for (text, register, since) in [
        ("%tid", Tid(0), (10, 0)),
        ("%ntid", Ntid(0), (10, 0)),
        ("%ctaid", Ctaid(0), (10, 0)),
        ("%nctaid", Nctaid(0), (10, 0)),
        ("%clusterid", Clusterid(0), (78, 90)),
        ("%nclusterid", Nclusterid(0), (78, 90)),
        ("%cluster_ctaid", ClusterCtaid(0), (78, 90)),
        ("%cluster_nctaid", ClusterNctaid(0), (78, 90)),
    ] {
        add(text, register, U32, true, since);
    }
    for (text, register, ty, since) in [
        ("%laneid", Laneid, U32, (13, 0)),
        ("%warpid", Warpid, U32, (13, 0)),
        ("%nwarpid", Nwarpid, U32, (20, 20)),
        ("%smid", Smid, U32, (13, 0)),
        ("%nsmid", Nsmid, U32, (20, 20)),
        ("%gridid", Gridid, U32, (10, 0)),
        ("%cluster_ctarank", ClusterCtarank, U32, (78, 90)),
        ("%cluster_nctarank", ClusterNctarank, U32, (78, 90)),
        ("%is_explicit_cluster", IsExplicitCluster, Pred, (78, 90)),
        ("%lanemask_eq", LanemaskEq, U32, (20, 20)),
        ("%lanemask_le", LanemaskLe, U32, (20, 20)),
        ("%lanemask_lt", LanemaskLt, U32, (20, 20)),
        ("%lanemask_ge", LanemaskGe, U32, (20, 20)),
        ("%lanemask_gt", LanemaskGt, U32, (20, 20)),
        ("%clock", Clock, U32, (10, 0)),
        ("%clock_hi", ClockHi, U32, (50, 20)),
        ("%clock64", Clock64, U64, (20, 20)),
        ("%globaltimer", Globaltimer, U64, (31, 30)),
        ("%globaltimer_lo", GlobaltimerLo, U32, (31, 30)),
        ("%globaltimer_hi", GlobaltimerHi, U32, (31, 30)),
        ("%total_smem_size", TotalSmemSize, U32, (41, 20)),
        ("%dynamic_smem_size", DynamicSmemSize, U32, (41, 20)),
        ("%aggr_smem_size", AggrSmemSize, U32, (81, 90)),
        ("%reserved_smem_offset_begin", ReservedSmemOffset(0), U32, (76, 80)),
        ("%reserved_smem_offset_end", ReservedSmemOffset(1), U32, (76, 80)),
        ("%reserved_smem_offset_cap", ReservedSmemOffset(2), U32, (76, 80)),
        ("%reserved_smem_offset_0", ReservedSmemOffset(3), U32, (76, 80)),
        ("%reserved_smem_offset_1", ReservedSmemOffset(4), U32, (76, 80)),
        ("%current_graph_exec", CurrentGraphExec, U64, (80, 50)),
    ] {
        add(text, register, ty, false, since);
    }
    for i in 0..8 {
        add(
            &format!("%pm{i}"),
            Pm(i),
            U32,
            false,
            if i < 4 { (13, 0) } else { (30, 20) },
        );
        add(&format!("%pm{i}_64"), Pm64(i), U64, false, (40, 50));
    }
    for i in 0..32 {
        add(&format!("%envreg{i}"), Envreg(i), U32, false, (10, 0));
    }
    map
}

/// Returns the element `.x`, `.y` or `.z` of a vector register; `None` for `.w`, which is always 0.
pub(crate) fn element(register: Special, element: u8) -> Option<Special> {
    use Special::*;
    if element > 2 {
        return None;
    }
    Some(match register {
        Tid(_) => Tid(element),
        Ntid(_) => Ntid(element),
        Ctaid(_) => Ctaid(element),
        Nctaid(_) => Nctaid(element),
        Clusterid(_) => Clusterid(element),
        Nclusterid(_) => Nclusterid(element),
        ClusterCtaid(_) => ClusterCtaid(element),
        ClusterNctaid(_) => ClusterNctaid(element),
        other => other,
    })
}
