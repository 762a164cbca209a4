"""One small module a format: how its files are known, and what their names tell.

The SQL of a format is ``sql/normalize/formats/<name>.sql``.
"""

from pipeline.sources.formats import (
    chrome,
    composer,
    horovod,
    kineto,
    smdebug,
    system,
    tensorflow,
)
from pipeline.sources.formats.base import Format, Identity

__all__ = ["FORMATS", "Format", "Identity"]

FORMATS: tuple[Format, ...] = (
    horovod.FORMAT,
    smdebug.FORMAT,
    system.FORMAT,
    tensorflow.FORMAT,
    composer.FORMAT,
    kineto.FORMAT,
    chrome.FORMAT,
)
"""All formats; the first that claims a file has it, so chrome, which takes any trace, is last."""
