"""Ranges of time and of steps, as people give them, in nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from numbers import Integral, Real

from pipeline.arguments import is_number
from pipeline.errors import UsageError

__all__ = [
    "UNITS", "StepRange", "Steps", "Time", "multiple", "nanoseconds", "one_or_more",
]  # fmt: skip

UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds in each unit of time."""

Time = int | float | Decimal | str | datetime
"""A number in some unit, or a moment: a datetime or ISO 8601 text, UTC where it names no zone."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63 - 1
_STEP = re.compile(r"\s*-?[0-9]+\s*")
_FINER = re.compile(r"[.,][0-9]{6}([0-9]+)")


def nanoseconds(value: Time, unit: str = "ns") -> int:
    """Nanoseconds of a time; what is finer is cut off.

    Raises ``UsageError`` for a unit or a time that makes no sense.
    """
    if unit not in UNITS:
        raise UsageError(f"no unit of time {unit!r}: give one of {', '.join(UNITS)}")
    finer = 0
    if isinstance(value, str):
        value, finer = _read(value)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        since = moment - _EPOCH
        number = (
            finer
            + ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
        )
    elif isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value) * UNITS[unit]
    elif isinstance(value, Decimal | Real) and not isinstance(value, bool):
        # The digits that a float is written with are what its user means.
        exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
        if not exact.is_finite():
            raise UsageError(f"{value} is no time: give a finite number")
        number = int(exact * UNITS[unit])
    else:
        raise UsageError(f"{value!r} is no time: give a number or a datetime")
    if abs(number) > _LARGEST:
        raise UsageError(f"{value} {unit} is beyond the year 2262: is it in another unit?")
    return number


def _read(text: str) -> tuple[Decimal | datetime, int]:
    """A number, or a moment to the microsecond and the nanoseconds beyond it."""
    try:
        return Decimal(text), 0
    except InvalidOperation:
        pass
    finer = _FINER.search(text)
    try:
        # A datetime ends at microseconds.
        return datetime.fromisoformat(text), int(finer[1].ljust(3, "0")[:3]) if finer else 0
    except ValueError:
        raise UsageError(
            f"{text!r} is no time: give a number, or a UTC time as in 2020-08-05T22:57:05.5"
        ) from None


@dataclass(frozen=True)
class StepRange:
    """Steps of a ``mode`` from ``first`` up to, but without, ``until``.

    None stands for the first or all, and as mode for all but those of profilers (ProfilerStep,
    device), which count where nothing else has the first step.
    """

    first: int | None
    until: int | None
    mode: str | None = None

    @classmethod
    def of(cls, steps: Steps) -> StepRange:
        """From ``7``, ``(2, 4)``, ``range(2, 4)`` or ``"7"``, ``"2:4"``, ``"2:"``, ``":4"``, or
        with a mode ``"EVAL 2:4"``.

        One number is that step alone. Raises ``UsageError`` for anything else, and where the range
        is empty or reversed.
        """
        if isinstance(steps, StepRange):
            return cls._checked(steps.first, steps.until, steps.mode)
        if isinstance(steps, str):
            mode, space, numbers = steps.strip().rpartition(" ")
            return cls._checked(*cls._parse(numbers), mode.strip() if space else None)
        if isinstance(steps, bool):
            raise UsageError(f"{steps} is no range of steps: give (first, until)")
        if isinstance(steps, Integral | int):
            return cls._checked(int(steps), int(steps) + 1)
        if isinstance(steps, range):
            if steps.step != 1:
                raise UsageError(f"{steps} leaves steps out: give a range without gaps")
            return cls._checked(steps.start, steps.stop)
        try:
            first, until = steps
        except (TypeError, ValueError):
            raise UsageError(f"{steps!r} is no range of steps: give (first, until)") from None
        return cls._checked(first, until)

    @staticmethod
    def _parse(text: str) -> tuple[int | None, int | None]:
        first, colon, until = text.partition(":")
        ends = [None if not end.strip() else end for end in (first, until)]
        if any(end is not None and not _STEP.fullmatch(end) for end in ends) or (
            not colon and ends[0] is None
        ):
            raise UsageError(f"{text!r} is no range of steps: give FIRST:UNTIL, as in 10:12")
        low, high = (None if end is None else int(end) for end in ends)
        return low, low + 1 if low is not None and not colon else high

    @classmethod
    def _checked(cls, first: int | None, until: int | None, mode: str | None = None) -> StepRange:
        for end in (first, until):
            if isinstance(end, bool) or not isinstance(end, Integral | None):
                raise UsageError(f"{end!r} is no step: give whole numbers")
        if first is not None and until is not None and first >= until:
            raise UsageError(
                f"steps {first}:{until} are an empty range: the second number is not included"
            )
        return cls(first, until, mode)

    def __str__(self) -> str:
        numbers = ":".join("" if end is None else str(end) for end in (self.first, self.until))
        return numbers if self.mode is None else f"{self.mode} {numbers}"


Steps = int | str | range | Sequence[int | None] | StepRange
"""A step or a range of steps; see ``StepRange.of``."""


def one_or_more(value: str | Sequence[str] | None) -> list[str] | None:
    """A list of one name, or of several; None for no choice. Raises ``UsageError`` for what is
    neither.
    """
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    try:
        return list(value)
    except TypeError:
        raise UsageError(f"{value!r} is no name: give one, or several") from None


def multiple(factor: float) -> float:
    """A multiple of a median that makes sense. Raises ``UsageError`` for another."""
    if not (is_number(factor) and factor >= 1):
        raise UsageError(f"a factor of {factor}: give a number from 1 on")
    return factor
