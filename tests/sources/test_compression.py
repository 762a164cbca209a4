"""Compressed files, known by their bytes, whole and damaged."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import pipeline

EVENT = b'{"ph":"X","name":"a","ts":%d,"dur":1,"pid":1,"tid":1}'
DOCUMENT = b"[" + b",".join(EVENT % i for i in range(5000)) + b"]"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def counts(lake: Path) -> tuple[int, bool]:
    with pipeline.Store.open(lake) as store:
        return store.sql("SELECT event_rows, truncated FROM sources").rows()[0]


@pytest.mark.parametrize("kind", COMPRESS)
def test_known_by_bytes_not_by_name(tmp_path: Path, kind: str) -> None:
    (tmp_path / "trace.json").write_bytes(COMPRESS[kind](DOCUMENT))
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    assert counts(tmp_path / "lake") == (5000, False)


@pytest.mark.parametrize("kind", COMPRESS)
def test_streams_one_after_the_other_are_one_document(tmp_path: Path, kind: str) -> None:
    middle = len(DOCUMENT) // 2
    parts = COMPRESS[kind](DOCUMENT[:middle]) + COMPRESS[kind](DOCUMENT[middle:])
    (tmp_path / "trace.json.gz").write_bytes(parts)
    pipeline.ingest(tmp_path / "trace.json.gz", tmp_path / "lake")
    assert counts(tmp_path / "lake") == (5000, False)


@pytest.mark.parametrize("kind", ["gzip", "zstd", "xz"])
def test_a_cut_file_gives_what_is_before_the_cut(tmp_path: Path, kind: str) -> None:
    whole = COMPRESS[kind](DOCUMENT)
    (tmp_path / "trace.json").write_bytes(whole[: len(whole) - 12])
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    events, truncated = counts(tmp_path / "lake")
    assert truncated
    assert 0 <= events <= 5000
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert (
            "the compressed data ends too early" in store.sql("SELECT repairs FROM sources").item()
        )


def test_a_zipped_trace_is_known_by_its_bytes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "trace.json", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.json", DOCUMENT)
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    assert counts(tmp_path / "lake") == (5000, False)


def test_zip_members_are_traces_of_their_own(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "traces.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one.json", DOCUMENT)
        archive.writestr("two.json", b"[" + EVENT % 1 + b"]")
        archive.writestr("notes.txt", b"no trace")
    report = pipeline.ingest(tmp_path / "traces.zip", tmp_path / "lake")
    assert (report.files, len(report.skipped), report.events) == (2, 1, 5001)
    again = pipeline.ingest(tmp_path / "traces.zip", tmp_path / "lake")
    assert (again.files, again.unchanged) == (0, 2)


def test_a_named_format_reads_every_member_of_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "traces.zip", "w") as archive:
        archive.mkdir("folder")
        archive.writestr("folder/a.json", b"[" + EVENT % 1 + b"]")
        archive.writestr("folder/b.json", b"[" + EVENT % 2 + b"]")
    report = pipeline.ingest(tmp_path / "traces.zip", tmp_path / "lake", format="chrome")
    assert (report.files, report.events) == (2, 2)


NAMED = b'{"ph":"X","name":"%x","ts":%d,"dur":1,"pid":1,"tid":1}'
NOISE = b"[" + b",".join(NAMED % (i * 7919**3, i) for i in range(99_999)) + b"]"


def damaged(kind: str, at: float) -> bytes:
    whole = bytearray(COMPRESS[kind](NOISE))
    place = int(at * len(whole))
    whole[place : place + 64] = b"\xff" * 64
    return bytes(whole)


@pytest.mark.parametrize("kind", COMPRESS)
def test_what_stands_before_damage_is_kept(tmp_path: Path, kind: str) -> None:
    """As much as the decompressor gives when it is fed byte by byte."""
    text = damaged(kind, 0.9)
    decompressor = {
        "gzip": lambda: zlib.decompressobj(wbits=31),
        "zstd": lambda: zstandard.ZstdDecompressor().decompressobj(),
        "bz2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }[kind]()
    parts = []
    with contextlib.suppress(zlib.error, OSError, lzma.LZMAError, zstandard.ZstdError):
        for at in range(len(text)):
            parts.append(decompressor.decompress(text[at : at + 1]))
    want = b"".join(parts)
    same = next((at for at in range(len(want)) if want[at] != NOISE[at]), len(want))
    intact = want[:same].count(b"}")
    (tmp_path / "trace.json").write_bytes(text)
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        ((events, truncated, repairs),) = store.sql(
            "SELECT event_rows, truncated, repairs FROM sources"
        ).rows()
    assert 50_000 < intact <= events <= want.count(b"}")
    assert truncated
    assert "the compressed data is damaged" in repairs[-1]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_wrong_checksum_costs_no_event(tmp_path: Path, kind: str) -> None:
    checked = zstandard.ZstdCompressor(write_checksum=True).compress
    whole = bytearray((checked if kind == "zstd" else COMPRESS[kind])(DOCUMENT))
    whole[-5 if kind == "gzip" else -1] ^= 1
    (tmp_path / "trace.json").write_bytes(bytes(whole))
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    assert counts(tmp_path / "lake") == (5000, True)


def test_a_file_that_is_damaged_at_once_is_told_apart_from_no_trace(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 100)
    report = pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    assert [failure.reason.split(": ")[1] for failure in report.failed] == [
        "the compressed data is damaged"
    ]


def test_a_damaged_archive_gives_what_is_before_the_damage(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "trace.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("trace.json", NOISE)
    whole = bytearray((tmp_path / "trace.zip").read_bytes())
    whole[1_000_000] ^= 1
    (tmp_path / "trace.zip").write_bytes(bytes(whole))
    pipeline.ingest(tmp_path / "trace.zip", tmp_path / "lake")
    events, truncated = counts(tmp_path / "lake")
    assert truncated
    assert events > 99_000


def test_streams_that_meet_at_the_edge_of_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.sources import document

    monkeypatch.setattr(document, "_CHUNK", 7)
    parts = gzip.compress(DOCUMENT[:100]) + lzma.compress(DOCUMENT[100:]) + b"\x00" * 10
    (tmp_path / "trace.json").write_bytes(parts)
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake", format="chrome")
    assert counts(tmp_path / "lake") == (5000, False)
