//! Training steps of a transformer on accelerators with data, tensor and pipeline parallelism.
//!
//! One rank is one accelerator. Ranks are numbered as in Megatron-LM: the ranks of a tensor group are
//! neighbours, then those of a data group, then the stages of the pipeline. Each iteration is a graph
//! with the schedule "one forward, one backward" with a flush at the end (Narayanan et al.,
//! *Efficient large-scale language model training on GPU clusters using Megatron-LM*, SC 2021,
//! section 2.2):
//!
//! - **Computation** of a layer of a transformer (their section 5.1): `24 b s h² + 4 b s² h`
//!   operations forward and twice as many backward, divided among the ranks of the tensor group;
//!   `b`: sequences of a micro-batch, `s`: their length, `h`: hidden size.
//! - **Tensor parallelism** (Shoeybi et al., *Megatron-LM*, 2019): each layer has two allreduces of the
//!   activations (`b s h` numbers) forward and two backward. The computation waits for them.
//! - **Pipeline parallelism**: each stage sends its activations to the next stage and their gradients
//!   to the stage before.
//! - **Data parallelism**: the gradients of a layer have `12 h²` numbers, divided among the ranks of
//!   the tensor group. During the last backward pass they are collected in buckets, and an allreduce
//!   of a bucket starts when it is full (Li et al., *PyTorch distributed*, VLDB 2020).
//!
//! Left out: embeddings and the output layer, the optimizer, recomputation of activations, loading
//! of data.

use super::collective::{Call, Kind};
use super::groups::Groups;
use super::record::{Need, Node, Record};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Number of the tensor group and of the data group in the trace of a rank.
const TENSOR_GROUP: u32 = 1;
const DATA_GROUP: u32 = 2;
/// Streams of computation, of the allreduces of tensor groups, and of those of data groups.
const COMPUTATION: u16 = 0;
const TENSOR_STREAM: u16 = 1;
const DATA_STREAM: u16 = 2;

/// Measured computation of consecutive layers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LayerFlops {
    /// Number of layers.
    pub count: u32,
    /// Operations of the forward pass of a micro-batch through one of these layers on one rank.
    pub forward: f64,
    /// Operations of the backward pass.
    pub backward: f64,
}

/// Size of a training job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrainingConfig {
    /// Number of copies of the model, each of which trains with other data.
    pub data: u32,
    /// Number of ranks that share each layer.
    pub tensor: u32,
    /// Number of stages, each with an equal number of layers.
    pub pipeline: u32,
    /// Number of layers of the model, a multiple of `pipeline`.
    pub layers: u32,
    /// Hidden size of the model.
    pub hidden: u64,
    /// Length of a sequence in tokens.
    pub sequence: u64,
    /// Sequences of a micro-batch.
    pub micro_batch: u64,
    /// Micro-batches of an iteration in each copy of the model.
    pub micro_batches: u32,
    /// Number of iterations.
    pub iterations: u32,
    /// Bytes of a number of activations and of their gradients.
    pub activation_bytes: u64,
    /// Bytes of a number of the gradients of parameters.
    pub gradient_bytes: u64,
    /// Bytes of gradients after which an allreduce starts; `None`: all gradients after the backward
    /// pass, without overlap.
    pub bucket: Option<u64>,
    /// Computation of the layers from the first to the last; empty: computed from the sizes.
    pub measured: Vec<LayerFlops>,
}

impl TrainingConfig {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.data * self.tensor * self.pipeline
    }

    /// Returns the number of nodes of all ranks.
    pub fn records(&self) -> u64 {
        let of_stage = |stage: u32| {
            let mut one = Training::new(self.clone(), self.tensor * self.data * stage);
            one.iteration();
            one.made.len() as u64
        };
        let nodes: u64 = (0..self.pipeline).map(of_stage).sum();
        nodes * u64::from(self.tensor) * u64::from(self.data) * u64::from(self.iterations)
    }

    /// Returns the tensor groups and the data groups.
    pub fn groups(&self) -> Groups {
        let mut groups = Groups::default();
        let (tensor, data) = (self.tensor, self.data);
        for stage in 0..self.pipeline {
            let first = stage * tensor * data;
            for copy in (0..data).filter(|_| tensor > 1) {
                let start = first + copy * tensor;
                groups.add_listed(TENSOR_GROUP, (start..start + tensor).collect());
            }
            for part in (0..tensor).filter(|_| data > 1) {
                let members = (0..data).map(|copy| first + copy * tensor + part).collect();
                groups.add_listed(DATA_GROUP, members);
            }
        }
        groups
    }

    /// Returns the floating-point operations of the forward and the backward pass of a micro-batch
    /// through the layer with this number on one rank.
    pub fn flops(&self, layer: u32) -> (f64, f64) {
        let mut before = 0;
        let measured = self.measured.iter().find(|layers| {
            before += layers.count;
            layer < before
        });
        match measured {
            Some(LayerFlops { forward, backward, .. }) => (*forward, *backward),
            None => (self.forward_flops(), 2.0 * self.forward_flops()),
        }
    }

    /// Returns the floating-point operations of the forward pass of a micro-batch through one layer
    /// on one rank, from the sizes of the model.
    fn forward_flops(&self) -> f64 {
        let [b, s, h] = [self.micro_batch, self.sequence, self.hidden].map(|n| n as f64);
        (24.0 * b * s * h * h + 4.0 * b * s * s * h) / f64::from(self.tensor)
    }

    /// Returns the bytes of the activations of a micro-batch between two layers.
    pub fn activations(&self) -> u64 {
        self.micro_batch * self.sequence * self.hidden * self.activation_bytes
    }

    /// Returns the bytes of the gradients of one layer on one rank.
    pub fn gradients(&self) -> u64 {
        12 * self.hidden * self.hidden / u64::from(self.tensor) * self.gradient_bytes
    }
}

/// Generator of the nodes of one rank of a training job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Training {
    config: TrainingConfig,
    rank: u32,
    /// Number of generated iterations.
    iterations: u32,
    /// Number of the next generated node.
    next: u32,
    /// Last generated node of the computation of this iteration and of its tensor group.
    last: Option<u32>,
    /// Bytes of gradients that are in no bucket yet.
    collected: u64,
    /// Generated nodes that have not been read yet.
    made: VecDeque<Node>,
}

impl Training {
    pub fn new(config: TrainingConfig, rank: u32) -> Training {
        Training {
            config,
            rank,
            iterations: 0,
            next: 0,
            last: None,
            collected: 0,
            made: VecDeque::new(),
        }
    }

    pub fn next(&mut self) -> Option<Node> {
        if self.made.is_empty() && self.iterations < self.config.iterations {
            self.iteration();
        }
        self.made.pop_front()
    }

    /// Generates the nodes of one iteration.
    fn iteration(&mut self) {
        self.iterations += 1;
        self.last = None;
        let (stages, batches) = (self.config.pipeline, self.config.micro_batches);
        let stage = self.rank / (self.config.tensor * self.config.data);
        let ahead = (stages - 1 - stage).min(batches);
        for batch in 0..ahead {
            self.forward(stage, batch);
        }
        for batch in ahead..batches {
            self.forward(stage, batch);
            self.backward(stage, batch - ahead);
        }
        for batch in batches - ahead..batches {
            self.backward(stage, batch);
        }
        // the next iteration starts with new parameters
        self.add(Record::WaitAll, &[], None, 0);
    }

    fn forward(&mut self, stage: u32, batch: u32) {
        let bytes = self.config.activations();
        let layer_of = self.config.tensor * self.config.data;
        let tag = 2 * i64::from(batch);
        let input = (stage > 0).then(|| self.receive(self.rank - layer_of, tag));
        let layers = self.config.layers / self.config.pipeline;
        for layer in 0..layers {
            let (flops, _) = self.config.flops(stage * layers + layer);
            self.layer(flops, input.filter(|_| layer == 0));
        }
        if stage + 1 < self.config.pipeline {
            self.send(self.rank + layer_of, tag, bytes);
        }
    }

    fn backward(&mut self, stage: u32, batch: u32) {
        let bytes = self.config.activations();
        let layer_of = self.config.tensor * self.config.data;
        let tag = 2 * i64::from(batch) + 1;
        let is_last_stage = stage + 1 == self.config.pipeline;
        let input = (!is_last_stage).then(|| self.receive(self.rank + layer_of, tag));
        let layers = self.config.layers / self.config.pipeline;
        let is_last_batch = batch + 1 == self.config.micro_batches;
        for layer in 0..layers {
            let (_, flops) = self.config.flops((stage + 1) * layers - 1 - layer);
            self.layer(flops, input.filter(|_| layer == 0));
            if is_last_batch && self.config.data > 1 {
                self.collected += self.config.gradients();
                let is_full = self.config.bucket.is_some_and(|bucket| self.collected >= bucket);
                if is_full || layer + 1 == layers {
                    let call = Call::new(Kind::Allreduce).size(std::mem::take(&mut self.collected));
                    let needs = self.last.into_iter().collect::<Vec<_>>();
                    self.collective(call, &needs, DATA_STREAM, DATA_GROUP);
                }
            }
        }
        if stage > 0 {
            self.send(self.rank - layer_of, tag, bytes);
        }
    }

    /// Adds the computation of one pass through a layer, in two halves: attention and feed-forward
    /// network, each with an allreduce of its tensor group.
    fn layer(&mut self, flops: f64, input: Option<u32>) {
        for half in 0..2 {
            let needs: Vec<u32> =
                self.last.into_iter().chain(input.filter(|_| half == 0)).collect();
            let compute = Record::Compute { flops: flops / 2.0 };
            let mut last = self.add(compute, &needs, Some(COMPUTATION), 0);
            if self.config.tensor > 1 {
                let call = Call::new(Kind::Allreduce).size(self.config.activations());
                last = self.collective(call, &[last], TENSOR_STREAM, TENSOR_GROUP);
            }
            self.last = Some(last);
        }
    }

    fn receive(&mut self, from: u32, tag: i64) -> u32 {
        let record = Record::Recv { from: Some(from), tag: Some(tag), most: None, blocking: false };
        self.add(record, &[], None, 0)
    }

    fn send(&mut self, to: u32, tag: i64, bytes: u64) {
        let needs = self.last.into_iter().collect::<Vec<_>>();
        self.add(Record::Send { to, tag, bytes, blocking: false }, &needs, None, 0);
    }

    fn collective(&mut self, call: Call, needs: &[u32], stream: u16, group: u32) -> u32 {
        let record = Record::Collective { call: Box::new(call), blocking: false };
        self.add(record, needs, Some(stream), group)
    }

    fn add(&mut self, record: Record, needs: &[u32], stream: Option<u16>, group: u32) -> u32 {
        let need = |&node: &u32| Need { rank: self.rank, node, start: false };
        let needs = needs.iter().map(need).collect();
        self.made.push_back(Node { record, group, needs, stream, priority: 0 });
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn config(data: u32, tensor: u32, pipeline: u32) -> TrainingConfig {
        TrainingConfig {
            data,
            tensor,
            pipeline,
            layers: 8,
            hidden: 1024,
            sequence: 512,
            micro_batch: 2,
            micro_batches: 4,
            iterations: 2,
            activation_bytes: 2,
            gradient_bytes: 2,
            bucket: Some(25 << 20),
            measured: Vec::new(),
        }
    }

    fn nodes(config: &TrainingConfig, rank: u32) -> Vec<Node> {
        let mut training = Training::new(config.clone(), rank);
        std::iter::from_fn(|| training.next()).collect()
    }

    #[test]
    fn operations_and_bytes_are_those_of_the_papers() {
        let one = config(1, 1, 1);
        // 24 · 2 · 512 · 1024² + 4 · 2 · 512² · 1024
        assert_eq!(one.forward_flops(), 25_769_803_776.0 + 2_147_483_648.0);
        assert_eq!(one.gradients(), 12 * 1024 * 1024 * 2);
        assert_eq!(one.activations(), 2 * 512 * 1024 * 2);
        let flops: f64 = nodes(&one, 0)
            .iter()
            .map(|node| match node.record {
                Record::Compute { flops } => flops,
                _ => 0.0,
            })
            .sum();
        // 8 layers, 4 micro-batches, forward and twice as much backward, 2 iterations
        let expected = 8.0 * 4.0 * 3.0 * 2.0 * one.forward_flops();
        assert!((flops - expected).abs() < expected * 1e-12, "{flops} {expected}");
    }

    #[test]
    fn measured_layers_replace_the_formula_from_the_first_to_the_last() {
        let layers = |count, forward| LayerFlops { count, forward, backward: 3.0 * forward };
        let config = TrainingConfig {
            measured: vec![layers(3, 1.0), layers(5, 100.0)],
            iterations: 1,
            micro_batches: 1,
            ..config(1, 1, 2)
        };
        // each pass is divided into two halves
        let flops = |rank| {
            let nodes = nodes(&config, rank).into_iter().filter_map(|node| match node.record {
                Record::Compute { flops } => Some(2.0 * flops),
                _ => None,
            });
            nodes.step_by(2).collect::<Vec<f64>>()
        };
        assert_eq!(flops(0), [1.0, 1.0, 1.0, 100.0, 300.0, 3.0, 3.0, 3.0]);
        assert_eq!(flops(1), [100.0, 100.0, 100.0, 100.0, 300.0, 300.0, 300.0, 300.0]);
    }

    #[test]
    fn every_send_has_its_receive_and_all_ranks_of_a_group_make_the_same_calls() {
        for (data, tensor, pipeline) in [(2, 1, 1), (1, 2, 1), (1, 1, 4), (2, 2, 2), (3, 4, 8)] {
            let config = config(data, tensor, pipeline);
            let groups = config.groups();
            let mut streams: BTreeMap<(u32, u32, i64), i64> = BTreeMap::new();
            let mut calls: BTreeMap<u32, Vec<Vec<u64>>> = BTreeMap::new();
            let mut count = 0;
            for rank in 0..config.ranks() {
                let mut of_group: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
                for (number, node) in nodes(&config, rank).into_iter().enumerate() {
                    count += 1;
                    assert!(node.needs.iter().all(|need| (need.node as usize) < number));
                    match node.record {
                        Record::Send { to, tag, .. } => {
                            *streams.entry((rank, to, tag)).or_default() += 1
                        }
                        Record::Recv { from: Some(from), tag: Some(tag), .. } => {
                            *streams.entry((from, rank, tag)).or_default() -= 1;
                        }
                        Record::Collective { call, .. } => {
                            let group = groups.find(rank, node.group).expect("a group").group;
                            of_group.entry(group).or_default().push(call.size);
                        }
                        _ => {}
                    }
                }
                for (group, sizes) in of_group {
                    calls.entry(group).or_default().push(sizes);
                }
            }
            assert_eq!(count, config.records());
            assert!(streams.values().all(|&open| open == 0), "{streams:?}");
            for (group, of_ranks) in calls {
                assert_eq!(of_ranks.len(), groups.members(group).expect("not all").len());
                assert!(of_ranks.windows(2).all(|pair| pair[0] == pair[1]), "group {group}");
            }
        }
    }

    #[test]
    fn gradients_wait_in_buckets_for_an_allreduce() {
        let sizes = |bucket| {
            let config = TrainingConfig { bucket, iterations: 1, ..config(2, 1, 1) };
            let sizes = nodes(&config, 0).into_iter().filter_map(|node| match node.record {
                Record::Collective { call, .. } => Some(call.size >> 20),
                _ => None,
            });
            sizes.collect::<Vec<u64>>()
        };
        // 24 MiB of each of 8 layers
        assert_eq!(sizes(Some(25 << 20)), [48; 4]);
        assert_eq!(sizes(Some(1)), [24; 8]);
        assert_eq!(sizes(Some(100 << 20)), [120, 72]);
        assert_eq!(sizes(None), [192]);
    }
}
