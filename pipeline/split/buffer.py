"""The bytes of a document around the place that is being looked at; they can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Buffer"]

_LEAST = 64 << 10


@dataclass
class Buffer:
    """``text`` holds bytes of the document from offset ``base`` on; ``at`` is the current place
    in it. ``read(size)`` delivers the document.
    """

    read: Callable[[int], bytes]
    text: bytes = b""
    base: int = 0
    at: int = 0
    _returned: list[bytes] = field(default_factory=list)
    _ended: bool = False

    @property
    def at_end(self) -> bool:
        """Whether ``text`` holds all that is left."""
        return self._ended and not self._returned

    def step(self) -> None:
        """Let go of the bytes before the current place."""
        self.text, self.base, self.at = self.text[self.at :], self.base + self.at, 0

    def fill(self, ahead: int) -> None:
        """Have ``ahead`` bytes from the current place on, or all there are."""
        missing = ahead - (len(self.text) - self.at)
        parts = [self.text]
        while missing > 0 and (part := self.next_part(missing)):
            parts.append(part)
            missing -= len(part)
        if len(parts) > 1:
            self.text = b"".join(parts)

    def next_part(self, size: int) -> bytes:
        """Bytes that were taken back, then those of the document; none at its end."""
        while self._returned:
            if part := self._returned.pop(0):
                return part
        if self._ended:
            return b""
        part = self.read(max(size, _LEAST))
        self._ended = not part
        return part

    def take_back(self, parts: list[bytes], base: int) -> None:
        """Have bytes that were taken, from ``base`` on, stand before all others again."""
        self._returned = [part for part in (*parts, self.text[self.at :], *self._returned) if part]
        self.text, self.base, self.at = b"", base, 0
