"""Measured runs of a real Hadoop, read from folders in the form of ``shared/data/hadoop-terasort``.

A run is a folder. Its name is the setting and the number of the repetition, such as
``r50-deep-2``. Its files:

===================  ==========================================================================
``settings.txt``     one line of ``KEY=VALUE``; ``KEYS`` has all keys. Required, unless the command
                     line gives RATE, SWBUF and CC
``*.jhist.gz``       the job's history, packed or not. Required: sizes and times of the tasks
``*conf.xml.gz``     the job's configuration as the history keeps it, packed or not. Without it
                     configuration of another run of the same job, or the paper's, is used
                     with REDS, SLOWSTART and EXTRA of settings.txt
``counters.before``  counters of each node before and after the run: retransmissions, timeouts,
``counters.after``   drops at the switch's ports. Without them these numbers are not compared
``ports.csv``        bytes on each port of the switch every quarter of a second, packed or not.
                     Without it the time on the wire is not compared
===================  ==========================================================================

``tasks.csv``, ``summary.json``, ``wire.json`` and ``flows-w1.csv`` repeat or detail these
and are not read, but for ``wire_s`` of ``wire.json``: where it differs from the time on the wire
found here, a remark reports it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eastwest.calibrate import History, HistoryError, read
from eastwest.errors import InputError
from hadoop_real_measures import Attempt, Network, Outcome, Samples, outcome

#: Bytes of an IP packet per byte that a token bucket counts: 1,500 of 1,514 B of a full frame.
IP_SHARE = 1500 / 1514
#: Clock ticks of a core per second, in which the kernel counts busy and idle time (USER_HZ).
_JIFFIES = 100
#: Congestion controls that can be predicted, and their settings in a scenario.
CONGESTION = {
    "reno": {"tcp.congestion": "new-reno", "tcp.hystart": "off"},
    "cubic": {"tcp.congestion": "cubic", "tcp.hystart": "linux"},
    "bbr": {"tcp.congestion": "bbr"},
    # Linux's DCTCP without ECN marks halves the window like Reno; the measured token buckets do not
    # mark.
    "dctcp": {"tcp.congestion": "dctcp", "tcp.ecn": "on"},
}

REDUCES = "mapreduce.job.reduces"
SLOWSTART = "mapreduce.job.reduce.slowstart.completedmaps"
OUTPUT_REPLICATION = "mapreduce.terasort.output.replication"
REPLICATION = "dfs.replication"


class RunError(InputError):
    """Error for a folder that cannot be predicted: file, problem, and allowed values."""


def _number(low: float, high: float, whole: bool) -> Callable[[str], str | None]:
    kind = "a whole number" if whole else "a number"
    said = f"{kind} of {low:g} to {high:g}"

    def check(text: str) -> str | None:
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            return said
        return None if low <= value <= high else said

    return check


def _one_of(*allowed: str) -> Callable[[str], str | None]:
    return lambda text: None if text in allowed else "one of " + ", ".join(allowed)


def _racks(text: str) -> str | None:
    groups = [[w for w in group.split(",") if w] for group in text.split("/")]
    names = [w for group in groups for w in group]
    fine = len(groups) == 2 and all(groups) and len(set(names)) == len(names)
    return None if fine else "the workers of two racks, such as w1,w2/w3,w4"


def _anything(_: str) -> str | None:
    return None


@dataclass(frozen=True)
class Key:
    """A key of settings.txt: its meaning, its allowed values, and its default."""

    meaning: str
    wrong: Callable[[str], str | None]
    default: str | None = None


#: All keys of settings.txt; the option ``--set`` accepts them too.
KEYS: dict[str, Key] = {
    "RATE": Key("rate of every port each way, Mbit/s; 0: not shaped", _number(0, 1e6, False)),
    "SWBUF": Key("queue of a switch's port, bytes with Ethernet header", _number(1, 1e10, True)),
    "HOSTBUF": Key("queue of a host's card, likewise", _number(1, 1e10, True), "2000000"),
    "BURST": Key("bytes a token bucket passes at once; not modelled", _number(0, 1e9, True), "0"),
    "CC": Key("congestion control of Linux", _one_of(*CONGESTION)),
    "MINRTO": Key("least retransmission timeout, ms", _number(1, 1e5, False), "200"),
    "SLOWSTART": Key("share of maps done before reduces start", _number(0, 1, False), ""),
    "REDS": Key("reduces of the job", _number(1, 1e5, True), ""),
    "NW": Key("workers; w1, w2 and so on", _number(1, 1e4, True), ""),
    "RACKS": Key("racks: 1, or 2 whose switches one trunk joins", _one_of("1", "2"), "1"),
    "TRUNK": Key("rate of the trunk each way, Mbit/s; 0: none", _number(0, 1e6, False), "0"),
    "RACKMAP": Key("workers of both racks; the master is in the first one", _racks, ""),
    "IN": Key("input of the job in HDFS; its size is taken from the history", _anything, ""),
    "EXTRA": Key("properties of the job, -Dname=value; the rest of the line", _anything, ""),
}
_REQUIRED = ("RATE", "SWBUF", "CC")


def parse_settings(text: str, where: str) -> dict[str, str]:
    """Return the checked keys of a settings.txt; error messages begin with ``where``."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        head, extra, rest = f" {line}".partition(" EXTRA=")
        for word in head.split():
            name, equals, value = word.partition("=")
            if not equals:
                raise RunError(f"{where}: {word!r} is no KEY=VALUE")
            _take(found, name, value, where)
        if extra:
            _take(found, "EXTRA", rest.strip(), where)
    return found


def _take(found: dict[str, str], name: str, value: str, where: str) -> None:
    key = KEYS.get(name)
    if key is None:
        raise RunError(f"{where}: unknown key {name}; known are {', '.join(KEYS)}")
    if name in found and found[name] != value:
        raise RunError(f"{where}: {name} is given twice, as {found[name]} and as {value}")
    if value == "" and key.default is not None:
        return
    wrong = key.wrong(value)
    if wrong is not None:
        raise RunError(f"{where}: {name}={value}: {key.meaning}; must be {wrong}")
    found[name] = value


def extra_properties(text: str, where: str) -> dict[str, str]:
    """Return the Hadoop properties that the key EXTRA has; error messages begin with ``where``."""
    found: dict[str, str] = {}
    words = shlex.split(text)
    while words:
        word = words.pop(0)
        if word == "-D" and words:
            word += words.pop(0)
        name, equals, value = word.removeprefix("-D").partition("=")
        if not word.startswith("-D") or not equals or not name:
            raise RunError(f"{where}: EXTRA: {word!r} is no property; allowed is -Dname=value")
        found[name] = value
    return found


@dataclass(frozen=True)
class MeasuredRun:
    """A measured run: its settings, the size of its job, and its results."""

    folder: Path
    keys: dict[str, str]
    #: Properties of the job, and the file that has them.
    properties: dict[str, str]
    configuration: Path
    history: History
    workers: tuple[str, ...]
    #: Names of the workers of each rack; the master is in the first rack.
    racks: tuple[tuple[str, ...], ...]
    #: Number of cores of the machine that all nodes share; None if the samples of the ports lack
    #: it.
    cores: float | None
    maps: int
    input_bytes: int
    shuffle_bytes: int
    output_bytes: int
    #: Number of copies of each input split, and whether every map had a copy on its own node.
    input_replication: int
    all_local: bool
    measured: Outcome
    remarks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.folder.name

    @property
    def setting(self) -> str:
        """Return the name of the setting: the run's name without the number of the repetition."""
        return setting_of(self.name)

    @property
    def rate_mbit(self) -> float:
        """Return the rate of every port in Mbit/s; 0 if no port was shaped."""
        return float(self.keys["RATE"])

    @property
    def reduces(self) -> int:
        """Return the number of reduces of the job."""
        return int(self.properties[REDUCES])

    def same_as(self, other: MeasuredRun) -> str | None:
        """Return the first setting that differs in another run, or None."""
        mine, its = (
            {**r.keys, "IN": "", "size": f"{r.maps} maps, {r.input_bytes} B", "racks": str(r.racks)}
            for r in (self, other)
        )
        for name in sorted({*mine, *its}):
            if mine.get(name) != its.get(name):
                return f"{name} is {mine.get(name, 'not given')} and {its.get(name, 'not given')}"
        return None


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a run."""
    return (folder / "settings.txt").is_file() or bool(_histories(folder))


def find(data: Path) -> list[Path]:
    """Return the folders of the runs in a folder, or the folder itself where it is one."""
    if not data.is_dir():
        raise RunError(f"{data}: is no folder")
    if is_run(data):
        return [data]
    found = sorted(path for path in data.iterdir() if path.is_dir() and is_run(path))
    if not found:
        raise RunError(f"{data}: has no run: no folder with a settings.txt or a *.jhist.gz")
    return found


def load(
    data: Path, given: Mapping[str, str] | None = None, stand_in: Path | None = None
) -> list[MeasuredRun]:
    """Return all runs of a folder; ``given`` are keys that replace those of settings.txt.

    ``stand_in`` is a configuration for runs without one, where no other run of the same job has
    one.
    """
    folders = find(data)
    given = dict(given or {})
    own = {folder: _configuration(folder) for folder in folders}
    keys = {folder: _keys(folder, given) for folder in folders}

    def likest(folder: Path) -> Path | None:
        """Return the configuration of another run of the same job, if possible of this setting."""
        job = [keys[folder].get(key) for key in _OF_JOB]
        same = [
            (setting_of(other.name) != setting_of(folder.name), path)
            for other, path in own.items()
            if path is not None and [keys[other].get(key) for key in _OF_JOB] == job
        ]
        return min(same)[1] if same else stand_in

    return [_load(f, keys[f], given, own[f], likest(f)) for f in folders]


#: Keys of settings.txt that change the job's configuration.
_OF_JOB = ("REDS", "SLOWSTART", "EXTRA")


def setting_of(name: str) -> str:
    """Return a run's name without the number of the repetition."""
    return re.sub(r"-\d+$", "", name)


def _load(
    folder: Path,
    keys: dict[str, str],
    given: dict[str, str],
    own: Path | None,
    stand_in: Path | None,
) -> MeasuredRun:
    remarks: list[str] = []
    history = _history(folder)
    conf, properties = _properties(folder, keys, given, own, stand_in, history, remarks)
    hosts = {a.host for a in history.attempts if a.host}
    samples, cores = _ports(folder, history, remarks)
    counters = _counters(folder, remarks)
    workers = _workers(keys, hosts, samples, counters)
    sizes = _sizes(folder, history)
    copies, all_local = _splits(folder, history)
    racks = _rack_map(folder, keys, workers, remarks)
    found = outcome(
        history.finished_s,
        _attempts(history),
        {w: samples[f"p-{w}"] for w in workers if f"p-{w}" in samples},
        _network(counters, workers),
    )
    _against_wire_json(folder, found, remarks)
    return MeasuredRun(
        folder, keys, properties, conf, history, workers, racks, cores,
        len(history.of("map")), *sizes, copies, all_local, found, remarks,
    )  # fmt: skip


def _keys(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    path = folder / "settings.txt"
    keys = parse_settings(path.read_text("utf-8"), str(path)) if path.is_file() else {}
    keys |= given
    missing = [name for name in _REQUIRED if name not in keys]
    if missing:
        said = "; ".join(f"{name} ({KEYS[name].meaning})" for name in missing)
        raise RunError(f"{path}: lacks {said}; --set KEY=VALUE can set missing keys")
    for name, key in KEYS.items():
        if key.default:
            keys.setdefault(name, key.default)
    if keys["RACKS"] == "2" and float(keys["TRUNK"]) <= 0 and float(keys["RATE"]) > 0:
        raise RunError(
            f"{path}: RACKS=2 with TRUNK={keys['TRUNK']}: the trunk's rate in Mbit/s must be "
            "above 0"
        )
    return keys


def _histories(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if re.search(r"\.jhist(\.gz)?$", p.name))


def _history(folder: Path) -> History:
    found = _histories(folder)
    if len(found) != 1:
        raise RunError(f"{folder}: has {len(found)} job histories (*.jhist.gz); must have one")
    try:
        history = read(found[0])
    except HistoryError as error:
        raise RunError(str(error)) from None
    if history.status != "SUCCEEDED":
        raise RunError(f"{found[0]}: its job ended as {history.status}; must be SUCCEEDED")
    if not history.of("map") or not history.of("reduce"):
        raise RunError(f"{found[0]}: has no maps or no reduces that succeeded")
    return history


def _configuration(folder: Path) -> Path | None:
    found = sorted(p for p in folder.iterdir() if re.search(r"conf\.xml(\.gz)?$", p.name))
    if len(found) > 1:
        raise RunError(f"{folder}: has {len(found)} configurations (*conf.xml.gz); must have one")
    return found[0] if found else None


def opened(path: Path) -> bytes:
    """Return the content of a file, unpacked where its name ends in .gz."""
    content = path.read_bytes()
    try:
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError) as error:
        raise RunError(f"{path}: the packed file is damaged or cut off: {error}") from None


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of a configuration of Hadoop."""
    try:
        root = ET.fromstring(opened(path))
    except ET.ParseError as error:
        raise RunError(f"{path}: is no configuration of Hadoop: {error}") from None
    found = {}
    for item in root.iter("property"):
        name, value = item.findtext("name"), item.findtext("value")
        if name is not None and value is not None:
            found[name.strip()] = value.strip()
    return found


def _properties(
    folder: Path,
    keys: Mapping[str, str],
    given: Mapping[str, str],
    own: Path | None,
    stand_in: Path | None,
    history: History,
    remarks: list[str],
) -> tuple[Path, dict[str, str]]:
    """Return the job's properties, and the file that they come from."""
    path = own or stand_in
    if path is None:
        raise RunError(
            f"{folder}: has no configuration (*conf.xml.gz), nor has another run of its job"
        )
    found = read_properties(path)
    said = extra_properties(keys.get("EXTRA", ""), str(folder / "settings.txt"))
    for key, name in (("REDS", REDUCES), ("SLOWSTART", SLOWSTART)):
        if key in keys:
            said[name] = keys[key]
    if own is None:
        remarks.append(
            f"no configuration (*conf.xml.gz): {path.name} of {path.parent.name} stands in, with "
            "REDS, SLOWSTART and EXTRA of settings.txt"
        )
        # TeraSort writes its output with this number of copies, whatever dfs.replication is.
        said[REPLICATION] = said.get(OUTPUT_REPLICATION, "1")
        said[REDUCES] = said.get(REDUCES, str(len(history.of("reduce"))))
    overridden = {"REDS": REDUCES, "SLOWSTART": SLOWSTART}
    forced = {overridden[k] for k in given if k in overridden}
    if "EXTRA" in given:
        forced |= set(extra_properties(given["EXTRA"], "--set"))
    for name, value in said.items():
        before = found.get(name)
        apart = own is not None and before is not None and not _same(before, value)
        # TeraSort sets dfs.replication of its job to the number of copies of its output.
        if apart and name not in forced and name != REPLICATION:
            raise RunError(
                f"{folder / 'settings.txt'}: {name} is {value} there and {before} in {path.name}; "
                "one of them must be right: --set KEY=VALUE decides"
            )
        if own is None or before is None or name in forced:
            found[name] = value
    if OUTPUT_REPLICATION in forced:
        found[REPLICATION] = found[OUTPUT_REPLICATION]
    found.setdefault(REDUCES, str(len(history.of("reduce"))))
    return path, found


def _same(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def _workers(
    keys: Mapping[str, str],
    hosts: set[str],
    samples: Mapping[str, Samples],
    counters: Mapping[str, Mapping[str, int]],
) -> tuple[str, ...]:
    """Return the names of all workers: from NW, from counters or ports, or from tasks."""
    if "NW" in keys:
        names = {f"w{i}" for i in range(1, int(keys["NW"]) + 1)} | hosts
    else:
        names = {n for n in counters if re.fullmatch(r"w\d+", n)} | hosts
        names |= {n[2:] for n in samples if re.fullmatch(r"p-w\d+", n)}
    return tuple(sorted(names, key=lambda n: (int("0" + re.sub(r"\D", "", n)), n)))


def _rack_map(
    folder: Path, keys: Mapping[str, str], workers: tuple[str, ...], remarks: list[str]
) -> tuple[tuple[str, ...], ...]:
    """Return the workers of each rack: from RACKMAP, from the history, or two halves."""
    if keys["RACKS"] == "1":
        return (workers,)
    if "RACKMAP" in keys:
        groups = tuple(tuple(group.split(",")) for group in keys["RACKMAP"].split("/"))
        strange = sorted({w for group in groups for w in group} ^ set(workers))
        if strange:
            raise RunError(
                f"{folder}: RACKMAP={keys['RACKMAP']}: must name each worker once; "
                f"not so {', '.join(strange)}"
            )
        return groups
    by_name: dict[str, list[str]] = {}
    racks = rack_names(_histories(folder)[0])
    for worker in workers:
        if worker in racks:
            by_name.setdefault(racks[worker], []).append(worker)
    if len(by_name) == 2 and sum(map(len, by_name.values())) == len(workers):
        return tuple(tuple(group) for _, group in sorted(by_name.items()))
    half = (len(workers) + 1) // 2
    remarks.append(
        "two racks, and the history does not tell which workers are in which: "
        f"{','.join(workers[:half])}/{','.join(workers[half:])} is assumed; "
        "--set RACKMAP=w1,w2/w3,w4 says otherwise"
    )
    if len(by_name) == 1:
        remarks.append(
            "Hadoop took all workers for one rack, the simulated one places replicas by rack"
        )
    return workers[:half], workers[half:]


def rack_names(history: Path) -> dict[str, str]:
    """Return the rack of every host that ended a task in the history, such as /default-rack."""
    text = opened(history).decode("utf-8", "replace")
    pattern = re.compile(r'"hostname":\s*"([^"]+)","port":[^,]*,\s*"rackname":\s*"([^"]+)"')
    return dict(pattern.findall(text))


def _sizes(folder: Path, history: History) -> tuple[int, int, int]:
    """Return the bytes that maps read, that reduces shuffled and that reduces wrote."""

    def total(kind: str, counter: str) -> int:
        return sum(a.counters.get(counter, 0) for a in history.of(kind))

    sizes = (
        total("map", "HDFS_BYTES_READ"),
        total("reduce", "REDUCE_SHUFFLE_BYTES"),
        total("reduce", "HDFS_BYTES_WRITTEN"),
    )
    if not all(sizes):
        raise RunError(
            f"{folder}: the history's counters HDFS_BYTES_READ, REDUCE_SHUFFLE_BYTES and "
            "HDFS_BYTES_WRITTEN must be above 0"
        )
    return sizes


def _splits(folder: Path, history: History) -> tuple[int, bool]:
    """Return the copies of each split, and whether every map read a copy on its own node."""
    text = opened(_histories(folder)[0]).decode("utf-8", "replace")
    places = [p for p in re.findall(r'"splitLocations":\s*"([^"]*)"', text) if p]
    copies = min((len(p.split(",")) for p in places), default=1)
    return copies, all(a.locality == "NODE_LOCAL" for a in history.of("map"))


def _attempts(history: History) -> list[Attempt]:
    return [
        Attempt(kind, a.started_s or 0.0, a.finished_s or 0.0, a.input_done_s)
        for kind in ("map", "reduce")
        for a in history.of(kind)
    ]


def _ports(
    folder: Path, history: History, remarks: list[str]
) -> tuple[dict[str, Samples], float | None]:
    """Return bytes sent to each node over time, on the history's clock, and the machine's cores."""
    path = next((p for p in (folder / "ports.csv.gz", folder / "ports.csv") if p.is_file()), None)
    if path is None:
        remarks.append("no ports.csv.gz: the time on the wire and the first byte are not compared")
        return {}, None
    rows = list(csv.DictReader(io.StringIO(opened(path).decode("utf-8"))))
    try:
        times = [int(row["epoch_ms"]) / 1000 - history.submitted_at_s for row in rows]
        ports: dict[str, Samples] = {
            name.removesuffix("_to"): [
                (t, float(r[name])) for t, r in zip(times, rows, strict=True)
            ]
            for name in (rows[0] if rows else {})
            if name.endswith("_to")
        }
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path}: {error!r}; allowed are columns epoch_ms and …_to with whole numbers"
        ) from None
    if not ports:
        raise RunError(f"{path}: has no column of a port, such as p-w1_to, or no rows")
    return ports, _cores(rows, times)


def _cores(rows: Sequence[Mapping[str, str]], times: Sequence[float]) -> float | None:
    """Return the number of cores of the machine, from the growth of their busy and idle ticks."""
    columns = ("cpu_busy_jiffies", "cpu_idle_jiffies")
    if not all(c in rows[0] for c in columns) or times[-1] <= times[0]:
        return None
    ticks = sum(int(rows[-1][c]) - int(rows[0][c]) for c in columns)
    # The remaining ticks are interrupts and time that a hypervisor took, so the number is rounded.
    return max(1.0, round(ticks / _JIFFIES / (times[-1] - times[0])))


def _counters(folder: Path, remarks: list[str]) -> dict[str, dict[str, int]]:
    """Return the growth of each node's counters during the run; empty without both files."""
    sides = []
    for name in ("counters.before", "counters.after"):
        path = folder / name
        if not path.is_file():
            remarks.append(f"no {name}: retransmissions, drops and timeouts are not compared")
            return {}
        sides.append(_read_counters(path))
    before, after = sides
    return {
        node: {name: value - before.get(node, {}).get(name, 0) for name, value in row.items()}
        for node, row in after.items()
    }


def _read_counters(path: Path) -> dict[str, dict[str, int]]:
    lines = [line.split() for line in path.read_text("utf-8").splitlines() if line.strip()]
    if not lines or lines[0][:2] != ["#", "node"]:
        raise RunError(f"{path}: must begin with a line '# node …' of column names")
    names = lines[0][2:]
    found = {}
    for number, words in enumerate(lines[1:], 2):
        try:
            values = [int(word) for word in words[1:]]
        except ValueError:
            raise RunError(f"{path}:{number}: must be a node and whole numbers") from None
        if len(values) != len(names):
            raise RunError(f"{path}:{number}: has {len(values)} numbers for {len(names)} columns")
        found[words[0]] = dict(zip(names, values, strict=True))
    return found


def _network(counters: Mapping[str, Mapping[str, int]], workers: Sequence[str]) -> Network:
    """Return counts by node: the workers, the master ``m``, and the trunk's (other) ports."""
    if not counters:
        return Network(None, None, None, None)

    def total(nodes: Sequence[str], name: str) -> float | None:
        known = [counters[n][name] for n in nodes if name in counters.get(n, {})]
        return sum(known) if known else None

    trunk = [n for n in counters if n != "m" and n not in workers]
    hosts = [n for n in counters if n not in trunk]
    return Network(
        retransmits=total(hosts, "RetransSegs"),
        timeouts=total(hosts, "Timeouts"),
        worker_port_drops=total(list(workers), "swport_qdisc_drops"),
        master_port_drops=total(["m"], "swport_qdisc_drops"),
        trunk_drops=total(trunk, "swport_qdisc_drops"),
    )


def _against_wire_json(folder: Path, found: Outcome, remarks: list[str]) -> None:
    path = folder / "wire.json"
    if not path.is_file() or found.wire_s is None:
        return
    try:
        said = float(json.loads(path.read_text("utf-8"))["wire_s"])
    except (KeyError, TypeError, ValueError):
        remarks.append("wire.json has no number wire_s")
        return
    if abs(said - found.wire_s) > 0.3:
        remarks.append(f"wire.json says {said:.2f} s on the wire, here are {found.wire_s:.2f} s")
