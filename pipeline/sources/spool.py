"""Fetches the files of other machines before they are read, several at a time.

A document is read from its first byte to its last, and now and then a second time; over a network
that is best done as one download. A few downloads run ahead of the reader, so that it seldom
waits.
"""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.errors import is_of_storage, storage_error
from pipeline.remote import is_local
from pipeline.sources.document import Document
from pipeline.sources.model import Source

__all__ = ["Spool"]

_AT_ONCE = 4
_AHEAD_BYTES = 256 << 20
_TRIES = 4
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Spool:
    """The documents of a batch, in its order. A context manager.

    Files that are not on this machine are downloaded to ``folder``: at most four at a time, and at
    most 256 MB (or one file) ahead of the one that is read.
    """

    def __init__(self, sources: Sequence[Source], folder: str) -> None:
        self._waiting = [source for source in sources if not is_local(source.fs)]
        self._folder = Path(folder)
        # An archive is one file of several documents.
        self._uses = Counter(source.path for source in self._waiting)
        self._fetched: dict[str, Future[Path]] = {}
        self._bytes: dict[str, int] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tracelake-fetch")

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def open(self, source: Source) -> Document:
        """The document of a source. Raises what fetching it raised, or ``StorageError`` where the
        disk is full.
        """
        if is_local(source.fs):
            return Document(source.fs, source.path, source.member)
        import fsspec

        self._fetch_ahead(source)
        local = self._fetched[source.path].result()
        return Document(fsspec.filesystem("file"), str(local), source.member)

    def done(self, source: Source) -> None:
        """Make room: the document of this source will not be read again."""
        if is_local(source.fs):
            return
        self._uses[source.path] -= 1
        if self._uses[source.path]:
            return
        fetched = self._fetched.pop(source.path, None)
        self._bytes.pop(source.path, None)
        if fetched is not None:
            with suppress(Exception):
                fetched.result().unlink()

    def _fetch_ahead(self, wanted: Source) -> None:
        while self._waiting:
            source = self._waiting[0]
            is_wanted = wanted.path not in self._fetched
            has_room = (
                len(self._fetched) <= _AT_ONCE
                and sum(self._bytes.values()) + source.size_bytes <= _AHEAD_BYTES
            )
            if not is_wanted and not has_room:
                return
            del self._waiting[0]
            if source.path not in self._fetched:
                local = self._folder / f"fetched-{id(source)}"
                self._bytes[source.path] = source.size_bytes
                self._fetched[source.path] = self._pool.submit(_fetch, source, local)


def _fetch(source: Source, local: Path) -> Path:
    """Download a file, again with growing pauses where the network fails."""
    for left in reversed(range(_TRIES)):
        try:
            source.fs.get_file(source.path, str(local))
            return local
        except Exception as error:
            if getattr(error, "errno", None) in _FULL:
                raise storage_error(error, f"fetch {source.uri} to {local.parent}") from error
            if not left or not _may_pass(error):
                raise
            time.sleep(0.5 * 2 ** (_TRIES - 1 - left))
    raise AssertionError("the last try returns or raises")


def _may_pass(error: Any) -> bool:
    """Whether another try may succeed: not where the file or the permission is missing."""
    return is_of_storage(error) and not isinstance(error, FileNotFoundError | PermissionError)
