"""Reads a document's bytes through whatever compression its first bytes show.

A compressed file that ends too early, or is damaged, gives all bytes before the damage and then
ends; ``damage`` says so. Concatenated streams (as ``cat a.gz b.gz`` makes) read as one.
"""

from __future__ import annotations

import bz2
import lzma
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

__all__ = ["Document", "zip_members"]

_CHUNK = 1 << 20
_ZIP = b"PK\x03\x04"


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


_DECOMPRESSORS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"\x28\xb5\x2f\xfd": _zstd,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
}


def _decompressor(head: bytes) -> Any:
    for magic, make in _DECOMPRESSORS.items():
        if head.startswith(magic):
            return make()
    return None


def zip_members(fs: Any, path: str) -> list[tuple[str, int]]:
    """Name and size of the files in a zip archive; empty if ``path`` is no archive."""
    with fs.open(path, "rb") as file:
        if file.read(4) != _ZIP:
            return []
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            return [(m.filename, m.file_size) for m in archive.infolist() if not m.is_dir()]


class Document:
    """The bytes of one document, decompressed as they are read. A context manager.

    Raises what fsspec raises (``OSError`` and its kin) where the file cannot be read at all.
    """

    def __init__(self, fs: Any, path: str, member: str | None = None) -> None:
        self.damage: str | None = None
        with ExitStack() as opening:
            self._file: IO[bytes] = opening.enter_context(fs.open(path, "rb"))
            self._pending: bytes = self._file.read(_CHUNK)
            if member is not None or self._pending.startswith(_ZIP):
                archive = opening.enter_context(zipfile.ZipFile(self._file))
                names = [info.filename for info in archive.infolist() if not info.is_dir()]
                self._file = opening.enter_context(archive.open(member or names[0]))
                self._pending = self._file.read(_CHUNK)
            self._decompressor = _decompressor(self._pending)
            self._opened = opening.pop_all()

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, size: int) -> bytes:
        """At most about ``size`` decompressed bytes; none at the end."""
        if self._decompressor is None:
            if self._pending:
                data, self._pending = self._pending, b""
                return data
            return self._file.read(size)
        while self.damage is None:
            data = self._pending or self._file.read(_CHUNK)
            self._pending = b""
            if not data:
                if not self._decompressor.eof:
                    self.damage = "the compressed data ends too early"
                return b""
            text = self._decompress(data)
            if text:
                return text
        return b""

    def _decompress(self, data: bytes) -> bytes:
        parts = []
        while data:
            if self._decompressor.eof:
                following = _decompressor(data)
                if following is None:
                    if data.strip(b"\x00"):
                        self.damage = "something else follows the compressed data"
                    break
                self._decompressor = following
            try:
                parts.append(self._decompressor.decompress(data))
            except (zlib.error, OSError, lzma.LZMAError, EOFError, _zstd_error()) as error:
                self.damage = f"the compressed data is damaged: {error}"
                break
            data = self._decompressor.unused_data if self._decompressor.eof else b""
        return b"".join(parts)


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError
