"""Holds a queue at a set point during backups: writes ``results/backup.csv`` and a picture.

``python papers/control/backup.py`` runs three seeds with each of four controllers: PI, H-infinity,
and a receding horizon that knows the backups in advance or does not (three minutes).
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import compare
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import eastwest as ew
from eastwest.models import decisions
from eastwest.plot import picture
from eastwest.plot.style import MUTED, color, style

#: Backups of scenarios/backup.toml: start of the first in ms, duration of each in ms, their number,
#: and time between two starts in ms.
FIRST, LASTS, COUNT, EVERY = 1500, 350, 5, 700
#: Time after the start, and after the end, of a backup that is analysed, in ms.
AFTER = 100
DECLARED: dict[str, str | bool | int] = {
    "fabric.queue.declared_share": "0.3",
    "fabric.queue.declared_from_us": 1000 * FIRST,
    "fabric.queue.declared_for_us": 1000 * LASTS,
    "fabric.queue.declared_every_us": 1000 * EVERY,
}
#: Settings of the queue in each case. PI has the study's slow gains, without prediction.
CASES: dict[str, dict[str, str | bool | int]] = {
    "PI": {
        "fabric.queue.kind": "predictive",
        "fabric.queue.look_ahead": False,
        "fabric.queue.proportional": "0.00003",
        "fabric.queue.integral": "0.0003",
    },
    "H-infinity": {"fabric.queue.kind": "hinf-loop"},
    "receding horizon, not declared": {},
    "receding horizon, declared": DECLARED,
}


def run(settings: dict[str, str | bool | int], seed: int) -> NDArray[np.float64]:
    """Return the queue length in packets at each millisecond of a run."""
    with tempfile.TemporaryDirectory() as folder:
        result = ew.run(
            compare.HERE / "scenarios" / "backup.toml",
            set=settings,
            seed=seed,
            out=Path(folder) / "r",
            mechanisms=[compare.HERE / "predictive.py", decisions.__file__],
        )
        return compare.waiting(result, "switch0->h8", -1)


def main() -> None:
    """Run all cases, write the table and draw the picture."""
    rows, means = [], {}
    for name, settings in CASES.items():
        runs = [run(settings, seed) for seed in compare.SEEDS]
        calm = [queue[1000:FIRST] for queue in runs]
        begins = [FIRST + EVERY * number for number in range(COUNT)]
        cycles = np.array([queue[at - 50 : at + EVERY - 50] for queue in runs for at in begins])
        begun = cycles[:, 50 : 50 + AFTER]
        ended = cycles[:, 50 + LASTS : 50 + LASTS + AFTER]
        means[name] = cycles.mean(axis=0)
        rows.append(
            {
                "decision": name,
                "queue": round(statistics.mean(float(one.mean()) for one in calm), 2),
                "deviation": round(statistics.mean(float(one.std()) for one in calm), 2),
                "highest_after_begin": round(float(begun.max(axis=1).mean()), 1),
                "mean_after_begin": round(float(begun.mean()), 1),
                "empty_after_end": round(float((ended == 0).mean()), 3),
                "deviation_in_all": round(float(cycles.std()), 2),
                "empty_in_all": round(float((cycles == 0).mean()), 4),
            }
        )
        print(rows[-1], flush=True)
    compare.write(compare.HERE / "results" / "backup.csv", rows)
    picture.save(draw(means), compare.HERE / "results" / "backup.png")


def draw(means: dict[str, NDArray[np.float64]]) -> Figure:
    """Draw the mean queue over the time since the start of a backup."""
    with style():
        figure = Figure(figsize=(9.2, 3.8), layout="constrained")
        axes = figure.subplots()
        for place, (name, queue) in enumerate(means.items()):
            axes.plot(np.arange(len(queue)) - 50, queue, color=color(place), lw=1, label=name)
        axes.axhline(50, color=MUTED, lw=1, ls="--")
        axes.axvspan(0, LASTS, color=MUTED, alpha=0.15, lw=0)
        axes.set_xlabel("time from the beginning of the backup, ms (grey: it sends)")
        axes.set_ylabel("queue, packets")
        axes.set_title("Mean queue of 15 backups; dashed: the set point")
        axes.set_ylim(bottom=0)
        axes.legend()
    return figure


if __name__ == "__main__":
    main()
