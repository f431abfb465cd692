//! The counters of a launch, a source line or an instruction.

#![forbid(unsafe_code)]

use std::ops::AddAssign;

/// Defines [`Counters`] from one list of names, metrics and descriptions.
macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident: $metric:literal;)*) => {
        /// Numbers of a launch, a source line or an instruction.
        ///
        /// Each field is defined as the metric of Nsight Compute that its documentation names, with four differences:
        /// an *instruction* here is a PTX instruction, which a GPU may run as none, one or several machine
        /// instructions; a sector is counted whether or not it is in a cache; constant memory counts as global memory;
        /// and the memory that `wmma.load` and `wmma.store` access is not counted. The name `none` means that there is
        /// no such metric.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])* #[doc = ""] #[doc = concat!("Nsight Compute: `", $metric, "`.")] pub $name: u64,)*
        }

        impl Counters {
            /// The name of each counter, and the metric of Nsight Compute that it corresponds to.
            pub const NAMES: &'static [(&'static str, &'static str)] = &[$((stringify!($name), $metric)),*];

            /// Returns the name and the value of each counter, in the order of [`NAMES`](Self::NAMES).
            pub fn values(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Counters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Instructions that warps issued.
    instructions: "smsp__inst_executed.sum";
    /// Instructions, counted for each active thread.
    thread_instructions: "smsp__thread_inst_executed.sum";
    /// Instructions, counted for each active thread whose guard predicate is true; branches, for each active thread.
    thread_instructions_on: "smsp__thread_inst_executed_pred_on.sum";
    /// Instructions of warps with arithmetic and comparisons of `f16` and `bf16`.
    fp16: "smsp__sass_thread_inst_executed_op_fp16_pred_on.sum, per warp";
    /// Instructions of warps with arithmetic and comparisons of `f32`.
    fp32: "smsp__sass_thread_inst_executed_op_fp32_pred_on.sum, per warp";
    /// Instructions of warps with arithmetic and comparisons of `f64`.
    fp64: "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum, per warp";
    /// Instructions of warps with arithmetic and comparisons of integers.
    integer: "smsp__sass_thread_inst_executed_op_integer_pred_on.sum, per warp";
    /// Instructions of warps with operations on bits: logic, shifts, bit fields, permutations.
    bit: "smsp__sass_thread_inst_executed_op_bit_pred_on.sum, per warp";
    /// Conversions.
    conversion: "smsp__sass_thread_inst_executed_op_conversion_pred_on.sum, per warp";
    /// Branches, calls, returns, exits and traps.
    control: "smsp__sass_thread_inst_executed_op_control_pred_on.sum, per warp";
    /// Loads, stores, atomic operations, fences, copies, `mbarrier`, textures and surfaces.
    memory: "smsp__sass_thread_inst_executed_op_memory_pred_on.sum, per warp";
    /// Warp-level instructions, such as `shfl`, without barriers.
    communication: "smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum, per warp";
    /// Products of matrices.
    matrix: "sm__inst_executed_pipe_tensor.sum";
    /// All other instructions, such as `mov`, `selp` and barriers.
    misc: "smsp__sass_thread_inst_executed_op_misc_pred_on.sum, per warp";
    /// Branches.
    branches: "smsp__sass_branch_targets.sum";
    /// Branches whose active threads went to different targets.
    divergent_branches: "smsp__sass_branch_targets_threads_divergent.sum";
    /// Loads from global memory.
    global_load_requests: "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
    /// Sectors of 32 bytes that loads from global memory access, counted once per request.
    global_load_sectors: "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
    /// Bytes that loads from global memory access, counted once per request.
    global_load_bytes: "smsp__sass_data_bytes_mem_global_op_ld.sum";
    /// Stores to global memory.
    global_store_requests: "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
    /// Sectors of 32 bytes that stores to global memory access, counted once per request.
    global_store_sectors: "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";
    /// Bytes that stores to global memory access, counted once per request.
    global_store_bytes: "smsp__sass_data_bytes_mem_global_op_st.sum";
    /// Atomic operations and reductions on global memory.
    global_atomic_requests: "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum + …_op_red.sum";
    /// Sectors of 32 bytes that atomic operations on global memory access. Threads with the same address take turns,
    /// and each turn counts.
    global_atomic_sectors: "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum + …_op_red.sum";
    /// Threads whose atomic operation on global memory meets that of a lower thread of the same request at the same
    /// address.
    global_atomic_conflicts: "none";
    /// Loads from local memory.
    local_load_requests: "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum";
    /// Sectors of 32 bytes that loads from local memory access. A GPU keeps the same word of a warp's threads together.
    local_load_sectors: "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum";
    /// Stores to local memory.
    local_store_requests: "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum";
    /// Sectors of 32 bytes that stores to local memory access.
    local_store_sectors: "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum";
    /// Loads from shared memory with at least one active thread.
    shared_load_requests: "smsp__sass_inst_executed_op_shared_ld.sum";
    /// Passes through the banks of shared memory that loads take.
    shared_load_wavefronts: "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum";
    /// Passes of loads beyond those that the width of the access needs, because threads access different words of a
    /// bank.
    shared_load_conflicts: "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum";
    /// Stores to shared memory with at least one active thread.
    shared_store_requests: "smsp__sass_inst_executed_op_shared_st.sum";
    /// Passes through the banks of shared memory that stores take.
    shared_store_wavefronts: "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum";
    /// Passes of stores beyond those that the width of the access needs.
    shared_store_conflicts: "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum";
    /// Atomic operations and reductions on shared memory.
    shared_atomic_requests: "smsp__inst_executed_op_shared_atom.sum";
    /// Threads whose atomic operation on shared memory meets that of a lower thread of the same request at the same
    /// address.
    shared_atomic_conflicts: "none";
    /// Bytes of shared memory that are loaded, stored and updated, counted once per request.
    shared_bytes: "smsp__sass_data_bytes_mem_shared.sum";
    /// Bytes that bulk copies move, except copies of tensors.
    bulk_bytes: "none";
    /// Barrier instructions of the block or cluster that warps ran. Arriving at the barrier of a cluster and waiting
    /// there are two instructions.
    barriers: "none";
    /// Time that warps wait at barriers, if each warp issued one instruction per unit of time. At the barrier of a
    /// cluster, only the arrivals of the same block count.
    barrier_wait: "smsp__average_warp_latency_issue_stalled_barrier, in instructions instead of cycles";
}

impl Counters {
    /// Returns the average number of active threads per instruction; 0 if there are no instructions.
    ///
    /// Nsight Compute: `smsp__thread_inst_executed_per_inst_executed.ratio`.
    pub fn threads_per_instruction(&self) -> f64 {
        ratio(self.thread_instructions, self.instructions)
    }

    /// Returns the sectors per request of loads from global memory; 0 if there are none. 4 is the best value for 4
    /// bytes per thread.
    ///
    /// Nsight Compute: `l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio`.
    pub fn sectors_per_load(&self) -> f64 {
        ratio(self.global_load_sectors, self.global_load_requests)
    }

    /// Returns the sectors per request of stores to global memory; 0 if there are none.
    ///
    /// Nsight Compute: `l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio`.
    pub fn sectors_per_store(&self) -> f64 {
        ratio(self.global_store_sectors, self.global_store_requests)
    }

    /// Returns the sectors of all requests to global memory.
    pub fn global_sectors(&self) -> u64 {
        self.global_load_sectors + self.global_store_sectors + self.global_atomic_sectors
    }

    /// Returns the bank conflicts of loads and stores.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared_load_conflicts + self.shared_store_conflicts
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
