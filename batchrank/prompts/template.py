"""A versioned prompt template: a TOML file with jinja2 text, known in every key by its hash."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

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
    """`name` stands in outputs (`direct-en@1`), `digest` in keys."""

    name: str
    digest: str
    text: jinja2.Template

    def render(self, query: str, documents: Sequence[str], *, wanted: int, example: str) -> str:
        """The text of one prompt.

        `documents` are neutralised, truncated texts as shown; `example` is how an answer looks.
        """
        return self.text.render(
            query=query,
            documents=documents,
            count=len(documents),
            wanted=wanted,
            example=example,
        )


def built_in_names() -> list[str]:
    """Names that `load_template` takes without a path."""
    return sorted(entry.name.removesuffix(".toml") for entry in _BUILT_IN.iterdir())


def load_template(name: str) -> Template:
    """Load a built-in template by name, or one's own by path; UsageError says what is wrong."""
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
    query, documents = _TRIAL
    try:
        fields = tomllib.loads(source)
        label = f"{fields['name']}@{fields['version']}"
        template = Template(
            label,
            hashlib.sha256(source.encode()).hexdigest(),
            _ENVIRONMENT.from_string(fields["text"]),
        )
        shown = [
            template.render(query, documents, wanted=wanted, example="[2]") for wanted in (1, 2)
        ]
    except _BROKEN as error:
        raise UsageError(f"template {name!r} can't be used: {error}") from error
    if not all(needed in text for needed in (query, *documents) for text in shown):
        raise UsageError(f"template {name!r} doesn't show the query and every document")
    return template
