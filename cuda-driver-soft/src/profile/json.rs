//! A profile as JSON.
//!
//! The profile is an object with `version` (1) and `launches`. A launch has the kernel's name, its configuration,
//! `fault` if it has failed, `total` and `instructions`. `total` has all counters; `counters` of an instruction has
//! those that are not 0.

use engine::count::{Counters, InstructionProfile, LaunchProfile};

use super::report::Report;
use crate::json::Object;

/// Returns a profile as JSON.
pub(super) fn text(report: &Report) -> String {
    let launches = report.launches.iter().map(launch);
    let mut text = Object::new().number("version", 1).objects("launches", launches).end();
    text.push('\n');
    text
}

fn launch(launch: &LaunchProfile) -> Object {
    let mut fields = Object::new()
        .text("kernel", &launch.kernel)
        .numbers("grid", &launch.grid)
        .numbers("block", &launch.block)
        .numbers("cluster", &launch.cluster)
        .number("registers", launch.registers)
        .number("static_shared", launch.static_shared)
        .number("dynamic_shared", launch.dynamic_shared)
        .number("local_bytes", launch.local_bytes)
        .number("occupancy", launch.occupancy);
    if let Some(fault) = &launch.fault {
        fields = fields.text("fault", fault);
    }
    fields
        .object("total", counters(&launch.total, true))
        .objects("instructions", launch.instructions.iter().map(instruction))
}

fn instruction(inst: &InstructionProfile) -> Object {
    let mut fields = Object::new()
        .text("function", &inst.function)
        .number("ptx_line", inst.ptx_line)
        .text("opcode", &inst.opcode);
    if let Some(place) = &inst.place {
        fields = fields
            .text("file", &place.file)
            .number("line", place.line)
            .number("column", place.column);
    }
    fields.object("counters", counters(&inst.counters, false))
}

/// Returns counters as an object; `all` includes those that are 0.
fn counters(counters: &Counters, all: bool) -> Object {
    let values = counters.values().filter(|(_, value)| all || *value > 0);
    values.fold(Object::new(), |object, (name, value)| object.number(name, value))
}
