//! Max–min fair rates compared with cases solved by hand, and with a slow reference algorithm on
//! random networks under random changes.

use eastwest_fluid::share::{Demand, NO_LIMIT, Share};
use proptest::prelude::*;

const GBIT: u64 = 1_000_000_000;

fn add(share: &mut Share, path: &[u32], cap_bps: u64) -> u32 {
    share.add(&Demand { path, back: &[], echo_ppm: 0, weight: 1, cap_bps })
}

fn rates(share: &Share, flows: &[u32]) -> Vec<u64> {
    flows.iter().map(|&f| share.rate(f)).collect()
}

#[test]
fn the_parking_lot_is_shared_by_its_narrowest_port() {
    // One flow crosses three ports; 1, 2 and 3 other flows use one of the ports each.
    let mut share = Share::new([GBIT, GBIT, GBIT]);
    let long = add(&mut share, &[0, 1, 2], NO_LIMIT);
    let flows: Vec<u32> =
        [0, 1, 1, 2, 2, 2].iter().map(|&p| add(&mut share, &[p], NO_LIMIT)).collect();
    share.settle();
    assert_eq!(share.rate(long), GBIT / 4);
    let rest = GBIT - GBIT / 4;
    let (second, third) = (rest / 2, GBIT / 4);
    assert_eq!(rates(&share, &flows), [rest, second, second, third, third, third]);
    assert!((0..3).all(|port| share.is_full(port)));
    share.remove(long);
    share.settle();
    let (half, third) = (GBIT / 2, GBIT / 3);
    assert_eq!(rates(&share, &flows), [GBIT, half, half, third, third, third]);
}

#[test]
fn a_cap_leaves_its_rest_to_the_others() {
    let mut share = Share::new([GBIT]);
    let flows = [10_000_000, NO_LIMIT, 400_000_000, NO_LIMIT].map(|cap| add(&mut share, &[0], cap));
    share.settle();
    assert_eq!(rates(&share, &flows), [10_000_000, 330_000_000, 330_000_000, 330_000_000]);
    assert!(share.is_held_by_cap(flows[0]) && !share.is_held_by_cap(flows[2]));
    share.set_cap(flows[0], NO_LIMIT);
    share.settle();
    assert_eq!(rates(&share, &flows), [250_000_000; 4]);
    share.set_cap(flows[1], 1_000_000);
    share.set_cap(flows[2], 1_000_000);
    share.set_cap(flows[3], 1_000_000);
    share.settle();
    assert_eq!(share.rate(flows[0]), 997_000_000);
}

#[test]
fn a_flow_that_stands_for_many_gets_the_share_of_many() {
    let mut share = Share::new([GBIT]);
    let one = add(&mut share, &[0], NO_LIMIT);
    let many =
        share.add(&Demand { path: &[0], back: &[], echo_ppm: 0, weight: 9, cap_bps: NO_LIMIT });
    share.settle();
    assert_eq!((share.rate(one), share.rate(many)), (GBIT / 10, GBIT / 10 * 9));
}

#[test]
fn acknowledgements_take_room_on_the_way_back() {
    // One flow in each direction, with 30 bits of acknowledgements per 1000 bits of data.
    let mut share = Share::new([GBIT, GBIT]);
    let demand = |path, back| Demand { path, back, echo_ppm: 30_000, weight: 1, cap_bps: NO_LIMIT };
    let (there, back) = (share.add(&demand(&[0], &[1])), share.add(&demand(&[1], &[0])));
    share.settle();
    let fair = GBIT as f64 / 1.03;
    for flow in [there, back] {
        let rate = share.rate(flow) as f64;
        assert!((rate / fair - 1.0).abs() < 0.005, "{rate} and {fair}");
    }
    assert!(share.load(0) > GBIT / 100 * 99);
}

#[test]
fn nobody_is_disturbed_over_ports_that_are_not_full() {
    let mut share = Share::new([GBIT, 10 * GBIT, GBIT]);
    let far = [add(&mut share, &[2, 1], NO_LIMIT), add(&mut share, &[2, 1], NO_LIMIT)];
    share.settle();
    let before = share.work;
    let near = [add(&mut share, &[0, 1], NO_LIMIT), add(&mut share, &[0, 1], NO_LIMIT)];
    share.settle();
    assert_eq!(rates(&share, &[far, near].concat()), [GBIT / 2; 4]);
    assert_eq!(share.work - before, 2);
}

/// A flow of the reference algorithm: path, weight, and cap in bit/s.
type Asked = (Vec<u32>, u32, u64);

/// Returns the rates of a reference algorithm, which fills the ports from scratch. Every round
/// finds the smallest level of all ports and caps, and fixes the rates of the flows limited by it.
fn oracle(capacities: &[u64], flows: &[Asked]) -> Vec<f64> {
    let mut rate = vec![0.0f64; flows.len()];
    let mut frozen = vec![false; flows.len()];
    while frozen.contains(&false) {
        let mut least = f64::INFINITY;
        let level = |port: usize, rate: &[f64], frozen: &[bool]| {
            let over = |f: &&usize| flows[**f].0.contains(&(port as u32));
            let all: Vec<usize> = (0..flows.len()).collect();
            let taken: f64 =
                all.iter().filter(over).filter(|&&f| frozen[f]).map(|&f| rate[f]).sum();
            let growing: u32 =
                all.iter().filter(over).filter(|&&f| !frozen[f]).map(|&f| flows[f].1).sum();
            (growing > 0).then(|| (capacities[port] as f64 - taken).max(0.0) / f64::from(growing))
        };
        for port in 0..capacities.len() {
            least = least.min(level(port, &rate, &frozen).unwrap_or(f64::INFINITY));
        }
        for f in (0..flows.len()).filter(|&f| !frozen[f]) {
            least = least.min(flows[f].2 as f64 / f64::from(flows[f].1));
        }
        let full: Vec<usize> = (0..capacities.len())
            .filter(|&p| level(p, &rate, &frozen).is_some_and(|l| l <= least * (1.0 + 1e-12)))
            .collect();
        for f in 0..flows.len() {
            let capped = flows[f].2 as f64 / f64::from(flows[f].1) <= least * (1.0 + 1e-12);
            let stopped = full.iter().any(|&p| flows[f].0.contains(&(p as u32)));
            if !frozen[f] && (capped || stopped) {
                (rate[f], frozen[f]) = (least * f64::from(flows[f].1), true);
            }
        }
    }
    rate
}

/// A change of the network: a flow is added, is removed, or gets another cap.
#[derive(Clone, Debug)]
enum Change {
    Add(Asked),
    Remove(usize),
    Cap(usize, u64),
    Settle,
}

fn changes(ports: u32) -> impl Strategy<Value = Vec<Change>> {
    let path = proptest::sample::subsequence((0..ports).collect::<Vec<_>>(), 1..=4);
    let cap = prop_oneof![3 => Just(NO_LIMIT), 1 => 1_000_000..900_000_000u64];
    let change = prop_oneof![
        4 => (path, 1..4u32, cap.clone()).prop_map(Change::Add),
        2 => any::<usize>().prop_map(Change::Remove),
        1 => (any::<usize>(), cap).prop_map(|(f, c)| Change::Cap(f, c)),
        2 => Just(Change::Settle),
    ];
    proptest::collection::vec(change, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn changes_one_by_one_give_what_filling_from_scratch_gives(
        capacities in proptest::collection::vec(50_000_000..2_000_000_000u64, 5..9),
        changes in changes(5),
    ) {
        let mut share = Share::new(capacities.iter().copied());
        let mut flows: Vec<(u32, Asked)> = Vec::new();
        for change in changes.into_iter().chain([Change::Settle]) {
            match change {
                Change::Add((path, weight, cap_bps)) => {
                    let demand =
                        Demand { path: &path, back: &[], echo_ppm: 0, weight, cap_bps };
                    flows.push((share.add(&demand), (path, weight, cap_bps)));
                }
                Change::Remove(f) if !flows.is_empty() => {
                    let (id, _) = flows.remove(f % flows.len());
                    share.remove(id);
                }
                Change::Cap(f, cap) if !flows.is_empty() => {
                    let place = f % flows.len();
                    flows[place].1.2 = cap;
                    share.set_cap(flows[place].0, cap);
                }
                Change::Settle => {
                    share.settle();
                    let asked: Vec<Asked> = flows.iter().map(|f| f.1.clone()).collect();
                    let wanted = oracle(&capacities, &asked);
                    for ((id, asked), wanted) in flows.iter().zip(wanted) {
                        let rate = share.rate(*id) as f64;
                        // Rates are whole bits per second, and no rate is below the minimum.
                        let slack = wanted * 1e-6 + 1_010.0;
                        prop_assert!((rate - wanted).abs() <= slack, "{asked:?}: {rate} {wanted}");
                    }
                }
                _ => {}
            }
        }
        for (id, _) in flows.drain(..) {
            share.remove(id);
        }
        prop_assert!((0..capacities.len() as u32).all(|port| share.load(port) == 0));
    }
}
