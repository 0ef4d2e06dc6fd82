//! Test of a client on the master that writes 128 MiB into HDFS, against a measurement of Hadoop
//! 3.4.2 on real machines over equal ports: 50 Mbit/s in each direction, counted as 1514 B per full
//! packet, deep queues, Reno. The measured values are the megabytes on each port, and the time from
//! 1 % to 99 % of them; the README of the measurement describes them.

use crate::harness::{Outcome, finish, scenario};
use std::collections::BTreeMap;

fn put(replication: u32) -> Outcome {
    let text = format!(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 5\nhost_rate = '50 Mbit/s'\n\
         host_delay = '25 us'\nframing = '14 B'\nmin_frame = '60 B'\n\
         queue = {{ limit = '1 MB' }}\nhost_queue = {{ limit = '2 MB' }}\n\
         [tcp]\nprofile = 'linux'\ncongestion = 'new-reno'\ngranularity = '4 ms'\n\
         [measure]\nsample_interval = '10 ms'\n\
         [[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\nframework = 'yarn'\n\
         [workload.hdfs]\nblock_bytes = '67108864 B'\nreplication = 1\n\
         output_replication = {replication}\n\
         [[workload.job]]\nkind = 'hdfs-put'\noutput = '134217728 B'\n"
    );
    finish(&scenario(&text, &[]))
}

/// Returns, by name of the port, the megabytes that it carried, and the seconds from 1 % to 99 % of
/// them.
fn ports(done: &Outcome) -> BTreeMap<String, (f64, f64)> {
    let names = done.texts("links", "name");
    let (links, bytes) = (done.u64s("link_samples", "link"), done.u64s("link_samples", "bytes"));
    let times = done.f64s("link_samples", "time_s");
    let mut found = BTreeMap::new();
    for (number, name) in names.iter().enumerate() {
        let rows = || (0..links.len()).filter(|&i| links[i] == number as u64);
        let total: u64 = rows().map(|i| bytes[i]).sum();
        let (mut so_far, mut first, mut last) = (0, None, 0.0);
        for i in rows() {
            so_far += bytes[i];
            if so_far * 100 >= total {
                first.get_or_insert(times[i]);
            }
            if so_far * 100 <= total * 99 {
                last = times[i];
            }
        }
        let wire = last - first.unwrap_or(0.0);
        found.insert((*name).to_owned(), (total as f64 / 1e6, wire));
    }
    found
}

#[track_caller]
fn near(what: &str, value: f64, measured: f64) {
    println!("{what}: {value:.2}, measured {measured}");
    assert!((value / measured - 1.0).abs() < 0.03, "{what}: {value}, measured {measured}");
}

/// Returns (megabytes, seconds) of the ports that carried more than a megabyte, the busiest first,
/// without those of the client; `towards_hosts` chooses the direction.
fn busy(done: &Outcome, towards_hosts: bool) -> Vec<(f64, f64)> {
    let is = |name: &str| name.ends_with("->h4") || name.starts_with("h4->");
    let wanted = |name: &str| name.contains("->h") == towards_hosts && !is(name);
    let mut found: Vec<(f64, f64)> = ports(done)
        .into_iter()
        .filter(|(name, (mb, _))| wanted(name) && *mb > 3.0)
        .map(|(_, port)| port)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

fn client(done: &Outcome) -> (f64, f64) {
    let found = ports(done);
    let name = found.keys().find(|name| name.starts_with("h4->")).expect("the master has a port");
    found[name]
}

#[test]
fn one_replica_takes_as_long_as_its_bytes() {
    let done = put(1);
    let (mb, wire) = client(&done);
    near("client, MB", mb, 141.5);
    near("client, s", wire, 22.25);
    // Each of the two blocks goes to a random worker: 70.8 MB in 11.1 s, or both blocks to the same
    // worker.
    for (mb, wire) in busy(&done, true) {
        let blocks = (mb / 70.8).round();
        near("worker, MB", mb, 70.8 * blocks);
        near("worker, s", wire, 11.1 * blocks);
    }
}

#[test]
fn three_replicas_overlap() {
    let done = put(3);
    let (mb, wire) = client(&done);
    near("client, MB", mb, 141.6);
    near("client, s", wire, 23.1);
    // A replica that forwards a block also gets the acknowledgements of the next one: 72.4 MB; the
    // last replica gets 70.8 MB. A worker in both pipelines has the sum.
    let into: f64 = busy(&done, true).iter().map(|p| p.0).sum();
    near("into workers, MB", into, 2.0 * (72.4 + 143.1));
    let out: f64 = busy(&done, false).iter().map(|p| p.0).sum();
    near("out of workers, MB", out, 2.0 * (72.4 + 74.0));
}

#[test]
fn every_kind_of_job_moves_its_bytes_on_both_frameworks() {
    let jobs = "[[workload.job]]\nkind = 'sort'\ninput = '30 MB'\nmaps = 3\nreduces = 2\n\
         [[workload.job]]\nkind = 'wordcount'\ninput = '200 MB'\n\
         [[workload.job]]\nkind = 'shuffle'\nshuffle = '20 MB'\nmaps = 4\nreduces = 3\n\
         [[workload.job]]\nkind = 'hdfs-write'\noutput = '30 MB'\nmaps = 4\n\
         [[workload.job]]\nkind = 'hdfs-read'\ninput = '40 MB'\nmaps = 4\n\
         [[workload.job]]\nkind = 'hdfs-put'\noutput = '20 MB'\nclients = 'workers'\n\
         [[workload.job]]\nkind = 'hdfs-get'\ninput = '20 MB'\nclient = 'h1'\n";
    // bytes of input, shuffle and output of each job; a wordcount of 200 MB has four maps with 20
    // kB of output each
    let bytes: [[u64; 3]; 7] = [
        [30_000_000, 30_000_000, 30_000_000],
        [200_000_000, 4 * 20_000, 20_000],
        [0, 20_000_000, 0],
        [0, 0, 30_000_000],
        [40_000_000, 0, 0],
        [0, 0, 20_000_000],
        [20_000_000, 0, 0],
    ];
    for framework in ["mr1", "yarn"] {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 6\nhost_rate = '1 Gbit/s'\n\
             [[workload]]\nname = 'hadoop'\nkind = 'mapreduce'\nframework = '{framework}'\n\
             split_bytes = '64 MB'\n{jobs}"
        );
        let done = finish(&scenario(&text, &[]));
        done.assert_conserved();
        let numbers = done.u64s("jobs", "job");
        let of = |name: &str| done.u64s("jobs", name);
        let (input, shuffle, output) = (of("input_bytes"), of("shuffle_bytes"), of("output_bytes"));
        assert_eq!(numbers.len(), bytes.len(), "{framework}");
        for (i, &job) in numbers.iter().enumerate() {
            let found = [input[i], shuffle[i], output[i]];
            assert_eq!(found, bytes[job as usize], "job {job} on {framework}");
        }
        let tasks = done.u64s("tasks", "job");
        let clients = |job: u64| tasks.iter().filter(|&&t| t == job).count();
        assert_eq!((clients(5), clients(6)), (5, 1), "clients on {framework}");
        let (flows, sizes) = (done.i64s("flows", "job"), done.u64s("flows", "bytes"));
        let sent = |job: i64| -> u64 {
            flows.iter().zip(&sizes).filter(|(j, _)| **j == job).map(|(_, n)| n).sum()
        };
        // Two of three replicas are on other hosts, for tasks and for clients on workers.
        assert_eq!((sent(3), sent(5)), (60_000_000, 40_000_000), "{framework}");
    }
}
