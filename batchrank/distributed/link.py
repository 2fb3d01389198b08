"""The link to a Ray cluster: every call of Ray goes through here, is limited, and fails by name.

Ray waits for a cluster that is lost without end, or ends the process; and what it raises then is
whatever its layers raise: its own errors, those of gRPC, RuntimeError, plain Exception.
"""

from __future__ import annotations

import asyncio
import logging
import os
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from batchrank.distributed.relay import Relay, ServerSource
from batchrank.ending import leave_without_waiting
from batchrank.errors import BatchrankError, NoServerError, UnavailableError, UsageError
from batchrank.threads import in_daemon_thread

_INSTALL = "pip install 'batchrank[ray]'"
_CLIENT_TRIES = 3
"""What serves Ray's client starts a process for each driver by a fork that gRPC breaks at times."""
_CONCURRENCY = 10_000
"""Calls that a worker may hold; Ray's own limit is 1,000."""
_MOST_SAID = 200
_UNSCHEDULABLE = "the node is gone, or has fewer GPUs than num_gpus asks for"
_KILL_SECONDS = 5.0
_SHUTDOWN_SECONDS = 10.0
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # It would say that a signal is a crash, on standard error.
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",
    # It would end the process without a word a minute after the head is gone.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "1000000",
}


def _load() -> Any:
    # It would look for another cluster, or start one, where the connection to this one is lost.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415 - seconds, and an extra
    except ImportError as error:
        raise UsageError(f"engine ray needs Ray: {_INSTALL}") from error
    warnings.filterwarnings("ignore", category=UserWarning, module=r"ray\.")
    return ray


def _hush() -> None:
    """Let Ray write nothing: not about dead nodes on standard output either, where data may go.

    Its client logs whatever level was asked for. There is no option for either; where Ray calls
    them otherwise one day, tests say so.
    """
    for name in ("ray", "ray.util.client.logsclient"):
        logging.getLogger(name).handlers = [logging.NullHandler()]
    worker: Any = import_module("ray._private.worker")
    worker.print_to_stdstream = lambda *_, **__: None


class Link:
    """The connection of this process to one cluster."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    @classmethod
    async def to(cls, address: str) -> Link:
        """Join the cluster at `address`; `close` is to be called.

        Raises UsageError where Ray is not installed, NoServerError where no cluster is there.
        """
        ray = await asyncio.to_thread(_load)
        # Until it was left in good order Ray may hold up the end of the process, or change it.
        leave_without_waiting()
        tries = _CLIENT_TRIES if address.startswith("ray://") else 1
        try:
            await in_daemon_thread(lambda: _join(ray, address, tries))
        except BatchrankError:
            leave_without_waiting(wanted=False)  # there is nothing to leave
            raise
        return cls(ray)

    @property
    def is_up(self) -> bool:
        """Whether Ray has not given the connection up."""
        return bool(self._ray.is_initialized())

    async def alive(self) -> dict[str, str]:
        """The nodes by their number, and a name for each.

        Raises UnavailableError where the cluster can't be asked. It may take for ever.
        """
        with self.naming_losses():
            nodes = await in_daemon_thread(self._ray.nodes)
        return {
            node["NodeID"]: f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})"
            for node in nodes
            if node["Alive"]
        }

    def start(self, source: ServerSource, node: str, num_gpus: float) -> Any:
        """A `Relay` on that node; raises UnavailableError."""
        with self.naming_losses():
            scheduling = self._ray.util.scheduling_strategies
            pinned = scheduling.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
            return (
                self._ray.remote(Relay)
                .options(
                    num_cpus=0,
                    num_gpus=num_gpus,
                    max_restarts=-1,
                    max_concurrency=_CONCURRENCY,
                    scheduling_strategy=pinned,
                )
                .remote(source)
            )

    async def kill(self, actor: Any) -> None:
        """End a worker, as far as it can be reached."""
        with suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                with self.naming_losses():
                    await in_daemon_thread(lambda: self._ray.kill(actor))

    async def close(self) -> None:
        """Leave the cluster; where Ray hangs, the process will not wait for it."""
        with suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                with self.naming_losses():
                    await in_daemon_thread(self._ray.shutdown)
            leave_without_waiting(wanted=False)

    @contextmanager
    def naming_losses(self) -> Iterator[None]:
        """Turn whatever calls of Ray raise into UnavailableError, and into what workers raised."""
        errors = self._ray.exceptions
        try:
            yield
        except Exception as error:
            if isinstance(error, errors.RayTaskError) and isinstance(error.cause, BatchrankError):
                raise error.cause from error
            raise UnavailableError(self._loss(error), unreached=True) from error

    def _loss(self, error: Exception) -> str:
        """Why a call of Ray failed, in plain words: Ray's own are a page, or an address."""
        errors = self._ray.exceptions
        if not self.is_up:
            return "the connection to the Ray cluster is lost"
        for kind, words in (
            (errors.ActorUnschedulableError, _UNSCHEDULABLE),
            (errors.ActorUnavailableError, "its worker is lost: it can't be reached"),
        ):
            if isinstance(error, kind):
                return words
        if "No module named 'batchrank" in str(error):
            return "it has no batchrank: install this machine's on it (docs/scaling.md)"
        if isinstance(error, errors.RayError):
            return f"its worker is lost: {_said(error)}"
        return "the Ray cluster can't be reached"


def _join(ray: Any, address: str, tries: int) -> None:
    try:
        # In a thread, where Ray leaves the handlers of signals alone.
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="critical",
            namespace="batchrank",
        )
    except ImportError as error:
        raise UsageError(f"{address} needs Ray's client: {_INSTALL}") from error
    except Exception as error:
        if tries > 1:
            return _join(ray, address, tries - 1)
        raise nobody_at(address, _said(error)) from error
    return _hush()


def nobody_at(address: str, why: str) -> NoServerError:
    """No cluster is there."""
    return NoServerError(
        f"no Ray cluster can be joined at {address}: {why}; start one with `ray start --head`, or "
        "name another with --ray-address"
    )


def _said(error: Exception) -> str:
    """The last line of what an error of Ray says: the cause, below a trace of where it happened."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return textwrap.shorten(lines[-1], _MOST_SAID, placeholder=" …").rstrip(".")
