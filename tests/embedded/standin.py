"""A `vllm` that is none: it takes the flags it is given for real ones and serves the judge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cli.running import Row, gain, written
from tests.conftest import ROOT

# Unknown flags are refused, as `vllm serve` does.
_PROGRAM = """#!{python}
import argparse, os, sys
parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("command", choices=["serve"])
parser.add_argument("model")
parser.add_argument("--host", choices=["127.0.0.1"])
parser.add_argument("--port")
parser.add_argument("--served-model-name", nargs="+")
parser.add_argument("--max-model-len", type=int)
parser.add_argument("--uvicorn-log-level", choices=["warning"])
parser.add_argument("--tensor-parallel-size", type=int, default=1)
parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
given = parser.parse_args()
print("what a server prints on standard output is no address", flush=True)
if os.path.exists(os.path.join(given.model, "broken")):
    print("(EngineCore pid=7) ERROR [core.py:1] ValueError: Free memory on device is too little.")
    sys.exit("RuntimeError: Engine core initialization failed. See root cause above.")
os.execv({python!r}, [
    {python!r}, {judge!r}, "--kind", "vllm", "--port", given.port,
    "--model", given.served_model_name[0], "--context", str(given.max_model_len),
    *{settings!r},
])
"""


def vllm(folder: Path, rows: Sequence[Row], *settings: str) -> Path:
    """Make `folder`/bin/vllm, with judges that know `rows` and note their calls in the log.

    Returns the log; `settings` are more flags of scripts/judge_server.py.
    """
    folder.mkdir(exist_ok=True)
    known = written(folder / "known.jsonl", rows)
    gains = folder / "gains.txt"
    gains.write_text(
        "".join(
            f"{row['query']['qid']} {one['docid']} {gain(row['query']['qid'], one['docid'])}\n"
            for row in rows
            for one in row["candidates"]
        )
    )
    log = folder / "calls.jsonl"
    program = folder / "bin" / "vllm"
    program.parent.mkdir(exist_ok=True)
    text = _PROGRAM.format(
        python=sys.executable,
        judge=str(ROOT / "scripts" / "judge_server.py"),
        settings=["--gains", str(gains), "--input", str(known), "--log", str(log), *settings],
    )
    program.write_text(text)
    program.chmod(0o755)
    return log


def model_folder(path: Path, longest: int = 40_960) -> Path:
    """What looks like a model of Hugging Face's form from outside."""
    path.mkdir()
    (path / "config.json").write_text(f'{{"max_position_embeddings": {longest}}}')
    (path / "model.safetensors").write_bytes(b"weights")
    return path


def processes(*words: str) -> set[int]:
    """The processes whose command lines hold each of `words`."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        if all(word in line for word in words):
            found.add(int(entry.name))
    return found


def windows(log: Path) -> int:
    """How many windows the stand-ins were asked for, those of the preflight left out."""
    text = log.read_text() if log.exists() else ""
    return text.count('"purpose":"window"') + text.count('"purpose": "window"')
