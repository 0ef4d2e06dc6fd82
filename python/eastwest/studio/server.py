"""Server of the studio: addresses, and the rules by which it refuses requests.

The server listens on 127.0.0.1. Every address needs the token of the session, which only the page
knows. Requests with a foreign ``Host`` or ``Origin`` are refused, so that no other page of the
browser can use the server (DNS rebinding, cross-site requests).
"""

from __future__ import annotations

import asyncio
import secrets
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from eastwest import core, shipped
from eastwest.errors import InputError, in_one_line
from eastwest.report.compare import comparison
from eastwest.report.single import single
from eastwest.results import Result
from eastwest.run import Source
from eastwest.studio import checks, explaining, files
from eastwest.studio.complete import complete, hover
from eastwest.studio.editing import edit
from eastwest.studio.export import command, zipped
from eastwest.studio.files import Folder, Text
from eastwest.studio.page import page
from eastwest.studio.refused import RefusedError
from eastwest.studio.runs import Runs
from eastwest.studio.worker import Control, Task
from eastwest.units import clean

#: Maximum number of bytes of the body of a request.
MOST_BODY = 1_100_000
_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NO_CONTENT_POLICY = "default-src 'none'; frame-ancestors 'none'"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Number(Convertor[int]):
    """Number of a run in an address: unlike Starlette's ``int``, it has at most nine digits."""

    regex = "[0-9]{1,9}"

    def convert(self, value: str) -> int:
        """Return the number that a part of an address names."""
        return int(value)

    def to_string(self, value: int) -> str:
        """Return the part of an address for a number."""
        return str(value)


register_url_convertor("number", _Number())


class Json(Response):
    """Response with a value as JSON; NaN and infinities become null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the value as bytes."""
        return to_json(content)


def to_json(content: Any) -> bytes:
    """Return a value as one line of JSON."""
    return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS, default=str)


def refused(status: int, message: str) -> Json:
    """Return the response to a request that is refused."""
    return Json({"error": message}, status)


class Guard:
    """Wrapper of an application that refuses requests without the token or from other pages."""

    def __init__(self, app: App, token: str, hosts: Callable[[], set[str]]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on with a limited body and security headers."""
        if scope["type"] != "http":
            return

        async def secured(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                there = {name.lower() for name, _ in headers}
                more = {**_SECURITY, "Content-Security-Policy": _NO_CONTENT_POLICY}
                headers += [
                    (name.lower().encode(), value.encode())
                    for name, value in more.items()
                    if name.lower().encode() not in there
                ]
                message = {**message, "headers": headers}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, secured)
            return
        body = await _body(receive)
        if body is None:
            await refused(413, "the request is larger than 1 MB")(scope, receive, secured)
            return
        await self._app(scope, _replay(body, receive), secured)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the response by which a request is refused; None if it is allowed."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = self._hosts()
        if headers.get("host", []) not in [[host] for host in hosts]:
            return refused(403, "this server answers only requests to its own address")
        origins = headers.get("origin", [])
        if any(origin not in {f"http://{host}" for host in hosts} for origin in origins):
            return refused(403, "this server answers only requests of its own page")
        length = headers.get("content-length", ["0"])[0]
        if length.isdecimal() and (len(length) > 12 or int(length) > MOST_BODY):
            return refused(413, "the request is larger than 1 MB")
        given = headers.get("x-eastwest-token", [])
        if scope["method"] == "GET" and not given:
            query = scope.get("query_string", b"").decode("latin-1")
            try:
                given = parse_qs(query, max_num_fields=40).get("token", [])
            except ValueError:
                return refused(400, "the address has too many parts")
        if len(given) != 1 or not secrets.compare_digest(given[0].encode(), self._token.encode()):
            return refused(
                403, "the token of this session is missing: open the address that the command shows"
            )
        return None


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        part = message.get("body", b"")
        size += len(part)
        if size > MOST_BODY:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that passes a received body on, and then messages of ``receive``."""
    waiting = [body]

    async def replayed() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


class Api:
    """Functions that answer the requests of the page."""

    def __init__(self, folder: Folder, opened: Text, runs: Runs) -> None:
        self.folder = folder
        self.opened = opened
        self.runs = runs
        self.page = page()

    def routes(self) -> list[Route]:
        """Return the addresses of the server with the functions that answer them."""
        table: list[tuple[str, str, Callable[..., Any]]] = [
            ("GET", "/", self.index),
            ("GET", "/api/state", self.state),
            ("GET", "/api/file", self.file),
            ("PUT", "/api/file", self.save),
            ("POST", "/api/check", self.check),
            ("POST", "/api/complete", self.complete),
            ("POST", "/api/hover", self.hover),
            ("POST", "/api/topology", self.edit),
            ("POST", "/api/runs", self.add_run),
            ("GET", "/api/runs", self.list_runs),
            ("GET", "/api/runs/{run:number}", self.end_of_run),
            ("DELETE", "/api/runs/{run:number}", self.delete_run),
            ("GET", "/api/runs/{run:number}/stream", self.stream),
            ("POST", "/api/runs/{run:number}/control", self.control),
            ("GET", "/api/runs/{run:number}/flows", self.flows),
            ("POST", "/api/runs/{run:number}/explain", self.explain),
            ("GET", "/api/runs/{run:number}/report", self.report),
            ("GET", "/api/runs/{run:number}/command", self.command),
            ("GET", "/api/runs/{run:number}/result.zip", self.result),
            ("GET", "/api/compare", self.compare),
            ("GET", "/api/difference", self.difference),
        ]
        return [
            Route(path, _answering(answer, self.runs), methods=[method])
            for method, path, answer in table
        ]

    def index(self, _: Request) -> Response:
        """Return the page."""
        return HTMLResponse(self.page.html, headers={"Content-Security-Policy": self.page.policy})

    def state(self, _: Request) -> Any:
        """Return the version, the folder, its scenarios, and the scenario that was opened."""
        return {
            "version": core.version(),
            "folder": self.folder.shown,
            "files": self.folder.listed(),
            "shipped": files.shipped_list(),
            "opened": self.opened.told(),
        }

    def file(self, request: Request) -> Any:
        """Return the text of a scenario of the folder, or of a shipped one."""
        query = request.query_params
        if "shipped" in query:
            return files.read_shipped(query["shipped"]).told()
        return self.folder.read(query.get("path")).told()

    def save(self, body: dict[str, Any]) -> Any:
        """Write a scenario file."""
        return {"hash": self.folder.write(body.get("path"), body.get("text"), body.get("hash"))}

    def check(self, body: dict[str, Any]) -> Any:
        """Return problems, fabric and numbers of a scenario."""
        return checks.check(self._text(body), _overrides(body), self.folder)

    def complete(self, body: dict[str, Any]) -> Any:
        """Return the completions at an offset of a scenario text."""
        return complete(*_cursor(body))

    def hover(self, body: dict[str, Any]) -> Any:
        """Return the setting at an offset of a scenario text."""
        return hover(*_cursor(body))

    def edit(self, body: dict[str, Any]) -> Any:
        """Write a topology file, and return the scenario that reads it."""
        return edit(body, self.folder)

    def add_run(self, body: dict[str, Any]) -> Any:
        """Add a run to the queue, and return its number."""
        text = self._text(body)
        seed = body.get("seed")
        if seed is not None and (type(seed) is not int or not 0 <= seed < 2**63):
            raise RefusedError(400, "seed: expected a whole number from 0 on")
        label = body.get("label") or ""
        task = Task(
            run=0,
            source=checks.source(text),
            overrides=_overrides(body),
            seed=seed,
            out=Path(),
            live=_flag(body, "live"),
            frame_s=_positive(body, "frame_s"),
            speed=_positive(body, "speed"),
            paused=_flag(body, "paused"),
        )
        run = self.runs.add(
            task, clean(str(label), 200), _flag(body, "keep"), _flag(body, "replace")
        )
        return {"run": run.number}

    def list_runs(self, _: Request) -> Any:
        """Return all runs, the newest first."""
        return self.runs.listed()

    def end_of_run(self, request: Request) -> Any:
        """Return the end of a run. Raises ``RefusedError`` while the run goes on."""
        run = self.runs.get(request.path_params["run"])
        if run.end is None:
            raise RefusedError(409, f"run {run.number} has not ended: it is {run.state}")
        return {"kind": "end", **run.end}

    def delete_run(self, request: Request) -> Any:
        """Remove a run and its result."""
        self.runs.delete(request.path_params["run"])
        return {}

    async def stream(self, request: Request) -> Response:
        """Return the states of a run as lines of JSON until its end."""
        number = request.path_params["run"]
        self.runs.get(number)

        async def lines() -> AsyncIterator[bytes]:
            async for each in self.runs.stream(number):
                yield to_json(each) + b"\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    def control(self, request: Request, body: dict[str, Any]) -> Any:
        """Pause, step or stop a run, or change its speed."""
        number = request.path_params["run"]
        if "speed" in body:
            control = Control(number, speed=[_positive(body, "speed")])
        elif _flag(body, "stop"):
            control = Control(number, stop=True)
        elif "step" in body:
            control = Control(number, step=_positive(body, "step"))
        elif type(body.get("pause")) is bool:
            control = Control(number, pause=body["pause"])
        else:
            raise RefusedError(400, "expected one of pause, step, speed and stop")
        self.runs.control(number, control)
        return {}

    def flows(self, request: Request) -> Any:
        """Return the slowest flows of a run, or those that lost packets on a link."""
        link = _whole_numbers(request, "link", most=1)
        top = _whole_numbers(request, "top", most=1)
        return explaining.flows(
            self._result(request),
            link[0] if link else None,
            top[0] if top else 20,
            request.query_params.get("workload"),
        )

    def explain(self, request: Request, body: dict[str, Any]) -> Any:
        """Return the explanation of an object of a run."""
        return explaining.explained(
            self._result(request),
            body.get("kind"),
            body.get("id"),
            body.get("workload"),
            lambda _: self.runs.check_open(),
        )

    def report(self, request: Request) -> Response:
        """Return the report of a run as a page."""
        run = self.runs.get(request.path_params["run"])
        return _framed(single(self._result(request), command(run.task)))

    def compare(self, request: Request) -> Response:
        """Return the page that compares runs."""
        return _framed(comparison(self._results(request, least=2)))

    def difference(self, request: Request) -> Any:
        """Return the story of the first difference of two runs."""
        first, second = self._results(request, least=2, most=2)
        return explaining.first_difference(first, second)

    def command(self, request: Request) -> Any:
        """Return the command line that repeats a run."""
        run = self.runs.get(request.path_params["run"])
        return {"command": command(run.task), "note": self._unsaved(run.task.source)}

    def result(self, request: Request) -> Response:
        """Return the result folder of a run as a zip file."""
        result = self._result(request)
        name = f"run-{request.path_params['run']}"
        packed = zipped(result, name, self.runs.folder)
        return FileResponse(
            packed,
            media_type="application/zip",
            filename=f"{name}.zip",
            background=BackgroundTask(packed.unlink, missing_ok=True),
        )

    def _unsaved(self, source: Source) -> str | None:
        """Return a note if the text of a run is not that of the file in its command line."""
        found = shipped.find(source.label)
        try:
            if found is not None:
                saved = found.read_text(encoding="utf-8")
            else:
                saved = self.folder.read(source.label).text
        except RefusedError:
            saved = None
        if saved == source.text:
            return None
        return f"Save the scenario as {clean(source.label, 100)} first: the run has another text."

    def _result(self, request: Request) -> Result:
        return self.runs.result(request.path_params["run"])

    def _results(self, request: Request, least: int, most: int = 12) -> list[Result]:
        """Return the results of the runs that the query ``runs`` of a request names."""
        numbers = _whole_numbers(request, "runs", most=most)
        if len(numbers) < least or len(set(numbers)) < len(numbers):
            raise RefusedError(400, f"runs: expected {least} to {most} different runs")
        return [self.runs.result(number) for number in numbers]

    def _text(self, body: dict[str, Any]) -> Text:
        """Return the scenario in the body of a request."""
        text, path, shipped = body.get("text"), body.get("path"), body.get("shipped")
        if not isinstance(text, str):
            raise RefusedError(400, "text: expected the text of the scenario")
        if path is None and shipped is not None:
            shipped = files.read_shipped(shipped).shipped
        return Text(text, self.folder.base(path, shipped), path, None if path else shipped)


def _framed(html: str) -> Response:
    """Return a report for a frame of the page, in which it has no access to the studio."""
    policy = "sandbox allow-scripts; frame-ancestors 'self'"
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})


def _whole_numbers(request: Request, name: str, most: int = 64) -> list[int]:
    """Return the numbers, separated by commas, of a part of a request's query."""
    given = request.query_params.get(name, "")
    parts = given.split(",") if given else []
    if len(parts) > most or any(not (p.isascii() and p.isdecimal() and len(p) < 10) for p in parts):
        raise RefusedError(400, f"{name}: expected at most {most} whole numbers")
    return [int(part) for part in parts]


def _cursor(body: dict[str, Any]) -> tuple[str, int]:
    """Return the text and the offset of a request."""
    text, offset = body.get("text"), body.get("offset")
    if not isinstance(text, str) or type(offset) is not int:
        raise RefusedError(400, "expected text, and offset in characters")
    return text, offset


def _flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name, False)
    if value is not None and not isinstance(value, bool):
        raise RefusedError(400, f"{name}: expected true or false")
    return bool(value)


def _positive(body: dict[str, Any], name: str) -> float | None:
    """Return a number above 0 of the body of a request; None where it is null or absent."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e12:
        raise RefusedError(400, f"{name}: expected a number above 0")
    return float(value)


def _overrides(body: dict[str, Any]) -> core.Overrides:
    """Return the settings that a request changes."""
    given = body.get("set")
    given = [] if given is None else given
    well = isinstance(given, list) and len(given) <= 200
    if not well or any(
        not isinstance(pair, list)
        or len(pair) != 2
        or not isinstance(pair[0], str)
        or isinstance(pair[1], (dict, list))
        for pair in given
    ):
        raise RefusedError(400, "set: expected a list of [setting, value]")
    return [
        (path, str(value).lower() if isinstance(value, bool) else str(value))
        for path, value in given
    ]


def _answering(answer: Callable[..., Any], runs: Runs) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that calls ``answer`` in a thread and turns errors into responses.

    ``answer`` has a parameter ``request``, a parameter ``body`` (the JSON of the request), or both.
    Texts of errors lack the temporary folder of ``runs``.
    """
    wanted = answer.__code__.co_varnames[: answer.__code__.co_argcount]
    is_async = bool(answer.__code__.co_flags & 0x80)

    async def endpoint(request: Request) -> Response:
        try:
            arguments: list[Any] = []
            if wanted[1] != "body":
                arguments.append(request)
            if "body" in wanted:
                arguments.append(_json_of(await request.body()))
            if is_async:
                found = await answer(*arguments)
            else:
                found = await run_in_threadpool(answer, *arguments)
            return found if isinstance(found, Response) else Json(found)
        except RefusedError as refusal:
            return refused(refusal.status, str(refusal))
        except (InputError, core.scenario_error(), core.run_error()) as error:
            text = in_one_line(error).replace(f"{runs.folder}/", "")
            return refused(400, clean(text, 2000))
        except OSError as error:  # such as a full disk
            return refused(500, clean((error.strerror or str(error)).lower(), 500))
        except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # a panic in Rust does not derive from Exception
            traceback.print_exc()
            what = clean(f"{type(error).__name__}: {error}", 500)
            return refused(500, f"this is a bug in Eastwest, not in your scenario: {what}")

    return endpoint


def _json_of(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)  # refuses halves of surrogate pairs, which are no text
    except ValueError:
        raise RefusedError(400, "the body of the request is not JSON") from None
    if not isinstance(value, dict):
        raise RefusedError(400, "the body of the request is not a JSON object")
    return value


async def _unexpected(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    return refused(status, getattr(error, "detail", "") or f"{type(error).__name__}: {error}")


def application(api: Api, token: str, hosts: Callable[[], set[str]]) -> App:
    """Return the application of the studio: all addresses, behind the rules of ``Guard``."""
    inner = Starlette(routes=api.routes(), exception_handlers={404: _unexpected, 405: _unexpected})
    return Guard(inner, token, hosts)
