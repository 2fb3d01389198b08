"""Whatever Ray and gRPC raise becomes an error of ours, and nothing waits for a Ray that hangs.

Ray is a stand-in with its real errors, which fails or hangs as Ray does where a cluster is lost.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from batchrank.backends.transport import at_once
from batchrank.distributed.cluster import Cluster, Wish
from batchrank.distributed.link import Link
from batchrank.distributed.relay import NodeServer
from batchrank.ending import leave, leave_without_waiting
from batchrank.errors import LostServerError, RefusedError, UnavailableError
from tests.conftest import missing
from tests.waiting import PATIENCE

WISH = Wish("auto", NodeServer("http://127.0.0.1:1", None, insecure=False))
NODE = {"NodeID": "abcdef0123", "NodeManagerAddress": "10.0.0.1", "Alive": True}


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("batchrank.distributed.cluster._LOST_SECONDS", 0.01)
    monkeypatch.setattr("batchrank.distributed.cluster._LOOK_SECONDS", 0.001)
    monkeypatch.setattr("batchrank.distributed.link._SHUTDOWN_SECONDS", 0.01)
    monkeypatch.setattr("batchrank.distributed.link._KILL_SECONDS", 0.01)
    yield
    leave_without_waiting(wanted=False)


def errors() -> Any:
    try:
        from ray import exceptions
    except ImportError:
        missing("Ray", "pip install 'ray[client]'")
    return exceptions


def failures() -> list[Exception]:
    """What Ray's layers raise at a loss, most of it seen."""
    grpc: Any = import_module("grpc")
    ray = errors()
    return [
        grpc.RpcError("Stream removed (Socket closed)"),
        ConnectionError("GRPC connection failed"),
        ray.RaySystemError("The GCS is gone"),
        ray.RpcError("failed to connect to all addresses"),
        ray.GetTimeoutError("late"),
        ray.ActorUnavailableError("RpcError: RPC error: Socket closed rpc_code: 14", None),
        ray.ActorDiedError(),
        RuntimeError("Failed to connect to GCS"),
        ValueError("Cannot invoke RPC on closed channel!"),
        TimeoutError(),
        AttributeError("'NoneType' object has no attribute 'data_client'"),
        Exception("Ray Client is not connected. Please connect by calling `ray.init`."),
    ]


def stand_in(nodes: Callable[[], object], shutdown: Callable[[], object] = list) -> Any:
    def kill(_: object) -> None:
        nodes()

    return SimpleNamespace(
        exceptions=errors(), is_initialized=lambda: True, nodes=nodes, shutdown=shutdown, kill=kill
    )


def raises(error: Exception) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


@pytest.fixture
def hang() -> Iterator[Callable[[], object]]:
    end = threading.Event()
    yield end.wait
    end.set()


async def test_whatever_ray_raises_is_a_loss_in_plain_words() -> None:
    for error in failures():
        link = Link(stand_in(raises(error)))
        with pytest.raises(UnavailableError) as found:
            await link.alive()
        assert found.value.unreached
        said = str(found.value)
        assert len(said) < 120
        assert not any(word in said for word in ("rpc", "RPC", "_code", "GCS_", "None")), said
        await link.kill(object())
        with pytest.raises(LostServerError, match=r"the Ray cluster is lost: .* for 0 s"):
            await Cluster(link, WISH, at_once).present()


async def test_what_a_worker_raises_is_raised_and_a_fault_of_its_own_is_a_loss() -> None:
    link = Link(stand_in(list))
    task = errors().RayTaskError
    with pytest.raises(RefusedError, match="no"), link.naming_losses():
        raise task("put", "trace", RefusedError("no"))
    with pytest.raises(UnavailableError, match="its worker"), link.naming_losses():
        raise task("put", "Traceback\nKeyError: 'x'", KeyError("x"))


async def test_a_long_cause_is_cut_between_words() -> None:
    link = Link(stand_in(list))
    with pytest.raises(UnavailableError) as found, link.naming_losses():
        raise errors().RaySystemError("word " * 100)
    assert str(found.value).endswith("word …")


async def test_a_cluster_that_answers_again_in_time_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("batchrank.distributed.cluster._LOST_SECONDS", PATIENCE)
    failing = failures()

    def nodes() -> object:
        return raises(failing.pop())() if failing else []

    change = await Cluster(Link(stand_in(nodes)), WISH, at_once).present()
    assert change.came == ()
    assert not failing
    assert await Link(stand_in(lambda: [NODE])).alive() == {"abcdef0123": "10.0.0.1 (abcdef)"}


async def test_a_cluster_that_hangs_is_lost_and_its_connection_that_ended_too(
    hang: Callable[[], object],
) -> None:
    link = Link(stand_in(hang, hang))
    with pytest.raises(LostServerError, match="its head has not answered"):
        await Cluster(link, WISH, at_once).present()
    await link.kill(object())
    link = Link(SimpleNamespace(exceptions=errors(), is_initialized=lambda: False))
    with pytest.raises(LostServerError, match="the connection to it has ended"):
        await Cluster(link, WISH, at_once).present()


async def test_only_a_ray_that_was_left_in_order_takes_part_in_the_end_of_the_process(
    hang: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []

    def end(code: int) -> None:
        ended.append(code)
        raise SystemExit(100 + code)  # as one that never returns

    monkeypatch.setattr(os, "_exit", end)

    def code_of(code: int) -> object:
        with pytest.raises(SystemExit) as found:
            leave(code)
        return found.value.code

    for shutdown in (hang, raises(RuntimeError("gone"))):
        leave_without_waiting()
        await Link(stand_in(list, shutdown)).close()
        assert code_of(75) == 175
    await Link(stand_in(list)).close()
    assert code_of(75) == 75
    assert ended == [75, 75]
