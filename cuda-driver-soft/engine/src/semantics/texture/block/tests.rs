//! Compares images of all block-compressed formats with an H200, by a hash of the values of 16 x 16 texels.

use super::super::texel::{Read, value};
use super::Block;

/// Returns the bytes of the image of a format. It contains each mode of BC6H and BC7, and a reserved mode of BC6H.
fn image(format: u64, block: Block) -> Vec<u8> {
    let mut seed = 99 + format;
    let mut next = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    let mut data: Vec<u8> = (0..256).map(|_| next()).collect();
    const MODES: [u8; 16] = [0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 3];
    for (k, mode) in MODES.into_iter().enumerate() {
        let first = &mut data[16 * k];
        match block {
            Block::Bc7 => *first = (u16::from(*first) << (k % 8 + 1)) as u8 | 1 << (k % 8),
            Block::Bc6h(_) if mode < 2 => *first = *first & !3 | mode,
            Block::Bc6h(_) => *first = *first & !31 | mode,
            _ => {}
        }
    }
    data
}

#[test]
fn images_are_those_of_an_h200() {
    for (format, block, first, hash) in [
        (0x91, Block::Bc1, 0x3f149495, 0x276c_a8a7_8976_9263),
        (0x93, Block::Bc2, 0x3f2dadae, 0x490d_568b_ff73_8a90),
        (0x95, Block::Bc3, 0x3f6feff0, 0x0601_a709_65a3_665c),
        (0x97, Block::Bc4(false), 0x3eea7aea, 0x4f39_486e_5695_2c5c),
        (0x98, Block::Bc4(true), 0xbdc18183, 0xee37_947d_1b16_fa17),
        (0x99, Block::Bc5(false), 0x3f000580, 0xa08a_3f3a_7945_5dab),
        (0x9a, Block::Bc5(true), 0x3e3dc17c, 0xd1ff_81d2_3a4e_c823),
        (0x9b, Block::Bc6h(false), 0x44700000, 0x762e_ec3c_3421_9325),
        (0x9c, Block::Bc6h(true), 0x458b6000, 0x2412_2bdb_c791_1325),
        (0x9d, Block::Bc7, 0x3f41c1c2, 0x6b31_c1d2_2ac3_3d0c),
    ] {
        let data = image(format, block);
        let size = block.bytes() as usize;
        let mut values = Vec::new();
        for at in 0..256 {
            let (x, y) = (at % 16, at / 16);
            let from = (y / 4 * 4 + x / 4) * size;
            let mut bytes = [0; 16];
            bytes[..size].copy_from_slice(&data[from..from + size]);
            let texel = block.texel(&bytes, y % 4 * 4 + x % 4);
            for (component, wide) in texel.into_iter().enumerate() {
                values.push(value(block.channel(), Read::Normalized, component, wide));
            }
        }
        let mixed = values.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, word| {
            (hash ^ u64::from(*word)).wrapping_mul(0x0100_0000_01b3)
        });
        assert_eq!((values[0], mixed), (first, hash), "{block:?}: {values:x?}");
    }
}
