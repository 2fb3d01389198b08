"""Writes a first job spec, with comments that say what was seen of the input and the servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from batchrank.backends.discovery import Found
from batchrank.formats.sources.source import Source
from batchrank.formats.toml import write_toml
from batchrank.formats.wording import counted, displayable
from batchrank.nightly.survey import Survey, at_share
from batchrank.results.filenames import default_output
from batchrank.spec.dates import literal
from batchrank.spec.jobspec import JobSpec

_NO_RERANKER = ("embed", "whisper", "bge-", "nomic", "minilm")
"""Parts of the names of models that write no text."""
_WIDTH = 96
_OFTEN = 0.95
_LESS_DEEP = 60
"""The depth of the preset `fast`."""


def starter_spec(
    source: Source, name: str, seen: Survey, servers: Sequence[Found], today: date
) -> str:
    """The text of a job spec (TOML) for an input, which reads back without a change.

    Files of the job are called after its `name`. `seen` is about the first lines of the input, of
    which one at least can be used. The first of `servers` is taken; where there is none, the model
    that comes with the embedded backend. A setting behind `# ` can be had by removing that, and
    all of them together: then the job is the whole night.
    """
    sections = (
        _head(source.path, today),
        _files(source, name, seen),
        _model(servers),
        _ranking(seen, listwise=bool(servers)),
        _GATES,
        _afterwards(name),
        _night(seen),
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _head(source: str, today: date) -> Iterator[str]:
    yield f"# Reranks {displayable(source)}; made by `batchrank init` on {today}."
    yield "# Keys are the long flags of `batchrank run` with underscores: `batchrank run --help`."
    yield "# Remove the # before a setting to have it."


def _files(source: Source, name: str, seen: Survey) -> Iterator[str]:
    yield _rule("What goes in and comes out")
    yield "# {date} in a file's name is the day on which the night began, such as 2026-11-30."
    if seen.unusable:
        lines = counted(seen.unusable, "line")
        yield f"# {lines} at the beginning can't be used: `batchrank check` says which and why."
    yield _line("input", literal(source.path))
    belonging = {"corpus": source.corpus, "topics": source.topics, "run_file": source.run_file}
    yield from (_line(key, literal(path)) for key, path in belonging.items() if path is not None)
    yield _line("output", literal(default_output(source.path, "jsonl")))
    yield (
        _line("store", literal(f"{name}.sqlite"))
        + "  # of all nights: what makes equal queries free"
    )


def _model(servers: Sequence[Found]) -> Iterator[str]:
    yield _rule("Where the model is")
    if not servers:
        yield "# No model server answers on this machine, so a model is loaded into the process."
        yield "# It ranks less well than one on a server, which is named in place of backend:"
        yield '#     base_url = "http://gpu1:8000"'
        yield _line("backend", "embedded")
        return
    for server in servers:
        models = ", ".join(displayable(one) for one in server.models)
        yield f"# {server.name} at {server.url} has {models or 'no model'}."
    server = servers[0]
    yield _line("backend", server.backend)
    yield _line("base_url", server.url)
    rankers = [one for one in server.models if not _is_no_reranker(one)]
    if rankers:
        yield "# Something between 4 and 9 billion parameters, instruction-tuned, ranks well."
        yield _line("model", rankers[0])


def _is_no_reranker(model: str) -> bool:
    return any(part in model.lower() for part in _NO_RERANKER)


def _ranking(seen: Survey, *, listwise: bool) -> Iterator[str]:
    yield _rule("How a query is ranked: a change here makes it another job")
    yield from _depth(seen)
    long = max(1, at_share(seen.tokens, _OFTEN))
    yield f"# 19 of 20 documents have {long:,} tokens or less; of longer ones a prompt shows the"
    yield "# beginning."
    tokens = JobSpec.model_fields["max_doc_tokens"].default
    yield ("" if listwise else "# ") + _line("max_doc_tokens", tokens)
    if seen.is_chinese and listwise:
        yield "# Most queries are in Chinese, and so are the instructions:"
        yield _line("template", "direct-zh")
    if listwise:
        yield "# Ask only for what changed since a query's last ranking:"
        yield "# incremental = true"


def _depth(seen: Survey) -> Iterator[str]:
    most, middle = max(seen.candidates), at_share(seen.candidates, 0.5)
    depth = JobSpec.model_fields["depth"].default
    looked_at = counted(seen.queries, "query", "queries")
    yield f"# Of {looked_at} looked at, the longest list has {counted(most, 'candidate')}, and half"
    beyond = "all are reranked" if most <= depth else f"those behind {depth} keep their order"
    yield f"# have {middle:,} or more: {beyond}."
    if middle > _LESS_DEEP:
        yield f"# Depth {_LESS_DEEP} costs a third less and little quality (docs/strategies.md)."
    yield _line("depth", depth)


def _afterwards(name: str) -> Iterator[str]:
    yield _rule("After the ranking, once no gate is against it: docs/publishing.md, docs/report.md")
    yield _comment("publish", {"target": f"sqlite:{literal(name)}-cache.sqlite", "ttl": "7d"})
    yield "# Where the rankings are looked up; or redis://127.0.0.1:6379/0 (needs redis-py)."
    yield _comment("report", f"{literal(name)}-{{date}}.html") + "  # a page about the run"


def _comment(key: str, value: object) -> str:
    return f"# {_line(key, value)}"


def _night(seen: Survey) -> Iterator[str]:
    yield _rule("When the night is too short")
    if seen.weighted:
        yield "# Queries that weigh more go first."
    yield '# deadline = "06:00"  # local time; what is left goes first next night'


def _line(key: str, value: object) -> str:
    return write_toml({key: value}, "").strip().splitlines()[-1]


def _rule(title: str) -> str:
    return f"# --- {title} ".ljust(_WIDTH, "-")


_GATES = (
    _rule("When the result must not be used: exit 3, and the old output stays"),
    '# max_fallback = "5%"            # share of windows without a usable answer',
    '# max_failed = "1%"              # share of queries that failed',
    '# gate_qrels = "canaries.qrels"  # judged queries: stop if they come out worse',
    '# min_overlap = "50%"            # share of the top 10 that must be as last time',
)
