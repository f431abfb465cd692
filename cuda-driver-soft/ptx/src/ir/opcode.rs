//! Operations as PTX opcodes with their modifiers, for messages.
//!
//! Modifiers without an effect (cache hints, layouts of `wmma.mma`, types of stack instructions) are not kept in the
//! IR, and are not printed. An operation that has several opcodes prints as one of them: `membar.gl` as
//! `fence.acq_rel.gpu`.

use super::op::{FloatMods, MemMods, Op};
use super::texture::{Geometry, Level, Opaque, Query, Surface, SurfaceOp, Tex};
use super::types::{
    AtomOp, BarOp, CopyGroup, CopyPart, MatrixPart, MbarrierOp, Mma, MmioOrder, Order, Part, Precision, PrmtMode,
    Scope, Space, Type, VoteMode,
};
use super::video::{VideoEach, VideoInst, VideoOp, VideoThen};
use std::fmt::{Debug, Display, Formatter, Result};

/// Prints a variant as the modifier of the same name, such as `.rn` for `Rounding::Rn`.
struct Dot<T>(T);

impl<T: Debug> Display for Dot<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".{}", format!("{:?}", self.0).to_lowercase())
    }
}

/// Returns the modifier if the condition holds; otherwise an empty string.
fn when(condition: bool, modifier: &'static str) -> &'static str {
    if condition { modifier } else { "" }
}

/// Returns the text of an optional modifier; empty for `None`.
fn optional<T: Debug>(modifier: Option<T>) -> String {
    modifier.map_or(String::new(), |m| Dot(m).to_string())
}

impl Display for Type {
    /// Prints the type with its dot, such as `.u32`.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", Dot(self))
    }
}

impl Display for Space {
    /// Prints the state space with its dot, such as `.shared`; nothing for generic addresses.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Space::Generic => Ok(()),
            Space::SharedCluster => f.write_str(".shared::cluster"),
            space => write!(f, "{}", Dot(space)),
        }
    }
}

impl Display for Precision {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Precision::Ieee(rounding) => write!(f, "{}", Dot(rounding)),
            Precision::Full | Precision::Approx => write!(f, "{}", Dot(self)),
        }
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let scoped = |f: &mut Formatter<'_>, order: &str, scope: &Scope| write!(f, ".{order}{}", Dot(scope));
        match self {
            Order::Weak => Ok(()),
            Order::Volatile => f.write_str(".volatile"),
            Order::Relaxed(scope) => scoped(f, "relaxed", scope),
            Order::Acquire(scope) => scoped(f, "acquire", scope),
            Order::Release(scope) => scoped(f, "release", scope),
            Order::AcqRel(scope) => scoped(f, "acq_rel", scope),
            Order::Mmio(MmioOrder::Relaxed) => f.write_str(".mmio.relaxed.sys"),
            Order::Mmio(MmioOrder::Acquire) => f.write_str(".mmio.acquire.sys"),
            Order::Mmio(MmioOrder::Release) => f.write_str(".mmio.release.sys"),
        }
    }
}

impl Display for Geometry {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Geometry::D1 => ".1d",
            Geometry::D2 => ".2d",
            Geometry::D3 => ".3d",
            Geometry::A1 => ".a1d",
            Geometry::A2 => ".a2d",
            Geometry::Cube => ".cube",
            Geometry::ACube => ".acube",
        })
    }
}

/// Prints the shape of a matrix operation, such as `.m16n8k8`.
struct Shape([u16; 3]);

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let [m, n, k] = self.0;
        write!(f, ".m{m}n{n}k{k}")
    }
}

impl Display for Op {
    /// Prints the opcode with its modifiers, such as `cvta.to.shared.u64`.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Op::Mov { ty } | Op::Pack { ty } | Op::Unpack { ty } => write!(f, "mov{ty}"),
            Op::Cvt(cvt) => {
                let integral = cvt.int_rnd.map_or(String::new(), |r| format!("{}i", Dot(r)));
                write!(
                    f,
                    "cvt{}{integral}{}{}{}{}{}{}",
                    optional(cvt.rnd),
                    when(cvt.relu, ".relu"),
                    when(cvt.satfinite, ".satfinite"),
                    when(cvt.ftz, ".ftz"),
                    when(cvt.sat, ".sat"),
                    cvt.to,
                    cvt.from
                )
            }
            Op::CvtPack { to, from, c } => write!(f, "cvt.pack.sat{to}{from}{}", optional(*c)),
            Op::Cvta { space, to, ty } => write!(f, "cvta{}{space}{ty}", when(*to, ".to")),
            Op::Isspacep { space } => write!(f, "isspacep{space}"),
            Op::Selp { ty } => write!(f, "selp{ty}"),
            Op::Slct { ty, cty, ftz } => write!(f, "slct{}{ty}{cty}", when(*ftz, ".ftz")),

            Op::Add { ty, sat } => write!(f, "add{}{ty}", when(*sat, ".sat")),
            Op::Sub { ty, sat } => write!(f, "sub{}{ty}", when(*sat, ".sat")),
            Op::Mul { ty, part } => write!(f, "mul{}{ty}", Dot(part)),
            Op::Mad { ty, part, sat } => write!(f, "mad{}{}{ty}", Dot(part), when(*sat, ".sat")),
            Op::Mul24 { ty, hi } => write!(f, "mul24{}{ty}", half(*hi)),
            Op::Mad24 { ty, hi, sat } => {
                write!(f, "mad24{}{}{ty}", half(*hi), when(*sat, ".sat"))
            }
            Op::Div { ty } => write!(f, "div{ty}"),
            Op::Rem { ty } => write!(f, "rem{ty}"),
            Op::Abs { ty } => write!(f, "abs{ty}"),
            Op::Neg { ty } => write!(f, "neg{ty}"),
            Op::Min { ty, relu } => write!(f, "min{}{ty}", when(*relu, ".relu")),
            Op::Max { ty, relu } => write!(f, "max{}{ty}", when(*relu, ".relu")),

            Op::And { ty } => write!(f, "and{ty}"),
            Op::Or { ty } => write!(f, "or{ty}"),
            Op::Xor { ty } => write!(f, "xor{ty}"),
            Op::Not { ty } => write!(f, "not{ty}"),
            Op::Cnot { ty } => write!(f, "cnot{ty}"),
            Op::Shl { ty } => write!(f, "shl{ty}"),
            Op::Shr { ty } => write!(f, "shr{ty}"),
            Op::AddC {
                ty,
                sub,
                carry_in,
                carry_out,
            } => write!(
                f,
                "{}{}{}{ty}",
                if *sub { "sub" } else { "add" },
                when(*carry_in, "c"),
                when(*carry_out, ".cc")
            ),
            Op::MadC {
                ty,
                hi,
                carry_in,
                carry_out,
            } => write!(
                f,
                "mad{}{}{}{ty}",
                when(*carry_in, "c"),
                half(*hi),
                when(*carry_out, ".cc")
            ),
            Op::Sad { ty } => write!(f, "sad{ty}"),
            Op::Dp4a { aty, bty } => write!(f, "dp4a{aty}{bty}"),
            Op::Dp2a { aty, bty, hi } => write!(f, "dp2a{}{aty}{bty}", half(*hi)),

            Op::Bfe { ty } => write!(f, "bfe{ty}"),
            Op::Bfi { ty } => write!(f, "bfi{ty}"),
            Op::Bfind { ty, shiftamt } => write!(f, "bfind{}{ty}", when(*shiftamt, ".shiftamt")),
            Op::Bmsk { clamp } => write!(f, "bmsk{}.b32", shift_mode(*clamp)),
            Op::Szext { ty, clamp } => write!(f, "szext{}{ty}", shift_mode(*clamp)),
            Op::Brev { ty } => write!(f, "brev{ty}"),
            Op::Clz { ty } => write!(f, "clz{ty}"),
            Op::Popc { ty } => write!(f, "popc{ty}"),
            Op::Fns => f.write_str("fns.b32"),
            Op::Lop3 { bool_op, .. } => write!(f, "lop3{}.b32", optional(*bool_op)),
            Op::Prmt { mode: PrmtMode::Index } => f.write_str("prmt.b32"),
            Op::Prmt { mode } => write!(f, "prmt.b32{}", Dot(mode)),
            Op::Shf { left, clamp } => write!(f, "shf{}{}.b32", if *left { ".l" } else { ".r" }, shift_mode(*clamp)),
            Op::Video(video) => write!(f, "{video}"),

            Op::FAdd(mods) => write!(f, "add{mods}"),
            Op::FSub(mods) => write!(f, "sub{mods}"),
            Op::FMul(mods) => write!(f, "mul{mods}"),
            Op::Fma(mods) => write!(f, "fma{mods}"),
            Op::FNeg { ty, ftz } => write!(f, "neg{}{ty}", when(*ftz, ".ftz")),
            Op::FAbs { ty, ftz } => write!(f, "abs{}{ty}", when(*ftz, ".ftz")),
            Op::FMin {
                ty,
                ftz,
                nan,
                xorsign_abs,
            } => write!(f, "min{}{ty}", min_mods(*ftz, *nan, *xorsign_abs)),
            Op::FMax {
                ty,
                ftz,
                nan,
                xorsign_abs,
            } => write!(f, "max{}{ty}", min_mods(*ftz, *nan, *xorsign_abs)),
            Op::FDiv { ty, precision, ftz } => {
                write!(f, "div{precision}{}{ty}", when(*ftz, ".ftz"))
            }
            Op::Sqrt { ty, precision, ftz } => {
                write!(f, "sqrt{precision}{}{ty}", when(*ftz, ".ftz"))
            }
            Op::Rcp { ty, precision, ftz } => {
                write!(f, "rcp{precision}{}{ty}", when(*ftz, ".ftz"))
            }
            Op::Rsqrt { ty, ftz } => write!(f, "rsqrt.approx{}{ty}", when(*ftz, ".ftz")),
            Op::Sin { ftz } => write!(f, "sin.approx{}.f32", when(*ftz, ".ftz")),
            Op::Cos { ftz } => write!(f, "cos.approx{}.f32", when(*ftz, ".ftz")),
            Op::Lg2 { ftz } => write!(f, "lg2.approx{}.f32", when(*ftz, ".ftz")),
            Op::Ex2 { ty, ftz } => write!(f, "ex2.approx{}{ty}", when(*ftz, ".ftz")),
            Op::Tanh { ty } => write!(f, "tanh.approx{ty}"),
            Op::Copysign { ty } => write!(f, "copysign{ty}"),
            Op::Testp { test, ty } => write!(f, "testp{}{ty}", Dot(test)),

            Op::Setp { cmp, ty, ftz, bool_op } => {
                write!(f, "setp{}{}{}{ty}", Dot(cmp), optional(*bool_op), when(*ftz, ".ftz"))
            }
            Op::Set {
                cmp,
                dty,
                ty,
                ftz,
                bool_op,
            } => write!(
                f,
                "set{}{}{}{dty}{ty}",
                Dot(cmp),
                optional(*bool_op),
                when(*ftz, ".ftz")
            ),

            // These spaces have no `.volatile`: the order comes from `.cv`.
            Op::Ld(mem) if mem.order == Order::Volatile && matches!(mem.space, Space::Const | Space::Param) => {
                write!(f, "ld{}.cv{}", mem.space, Elements(mem))
            }
            Op::Ld(mem) => write!(f, "ld{}{}{}", mem.order, mem.space, Elements(mem)),
            Op::St(mem) => write!(f, "st{}{}{}", mem.order, mem.space, Elements(mem)),
            Op::Atom { op, mem } => write!(f, "atom{}", atomic(*op, mem)),
            Op::Red { op, mem } => write!(f, "red{}", atomic(*op, mem)),
            Op::Fence { scope } => write!(f, "fence.acq_rel{}", Dot(scope)),

            Op::Shfl { mode, sync } => {
                write!(f, "shfl{}{}.b32", when(*sync, ".sync"), Dot(mode))
            }
            Op::Vote { mode, sync } => {
                let ty = match mode {
                    VoteMode::Ballot => Type::B32,
                    VoteMode::All | VoteMode::Any | VoteMode::Uni => Type::Pred,
                };
                write!(f, "vote{}{}{ty}", when(*sync, ".sync"), Dot(mode))
            }
            Op::Match { all, ty } => {
                write!(f, "match{}.sync{ty}", if *all { ".all" } else { ".any" })
            }
            Op::Redux { op, ty } => write!(f, "redux.sync{}{ty}", Dot(op)),
            Op::Activemask => f.write_str("activemask.b32"),
            Op::Elect => f.write_str("elect.sync"),
            Op::BarWarpSync => f.write_str("bar.warp.sync"),

            Op::Bra { uni, .. } => write!(f, "bra{}", when(*uni, ".uni")),
            Op::Brx { uni, .. } => write!(f, "brx.idx{}", when(*uni, ".uni")),
            Op::Call { uni, .. } => write!(f, "call{}", when(*uni, ".uni")),
            Op::Ret { uni } => write!(f, "ret{}", when(*uni, ".uni")),
            Op::Alloca => f.write_str("alloca"),
            Op::Stacksave => f.write_str("stacksave"),
            Op::Stackrestore => f.write_str("stackrestore"),
            Op::Exit => f.write_str("exit"),
            Op::Trap => f.write_str("trap"),
            Op::Bar { op, aligned } => {
                let name = if *aligned { "bar" } else { "barrier" };
                match op {
                    BarOp::Sync | BarOp::Arrive => write!(f, "{name}{}", Dot(op)),
                    BarOp::Red(op) => write!(f, "{name}.red{}.pred", Dot(op)),
                    BarOp::Popc => write!(f, "{name}.red.popc.u32"),
                }
            }
            Op::Mapa { ty } => write!(f, "mapa.shared::cluster{ty}"),
            Op::Getctarank { ty } => write!(f, "getctarank.shared::cluster{ty}"),
            Op::WantsCluster { reduce: false } => f.write_str("st.async"),
            Op::WantsCluster { reduce: true } => f.write_str("red.async"),
            Op::ClusterBarrier {
                arrive,
                relaxed,
                aligned,
            } => write!(
                f,
                "barrier.cluster{}{}{}",
                if *arrive { ".arrive" } else { ".wait" },
                when(*relaxed, ".relaxed"),
                when(*aligned, ".aligned")
            ),
            Op::CopyGroup(group) => f.write_str(match group {
                CopyGroup::Commit => "cp.async.commit_group",
                CopyGroup::Wait => "cp.async.wait_group",
                CopyGroup::WaitAll => "cp.async.wait_all",
            }),
            Op::CpAsync {
                bytes,
                part: CopyPart::All | CopyPart::Bytes | CopyPart::Unless,
            } => {
                let cache = if *bytes == 16 { ".cg" } else { ".ca" };
                write!(f, "cp.async{cache}.shared.global")
            }
            Op::Bulk {
                to,
                from,
                reduce,
                multicast,
            } => bulk(f, *to, *from, *reduce, *multicast),
            Op::TensorCopy(copy) => write!(f, "{copy}"),
            Op::TensorMapReplace(replace) => write!(f, "{replace}"),
            Op::Mbarrier { op, space } => {
                let copies = matches!(op, MbarrierOp::CopiesArrive | MbarrierOp::CopiesArriveNoInc);
                let prefix = if copies { "cp.async." } else { "" };
                write!(f, "{prefix}mbarrier{}{space}.b64", mbarrier(*op))
            }
            Op::Mma(mma) if mma.wmma => write!(f, "wmma.mma.sync.aligned{}{}", Shape(mma.shape), MmaTypes(mma)),
            Op::Mma(mma) => {
                let a = if mma.swapped[0] { ".col" } else { ".row" };
                let b = if mma.swapped[1] { ".row" } else { ".col" };
                let sparse = when(mma.sparse.is_some(), ".sp");
                write!(f, "mma{sparse}.sync.aligned{}{a}{b}{}", Shape(mma.shape), MmaTypes(mma))
            }
            Op::Wgmma(wgmma) => {
                let Mma {
                    shape,
                    d,
                    a,
                    b,
                    satfinite,
                    bits,
                    sparse,
                    ..
                } = wgmma.mma;
                write!(
                    f,
                    "wgmma.mma_async{}.sync.aligned{}{}{d}{a}{b}{}",
                    when(sparse.is_some(), ".sp"),
                    Shape(shape),
                    when(satfinite, ".satfinite"),
                    bits.map_or(String::new(), |op| format!("{}.popc", Dot(op)))
                )
            }
            Op::Ldmatrix { count, trans, space } => write!(
                f,
                "ldmatrix.sync.aligned.m8n8.x{count}{}{space}.b16",
                when(*trans, ".trans")
            ),
            Op::Stmatrix { count, trans, space } => write!(
                f,
                "stmatrix.sync.aligned.m8n8.x{count}{}{space}.b16",
                when(*trans, ".trans")
            ),
            Op::Movmatrix => f.write_str("movmatrix.sync.aligned.m8n8.trans.b16"),
            Op::WmmaLd {
                shape,
                part,
                ty,
                column,
                space,
            } => {
                let part = match part {
                    MatrixPart::A => ".a",
                    MatrixPart::B => ".b",
                    MatrixPart::C => ".c",
                };
                let layout = if *column { ".col" } else { ".row" };
                write!(f, "wmma.load{part}.sync.aligned{layout}{}{space}{ty}", Shape(*shape))
            }
            Op::WmmaSt {
                shape,
                ty,
                column,
                space,
            } => {
                let layout = if *column { ".col" } else { ".row" };
                write!(f, "wmma.store.d.sync.aligned{layout}{}{space}{ty}", Shape(*shape))
            }
            Op::Tex(tex) => write!(f, "{tex}"),
            Op::Surface(surface) => write!(f, "{surface}"),
            Op::Query { query, surface } => {
                let name = if *surface { "suq" } else { "txq" };
                match query {
                    Query::Width | Query::Height | Query::Depth => {
                        write!(f, "{name}{}.b32", Dot(query))
                    }
                }
            }
            Op::Istypep(opaque) => f.write_str(match opaque {
                Opaque::Texture => "istypep.texref",
                Opaque::Sampler => "istypep.samplerref",
                Opaque::Surface => "istypep.surfref",
            }),
            Op::Nanosleep => f.write_str("nanosleep.u32"),
            Op::Nop => f.write_str("nop"),
            Op::Unsupported { opcode } => f.write_str(opcode),
        }
    }
}

fn half(hi: bool) -> Dot<Part> {
    Dot(if hi { Part::Hi } else { Part::Lo })
}

fn shift_mode(clamp: bool) -> &'static str {
    if clamp { ".clamp" } else { ".wrap" }
}

fn min_mods(ftz: bool, nan: bool, xorsign_abs: bool) -> String {
    [when(ftz, ".ftz"), when(nan, ".NaN"), when(xorsign_abs, ".xorsign.abs")].concat()
}

/// Returns the modifiers of `atom` or `red`, such as `.relaxed.gpu.global.add.noftz.f16`.
fn atomic(op: AtomOp, mem: &MemMods) -> String {
    let small = matches!(mem.ty, Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2);
    let noftz = small && matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max);
    format!(
        "{}{}{}{}{}",
        mem.order,
        mem.space,
        Dot(op),
        when(noftz, ".noftz"),
        Elements(mem)
    )
}

fn bulk(f: &mut Formatter<'_>, to: Space, from: Space, reduce: Option<(AtomOp, Type)>, multicast: bool) -> Result {
    let name = if reduce.is_some() {
        "cp.reduce.async.bulk"
    } else {
        "cp.async.bulk"
    };
    let space = |space: Space| match space {
        Space::Shared => ".shared::cta".into(),
        space => space.to_string(),
    };
    let completion = if to == Space::Global {
        ".bulk_group"
    } else {
        ".mbarrier::complete_tx::bytes"
    };
    write!(
        f,
        "{name}{}{}{completion}{}",
        space(to),
        space(from),
        when(multicast, ".multicast::cluster")
    )?;
    match reduce {
        Some((op, ty)) => {
            let noftz = op == AtomOp::Add && matches!(ty, Type::F16 | Type::BF16);
            write!(f, "{}{}{ty}", Dot(op), when(noftz, ".noftz"))
        }
        None => Ok(()),
    }
}

fn mbarrier(op: MbarrierOp) -> &'static str {
    match op {
        MbarrierOp::Init => ".init",
        MbarrierOp::Inval => ".inval",
        MbarrierOp::ExpectTx => ".expect_tx",
        MbarrierOp::CompleteTx => ".complete_tx",
        MbarrierOp::Arrive => ".arrive",
        MbarrierOp::ArriveExpectTx => ".arrive.expect_tx",
        MbarrierOp::ArriveDrop => ".arrive_drop",
        MbarrierOp::ArriveDropExpectTx => ".arrive_drop.expect_tx",
        MbarrierOp::Wait => ".test_wait",
        MbarrierOp::WaitParity => ".test_wait.parity",
        MbarrierOp::PendingCount => ".pending_count",
        MbarrierOp::CopiesArrive => ".arrive",
        MbarrierOp::CopiesArriveNoInc => ".arrive.noinc",
    }
}

/// Prints the number and the type of the elements of a memory access, such as `.v4.f32`.
struct Elements<'a>(&'a MemMods);

impl Display for Elements<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.0.vec > 1 {
            write!(f, ".v{}", self.0.vec)?;
        }
        write!(f, "{}", self.0.ty)
    }
}

/// Prints the modifiers after the shape of a matrix operation, such as `.satfinite.s32.s8.s8.s32`.
struct MmaTypes<'a>(&'a Mma);

impl Display for MmaTypes<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Mma {
            d,
            a,
            b,
            c,
            satfinite,
            bits,
            ..
        } = self.0;
        write!(f, "{}{d}{a}{b}{c}", when(*satfinite, ".satfinite"))?;
        match bits {
            Some(op) => write!(f, "{}.popc", Dot(op)),
            None => Ok(()),
        }
    }
}

impl Display for FloatMods {
    /// Prints the modifiers after the name, such as `.rn.ftz.f32`.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(
            f,
            "{}{}{}{}{}{}",
            Dot(self.rnd),
            when(self.oob, ".oob"),
            when(self.ftz, ".ftz"),
            when(self.sat, ".sat"),
            when(self.relu, ".relu"),
            self.ty
        )
    }
}

impl Display for Tex {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.level {
            Level::Base => f.write_str("tex")?,
            Level::Given => f.write_str("tex.level")?,
            Level::Gradient(_) => f.write_str("tex.grad")?,
            Level::Gather(component) => {
                let names = [".r", ".g", ".b", ".a"];
                write!(f, "tld4{}", names[usize::from(component) % 4])?;
            }
        }
        let count = if self.ty == Type::F16x2 { 2 } else { 4 };
        write!(f, "{}.v{count}{}{}", self.geometry, self.ty, self.coordinates)
    }
}

impl Display for Surface {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (name, op) = match self.op {
            SurfaceOp::Load => ("suld", String::new()),
            SurfaceOp::Store => ("sust", String::new()),
            SurfaceOp::Reduce(op) => ("sured", Dot(op).to_string()),
        };
        let mode = if self.formatted { ".p" } else { ".b" };
        write!(f, "{name}{mode}{op}{}", self.geometry)?;
        if self.vec > 1 {
            write!(f, ".v{}", self.vec)?;
        }
        write!(f, "{}{}", self.ty, Dot(self.bounds))
    }
}

impl Display for VideoInst {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let ty = |signed: bool| if signed { Type::S32 } else { Type::U32 };
        match self {
            VideoInst::Scalar(op, video) => {
                let (name, mode) = match op {
                    VideoOp::Add => ("vadd", ""),
                    VideoOp::Sub => ("vsub", ""),
                    VideoOp::AbsDiff => ("vabsdiff", ""),
                    VideoOp::Min => ("vmin", ""),
                    VideoOp::Max => ("vmax", ""),
                    VideoOp::Shl { wrap } => ("vshl", shift_mode(!wrap)),
                    VideoOp::Shr { wrap } => ("vshr", shift_mode(!wrap)),
                    VideoOp::Set(_) => ("vset", ""),
                };
                let (a, b) = (ty(video.a.1), ty(video.b.1));
                match op {
                    VideoOp::Set(cmp) => write!(f, "{name}{a}{b}{}", Dot(cmp))?,
                    _ => write!(f, "{name}{}{a}{b}{}{mode}", ty(video.signed), when(video.sat, ".sat"))?,
                }
                match video.then {
                    VideoThen::Nothing | VideoThen::Merge(_) => Ok(()),
                    VideoThen::Add | VideoThen::Min | VideoThen::Max => {
                        write!(f, "{}", Dot(video.then))
                    }
                }
            }
            VideoInst::Mad(mad) => {
                write!(
                    f,
                    "vmad{}{}{}{}{}",
                    ty(mad.a.1 || mad.b.1),
                    ty(mad.a.1),
                    ty(mad.b.1),
                    when(mad.plus_one, ".po"),
                    when(mad.sat, ".sat")
                )?;
                match mad.shift {
                    0 => Ok(()),
                    shift => write!(f, ".shr{shift}"),
                }
            }
            VideoInst::Halves(op, packed) => {
                let types = (packed.signed, packed.a_signed, packed.b_signed);
                packed_video(f, *op, 2, types, packed.sat, packed.add)
            }
            VideoInst::Bytes(op, packed) => {
                let types = (packed.signed, packed.a_signed, packed.b_signed);
                packed_video(f, *op, 4, types, packed.sat, packed.add)
            }
        }
    }
}

fn packed_video(
    f: &mut Formatter<'_>,
    op: VideoEach,
    elements: u32,
    (signed, a, b): (bool, bool, bool),
    sat: bool,
    add: bool,
) -> Result {
    let ty = |signed: bool| if signed { Type::S32 } else { Type::U32 };
    let name = match op {
        VideoEach::Add => "vadd",
        VideoEach::Sub => "vsub",
        VideoEach::Avrg => "vavrg",
        VideoEach::AbsDiff => "vabsdiff",
        VideoEach::Min => "vmin",
        VideoEach::Max => "vmax",
        VideoEach::Set(cmp) => {
            return write!(f, "vset{elements}{}{}{}{}", ty(a), ty(b), Dot(cmp), when(add, ".add"));
        }
    };
    write!(
        f,
        "{name}{elements}{}{}{}{}{}",
        ty(signed),
        ty(a),
        ty(b),
        when(sat, ".sat"),
        when(add, ".add")
    )
}
