//! Contradictions among properties of Hadoop: values that Hadoop itself refuses, or with which a
//! job never ends.

use super::hadoop_layers::Layers;
use eastwest_settings::narrow::whole_part;

/// Returns the Hadoop properties whose values contradict other properties, each with the reason.
pub fn contradictions(layers: &Layers) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    sort_buffer(layers, &mut found);
    containers(layers, &mut found);
    replicas(layers, &mut found);
    found
}

type Found = Vec<(&'static str, String)>;

fn number(layers: &Layers, name: &str) -> Option<u64> {
    layers.value(name)?.ok()?.parse().ok()
}

const SORT_MB: &str = "mapreduce.task.io.sort.mb";
const SORT_FACTOR: &str = "mapreduce.task.io.sort.factor";
const MAP_MB: &str = "mapreduce.map.memory.mb";
const REDUCE_MB: &str = "mapreduce.reduce.memory.mb";

/// Returns the Java heap of a map task in bytes: from the option `-Xmx`, or as a fraction (0.8
/// without a property) of the memory of its container. `None` if the properties contain neither.
fn map_heap(layers: &Layers) -> Option<u64> {
    for name in ["mapreduce.map.java.opts", "mapred.child.java.opts"] {
        let options = layers.value(name).and_then(Result::ok);
        if let Some(heap) = options.as_deref().and_then(heap_option) {
            return Some(heap);
        }
    }
    let share = layers.value("mapreduce.job.heap.memory-mb.ratio").and_then(Result::ok);
    let share: f64 = share.and_then(|text| text.parse().ok()).unwrap_or(0.8);
    let container = number(layers, MAP_MB)?;
    Some(whole_part((container as f64) * share)).map(|mb| mb.saturating_mul(1 << 20))
}

/// Returns the heap size in bytes of the last option `-Xmx` among options of a Java virtual
/// machine; `None` without this option, or if its size is not valid.
pub fn heap_option(options: &str) -> Option<u64> {
    let last = options.split_whitespace().filter_map(|o| o.strip_prefix("-Xmx")).next_back()?;
    let digits = last.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match last[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn sort_buffer(layers: &Layers, found: &mut Found) {
    if let Some(sort_mb) = number(layers, SORT_MB) {
        if !(1..=2047).contains(&sort_mb) {
            found.push((SORT_MB, "must be 1 to 2047 (MiB), as in Hadoop".to_owned()));
        } else if let Some(heap) = map_heap(layers) {
            if sort_mb << 20 >= heap {
                let heap_mb = heap >> 20;
                let message = format!("does not fit into a heap of {heap_mb} MiB of a map task");
                found.push((SORT_MB, message));
            }
        }
    }
    if number(layers, SORT_FACTOR).is_some_and(|factor| factor < 2) {
        found.push((
            SORT_FACTOR,
            "must be at least 2, because at least two files are merged".to_owned(),
        ));
    }
}

fn containers(layers: &Layers, found: &mut Found) {
    let limits = ["yarn.scheduler.maximum-allocation-mb", "yarn.nodemanager.resource.memory-mb"];
    for name in [MAP_MB, REDUCE_MB, "yarn.app.mapreduce.am.resource.mb"] {
        let Some(wanted) = number(layers, name) else { continue };
        for limit in limits {
            if let Some(most) = number(layers, limit).filter(|most| wanted > *most) {
                found.push((
                    name,
                    format!(
                        "is larger than the largest container, which {limit} \
                                           limits to {most}"
                    ),
                ));
                break;
            }
        }
    }
    let least = "yarn.scheduler.minimum-allocation-mb";
    if let (Some(low), Some(high)) = (number(layers, least), number(layers, limits[0])) {
        if low > high {
            found.push((least, format!("is more than {}, which is {high}", limits[0])));
        }
    }
}

fn replicas(layers: &Layers, found: &mut Found) {
    let Some(copies) = number(layers, "dfs.replication") else { return };
    if let Some(least) = number(layers, "dfs.namenode.replication.min").filter(|n| copies < *n) {
        let message = format!("is less than dfs.namenode.replication.min, which is {least}");
        found.push(("dfs.replication", message));
    }
    if let Some(most) = number(layers, "dfs.replication.max").filter(|n| copies > *n) {
        let message = format!("is more than dfs.replication.max, which is {most}");
        found.push(("dfs.replication", message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_are_read() {
        assert_eq!(heap_option("-server -Xmx200m -Xmx1g -Dx=y"), Some(1 << 30));
        assert_eq!(heap_option("-Xmx100000000000000000t"), None);
        assert_eq!(heap_option("-Xms1g"), None);
    }
}
