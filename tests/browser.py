"""A headless Chromium for all browser tests, by Playwright: the browser of the system, found on the PATH."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as Tab

from patience import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; without one, tests are skipped, and fail in CI."""
    path = next((path for name in NAMES if (path := shutil.which(name))), None)
    if path is None:
        reason = "no Chromium here; pages are not tested in a browser (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """One tab, and everything that it said or asked for."""

    def __init__(
        self, browser: Browser, width: int = 1200, height: int = 900, offline: bool = False, dark: bool = False
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, offline=offline, color_scheme="dark" if dark else "light"
        )
        self.context.set_default_timeout(1000 * PATIENCE)
        self.tab: Tab = self.context.new_page()
        self._said: list[str] = []
        self._asked: list[str] = []
        self.tab.on(
            "console",
            lambda said: self._said.append(said.text) if said.type in ("error", "warning", "assert") else None,
        )
        self.tab.on("pageerror", lambda error: self._said.append(str(error)))
        self.tab.on("request", lambda request: self._asked.append(request.url))

    def open(self, address: Path | str) -> None:
        """Open a file or an address and wait until it is loaded."""
        self.tab.goto(address.resolve().as_uri() if isinstance(address, Path) else address, wait_until="load")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        return self.tab.evaluate(script)

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"(async () => Boolean(await ({condition})))()"):
            assert time.monotonic() < end, f"never true: {condition}"
            self.tab.wait_for_timeout(50)

    def press(self, key: str) -> None:
        """A key of the keyboard, down and up."""
        self.tab.keyboard.press(key)

    def resize(self, width: int, height: int) -> None:
        """Another size of the window."""
        self.tab.set_viewport_size({"width": width, "height": height})

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions."""
        self.run("1")  # a round trip: earlier messages have arrived by now
        return list(self._said)

    def requests(self) -> list[str]:
        """All addresses that were asked for."""
        return list(self._asked)

    def close(self) -> None:
        """Close the tab."""
        self.context.close()
