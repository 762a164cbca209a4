"""Reads the keys beside the events of a document in the object form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pipeline.split.repair import mend_surrogates, repair

__all__ = ["Beside", "read_beside"]


@dataclass(frozen=True)
class Beside:
    """The metadata, and what is wrong behind the events: its place there, its bytes, and why.

    ``metadata`` is None where nothing of it can be read.
    """

    metadata: dict[str, Any] | None
    wrong: tuple[tuple[int, bytes, str], ...] = ()


def read_beside(header: bytes, tail: bytes, truncated: bool) -> Beside:
    """Read what stands before (``header``, up to the value of ``traceEvents``) and behind the
    events (``tail``). A bad tail costs no key of the header.
    """
    whole = header + b"null" + tail
    arrays: list[int] = []  # of each object, the outermost last: its traceEvents keys

    def count_arrays(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        arrays.append(sum(key == "traceEvents" for key, _ in pairs))
        return dict(pairs)

    decoder = json.JSONDecoder(strict=False, object_pairs_hook=count_arrays)
    for text in (mend_surrogates(whole.decode("utf-8", "replace")), repair(whole)):
        try:
            metadata, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            continue
        metadata.pop("traceEvents", None)
        wrong = []
        if arrays[-1] > 1:
            wrong.append((0, tail, "a second traceEvents in the document"))
        if behind := text[end:].strip():
            at = len(tail) - len(text[end:].lstrip().encode())
            wrong.append((at, behind.encode(), "text behind the end of the document"))
        return Beside(metadata, tuple(wrong))
    bad = () if truncated else ((0, tail, "not valid JSON"),)
    try:
        metadata = json.loads(mend_surrogates((header + b"null}").decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return Beside(None, bad)
    metadata.pop("traceEvents", None)
    return Beside(metadata, bad)
