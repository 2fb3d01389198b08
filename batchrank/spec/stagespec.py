"""The settings of one stage of ranking: which strategy, which reading, which template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from batchrank.prompts.loading import USUAL_WINDOW
from batchrank.readings.base import Reader
from batchrank.readings.named import POINTWISE, READERS
from batchrank.spec.fields import MANY, Whole
from batchrank.strategies.base import Strategy
from batchrank.strategies.incremental import Merging
from batchrank.strategies.orders import Order, forward, parse_merge_orders, parse_orders
from batchrank.strategies.pairwise import pairwise
from batchrank.strategies.passes import in_passes
from batchrank.strategies.pointwise import pointwise
from batchrank.strategies.segmented import segmented
from batchrank.strategies.setwise import setwise
from batchrank.strategies.single import single
from batchrank.strategies.sliding import sliding
from batchrank.strategies.topdown import topdown
from batchrank.strategies.tournament import tournament

Answer = Literal[
    "winners", "full", "logprobs", "explain", "yesno", "graded", "likelihood", "rerank"
]
_SEED = 1
_BEST = 10
"""How many of the best are looked for where nothing says how many are written: what most users
show, and what nDCG@10 sees; each further one costs generated tokens."""
USED: Mapping[str, tuple[str, ...]] = {
    "segmented": ("window_size", "winners", "merge_passes", "passes"),
    "sliding": ("window_size", "stride", "passes"),
    "single": ("window_size", "passes"),
    "topdown": ("window_size", "winners", "passes"),
    "tournament": ("window_size", "tournaments", "winners", "passes"),
    "setwise": ("window_size", "winners", "method", "passes"),
    "pairwise": ("winners",),  # shows each pair in both orders by itself
    "pointwise": (),
}
"""The settings that each strategy uses beside those that all do."""


class StageSpec(BaseModel):
    """What stands in a `[[stage]]` of a job spec, and at its top where there is one stage only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: Literal[
        "segmented",
        "sliding",
        "single",
        "topdown",
        "tournament",
        "setwise",
        "pairwise",
        "pointwise",
    ] = Field(
        default="segmented",
        description="How to rank: segmented, sliding, single, topdown, tournament, setwise, "
        "pairwise, pointwise.",
    )
    window_size: Whole = Field(
        default=USUAL_WINDOW, ge=2, le=1000, description="Documents in one prompt."
    )
    stride: Whole = Field(default=10, ge=1, le=1000, description="Step of a sliding window.")
    winners: Whole | None = Field(
        default=None,
        ge=1,
        le=MANY,
        description="Best of a segment that go to the merge; best that other strategies find.",
    )
    tournaments: Whole = Field(
        default=2, ge=1, le=100, description="Tournaments whose points are summed."
    )
    method: Literal["heap", "insertion"] = Field(default="heap", description="How setwise sorts.")
    passes: str = Field(
        default="forward", description="Presentations: forward, reverse, shuffle:SEED."
    )
    merge_passes: str = Field(
        default="forward",
        description="The same for the merge window alone; adaptive:N for up to N as needed.",
    )
    depth: Whole = Field(
        default=100, ge=1, le=MANY, description="Candidates reranked; the rest keep their order."
    )
    answer: Answer = Field(
        default="winners",
        description="How answers are asked and read: winners, full, logprobs, explain; for "
        "pointwise: yesno, graded, likelihood, rerank.",
    )
    template: str | None = Field(
        default=None, description="Prompt template: a name or a TOML file (default by the answer)."
    )

    @model_validator(mode="after")
    def _agree(self) -> StageSpec:
        parse_orders(self.passes)
        parse_merge_orders(self.merge_passes)
        if self.strategy == "sliding" and self.stride >= self.window_size:
            raise ValueError(
                f"stride {self.stride} must be smaller than window_size {self.window_size}, "
                "or documents between two windows would be skipped"
            )
        if (
            self.strategy in ("segmented", "tournament")
            and self.winners is not None
            and self.winners > self.window_size // 2
        ):
            raise ValueError(
                f"winners {self.winners} must be at most half of window_size {self.window_size}, "
                "or the merge would never get smaller"
            )
        if self.strategy == "topdown" and (self.winners or 1) > self.window_size:
            raise ValueError(
                f"winners {self.winners} must be at most window_size {self.window_size}"
            )
        if (self.strategy == "pointwise") != (self.answer in POINTWISE):
            raise ValueError(self._unfitting())
        most = self.reader.most
        if self.shows_all and most is not None and self.depth > most:
            raise ValueError(
                f"strategy single shows all candidates in one window, up to depth {self.depth}, "
                f"and answer {self.answer} tells at most {most} of them apart: set depth to {most} "
                "or less, or take another strategy or answer"
            )
        if self.answer == "rerank" and self.template is not None:
            raise ValueError("answer rerank has no template: the server has its own")
        return self

    def _unfitting(self) -> str:
        """What is wrong with a reading that the strategy can't use, in terms of what was given."""
        fitting = [
            name
            for name in get_args(Answer)
            if (name in POINTWISE) == (self.strategy == "pointwise")
        ]
        if "answer" not in self.model_fields_set:
            return (
                f"strategy {self.strategy} scores documents one by one and needs an answer to do "
                f"so: one of {', '.join(fitting)} (docs/readings.md says which server has which)"
            )
        if "strategy" not in self.model_fields_set:
            return f"answer {self.answer} goes with strategy pointwise alone: name that too"
        return (
            f"answer {self.answer} can't serve strategy {self.strategy}, which needs one of "
            f"{', '.join(fitting)}"
        )

    @property
    def reader(self) -> Reader:
        """How the answers are read."""
        return READERS[self.answer]

    @property
    def template_name(self) -> str | None:
        """The template to load, of the reader's kind; None where none is used."""
        kind = self.reader.kind
        return None if kind is None else self.template or f"{kind}-en"

    @property
    def shows_all(self) -> bool:
        """Whether the one window of a query is to show all its candidates."""
        return self.strategy == "single" and "window_size" not in self.model_fields_set

    @property
    def asked_window(self) -> int:
        """The most documents that one prompt is to show, whatever reading and server can take."""
        if self.strategy == "pointwise":
            assert self.reader.most is not None
            return self.reader.most
        if self.strategy == "pairwise":
            return 2
        if self.shows_all:
            return self.depth
        # A query has no more candidates than this, however large a window may be.
        return min(self.window_size, max(2, self.depth))

    @property
    def largest_window(self) -> int:
        """The most documents that one prompt shows, before anything is fitted to a server."""
        return min(self.asked_window, self.reader.most or self.asked_window)

    @property
    def first_passes(self) -> dict[str, str]:
        """The first of each list of passes alone, as an update."""
        return {name: getattr(self, name).split(",")[0] for name in ("passes", "merge_passes")}

    def stage_strategy(self, window_size: int, top: int | None) -> Strategy:
        """The strategy in windows of at most `window_size`, passes included.

        `top` is how many of the best are of use afterwards, None where nobody said.
        """
        size = min(window_size, self.largest_window)
        named = min(top or _BEST, size)
        best = self.winners or top or _BEST
        one_pass: Strategy
        match self.strategy:
            case "segmented":
                one_pass = self._segmented(size, named)
            case "sliding":
                one_pass = sliding(size, self._stride(size))
            case "single":
                one_pass = single(size, named)
            case "topdown":
                one_pass = topdown(size, self._pivot(size))
            case "tournament":
                one_pass = tournament(size, self.tournaments, self.winners, named, _SEED)
            case "setwise":
                one_pass = setwise(size, best, self.method)
            case "pairwise":
                one_pass = pairwise(best)
            case "pointwise":
                one_pass = pointwise(size)
        return in_passes(one_pass, self._presentations)

    @property
    def _presentations(self) -> tuple[Order, ...]:
        return parse_orders(self.passes) if "passes" in USED[self.strategy] else (forward,)

    def merging(self, window_size: int, top: int | None, stage: int) -> Merging:
        """How new documents are merged into an earlier order, where this is stage `stage`.

        As many of the best as this strategy promises are right, and `top` as far as these are no
        more than a window.
        """
        size = min(window_size, self.largest_window)
        best = min(top or _BEST, max(size, _BEST))
        match self.strategy:
            case "sliding":
                best = max(best, size - self._stride(size))
            case "topdown":
                best = max(best, self._pivot(size))
            case "setwise":
                best = max(best, self.winners or top or _BEST)

        def in_one(named: int) -> Strategy:
            return in_passes(self._segmented(size, named), parse_orders(self.passes))

        return Merging(size, best, in_one, stage)

    def _segmented(self, size: int, named: int) -> Strategy:
        own = "merge_passes" in USED[self.strategy]
        orders, adaptive = parse_merge_orders(self.merge_passes if own else "forward")
        agree = min(named, _BEST) if adaptive else None
        return segmented(size, self.winners, named, orders, agree)

    def _stride(self, size: int) -> int:
        """A window made smaller to fit the context keeps the share that is carried on."""
        return max(1, min(self.stride, self.stride * size // self.window_size))

    def _pivot(self, size: int) -> int:
        """The place of topdown's pivot."""
        return min(self.winners or size // 2, size)

    def stage_settings(self, top: int | None) -> dict[str, object]:
        """What of these settings can change a ranking: a part of a job's key.

        `top` counts only in what the last window of a query is asked for.
        """
        used = USED[self.strategy]
        passes = self.passes if "passes" in used else "forward"
        asked: int | None = None
        if self.strategy in ("setwise", "pairwise"):
            asked = None if self.winners else top or _BEST
        elif self.strategy in ("segmented", "single", "tournament") and self.answer != "full":
            asked = min(top or _BEST, self.largest_window)
        return {
            "strategy": self.strategy,
            **{name: getattr(self, name) for name in used},
            **({"window_size": self.largest_window} if "window_size" in used else {}),
            "top": asked,
            "passes": passes,
            "answer": self.answer,
            "depth": self.depth,
        }
