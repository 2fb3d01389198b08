"""A PyTerrier transformer, for pipelines such as `bm25 % 100 >> text >> Reranker()`.

PyTerrier: Macdonald and Tonellotto, Declarative Experimentation in Information Retrieval using
PyTerrier, ICTIR 2020.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyterrier as pt

from batchrank.library.frames import rerank_frame
from batchrank.spec.jobspec import JobSpec

T = TypeVar("T")


class Reranker(pt.Transformer):
    """Reranks result frames (`qid`, `query`, `docno` and the text) by a job's settings.

    `text_field` names the column that holds the text. The other settings are those of
    `batchrank.rerank`; with a `store` an experiment that is run again asks nothing twice. Errors
    are those of `batchrank.rerank`.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        store: Path | str | None = None,
        spec: JobSpec | None = None,
        text_field: str = "text",
    ) -> None:
        super().__init__()
        self._model = model
        self._base_url = base_url
        self._store = store
        self._spec = spec
        self._text_field = text_field

    def __repr__(self) -> str:
        """How experiments name it."""
        return f"Reranker({self._model or ''})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Results with new `score` and `rank` (from 0, PyTerrier's way), the best first."""
        pt.validate.result_frame(inp, ["query", self._text_field])
        ordered = inp.sort_values(["qid", "rank"]) if "rank" in inp.columns else inp
        frame = ordered.rename(columns={"docno": "docid", self._text_field: "text"})
        ranked = _in_a_loop_of_its_own(
            rerank_frame(
                frame,
                model=self._model,
                base_url=self._base_url,
                store=self._store,
                spec=self._spec,
            )
        )
        found = ranked.rename(columns={"docid": "docno", "text": self._text_field})
        found = found.assign(score=found["score"].astype(float), rank=found["rank"] - 1)
        return found[[*dict.fromkeys([*inp.columns, "score", "rank"])]]


def _in_a_loop_of_its_own(work: Coroutine[Any, Any, T]) -> T:
    """Notebooks have a loop running already; a second one needs a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
