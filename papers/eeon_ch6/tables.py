"""Writes the tables of the pages of chapters 5 and 6 from the stored results; runs nothing.

python papers/eeon_ch6/tables.py           # writes both pages, in a second
python papers/eeon_ch6/tables.py --check   # exit code 1 if a page is not current

Claims come from ``results/*.json``, as ``eastwest claims --record`` keeps them, the other tables
from ``results/study/*.parquet``, as study.py does. Each table stands between two marks in its page;
the text around them is left as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eastwest.claims.catalogue import find
from eastwest.claims.page import cell
from eastwest.claims.profiles import profiles_of
from eastwest.claims.readings import FIRST
from eastwest.claims.record import Record, read
from eastwest.claims.spec import load
from eastwest.claims.tables import Tables, filled
from eastwest.claims.verdict import DIFFERS, HOLDS

HERE = Path(__file__).resolve().parent
CHAPTER5 = HERE.parent / "eeon_ch5"

#: Names of the TCP profiles on the pages.
PROFILES = {"plain": "the study's TCP", "linux": "Linux's TCP"}
#: For each buffer size, the targets of RED whose thresholds are within the buffer.
ACTING = {
    "shallow": ["100 us", "200 us", "300 us", "400 us", "500 us", "1 ms"],
    "deep": ["100 us", "200 us", "300 us", "400 us", "500 us", "1 ms", "2 ms", "4 ms"],
}
#: Parts of study.py.
PARTS = (
    "chapter5",
    "chapter6",
    "anchor",
    "sensitivity",
    "hosts",
    "ect",
    "service",
    "fast",
    "fat_tree",
)
MODES = ("default", "ece-bit", "ack+syn")
DISCIPLINES = {"adaptive-red": "RED", "codel": "CoDel"}
#: Choices of study/sensitivity.toml on which the runtime of shallow DropTail depends most.
RATES = {
    "Hadoop's own rates": "1",
    "half the rates": "3.125",
    "as chosen": "6.25",
    "twice the rates": "12.5",
    "first timeout 200 ms": "6.25",
}
#: Settings with a published gain over shallow DropTail, in %.
CLAIMED = {
    "DropTail, deep": "10",
    "RED 1 ms without ECN, deep": "5",
    "RED 100 us default, shallow": "−35",
    "RED 500 us ack+syn, shallow": "10",
    "CoDel 300 us ack+syn, shallow": "8",
}
#: Columns of the table of the service, for the study's TCP and for Linux's TCP.
SERVICE = {
    "plain": (
        "service_p50_us",
        "service_p99_us",
        "service_p999_us",
        "terasort_p99_us",
        "runtime_s",
    ),
    "linux": ("service_p99_us", "service_p999_us", "terasort_p99_us", "runtime_s"),
}


#: The reading that each page shows; beside it, the page shows the reading ``first`` of the claim
#: files.
READINGS = {"eeon_ch5": "shares", "eeon_ch6": "shares"}
#: Parts of study.py that are grids of claims, and use the reading of the page; all others use
#: ``first``.
CHAPTERS = ("chapter5", "chapter6", "front")


def reading_of(study: Path) -> str:
    """Return the name of the reading that the page of a study shows."""
    return READINGS.get(study.name, FIRST)


def kept_in(study: Path, part: str) -> Path:
    """Return the folder with the numbers of a part; grids of claims have one for each reading."""
    kept = study / "results" / "study"
    reading = reading_of(study)
    return kept / reading if reading != FIRST and part in CHAPTERS else kept


def claims(study: Path) -> Iterator[str]:
    """Yield the table of all claims of a study, with the measured values under each TCP."""
    reading = reading_of(study)
    paths = [each.path for each in find(study.parent) if each.path.parents[1].name == study.name]
    names = ["plain", *(name for name in profiles_of(study) if name != "plain")]
    kept = {name: [read(load(path, name, reading)) for path in paths] for name in names}
    names = [name for name in names if name == "plain" or any(each.current for each in kept[name])]
    before = " `first` |" if reading != FIRST else ""
    own, *others = [f" {PROFILES[name]} | |" for name in names]
    yield f"| claim | published |{own}{before}{''.join(others)}"
    yield "|---|---|" + "---|" * (2 * len(names) + bool(before))
    for number, path in enumerate(paths):
        claim = load(path)
        records = [kept[name][number] for name in names]
        cells = [f"{_measured(record)} | {_verdict(record)}" for record in records]
        if before:
            cells.insert(1, _verdict(read(load(path, named=FIRST))))
        line = " | ".join(cells)
        yield f"| `{claim.id.removeprefix('eeon/')}` | {cell(claim.published)} | {line} |"


def _measured(record: Record) -> str:
    """Return a measured value, with a mark if it lies outside its band."""
    if record.content is None or not record.current:
        return ""
    parts = record.content["metrics"]
    shown = [
        " ".join(
            word
            for word in (
                cell(part["name"]) if len(parts) > 1 else "",
                cell(_settings(part["name"], part["measured"])),
                "✗" if part["verdict"] == DIFFERS else "",
            )
            if word
        )
        for part in parts
    ]
    return "; ".join(shown)


#: Text of the measure ``best-ratio``: target, limit and ``tcp.ecn`` of both points, and the ratio.
#: Points with DCTCP have no ``tcp.ecn``.
_POINT = r"([^,()]+), \d+ packets(?:, (on|off))?"
_RATIO = re.compile(rf"{_POINT} over {_POINT} \((.+)\)")
_ECN = {"on": "ECN", "off": "no ECN", None: "DCTCP"}


def _settings(name: str, measured: str) -> str:
    """Return the text of a ratio of RED to CoDel with the names of settings; others unchanged."""
    found = _RATIO.fullmatch(measured) if "RED over CoDel" in name else None
    if found is None:
        return measured
    red, red_ecn, codel, codel_ecn, ratio = found.groups()
    return f"RED {red}, {_ECN[red_ecn]} / CoDel {codel}, {_ECN[codel_ecn]} = {ratio}"


def explanations(study: Path) -> Iterator[str]:
    """Yield the table of claims that differ: class, and the experiments that explain it."""
    yield "| claim | outside its band | class | experiments |"
    yield "|---|---|---|---|"
    for claim in find(study.parent):
        if claim.path.parent.parent.name != study.name:
            continue
        record = read(load(claim.path, named=reading_of(study)))
        if record.verdict != DIFFERS:
            continue
        content = record.content or {}
        missed = [part for part in content["metrics"] if part["verdict"] == DIFFERS]
        tried = [part for each in content["explanations"] for part in each["metrics"]]
        link = f"[`{claim.id.removeprefix('eeon/')}`](CLAIMS.md#{_anchor(claim.name)})"
        kinds = ", ".join(record.classes) or "–"
        yield f"| {link} | {_listed(missed)} | {kinds} | {_listed(tried)} |"


def _listed(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the values with their names, and a mark at values that are inside their bands."""
    return "; ".join(
        f"{cell(part['name'])}: {cell(part['measured'])}"
        + (" ✓" if part["verdict"] == HOLDS else "")
        for part in parts
    )


def _anchor(name: str) -> str:
    return name.lower().replace("/", "").replace(".", "")


def _verdict(record: Record) -> str:
    return f"**{record.verdict}**" if record.verdict == HOLDS else record.verdict


def seeds(study: Path, part: str) -> Iterator[str]:
    """Return a sentence with the number of seeds of a part, for each TCP."""
    table = _study(study, part).filter(pl.col("metric") == "runtime_s")
    words = []
    for name, title in PROFILES.items():
        counts = table.filter(pl.col("tcp") == name)["n"].to_list()
        run = [each for each in counts if each]
        if not run:
            continue
        low, high = min(run), max(run)
        each = _seeds(low) if low == high else f"{low} to {_seeds(high)}"
        missing = f"; {len(counts) - len(run)} not run" if len(run) < len(counts) else ""
        words.append(f"with {title} {len(run)} configurations, {each} each{missing}")
    yield f"These numbers come from {int(table['n'].sum()):,} runs: {'; '.join(words)}."


def _seeds(number: int) -> str:
    return "one seed" if number == 1 else f"{number} seeds"


def baselines(study: Path) -> Iterator[str]:
    """Yield the table that compares deep with shallow DropTail."""
    table = _study(study, "chapter5").filter(queue="drop-tail", tcp="plain")
    value = {(row["buffer"], row["metric"]): row for row in table.iter_rows(named=True) if row["n"]}

    def number(buffer: str, metric: str) -> float:
        return float(value[buffer, metric]["mean"])

    saved = value["deep", "runtime"]
    ends = [100 * (1 - saved[end]) for end in ("high", "low") if saved[end] is not None]
    interval = f" (95 %: {ends[0]:.0f} to {ends[1]:.0f})" if ends else ""
    times = number("deep", "latency_us") / number("shallow", "latency_us")
    yield f"| {saved['n']} seeds | deep | shallow | deep against shallow |"
    yield "|---|---|---|---|"
    runtimes = " | ".join(f"{number(each, 'runtime_s'):.2f} s" for each in ("deep", "shallow"))
    yield f"| runtime | {runtimes} | {100 * (1 - saved['mean']):.0f} % shorter{interval} |"
    delays = " | ".join(
        f"{number(each, 'latency_us') / 1000:.2f} ms" for each in ("deep", "shallow")
    )
    yield f"| mean latency | {delays} | {times:.1f} times |"
    counts = " | ".join(f"{number(each, 'timeouts'):,.0f}" for each in ("deep", "shallow"))
    yield f"| timeouts | {counts} | |"


def rates(study: Path) -> Iterator[str]:
    """Yield the lines of the table of runtime that deep buffers save, by node rate and timeout."""
    value = _choices(study)
    yield "| runtime saved by deep buffers | factor on Hadoop's rates | |"
    yield "|---|---|---|"
    for choice, factor in RATES.items():
        row = value.get(("DropTail, deep", choice, "runtime"))
        yield f"| {choice} | {factor} | {_saved(row, with_seeds=True)} |"


def choices(study: Path) -> Iterator[str]:
    """Yield the lines of the table of runtime saved, for each setting the thesis leaves open."""
    value = _choices(study)
    yield "| | " + " | ".join(CLAIMED) + " | mean latency, deep DropTail |"
    yield "|---|" + "---|" * (len(CLAIMED) + 1)
    yield "| published | " + " | ".join(f"{each} %" for each in CLAIMED.values()) + " | 6 ms |"
    for choice in dict.fromkeys(choice for _, choice, _ in value):
        cells = [_saved(value.get((queue, choice, "runtime"))) for queue in CLAIMED]
        if {*cells} == {"–"}:
            continue
        latency = value.get(("DropTail, deep", choice, "latency_us"))
        cells.append(f"{latency['mean'] / 1000:.1f} ms" if latency else "–")
        yield f"| {choice} | {' | '.join(cells)} |"


#: A row of a table of stored results.
Row = Mapping[str, Any]


def _choices(study: Path) -> dict[tuple[str, str, str], Row]:
    table = _study(study, "sensitivity")
    return {
        (row["queue"], row["choice"], row["metric"]): row
        for row in table.iter_rows(named=True)
        if row["n"]
    }


def _saved(row: Row | None, *, with_seeds: bool = False) -> str:
    """Return the reduction of a runtime relative to shallow DropTail, as text."""
    if row is None:
        return "–"
    saved = f"{100 * (1 - row['mean']):.1f} %".replace("-", "−")
    if not with_seeds:
        return saved
    ends = [100 * (1 - row[end]) for end in ("high", "low") if row[end] is not None]
    many = _seeds(row["n"])
    return f"{saved} ({ends[0]:.1f} to {ends[1]:.1f}; {many})" if ends else f"{saved} ({many})"


def protection(study: Path) -> Iterator[str]:
    """Yield the table of protection modes: means over settings and transports."""
    table = _study(study, "chapter6").filter(tcp="plain", reduces=159)
    head = "runtime, shallow | timeouts | latency to DropTail | runtime, deep | timeouts"
    yield f"| mean over settings and transports where RED acts | {head} | latency to DropTail |"
    yield "|---|---|---|---|---|---|---|"
    rows = [("DropTail", table.filter(queue="drop-tail"))]
    for queue, title in DISCIPLINES.items():
        of = table.filter(queue=queue)
        rows += [(f"{title}, {mode}", of.filter(protection=mode)) for mode in MODES]
    for title, part in rows:
        cells = [_mean_cells(part, buffer, title.startswith("RED")) for buffer in ACTING]
        yield f"| {title} | {' | '.join(cells)} |"


def _mean_cells(part: pl.DataFrame, buffer: str, acting: bool) -> str:
    part = part.filter(pl.col("buffer") == buffer)
    if acting:
        part = part.filter(pl.col("setting").is_in(ACTING[buffer]))

    def mean(metric: str) -> float:
        found = part.filter(pl.col("metric") == metric)["mean"].mean()
        return float("nan") if found is None else float(found)  # type: ignore[arg-type]

    drop_tail = part["queue"].first() == "drop-tail"
    latency = "1" if drop_tail else f"{mean('latency'):.2f}"
    return f"{mean('runtime_s'):.1f} s | {mean('timeouts'):,.0f} | {latency}"


def front(study: Path) -> Iterator[str]:
    """Yield the lines of the Pareto front of runtime against the 99th percentile, for each TCP."""
    yield "| | discipline | mode | transport | buffers | p99 | mean latency | runtime |"
    yield "|---|---|---|---|---|---|---|---|"
    kept = kept_in(study, "front") / "front.csv"
    for row in pl.read_csv(kept, schema_overrides={"setting": pl.String}).iter_rows(named=True):
        name = DISCIPLINES.get(row["queue"], row["queue"])
        latency = f"{row['latency_p99_us'] / 1000:.2f} ms | {row['latency_us'] / 1000:.2f} ms"
        setting = " | ".join(row[key] or "" for key in ("protection", "transport", "buffer"))
        who = f"{PROFILES[row['tcp']]} | {name} {row['setting']}"
        yield f"| {who} | {setting} | {latency} | {row['runtime_s']:.2f} s |"


def tails(study: Path, part: str) -> Iterator[str]:
    """Yield the table of tail latencies of the service and the job by discipline, in one fabric."""
    table = _study(study, part)
    value = {
        (row["queue"].rpartition("; ")[0], row["tcp"], row["metric"]): row["mean"]
        for row in table.iter_rows(named=True)
        if row["n"]
    }
    queues = list(dict.fromkeys(name.rpartition("; ")[0] for name in table["queue"]))
    plain = "p50 | p99 | p99.9 | job's p99 | runtime"
    yield f"| | {plain} | Linux: p99 | p99.9 | job's p99 | runtime |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for queue in queues:
        cells = [
            _service_cell(value.get((queue, tcp, metric)), metric)
            for tcp, metrics in SERVICE.items()
            for metric in metrics
        ]
        yield f"| {queue} | {' | '.join(cells)} |"


def _service_cell(value: float | None, metric: str) -> str:
    if value is None:
        return "–"
    return f"{value:.2f} s" if metric == "runtime_s" else f"{value:,.0f}"


def _study(study: Path, part: str) -> pl.DataFrame:
    return pl.read_parquet(kept_in(study, part) / f"{part}.parquet")


def computed(study: Path) -> Iterator[str]:
    """Yield the lines of the table of runs done, for each part of the study."""
    yield "| part of study.py | configurations | run | seeds each |"
    yield "|---|---|---|---|"
    for part in PARTS:
        table = _study(CHAPTER5 if part == "chapter5" else study, part)
        counts = table.filter(pl.col("metric") == "runtime_s")["n"].to_list()
        run = [each for each in counts if each]
        ends = " to ".join(str(each) for each in sorted({min(run), max(run)})) if run else "–"
        yield f"| `{part}` | {len(counts)} | {len(run)} | {ends} |"


def tables_of(study: Path) -> Tables:
    """Return the tables of a chapter's page, each as its lines."""
    if study == CHAPTER5:
        return {
            "seeds": [*seeds(study, "chapter5")],
            "baselines": [*baselines(study)],
            "rates": [*rates(HERE)],
            "claims": [*claims(study)],
            "explanations": [*explanations(study)],
        }
    return {
        "seeds": [*seeds(study, "chapter6")],
        "protection": [*protection(study)],
        "claims": [*claims(study)],
        "explanations": [*explanations(study)],
        "front": [*front(study)],
        "choices": [*choices(study)],
        **{part: [*tails(study, part)] for part in ("service", "fast", "fat_tree")},
        "computed": [*computed(study)],
    }


def main(arguments: Sequence[str]) -> int:
    """Write both pages; with ``--check``, return 1 if one is not current."""
    stale = []
    for study in (CHAPTER5, HERE):
        path = study / "README.md"
        before = path.read_text(encoding="utf-8")
        after = filled(before, tables_of(study))
        if after == before:
            continue
        stale.append(path)
        if "--check" not in arguments:
            path.write_text(after, encoding="utf-8")
    for path in stale:
        print(f"{'stale' if '--check' in arguments else 'written'}: {path}")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
