//! Splits an opcode into its modifiers and converts them to types of the IR.

use crate::ir::{
    AtomOp, BoolOp, Compare, FloatMods, FloatTest, Geometry, MmioOrder, Order, Part, Precision, PrmtMode, Rounding,
    Scope, ShflMode, Space, Type, VoteMode,
};

use super::classes::CLASSES;

/// The modifiers of one opcode.
#[derive(Debug)]
pub(crate) struct Mods<'a> {
    all: &'a [&'a str],
    types: Vec<Type>,
}

/// The types that modifiers name.
const TYPES: &[(&str, Type)] = &[
    (".pred", Type::Pred),
    (".b8", Type::B8),
    (".b16", Type::B16),
    (".b32", Type::B32),
    (".b64", Type::B64),
    (".b128", Type::B128),
    (".u8", Type::U8),
    (".u16", Type::U16),
    (".u32", Type::U32),
    (".u64", Type::U64),
    (".s8", Type::S8),
    (".s16", Type::S16),
    (".s32", Type::S32),
    (".s64", Type::S64),
    (".f16", Type::F16),
    (".f16x2", Type::F16x2),
    (".f32", Type::F32),
    (".f64", Type::F64),
    (".bf16", Type::BF16),
    (".bf16x2", Type::BF16x2),
    (".tf32", Type::TF32),
    (".u16x2", Type::U16x2),
    (".s16x2", Type::S16x2),
    (".e4m3", Type::E4M3),
    (".e5m2", Type::E5M2),
    (".e4m3x2", Type::E4M3x2),
    (".e5m2x2", Type::E5M2x2),
];

/// Returns the type that a modifier such as `.u32` names.
pub(super) fn type_of(modifier: &str) -> Option<Type> {
    TYPES.iter().find(|(name, _)| *name == modifier).map(|(_, ty)| *ty)
}

/// Returns the type with a name such as `u32`.
pub(super) fn type_of_name(name: &str) -> Option<Type> {
    TYPES
        .iter()
        .find(|(text, _)| text.strip_prefix('.') == Some(name))
        .map(|(_, ty)| *ty)
}

/// Returns the type of the full product of two values of a type.
pub(super) fn wide(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        other => other,
    }
}

/// Splits `.global.L2::128B.v4` into `.global`, `.L2::128B` and `.v4`.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut start = 0;
    for (i, _) in text.match_indices('.').skip(1) {
        all.push(&text[start..i]);
        start = i;
    }
    if !text.is_empty() {
        all.push(&text[start..]);
    }
    all
}

/// Modifiers that PTX has. With the types and the members of the classes, they include all modifiers of the rows.
#[rustfmt::skip] // a long list of short words
const KNOWN: &[&str] = &[
    ".rn", ".rz", ".rm", ".rp", ".rna", ".rs", ".rni", ".rzi", ".rmi", ".rpi", ".sat", ".satfinite",
    ".ftz", ".noftz", ".relu", ".NaN", ".xorsign", ".abs", ".approx", ".full", ".oob", ".eq", ".ne",
    ".lt", ".le", ".gt", ".ge", ".lo", ".ls", ".hi", ".hs", ".equ", ".neu", ".ltu", ".leu", ".gtu",
    ".geu", ".num", ".nan", ".and", ".or", ".xor", ".wide", ".cc", ".pack", ".u2", ".s2", ".u4",
    ".s4", ".clamp", ".wrap", ".l", ".r", ".shiftamt", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr",
    ".rc16", ".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal", ".v2",
    ".v4", ".v8", ".weak", ".volatile", ".relaxed", ".acquire", ".release", ".acq_rel", ".sc",
    ".mmio", ".cta", ".cluster", ".gpu", ".sys", ".gl", ".global", ".shared", ".local", ".const",
    ".param", ".shared::cta", ".shared::cluster", ".param::entry", ".param::func", ".ca", ".cg",
    ".cs", ".lu", ".cv", ".wb", ".wt", ".nc", ".L1::evict_normal", ".L1::evict_unchanged",
    ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate", ".L2::evict_normal",
    ".L2::evict_last", ".L2::cache_hint", ".L2::64B", ".L2::128B", ".L2::256B", ".L1", ".L2",
    ".tensormap", ".to", ".proxy", ".alias", ".add", ".inc", ".dec", ".min", ".max", ".exch",
    ".cas", ".uni", ".idx", ".sync", ".arrive", ".red", ".popc", ".aligned", ".warp", ".up",
    ".down", ".bfly", ".all", ".any", ".ballot", ".mask", ".async", ".tensormap::generic",
    ".mbarrier_init", ".sync_restrict::shared::cluster", ".sync_restrict::shared::cta",
    ".L2::evict_first", ".commit_group", ".wait_group", ".wait_all", ".mbarrier", ".noinc", ".init", ".inval",
    ".expect_tx", ".complete_tx", ".arrive_drop", ".noComplete", ".test_wait", ".try_wait", ".parity", ".pending_count",
    ".wait", ".launch_dependents", ".m8n8k4", ".m16n8k4", ".m16n8k8", ".m16n8k16", ".m16n8k32", ".m8n8k16",
    ".m8n8k32", ".m16n8k64", ".m8n8k128", ".m16n8k128", ".m16n8k256", ".b1", ".m16n16k16", ".m8n32k16", ".m32n8k16", ".m16n16k8", ".row", ".col", ".m8n8", ".x1", ".x2", ".x4", ".trans",
    ".load", ".store", ".mma", ".a", ".b", ".c", ".d", ".po", ".shr7", ".shr15",
    ".async::generic", ".reduce", ".bulk", ".prefetch", ".bulk_group", ".read", ".mbarrier::complete_tx::bytes", ".multicast::cluster",
    ".fractional", ".range", ".cvt", ".L2::evict_unchanged",
    ".1d", ".2d", ".3d", ".a1d", ".a2d", ".cube", ".acube", ".base", ".level", ".grad", ".r", ".g", ".p", ".trap", ".zero",
    ".width", ".height", ".depth", ".texref", ".samplerref", ".surfref",
    ".fence", ".mma_async",
    ".tensor", ".tile", ".im2col", ".im2col_no_offs", ".replace", ".cp_fenceproxy", ".b1024", ".global_address", ".rank",
    ".box_dim", ".global_dim", ".global_stride", ".element_stride", ".elemtype", ".interleave_layout", ".swizzle_mode",
    ".fill_mode", ".sp", ".sp::ordered_metadata", ".st", ".ld_reduce", ".acc::f32",
];

/// Returns true if an instruction has this modifier or type.
pub(super) fn is_known(modifier: &str) -> bool {
    let in_a_class = || {
        let mut members = CLASSES.iter().map(|(_, members)| members);
        members.any(|members| members.split('|').any(|member| member == modifier))
    };
    type_of(modifier).is_some() || KNOWN.contains(&modifier) || in_a_class()
}

impl<'a> Mods<'a> {
    pub(super) fn new(all: &'a [&'a str]) -> Self {
        Mods {
            all,
            types: all.iter().filter_map(|m| type_of(m)).collect(),
        }
    }

    /// Returns true if the opcode has this modifier.
    pub(super) fn has(&self, modifier: &str) -> bool {
        self.all.contains(&modifier)
    }

    /// Returns the types in order.
    pub(super) fn types(&self) -> &[Type] {
        &self.types
    }

    /// Returns the type with this index, which the row guarantees to exist.
    pub(super) fn ty(&self, i: usize) -> Type {
        self.types.get(i).copied().unwrap_or(Type::B32)
    }

    /// Returns the types of less than a byte in order. [`Mods::types`] leaves them out, because no operand has such a
    /// type.
    pub(super) fn small_types(&self) -> Vec<Type> {
        let small = |modifier: &&str| match *modifier {
            ".s4" => Some(Type::S4),
            ".u4" => Some(Type::U4),
            ".s2" => Some(Type::S2),
            ".u2" => Some(Type::U2),
            ".b1" => Some(Type::B1),
            _ => None,
        };
        self.all.iter().filter_map(small).collect()
    }

    /// Returns the layouts of matrices, `.row` or `.col`, in order.
    pub(super) fn layouts(&self) -> impl Iterator<Item = &'a str> {
        let all = self.all.iter().copied();
        all.filter(|m| matches!(*m, ".row" | ".col"))
    }

    /// Returns the value of `meaning` for the first modifier that has one.
    pub(super) fn find<T>(&self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.all.iter().find_map(|modifier| meaning(modifier))
    }

    /// Returns the value of the first choice whose modifier the opcode has.
    fn pick<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        choices.iter().find(|(name, _)| self.has(name)).map(|(_, value)| *value)
    }

    pub(super) fn rounding(&self) -> Option<Rounding> {
        use Rounding::*;
        self.pick(&[
            (".rn", Rn),
            (".rz", Rz),
            (".rm", Rm),
            (".rp", Rp),
            (".rna", Rna),
            (".rs", Rs),
        ])
    }

    pub(super) fn int_rounding(&self) -> Option<Rounding> {
        self.pick(&[
            (".rni", Rounding::Rn),
            (".rzi", Rounding::Rz),
            (".rmi", Rounding::Rm),
            (".rpi", Rounding::Rp),
        ])
    }

    pub(super) fn part(&self) -> Part {
        self.pick(&[(".hi", Part::Hi), (".wide", Part::Wide)])
            .unwrap_or(Part::Lo)
    }

    pub(super) fn compare(&self) -> Compare {
        use Compare::*;
        self.pick(&[
            (".eq", Eq),
            (".ne", Ne),
            (".lt", Lt),
            (".le", Le),
            (".gt", Gt),
            (".ge", Ge),
            (".lo", Lo),
            (".ls", Ls),
            (".hi", Hi),
            (".hs", Hs),
            (".equ", Equ),
            (".neu", Neu),
            (".ltu", Ltu),
            (".leu", Leu),
            (".gtu", Gtu),
            (".geu", Geu),
            (".num", Num),
            (".nan", Nan),
        ])
        .unwrap_or(Eq)
    }

    pub(super) fn bool_op(&self) -> Option<BoolOp> {
        self.pick(&[(".and", BoolOp::And), (".or", BoolOp::Or), (".xor", BoolOp::Xor)])
    }

    pub(super) fn precision(&self) -> Precision {
        if self.has(".approx") {
            Precision::Approx
        } else if self.has(".full") {
            Precision::Full
        } else {
            Precision::Ieee(self.rounding().unwrap_or(Rounding::Rn))
        }
    }

    pub(super) fn scope(&self) -> Scope {
        self.pick(&[
            (".cta", Scope::Cta),
            (".cluster", Scope::Cluster),
            (".gpu", Scope::Gpu),
            (".sys", Scope::Sys),
        ])
        .unwrap_or(Scope::Gpu)
    }

    /// Returns the state space, or generic if there is none. `.param` gives the space of a kernel's parameters, which
    /// lowering replaces if the operand is a parameter of another function.
    pub(super) fn space(&self) -> Space {
        self.pick(&[
            (".global", Space::Global),
            (".shared", Space::Shared),
            (".shared::cta", Space::Shared),
            (".shared::cluster", Space::SharedCluster),
            (".local", Space::Local),
            (".const", Space::Const),
            (".param", Space::Param),
            (".param::entry", Space::Param),
            (".param::func", Space::Param),
        ])
        .unwrap_or(Space::Generic)
    }

    pub(super) fn vec(&self) -> u8 {
        self.pick(&[(".v2", 2), (".v4", 4), (".v8", 8)]).unwrap_or(1)
    }

    pub(super) fn atom_op(&self) -> AtomOp {
        use AtomOp::*;
        self.pick(&[
            (".and", And),
            (".or", Or),
            (".xor", Xor),
            (".add", Add),
            (".inc", Inc),
            (".dec", Dec),
            (".min", Min),
            (".max", Max),
            (".exch", Exch),
            (".cas", Cas),
        ])
        .unwrap_or(Add)
    }

    /// Returns the memory ordering.
    pub(super) fn order(&self) -> Order {
        // `.cv` (do not cache, and fetch again) has the same effect here as `.volatile`.
        if self.has(".volatile") || self.has(".cv") {
            Order::Volatile
        } else if self.has(".mmio") {
            Order::Mmio(if self.has(".acquire") {
                MmioOrder::Acquire
            } else if self.has(".release") {
                MmioOrder::Release
            } else {
                MmioOrder::Relaxed
            })
        } else if self.has(".relaxed") {
            Order::Relaxed(self.scope())
        } else if self.has(".acquire") {
            Order::Acquire(self.scope())
        } else if self.has(".release") {
            Order::Release(self.scope())
        } else if self.has(".acq_rel") {
            Order::AcqRel(self.scope())
        } else {
            Order::Weak
        }
    }

    pub(super) fn prmt_mode(&self) -> PrmtMode {
        use PrmtMode::*;
        self.pick(&[
            (".f4e", F4e),
            (".b4e", B4e),
            (".rc8", Rc8),
            (".ecl", Ecl),
            (".ecr", Ecr),
            (".rc16", Rc16),
        ])
        .unwrap_or(Index)
    }

    pub(super) fn float_test(&self) -> FloatTest {
        use FloatTest::*;
        self.pick(&[
            (".finite", Finite),
            (".infinite", Infinite),
            (".number", Number),
            (".notanumber", NotANumber),
            (".normal", Normal),
            (".subnormal", Subnormal),
        ])
        .unwrap_or(Number)
    }

    pub(super) fn shfl_mode(&self) -> ShflMode {
        use ShflMode::*;
        self.pick(&[(".up", Up), (".down", Down), (".bfly", Bfly)])
            .unwrap_or(Idx)
    }

    pub(super) fn vote_mode(&self) -> VoteMode {
        use VoteMode::*;
        self.pick(&[(".all", All), (".any", Any), (".uni", Uni)])
            .unwrap_or(Ballot)
    }

    /// Returns the modifiers of a floating-point operation of the last type.
    pub(super) fn float(&self) -> FloatMods {
        FloatMods {
            ty: self.types.last().copied().unwrap_or(Type::F32),
            rnd: self.rounding().unwrap_or(Rounding::Rn),
            ftz: self.has(".ftz"),
            sat: self.has(".sat"),
            relu: self.has(".relu"),
            oob: self.has(".oob"),
        }
    }

    /// Returns the shape of a matrix operation: m, n and k of `.m16n8k16`.
    pub(super) fn shape(&self) -> [u16; 3] {
        let numbers = |text: &str| -> Option<[u16; 3]> {
            let (m, rest) = text.strip_prefix(".m")?.split_once('n')?;
            let (n, k) = rest.split_once('k')?;
            Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
        };
        self.find(numbers).unwrap_or([8, 8, 4])
    }

    /// Returns the geometry of a texture or surface. The rows that use it require one.
    pub(super) fn geometry(&self) -> Geometry {
        self.pick(&[
            (".1d", Geometry::D1),
            (".2d", Geometry::D2),
            (".3d", Geometry::D3),
            (".a1d", Geometry::A1),
            (".a2d", Geometry::A2),
            (".cube", Geometry::Cube),
            (".acube", Geometry::ACube),
        ])
        .unwrap_or(Geometry::D1)
    }
}
