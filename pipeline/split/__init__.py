"""Splits any trace document into its events, in bounded memory, keeping what is broken apart.

``DocumentSplitter`` is the entrance. Behind it: ``scan`` finds the events of a window of bytes
exactly, ``pattern`` finds them quickly where a document is written regularly, ``layout`` takes
their fields too where it can (``words`` is how), ``lines`` hands them to DuckDB, ``repair`` mends
what JSON parsers refuse.
"""

from pipeline.split.document import DocumentSplitter
from pipeline.split.model import KEEP_REJECTS, Block, Reject

__all__ = ["KEEP_REJECTS", "Block", "DocumentSplitter", "Reject"]
