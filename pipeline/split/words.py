"""Looks at many places of a text at once, eight bytes at each, with array operations.

A word is the eight bytes from a place on, the first of them lowest. Tests for a byte within a word
are those of Warren, "Hacker's Delight", section 6-1: subtracting makes a borrow that sets the high
bit of the byte looked for, and perhaps of those above it, so the lowest high bit is the answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["PADDING", "first_bytes", "stands_at", "text_ends", "whole_numbers"]

PADDING = 16
"""Zero bytes that must follow the text, so that a word can be read at its last byte."""

_EIGHT = 8
_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)
_KEEP_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_EIGHT + 1)], np.uint64)
_POWERS = 10 ** np.arange(_EIGHT + 1, dtype=np.int64)
_MOST_DIGITS = 16


def _words(data: NDArray[np.uint8], width: int = _EIGHT) -> NDArray[np.uint64]:
    """All overlapping words of the data."""
    return np.ndarray(len(data) - width + 1, f"<u{width}", data, strides=(1,))


def _each(byte: int) -> np.uint64:
    return np.uint64(byte) * _ONES


def _first_marked(marks: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of the lowest byte whose high bit is set, 8 if there is none."""
    below = ~marks & (marks - np.uint64(1))
    return (np.bitwise_count(below) >> 3).astype(np.int64)


def stands_at(data: NDArray[np.uint8], at: NDArray[np.int64], literal: bytes) -> NDArray[np.bool_]:
    """Whether ``literal`` stands at each place. A place may be anywhere in the data."""
    if not len(at):
        return np.zeros(0, np.bool_)
    last = len(data) - len(literal)
    found = np.ones(len(at), np.bool_)
    if int(at.max()) > last:
        found = at <= last
        at = np.where(found, at, 0)
        if last < 0:
            return found
    width = min(_EIGHT, 1 << (len(literal).bit_length() - 1))
    words = _words(data, width)
    for offset in {*range(0, len(literal) - width, width), len(literal) - width}:
        found &= words[at + offset] == np.frombuffer(literal, f"<u{width}", 1, offset)[0]
    return found


def text_ends(data: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the texts that begin at the places come to a quote, a backslash or a control
    character, or to the padding.
    """
    words = _words(data)
    ends = at.copy()
    going = np.arange(len(at))
    while len(going):
        word = words[ends[going]]
        quote, backslash = word ^ _each(ord('"')), word ^ _each(ord("\\"))
        found = ((quote - _ONES) & ~quote) | ((backslash - _ONES) & ~backslash)
        marks: NDArray[np.uint64] = (found | ((word - _each(ord(" "))) & ~word)) & _HIGH
        ends[going] += _first_marked(marks)
        going = going[marks == 0]
    return ends


def whole_numbers(
    data: NDArray[np.uint8], at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Where the digits end that begin at the places, the number they make, and whether it is one:
    of 1 to 16 digits and, if more than one, without a zero in front.
    """
    words = _words(data)
    values, counts = _digits(words[at])
    long = np.flatnonzero(counts == _EIGHT)
    lengths = counts.copy()
    if len(long):
        more, more_counts = _digits(words[at[long] + _EIGHT])
        values[long] = values[long] * _POWERS[more_counts] + more
        lengths[long] += more_counts
    ends = at + lengths
    good = (lengths > 0) & ~((data[at] == ord("0")) & (lengths > 1))
    too_long = np.flatnonzero(lengths == _MOST_DIGITS)
    good[too_long] &= (data[ends[too_long]] - ord("0")) > 9
    return ends, values, good


def _digits(word: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number that the digits at the start of each word make, and how many there are."""
    marks = ((word + _each(0x7F - ord("9"))) | (word - _each(ord("0")))) & _HIGH
    counts = _first_marked(marks)
    # The digits move to the upper bytes, so that zeros stand in front of them.
    shift = ((_EIGHT - counts) * 8).astype(np.uint64)
    digits = (word & _KEEP_BYTES[counts]) - (_each(ord("0")) & _KEEP_BYTES[counts])
    digits = np.where(counts > 0, digits << np.minimum(shift, np.uint64(56)), np.uint64(0))
    pairs = digits * np.uint64(10) + (digits >> np.uint64(8))
    low = (pairs & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    high = ((pairs >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(
        0x0000271000000001
    )
    return ((low + high) >> np.uint64(32)).astype(np.int64), counts


def first_bytes(
    data: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Up to eight bytes from each place as a word, zero behind them. Needs no padding."""
    last = len(data) - _EIGHT
    if last < 0:
        data, last = np.concatenate([data, np.zeros(_EIGHT, np.uint8)]), len(data)
    # Near the end an earlier word is shifted into place.
    at = np.minimum(starts, last)
    shift = (np.minimum(starts - at, _EIGHT - 1) * 8).astype(np.uint64)
    result: NDArray[np.uint64] = (_words(data)[at] >> shift) & _KEEP_BYTES[counts]
    return result
