"""Odd things that users point the command at, and odd settings: one line says what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import pipeline
from pipeline import cli
from pipeline.commands.options import key_values
from pipeline.sources.formats import FORMATS
from tests.cli.command import EVENT, Run, one_line


def test_a_named_file_that_is_no_trace_is_an_error(tracelake: Run, trace: Path) -> None:
    (trace.parent / "notes.txt").write_text("hello")
    process = tracelake("ingest", "job/notes.txt", "--lake", "lake")
    assert process.returncode == 4
    assert one_line(process).endswith(
        "notes.txt: not a trace: no JSON array or object (--format reads it all the same))"
    )
    assert not (trace.parent.parent / "lake").exists()
    (trace.parent / "wide.json").write_bytes(f"[{EVENT}]".encode("utf-16"))
    process = tracelake("ingest", "job/wide.json", trace, "--lake", "lake")
    assert process.returncode == 3
    assert process.stderr.splitlines()[-1].endswith(
        "wide.json: not a trace: UTF-16 text, convert it to UTF-8"
    )
    # In a folder such files are only left out.
    assert tracelake("ingest", "job", "--lake", "lake").returncode == 0


def test_another_format_reads_a_file_again(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    again = json.loads(
        tracelake("ingest", "job", "--lake", "lake", "--format", "kineto", "--json").stdout
    )
    assert (again["files"], again["unchanged"]) == (1, 0)
    # Without one, the file stays what it was made to be.
    again = json.loads(tracelake("ingest", "job", "--lake", "lake", "--json").stdout)
    assert (again["files"], again["unchanged"]) == (0, 1)


def test_a_lake_among_the_sources_is_left_out(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "job/lake")
    process = tracelake("ingest", "job", "--lake", "job/lake", "--json")
    report = json.loads(process.stdout)
    assert (report["files"], report["unchanged"]) == (0, 1)
    assert [(Path(skip["uri"]).name, skip["reason"]) for skip in report["skipped"]] == [
        ("tracelake.json", "a lake: give the traces it was made from")
    ]
    assert tracelake("ingest", "job/lake", "--lake", "other").returncode == 4


def test_links_and_pipes_in_a_folder(tmp_path: Path) -> None:
    job = tmp_path / "job"
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "trace.json").write_text(f"[{EVENT}]")
    job.mkdir()
    (job / "link").symlink_to(tmp_path / "elsewhere")
    (job / "again").symlink_to(job)
    (job / "gone.json").symlink_to(tmp_path / "nowhere.json")
    os.mkfifo(job / "pipe.json")
    report = pipeline.ingest(job, tmp_path / "lake")
    assert (report.files, report.events, report.failed) == (1, 1, ())
    assert sorted((Path(s.uri).name, s.reason) for s in report.skipped) == [
        ("gone.json", "not a regular file"),
        ("pipe.json", "not a regular file"),
    ]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("n=5", 5),
        ("n=2.50", "2.50"),
        ("n=true", True),
        ("n=null", None),
        ("n=text", "text"),
        ('n="5"', "5"),
        ("n=NaN", "NaN"),
        ("n=[1]", "[1]"),
        ("n=1712195495519689047", 1712195495519689047),
    ],
)
def test_parameters_have_the_type_they_are_written_in(
    trace: Path, lake: Path, given: str, want: object
) -> None:
    pipeline.ingest(trace, lake)
    ((key, text),) = key_values((given,))
    with pipeline.Store.open(lake) as store:
        (value,) = store.sql("SELECT $n AS n", {key: cli._value(text)}).row(0)
    assert (str(value) if given == "n=2.50" else value) == want


def test_a_numeric_parameter_compares_with_a_column(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    query = "SELECT count(*) AS n FROM events WHERE dur_ns >= $least"
    process = tracelake("sql", query, "--param", "least=2000", "--lake", "lake", "--format", "csv")
    assert process.stdout == "n\n2\n"


def test_a_query_file_that_is_not_utf8(tracelake: Run, trace: Path, tmp_path: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    (tmp_path / "query.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    process = tracelake("sql", "-f", "query.sql", "--lake", "lake")
    assert process.returncode == 2
    assert one_line(process) == "tracelake: query.sql is not UTF-8: save it as UTF-8"


@pytest.mark.parametrize(
    ("variable", "value", "advice"),
    [
        ("TRACELAKE_INGEST_MEMORY", "lots", "give a size such as 500MB or 4GB"),
        ("TRACELAKE_THREADS", "many", "give a whole number from 1 on"),
        ("TRACELAKE_THREADS", "0", "give a whole number from 1 on"),
    ],
)
def test_settings_that_make_no_sense(
    tracelake: Run,
    trace: Path,
    environment: dict[str, str],
    variable: str,
    value: str,
    advice: str,
) -> None:
    process = tracelake("ingest", "job", "--lake", "lake", env=environment | {variable: value})
    assert process.returncode == 2
    assert one_line(process) == f"tracelake: {variable} is '{value}': {advice}"


def test_a_bucket_without_credentials_is_one_line(
    tracelake: Run, trace: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    bare = {key: value for key, value in environment.items() if not key.startswith("AWS_")}
    # Nothing answers there, so the search for credentials of the machine ends at once.
    bare |= {
        "HOME": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    for arguments in (
        ("s3://bucket/job", "--lake", "lake"),
        ("job", "--lake", "s3://bucket/lake"),
    ):
        process = tracelake("ingest", *arguments, env=bare)
        assert process.returncode == 6, process.stderr
        assert "credentials" in one_line(process)


def test_the_formats_of_the_command_are_those_there_are() -> None:
    assert sorted(form.name for form in FORMATS) == sorted(cli._FORMATS)


def test_text_between_events_is_one_reject(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(f"[{EVENT}, this is no event, {EVENT}, null]")
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        rows = store.sql("SELECT byte_offset, reason, text FROM rejects").rows()
        (counts,) = store.sql("SELECT event_rows, rejected, empty_events FROM sources").rows()
    assert rows == [(55, "text between events", "this is no event")]
    assert counts == (2, 1, 1)


def test_mended_events_are_told_in_the_ledger(tmp_path: Path) -> None:
    broken = EVENT.replace('"a"', '"a\nb"')
    (tmp_path / "trace.json").write_text(f"[{EVENT},{broken},{broken}]")
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        (row,) = store.sql("SELECT repairs, event_rows FROM sources").rows()
    assert row == (["the text of 2 events mended"], 3)


def test_a_base_that_makes_no_sense_is_told_in_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(
        f'{{"baseTimeNanoseconds": "17", "schemaVersion": 1, "traceEvents": [{EVENT}]}}'
    )
    pipeline.ingest(tmp_path / "trace.json", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        (row,) = store.sql("SELECT repairs, clock FROM sources").rows()
    assert row == (["baseTimeNanoseconds left out: it makes no sense"], "trace")


def test_a_fault_of_tracelake_in_one_document_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.split import DocumentSplitter

    job = tmp_path / "job"
    job.mkdir()
    (job / "a.json").write_text(f"[{EVENT}]")
    (job / "b.json").write_text(f"[{EVENT}]")
    finish = DocumentSplitter.finish
    calls: list[int] = []

    def fail_once(splitter: DocumentSplitter) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise IndexError("out of bounds")
        finish(splitter)

    monkeypatch.setattr(DocumentSplitter, "finish", fail_once)
    report = pipeline.ingest(job, tmp_path / "lake")
    assert (report.files, report.events) == (1, 1)
    assert report.failed[0].reason.endswith("please report this: IndexError('out of bounds')")


def test_an_empty_query(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    process = tracelake("sql", " ", "--lake", "lake")
    assert process.returncode == 2
    assert one_line(process) == "tracelake: the query is empty"
