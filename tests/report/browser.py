"""A headless Chromium over the DevTools protocol, by a pipe: needs nothing but the browser itself."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> str | None:
    """The path of a Chromium, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab, without network, and everything that it said or asked for."""

    def __init__(self, browser: str, profile: Path, width: int = 1200, height: int = 900) -> None:
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", f"--window-size={width},{height}",
            "about:blank",
        ]  # fmt: skip
        # The protocol has the browser read from descriptor 3 and write to 4.
        command = ["bash", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', browser, *options]
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._in, self._out = ours, theirs
        self._rest, self._next = b"", 0
        self.events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def __enter__(self) -> "Page":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command to the tab."""
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        number = self._next
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._out, 1 << 20)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        answer = self.call("Page.navigate", url=path.resolve().as_uri())
        assert "errorText" not in answer, answer
        self.wait("document.readyState === 'complete'")

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.1)

    def press(self, key: str, code: int) -> None:
        """A key of the keyboard, down and up."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions."""
        self.run("1")  # what was said before is here now
        said = []
        for event in self.events:
            values = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                said.append(str(values["exceptionDetails"]))
            elif event.get("method") == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
                said.append(str(values["args"]))
            elif event.get("method") == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
                said.append(str(values["entry"]))
        return said

    def requests(self) -> list[str]:
        """All addresses that were asked for."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [values["request"]["url"] for values in sent]

    def screenshot(self, path: Path, whole: bool = True) -> Path:
        """Write a PNG of the page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
        return path
