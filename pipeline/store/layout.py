"""Where things lie in a lake, and how names of runs and nodes become parts of paths.

    LAKE/tracelake.json                                     marks a lake, holds its version
    LAKE/lake.duckdb                                        the views, on a local disk
    LAKE/sources/<batch>.parquet                            the ledger
    LAKE/events/run=<key>/node=<key>/hour=<hour>/<batch>_<segment>.parquet
    LAKE/metrics/run=<key>/node=<key>/hour=<hour>/<batch>_<segment>.parquet

A key is the name itself, so that tools which read Hive partitions see it as it is; only a name
that is too long for a folder is cut and ends in a digest. The ledger has every name whole.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.remote import is_local

__all__ = [
    "DATA_TABLES",
    "EMPTY_PARTITION",
    "LAKE_VERSION",
    "LakePath",
    "data_folder_of",
    "hour_name",
    "partition_key",
]

LAKE_VERSION = 1
DATA_TABLES = ("events", "metrics")
EMPTY_PARTITION = "run=~/node=~/hour=relative"
"""Holds a file without rows, so that the views work in a lake without data. It sorts behind all
others: DuckDB guesses the size of a table from its first file."""

_LONGEST_KEY = 200
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\x9f!-,/:-@\[-^`{-}\ud800-\udfff]")
_RESERVED = {"", "~", "__HIVE_DEFAULT_PARTITION__"}


def partition_key(name: str) -> str:
    """The value of a Hive partition for a run or node: the name itself wherever a folder can
    bear it, else a part of the name and a digest of all of it.
    """
    if name not in _RESERVED and len(_encode(name).encode()) <= _LONGEST_KEY:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    kept = name[:100]
    while len(_encode(kept).encode()) > _LONGEST_KEY - len(digest) - 1:
        kept = kept[:-1]
    return f"{kept}~{digest}"


def _encode(value: str) -> str:
    """A partition value as a part of a path, percent-encoded as Hive does it."""
    text = _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", value)
    return text.replace(".", "%2E") if not text.strip(".") else text


def hour_name(hour_no: int | None) -> str:
    """Name of an hour partition: ``YYYY-MM-DDTHH`` in UTC, ``relative`` without a clock base."""
    if hour_no is None:
        return "relative"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour_no)
    return f"{moment.year:04d}-{moment:%m-%dT%H}"


def data_folder_of(table: str, run_key: str, node_key: str, hour: str) -> str:
    """Folder of a partition, relative to the lake."""
    return f"{table}/run={_encode(run_key)}/node={_encode(node_key)}/hour={_encode(hour)}"


@dataclass(frozen=True)
class LakePath:
    """A lake's place: the fsspec file system and the path in it."""

    fs: Any
    root: str

    @property
    def is_local(self) -> bool:
        """Whether the lake is on a local disk."""
        return is_local(self.fs)

    def path(self, relative: str) -> str:
        """Path of something in the lake, for the file system."""
        return posixpath.join(self.root, relative)

    def url(self, relative: str) -> str:
        """Path of something in the lake, for DuckDB."""
        path = self.path(relative)
        return path if self.is_local else str(self.fs.unstrip_protocol(path))

    def relative(self, path: str) -> str:
        """The inverse of ``path`` and ``url``; ``ValueError`` for what is not in the lake."""
        inside: str = self.fs._strip_protocol(path)
        root = self.root.rstrip("/") + "/"
        if not inside.startswith(root):
            raise ValueError(f"{path} is not in the lake {self.root}")
        return inside.removeprefix(root)

    def glob(self, table: str) -> str:
        """Glob, for DuckDB, over all files of the ledger or of a data table."""
        folder = _escape_glob(self.url(table))
        return f"{folder}/*.parquet" if table == "sources" else f"{folder}/*/*/*/*.parquet"


def _escape_glob(path: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)
