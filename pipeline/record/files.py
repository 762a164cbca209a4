"""Files of a job that are written while it runs, in the layout of smdebug.

While it is open a file ends in ``.tmp``. A writer is present from its first file to its last, and
the last writer to leave marks the end of the job.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from pipeline.errors import UsageError, storage_error
from pipeline.locks import lock
from pipeline.settings import JOB_END

__all__ = ["OpenFile", "Presence", "after_fork", "hour_of", "node_name", "rank_of"]

_OPEN = ".tmp"
_WRITER = ".writer-"
_FOLDERS = ("system", "framework")
_NODE_BYTES = 180  # of the 255 that a file name may have
_MAX_RANK = 10**9 - 1
# What stands behind a node in the names of files; within one it would be read as that.
_READ_OTHERWISE = re.compile(r"_rank\d+$|\.json(\.|$)")


def after_fork(work: Callable[[], object]) -> None:
    """Do something in every process that is forked; where there are none, nothing."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=work)


def hour_of(seconds: float) -> str:
    """The name of the folder of an hour, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d%H")


def node_name(given: str | None) -> str:
    """A name for this machine that file names can hold; its own by default.

    Raises ``UsageError`` for one that cannot, or that would be read as another.
    """
    import socket

    node = socket.gethostname() if given is None else given
    if (
        not isinstance(node, str)
        or not node
        or "/" in node
        or not node.isprintable()
        or node.startswith(".")
        or _READ_OTHERWISE.search(node)
    ):
        raise UsageError(f"{node!r} is no name for a node: files are named by it")
    if len(node.encode()) > _NODE_BYTES:
        raise UsageError(f"a name for a node of {len(node)} letters: files are named by it")
    return node


def rank_of(given: int | None) -> int | None:
    """The rank of this process: by default the one that a launcher such as torchrun gives.

    Raises ``UsageError`` for what is no rank.
    """
    if given is not None and (type(given) is not int or not 0 <= given <= _MAX_RANK):
        raise UsageError(f"a rank of {given!r}: ranks are whole numbers from 0 to {_MAX_RANK:,}")
    if given is not None:
        return given
    told = os.environ.get("RANK", "")
    return rank_of(int(told)) if told.isdecimal() else None


class OpenFile:
    """A file that grows: its name ends in ``.tmp`` until it is closed.

    Raises ``FileExistsError`` where there is a file of either name already, ``NotADirectoryError``
    where there is one in the place of its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            # No other name in that folder would do.
            folder = str(path.parent)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from error
        self._open = path.with_name(path.name + _OPEN)
        self._file = self._open.open("xb")
        # Asked last: whoever closed it in the meantime has made this file useless.
        if path.exists():
            self._file.close()
            self._open.unlink()
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    def write(self, text: str) -> None:
        """Append, and hand it to the system: it survives the process.

        Raises ``FileNotFoundError`` where somebody has removed the file: nobody would read it.
        """
        if os.fstat(self._file.fileno()).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._open))
        self._file.write(text.encode())
        self._file.flush()

    def close(self, path: Path | None = None) -> None:
        """Give the file its own name, or another one; raises ``FileExistsError``, and leaves it
        open, where there is a file of that name, closed or open.
        """
        # Whoever has the open name of a file has its name: two who ask at once get two.
        claim = None if path is None or path == self.path else OpenFile(path)
        try:
            self._file.close()
        finally:
            try:
                self._open.rename(self.path if path is None else path)
            finally:
                if claim is not None:
                    claim.abandon()
                    claim._open.unlink()

    def abandon(self) -> None:
        """Leave the file as if the process had died here."""
        with suppress(OSError):
            self._file.close()


class Presence:
    """A writer at work on a job, in its folder ``system`` or ``framework``: the job has not ended.

    That is a hidden file, on which the writer holds a lock for as long as it lives: so it does not
    matter how it ends, nor whether processes live on that were forked from it. Raises
    ``StorageError`` where the folder cannot be written.
    """

    def __init__(self, job: Path, folder: str) -> None:
        self._job = job
        self._path = job / folder / f"{_WRITER}{uuid.uuid4().hex}{_OPEN}"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb")
            lock(self._file)
            for marker in _markers(job):
                marker.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, f"write to {job}") from error
        # A process has the locks of the one that it is forked from, until it closes their files.
        after_fork(partial(_close, weakref.ref(self._file)))

    def leave(self) -> None:
        """The writer is done; the last one marks the end, whatever killed ones left behind."""
        self._file.close()
        self._path.unlink(missing_ok=True)
        if not any(_is_there(path) for path in self._job.rglob(f"{_WRITER}*{_OPEN}")):
            for marker in _markers(self._job):
                if marker.parent.is_dir():
                    marker.touch()


def _close(inherited: weakref.ref[IO[bytes]]) -> None:
    file = inherited()
    if file is not None:
        file.close()


def _markers(job: Path) -> Iterator[Path]:
    return (job / folder / JOB_END for folder in _FOLDERS)


def _is_there(path: Path) -> bool:
    """Whether the writer that a hidden file stands for is still there."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return not lock(file)
    return False
