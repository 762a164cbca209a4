"""What arguments are, wherever they are given."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

__all__ = ["is_number"]


def is_number(value: Any) -> bool:
    """Whether it is a number that compares with others."""
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
