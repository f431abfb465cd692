//! Compares instructions on bit fields, bytes and carries with the manual's bit-by-bit definitions.

use super::super::bits::*;
use super::super::carry::*;
use super::super::int::Int;
use super::Random;

const ROUNDS: u32 = 20_000;

fn bit(a: u64, i: u32) -> bool {
    a >> i & 1 != 0
}

fn from_bits(width: u32, bits: impl Fn(u32) -> bool) -> u64 {
    (0..width).fold(0, |d, i| d | u64::from(bits(i)) << i)
}

fn fields<T: Int>() {
    let mut random = Random::new();
    let width = T::BITS;
    for _ in 0..ROUNDS {
        let (a, b) = (T::from_bits(random.int()), T::from_bits(random.int()));
        let (position, length) = (random.int() as u32, random.int() as u32);
        let (position, length) = if random.next().is_multiple_of(4) {
            (position, length)
        } else {
            (position % 70, length % 70)
        };
        // The 64-bit forms read the whole operand. All values from 64 on are past the end, so 1000 stands for larger
        // ones.
        let low = |v: u32| if width == 64 { v.min(1000) } else { v & 0xff };
        let (pos, len) = (low(position), low(length));
        let sign = T::SIGNED && len != 0 && bit(a.bits(), (pos + len - 1).min(width - 1));
        let expected = from_bits(width, |i| {
            if i < len && pos + i < width {
                bit(a.bits(), pos + i)
            } else {
                sign
            }
        });
        assert_eq!(
            bfe(a, position, length).bits(),
            expected,
            "bfe {a:?} {position} {length}"
        );
        let expected = from_bits(width, |i| {
            if i >= pos && i - pos < len {
                bit(a.bits(), i - pos)
            } else {
                bit(b.bits(), i)
            }
        });
        assert_eq!(
            bfi(a, b, position, length).bits(),
            expected,
            "bfi {a:?} {b:?} {position} {length}"
        );

        let looked_at = if T::SIGNED && bit(a.bits(), width - 1) {
            !a.bits()
        } else {
            a.bits()
        };
        let highest = (0..width).rev().find(|&i| bit(looked_at, i));
        assert_eq!(bfind(a, false), highest.unwrap_or(u32::MAX));
        assert_eq!(bfind(a, true), highest.map_or(u32::MAX, |i| width - 1 - i));
        assert_eq!(brev(a).bits(), from_bits(width, |i| bit(a.bits(), width - 1 - i)));
        assert_eq!(
            clz(a),
            (0..width).rev().take_while(|&i| !bit(a.bits(), i)).count() as u32
        );
        assert_eq!(popc(a), (0..width).filter(|&i| bit(a.bits(), i)).count() as u32);

        // The carry is the bit above the width of a sum in 128 bits.
        let carry = random.next() & 1 != 0;
        let modulus = 1u128 << width;
        let check = |(d, flag): (T, bool), x: u128, y: u128, add: bool| {
            let total = if add {
                x + y + u128::from(carry)
            } else {
                modulus + x - y - u128::from(carry)
            };
            assert_eq!(
                (u128::from(d.bits()), flag),
                (total % modulus, (total >= modulus) == add)
            );
        };
        let [x, y] = [a, b].map(|v| u128::from(v.bits()));
        check(addc(a, b, carry), x, y, true);
        check(subc(a, b, carry), x, y, false);
        assert_eq!((add_cc(a, b), sub_cc(a, b)), (addc(a, b, false), subc(a, b, false)));
        let low = (a.widen() as u128).wrapping_mul(b.widen() as u128);
        check(madc_lo(a, b, b, carry), low % modulus, y, true);
        let high = if T::SIGNED {
            ((a.widen() * b.widen()) >> width) as u128 % modulus
        } else {
            (x * y) >> width
        };
        check(madc_hi(a, b, b, carry), high, y, true);
    }
}

#[test]
fn fields_and_carries() {
    fields::<u32>();
    fields::<i32>();
    fields::<u64>();
    fields::<i64>();
}

/// The manual's definition of `bmsk`, including its overflow flags.
fn bmsk_by_the_manual(a: u32, b: u32, clamp: bool) -> u32 {
    let (a1, b1) = (a & 31, b & 31);
    let sum = a1 + b1;
    let mut mask0 = u32::MAX << a1;
    let (mut position_overflow, mut width_overflow) = (false, false);
    if clamp {
        if a >= 32 {
            position_overflow = true;
            mask0 = 0;
        }
        width_overflow = b >= 32;
    }
    let mask1 = if sum >= 32 || position_overflow || width_overflow {
        0
    } else {
        u32::MAX << sum
    };
    mask0 & !mask1
}

#[test]
fn masks_and_extensions() {
    for a in (0..70).chain([u32::MAX]) {
        for b in (0..70).chain([u32::MAX]) {
            for wrap in [false, true] {
                assert_eq!(bmsk(a, b, wrap), bmsk_by_the_manual(a, b, !wrap), "bmsk {a} {b} {wrap}");
            }
        }
    }
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (a, b) = (random.int() as u32, random.int() as u32 % 70);
        for wrap in [false, true] {
            let b1 = b & 31;
            let too_large = b >= 32 && !wrap;
            let mask = if too_large { 0 } else { u32::MAX << b1 };
            let sign = b1 != 0 && !too_large && a >> ((b1.wrapping_sub(1)) & 31) & 1 != 0;
            assert_eq!(szext(a, b, wrap), a & !mask, "szext.u32 {a:x} {b} {wrap}");
            let expected = a & !mask | if sign { mask } else { 0 };
            assert_eq!(szext(a as i32, b, wrap) as u32, expected, "szext.s32 {a:x} {b} {wrap}");
        }
    }
}

#[test]
fn nth_set_bit() {
    // The manual's examples.
    assert_eq!(
        [(3, 1), (3, -1), (2, 1), (2, -1)].map(|(b, o)| fns(0xaaaa_aaaa, b, o)),
        [3, 3, 3, 1]
    );
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (mask, base) = (random.int() as u32, (random.next() % 32) as u32);
        let offset = (random.next() % 41) as i32 - 20;
        let step = if offset > 0 { 1 } else { -1 };
        let mut expected = u32::MAX;
        if offset == 0 {
            expected = if mask >> base & 1 == 1 { base } else { expected };
        } else {
            let (mut position, mut count) = (base as i32, offset.abs() - 1);
            while (0..32).contains(&position) {
                if mask >> position & 1 == 1 {
                    if count == 0 {
                        expected = position as u32;
                        break;
                    }
                    count -= 1;
                }
                position += step;
            }
        }
        assert_eq!(fns(mask, base, offset), expected, "{mask:x} {base} {offset}");
    }
    assert_eq!((fns(u32::MAX, 32, 1), fns(u32::MAX, 0, i32::MIN)), (u32::MAX, 0));
}

#[test]
fn bytes() {
    let (a, b) = (0x8382_8180, 0x0706_0504);
    assert_eq!(prmt(a, b, 0x7654, Permute::Generic), b);
    assert_eq!(prmt(a, b, 0xffff_0123, Permute::Generic), 0x8081_8283);
    assert_eq!(prmt(a, b, 0xb9f8, Permute::Generic), 0xffff_00ff);
    let modes = |mode| [0, 1, 2, 3].map(|c| prmt(0x0302_0100, b, c | 0xf0, mode));
    assert_eq!(
        modes(Permute::F4e),
        [0x0302_0100, 0x0403_0201, 0x0504_0302, 0x0605_0403]
    );
    assert_eq!(
        modes(Permute::B4e),
        [0x0506_0700, 0x0607_0001, 0x0700_0102, 0x0001_0203]
    );
    assert_eq!(modes(Permute::Rc8), [0, 0x0101_0101, 0x0202_0202, 0x0303_0303]);
    assert_eq!(
        modes(Permute::Ecl),
        [0x0302_0100, 0x0302_0101, 0x0302_0202, 0x0303_0303]
    );
    assert_eq!(modes(Permute::Ecr), [0, 0x0101_0100, 0x0202_0100, 0x0302_0100]);
    assert_eq!(
        modes(Permute::Rc16),
        [0x0100_0100, 0x0302_0302, 0x0100_0100, 0x0302_0302]
    );

    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let [a, b, c] = [random.int(), random.int(), random.int()].map(|v| v as u32);
        let byte = |v: u32, i: usize, signed: bool| {
            let byte = v.to_le_bytes()[i];
            if signed { i64::from(byte as i8) } else { i64::from(byte) }
        };
        let half = |v: u32, i: usize, signed: bool| {
            let half = (v >> (16 * i)) as u16;
            if signed {
                i64::from(half as i16)
            } else {
                i64::from(half)
            }
        };
        for (s, t) in [(false, false), (false, true), (true, false), (true, true)] {
            let four: i64 = (0..4).map(|i| byte(a, i, s) * byte(b, i, t)).sum();
            assert_eq!(dp4a(a, b, c, s, t), (four + i64::from(c)) as u32);
            for high in [false, true] {
                let first = if high { 2 } else { 0 };
                let two: i64 = (0..2).map(|i| half(a, i, s) * byte(b, first + i, t)).sum();
                assert_eq!(dp2a(a, b, c, high, s, t), (two + i64::from(c)) as u32);
            }
        }
    }
}
