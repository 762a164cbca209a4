"""``tracelake demo``: the sample job, what ingesting it did, and three questions about it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from pipeline.ingestion import ingest
from pipeline.output import write_result
from pipeline.sqlfiles import data_folder, sql_text
from pipeline.store.lake import Store

__all__ = ["QUESTIONS", "run_demo"]

QUESTIONS = {
    "demo_slowest_steps": "Which steps were slowest, and where did their time go (ms)?",
    "demo_step_phases": "How much of a training step does each phase take?",
    "demo_busy_cores": "How busy was each core while the job trained, and while it did not?",
}


def run_demo(lake: str | None) -> None:
    """Ingest the sample into ``lake``, or a temporary one, and print the answers."""
    if lake is None:
        with tempfile.TemporaryDirectory(prefix="tracelake-demo-") as folder:
            _show(str(Path(folder) / "lake"))
        click.echo(
            "\nKeep the lake: tracelake demo --lake LAKE, then tracelake sql ... --lake LAKE"
        )
    else:
        _show(lake)


def _show(lake: str) -> None:
    report = ingest(data_folder() / "cifar-cnn", lake)
    formats = ", ".join(f"{count} {name}" for name, count in report.files_by_format.items())
    click.echo(
        f"read {report.files} files ({formats or 'all known already'}) in {report.seconds:.1f} s: "
        f"{report.events:,} events, {report.metrics:,} samples, {report.rejected} rejected"
    )
    with Store.open(lake) as store:
        for name, question in QUESTIONS.items():
            click.echo(f"\n{question}")
            write_result(store, sql_text(f"queries/{name}"), None, "table", None)
