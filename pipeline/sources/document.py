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
_ZIP_CHUNK = 16 << 10
_BEHIND = "something else follows the compressed data"
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


def _stream(head: bytes) -> _Stream | None:
    """For the compression that the first bytes show; None where there is none."""
    decompressor = _decompressor(head)
    return None if decompressor is None else _Stream(decompressor)


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
        self._place = fs, path, member
        self._passed = 0  # how many bytes went through the decompressor
        self._opened = ExitStack()
        try:
            self._file = self._open(self._opened)
            self._pending: bytes = self._read_file(_CHUNK)
        except BaseException:
            self._opened.close()
            raise
        self._stream = _stream(self._pending)

    def _open(self, opened: ExitStack) -> IO[bytes]:
        """The file, or the member of a zip archive; ``opened`` closes it."""
        fs, path, member = self._place
        file: IO[bytes] = opened.enter_context(fs.open(path, "rb"))
        if member is None and file.read(len(_ZIP)) != _ZIP:
            file.seek(0)
            return file
        archive = opened.enter_context(zipfile.ZipFile(file))
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        return opened.enter_context(archive.open(member or names[0]))

    def _read_file(self, size: int) -> bytes:
        """Bytes as they are stored; where an archive is damaged, those before the damage."""
        if not isinstance(self._file, zipfile.ZipExtFile):
            return self._file.read(size)
        parts: list[bytes] = []
        try:
            while self.damage is None and size > 0 and (part := self._file.read(_ZIP_CHUNK)):
                parts.append(part)
                size -= len(part)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            self.damage = f"the archive is damaged: {error}"
        return b"".join(parts)

    def __enter__(self) -> Document:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, size: int) -> bytes:
        """At most about ``size`` decompressed bytes; none at the end."""
        if self._stream is None:
            if self._pending:
                data, self._pending = self._pending, b""
                return data
            return b"" if self.damage else self._read_file(size)
        while self._pending or self.damage is None:
            data, self._pending = self._pending or self._read_file(_CHUNK), b""
            if not data:
                self.damage = self.damage or self._stream.unfinished()
                return b""
            text = self._stream.feed(data)
            if self._stream.damage is not None:
                self.damage = self._stream.damage
                text = self._rescue(data)
            self._passed += len(data)
            if text:
                return text
        return b""

    def _rescue(self, data: bytes) -> bytes:
        """What comes out of ``data`` before its damage. Decompressors keep that to themselves, so
        all is decompressed once more, and the last piece byte by byte.
        """
        stream: _Stream | None = None
        with ExitStack() as opened:
            file = self._open(opened)
            left = self._passed
            while left > 0 and (part := file.read(min(left, _CHUNK))):
                stream = stream or _stream(part)
                if stream is not None:
                    stream.feed(part)
                left -= len(part)
        stream = stream or _stream(data)
        parts = []
        for at in range(len(data)):
            if stream is None or stream.damage is not None:
                break
            parts.append(stream.feed(data[at : at + 1]))
        return b"".join(parts)


class _Stream:
    """Compressed streams one behind the other; ``damage`` says where they end to make sense."""

    def __init__(self, decompressor: Any) -> None:
        self.decompressor = decompressor
        self.damage: str | None = None
        self._between = b""  # the first bytes of what may be another stream

    def unfinished(self) -> str | None:
        """What is wrong if nothing follows."""
        if not self.decompressor.eof:
            return "the compressed data ends too early"
        return _BEHIND if self._between else None

    def feed(self, data: bytes) -> bytes:
        """What ``data`` decompresses to; nothing of it where it is damaged."""
        parts = []
        while data and self.damage is None:
            if self.decompressor.eof:
                data, self._between = self._between + data, b""
                following = _decompressor(data)
                if following is None:
                    if any(magic.startswith(data) for magic in _DECOMPRESSORS):
                        self._between = data
                    elif data.strip(b"\x00"):
                        self.damage = _BEHIND
                    break
                self.decompressor = following
            try:
                parts.append(self.decompressor.decompress(data))
            except (zlib.error, OSError, lzma.LZMAError, EOFError, _zstd_error()) as error:
                self.damage = f"the compressed data is damaged: {error}"
            data = self.decompressor.unused_data if self.decompressor.eof else b""
        return b"".join(parts)


def _zstd_error() -> type[Exception]:
    import zstandard

    return zstandard.ZstdError
