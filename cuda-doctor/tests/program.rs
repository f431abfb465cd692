//! Tests of the program `cuda-doctor` on this machine, with any driver or none.

use std::process::{Command, Output};

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuda-doctor"));
    for variable in ["CUDA_DRIVER", "CUDA_DRIVER_LIBRARY"] {
        command.env_remove(variable);
    }
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn last_line_says_what_to_do() {
    let output = doctor(&[], &[]);
    let text = text(&output.stdout);
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("What to do: "), "{text}");
    assert!(matches!(output.status.code(), Some(0..=2)), "{}", output.status);
}

#[test]
fn json_has_the_exit_code() {
    let output = doctor(&["--json"], &[]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let code = output.status.code().expect("an exit code");
    assert_eq!(value["exit_code"], code);
    assert_eq!(value["format"], 1);
    assert!(value["findings"]["driver"]["attempts"].is_array());
}

#[test]
#[cfg(target_os = "linux")]
fn named_file_that_is_not_a_driver_is_broken() {
    for variable in ["CUDA_DRIVER", "CUDA_DRIVER_LIBRARY"] {
        let output = doctor(&[], &[(variable, "/etc/passwd")]);
        let text = text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let expected =
            format!("{variable} names /etc/passwd, which cannot be loaded: /etc/passwd: invalid ELF header.");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
#[cfg(feature = "software")]
fn software_driver_is_examined_if_asked_for() {
    let output = doctor(&[], &[("CUDA_DRIVER", "software")]);
    let text = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.ends_with("What to do: nothing: CUDA works on 1 device of the software driver.\n"),
        "{text}"
    );
}

#[test]
fn help_documents_the_exit_codes() {
    let output = doctor(&["--help"], &[]);
    let text = text(&output.stdout);
    assert!(output.status.success());
    assert!(
        text.contains("Exit code:") && text.contains("CUDA_DRIVER=software"),
        "{text}"
    );
}

#[test]
fn unknown_options_are_refused() {
    for arguments in [&["--quiet"][..], &["--timeout"], &["--timeout", "0"], &["--task", "{}"]] {
        let output = doctor(arguments, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with("cuda-doctor: "), "{arguments:?}");
    }
}
