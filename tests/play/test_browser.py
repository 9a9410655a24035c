"""The playground in a real browser: the tour, the world under one's hands, keys, sharing, waiting, stopping."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser

import nappingrl
from browser import Page, chromium
from nappingrl.cli import main
from patience import wait_for
from play.running import playground

STATE = "window.playground?.state"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    with playground() as (_, link):
        yield link


@pytest.fixture
def page(browser: Browser, link: str) -> Iterator[Page]:
    page = Page(browser)
    page.open(link)
    page.wait(f"{STATE}?.n_frames > 20")
    yield page
    complaints, asked = page.complaints(), page.requests()
    page.close()
    assert complaints == []
    ours = "http://" + urlsplit(link).netloc
    assert all(address.startswith((ours, "data:", "blob:")) for address in asked), "a request to the outside"


def test_frames_arrive_and_both_panes_are_drawn(page: Page) -> None:
    drawn = """[...document.querySelectorAll('.stage canvas')].map(c => {
        const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return new Set(data.filter((_, i) => i % 4 !== 3)).size })"""
    assert all(n > 3 for n in page.run(drawn))
    assert "token" not in page.run("location.href")


def test_gravity_changes_and_the_adapting_agent_wins(page: Page) -> None:
    page.tab.locator("#speed").get_by_text("max").click()
    page.tab.get_by_label("gravity").and_(page.tab.locator("input")).fill("40")
    page.wait("document.getElementById('changed').textContent === 'gravity is 40 instead of 9.8'")
    page.wait("+document.querySelector('[data-parameter=gravity]').ariaValueNow > 700")  # the slider follows
    frames = page.run(f"{STATE}.n_frames")
    page.wait(f"{STATE}.n_frames > {frames} + 30")
    assert page.run(f"{STATE}.frame.changes.gravity") == 40  # which no position of the slider is
    page.wait(f"{STATE}.facts?.alarm")
    assert "Noticed after" in page.run("document.getElementById('alarm').textContent")
    latest = f"{STATE}.returns.map(s => s.filter(e => e[2]).slice(-3).map(e => e[1]))"
    page.wait(
        f"(([frozen, adapting]) => adapting.length === 3 && Math.min(...adapting) > Math.max(...frozen))({latest})"
    )
    page.wait("document.getElementById('rule').textContent.includes('pole angle')")


def test_a_slider_takes_effect_at_once(page: Page) -> None:
    slider = page.tab.locator('[data-parameter="gravity"]')
    box = slider.bounding_box()
    assert box is not None
    page.tab.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2)
    page.wait(f"{STATE}.frame.changes.gravity > 15")
    page.tab.locator("#back").click()
    page.wait(f"Object.keys({STATE}.frame.changes).length === 0")
    page.wait("document.getElementById('changed').textContent === 'as trained'")


def test_the_tour_from_start_to_end(page: Page) -> None:
    page.tab.locator("#speed").get_by_text("16x").click()
    page.tab.locator("#start-tour").click()
    titles = []
    for _ in range(6):
        page.wait("!document.getElementById('tour-next').disabled")
        titles.append(page.run("document.querySelector('#tour h2').textContent"))
        if len(titles) == 6:
            assert "LEFT <-> RIGHT" in page.run("document.querySelector('#tour p').textContent")
        page.tab.locator("#tour-next").click()
    assert titles == [
        "A trained agent works", "The world changes", "The frozen agent fails", "The change is noticed",
        "The agent adapts", "The rule it learned",
    ]  # fmt: skip
    assert page.run("document.getElementById('tour').hidden")
    page.tab.reload()
    page.wait(f"{STATE}?.n_frames > 5")
    assert page.run("document.getElementById('tour').hidden"), "it is offered on the first visit only"


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    page.press(" ")
    page.wait(f"{STATE}.frame.paused")
    before = page.run(f"{STATE}.frame.panes[0].step")
    page.press(".")
    page.wait(f"{STATE}.frame.panes[0].step !== {before}")
    page.press("s")
    page.wait(f"Object.keys({STATE}.frame.changes).length === 5")
    page.press("b")
    page.wait(f"Object.keys({STATE}.frame.changes).length === 0")
    page.press("+")
    page.wait(f"{STATE}.frame.speed === 2")
    page.press("r")
    page.wait(f"{STATE}.about.match === 2")
    page.press("?")
    page.wait("document.querySelector('.q-dialog .keys')")
    page.press("Escape")
    page.wait("!document.querySelector('.q-dialog .keys')")
    reached = set()
    for _ in range(40):
        page.press("Tab")
        reached |= set(page.run("[document.activeElement.id, document.activeElement.getAttribute('aria-label')]"))
    assert {"pause", "step", "restart", "surprise", "back", "share", "start-tour", "gravity"} <= reached


def test_you_play_with_the_arrow_keys(page: Page) -> None:
    page.tab.get_by_role("combobox", name="Method").click()
    page.tab.get_by_role("option", name="You").click()
    page.wait(f"{STATE}.about.method === 'you'")
    for key, action in (("ArrowRight", 1), ("ArrowLeft", 0)):
        page.tab.locator("body").press(key)
        page.wait(f"{STATE}.frame.panes[1].does === {action}")


def test_copies_run_and_a_link_restores_the_match(
    browser: Browser, page: Page, link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.tab.locator('[data-switch="action-remap"]').click()
    page.wait(f"{STATE}.facts?.world.startsWith('reversed controls')")
    page.tab.locator("#restart").click()
    page.wait(f"{STATE}.about.match === 2 && {STATE}.returns[1].length >= 2")
    ours = page.run(f"{STATE}.returns.map(s => s.slice(0, 2).map(e => e[1]))")
    page.tab.locator("#share").click()
    page.tab.locator("#copy-command").click()
    page.wait("navigator.clipboard.readText().then(t => t.startsWith('napping run'))")
    command = page.run("navigator.clipboard.readText()")
    monkeypatch.chdir(tmp_path)
    main([*shlex.split(command)[1:], "--out", "copied"])
    rows = nappingrl.read_run(tmp_path / "copied").rows
    assert rows.filter(rows["episode"] >= 0)["return"].to_list()[:2] == ours[1]
    page.tab.locator("#share").click()
    page.tab.locator("#copy-link").click()
    page.wait("navigator.clipboard.readText().then(t => t.startsWith('http'))")
    shared = page.run("navigator.clipboard.readText()")
    assert "token" not in parse_qs(urlsplit(shared).query)
    page.open(shared)
    page.wait(f"{STATE}?.frame?.changes['action-remap[0]'] === 1")
    page.open(f"{link.partition('?')[0]}?domain=cartpole&agent=hf:evil/agent")
    page.tab.get_by_text("unknown agent").wait_for()


@pytest.mark.slow
def test_a_visitor_shoots_in_angry_birds(page: Page) -> None:
    page.tab.get_by_role("combobox", name="World").click()
    page.tab.get_by_role("option", name="Angry Birds").click()
    page.wait(f"{STATE}.about.domain === 'angrybirds' && {STATE}.frame.match === {STATE}.about.match")
    page.tab.get_by_role("combobox", name="Method").click()
    page.tab.get_by_role("option", name="You").click()
    page.wait(f"{STATE}.about.method === 'you' && {STATE}.frame.match === {STATE}.about.match")
    box = page.tab.locator("#adapting").bounding_box()
    assert box is not None
    scale = box["height"] / 480
    left = box["x"] + (box["width"] - 640 * scale) / 2
    page.tab.mouse.move(left + 100 * scale, box["y"] + 260 * scale)
    page.tab.mouse.down()
    page.tab.mouse.move(left + 60 * scale, box["y"] + 290 * scale)
    page.tab.mouse.up()
    page.wait(f"{STATE}.frame.panes[1].step + {STATE}.frame.panes[1].episode >= 1")


@pytest.mark.slow
def test_other_worlds_are_shown(page: Page) -> None:
    for title, name in (("MountainCar", "mountaincar"), ("CrossRoad", "crossroad")):
        page.tab.get_by_role("combobox", name="World").click()
        page.tab.get_by_role("option", name=title).click()
        page.wait(f"{STATE}.about.domain === '{name}' && {STATE}.frame.panes[0].step > 3")


def test_it_fits_a_narrow_window_in_the_dark(browser: Browser, link: str) -> None:
    page = Page(browser, width=400, height=800, dark=True)
    page.open(link)
    page.wait(f"{STATE}?.n_frames > 5")
    page.wait("document.documentElement.scrollWidth <= 400")
    page.wait("document.body.classList.contains('body--dark')")
    page.close()


@pytest.mark.slow
def test_a_fifth_tab_waits_and_begins_when_another_closes(browser: Browser, link: str) -> None:
    pages = [Page(browser) for _ in range(5)]
    for page in pages[:4]:
        page.open(link)
        page.wait(f"{STATE}?.n_frames > 0")
    pages[4].open(link)
    pages[4].wait("document.getElementById('curtain')?.textContent.includes('open already')")
    pages[0].close()
    pages[4].wait(f"{STATE}?.n_frames > 5")
    for page in pages[1:]:
        page.close()


def test_when_the_server_stops_the_page_says_so(browser: Browser) -> None:
    with playground("mountaincar") as (process, link):
        page = Page(browser)
        page.open(link)
        page.wait(f"{STATE}?.n_frames > 5")
        process.terminate()
        page.wait("document.getElementById('curtain').textContent.includes('server has stopped')")
        wait_for(lambda: process.poll() is not None)
        page.close()


def test_a_film_is_recorded_and_downloaded(page: Page, tmp_path: Path) -> None:
    page.tab.locator("#film").click()
    page.tab.locator("#film-gif").click()
    page.wait("parseFloat(document.getElementById('recorded').textContent) > 0.4")
    assert page.run("document.getElementById('film').innerText").endswith("End the film")
    with page.tab.expect_download() as download:
        page.tab.locator("#film").click()
    download.value.save_as(tmp_path / "film.gif")
    assert (tmp_path / "film.gif").read_bytes()[:6] == b"GIF89a"
    page.wait("document.getElementById('recorded').textContent === ''")
