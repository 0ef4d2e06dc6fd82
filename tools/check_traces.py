"""Imports each sample trace below a folder, and finds records that the import does not report.

``python tools/check_traces.py [DATA]`` (default: ``../shared/data`` beside the repository) imports
each file, or each folder of rank files. It counts the records of the sample by other means
(``trace_counts``), and compares this with the imported records and the account. A sample is
*accounted for* if imported and reported records are as many as were counted, for each kind of
record. Where the import refuses a change of meaning, its reason is shown and the sample is imported
again with ``lossy``. Traces of MPI programs also run on a small star. ``--write`` puts both tables
into docs/validation/trace-accounts.md. Exit code 1 where a sample is not accounted for.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import eastwest as ew
import trace_counts
from eastwest.errors import InputError
from eastwest.observe.take import import_spans
from eastwest.traces import matrix
from eastwest.traces.flows import read as flows
from eastwest.traces.mpi import take as mpi
from eastwest.traces.take import import_trace
from trace_counts import Part

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "validation" / "trace-accounts.md"
MARK = "<!-- table by tools/check_traces.py -->"
RUNS_MARK = "<!-- runs by tools/check_traces.py -->"
#: Files that are not samples of traces, and folders with some samples and other files.
_PAPERS = re.compile(r"LICENSE|NOTICE|README|SOURCES|MANIFEST|\._|hostfile")
_OTHERS = re.compile(
    r"/(topologies/(?!.*\.cm$)|platforms/|kernel-|metric/|mrmr/|expected/)|\.matrix\."
)
#: Kinds of files beside traces: settings, measurements, pictures of platforms.
_NO_TRACES = re.compile(
    r"(\.xml|\.txt|\.cfg|\.def|\.evt|\.before|\.after|-w\d\.csv|fault_list\.json|foo-bar\.csv"
    r"|platform.*\.xml|(tasks|flows[^/]*|ports|counters[^/]*|shuffle|pairs)\.csv(\.gz)?"
    r"|(summary|wire)\.json|_conf\.xml\.gz|\.matrix\.csv)$"
)


@dataclass
class Row:
    """Result of the check of a sample."""

    sample: str
    reader: str
    parts: list[Part]
    refused: str = ""
    #: Cells of the table of runs, for a trace of an MPI program that was imported.
    ran: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[Part]:
        """Return the kinds of records of which some are neither imported nor in the account."""
        return [part for part in self.parts if part.imported + part.told != part.counted]

    @property
    def verdict(self) -> str:
        """Return the verdict on the sample as text."""
        if self.wrong:
            return "UNACCOUNTED: " + ", ".join(part.kind for part in self.wrong)
        if self.refused and not self.parts:
            return f"refused: {self.refused}"
        told = "accounted for"
        return f"refused: {self.refused}; with --lossy {told}" if self.refused else told

    def cells(self) -> list[str]:
        """Return the table's cells: sample, reader, counted, imported, in the account, verdict."""
        columns = [
            ", ".join(f"{number(part):,} {part.kind}" for part in self.parts if number(part))
            for number in (_counted, _imported, _told)
        ]
        return [f"`{self.sample}`", self.reader, *columns, self.verdict.replace("|", "\\|")]


def _counted(part: Part) -> int:
    return part.counted


def _imported(part: Part) -> int:
    return part.imported


def _told(part: Part) -> int:
    return part.told


def samples(data: Path, unpacked: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield the samples below a folder: name and files of each."""
    taken: set[Path] = set()
    for folder in sorted(path for path in data.rglob("*") if path.is_dir()):
        ranks = sorted(path for path in folder.glob("*.txt") if _has_rank(path))
        if len(ranks) > 1 and mpi.find([folder]) == "ti":
            taken.update(ranks)
            yield f"{folder.relative_to(data)} ({len(ranks)} rank files)", ranks
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        name = str(path.relative_to(data))
        if path in taken or _PAPERS.match(path.name) or _OTHERS.search(f"/{name}"):
            continue
        if tarfile.is_tarfile(path) and not _holds_ranks(path):
            yield from _unpack(path, name, unpacked)
        elif not _NO_TRACES.search(path.name) or mpi.find([path]) == "ti":
            yield name, [path]


def _has_rank(path: Path) -> bool:
    return bool(re.search(r"\d\.txt$", path.name))


def _holds_ranks(path: Path) -> bool:
    with tarfile.open(path) as archive:
        return any(_has_rank(Path(member.name)) for member in archive)


def _unpack(path: Path, name: str, into: Path) -> Iterator[tuple[str, list[Path]]]:
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            base = Path(member.name).name
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and not _PAPERS.match(base):
                file = into / path.name / base
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
                yield f"{name}:{base}", [file]


#: Scenario of the runs: as many hosts as ranks, at least two.
_STAR = """schema = 1
[fabric]
kind = "star"
hosts = {hosts}
host_rate = "10 Gbit/s"
[[workload]]
kind = "mpi"
name = "app"
trace = "{trace}"
"""


def run(files: list[Path], out: Path, lossy: bool) -> list[str]:
    """Import and run a trace of an MPI program; return its cells of the table of runs.

    A trace of Chakra of one rank is repeated on two ranks.
    """
    repeated = len(files) == 1 and mpi.find(files) == "chakra"
    taken = mpi.import_mpi(files, out, ranks=2 if repeated else None, force=True, lossy=lossy)
    ranks, calls = taken.about["ranks"], taken.about["calls"]
    scenario = out.with_suffix(".toml")
    scenario.write_text(_STAR.format(hosts=max(2, ranks), trace=out.name), "utf-8")
    try:
        done = ew.run(scenario, out=out.with_suffix(".run"), force=True).summary["mpi"]
    except ew.RunError as error:
        return [str(ranks), "", "", "", f"refused: {error}"]
    records = sum(number for call, number in calls.items() if call != "graph")
    return [
        f"{ranks}{' (one, repeated)' if repeated else ''}{' with --lossy' if lossy else ''}",
        f"{records:,}{' nodes' if 'graph' in calls else ' calls'}",
        f"{done['messages']['count']:,}",
        f"{done['messages']['bytes']:,}",
        f"{done['runtime_s']:.6f}",
    ]


Taker = Callable[[list[Path], Path, bool], tuple[str, list[Part]]]


def _take_mpi(files: list[Path], out: Path, lossy: bool) -> tuple[str, list[Part]]:
    taken = mpi.import_mpi(files, out, force=True, lossy=lossy)
    source = str(taken.about["source"])
    return source, trace_counts.mpi_parts(source, files, taken.about)


def _take_matrix(files: list[Path], _: Path, lossy: bool) -> tuple[str, list[Part]]:
    found = matrix.read(files[0], lossy=lossy)
    about = found.account.as_json()
    return "htsim matrix", trace_counts.matrix_parts(files[0], len(found.connections), about)


def _take_spans(files: list[Path], out: Path, lossy: bool) -> tuple[str, list[Part]]:
    taken = import_spans(files, out, force=True, lasting=False, lossy=lossy)
    return taken.source_format, trace_counts.span_parts(taken.source_format, files[0], taken)


def _take_packets(files: list[Path], _: Path, lossy: bool) -> tuple[str, list[Part]]:
    found = flows.read(files, stop=not lossy)
    return found.source_format, trace_counts.packet_parts(files[0], found.used, found.left)


def _take_jobs(files: list[Path], out: Path, lossy: bool) -> tuple[str, list[Part]]:
    taken = import_trace(files, out, force=True, lossy=lossy)
    return taken.source_format, trace_counts.job_parts(taken.source_format, files[0], taken.about)


def _taker(files: list[Path]) -> Taker:
    """Return the import function for the content of a sample."""
    if files[0].suffix == ".cm":
        return _take_matrix
    if len(files) > 1 or mpi.find(files):
        return _take_mpi
    if trace_counts.is_capture(files[0]):
        return _take_packets
    return _take_spans if trace_counts.has_spans(files[0]) else _take_jobs


def check(sample: str, files: list[Path], out: Path) -> Row:
    """Import a sample, count its records and return the result."""
    taker = _taker(files)
    try:
        row = Row(sample, *taker(files, out, False))
        row.ran = run(files, out, False) if taker is _take_mpi else []
        return row
    except InputError as error:
        refused = str(error)
        for file in files:
            refused = refused.replace(str(file), file.name)
    if "with --lossy: " not in refused:
        return Row(sample, "", [], refused)
    reason = refused.partition("; with --lossy")[0]
    try:
        row = Row(sample, *taker(files, out, True), reason)
        row.ran = run(files, out, True) if taker is _take_mpi else []
        return row
    except InputError as error:
        return Row(sample, "", [], f"{reason}; with --lossy: {error}")


def rows(data: Path) -> list[Row]:
    """Return the results of every sample below a folder."""
    with tempfile.TemporaryDirectory(prefix="eastwest-check-") as folder:
        out = Path(folder)
        return [
            check(sample, files, out / f"trace-{number}")
            for number, (sample, files) in enumerate(samples(data, out / "unpacked"))
        ]


RUNS_HEAD = ["sample", "ranks", "records", "messages", "bytes", "time in s"]
HEAD = ["sample", "reader", "counted", "imported", "in the account", "verdict"]


def table(found: list[Row]) -> str:
    """Return the results as a table in Markdown."""
    return _lines(HEAD, [row.cells() for row in found])


def runs(found: list[Row]) -> str:
    """Return the runs of traces of MPI programs as a table in Markdown."""
    return _lines(RUNS_HEAD, [[f"`{row.sample}`", *row.ran] for row in found if row.ran])


def _lines(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def main() -> int:
    """Check the folder that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path, nargs="?", default=ROOT.parent / "shared" / "data")
    parser.add_argument("--write", metavar="DATE", help="write the table of that day into the page")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        parser.error(f"there is no folder {arguments.data}")
    found = rows(arguments.data)
    text = table(found)
    print(text)
    print(runs(found))
    if arguments.write:
        day = datetime.date.fromisoformat(arguments.write)
        before, _, rest = PAGE.read_text("utf-8").partition(MARK)
        _, _, between = rest.partition("\n## ")
        title = f"{between.partition(RUNS_MARK)[0]}{RUNS_MARK}"
        page = f"{before}{MARK}\n\nRecorded on {day}.\n\n{text}\n## {title}\n\n{runs(found)}"
        PAGE.write_text(page, "utf-8")
    wrong = [row for row in found if row.wrong]
    refused = sum(bool(row.refused and not row.parts) for row in found)
    print(f"{len(found)} samples: {refused} refused, {len(wrong)} not accounted for")
    for row in wrong:
        for part in row.wrong:
            print(f"{row.sample}: {part}")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
