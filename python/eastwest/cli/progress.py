"""The progress bar of a running simulation."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from eastwest import core
from eastwest.core import TELLING_SHARE, share_done
from eastwest.run import peak_rss_mb
from eastwest.units import clean, count, size, span


def describe(progress: core.Progress) -> str:
    """Simulated time, jobs done, packet-hops per second and time left."""
    parts = [span(progress["simulated_s"])]
    if progress["jobs_total"]:
        parts.append(f"{count(progress['jobs_done'])}/{count(progress['jobs_total'])} done")
    wall = progress["wall_s"]
    if wall > 0:
        parts.append(f"{count(round(progress['packet_hops'] / wall))} hops/s")
    share = share_done(progress)
    if share is not None and share >= TELLING_SHARE:
        parts.append(f"{span(max(0, round(wall * (1 - share) / share)))} left")
    return " · ".join(parts)


class Bar:
    """A bar on a terminal's standard error; silent where that is not a terminal.

    With ``estimate``, a run that has gone on for a second, and far enough to tell, says how long it
    will take, terminal or not: nothing was known of it before. Mostly a bound, as the last flows of
    many finish together. The bar draws only when the simulator reports, so that no second thread
    takes time from it.
    """

    def __init__(self, console: Console, label: str, estimate: bool = False) -> None:
        self._shown = console.is_terminal
        self._console = console
        self._label = label
        self._estimate = estimate
        self._progress = Progress(
            TextColumn("{task.fields[label]}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not self._shown,
        )
        self._task: TaskID = self._progress.add_task("", total=None, label=label)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, progress: core.Progress) -> None:
        """Show how far the simulation has come."""
        share = share_done(progress)
        wall_s = progress["wall_s"]
        if self._estimate and share and share >= TELLING_SHARE and wall_s >= 1:
            self._estimate = False
            whole = f"up to {span(wall_s / share)}, {size(peak_rss_mb() * 1e6)} or more"
            text = f"{clean(self._label, 60)}: {whole} of memory (from its first {span(wall_s)})"
            self._console.print(text, style="dim", markup=False)
        if not self._shown:
            return
        if share is None:
            self._progress.update(self._task, description=describe(progress), total=None)
        else:
            self._progress.update(
                self._task, description=describe(progress), total=1.0, completed=share
            )
        self._progress.refresh()
