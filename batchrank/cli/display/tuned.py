"""The reports of `diagnose`, `tune` and `label` as text of at most 100 columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from string import ascii_letters

from batchrank.cli.display.columns import sentence, table
from batchrank.cli.display.plots import bars, scatter
from batchrank.formats.wording import counted
from batchrank.measuring.bias import Effect
from batchrank.measuring.diagnosis import Diagnosis, Quality
from batchrank.measuring.labelling import GRADES, Checked, Label
from batchrank.measuring.tuning import Tried, Tuning
from batchrank.metrics.evaluation import NDCG

_CHOSEN = "Chosen by `batchrank tune`"


def diagnosis_lines(found: Diagnosis) -> list[str]:
    """What `diagnose` found; the sentence last."""
    lines = sentence(
        f"{counted(found.queries, 'query', 'queries')}, one window of up to {found.window_size} "
        f"documents each, in {len(found.winners)} presentations"
    )
    if found.left_out:
        left_out = counted(found.left_out, "query", "queries")
        lines += sentence(f"{left_out} left out: an answer was unusable or missing")
    header = ("agreement between orders", "Kendall tau", "overlap@10")
    alike = [
        (f"{one.first} and {one.second}", f"{one.tau:.4f}", f"{one.overlap:.4f}")
        for one in found.alike
    ]
    parts = len(next(iter(found.winners.values())))
    names = [_part(place, parts) for place in range(parts)]
    lines += ["", *table(header, alike), ""]
    lines += sentence("where the winners (the best fifth of an answer) sat in the prompt:")
    lines += bars(names, found.winners)
    pairs = found.pairs
    lines += [
        "",
        *sentence(
            f"of all pairs of documents, shown in both orders, {pairs.same:.0%} came out alike, "
            f"{pairs.echoed:.0%} merely echoed the prompt, {pairs.against:.0%} went against it"
        ),
    ]
    unmoved = ", ".join(f"{share:.0%} {name}" for name, share in found.unmoved.items())
    lines += sentence(f"answers that are the prompt's order itself: {unmoved}")
    lines += sentence(
        f"worth of a place, as a share of the list: the first over the last "
        f"{_effect(found.bias.front)}, the ends over the middle {_effect(found.bias.ends)}"
    )
    if found.quality is not None:
        lines += ["", *_quality_lines(found.quality)]
    return [*lines, "", *sentence(found.sentence)]


def tuning_lines(found: Tuning) -> list[str]:
    """What `tune` found: the table, the plot, the choice."""
    letters = _letters(found)
    lines = sentence(
        f"{counted(found.queries, 'query', 'queries')}; cost: prompt tokens + "
        f"{found.generated_weight:g} x generated tokens a query; first stage: {NDCG} "
        f"{found.first_stage:.4f}"
    )
    header = ("", "setting", "", NDCG, "to the best", "calls", "prompt", "generated", "cost")
    rows = [
        (
            letter,
            one.setting.name,
            _marks(one, found),
            f"{one.ndcg:.4f}",
            "" if one is found.best else f"{one.to_best.change:+.4f}",
            f"{one.calls:,.1f}",
            f"{one.prompt_tokens:,.0f}",
            f"{one.generated_tokens:,.0f}",
            f"{one.cost:,.0f}",
        )
        for letter, one in letters
    ]
    lines += ["", *table(header, rows, texts=3, wraps=True), ""]
    lines += sentence(
        "frontier: nothing that costs as little ranks better; noise: the 95% interval of the "
        "difference to the best (paired bootstrap over queries) holds 0"
    )
    # Where two points meet, the one on the frontier is seen.
    seen = sorted(letters, key=lambda item: not item[1].on_frontier)
    points = [(letter, one.cost, one.ndcg) for letter, one in seen]
    lines += ["", *scatter(points, "cost (logarithmic)", NDCG), ""]
    lines += [
        line
        for name, reason in found.impossible.items()
        for line in sentence(f"not possible: {name}: {reason}")
    ]
    for one in found.tried:
        if one.rejected is not None:
            lines += sentence(f"rejected: {one.setting.name}: {one.rejected}")
    if found.unreached:
        lines += sentence(f"beyond the budget: {'; '.join(found.unreached)}")
    lines += sentence(f"{counted(found.calls, 'call')} made; chosen: {_choice(found)}")
    if not any(one.cost for one in found.tried):
        lines += sentence("warning: the server counts no tokens, so that cost says nothing")
    gain = found.best.to_best
    if gain.low <= 0:
        lines += sentence(
            f"warning: the best is not surely better than the first stage ({gain.change:+.4f}, "
            f"95% interval {gain.low:+.4f} to {gain.high:+.4f})"
        )
    return lines


def is_tuned(path: Path) -> bool:
    """Whether a file is a job spec that `tune` wrote."""
    return path.is_file() and path.read_bytes().startswith(f"# {_CHOSEN}".encode())


def spec_comment(found: Tuning) -> str:
    """What stands above the settings in the job spec that is written."""
    return (
        f"{_CHOSEN} on {counted(found.queries, 'query', 'queries')}:\n"
        f"{_choice(found)}\n"
        f"First stage: {NDCG} {found.first_stage:.4f}. Confirm it on other queries with "
        "`batchrank eval`.\n"
        "Run it: batchrank run queries.jsonl --job THIS_FILE"
    )


def tuning_value(found: Tuning) -> dict[str, object]:
    """All that `tune` found, for --json."""
    return {
        "queries": found.queries,
        "measure": NDCG,
        "generated_weight": found.generated_weight,
        "calls": found.calls,
        "first_stage": found.first_stage,
        "chosen": found.chosen.setting.name,
        "best": found.best.setting.name,
        "tried": [
            {
                "setting": one.setting.name,
                "changes": one.setting.changes,
                **{name: value for name, value in asdict(one).items() if name != "setting"},
            }
            for one in found.tried
        ],
        "unreached": found.unreached,
        "impossible": found.impossible,
    }


def label_lines(labels: Sequence[Label], output: Path, to_check: Path) -> list[str]:
    """What `label` made."""
    counts = ", ".join(
        f"{sum(one.grade == grade for one in labels):,} of grade {grade}" for grade in GRADES
    )
    queries = counted(len({one.qid for one in labels}), "query", "queries")
    marked = sum(one.check for one in labels)
    return [
        *sentence(f"{counted(len(labels), 'weak judgement')} for {queries}: {counts}"),
        *sentence(f"written to {output}"),
        *sentence(_for_a_person(marked, to_check)),
    ]


def _for_a_person(marked: int, to_check: Path) -> str:
    if not marked:
        return f"none is marked for a person (--check 0); all are in {to_check}"
    which = (
        f"the first {marked:,} lines of {to_check} are"
        if marked > 1
        else (f"the first line of {to_check} is")
    )
    return (
        f'{which} for a person: write a grade in place of null behind "corrected", then run: '
        f"batchrank label --corrected {to_check} -o FILE"
    )


def checked_lines(found: Checked) -> list[str]:
    """How a person and the model agree."""
    header = ("model / person", *(str(grade) for grade in GRADES))
    rows = [
        (str(grade), *(f"{count:,}" for count in row))
        for grade, row in zip(GRADES, found.table, strict=True)
    ]
    kappa = "not defined" if found.kappa is None else f"{found.kappa:.4f}"
    lines = [*table(header, rows), ""]
    lines += sentence(
        f"{counted(found.checked, 'judgement')} checked: {found.share:.0%} alike, "
        f"Cohen's kappa {kappa}"
    )
    if found.unchecked:
        lines += sentence(
            f"{found.unchecked:,} marked ones were not checked: the model's grade stays"
        )
    return lines


def _part(place: int, parts: int) -> str:
    return f"{100 * place // parts}-{100 * (place + 1) // parts}%"


def _effect(effect: Effect) -> str:
    value, low, high = (round(part, 2) + 0.0 for part in (effect.value, effect.low, effect.high))
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"


def _quality_lines(quality: Quality) -> list[str]:
    rows = [("first stage as it came", f"{quality.first_stage:.4f}", "", "")]
    rows += [(f"shown: {name}", f"{value:.4f}", "", "") for name, value in quality.alone.items()]
    rows += [
        (
            f"first stage + {name}, fused",
            f"{made.after:.4f}",
            f"{made.difference.change:+.4f}",
            f"{made.difference.low:+.4f} to {made.difference.high:+.4f}",
        )
        for name, made in quality.fused.items()
    ]
    return table(("order", NDCG, "by the pass", "95% interval"), rows)


def _letters(found: Tuning) -> list[tuple[str, Tried]]:
    """A letter for each that was tried, as long as there are letters."""
    letters = itertools.chain(ascii_letters, itertools.repeat("."))
    return list(zip(letters, found.tried, strict=False))


def _marks(one: Tried, found: Tuning) -> str:
    marks = {
        "chosen": one is found.chosen,
        "best": one is found.best,
        "frontier": one.on_frontier and one is not found.best and one is not found.chosen,
        "noise": one.is_noise,
        "rejected": one.rejected is not None,
    }
    return " ".join(mark for mark, holds in marks.items() if holds)


def _choice(found: Tuning) -> str:
    chosen, best = found.chosen, found.best
    told = f"{chosen.setting.name}: {NDCG} {chosen.ndcg:.4f}, cost {chosen.cost:,.0f}"
    if chosen is best:
        return f"{told}, the best of {len(found.tried)}"
    return (
        f"{told}, within a standard error of the best ({best.setting.name}: {best.ndcg:.4f}, "
        f"cost {best.cost:,.0f})"
    )
