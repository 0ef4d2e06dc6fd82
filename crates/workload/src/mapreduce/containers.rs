//! Containers of YARN, and the room for them on a node.

use super::config::YarnConfig;
use eastwest_types::TaskKind;
use serde::{Deserialize, Serialize};

/// Containers of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Containers {
    /// Memory taken, as the resource manager sees it.
    pub memory: u64,
    /// Virtual cores taken.
    pub vcores: u32,
    /// Part of `memory` that reduces and masters have taken.
    pub lasting: u64,
    /// Part of `vcores` that reduces and masters have taken.
    pub lasting_vcores: u32,
    /// Ended since the last heartbeat.
    pub ended: Vec<Container>,
    /// Reported by the heartbeat on its way.
    pub reported: Vec<Container>,
}

/// A container.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Container {
    /// Its memory in bytes.
    pub memory: u64,
    /// Its virtual cores.
    pub vcores: u32,
    /// The container runs a reduce or a master, which last; not a map.
    pub lasting: bool,
}

impl Container {
    /// The container of a task of a kind.
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
    /// How many of a container the node has room for.
    pub fn room(&self, yarn: &YarnConfig, c: Container) -> u32 {
        let memory = (yarn.node_memory - self.memory.min(yarn.node_memory)) / c.memory;
        let vcores = match yarn.count_vcores {
            true => yarn.node_vcores.saturating_sub(self.vcores) / c.vcores.max(1),
            false => u32::MAX,
        };
        u32::try_from(memory).unwrap_or(u32::MAX).min(vcores)
    }

    /// Takes room for a container.
    pub fn take(&mut self, c: Container) {
        self.memory += c.memory;
        self.vcores += c.vcores;
        if c.lasting {
            self.lasting += c.memory;
            self.lasting_vcores += c.vcores;
        }
    }

    /// Gives the room of a container back.
    pub fn free(&mut self, c: Container) {
        self.memory -= c.memory;
        self.vcores -= c.vcores;
        if c.lasting {
            self.lasting -= c.memory;
            self.lasting_vcores -= c.vcores;
        }
    }

    /// Whether another container would fit beside one and all that lasts.
    pub fn leaves_room(&self, yarn: &YarnConfig, c: Container, other: Container) -> bool {
        self.lasting + c.memory + other.memory <= yarn.node_memory
            && (!yarn.count_vcores
                || self.lasting_vcores + c.vcores + other.vcores <= yarn.node_vcores)
    }

    /// Whether a container fits.
    pub fn fits(&self, yarn: &YarnConfig, c: Container) -> bool {
        self.memory + c.memory <= yarn.node_memory
            && (!yarn.count_vcores || self.vcores + c.vcores <= yarn.node_vcores)
    }

    /// A heartbeat leaves: what has ended goes with it.
    pub fn report(&mut self) {
        self.reported.append(&mut self.ended);
    }
}
