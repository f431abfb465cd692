//! Creates the folders of fake machines.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use cuda_doctor::Surroundings;

/// The user that the fake machine's processes run as.
const USER: u32 = 1000;

/// A folder that stands for `/`. Dropping removes it.
pub(crate) struct Tree {
    root: PathBuf,
    surroundings: Surroundings,
}

impl Tree {
    /// Makes a machine with an empty PCI bus, for an unprivileged user.
    pub(crate) fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("cuda-doctor-{}-{name}", std::process::id()));
        _ = fs::remove_dir_all(&root);
        let tree = Self {
            surroundings: Surroundings {
                root: root.clone(),
                variables: [].into(),
                bits: 64,
                has_software: false,
            },
            root,
        };
        let status = format!(
            "Name:\tcuda-doctor\nUid:\t{USER}\t{USER}\t{USER}\t{USER}\nGid:\t{USER}\t{USER}\t{USER}\t{USER}\nGroups:\t27 {USER} \nCapEff:\t0000000000000000\n"
        );
        tree.file("proc/self/status", status);
        tree.folder("sys/bus/pci/devices");
        tree
    }

    /// Sets an environment variable.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.surroundings.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Makes this program one of 32 bits.
    pub(crate) fn thirty_two_bits(mut self) -> Self {
        self.surroundings.bits = 32;
        self
    }

    /// Adds a GPU on the PCI bus.
    pub(crate) fn gpu(self, kernel_driver: Option<&str>) -> Self {
        let device = "sys/bus/pci/devices/0000:17:00.0";
        self.file(&format!("{device}/vendor"), "0x10de\n");
        self.file(&format!("{device}/class"), "0x030200\n");
        self.file(&format!("{device}/device"), "0x2335\n");
        if let Some(driver) = kernel_driver {
            let link = self.root.join(device).join("driver");
            symlink(format!("../../../../bus/pci/drivers/{driver}"), link).expect("a link");
            self.folder(&format!("sys/module/{driver}"));
        }
        self
    }

    /// Loads NVIDIA's kernel module.
    pub(crate) fn kernel_module(self, version: &str) -> Self {
        let line = format!("NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Thu Oct 19 18:56:32 UTC 2023\n");
        self.file("proc/driver/nvidia/version", line);
        self
    }

    /// Adds the device nodes of one GPU, which belong to the root user and group 44.
    pub(crate) fn nodes(self, mode: u32) -> Self {
        for name in ["nvidia0", "nvidiactl", "nvidia-uvm"] {
            let path = self.file(&format!("dev/{name}"), "");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("permissions");
            // Only root can change the owner. Other users stay the owner, and the owner's permission bits apply to
            // them.
            _ = chown(&path, Some(0), Some(44));
        }
        self
    }

    /// Adds a folder that no user may list, with a file in it.
    pub(crate) fn closed_folder(self, name: &str) -> Self {
        self.file(&format!("{name}/nvidia-cap1"), "");
        fs::set_permissions(self.root.join(name), Permissions::from_mode(0o000)).expect("permissions");
        self
    }

    /// Allows everything in a folder, so that the tree can be removed.
    pub(crate) fn open_folder(&self, name: &str) {
        fs::set_permissions(self.root.join(name), Permissions::from_mode(0o777)).expect("permissions");
    }

    /// Installs a driver's library for this processor.
    pub(crate) fn driver(self, version: &str) -> Self {
        let folder = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        self.file(&format!("{folder}/libcuda.so.{version}"), elf(2));
        symlink(
            format!("libcuda.so.{version}"),
            self.root.join(&folder).join("libcuda.so.1"),
        )
        .expect("a link");
        self
    }

    /// Installs the driver's library for 32-bit programs.
    pub(crate) fn driver_for_32_bits(self) -> Self {
        self.file("usr/lib/i386-linux-gnu/libcuda.so.1", elf(1));
        self
    }

    /// Installs a driver's library for 64-bit PowerPC.
    pub(crate) fn driver_for_powerpc(self) -> Self {
        let mut header = elf(2);
        header[18] = 21;
        self.file("usr/lib/powerpc64le-linux-gnu/libcuda.so.1", header);
        self
    }

    /// Installs a toolkit with its stub library.
    pub(crate) fn toolkit(self) -> Self {
        self.file("usr/local/cuda-13.5/lib64/stubs/libcuda.so", elf(2));
        self
    }

    /// Makes the machine a container of Docker.
    pub(crate) fn docker(self) -> Self {
        self.file(".dockerenv", "");
        self
    }

    /// Adds a file and returns its path.
    pub(crate) fn file(&self, path: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a path below the root")).expect("a folder");
        fs::write(&path, contents).expect("a file");
        path
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.root.join(path)).expect("a folder");
    }

    /// Returns the machine as an input of `gather`.
    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Returns the folder that stands for `/`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.root);
    }
}

/// Returns the header of a shared object: class 1 has 32 bits, class 2 has 64.
fn elf(class: u8) -> [u8; 64] {
    let machine = match (class, std::env::consts::ARCH) {
        (1, _) => 3,
        (_, "aarch64") => 183,
        _ => 62,
    };
    let mut header = [0; 64];
    header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    header[16] = 3;
    header[18] = machine;
    header
}
