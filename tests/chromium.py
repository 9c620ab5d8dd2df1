"""A headless Chromium for tests: the DevTools protocol over a pipe, which needs only the browser.

Messages are JSON that ends in a zero byte; the browser reads them from descriptor 3 and writes to descriptor 4.
"""

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "chrome-headless-shell", "google-chrome")
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " "), "ArrowDown": (40, ""), "Escape": (27, "")}
PATIENCE_SECONDS = 60


def find_chromium() -> str | None:
    """Return the program, or None if there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """A tab of the browser, with its output and pressed keys."""

    def __init__(self, out: int, into: int) -> None:
        self._out, self._into = out, into
        self._buffer, self._number, self._session = b"", 0, ""
        self.complaints: list[str] = []
        """Errors and warnings of the console, uncaught exceptions, and requests for other files than the page."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, url: str, ready: str = "document.querySelector('main h1')") -> None:
        """Go to an address and wait until the page is drawn."""
        self._call("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && {ready}")

    def run(self, script: str) -> Any:
        """Return the awaited value of an expression in the page."""
        told = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise AssertionError(told["exceptionDetails"]["exception"].get("description", told))
        return told["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until all changes are drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def press(self, *keys: str) -> None:
        """Press keys one after the other: names of KEYS, or letters."""
        for key in keys:
            code, text = KEYS.get(key, (ord(key[0].upper()), key))
            told: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            self._call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **told)
            self._call("Input.dispatchKeyEvent", type="keyUp", **told)

    def resize(self, width: int, height: int) -> None:
        """Give the window this size."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def emulate(self, **features: str) -> None:
        """Set media features of a user, such as `prefers_color_scheme`."""
        rows = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._call("Emulation.setEmulatedMedia", features=rows)

    def picture(self, path: Path) -> None:
        """Write the visible part as PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "error" in told:
                    raise AssertionError(f"{method}: {told['error']['message']}")
                return told["result"]
            self._note(told.get("method", ""), told.get("params", {}))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            read = os.read(self._out, 1 << 20)
            assert read, "the browser has ended"
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, method: str, told: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([one.get("value") for one in told["args"]]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
        elif method == "Network.requestWillBeSent" and told["type"] != "Document":
            url = told["request"]["url"]
            if not url.startswith("data:"):
                self.complaints.append(f"asks for {url[:200]}")


@contextmanager
def chromium(program: str) -> Iterator[Page]:
    """Start a browser with an empty page; the browser ends with the `with` block."""
    theirs, into = os.pipe()
    out, written = os.pipe()
    # Above 3 and 4, so that neither is written over before it is moved there.
    theirs, written = (_moved_up(descriptor) for descriptor in (theirs, written))
    command = [
        *(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
        *("--remote-debugging-pipe", "--no-first-run", "--disable-background-networking", "--disable-extensions"),
    ]
    actions = [
        (os.POSIX_SPAWN_DUP2, theirs, 3),
        (os.POSIX_SPAWN_DUP2, written, 4),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = os.posix_spawn(program, [*command, f"--user-data-dir={profile}"], os.environ, file_actions=actions)
        os.close(theirs)
        os.close(written)
        try:
            yield Page(out, into)
        finally:
            os.close(into)
            os.close(out)
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)


def _moved_up(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
