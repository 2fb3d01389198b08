"""The page of a run in a real browser, by a person's path: open, read, sort, look at a query."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from batchrank.cli.views import Tick, views_of
from batchrank.live.dashboard import Dashboard
from batchrank.live.listening import listening
from batchrank.live.page import load_page
from batchrank.progress.snapshot import Snapshot
from batchrank.running.verdict import conclude
from batchrank.spec.address import parse_address
from tests.browser import NARROW, WIDE, chromium, overflows, page_of, poor_contrasts
from tests.cli.running import Row, judge, requests
from tests.live.running import runner_of, spec_of
from tests.snapshots import SNAPSHOT
from tests.waiting import PATIENCE

MARKUP = "<img src=x onerror=\"document.title='taken'\"><b id=taken>bold</b>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


Held = tuple[str, Callable[[], None]]
"""The address of a page, and what lets its run end."""
Work = Callable[[Queue[str], asyncio.Event], Coroutine[None, None, None]]


@contextmanager
def beside(work: Work) -> Iterator[Held]:
    """Run `work` in a loop of its own; gives the address that it tells, and what lets it end."""
    told: Queue[str] = Queue()
    loop = asyncio.new_event_loop()
    go_on = asyncio.Event()
    failed: list[BaseException] = []

    def end() -> None:
        loop.call_soon_threadsafe(go_on.set)

    def run() -> None:
        try:
            loop.run_until_complete(work(told, go_on))
        except BaseException as error:
            failed.append(error)
        finally:
            loop.close()

    thread = Thread(target=run)
    thread.start()
    try:
        yield told.get(timeout=PATIENCE), end
    finally:
        if thread.is_alive():
            end()
        thread.join(PATIENCE)
    assert failed == []


@pytest.fixture
def rows() -> list[Row]:
    found = requests(queries=5, candidates=12)
    found[0]["query"]["text"] += MARKUP
    found[0]["candidates"][3]["docid"] = MARKUP
    return found


@pytest.fixture
def held_run(tmp_path: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """A real run that has ranked all and does not end before it is let go."""

    async def work(told: Queue[str], go_on: asyncio.Event) -> None:
        async def late(*given: Any, **named: Any) -> Any:
            await go_on.wait()
            return await conclude(*given, **named)

        monkeypatch.setattr("batchrank.running.runner.conclude", late)
        ticks: list[Tick] = []
        async with judge(rows) as server:
            spec = spec_of(tmp_path, server.url, dashboard=True)
            runner = runner_of(spec, rows, [], lambda snapshot: [one(snapshot) for one in ticks])
            async with views_of(spec, runner.inspect, told.put) as views:
                ticks += views
                await runner.run()

    with beside(work) as (line, end):
        yield line.removeprefix("dashboard at "), end


@pytest.fixture
def still(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a page that shows one snapshot."""
    snapshot: Snapshot = getattr(request, "param", SNAPSHOT)

    async def work(told: Queue[str], go_on: asyncio.Event) -> None:
        async def nothing(qid: str) -> list[dict[str, object]]:
            return []

        address = parse_address("0")
        dashboard = Dashboard(address, nothing, await asyncio.to_thread(load_page))
        dashboard.tick(snapshot)
        async with listening(dashboard.app, address, "") as at:
            told.put(dashboard.url(at))
            await go_on.wait()

    with beside(work) as (url, _):
        yield url


def test_a_persons_path(browser: Browser, held_run: Held) -> None:
    url, let_go = held_run
    with page_of(browser) as (page, wrong):
        page.goto(url)
        # Read.
        expect(page.locator("#recent tr")).to_have_count(5)
        expect(page.locator("#state")).to_have_text("writing")
        expect(page.get_by_role("heading", level=1)).to_contain_text("in.jsonl")
        bar = page.get_by_role("progressbar", name="Queries finished")
        expect(bar).to_have_attribute("aria-valuetext", "5 of 5 queries")
        windows = page.get_by_role("img", name="15 ok, 0 repaired, 0 fallback, 0 error")
        expect(windows).to_be_visible()
        # Sort, by keyboard.
        header = page.get_by_role("columnheader", name="Query")
        header.get_by_role("button").focus()
        page.keyboard.press("Enter")
        expect(header).to_have_attribute("aria-sort", "ascending")
        names = page.locator("#recent b")
        assert names.all_inner_texts() == ["q1", "q2", "q3", "q4", "q5"]
        page.keyboard.press("Enter")
        expect(header).to_have_attribute("aria-sort", "descending")
        assert names.all_inner_texts() == ["q5", "q4", "q3", "q2", "q1"]
        # Look at a query, and leave it.
        page.get_by_role("button", name="q1").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(".window")).to_have_count(3)
        expect(dialog.get_by_role("heading", name="Window 3, round 2: ok")).to_be_visible()
        # Markup in texts of others stays text.
        expect(dialog.get_by_role("heading", level=2)).to_contain_text(MARKUP)
        assert MARKUP in dialog.locator("code").all_inner_texts()
        assert page.locator("#taken, img[src]").count() == 0
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(page.get_by_role("button", name="q1")).to_be_focused()
        # See it end.
        let_go()
        expect(page.locator("#state")).to_have_text("complete")
        expect(page.locator("#spoken")).to_have_text("complete, 100% finished")
        assert page.title().startswith("100%")
        assert wrong == []


@pytest.mark.parametrize("size", [WIDE, (800, 900), NARROW])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_stands_out_of_the_page(
    browser: Browser, still: str, size: tuple[int, int], dark: bool
) -> None:
    with page_of(browser, size=size, dark=dark) as (page, wrong):
        page.goto(still)
        expect(page.locator("#recent tr")).to_have_count(2)
        assert overflows(page) == []
        assert poor_contrasts(page) == []
        # No word stands on its neighbour.
        cut = "(one) => one.scrollWidth > one.clientWidth + 1 ? [one.innerText] : []"
        assert page.evaluate(f"[...document.querySelectorAll('th, .tile')].flatMap({cut})") == []
        drawn = page.locator(".tile svg").evaluate("(one) => one.getBoundingClientRect().left")
        assert text_end(page.locator(".tile span").first) < drawn
        assert wrong == []


def text_end(element: Locator) -> float:
    """Where the text of an element ends, in pixels from the left."""
    end: float = element.evaluate(
        """(one) => {
          const range = document.createRange();
          range.selectNodeContents(one);
          return range.getBoundingClientRect().right;
        }"""
    )
    return end


LONG = "unbroken" * 60


@pytest.mark.parametrize(
    "still",
    [
        replace(
            SNAPSHOT,
            input=LONG,
            waits=LONG,
            endpoints=tuple(replace(one, url=LONG + one.url) for one in SNAPSHOT.endpoints),
            recent=(replace(SNAPSHOT.recent[0], qid=LONG, query=LONG),),
        )
    ],
    indirect=True,
)
def test_long_names_stay_on_the_page(browser: Browser, still: str) -> None:
    with page_of(browser, size=NARROW) as (page, wrong):
        page.goto(still)
        expect(page.locator("#state")).to_have_text("waiting")
        expect(page.locator("#notice")).to_be_visible()
        assert overflows(page) == []
        page.locator("#recent button").click()
        expect(page.get_by_role("dialog")).to_contain_text("it is not in the store")
        assert overflows(page) == []
        assert [text for text in wrong if "404" not in text] == []


@pytest.mark.parametrize(
    "still",
    [Snapshot("0.1", 1, 0.0, "s.sqlite", "in.jsonl", "out.jsonl", 0.0, 0.0)],
    indirect=True,
)
def test_a_run_that_has_hardly_begun(browser: Browser, still: str) -> None:
    with page_of(browser) as (page, wrong):
        page.goto(still)
        expect(page.locator("#state")).to_have_text("starting")
        expect(page.get_by_text("None yet.")).to_be_visible()
        expect(page.get_by_text("No calls yet.")).to_be_visible()
        assert wrong == []


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_query_is_opened_and_left_by_keyboard_alone(
    browser: Browser, held_run: Held, size: tuple[int, int]
) -> None:
    url, _ = held_run
    with page_of(browser, size=size) as (page, wrong):
        page.goto(url)
        expect(page.locator("#recent tr")).to_have_count(5)
        # The heads of the columns come first, as they stand, then the queries.
        heads = page.locator(".queries th button:visible").all_inner_texts()
        reached = []
        for _ in (*heads, "the first query"):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.innerText"))
        assert reached[:-1] == heads
        opener = page.locator("#recent button").first
        expect(opener).to_be_focused()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(".window").first).to_be_visible()
        expect(dialog.get_by_role("button", name="Close")).to_be_focused()
        # The model's words can be scrolled; what is behind the dialog can't be reached.
        for _ in range(3):
            page.keyboard.press("Tab")
            assert (
                page.evaluate("document.activeElement.closest('dialog, body').tagName") == "DIALOG"
            )
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()
        assert page.evaluate("document.documentElement.scrollWidth") == size[0]
        assert wrong == []


def test_it_prints_on_light_paper(browser: Browser, still: str) -> None:
    with page_of(browser, dark=True) as (page, _):
        page.goto(still)
        expect(page.locator("#recent tr")).to_have_count(2)
        printed = page.pdf(format="A4")
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
        page.emulate_media(media="print", color_scheme="dark")
        paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
        assert poor_contrasts(page) == []
