"""SageMaker Debugger's framework timelines.

Layout: ``framework/pevents/YYYYMMDDHH/<end µs>_<node>_<suffix>``, where node is ``<pid>-<host>``
or a plain name; ours have ``_rank<N>`` behind it. The base of the clock is a metadata event in the
file (sql/normalize).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, host_of, no_metadata

__all__ = ["FORMAT", "node_of"]

_TIMELINE = re.compile(
    r"(?:^|/)\d+_(?P<node>.+?)(?:_rank(?P<rank>\d{1,9}))?_"
    r"(?:pythontimeline|model_timeline|horovod_timeline|smdataparallel_timeline)\.json"
)


def node_of(path: str) -> str | None:
    """The host in the name of a timeline file, without the process id before it."""
    match = _TIMELINE.search(path)
    return host_of(match.group("node")) if match else None


def _claims_path(path: str) -> bool:
    return _TIMELINE.search(path) is not None


def _claims_text(path: str, text: bytes) -> bool:
    return b"start_time_since_epoch_in_micros" in text


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    match = _TIMELINE.search(path)
    rank = None if match is None or match["rank"] is None else int(match["rank"])
    return Identity(node=node_of(path), rank=rank)


FORMAT = Format("smdebug", _claims_path, _claims_text, _identify, no_metadata)
