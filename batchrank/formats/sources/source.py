"""Where queries come from: tells the format of an input and reads its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from batchrank.errors import UsageError
from batchrank.formats.lines import RawLine, check_text, in_blocks, json_lines
from batchrank.formats.opening import Opened, opened
from batchrank.formats.sharding import of_shard
from batchrank.formats.sources import arrays, delimited, parquet, runs
from batchrank.formats.sources.corpus import Texts
from batchrank.formats.wording import quoted
from batchrank.values import InputFormat, Shard

_EXPECTED: dict[InputFormat, str] = {
    "json": "objects in its array",
    "csv": "a header and a row a candidate below it",
    "tsv": "a header and a row a candidate below it",
    "parquet": "a row a candidate, or one a query",
}
"""What stands in a file that is not empty; of all others a JSON object a line."""


@dataclass(frozen=True, slots=True)
class Source:
    """An input at `path` (`-` for standard input), and the files that belong to it.

    `form` None is told from the first bytes. `corpus` and `topics` hold the texts of a TREC run,
    `run_file` the run of a BEIR folder. With `results` it may be batchrank's own output, whose
    lines only `read_record` understands. `blocks`, where a program has its queries itself, are
    JSONL lines as they come; `path` is then but a name for them. With a `shard` only its lines
    are read.
    """

    path: str
    form: InputFormat | None = None
    corpus: Path | None = None
    topics: Path | None = None
    run_file: Path | None = None
    results: bool = False
    blocks: Iterator[list[bytes]] | None = None
    shard: Shard | None = None

    @property
    def is_seekable(self) -> bool:
        """Whether it can be read more than once."""
        return self.blocks is None and self.path != "-" and not Path(self.path).is_fifo()


def read_queries(
    source: Source, limit: int | None = None, note: Callable[[str], None] | None = None
) -> Iterator[list[RawLine]]:
    """Yield the queries of a source as JSONL lines, in blocks of at most 256 or 1 MB.

    `limit` (at least 1) stops after so many, of all shards. `note` is told in a sentence, once all
    is read, which topics of a TREC run have no candidates in it. Memory does not grow with the
    input: what belongs to a TREC run is looked up in a temporary file. Raises UsageError as
    `read_lines`, and where a file that belongs to it can't be used; what is wrong with one query
    makes its line one that `parse_request` refuses.
    """
    blocks = _all_queries(source, limit, note)
    yield from blocks if source.shard is None else of_shard(blocks, source.shard)


def _all_queries(
    source: Source, limit: int | None, note: Callable[[str], None] | None
) -> Iterator[list[RawLine]]:
    if source.blocks is not None:
        yield from _numbered(source.blocks, limit)
        return
    if (texts := _texts(source)) is not None:
        lines = runs.joined_lines(texts, limit, note)
        yield from in_blocks(lines, limit, quoted(texts.run), "a TREC run")
        return
    with opened(source.path) as file:
        yield from _blocks(source, file, limit)


def _numbered(blocks: Iterator[list[bytes]], limit: int | None) -> Iterator[list[RawLine]]:
    """Blocks as they come, since whoever makes them may wait for what becomes of the first."""
    count = 0
    for block in blocks:
        kept = block if limit is None else block[: limit - count]
        yield [RawLine(number, line) for number, line in enumerate(kept, count + 1)]
        count += len(kept)
        if count == limit:
            return


def check_readable(source: Source) -> None:
    """See that a source and its files can be opened and hold what they should; UsageError."""
    if (texts := _texts(source)) is not None:
        runs.check(texts)
        return
    with opened(source.path) as file:
        next(_blocks(source, file, 1))


def files_of(source: Source) -> dict[str, Path]:
    """Every file that is read, by what it is in messages; UsageError where one is not named."""
    # A file that is redirected to standard input can be destroyed like any other.
    files = {"the input": Path("/dev/stdin" if source.path == "-" else source.path)}
    if (texts := _texts(source)) is not None:
        files |= {"the corpus": texts.corpus, "the file of topics": texts.topics}
        files["the first stage's run"] = texts.run
    return files


def is_plain(source: Source) -> bool:
    """Whether the bytes of its lines are those of the file, so that they tell how far it is."""
    path = Path(source.path)
    if (
        source.blocks is not None
        or source.path == "-"
        or path.suffix in (".gz", ".zst")
        or not path.is_file()
    ):
        return False
    if source.form is not None:
        return source.form in ("jsonl", "json")
    with opened(source.path) as file:
        return _told(file) in ("jsonl", "json")


def _texts(source: Source) -> Texts | None:
    """The files of a TREC run with its texts, None where the source is anything else."""
    path = Path(source.path)
    if source.form == "beir" or (source.form is None and source.path != "-" and path.is_dir()):
        return runs.beir(path, source.run_file, source.corpus, source.topics)
    if source.run_file is not None:
        raise UsageError("--run-file goes with a BEIR folder as input; a TREC run is itself one")
    given = source.corpus is not None or source.topics is not None
    if source.form == "trec" or (source.form is None and given):
        return runs.trec(source.path, source.corpus, source.topics)
    if given:
        raise UsageError(
            f"--corpus and --topics go with a TREC run or a BEIR folder, not with {source.form}"
        )
    return None


def _blocks(source: Source, file: Opened, limit: int | None) -> Iterator[list[RawLine]]:
    form = source.form or _told(file)
    lines = _lines(source, file, form)
    return in_blocks(lines, limit, file.name, _EXPECTED.get(form, "one JSON object a line"))


def _lines(source: Source, file: Opened, form: InputFormat) -> Iterator[RawLine]:
    if form != "parquet" or not parquet.is_parquet(file.head):
        check_text(file)
    match form:
        case "json":
            return arrays.json_array_lines(file)
        case "csv":
            separator = delimited.separator(file.head)
            return delimited.delimited_lines(file, separator, results=source.results)
        case "tsv":
            return delimited.delimited_lines(file, "\t", results=source.results)
        case "parquet":
            return parquet.parquet_lines(file, source.path, results=source.results)
        case _:
            return json_lines(file, results=source.results)


def _told(file: Opened) -> InputFormat:
    """What a file is by its first bytes: JSONL where it is nothing else."""
    if parquet.is_parquet(file.head):
        return "parquet"
    if arrays.is_json_array(file.head):
        return "json"
    if (found := delimited.separator_of_table(file.head)) is not None:
        return "tsv" if found == "\t" else "csv"
    return "jsonl"
