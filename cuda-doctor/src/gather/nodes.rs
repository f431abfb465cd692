//! Finds device nodes, and checks access to them. A folder below `/dev` that cannot be listed is reported in place of
//! its nodes. A node that cannot be examined is reported with the error.

use std::fs::{self, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use super::paths;
use super::surroundings::Surroundings;
use crate::findings::{Access, Node, User};

/// Prefixes of the device nodes in `/dev`: `nvidia` for NVIDIA's kernel modules, `dxg` for WSL, and the others for
/// Jetson.
const PREFIXES: [&str; 5] = ["nvidia", "dxg", "nvhost", "nvmap", "nvgpu"];

/// The number of levels of folders below `/dev` that are listed: the deepest is `/dev/nvgpu/igpu0`.
const DEPTH: u32 = 2;

/// Finds the device nodes.
pub(super) fn find(surroundings: &Surroundings, user: Option<&User>) -> Vec<Node> {
    let mut nodes = Vec::new();
    for name in paths::names(&surroundings.root, "/dev") {
        if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            add(surroundings, user, &format!("/dev/{name}"), DEPTH, &mut nodes);
        }
    }
    nodes
}

fn add(surroundings: &Surroundings, user: Option<&User>, path: &str, depth: u32, nodes: &mut Vec<Node>) {
    let file = paths::below(&surroundings.root, path);
    let metadata = match fs::metadata(&file) {
        Ok(metadata) => metadata,
        // A link can name a node that does not exist.
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => {
            nodes.push(Node {
                path: path.to_owned(),
                mode: None,
                owner: None,
                group: None,
                access: Access::Failed {
                    message: error.to_string(),
                },
            });
            return;
        }
    };
    let permissions = Permissions::of(&metadata);
    // Opening is the only sure test: a container may forbid what the permission bits allow, and an access list may
    // allow what they forbid. Below another root, as in tests, `user` need not be the user of this process. There, the
    // permission bits decide, provided that they and the user are known.
    let by_bits = match (surroundings.is_this_machine(), &permissions, user) {
        (false, Some(permissions), Some(user)) => Some((permissions, user)),
        _ => None,
    };
    let access = if metadata.is_dir() {
        if depth == 0 {
            return;
        }
        let listed = match by_bits {
            Some((permissions, user)) if !permissions.allow(user, LIST) => Err(ErrorKind::PermissionDenied.into()),
            _ => fs::read_dir(&file).map(drop),
        };
        let Err(error) = listed else {
            for name in paths::names(&surroundings.root, path) {
                add(surroundings, user, &format!("{path}/{name}"), depth - 1, nodes);
            }
            return;
        };
        let message = format!("the device nodes in this folder are not known: {error}");
        Access::Failed { message }
    } else {
        by_bits.map_or_else(|| open(&file), |(permissions, user)| permissions.access(user))
    };
    nodes.push(Node {
        path: path.to_owned(),
        mode: permissions.as_ref().map(|permissions| permissions.mode),
        owner: permissions.as_ref().map(|permissions| permissions.owner),
        group: permissions.as_ref().map(|permissions| permissions.group),
        access,
    });
}

fn open(file: &Path) -> Access {
    match OpenOptions::new().read(true).write(true).open(file) {
        Ok(_) => Access::Usable,
        Err(error) => {
            let message = error.to_string();
            if error.kind() == ErrorKind::PermissionDenied {
                Access::Denied { message }
            } else {
                Access::Failed { message }
            }
        }
    }
}

/// The permission bits for reading and writing a file.
const READ_AND_WRITE: u32 = 6;
/// The permission bits for listing a folder and reaching its files.
const LIST: u32 = 5;

/// The owner, the group and the permission bits of a file.
struct Permissions {
    mode: u32,
    owner: u32,
    group: u32,
}

impl Permissions {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        Some(Self {
            mode: metadata.mode() & 0o7777,
            owner: metadata.uid(),
            group: metadata.gid(),
        })
    }

    #[cfg(not(unix))]
    fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }

    /// Returns the access that the permission bits give a user.
    fn access(&self, user: &User) -> Access {
        if self.allow(user, READ_AND_WRITE) {
            Access::Usable
        } else {
            let message = format!("user {} needs read and write access to it", user.id);
            Access::Denied { message }
        }
    }

    /// Returns true if the permission bits allow a user all of these accesses.
    fn allow(&self, user: &User, wanted: u32) -> bool {
        let bits = if user.id == self.owner {
            self.mode >> 6
        } else if user.groups.contains(&self.group) {
            self.mode >> 3
        } else {
            self.mode
        };
        user.overrides_permissions || bits & wanted == wanted
    }
}
