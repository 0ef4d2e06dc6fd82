//! A latency-sensitive request–response service that can run beside jobs.
//!
//! Every client has a connection to every server (never to itself). Requests of each client are a
//! Poisson process; each request goes to a uniformly drawn server, is answered after a fixed
//! service time, and does not wait for earlier requests: requests on one connection are pipelined.
//! The metric is the response time while bulk traffic fills the queues, as in the partition and
//! aggregate services of Alizadeh et al. (2010) and the latency goals of E-EON.
//!
//! Request and response of one exchange have one tag, the number of the request from 0, and each
//! has a row in the flow table: the exchange lasts from the start of the `request` row to the end
//! of the `response` row with this tag. By default a server answers at once, without computing
//! time.

use crate::arrivals::exponential;
use crate::demand::Objections;
use crate::protocol::{Action, Cluster, Event};
use eastwest_engine::random::Stream;
use eastwest_types::{ClassId, ConnId, HostId, Purpose, Side, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings of a request–response service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceConfig {
    /// Hosts that send requests.
    pub clients: Vec<HostId>,
    /// Hosts that answer requests. A host can be client and server; it sends no requests to itself.
    pub servers: Vec<HostId>,
    /// Mean time between two requests of one client.
    pub mean_gap: Span,
    /// Payload bytes of a request.
    pub request_bytes: u64,
    /// Payload bytes of a response.
    pub response_bytes: u64,
    /// Service time: from the arrival of a request at the server to the sending of its response.
    pub server_time: Span,
    /// Time from the start of the simulation until clients begin to send requests; connections open
    /// at seeded times in the first half of this time.
    pub warm_up: Span,
    /// Number of requests of all clients together; `None`: background traffic that never ends.
    pub requests: Option<u64>,
    /// Traffic class of all packets of the service.
    pub class: ClassId,
}

impl ServiceConfig {
    /// Default of `warm_up`: 5 ms, as for synchronized reads.
    pub const WARM_UP: Span = Span::from_ms(5);
    /// Default of `request_bytes`: 1,600 bytes, the size of queries to the workers of a web search
    /// service in Alizadeh et al. (2010), section 2.2.
    pub const REQUEST_BYTES: u64 = 1_600;
    /// Default of `response_bytes`: 2,000 bytes, the largest response of the workers of a web
    /// search service (1.6 to 2 kB) in Alizadeh et al. (2010), section 2.2.
    pub const RESPONSE_BYTES: u64 = 2_000;
    /// Largest number of connections between clients and servers.
    pub const MAX_CONNECTIONS: u64 = 1_000_000;
}

/// State of a request–response service during a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Service {
    config: ServiceConfig,
    opening: Stream,
    gaps: Stream,
    choices: Stream,
    /// Requests that have arrived at servers and are not answered yet, in the order of their
    /// arrival.
    at_servers: VecDeque<(ConnId, u64)>,
    asked: u64,
    answered: u64,
}

/// Purpose of a wake-up: a connection is opened. The token is the purpose plus the number of the
/// connection.
const OPEN: u64 = 0;
/// Purpose of a wake-up: a client sends its next request. The token is the purpose plus the index
/// of the client.
const REQUEST: u64 = 1 << 32;
/// Purpose of a wake-up: the oldest request at the servers is answered. This value is the token.
const RESPONSE: u64 = 2 << 32;

impl Service {
    /// Returns the initial state of a service, or the reasons why the settings are invalid.
    pub fn new(config: ServiceConfig, cluster: &Cluster) -> Result<Service, Vec<String>> {
        let mut no = Objections::new();
        no.require(!config.clients.is_empty(), || "clients: at least one host is needed".into());
        no.require(!config.servers.is_empty(), || "servers: at least one host is needed".into());
        no.require_hosts("clients", &config.clients, cluster);
        no.require_hosts("servers", &config.servers, cluster);
        if let [only] = config.servers[..] {
            no.require(!config.clients.contains(&only), || {
                format!("clients: host {} is the only server and cannot ask itself", only.0)
            });
        }
        let connections = config.clients.len() as u64 * config.servers.len() as u64;
        no.require(connections <= ServiceConfig::MAX_CONNECTIONS, || {
            format!(
                "clients and servers need {connections} connections, but at most {} are possible",
                ServiceConfig::MAX_CONNECTIONS
            )
        });
        no.unless_any(|| Service {
            opening: Stream::new(cluster.seed, "service/open"),
            gaps: Stream::new(cluster.seed, "service/gaps"),
            choices: Stream::new(cluster.seed, "service/servers"),
            at_servers: VecDeque::new(),
            asked: 0,
            answered: 0,
            config,
        })
    }

    /// Returns the number of answered requests and the number of requests to answer; the second is
    /// 0 if requests never end.
    pub fn progress(&self) -> (u64, u64) {
        (self.answered, self.config.requests.unwrap_or(0))
    }

    /// Handles an event and appends the actions that follow from it to `out`.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Begin => self.begin(now, out),
            Event::Wake { token: RESPONSE } => {
                let (conn, tag) = self.at_servers.pop_front().expect("a request at its server");
                self.respond(conn, tag, out);
            }
            Event::Wake { token } if token >= REQUEST => {
                self.ask(now, (token - REQUEST) as u32, out);
            }
            Event::Wake { token } => self.open((token - OPEN) as u32, out),
            Event::Delivered { conn, from: Side::Client, tag } => {
                if self.config.server_time == Span::ZERO {
                    self.respond(conn, tag, out);
                } else {
                    // All requests have one service time, so responses are sent in the order of
                    // arrivals.
                    self.at_servers.push_back((conn, tag));
                    out.push(Action::Wake { at: now + self.config.server_time, token: RESPONSE });
                }
            }
            Event::Delivered { from: Side::Server, .. } => {
                self.answered += 1;
                if self.config.requests == Some(self.answered) {
                    self.finish(out);
                }
            }
            Event::Failed { .. } | Event::Received { .. } | Event::Arrived { .. } => {
                unreachable!(
                    "this workload requests neither failure nor progress events, so it receives none"
                )
            }
        }
    }

    /// Returns the number of the connection between a client and a server, given their indices.
    fn connection(&self, client: usize, server: usize) -> u32 {
        (client * self.config.servers.len() + server) as u32
    }

    /// Whether a client has a connection to a server: false if both are the same host.
    fn exists(&self, client: usize, server: usize) -> bool {
        self.config.clients[client] != self.config.servers[server]
    }

    fn begin(&mut self, now: Time, out: &mut Vec<Action>) {
        let window = Span(self.config.warm_up.0 / 2);
        for client in 0..self.config.clients.len() {
            for server in 0..self.config.servers.len() {
                if self.exists(client, server) {
                    let at = now + self.opening.within(window);
                    let token = OPEN + u64::from(self.connection(client, server));
                    out.push(Action::Wake { at, token });
                }
            }
            self.await_request(now + self.config.warm_up, client as u32, out);
        }
    }

    fn await_request(&mut self, from: Time, client: u32, out: &mut Vec<Action>) {
        // Events of equal time have no fixed order. Without a warm-up, connections open at the time
        // `from`; the request comes at least a picosecond later.
        let at = from + exponential(self.config.mean_gap, &mut self.gaps).max(Span(1));
        out.push(Action::Wake { at, token: REQUEST + u64::from(client) });
    }

    fn open(&mut self, connection: u32, out: &mut Vec<Action>) {
        let servers = self.config.servers.len();
        out.push(Action::Open {
            conn: ConnId(connection),
            client: self.config.clients[connection as usize / servers],
            server: self.config.servers[connection as usize % servers],
            class: self.config.class,
            cards: None,
        });
    }

    fn ask(&mut self, now: Time, client: u32, out: &mut Vec<Action>) {
        if self.config.requests.is_some_and(|requests| self.asked >= requests) {
            return;
        }
        let server = loop {
            let server = self.choices.below(self.config.servers.len() as u64) as usize;
            if self.exists(client as usize, server) {
                break server;
            }
        };
        out.push(Action::Send {
            conn: ConnId(self.connection(client as usize, server)),
            from: Side::Client,
            payload: self.config.request_bytes,
            header: 0,
            tag: self.asked,
            purpose: Purpose::Request,
            job: None,
            record: true,
        });
        self.asked += 1;
        self.await_request(now, client, out);
    }

    fn respond(&self, conn: ConnId, tag: u64, out: &mut Vec<Action>) {
        out.push(Action::Send {
            conn,
            from: Side::Server,
            payload: self.config.response_bytes,
            header: 0,
            tag,
            purpose: Purpose::Response,
            job: None,
            record: true,
        });
    }

    /// Closes all connections.
    pub(crate) fn finish(&self, out: &mut Vec<Action>) {
        for client in 0..self.config.clients.len() {
            for server in 0..self.config.servers.len() {
                if self.exists(client, server) {
                    out.push(Action::Close { conn: ConnId(self.connection(client, server)) });
                }
            }
        }
        out.push(Action::Finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ideal::{Ideal, cluster};

    fn config() -> ServiceConfig {
        ServiceConfig {
            clients: vec![HostId(0), HostId(1), HostId(2)],
            servers: vec![HostId(2), HostId(3)],
            mean_gap: Span::from_ms(1),
            request_bytes: ServiceConfig::REQUEST_BYTES,
            response_bytes: ServiceConfig::RESPONSE_BYTES,
            server_time: Span::ZERO,
            warm_up: ServiceConfig::WARM_UP,
            requests: Some(30_000),
            class: ClassId(1),
        }
    }

    fn run(config: ServiceConfig) -> Ideal {
        let mut service = Service::new(config, &cluster(4)).expect("possible");
        let run = Ideal::run(|now, event, out| service.handle(now, event, out));
        assert!(run.finished);
        assert_eq!(service.progress(), (30_000, 30_000));
        run
    }

    #[test]
    fn requests_and_responses_share_a_tag_and_the_rate_is_the_one_asked_for() {
        let run = run(config());
        assert_eq!((run.opened, run.open), (5, 0), "host 2 does not ask itself");
        let mut requests: Vec<_> =
            run.rows.iter().filter(|r| r.purpose == Purpose::Request).collect();
        let mut responses: Vec<_> =
            run.rows.iter().filter(|r| r.purpose == Purpose::Response).collect();
        requests.sort_by_key(|r| r.tag);
        responses.sort_by_key(|r| r.tag);
        assert_eq!((requests.len(), responses.len()), (30_000, 30_000));
        for (i, (request, response)) in requests.iter().zip(&responses).enumerate() {
            assert_eq!((request.tag, response.tag), (i as u64, i as u64));
            assert_eq!((request.src, request.dst), (response.dst, response.src));
            assert_eq!(response.sent, request.delivered);
            assert_eq!((request.payload, response.payload), (1_600, 2_000));
        }
        let warm = Time::ZERO + ServiceConfig::WARM_UP;
        assert!(requests.iter().all(|r| r.sent > warm));
        let spent = requests[29_999].sent.since(warm).as_secs_f64();
        let rate = 30_000.0 / spent;
        assert!((rate / 3000.0 - 1.0).abs() < 0.02, "{rate} requests a second from 3 clients");
        let from_2 = requests.iter().filter(|r| r.src == HostId(2)).collect::<Vec<_>>();
        assert!(from_2.iter().all(|r| r.dst == HostId(3)));
        let to_2 = requests.iter().filter(|r| r.dst == HostId(2)).count();
        assert!((9_500..10_500).contains(&to_2), "half of two clients' requests: {to_2}");
    }

    #[test]
    fn a_server_takes_its_time() {
        let run = run(ServiceConfig { server_time: Span::from_ms(3), ..config() });
        let mut requests = vec![Time::ZERO; 30_000];
        for row in run.rows.iter().filter(|r| r.purpose == Purpose::Request) {
            requests[row.tag as usize] = row.delivered;
        }
        for row in run.rows.iter().filter(|r| r.purpose == Purpose::Response) {
            assert_eq!(row.sent, requests[row.tag as usize] + Span::from_ms(3));
        }
    }

    #[test]
    fn background_service_goes_on() {
        let config = ServiceConfig { requests: None, ..config() };
        let mut service = Service::new(config, &cluster(4)).expect("possible");
        let end = Time::ZERO + Span::from_secs(1);
        let run = Ideal::run_until(end, |now, event, out| service.handle(now, event, out));
        assert!(!run.finished);
        assert!(service.progress().0 > 2_500 && service.progress().1 == 0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong = ServiceConfig {
            clients: vec![HostId(9), HostId(3)],
            servers: vec![HostId(3)],
            ..config()
        };
        let reasons = Service::new(wrong, &cluster(4)).expect_err("impossible");
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        let empty = ServiceConfig { clients: vec![], servers: vec![], ..config() };
        assert_eq!(Service::new(empty, &cluster(4)).expect_err("impossible").len(), 2);
    }
}
