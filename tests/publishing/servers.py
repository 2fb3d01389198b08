"""A real Redis with a configuration of its own, and a way to it that breaks."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import redis

from tests.cli.running import free_port
from tests.conftest import missing
from tests.waiting import until


class RedisServer:
    """One that runs; `url` names it, with its password if it has one."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        program = shutil.which("redis-server")
        if program is None:
            missing("redis-server", "install the package redis-server")
        assert program is not None
        self.port = int(settings.get("port", free_port()))
        self.folder = folder
        self.password = settings.get("requirepass")
        self.url = f"redis://127.0.0.1:{self.port}/0"
        lines = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "save": '""',
            "appendonly": "no",
            **settings,
        }
        config = folder / f"redis-{self.port}.conf"
        config.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        self._process = subprocess.Popen(
            [program, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.client = redis.Redis(port=self.port, password=self.password, decode_responses=True)
        until(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None, "redis-server ended"
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def close(self) -> None:
        """End it."""
        self.client.close()
        self._process.terminate()
        self._process.wait()


@contextmanager
def running_redis(folder: Path, **settings: str) -> Iterator[RedisServer]:
    """A server with these settings, `_` for `-`."""
    server = RedisServer(folder, {name.replace("_", "-"): on for name, on in settings.items()})
    try:
        yield server
    finally:
        server.close()


class Breaking:
    """A port that passes `most` bytes on to a server, then drops all connections for good."""

    def __init__(self, port: int, most: int) -> None:
        self._target = port
        self._left = most
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._open: list[socket.socket] = []
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._open += [near, far]
            for one, other, counts in ((near, far, True), (far, near, False)):
                thread = Thread(target=self._pass, args=(one, other, counts))
                self._threads.append(thread)
                thread.start()

    def _pass(self, one: socket.socket, other: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while data := one.recv(4096):
                if counts:
                    self._left -= len(data)
                    if self._left < 0:
                        break
                other.sendall(data)
        if self._left < 0:
            self.drop()
        else:
            for end in (one, other):
                _shut(end)

    def drop(self) -> None:
        """Let nothing more through."""
        _shut(self._listener)
        self._listener.close()
        for end in list(self._open):
            _shut(end)

    def close(self) -> None:
        """End what is left."""
        self.drop()
        for thread in self._threads:
            thread.join()
        for end in self._open:
            end.close()


def _shut(end: socket.socket) -> None:
    with suppress(OSError):  # it may be shut already
        end.shutdown(socket.SHUT_RDWR)
