"""Locks on files, which end with the process that holds them, however it ends."""

from __future__ import annotations

from typing import IO

__all__ = ["lock"]


def lock(file: IO[bytes]) -> bool:
    """Lock a file for this process, if no other has. Where there are no such locks nobody has."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
