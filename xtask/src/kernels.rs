//! `cargo xtask kernels [--check]`: compiles `tests/kernels/*.cu` to PTX with NVRTC.
//!
//! No GPU is needed. A file is compiled for `compute_52` unless its name contains another architecture
//! (`name.sm_70.cu`); a line `// nvrtc: OPTIONS` in it adds options. With `--check`, writes nothing and fails if a
//! committed file differs.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, ptr};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::files::{read, root, write};
use crate::headers::{self, NVRTC};

/// Compiles every kernel file; with `check`, compares instead of writing.
pub(crate) fn run(check: bool) -> Result<(), String> {
    let folder = root().join("tests/kernels");
    let generated = folder.join("generated");
    headers::fetch(&NVRTC)?;

    let mut sources = files(&folder, "cu")?;
    sources.sort();
    let mut expected = Vec::new();
    let mut stale = Vec::new();
    for source in &sources {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ptx = compile(source)?;
        let target = generated.join(source.with_extension("ptx").file_name().unwrap_or_default());
        if fs::read_to_string(&target).ok().as_ref() != Some(&ptx) {
            if check {
                stale.push(format!(
                    "{} is stale: {name} compiles to something else",
                    target.display()
                ));
            } else {
                write(&target, &ptx)?;
                println!("wrote {}", target.display());
            }
        }
        expected.push(target);
    }
    for file in files(&generated, "ptx")? {
        if !expected.contains(&file) {
            if check {
                stale.push(format!("{} has no source", file.display()));
            } else {
                fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))?;
                println!("removed {}", file.display());
            }
        }
    }
    if stale.is_empty() {
        println!("{} kernel files compiled with NVRTC {}", sources.len(), NVRTC.version);
        Ok(())
    } else {
        Err(format!("{}\nrun: cargo xtask kernels", stale.join("\n")))
    }
}

/// Returns the PTX of one file, compiled in a process of its own: the compiler numbers calls across the files of a
/// process.
fn compile(source: &Path) -> Result<String, String> {
    let this = std::env::current_exe().map_err(|e| format!("the path of this program: {e}"))?;
    let output = Command::new(this)
        .arg("kernel")
        .arg(source)
        .output()
        .map_err(|e| format!("{}: {e}", source.display()))?;
    let log = String::from_utf8_lossy(&output.stderr);
    eprint!("{log}");
    if !output.status.success() {
        return Err(format!("{} does not compile", source.display()));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("{}: {e}", source.display()))
}

/// `cargo xtask kernel`: compiles one file and prints its PTX.
pub(crate) fn print(source: &Path) -> Result<(), String> {
    let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let nvrtc = Nvrtc::load(&headers::fetch(&NVRTC)?)?;
    print!("{}", nvrtc.compile(&name, &read(source)?)?);
    Ok(())
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| format!("{}: {e}", folder.display()))?.path();
        if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

type Program = *mut c_void;

/// The entry points of NVRTC that compile a file, as `nvrtc.h` declares them.
struct Nvrtc {
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ptx_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    ptx: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
}

impl Nvrtc {
    /// Loads the library of this file.
    fn load(file: &Path) -> Result<Self, String> {
        // The compiler opens its second library by name, and finds it only if it is loaded already.
        let builtins = open(&file.with_file_name("libnvrtc-builtins.so.11.7"))?;
        let library = open(file)?;
        // Neither library is closed: the function pointers below outlive this function.
        std::mem::forget(builtins);
        macro_rules! symbol {
            ($name:literal) => {{
                // SAFETY: each field's type is nvrtc.h's declaration of the symbol assigned to it.
                let found = unsafe { library.get($name.to_bytes_with_nul()) };
                *found.map_err(|e| format!("NVRTC: {e}"))?
            }};
        }
        let nvrtc = Self {
            create: symbol!(c"nvrtcCreateProgram"),
            compile: symbol!(c"nvrtcCompileProgram"),
            log_size: symbol!(c"nvrtcGetProgramLogSize"),
            log: symbol!(c"nvrtcGetProgramLog"),
            ptx_size: symbol!(c"nvrtcGetPTXSize"),
            ptx: symbol!(c"nvrtcGetPTX"),
            error: symbol!(c"nvrtcGetErrorString"),
            destroy: symbol!(c"nvrtcDestroyProgram"),
        };
        std::mem::forget(library);
        Ok(nvrtc)
    }

    /// Returns the PTX of one source file. A line that names the source replaces the compiler's comment at the start.
    fn compile(&self, name: &str, text: &str) -> Result<String, String> {
        let architecture = name
            .split('.')
            .find_map(|part| part.strip_prefix("sm_"))
            .unwrap_or("52");
        let mut options = vec![
            format!("--gpu-architecture=compute_{architecture}"),
            "--std=c++17".to_owned(),
        ];
        for line in text.lines().filter_map(|line| line.strip_prefix("// nvrtc: ")) {
            options.extend(line.split_whitespace().map(str::to_owned));
        }

        let source = CString::new(text).map_err(|e| format!("{name}: {e}"))?;
        let label = CString::new(name).map_err(|e| format!("{name}: {e}"))?;
        let arguments = options
            .iter()
            .map(|option| CString::new(option.as_str()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| format!("{name}: {e}"))?;
        let pointers: Vec<_> = arguments.iter().map(|a| a.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|e| format!("{name}: {e}"))?;

        let mut program: Program = ptr::null_mut();
        // SAFETY: both strings are terminated and outlive the call; no headers are passed.
        let code = unsafe {
            (self.create)(
                &mut program,
                source.as_ptr(),
                label.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        self.check(name, code)?;
        // SAFETY: `pointers` holds `count` terminated strings, and the program was created above.
        let code = unsafe { (self.compile)(program, count, pointers.as_ptr()) };
        let log = self.text(name, program, self.log_size, self.log)?;
        if !log.trim().is_empty() {
            eprint!("{log}");
        }
        self.check(name, code)?;
        let ptx = self.text(name, program, self.ptx_size, self.ptx)?;
        // SAFETY: the program is live and not used afterwards.
        let code = unsafe { (self.destroy)(&mut program) };
        self.check(name, code)?;

        let mut out = String::new();
        let _ = writeln!(
            out,
            "// Written by `cargo xtask kernels` from tests/kernels/{name} with NVRTC {} ({}). Do not edit.",
            NVRTC.version,
            options.join(" ")
        );
        // With line information, NVRTC writes its working folder before the name of the source.
        let here = std::env::current_dir().map_err(|e| format!("{name}: {e}"))?;
        let ptx = ptx.replace(&format!("\"{}/", here.display()), "\"");
        let body: Vec<_> = ptx
            .lines()
            .skip_while(|line| line.is_empty() || line.starts_with("//"))
            .collect();
        out.push_str(body.join("\n").trim_end());
        out.push('\n');
        Ok(out)
    }

    fn text(
        &self,
        name: &str,
        program: Program,
        size_of: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        read: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<String, String> {
        let mut size = 0;
        // SAFETY: the program is live and `size` takes the result.
        let code = unsafe { size_of(program, &mut size) };
        self.check(name, code)?;
        let mut buffer = vec![0_u8; size];
        // SAFETY: the buffer has the size that NVRTC returned, including the terminating NUL.
        let code = unsafe { read(program, buffer.as_mut_ptr().cast()) };
        self.check(name, code)?;
        while buffer.last() == Some(&0) {
            buffer.pop();
        }
        String::from_utf8(buffer).map_err(|e| format!("{name}: {e}"))
    }

    fn check(&self, name: &str, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: nvrtcGetErrorString takes any number and returns a static, terminated string.
        let text = unsafe { CStr::from_ptr((self.error)(code)) };
        Err(format!("{name}: {} ({code})", text.to_string_lossy()))
    }
}

fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: NVRTC's libraries run nothing at load that has a precondition.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map_err(|e| format!("{}: {e}", path.display()))
}
