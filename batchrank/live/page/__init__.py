"""The one page of the dashboard: markup, style and script in one document, and its policy."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

_POLICY = (
    "default-src 'none'; connect-src 'self'; img-src data:; style-src {style}; "
    "script-src {script}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


@dataclass(frozen=True, slots=True)
class Page:
    """The document, and the Content-Security-Policy that lets it do what it does and no more."""

    document: bytes
    policy: str


@cache
def load_page() -> Page:
    """The page as it is in the package."""
    folder = files(__name__)
    style, script, document = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js", "page.html")
    )
    document = document.replace("/*style*/", style).replace("/*script*/", script)
    policy = _POLICY.format(style=_hash(style), script=_hash(script))
    return Page(document.encode(), policy)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
