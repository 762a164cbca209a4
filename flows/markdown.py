"""Names in Markdown artifacts: whatever a file is called, it is shown and does nothing."""

from __future__ import annotations

import re

__all__ = ["literal"]

_SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&-])")


def literal(text: str) -> str:
    """The Markdown that shows a text as it is, in one line."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))
