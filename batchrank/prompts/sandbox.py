"""Compiles and renders the jinja2 text of a template within bounds of time and memory.

jinja2's sandbox keeps a template from the machine; it bounds `range` and nothing else. The text is
its user's own, so this guards against slips and not against malice.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from batchrank.hints import meant

_MOST = 1_000_000
"""Steps of loops in one rendering, and the largest number or length that a template may make."""
_STEPS = "steps left"
"""Where a rendering counts its steps; no variable of a template can have this name."""
_ROOM = 100_000
_FOLD = 10
"""A prompt may have so many characters, and so many times those of the texts it shows."""
_PIECES = 200
"""Of a rendering, between two looks at its length: more than most prompts have."""
_TEMPLATE = "<template>"
_BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    jinja2.TemplateError,
)
"""What a broken expression can raise."""


class TextError(Exception):
    """The text of a template can't be used; `line` counts from 1, None where that is not known."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(("*", "**"))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up an attribute; the number of a document in a loop is known to be harmless."""
        if type(obj) is LoopContext and attribute == "index":
            return obj.index
        return super().getattr(obj, attribute)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply, or refuse to where the product would be too large or too long."""
        size = 0.0
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            size = 2.0 ** min(64, (abs(left).bit_length() - 1) * right)
        elif operator == "*":
            size = _size(left) * _size(right)
        if size > _MOST:
            raise OverflowError(f"{operator} makes a number or a text that is too large")
        return super().call_binop(context, operator, left, right)


def _size(value: object) -> float:
    if isinstance(value, int):
        return float(min(abs(value), _MOST + 1))
    return len(value) if isinstance(value, str | list | tuple) else 0


@jinja2.pass_context
def _counted(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    steps: Iterator[int] = context[_STEPS]
    for item in items:
        if next(steps, None) is None:
            raise OverflowError(f"its loops take more than {_MOST:,} steps")
        yield item


_ENVIRONMENT = _Sandbox(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
)
_ENVIRONMENT.filters[_STEPS] = _counted
# The same window has to make the same prompt in every run, or its answer is not found again.
del _ENVIRONMENT.filters["random"], _ENVIRONMENT.globals["lipsum"]
_OTHER_FILES = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)


def compiled(body: str, offered: Iterable[str], examples: tuple[object, ...]) -> jinja2.Template:
    """The template of a text that uses the variables `offered` and `examples`, which are given.

    Raises TextError for what is no jinja2, an unknown variable, another file or a number that is
    too large.
    """
    try:
        tree = _ENVIRONMENT.parse(body)
        _check_names(tree, (*offered, "examples"))
        for node in tree.find_all(_OTHER_FILES):
            raise TextError("it can't use other files", node.lineno)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, _STEPS, [], [], None, None, lineno=loop.lineno)
        for number in tree.find_all(nodes.Const):
            if isinstance(number.value, int | float) and number.value > _MOST:
                raise TextError(f"the number {number.value} is too large", number.lineno)
        template = _ENVIRONMENT.from_string(tree, globals={"examples": examples})
        template.globals = dict(
            template.globals
        )  # copied for every prompt, which a ChainMap is slow at
        return template
    except jinja2.TemplateSyntaxError as error:
        raise TextError(str(error.message), error.lineno) from error
    except _BROKEN as error:
        raise TextError(_said(error), None) from error


def rendered(template: jinja2.Template, values: Mapping[str, object], shown: int) -> str:
    """The text with `values`, which have `shown` characters of text; raises TextError."""
    most = _ROOM + _FOLD * shown
    text = ""
    try:
        # `Template.generate` is the same with a step more for each of many pieces.
        pieces = template.root_render_func(
            template.new_context({**values, _STEPS: iter(range(_MOST))})
        )
        while some := list(islice(pieces, _PIECES)):
            text += "".join(some)
            if len(text) > most:
                raise TextError(f"the prompt has more than {most:,} characters", None)
        return text
    except _BROKEN:
        try:
            _ENVIRONMENT.handle_exception()  # raises it again, with the lines of the text
        except _BROKEN as error:
            raise TextError(_said(error), _line(error)) from error


def _check_names(tree: nodes.Template, offered: Sequence[str]) -> None:
    known = {*offered, *_ENVIRONMENT.globals}
    unknown = meta.find_undeclared_variables(tree) - known
    for name in tree.find_all(nodes.Name):
        if name.name in unknown and name.ctx == "load":
            hint = meant(name.name, known) or f"; there are {', '.join(offered)}"
            raise TextError(f"unknown variable {name.name!r}{hint}", name.lineno)


def _line(error: BaseException) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename == _TEMPLATE), None)


def _said(error: BaseException) -> str:
    match error:
        case MemoryError():
            return "it takes more memory than there is"
        case RecursionError():
            return "it calls itself without end"
    text = next(iter(str(error).splitlines()), "")
    return text if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: {text}"
