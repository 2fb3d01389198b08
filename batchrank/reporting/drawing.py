"""Turns a figure into SVG for the page: text as text, the page's own colours, no ids that clash."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_DPI = 72  # a unit of the drawing is a pixel of the page
_FONT = 12.0

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        name: f"#0102{number:02x}"
        for number, name in enumerate(
            ("ink", "quiet", "line", "accent", "tint", "good", "repaired", "warn", "bad", "card"), 1
        )
    }
)
"""What stands in a figure for a colour of the page, by the name of its CSS variable."""
_NAMES = {colour: name for name, colour in COLOURS.items()}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "batchrank",
    "text.parse_math": False,
    "figure.constrained_layout.w_pad": 0.01,
    "figure.constrained_layout.h_pad": 0.02,
    "font.size": _FONT,
    "axes.edgecolor": COLOURS["line"],
    "axes.labelcolor": COLOURS["quiet"],
    "text.color": COLOURS["quiet"],
    "xtick.labelcolor": COLOURS["quiet"],
    "ytick.labelcolor": COLOURS["quiet"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": COLOURS["line"],
    "grid.linewidth": 1,
}


class Drawing:
    """One figure of `width` by `height` pixels; `svg` is what it is once it was drawn."""

    def __init__(self, width: int, height: int) -> None:
        self._figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, layout="constrained")
        FigureCanvasSVG(self._figure)
        self.axes: Axes = self._figure.add_subplot()

    def svg(self, name: str, label: str) -> Markup:
        """As markup; `name` is unique on its page, `label` says what is seen."""
        written = io.StringIO()
        self._figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
        return Markup(_inline(written.getvalue(), name, label))  # noqa: S704 - made here


@contextmanager
def drawing(width: int, height: int) -> Iterator[Drawing]:
    """A figure in the manner of the page."""
    with mpl.rc_context(_SETTINGS):
        yield Drawing(width, height)


def _inline(text: str, name: str, label: str) -> str:
    ET.register_namespace("", _SVG)
    root = ET.fromstring(text)  # noqa: S314 - written by matplotlib just now
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    referenced = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    kept = {one or other for one, other in referenced}
    for element in root.iter():
        _tidy(element, name, kept)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "class": "chart",
        "role": "img",
        "aria-label": label,
    }
    return ET.tostring(root, encoding="unicode")


def _tidy(element: ET.Element, name: str, kept: set[str]) -> None:
    attributes = element.attrib
    identity = attributes.pop("id", None)
    if identity in kept:
        attributes["id"] = f"{name}-{identity}"
    if (target := attributes.pop(_XLINK, None)) is not None:
        attributes["href"] = f"#{name}-{target[1:]}"
    if (clip := attributes.get("clip-path")) is not None:
        attributes["clip-path"] = clip.replace("#", f"#{name}-")
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    # The page's policy forbids styles in attributes, and its classes know the dark mode.
    classes = []
    for part in attributes.pop("style", "").split(";"):
        key, _, value = (piece.strip() for piece in part.partition(":"))
        if key in ("fill", "stroke") and value in _NAMES:
            classes.append(f"{key}-{_NAMES[value]}")
        elif key and not key.startswith("font"):
            attributes[key] = value
    if element.tag == f"{{{_SVG}}}text" and "fill" not in attributes and not classes:
        classes.append("fill-quiet")
    if classes:
        attributes["class"] = " ".join(classes)
