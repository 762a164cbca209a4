"""Turns the lines of trace documents into the rows of the tables, by running sql/normalize.

``Workspace`` is the entrance: the database of one batch. Behind it: ``reader`` parses the
documents one after the other, ``stage`` keeps on disk the events that need no other event, and
``model`` says what goes in and out.
"""

from pipeline.normalize.model import Account, FileSlot, Partition
from pipeline.normalize.workspace import Workspace

__all__ = ["Account", "FileSlot", "Partition", "Workspace"]
