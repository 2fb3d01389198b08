"""Publishing to a Redis over TLS whose certificate a CA of our own signed, and reading it back."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchrank.cache import Cache, Found, SyncCache
from batchrank.errors import TargetError
from tests.cli.running import free_port
from tests.conftest import missing
from tests.publishing.conftest import Nights
from tests.publishing.servers import RedisServer, running_redis

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis whose certificate is for 127.0.0.1; `ca.pem` in its folder is that of the CA."""
    if shutil.which("openssl") is None:
        missing("openssl", "apt-get install openssl")
    folder = tmp_path_factory.mktemp("tls")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(
        folder, "req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=our CA"
    )
    openssl(folder, "req", *KEY, "-keyout", "its.key", "-out", "its.csr", "-subj", "/CN=redis")
    signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    openssl(folder, "x509", "-req", "-in", "its.csr", "-out", "its.pem", *signing)
    port = free_port()
    with running_redis(
        folder,
        tls_port=str(port),
        tls_cert_file=str(folder / "its.pem"),
        tls_key_file=str(folder / "its.key"),
        tls_ca_cert_file=str(folder / "ca.pem"),
        tls_auth_clients="no",
    ) as server:
        server.folder, server.url = folder, f"rediss://127.0.0.1:{port}/0"
        yield server


@pytest.fixture
def nights(store: Path, secured: RedisServer) -> Nights:
    secured.client.flushall()
    nights = Nights(store, f"{secured.url}?ssl_ca_certs={secured.folder}/ca.pem")
    nights.rank({"tides": ["d2", "d1"]})
    return nights


def test_what_is_published_over_tls_is_read_over_tls(nights: Nights, secured: RedisServer) -> None:
    assert "generation 1 is current" in nights.published()
    with SyncCache(nights.target) as cache:
        assert cache.get("tides").docids == ("d2", "d1")
    with SyncCache(secured.url) as stranger, pytest.raises(TargetError, match="verify failed"):
        stranger.get("tides")

    async def read(url: str) -> Found:
        async with Cache(url) as cache:
            return await cache.get("tides")

    assert asyncio.run(read(nights.target)).docids == ("d2", "d1")
    with pytest.raises(TargetError, match="certificate verify failed"):
        asyncio.run(read(secured.url))


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("", "name the file of its CA in the URL: rediss://HOST?ssl_ca_certs=FILE"),
        ("?ssl_ca_certs=none.pem", "'none.pem' is no file of certificates"),
        ("?ssl_ca_certs=names", "'names' is no file of certificates"),
        ("?ssl_ca_cert=ca.pem", "knows no setting 'ssl_ca_cert'"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_told_by_name(
    nights: Nights,
    secured: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    complaint: str,
) -> None:
    monkeypatch.chdir(secured.folder)
    refused = Nights(nights.store, f"{secured.url}{query}").publish()
    assert refused.code == 2
    assert complaint in refused.err
    assert secured.client.dbsize() == 0
