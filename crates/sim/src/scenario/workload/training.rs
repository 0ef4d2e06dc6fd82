//! Workloads of `kind = "training"`: training steps of a transformer on accelerators.

use super::ground::Ground;
use super::mpi;
use crate::scenario::files::Files;
use crate::stream_transports::Transport;
use eastwest_settings::quantity::{Bytes, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, Span};
use eastwest_workload::mpi::training::{LayerFlops, TrainingConfig};
use eastwest_workload::mpi::{MpiConfig, Program};

/// Peak rate of an accelerator by default: 312·10¹² operations per second, the value of NVIDIA's A100
/// for 16-bit numbers (data sheet of 2020).
const PEAK_FLOPS_PER_S: f64 = 312e12;
/// Share of the peak rate that computations achieve by default: 0.45, of the 44 to 52 % that
/// Narayanan et al. (SC 2021, table 1) report for A100.
const ACHIEVED_SHARE: f64 = 0.45;
/// Bytes of a bucket of gradients by default: 25 MiB, the value of PyTorch (`bucket_cap_mb`).
const BUCKET: Bytes = Bytes(25 << 20);
/// Largest number of entries for measured layers.
const MOST_LAYER_TABLES: usize = 1000;
/// Largest number of nodes of all ranks in one iteration: they are in memory at the same time.
const MOST_NODES: u64 = 20_000_000;

/// Reads the settings of a training job. Returns `None` if there is a problem, which is reported.
pub fn read(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    (class, transport): (ClassId, Transport),
) -> Option<MpiConfig> {
    let mut number = |name, doc, default: &'static str, most| {
        let of = key::<u32>(name, doc);
        s.get(match default {
            "" => of.range("1", most),
            _ => of.default(default).range("1", most),
        })
    };
    let data = number("data", "Number of copies of the model (data parallelism).", "1", "65536");
    let tensor = number(
        "tensor",
        "Number of ranks that share each layer (tensor parallelism).",
        "1",
        "65536",
    );
    let pipeline =
        number("pipeline", "Number of stages of the model (pipeline parallelism).", "1", "65536");
    let layers =
        number("layers", "Number of layers of the model, a multiple of pipeline.", "", "10000");
    let hidden = number("hidden", "Hidden size of the model.", "", "1000000");
    let sequence = number("sequence", "Length of a sequence in tokens.", "2048", "10000000");
    let micro_batch = number("micro_batch", "Sequences of a micro-batch.", "1", "100000");
    let micro_batches = number(
        "micro_batches",
        "Micro-batches of an iteration in each copy of the model.",
        "1",
        "100000",
    );
    let iterations = number("iterations", "Number of iterations.", "2", "1000000");
    let activation_bytes =
        number("activation_bytes", "Bytes of each number of activations.", "2", "16");
    let gradient_bytes =
        number("gradient_bytes", "Bytes of each number of gradients of parameters.", "2", "16");
    let overlap: bool = s.get(
        key(
            "overlap",
            "Whether allreduces of gradients start during the backward pass, when a bucket is full; \
             otherwise after it.",
        )
        .default("true"),
    );
    let bucket: Bytes = s.get(
        key("bucket", "Bytes of gradients of an allreduce, with overlap = true.")
            .value(BUCKET)
            .range("1 B", "1 TB"),
    );
    let share: Ratio = s.get(
        key("achieved_share", "Share of flops_per_s that computations achieve.")
            .value(Ratio(ACHIEVED_SHARE))
            .range("0.0001", "1"),
    );
    let doc = "Measured computation of consecutive layers on one rank, from the first layer to the \
               last. Without entries it follows from the sizes of the model.";
    let measured = s.tables("layer", doc, MOST_LAYER_TABLES, |l, _| read_layers(l));
    let ranks = [data, tensor, pipeline].iter().try_fold(1u32, |all, &n| all.checked_mul(n));
    let most = MpiConfig::MOST_RANKS;
    s.demand(ranks.is_some_and(|ranks| ranks <= most), &["data", "tensor", "pipeline"], || {
        format!("data · tensor · pipeline is the number of ranks, which must be at most {most}")
    });
    s.demand(layers % pipeline.max(1) == 0, &["layers", "pipeline"], || {
        format!("{layers} layers cannot be divided among {pipeline} stages equally")
    });
    let counted: u64 = measured.iter().map(|layers| u64::from(layers.count)).sum();
    s.demand(measured.is_empty() || counted == u64::from(layers), &["layer", "layers"], || {
        format!("the entries have {counted} layers in sum, but the model has {layers}")
    });
    let mut settings = mpi::settings(s, ground, files, (class, transport), PEAK_FLOPS_PER_S)?;
    if !s.all_good() {
        return None;
    }
    let config = TrainingConfig {
        data,
        tensor,
        pipeline,
        layers,
        hidden: hidden.into(),
        sequence: sequence.into(),
        micro_batch: micro_batch.into(),
        micro_batches,
        iterations,
        activation_bytes: activation_bytes.into(),
        gradient_bytes: gradient_bytes.into(),
        bucket: overlap.then_some(bucket.0),
        // the replay divides operations by this rate
        measured: measured
            .iter()
            .map(|layers| layers.flops(settings.flops_per_s * share.0))
            .collect(),
    };
    // a node for each half of a layer, and one for its allreduce, forward and backward
    let halves = 8 * u64::from(layers / pipeline) * u64::from(micro_batches);
    s.demand(
        halves * u64::from(config.ranks()) <= MOST_NODES,
        &["layers", "micro_batches"],
        || {
            format!(
                "an iteration has more than {MOST_NODES} nodes of all ranks, which is the maximum"
            )
        },
    );
    if !s.all_good() {
        return None;
    }
    settings.records = config.records();
    settings.groups = config.groups();
    settings.flops_per_s *= share.0;
    mpi::finish(s, ground, settings, Program::Training(config))
}

/// Measured times of consecutive layers.
struct Layers {
    count: u32,
    forward: Span,
    backward: Span,
}

impl Layers {
    /// Returns the operations that take the measured times at a rate.
    fn flops(&self, flops_per_s: f64) -> LayerFlops {
        let [forward, backward] =
            [self.forward, self.backward].map(|t| t.as_secs_f64() * flops_per_s);
        LayerFlops { count: self.count, forward, backward }
    }
}

fn read_layers(s: &mut Section) -> Layers {
    let mut time = |name, doc| s.get(key(name, doc).range("0 s", "1 h"));
    let forward = time("forward", "Time of the forward pass of a micro-batch through a layer.");
    let backward = time("backward", "Time of the backward pass of a micro-batch through a layer.");
    let count = s.get(key("count", "Number of layers.").default("1").range("1", "10000"));
    Layers { count, forward, backward }
}
