"""Number of files that an addition touches: each one is made in a copy, and compiled.

Only files that are edited by hand count, not those that ``make reference`` writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from project_paths import ROOT

pytestmark = pytest.mark.long


#: File → pairs of a text that it has once, and its replacement; "" makes the file empty.
Edits = Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Addition:
    """A kind of thing that developers add, with the edits for it."""

    name: str
    most_files: int
    edits: Edits
    proof: str = ""
    """Rust code that compiles only if the addition is known everywhere.

    It is put into the extension.
    """


QUEUE = """//! A queue that marks every packet that asks for marks.

use super::decision::{Arrival, Place, Ports, Verdict};
use super::discipline::{BuiltIn, Discipline, QueueSettings};
use super::{Protection, Signal};
use eastwest_settings::Section;
use eastwest_types::Limit;
use serde::{Deserialize, Serialize};

/// The limit of one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkAll(pub Limit);

impl BuiltIn for MarkAll {
    const NAME: &'static str = "mark-all";
    const DOC: &'static str = "marks every packet that asks for marks";

    fn read(_: &mut Section, limit: Limit, _: &Ports) -> MarkAll {
        MarkAll(limit)
    }
}

impl QueueSettings for MarkAll {
    type Queue = Box<MarkAll>;

    fn limit(&self) -> Limit {
        self.0
    }

    fn start(&self, _: &Place) -> Box<MarkAll> {
        Box::new(*self)
    }

    fn memory(&self) -> u64 {
        0
    }
}

impl Discipline for MarkAll {
    fn at_enqueue(&mut self, arrival: &Arrival) -> Verdict {
        match arrival.fits(self.0) {
            Verdict::Enqueue => Signal { ecn: true, protection: Protection::default() }
                .verdict(arrival.packet),
            verdict => verdict,
        }
    }
}
"""

CONGESTION = """//! A window that losses do not change.

use super::control::{Ack, BuiltIn, CongestionControl, SenderPlace};
use super::window::Window;
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// It has no state beside its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steady;

impl BuiltIn for Steady {
    const NAME: &'static str = "steady";
    const DOC: &'static str = "a window that losses do not change";
    const IN_LINUX: &'static str = "steady";
    type Settings = ();

    fn read(_: &mut Section) {}

    fn start((): &(), _: &SenderPlace) -> Steady {
        Steady
    }
}

impl CongestionControl for Steady {
    fn on_ack(&mut self, _: &mut Window, _: &Ack) {}

    fn after_loss(&mut self, window: &Window, _: u64, _: u64) -> u64 {
        window.cwnd
    }
}
"""

ROUTING = """//! Every packet takes the first port.

use super::chooser::{BuiltIn, Chooser, RoutingSettings};
use super::query::{Query, View};
use eastwest_settings::Section;
use serde::{Deserialize, Serialize};

/// Settings, of which there are none, and the choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct First;

impl BuiltIn for First {
    const NAME: &'static str = "first";
    const DOC: &'static str = "the first port";

    fn read(_: &mut Section) -> First {
        First
    }
}

impl RoutingSettings for First {
    type Chooser = First;

    fn start(&self, _switches: u32, _seed: u64) -> First {
        First
    }
}

impl Chooser for First {
    fn choose<'f>(&mut self, _: &Query, _: &mut u32, _: impl FnOnce() -> View<'f>) -> usize {
        0
    }
}
"""

RATE_CONTROL = """//! A rate that a notification halves and nothing raises.

use super::rate_control::RateControl;
use eastwest_settings::reader::Section;
use eastwest_types::{Rate, Time};
use serde::{Deserialize, Serialize};

/// The rate of the link, and that of the moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Half(Rate, Rate);

impl RateControl for Half {
    const NAME: &'static str = "half";
    const DOC: &'static str = "halves the rate at each notification";
    const TABLE: &'static str = "It has no settings.";
    type Settings = ();

    fn read(_: &mut Section) {}

    fn start(line: Rate) -> Half {
        Half(line, line)
    }

    fn rate(&self) -> Rate {
        self.1
    }

    fn is_free(&self) -> bool {
        self.0 == self.1
    }

    fn timer_at(&self) -> Time {
        Time::NEVER
    }

    fn after_sending(&mut self, _: u64, (): &()) {}

    fn after_notification(&mut self, _: Time, (): &()) {
        self.1 = Rate((self.1.0 / 2).max(1));
    }

    fn after_timer(&mut self, _: Time, (): &()) {}

    fn notifies(&mut self, _: Time, (): &()) -> bool {
        true
    }
}
"""

TRANSPORT_SETTINGS = """//! Streams whose bytes arrive at once, without packets.

use crate::settings::{Below, TransportSettings};
use eastwest_settings::reader::Section;
use serde::{Deserialize, Serialize};

/// Settings, of which there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtOnceConfig;

impl TransportSettings for AtOnceConfig {
    const NAME: &'static str = "at_once";
    const CHOICE: &'static str = "streams whose bytes arrive at once";
    const TABLE: &'static str = "Settings of streams whose bytes arrive at once.";

    fn read(_: &mut Section, _: &Below) -> AtOnceConfig {
        AtOnceConfig
    }

    fn asks_for_marks(&self) -> bool {
        false
    }
}
"""

TRANSPORT = """//! Streams whose bytes arrive at once, without packets.

use crate::connections::{Connections, Opened};
use crate::messages::{Delivered, LossCounts, Message, Messages, end_of};
use crate::network::Network;
use crate::probes::Probes;
use crate::stream_transports::interface::{FurtherTransport, StreamNotice, StreamTransport};
use crate::stream_transports::number::TransportNumber;
use eastwest_measure::flows::FlowRow;
use eastwest_measure::frames::Direction;
use eastwest_transport::at_once::AtOnceConfig;
use eastwest_types::{ClassId, EndpointId, HostId, Packet, Side, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// All streams.
#[derive(Serialize, Deserialize)]
pub struct AtOnce {
    messages: Messages,
    connections: Connections,
    /// Hosts of both sides and bytes sent by each, by pair of slots.
    streams: Vec<([HostId; 2], [u64; 2])>,
    #[serde(skip)]
    notices: Vec<EndpointId>,
}

impl AtOnce {
    /// Returns the transport without streams.
    pub fn new(_: TransportNumber, _: &AtOnceConfig, workloads: usize) -> AtOnce {
        AtOnce {
            messages: Messages::new(workloads),
            connections: Connections::default(),
            streams: Vec::new(),
            notices: Vec::new(),
        }
    }
}

impl StreamTransport for AtOnce {
    fn messages(&self) -> &Messages {
        &self.messages
    }

    fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    fn allocate(
        &mut self,
        _: &mut Network,
        _: &mut Probes,
        number: u64,
        (workload, name, class): (u16, u32, ClassId),
        (client, server): (HostId, HostId),
        _: Option<(u32, u32)>,
    ) -> Option<(EndpointId, Opened)> {
        let end = EndpointId::new(2 * self.streams.len(), 0);
        self.streams.push(([client, server], [0; 2]));
        self.connections.open(number, end, client, server, (0, 0));
        self.messages.open(workload, name, end, class);
        Some((end, self.connections.of(end)))
    }

    fn written(&self, client: EndpointId, from: Side) -> (u64, LossCounts) {
        (self.received(end_of(client, from).peer()), LossCounts::of(0, 0))
    }

    fn send(
        &mut self,
        _: &mut Network,
        _: &mut Probes,
        client: EndpointId,
        from: Side,
        message: Message,
    ) -> bool {
        self.streams[client.slot() / 2].1[from as usize] = message.end;
        self.notices.push(end_of(client, from).peer());
        self.messages.push(client, from, message)
    }

    fn truncate(&mut self, _: EndpointId, _: Side) {}

    fn close(&mut self, _: &mut Network, _: &mut Probes, end: EndpointId) {
        self.messages.gone(end);
    }

    fn is_live(&self, _: EndpointId) -> bool {
        true
    }

    fn abort(&mut self, _: Time, _: EndpointId) {}

    fn received(&self, end: EndpointId) -> u64 {
        self.streams[end.slot() / 2].1[end.peer().side() as usize]
    }

    fn hosts(&self, end: EndpointId) -> (HostId, HostId) {
        let [client, server] = self.streams[end.slot() / 2].0;
        if end.side() == Side::Client { (client, server) } else { (server, client) }
    }

    fn flow_row(&self, network: &Network, receiver: EndpointId, d: &Delivered) -> FlowRow {
        let ends = self.hosts(receiver.peer());
        let number = self.connections.of(receiver).number;
        let ideal = network.fabric.ideal_time(ends.0, ends.1, d.message.payload, 1460, 40);
        d.row(network.now, ends, LossCounts::of(0, 0), number, ideal)
    }

    fn watch(&mut self, _: EndpointId) {}

    fn losses(&self) -> (u64, u64) {
        (0, 0)
    }

    fn noun(&self) -> &'static str {
        "stream"
    }

    fn timeouts_to_failure(&self, _: EndpointId) -> u32 {
        1
    }
}

impl FurtherTransport for AtOnce {
    fn on_packet(&mut self, _: &mut Network, _: &Packet) -> (u8, bool) {
        (0, false)
    }

    fn on_timer(&mut self, _: &mut Network, _: u64) -> bool {
        false
    }

    fn next_notice(&mut self) -> Option<(EndpointId, StreamNotice)> {
        self.notices.pop().map(|end| (end, StreamNotice::Delivered))
    }

    fn origin_of(&self, packet: &Packet) -> (Opened, u64) {
        (self.connections.of(packet.dst_endpoint.peer()), packet.seq)
    }

    fn headers(&self, _: &Packet, _: &Direction) -> (Vec<u8>, u32) {
        (Vec::new(), 0)
    }

    fn summary(&self) -> Value {
        json!({ "streams": self.streams.len() })
    }
}
"""

ADDITIONS = [
    Addition(
        "a queue discipline",
        2,
        {
            "crates/network/src/queue/mark_all.rs": (("", QUEUE),),
            "crates/network/src/queue/mod.rs": (
                ("mod pie;\n", "mod mark_all;\nmod pie;\n"),
                ("pub use pie::", "pub use mark_all::MarkAll;\npub use pie::"),
                ("    Pie(PieConfig),\n", "    Pie(PieConfig),\n    MarkAll(MarkAll),\n"),
            ),
        },
        """
        const _: () = {
            use eastwest_network::queue::{BUILT_IN, MarkAll, QueueConfig};
            assert!(BUILT_IN.len() == QUEUES + 1);
            let _ = QueueConfig::MarkAll(MarkAll(eastwest_types::Limit::Packets(1)));
        };
        """,
    ),
    Addition(
        "a congestion control",
        2,
        {
            "crates/transport/src/congestion/steady.rs": (("", CONGESTION),),
            "crates/transport/src/congestion/mod.rs": (
                ("mod window;\n", "mod steady;\nmod window;\n"),
                (
                    "    NewReno(NewReno as NewReno) new_reno,\n",
                    "    NewReno(NewReno as NewReno) new_reno,\n"
                    "    Steady(steady::Steady as steady::Steady) steady,\n",
                ),
            ),
        },
        """
        const _: () = assert!(eastwest_transport::congestion::BUILT_IN.len() == CONTROLS + 1);
        const _: eastwest_transport::congestion::CongestionKind =
            eastwest_transport::congestion::CongestionKind::Steady;
        """,
    ),
    Addition(
        "a routing",
        2,
        {
            "crates/network/src/routing/first.rs": (("", ROUTING),),
            "crates/network/src/routing/mod.rs": (
                ("mod flowlet;\n", "mod first;\nmod flowlet;\n"),
                ("    Modulo(Modulo),\n", "    Modulo(Modulo),\n    First(first::First),\n"),
            ),
        },
        """
        const _: () = assert!(eastwest_network::routing::BUILT_IN.len() == ROUTINGS + 1);
        """,
    ),
    Addition(
        "a rate control of RoCEv2",
        3,
        {
            "crates/transport/src/rocev2/half.rs": (("", RATE_CONTROL),),
            "crates/transport/src/rocev2/mod.rs": (
                ("mod interface;\n", "pub mod half;\nmod interface;\n"),
            ),
            "crates/transport/src/rocev2/control.rs": (
                ("    Dcqcn(Dcqcn),\n", "    Dcqcn(Dcqcn),\n    Half(super::half::Half),\n"),
            ),
        },
        """
        const _: fn(()) -> eastwest_transport::rocev2::control::ControlSettings =
            eastwest_transport::rocev2::control::ControlSettings::Half;
        """,
    ),
    Addition(
        "a transport",
        4,
        {
            "crates/transport/src/at_once.rs": (("", TRANSPORT_SETTINGS),),
            "crates/transport/src/lib.rs": (
                ("pub mod congestion;\n", "pub mod at_once;\npub mod congestion;\n"),
            ),
            "crates/sim/src/stream_transports/at_once.rs": (("", TRANSPORT),),
            "crates/sim/src/stream_transports/mod.rs": (
                ("pub mod interface;\n", "pub mod at_once;\npub mod interface;\n"),
                (
                    "            rocev2: RoceV2Config => RoceV2,\n",
                    "            rocev2: RoceV2Config => RoceV2,\n"
                    "            at_once: AtOnceConfig => AtOnce,\n",
                ),
            ),
        },
        """
        const _: () = assert!(eastwest_sim::stream_transports::Transport::STREAMS.len() == 3);
        """,
    ),
    Addition(
        "a setting of a mechanism",
        1,
        {
            "crates/network/src/queue/pie.rs": (
                (
                    "    pub signal: Signal,\n",
                    "    pub signal: Signal,\n"
                    "    /// Nothing is done below this probability.\n    pub idle_below: f64,\n",
                ),
                (
                    "        let signal = read_signal(s);\n",
                    '        let doc = "Nothing is done below this probability.";\n'
                    '        let idle: Fraction = s.get(key("idle_below", doc).default("0"));\n'
                    "        let idle_below = idle.0;\n"
                    "        let signal = read_signal(s);\n",
                ),
                (
                    "beta, burst, mark_up_to, signal,",
                    "beta, burst, idle_below, mark_up_to, signal,",
                ),
            ),
        },
    ),
    Addition(
        "a measured quantity with its view",
        6,
        {
            "crates/network/src/account.rs": (
                (
                    "    pub lost: [u64; Cause::ALL.len()],\n",
                    "    pub lost: [u64; Cause::ALL.len()],\n"
                    "    /// How often a count of the group has been asked for to change it.\n"
                    "    pub changes: u64,\n",
                ),
                (
                    "        self.arrivals += other.arrivals;\n",
                    "        self.arrivals += other.arrivals;\n"
                    "        self.changes += other.changes;\n",
                ),
                (
                    "        &mut self.classes[class][group.kind as usize]"
                    "[usize::from(group.ect)]\n",
                    "        let counts =\n"
                    "            &mut self.classes[class][group.kind as usize]"
                    "[usize::from(group.ect)];\n"
                    "        counts.changes += 1;\n        counts\n",
                ),
                (
                    "    /// Returns sums by kind of packet; `of` selects the count "
                    "that is summed.\n",
                    "    /// Returns how often a count was changed.\n"
                    "    pub fn changes(&self) -> u64 {\n"
                    "        self.by_kind(|counts| counts.changes).iter().sum()\n    }\n\n"
                    "    /// Returns sums by kind of packet; `of` selects the count "
                    "that is summed.\n",
                ),
            ),
            "crates/sim/src/ports.rs": (
                (
                    "    wakes since 5: u64 = energy.1.wakes;\n",
                    "    wakes since 5: u64 = energy.1.wakes;\n\n"
                    "    /// how often a count of the port has changed\n"
                    "    changes since 9: u64 = link.account().changes();\n",
                ),
            ),
            "python/eastwest/formats.py": (("RESULT_FORMAT = 12", "RESULT_FORMAT = 13"),),
            "docs/reference/formats.md": (("| 12 |\n", "| 13 |\n"),),
            "python/eastwest/report/load.py": (
                (
                    'in its busiest {interval}",\n',
                    "in its busiest {interval}; {links['changes'][busiest]} changes\",\n",
                ),
            ),
        },
        """
        const _: () = assert!(eastwest_sim::results::TABLES[LINKS].columns.len() == COLUMNS + 1);
        """,
    ),
    Addition(
        "an option of a run",
        4,
        {
            "python/eastwest/core.py": (
                (
                    '    threads: int = 1\n    """Maximum number of threads',
                    '    quick: bool = False\n    """End at once."""\n'
                    '    threads: int = 1\n    """Maximum number of threads',
                ),
            ),
            "python/eastwest/run.py": (
                (
                    "    reference: bool = False,\n",
                    "    reference: bool = False,\n    quick: bool = False,\n",
                ),
                (
                    "                reference=reference,\n",
                    "                reference=reference,\n                quick=quick,\n",
                ),
            ),
            "python/eastwest/cli/simulate.py": (
                (
                    "    reference: Annotated[\n",
                    "    quick: QuickOption = False,\n    reference: Annotated[\n",
                ),
                (
                    "reference=reference, threads=threads, progress=bar,",
                    "quick=quick, reference=reference, threads=threads, progress=bar,",
                ),
                (
                    "@guarded\ndef run(",
                    "QuickOption = Annotated[bool, typer.Option('--quick', help='Soon.')]\n\n\n"
                    "@guarded\ndef run(",
                ),
            ),
            "crates/bindings/src/running.rs": (
                (
                    "    reference: bool,\n",
                    "    reference: bool,\n    quick: bool,\n",
                ),
                (
                    "    fn is_time(&mut self) -> bool {\n",
                    "    fn is_time(&mut self) -> bool {\n"
                    "        if self.options.quick {\n            return true;\n        }\n",
                ),
            ),
        },
    ),
]


def add(addition: Addition, folder: Path) -> None:
    """Make the edits of an addition in a copy of the repository."""
    for name, edits in addition.edits.items():
        path = folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for old, new in edits:
            assert text.count(old) == 1 or not text, f"{name} has not one {old!r}"
            text = text.replace(old, new, 1) if old else new
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of all files that git tracks or would track, with all additions."""
    folder = tmp_path_factory.mktemp("copy")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    wanted = ("crates/", "python/eastwest/", "docs/reference/", "Cargo", "clippy", "rustfmt")
    for name in listed:
        source = ROOT / name
        if name.startswith(wanted) and source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    for addition in ADDITIONS:
        add(addition, folder)
    return folder


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.name)
def test_a_new_thing_takes_few_files(addition: Addition) -> None:
    assert len(addition.edits) <= addition.most_files


def test_the_compiler_finds_every_addition_complete(changed: Path) -> None:
    """The generated lists of members and tables also contain the additions."""
    before = ew_lists()
    proofs = "".join(addition.proof for addition in ADDITIONS)
    counts = "".join(f"const {name}: usize = {count};\n" for name, count in before.items())
    library = changed / "crates" / "sim" / "tests" / "one_home.rs"
    library.write_text(f"//! Made by a test.\n{counts}{proofs}\nfn main() {{}}\n", encoding="utf-8")
    done = subprocess.run(
        ["cargo", "check", "--quiet", "--offline", "-p", "eastwest-bindings", "-p", "eastwest-sim",
         "--lib", "--test", "one_home"],
        cwd=changed,
        env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def ew_lists() -> dict[str, int]:
    """Return the number of members of families and of tables without the additions."""
    import json  # noqa: PLC0415

    from eastwest import core  # noqa: PLC0415

    keys = {key["path"]: key for key in json.loads(core.schema())["keys"]}
    tables = core.tables()
    place = next(n for n, table in enumerate(tables) if table["name"] == "links")
    return {
        "QUEUES": len(keys["fabric.queue.kind"]["choices"]),
        "CONTROLS": len(keys["tcp.congestion"]["choices"]),
        "ROUTINGS": len(keys["fabric.routing"]["choices"]),
        "LINKS": place,
        "COLUMNS": len(tables[place]["columns"]),
    }


def test_the_new_option_is_known_to_python_and_to_the_command(changed: Path) -> None:
    says = (
        "import inspect, eastwest as ew\n"
        "from eastwest.cli.simulate import run\n"
        "from eastwest.core import RunOptions\n"
        "print('quick' in inspect.signature(ew.run).parameters)\n"
        "print('quick' in inspect.signature(run).parameters, RunOptions().quick)\n"
    )
    core = next((ROOT / "python" / "eastwest").glob("_core*.so"))
    (changed / "python" / "eastwest" / core.name).symlink_to(core)
    done = subprocess.run(
        [sys.executable, "-P", "-c", says],
        env={**os.environ, "PYTHONPATH": str(changed / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True", "False"]
