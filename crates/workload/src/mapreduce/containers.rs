//! Containers of YARN, and the resources of a node that they use.

use super::config::YarnConfig;
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};

/// YARN containers of one node, and the resources that they use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Containers {
    /// Memory in use by containers of the node in bytes, as the resource manager knows it.
    pub memory: u64,
    /// Number of virtual cores in use by containers of the node, as the resource manager knows it.
    pub vcores: u32,
    /// Memory used by reduces and application masters on the node, in bytes; a part of `memory`.
    pub lasting: u64,
    /// Number of virtual cores used by reduces and application masters on the node; a part of
    /// `vcores`.
    pub lasting_vcores: u32,
    /// Containers of the node that have ended since its last heartbeat.
    pub ended: Vec<Container>,
    /// Ended containers that are listed in the heartbeat of the node that is now in the network.
    pub reported: Vec<Container>,
}

/// Resources of a YARN container.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Container {
    /// Memory of the container in bytes.
    pub memory: u64,
    /// Number of virtual cores of the container.
    pub vcores: u32,
    /// Whether the container runs a reduce or an application master, which last longer than a map.
    pub lasting: bool,
}

impl Container {
    /// Returns the resources of a container for a map or for a reduce.
    pub fn of(yarn: &YarnConfig, kind: TaskKind) -> Container {
        let (memory, vcores) = match kind {
            TaskKind::Map => (yarn.map_memory, yarn.map_vcores),
            TaskKind::Reduce => (yarn.reduce_memory, yarn.reduce_vcores),
        };
        let lasting = kind == TaskKind::Reduce;
        Container { memory: yarn.allocated(memory), vcores, lasting }
    }
}

impl Containers {
    /// Returns the number of further containers with the resources `c` that fit into the free
    /// resources of the node.
    pub fn room(&self, yarn: &YarnConfig, c: Container) -> u32 {
        let memory = (yarn.node_memory - self.memory.min(yarn.node_memory)) / c.memory;
        let vcores = match yarn.count_vcores {
            true => yarn.node_vcores.saturating_sub(self.vcores) / c.vcores.max(1),
            false => u32::MAX,
        };
        u32::try_from(memory).unwrap_or(u32::MAX).min(vcores)
    }

    /// Allocates resources of the node to a container.
    pub fn take(&mut self, c: Container) {
        self.memory += c.memory;
        self.vcores += c.vcores;
        if c.lasting {
            self.lasting += c.memory;
            self.lasting_vcores += c.vcores;
        }
    }

    /// Frees the resources of a container on the node.
    pub fn free(&mut self, c: Container) {
        self.memory -= c.memory;
        self.vcores -= c.vcores;
        if c.lasting {
            self.lasting -= c.memory;
            self.lasting_vcores -= c.vcores;
        }
    }

    /// Whether the node has resources for `c` and `other` beside its running reduces and
    /// application masters. Running maps are not counted, because they end soon.
    pub fn leaves_room(&self, yarn: &YarnConfig, c: Container, other: Container) -> bool {
        self.lasting + c.memory + other.memory <= yarn.node_memory
            && (!yarn.count_vcores
                || self.lasting_vcores + c.vcores + other.vcores <= yarn.node_vcores)
    }

    /// Whether a container fits into the free resources of the node.
    pub fn fits(&self, yarn: &YarnConfig, c: Container) -> bool {
        self.memory + c.memory <= yarn.node_memory
            && (!yarn.count_vcores || self.vcores + c.vcores <= yarn.node_vcores)
    }

    /// Moves the ended containers of the node to the list for the heartbeat that is being sent.
    pub fn report(&mut self) {
        self.reported.append(&mut self.ended);
    }
}
