"""A real browser for the pages that batchrank makes: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.conftest import missing
from tests.waiting import PATIENCE

_PATIENCE = PATIENCE * 1000
"""In milliseconds, as Playwright counts."""
expect.set_options(timeout=_PATIENCE)
WIDE = (1280, 900)
NARROW = (390, 844)
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser; skips the test where there is none."""
    found = shutil.which("chromium")
    if found is None:
        missing("chromium", "apt-get install chromium")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=list(_FLAGS), timeout=_PATIENCE
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(
    browser: Browser, *, size: tuple[int, int] = WIDE, dark: bool = False
) -> Iterator[tuple[Page, list[str]]]:
    """A new page without a past, and what goes wrong on it: errors of scripts and of its policy.

    A test ends by asserting that nothing did.
    """
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    try:
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.extend([said.text] * (said.type == "error")))
        page.set_default_timeout(_PATIENCE)
        yield page, wrong
    finally:
        context.close()


def overflows(page: Page) -> list[str]:
    """What stands out of the page on the right, by tag and class; nothing should."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
          .filter((one) => one.getClientRects().length)
          .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
          .filter((one) => !one.closest(".hidden, .scroll, dialog:not([open])"))
          .map((one) => `${one.tagName} ${one.className}`)"""
    )
    return found


def poor_contrasts(page: Page) -> list[str]:
    """Texts with less contrast than 4.5 to 1 (WCAG 2.2, 1.4.3)."""
    found: list[str] = page.evaluate(
        """() => {
          const parts = (color) => color.match(/[\\d.]+/g).map(Number);
          const light = (color) => {
            const [r, g, b] = parts(color).slice(0, 3).map((value) => value / 255).map(
              (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const behind = (one) => {
            for (; one; one = one.parentElement) {
              const color = getComputedStyle(one).backgroundColor;
              if (parts(color)[3] !== 0) return color;
            }
          };
          const texts = [...document.querySelectorAll("body *")].filter((one) =>
            one.getClientRects().length && !one.closest(".hidden, script, svg") &&
            [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
          return texts.filter((one) => {
            const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5;
          }).map((one) => one.textContent);
        }"""
    )
    return found
