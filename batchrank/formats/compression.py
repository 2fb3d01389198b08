"""Unpacks gzip and zstd streams by their first bytes and packs output by its file name."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import BinaryIO, Protocol

import zstandard

_GZIP = re.compile(rb"\x1f\x8b")
# A zstd file may begin with a skippable frame (pzstd writes one).
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)

# zstd unfolds 4 bytes to at most 128 KB, so this much never becomes more than 16 MB at once.
_SLICE = 512


class _Decoder(Protocol):
    """What zlib's and zstandard's decompression objects have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class Sink(Protocol):
    """What rows are written to."""

    def write(self, data: bytes, /) -> object: ...
    def close(self) -> None: ...


def decompressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack gzip (any number of members) or zstd (of frames); pass anything else through.

    Raises EOFError where the data ends inside a member or frame, `zlib.error` or
    `zstandard.ZstdError` where it is damaged.
    """
    head = b""
    while len(head) < 4 and (chunk := next(chunks, b"")):
        head += chunk
    chunks = chain((head,), chunks)
    if _GZIP.match(head):
        return _unpacked(chunks, lambda: zlib.decompressobj(wbits=31))
    if _ZSTD.match(head):
        return _unpacked(chunks, zstandard.ZstdDecompressor().decompressobj)
    return chunks


def _unpacked(chunks: Iterator[bytes], new_decoder: Callable[[], _Decoder]) -> Iterator[bytes]:
    decoder: _Decoder | None = None
    for chunk in chunks:
        for start in range(0, len(chunk), _SLICE):
            data = chunk[start : start + _SLICE]
            while data:
                if decoder is None:
                    # Zeros after a member are padding to a block size, as gzip has it.
                    if not (data := data.lstrip(b"\0")):
                        break
                    decoder = new_decoder()
                yield decoder.decompress(data)
                data = b""
                if decoder.eof:
                    data, decoder = decoder.unused_data, None
    if decoder is not None:
        raise EOFError


def compressor(name: str, file: BinaryIO) -> Sink:
    """Pack what is written to `file` if `name` ends in `.gz` or `.zst`.

    Closing the sink ends the packed data and leaves `file` open. The packed bytes hold neither
    name nor time, so the same rows give the same file.
    """
    if name.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    if name.endswith(".zst"):
        return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return _Plain(file)


class _Plain:
    """The sink that packs nothing."""

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write

    def close(self) -> None:
        """Nothing is held back here; the file is closed by its owner."""
