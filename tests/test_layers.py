"""The layers: imports point down, nothing goes round in a circle, the pure layers do no I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "batchrank"
ROOT = Path(__file__).parent.parent / PACKAGE
IO = {"aiohttp", "aiosqlite", "asyncio", "http", "select", "socket", "sqlite3"}


@dataclass(frozen=True)
class Layer:
    """Modules and packages of one height; they know those below, and not each other."""

    holds: str
    names: frozenset[str]
    is_pure: bool = False


def layer(holds: str, names: str, *, is_pure: bool = False) -> Layer:
    """A layer of the modules and packages in `names`."""
    return Layer(holds, frozenset(names.split()), is_pure)


LAYERS = (
    layer("what passes between batchrank and a model", "calls", is_pure=True),
    layer("the vocabulary", "errors hints values version", is_pure=True),
    layer(
        "text, numbers and order",
        "answers entries fusion keys metrics prompts selection",
        is_pure=True,
    ),
    layer("how windows are made, and how answers are read", "readings strategies", is_pure=True),
    layer(
        "settings, files, servers, the store, the cache",
        "backends cache clock ending formats logs spec store threads",
    ),
    layer("servers that are reached by way of their own nodes", "distributed"),
    layer("the servers of a job; the cache entries of a run", "publishing serving"),
    layer("one window, one query, one job", "ranking"),
    layer("what a run holds; how far it is", "progress results"),
    layer("a run; stores as files", "maintenance running"),
    layer("what a run will take; what runs are worth; who watches", "live measuring planning"),
    layer("a run on a page", "reporting"),
    layer("the night around a run", "nightly"),
    layer("the command line; a program's own way in", "cli library"),
    layer("what `import batchrank` gives", "__init__"),
    layer("the program", "__main__"),
)
HEIGHT = {name: height for height, one in enumerate(LAYERS) for name in one.names}


def sources() -> dict[str, str]:
    """The source of every module of the package, by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 2:
            parts = parts[:-1]
        found[".".join(parts)] = path.read_text(encoding="utf-8")
    return found


@cache
def imports(source: str) -> tuple[tuple[str, str | None], ...]:
    """Every import of a source, wherever in it: a module, and a name from it or None."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            found += [(node.module, alias.name) for alias in node.names]
    return tuple(found)


def imported(source: str, known: Mapping[str, str]) -> Iterator[str]:
    """Every module that a source imports, by dotted name."""
    for module, name in imports(source):
        whole = f"{module}.{name}"
        yield whole if whole in known else module


def unit(module: str) -> str:
    """The module or package of the table that a module belongs to."""
    return (*module.split("."), "__init__")[1]


def violations(modules: Mapping[str, str]) -> list[str]:
    """A sentence for each import that breaks the layers, each module that has none, each circle."""
    found = [f"{name} is in no layer" for name in modules if unit(name) not in HEIGHT]
    inner: dict[str, set[str]] = {}
    for name, source in modules.items():
        inner[name] = set()
        for other in imported(source, modules):
            if other.split(".")[0] == PACKAGE:
                inner[name].add(other)
                found += _sideways_or_up(name, other)
            elif other.split(".")[0] in IO and LAYERS[HEIGHT.get(unit(name), -1)].is_pure:
                found.append(f"{name} is pure and imports {other}")
    return [*dict.fromkeys(found), *_circles(inner)]


def _sideways_or_up(name: str, other: str) -> list[str]:
    mine, its = unit(name), unit(other)
    if mine == its or mine not in HEIGHT or its not in HEIGHT or HEIGHT[its] < HEIGHT[mine]:
        return []
    way = "sideways" if HEIGHT[its] == HEIGHT[mine] else "up"
    return [f"{name} imports {way}: {other}"]


def _circles(graph: Mapping[str, set[str]]) -> list[str]:
    """Take away, again and again, what imports nothing that is left or is imported by nothing."""
    left = {name: others & graph.keys() - {name} for name, others in graph.items()}
    while True:
        used = set().union(*left.values())
        kept = {name for name, others in left.items() if others and name in used}
        if len(kept) == len(left):
            break
        left = {name: left[name] & kept for name in kept}
    return [f"imports go round in a circle: {', '.join(sorted(left))}"] if left else []


def test_imports_point_down() -> None:
    assert violations(sources()) == []


def test_the_table_holds_nothing_that_is_gone() -> None:
    assert set(HEIGHT) - {unit(name) for name in sources()} == set()


def test_a_module_stands_in_one_layer() -> None:
    assert sum(len(one.names) for one in LAYERS) == len(HEIGHT)


@pytest.mark.parametrize(
    ("module", "added", "complaint"),
    [
        ("batchrank.values", "import batchrank.cli", "imports up: batchrank.cli"),
        (
            "batchrank.keys",
            "from batchrank.running import runner",
            "imports up: batchrank.running.runner",
        ),
        (
            "batchrank.strategies.base",
            "def late():\n    from batchrank.ranking.asker import Asker",
            "imports up: batchrank.ranking.asker",
        ),
        ("batchrank.fusion", "from batchrank.keys import job_key", "imports sideways"),
        ("batchrank.strategies.sliding", "import asyncio", "is pure and imports asyncio"),
        ("batchrank.answers.reading", "from sqlite3 import connect", "is pure and imports sqlite3"),
        (
            "batchrank.answers.reading",
            "from batchrank.answers.reader import read",
            "circle: batchrank.answers",
        ),
        ("batchrank.unheard_of", "", "batchrank.unheard_of is in no layer"),
        ("batchrank.strategies.new", "from batchrank.fusion import borda", None),
    ],
)
def test_the_check_sees_what_is_added(module: str, added: str, complaint: str | None) -> None:
    before = sources()
    known = violations(before)
    after = violations({**before, module: f"{before.get(module, '')}\n{added}\n"})

    new = [sentence for sentence in after if sentence not in known]
    if complaint is None:
        assert new == []
    else:
        assert any(complaint in sentence for sentence in new)
