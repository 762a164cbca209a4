"""Files of a job that are written while it runs, in the layout of smdebug.

While it is open a file ends in ``.tmp``, and its writer holds a lock on it: so another can tell
whether the writer is still there. The last writer to leave marks the end of the job.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.locks import lock
from pipeline.settings import JOB_END

__all__ = ["OpenFile", "begin_job", "end_job", "hour_of", "node_name", "rank_of"]

_OPEN = ".tmp"
_FOLDERS = ("system", "framework")


def hour_of(seconds: float) -> str:
    """The name of the folder of an hour, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d%H")


def node_name(given: str | None) -> str:
    """A name for this machine that file names can hold; its own by default.

    Raises ``UsageError`` for one that cannot.
    """
    import socket

    node = socket.gethostname() if given is None else given
    if not node or "/" in node or "\0" in node or node.startswith("."):
        raise UsageError(f"{node!r} is no name for a node: files are named by it")
    return node


def rank_of(given: int | None) -> int | None:
    """The rank of this process: by default the one that a launcher such as torchrun gives."""
    told = os.environ.get("RANK", "")
    return int(told) if given is None and told.isdecimal() else given


class OpenFile:
    """A file that grows: its name ends in ``.tmp`` until it is closed.

    Raises ``FileExistsError`` where there is a file of either name already.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open = path.with_name(path.name + _OPEN)
        self._file = self._open.open("xb")
        lock(self._file)
        # Asked last: whoever closed it in the meantime has made this file useless.
        if path.exists():
            self._file.close()
            self._open.unlink()
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    def write(self, text: str) -> None:
        """Append, and hand it to the system: it survives the process."""
        self._file.write(text.encode())
        self._file.flush()

    def close(self, path: Path | None = None) -> None:
        """Give the file its own name, or another one."""
        try:
            self._file.close()
        finally:
            self._open.rename(self.path if path is None else path)


def begin_job(job: Path) -> None:
    """A writer comes to a job, which then has not ended."""
    for marker in _markers(job):
        marker.unlink(missing_ok=True)


def end_job(job: Path) -> None:
    """A writer leaves a job; the last one marks its end, whatever killed ones left behind."""
    if not any(_is_written(path) for path in job.rglob(f"*{_OPEN}")):
        for marker in _markers(job):
            if marker.parent.is_dir():
                marker.touch()


def _markers(job: Path) -> Iterator[Path]:
    return (job / folder / JOB_END for folder in _FOLDERS)


def _is_written(path: Path) -> bool:
    """Whether the writer of an open file is still there."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return not lock(file)
    return False
