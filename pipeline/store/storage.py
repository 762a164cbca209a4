"""Puts files into a lake so that a reader sees all of a file or nothing of it.

On a local disk a file is written beside its place, synced and renamed; elsewhere it is written
to a temporary folder and uploaded in one PUT, which object stores make visible as a whole.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.errors import LakeError, UsageError, is_of_storage, storage_error
from pipeline.remote import file_system
from pipeline.settings import MARKER
from pipeline.store.layout import LakePath

__all__ = ["PARTIAL", "delete_files", "is_there", "lake_path", "put_file", "storage_errors"]

PARTIAL = ".partial"
"""Ending of a file that is still being written; no reader's glob matches it."""


@contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """Turn errors of the disk, of fsspec and of DuckDB's input and output into ours."""
    import duckdb

    try:
        yield
    except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
        raise storage_error(error, doing) from error
    except Exception as error:
        if not is_of_storage(error):
            raise
        raise storage_error(error, doing) from error


def lake_path(
    lake: str | os.PathLike[str], options: Mapping[str, object] | None = None
) -> LakePath:
    """The place that a path or URL names."""
    if not os.fspath(lake):
        raise UsageError("the name of the lake is empty: give a folder or a URL")
    try:
        fs, root = file_system(os.fspath(lake), options)
    except ValueError as error:
        raise LakeError(f"cannot open the lake {os.fspath(lake)}: {error}") from error
    return LakePath(fs, root.rstrip("/") or root)


def is_there(lake: LakePath) -> bool:
    """Whether there is a lake, of any version. Raises ``StorageError`` where no answer comes."""
    with storage_errors(f"reach the lake {lake.root}"):
        return bool(lake.fs.exists(lake.path(MARKER)))


def put_file(lake: LakePath, relative: str, write: Callable[[str], object]) -> int:
    """Let ``write(path)`` make a local file and put it at ``relative``; returns its size in bytes.

    Raises ``StorageError`` and leaves nothing visible where the disk or the store refuses.
    """
    with storage_errors(f"write to {lake.root}"):
        if not lake.is_local:
            with tempfile.TemporaryDirectory(prefix="tracelake-") as folder:
                local = str(Path(folder) / "file.parquet")
                write(local)
                lake.fs.put_file(local, lake.path(relative))
                return Path(local).stat().st_size
        target = Path(lake.path(relative))
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}{PARTIAL}"
        try:
            write(str(partial))
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            size = partial.stat().st_size
            partial.replace(target)
            _sync_folder(target.parent)
            return size
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete_files(lake: LakePath, paths: list[str]) -> None:
    """Remove files of the lake, given as the file system's paths; one that is gone is fine."""
    for path in paths:
        try:
            lake.fs.rm_file(path)
        except FileNotFoundError:
            continue
        except Exception as error:
            if not is_of_storage(error):
                raise
            raise storage_error(error, f"remove {path}") from error
