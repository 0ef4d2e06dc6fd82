"""Verdicts on a result as sentences, which the reader should know before any chart."""

from __future__ import annotations

import polars as pl

from eastwest import fidelity, units
from eastwest.deadlock import deadlock
from eastwest.plot.latency import finished
from eastwest.report import energy, words
from eastwest.report.tables import Facts, shown
from eastwest.results import pick

#: A class and a sentence: ``good``, ``look`` (worth a look) or ``bad`` (a failure).
Verdict = tuple[str, str]


def verdicts(facts: Facts) -> list[Verdict]:
    """Return verdicts on a result: completeness, speed, losses and bottleneck."""
    said = [
        *_mode(facts),
        *_done(facts),
        *_jobs(facts),
        *_lost(facts),
        *_timeouts(facts),
        *_pauses(facts),
        *_bottleneck(facts),
    ]
    saved = energy.sentence(facts)
    if saved is not None:
        said.append(saved)
    return said or [("look", "Nothing was sent, so there is nothing to tell.")]


def _mode(facts: Facts) -> list[Verdict]:
    """Return a verdict on the accuracy of an approximate result."""
    said = (fidelity.error(facts.result.summary), fidelity.warning(facts.result.summary))
    return [("look", shown(text, 400) + ".") for text in said if text]


def _done(facts: Facts) -> list[Verdict]:
    summary = facts.result.summary
    count, done = pick(summary, "flows", "count"), pick(summary, "flows", "completed")
    if not count or done is None:
        return []
    if done < count:
        return [
            (
                "bad",
                f"{units.count(count - done)} of {units.count(count)} flows were not complete "
                "when the run ended.",
            )
        ]
    middle, tail = (pick(summary, "flows", "fct_us", q) for q in ("p50", "p99"))
    sentence = f"All {units.count(count)} flows are complete"
    if middle is not None and tail is not None:
        sentence += f": half within {units.span(middle / 1e6)}, 99 % within "
        sentence += units.span(tail / 1e6)
    return [("good", sentence + ".")]


def _jobs(facts: Facts) -> list[Verdict]:
    summary = facts.result.summary
    count = pick(summary, "jobs", "count")
    if not count:
        return []
    runtime = [pick(summary, "jobs", "runtime_s", q) for q in ("p50", "p99")]
    one = count == 1
    sentence = (
        f"The job took {units.span(runtime[0])}."
        if one
        else f"{units.count(count)} jobs finished: half within {units.span(runtime[0])} of their "
        f"submission, 99 % within {units.span(runtime[1])}."
    )
    return [("good", sentence)]


def _lost(facts: Facts) -> list[Verdict]:
    packets, drops = words.carried(facts.result)
    if not packets:
        return []
    if not drops:
        return [("good", "No packet was dropped.")]
    tiers = facts.links.group_by("tier").agg(pl.col("drops").sum())
    tier, most = tiers.sort(["drops", "tier"], descending=[True, False]).row(0)
    causes = words.drop_causes(facts.result)
    return [
        (
            "look",
            f"{units.count(drops)} packets were dropped, {units.percent(drops / packets)} of all "
            f"transmissions; {units.percent(most / drops)} of them on links from "
            f"{units.tier_words(str(tier))}"
            + (f". Causes: {causes}." if causes and ", " in causes else "."),
        )
    ]


def _timeouts(facts: Facts) -> list[Verdict]:
    timeouts = pick(facts.result.summary, "tcp", "timeouts")
    done = finished(facts.result)
    hit = done.filter(pl.col("timeouts") > 0)
    if not timeouts or not hit.height:
        return []
    rest = done.filter(pl.col("timeouts") == 0)
    share = units.percent(hit.height / done.height)
    middle = units.span(_median(hit) / 1e6)
    sentence = (
        f"{units.count(timeouts)} TCP timeouts hit {units.count(hit.height)} flows ({share}): "
        f"they took {middle} at the median"
    )
    if rest.height:
        sentence += f", the others {units.span(_median(rest) / 1e6)}"
    return [("look", sentence + ".")]


def _median(flows: pl.DataFrame) -> float:
    value = flows["fct_us"].quantile(0.5, "higher")
    return float(value) if value is not None else float("nan")


def _pauses(facts: Facts) -> list[Verdict]:
    """Return verdicts on the effect of PFC, and on a deadlock that ended the run."""
    said: list[Verdict] = []
    stuck = deadlock(facts.result.summary)
    if stuck is not None:
        said.append(("bad", f"The run was {stuck}."))
    paused = facts.result.pfc.filter(pl.col("pauses") > 0)
    if paused.height:
        most = paused.sort(["paused_s", "link"], descending=[True, False]).row(0, named=True)
        times = units.count(float(paused["pauses"].sum()))
        port = facts.link_names.get(most["link"], f"link {most['link']}")
        said.append(
            (
                "look",
                f"PFC paused ports {times} times; {port} was paused for longest, "
                f"{units.percent(most['paused_s'] / facts.end)} of the time.",
            )
        )
    return said


def _bottleneck(facts: Facts) -> list[Verdict]:
    links = facts.links.filter(pl.col("utilisation").is_finite())
    if not links.height:
        return []
    row = links.sort(["utilisation", "link"], descending=[True, False]).row(0, named=True)
    name, used = shown(row["name"], 40), row["utilisation"]
    full = links.sort(["queue_max_us", "link"], descending=[True, False]).row(0, named=True)
    sentence = (
        f"The busiest link, {name}, was sending {units.percent(used)} of the time; the longest "
        f"wait in a queue was {units.span(full['queue_max_us'] / 1e6)}, at "
        f"{shown(full['name'], 40)}."
    )
    return [("look" if used > 0.9 else "good", sentence)]
