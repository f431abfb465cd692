//! Tests of stops in launches that have other observers, too.

use super::{Arg, Bench};
use crate::check::{Checker, Checks};
use crate::stop::StopAt;
use crate::{Isa, Options};
use std::sync::{Arc, Mutex};

#[test]
fn a_guarded_instruction_stops_once_in_a_launch_with_checks() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 out) {\n\
        .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<2>;\n\
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 3;\n\
        @%p st.global.u32 [%rd1], %r1;\n\
        ret; }";
    for checks in [None, Some(Checks::RACE), Some(Checks::INIT)] {
        let mut bench = Bench::text(text, Isa::best());
        let out = bench.bytes(4);
        let stops = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&stops);
        let stop: StopAt = "ptx:7".parse().unwrap();
        let mut observers = stop.observers(Arc::new(move |stop| seen.lock().unwrap().push(stop.thread)));
        let checker = checks.map(Checker::new);
        if let Some(checker) = &checker {
            observers.add(checker.observers());
        }
        let mut launch = bench.launch("k", 1, 32, &[Arg::U64(out)]);
        launch.options = Options {
            observers,
            ..launch.options
        };
        assert_eq!(Bench::run(launch).fault(), None);
        assert_eq!(*stops.lock().unwrap(), [[0; 3]], "{checks:?}");
    }
}
