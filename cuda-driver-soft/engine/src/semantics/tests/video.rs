//! Compares the video instructions with results computed by hand, or byte by byte.

use super::super::video::*;
use super::Random;
use ptx::ir::Compare;

const PLAIN: Video = Video {
    a: (Part::Word, false),
    b: (Part::Word, false),
    signed: false,
    sat: false,
    then: Then::Nothing,
};

#[test]
fn scalar_forms() {
    let signed = Video {
        a: (Part::B1, true),
        b: (Part::H1, true),
        signed: true,
        ..PLAIN
    };
    // The operands are -128 and -2.
    assert_eq!(vadd(signed, 0x8000, 0xfffe_0000, 0), -130i32 as u32);
    assert_eq!(vabsdiff(signed, 0x8000, 0xfffe_0000, 0), 126);
    assert_eq!(vmin(signed, 0x8000, 0xfffe_0000, 0), -128i32 as u32);
    assert_eq!(
        vadd(
            Video {
                sat: true,
                then: Then::Merge(Part::B2),
                ..signed
            },
            0x8000,
            0xfffe_0000,
            0x1111_1111
        ),
        0x1180_1111
    );
    assert_eq!(vsub(Video { sat: true, ..PLAIN }, 1, 2, 0), 0);
    assert_eq!(vadd(Video { sat: true, ..PLAIN }, u32::MAX, 2, 0), u32::MAX);
    assert_eq!(vadd(PLAIN, u32::MAX, 2, 0), 1);
    assert_eq!(
        vmax(
            Video {
                then: Then::Add,
                ..PLAIN
            },
            3,
            4,
            u32::MAX
        ),
        3
    );
    assert_eq!(
        vadd(
            Video {
                then: Then::Min,
                signed: true,
                ..PLAIN
            },
            3,
            4,
            u32::MAX
        ),
        u32::MAX
    );
    assert_eq!(
        vadd(
            Video {
                then: Then::Max,
                ..PLAIN
            },
            3,
            4,
            6
        ),
        7
    );
    assert_eq!((vshl(PLAIN, false, 1, 40, 0), vshl(PLAIN, true, 1, 40, 0)), (0, 256));
    let arithmetic = Video {
        a: (Part::Word, true),
        signed: true,
        ..PLAIN
    };
    assert_eq!(
        (
            vshr(arithmetic, false, 1 << 31, 99, 0),
            vshr(PLAIN, false, 1 << 31, 31, 0)
        ),
        (u32::MAX, 1)
    );
    let set = Video {
        b: (Part::B0, true),
        then: Then::Add,
        ..PLAIN
    };
    assert_eq!(
        (vset(set, Compare::Gt, 0, 0xff, 5), vset(set, Compare::Eq, 255, 0xff, 5)),
        (6, 5)
    );
}

#[test]
fn multiply_and_add() {
    let plain = VideoMad {
        a: (Part::Word, false),
        b: (Part::Word, false),
        negate_product: false,
        negate_c: false,
        plus_one: false,
        sat: false,
        shift: 0,
    };
    assert_eq!(vmad(plain, 3, 5, 7), 22);
    assert_eq!(
        vmad(
            VideoMad {
                plus_one: true,
                ..plain
            },
            3,
            5,
            7
        ),
        23
    );
    assert_eq!(
        vmad(
            VideoMad {
                negate_product: true,
                ..plain
            },
            3,
            5,
            7
        ),
        -8i32 as u32
    );
    assert_eq!(
        vmad(
            VideoMad {
                negate_c: true,
                sat: true,
                ..plain
            },
            1,
            5,
            7
        ),
        -2i32 as u32
    );
    assert_eq!(vmad(VideoMad { sat: true, ..plain }, u32::MAX, 5, 7), u32::MAX);
    assert_eq!(
        vmad(VideoMad { shift: 7, ..plain }, u32::MAX, 256, 0),
        u32::MAX.wrapping_mul(2)
    );
    assert_eq!(
        vmad(
            VideoMad {
                shift: 7,
                negate_product: true,
                ..plain
            },
            1,
            1,
            0
        ),
        u32::MAX
    );
}

#[test]
fn packed_bytes() {
    let mut random = Random::new();
    for _ in 0..20_000 {
        let [a, b, c] = [random.int(), random.int(), random.int()].map(|v| v as u32);
        let [x, y, z] = [a, b, c].map(u32::to_le_bytes);
        let v = VideoPacked {
            a: [0, 1, 2, 3],
            b: [4, 5, 6, 7],
            a_signed: false,
            b_signed: false,
            signed: false,
            sat: false,
            mask: 15,
            add: false,
        };
        let each = |f: &dyn Fn(u8, u8) -> u8| u32::from_le_bytes(std::array::from_fn(|i| f(x[i], y[i])));
        let as_signed = |f: &dyn Fn(i8, i8) -> i8| each(&|a, b| f(a as i8, b as i8) as u8);
        assert_eq!(video_packed(Packed::Add, v, a, b, c), each(&u8::wrapping_add));
        assert_eq!(
            video_packed(Packed::Sub, VideoPacked { sat: true, ..v }, a, b, c),
            each(&u8::saturating_sub)
        );
        assert_eq!(video_packed(Packed::AbsDiff, v, a, b, c), each(&u8::abs_diff));
        assert_eq!(
            video_packed(Packed::Avrg, v, a, b, c),
            each(&|a, b| (u16::from(a) + u16::from(b)).div_ceil(2) as u8)
        );
        assert_eq!(
            video_packed(Packed::Set(Compare::Lt), v, a, b, c),
            each(&|a, b| u8::from(a < b))
        );
        let signed = VideoPacked {
            a_signed: true,
            b_signed: true,
            signed: true,
            ..v
        };
        assert_eq!(
            video_packed(Packed::Add, VideoPacked { sat: true, ..signed }, a, b, c),
            as_signed(&i8::saturating_add)
        );
        assert_eq!(video_packed(Packed::Max, signed, a, b, c), as_signed(&i8::max));
        let sum: i32 = (0..4).map(|i| i32::from(x[i] as i8) - i32::from(y[i] as i8)).sum();
        assert_eq!(
            video_packed(Packed::Sub, VideoPacked { add: true, ..signed }, a, b, c),
            c.wrapping_add(sum as u32)
        );
        // Elements 0 and 3 are from `c`. Element 1 takes its first operand from `b` and its second from `a`; element 2
        // takes bytes of other positions.
        let mixed = VideoPacked {
            a: [5, 6, 0, 0],
            b: [0, 1, 7, 0],
            mask: 0b0110,
            ..v
        };
        let expected = [z[0], y[2].min(x[1]), x[0].min(y[3]), z[3]];
        assert_eq!(video_packed(Packed::Min, mixed, a, b, c), u32::from_le_bytes(expected));
    }
}

#[test]
fn packed_half_words() {
    let v = VideoPacked {
        a: [0, 1],
        b: [2, 3],
        a_signed: true,
        b_signed: true,
        signed: true,
        sat: false,
        mask: 3,
        add: false,
    };
    assert_eq!(
        video_packed(Packed::Add, VideoPacked { sat: true, ..v }, 0x7fff_8000, 0x0001_ffff, 0),
        0x7fff_8000
    );
    // Ties are rounded away from zero: (-3 + 0) / 2 is -1.5, and (3 + 0) / 2 is 1.5.
    assert_eq!(video_packed(Packed::Avrg, v, 0xfffd_0003, 0, 0), 0xfffe_0002);
}
