//! Table rows of the video instructions.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, row};
use crate::ir::{Compare, Video, VideoEach, VideoInst, VideoMad, VideoOp, VideoPacked, VideoPart, VideoThen};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- scalar: one value in each operand
    row("vadd<int32><int32><int32>{.sat} d:1, a:2, b{, c:1}", 20, 20, |m| scalar(m, VideoOp::Add)),
    row("vadd<int32><int32><int32>{.sat}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| scalar(m, VideoOp::Add)),
    row("vsub<int32><int32><int32>{.sat} d:1, a:2, b{, c:1}", 20, 20, |m| scalar(m, VideoOp::Sub)),
    row("vsub<int32><int32><int32>{.sat}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| scalar(m, VideoOp::Sub)),
    row("vabsdiff<int32><int32><int32>{.sat} d:1, a:2, b{, c:1}", 20, 20, |m| scalar(m, VideoOp::AbsDiff)),
    row("vabsdiff<int32><int32><int32>{.sat}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| scalar(m, VideoOp::AbsDiff)),
    row("vmin<int32><int32><int32>{.sat} d:1, a:2, b{, c:1}", 20, 20, |m| scalar(m, VideoOp::Min)),
    row("vmin<int32><int32><int32>{.sat}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| scalar(m, VideoOp::Min)),
    row("vmax<int32><int32><int32>{.sat} d:1, a:2, b{, c:1}", 20, 20, |m| scalar(m, VideoOp::Max)),
    row("vmax<int32><int32><int32>{.sat}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| scalar(m, VideoOp::Max)),
    row("vshl<int32><int32><int32>{.sat}{.clamp|.wrap} d:1, a:2, b{, c:1}", 20, 20, |m| shift(m, "vshl")),
    row("vshl<int32><int32><int32>{.sat}{.clamp|.wrap}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| shift(m, "vshl")),
    row("vshr<int32><int32><int32>{.sat}{.clamp|.wrap} d:1, a:2, b{, c:1}", 20, 20, |m| shift(m, "vshr")),
    row("vshr<int32><int32><int32>{.sat}{.clamp|.wrap}(.add|.min|.max) d:1, a:2, b, c:1", 20, 20, |m| shift(m, "vshr")),
    row("vset<int32><int32><cmp> d:u32, a:1, b{, c:u32}", 20, 20, set),
    row("vset<int32><int32><cmp>(.add|.min|.max) d:u32, a:1, b, c:u32", 20, 20, set),
    row("vmad<int32><int32><int32>{.po}{.sat}{.shr7|.shr15} d:1, a:2, b, c:1", 20, 20, mad),
    // --- packed: two half-words in each operand
    row("vadd2<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| halves(m, VideoEach::Add)),
    row("vsub2<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| halves(m, VideoEach::Sub)),
    row("vavrg2<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| halves(m, VideoEach::Avrg)),
    row("vabsdiff2<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| halves(m, VideoEach::AbsDiff)),
    row("vmin2<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| halves(m, VideoEach::Min)),
    row("vmax2<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| halves(m, VideoEach::Max)),
    row("vset2<int32><int32><cmp>{.add} d:u32, a:1, b, c:u32", 30, 30, |m| halves(m, VideoEach::Set(compare(m)?))),
    // --- packed: four bytes in each operand
    row("vadd4<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| bytes(m, VideoEach::Add)),
    row("vsub4<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| bytes(m, VideoEach::Sub)),
    row("vavrg4<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| bytes(m, VideoEach::Avrg)),
    row("vabsdiff4<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| bytes(m, VideoEach::AbsDiff)),
    row("vmin4<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| bytes(m, VideoEach::Min)),
    row("vmax4<int32><int32><int32>{.sat}{.add} d:1, a:2, b, c:1", 30, 30, |m| bytes(m, VideoEach::Max)),
    row("vset4<int32><int32><cmp>{.add} d:u32, a:1, b, c:u32", 30, 30, |m| bytes(m, VideoEach::Set(compare(m)?))),
];

/// The part that an operand without a selector means. Selectors are written in the operands; lowering sets their parts.
const ALL: VideoPart = VideoPart::Word;

fn then(m: &Mods) -> VideoThen {
    match (m.has(".add"), m.has(".min"), m.has(".max")) {
        (true, ..) => VideoThen::Add,
        (_, true, _) => VideoThen::Min,
        (_, _, true) => VideoThen::Max,
        _ => VideoThen::Nothing,
    }
}

fn scalar(m: &Mods, op: VideoOp) -> Result<Lowering, Reject> {
    Ok(Lowering::Video(VideoInst::Scalar(
        op,
        Video {
            a: (ALL, m.ty(1).is_signed()),
            b: (ALL, m.ty(2).is_signed()),
            signed: m.ty(0).is_signed(),
            sat: m.has(".sat"),
            then: then(m),
        },
    )))
}

fn shift(m: &Mods, root: &str) -> Result<Lowering, Reject> {
    if m.ty(2).is_signed() {
        return Err(Reject("Operation requires .u32 type".to_owned()));
    }
    let wrap = m.has(".wrap");
    if !wrap && !m.has(".clamp") {
        let message = format!("Clamp modifier required for instruction '{root}'");
        return Err(Reject(message));
    }
    let left = root == "vshl";
    scalar(
        m,
        if left {
            VideoOp::Shl { wrap }
        } else {
            VideoOp::Shr { wrap }
        },
    )
}

/// Returns the comparison. The operands are extended to signed numbers first, so there are no unsigned comparisons.
fn compare(m: &Mods) -> Result<Compare, Reject> {
    use Compare::*;
    match m.compare() {
        compare @ (Eq | Ne | Lt | Le | Gt | Ge) => Ok(compare),
        _ => Err(Reject(
            "Mismatch between instruction type and comparison qualifier".to_owned(),
        )),
    }
}

fn set(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Video(VideoInst::Scalar(
        VideoOp::Set(compare(m)?),
        Video {
            a: (ALL, m.ty(0).is_signed()),
            b: (ALL, m.ty(1).is_signed()),
            signed: false,
            sat: false,
            then: then(m),
        },
    )))
}

fn mad(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Video(VideoInst::Mad(VideoMad {
        a: (ALL, m.ty(1).is_signed()),
        b: (ALL, m.ty(2).is_signed()),
        negate_product: false,
        negate_c: false,
        plus_one: m.has(".po"),
        sat: m.has(".sat"),
        shift: match (m.has(".shr7"), m.has(".shr15")) {
            (true, _) => 7,
            (_, true) => 15,
            _ => 0,
        },
    })))
}

/// Returns the modifiers of a packed instruction whose operands have no selectors.
fn packed<const N: usize>(m: &Mods, op: VideoEach) -> Result<VideoPacked<N>, Reject> {
    let (sat, add) = (m.has(".sat"), m.has(".add"));
    if sat && add {
        let message = "Illegal combination of .sat and .add modifiers";
        return Err(Reject(message.to_owned()));
    }
    // `vset2` and `vset4` have no type for the result.
    let (signed, first) = match op {
        VideoEach::Set(_) => (false, 0),
        _ => (m.ty(0).is_signed(), 1),
    };
    Ok(VideoPacked {
        a: std::array::from_fn(|i| i as u8),
        b: std::array::from_fn(|i| (N + i) as u8),
        a_signed: m.ty(first).is_signed(),
        b_signed: m.ty(first + 1).is_signed(),
        signed,
        sat,
        mask: (1 << N) - 1,
        add,
    })
}

fn halves(m: &Mods, op: VideoEach) -> Result<Lowering, Reject> {
    Ok(Lowering::Video(VideoInst::Halves(op, packed(m, op)?)))
}

fn bytes(m: &Mods, op: VideoEach) -> Result<Lowering, Reject> {
    Ok(Lowering::Video(VideoInst::Bytes(op, packed(m, op)?)))
}
