"""A versioned prompt template: a TOML file with jinja2 text, known in every key by its hash."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, get_args

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from batchrank.errors import UsageError

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
)
_TRIAL = ("what is shown?", ("first document", "second document"))
Kind = Literal["direct", "letters", "explain", "binary", "graded", "likelihood"]
"""What a template asks for: an order of documents (the first three), or a score of one document."""
_BROKEN = (
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    jinja2.TemplateError,
)
"""What a file that is no TOML, lacks a key, or holds a broken expression can raise."""
_BUILT_IN = resources.files("batchrank.prompts") / "templates"


@dataclass(frozen=True, slots=True)
class Template:
    """`name` stands in outputs (`direct-en@1`), `digest` in keys; `language` is for people."""

    name: str
    digest: str
    kind: Kind
    language: str
    text: jinja2.Template

    def render(
        self,
        documents: Sequence[str],
        *,
        query: str | None = None,
        wanted: int = 1,
        example: str = "",
        labels: Sequence[str] = (),
    ) -> str:
        """The text of one prompt.

        `documents` are neutralised, truncated texts as shown, the first of them also as `document`;
        `example` is how an answer looks; `labels` are the letters of the kind "letters". The query
        is not there for the kind "likelihood", whose target it is.
        """
        values: dict[str, object] = {
            "documents": documents,
            "document": documents[0],
            "count": len(documents),
            "wanted": wanted,
            "example": example,
            "labels": labels,
        }
        return self.text.render(values if query is None else values | {"query": query})


NO_TEMPLATE = Template("none", "", "direct", "", _ENVIRONMENT.from_string(""))
"""For a reading that sends texts as they are."""


def built_in_names() -> list[str]:
    """Names that `load_template` takes without a path."""
    return sorted(entry.name.removesuffix(".toml") for entry in _BUILT_IN.iterdir())


def load_template(name: str, kind: Kind | None = "direct") -> Template:
    """Load a built-in template by name, or one's own by path; UsageError says what is wrong.

    It must be of `kind` (None for any), and show all that its kind should. A file that names no
    kind is "direct".
    """
    if name in built_in_names():
        source = (_BUILT_IN / f"{name}.toml").read_text(encoding="utf-8")
    else:
        try:
            source = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(
                f"template {name!r} is neither built in ({', '.join(built_in_names())}) "
                f"nor a readable file: {error}"
            ) from error
    try:
        template = _parse(source)
        shown = _trials(template)
    except _BROKEN as error:
        raise UsageError(f"template {name!r} can't be used: {error}") from error
    if kind is not None and template.kind != kind:
        raise UsageError(
            f"template {name!r} is of kind {template.kind!r} and this job needs one of {kind!r}"
        )
    query, documents = _TRIAL
    needed = documents if template.kind in ("direct", "letters", "explain") else documents[:1]
    if template.kind != "likelihood":
        needed = (query, *needed)
    if not all(part in text for part in needed for text in shown):
        raise UsageError(f"template {name!r} doesn't show the query and every document")
    return template


def _parse(source: str) -> Template:
    fields = tomllib.loads(source)
    kind: Kind = fields.get("kind", "direct")
    if kind not in get_args(Kind):
        raise ValueError(f"its kind is {kind!r} and not one of {', '.join(get_args(Kind))}")
    return Template(
        f"{fields['name']}@{fields['version']}",
        hashlib.sha256(source.encode()).hexdigest(),
        kind,
        str(fields.get("language", "")),
        _ENVIRONMENT.from_string(
            fields["text"], globals={"examples": tuple(fields.get("examples", ()))}
        ),
    )


def _trials(template: Template) -> list[str]:
    """Prompts for all and for some of two documents, as its kind of reading renders them."""
    query, documents = _TRIAL
    asked = None if template.kind == "likelihood" else query
    return [
        template.render(
            documents, query=asked, wanted=wanted, example="[2]", labels=ascii_uppercase
        )
        for wanted in (1, 2)
    ]
