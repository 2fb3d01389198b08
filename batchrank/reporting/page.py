"""Draws facts as one page that loads nothing and whose texts are never markup."""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from batchrank.formats.wording import counted, duration, money
from batchrank.measuring.comparison import Change
from batchrank.reporting import charts
from batchrank.reporting.charts import Chart
from batchrank.reporting.facts import Facts
from batchrank.reporting.queries import FIRST_STAGE
from batchrank.spec.walltime import local
from batchrank.store.records import Run
from batchrank.values import QueryStatus

_POLICY = (
    "default-src 'none'; img-src data:; style-src {style}; script-src {script}; "
    "base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of what stands around them."""
_ENDINGS = {
    0: ("complete", "good"),
    3: ("rejected by a gate", "bad"),
    4: ("stopped: no model server", "bad"),
    75: ("stopped early", "warn"),
}


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure at the top of the page."""

    name: str
    value: str
    note: str = ""
    kind: str = ""


def render(facts: Facts) -> str:
    """The page as a whole document."""
    style, script = _text("style.css"), _text("script.js")
    policy = _POLICY.format(style=_hash(style), script=_hash(script))
    template = _environment().get_template("report.html")
    return template.render(
        facts=facts,
        run=facts.run,
        title=PurePath(facts.run.input).name,
        first_stage=FIRST_STAGE,
        style=Markup(style),  # noqa: S704 - shipped with the package
        script=Markup(script),  # noqa: S704 - shipped with the package
        policy=policy,
        ending=_ending(facts.run),
        tiles=_tiles(facts),
        charts=_charts(facts),
        statuses=[(status, facts.totals.queries.get(status, 0)) for status in QueryStatus],
        written=datetime.now(UTC).astimezone(),
        spent=(
            ("paid", facts.spending.paid),
            ("from the store", facts.spending.kept),
        ),
    )


def seen(value: object) -> object:
    r"""A text without characters that are not to be seen as such: controls become `\x1b`.

    Those that turn the direction of text do so too, and halves of surrogate pairs.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    if value.isascii() and value.isprintable():
        return value
    return re.sub(r"[^\n -~]", _escaped, value)


def signed(value: float) -> str:
    """With its sign, a real minus; nothing is `0.000`, without one."""
    text = f"{value:+.3f}"
    return text.replace("-", "−") if float(text) else text[1:]


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in _BIDI or unicodedata.category(character) in ("Cc", "Cs"):
        return character.encode("unicode_escape").decode()
    return character


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _text(name: str) -> str:
    return (files(__package__ or "") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        finalize=seen,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "fine": _fine,
        "money": money,
        "signed": signed,
        "counted": counted,
        "moment": _moment,
        "interval": _interval,
    }
    return environment


def _moment(epoch: float) -> str:
    return f"{local(epoch):%Y-%m-%d %H:%M}"


def _fine(seconds: float) -> str:
    return f"{seconds:.2f} s" if 0.1 <= seconds < 10 else duration(seconds)


def _interval(made: Change) -> str:
    return f"{signed(made.difference.low)} to {signed(made.difference.high)}"


def _ending(run: Run) -> tuple[str, str]:
    if run.ended is None:
        return "has not ended, or was killed", "warn"
    return _ENDINGS.get(run.exit or 0, ("failed", "bad"))


def _tiles(facts: Facts) -> list[Tile]:
    tally, spending = facts.totals.tally, facts.spending
    ranked = sum(
        facts.totals.queries.get(status, 0)
        for status in (QueryStatus.OK, QueryStatus.REPAIRED, QueryStatus.DEGRADED)
    )
    tokens = spending.paid.usage
    tiles = []
    if facts.evaluation is not None and facts.evaluation.changes:
        change = facts.evaluation.changes[0]
        sure = change.difference.is_sure
        kind = ("good" if change.difference.change > 0 else "bad") if sure else ""
        note = f"{change.before:.3f} to {change.after:.3f}" + ("" if sure else ", may be chance")
        if (compared := facts.evaluation.compared) < facts.evaluation.judged:
            note += f", {compared:,} of {facts.evaluation.judged:,} judged queries"
        tiles.append(Tile(change.measure, signed(change.difference.change), note, kind))
    seconds = spending.seconds
    tiles += [
        _ranked(facts, ranked),
        Tile(
            "On the clock",
            "–" if seconds is None else duration(seconds),
            "no call was paid for"
            if not spending.paid.number
            else counted(spending.paid.number, "call")
            if not seconds
            else f"{ranked / seconds * 3600:,.0f} queries an hour",
        ),
        Tile(
            "Tokens",
            _short(tokens.prompt_tokens),
            f"in prompts, {_short(tokens.completion_tokens)} generated",
        ),
        Tile(
            "Without a ranking",
            f"{tally.bad / tally.windows:.1%}" if tally.windows else "–",
            f"{tally.bad:,} of {counted(tally.windows, 'window')}",
            "" if not tally.bad else "warn",
        ),
    ]
    if facts.price is not None:
        per = f"{money(facts.price.per_1000_queries)} per 1,000 queries"
        tiles.append(Tile("Cost", money(facts.price.night), per))
    return tiles


def _ranked(facts: Facts, ranked: int) -> Tile:
    if facts.taken_over_by is not None:
        return Tile("Queries ranked", "–", f"they are in run {facts.taken_over_by}")
    of = facts.coverage
    return Tile(
        "Queries ranked", f"{ranked:,}", f"of {'' if of.is_read else 'at least '}{of.lines:,}"
    )


def _short(count: int) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return str(count)


def _charts(facts: Facts) -> Mapping[str, Chart]:
    drawn: dict[str, Chart] = {}
    if facts.evaluation is not None and facts.evaluation.changes:
        drawn["measures"] = charts.measures_chart(facts.evaluation.changes)
    if facts.slots:
        drawn["slots"] = charts.slots_chart(facts.slots)
    if facts.latency is not None:
        drawn["latency"] = charts.latency_chart(facts.latency)
    if facts.totals.tally.windows:
        drawn["windows"] = charts.windows_chart(facts.totals.tally)
    if facts.movement.queries:
        drawn["origins"] = charts.origins_chart(facts.movement)
        drawn["fresh"] = charts.fresh_chart(facts.movement)
    if facts.winners is not None:
        drawn["winners"] = charts.winners_chart(facts.winners)
    return drawn
