"""Makes weak judgements by a model, marks some for a person, and takes the corrected ones back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from random import Random

import orjson

from batchrank.errors import RejectedError, UsageError
from batchrank.formats.trec import Line, numbered_lines
from batchrank.formats.wording import shown
from batchrank.measuring.sampling import Sample
from batchrank.measuring.trials import Settings, Trials, without_stages
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.presets import PRESETS

GRADES = (0, 1, 2)
POOL = 20
"""Of each query so many of the best are judged, as judgements are pooled at TREC."""
_HIGH, _RELATED = 7, 4
"""Of the template's grades from 0 to 10: from 7 on the query is answered, from 4 it is on topic."""
_SEED = 1
_NO_LABEL = "not a line of `batchrank label`"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Label:
    """A judgement, as a line of the file that a person corrects.

    `check` marks those to look at; `corrected` is for the person's grade, None until there is one.
    """

    check: bool
    corrected: int | None
    grade: int
    query: str
    title: str
    text: str
    qid: str
    docid: str


@dataclass(frozen=True, slots=True)
class Checked:
    """How a person and the model agree on what both graded.

    `table[weak][corrected]` counts; `kappa` is Cohen's (1960), None where chance alone explains
    all, as where every grade is the same.
    """

    checked: int
    unchecked: int
    share: float
    kappa: float | None
    table: list[list[int]]


def strongest(base: JobSpec) -> Settings:
    """The job that judges: the preset `thorough` finds the best, then each of them is graded.

    Model, server and limits are those of `base`, the language of the templates too.
    """
    first = base.stages[0].template_name or ""
    language = "zh" if first.endswith("-zh") else "en"
    return {
        **without_stages(base),
        "stage": [
            {**PRESETS["thorough"], "template": f"direct-{language}"},
            {
                "strategy": "pointwise",
                "answer": "graded",
                "depth": POOL,
                "template": f"graded-{language}",
            },
        ],
    }


async def label(trials: Trials, sample: Sample, base: JobSpec, check: float) -> list[Label]:
    """Grade the best of each query of the sample; a share of `check` is marked for a person.

    Those to check stand first, all in the order of the sample. A document without a usable grade
    has no label. Raises RejectedError where none has one, and as `Trials.run_well`.
    """
    trial = await trials.run_well(strongest(base))
    windows = await trials.windows(trial)
    labels = []
    for request, asked in zip(sample.requests, windows, strict=True):
        documents = {document.docid: document for document in request.candidates}
        for one in asked:
            for docid, score in zip(
                one.permutation.order, one.permutation.scores or (), strict=False
            ):
                document = documents[docid]
                labels.append(
                    Label(
                        check=False,
                        corrected=None,
                        grade=2 if score >= _HIGH else int(score >= _RELATED),
                        query=request.query.text,
                        title=document.title or "",
                        text=document.text,
                        qid=request.query.qid,
                        docid=docid,
                    )
                )
    if not labels:
        raise RejectedError("the model gave no usable grade at all")
    return _marked(labels, check)


def _marked(labels: Sequence[Label], check: float) -> list[Label]:
    """Every judgement is as likely to be marked, or the agreement would not be that of all."""
    count = math.ceil(check * len(labels))
    places = set(Random(_SEED).sample(range(len(labels)), count))  # noqa: S311 - no secret
    marked = [
        Label(**{**asdict(one), "check": place in places}) for place, one in enumerate(labels)
    ]
    return sorted(marked, key=lambda one: not one.check)


def write_labels(labels: Iterable[Label]) -> bytes:
    """One JSON object a line."""
    return b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in labels)


def write_qrels(labels: Iterable[Label]) -> bytes:
    """TREC qrels, a person's grade in place of the model's; raises UsageError for white space."""
    lines = []
    for one in labels:
        for identifier in (one.qid, one.docid):
            if identifier.split() != [identifier]:
                raise UsageError(
                    f"TREC qrels can't hold the identifier {identifier!r}: white space"
                )
        lines.append(
            f"{one.qid} 0 {one.docid} {one.grade if one.corrected is None else one.corrected}\n"
        )
    return "".join(lines).encode(errors="replace")


def read_labels(path: Path) -> list[Label]:
    """Read a file of labels, corrected or not; raises UsageError that names the line."""
    labels = []
    seen: dict[tuple[str, str], int] = {}
    for line in numbered_lines(path):
        one = _label(line)
        first = seen.setdefault((one.qid, one.docid), line.number)
        if first != line.number:
            raise UsageError(
                f"{line.where}: document {shown(one.docid)} of query {shown(one.qid)} stands on "
                f"line {first} too: remove one of them"
            )
        labels.append(one)
    return labels


def _label(line: Line) -> Label:
    try:
        row = orjson.loads(line.text)
    except orjson.JSONDecodeError:
        raise UsageError(f"{line.where}: {_NO_LABEL}: not JSON") from None
    if not isinstance(row, dict):
        raise UsageError(f"{line.where}: {_NO_LABEL}: not a JSON object")
    for field in fields(Label):
        value = row.get(field.name, _MISSING)
        if value is _MISSING:
            raise UsageError(f"{line.where}: {_NO_LABEL}: {field.name!r} is missing")
        if field.name in ("grade", "corrected"):
            if value is None and field.name == "corrected":
                continue
            # True is 1 to Python, and 1.0 too.
            if type(value) is not int or value not in GRADES:
                raise UsageError(
                    f"{line.where}: {field.name!r} is {shown(value)}, no grade: write 0, 1 or 2"
                    + (", or null" if field.name == "corrected" else "")
                )
        elif not isinstance(value, bool if field.name == "check" else str):
            raise UsageError(f"{line.where}: {field.name!r} can't be {shown(value)}")
    if unknown := sorted(row.keys() - {field.name for field in fields(Label)}):
        raise UsageError(f"{line.where}: {_NO_LABEL}: unknown key {shown(unknown[0])}")
    return Label(**row)


def compare_grades(labels: Sequence[Label]) -> Checked:
    """How the corrected labels agree with the weak ones; UsageError where nothing is corrected."""
    both = [(one.grade, one.corrected) for one in labels if one.corrected is not None]
    if not both:
        raise UsageError(
            'no label has a person\'s grade: write one in place of null behind "corrected"'
        )
    counts = Counter(both)
    table = [[counts[weak, strong] for strong in GRADES] for weak in GRADES]
    observed = sum(table[grade][grade] for grade in GRADES) / len(both)
    chance = (
        sum(sum(table[grade]) * sum(row[grade] for row in table) for grade in GRADES)
        / len(both) ** 2
    )
    return Checked(
        checked=len(both),
        unchecked=sum(one.check and one.corrected is None for one in labels),
        share=observed,
        kappa=None if chance == 1 else (observed - chance) / (1 - chance),
        table=table,
    )
