"""Which program serves which model: llama.cpp a GGUF file, vLLM a folder of Hugging Face's form."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from batchrank.errors import UsageError

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Load:
    """How a model is to be loaded.

    Each of `slots` holds `context_tokens`: llama.cpp rounds that up to 256 and caps it at what the
    model was trained for, as is done here for vLLM, which has as many slots as its memory holds.
    `threads` None leaves it to llama.cpp; `gpus`, a whole number or a share of one, are what vLLM
    may use, 0 what it takes by itself.
    """

    context_tokens: int
    slots: int = 1
    threads: int | None = None
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class Runtime:
    """A program that prints the address of the loaded model and serves it until stdin closes."""

    name: str
    command: tuple[str, ...]


def runtime_of(model_path: Path, load: Load) -> Runtime:
    """What serves the model at `model_path`.

    Raises UsageError where there is none, it is of no known form, or its program is not installed.
    """
    try:
        if model_path.is_dir():
            return _vllm(model_path, load)
        return _llama(model_path, load)
    except OSError as error:
        raise UsageError(f"The model {model_path} can't be read: {error.strerror}.") from error


def _llama(model_path: Path, load: Load) -> Runtime:
    if importlib.util.find_spec("xllamacpp") is None:
        raise UsageError("The embedded backend needs llama.cpp: pip install 'batchrank[embedded]'.")
    with model_path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise UsageError(f"The model {model_path} is no GGUF file: it starts with {magic!r}.")
    settings = (load.context_tokens, load.slots, load.threads or 0)
    return Runtime("llama.cpp", _program("llama_program.py", model_path, *settings))


def _vllm(model_path: Path, load: Load) -> Runtime:
    if not (model_path / "config.json").is_file():
        raise UsageError(
            f"The model {model_path} is a folder without config.json, so not one that vLLM can "
            "load; for llama.cpp name a GGUF file."
        )
    # Beside the interpreter first: cron and systemd give a venv's programs no place in PATH.
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    vllm = shutil.which("vllm", path=places)
    if vllm is None:
        raise UsageError(
            f"The model {model_path} is a folder, which vLLM serves: pip install vllm; or name a "
            "GGUF file, which llama.cpp does."
        )
    settings = (load.context_tokens, load.gpus)
    return Runtime("vLLM", _program("vllm_program.py", vllm, model_path, *settings))


def _program(name: str, *arguments: object) -> tuple[str, ...]:
    # Without -P the modules beside the program would hide those of the library.
    return (sys.executable, "-P", str(_HERE / name), *map(str, arguments))
