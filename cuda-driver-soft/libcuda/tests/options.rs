//! Tests of the options of `soft-cuda run`, with programs that do not use CUDA.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn soft_cuda(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soft-cuda"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the message of a command that is refused.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = soft_cuda(arguments);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn options_become_variables_of_the_program() {
    let file = format!("options-{}.json", std::process::id());
    let script = "echo \"$CUDA_SOFT_TRACE|$CUDA_SOFT_SUMMARY|$CUDA_SOFT_PROFILE|$1\"";
    let output = Command::new(env!("CARGO_BIN_EXE_soft-cuda"))
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .args([
            "run",
            "--trace",
            &file,
            "--summary",
            "--profile",
            "--",
            "sh",
            "-c",
            script,
            "sh",
            "--trace",
        ])
        .output()
        .unwrap();
    // The path is absolute, because the program may change its working folder. Options after the program belong to it.
    let whole = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&file);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed, format!("{}|1|1|--trace\n", whole.display()));
    // The file has no `]` at its end, which readers of the format accept.
    let text = std::fs::read_to_string(&whole).unwrap();
    let events: serde_json::Value = serde_json::from_str(&format!("{text}\n]")).unwrap();
    assert_eq!(events[0]["args"]["name"], "sh");
    std::fs::remove_file(whole).unwrap();
}

#[test]
fn registers_are_logged() {
    let script = "echo \"$CUDA_SOFT_LOG$CUDA_SOFT_REGISTERS\"";
    let output = soft_cuda(&["run", "--registers", "sh", "-c", script]);
    assert_eq!(output.stdout, b"11\n");
}

#[test]
fn wrong_options_are_refused() {
    assert!(refused(&["run"]).contains("needs a program"));
    assert!(refused(&["run", "--summary"]).contains("needs a program"));
    assert!(refused(&["run", "--trace"]).contains("the option `--trace` needs a value"));
    assert!(refused(&["run", "--nothing", "true"]).contains("unknown option `--nothing`"));
    assert!(refused(&["run", "--=x", "true"]).contains("unknown option `--=x`"));
    let message = refused(&["run", "--trace=/nonexistent/trace.json", "true"]);
    assert!(
        message.contains("cannot write the trace to /nonexistent/trace.json: "),
        "{message}"
    );
}

/// In a folder that other users can write to, a link could otherwise make the command empty a file of this user.
#[test]
fn the_temporary_report_follows_no_link() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kept = folder.join("kept");
    std::fs::write(&kept, "text").unwrap();
    // `exec` keeps the process ID of the shell, which names the report.
    let script = "ln -s kept \"soft-cuda-check-$$.jsonl\" && exec \"$0\" run --check race true";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_soft-cuda")])
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "text");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn findings_make_the_exit_status() {
    let run = |script: &str| soft_cuda(&["run", "--check", "race,init", "sh", "-c", script]);
    let printed = |output: &Output| String::from_utf8(output.stderr.clone()).unwrap();
    let none = run("echo \"$CUDA_SOFT_CHECK\"");
    assert_eq!(none.status.code(), Some(0));
    assert_eq!(none.stdout, b"race,init\n");
    assert_eq!(printed(&none), "soft-cuda: 0 findings\n");
    // Like the driver, the script writes a line for each finding.
    let one = run("echo '{}' >> \"$CUDA_SOFT_CHECK_REPORT\"");
    assert_eq!(
        (one.status.code(), printed(&one).as_str()),
        (Some(1), "soft-cuda: 1 finding\n")
    );
    assert_eq!(run("exit 7").status.code(), Some(7));
    assert_eq!(run("kill -KILL $$").status.code(), Some(128 + 9));
    assert!(refused(&["run", "--check", "race,speed", "true"]).contains("`speed` is not a check: use memory,"));
    assert!(refused(&["run", "--report", "x", "true"]).contains("`--report` needs `--check`"));
}

/// Without the findings, the exit status would tell that there are none.
#[test]
fn a_report_that_cannot_be_read_is_an_error() {
    let message = refused(&["run", "--check", "race", "--report", "/dev/null", "true"]);
    assert!(
        message.contains("the report /dev/null is not a regular file"),
        "{message}"
    );
    let message = refused(&["run", "--check", "race", "sh", "-c", "rm \"$CUDA_SOFT_CHECK_REPORT\""]);
    assert!(message.contains("cannot read the findings in "), "{message}");
}

/// `cargo install` copies the program only.
#[test]
fn an_installed_program_says_where_the_library_belongs() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("installed-{}", std::process::id()));
    let (bin, lib) = (root.join("bin"), root.join("lib/soft-cuda"));
    _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&lib).unwrap();
    let program = bin.join("soft-cuda");
    // A link, not a copy: while another test starts a process, that process has the copy open for writing, and the copy
    // cannot be run.
    std::fs::hard_link(env!("CARGO_BIN_EXE_soft-cuda"), &program).unwrap();
    let path = || Command::new(&program).arg("path").output().unwrap();
    let without = path();
    assert!(!without.status.success());
    let message = String::from_utf8_lossy(&without.stderr).into_owned();
    let place = PathBuf::from(message.trim().rsplit(' ').next().unwrap());
    assert!(
        message.contains("cargo install") && place.ends_with("libcuda.so.1"),
        "{message}"
    );
    assert!(message.contains("soft-cuda/libcuda.so a link"), "{message}");
    std::fs::write(&place, "the library").unwrap();
    let with = path();
    let folder = PathBuf::from(String::from_utf8(with.stdout).unwrap().trim());
    assert_eq!(folder.canonicalize().unwrap(), lib.canonicalize().unwrap());
    // Programs may look for either name.
    let second = lib.join("libcuda.so");
    assert_eq!(std::fs::read(&second).unwrap(), b"the library");
    // The folder may be read-only. Here a folder has the temporary name of the link, which ends with the process ID.
    std::fs::remove_file(&second).unwrap();
    let script = "mkdir \"$1.$$\" && exec \"$2\" path";
    let mut shell = Command::new("sh");
    let with_first = shell
        .args(["-c", script, "sh"])
        .args([&second, &program])
        .output()
        .unwrap();
    assert!(with_first.status.success() && !second.exists(), "{with_first:?}");
    std::fs::remove_dir_all(&root).unwrap();
}
