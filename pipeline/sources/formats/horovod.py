"""Horovod's timeline: every tensor is a process; events without pid, ends without name.

Horovod itself never closes its array. SageMaker Debugger rewrites the file with a base time
under a name of its own layout.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, no_metadata, rank_in_name
from pipeline.sources.formats.smdebug import node_of

__all__ = ["FORMAT"]


def _claims_path(path: str) -> bool:
    return "horovod_timeline" in path.rsplit("/", 1)[-1]


def _claims_text(path: str, text: bytes) -> bool:
    return b'"NEGOTIATE_' in text or b'"CYCLE_START"' in text


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    return Identity(node=node_of(path), rank=rank_in_name(path))


FORMAT = Format("horovod", _claims_path, _claims_text, _identify, no_metadata)
