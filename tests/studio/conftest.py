"""One studio for all tests of a module, because its worker process takes a second to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from studio_client import Client, studio


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Yield a client of a studio that serves an empty folder."""
    with studio(tmp_path_factory.mktemp("folder")) as made:
        yield made
