"""A bundle on disk: its manifest, the check of its files, and the repetition of its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from eastwest.bundle.archive import opened
from eastwest.bundle.form import Manifest
from eastwest.bundle.verify import Difference, verify

if TYPE_CHECKING:
    from eastwest.bundle.rerun import Compared
    from eastwest.sweep.executor import State


class Bundle:
    """A bundle: an archive that ``eastwest bundle`` has written, or the unpacked folder."""

    def __init__(self, path: str | Path, remarks: Sequence[str] = ()) -> None:
        self.path = Path(path)
        #: Sentences about what was left out, if this process has made the bundle.
        self.remarks = tuple(remarks)

    def __repr__(self) -> str:
        return f"Bundle({str(self.path)!r})"

    @cached_property
    def manifest(self) -> Manifest:
        """Content of ``bundle.json``: files and runs. Raises ``InputError`` if it is damaged."""
        with opened(self.path) as found:
            return found.manifest()

    def verify(self) -> list[Difference]:
        """Return the files that are missing, changed or not listed; an empty list means none.

        Nothing of the bundle is executed. Raises ``InputError`` where the bundle cannot be read.
        """
        return list(verify(self.path).differences)

    def rerun(
        self,
        only: Sequence[str] = (),
        *,
        quick: bool = False,
        jobs: int | None = None,
        inputs: str | Path | None = None,
        run_code: bool = False,
        keep: str | Path | None = None,
        progress: Callable[[State], None] = lambda _: None,
        done: Callable[[Compared], None] = lambda _: None,
    ) -> list[Compared]:
        """Simulate runs again, and return them with the result of the comparison of digests.

        ``only`` has beginnings or globs of the names of runs, or of the sets of runs of claims;
        ``quick`` repeats a part: the quick runs of a study, the first seed of each point of a
        sweep. ``jobs`` is the number of processes (0: runs are executed in this process).
        ``inputs`` is a folder with the input files that the bundle lacks. ``run_code`` allows the
        execution of the mechanisms in the bundle. Results are written to the folder ``keep``, a
        run store, whose runs are not simulated again; without it, they are removed. ``progress`` is
        called with the state of all runs, ``done`` with each finished run.

        Raises ``InputError`` where the bundle cannot be read, or needs code or inputs that the
        caller has not allowed or given.
        """
        from eastwest.bundle.rerun import Options, rerun  # noqa: PLC0415  starts processes

        return rerun(
            self.path,
            Options(
                only=only,
                quick=quick,
                jobs=jobs,
                inputs=None if inputs is None else Path(inputs),
                run_code=run_code,
                keep=None if keep is None else Path(keep),
                progress=progress,
                done=done,
            ),
        )
