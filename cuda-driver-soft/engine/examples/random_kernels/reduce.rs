//! Reduces a random kernel to a small one with the same property.

use super::tree::{Kernel, Rounds, Statement};

/// Returns a simple kernel for which `holds` is true: no simpler variant of the result has this property. `holds` must
/// be true for `kernel`.
pub(crate) fn reduce(mut kernel: Kernel, holds: impl Fn(&Kernel) -> bool) -> Kernel {
    while let Some(simpler) = variants_of_kernel(&kernel).into_iter().find(&holds) {
        kernel = simpler;
    }
    kernel
}

fn variants_of_kernel(kernel: &Kernel) -> Vec<Kernel> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Kernel)| {
        let mut changed = kernel.clone();
        change(&mut changed);
        if changed != *kernel {
            all.push(changed);
        }
    };
    for body in variants(&kernel.body) {
        add(&|kernel| kernel.body.clone_from(&body));
    }
    let count = kernel.results.len();
    for part in [count, count.div_ceil(2), 1] {
        for start in (0..count).step_by(part.max(1)) {
            let end = (start + part).min(count);
            add(&|kernel| drop(kernel.results.drain(start..end)));
        }
    }
    add(&|kernel| kernel.grid = 1);
    add(&|kernel| kernel.guarded = false);
    if kernel.block_threads() > 32 {
        add(&|kernel| kernel.block = [32, 1]);
    }
    all
}

/// Returns simpler variants of a list: first those without some of its statements, from all of them down to a single
/// one, then those with one statement replaced.
fn variants(statements: &[Statement]) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    let mut part = statements.len();
    while part > 0 {
        for start in (0..statements.len()).step_by(part) {
            let end = (start + part).min(statements.len());
            all.push([&statements[..start], &statements[end..]].concat());
        }
        part /= 2;
    }
    for (at, statement) in statements.iter().enumerate() {
        for replacement in simpler(statement) {
            let mut changed = statements.to_vec();
            changed.splice(at..=at, replacement);
            all.push(changed);
        }
    }
    all
}

/// Returns lists of simpler statements, each of which may replace a statement.
fn simpler(statement: &Statement) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    match statement {
        Statement::If { condition, then, other } => {
            all.extend([then.clone(), other.clone(), [then.as_slice(), other].concat()]);
            let with = |then: &[Statement], other: &[Statement]| {
                vec![Statement::If {
                    condition: *condition,
                    then: then.to_vec(),
                    other: other.to_vec(),
                }]
            };
            all.extend(variants(then).iter().map(|then| with(then, other)));
            all.extend(variants(other).iter().map(|other| with(then, other)));
        }
        Statement::Loop { rounds, leave, body } => {
            all.push(body.clone());
            let with = |rounds: Rounds, leave: Option<u8>, body: &[Statement]| {
                vec![Statement::Loop {
                    rounds,
                    leave,
                    body: body.to_vec(),
                }]
            };
            if leave.is_some() {
                all.push(with(*rounds, None, body));
            }
            match rounds {
                Rounds::Fixed(n @ 2..) => all.push(with(Rounds::Fixed(n - 1), *leave, body)),
                Rounds::Fixed(_) => {}
                Rounds::Var(_) => all.push(with(Rounds::Fixed(2), *leave, body)),
            }
            all.extend(variants(body).iter().map(|body| with(*rounds, *leave, body)));
        }
        Statement::Switch { on, cases } => {
            all.extend(cases.iter().cloned());
            all.push(cases.concat());
            for (at, case) in cases.iter().enumerate() {
                for changed in variants(case) {
                    let mut cases = cases.clone();
                    cases[at] = changed;
                    all.push(vec![Statement::Switch { on: *on, cases }]);
                }
            }
        }
        Statement::Compute { guard: Some(_), .. }
        | Statement::LoadInput { guard: Some(_), .. }
        | Statement::Store { guard: Some(_), .. } => {
            let mut plain = statement.clone();
            if let Statement::Compute { guard, .. }
            | Statement::LoadInput { guard, .. }
            | Statement::Store { guard, .. } = &mut plain
            {
                *guard = None;
            }
            all.push(vec![plain]);
        }
        _ => {}
    }
    all.retain(|replacement| replacement.as_slice() != std::slice::from_ref(statement));
    all
}
