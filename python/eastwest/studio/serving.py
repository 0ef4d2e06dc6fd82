"""Start and end of the studio's server, and the address at which a browser opens it."""

from __future__ import annotations

import contextlib
import html
import os
import secrets
import signal
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from eastwest import shipped
from eastwest.errors import InputError
from eastwest.studio.files import Folder, Text, read_shipped
from eastwest.studio.refused import RefusedError
from eastwest.studio.runs import Runs
from eastwest.studio.server import Api, application

#: Wall time in s that open streams have to end when the server ends.
_GRACE_S = 1
#: Scenario that is opened without a file.
_FIRST = "first"


class Session:
    """A studio that serves one folder; it ends with the ``with`` block."""

    def __init__(self, folder: Path, file: str | None = None, port: int = 0) -> None:
        """Open a port of 127.0.0.1, and start the worker process.

        ``file`` is a scenario file below ``folder``, or the name of a shipped scenario. Raises
        ``InputError`` where it cannot be read, and where the port is in use.
        """
        self.folder = Folder(folder)
        opened = _opened(self.folder, file)
        self.token = secrets.token_urlsafe(32)
        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])
        try:
            self.runs = Runs()
        except BaseException:
            self._socket.close()
            raise
        hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        app = application(Api(self.folder, opened, self.runs), self.token, lambda: hosts)
        self._server = _Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                h11_max_incomplete_event_size=65_536,
            ),
            self.runs,
        )

    @property
    def address(self) -> str:
        """Address of the page, with the token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(self) -> None:
        """Serve until Ctrl-C or ``stop``."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let ``run`` end, from another thread."""
        self._server.should_exit = True

    def close(self) -> None:
        """End the worker process, and remove all results."""
        self.runs.close()
        self._socket.close()

    @contextlib.contextmanager
    def opener(self) -> Iterator[Path]:
        """Yield the path of a file, readable only by this user, that leads a browser to the page.

        The token would be visible to other users in the arguments of the browser's process.
        """
        path = self.runs.folder / f"open-{secrets.token_hex(4)}.html"
        address = html.escape(self.address)
        text = (
            "<!doctype html><meta charset='utf-8'><title>Eastwest studio</title>"
            f"<meta http-equiv='refresh' content='0;url={address}'>"
            f"<p><a href='{address}'>Open the studio</a></p>\n"
        )
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """Server that ends the streams of all runs before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, runs: Runs) -> None:
        super().__init__(config)
        self._runs = runs

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End the server at Ctrl-C and SIGTERM, which are its regular ends, without an error."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        ends = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in ends}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop all runs, so that their streams end, and close the server."""
        self._runs.close()
        await super().shutdown(sockets)


def serve(
    file: str | None = None,
    *,
    folder: Path | None = None,
    port: int = 0,
    browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the studio until Ctrl-C.

    ``file`` is a scenario file below ``folder`` (default: the working directory), or the name of a
    shipped scenario. ``port`` 0 lets the system choose a port. ``say`` receives the address of the
    page, and other messages. Raises ``InputError`` where the file or the port cannot be used.
    """
    with Session(folder or Path.cwd(), file, port) as session:
        say(f"The studio is at {session.address}")
        say("Ctrl-C ends it.")
        if browser:
            threading.Thread(target=_open, args=(session, say), daemon=True).start()
        session.run()


def _open(session: Session, say: Callable[[str], None]) -> None:
    """Open the page in the user's browser."""
    with session.opener() as path:
        if not webbrowser.open(path.as_uri()):
            say("No browser could be opened: open the address above.")
            return
        time.sleep(30)  # until a browser that has to start has read the file


def _opened(folder: Folder, file: str | None) -> Text:
    """Return the scenario with which the studio begins."""
    if file is None:
        return read_shipped(_FIRST)
    try:
        path = Path(file)
        if path.is_file() or path.suffix == ".toml":
            resolved = path.resolve()
            if not resolved.is_relative_to(folder.path):
                raise InputError(
                    f"{file} is not inside the folder {folder.path}: start the studio in the "
                    "folder of the scenario"
                )
            return folder.read(resolved.relative_to(folder.path).as_posix())
        if shipped.find(file) is None:
            known = ", ".join(shipped.names())
            raise InputError(f"no scenario file {file!r}; shipped scenarios: {known}")
        return read_shipped(file)
    except RefusedError as refusal:
        raise InputError(str(refusal)) from None


def _listening(port: int) -> socket.socket:
    """Return a socket that listens on a port of 127.0.0.1; 0: any free port."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(("127.0.0.1", port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise InputError(
            f"port {port} of 127.0.0.1 cannot be used: {(error.strerror or str(error)).lower()}"
        ) from None
    return made
