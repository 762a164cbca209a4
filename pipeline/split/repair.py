"""Mends what profilers write and JSON forbids, on the bytes of single events.

Seen in the wild: bytes that are not UTF-8, raw control characters in names, single backslashes
of Windows paths, half surrogate pairs, ``N/A`` and ``-nan(ind)`` as values, and the same key
twice (the last one wins, as in every parser that builds a dictionary).
"""

from __future__ import annotations

import json
import re

__all__ = ["mend_surrogates", "repair"]

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(r'\\(?:u(?![0-9a-fA-F]{4})|(?!["\\/bfnrtu]))')
_PAIR = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\\\|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_BARE_VALUE = re.compile(r"[^\s,:{}\[\]\"]+")
_LITERALS = {"true", "false", "null", "NaN", "Infinity", "-Infinity"}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _mend_pair(match: re.Match[str]) -> str:
    text = match.group()
    return text if text == "\\\\" or len(text) == 12 else "\\ufffd"


def mend_surrogates(text: str) -> str:
    """JSON text in which each escaped half of a surrogate pair that stands alone is U+FFFD."""
    return _PAIR.sub(_mend_pair, text)


def _double_backslashes(text: str) -> str:
    """``text`` (a string literal) with a second backslash before each that begins no escape."""
    done, at = [], 0
    while (found := text.find("\\", at)) >= 0:
        done.append(text[at:found])
        if _BAD_ESCAPE.match(text, found):
            done.append("\\\\")
            at = found + 1
        else:
            done.append(text[found : found + 2])
            at = found + 2
    return "".join(done) + text[at:]


def _mend_string(text: str) -> str:
    if "\\" in text:
        text = mend_surrogates(_double_backslashes(text))
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _mend_bare(match: re.Match[str]) -> str:
    text = match.group()
    return text if text in _LITERALS or _NUMBER.fullmatch(text) else "null"


def repair(event: bytes) -> str:
    """The event as valid JSON text, or the closest to it: the caller parses and sees.

    Keys that stand twice are written once, with the last value; numbers keep their digits.
    """
    text = event.decode("utf-8", "replace")
    parts, at = [], 0
    for match in _STRING.finditer(text):
        parts.append(_BARE_VALUE.sub(_mend_bare, text[at : match.start()]))
        parts.append(_mend_string(match.group()))
        at = match.end()
    parts.append(_BARE_VALUE.sub(_mend_bare, text[at:]))
    mended = "".join(parts)
    if mended == text:
        mended = _without_equal_keys(text)
    return mended


def _without_equal_keys(text: str) -> str:
    """A valid JSON object with each key once, its last value as it was written."""
    decoder = json.JSONDecoder()
    values: dict[str, str] = {}
    try:
        at = _white(text, 0)
        while text[at] in "{,":
            at = _white(text, at + 1)
            key, at = decoder.raw_decode(text, at)
            at = _white(text, _white(text, at) + 1)
            _, end = decoder.raw_decode(text, at)
            values[key] = text[at:end]
            at = _white(text, end)
        if text[at] != "}" or text[at + 1 :].strip():
            return text
    except (ValueError, IndexError, TypeError, RecursionError):
        return text
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in values.items()) + "}"


def _white(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
