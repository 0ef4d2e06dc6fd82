"""Verdicts: whether measured numbers support a claim.

A metric is *undecided* if its 95 % interval lies partly inside the band and partly outside: with
more seeds, the metric may hold or differ. Otherwise it *holds* if its value is in the band, ends
included, and *differs* if not. A metric that could not be measured is *not run*. A claim *differs*
if one of its metrics differs. Otherwise it is *not run* if one of its metrics is not run; otherwise
it is *undecided* if one of its metrics is undecided. It *holds* if all metrics hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eastwest.claims.measures import Measured
from eastwest.claims.spec import Claim, Explanation, Metric

HOLDS, DIFFERS, UNDECIDED, NOT_RUN = "holds", "differs", "undecided", "not run"
#: Classes of differences that need a proof: runs in which only the supposed cause is changed, and
#: the number is then in the band.
_SHOWN_BY_RUNS = ("source leaves it open", "our model")
#: Class of a claim that differs if its file has no class, or if runs do not confirm the class.
NOT_EXPLAINED = "not explained"


@dataclass(frozen=True)
class Part:
    """A metric of a claim with its measured value, or (``why_not``) why there is no value."""

    metric: Metric
    measured: Measured | None
    why_not: str = ""

    @property
    def verdict(self) -> str:
        """Verdict on the metric: ``holds``, ``differs``, ``undecided`` or ``not run``."""
        if self.measured is None:
            return NOT_RUN
        if self.borderline:
            return UNDECIDED
        return HOLDS if self.inside else DIFFERS

    @property
    def inside(self) -> bool:
        """Whether the measured value is in the band; its interval is not considered."""
        if self.measured is None:
            return False
        low, high = self._band
        return low <= self.measured.value * self.metric.factor <= high

    @property
    def _band(self) -> tuple[float, float]:
        low = -math.inf if self.metric.low is None else self.metric.low
        return low, math.inf if self.metric.high is None else self.metric.high

    @property
    def borderline(self) -> bool:
        """Whether the 95 % interval is partly inside the band and partly outside."""
        value, low, high = self.numbers()
        if value is None or low is None or high is None:
            return False
        least, most = self._band
        return low <= most and high >= least and not least <= low <= high <= most

    def numbers(self) -> tuple[float | None, float | None, float | None]:
        """Return (value, lower end, upper end of the interval) in the metric's unit.

        An unknown number is None.
        """
        if self.measured is None:
            return None, None, None
        scaled = [
            None if number is None else number * self.metric.factor
            for number in (self.measured.value, self.measured.low, self.measured.high)
        ]
        value, *ends = scaled
        known = sorted(end for end in ends if end is not None)
        low, high = known if len(known) == 2 else (None, None)
        return value, low, high

    def text(self) -> str:
        """Return the measurement as text, such as ``9.6 % (95 %: 9.1 to 10.1)``."""
        if self.measured is None:
            return self.why_not
        value, low, high = self.numbers()
        if self.measured.text and _finite(value) is None:
            return self.measured.text
        unit = f" {self.metric.unit}" if self.metric.unit else ""
        shown = f"{number(value, self.metric.digits)}{unit}"
        if low is not None and high is not None and low != high:
            ends = (number(low, self.metric.digits), number(high, self.metric.digits))
            shown += f" (95 %: {ends[0]} to {ends[1]})"
        return f"{self.measured.text} ({shown})" if self.measured.text else shown

    @classmethod
    def kept(cls, metric: Metric, content: Mapping[str, Any]) -> Part:
        """Return the part of a stored result; ``content`` is an object that ``as_json`` has made.

        The part has no rows.
        """
        ends = (content["value"], content["low"], content["high"])
        value, low, high = (None if end is None else end / metric.factor for end in ends)
        if content["verdict"] == NOT_RUN:
            return cls(metric, None, content["measured"])
        plain = Measured(math.nan if value is None else value, low, high, content["seeds"])
        shown = cls(metric, plain).text()
        words = str(content["measured"]).removesuffix(shown).removesuffix(f" ({shown})")
        return cls(metric, replace(plain, text=words))

    def band(self) -> str:
        """Return the band as text, such as ``at least 5 %``; empty where the metric has none."""
        low, high = self.metric.low, self.metric.high
        unit = f" {self.metric.unit}" if self.metric.unit else ""
        if low is None and high is None:
            return ""
        if low is None or high is None:
            end = number(low if high is None else high, 9)
            return f"{'at least' if high is None else 'at most'} {end}{unit}"
        return f"{number(low, 9)}{unit}" if low == high else f"{low:g} to {high:g}{unit}"

    def as_json(self) -> dict[str, Any]:
        """Return the part as a JSON object without rows; numbers that are not finite are null."""
        value, low, high = (_finite(each) for each in self.numbers())
        return {
            "name": self.metric.name,
            "measured": self.text(),
            "value": value,
            "low": low,
            "high": high,
            "unit": self.metric.unit,
            "band": {"low": self.metric.low, "high": self.metric.high},
            "verdict": self.verdict if self.band() else None,
            "borderline": self.borderline,
            "seeds": self.measured.seeds if self.measured else 0,
        }


@dataclass(frozen=True)
class Explained:
    """An explanation of a difference, with the measured metrics of its runs."""

    explanation: Explanation
    parts: Sequence[Part]

    @property
    def borne_out(self) -> bool:
        """Whether all metrics of the explanation were measured and lie in their bands, if any."""
        return all(part.inside for part in self.parts)

    @property
    def kind(self) -> str:
        """Class of the difference; *not explained* if the proof of the class is missing.

        Two classes need a proof: *source leaves it open* and *our model*. Runs prove the class if
        only this cause is changed, and the number is then in a band.
        """
        shown = any(part.band() for part in self.parts) and self.borne_out
        if self.explanation.kind in _SHOWN_BY_RUNS and not shown:
            return NOT_EXPLAINED
        return self.explanation.kind

    def text(self) -> str:
        """Return the explanation and its measured numbers as text."""
        shown = "; ".join(f"{part.metric.name} = {part.text()}" for part in self.parts)
        doubt = "" if self.borne_out else " [its runs do not confirm this]"
        return f"{self.explanation.text} {shown}.{doubt}" if shown else self.explanation.text

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as a JSON object, with the measured metrics of its runs."""
        return {
            "of": list(self.explanation.of),
            "class": self.kind,
            "text": self.explanation.text,
            "borne_out": self.borne_out,
            "metrics": [part.as_json() for part in self.parts],
        }


@dataclass(frozen=True)
class Outcome:
    """Result of a claim: the measured metrics (``parts``) and the explanations of differences."""

    claim: Claim
    parts: Sequence[Part]
    explained: Sequence[Explained]
    quick: bool
    #: Number of seeds of the claim's sweeps that were run, by the name of the runs.
    run_seeds: Mapping[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Verdict on the claim: ``holds``, ``differs``, ``undecided`` or ``not run``."""
        verdicts = [part.verdict for part in self.parts]
        return next((word for word in (DIFFERS, NOT_RUN, UNDECIDED) if word in verdicts), HOLDS)

    @property
    def classes(self) -> list[str]:
        """Classes of the reasons why the claim differs; empty if it does not differ."""
        if self.verdict != DIFFERS:
            return []
        kinds = [explained.kind or NOT_EXPLAINED for explained in self.explained]
        return list(dict.fromkeys(kinds)) or [NOT_EXPLAINED]

    @property
    def seeds(self) -> int:
        """Smallest number of seeds of the claim's measured metrics; 0 if none was measured."""
        return min((part.measured.seeds for part in self.parts if part.measured), default=0)

    def _repr_html_(self) -> str:
        """Return the verdict and the numbers of the claim as HTML, which notebooks show."""
        from eastwest import cards  # noqa: PLC0415  only for notebooks

        return cards.of_outcome(self)

    def measured(self) -> str:
        """Return the measured values of all metrics as text."""
        if len(self.parts) == 1:
            return self.parts[0].text()
        return "; ".join(f"{part.metric.name}: {part.text()}" for part in self.parts)

    def explanation(self) -> str:
        """Return why the claim differs, or other remarks on it, as text."""
        sentences = []
        if self.verdict == DIFFERS:
            missed = [part for part in self.parts if part.verdict == DIFFERS]
            bands = ", ".join(f"{part.metric.name} ({part.band()})" for part in missed)
            sentences.append(f"Outside the band: {bands}.")
            sentences += [explained.text() for explained in self.explained]
        close = [part.metric.name for part in self.parts if part.borderline]
        if close:
            sentences.append(f"The interval reaches across the band's end: {', '.join(close)}.")
        if self.verdict == HOLDS and self.claim.by_construction:
            sentences.append(f"Holds by construction: {self.claim.by_construction}")
        if self.quick:
            sentences.append("This is a quick run, with fewer seeds and points than the claim has.")
        return " ".join(sentences)

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object, with metrics and explanations, as for ``--json``."""
        value, low, high = (_finite(each) for each in self.parts[0].numbers())
        return {
            "id": self.claim.id,
            "published": self.claim.published,
            "measured": self.measured(),
            "value": value,
            "low": low,
            "high": high,
            "verdict": self.verdict,
            "explanation": self.explanation(),
            "seeds": self.seeds,
            "profile": self.claim.profile,
            "reading": self.claim.reading,
            "classes": self.classes,
            "by_construction": bool(self.claim.by_construction),
            "quick": self.quick,
            "metrics": [part.as_json() for part in self.parts],
            "explanations": [explained.as_json() for explained in self.explained],
            "run_seeds": dict(self.run_seeds),
        }


def _finite(value: float | None) -> float | None:
    """Return the value, or None where it is missing or not finite."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float | None, digits: int) -> str:
    """Return a number as text without exponent, rounded to ``digits`` significant digits.

    Digits before the decimal point are not rounded to zeros. None becomes a dash.
    """
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    shown = f"{value:,.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
