"""Every failure batchrank knows by name.

    BatchrankError                 exit 1, the run failed and nothing was lost
    ├── UsageError                 exit 2, a flag, a job spec or a file that can't be read
    │   └── PromptError            exit 2, a template that fails; in a run it fails a window
    ├── LineError                  one input line that can't be used: becomes a failed query
    ├── StoreError                 exit 1, the SQLite store is corrupt, foreign, read-only or full
    │   └── StoreInUseError        exit 1, another runner holds it
    ├── DiskError                  exit 1, the output can't be written
    ├── FilesError                 exit 1, no more files may be opened
    ├── TargetError                exit 1, the place of cache entries is away, full or unreadable
    ├── NoServerError              exit 4, no usable model server at the start
    │   └── UnfitServerError       exit 4, one that is there can't do what this job asks of it
    ├── StoppedError               exit 75, stopped early and resumable
    │   ├── LostServerError        exit 4, every model server went away in mid-run; resumable too
    │   ├── BudgetSpentError       exit 75, one call more than was allowed would be needed
    │   └── DeadlineError          exit 75, the time of the night is up
    ├── RejectedError              exit 3, stopped because going on was of no use
    └── ServerError                what a model server did wrong
        ├── UnavailableError       retryable: refused, reset, timed out, 408/5xx, loading
        │   └── OverloadedError    retryable: 429/503, perhaps with a Retry-After
        ├── BadResponseError       retryable: a body that is no answer (HTML, torn JSON, an error)
        ├── ContextOverflowError   permanent for this prompt: longer than the slot's context
        ├── RefusedError           permanent for this prompt: any other 4xx
        └── FatalServerError       permanent for the job: unknown model, bad key, another model
            └── IncapableError     permanent for the job: it has no such route

`retryable` says whether the same request may succeed later; `exit_code` is what the process
returns when the error ends it. Messages are whole sentences a user can act on.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any


class BatchrankError(Exception):
    """The root: a failure that is reported in one line, never as a traceback."""

    exit_code = 1
    retryable = False


class UsageError(BatchrankError):
    """A flag, a job spec or an input file that can't be used as given."""

    exit_code = 2


class PromptError(UsageError):
    """A prompt template that fails or leaves something out; `kind` is a word for reports."""

    kind = "template"


class LineError(BatchrankError):
    """One input line that can't be used.

    `kind` is a short stable word for reports (`json`, `encoding`, `shape`, `docid`, `qid`);
    `qid` is the query's identifier where it could still be read.
    """

    def __init__(self, kind: str, message: str, qid: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.qid = qid


class StoreError(BatchrankError):
    """The store can't be used: locked by another runner, corrupt, foreign, or the disk is full."""


class StoreInUseError(StoreError):
    """Another runner holds the store."""


class DiskError(BatchrankError):
    """The output can't be written; the previous output is untouched.

    `fault` says so without asking for the same command again: where the run goes on without it.
    """

    def __init__(self, message: str, *, fault: str = "") -> None:
        super().__init__(message)
        self.fault = fault or message


class FilesError(BatchrankError):
    """No more files may be opened: nobody's fault but that of a limit."""

    def __init__(self) -> None:
        super().__init__(
            "this process may open no more files: raise the limit (`ulimit -n 4096`, LimitNOFILE= "
            "in a unit), or use a smaller --concurrency, and run the same command again"
        )

    @classmethod
    def is_behind(cls, error: BaseException | None) -> bool:
        """Whether that is what `error`, or what it came of, is about."""
        # A reason to stop that is raised again and again can come of what came of it.
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            if isinstance(error, cls):
                return True
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                return True
            error = error.__cause__ or error.__context__
        return False


class TargetError(BatchrankError):
    """The place to publish to can't be used now, or not be read; what it holds is untouched."""


class NoServerError(BatchrankError):
    """No usable model server at the start: none found, unknown model, bad key."""

    exit_code = 4

    @classmethod
    def at(cls, url: str, error: ServerError) -> NoServerError:
        """What `error` says of the server at `url`, and what to do where nothing is there."""
        said = naming(url, error)
        if isinstance(error, RefusedError | ContextOverflowError | IncapableError):
            return UnfitServerError(said)
        if isinstance(error, UnavailableError) and error.unreached:
            said = f"{said.rstrip('.')}; start it, or name another with --base-url"
        return cls(said)


class UnfitServerError(NoServerError):
    """The server is there and can't do what this job asks of it; another job may be served."""


class StoppedError(BatchrankError):
    """The job stopped early and the same command goes on (signal, deadline, servers down)."""

    exit_code = 75
    rows: Sequence[Any] = ()
    """Of `batchrank.rerank`: the first rows of the ranking, as far as they were done."""


class LostServerError(StoppedError):
    """No model server is left in the midst of a job, which goes on once one is back."""

    # As at the start: to a scheduler 75 may mean that the time was up, and all is well.
    exit_code = NoServerError.exit_code


class ModelChangedError(StoppedError):
    """Behind the last address of a job's model stands another: the job goes on once it is back."""


class BudgetSpentError(StoppedError):
    """The calls that a run was allowed are spent."""


class DeadlineError(StoppedError):
    """The time of the night is up, or too short for another query."""


class RejectedError(BatchrankError):
    """A result is beyond a gate, or would be: going on is of no use, what readers see stays."""

    exit_code = 3
    rows: Sequence[Any] = ()
    """Of `batchrank.rerank`: the rows that the gate rejects."""


class ServerError(BatchrankError):
    """What a model server did wrong; `kind` is a short stable word for reports.

    `endpoint` is the URL of the server, where one of a job's answered, or failed, a call.
    """

    kind = "server"
    endpoint = ""


class UnavailableError(ServerError):
    """The server could not answer now: refused, reset, timed out, 5xx, still loading."""

    kind = "unavailable"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        loading: bool = False,
        timed_out: bool = False,
        unreached: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the server asked us to wait, where it said so."""
        self.loading = loading
        """The model is still being loaded: waiting, not failing."""
        self.timed_out = timed_out
        """It was connected and did not answer in time: hung, or its queue is long."""
        self.unreached = unreached
        """Nobody took the connection: the request can't be the cause."""


class OverloadedError(UnavailableError):
    """The server is there and says that it has too much to do (429, 503, "busy")."""

    kind = "overloaded"


class BadResponseError(ServerError):
    """A body that is no answer: HTML, torn JSON, an error object, no choices, too large."""

    kind = "bad-response"
    retryable = True


class ContextOverflowError(ServerError):
    """The prompt is longer than the context of a slot.

    `prompt_tokens` and `context` carry the server's own numbers where it gave them.
    """

    kind = "context"

    def __init__(
        self, message: str, *, prompt_tokens: int | None = None, context: int | None = None
    ) -> None:
        super().__init__(message)
        self.prompt_tokens = prompt_tokens
        self.context = context


class RefusedError(ServerError):
    """The server refuses this request (a 4xx) and will refuse it again."""

    kind = "refused"


class FatalServerError(ServerError):
    """The server can't serve this job at all: unknown model, bad key, another model than named."""

    kind = "fatal"
    exit_code = 4


class OtherModelError(FatalServerError):
    """The server serves another model than the job's: another by now, or all along."""


class IncapableError(FatalServerError):
    """The server has nothing that does what the job asks; it may serve another job."""


def naming(url: str, error: ServerError) -> str:
    """What `error` says of the server at `url`, whose address stands in it once."""
    said = str(error)
    return said if url in said else f"{url}: {said}"
