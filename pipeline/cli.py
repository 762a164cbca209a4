"""The command line: a thin layer, one function a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline import __version__
from pipeline.commands.options import (
    Amount,
    key_values,
    lake_options,
    open_store,
    output_options,
    show,
    storage_options,
)
from pipeline.commands.questions import COMMANDS
from pipeline.commands.record import record
from pipeline.errors import SOME_FAILED, TracelakeError, UsageError

if TYPE_CHECKING:
    from pipeline.ingestion import IngestReport

__all__ = ["main"]

_FORMATS = ["smdebug", "tensorflow", "horovod", "kineto", "composer", "system", "chrome"]


def _value(text: str) -> Any:
    """A number, true, false, null or quoted text where it is written as JSON; else the text."""
    try:
        value = json.loads(text, parse_float=Decimal, parse_constant=str)
    except ValueError:
        return text
    return text if isinstance(value, list | dict) else value


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="tracelake")
def cli() -> None:
    """Raw profiler traces and system metrics become a Parquet lake that answers SQL."""


@cli.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@lake_options
@click.option("--run", help="Name of the run; by default the name of the job's folder.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="Format of all files; by default each is told by its name and first bytes.",
)
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes that read."
)
@click.option(
    "--late-hours",
    type=Amount(),
    help="In buckets, do not list hours again that are so much older than the newest.",
)
@click.option(
    "--job-ended",
    is_flag=True,
    help="Take files that are still open (.tmp), as of a job that was killed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option("--dry-run", is_flag=True, help="List what would be read; write nothing.")
def ingest(
    sources: tuple[str, ...],
    lake: str,
    storage: tuple[str, ...],
    run: str | None,
    form: str | None,
    workers: int,
    late_hours: float | None,
    job_ended: bool,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Read trace files, folders, globs or URLs into a lake; only what is new or has changed."""
    from pipeline.ingestion import ingest as ingest_sources

    options = storage_options(storage)
    if dry_run:
        _show_plan(sources, lake, run, form, options, job_ended, as_json)
        return
    with _progress(quiet=as_json) as progress:
        report = ingest_sources(
            sources,
            lake,
            run,
            format=form,
            workers=workers,
            storage_options=options,
            late_hours=late_hours,
            job_ended=job_ended,
            progress=progress,
        )
    click.echo(report.as_json() if as_json else _summary(report))
    for name in report.let_go:
        click.echo(
            f"tracelake: run {name!r} was let go of by retention: its files are not read again "
            "unless tracelake delete forgets it",
            err=True,
        )
    for failure in report.failed:
        click.echo(f"tracelake: {failure.reason}", err=True)
    if report.failed:
        sys.exit(SOME_FAILED)


class _progress:
    """A bar on a terminal, a line every ten percent elsewhere, nothing where quiet."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._told = 0

    def __enter__(self) -> Callable[[int, int, str], None]:
        return self._update

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.render_finish()

    def _update(self, done: int, total: int, last: str) -> None:
        if self._quiet:
            return
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = click.progressbar(length=total, label="ingest", file=sys.stderr)
            self._bar.update(done - self._bar.pos)
        elif done * 10 // max(total, 1) > self._told or done == total:
            self._told = done * 10 // max(total, 1)
            click.echo(f"{done} of {total} files read", err=True)


def _show_plan(
    sources: tuple[str, ...],
    lake: str,
    run: str | None,
    form: str | None,
    options: Mapping[str, Any],
    job_ended: bool,
    as_json: bool,
) -> None:
    from pipeline.ingestion import plan

    found = plan(sources, lake, run, format=form, storage_options=options, job_ended=job_ended)
    rows = [
        {
            "uri": s.uri,
            "format": s.format,
            "run": s.run,
            "node": "node0" if s.node is None else s.node,
            "rank": s.rank,
            "size_bytes": s.size_bytes,
        }
        for s in found.sources
    ]
    left = [{"uri": s.uri, "reason": s.reason} for s in (*found.refused, *found.skipped)]
    left += [{"uri": bad.source.uri, "reason": bad.reason} for bad in found.failed]
    if as_json:
        click.echo(json.dumps({"read": rows, "skip": left, "unchanged": found.unchanged}))
        return
    for row in rows:
        rank = "-" if row["rank"] is None else row["rank"]
        click.echo(
            f"read  {row['format']:<10} run={row['run']} node={row['node']} rank={rank}"
            f"  {row['uri']}"
        )
    for skip in left:
        click.echo(f"skip  {skip['reason']}  {skip['uri']}")
    click.echo(f"{len(rows)} to read, {len(left)} to skip, {found.unchanged} unchanged")


def _summary(report: IngestReport) -> str:
    megabytes = report.bytes / 1e6
    speed = megabytes / report.seconds if report.seconds else 0.0
    formats = ", ".join(f"{count} {name}" for name, count in report.files_by_format.items())
    lines = [
        f"files     {report.files}" + (f" ({formats})" if formats else ""),
        f"unchanged {report.unchanged}",
        f"skipped   {len(report.skipped)}",
        f"failed    {len(report.failed)}",
        f"events    {report.events:,}",
        f"metrics   {report.metrics:,}",
        f"rejected  {report.rejected:,}",
        f"read      {megabytes:,.1f} MB in {report.seconds:.1f} s, {speed:,.1f} MB/s",
        f"lake      {report.lake}, {report.written_bytes / 1e6:,.1f} MB written",
    ]
    for skip in report.skipped[:10]:
        lines.append(f"  skipped {skip.uri}: {skip.reason}")
    if len(report.skipped) > 10:
        lines.append(f"  and {len(report.skipped) - 10} more: see --dry-run")
    return "\n".join(lines)


@cli.command()
@click.argument("query", required=False)
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False),
    help="Read the query from a file.",
)
@lake_options
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="K=V",
    help="Value for $K in the query: a number, true, false or null, or else text, as is what "
    "stands in double quotes. May be given several times.",
)
@output_options
def sql(
    query: str | None,
    file: str | None,
    lake: str,
    storage: tuple[str, ...],
    params: tuple[str, ...],
    output: str | None,
    form: str | None,
) -> None:
    """Run DuckDB SQL over a lake, with every view and macro there."""
    if (query is None) == (file is None):
        raise UsageError("give a query, or a file with -f")
    try:
        text = query if query is not None else Path(str(file)).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: save it as UTF-8") from error
    if not text.strip():
        raise UsageError("the query is empty")
    values = {key: _value(text) for key, text in key_values(params)}
    with open_store(lake, storage) as store:
        show(store, text, values, form, output)


def _listing(name: str, query: str, text: str) -> None:
    """Add a command that prints one query."""

    @cli.command(name, help=text)
    @lake_options
    @output_options
    def command(lake: str, storage: tuple[str, ...], output: str | None, form: str | None) -> None:
        from pipeline.sqlfiles import sql_text

        with open_store(lake, storage) as store:
            show(store, sql_text(query), None, form, output)


_listing("runs", "queries/list_runs", "List the runs of a lake.")
_listing("sources", "queries/list_sources", "List the files of a lake and what became of them.")
_listing("rejects", "queries/list_rejects", "List the pieces of files that are no events.")
_listing("tables", "queries/tables", "List every view, column and macro with its comment.")


@cli.command()
@lake_options
def verify(lake: str, storage: tuple[str, ...]) -> None:
    """Recount the ledger against the Parquet; exit 1 and a line a difference."""
    from pipeline.store.verify import verify as differences_of

    with open_store(lake, storage) as store:
        differences = differences_of(store)
        files = store.sql("SELECT count(*) FROM sources").item()
    for difference in differences:
        click.echo(str(difference))
    if differences:
        sys.exit(1)
    click.echo(f"{files} files: the ledger and the Parquet agree")


@cli.command()
@lake_options
@click.option("--run", required=True, help="Name of the run.")
def delete(lake: str, storage: tuple[str, ...], run: str) -> None:
    """Delete a run; its files go with the next compaction after the grace period."""
    from pipeline.store.compact import delete_run

    with open_store(lake, storage) as store:
        click.echo(f"deleted run {run}: {delete_run(store, run)} files no longer show")


@cli.command()
@lake_options
@click.option("--run", help="Only this run.")
@click.option(
    "--grace",
    type=Amount(),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long files stay after nothing shows them any more.",
)
def compact(lake: str, storage: tuple[str, ...], run: str | None, grace: float) -> None:
    """Merge small files, and remove those that nothing shows any more."""
    from pipeline.store.compact import compact as compact_lake

    with open_store(lake, storage) as store:
        report = compact_lake(store, run, grace)
    click.echo(
        f"merged {report.files_before} files into {report.files_after}, "
        f"removed {report.removed} dead files"
    )


@cli.command()
@click.option(
    "--lake",
    type=click.Path(file_okay=False),
    metavar="LAKE",
    help="Keep the lake here; by default a temporary folder.",
)
def demo(lake: str | None) -> None:
    """Ingest the sample job that comes with tracelake and answer three questions about it."""
    from pipeline.demo import run_demo

    run_demo(lake)


for command in (*COMMANDS, record):
    cli.add_command(command)


def main() -> None:
    """Entry of the command: errors of this project become one line and their exit code."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        click.echo("tracelake: interrupted; what was committed stays", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except TracelakeError as error:
        click.echo(f"tracelake: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
