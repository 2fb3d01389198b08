"""Serves a GGUF file by a real llama.cpp until it is ended.

python scripts/llama_server.py MODEL CONTEXT SLOTS      # prints its address
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer


async def main(model: str, context: str, slots: str) -> None:
    """Serve so many slots of so many tokens until SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with EmbeddedServer() as server:
        url = await server.start(Path(model), Load(int(context), int(slots)))
        print(f"listening on {url}", flush=True)
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
