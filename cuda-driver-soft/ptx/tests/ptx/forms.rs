//! Tests many opcodes with combinations of modifiers and types: exactly the forms that exist must be accepted.
//!
//! A family consists of opcodes, a pool of modifiers and a number of types. Its instructions are put into modules, one
//! per line, and the lines without an error are counted and hashed. The counts and hashes in [`FAMILIES`] were computed
//! with ptxas 13.5. With `PTXAS` set they are recomputed, and the test lists the instructions that only ptxas or only
//! the loader accepts.

use super::referee;
use std::fmt::Write;

/// A family, with the number and hash of the instructions that ptxas accepts.
struct Family {
    /// The opcodes, each with its fixed modifiers.
    opcodes: &'static [&'static str],
    /// Optional modifiers, separated by spaces. Up to `most` of them are added, in this order.
    pool: &'static str,
    most: usize,
    /// The number of types that end the opcode.
    types: usize,
    /// The operands: `1` and `2` are registers of the first and the second type, `w` is the register that [`wide`]
    /// returns for the last type. All else is copied.
    operands: &'static str,
    /// The number of accepted instructions.
    accepted: usize,
    /// The hash of the accepted instructions: see [`digest`].
    hash: u64,
}

/// Types, each with a register for its values.
pub(crate) const TYPES: &[(&str, &str)] = &[
    ("pred", "pp"),
    ("b8", "rb8"),
    ("b16", "rb16"),
    ("b32", "rb32"),
    ("b64", "rb64"),
    ("b128", "rb128"),
    ("u8", "rb8"),
    ("u16", "ru16"),
    ("u32", "ru32"),
    ("u64", "ru64"),
    ("s8", "rb8"),
    ("s16", "rs16"),
    ("s32", "rs32"),
    ("s64", "rs64"),
    ("f16", "rf16"),
    ("f16x2", "rb32"),
    ("f32", "rf32"),
    ("f64", "rf64"),
    ("bf16", "rb16"),
    ("bf16x2", "rb32"),
    ("tf32", "rb32"),
    ("u16x2", "rb32"),
    ("s16x2", "rb32"),
    ("e4m3x2", "rb16"),
    ("e5m2x2", "rb16"),
];

/// Declarations of all registers in operands.
pub(crate) const REGISTERS: &str = ".reg .pred pp,pq; .reg .b8 rb8; .reg .b16 rb16; .reg .b32 rb32; .reg .b64 rb64; \
    .reg .b128 rb128; .reg .u16 ru16; .reg .u32 ru32; .reg .u64 ru64; .reg .s16 rs16; .reg .s32 rs32; \
    .reg .s64 rs64; .reg .f16 rf16; .reg .f32 rf32; .reg .f64 rf64;";

const fn family(
    opcodes: &'static [&'static str],
    pool: &'static str,
    most: usize,
    types: usize,
    operands: &'static str,
    (accepted, hash): (usize, u64),
) -> Family {
    Family {
        opcodes,
        pool,
        most,
        types,
        operands,
        accepted,
        hash,
    }
}

// Opcodes and pools of modifiers for several families.
const ARITHMETIC: &str = "sat ftz relu NaN lo hi wide approx full xorsign abs rn rz rm rp oob cc";
const COMPARE: &[&str] = &[
    "setp.eq", "setp.ne", "setp.lt", "setp.le", "setp.gt", "setp.ge", "setp.lo", "setp.ls", "setp.hi", "setp.hs",
    "setp.equ", "setp.neu", "setp.ltu", "setp.leu", "setp.gtu", "setp.geu", "setp.num", "setp.nan",
];
const SET: &[&str] = &[
    "set.eq",
    "set.lt",
    "set.lo",
    "set.equ",
    "set.nan",
    "set.ge.and",
    "set.hs.xor",
    "set.num.or",
];
const LOAD: &str = "weak volatile nc global shared local const param shared::cta shared::cluster param::entry";
const ORDER: &str = "relaxed acquire release cta cluster gpu sys global shared mmio";
const CACHE: &str =
    "ca cg cs lu cv wb wt nc global shared L1::evict_last L1::no_allocate L2::evict_first L2::128B weak volatile";
const ATOM: &str = "relaxed acquire release acq_rel sc cta gpu sys global shared local const noftz";

const MMA: &str = "m16n8k4 m16n8k8 m16n8k16 m16n8k32 m8n8k16 row.col satfinite f32.f16.f16.f32 f16.f16.f16.f16 f32.bf16.bf16.f32 \
    f32.tf32.tf32.f32 f32.e4m3.e5m2.f32 f64.f64.f64.f64 s32.s8.u8.s32";
const WMMA: &str = "row col m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 global shared";
const MBARRIER: &str =
    "noComplete expect_tx parity release relaxed acquire cta cluster gpu shared shared::cta shared::cluster";

const SMALL: &str = "satfinite s32.s4.u4.s32 s32.u4.u4.s32 s32.s8.s4.s32 s32.b1.b1.s32.xor.popc s32.b1.b1.s32.and.popc s32.b1.b1.s32.or.popc";
const BULK: &str = "shared::cluster shared::cta shared global mbarrier::complete_tx::bytes bulk_group multicast::cluster L2::cache_hint";

#[rustfmt::skip] // a family is a line
const FAMILIES: &[Family] = &[
    family(&["add", "sub", "mul", "min", "max", "div", "rem"], ARITHMETIC, 3, 1, "1,1,1", (278, 0x656b_a796_d8c4_cce7)),
    family(&["mul.wide", "mul"], "wide sat rn", 2, 1, "w,1,1", (10, 0xc761_c0de_4421_63a9)),
    family(&["and", "or", "xor"], "sat ftz lo", 1, 1, "1,1,1", (12, 0xfc9a_9a27_5a3c_a742)),
    family(&["mad", "fma", "mad24"], "sat ftz relu lo hi wide rn rz rm rp oob cc", 3, 1, "1,1,1,1", (114, 0x5322_5108_107d_fab3)),
    family(&["mad"], "wide hi lo sat cc", 2, 1, "w,1,1,w", (12, 0xea15_41ca_ac3e_f889)),
    family(&["mul24", "sad"], "lo hi wide sat", 2, 1, "1,1,1", (4, 0xbea3_eb82_4f2d_e589)),
    family(&["abs", "neg", "not", "cnot", "sqrt", "rcp", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "brev"], "sat ftz relu approx full rn rz rm rp NaN", 2, 1, "1,1", (87, 0xbd43_3955_32aa_d6d0)),
    family(&["shl", "shr"], "lo wrap clamp sat", 1, 1, "1,1,ru32", (12, 0x3b94_f3cb_bbaa_aa77)),
    family(COMPARE, "ftz sat", 1, 1, "pp,1,1", (180, 0xf1c5_4f83_99a4_7d79)),
    family(COMPARE, "ftz and or popc", 2, 1, "pp|pq,1,1,!pp", (276, 0x6a3d_b985_7b39_a0e1)),
    family(SET, "ftz", 1, 2, "1,2,2", (246, 0x8c0d_4b79_be67_95b3)),
    family(SET, "ftz", 1, 2, "1,2,2,!pp", (123, 0x4ce3_eb67_7074_3308)),
    family(&["selp"], "ftz", 1, 1, "1,1,1,pp", (11, 0xe884_4133_7795_500c)),
    family(&["slct"], "ftz", 1, 2, "1,1,1,2", (33, 0x49bb_c86b_43dd_589c)),
    family(&["mov"], "ftz v2 v4", 1, 1, "1,1", (13, 0x655f_f9e3_0ff2_3dd5)),
    family(&["cvt"], "rn rz rm rp rni rzi rmi rpi rna ftz sat relu satfinite", 2, 2, "1,2", (754, 0x5e58_3928_f134_0457)),
    family(&["cvt.rn", "cvt.rz", "cvt.rzi"], "ftz sat relu satfinite", 3, 2, "1,2", (285, 0x39da_6e2a_ff8a_2d72)),
    family(&["cvt"], "rn rz rna relu satfinite ftz sat", 3, 2, "1,2,2", (20, 0x4659_1d07_e3a5_6205)),
    family(&["cvt.pack.sat"], "", 0, 2, "ru32,rs32,rs32", (2, 0x02ea_bc30_e771_27ab)),
    family(&["cvta", "cvta.to", "isspacep"], LOAD, 1, 1, "1,1", (32, 0xe4d8_ac4a_55b2_a9d3)),
    family(&["isspacep"], LOAD, 1, 0, "pp,rb64", (8, 0x31c3_c6b5_f399_c983)),
    family(&["ld", "ldu"], LOAD, 2, 1, "1,[rb64]", (405, 0x6383_195f_befb_4860)),
    family(&["ld", "ldu"], "global volatile v2 v4 v8", 2, 1, "{1,1},[rb64]", (70, 0x88f7_5582_1424_0646)),
    family(&["ld"], "shared relaxed gpu nc v4 v8", 3, 1, "{1,1,1,1},[rb64]", (30, 0x926c_3dbb_d586_630e)),
    family(&["ld"], ORDER, 4, 1, "1,[rb64]", (465, 0x17b6_214a_37ad_983c)),
    family(&["ld"], CACHE, 3, 1, "1,[rb64]", (1215, 0x5d41_46d9_58a0_26d2)),
    family(&["ld"], "L1::evict_last nc global shared L2::cache_hint ca", 4, 1, "1,[rb64],rb64", (135, 0x618d_63cb_3742_7d00)),
    family(&["st"], LOAD, 2, 1, "[rb64],1", (300, 0xb7f7_da15_3e58_1706)),
    family(&["st"], "global volatile v2 v4 v8", 2, 1, "[rb64],{1,1}", (42, 0xf9d2_97b4_d066_b788)),
    family(&["st"], ORDER, 4, 1, "[rb64],1", (465, 0x8901_1244_9c19_e3f9)),
    family(&["st"], CACHE, 3, 1, "[rb64],1", (615, 0xbbed_af76_2399_b65f)),
    family(&["atom.and", "atom.exch", "atom.add", "atom.inc", "atom.min", "atom.cas"], ATOM, 2, 1, "1,[rb64],1", (590, 0x2af6_011c_3683_8e32)),
    family(&["atom.cas", "atom.add"], ATOM, 2, 1, "1,[rb64],1,1", (144, 0x1ab5_8062_a81e_ba29)),
    family(&["atom.add", "atom.max"], "global noftz v2 v4 v8", 3, 1, "{1,1},[rb64],{1,1}", (20, 0xc018_aa79_15f9_b5cb)),
    family(&["red.or", "red.exch", "red.add", "red.dec", "red.max"], ATOM, 2, 1, "[rb64],1", (328, 0x9ef0_62e3_8559_4c4a)),
    family(&["addc", "subc"], "cc sat lo", 2, 1, "1,1,1", (22, 0x7947_38d1_670d_850e)),
    family(&["madc"], "lo hi wide cc sat", 3, 1, "1,1,1,1", (21, 0x33c9_64bb_a6eb_c8d0)),
    family(&["bfe"], "clamp", 1, 1, "1,1,ru32,ru32", (4, 0x19b8_23a6_c5fa_0e0d)),
    family(&["bfi"], "clamp", 1, 1, "1,1,1,ru32,ru32", (2, 0xd936_13b2_444c_cfb9)),
    family(&["bfind", "clz", "popc"], "shiftamt clamp", 1, 1, "ru32,1", (12, 0xa8ad_e171_2438_aaa3)),
    family(&["bmsk", "copysign"], "clamp wrap ftz", 2, 1, "1,1,1", (4, 0xce46_a04c_ad2d_5e00)),
    family(&["szext"], "clamp wrap", 2, 1, "1,1,ru32", (4, 0x6ed5_911c_8a9e_8a69)),
    family(&["testp"], "finite infinite number notanumber normal subnormal ftz", 2, 1, "pp,1", (14, 0x6871_52ce_a575_aa9b)),
    family(&["lop3"], "and or xor", 1, 1, "1,1,1,1,5", (1, 0xa8d5_72f1_4455_3164)),
    family(&["lop3"], "and or xor", 1, 1, "1|pq,1,1,1,5,!pp", (2, 0x4227_8b48_8b6e_0d57)),
    family(&["prmt"], "f4e b4e rc8 ecl ecr rc16", 2, 1, "1,1,1,1", (7, 0x6f9b_eb08_dfc0_dd79)),
    family(&["shf"], "l r clamp wrap", 3, 1, "1,1,1,ru32", (4, 0x4b44_897f_f0b1_90d3)),
    family(&["dp4a", "dp2a"], "lo hi sat", 1, 2, "2,rb32,rb32,2", (12, 0x5b11_979a_beb0_3cbd)),
    family(&["bar", "barrier"], "cta sync arrive red popc and or aligned", 4, 0, "1,64", (12, 0x3a7c_53c4_1c00_8e85)),
    family(&["bar", "barrier"], "cta sync arrive red popc and or aligned", 4, 1, "1,0,32,!pp", (18, 0x79e2_8d58_14c4_33f9)),
    family(&["shfl", "shfl.sync"], "up down bfly idx sync", 1, 1, "1|pq,1,1,31,0xffffffff", (4, 0x0263_bd26_ef55_4be0)),
    family(&["vote", "vote.sync"], "all any uni ballot sync", 1, 1, "1,!pp,0xffffffff", (4, 0xc401_ba4e_d4fe_fecb)),
    family(&["match", "match.any", "match.all"], "sync any", 2, 1, "rb32,1,0xffffffff", (6, 0xf4e7_b0f4_3f12_443d)),
    family(&["redux"], "sync add min max and or xor", 2, 1, "1,1,0xffffffff", (9, 0x352f_2ca1_09be_a8f5)),
    family(&["activemask", "nanosleep"], "sync", 1, 1, "1", (2, 0x6aad_0343_7c7c_4f30)),
    family(&["fence", "membar"], "sc acq_rel acquire release relaxed cta cluster gpu sys gl proxy alias async", 2, 0, "", (31, 0xd597_d0e7_06b4_cfe4)),
    family(&["prefetch", "prefetchu"], "global local shared L1 L2 L2::evict_last L2::evict_normal", 2, 0, "[rb64]", (11, 0x7122_ce7b_ace6_7f3e)),
    family(&["cp.async", "cp"], "async ca cg shared shared::cta global L2::cache_hint L2::128B", 5, 0, "[rb32],[rb64],16", (16, 0x953c_2076_cbd5_5685)),
    family(&["cp.async.ca", "cp.async.cg"], "shared global L2::cache_hint", 3, 0, "[rb32],[rb64],16,rb64", (2, 0x43cb_6c5c_f04c_42cf)),
    family(&["cp.async.ca", "cp.async.cg"], "shared global L2::256B", 3, 0, "[rb32],[rb64],16,pp", (4, 0xf499_0122_8c79_2c53)),
    family(&["cp.async"], "mbarrier arrive noinc shared shared::cta", 4, 1, "[rb32]", (6, 0x8861_b16e_9373_b194)),
    family(&["mbarrier.init", "mbarrier.expect_tx", "mbarrier.complete_tx"], MBARRIER, 3, 1, "[rb32],5", (27, 0x8bd8_0086_3ce2_bb60)),
    family(&["mbarrier.inval"], MBARRIER, 2, 1, "[rb64]", (3, 0x6078_706b_29c4_426e)),
    family(&["mbarrier.arrive", "mbarrier.arrive_drop"], MBARRIER, 3, 1, "rb64,[rb64],5", (52, 0x59ea_8b5b_8d80_8bf3)),
    family(&["mbarrier.arrive", "mbarrier.arrive_drop"], MBARRIER, 3, 1, "rb64,[rb64]", (30, 0xdb14_41b1_ed95_7933)),
    family(&["mbarrier.arrive"], MBARRIER, 3, 1, "_,[rb64],5", (32, 0x5b3c_511c_2b6c_cd10)),
    family(&["mbarrier.test_wait", "mbarrier.try_wait"], MBARRIER, 3, 1, "pp,[rb64],rb64", (30, 0xf4b2_7bff_c8f8_36b8)),
    family(&["mbarrier.test_wait", "mbarrier.try_wait"], MBARRIER, 3, 1, "pp,[rb64],rb32,7", (7, 0xb699_f2c6_ae1c_881e)),
    family(&["mbarrier.pending_count"], "parity shared", 1, 1, "rb32,rb64", (1, 0x4603_f91c_5b42_aea6)),
    family(&["barrier.cluster"], "arrive wait acquire release relaxed aligned", 3, 0, "", (10, 0x471a_a608_c523_b053)),
    family(&["mapa"], "shared shared::cta shared::cluster global", 1, 1, "1,1,5", (8, 0x6f4d_7cbf_693e_fa69)),
    family(&["getctarank"], "shared shared::cta shared::cluster global", 1, 1, "rb32,1", (8, 0x540a_9aca_78b5_c979)),
    family(&["griddepcontrol"], "launch_dependents wait sync", 2, 0, "", (2, 0x9c45_d519_6071_b110)),
    family(&["mma.sync.aligned"], MMA, 4, 0, "{rf32,rf32,rf32,rf32},{rb32,rb32},{rb32},{rf32,rf32,rf32,rf32}", (4, 0x0337_b823_ed56_91ce)),
    family(&["mma.sync.aligned"], MMA, 4, 0, "{rf32,rf32,rf32,rf32},{rb32,rb32,rb32,rb32},{rb32,rb32},{rb32,rb32,rb32,rb32}", (4, 0x342b_4c42_4f15_2188)),
    family(&["mma.sync.aligned"], MMA, 4, 0, "{rs32,rs32,rs32,rs32},{rb32,ru32,rb32,rb32},{rb32,rb32},{rs32,rb32,rs32,rs32}", (2, 0xc846_b75b_86a3_1dae)),
    family(&["mma.sync.aligned"], MMA, 4, 0, "{rb32,rb32},{rb32,rb32,rb32,rb32},{rb32,rb32},{rb32,rb32}", (1, 0x0d2f_2cf0_35a4_5cc6)),
    family(&["mma.sync.aligned"], MMA, 4, 0, "{rb32,rb32},{rb32,rb32},{rb32},{rb32,rb32}", (1, 0x0e84_8e06_2375_2510)),
    family(&["mma.sync.aligned"], MMA, 4, 0, "{rf64,rf64,rf64,rf64},{rf64,rf64,rf64,rf64},{rf64,rf64},{rf64,rf64,rf64,rf64}", (1, 0xb281_4c10_cc55_321d)),
    family(&["wmma.load.a.sync.aligned", "wmma.load.b.sync.aligned", "wmma.load.c.sync.aligned"], WMMA, 3, 1, "{rb32,rb32,rb32,rb32,rb32,rb32,rb32,rb32},[rb64],rb32", (96, 0x60c3_2bab_fe53_7735)),
    family(&["wmma.load.a.sync.aligned", "wmma.load.b.sync.aligned"], WMMA, 3, 1, "{rb32,rb32,rb32,rb32},[rb64]", (48, 0x206d_422f_71c8_1a85)),
    family(&["wmma.store.d.sync.aligned"], WMMA, 3, 1, "[rb64],{rb32,rb32,rb32,rb32,rb32,rb32,rb32,rb32},rb32", (48, 0xf78d_e247_44fa_0025)),
    family(&["wmma.mma.sync.aligned.row.col", "wmma.mma.sync.aligned.col.col"], "m16n16k16 m8n32k16 m16n16k8 satfinite f32.f32 f16.f32 f32.bf16.bf16.f32 f32.tf32.tf32.f32 s32.s8.s8.s32 s32.u8.s8.s32", 3, 0, "{rb32,rb32,rb32,rb32,rb32,rb32,rb32,rb32},{rb32,rb32,rb32,rb32},{rb32,rb32,rb32,rb32},{rb32,rb32,rb32,rb32,rb32,rb32,rb32,rb32}", (4, 0x495c_b247_1f7d_6343)),
    family(&["wmma.mma.sync.aligned.row.col"], "m16n16k16 m8n32k16 m32n8k16 satfinite f32.f32 f16.f32 f16.f16 f32.f16", 3, 0, "{rf32,rf32,rf32,rf32,rf32,rf32,rf32,rf32},{rb32,rb32,rb32,rb32,rb32,rb32,rb32,rb32},{rb32,rb32,rb32,rb32,rb32,rb32,rb32,rb32},{rf32,rf32,rf32,rf32,rf32,rf32,rf32,rf32}", (3, 0x33ce_7a9a_8aa3_c1e9)),
    family(&["ldmatrix.sync.aligned", "ldmatrix.sync"], "m8n8 x1 x2 x4 trans shared shared::cta global", 4, 1, "{rb32,rb32},[rb64]", (6, 0x54f3_a51b_4a66_014f)),
    family(&["stmatrix.sync.aligned"], "m8n8 x1 x2 x4 trans shared shared::cta global", 4, 1, "[rb64],{rb32}", (6, 0x77da_6b95_1d7d_af35)),
    family(&["movmatrix.sync.aligned"], "m8n8 x1 trans", 2, 1, "rb32,rb32", (1, 0x453a_06bf_fe32_54aa)),
    family(&["mma.sync.aligned.m8n8k32.row.col", "mma.sync.aligned.m8n8k128.row.col"], SMALL, 2, 0, "{rs32,rs32},{rb32},{rb32},{rs32,rs32}", (6, 0x6d85_1b7d_be53_a6e9)),
    family(&["mma.sync.aligned.m16n8k32.row.col", "mma.sync.aligned.m16n8k128.row.col"], SMALL, 2, 0, "{rs32,rs32,rs32,rs32},{rb32,rb32},{rb32},{rs32,rs32,rs32,rs32}", (6, 0xa53e_d9cb_aa5c_31a9)),
    family(&["mma.sync.aligned.m16n8k64.row.col", "mma.sync.aligned.m16n8k256.row.col"], SMALL, 2, 0, "{rs32,rs32,rs32,rs32},{rb32,rb32,rb32,rb32},{rb32,rb32},{rs32,rs32,rs32,rs32}", (6, 0xc6de_5ef5_a11d_bff9)),
    family(&["wmma.load.a.sync.aligned", "wmma.load.b.sync.aligned"], "row col m8n8k32 m8n8k128 shared s4 u4 b1", 4, 0, "{rb32},[rb64],rb32", (12, 0xe7f5_b9ae_f24f_0c7d)),
    family(&["wmma.load.c.sync.aligned"], "row col m8n8k32 m8n8k128 global s32", 4, 0, "{rb32,rb32},[rb64]", (8, 0x7f30_da16_5d03_f7ad)),
    family(&["wmma.mma.sync.aligned.row.col", "wmma.mma.xor.popc.sync.aligned.row.col"], "m8n8k32 m8n8k128 s32.s4.s4.s32 s32.s4.u4.s32 s32.b1.b1.s32 satfinite", 3, 0, "{rb32,rb32},{rb32},{rb32},{rb32,rb32}", (3, 0x835e_9d00_ca60_cdab)),
    family(&["vadd.u32", "vabsdiff.s32"], "sat add min max clamp po", 2, 2, "rb32,1,2", (16, 0x0727_5337_7458_795d)),
    family(&["vadd.u32", "vmin.s32"], "sat add min max clamp po", 2, 2, "rb32,1,2,rb32", (64, 0x0474_5aa9_2633_96bd)),
    family(&["vshl.u32", "vshr.s32"], "sat add clamp wrap", 3, 2, "rb32,1,2,rb32", (32, 0xca43_3da5_b8cd_36fd)),
    family(&["vmad.u32", "vmad.s32"], "po sat shr7 shr15 add", 3, 2, "rb32,1,2,rb32", (96, 0x804f_1dfa_82eb_f045)),
    family(&["vset", "vset2", "vset4"], "eq ge equ add sat max", 2, 2, "rb32,1,2,rb32", (56, 0x04df_4e34_5aa7_7bbd)),
    family(&["vadd2.u32", "vavrg4.s32", "vmad2.u32"], "sat add min clamp", 2, 2, "rb32,1,2,rb32", (24, 0x1473_d60e_4901_a8a5)),
    family(&["alloca"], "local uni", 1, 1, "1,1", (2, 0xbc8f_65a9_ccab_dd00)),
    family(&["alloca"], "local uni", 1, 1, "1,5,8", (2, 0x83b2_3714_76b1_5963)),
    family(&["stacksave", "stackrestore"], "local uni", 1, 1, "1", (4, 0xea0a_e44c_2130_9719)),
    family(&["createpolicy.fractional", "createpolicy.range"], "global L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged", 2, 1, "1,rf32", (9, 0xe649_08ee_cdd1_36cf)),
    family(&["createpolicy.fractional", "createpolicy.range"], "global shared L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged", 3, 1, "1,[rb64],64,rb32", (18, 0x58ee_c17c_736e_1b6e)),
    family(&["createpolicy", "createpolicy.cvt"], "cvt L2 global", 2, 1, "1,1", (2, 0x90a6_a4ad_764c_3905)),
    family(&["cp.async.bulk"], BULK, 4, 0, "[rb32],[rb64],16,[rb32]", (3, 0xa6a6_b54e_3f1c_ad7d)),
    family(&["cp.async.bulk"], BULK, 4, 0, "[rb32],[rb64],rb32,[rb32],rb64", (2, 0x67c9_f90d_5c2f_cd81)),
    family(&["cp.async.bulk"], BULK, 5, 0, "[rb32],[rb64],rb32,[rb32],rb16,rb64", (1, 0x9e46_a914_ea81_45de)),
    family(&["cp.async.bulk.global"], BULK, 3, 0, "[rb64],[rb32],rb32", (1, 0x3d32_f619_c89a_94b9)),
    family(&["cp.async.bulk", "cp.async.bulk.prefetch"], "L2 global L2::cache_hint shared", 3, 0, "[rb64],16", (1, 0x5e1f_3c51_8d9e_e214)),
    family(&["cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"], "noftz add and inc min exch", 2, 1, "[rb32],[rb32],64,[rb32]", (7, 0x8e08_9f99_740f_fc05)),
    family(&["cp.reduce.async.bulk.global.shared::cta.bulk_group"], "noftz add and inc min exch", 2, 1, "[rb64],[rb32],64", (17, 0x5f8f_f8d9_19b4_d765)),
    family(&["st.async.mbarrier::complete_tx::bytes"], "weak shared shared::cta shared::cluster global", 2, 1, "[rb32],1,[rb32]", (72, 0x9972_5b6f_e10a_f9a9)),
    family(&["st.async.mbarrier::complete_tx::bytes.v2"], "weak shared::cluster", 2, 1, "[rb32],{1,1},[rb32]", (32, 0x8179_1eb4_5322_00e1)),
    family(&["red.async.relaxed.cluster.mbarrier::complete_tx::bytes"], "shared::cluster add and inc min exch", 2, 1, "[rb32],1,[rb32]", (16, 0x5030_d55c_6f85_b1d5)),
];

/// Returns all ways to choose up to `most` modifiers of the pool, in its order.
fn choices<'a>(pool: &[&'a str], most: usize) -> Vec<Vec<&'a str>> {
    let mut all = vec![Vec::new()];
    let mut last: Vec<(usize, Vec<&str>)> = vec![(0, Vec::new())];
    for _ in 0..most {
        let mut next = Vec::new();
        for (from, chosen) in &last {
            for (i, modifier) in pool.iter().enumerate().skip(*from) {
                let longer = [chosen.as_slice(), &[*modifier]].concat();
                next.push((i + 1, longer));
            }
        }
        all.extend(next.iter().map(|(_, chosen)| chosen.clone()));
        last = next;
    }
    all
}

/// Returns a register of twice the width of a 16-bit or 32-bit integer type, and `rb64` for all other types.
fn wide(ty: &str) -> &str {
    match ty {
        "u16" => "ru32",
        "s16" => "rs32",
        "u32" => "ru64",
        "s32" => "rs64",
        _ => "rb64",
    }
}

/// Returns all instructions of a family: each opcode with each choice of modifiers and each combination of types.
fn instructions(family: &Family) -> Vec<String> {
    let pool: Vec<&str> = family.pool.split_whitespace().collect();
    let none = [("", "")];
    let first = if family.types > 0 { TYPES } else { &none };
    let second = if family.types > 1 { TYPES } else { &none };
    let mut all = Vec::new();
    for opcode in family.opcodes {
        for chosen in choices(&pool, family.most) {
            for (a, ra) in first {
                for (b, rb) in second {
                    let mut line = (*opcode).to_owned();
                    for part in chosen.iter().copied().chain([*a, *b]).filter(|part| !part.is_empty()) {
                        line.push('.');
                        line.push_str(part);
                    }
                    line.push(' ');
                    let last = if family.types > 1 { b } else { a };
                    let mut previous = ' ';
                    for c in family.operands.chars() {
                        // Digits inside a number or a name are not placeholders.
                        let alone = !previous.is_ascii_alphanumeric();
                        match c {
                            '1' if alone && family.types > 0 => line.push_str(ra),
                            '2' if alone && family.types > 1 => line.push_str(rb),
                            'w' if alone => line.push_str(wide(last)),
                            _ => line.push(c),
                        }
                        previous = c;
                    }
                    line.push(';');
                    all.push(line);
                }
            }
        }
    }
    all
}

/// Returns, for each instruction, true if it is accepted in a kernel. `head` is the text before the instructions, up to
/// and including the start of the kernel.
pub(crate) fn accepted_lines(
    head: &str,
    instructions: &[String],
    judge: impl Fn(&str) -> referee::Verdict,
) -> Vec<bool> {
    let before = head.matches('\n').count() as u32;
    let mut all = Vec::with_capacity(instructions.len());
    for part in instructions.chunks(20_000) {
        // The last line is an error, because ptxas would otherwise also compile the text.
        let text = format!("{head}{}\nno_such_instruction;\n}}\n", part.join("\n"));
        let verdict = judge(&text);
        all.extend((0..part.len() as u32).map(|i| !verdict.contains_key(&(i + before + 1))));
    }
    all
}

/// Returns the number and the FNV-1a hash of the accepted instructions.
pub(crate) fn digest(instructions: &[String], accepted: &[bool]) -> (usize, u64) {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut count = 0;
    for (instruction, _) in instructions.iter().zip(accepted).filter(|(_, accepted)| **accepted) {
        count += 1;
        for byte in instruction.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (count, hash)
}

#[test]
fn accepted_forms() {
    let ptxas = referee::ptxas("forms");
    let head = format!(".version 9.5\n.target sm_90\n.address_size 64\n.entry k() {{ {REGISTERS}\n");
    let mut wrong = String::new();
    let mut total = 0;
    for (number, family) in FAMILIES.iter().enumerate() {
        // A family without accepted instructions would also pass if the loader refused its opcodes.
        assert!(
            family.accepted > 0,
            "family {number} {:?} has no accepted instruction",
            family.opcodes
        );
        let instructions = instructions(family);
        total += instructions.len();
        let ours = accepted_lines(&head, &instructions, referee::ours);
        let mut expected = (family.accepted, family.hash);
        if let Some(ptxas) = &ptxas {
            let theirs = accepted_lines(&head, &instructions, |text| referee::theirs(ptxas, "forms", text));
            let fresh = digest(&instructions, &theirs);
            if fresh != expected {
                println!(
                    "family {number} {:?}: ptxas accepts ({}, {:#018x})",
                    family.opcodes, fresh.0, fresh.1
                );
            }
            expected = fresh;
            for ((instruction, ours), theirs) in instructions.iter().zip(&ours).zip(&theirs) {
                if ours != theirs {
                    let _ = writeln!(
                        wrong,
                        "{instruction} accepted by ptxas: {theirs}, by the loader: {ours}"
                    );
                }
            }
        }
        let found = digest(&instructions, &ours);
        if found != expected {
            let _ = writeln!(
                wrong,
                "family {number} {:?}: (number, hash) ({}, {:#018x}) instead of ({}, {:#018x})",
                family.opcodes, found.0, found.1, expected.0, expected.1
            );
        }
    }
    println!("{total} instructions");
    assert!(total > 100_000, "{total}");
    assert!(wrong.is_empty(), "{wrong}");
}
