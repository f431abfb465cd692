//! The referee's forms of `cvt` and `cvt.pack`.

use super::form::{OperandKind, Width};
use super::list::{INT_MODES, List, MODES, flags};
use cuda_driver_soft_engine::semantics::cvt::*;
use ptx::ir::{Cvt, Rounding, Type};

/// A type of `cvt`: its name, its registers as destination and source, its width as a result, and its operands as a
/// source.
#[derive(Clone, Copy)]
struct CvtType {
    ty: Type,
    name: &'static str,
    to: &'static str,
    from: &'static str,
    width: Width,
    kind: OperandKind,
}

const fn cvt_type(
    ty: Type,
    name: &'static str,
    registers: (&'static str, &'static str),
    width: Width,
    kind: OperandKind,
) -> CvtType {
    CvtType {
        ty,
        name,
        to: registers.0,
        from: registers.1,
        width,
        kind,
    }
}

const CVT_INTS: [CvtType; 8] = [
    cvt_type(Type::U8, "u8", ("%W", "%w0"), Width::B32, OperandKind::Int),
    cvt_type(Type::S8, "s8", ("%W", "%w0"), Width::B32, OperandKind::Int),
    cvt_type(Type::U16, "u16", ("%H", "%h0"), Width::B16, OperandKind::Int),
    cvt_type(Type::S16, "s16", ("%H", "%h0"), Width::B16, OperandKind::Int),
    cvt_type(Type::U32, "u32", ("%W", "%w0"), Width::B32, OperandKind::Int),
    cvt_type(Type::S32, "s32", ("%W", "%w0"), Width::B32, OperandKind::Int),
    cvt_type(Type::U64, "u64", ("%D", "%d0"), Width::B64, OperandKind::Int),
    cvt_type(Type::S64, "s64", ("%D", "%d0"), Width::B64, OperandKind::Int),
];
const CVT_FLOATS: [CvtType; 4] = [
    cvt_type(Type::F16, "f16", ("%H", "%h0"), Width::B16, OperandKind::F16),
    cvt_type(Type::BF16, "bf16", ("%H", "%h0"), Width::B16, OperandKind::BF16),
    cvt_type(Type::F32, "f32", ("%W", "%w0"), Width::B32, OperandKind::F32),
    cvt_type(Type::F64, "f64", ("%D", "%d0"), Width::B64, OperandKind::F64),
];

fn plain(to: Type, from: Type) -> Cvt {
    Cvt {
        to,
        from,
        rnd: None,
        int_rnd: None,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    }
}

fn conversion(list: &mut List, modifiers: &str, to: CvtType, from: CvtType, c: Cvt) {
    let text = format!("cvt{modifiers}.{}.{} {}, {}", to.name, from.name, to.to, from.from);
    let mask = match to.width {
        Width::B16 => 0xffff,
        Width::B32 => 0xffff_ffff,
        _ => u64::MAX,
    };
    list.add(from.kind, to.width, text, move |a, _, _| {
        cvt(c, a).expect("a conversion of the table") & mask
    });
}

pub(super) fn conversions(list: &mut List) {
    for from in CVT_INTS {
        for to in CVT_INTS {
            conversion(list, "", to, from, plain(to.ty, from.ty));
            // ptxas refuses .sat if the destination can represent every value of the source.
            let signed = |t: CvtType| t.name.starts_with('s');
            let (wider, same) = (to.ty.size() > from.ty.size(), to.ty.size() == from.ty.size());
            let holds = if signed(from) == signed(to) {
                wider || same
            } else {
                signed(to) && wider
            };
            if !holds {
                conversion(
                    list,
                    ".sat",
                    to,
                    from,
                    Cvt {
                        sat: true,
                        ..plain(to.ty, from.ty)
                    },
                );
            }
        }
        for to in CVT_FLOATS {
            if to.ty == Type::BF16 && from.ty.size() == 1 {
                // There is no conversion between .bf16 and the eight-bit integers.
                continue;
            }
            for (rnd, r) in MODES {
                conversion(
                    list,
                    r,
                    to,
                    from,
                    Cvt {
                        rnd: Some(rnd),
                        ..plain(to.ty, from.ty)
                    },
                );
            }
            if to.ty != Type::BF16 {
                let c = Cvt {
                    rnd: Some(Rounding::Rn),
                    sat: true,
                    ..plain(to.ty, from.ty)
                };
                conversion(list, ".rn.sat", to, from, c);
            }
        }
    }
    for from in CVT_FLOATS {
        for to in CVT_INTS {
            if from.ty == Type::BF16 && to.ty.size() == 1 {
                continue;
            }
            for (rnd, r) in INT_MODES {
                conversion(
                    list,
                    r,
                    to,
                    from,
                    Cvt {
                        int_rnd: Some(rnd),
                        ..plain(to.ty, from.ty)
                    },
                );
            }
            if from.ty == Type::F32 {
                let c = Cvt {
                    int_rnd: Some(Rounding::Rp),
                    ftz: true,
                    ..plain(to.ty, from.ty)
                };
                conversion(list, ".rpi.ftz", to, from, c);
            }
        }
        for to in CVT_FLOATS {
            float_conversions(list, to, from);
        }
    }
    narrow_conversions(list);
}

fn float_conversions(list: &mut List, to: CvtType, from: CvtType) {
    let c = plain(to.ty, from.ty);
    if to.ty == from.ty {
        for (rnd, r) in INT_MODES {
            conversion(
                list,
                r,
                to,
                from,
                Cvt {
                    int_rnd: Some(rnd),
                    ..c
                },
            );
        }
        if to.ty == Type::F32 {
            conversion(
                list,
                ".rni.ftz",
                to,
                from,
                Cvt {
                    int_rnd: Some(Rounding::Rn),
                    ftz: true,
                    ..c
                },
            );
            conversion(list, ".ftz", to, from, Cvt { ftz: true, ..c });
            conversion(
                list,
                ".ftz.sat",
                to,
                from,
                Cvt {
                    ftz: true,
                    sat: true,
                    ..c
                },
            );
        }
        conversion(list, "", to, from, c);
        if to.ty != Type::BF16 {
            conversion(list, ".sat", to, from, Cvt { sat: true, ..c });
            conversion(
                list,
                ".rni.sat",
                to,
                from,
                Cvt {
                    int_rnd: Some(Rounding::Rn),
                    sat: true,
                    ..c
                },
            );
        }
        return;
    }
    let order = |t: Type| CVT_FLOATS.iter().position(|f| f.ty == t);
    let widening = order(to.ty) > order(from.ty) && !(from.ty == Type::F16 && to.ty == Type::BF16);
    if widening {
        conversion(list, "", to, from, c);
        if from.ty != Type::BF16 {
            conversion(list, ".sat", to, from, Cvt { sat: true, ..c });
        }
        if from.ty == Type::F32 || to.ty == Type::F32 {
            conversion(list, ".ftz", to, from, Cvt { ftz: true, ..c });
        }
        if from.ty == Type::F32 {
            let c = Cvt {
                ftz: true,
                sat: true,
                ..c
            };
            conversion(list, ".ftz.sat", to, from, c);
        }
        return;
    }
    for (rnd, r) in MODES {
        let c = Cvt { rnd: Some(rnd), ..c };
        conversion(list, r, to, from, c);
        if (to.ty, from.ty) == (Type::BF16, Type::F32) {
            conversion(list, &format!("{r}.ftz"), to, from, Cvt { ftz: true, ..c });
        }
        if (to.ty, from.ty) == (Type::F32, Type::F64) || (to.ty, from.ty) == (Type::F16, Type::F32) {
            conversion(list, &format!("{r}.ftz"), to, from, Cvt { ftz: true, ..c });
            conversion(list, &format!("{r}.sat"), to, from, Cvt { sat: true, ..c });
        }
    }
}

fn narrow_conversions(list: &mut List) {
    let f32 = CVT_FLOATS[2];
    for (rnd, r) in [(Rounding::Rn, ".rn"), (Rounding::Rz, ".rz")] {
        for (relu, e) in flags(".relu") {
            for (satfinite, s) in flags(".satfinite") {
                for to in [CVT_FLOATS[0], CVT_FLOATS[1]] {
                    let c = Cvt {
                        rnd: Some(rnd),
                        relu,
                        satfinite,
                        ..plain(to.ty, Type::F32)
                    };
                    if relu || satfinite {
                        conversion(list, &format!("{r}{e}{s}"), to, f32, c);
                    }
                    let (pair, name) = if to.ty == Type::F16 {
                        (Type::F16x2, "f16x2")
                    } else {
                        (Type::BF16x2, "bf16x2")
                    };
                    let text = format!("cvt{r}{e}{s}.{name}.f32 %W, %w0, %w1");
                    two_sources(list, text, Width::B32, Cvt { to: pair, ..c });
                }
            }
            let tf32 = cvt_type(Type::TF32, "tf32", ("%W", ""), Width::B32, OperandKind::F32);
            conversion(
                list,
                &format!("{r}{e}"),
                tf32,
                f32,
                Cvt {
                    rnd: Some(rnd),
                    relu,
                    ..plain(Type::TF32, Type::F32)
                },
            );
        }
    }
    let tf32 = cvt_type(Type::TF32, "tf32", ("%W", ""), Width::B32, OperandKind::F32);
    for (satfinite, s) in flags(".satfinite") {
        let c = Cvt {
            rnd: Some(Rounding::Rna),
            satfinite,
            ..plain(Type::TF32, Type::F32)
        };
        conversion(list, &format!(".rna{s}"), tf32, f32, c);
    }
    for (relu, e) in flags(".relu") {
        for (ty, name) in [(Type::E4M3x2, "e4m3x2"), (Type::E5M2x2, "e5m2x2")] {
            let c = Cvt {
                rnd: Some(Rounding::Rn),
                satfinite: true,
                relu,
                ..plain(ty, Type::F32)
            };
            two_sources(
                list,
                format!("cvt.rn.satfinite{e}.{name}.f32 %H, %w0, %w1"),
                Width::B16,
                c,
            );
            let narrow = cvt_type(ty, name, ("%H", "%h0"), Width::B16, OperandKind::Int);
            let halves = cvt_type(Type::F16x2, "f16x2", ("%W", "%w0"), Width::B32, OperandKind::F16x2);
            conversion(
                list,
                &format!(".rn.satfinite{e}"),
                narrow,
                halves,
                Cvt { from: Type::F16x2, ..c },
            );
            conversion(
                list,
                &format!(".rn{e}"),
                halves,
                narrow,
                Cvt {
                    relu,
                    ..plain(Type::F16x2, ty)
                },
            );
        }
    }
    list.w32("cvt.pack.sat.u8.s32.b32 %W, %w0, %w1, %w2", |a, b, c| {
        cvt_pack(8, false, a as i32, b as i32, Some(c))
    });
    list.w32("cvt.pack.sat.s4.s32.b32 %W, %w0, %w1, %w2", |a, b, c| {
        cvt_pack(4, true, a as i32, b as i32, Some(c))
    });
    list.w32("cvt.pack.sat.u2.s32.b32 %W, %w0, %w1, %w2", |a, b, c| {
        cvt_pack(2, false, a as i32, b as i32, Some(c))
    });
    list.w32("cvt.pack.sat.s16.s32 %W, %w0, %w1", |a, b, _| {
        cvt_pack(16, true, a as i32, b as i32, None)
    });
}

fn two_sources(list: &mut List, text: String, width: Width, c: Cvt) {
    list.add(OperandKind::F32, width, text, move |a, b, _| {
        cvt_pair(c, f32::from_bits(a as u32), f32::from_bits(b as u32))
            .expect("a conversion of the table")
            .into()
    });
}
