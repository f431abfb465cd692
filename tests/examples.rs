//! The example programs, run as a user runs them: what they print and how they end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An example beside this test program: `deps/../examples` in cargo's folder, `tests/../examples` in a packed one.
fn example(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let path = program.parent()?.parent()?.join("examples").join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("needs the example {name}: cargo build --examples");
    None
}

/// Runs an example with the driver that `CUDA_DRIVER` names, the software driver where it is unset.
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
        assert!(
            output.status.success(),
            "{args:?}: {out}{}",
            text(&output.stderr)
        );
        assert!(out.ends_with("Result = PASS\n"), "{out}");
        assert!(
            out.contains("Driver: ") && out.contains("Device: ") && out.contains(" ms "),
            "{out}"
        );
    }
}

#[test]
fn vector_add_says_why_it_takes_the_software_driver() {
    let Some(path) = example("vector_add") else {
        return;
    };
    let output = run(&path, Some("software"), &[]);
    let out = text(&output.stdout);
    assert!(out.contains("software"), "{out}");
    assert!(out.contains("Device: Software CUDA device"), "{out}");
}

#[test]
fn vector_add_without_the_driver_it_is_told_to_use() {
    let Some(path) = example("vector_add") else {
        return;
    };
    let output = run(&path, Some("/no/such/file"), &[]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.is_empty(), "{out}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("/no/such/file"), "{err}");
    assert!(!err.contains("CUDA_DRIVER is"), "{err}");
    // A word that was meant to be another one.
    let output = run(&path, Some("sofware"), &[]);
    let err = text(&output.stderr);
    let advice = "; CUDA_DRIVER is `software`, `system` or a path\n";
    assert!(err.contains("sofware") && err.ends_with(advice), "{err}");
    // One that is empty says nothing.
    let output = run(&path, Some(""), &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// A program that has its owner's rights loads nothing that who starts it names.
#[test]
#[cfg(target_os = "linux")]
fn vector_add_with_more_rights_than_its_user() {
    use std::io::ErrorKind;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65534;
    let Some(path) = example("vector_add") else {
        return;
    };
    let name = format!("vector_add-setuid-{}", std::process::id());
    let program = std::env::temp_dir().join(name);
    std::fs::copy(path, &program).expect("a copy");
    if chown(&program, None, Some(NOBODY)).is_err() {
        std::fs::remove_file(&program).expect("the copy");
        println!("needs root, who can make a setuid program and start it as another user");
        return;
    }
    let mode = std::fs::Permissions::from_mode(0o4750);
    std::fs::set_permissions(&program, mode).expect("a file of ours");
    let kernel = std::fs::read(ptx("vector_add.ptx")).expect("the kernel's PTX");
    let kernel_copy = program.with_extension("ptx");
    std::fs::write(&kernel_copy, kernel).expect("a file in the temporary folder");
    let mut command = Command::new(&program);
    command
        .args(["--ptx", &kernel_copy.display().to_string()])
        .env("CUDA_DRIVER", "/no/such/file")
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/");
    let mut output = command.output();
    // Programs that other tests start meanwhile are, for a moment, copies of this process with the file open to be written.
    for _ in 0..1000 {
        match &output {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
                output = command.output();
            }
            _ => break,
        }
    }
    _ = std::fs::remove_file(&program);
    _ = std::fs::remove_file(&kernel_copy);
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            println!("needs a folder for temporary files that other users can start programs in");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if err.contains("/no/such/file") && std::env::var_os("TMPDIR").is_some() {
        println!("needs a folder for temporary files where setuid counts: {err}");
        return;
    }
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
fn vector_add_fails_where_the_sums_are_wrong() {
    let Some(path) = example("vector_add") else {
        return;
    };
    // A kernel of the right name that subtracts.
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
fn saxpy_prints_what_the_readme_says() {
    let Some(path) = example("saxpy") else { return };
    let output = run(&path, None, &[]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(out.ends_with(": [10.5, 20.5, 30.5, 40.5]\n"), "{out}");
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let Ok(readme) = std::fs::read_to_string(readme) else {
        return;
    };
    let program = include_str!("../examples/saxpy.rs");
    let (_, program) = program.split_once("\n\n").expect("a first comment");
    assert!(
        readme.contains(program),
        "the README's program is not examples/saxpy.rs"
    );
    if out.starts_with("Software") {
        assert!(
            readme.contains(out.trim_end()),
            "the README's output is not {out}"
        );
    }
}

fn ptx(name: &str) -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.join(name)));
    match beside {
        Some(path) if path.is_file() => path,
        _ => Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/kernels/generated")
            .join(name),
    }
}
