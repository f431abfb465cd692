//! Findings about device nodes: files in `/dev` and its folders through which programs reach a GPU.

use serde::{Deserialize, Serialize};

/// A device node, or a folder of device nodes that cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The path.
    pub path: String,
    /// Permission bits; `None` where the system has none.
    pub mode: Option<u32>,
    /// The owner's user number.
    pub owner: Option<u32>,
    /// The group's number.
    pub group: Option<u32>,
    /// The access that this process has.
    pub access: Access,
}

/// Access to a device node, for reading and writing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The node can be opened.
    Usable,
    /// The permission bits, an access list or a container's rules forbid opening the node.
    Denied {
        /// The reason.
        message: String,
    },
    /// Opening failed for another reason, or the path is a folder that cannot be listed.
    Failed {
        /// The system's message.
        message: String,
    },
}

impl Node {
    /// Returns true for the node of a GPU, such as `/dev/nvidia0`, and for its counterparts on WSL and Jetson.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        let name = self.name();
        let number = name.strip_prefix("nvidia").unwrap_or_default();
        let is_numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_numbered || matches!(name, "dxg" | "nvhost-gpu")
    }

    /// Returns true for a node without which CUDA does not work. Nodes for profilers and displays are not needed.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.is_gpu() || matches!(self.name(), "nvidiactl" | "nvidia-uvm" | "nvmap" | "nvhost-ctrl-gpu")
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}
