"""Lists what the user pointed at and says of each file what it is, whose it is, or why not.

Nothing is read here but the first bytes of files whose path leaves open what they are, and of
those only the ones the ledger does not know yet (``known``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from pipeline.errors import SourceError, StorageError, UsageError, is_of_storage, storage_error
from pipeline.remote import file_system, is_local
from pipeline.settings import JOB_END, MARKER
from pipeline.sources.detect import HEAD_BYTES, bare_name, detect_format, format_named
from pipeline.sources.document import Document, zip_members
from pipeline.sources.listing import find_local, find_remote, settled_hours
from pipeline.sources.model import EVERYTHING, Listing, Skipped, Source, Unreadable

__all__ = ["Discovery", "discover"]

_JOB_FOLDERS = ("framework", "system")
_METADATA = ".metadata"
_PROFILES = "/plugins/profile/"
_MERGED = "merged_trace.json"
_TIMELINE = "_merged_timeline.json"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


Settled = Callable[[Any], frozenset[str]]
"""Folders of a file system that need not be listed again."""


@dataclass(frozen=True)
class Discovery:
    """The files to read, those left alone, and how many the ledger already holds as they are.

    ``refused`` are files that were given by name and are no traces, ``failed`` those that could
    not be opened. ``gone`` are files that the lake holds as they were while they were open, and
    that are not below the folders that were listed any more.
    """

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    refused: tuple[Skipped, ...]
    unchanged: int
    failed: tuple[Unreadable, ...]
    gone: tuple[str, ...] = ()


@dataclass(frozen=True)
class _File:
    fs: Any
    path: str
    info: Mapping[str, Any]
    job: str | None
    run: str
    given: bool  # by its own name, not by a folder

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def uri(self) -> str:
        return _uri(self.fs, self.path)


def _uri(fs: Any, path: str) -> str:
    return _readable(path if is_local(fs) else str(fs.unstrip_protocol(path)))


def _readable(name: str) -> str:
    """A name as valid Unicode: bytes of a file name that are no UTF-8 are written out."""
    return name.encode("utf-8", "backslashreplace").decode()


def _fingerprint(info: Mapping[str, Any]) -> str:
    """What changes when the content does: the etag, else size and time of modification."""
    for key in ("ETag", "etag", "md5Hash", "md5"):
        if info.get(key):
            return f"{key.lower()} {str(info[key]).strip(chr(34))}"
    changed = info.get("mtime") or info.get("LastModified") or info.get("last_modified")
    changed = changed or info.get("created") or ""
    return f"size {info.get('size')} mtime {changed}"


def _job_of(root: str, path: str) -> str | None:
    """The folder of the job that a file belongs to: the one that holds framework/ or system/."""
    inside = path.removeprefix(root).strip("/").split("/")[:-1]
    for at, part in enumerate(inside):
        if part in _JOB_FOLDERS:
            return "/".join([root.rstrip("/"), *inside[:at]]) if at else root.rstrip("/")
    head, _, last = root.rstrip("/").rpartition("/")
    return head if last in _JOB_FOLDERS else None


def _folder_name(path: str) -> str:
    parts = [part for part in path.split("/") if part and part != "profiler-output"]
    return parts[-1] if parts else "traces"


def _expand(
    source: str, options: Mapping[str, Any], settled: Settled, listed: list[tuple[Any, str]]
) -> list[_File]:
    """All files behind one argument; a folder that this lists is added to ``listed``."""
    if not source:
        raise UsageError("the name of a source is empty: give a file, a folder or a URL")
    try:
        fs, path = file_system(source, options)
    except ValueError as error:
        raise SourceError(f"cannot open {source}: {error}") from error
    path = path.rstrip("/") or path
    if is_local(fs):
        path = os.path.normpath(path)
    try:
        if fs.isfile(path):
            return [_File(fs, path, fs.info(path), None, bare_name(_base(path)), True)]
        if fs.isdir(path):
            listed.append((fs, path))
            return _walk(fs, path, settled)
        if any(sign in path for sign in "*?["):
            magic = min(path.index(sign) for sign in "*?[" if sign in path)
            folder = path[:magic].rpartition("/")[0]
            files = []
            for match, info in sorted(fs.glob(path, detail=True).items()):
                if info["type"] == "directory":
                    files += _walk(fs, match, settled)
                else:
                    run = _folder_name(folder)
                    job = _job_of(folder, match)
                    files.append(_File(fs, match, info, job, _folder_name(job or run), False))
            if files:
                return files
    except FileNotFoundError:
        pass  # what has no bucket, in a glob
    except Exception as error:
        if not is_of_storage(error):
            raise
        raise storage_error(error, f"list {source}") from error
    if _is_of(fs, "s3://") and not _has_bucket(fs, path):
        raise StorageError(f"cannot list {source}: there is no such bucket")
    raise SourceError(f"nothing at {source}: check the path")


def _has_bucket(fs: Any, path: str) -> bool:
    try:
        return bool(fs.exists(path.partition("/")[0]))
    except Exception as error:
        # Whoever may read a folder of a bucket need not be allowed to ask about the bucket.
        if not is_of_storage(error):
            raise
        return True


def _is_of(fs: Any, uri: str) -> bool:
    """Whether a URI is of the kind that a file system opens."""
    protocols = fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)
    return uri.partition("://")[0] in protocols


def _base(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _walk(fs: Any, folder: str, settled: Settled) -> list[_File]:
    """All files below a folder; of a lake among them only its marker."""
    listed = find_local(folder) if is_local(fs) else find_remote(fs, folder, settled(fs))
    lakes = tuple(path.removesuffix(MARKER) for path in listed if _base(path) == MARKER)
    found = []
    for path, info in sorted(listed.items()):
        if path.startswith(lakes) and _base(path) != MARKER:
            continue
        job = _job_of(folder, path)
        found.append(_File(fs, path, info, job, _folder_name(job or folder), False))
    return found


def _gone(
    missing: Iterable[str], listed: Iterable[tuple[Any, str]], settled: Settled
) -> list[str]:
    """Of the missing files those that were open when read, and whose folder was listed."""
    opened = [uri for uri in missing if uri.endswith(".tmp")]
    return sorted(
        {
            uri
            for fs, folder in listed
            for uri in opened
            if uri.startswith(_uri(fs, folder).rstrip("/") + "/")
            and fs._strip_protocol(uri).rpartition("/")[0] not in settled(fs)
        }
    )


def _metadata_above(files: Iterable[_File], listed: Sequence[str]) -> list[str]:
    """What lies beside the profiles that were given without the folder above them: the start of
    their clock stands in the name of a file there.
    """
    found: list[str] = []
    looked_in = {path.rpartition("/")[0] for path in listed}
    for file in files:
        folder, profiles, _ = file.path.partition(_PROFILES)
        if profiles and folder not in looked_in:
            looked_in.add(folder)
            try:
                names = file.fs.ls(folder, detail=False)
            except Exception as error:
                # Some storage reads files and lists none: such a profile has a clock of its own.
                if not is_of_storage(error) and not isinstance(error, NotImplementedError):
                    raise
                continue
            found += [name for name in names if name.endswith(_METADATA)]
    return found


def _reason_to_skip(file: _File, ended: set[str | None], folders: Mapping[str, int]) -> str | None:
    name = file.name
    if name == MARKER:
        return "a lake: give the traces it was made from"
    if file.info.get("type") in ("link to nothing", "no file"):
        return "not a regular file"
    if name == JOB_END or name.endswith(_METADATA):
        return "not a trace: it tells about the job"
    if name.startswith(".") and not file.given:
        return "hidden"
    if name.endswith(".tmp") and not file.given and file.job not in ended:
        return "still being written: its job has not ended"
    if not file.info.get("size"):
        return "empty"
    if name.endswith(_TIMELINE) and not file.given:
        return "merged from the traces beside it"
    if name.startswith(_MERGED) and folders.get(file.path.rpartition("/")[0], 0) > 1:
        return "merged from the traces beside it"
    return None


def _unsettled(file: _File, listing: Listing, now: float) -> str | None:
    """Why a file is left for later, if it is: its writer may not be done with it."""
    changed = file.info.get("mtime") or file.info.get("LastModified") or 0.0
    age = now - (changed.timestamp() if isinstance(changed, datetime) else float(changed))
    if 0 <= age < listing.settle_seconds:
        return f"still being written: changed {age:.1f} s ago"
    return None


def _why_no_trace(head: bytes) -> str:
    if head.startswith(_UTF16):
        return "not a trace: UTF-16 text, convert it to UTF-8"
    return "not a trace: no JSON array or object (--format reads it all the same)"


def discover(
    sources: Iterable[str],
    run: str | None = None,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    known: Callable[[str, str, str], bool] = lambda uri, fingerprint, run: False,
    known_uris: Collection[str] = (),
    failed_uris: Collection[str] = (),
    listing: Listing = EVERYTHING,
) -> Discovery:
    """List ``sources``: files, folders, globs or any URL that fsspec opens, as ``listing`` says.

    ``run`` and ``format`` override what the names say. ``known(uri, fingerprint, run)`` tells
    whether the lake holds a file as it is now; ``known_uris`` are the names of all files that it
    holds, ``failed_uris`` of those that it could not read. Raises ``SourceError`` where there is
    nothing, ``StorageError`` where the storage does not answer.
    """

    @cache
    def settled(fs: Any) -> frozenset[str]:
        if listing.late_hours is None:
            return frozenset()
        held, failed_paths = (
            [fs._strip_protocol(uri) for uri in uris if _is_of(fs, uri)]
            for uris in (known_uris, failed_uris)
        )
        return settled_hours(held, failed_paths, listing.late_hours)

    chosen = format_named(format) if format else None
    files: dict[str, _File] = {}
    folders_listed: list[tuple[Any, str]] = []
    for source in sources:
        for file in _expand(source, storage_options or {}, settled, folders_listed):
            files.setdefault(file.uri, file)
    gone = _gone({*known_uris, *failed_uris} - files.keys(), folders_listed, settled)
    ended = {file.job for file in files.values() if file.name == JOB_END or listing.job_ended}
    now = time.time()
    folders: dict[str, int] = {}
    for file in files.values():
        folder = file.path.rpartition("/")[0]
        folders[folder] = folders.get(folder, 0) + 1
    paths = [file.path for file in files.values() if file.name.endswith(_METADATA)]
    paths += _metadata_above(files.values(), paths)

    found: list[Source] = []
    skipped: list[Skipped] = []
    refused: list[Skipped] = []
    failed: list[Unreadable] = []
    unchanged = 0
    for uri, file in files.items():
        reason = _reason_to_skip(file, ended, folders) or _unsettled(file, listing, now)
        if reason is not None:
            (refused if file.given else skipped).append(Skipped(uri, reason))
            continue
        fingerprint = _fingerprint(file.info)
        run_name = run if run is not None else _readable(file.run)
        if known(uri, fingerprint, run_name):
            unchanged += 1
            continue
        try:
            known_by_path = detect_format(file.path, None)
            may_be_zip = chosen or not known_by_path or ".zip" in file.name
            members = zip_members(file.fs, file.path) if may_be_zip else []
            alone: list[tuple[str | None, int]] = [(None, int(file.info["size"]))]
            for member, size in members or alone:
                member_uri = uri if member is None or len(members) == 1 else f"{uri}#{member}"
                if known(member_uri, fingerprint, run_name):
                    unchanged += 1
                    continue
                path = file.path if member is None else member
                form = chosen or known_by_path
                head = b""
                if chosen or form is None or form.name == "kineto":
                    with Document(file.fs, file.path, member) as document:
                        head = document.read(HEAD_BYTES)[:HEAD_BYTES]
                        if not head and document.damage:
                            raise ValueError(document.damage)
                    form = form or detect_format(path, head)
                if form is None:
                    if file.given and not members:
                        refused.append(Skipped(member_uri, _why_no_trace(head)))
                    else:
                        skipped.append(Skipped(member_uri, "not a trace"))
                    continue
                identity = form.identify(path, head, paths)
                found.append(
                    Source(
                        uri=member_uri,
                        fs=file.fs,
                        path=file.path,
                        format=form.name,
                        run=run_name,
                        node=None if identity.node is None else _readable(identity.node),
                        rank=identity.rank,
                        size_bytes=size,
                        fingerprint=fingerprint,
                        base_ns=identity.base_ns,
                        member=member,
                    )
                )
        except Exception as error:
            # One file that cannot be opened must not stop the others; the ledger says why.
            unopened = Source(
                uri=uri,
                fs=file.fs,
                path=file.path,
                format="unknown",
                run=run_name,
                node=None,
                rank=None,
                size_bytes=int(file.info["size"]),
                fingerprint=fingerprint,
            )
            failed.append(Unreadable(unopened, str(storage_error(error, f"read {uri}"))))
    return Discovery(
        tuple(found), tuple(skipped), tuple(refused), unchanged, tuple(failed), tuple(gone)
    )
