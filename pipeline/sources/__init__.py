"""Finds trace files, tells what they are, and reads their bytes.

``discover`` lists files through fsspec and gives each a format, run, node and rank; ``detect``
and ``formats`` decide by name and first bytes; ``document`` reads through any compression.
"""

from pipeline.sources.discover import Discovery, discover
from pipeline.sources.model import EVERYTHING, Listing, Skipped, Source, Unreadable

__all__ = ["EVERYTHING", "Discovery", "Listing", "Skipped", "Source", "Unreadable", "discover"]
