"""The report in a real browser, by a person's path: open, read, sort, look at a query, print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import NARROW, WIDE, chromium, overflows, page_of, poor_contrasts


@pytest.fixture(scope="module")
def browser(page_file: Path, plain_file: Path) -> Iterator[Browser]:
    """Opened once the pages are made: it runs a loop of its own in this thread."""
    with chromium() as found:
        yield found


def watched(page: Page, path: Path) -> list[str]:
    """Open a file; everything that the page asks for, now and later."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    return asked


def test_a_persons_path(browser: Browser, page_file: Path) -> None:
    with page_of(browser) as (page, wrong):
        asked = watched(page, page_file)
        # Read.
        expect(page.get_by_role("heading", level=1)).to_have_text("log.jsonl")
        expect(page.get_by_text("complete", exact=True)).to_be_visible()
        parts = [
            *("Quality by 20 judged queries", "Since ", "Time and tokens", "Windows"),
            *("How far documents moved", "Queries worth a look", "Failed queries", "Repeat it"),
        ]
        headings = page.get_by_role("heading", level=2).all_inner_texts()
        assert len(headings) == len(parts)
        assert all(text.startswith(part) for text, part in zip(headings, parts, strict=True))
        charts = page.get_by_role("img")
        expect(charts).to_have_count(7)
        names = [chart.get_attribute("aria-label") or "" for chart in charts.all()]
        assert all(len(name) > 15 for name in names)
        assert names[0].startswith("nDCG@10 +")
        page.get_by_role("link", name="Queries").click()
        expect(page.get_by_role("heading", name="Queries worth a look")).to_be_in_viewport()
        # Sort a table, by keyboard.
        header = page.get_by_role("columnheader", name="Line")
        header.get_by_role("button").focus()
        for order, lines in (("ascending", ["31", "32"]), ("descending", ["32", "31"])):
            page.keyboard.press("Enter")
            expect(header).to_have_attribute("aria-sort", order)
            cells = page.locator("#failed + .scroll tbody td:first-child")
            assert cells.all_inner_texts() == lines
        # Find a query.
        items = page.locator("#list > li:visible")
        every = items.count()
        assert every >= 20
        page.get_by_label("Why", exact=True).select_option("most hurt")
        assert 0 < items.count() < every
        page.get_by_label("Why", exact=True).select_option("any")
        page.get_by_label("Order").select_option("most helped")
        figures = page.locator("#list > li:visible .figure [data-kind]").all_inner_texts()
        changes = [float(text.replace("−", "-")) for text in figures]
        assert changes == sorted(changes, reverse=True)
        page.get_by_label("Find").fill("nothing like it")
        expect(page.get_by_text("No query is like that.")).to_be_visible()
        page.get_by_label("Find").fill("number 7")
        expect(items).to_have_count(1)
        # Look at it: its lists side by side, and its windows.
        summary = items.locator("summary")
        summary.focus()
        page.keyboard.press("Enter")
        lists = items.get_by_role("list")
        expect(lists).to_have_count(3)
        expect(lists.nth(0).get_by_role("listitem")).to_have_count(10)
        assert "q7-d1" in lists.nth(0).get_by_role("listitem").nth(0).inner_text()
        expect(items.get_by_role("heading", name="This run")).to_be_visible()
        windows = items.locator(".window")
        expect(windows).to_have_count(3)
        expect(windows.nth(0).get_by_role("heading")).to_contain_text("Window 1, round 1: ")
        # Leave it, from anywhere in it.
        page.keyboard.press("Escape")
        expect(windows.nth(0)).to_be_hidden()
        expect(summary).to_be_focused()
        # Nothing was asked for but the file itself.
        assert asked == [page_file.as_uri()]
        assert wrong == []


def test_markup_in_texts_of_others_stays_text(browser: Browser, page_file: Path) -> None:
    with page_of(browser) as (page, wrong):
        asked = watched(page, page_file)
        assert page.title() == "log.jsonl · run 2 · batchrank"
        assert page.locator("img, iframe, object, body script ~ script").count() == 0
        page.get_by_label("Find").fill("onerror")
        first = page.locator("#list > li:visible")
        expect(first).to_have_count(1)
        first.locator("summary").click()
        told = first.locator(".what").inner_text()
        for part in ("<script>", "</style>", "]]>", "{{ 7 * 7 }} &", "\\x1b[31m", "\\u202egnal"):
            assert part in told
        assert first.locator("code", has_text="onerror").count() >= 1
        text = page_file.read_text()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", text)
        assert asked == [page_file.as_uri()]
        assert wrong == []


@pytest.mark.parametrize("size", [WIDE, NARROW])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_legible_on_any_screen(
    browser: Browser, page_file: Path, size: tuple[int, int], dark: bool
) -> None:
    with page_of(browser, size=size, dark=dark) as (page, wrong):
        page.goto(page_file.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == size[0]
        assert overflows(page) == []
        assert poor_contrasts(page) == []
        ink = page.locator("svg.chart:visible .fill-accent").first
        colour = ink.evaluate("(one) => getComputedStyle(one).fill")
        assert colour == ("rgb(99, 194, 189)" if dark else "rgb(15, 107, 107)")
        assert wrong == []


def test_it_is_whole_without_scripts(browser: Browser, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(page_file.as_uri())
        expect(page.get_by_role("button")).to_have_count(0)
        expect(page.locator("#controls")).to_be_hidden()
        item = page.locator("#list > li").first
        item.locator("summary").click()
        expect(item.locator(".window").first).to_be_visible()
    finally:
        context.close()


def test_it_prints_on_a_few_pages(browser: Browser, page_file: Path) -> None:
    with page_of(browser, dark=True) as (page, _):
        page.goto(page_file.as_uri())
        printed = page.pdf(format="A4")
        assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 8
        page.emulate_media(media="print", color_scheme="dark")
        paper = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
        expect(page.get_by_role("navigation")).to_be_hidden()


def test_without_judgements_it_tells_the_rest(browser: Browser, plain_file: Path) -> None:
    with page_of(browser, size=NARROW) as (page, wrong):
        asked = watched(page, plain_file)
        headings = page.get_by_role("heading", level=2).all_inner_texts()
        assert headings[:3] == ["Time and tokens", "Windows", "How far documents moved"]
        expect(page.get_by_text("How slots were used over time is not known")).to_be_visible()
        expect(page.locator("#list > li").first).to_contain_text("fell back")
        assert asked == [plain_file.as_uri()]
        assert wrong == []
