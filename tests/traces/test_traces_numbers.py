"""New numbers of jobs stored on disk, compared with a list in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eastwest.traces import numbers


@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 23])
def test_numbers_agree_with_a_list(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "_PIECE", piece)
    chance = np.random.default_rng(3)
    jobs = 100
    order = chance.permutation(jobs).astype(np.uint32)
    found = numbers.Numbers(tmp_path / "numbers", jobs)
    for first in range(0, jobs, 30):
        found.put(order[first : first + 30], first)
    expected = np.empty(jobs, np.uint32)
    expected[order] = np.arange(jobs)
    asked = chance.integers(0, jobs, 250).astype(np.uint32)
    assert (found.of(asked) == expected[asked]).all()
    assert found.of(np.array([], np.uint32)).size == 0
