"""Temporary folders that do not outlive their process, not even one that was killed.

Whoever uses a folder holds a lock on a file in it, and the system lets go of the lock when the
process ends, however it ends. So a folder whose lock can be had is left over, and the next one to
ask for a folder removes it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.locks import lock

__all__ = ["spill_folder"]

_PREFIX = "tracelake-spill-"
_LOCK = "in-use"


@contextmanager
def spill_folder() -> Iterator[str]:
    """A folder for the time of the context, in the place for temporary files (``TMPDIR``).

    Raises ``OSError`` where there is none or it cannot be written.
    """
    _remove_left_over(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        # Under its name the file is seen only when it is locked.
        unlocked = Path(folder, f"{_LOCK}.new")
        with unlocked.open("wb") as held:
            lock(held)
            unlocked.rename(Path(folder, _LOCK))
            yield folder


def _remove_left_over(place: Path) -> None:
    for path in place.glob(f"{_PREFIX}*/{_LOCK}"):
        # Another user's, or gone in the meantime.
        with suppress(OSError), path.open("rb+") as held:
            if lock(held):
                shutil.rmtree(path.parent, ignore_errors=True)
