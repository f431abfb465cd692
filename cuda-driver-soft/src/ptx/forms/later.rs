//! Instructions that this driver knows by name but does not run yet.
//!
//! A module that contains them loads; a kernel that does is refused at its launch, by the name of the instruction.

use super::{Candidate, Form, FormErrors, Made};

/// Root, PTX version times ten, lowest architecture.
const ROOTS: &[(&str, u32, u32)] = &[
    ("activemask", 62, 30),
    ("addc", 12, 0),
    ("alloca", 73, 52),
    ("applypriority", 74, 80),
    ("atom", 11, 11),
    ("bfe", 20, 20),
    ("bfi", 20, 20),
    ("bfind", 20, 20),
    ("bmsk", 76, 70),
    ("brev", 20, 20),
    ("brkpt", 10, 11),
    ("clusterlaunchcontrol", 86, 100),
    ("clz", 20, 20),
    ("copysign", 20, 20),
    ("cp", 70, 80),
    ("createpolicy", 74, 80),
    ("discard", 74, 80),
    ("dp2a", 50, 61),
    ("dp4a", 50, 61),
    ("elect", 80, 90),
    ("fence", 60, 70),
    ("fns", 60, 30),
    ("getctarank", 78, 90),
    ("griddepcontrol", 78, 90),
    ("istypep", 40, 30),
    ("ldmatrix", 65, 75),
    ("lop3", 43, 50),
    ("madc", 30, 20),
    ("mapa", 78, 90),
    ("match", 60, 70),
    ("mbarrier", 70, 80),
    ("membar", 14, 0),
    ("mma", 64, 70),
    ("movmatrix", 78, 75),
    ("multimem", 81, 90),
    ("nanosleep", 63, 70),
    ("pmevent", 14, 0),
    ("popc", 20, 20),
    ("prefetch", 20, 20),
    ("prefetchu", 20, 20),
    ("prmt", 20, 20),
    ("red", 12, 11),
    ("redux", 70, 80),
    ("sad", 10, 0),
    ("setmaxnreg", 80, 90),
    ("shf", 31, 32),
    ("shfl", 30, 30),
    ("stackrestore", 73, 52),
    ("stacksave", 73, 52),
    ("stmatrix", 78, 90),
    ("subc", 12, 0),
    ("suld", 15, 20),
    ("suq", 21, 20),
    ("sured", 30, 30),
    ("sust", 15, 20),
    ("szext", 76, 70),
    ("tensormap", 83, 90),
    ("testp", 20, 20),
    ("tex", 10, 0),
    ("tld4", 22, 20),
    ("txq", 20, 20),
    ("vabsdiff", 20, 20),
    ("vabsdiff2", 30, 30),
    ("vabsdiff4", 30, 30),
    ("vadd", 20, 20),
    ("vadd2", 30, 30),
    ("vadd4", 30, 30),
    ("vavrg2", 30, 30),
    ("vavrg4", 30, 30),
    ("vmad", 20, 20),
    ("vmax", 20, 20),
    ("vmax2", 30, 30),
    ("vmax4", 30, 30),
    ("vmin", 20, 20),
    ("vmin2", 30, 30),
    ("vmin4", 30, 30),
    ("vote", 12, 12),
    ("vset", 20, 20),
    ("vset2", 30, 30),
    ("vset4", 30, 30),
    ("vshl", 20, 20),
    ("vshr", 20, 20),
    ("vsub", 20, 20),
    ("vsub2", 30, 30),
    ("vsub4", 30, 30),
    ("wgmma", 80, 90),
    ("wmma", 60, 70),
    ("tcgen05", 86, 100),
];

/// An opcode whose root is one of the list.
pub(super) fn find(root: &str, modifiers: &[&str]) -> Result<Form, FormErrors> {
    let Some(&(root, ptx, sm)) = ROOTS.iter().find(|(name, _, _)| *name == root) else {
        return Err(FormErrors(vec![format!(
            "Not a name of any known instruction: '{root}'"
        )]));
    };
    let _ = modifiers;
    let candidates = vec![Candidate {
        specs: Vec::new(),
        made: Made::Unsupported,
    }];
    Ok(Form {
        root,
        candidates,
        ptx,
        sm,
        any_operands: true,
    })
}
