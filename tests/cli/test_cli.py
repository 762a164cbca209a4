"""The command as a user runs it: output, files, and errors of one line with their exit code."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import pipeline
from tests.cli.command import EVENT, Run, one_line


def test_ingest_reports_as_text_and_as_json(tracelake: Run, trace: Path) -> None:
    process = tracelake("ingest", "job", "--lake", "lake")
    assert process.returncode == 0
    assert "files     1 (1 chrome)\n" in process.stdout
    assert "events    2\n" in process.stdout
    assert "rejected  1\n" in process.stdout
    assert process.stderr == "1 of 1 files read\n"
    process = tracelake("ingest", "job", "--lake", "other", "--json")
    report = json.loads(process.stdout)
    assert (report["files"], report["events"], report["rejected"]) == (1, 2, 1)
    assert report["files_by_format"] == {"chrome": 1}
    assert process.stderr == ""


def test_dry_run_writes_nothing(tracelake: Run, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "job" / "notes.txt").write_text("hello")
    process = tracelake("ingest", "job", "--lake", "lake", "--dry-run")
    assert process.stdout.splitlines() == [
        f"read  chrome     run=job node=node0 rank=-  {trace}",
        f"skip  not a trace  {tmp_path / 'job' / 'notes.txt'}",
        "1 to read, 1 to skip, 0 unchanged",
    ]
    assert not (tmp_path / "lake").exists()


def test_rejects_show_place_and_reason(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    process = tracelake("rejects", "--lake", "lake", "--format", "csv")
    assert process.stdout.splitlines() == [
        "run,byte_offset,reason,text,uri",
        f"job,55,text between events,oops,{trace}",
    ]


@pytest.mark.parametrize(
    ("form", "want"),
    [
        ("csv", "n,name\n2,a\n"),
        ("ndjson", '{"n":2,"name":"a"}\n'),
        ("json", '[\n\t{"n":2,"name":"a"}\n]\n'),
    ],
)
def test_sql_formats_and_parameters(tracelake: Run, trace: Path, form: str, want: str) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    query = "SELECT count(*) AS n, name FROM events WHERE name = $name GROUP BY ALL"
    arguments = ("sql", query, "--param", "name=a", "--lake", "lake")
    assert tracelake(*arguments, "--format", form).stdout == want
    assert tracelake(*arguments, "--output", f"out.{form}").stdout == ""
    assert (trace.parent.parent / f"out.{form}").read_text() == want


def test_sql_from_a_file_to_parquet(tracelake: Run, trace: Path, tmp_path: Path) -> None:
    import polars as pl

    tracelake("ingest", "job", "--lake", "lake")
    (tmp_path / "query.sql").write_text("FROM events SELECT ts_ns;")
    process = tracelake("sql", "-f", "query.sql", "--lake", "lake", "-o", "out.parquet")
    assert process.returncode == 0, process.stderr
    assert pl.read_parquet(tmp_path / "out.parquet")["ts_ns"].to_list() == [1000, 1000]


def test_tables_documents_every_view_and_column(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    process = tracelake("tables", "--lake", "lake", "--format", "ndjson")
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    assert {"events", "metrics", "sources", "runs", "rejects", "utc(ns)"} <= {
        r["name"] for r in rows
    }
    assert [row for row in rows if not row["comment"]] == []


def test_nothing_there(tracelake: Run, tmp_path: Path) -> None:
    process = tracelake("ingest", "missing", "--lake", "lake")
    assert process.returncode == 4
    assert one_line(process) == "tracelake: nothing at missing: check the path"
    assert not (tmp_path / "lake").exists()


def test_a_folder_without_traces(tracelake: Run, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "notes.txt").write_text("hello")
    process = tracelake("ingest", "job", "--lake", "lake")
    assert process.returncode == 4
    assert "no trace to ingest in job" in one_line(process)


def test_no_lake(tracelake: Run) -> None:
    process = tracelake("runs", "--lake", "lake")
    assert process.returncode == 5
    assert "make one with 'tracelake ingest'" in one_line(process)


def test_a_lake_that_is_a_file(tracelake: Run, trace: Path) -> None:
    process = tracelake("ingest", "job", "--lake", trace)
    assert process.returncode == 5
    assert one_line(process) == f"tracelake: {trace} is a file, not a lake: choose a folder"


def test_a_lake_that_is_another_folder(tracelake: Run, trace: Path) -> None:
    process = tracelake("ingest", "job", "--lake", "job")
    assert process.returncode == 5
    assert "is not a lake, and holds other files (trace.json)" in one_line(process)


def test_a_lake_of_a_newer_version(tracelake: Run, trace: Path, tmp_path: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    (tmp_path / "lake" / "tracelake.json").write_text('{"lake_version": 99}')
    process = tracelake("runs", "--lake", "lake")
    assert process.returncode == 5
    assert "is of version 99" in one_line(process)


def test_wrong_sql(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    process = tracelake("sql", "SELECT nothing FROM nowhere", "--lake", "lake")
    assert process.returncode == 7
    assert process.stderr.startswith("tracelake: Catalog Error: Table with name nowhere")


def test_wrong_usage(tracelake: Run) -> None:
    assert tracelake("sql", "--lake", "lake").returncode == 2
    assert tracelake("ingest").returncode == 2
    assert tracelake("ingest", "x", "--lake", "y", "--format", "z").returncode == 2


def test_an_unknown_run(tracelake: Run, trace: Path) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    process = tracelake("delete", "--run", "jobb", "--lake", "lake")
    assert process.returncode == 4
    assert one_line(process).endswith("it has 'job'")


AS_ANOTHER_USER = """
import os, sys, pipeline.cli
# Everything is loaded before the user changes: another one may not read the interpreter's files.
sys.argv = ["tracelake", "ingest", "job/good.json", "--lake", "warm", "--json"]
try:
    pipeline.cli.main()
except SystemExit as stop:
    assert not stop.code
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
sys.argv = ["tracelake", "ingest", "job", "--lake", "lake"]
pipeline.cli.main()
"""


def test_an_unreadable_file_never_stops_the_others(environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="tracelake-test-") as name:
        folder = Path(name)
        good, bad = folder / "job/good.json", folder / "job/bad.json"
        good.parent.mkdir()
        good.write_text(f"[{EVENT}]")
        bad.write_text(f"[{EVENT}]")
        bad.chmod(0)
        folder.chmod(0o777)
        process = subprocess.run(
            [sys.executable, "-c", AS_ANOTHER_USER],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 3, process.stderr
        last = process.stderr.strip().splitlines()[-1]
        assert last.endswith("bad.json: permission denied: check who owns it")
        assert "files     1 (1 chrome)\n" in process.stdout
        assert "failed    1\n" in process.stdout
        with pipeline.Store.open(folder / "lake") as store:
            (row,) = store.sql("SELECT uri, error FROM sources WHERE error IS NOT NULL").rows()
            assert row[0].endswith("bad.json")
            assert row[1].endswith("permission denied: check who owns it")
        # Once it can be read it is.
        bad.chmod(0o644)
        assert pipeline.ingest(folder / "job", folder / "lake").files == 1


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ("X", "cannot work in the folder for temporary files (TMPDIR)"),
        # Begins wait for their ends in memory.
        ("B", "cannot write to "),
    ],
)
def test_disk_full_leaves_nothing_half_visible(
    tracelake: Run, tmp_path: Path, environment: dict[str, str], phase: str, message: str
) -> None:
    """A file size limit stands for a full disk: the write fails in the middle all the same."""
    (tmp_path / "job").mkdir()
    text = ",".join(
        json.dumps({"ph": phase, "name": os.urandom(40).hex(), "ts": i, "dur": 1, "pid": 1})
        for i in range(20_000)
    )
    tracelake("ingest", _write(tmp_path / "first.json", f"[{EVENT}]"), "--lake", "lake")
    (tmp_path / "job" / "trace.json").write_text(f"[{text}]")

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    process = tracelake("ingest", "job", "--lake", "lake", preexec_fn=limit)
    assert process.returncode == 6, process.stderr
    assert message in process.stderr.strip().splitlines()[-1]
    assert "Traceback" not in process.stderr
    assert tracelake("verify", "--lake", "lake").returncode == 0
    count = tracelake(
        "sql", "SELECT count(*) AS n FROM events", "--lake", "lake", "--format", "csv"
    )
    assert count.stdout == "n\n1\n"
    leftovers = [p for p in (tmp_path / "lake").rglob("*") if ".partial" in p.name]
    assert leftovers == []


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_version_is_quick_to_import(environment: dict[str, str]) -> None:
    """The heavy packages are not loaded for the commands that do not need them."""
    code = (
        "import sys, pipeline.cli\n"
        "heavy = {'duckdb', 'polars', 'pyarrow', 'numpy', 'fsspec', 'prefect', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert out == "[]\n"


def test_a_file_that_the_query_cannot_read_is_the_fault_of_the_query(
    tracelake: Run, trace: Path
) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    process = tracelake("sql", "FROM read_csv('/nowhere.csv')", "--lake", "lake")
    assert process.returncode == 7
    assert "/nowhere.csv" in process.stderr


@pytest.mark.parametrize("name", ["no/such/folder.csv", "no/such/folder.txt"])
def test_an_output_that_cannot_be_written(tracelake: Run, trace: Path, name: str) -> None:
    tracelake("ingest", "job", "--lake", "lake")
    form = "table" if name.endswith("txt") else "csv"
    process = tracelake("sql", "SELECT 1", "--lake", "lake", "-o", name, "--format", form)
    assert process.returncode == 6
    assert one_line(process).startswith(f"tracelake: cannot write {name}: ")


@pytest.mark.parametrize("arguments", [("", "--lake", "lake"), ("job", "--lake", "")])
def test_an_empty_name_is_not_the_current_folder(
    tracelake: Run, trace: Path, arguments: tuple[str, ...]
) -> None:
    process = tracelake("ingest", *arguments)
    assert process.returncode == 2
    assert " is empty: give a " in one_line(process)
    assert not (trace.parent.parent / "tracelake.json").exists()
