"""Packages that only some people need: each comes with an extra of the same or a wider name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pipeline.errors import UsageError

__all__ = ["extra"]


def extra(module: str, name: str) -> Any:
    """A module that comes with ``tracelake[name]``.

    Raises ``UsageError`` that names the extra where it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(f"{package} is not installed: pip install 'tracelake[{name}]'") from error
