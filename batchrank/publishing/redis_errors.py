"""What redis-py's errors mean for who publishes, and what to do about them."""

from __future__ import annotations

from redis import exceptions

from batchrank.errors import StoppedError, TargetError, UsageError
from batchrank.publishing.scripts import GONE, TAKEN
from batchrank.publishing.target import TOOK_OVER

_GO_ON = "run the same command again: it goes on where it stopped"


def meaning(
    error: exceptions.RedisError, name: str, *, has_begun: bool
) -> UsageError | TargetError | StoppedError:
    """The error to raise for one of the server called `name`, in mid-publication or before."""
    said = str(error)
    found: UsageError | TargetError | StoppedError
    # AuthenticationError is a ConnectionError, and a server that lacks memory answers.
    if isinstance(error, exceptions.AuthenticationError):
        found = UsageError(
            f"{name} wants another user or password: name the variable that holds it with "
            "--password-env, or write redis://USER@HOST where it is that of a user"
        )
    elif isinstance(error, exceptions.NoPermissionError):
        found = UsageError(f"{name}: its user lacks a permission ({said})")
    elif isinstance(error, exceptions.ReadOnlyError):
        found = UsageError(f"{name} is a read-only replica: name its master")
    elif isinstance(error, exceptions.OutOfMemoryError):
        found = StoppedError(
            f"{name} has no memory left; readers keep what they have. Raise maxmemory or free "
            f"some, and {_GO_ON}"
        )
    elif "CERTIFICATE_VERIFY_FAILED" in said:
        found = UsageError(
            f"{name}: its certificate is signed by nobody who is known here, or for another name "
            f"({said}); name the file of its CA in the URL: rediss://HOST?ssl_ca_certs=FILE"
        )
    elif isinstance(error, (exceptions.ConnectionError, exceptions.TimeoutError)):
        if has_begun:
            found = StoppedError(
                f"{name} is gone ({said}); readers keep what they have. When it is back, {_GO_ON}"
            )
        else:
            found = TargetError(f"{name} can't be reached ({said})")
        found.retryable = True
    else:
        found = _answer(said, name)
    return found


def _answer(said: str, name: str) -> UsageError | TargetError | StoppedError:
    """What an answer means by its words."""
    if "DB index is out of range" in said:
        return UsageError(f"{name} has no database of that number: name another, or none")
    if TAKEN in said:
        return StoppedError(f"{name}: {TOOK_OVER}")
    if said.startswith(GONE):
        return TargetError(
            f"{name}: what was written is gone, evicted for lack of memory or because the database "
            "was flushed: raise maxmemory and publish again"
        )
    if "WRONGTYPE" in said:
        return UsageError(
            f"{name}: a key of the namespace is another program's, of another type than batchrank "
            "gives it: use another --namespace, or remove it"
        )
    if said.startswith("MISCONF"):
        return StoppedError(f"{name} refuses writes ({said}); mend it, and {_GO_ON}")
    return TargetError(f"{name}: {said}; readers keep what they have")
