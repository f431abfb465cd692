//! Classes of modifiers, by the names that the rows of the table use.

/// The name of each class, and its members, separated by `|`. All members of a class are types, or none is.
#[rustfmt::skip] // long lists
pub(super) const CLASSES: &[(&str, &str)] = &[
    ("int", ".u16|.u32|.u64|.s16|.s32|.s64"),
    ("int8", ".u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64"),
    ("int32", ".u32|.s32"),
    ("int3264", ".u32|.u64|.s32|.s64"),
    ("signed", ".s16|.s32|.s64"),
    ("bits", ".b16|.b32|.b64"),
    ("bits3264", ".b32|.b64"),
    (
        "plain",
        ".b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64",
    ),
    (
        "mem",
        ".b8|.b16|.b32|.b64|.b128|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64",
    ),
    ("mem32", ".b32|.u32|.s32|.f32"),
    ("mem64", ".b64|.u64|.s64|.f64"),
    ("half", ".f16|.f16x2"),
    ("bhalf", ".bf16|.bf16x2"),
    ("f8x2", ".e4m3x2|.e5m2x2"),
    ("size", ".u32|.u64"),
    ("rnd", ".rn|.rz|.rm|.rp"),
    ("irnd", ".rni|.rzi|.rmi|.rpi"),
    (
        "cmp",
        ".eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan",
    ),
    ("bool", ".and|.or|.xor"),
    ("scope", ".cta|.cluster|.gpu|.sys"),
    ("vec", ".v2|.v4|.v8"),
    ("shared", ".shared|.shared::cta|.shared::cluster"),
    (
        "l1",
        ".L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate",
    ),
    ("l2", ".L2::evict_normal|.L2::evict_first|.L2::evict_last"),
    ("cop", ".ca|.cg|.cs|.lu|.cv"),
    ("wop", ".wb|.cg|.cs|.wt"),
    ("sharedcta", ".shared|.shared::cta"),
    ("gs", ".global|.shared|.shared::cta|.shared::cluster"),
    ("asem", ".relaxed|.acquire|.release|.acq_rel"),
    ("rsem", ".relaxed|.release"),
    ("tdim", ".1d|.2d|.3d|.4d|.5d"),
    ("pf", ".L2::64B|.L2::128B|.L2::256B"),
    ("m64k16", ".m64n8k16|.m64n16k16|.m64n24k16|.m64n32k16|.m64n40k16|.m64n48k16|.m64n56k16|.m64n64k16|.m64n72k16|.m64n80k16|.m64n88k16|.m64n96k16|.m64n104k16|.m64n112k16|.m64n120k16|.m64n128k16|.m64n136k16|.m64n144k16|.m64n152k16|.m64n160k16|.m64n168k16|.m64n176k16|.m64n184k16|.m64n192k16|.m64n200k16|.m64n208k16|.m64n216k16|.m64n224k16|.m64n232k16|.m64n240k16|.m64n248k16|.m64n256k16"),
    ("m64k8", ".m64n8k8|.m64n16k8|.m64n24k8|.m64n32k8|.m64n40k8|.m64n48k8|.m64n56k8|.m64n64k8|.m64n72k8|.m64n80k8|.m64n88k8|.m64n96k8|.m64n104k8|.m64n112k8|.m64n120k8|.m64n128k8|.m64n136k8|.m64n144k8|.m64n152k8|.m64n160k8|.m64n168k8|.m64n176k8|.m64n184k8|.m64n192k8|.m64n200k8|.m64n208k8|.m64n216k8|.m64n224k8|.m64n232k8|.m64n240k8|.m64n248k8|.m64n256k8"),
    ("m64k32", ".m64n8k32|.m64n16k32|.m64n24k32|.m64n32k32|.m64n40k32|.m64n48k32|.m64n56k32|.m64n64k32|.m64n72k32|.m64n80k32|.m64n88k32|.m64n96k32|.m64n104k32|.m64n112k32|.m64n120k32|.m64n128k32|.m64n136k32|.m64n144k32|.m64n152k32|.m64n160k32|.m64n168k32|.m64n176k32|.m64n184k32|.m64n192k32|.m64n200k32|.m64n208k32|.m64n216k32|.m64n224k32|.m64n232k32|.m64n240k32|.m64n248k32|.m64n256k32"),
    ("m64k32int", ".m64n8k32|.m64n16k32|.m64n24k32|.m64n32k32|.m64n48k32|.m64n64k32|.m64n80k32|.m64n96k32|.m64n112k32|.m64n128k32|.m64n144k32|.m64n160k32|.m64n176k32|.m64n192k32|.m64n208k32|.m64n224k32|.m64n240k32|.m64n256k32"),
    ("m64k64", ".m64n8k64|.m64n16k64|.m64n24k64|.m64n32k64|.m64n40k64|.m64n48k64|.m64n56k64|.m64n64k64|.m64n72k64|.m64n80k64|.m64n88k64|.m64n96k64|.m64n104k64|.m64n112k64|.m64n120k64|.m64n128k64|.m64n136k64|.m64n144k64|.m64n152k64|.m64n160k64|.m64n168k64|.m64n176k64|.m64n184k64|.m64n192k64|.m64n200k64|.m64n208k64|.m64n216k64|.m64n224k64|.m64n232k64|.m64n240k64|.m64n248k64|.m64n256k64"),
    ("m64k64int", ".m64n8k64|.m64n16k64|.m64n24k64|.m64n32k64|.m64n48k64|.m64n64k64|.m64n80k64|.m64n96k64|.m64n112k64|.m64n128k64|.m64n144k64|.m64n160k64|.m64n176k64|.m64n192k64|.m64n208k64|.m64n224k64|.m64n240k64|.m64n256k64"),
    ("m64k256", ".m64n8k256|.m64n16k256|.m64n24k256|.m64n32k256|.m64n48k256|.m64n64k256|.m64n80k256|.m64n96k256|.m64n112k256|.m64n128k256|.m64n144k256|.m64n160k256|.m64n176k256|.m64n192k256|.m64n208k256|.m64n224k256|.m64n240k256|.m64n256k256"),
];

/// Returns the members of a class; none if there is no such class.
pub(super) fn members(class: &str) -> impl Iterator<Item = &'static str> {
    let found = CLASSES.iter().find(|(name, _)| *name == class);
    found.into_iter().flat_map(|(_, members)| members.split('|'))
}
