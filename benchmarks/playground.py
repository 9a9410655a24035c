"""Measure the playground in Chromium: frames a second, load of the server, slider to effect, memory over many tabs.

Needs a Chromium on the PATH. `python benchmarks/playground.py --seconds 20 --tabs 50`; memory of one tab that stays
open: `python benchmarks/playground.py --minutes 30`
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

STATE = "window.playground.state"
TICKS = os.sysconf("SC_CLK_TCK")
N_MOVES = 20


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def opened(browser: Browser, link: str) -> tuple[Page, float]:
    """A page after its first second, and the seconds until its first frame."""
    begin = time.monotonic()
    page = browser.new_context(viewport={"width": 1360, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    page.goto(link)
    page.wait_for_function(f"window.playground && {STATE}.n_frames > 0")
    seconds = time.monotonic() - begin
    page.wait_for_function(f"{STATE}.n_frames > 50")
    return page, seconds


def frames_and_load(page: Page, server: int, seconds: float) -> dict[str, float]:
    """Frames drawn in both panes (each frame draws both), and seconds of computing per second."""
    before = page.evaluate(f"{STATE}.n_frames"), cpu_seconds(server), time.monotonic()
    workers = {pid: cpu_seconds(pid) for pid in children(server)}
    time.sleep(seconds)
    length = time.monotonic() - before[2]
    return {
        "frames a second": (page.evaluate(f"{STATE}.n_frames") - before[0]) / length,
        "server, share of a core": (cpu_seconds(server) - before[1]) / length,
        "worker, share of a core": max(cpu_seconds(pid) - spent for pid, spent in workers.items()) / length,
    }


def slider_to_effect(page: Page) -> float:
    """Median milliseconds from a click on a slider until the first frame of the changed world is drawn."""
    box = page.locator('[data-parameter="gravity"]').bounding_box()
    assert box is not None
    page.evaluate(
        """() => { window.effects = [];
            let start = 0, changes = "", frame = window.playground.state.frame;
            window.addEventListener('pointerdown', () => (start = performance.now()), true);
            Object.defineProperty(window.playground.state, 'frame', { get: () => frame, set: (value) => {
                frame = value;
                const now = JSON.stringify(frame.changes);
                if (start && now !== changes) Promise.resolve().then(() => {  // after it was drawn
                    window.effects.push(performance.now() - start);
                    start = 0; });
                changes = now; } }); }"""
    )
    for i in range(N_MOVES):
        page.mouse.click(box["x"] + box["width"] * (0.55 + 0.02 * (i % 5)), box["y"] + box["height"] / 2)
        page.wait_for_function(f"window.effects.length > {i}")
        page.wait_for_timeout(200)
    return statistics.median(page.evaluate("window.effects"))


def many_tabs(browser: Browser, link: str, server: int, n_tabs: int) -> list[float]:
    """Memory of the server in MB after each ten tabs that were opened and closed."""
    sizes = [resident_mb(server)]
    for i in range(n_tabs):
        page = browser.new_context().new_page()
        page.set_default_timeout(120_000)
        page.goto(link)
        page.wait_for_function("window.playground")
        page.context.close()
        if (i + 1) % 10 == 0:
            time.sleep(4)  # NiceGUI forgets a tab some seconds after it was closed
            sizes.append(resident_mb(server))
    return sizes


def memory_over_time(page: Page, server: int, minutes: int) -> dict[str, list[float]]:
    """Memory in MB, at first and after each minute; the worlds change and the match runs fast."""
    page.locator("#speed").get_by_text("16x").click()
    sizes: dict[str, list[float]] = {"server, MB": [], "worker, MB": [], "page, MB": []}
    for minute in range(minutes + 1):
        if minute:
            page.keyboard.press("s" if minute % 2 else "b")
            time.sleep(60)
        sizes["server, MB"].append(resident_mb(server))
        sizes["worker, MB"].append(max(map(resident_mb, children(server))))
        sizes["page, MB"].append(page.evaluate("performance.memory.usedJSHeapSize") / 1e6)
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tabs", type=int, default=50)
    parser.add_argument("--minutes", type=int, default=0, help="only watch the memory of one tab for this long")
    options = parser.parse_args()
    command = [sys.executable, "-m", "nappingrl", "play", "--no-browser"]
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, sync_playwright() as driver:
        assert process.stdout is not None
        match = re.search(r"http\S+", process.stdout.readline())
        assert match is not None
        result: dict[str, Any] = {"link printed, s": time.monotonic() - begin}
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            page, result["first frame after opening, s"] = opened(browser, match[0])
            if options.minutes:
                print(json.dumps(memory_over_time(page, process.pid, options.minutes)))
                return
            result |= frames_and_load(page, process.pid, options.seconds)
            result["slider to effect, ms"] = slider_to_effect(page)
            page.context.close()
            result["server after tabs, MB"] = many_tabs(browser, match[0], process.pid, options.tabs)
            time.sleep(2)
            result["processes left"] = len(children(process.pid))
        finally:
            browser.close()
            process.terminate()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
