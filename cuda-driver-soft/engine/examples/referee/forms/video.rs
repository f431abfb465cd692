//! The referee's forms of the video instructions.

use super::form::Expect;
use super::list::{List, flags};
use cuda_driver_soft_engine::semantics::video::*;
use ptx::ir::Compare;

const SIGNS: [(bool, &str); 2] = [(false, "u32"), (true, "s32")];
const PARTS: [(Part, &str); 7] = [
    (Part::Word, ""),
    (Part::B0, ".b0"),
    (Part::B1, ".b1"),
    (Part::B2, ".b2"),
    (Part::B3, ".b3"),
    (Part::H0, ".h0"),
    (Part::H1, ".h1"),
];

/// Adds the video instructions. The scalar ones, except `vset` and `vmad`, have all their types and secondary
/// operations. Their selectors vary from form to form.
pub(super) fn video(list: &mut List) {
    type Eval = fn(Video, u32, u32, u32) -> u32;
    let scalar: [(&str, Eval); 5] = [
        ("vadd", vadd),
        ("vsub", vsub),
        ("vabsdiff", vabsdiff),
        ("vmin", vmin),
        ("vmax", vmax),
    ];
    let then = [
        (Then::Nothing, ""),
        (Then::Add, ".add"),
        (Then::Min, ".min"),
        (Then::Max, ".max"),
        (Then::Merge(Part::B1), ""),
        (Then::Merge(Part::H1), ""),
    ];
    let mut turn = 0;
    let mut each = |make: &mut dyn FnMut(&mut List, Video, String, String)| {
        for (signed, d) in SIGNS {
            for (a_signed, x) in SIGNS {
                for (b_signed, y) in SIGNS {
                    for (sat, s) in flags(".sat") {
                        for (then, t) in then {
                            turn += 1;
                            let ((a, p), (b, q)) = (PARTS[turn % 7], PARTS[turn / 3 % 7]);
                            let v = Video {
                                a: (a, a_signed),
                                b: (b, b_signed),
                                signed,
                                sat,
                                then,
                            };
                            let to = match then {
                                Then::Merge(Part::B1) => ".b1",
                                Then::Merge(_) => ".h1",
                                _ => "",
                            };
                            let c = if then == Then::Nothing { "" } else { ", %w2" };
                            let types = format!(".{d}.{x}.{y}{s}#{t}");
                            make(list, v, types, format!(" %W{to}, %w0{p}, %w1{q}{c}"));
                        }
                    }
                }
            }
        }
    };
    each(&mut |list, v, types, operands| {
        for (name, eval) in scalar {
            let text = format!("{name}{}{operands}", types.replace('#', ""));
            list.w32(&text, move |a, b, c| eval(v, a, b, c));
            list.expect(Expect::Apart);
        }
        if v.b.1 {
            return;
        }
        for (wrap, mode) in [(false, ".clamp"), (true, ".wrap")] {
            let types = types.replace('#', mode);
            list.w32(&format!("vshl{types}{operands}"), move |a, b, c| vshl(v, wrap, a, b, c));
            list.expect(Expect::Apart);
            list.w32(&format!("vshr{types}{operands}"), move |a, b, c| vshr(v, wrap, a, b, c));
            list.expect(Expect::Apart);
        }
    });
    for (op, o) in [(Compare::Eq, "eq"), (Compare::Lt, "lt"), (Compare::Ge, "ge")] {
        for (a_signed, x) in SIGNS {
            for (b_signed, y) in SIGNS {
                let (a, b) = ((Part::Word, a_signed), (Part::H1, b_signed));
                let v = Video {
                    a,
                    b,
                    signed: false,
                    sat: false,
                    then: Then::Add,
                };
                let text = format!("vset.{x}.{y}.{o}.add %W, %w0, %w1.h1, %w2");
                list.w32(&text, move |a, b, c| vset(v, op, a, b, c));
                let v = Video {
                    then: Then::Merge(Part::B2),
                    ..v
                };
                let text = format!("vset.{x}.{y}.{o} %W.b2, %w0, %w1.h1, %w2");
                list.w32(&text, move |a, b, c| vset(v, op, a, b, c));
            }
        }
    }
    video_mad(list);
    video_packed_forms::<2>(list, &["h10", "h32", "h03", "h21"], &[("h10", 3), ("h1", 2)]);
    video_packed_forms::<4>(
        list,
        &["b3210", "b7654", "b0527", "b4321"],
        &[("b3210", 15), ("b31", 10)],
    );
}

fn video_mad(list: &mut List) {
    for (a_signed, x) in SIGNS {
        for (b_signed, y) in SIGNS {
            for (sat, s) in flags(".sat") {
                for (shift, h) in [(0, ""), (7, ".shr7"), (15, ".shr15")] {
                    for (mode, po, m, n) in [(0, "", "", ""), (1, "", "-", ""), (2, "", "", "-"), (3, ".po", "", "")] {
                        let v = VideoMad {
                            a: (Part::H0, a_signed),
                            b: (Part::B3, b_signed),
                            negate_product: mode == 1,
                            negate_c: mode == 2,
                            plus_one: mode == 3,
                            sat,
                            shift,
                        };
                        let d = if a_signed || b_signed || mode == 1 || mode == 2 {
                            "s32"
                        } else {
                            "u32"
                        };
                        let text = format!("vmad.{d}.{x}.{y}{po}{s}{h} %W, {m}%w0.h0, %w1.b3, {n}%w2");
                        list.w32(&text, move |a, b, c| vmad(v, a, b, c));
                        list.expect(Expect::Apart);
                        let v = VideoMad {
                            a: (Part::Word, a_signed),
                            b: (Part::Word, b_signed),
                            ..v
                        };
                        let text = format!("vmad.{d}.{x}.{y}{po}{s}{h} %W, {m}%w0, %w1, {n}%w2");
                        list.w32(&text, move |a, b, c| vmad(v, a, b, c));
                        list.expect(Expect::Apart);
                    }
                }
            }
        }
    }
}

fn video_packed_forms<const N: usize>(list: &mut List, selectors: &[&'static str], masks: &[(&'static str, u8)]) {
    // "h10" lists the elements from the highest to the lowest.
    let elements = |s: &str| {
        let mut all = [0; N];
        s.bytes()
            .skip(1)
            .rev()
            .enumerate()
            .for_each(|(i, digit)| all[i] = digit - b'0');
        all
    };
    let mut turn = 0;
    for (op, o) in [
        (Packed::Add, "vadd"),
        (Packed::Sub, "vsub"),
        (Packed::Avrg, "vavrg"),
        (Packed::AbsDiff, "vabsdiff"),
        (Packed::Min, "vmin"),
        (Packed::Max, "vmax"),
        (Packed::Set(Compare::Lt), "vset"),
        (Packed::Set(Compare::Ne), "vset"),
    ] {
        for (a_signed, x) in SIGNS {
            for (b_signed, y) in SIGNS {
                for (signed, d) in SIGNS {
                    for (sat, add, s) in [(false, false, ""), (true, false, ".sat"), (false, true, ".add")] {
                        turn += 1;
                        let (p, q) = (selectors[turn % selectors.len()], selectors[turn / 3 % selectors.len()]);
                        let (m, mask) = masks[turn / 2 % masks.len()];
                        let (a, b) = (elements(p), elements(q));
                        let v = VideoPacked {
                            a,
                            b,
                            a_signed,
                            b_signed,
                            signed,
                            sat,
                            mask,
                            add,
                        };
                        let types = match op {
                            Packed::Set(_) if signed || sat => continue,
                            Packed::Set(Compare::Lt) => format!(".{x}.{y}.lt{s}"),
                            Packed::Set(_) => format!(".{x}.{y}.ne{s}"),
                            _ => format!(".{d}.{x}.{y}{s}"),
                        };
                        let text = format!("{o}{N}{types} %W.{m}, %w0.{p}, %w1.{q}, %w2");
                        list.w32(&text, move |a, b, c| video_packed(op, v, a, b, c));
                    }
                }
            }
        }
    }
}
