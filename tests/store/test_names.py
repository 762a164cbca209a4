"""Names of runs, nodes, processes and events are data: they come back as they went in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import pipeline
from pipeline.store.layout import partition_key

HOSTILE = [
    "../../escape",
    "it's; DROP TABLE x; --",
    'say "hi"',
    "100%",
    "a=b",
    "two\nlines",
    "",
    "x" * 300,
    "🚀" * 80,
    "🚀",
    ".",
    "..",
    "a/b\\c",
    "*?[x]",
    "~",
    "__HIVE_DEFAULT_PARTITION__",
    " leading and trailing ",
    "tab\tnul\u0001",
    "null",
    "2020-01-01",
    "C:\\x",
    "run=x",
]


@pytest.mark.parametrize("name", HOSTILE, ids=[f"name{no}" for no in range(len(HOSTILE))])
def test_run_node_process_and_event_names_round_trip(tmp_path: Path, name: str) -> None:
    metadata = {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": name}}
    event = {"ph": "X", "name": name, "cat": name, "ts": 1, "dur": 2, "pid": 1, "tid": 1}
    counter = {"ph": "C", "name": name, "ts": 1, "pid": 1, "args": {name: 1}}
    document = {
        "schemaVersion": 1,
        "host_name": name,
        "traceEvents": [metadata, event, counter],
    }
    (tmp_path / "trace.json").write_text(json.dumps(document))
    lake = tmp_path / "lake"
    pipeline.ingest(tmp_path / "trace.json", lake, run=name)
    with pipeline.Store.open(lake) as store:
        assert store.runs()["run"].to_list() == [name]
        (row,) = store.run(name).events().to_dicts()
        assert (row["run"], row["node"], row["process_name"]) == (name, name, name)
        assert (row["name"], row["category"]) == (name, name)
        (metric,) = store.run(name).metrics().to_dicts()
        assert (metric["device"], metric["metric"], metric["value"]) == (name, name, 1.0)
        only = store.sql("SELECT count(*) FROM events WHERE run = ? AND node = ?", [name, name])
        assert only.item() == 1
    outside = {path.name for path in tmp_path.iterdir()} - {"trace.json", "lake"}
    assert outside == set()


def test_names_that_are_cut_to_a_folder_stay_apart() -> None:
    assert partition_key("x" * 300) != partition_key("x" * 301)
    assert partition_key("job") == "job"
    assert len(partition_key("🚀" * 300).encode()) <= 200


def test_file_name_that_is_no_utf8(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    bad = folder / os.fsdecode(b"caf\xff.json")
    bad.write_bytes(b'[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1}]')
    report = pipeline.ingest(folder, tmp_path / "lake")
    assert (report.files, report.failed) == (1, ())
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert store.sql("SELECT uri FROM sources").item().endswith("job/caf\\udcff.json")


HOSTILE_DOCUMENTS = {
    "end beyond int64": b'[{"ph":"X","name":"a","ts":9223372036854775,"dur":1,"pid":1}]',
    "pair longer than int64": b'[{"ph":"B","name":"a","ts":-9223372036854775,"pid":1},'
    b'{"ph":"E","name":"a","ts":9223372036854775,"pid":1}]',
    "base beyond int64": b'[{"ph":"M","name":"process_name","args":'
    b'{"start_time_since_epoch_in_micros":9223372036854775807}},'
    b'{"ph":"X","name":"a","ts":1,"dur":1,"pid":1}]',
    "rank beyond int32": b'{"schemaVersion":1,"distributedInfo":{"rank":99999999999},'
    b'"traceEvents":[]}',
    "rank that is true": b'{"schemaVersion":1,"distributedInfo":{"rank":true},"traceEvents":[]}',
    "clock beyond int64": b'{"schemaVersion":1,"traceEvents":[],"baseTimeNanoseconds":%d}' % 2**70,
    "half a surrogate pair": b'{"schemaVersion":1,"traceEvents":[],"host_name":"a\\ud800b"}',
    "half a pair in metadata": b'{"traceEvents":[],"d":"\\ud800"}',
    "half a pair in the name of a thread": b'[{"ph":"M","name":"thread_name","pid":1,"tid":1,'
    b'"args":{"name":"a\\ud800b"}},{"ph":"s","name":"a","ts":1,"pid":"\\udc00",'
    b'"id2":{"local":"\\ud800"}}]',
    "very deep metadata": b'{"traceEvents":[],"d":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a key twice, very deep": b'[{"ph":"X","ph":"X","name":"a","ts":1,"args":{"a":'
    + b"[" * 100_000
    + b"]" * 100_000
    + b"}}]",
}


@pytest.mark.parametrize("name", HOSTILE_DOCUMENTS)
def test_a_hostile_document_never_stops_the_others(tmp_path: Path, name: str) -> None:
    from pipeline.store.verify import verify

    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "bad.json").write_bytes(HOSTILE_DOCUMENTS[name])
    (folder / "good.json").write_text('[{"ph":"X","name":"good","ts":1,"dur":1,"pid":1}]')
    pipeline.ingest(folder, tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert store.sql("SELECT count(*) FROM events WHERE name = 'good'").item() == 1
        assert store.sql("SELECT * FROM sources").height == 2
        assert verify(store) == []


def test_half_a_surrogate_pair_in_a_name_is_mended(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '[{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"a\\ud800b"}},'
        '{"ph":"X","name":"op","ts":1,"dur":1,"pid":1,"tid":1}]'
    )
    pipeline.ingest(tmp_path / "a.json", tmp_path / "lake")
    with pipeline.Store.open(tmp_path / "lake") as store:
        assert store.sql("SELECT thread_name FROM events").item() == "a\ufffdb"


def test_an_archive_that_is_none_is_a_failed_file(tmp_path: Path) -> None:
    folder = tmp_path / "job/framework/pevents/2020080522"
    folder.mkdir(parents=True)
    (folder / "1596668300000000_7-algo-1_model_timeline.json").write_bytes(b"PK\x03\x04junk")
    (tmp_path / "job/good.json").write_text('[{"ph":"X","name":"good","ts":1,"dur":1,"pid":1}]')
    report = pipeline.ingest(tmp_path / "job", tmp_path / "lake")
    assert (report.files, len(report.failed)) == (1, 1)
