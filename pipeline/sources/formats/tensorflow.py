"""TensorFlow's profiler: ``plugins/profile/<time>/<host>.trace.json.gz``.

Timestamps count from the start of the profile. SageMaker Debugger puts an empty file beside it
whose name holds what is missing: ``<node>_<start µs>_<end µs>.metadata``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.sources.formats.base import Format, Identity, host_of, no_metadata

__all__ = ["FORMAT"]

_PROFILE = re.compile(r"(?:^|/)plugins/profile/[^/]+/(?P<host>[^/]+)\.trace\.json(?:\.gz)?$")
_METADATA = re.compile(r"(?P<folder>.*/|)(?P<node>[^/]+)_(?P<start>\d{16})_\d+\.metadata$")


def _claims_path(path: str) -> bool:
    return _PROFILE.search(path) is not None


def _claims_text(path: str, text: bytes) -> bool:
    return b'"highres-ticks"' in text


def _identify(path: str, text: bytes, beside: Iterable[str]) -> Identity:
    match = _PROFILE.search(path)
    node = match.group("host") if match else None
    nearest, base_ns = -1, None
    for other in beside:
        found = _METADATA.match(other)
        if found and path.startswith(found.group("folder")) and len(found["folder"]) > nearest:
            nearest = len(found["folder"])
            node = host_of(found["node"])
            base_ns = int(found["start"]) * 1000
    return Identity(node=node, base_ns=base_ns)


FORMAT = Format("tensorflow", _claims_path, _claims_text, _identify, no_metadata)
