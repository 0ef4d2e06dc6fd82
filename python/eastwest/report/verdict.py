"""Verdicts on a result: sentences at the top of its page, such as that packets were dropped."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from eastwest import fidelity, notes, units
from eastwest.deadlock import deadlock
from eastwest.few_flows import few_flows
from eastwest.goals import early
from eastwest.notes import host_cores, no_overlap
from eastwest.report import energy, words
from eastwest.results import pick
from eastwest.views import transports
from eastwest.views.facts import Facts
from eastwest.views.labels import agree, as_sentence, plural, seconds, shown
from eastwest.views.latency import finished
from eastwest.views.series import percentile

#: (class, sentence); the class is ``good``, ``look`` (needs attention) or ``bad`` (a failure).
Verdict = tuple[str, str]
#: Maximum number of purposes of flows in the sentence about timeouts.
_MOST_PURPOSES = 3
#: A host is a receiver of rounds if it gets more than this share of the bytes of the host that gets
#: the most; other hosts are senders, which get only requests.
_REQUESTS = 0.05


def verdicts(facts: Facts) -> list[Verdict]:
    """Return verdicts on a result: completeness, speed, losses, bottleneck and idle time."""
    said = [
        *_stopped(facts),
        *_mode(facts),
        *_rounds(facts),
        *_done(facts),
        *_jobs(facts),
        *_lost(facts),
        *_trimmed(facts),
        *_timeouts(facts),
        *_pauses(facts),
        *((name, as_sentence(note)) for name, note in notes.of_run(facts.result.summary)),
        *(("look", as_sentence(note)) for note in _host_cores(facts)),
        *_bottleneck(facts),
        *_oversubscription(facts),
        *_few_flows(facts),
        *(("look", as_sentence(note)) for note in _no_overlap(facts)),
    ]
    saved = energy.sentence(facts)
    if saved is not None:
        said.append(saved)
    return said or [("look", "No traffic was sent, so there is nothing to judge.")]


def _stopped(facts: Facts) -> Iterator[Verdict]:
    """Yield a verdict on a run that was stopped early because it surely misses a goal."""
    if note := early.note(facts.result.summary):
        yield "bad", as_sentence(note)


def _mode(facts: Facts) -> Iterator[Verdict]:
    """Yield verdicts on the accuracy of a flow-level result; none for packet level."""
    for text in (fidelity.error(facts.result.summary), fidelity.warning(facts.result.summary)):
        if text:
            yield "look", shown(text, 400) + "."


#: Share of the rate of the receiver's link: rounds with a lower goodput get a verdict.
_LOW_GOODPUT = 0.2


def _rounds(facts: Facts) -> Iterator[Verdict]:
    """Yield a verdict if the goodput of rounds is far below the rate of the receiver's link.

    There is no verdict with several receivers, because then no single link limits the goodput.
    """
    goodput = pick(facts.result.summary, "rounds", "goodput_bps")
    names = facts.result.rounds["workload"].unique().to_list() if goodput else []
    flows = facts.flows.filter(pl.col("workload").is_in(names))
    largest = flows.group_by("dst").agg(pl.col("bytes").sum()).sort("bytes", descending=True)
    receivers = largest.filter(pl.col("bytes") > _REQUESTS * pl.col("bytes").max())["dst"]
    if goodput is None or receivers.len() != 1:
        return
    receiver = facts.host(receivers[0])
    link = facts.links.filter((pl.col("tier") == "host-down") & (pl.col("dst") == receiver))
    rate = float(link["rate_bps"].sum())
    if rate and goodput < _LOW_GOODPUT * rate:
        yield (
            "look",
            f"The goodput of rounds was {units.rate(goodput)}: {units.percent(goodput / rate)} of "
            f"the {units.rate(rate)} of the link to the receiver, {shown(receiver, 40)}.",
        )


def _done(facts: Facts) -> Iterator[Verdict]:
    summary = facts.result.summary
    count, done = pick(summary, "flows", "count"), pick(summary, "flows", "completed")
    if not count or done is None:
        return
    if done < count:
        were = agree(count - done, "was", "were")
        late = f"{units.count(count - done)} of {plural(count, 'flow')} {were} not complete"
        yield "bad", f"{late} when the run ended."
        return
    middle, tail = (seconds(pick(summary, "flows", "fct_us", q)) for q in ("p50", "p99"))
    if count == 1:
        took = "" if middle is None else f" after {units.span(middle)}"
        yield "good", f"The only flow was complete{took}."
        return
    took = ""
    if middle is not None and tail is not None:
        took = f": half within {units.span(middle)}, 99 % within {units.span(tail)}"
    yield "good", f"All {units.count(count)} flows are complete{took}."


def _jobs(facts: Facts) -> Iterator[Verdict]:
    summary = facts.result.summary
    count = pick(summary, "jobs", "count")
    middle, tail = (units.span(pick(summary, "jobs", "runtime_s", q)) for q in ("p50", "p99"))
    if count == 1:
        yield "good", f"The job took {middle}."
    elif count:
        yield (
            "good",
            f"{units.count(count)} jobs finished: half within {middle} of their submission, 99 % "
            f"within {tail}.",
        )


def _lost(facts: Facts) -> Iterator[Verdict]:
    packets, drops = words.carried(facts.result)
    if packets and not drops:
        yield "good", "No packet was dropped."
    elif packets:
        tiers = facts.links.group_by("tier").agg(pl.col("drops").sum())
        tier, most = tiers.sort(["drops", "tier"], descending=[True, False]).row(0)
        causes = words.drop_causes(facts.result)
        yield (
            "look",
            f"{plural(drops, 'packet was', 'packets were')} dropped, "
            f"{units.percent(drops / packets)} of all transmissions; "
            f"{units.percent(most / drops)} of {agree(drops, 'it', 'them')} on links from "
            f"{units.tier_words(str(tier))}." + (f" Causes: {causes}." if ", " in causes else ""),
        )


def _trimmed(facts: Facts) -> Iterator[Verdict]:
    """Yield a verdict on packets whose payload a queue has cut off: their data is sent again."""
    trimmed = pick(facts.result.summary, "rocev2", "trimmed")
    if trimmed:
        yield (
            "look",
            f"{plural(trimmed, 'packet')} reached the receiver trimmed, without payload, which the "
            "sender had to send again.",
        )


def _timeouts(facts: Facts) -> Iterator[Verdict]:
    counted = {
        name: pick(facts.result.summary, key, "timeouts") or 0
        for key, name in transports.NAMES.items()
    }
    said = [plural(n, f"{name} timeout") for name, n in counted.items() if n]
    done = finished(facts.result)
    hit = done.filter(pl.col("timeouts") > 0)
    if said and hit.height:
        share = units.percent(hit.height / done.height)
        yield (
            "look",
            f"There {agree(sum(counted.values()), 'was', 'were')} {' and '.join(said)}. "
            f"{plural(hit.height, 'flow')} ({share}) {agree(hit.height, 'was', 'were')} in "
            "progress on a connection during a timeout, which counts for "
            f"{agree(hit.height, 'this flow', 'each of these flows')}. "
            "Median completion time with and without a timeout: "
            f"{_by_purpose(hit, done)}.",
        )


def _by_purpose(hit: pl.DataFrame, done: pl.DataFrame) -> str:
    """Return median completion times of flows with and without a timeout as text.

    ``hit`` are flows with timeouts, ``done`` all complete flows. Flows of each workload and purpose
    are compared separately, because a shuffle takes longer than a request even without a timeout.
    """
    kind = ["workload", "purpose"]
    counts = hit.group_by(kind).len().sort(["len", *kind], descending=[True, False, False])
    several = done["workload"].n_unique() > 1
    said = []
    for workload, purpose, count in counts.head(_MOST_PURPOSES).iter_rows():
        like = done.filter((pl.col("workload") == workload) & (pl.col("purpose") == purpose))
        rest = like.filter(pl.col("timeouts") == 0)
        others = f"against {_median(rest)}" if rest.height else "and none without"
        words = [shown(workload, 30)] * several + [shown(purpose, 30)] * (purpose != "flow")
        noun = " ".join([*words, "flow"])
        said.append(
            f"{_median(like.filter(pl.col('timeouts') > 0))} {others} "
            f"({units.count(count)} of {plural(like.height, noun)})"
        )
    return "; ".join(said)


def _median(flows: pl.DataFrame) -> str:
    return units.span(seconds(percentile(flows["fct_us"].to_numpy(), 0.5)))


def _pauses(facts: Facts) -> Iterator[Verdict]:
    """Yield verdicts on a deadlock that ended the run, and on pauses by PFC."""
    stuck = deadlock(facts.result.summary)
    if stuck is not None:
        yield "bad", f"The run was {stuck}."
    paused = facts.result.pfc.filter(pl.col("pauses") > 0)
    if paused.height:
        most = paused.sort(["paused_s", "link"], descending=[True, False]).row(0, named=True)
        yield (
            "look",
            f"PFC paused ports {plural(float(paused['pauses'].sum()), 'time')}; "
            f"{facts.link(most['link'])} was paused for longest, "
            f"{units.percent(most['paused_s'] / facts.end)} of the time.",
        )


#: Utilisation (share of time) of the busiest link below which links were almost idle.
_IDLE = 0.02
#: Timeouts explain idle links if flows with timeouts have more than this share of the sum of all
#: completion times.
_WAITED = 0.5


def _bottleneck(facts: Facts) -> Iterator[Verdict]:
    links = facts.links.filter(pl.col("utilisation").is_finite())
    if links.height:
        busiest, full = (
            links.sort([column, "link"], descending=[True, False]).row(0, named=True)
            for column in ("utilisation", "queue_max_us")
        )
        used = busiest["utilisation"]
        if used == 0 and not words.carried(facts.result)[0]:
            yield "look", "No packet was sent."
            return
        idle = used < _IDLE and facts.flows.height > 0
        where = ", the queue of the host itself" if full["tier"] == "host-up" else ""
        yield (
            "look" if used > 0.9 or idle else "good",
            f"The busiest link, {shown(busiest['name'], 40)}, was sending {units.percent(used)} of "
            "the time; the longest wait in a queue was "
            f"{units.span(full['queue_max_us'] / 1e6)}, at {shown(full['name'], 40)}{where}."
            + (f" {_idle(facts)}" if idle else ""),
        )


def _idle(facts: Facts) -> str:
    """Return a sentence on almost idle links: timeouts as the reason, or what to measure."""
    done = finished(facts.result)
    waited, taken = (
        float(flows["fct_us"].sum()) for flows in (done.filter(pl.col("timeouts") > 0), done)
    )
    if waited > _WAITED * taken:
        return "Links were almost idle because senders waited for timeouts."
    return (
        "Links were almost idle. If the load comes in bursts, measure a window of the run "
        "(measure.window)."
    )


def _oversubscription(facts: Facts) -> Iterator[Verdict]:
    """Yield a verdict on each over-subscribed tier whose busiest link was almost idle."""
    if not facts.flows.height:
        return
    for below, above, ratio in words.oversubscribed(facts.links, words.upward_tiers(facts.links)):
        tier = facts.links.filter((pl.col("tier") == above) & pl.col("utilisation").is_finite())
        if not tier.height:
            continue
        top = tier.sort(["utilisation", "link"], descending=[True, False]).row(0, named=True)
        if top["utilisation"] < _IDLE:
            yield (
                "look",
                f"{words.oversubscription(below, above, ratio)}. But the busiest of these "
                f"links, {shown(top['name'], 40)}, was sending "
                f"{units.percent(top['utilisation'])} of the time: means over the run show no "
                "effect of the over-subscription.",
            )


def _host_cores(facts: Facts) -> list[str]:
    return host_cores.of_run(facts.result.summary, facts.links)


def _no_overlap(facts: Facts) -> list[str]:
    try:
        scenario = facts.result.scenario
    except (OSError, ValueError):  # a damaged folder
        return []
    return no_overlap.of_run(facts.flows.lazy(), facts.result.summary, scenario)


def _few_flows(facts: Facts) -> Iterator[Verdict]:
    """Yield a verdict if few flows take more than half of the run after all others have ended."""
    summary = facts.result.summary
    few = few_flows(
        facts.flows.lazy(), pick(summary, "flows", "count"), pick(summary, "simulated_s")
    )
    if few:
        yield "look", as_sentence(few)
