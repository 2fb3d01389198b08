"""An output name holds the old content or all of the new, whatever fails on the way."""

from __future__ import annotations

import errno
import gzip
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from batchrank.errors import DiskError
from batchrank.formats.atomic import AtomicFile


def write(path: Path | str, *pieces: bytes) -> None:
    with AtomicFile(str(path)) as out:
        for piece in pieces:
            out.write(piece)


def write_and_fail(path: Path) -> None:
    with AtomicFile(str(path)) as out:
        out.write(b"new")
        raise KeyError


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[None]:
    old = os.umask(0o027)
    yield
    os.umask(old)


def run(
    code: str, *arguments: str, stdout: int | None = None, stderr: int | None = None
) -> subprocess.Popen[bytes]:
    script = "import os, sys, signal\nfrom batchrank.formats.atomic import AtomicFile\n"
    command = [sys.executable, "-c", script + textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=stdout, stderr=stderr)


def test_the_new_content_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")
    with AtomicFile(str(path)) as out:
        out.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")
    with pytest.raises(KeyError):
        write_and_fail(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("umask")
def test_a_new_file_follows_the_umask_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write(path, b"a")
    assert mode_of(path) == 0o640
    path.chmod(0o604)
    write(path, b"b")
    assert mode_of(path) == 0o604


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target = tmp_path / "disk" / "real.jsonl"
    link = tmp_path / "out.jsonl"
    link.symlink_to(target)
    for content in (b"made through a dangling link", b"replaced"):
        write(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert list((tmp_path / "disk").iterdir()) == [target]


def test_names_that_say_so_are_packed_the_same_each_time(tmp_path: Path) -> None:
    rows = [b"row\n"] * 1000
    packed, again = tmp_path / "out.jsonl.gz", tmp_path / "again.jsonl.gz"
    write(packed, *rows)
    write(again, *rows)
    assert gzip.decompress(packed.read_bytes()) == b"".join(rows)
    assert packed.read_bytes() == again.read_bytes()
    write(tmp_path / "out.zst", *rows)
    with zstandard.ZstdDecompressor().stream_reader((tmp_path / "out.zst").read_bytes()) as file:
        assert file.read() == b"".join(rows)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
@pytest.mark.parametrize(
    ("code", "said"),
    [(errno.ENOSPC, "No space left.*free space"), (errno.EIO, "another output")],
)
def test_a_disk_that_fails_at_the_end_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskError, match=f"(?s){name}.*{said}"):
        write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_a_file_too_large_for_the_disk_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    child = run(
        """
        import resource
        from batchrank.errors import DiskError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with AtomicFile(sys.argv[1]) as out:
                for _ in range(400):
                    out.write(os.urandom(1000))
        except DiskError as error:
            sys.exit(str(error))
        """,
        str(path),
        stderr=subprocess.PIPE,
    )
    message = child.communicate()[1].decode()
    assert child.returncode == 1
    assert "file size limit" in message
    assert message.count("\n") == 1
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")
    child = run(
        """
        with AtomicFile(sys.argv[1]) as out:
            out.write(b"x" * 100_000)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        str(path),
    )
    assert child.wait() == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_the_making_is_left_to_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with AtomicFile(str(path)) as slow:
        slow.write(b"slow")
        write(path, b"fast")
        assert path.read_bytes() == b"fast"
    assert path.read_bytes() == b"slow"
    assert list(tmp_path.iterdir()) == [path]


def test_paths_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match=r"nowhere/out' can't be written .*create its folder"):
        write(tmp_path / "nowhere" / "out")
    with pytest.raises(DiskError, match="it is a folder"):
        write(tmp_path)
    with pytest.raises(DiskError, match="part of its path is a file"):
        write(tmp_path / "file" / "out")
    with pytest.raises(DiskError, match="can't be written"):
        write(tmp_path / ("x" * 300))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DiskError, match="can't be written"):
        write(tmp_path / "loop" / "out")


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + ".jsonl")
    write(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_device_is_written_to_not_replaced() -> None:
    write("/dev/null", b"new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(DiskError, match=r"'/dev/full' can't be written.*free space"):
        write("/dev/full", b"new")


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write("-", b"row 1\n", b"row 2\n")
    write("-", b"row 3\n")
    assert capfdbinary.readouterr().out == b"row 1\nrow 2\nrow 3\n"


def test_a_closed_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(DiskError, match=r"Standard output can't be written \(it is closed\)"):
        write("-", b"row")


def test_a_reader_that_goes_away_is_one_line_of_talk() -> None:
    child = run(
        """
        from batchrank.errors import DiskError
        try:
            with AtomicFile("-") as out:
                while True:
                    out.write(b"row\\n" * 1000)
        except DiskError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
        """,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.read(4) == b"row\n"
    child.stdout.close()
    said = child.stderr.read().decode()
    child.stderr.close()
    assert child.wait() == 1
    assert said == "Standard output was closed by its reader before all rows were written.\n"
