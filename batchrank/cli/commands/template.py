"""`batchrank template list` and `template show`: the prompts, and how they look when rendered."""

from __future__ import annotations

from typing import Annotated

import typer

from batchrank.calls import ChatPrompt, Form, LikelihoodPrompt
from batchrank.formats.wording import printable
from batchrank.prompts.loading import built_in_names, load_template, template_source
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.template import Template
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.named import READERS
from batchrank.serving.sanity import sanity_requests
from batchrank.values import Window

_DOC_TOKENS = 80

app = typer.Typer(help="List the prompt templates, or show one rendered.", no_args_is_help=True)


@app.command("list")
def list_templates() -> None:
    """Name the built-in templates, what they are for and in which language.

    Example: batchrank template list
    """
    for name in built_in_names():
        template = load_template(name, None)
        answers = ", ".join(name for name, one in READERS.items() if one.kind == template.kind)
        typer.echo(f"{name:<16} {template.language}  --answer {answers}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|PATH", help="A name or a TOML file.")],
    source: Annotated[
        bool, typer.Option("--source", help="Print its TOML, to start one of your own from.")
    ] = False,
) -> None:
    """Check a template as a job would, and print it rendered for a small example.

    Examples:

      batchrank template show direct-en
      batchrank template show direct-en --source > mine.toml

    Exit code 2 where it can't be used.
    """
    template = load_template(name, None)
    if source:
        typer.echo(template_source(name), nl=False)
        return
    typer.echo(f"{template.name}, {template.kind}, {template.digest[:12]}", err=True)
    typer.echo(printable(_rendered(template)))


def _rendered(template: Template) -> str:
    reader = next(one for one in READERS.values() if one.kind == template.kind)
    request, _ = sanity_requests()[0]
    docids = request.docids[: reader.most]
    texts = QueryTexts(request, len(docids), Cut(TokenCounter(), _DOC_TOKENS))
    window = Window(docids, docids, min(2, len(docids)))
    prompt = reader.prompt(texts, window, Means(template, Form.TEXT))
    match prompt:
        case ChatPrompt(text=text):
            return text
        case LikelihoodPrompt(text=text, target=target):
            return f"{text}⟨{target}⟩"
    raise AssertionError(f"a template for {prompt!r}")
