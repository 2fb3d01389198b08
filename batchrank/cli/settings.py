"""Gives a command the flags of another, so that each is listed once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec

from batchrank.spec.jobspec import JobSpec

P = ParamSpec("P")


def settings_of(
    other: Callable[..., None], *, without: Container[str]
) -> Callable[[Callable[Concatenate[Mapping[str, object], P], None]], Callable[..., None]]:
    """A decorator: the flags of `other` that are settings of a job come before a command's own.

    The command gets them, by their names in a job spec, as its first argument. Those named in
    `without` are left out. A parameter whose name would hide one of Python's own ends in `_`.
    """
    flags = {
        name: flag
        for name, flag in inspect.signature(other, eval_str=True).parameters.items()
        if (key := name.rstrip("_")) in JobSpec.model_fields and key not in without
    }

    def decorate(
        command: Callable[Concatenate[Mapping[str, object], P], None],
    ) -> Callable[..., None]:
        @wraps(command)
        def with_flags(*args: P.args, **given: P.kwargs) -> None:
            command({name.rstrip("_"): given.pop(name) for name in flags}, *args, **given)

        signature = inspect.signature(command, eval_str=True)
        _, *own = signature.parameters.values()
        listed = [*own, *flags.values()]
        # Typer looks at both.
        with_flags.__signature__ = signature.replace(parameters=listed)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {one.name: one.annotation for one in listed}
        return with_flags

    return decorate
