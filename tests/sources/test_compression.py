"""Compressed files, known by their bytes, whole and damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
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
