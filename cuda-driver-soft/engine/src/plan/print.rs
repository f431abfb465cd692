//! Plans as text, for debugging.

use super::Plan;
use super::class::Class;
use super::ordered::keeps_order;
use super::shape::{Choices, Group, Shape, Shapes};
use super::steps::Step;
use ptx::ir::{Operand, Reg};
use std::fmt::{Display, Formatter, Result};

/// A plan with the shapes for a group, to be printed.
pub(crate) struct Printed<'p, 'b> {
    plan: &'p Plan<'b>,
    shapes: Shapes,
}

impl<'b> Plan<'b> {
    /// Returns the plan as text, with the shapes for a group that runs all regions under masks.
    pub(crate) fn print(&self, group: Group) -> Printed<'_, 'b> {
        let masked: Vec<_> = self.regions.iter().collect();
        let choices = Choices {
            masked: &masked,
            denied: &[],
        };
        Printed {
            plan: self,
            shapes: self.shapes(group, choices),
        }
    }
}

/// Prints registers, each with a space before it.
struct List(Vec<Reg>);

impl Display for List {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.iter().try_for_each(|reg| write!(f, " r{}", reg.0))
    }
}

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Shape::Uniform => f.write_str("uniform"),
            Shape::Affine(step) => write!(f, "step {step}"),
            Shape::Any => f.write_str("any"),
        }
    }
}

impl Display for Printed<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let plan = self.plan;
        let Group { lanes, whole } = self.shapes.group();
        let partial = if whole {
            ""
        } else {
            ", the last of a block perhaps partial"
        };
        writeln!(f, "groups of {lanes} lanes{partial}")?;
        self.registers(f)?;
        for (number, phase) in plan.phases.iter().enumerate() {
            write!(f, "phase {number}: entry b{}", phase.entry)?;
            if let Some(after) = phase.after {
                write!(f, " after {after:?}")?;
            }
            let blocks: Vec<String> = phase.blocks.iter().map(|b| format!(" b{b}")).collect();
            writeln!(f, ", blocks{}", blocks.concat())?;
            writeln!(
                f,
                "  kept{}; computed again{} by steps {:?}",
                List(phase.kept.clone()),
                List(phase.computed.clone()),
                plan.pure.steps_for(&plan.layout, phase.computed.iter().copied())
            )?;
        }
        for (number, found) in plan.flow.loops.iter().enumerate() {
            let blocks: Vec<String> = found.blocks.iter().map(|b| format!(" b{b}")).collect();
            let exits: Vec<String> = found.exits.iter().map(|(a, b)| format!(" b{a}-b{b}")).collect();
            let parent = found.parent.map_or(String::new(), |p| format!(", inside loop {p}"));
            writeln!(
                f,
                "loop {number}: head b{}, blocks{}, exits{}{parent}",
                found.head,
                blocks.concat(),
                exits.concat()
            )?;
        }
        for block in &plan.layout.order {
            self.block(f, *block)?;
        }
        Ok(())
    }
}

impl Printed<'_, '_> {
    fn registers(&self, f: &mut Formatter<'_>) -> Result {
        let plan = self.plan;
        for (number, class) in (0..).zip(&plan.source.body.registers) {
            let reg = Reg(number);
            let used = plan.uses[number as usize];
            if used == super::Use::Unused {
                continue;
            }
            write!(f, "r{number} {class:?}: {}", self.shapes.of_register(reg))?;
            match self.shapes.constant(reg) {
                Some(bits) => write!(f, ", constant {bits:#x}")?,
                None if self.shapes.alignment(reg) > 0 => write!(f, ", times 2^{}", self.shapes.alignment(reg))?,
                None => {}
            }
            if let Some(depends) = plan.pure.depends_on(reg) {
                write!(f, ", pure per {depends:?}")?;
            }
            if let Some(root) = plan.roots.of_register(reg) {
                write!(f, ", from {root:?}")?;
            }
            if plan.is_payload_seen(reg) {
                write!(f, ", NaN seen")?;
            }
            if used == super::Use::PerhapsUndefined {
                write!(f, ", zero at start")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn address(&self, f: &mut Formatter<'_>, address: &Operand) -> Result {
        write!(f, " [address {}", self.shapes.of_operand(address))?;
        if let Some(root) = self.plan.roots.of_operand(address) {
            write!(f, " from {root:?}")?;
        }
        write!(f, "]")
    }

    fn block(&self, f: &mut Formatter<'_>, block: usize) -> Result {
        let plan = self.plan;
        let next: Vec<String> = plan.layout.blocks[block]
            .successors
            .iter()
            .map(|b| format!(" b{b}"))
            .collect();
        write!(f, "b{block}: then{}", next.concat())?;
        if let Some(join) = plan.flow.post_dominator[block] {
            write!(f, ", join b{join}")?;
        }
        match plan.flow.nesting(block) {
            0 => {}
            nesting => write!(f, ", loop depth {nesting}")?,
        }
        if let Some(region) = plan.regions.iter().find(|r| r.block == block) {
            write!(
                f,
                ", {} steps, {} of them loads, stores or calls of handlers, may be masked",
                region.steps, region.memory_steps
            )?;
        }
        writeln!(f, "\n  live{}", List(plan.live.at_begin(block).collect()))?;
        let last_reads = plan.live.last_reads(&plan.layout, block);
        for (step, last) in plan.layout.steps_of(block).zip(last_reads) {
            match plan.layout.steps[step] {
                Step::Plain(inst) => {
                    write!(f, "  {step:4} {inst}")?;
                    match Class::of_inst(inst) {
                        Class::Computed => {}
                        Class::Load | Class::Store => self.address(f, &inst.srcs[0])?,
                        class => write!(f, " [{class:?}]")?,
                    }
                    if keeps_order(plan.source.module, inst, &plan.order_facts) {
                        write!(f, " [ordered]")?;
                    }
                }
                Step::Branch { to, guard, line } => {
                    let to = plan.layout.block_of[to];
                    match guard {
                        Some((reg, negated)) => {
                            let not = if negated { "!" } else { "" };
                            write!(f, "  {step:4} if {not}r{} to b{to}  // line {line}", reg.0)?;
                            write!(f, " [{}]", self.shapes.of_register(reg))?;
                        }
                        None => write!(f, "  {step:4} to b{to}  // line {line}")?,
                    }
                }
            }
            if let Some(assumption) = self.shapes.assumption(step) {
                write!(f, " [if operand {} is {:?}]", assumption.source, assumption.kind)?;
            }
            if !last.is_empty() {
                write!(f, " [last use of{}]", List(last))?;
            }
            writeln!(f)?;
        }
        writeln!(f, "  live{}", List(plan.live.at_end(block).collect()))
    }
}
