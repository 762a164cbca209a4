"""Every real trace reconciles with the ledger, to the event and to the nanosecond."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

import pipeline
from pipeline.store.verify import verify

KINETO = [
    "a100_rank0_of_16",
    "a100_rank3_of_8",
    "a100_simple_add",
    "cpu_only",
    "h100_bert_small",
    "h100_owlv2",
    "mi250_rocm",
    "mtia_rank0",
    "v100_fractional_us",
    "v100_rank1_of_2",
    "vllm_cuda_graph",
    "world128/rank-0",
    "world128/rank-1",
]


def test_the_ledger_agrees_with_the_parquet(traces: pipeline.Store) -> None:
    assert verify(traces) == []
    assert traces.sql("SELECT count(*), sum(rejected), count(error) FROM sources").rows() == [
        (44, 0, 0)
    ]


@pytest.mark.parametrize("name", KINETO)
def test_kineto_counts(traces: pipeline.Store, shared: Path, name: str) -> None:
    path = shared / "traces" / "kineto" / f"{name}.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    (row,) = traces.sql("SELECT * FROM sources WHERE uri = ?", [str(path)]).to_dicts()
    phases: dict[str, int] = {}
    for event in events:
        phases[event["ph"]] = phases.get(event["ph"], 0) + 1
    query = (
        "SELECT unnest(map_entries(events_by_phase), recursive := true) FROM sources WHERE uri = ?"
    )
    assert dict(traces.sql(query, [str(path)]).rows()) == phases
    assert row["events_read"] == len(events)
    assert row["metadata_events"] == phases.get("M", 0)
    assert row["event_rows"] == len(events) - phases.get("M", 0)
    assert (row["rejected"], row["truncated"]) == (0, False)


def test_fractional_microseconds_keep_every_nanosecond(
    traces: pipeline.Store, shared: Path
) -> None:
    uri = str(shared / "traces" / "kineto" / "v100_fractional_us.json.gz")
    query = """
        SELECT ts_ns FROM events JOIN sources USING (ingest_id)
        WHERE uri = ? AND kind = 'slice' ORDER BY seq LIMIT 1
    """
    assert traces.sql(query, [uri]).item() == 1712195495519689047


def test_each_file_of_the_lake_is_sorted_by_time(traces: pipeline.Store) -> None:
    query = """
        SELECT count(*) FROM (
            SELECT ts_ns < lag(ts_ns) OVER (PARTITION BY filename ORDER BY file_row_number) AS back
            FROM read_parquet(?, filename = true, file_row_number = true)
        ) WHERE back
    """
    for table in ("events", "metrics"):
        assert traces.sql(query, [traces.lake.glob(table)]).item() == 0


def test_a_run_is_found_without_opening_the_files_of_others(traces: pipeline.Store) -> None:
    plan = traces.connection.execute(
        "EXPLAIN ANALYZE SELECT count(*) FROM events WHERE run = 'merge_traces'"
    ).fetchall()[0][1]
    (count,) = re.findall(r"READ_PARQUET.*?Total Files Read: (\d+)", plan, re.DOTALL)
    assert count == "1"
