"""Conclusions of a search: the Pareto front, and the recommended point or the missed limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eastwest.goals import judge
from eastwest.goals.form import Goal
from eastwest.optimize.search import CANDIDATE, Point, Search
from eastwest.stats import Interval, paired_interval
from eastwest.units import count


@dataclass(frozen=True)
class Binding:
    """A limit that finalists (points of the last stage) miss."""

    text: str
    #: Number of finalists that miss the limit.
    missed_by: int
    #: Least share by which a finalist misses the limit; None if a finalist keeps the limit.
    least: float | None


class Verdict:
    """Verdict of an optimisation: recommended point, Pareto front and missed limits.

    Only finalists, the points that were measured at the last stage, are considered.
    """

    def __init__(self, search: Search) -> None:
        self.search = search
        self.spec = search.spec
        self.last = len(search.spec.stages) - 1
        self.finalists = [p for p in search.points if self.last in p.runs]

    @cached_property
    def standings(self) -> dict[int, judge.Standing]:
        """Values by which finalists (points of the last stage) are ordered, by point number."""
        return {p.number: self.search.standing(p, self.last) for p in self.finalists}

    @cached_property
    def feasible(self) -> list[Point]:
        """Finalists (points of the last stage) that miss no limit."""
        return [p for p in self.finalists if self.standings[p.number].missed <= 0]

    @cached_property
    def front(self) -> list[Point]:
        """Pareto front: finalists that miss no limit, and that no other of them dominates."""
        standings = [self.standings[p.number] for p in self.feasible]
        first = judge.fronts(standings)[0] if standings else []
        return [self.search.points[s.number] for s in first]

    @cached_property
    def recommended(self) -> Point | None:
        """The point on the Pareto front with the least score; None if no point keeps all limits."""
        return min(self.front, key=lambda p: (self.score(p), p.number), default=None)

    @cached_property
    def alike(self) -> list[Point]:
        """Other points whose score is not significantly worse than that of the recommended point.

        With several goals, only points of the Pareto front are returned; with one goal, all points
        that keep the limits.
        """
        chosen = self.recommended
        if chosen is None:
            return []
        found = []
        for other in self.front if len(self.spec.goals) > 1 else self.feasible:
            if other is not chosen:
                apart = judge.score_difference(
                    self.spec.goals,
                    other.runs[self.last],
                    chosen.runs[self.last],
                    self._base,
                    self.spec.confidence,
                )
                if apart.low is None or apart.low <= 0:
                    found.append(other)
        return found

    @property
    def _base(self) -> dict[int, dict[str, float]]:
        return self.search.baseline.runs[self.last]

    def score(self, point: Point) -> float:
        """Return the mean score of a point over the seeds of the last stage; less is better.

        The score of a run is the weighted sum of log(goal / baseline) over the goals.
        """
        return judge.mean_score(self.spec.goals, point.runs[self.last], self._base)

    def told(self, point: Point, metric: str) -> judge.Told:
        """Return mean and change (from the baseline) of a metric for a finalist, with intervals."""
        return judge.told(metric, point.runs[self.last], self._base, self.spec.confidence)

    def kept(self, point: Point) -> list[judge.Kept]:
        """Return the result of each limit for a finalist: kept or missed, and by how much."""
        return self.search.kept(point, self.last)

    @cached_property
    def binding(self) -> list[Binding]:
        """Limits that finalists miss, the hardest first; empty if a finalist keeps all limits."""
        if self.feasible or not self.finalists:
            return []
        found = []
        for place, limit in enumerate(self.spec.limits):
            missed = [self.kept(p)[place].missed for p in self.finalists]
            beyond = [m for m in missed if m > 0]
            least = min(missed)
            found.append(Binding(limit.text(), len(beyond), least if least > 0 else None))
        found.sort(key=lambda b: (-(b.least or 0.0), -b.missed_by))
        return [b for b in found if b.missed_by]

    @cached_property
    def closest(self) -> Point | None:
        """Finalist with the least distance from the missed limits; None if one misses no limit."""
        if self.feasible:
            return None
        return min(
            self.finalists,
            key=lambda p: (self.standings[p.number].missed, p.number),
            default=None,
        )

    def reason(self) -> str:
        """Return sentences: why the recommended point is chosen, or why no point is."""
        chosen = self.recommended
        if chosen is None:
            return self._nothing()
        if len(self.feasible) == 1:
            said = "The recommended point is the only point that keeps the limits."
        elif len(self.front) == 1 and self.alike:
            said = "The recommended point has the best mean of all points that keep the limits."
        elif len(self.front) == 1:
            said = "The recommended point is better than every other point that keeps the limits."
        elif len(self.spec.goals) == 1:
            said = f"Of {_points(len(self.front))} on the front, this point has the best mean."
        else:
            weighted = len({goal.weight for goal in self.spec.goals}) > 1
            said = (
                f"Of {_points(len(self.front))} on the front, this point has the least product of "
                f"the ratios goal / baseline{', with their weights' * weighted}."
            )
        if chosen is self.search.baseline:
            said += " The recommended point is the baseline: no tried point is better."
        if self.alike:
            names = ", ".join(p.name for p in self.alike[:3])
            more = f" and {count(len(self.alike) - 3)} more" if len(self.alike) > 3 else ""
            said += f" With these seeds it does not differ significantly from {names}{more}."
        loose = [
            limit.text()
            for limit, kept in zip(self.spec.limits, self.kept(chosen), strict=True)
            if not kept.surely
        ]
        ample = [
            f"{limit.text()} by {_share(-kept.missed)}"
            for limit, kept in zip(self.spec.limits, self.kept(chosen), strict=True)
            if kept.surely and limit.bound and not limit.relative
        ]
        if ample:
            said += f" The recommended point keeps {'; '.join(ample)}."
        if loose:
            these = "; ".join(loose)
            said += f" On average the point keeps {these}; with these seeds, this is not certain."
        return said

    def _nothing(self) -> str:
        if not self.finalists:
            return "No point was measured in the last stage: all points failed before it."
        hardest = self.binding[0]
        if hardest.least is not None:
            said = (
                f"No point keeps the limits: {hardest.text} is missed by all "
                f"{_points(len(self.finalists))} of the last stage, by {_share(hardest.least)} at "
                "least."
            )
        else:
            limits = "; ".join(b.text for b in self.binding)
            said = f"Each limit is kept by some point, but no point keeps all limits: {limits}."
        closest = self.closest
        if closest is not None:
            missed = [
                f"{limit.metric} by {_share(kept.missed)}"
                for limit, kept in zip(self.spec.limits, self.kept(closest), strict=True)
                if kept.missed > 0
            ]
            said += f" The closest is {closest.name}: it misses {', '.join(missed)}."
        return said

    def beaten(self, candidate: Point) -> list[Point]:
        """Return the finalists that dominate a candidate; empty if the candidate is no finalist."""
        if candidate.number not in self.standings:
            return []
        ours = self.standings[candidate.number]
        return [p for p in self.finalists if judge.dominates(self.standings[p.number], ours)]

    def against(self, candidate: Point, goal: Goal) -> Interval | None:
        """Return the relative change of a goal's metric from a candidate to the recommended point.

        The result is the mean of (recommended point / candidate − 1), with its interval, over the
        seeds that both points have. Returns None without common seeds or a recommended point.
        """
        chosen = self.recommended
        if chosen is None:
            return None
        ours, theirs = chosen.runs[self.last], candidate.runs[self.last]
        pairs = [
            (ours[seed][goal.metric] / theirs[seed][goal.metric], 1.0)
            for seed in ours
            if seed in theirs and theirs[seed][goal.metric]
        ]
        if not pairs:
            return None
        return paired_interval([a for a, _ in pairs], [b for _, b in pairs], self.spec.confidence)

    def candidates(self) -> list[tuple[Point, str]]:
        """Return (candidate, text on the result) for each candidate, such as ``misses …``."""
        found = []
        for point in self.search.points:
            if point.origin != CANDIDATE:
                continue
            if point.failure:
                found.append((point, f"failed: {point.failure}"))
                continue
            beaten = self.beaten(point)
            if point is self.recommended:
                said = "is the recommended point"
            elif point in self.front:
                said = "is on the front: no point is better in one goal and as good in all others"
            elif self.standings[point.number].missed > 0:
                missed = [
                    limit.text()
                    for limit, kept in zip(self.spec.limits, self.kept(point), strict=True)
                    if kept.missed > 0
                ]
                said = f"misses {'; '.join(missed)}"
            else:
                said = f"is beaten by {_points(len(beaten))} (as good or better in every goal)"
                if self.recommended in beaten:
                    said += ", the recommended one among them"
            found.append((point, said))
        return found

    def as_json(self, point: Point) -> dict[str, Any]:
        """Return a finalist as a JSON object: settings, goals, limits and score."""
        limits = [
            {
                "limit": limit.text(),
                "missed": kept.missed,
                "kept": kept.missed <= 0,
                "surely": kept.surely,
                "beyond": kept.beyond,
                "value": judge.as_json(kept.told.value),
                "change": judge.as_json(kept.told.change),
            }
            for limit, kept in zip(self.spec.limits, self.kept(point), strict=True)
        ]
        goals = []
        for goal in self.spec.goals:
            told = self.told(point, goal.metric)
            goals.append(
                {
                    "metric": goal.metric,
                    "value": judge.as_json(told.value),
                    "change": judge.as_json(told.change),
                }
            )
        return {
            "point": point.number,
            "name": point.name,
            "origin": point.origin,
            "settings": point.settings,
            "goals": goals,
            "limits": limits,
            "score": self.score(point),
        }


def _points(number: int) -> str:
    return f"{count(number)} point{'s' * (number != 1)}"


def _share(share: float) -> str:
    return f"{100 * share:.3g} %" if share < 1e6 else "any share"


def names(points: Sequence[Point]) -> list[str]:
    """Return the name of each point."""
    return [point.name for point in points]
