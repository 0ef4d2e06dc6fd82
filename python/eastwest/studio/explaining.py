"""Explanations of finished runs for the page: stories, facts of a link, slow flows, series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from eastwest.core import ProgressCallback
from eastwest.errors import InputError
from eastwest.explain import Story, difference, explain
from eastwest.results import Result
from eastwest.studio.refused import RefusedError
from eastwest.units import clean, count, percent, plural, rate, size, span, tier_words
from eastwest.views.evidence import Evidence, number
from eastwest.views.labels import shown

#: CPU time in s up to which a run is simulated again: to divide the times of its flows, and to
#: follow a packet, which the user asks for.
_RERUN_S, _RERUN_PACKET_S = 3, 60
_MOST_FLOWS = 200
_MOST_MOMENTS = 60
#: Columns of the table ``links`` with lost packets by cause, and words for them.
_CAUSES = {
    "drops_queue_full": "found the queue full",
    "drops_early": "were dropped early by the queue discipline",
    "drops_shared_buffer": "found the shared memory full",
    "drops_sojourn": "were dropped after too long a wait",
    "lost_random": "were lost by a fault",
    "lost_down": "were lost because the link was down",
    "lost_no_route": "had no route",
}
_KINDS = {
    "drops_data": "first transmissions of data",
    "drops_retransmission": "retransmissions",
    "drops_ack": "acknowledgements",
    "drops_ece_ack": "acknowledgements with an ECN echo",
    "drops_syn": "SYN packets",
    "drops_syn_ack": "SYN-ACK packets",
    "drops_fin": "FIN packets",
    "drops_datagram": "datagrams",
}


def told(story: Story, *results: Result) -> dict[str, Any]:
    """Return a story for the page: title, text, and sections with lines of text.

    The temporary folders of the runs ``results`` become names such as ``run-3``.
    """
    folders = [f"{result.path.parent}/" for result in results]
    sections = [{"title": s.title, "lines": s.lines} for s in story.sections]
    if story.moments:
        lines = [f"{span(m.at_us / 1e6)}: {m.text}" for m in story.moments[:_MOST_MOMENTS]]
        more = len(story.moments) - len(lines)
        lines += [f"and {count(more)} more"] if more > 0 else []
        sections.insert(0, {"title": "Events, with the time since the start", "lines": lines})
    if story.parts:
        total = story.total_us or 0.0
        lines = [f"{span(p.us / 1e6)}, {_share(p.us, total)}: {p.what}" for p in story.parts]
        sections.insert(0, {"title": f"Where the {span(total / 1e6)} went", "lines": lines})
    if story.unknown:
        sections.append({"title": "Not known", "lines": story.unknown})
    plain = story.to_dict()
    shown: dict[str, Any] = _without(
        folders,
        {
            "kind": story.kind,
            "id": story.id,
            "title": story.title,
            "text": story.summary,
            "sections": sections,
            "facts": plain["facts"],
            "parts": plain["parts"],
            "hops": plain["facts"].get("hops"),
        },
    )
    return shown


def _without(folders: Sequence[str], value: Any) -> Any:
    """Return a value in which texts lack the names of folders and control characters."""
    if isinstance(value, dict):
        return {key: _without(folders, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without(folders, inner) for inner in value]
    if not isinstance(value, str):
        return value
    for folder in folders:
        value = value.replace(folder, "")
    return clean(value, 2000)


def _share(part: float, total: float) -> str:
    return percent(part / total) if total > 0 else "–"


def explained(
    result: Result,
    kind: object,
    which: object,
    workload: object,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Return the explanation of an object of a run, or of one of its links.

    ``progress`` is called while the run is simulated again.
    """
    if not isinstance(kind, str) or not isinstance(which, (str, int)) or isinstance(which, bool):
        raise RefusedError(400, "expected kind and id of an object, such as flow and 17")
    if workload is not None and not isinstance(workload, str):
        raise RefusedError(400, "workload: expected the name of a workload")
    if kind == "link":
        return told(link(result, which), result)
    return told(
        explain(
            result,
            kind,
            which,
            workload=workload,
            rerun_s=_RERUN_PACKET_S if kind == "packet" else _RERUN_S,
            progress=progress,
        ),
        result,
    )


def first_difference(first: Result, second: Result) -> dict[str, Any]:
    """Return the story of the first difference of two runs."""
    return told(difference(first, second), first, second)


def link(result: Result, which: str | int) -> Story:
    """Return the facts of a link and of the port that sends into it."""
    evidence = Evidence(result)
    text = str(which)
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    wanted = pl.col("link") == int(text) if is_number else pl.col("name") == text
    row = evidence.row("links", wanted)
    if row is None:
        raise InputError(f"the run has no link {clean(text, 60)}")
    name = shown(row["name"])
    used, drops = number(row["utilisation"]), int(number(row["drops"]))
    story = Story(
        "link",
        str(row["link"]),
        f"Link {name}",
        f"{name} ({tier_words(row['tier'])}, {rate(number(row['rate_bps']))}) carried "
        f"{size(number(row['bytes']))} in {plural(row['packets'], 'packet')}: "
        f"{percent(used)} of what it could carry in the run. "
        f"{plural(drops, 'packet was', 'packets were')} lost, "
        f"{plural(row['marks'], 'packet was', 'packets were')} marked.",
        facts={key: value for key, value in row.items() if key not in {"src", "dst"}},
    )
    story.add("Queue", *_queue(evidence, row))
    story.add("Lost packets by cause", *_counts(row, _CAUSES, "packet"))
    story.add("Lost packets by kind", *_counts(row, _KINDS, "packet"))
    lost = flows(result, int(row["link"]), 10)
    story.add(
        "Flows that lost packets here",
        *(
            f"flow {f['flow']} ({shown(f['workload'], 40)}, {f['src']} to {f['dst']}, "
            f"{size(f['bytes'])}): {plural(f['lost_here'], 'packet')}, took "
            f"{span((f['fct_us'] or 0) / 1e6)}"
            for f in lost
        ),
    )
    story.facts["flows"] = [f["flow"] for f in lost]
    until = evidence.events_note(number(result.summary.get("simulated_s"))) if drops else None
    story.lacks(until)
    return story


def _queue(evidence: Evidence, row: dict[str, Any]) -> list[str]:
    """Return sentences on the queue of a port: the longest one, and the mean of the samples."""
    said = [
        f"The longest queue held {size(number(row['queue_max_bytes']))}: its last packet waited "
        f"{span(number(row['queue_max_us']) / 1e6)}."
    ]
    rows = evidence.table("queues").filter(pl.col("link") == row["link"])
    times = evidence.table("traffic")["time_s"].n_unique()
    if rows.height and times:
        mean = number(rows["packets"].sum()) / max(times, rows.height)
        said.append(
            f"Packets waited in {count(rows.height)} of about {count(max(times, rows.height))} "
            f"samples; the mean is {count(float(f'{mean:.3g}'))} packets."
        )
    return said


def _counts(row: dict[str, Any], words: dict[str, str], noun: str) -> list[str]:
    found = [(int(number(row.get(key))), what) for key, what in words.items()]
    return [f"{plural(n, noun)}: {what}" for n, what in sorted(found, reverse=True) if n]


def flows(
    result: Result, link: int | None, top: int, workload: str | None = None
) -> list[dict[str, Any]]:
    """Return the slowest flows of a run, of a workload, or those that lost packets on a link."""
    evidence = Evidence(result)
    table = result.flows
    if link is not None:
        table = _with_losses(result, link)
    if workload is not None:
        table = table.filter(pl.col("workload") == workload)
    rows = table.sort(["fct_us", "flow"], descending=[True, False], nulls_last=True)
    keys = ("flow", "workload", "purpose", "bytes", "fct_us", "slowdown", "retransmits", "timeouts")
    return [
        {
            **{key: row[key] for key in keys},
            "src": shown(evidence.host(row["src"])),
            "dst": shown(evidence.host(row["dst"])),
            "workload": shown(row["workload"]),
            "purpose": shown(row["purpose"]),
            **({"lost_here": row["lost_here"]} if "lost_here" in row else {}),
        }
        for row in rows.head(max(1, min(top, _MOST_FLOWS))).iter_rows(named=True)
    ]


def _with_losses(result: Result, link: int) -> pl.DataFrame:
    """Return the flows with a lost packet on a link, with the number of packets: ``lost_here``."""
    events = result.events.filter(
        (pl.col("what") == "drop") & (pl.col("link") == link) & (pl.col("connection") >= 0)
    ).select("connection", "src", "stream_start", "time_s", size=pl.col("bytes"))
    table = result.flows
    joined = table.lazy().join(
        events.lazy().rename({"stream_start": "position"}), on=["connection", "src"], how="inner"
    )
    first, last = pl.col("stream_start"), pl.col("stream_start") + pl.col("bytes")
    lost = (
        joined.filter(
            (pl.col("position") < last)
            & (pl.col("position") + pl.max_horizontal(pl.col("size"), pl.lit(1)) > first)
        )
        .group_by("flow")
        .agg(lost_here=pl.len())
        .collect()
    )
    return table.join(lost, on="flow", how="inner")
