"""Lists the files below a folder, on a disk or in a bucket.

A bucket with months of a job in it takes long to list. Its files lie in folders named by hours,
and hours end: those that are settled need not be listed again.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

__all__ = ["find_local", "find_remote", "settled_hours"]

_IN_HOUR = re.compile(r"(?P<folder>(?P<above>.*/)(?P<hour>\d{10}))/[^/]+")
_HOUR = "%Y%m%d%H"


def settled_hours(
    paths: Iterable[str], failed: Iterable[str], late_hours: float, now: datetime | None = None
) -> frozenset[str]:
    """The folders of hours among known ``paths`` in which nothing new is expected.

    These are more than ``late_hours`` older than the newest hour beside them: by the clock of the
    data, since what is read may have been written long ago. An hour that lies ahead of ``now``
    (UTC, by default now) comes from a clock that is wrong and makes no other one old. One with a
    file that ``failed`` is not settled.
    """
    ahead = (datetime.now(UTC) if now is None else now).replace(tzinfo=None)
    open_folders = {path.rpartition("/")[0] for path in failed}
    hours: dict[str, dict[str, datetime]] = {}
    for path in paths:
        match = _IN_HOUR.fullmatch(path)
        if match:
            try:
                hour = datetime.strptime(match["hour"], _HOUR)
            except ValueError:
                continue
            hours.setdefault(match["above"], {})[match["folder"]] = hour
    late = timedelta(hours=late_hours)
    return frozenset(
        folder
        for beside in hours.values()
        for folder, hour in beside.items()
        if max((h for h in beside.values() if h <= ahead), default=hour) - hour > late
        and folder not in open_folders
    )


def find_remote(
    fs: Any, folder: str, settled: Collection[str] = frozenset()
) -> dict[str, Mapping[str, Any]]:
    """Path and details of the files below a folder, without those in ``settled`` folders."""
    if not any(path.startswith(f"{folder}/") for path in settled):
        found: dict[str, Mapping[str, Any]] = fs.find(folder, detail=True)
        return found
    found = {}
    for entry in fs.ls(folder, detail=True):
        path = entry["name"].rstrip("/")
        if path == folder or path in settled:
            continue
        if entry["type"] == "directory":
            found |= find_remote(fs, path, settled)
        else:
            found[path] = entry
    return found


def find_local(folder: str) -> dict[str, Mapping[str, Any]]:
    """Files below a local folder, through links to folders, each folder once."""
    found: dict[str, Mapping[str, Any]] = {}
    seen = {os.path.realpath(folder)}
    for place, folders, names in os.walk(folder, followlinks=True):
        real = {name: os.path.realpath(f"{place}/{name}") for name in folders}
        folders[:] = [name for name in sorted(folders) if real[name] not in seen]
        seen.update(real.values())
        for name in names:
            path = f"{place}/{name}"
            try:
                status = Path(path).stat()
            except OSError:
                found[path] = {"type": "link to nothing", "size": 0}
                continue
            kind = "file" if stat.S_ISREG(status.st_mode) else "no file"
            found[path] = {"type": kind, "size": status.st_size, "mtime": status.st_mtime}
    return found
