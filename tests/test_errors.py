"""What is behind an error is found, however errors came of one another."""

from __future__ import annotations

import errno
import itertools

import pytest

from batchrank.errors import BatchrankError, FilesError, StoppedError


def chain(*errors: BaseException, closed: bool) -> BaseException:
    """The first of `errors`, each of which came of the next; if `closed` the last of the first."""
    for error, cause in itertools.pairwise(errors):
        error.__context__ = cause
    if closed:
        errors[-1].__cause__ = errors[0]
    return errors[0]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_files_are_found_behind_an_error(number: int, closed: bool) -> None:
    full = OSError(number, "Too many open files")
    assert FilesError.is_behind(chain(BatchrankError("a"), full, StoppedError("b"), closed=closed))


@pytest.mark.parametrize("closed", [False, True])
def test_nothing_is_found_where_there_is_nothing(closed: bool) -> None:
    gone = OSError(errno.ENOENT, "No such file")
    assert not FilesError.is_behind(
        chain(BatchrankError("a"), gone, StoppedError("b"), closed=closed)
    )
    assert not FilesError.is_behind(None)
