//! Tests of the example programs, run as a user runs them: output and exit status.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "common/needs.rs"]
mod needs;

use needs::needs;

/// Returns an example built with this test program: in `deps/../examples` in cargo's folder, in `tests/../examples` in
/// a packed folder.
fn example(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let path = program.parent()?.parent()?.join("examples").join(name);
    if path.is_file() {
        return Some(path);
    }
    let missing = format!("the example {name}; run: cargo build --examples");
    // On Windows, programs have another name.
    if cfg!(windows) {
        needs(&missing);
    } else {
        needs::needs_but_not_in_ci(&missing);
    }
    None
}

/// Runs an example with `driver` as `CUDA_DRIVER`. `None` keeps the variable's value; if it is unset, the example runs
/// on the software driver.
fn run(path: &Path, driver: Option<&str>, args: &[&str]) -> Output {
    let mut command = Command::new(path);
    match driver {
        Some(driver) => command.env("CUDA_DRIVER", driver),
        None if std::env::var_os("CUDA_DRIVER").is_none() => command.env("CUDA_DRIVER", "software"),
        None => &mut command,
    };
    command
        .args(args)
        .current_dir(std::env::temp_dir())
        .output()
        .expect("the example starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn vector_add_passes() {
    let Some(path) = example("vector_add") else {
        return;
    };
    for args in [&[][..], &["--n", "1"], &["--n", "1000003"]] {
        let output = run(&path, None, args);
        let out = text(&output.stdout);
        assert!(output.status.success(), "{args:?}: {out}{}", text(&output.stderr));
        assert!(out.ends_with("Result = PASS\n"), "{out}");
        assert!(
            out.contains("Driver: ") && out.contains("Device: ") && out.contains(" ms "),
            "{out}"
        );
    }
}

#[test]
fn vector_add_names_the_software_driver() {
    let Some(path) = example("vector_add") else {
        return;
    };
    let output = run(&path, Some("software"), &[]);
    let out = text(&output.stdout);
    assert!(out.contains("software"), "{out}");
    assert!(out.contains("Device: Software CUDA device"), "{out}");
}

#[test]
fn vector_add_with_a_driver_that_cannot_be_loaded() {
    let Some(path) = example("vector_add") else {
        return;
    };
    let output = run(&path, Some("/no/such/file"), &[]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.is_empty(), "{out}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("/no/such/file"), "{err}");
    assert!(!err.contains("CUDA_DRIVER must be"), "{err}");
    // A misspelt driver name.
    let output = run(&path, Some("sofware"), &[]);
    let err = text(&output.stderr);
    let advice = "; CUDA_DRIVER must be `software`, `system` or a path\n";
    assert!(err.contains("sofware") && err.ends_with(advice), "{err}");
    // An empty variable counts as unset.
    let output = run(&path, Some(""), &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Runs a setuid copy of a program, owned by root, as another user. Returns `None`, and prints the reason, if this
/// machine cannot do that.
#[cfg(target_os = "linux")]
fn run_setuid(program: &Path, args: &[&str], driver: &str) -> Option<Output> {
    use std::io::ErrorKind;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let name = program.file_name()?.to_string_lossy();
    let copy = std::env::temp_dir().join(format!("{name}-setuid-{}", std::process::id()));
    std::fs::copy(program, &copy).expect("a copy");
    let mode = std::fs::Permissions::from_mode(0o4750);
    let made = chown(&copy, None, Some(NOBODY)).and_then(|()| std::fs::set_permissions(&copy, mode));
    let mut command = Command::new(&copy);
    command
        .args(args)
        .env("CUDA_DRIVER", driver)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/");
    let mut output = made.and_then(|()| command.output());
    // While another test forks to start a program, the forked process briefly holds this file open for writing.
    for _ in 0..1000 {
        match &output {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
                output = command.output();
            }
            _ => break,
        }
    }
    std::fs::remove_file(&copy).expect("the copy");
    match output {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            needs("root, and a temporary folder where other users can start programs");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A privileged program does not load a library that its user names.
#[test]
#[cfg(target_os = "linux")]
fn vector_add_in_a_privileged_process() {
    let Some(path) = example("vector_add") else {
        return;
    };
    let machine = Command::new("uname").arg("-m").output().expect("uname");
    let Some(user) = run_setuid(Path::new("/usr/bin/id"), &["-u"], "") else {
        return;
    };
    if text(&machine.stdout).trim() != std::env::consts::ARCH || text(&user.stdout).trim() != "0" {
        needs("a temporary folder on a file system that honours setuid, and no emulator");
        return;
    }
    let kernel = std::fs::read(ptx("vector_add.ptx")).expect("the kernel's PTX");
    let file = std::env::temp_dir().join(format!("vector_add-setuid-{}.ptx", std::process::id()));
    std::fs::write(&file, kernel).expect("a file in the temporary folder");
    let args = ["--ptx", &file.display().to_string()];
    let output = run_setuid(&path, &args, "/no/such/file");
    std::fs::remove_file(&file).expect("the file");
    let output = output.expect("run_setuid ran `id` before");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
}

#[test]
fn vector_add_with_bad_options() {
    let Some(path) = example("vector_add") else {
        return;
    };
    for (args, part) in [
        (&["--n", "0"][..], "--n 0"),
        (&["--n", "many"], "--n many"),
        (&["--n"], "--n"),
        (&["--ptx", "/no/such/file.ptx"], "/no/such/file.ptx"),
        (&["--frobnicate"], "--frobnicate"),
    ] {
        let output = run(&path, None, args);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.contains(part), "{args:?}: {err}");
    }
}

#[test]
fn vector_add_fails_if_the_sums_are_wrong() {
    let Some(path) = example("vector_add") else {
        return;
    };
    // A kernel of the same name that subtracts.
    let original = std::fs::read_to_string(ptx("vector_add.ptx")).expect("the kernel's PTX");
    let wrong = original.replace("add.f32", "sub.f32");
    assert_ne!(wrong, original, "the kernel has an add.f32");
    let file = std::env::temp_dir().join(format!("vector_sub-{}.ptx", std::process::id()));
    std::fs::write(&file, wrong).expect("a file in the temporary folder");
    let output = run(&path, None, &["--ptx", &file.display().to_string()]);
    let _ = std::fs::remove_file(&file);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.ends_with("Result = FAIL\n"), "{out}");
}

#[test]
fn graph_passes() {
    let Some(path) = example("graph") else { return };
    let output = run(&path, None, &[]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.ends_with("Result = PASS\n"), "{out}");
    assert!(out.contains("EXEC_UPDATE"), "{out}");
}

#[test]
fn saxpy_is_the_readmes_program() {
    let Some(path) = example("saxpy") else { return };
    let output = run(&path, None, &[]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.ends_with(": [10.5, 20.5, 30.5, 40.5]\n"), "{out}");
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let Ok(readme) = std::fs::read_to_string(readme) else {
        return needs("README.md, which is in the source tree");
    };
    let program = include_str!("../examples/saxpy.rs");
    let (_, program) = program.split_once("\n\n").expect("a first comment");
    assert!(
        readme.contains(program),
        "the README's program is not examples/saxpy.rs"
    );
    if out.starts_with("Software") {
        assert!(readme.contains(out.trim_end()), "the README's output is not {out}");
    }
}

/// Runs an example, whose output must end with `Result = PASS` or begin with `needs`; reports what it needs. If
/// `CUDA_DRIVER` is unset, the software driver has `devices` devices.
fn passes_or_needs(name: &str, devices: &str) {
    let Some(path) = example(name) else { return };
    let mut command = Command::new(&path);
    if std::env::var_os("CUDA_DRIVER").is_none() {
        command.env("CUDA_DRIVER", "software").env("CUDA_SOFT_DEVICES", devices);
    }
    let output = command.output().expect("the example starts");
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.ends_with("Result = PASS\n") || out.starts_with("needs "), "{out}");
    out.lines()
        .filter(|line| line.starts_with("needs "))
        .for_each(needs::say);
}

#[test]
fn ipc_passes() {
    passes_or_needs("ipc", "1");
}

#[test]
fn peer_passes_or_needs_two_devices() {
    passes_or_needs("peer", "2");
}

#[test]
fn peer_says_that_it_needs_two_devices() {
    let Some(path) = example("peer") else { return };
    let output = Command::new(path)
        .env("CUDA_DRIVER", "software")
        .env("CUDA_SOFT_DEVICES", "1")
        .output()
        .expect("the example starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "needs two devices\n");
}

#[test]
fn runtime_interop_passes_or_needs_a_gpu() {
    passes_or_needs("runtime_interop", "1");
}

#[test]
fn all_reduce_passes_or_needs_two_gpus() {
    passes_or_needs("all_reduce", "2");
}

#[test]
fn texture_writes_a_picture() {
    let Some(path) = example("texture") else { return };
    let file = std::env::temp_dir().join(format!("texture-{}.png", std::process::id()));
    let output = run(&path, None, &[&file.display().to_string()]);
    let picture = std::fs::read(&file);
    let _ = std::fs::remove_file(&file);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.ends_with("Result = PASS\n"), "{out}");
    let picture = picture.expect("the picture");
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"), "the file is not a PNG file");
    // The type and the CRC of the last chunk, which has no content.
    assert!(
        picture.ends_with(b"IEND\xae\x42\x60\x82"),
        "the file does not end with an IEND chunk"
    );
}

#[test]
fn matrix_mul_passes() {
    let _ = passes("matrix_mul");
}

#[test]
fn reduction_passes() {
    let Some(out) = passes("reduction") else { return };
    assert!(out.contains("1000000 values to 3907\n"), "{out}");
}

fn ptx(name: &str) -> PathBuf {
    let packed = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.join(name)));
    match packed {
        Some(path) if path.is_file() => path,
        _ => Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/kernels/generated")
            .join(name),
    }
}

/// Runs an example and returns its output, which must end with `Result = PASS`. Returns `None`, and prints the reason,
/// if the example is missing or its last line begins with `needs`.
fn passes(name: &str) -> Option<String> {
    let output = run(&example(name)?, None, &[]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    let last = out.lines().last().unwrap_or_default();
    if last.starts_with("needs ") {
        needs::say(last);
        return None;
    }
    assert_eq!(last, "Result = PASS", "{out}");
    Some(out)
}

#[test]
fn memory_pool_passes() {
    let Some(out) = passes("memory_pool") else { return };
    assert!(out.contains("Round 3: 0 bytes used, "), "{out}");
    assert!(!out.contains("used, 0 bytes kept"), "{out}");
}

#[test]
fn virtual_memory_passes() {
    let Some(out) = passes("virtual_memory") else { return };
    assert!(out.contains("1600000 values in "), "{out}");
}

#[test]
fn managed_passes() {
    let Some(out) = passes("managed") else { return };
    assert!(out.contains("Last prefetch of y: -1"), "{out}");
}

#[test]
fn device_query_passes() {
    let Some(out) = passes("device_query") else { return };
    assert!(
        out.contains("Device 0: ") && out.contains("threads in a warp        32"),
        "{out}"
    );
}

#[test]
fn contexts_passes() {
    let Some(out) = passes("contexts") else { return };
    assert!(out.contains("Attached: three libraries"), "{out}");
}

#[test]
fn launch_params_passes() {
    let Some(out) = passes("launch_params") else { return };
    assert!(out.contains("[0, 16, 32, 36, 40, 48], 56 bytes"), "{out}");
}

#[test]
fn occupancy_passes() {
    let Some(out) = passes("occupancy") else { return };
    assert!(out.contains("Best: blocks of "), "{out}");
}

#[test]
fn streams_passes() {
    let Some(out) = passes("streams") else { return };
    assert!(out.contains("Host function: the kernel is done"), "{out}");
}

#[test]
fn errors_passes() {
    let Some(out) = passes("errors") else { return };
    for part in [
        "No driver: ",
        "Before init: ",
        "Compiler: ",
        "tarp",
        "errors.rs:",
        "raised by earlier work",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn multi_gpu_passes() {
    let Some(out) = passes("multi_gpu") else { return };
    assert!(out.contains("Device 0: "), "{out}");
}

/// With the software driver, the vector is split over three devices.
#[test]
fn multi_gpu_uses_all_devices() {
    let Some(path) = example("multi_gpu") else { return };
    let output = Command::new(path)
        .env("CUDA_DRIVER", "software")
        .env("CUDA_SOFT_DEVICES", "3")
        .output()
        .expect("the example starts");
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.contains("Device 2: 33333 values"), "{out}");
}

#[test]
fn ptx_jit_passes() {
    let Some(out) = passes("ptx_jit") else { return };
    for part in ["CUDA_ERROR_INVALID_PTX (218)", "line 14", "Link completed in ", " ms: "] {
        assert!(out.contains(part), "no `{part}`: {out}");
    }
}

#[test]
fn cooperative_passes() {
    let Some(out) = passes("cooperative") else { return };
    assert!(
        out.contains("cuLaunchCooperativeKernel failed: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
        "{out}"
    );
}

#[test]
fn libraries_passes() {
    let Some(out) = passes("libraries") else { return };
    assert!(out.contains("the factor 10: [10.0, 20.0, 30.0], 1 launch"), "{out}");
}

#[test]
fn green_contexts_passes() {
    let Some(out) = passes("green_contexts") else { return };
    assert!(out.contains("512 blocks are done on "), "{out}");
}
