"""Drives a headless Chromium through its debugging pipe: pictures, keys, accessibility tree."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-sync", "--disable-component-update"),
    *("--hide-scrollbars", "--force-device-scale-factor=1", "--remote-debugging-pipe"),
)
#: Time limit in s for an answer of the browser, also on a busy machine.
_PATIENCE_S = 120
_KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    " ": (32, " "),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
}


class Browser:
    """One page in one Chromium."""

    def __init__(self, program: str, profile: Path, width: int = 1280, height: int = 900) -> None:
        to_chrome, self._write = os.pipe()
        self._read, from_chrome = os.pipe()
        #: Console messages, exceptions and warnings of the browser about the page.
        self.complaints: list[str] = []
        #: Addresses that the page requested.
        self.requests: list[str] = []
        self._number = 0
        self._scripts = True
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        # Chromium reads commands from file descriptor 3 and answers on 4.
        places = f'exec "$@" 3<&{to_chrome} 4>&{from_chrome}'
        flags = (*_FLAGS, f"--user-data-dir={profile}", "about:blank")
        self._process = subprocess.Popen(
            ["bash", "-c", places, "bash", program, *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_chrome, from_chrome),
        )
        os.close(to_chrome)
        os.close(from_chrome)
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")
        self._session = str(
            self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)[
                "sessionId"
            ]
        )
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def close(self) -> None:
        """End the browser."""
        os.close(self._write)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send the browser a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], _PATIENCE_S)[0]:
                raise RuntimeError("the browser does not answer")
            more = os.read(self._read, 1 << 16)
            if not more:
                raise RuntimeError("the browser has gone")
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method in {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}:
            self.complaints.append(json.dumps(params)[:2000])
        elif method == "Network.requestWillBeSent":
            self.requests.append(str(params["request"]["url"]))
        elif method == "Page.loadEventFired":
            self._events.append(params)

    def open(self, page: Path) -> float:
        """Open a page from disk; return the seconds until it was loaded and drawn."""
        return self.visit(page.resolve().as_uri())

    def visit(self, address: str) -> float:
        """Open the page at an address; return the seconds until it was loaded and drawn."""
        self._events.clear()
        begin = time.perf_counter()
        self.call("Page.navigate", url=address)
        while not self._events:
            self._next()
        if self._scripts:
            self.script("new Promise(r => requestAnimationFrame(() => setTimeout(r, 0)))")
        return time.perf_counter() - begin

    def script(self, text: str) -> Any:
        """Evaluate a script expression in the page, wait for promises, and return the value."""
        done = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def press(self, key: str, shift: bool = False, control: bool = False) -> None:
        """Press and release a key."""
        code, text = _KEYS.get(key, (ord(key.upper()[0]), key))
        common = {
            "key": key,
            "windowsVirtualKeyCode": code,
            "modifiers": (8 if shift else 0) + (2 if control else 0),
        }
        if text and not control:
            common["text"] = text
        self.call(
            "Input.dispatchKeyEvent", type="keyDown" if "text" in common else "rawKeyDown", **common
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Enter a text where the focus is."""
        self.call("Input.insertText", text=text)

    def mouse(self, kind: str, x: float, y: float, pressed: bool = False) -> None:
        """Move, press or release the mouse: ``mouseMoved``, ``mousePressed``, ``mouseReleased``."""
        button = "left" if pressed or kind != "mouseMoved" else "none"
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            clickCount=1,
            buttons=1 if pressed else 0,
        )

    def size(self, width: int, height: int) -> None:
        """Give the window a size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefers(self, scheme: str, media: str = "") -> None:
        """Set the preferred colour scheme, ``light`` or ``dark``; ``media`` may be ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def scripts(self, allowed: bool) -> None:
        """Switch scripts on or off for pages opened later."""
        self._scripts = allowed
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    def shoot(
        self, out: Path, *, whole: bool = False, clip: dict[str, float] | None = None
    ) -> Path:
        """Take a picture of the window, of the whole page, or of a part of it."""
        extra: dict[str, Any] = {"captureBeyondViewport": True} if whole or clip else {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        if clip:
            extra["clip"] = {**clip, "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", **extra)
        out.write_bytes(base64.b64decode(shot["data"]))
        return out

    def accessible(self) -> list[dict[str, Any]]:
        """Return role, name and properties of every element, as a screen reader gets them."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            {
                "role": node.get("role", {}).get("value", ""),
                "name": node.get("name", {}).get("value", ""),
                **{p["name"]: p["value"].get("value") for p in node.get("properties", [])},
            }
            for node in nodes
            if not node.get("ignored")
        ]


@contextmanager
def browser(program: str, profile: Path, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """Start a browser and end it."""
    started = Browser(program, profile, width, height)
    try:
        yield started
    finally:
        started.close()
