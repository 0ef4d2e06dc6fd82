use super::*;
use crate::arrivals::exponential;
use crate::ideal::{Ideal, cluster};
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, HostId, Span, Time, TransactionRecord};

const MS: Span = Span::from_ms(1);

fn call(parent: Option<u32>, component: u32, after: &[u32], gap_ms: u64, rest_ms: u64) -> Call {
    Call {
        parent,
        component,
        service: 0,
        operation: 0,
        request_bytes: 100,
        response_bytes: 2_000,
        after: after.into(),
        gap: Span::from_ms(gap_ms),
        rest: Span::from_ms(rest_ms),
        waited: true,
    }
}

fn book(transactions: Vec<Vec<Call>>) -> Book {
    let components = transactions.iter().flatten().map(|c| c.component + 1).max().unwrap_or(0);
    let recorded = transactions.into_iter().zip(0u64..);
    Book {
        transactions: recorded
            .map(|(calls, i)| Recorded {
                name: format!("t{i}"),
                start: Span::from_ms(100) * i,
                calls,
            })
            .collect(),
        components: (0..components).map(|i| format!("c{i}")).collect(),
        services: vec!["s".into()],
        operations: vec!["get".into()],
    }
}

fn config(book: Book) -> TransactionsConfig {
    let hosts = (0..book.components.len() as u32).map(HostId).collect();
    let count = book.transactions.len() as u64;
    TransactionsConfig {
        book,
        placement: Placement::Given(hosts),
        clients: vec![],
        arrivals: Arrivals::Recorded,
        drawn: false,
        start: Span::ZERO,
        count,
        class: ClassId(0),
        processors: None,
    }
}

fn run(config: TransactionsConfig) -> Ideal {
    let count = config.count;
    let mut w = Transactions::new(config, &cluster(8)).expect("a possible replay");
    let run = Ideal::run(|now, event, out| w.handle(now, event, out));
    assert!(run.finished);
    assert_eq!(run.open, 0, "all connections are closed");
    assert_eq!(w.progress(), (count, count));
    assert_eq!(run.transactions.len() as u64, count);
    run
}

/// Returns the calls of a front end that makes two calls in parallel and a third one after both,
/// with computing times of the front end between them.
fn fan() -> Vec<Call> {
    vec![
        call(None, 0, &[], 0, 4),
        call(Some(0), 1, &[], 1, 10),
        call(Some(0), 2, &[], 2, 20),
        call(Some(0), 3, &[1, 2], 3, 5),
    ]
}

#[test]
fn time_follows_from_causes() {
    let run = run(config(book(vec![fan()])));
    let calls = &run.transactions[0].calls;
    let two = Ideal::LATENCY * 2;
    let at = |ms: u64, journeys: u64| Time::ZERO + MS * ms + Ideal::LATENCY * journeys;
    assert_eq!(
        (calls[1].sent, calls[1].arrived, calls[1].answered),
        (at(1, 0), at(1, 1), at(11, 1))
    );
    assert_eq!((calls[2].sent, calls[2].done), (at(2, 0), at(22, 2)));
    assert_eq!((calls[3].sent, calls[3].done), (at(25, 2), at(30, 4)), "after both");
    assert_eq!((calls[0].sent, calls[0].arrived), (at(0, 0), at(0, 0)), "begins in its component");
    assert_eq!((calls[0].answered, calls[0].done), (at(34, 4), at(34, 4)));
    let t = &run.transactions[0];
    assert_eq!((t.network, t.compute), (two * 2, MS * 34));
    assert_eq!(t.response_time(), t.network + t.compute);
    // computing times of the front end: 2 ms before the second call, 3 ms before the third, 4 ms at
    // the end
    assert_eq!((calls[0].compute, calls[1].compute), (MS * 9, Span::ZERO));
    assert_eq!((calls[2].network, calls[2].compute), (two, MS * 20));
    assert_eq!(run.rows.len(), 6, "a row for every request and response");
    assert_eq!(run.opened, 3);
}

#[test]
fn connections_are_kept_and_components_on_one_host_use_none() {
    let mut replay = config(book(vec![fan(), fan(), fan()]));
    replay.placement = Placement::Given([0, 1, 2, 0].map(HostId).to_vec());
    let run = run(replay);
    assert_eq!((run.opened, run.rows.len()), (2, 12), "four messages for each transaction");
    assert!(run.transactions.iter().all(|t| t.calls[3].sent == t.calls[3].arrived));
    assert_eq!(run.transactions[2].arrived(), Time::ZERO + MS * 200);
}

#[test]
fn what_is_not_waited_for_goes_on_after_the_answer() {
    let mut calls = fan();
    calls[3].waited = false;
    calls[3].rest = MS * 50;
    let run = run(config(book(vec![calls])));
    let t = &run.transactions[0];
    assert!(t.calls[3].done > t.finished());
    assert_eq!(t.response_time(), t.network + t.compute);
    assert_eq!(
        t.response_time(),
        MS * 26 + Ideal::LATENCY * 2,
        "2, 20 and 4 with a journey there and back"
    );
}

#[test]
fn clients_ask_over_the_network() {
    let mut replay = config(book(vec![fan(), fan()]));
    replay.clients = vec![HostId(7)];
    replay.start = MS * 5;
    let run = run(replay);
    let t = &run.transactions[0];
    assert_eq!(t.client, Some(HostId(7)));
    assert_eq!(t.arrived(), Time::ZERO + MS * 5);
    assert_eq!(t.calls[0].arrived, t.arrived() + Ideal::LATENCY);
    assert_eq!(t.network, Ideal::LATENCY * 6);
    assert_eq!(run.opened, 4);
}

#[test]
fn drawn_transactions_arrive_at_their_rate() {
    let books = book(vec![fan(), vec![call(None, 0, &[], 0, 1)]]);
    let mut replay = config(books);
    (replay.arrivals, replay.drawn, replay.count) = (Arrivals::Poisson(MS), true, 20_000);
    let again = run(replay.clone());
    let run = run(replay);
    assert_eq!(run.transactions, again.transactions, "one seed, one run");
    let first = run.transactions.iter().filter(|t| t.recorded == 0).count();
    assert!((9_600..10_400).contains(&first), "{first} of 20,000 are of the first kind");
    let last = run.transactions.iter().map(TransactionRecord::arrived).max().expect("some");
    let mean = last.as_secs_f64() / 20_000.0;
    assert!((mean / 0.001 - 1.0).abs() < 0.03, "{mean} s from one to the next");
}

#[test]
fn equal_gaps_repeat_the_book_in_order() {
    let mut replay = config(book(vec![fan(), vec![call(None, 0, &[], 0, 1)]]));
    (replay.arrivals, replay.count) = (Arrivals::Periodic(MS * 40), 5);
    let mut done = run(replay).transactions;
    done.sort_by_key(|t| t.number);
    let which: Vec<u32> = done.iter().map(|t| t.recorded).collect();
    assert_eq!(which, [0, 1, 0, 1, 0]);
    assert_eq!(done[4].arrived(), Time::ZERO + MS * 160);
}

#[test]
fn a_long_chain_without_compute_needs_no_stack() {
    let calls: Vec<Call> =
        (0..200_000).map(|i: u32| call(i.checked_sub(1), 0, &[], 0, 0)).collect();
    let run = run(config(book(vec![calls])));
    assert_eq!(run.transactions[0].response_time(), Span::ZERO);
}

#[test]
fn components_are_placed_as_asked() {
    let cluster = Cluster { rack_of: vec![0, 0, 0, 1, 1, 1], seed: 4 };
    let all: Vec<HostId> = (0..6).map(HostId).collect();
    let place = |p: Placement, n| p.hosts(n, &cluster).map(|h| h.iter().map(|h| h.0).collect());
    let block = |per_host| Placement::Block { hosts: all.clone(), per_host };
    assert_eq!(place(block(None), 8), Ok(vec![0, 0, 1, 1, 2, 2, 3, 3]));
    assert_eq!(place(block(Some(3)), 8), Ok(vec![0, 0, 0, 1, 1, 1, 2, 2]));
    assert_eq!(place(Placement::RoundRobin(all.clone()), 7), Ok(vec![0, 3, 1, 4, 2, 5, 0]));
    let mut random: Vec<u32> = place(Placement::Random(all.clone()), 6).expect("hosts");
    assert_ne!(random, [0, 1, 2, 3, 4, 5]);
    random.sort_unstable();
    assert_eq!(random, [0, 1, 2, 3, 4, 5]);
    assert!(
        place(block(Some(1)), 8)
            .is_err_and(|e: String| e.contains("at least 2 components on each host"))
    );
    assert!(place(Placement::Given(all), 7).is_err());
    assert!(place(Placement::Random(vec![HostId(6)]), 1).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let wrong = TransactionsConfig {
        book: Book::default(),
        placement: Placement::Given(vec![HostId(99)]),
        clients: vec![HostId(8)],
        arrivals: Arrivals::Periodic(Span::ZERO),
        ..config(book(vec![fan()]))
    };
    let reasons = Transactions::new(wrong, &cluster(8)).expect_err("impossible");
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    let more = TransactionsConfig { count: 2, drawn: true, ..config(book(vec![fan()])) };
    assert_eq!(Transactions::new(more, &cluster(8)).expect_err("impossible").len(), 2);
}

/// Returns the mean waiting time in an M/M/c queue by Erlang's C formula, in units of the mean
/// service time; `load` is the utilization of a server.
fn erlang_wait(servers: u32, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    // Erlang's B formula by recursion, and the C formula derived from it
    let lost = (1..=servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let waits = lost / (1.0 - load * (1.0 - lost));
    waits / (f64::from(servers) * (1.0 - load))
}

#[test]
fn calls_wait_for_processors_as_erlang_says() {
    let mut random = Stream::new(5, "service times");
    let times: Vec<u64> = (0..20_000).map(|_| exponential(MS, &mut random).0.max(1)).collect();
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
    let calls = times.iter().map(|&t| vec![Call { rest: Span(t), ..call(None, 0, &[], 0, 0) }]);
    let book = book(calls.collect());
    assert!((erlang_wait(1, 0.5) - 1.0).abs() < 1e-12, "M/M/1: load / (1 - load)");
    for (servers, load) in [(1, 0.6), (2, 0.7), (4, 0.8)] {
        let mut replay = config(book.clone());
        let gap = Span((mean / (f64::from(servers) * load)) as u64);
        (replay.arrivals, replay.drawn, replay.count) = (Arrivals::Poisson(gap), true, 400_000);
        replay.processors = Some(servers);
        let run = run(replay);
        let queued: f64 = run.transactions.iter().map(|t| t.queued.0 as f64).sum();
        let found = queued / 400_000.0 / mean;
        let expected = erlang_wait(servers, load);
        assert!((found / expected - 1.0).abs() < 0.05, "{servers}, {load}: {found}, {expected}");
    }
}

#[test]
fn a_component_with_one_processor_takes_calls_in_turn() {
    let mut replay = config(book(vec![fan()]));
    replay.placement = Placement::Given([0, 1, 1, 1].map(HostId).to_vec());
    replay.processors = Some(1);
    // two calls arrive at one component while it computes for the first: the second call waits
    // until the first has computed
    let both = &mut replay.book.transactions[0].calls;
    (both[1].component, both[2].component) = (1, 1);
    let run = run(replay);
    let t = &run.transactions[0];
    let at = |ms: u64, journeys: u64| Time::ZERO + MS * ms + Ideal::LATENCY * journeys;
    assert_eq!((t.calls[1].answered, t.calls[2].arrived), (at(11, 1), at(2, 1)));
    assert_eq!(t.calls[2].answered, at(31, 1), "20 after the other's answer");
    assert_eq!(t.queued, MS * 9);
    assert_eq!(t.response_time(), t.network + t.compute);
}

#[test]
fn with_processors_enough_nothing_waits() {
    let replay = config(book(vec![fan(), fan(), fan()]));
    let counted = TransactionsConfig { processors: Some(3), ..replay.clone() };
    assert_eq!(run(replay).transactions, run(counted).transactions);
}

#[test]
fn calls_in_a_circle_and_within_a_component_never_wait_for_each_other() {
    // In the first transaction a calls b, which calls a, which calls b; the second one begins at b.
    // Each also has a call within its first component.
    let around = |a: u32, b: u32| {
        vec![
            call(None, a, &[], 0, 1),
            call(Some(0), a, &[], 1, 2),
            call(Some(0), b, &[1], 1, 1),
            call(Some(2), a, &[], 1, 1),
            call(Some(3), b, &[], 1, 1),
        ]
    };
    let mut replay = config(book(vec![around(0, 1), around(1, 0)]));
    replay.arrivals = Arrivals::Periodic(Span::from_us(100));
    replay.count = 400;
    replay.processors = Some(1);
    let run = run(replay);
    assert!(run.transactions.iter().all(|t| t.response_time() == t.network + t.compute));
    // without other transactions there is no wait: a call within a component takes over the
    // processor of its caller
    let mut alone = config(book(vec![around(0, 1)]));
    alone.processors = Some(1);
    let run = super::tests::run(alone);
    assert_eq!(run.transactions[0].queued, Span::ZERO);
}

/// Returns client and server of the connections that a replay declares at the arrivals of its
/// transactions, in the order of their names.
fn declared(config: TransactionsConfig) -> Vec<(u32, u32)> {
    let (count, mut out) = (config.count, vec![]);
    let mut replay = Transactions::new(config, &cluster(8)).expect("possible");
    replay.handle(Time::ZERO, Event::Begin, &mut out);
    (0..count).for_each(|_| replay.handle(Time::ZERO, Event::Wake { token: 0 }, &mut out));
    let mut names = 0..;
    let declared = out.into_iter().filter_map(|action| match action {
        Action::Declare { conn, client, server, .. } => {
            assert_eq!(Some(conn.0), names.next());
            Some((client.0, server.0))
        }
        _ => None,
    });
    declared.collect()
}

#[test]
fn connections_are_numbered_when_transactions_arrive_not_when_calls_are_made() {
    // the third call is made last, and the second one of the other transaction first
    let mut other = fan();
    (other[1].component, other[3].component) = (3, 1);
    other[1].gap = MS * 50;
    let one = config(book(vec![fan(), other]));
    assert_eq!(declared(one.clone()), [(0, 1), (0, 2), (0, 3)]);
    // a connection that no transaction uses has no number
    assert_eq!(declared(TransactionsConfig { count: 0, ..one.clone() }), []);
    let asked = TransactionsConfig { clients: vec![HostId(7)], ..one };
    assert_eq!(declared(asked), [(7, 0), (0, 1), (0, 2), (0, 3)]);
}
