"""Every error a user can meet: each message says what to do, each class has its exit code.

Exit codes of the command line:

=====  =====================================================================
0      done
1      ``verify`` found differences between the ledger and the Parquet
2      the command was used wrongly (unknown option, missing argument)
3      some of the files could not be read; the others are in the lake
4      nothing to read: no such file or folder, or no trace in it
5      the lake cannot be used: not there, not a lake, or of a newer version
6      the storage failed: disk full, no permission, bucket out of reach
7      DuckDB refused the query
130    interrupted
=====  =====================================================================

``record`` ends as its command does: with its exit code, with 128 and the number of the signal that
ended it, with 126 or 127 where it could not be started.
"""

from __future__ import annotations

import errno

__all__ = [
    "SOME_FAILED",
    "LakeError",
    "NoMoreProfilerData",
    "QueryError",
    "SourceError",
    "StorageError",
    "TracelakeError",
    "UsageError",
    "is_of_storage",
    "storage_error",
]


SOME_FAILED = 3
"""Exit code where some of the files could not be read."""


class TracelakeError(Exception):
    """Base of all: shown to the user as one line, without a traceback."""

    exit_code = 1


class UsageError(TracelakeError):
    """An argument makes no sense."""

    exit_code = 2


class SourceError(TracelakeError):
    """There is nothing to read where the user pointed."""

    exit_code = 4


class NoMoreProfilerData(SourceError):
    """The job has ended, and there is no data of a time that was waited for."""

    def __init__(self, timestamp: int) -> None:
        self.timestamp = timestamp
        self.msg = f"Looking for timestamp {timestamp} and reached end of training."
        super().__init__(self.msg)


class LakeError(TracelakeError):
    """The lake is missing, is something else, or was written by a newer version."""

    exit_code = 5


class StorageError(TracelakeError):
    """The disk or the object store refused to read or write."""

    exit_code = 6


class QueryError(TracelakeError):
    """DuckDB refused the user's SQL."""

    exit_code = 7


_ADVICE = {
    errno.ENOSPC: "no space left on the device: free some and run the same command again",
    errno.EDQUOT: "the disk quota is used up: free some and run the same command again",
    errno.EACCES: "permission denied: check who owns it",
    errno.EPERM: "not permitted: check who owns it",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.ENAMETOOLONG: "the path is too long for this file system: use a shorter folder",
}


_HINTS = {
    "PermissionError": "check the credentials, and what they may access",
    "NoCredentialsError": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or "
    "give --storage-option anon=true",
    "ProfileNotFound": "check AWS_PROFILE and the file ~/.aws/config",
    "EndpointConnectionError": "check the address of the server (AWS_ENDPOINT_URL)",
}
"""Of errors that libraries of object stores raise, by the name of their class."""

_CLOUD_LIBRARIES = ("aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google", "s3fs")


def is_of_storage(error: Exception) -> bool:
    """Whether an error comes from a disk or from a library that reaches an object store; theirs
    (no credentials, no such endpoint) are often no ``OSError``.
    """
    return isinstance(error, OSError) or type(error).__module__.startswith(_CLOUD_LIBRARIES)


def storage_error(error: Exception, doing: str) -> StorageError:
    """Turn what the operating system, fsspec or DuckDB said into one line with advice.

    ``doing`` says what was under way, as in ``"write to /lake"``.
    """
    if isinstance(error, StorageError):
        return error
    code = getattr(error, "errno", None)
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    hint = next((_HINTS[c.__name__] for c in type(error).__mro__ if c.__name__ in _HINTS), None)
    if code is None and hint is not None:
        return StorageError(f"cannot {doing}: {text.rstrip('.')}: {hint}")
    if code is None and ("No space left" in text or "Could not write" in text):
        code = errno.ENOSPC if "No space left" in text else None
    return StorageError(f"cannot {doing}: {_ADVICE.get(code or 0, text)}")
