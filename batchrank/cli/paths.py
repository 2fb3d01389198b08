"""Refuses, before anything is done, an output that would destroy a file or can't be written."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from batchrank.errors import UsageError
from batchrank.formats.encoders.formats import HOLDS_TEXTS, output_format
from batchrank.formats.holdings import Holding, holding
from batchrank.formats.sources.source import files_of
from batchrank.formats.wording import quoted
from batchrank.progress.status import status_path
from batchrank.publishing.opening import target_path
from batchrank.results.filenames import rejected_name, summary_name
from batchrank.running.inputs import source_of
from batchrank.spec.jobspec import JobSpec
from batchrank.values import OutputFormat

_BESIDE = ("-wal", "-shm", "-journal", ".lock")


def check_paths(spec: JobSpec, source: str, output: str, job: Path | None) -> None:
    """See that a run writes to no file it needs; raises UsageError.

    Neither the output, nor the name of a result that passes no gate, nor a file beside the store
    may be one that is read.
    """
    reads = dict(_read(spec, source, job))
    stored = stored_files(spec.store)
    writes = [output, rejected_name(output), summary_name(output)]
    kept = {**reads, **stored}
    for name in writes:
        if name is not None:
            check_output(name, kept, _replaced(output_format(spec.output_format, output)))
    kept |= {f"the run's {name}": Path(name) for name in writes if name not in (None, "-")}
    if spec.publish is not None and (path := target_path(spec.publish.target)) is not None:
        # A target looks itself whether what is there are entries that it may replace.
        check_output(str(path), kept, tuple(Holding), by="publish.target")
    if spec.report is not None:
        check_output(spec.report, kept, by="report")
    if (textfile := spec.metrics_textfile) is not None:
        check_output(str(textfile), kept, by="--metrics-textfile")
    for what, path in reads.items():
        for other, place in stored.items():
            if _is_same(path, place):
                raise UsageError(
                    f"{what} {quoted(path)} is {other}: choose another store with --store"
                )


def check_export(output: str, store: Path, form: OutputFormat) -> None:
    """See that an export does not write to its store; raises UsageError."""
    check_output(output, stored_files(store), _replaced(form))


def _replaced(form: OutputFormat) -> tuple[Holding, ...]:
    """What an earlier result in the same format looks like."""
    return (Holding.QUERIES,) if form in HOLDS_TEXTS else ()


def check_output(
    output: str,
    kept: Mapping[str, Path],
    replaces: Container[Holding] = (),
    by: str | None = "-o",
) -> None:
    """See that `output` can be written and destroys nothing; raises UsageError.

    It may be none of the files in `kept`, and hold nothing that a person made, but for what the
    command `replaces` because it writes such files itself. `by` is the flag or key that names it;
    None for an argument.
    """
    if output == "-":
        if sys.stdout is None:
            raise UsageError(f"standard output is closed: give a file{_by(by)}")
        return
    for what, path in kept.items():
        if _is_same(Path(output), path):
            raise UsageError(f"the output {quoted(output)} is {what}: choose another{_by(by)}")
    target = Path(os.path.realpath(output))
    if target.is_dir():
        raise UsageError(f"the output {quoted(output)} is a folder: give a file name in it")
    held = holding(target)
    if held is not None and held not in replaces:
        raise UsageError(
            f"the output {quoted(output)} is there already and holds {held}: choose another, or "
            "remove it first"
        )
    if not target.parent.is_dir():
        raise UsageError(
            f"{quoted(output)} can't be written: create its folder, or choose another output"
        )
    # A file is replaced by a new one, so it is its folder that counts.
    place = target.parent if _is_replaced(target) else target
    if not os.access(place, os.W_OK | (os.X_OK if place is target.parent else 0)):
        raise UsageError(
            f"{quoted(output)} can't be written: make its folder writable, or choose another output"
        )


def _by(name: str | None) -> str:
    return "" if name is None else f" with {name}"


def _read(spec: JobSpec, source: str, job: Path | None) -> Iterator[tuple[str, Path]]:
    """What a run reads: what it is, and where."""
    yield from files_of(source_of(spec, source)).items()
    templates = {stage.template for stage in spec.stages if stage.template is not None}
    others = {
        "the job spec": job,
        "the file of --gate-qrels": spec.gate_qrels,
        "the model": spec.model_path,
        **{f"the template {name}": Path(name) for name in templates if Path(name).is_file()},
    }
    yield from ((what, path) for what, path in others.items() if path is not None)


def stored_files(store: Path) -> dict[str, Path]:
    """A store and the files that are kept beside it."""
    if not store.name:
        raise UsageError(f"the store {quoted(store)} is a folder: give a file name in it")
    status = status_path(store)
    beside = [store.with_name(f"{store.name}{end}") for end in _BESIDE]
    return {
        "the store": store,
        **{f"the store's {path.name}": path for path in (*beside, status)},
    }


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(one.stat(), other.stat()) and stat.S_ISREG(other.stat().st_mode)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def _is_replaced(target: Path) -> bool:
    return not target.exists() or target.is_file()
