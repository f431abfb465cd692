//! Tests of details of graphs: attributes of kernel nodes, packed arguments that are too long, disabled nodes, and the
//! memory that a device keeps for graphs.

use std::ffi::c_void;
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::graph_tools::{Steps, graph, instantiate, kernel_params};
use crate::{arguments, child, is, ok};

#[test]
fn attributes_of_kernel_nodes() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let node = s.digit(g, &[], 1);
    for id in 0..=17 {
        let attribute = CUlaunchAttributeID(id);
        let mut value = CUlaunchAttributeValue::default();
        let read = crate::call!(cuGraphKernelNodeGetAttribute(node, attribute, &raw mut value)).0;
        let readable = matches!(id, 1 | 2 | 4 | 5 | 8 | 9 | 10 | 13 | 14);
        c.is(u32::from(!readable), &format!("reading attribute {id}"), read);
        if readable || id == 16 {
            // A value that was read can be set again. NVLINK_UTIL_CENTRIC_SCHEDULING (16) can be set, but not read.
            is!(c, 0, cuGraphKernelNodeSetAttribute(node, attribute, &raw const value));
        }
    }
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn packed_arguments_that_are_too_long() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    let mut buffer = [0_u64; 8];
    for (bytes, code) in [(12_usize, 0), (16, 1), (64, 1)] {
        let mut size = bytes;
        let mut extra: [*mut c_void; 5] = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            buffer.as_mut_ptr().cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            CU_LAUNCH_PARAM_END,
        ];
        let params = CUDA_KERNEL_NODE_PARAMS {
            extra: extra.as_mut_ptr(),
            ..kernel_params(s.put, null_mut())
        };
        let mut node = null_mut();
        let added = crate::call!(cuGraphAddKernelNode(
            &raw mut node,
            g,
            ptr::null(),
            0,
            &raw const params
        ));
        c.is(code, &format!("{bytes} bytes for 12"), added.0);
    }
    is!(c, 0, cuGraphDestroy(g));
}

#[test]
fn an_update_does_not_enable_nodes() {
    let s = Steps::new();
    let mut c = Codes::new();
    let digits = |first: u32, second: u32| {
        let g = graph();
        let a = s.digit(g, &[], first);
        s.digit(g, &[a], second);
        (g, a)
    };
    let ((g, a), (other, _)) = (digits(1, 2), digits(3, 4));
    let exec = instantiate(g);
    is!(c, 0, cuGraphNodeSetEnabled(exec, a, 0));
    assert_eq!(s.run(exec), 2);
    is!(
        c,
        0,
        cuGraphExecUpdate(exec, other, &mut CUgraphExecUpdateResultInfo::default())
    );
    assert_eq!(s.run(exec), 4);
    is!(c, 0, cuGraphNodeSetEnabled(exec, a, 1));
    assert_eq!(s.run(exec), 34);
    // Changing the node's parameters does not enable it either.
    is!(c, 0, cuGraphNodeSetEnabled(exec, a, 0));
    let mut arguments = arguments![s.data, 5_u32];
    let mut pointers = arguments.pointers();
    let params = kernel_params(s.step, pointers.as_mut_ptr());
    is!(c, 0, cuGraphExecKernelNodeSetParams(exec, a, &raw const params));
    assert_eq!(s.run(exec), 4);
    is!(c, 0, cuGraphNodeSetEnabled(exec, a, 1));
    assert_eq!(s.run(exec), 54);
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 0, cuGraphDestroy(other));
}

#[test]
fn memory_of_graphs_is_kept_until_it_is_trimmed() {
    // In a child process, because graphs of other tests would change the counts, which are the device's.
    child!("memory_of_graphs_is_kept_until_it_is_trimmed", {
        type A = CUgraphMem_attribute;
        const CHUNK: u64 = 32 << 20;
        let s = Steps::new();
        let mut c = Codes::new();
        const CURRENT: [A; 2] = [
            A::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
            A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
        ];
        const HIGH: [A; 2] = [
            A::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
            A::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
        ];
        let read = |attribute| {
            let mut bytes = 7_u64;
            ok!(cuDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()));
            bytes
        };
        let (counts, marks) = (|| CURRENT.map(read), || HIGH.map(read));
        assert_eq!((counts(), marks()), ([0, 0], [0, 0]));
        let g = graph();
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        params.bytesize = 1000;
        let mut node = null_mut();
        is!(
            c,
            0,
            cuGraphAddMemAllocNode(&raw mut node, g, ptr::null(), 0, &raw mut params)
        );
        let memory = params.dptr;
        let exec = instantiate(g);
        is!(c, 0, cuGraphLaunch(exec, s.stream));
        is!(c, 0, cuStreamSynchronize(s.stream));
        assert_eq!(counts(), [CHUNK, CHUNK], "after the launch");
        is!(c, 0, cuMemFreeAsync(memory, s.stream));
        is!(c, 0, cuStreamSynchronize(s.stream));
        assert_eq!(counts(), [CHUNK, CHUNK], "after the free");
        // Each graph may have one node that frees the memory.
        let frees = [graph(), graph()];
        let codes = [frees[0], frees[1], frees[0]].map(|g| {
            let mut node = null_mut();
            crate::call!(cuGraphAddMemFreeNode(&raw mut node, g, ptr::null(), 0, memory)).0
        });
        assert_eq!(codes, [0, 0, 1]);
        is!(c, 0, cuGraphExecDestroy(exec));
        for g in [g, frees[0], frees[1]] {
            is!(c, 0, cuGraphDestroy(g));
        }
        is!(c, 0, cuDeviceGraphMemTrim(0));
        assert_eq!((counts(), marks()), ([0, 0], [CHUNK, CHUNK]), "after the trim");
        // Each mark is reset to the current number on its own.
        for (attribute, left) in HIGH.into_iter().zip([[0, CHUNK], [0, 0]]) {
            is!(
                c,
                0,
                cuDeviceSetGraphMemAttribute(0, attribute, ptr::from_mut(&mut 0_u64).cast())
            );
            assert_eq!(marks(), left, "after the reset of {attribute:?}");
        }
    });
}
