"""Serves a small web application on one address, in the loop that is running."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import gaierror

from aiohttp import web

from batchrank.errors import UsageError
from batchrank.spec.address import Address

_GOODBYE_SECONDS = 1.0
"""What a client that reads slowly gets at the end."""


@asynccontextmanager
async def listening(app: web.Application, address: Address, setting: str) -> AsyncIterator[Address]:
    """Serve `app` until the context is left; gives the address with the port that it has.

    Raises UsageError, which names `setting`, where nobody can listen there.
    """
    # No access log: a URL may hold a token.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GOODBYE_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address.host, address.port).start()
        except (OSError, gaierror) as error:
            raise UsageError(f"{setting} {address}: {_why(error)}") from error
        yield Address(address.host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _why(error: OSError) -> str:
    if isinstance(error, gaierror):
        return "there is no such host; write an address of this machine"
    # A loop may word the error of several sockets anew, and then it has no number.
    match error.errno:
        case errno.EADDRINUSE:
            return "the port is in use; choose another, or 0 for any that is free"
        case errno.EACCES:
            return "the port needs privileges; choose one above 1023"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address; write one of its own"
        case _:
            return f"can't listen there ({error.strerror or error}); choose another"
