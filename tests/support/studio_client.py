"""A studio on a port of this machine, and requests to it, for tests."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from eastwest.studio import Session

#: A scenario that takes long enough that a test can stop it, and does not end in a test.
LONG = """schema = 1
name = "long"
duration = "10000 s"
[fabric]
kind = "star"
hosts = 9
host_rate = "10 Gbit/s"
[[workload]]
name = "many"
kind = "poisson"
load = "90 %"
sizes = "web-search"
flows = 1000000000
"""


class Answer(NamedTuple):
    """Response of the studio: status, headers (names in lower case), and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Client:
    """Requests to a studio, with its token unless a test gives other headers."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.folder = session.folder.path

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        token: bool = True,
    ) -> Answer:
        """Return the response to a request; ``body`` is sent as JSON, or unchanged if bytes."""
        sent = {"X-Eastwest-Token": self.session.token} if token else {}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.session.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, data, {**sent, **(headers or {})})
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, answer.read())

    def get(self, path: str, /) -> Any:
        """Return the JSON of a GET request that must be allowed."""
        answer = self.ask("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def post(self, address: str, /, **body: object) -> Any:
        """Return the JSON of a POST request that must be allowed."""
        answer = self.ask("POST", address, body)
        assert answer.status == 200, answer
        return answer.json

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """Return status and error of a request that must be refused."""
        answer = self.ask(method, path, body)
        assert answer.status >= 400, answer
        return answer.status, answer.json["error"]

    def start(self, text: str, **more: object) -> int:
        """Add a run and return its number."""
        return int(self.post("/api/runs", text=text, **{"label": "run", **more})["run"])

    def stream(self, run: int) -> list[dict[str, Any]]:
        """Return all objects of the stream of a run, which ends with the run."""
        lines = self.ask("GET", f"/api/runs/{run}/stream").body.splitlines()
        return [json.loads(line) for line in lines]

    def end(self, text: str, **more: object) -> dict[str, Any]:
        """Run a scenario and return the last object of its stream."""
        return self.stream(self.start(text, **more))[-1]


@contextlib.contextmanager
def studio(folder: Path, file: str | None = None) -> Iterator[Client]:
    """Yield a client of a studio that serves a folder until the end of the block."""
    with Session(folder, file) as session:
        thread = threading.Thread(target=session.run)
        thread.start()
        try:
            yield Client(session)
        finally:
            session.stop()
            thread.join()
