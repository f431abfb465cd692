//! NCCL with this crate: one process for each GPU has a vector, and every process gets the sum of all vectors.
//!
//! Contexts, memory and streams are this crate's, and NCCL queues its work in the streams. Needs at least two GPUs and
//! `libnccl.so.2`, which is loaded at run time. Set `NCCL_LIBRARY` to its path if the system's loader does not find it
//! (the Python package `nvidia-nccl-cu12` has it in `nvidia/nccl/lib`).

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::ffi::{CStr, CString, c_char, c_int, c_void};
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use cuda_driver::{Device, DeviceBuffer, PrimaryContext, Stream, sys};
    use cuda_driver_soft::Prefer;

    type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

    /// The number of values in a vector.
    const N: usize = 1 << 20;

    unsafe extern "C" {
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// NCCL's identifier of a group of processes: processes with the same identifier work together.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct UniqueId([u8; 128]);

    /// A communicator: the handle of this process's membership in the group.
    type Comm = *mut c_void;

    /// The functions of NCCL that this program calls.
    struct Nccl {
        get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
        comm_init_rank: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int,
        all_reduce: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, sys::CUstream) -> c_int,
        comm_destroy: unsafe extern "C" fn(Comm) -> c_int,
    }

    /// `ncclFloat32`
    const FLOAT32: c_int = 7;
    /// `ncclSum`
    const SUM: c_int = 0;

    impl Nccl {
        /// Loads the library; `None` if it cannot be loaded.
        fn load() -> Result<Option<Self>> {
            // `RTLD_NOW`
            const NOW: c_int = 2;
            let name = std::env::var("NCCL_LIBRARY").unwrap_or_else(|_| "libnccl.so.2".into());
            let name = CString::new(name)?;
            // SAFETY: the name is a C string, and NCCL may be loaded at any time.
            let library = unsafe { dlopen(name.as_ptr(), NOW) };
            if library.is_null() {
                return Ok(None);
            }
            // SAFETY: these are the types of the functions.
            unsafe {
                Ok(Some(Self {
                    get_unique_id: function(library, c"ncclGetUniqueId")?,
                    comm_init_rank: function(library, c"ncclCommInitRank")?,
                    all_reduce: function(library, c"ncclAllReduce")?,
                    comm_destroy: function(library, c"ncclCommDestroy")?,
                }))
            }
        }
    }

    /// Returns a function of a library.
    ///
    /// # Safety
    /// The library must be open, and `F` a pointer to a function of the type that it exports by this name.
    unsafe fn function<F: Copy>(library: *mut c_void, name: &CStr) -> Result<F> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the library is open, and the name is a C string.
        let address = unsafe { dlsym(library, name.as_ptr()) };
        if address.is_null() {
            return Err(format!("NCCL does not export {}", name.to_string_lossy()).into());
        }
        // SAFETY: upheld by the caller; both have the size of a pointer.
        Ok(unsafe { std::mem::transmute_copy(&address) })
    }

    /// Converts a result code of NCCL.
    fn ok(code: c_int, call: &str) -> Result {
        match code {
            0 => Ok(()),
            code => Err(format!("{call} returned {code}").into()),
        }
    }

    pub(crate) fn run() -> Result {
        cuda_driver_soft::from_env(Prefer::System)?.install()?;
        cuda_driver::init()?;
        if sys::DEFAULT.is_software() {
            println!("needs at least two GPUs: NCCL does not run on the software driver");
            return Ok(());
        }
        let count = Device::count()?;
        if count < 2 {
            println!("needs at least two GPUs, not {count}");
            return Ok(());
        }
        let Some(nccl) = Nccl::load()? else {
            println!("needs libnccl.so.2: set NCCL_LIBRARY to the path of the file");
            return Ok(());
        };
        match std::env::args().nth(1) {
            Some(rank) => member(&nccl, count, rank.parse()?),
            None => first_process(&nccl, count),
        }
    }

    /// Starts one process for each GPU, sends them the identifier of the group, and prints their results.
    fn first_process(nccl: &Nccl, count: u32) -> Result {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the pointer is valid for the write.
        ok(unsafe { (nccl.get_unique_id)(&raw mut id) }, "ncclGetUniqueId")?;
        let mut members = Vec::new();
        for rank in 0..count {
            // NVLS, which uses multicast objects of NVLink, does not work on every system of several GPUs.
            let member = Command::new(std::env::current_exe()?)
                .arg(rank.to_string())
                .env("NCCL_NVLS_ENABLE", "0")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            members.push(member);
        }
        // NCCL waits for all processes of the group, so none may join before all are ready: each writes one byte when
        // it is ready. If a process ends instead, this function returns, and the other processes fail at the end of
        // their input.
        for member in &mut members {
            member.stdout.as_mut().ok_or("no pipe")?.read_exact(&mut [0])?;
        }
        for member in &mut members {
            member.stdin.as_mut().ok_or("no pipe")?.write_all(&id.0)?;
        }
        let mut pass = true;
        for member in members {
            let output = member.wait_with_output()?;
            print!("{}", String::from_utf8_lossy(&output.stdout));
            pass &= output.status.success();
        }
        println!("Result = {}", if pass { "PASS" } else { "FAIL" });
        if pass { Ok(()) } else { Err("a process failed".into()) }
    }

    /// Runs the process with a rank, which is its number in the group and the ordinal of its GPU: adds the vectors of
    /// all processes and checks the sums.
    fn member(nccl: &Nccl, count: u32, rank: u32) -> Result {
        // NCCL uses the CUDA runtime, which works in the primary context.
        let device = Device::get(rank)?;
        let context = PrimaryContext::retain(device)?.into_context();
        let _current = context.push()?;
        let stream = Stream::non_blocking(&context)?;
        let values: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 + rank as f32).collect();
        let values = DeviceBuffer::from_slice(&context, &values)?;
        let sums = DeviceBuffer::<f32>::zeroed(&context, N)?;
        context.synchronize()?;

        let mut out = std::io::stdout();
        out.write_all(b".")?;
        out.flush()?;
        let mut id = UniqueId([0; 128]);
        std::io::stdin().read_exact(&mut id.0)?;

        let mut comm = std::ptr::null_mut();
        let (ranks, rank_of_this) = (count.try_into()?, rank.try_into()?);
        // SAFETY: the pointer is valid for the write, and the context of this rank's device is current.
        let code = unsafe { (nccl.comm_init_rank)(&raw mut comm, ranks, id, rank_of_this) };
        ok(code, "ncclCommInitRank")?;
        let (from, to) = (values.as_raw() as *const c_void, sums.as_raw() as *mut c_void);
        // SAFETY: both buffers have `N` values, and live until the stream is done.
        let code = unsafe { (nccl.all_reduce)(from, to, N, FLOAT32, SUM, comm, stream.as_raw()) };
        ok(code, "ncclAllReduce")?;
        stream.synchronize()?;
        let sums = sums.to_vec()?;
        // SAFETY: the communicator is live, and its work is done.
        ok(unsafe { (nccl.comm_destroy)(comm) }, "ncclCommDestroy")?;

        let ranks_sum = (0..count).sum::<u32>() as f32;
        let right = |(i, sum): (usize, &f32)| *sum == (i % 1000) as f32 * count as f32 + ranks_sum;
        if !sums.iter().enumerate().all(right) {
            return Err(format!("rank {rank}: wrong sums").into());
        }
        println!("Rank {rank} of {count}, {}: {N} sums", device.name()?);
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("needs Linux");
}
