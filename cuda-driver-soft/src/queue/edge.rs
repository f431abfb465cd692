//! Dependencies between the nodes of graphs, by the nodes' handles.

/// The ports and the type of a dependency, as in `CUgraphEdgeData`. They permit more overlap than plain dependencies;
/// this driver does not use that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgeData {
    pub(crate) from_port: u8,
    pub(crate) to_port: u8,
    pub(crate) kind: u8,
}

/// A node that another node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) node: usize,
    pub(crate) data: EdgeData,
}

impl Edge {
    pub(crate) fn plain(node: usize) -> Self {
        Edge {
            node,
            data: EdgeData::default(),
        }
    }
}
