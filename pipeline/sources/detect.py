"""Which format a file is of, by its name and its first bytes."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from pipeline.errors import UsageError
from pipeline.sources.formats import FORMATS, Format

__all__ = ["HEAD_BYTES", "bare_name", "detect_format", "format_named"]

HEAD_BYTES = 64 << 10
"""How much of a document is looked at, decompressed."""

_EXTENSIONS = re.compile(
    r"\.(?:gz|zst|zstd|bz2|xz|zip|tmp|json|jsonl|ndjson|trace|pt|txt|log)$", re.IGNORECASE
)


def bare_name(name: str) -> str:
    """A file name without the extensions that traces carry; never empty."""
    bare = name
    while (shorter := _EXTENSIONS.sub("", bare)) != bare and shorter:
        bare = shorter
    return bare if bare != name else PurePosixPath(name).stem


def format_named(name: str) -> Format:
    """The format of that name; ``UsageError`` with the known ones where there is none."""
    for form in FORMATS:
        if form.name == name:
            return form
    known = ", ".join(form.name for form in FORMATS)
    raise UsageError(f"unknown format {name!r}: use one of {known}")


def detect_format(path: str, head: bytes | None) -> Format | None:
    """The format of a file; without ``head``, only if its path alone leaves no doubt.

    None where it is no trace (or, without ``head``, where its bytes must decide).
    """
    if head is None:
        return next((form for form in FORMATS if form.claims_path(path)), None)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"[", b"{")):
        return None
    for form in FORMATS:
        if form.claims_path(path) or form.claims_text(path, text):
            return form
    return None
