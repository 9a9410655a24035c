"""The page in a real browser: opened from a file, without network, used by mouse and keyboard."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Page, chromium
from nappingrl.cli import main
from nappingrl.trials.store import RunFolder
from report.rows import make_run, steps

EVIL = "<img src=x onerror=alert(1)>"
N = 30


def make_folders(path: Path) -> list[Path]:
    """Two runs that differ by level, gravity and novelty; the name of one agent is an attack."""
    gravity = np.linspace(1, 30, N)
    folders = []
    for i, method in enumerate(("frozen", "random")):
        returns = [steps((200, 3), (20 + 60 * i + 3 * k, 12)) for k in range(N)]
        run = make_run(
            "cartpole", EVIL if i else "ppo", method, returns, pre=3, role="control" if i else "baseline",
            params={"gravity": gravity}, novelties=["physics"] * 15 + ["gravity"] * 15,
        )  # fmt: skip
        folder = RunFolder.create(path / method, replace(run.manifest, notes=[EVIL], command=EVIL))
        folder.write(0, run.rows)
        folders.append(path / method)
    return folders


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("browser")
    main(["report", *map(str, make_folders(path)), "--out", str(path / "r"), "--statistic", "mean"])
    with chromium() as browser:
        page = Page(browser, offline=True)
        page.open(path / "r" / "report.html")
        page.wait("document.querySelector('#plot .main-svg .scatterlayer path.js-line')")
        yield page


def choose(page: Page, control: str, value: str, event: str = "change") -> None:
    """What a person does to a control, as the page hears of it."""
    page.run(
        f"(() => {{ const c = document.getElementById('{control}'); c.value = '{value}';"
        f" c.dispatchEvent(new Event('{event}', {{ bubbles: true }})); }})()"
    )


def lines(page: Page) -> list[str]:
    """The drawn curves, as paths."""
    found: list[str] = page.run("[...document.querySelectorAll('#plot path.js-line')].map(p => p.getAttribute('d'))")
    return found


def ends(page: Page) -> list[float]:
    """The last value of each curve."""
    found: list[float] = page.run(
        "document.getElementById('plot').data.filter(t => t.showlegend !== false).map(t => t.y.at(-1))"
    )
    return found


def shown(page: Page) -> str:
    return str(page.run("document.getElementById('shown').textContent"))


def redrawn(page: Page, before: list[str]) -> None:
    page.wait(
        "JSON.stringify([...document.querySelectorAll('#plot path.js-line')].map(p => p.getAttribute('d')))"
        f" !== JSON.stringify({before!r})"
    )


@pytest.fixture(autouse=True)
def _start(page: Page) -> None:
    choose(page, "split", "0")
    page.run("[...document.getElementsByName('statistic')].find(r => r.value === 'mean').click()")


def test_the_curves_are_drawn(page: Page) -> None:
    assert page.run("document.querySelectorAll('#plot svg.main-svg').length") > 0
    assert len([line for line in lines(page) if line]) >= 2
    assert ends(page) == [20 + 3 * 14.5, 80 + 3 * 14.5]
    assert "novelty" in page.run("document.querySelector('#plot .annotation-text').textContent")
    assert shown(page) == "All trials: 30 trials per run."


def test_the_slider_changes_the_curves(page: Page) -> None:
    options: list[str] = page.run("[...document.getElementById('split').options].map(o => o.text)")
    assert options[:2] == ["all trials", "novelty"]
    assert options[2].startswith("gravity")
    before = lines(page)
    choose(page, "split", "2")
    redrawn(page, before)
    assert page.run("document.getElementById('bins').hidden") is False
    assert page.run("document.getElementById('names').hidden") is True
    lowest, before = ends(page), lines(page)
    assert lowest == [20 + 3 * 2.5, 80 + 3 * 2.5], "the six trials of least gravity"
    choose(page, "bin", "4", "input")
    redrawn(page, before)
    assert ends(page) == [20 + 3 * 26.5, 80 + 3 * 26.5], "the six of most"
    assert shown(page).endswith(": 6 trials per run.")
    assert "99.5" in page.run("document.getElementById('ends').textContent")


def test_the_slider_hears_the_keyboard(page: Page) -> None:
    choose(page, "split", "2")
    page.run("document.getElementById('bin').focus()")
    first, before = shown(page), lines(page)
    page.press("ArrowRight")
    redrawn(page, before)
    assert page.run("document.getElementById('bin').value") == "1"
    assert shown(page) != first
    assert page.run("document.getElementById('bin').getAttribute('aria-valuetext')") == shown(page)


def test_the_novelty_is_chosen_by_name(page: Page) -> None:
    choose(page, "split", "1")
    assert page.run("document.getElementById('names').hidden") is False
    assert ends(page) == [20 + 3 * 7, 80 + 3 * 7]
    before = lines(page)
    choose(page, "name", "1", "input")
    redrawn(page, before)
    assert ends(page) == [20 + 3 * 22, 80 + 3 * 22]
    assert shown(page) == "novelty gravity: 15 trials per run."


def test_median_and_mean(page: Page) -> None:
    def title() -> Any:
        return page.run("document.querySelector('#plot .ytitle').textContent")

    assert "mean over trials" in title()
    page.run("[...document.getElementsByName('statistic')].find(r => r.value === 'median').click()")
    page.wait("document.querySelector('#plot .ytitle').textContent.includes('median over trials')")
    bands = page.run("document.getElementById('plot').data.filter(t => t.showlegend === false).map(t => t.y.length)")
    assert bands == [30, 30], "15 episodes there and back"


def test_names_from_files_are_text_in_the_legend_too(page: Page) -> None:
    legend: str = page.run("document.querySelector('#plot .legend').textContent")
    assert f"cartpole {EVIL} random" in legend
    assert page.run("document.querySelectorAll('img[src=x], #plot image[href=x]').length") == 0


def test_nothing_offers_to_send_data_away(page: Page) -> None:
    buttons: list[str] = page.run(
        "[...document.querySelectorAll('#plot .modebar-btn')].map(b => b.getAttribute('data-title'))"
    )
    assert 0 < len(buttons) <= 4
    assert page.run("[...document.querySelectorAll('a')].every(a => a.getAttribute('href').startsWith('#'))")


def test_no_complaints_and_no_requests(page: Page) -> None:
    assert page.complaints() == []
    asked = page.requests()
    assert len(asked) >= 1
    assert all(address.startswith(("file://", "data:", "blob:")) for address in asked), asked
    assert sum(address.startswith("file://") for address in asked) == 1, "the page alone"


def test_it_fits_a_narrow_window(page: Page) -> None:
    page.resize(400, 800)
    try:
        page.wait("document.documentElement.scrollWidth <= 400")
    finally:
        page.resize(1200, 900)
