//! Tests of the report in most situations that `cuda-doctor` distinguishes. A test sets up a fake machine: a folder of
//! files, and a fake driver. With `CUDA_DRIVER=system`, the test `gpu` examines this machine instead.
#![cfg(target_os = "linux")]

mod driver;
mod tree;

use std::io;
use std::process::Command;
use std::time::Duration;

use cuda_doctor::diagnosis::{Cause, Diagnosis, Severity, Verdict};
use cuda_doctor::findings::{AttemptResult, Ending, Findings, KernelResult, LibraryKind};
use cuda_doctor::{Prober, Surroundings, Task, diagnose, examine, gather, json, text};
use driver::Driver;
use tree::Tree;

const TASK: &str = "CUDA_DOCTOR_TEST_TASK";
const DRIVER: &str = "CUDA_DOCTOR_TEST_DRIVER";

/// The version of most fake drivers.
const VERSION: &str = "580.159.04";

/// The child process of the other tests: performs the task in the environment variable. Without a task, it does
/// nothing.
#[test]
fn child_process() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let task: Task = serde_json::from_str(&task).expect("a task");
    let driver: Driver = std::env::var(DRIVER).expect("a driver").parse().expect("a driver");
    examine(&task, &|place| driver.open(place), &mut io::stdout());
}

/// The findings, the diagnosis and the text report of one machine.
struct Report {
    findings: Findings,
    diagnosis: Diagnosis,
    text: String,
}

impl Report {
    fn of(surroundings: &Surroundings, driver: Driver, timeout: u64, software: &'static [(&str, &str)]) -> Self {
        let command = move |task: &Task| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["--exact", "child_process", "--nocapture"]);
            command
                .env(TASK, serde_json::to_string(task)?)
                .env(DRIVER, driver.to_string());
            command.envs(software.iter().copied());
            Ok(command)
        };
        let findings = gather(surroundings, &Prober::new(Duration::from_secs(timeout), command));
        let diagnosis = diagnose(&findings);
        let text = text(&findings, &diagnosis);
        println!("{text}");
        let report = Self {
            findings,
            diagnosis,
            text,
        };
        report.check_form();
        report
    }

    fn new(tree: &Tree, driver: Driver) -> Self {
        Self::of(tree.surroundings(), driver, 300, &[])
    }

    /// Checks the properties that every report has.
    fn check_form(&self) {
        let last = self.text.lines().last().expect("a line");
        assert_eq!(last, format!("What to do: {}", self.diagnosis.advice));
        let json = json(&self.findings, &self.diagnosis).expect("JSON");
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(value["exit_code"], self.diagnosis.exit_code);
        let findings: Findings = serde_json::from_value(value["findings"].clone()).expect("findings");
        assert_eq!(findings, self.findings);
        assert_eq!(
            diagnose(&findings),
            self.diagnosis,
            "the diagnosis depends on the findings alone"
        );
    }

    #[track_caller]
    fn assert(&self, verdict: Verdict, cause: Cause, advice: &str) {
        assert_eq!(self.diagnosis.verdict, verdict, "{}", self.text);
        let first = self.diagnosis.problems.first().map(|problem| problem.cause);
        assert_eq!(first, Some(cause), "{}", self.text);
        assert!(self.diagnosis.advice.contains(advice), "{}", self.text);
    }

    #[track_caller]
    fn assert_text(&self, part: &str) {
        assert!(self.text.contains(part), "no {part:?} in:\n{}", self.text);
    }
}

#[test]
fn no_driver() {
    let report = Report::new(&Tree::new("none"), Driver::File);
    report.assert(Verdict::NoGpu, Cause::NoDriver, "soft-cuda run PROGRAM");
    assert_eq!(report.diagnosis.exit_code, 1);
    report.assert_text("libcuda.so.1: cannot open shared object file: No such file or directory");
    report.assert_text("usr/lib/wsl/lib/libcuda.so.1");
    report.assert_text("There is no CUDA driver, and no NVIDIA GPU on the PCI bus.");
}

#[test]
fn no_driver_for_a_gpu() {
    let report = Report::new(&Tree::new("gpu-none").gpu(Some("nouveau")), Driver::File);
    report.assert(Verdict::NoGpu, Cause::NoDriver, "so that it replaces nouveau");
    report.assert_text("There is no CUDA driver for the GPU at 0000:17:00.0.");
}

#[test]
fn stub_only() {
    let report = Report::new(&Tree::new("stub").gpu(None).toolkit(), Driver::File);
    report.assert(Verdict::NoGpu, Cause::StubOnly, "install NVIDIA's driver.");
    report.assert_text("/usr/local/cuda-13.5/lib64/stubs/libcuda.so is the stub library of a CUDA toolkit");
}

#[test]
fn stub_in_the_drivers_place() {
    let report = Report::new(&Tree::new("stub-installed").driver("13.5"), Driver::Init(34));
    report.assert(Verdict::NoGpu, Cause::StubOnly, "");
    let library = report.findings.driver.library.as_ref().expect("a library");
    assert_eq!(library.kind, LibraryKind::Stub);
}

#[test]
fn stub_that_hides_the_driver() {
    let tree = Tree::new("stub-first")
        .gpu(Some("nvidia"))
        .kernel_module(VERSION)
        .nodes(0o666)
        .toolkit();
    let library = std::fs::read(std::env::current_exe().expect("a path")).expect("a program");
    tree.file("usr/lib64/libcuda.so.1", &library[..64]);
    let mut findings = Report::new(&tree, Driver::File).findings;
    // A fake machine has no loader to search the folders, so the test sets the result of the search.
    let path = "/usr/local/cuda-13.5/lib64/stubs/libcuda.so".to_owned();
    findings.driver.attempts[0].result = AttemptResult::Stub { path };
    let diagnosis = diagnose(&findings);
    assert_eq!(diagnosis.problems[0].cause, Cause::StubFirst);
    assert!(diagnosis.advice.contains("LD_LIBRARY_PATH"), "{}", diagnosis.advice);
}

#[test]
fn stub_outside_its_folder_that_hides_the_driver() {
    let tree = Tree::new("stub-loaded").gpu(Some("nvidia")).driver(VERSION);
    let mut findings = Report::new(&tree, Driver::Init(34)).findings;
    let library = findings.driver.library.as_mut().expect("a library");
    library.path = Some("/opt/toolkit/libcuda.so.1".to_owned());
    let diagnosis = diagnose(&findings);
    assert_eq!(diagnosis.problems[0].cause, Cause::StubFirst);
    let text = &diagnosis.problems[0].text;
    assert!(text.contains("finds /opt/toolkit/libcuda.so.1"), "{text}");
    assert!(text.ends_with("libcuda.so.1."), "{text}");
}

#[test]
fn stub_that_a_variable_names() {
    let tree = Tree::new("stub-named").toolkit();
    let path = tree.root().join("usr/local/cuda-13.5/lib64/stubs/libcuda.so");
    let tree = tree.variable("CUDA_DRIVER_LIBRARY", &path.to_string_lossy());
    let report = Report::new(&tree, Driver::Init(34));
    report.assert(Verdict::Broken, Cause::NamedLibrary, "unset CUDA_DRIVER_LIBRARY");
}

#[test]
fn software_driver() {
    let report = Report::new(&Tree::new("software").driver("1.1"), Driver::Software);
    report.assert(Verdict::NoGpu, Cause::SoftwareDriver, "CUDA_DRIVER=software");
    assert_eq!(report.diagnosis.exit_code, 1);
    report.assert_text("Device 0: Software CUDA device (sm_90)");
    assert!(report.findings.kernel_runs[0].is_correct());
}

/// A process that was started with SIGCHLD ignored does not see how its child processes end.
#[test]
fn ignored_ends_of_processes() {
    let output = Command::new("env")
        .arg("--ignore-signal=CHLD")
        .arg(std::env::current_exe().expect("the path of this program"))
        .args(["--exact", "software_driver_that_was_asked_for", "--nocapture"])
        .output()
        .expect("env starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn default_library_of_a_process_is_set() {
    let report = Report::new(&Tree::new("late").driver(VERSION), Driver::Late);
    report.assert(
        Verdict::Broken,
        Cause::Initialisation,
        "a process that has not used CUDA",
    );
    report.assert_text("The devices were not examined: the default CUDA library can no longer be set");
}

#[test]
fn software_driver_that_was_asked_for() {
    let tree = Tree::new("asked-for").driver("1.1").variable("CUDA_DRIVER", "software");
    let report = Report::new(&tree, Driver::Software);
    report.assert(
        Verdict::Works,
        Cause::SoftwareDriver,
        "nothing: CUDA works on 1 device of the software driver.",
    );
    assert_eq!(report.diagnosis.exit_code, 0);

    let named = Tree::new("named").driver("1.1");
    let path = named
        .root()
        .join(format!("usr/lib/{}-linux-gnu/libcuda.so.1", std::env::consts::ARCH));
    let named = named.variable("CUDA_DRIVER_LIBRARY", &path.to_string_lossy());
    let report = Report::new(&named, Driver::Software);
    report.assert(Verdict::Works, Cause::SoftwareDriver, "nothing");
}

#[test]
fn gpu() {
    let asks_system = std::env::var("CUDA_DRIVER").is_ok_and(|driver| driver == "system");
    let report = if asks_system {
        Report::of(&Surroundings::of_process(), Driver::System, 300, &[])
    } else {
        let tree = Tree::new("gpu")
            .gpu(Some("nvidia"))
            .kernel_module(VERSION)
            .nodes(0o666)
            .driver(VERSION);
        Report::new(&tree, Driver::Gpu)
    };
    assert_eq!(report.diagnosis.verdict, Verdict::Works, "{}", report.text);
    assert_eq!(report.diagnosis.exit_code, 0);
    let worst = report.diagnosis.problems.first().map(|problem| problem.severity);
    assert!(matches!(worst, None | Some(Severity::Note)), "{}", report.text);
    assert!(
        report.diagnosis.advice.starts_with("nothing: CUDA works on "),
        "{}",
        report.text
    );
    assert!(!report.findings.driver.devices.is_empty());
    report.assert_text("NVIDIA's driver\n");
    report.assert_text("  compute capability ");
    report.assert_text("correct\n");
    if !asks_system {
        report.assert_text("usr/lib/wsl/lib/libcuda.so.1");
        report.assert_text("libcuda.so.580.159.04");
        report.assert_text("/dev/nvidia0");
    }
}

#[test]
fn driver_too_old() {
    let tree = Tree::new("old")
        .gpu(Some("nvidia"))
        .kernel_module("470.256.02")
        .nodes(0o666)
        .driver("470.256.02");
    let report = Report::of(tree.surroundings(), Driver::Gpu, 300, &[("CUDA_SOFT_VERSION", "11.4")]);
    // The GPU works for programs that need no newer function.
    report.assert(Verdict::Works, Cause::TooOld, "see the notes above");
    report.assert_text("update the driver to 515 or later");
    report.assert_text("Functions of CUDA 13.5 that the driver lacks");
    report.assert_text("  since CUDA 11.6");
    report.assert_text("All of them are newer than the driver's CUDA 11.4.");
    assert!(report.text.lines().count() < 100, "{}", report.text);
}

#[test]
fn wrong_permissions() {
    let tree = Tree::new("permissions")
        .gpu(Some("nvidia"))
        .kernel_module(VERSION)
        .nodes(0o660)
        .driver(VERSION);
    let is_root = root_owns_nodes(&tree);
    let report = Report::new(&tree, Driver::Init(999));
    if is_root {
        report.assert(Verdict::Broken, Cause::Permissions, "add the user to group 44");
        report.assert_text("User 1000 may not open /dev/nvidia-uvm, /dev/nvidia0, /dev/nvidiactl.");
        report.assert_text("0660 owner 0:44, DENIED: user 1000 needs read and write access to it");
    } else {
        report.assert(Verdict::Broken, Cause::Permissions, "");
    }
    assert_eq!(report.diagnosis.exit_code, 2);
    // Some drivers return `CUDA_ERROR_NO_DEVICE` instead.
    let report = Report::new(&tree, Driver::Init(100));
    report.assert(Verdict::Broken, Cause::Permissions, "");
}

#[test]
fn a_folder_that_may_not_be_listed() {
    let tree = Tree::new("folder")
        .gpu(Some("nvidia"))
        .kernel_module(VERSION)
        .nodes(0o666)
        .driver(VERSION)
        .closed_folder("dev/nvidia-caps");
    let report = Report::new(&tree, Driver::Gpu);
    report.assert_text("/dev/nvidia-caps");
    report.assert_text("cannot be opened: the device nodes in this folder are not known: permission denied");
    tree.open_folder("dev/nvidia-caps");
}

#[test]
fn nodes_that_cannot_be_examined() {
    let tree = Tree::new("loop")
        .gpu(Some("nvidia"))
        .kernel_module(VERSION)
        .nodes(0o666)
        .driver(VERSION);
    for (link, node) in [("nvidia-modeset", "nvidia-modeset"), ("nvidia-nvswitch0", "nowhere")] {
        std::os::unix::fs::symlink(node, tree.root().join("dev").join(link)).expect("a link");
    }
    let report = Report::new(&tree, Driver::Gpu);
    // The link names itself.
    report.assert_text("/dev/nvidia-modeset");
    report.assert_text("cannot be opened: Too many levels of symbolic links");
    // A link to nothing is not a node.
    assert!(!report.text.contains("nvidia-nvswitch0"), "{}", report.text);
}

/// Returns true if the nodes of a tree belong to root and group 44. Only tests that run as root can set this owner.
fn root_owns_nodes(tree: &Tree) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let node = std::fs::metadata(tree.root().join("dev/nvidia0")).expect("a node");
    node.uid() == 0 && node.gid() == 44
}

#[test]
fn container_without_devices() {
    // `/proc` of a container shows the host's kernel module.
    let tree = Tree::new("container")
        .docker()
        .gpu(Some("nvidia"))
        .kernel_module(VERSION);
    let report = Report::new(&tree, Driver::File);
    report.assert(Verdict::NoGpu, Cause::Container, "`--gpus all`");
    report.assert_text(
        "The host has NVIDIA's driver, but this container (docker) was started without the driver's library.",
    );

    let report = Report::new(&tree.driver(VERSION), Driver::Init(100));
    report.assert(Verdict::NoGpu, Cause::Container, "`--gpus all`");
    report.assert_text("has the driver's library, but no device nodes of a GPU");
    assert_eq!(report.diagnosis.exit_code, 1);
}

#[test]
fn version_mismatch() {
    let tree = Tree::new("mismatch")
        .gpu(Some("nvidia"))
        .kernel_module("580.95.05")
        .nodes(0o666)
        .driver(VERSION);
    let report = Report::new(&tree, Driver::Init(803));
    report.assert(Verdict::Broken, Cause::VersionMismatch, "restart the machine");
    report.assert_text("The kernel module has version 580.95.05 and the driver's library 580.159.04");
    report.assert_text("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    assert_eq!(report.diagnosis.exit_code, 2);

    // A library of the kernel module's version is also installed.
    let folder = "usr/local/nvidia/lib64";
    tree.file(&format!("{folder}/libcuda.so.580.95.05"), "");
    let link = tree.root().join(folder).join("libcuda.so.1");
    std::os::unix::fs::symlink("libcuda.so.580.95.05", link).expect("a link");
    let report = Report::new(&tree, Driver::Init(803));
    report.assert(
        Verdict::Broken,
        Cause::VersionMismatch,
        "/usr/local/nvidia/lib64/libcuda.so.1 has the kernel module's version",
    );
}

#[test]
fn thirty_two_bits() {
    let tree = Tree::new("program-32").driver(VERSION).thirty_two_bits();
    let report = Report::new(&tree, Driver::Gpu);
    report.assert(
        Verdict::Broken,
        Cause::ThirtyTwoBit,
        "build the program for a 64-bit target",
    );
    assert_eq!(report.findings.driver_ending, Ending::NotNeeded);
    assert_eq!(report.diagnosis.exit_code, 2);

    let report = Report::new(&Tree::new("library-32").driver_for_32_bits(), Driver::File);
    report.assert(
        Verdict::Broken,
        Cause::ThirtyTwoBit,
        "install the driver's 64-bit libraries",
    );
    report.assert_text("/usr/lib/i386-linux-gnu/libcuda.so.1 is the driver's library for 32-bit programs");
}

#[test]
fn libraries_for_other_processors() {
    let foreign = Tree::new("powerpc").driver_for_powerpc();
    let report = Report::new(&foreign, Driver::File);
    report.assert(
        Verdict::Broken,
        Cause::OtherProcessor,
        "install the driver for this processor",
    );
    report.assert_text("/usr/lib/powerpc64le-linux-gnu/libcuda.so.1 is for powerpc64");
    // The 64-bit library of another processor is no help.
    let both = Tree::new("powerpc-32").driver_for_powerpc().driver_for_32_bits();
    let report = Report::new(&both, Driver::File);
    report.assert(
        Verdict::Broken,
        Cause::ThirtyTwoBit,
        "install the driver's 64-bit libraries",
    );
    report.assert_text(&format!(
        "no 64-bit library for {} is installed",
        std::env::consts::ARCH
    ));
}

#[test]
fn library_that_crashes_when_it_is_loaded() {
    let report = Report::new(&Tree::new("crash-at-load").driver(VERSION), Driver::CrashAtLoad);
    report.assert(Verdict::Broken, Cause::Crash, "restart the machine");
    let attempts = &report.findings.driver.attempts;
    let crashed = attempts.iter().find_map(|attempt| match &attempt.result {
        AttemptResult::Failed { message } if message.contains("signal 6") => Some(&attempt.place),
        _ => None,
    });
    assert!(
        crashed.is_some_and(|place| place.contains("libcuda.so")),
        "{attempts:?}"
    );
    report.assert_text("the process that loaded it ended with signal 6 (abort)");
}

#[test]
fn advice_for_system_containers() {
    for (runtime, advice) in [("lxc", "config device add NAME gpu gpu"), ("systemd-nspawn", "--bind=")] {
        let tree = Tree::new(&format!("container-{runtime}")).variable("container", runtime);
        let report = Report::new(&tree, Driver::File);
        report.assert(Verdict::NoGpu, Cause::Container, advice);
    }
}

#[test]
fn driver_that_crashes() {
    let report = Report::new(&Tree::new("crash").driver(VERSION), Driver::Crash);
    report.assert(Verdict::Broken, Cause::Crash, "restart the machine");
    report.assert_text("The driver crashed with signal 6 (abort): cuInit.");
    report.assert_text("the driver is about to crash");
}

#[test]
fn driver_that_hangs() {
    let tree = Tree::new("hang").driver(VERSION);
    let report = Report::of(tree.surroundings(), Driver::Hang, 10, &[]);
    report.assert(Verdict::Broken, Cause::Crash, "restart the machine");
    report.assert_text("The driver did not answer within 10 seconds: cuInit.");
}

/// A process that the driver started inherits the standard output, and lives longer than the driver's process.
#[test]
fn driver_that_starts_a_process() {
    let tree = Tree::new("helper").driver(VERSION);
    let report = Report::of(tree.surroundings(), Driver::Helper, 30, &[]);
    assert_eq!(report.findings.driver_ending, Ending::Completed);
    let report = Report::of(tree.surroundings(), Driver::HelperAndCrash, 30, &[]);
    report.assert_text("The driver crashed with signal 6 (abort): cuInit.");
}

#[test]
fn kernel_with_wrong_results() {
    let report = Report::new(&Tree::new("wrong").driver(VERSION), Driver::LazyLaunch);
    report.assert(Verdict::Broken, Cause::Kernel, "reset the GPU");
    let expected = 2_654_435_761_u32.wrapping_mul(3).wrapping_add(1);
    let result = KernelResult::Wrong {
        index: 1,
        expected,
        actual: 2_654_435_761,
    };
    assert_eq!(report.findings.kernel_runs[0].result, Some(result));
}

#[test]
fn several_devices() {
    let tree = Tree::new("several").driver(VERSION);
    let report = Report::of(
        tree.surroundings(),
        Driver::Gpu,
        300,
        &[("CUDA_SOFT_DEVICES", "sm_90,sm_80")],
    );
    assert_eq!(report.diagnosis.advice, "nothing: CUDA works on 2 GPUs.");
    report.assert_text("8.0 (sm_80)");
}

#[test]
fn hidden_devices() {
    let tree = Tree::new("hidden")
        .gpu(Some("nvidia"))
        .kernel_module(VERSION)
        .nodes(0o666)
        .driver(VERSION);
    let report = Report::new(&tree.variable("CUDA_VISIBLE_DEVICES", ""), Driver::Init(100));
    report.assert(Verdict::NoGpu, Cause::HiddenDevices, "unset CUDA_VISIBLE_DEVICES");
}

#[test]
fn container_that_lacks_a_part_of_the_driver() {
    let tree = Tree::new("capabilities").docker().kernel_module(VERSION).nodes(0o666);
    let report = Report::new(&tree.variable("NVIDIA_DRIVER_CAPABILITIES", "utility"), Driver::File);
    report.assert(
        Verdict::Broken,
        Cause::Container,
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    );
}

#[test]
fn kernel_module_without_library() {
    let report = Report::new(
        &Tree::new("half").gpu(Some("nvidia")).kernel_module(VERSION),
        Driver::File,
    );
    report.assert(Verdict::Broken, Cause::NoDriver, "libcuda1");
    report.assert_text("NVIDIA's kernel module 580.159.04 is loaded, but libcuda.so.1 is not installed.");
}

#[test]
fn kernel_module_that_is_not_loaded() {
    let report = Report::new(&Tree::new("module").gpu(None).driver(VERSION), Driver::Init(100));
    report.assert(Verdict::Broken, Cause::NoKernelModule, "modprobe nvidia");
}

#[test]
fn library_where_the_loader_does_not_look() {
    let tree = Tree::new("elsewhere").gpu(Some("nvidia"));
    let library = std::fs::read(std::env::current_exe().expect("a path")).expect("a program");
    tree.file("usr/local/nvidia/lib64/libcuda.so.1", &library[..64]);
    let report = Report::new(&tree, Driver::File);
    report.assert(
        Verdict::Broken,
        Cause::NotSearched,
        "CUDA_DRIVER_LIBRARY=/usr/local/nvidia/lib64/libcuda.so.1",
    );
}

#[test]
fn library_that_cannot_be_loaded() {
    let report = Report::new(&Tree::new("truncated").driver(VERSION), Driver::File);
    report.assert(Verdict::Broken, Cause::NotLoadable, "install the driver again");
    let attempts = &report.findings.driver.attempts;
    let last = attempts.last().map(|attempt| &attempt.result);
    assert!(
        matches!(last, Some(AttemptResult::Failed { message }) if message.contains("libcuda.so.1")),
        "{attempts:?}"
    );
}

/// The loader finds a library by its name outside the folders that the search names.
#[test]
fn library_that_the_loader_finds_but_cannot_load() {
    let tree = Tree::new("by-name").gpu(Some("nvidia"));
    let library = std::fs::read(std::env::current_exe().expect("a path")).expect("a program");
    tree.file("usr/lib64/libcuda.so.1", &library[..64]);
    let mut findings = Report::new(&tree, Driver::File).findings;
    for (message, cause) in [
        (
            "libcuda.so.1: cannot open shared object file: No such file or directory",
            Cause::NotSearched,
        ),
        (
            "Error loading shared library libcuda.so.1: No such file or directory",
            Cause::NotSearched,
        ),
        ("/usr/lib64/libcuda.so.1: file too short", Cause::NotLoadable),
        (
            "libnvidia-gpucomp.so.580: cannot open shared object file: No such file or directory",
            Cause::NotLoadable,
        ),
        (
            "Error loading shared library libm.so.6: No such file or directory (needed by /usr/lib64/libcuda.so.1)",
            Cause::NotLoadable,
        ),
    ] {
        // A fake machine has no loader to search the folders, so the test sets the result of the search.
        findings.driver.attempts[0].result = AttemptResult::Failed {
            message: message.to_owned(),
        };
        let problem = &diagnose(&findings).problems[0];
        assert_eq!(problem.cause, cause, "{message}");
        if cause == Cause::NotLoadable {
            assert_eq!(problem.text, format!("libcuda.so.1 cannot be loaded: {message}."));
        }
    }
}
