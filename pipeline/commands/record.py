"""``tracelake record``: the machine is recorded while a command runs."""

from __future__ import annotations

import io
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from pipeline.commands.options import storage_options
from pipeline.errors import SOME_FAILED, TracelakeError, UsageError, storage_error

__all__ = ["record"]


@click.command(
    # What follows the command's name is the command's.
    context_settings={"allow_interspersed_args": False}
)
@click.option("--interval", type=float, default=0.5, show_default=True, help="Seconds.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Folder of the job; by default recorded/COMMAND-TIME.",
)
@click.option(
    "--lake",
    envvar="TRACELAKE_LAKE",
    metavar="LAKE",
    help="Ingest into this lake on the way out. [env: TRACELAKE_LAKE]",
)
@click.option("--run", metavar="NAME", help="Name of the run; by default that of the folder.")
@click.option("--storage-option", "storage", multiple=True, metavar="K=V", help="For the lake.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record(
    interval: float,
    out: str | None,
    lake: str | None,
    run: str | None,
    storage: tuple[str, ...],
    command: tuple[str, ...],
) -> None:
    """Record the machine while COMMAND runs: CPU, memory, disks, network, GPUs.

    Input, output, signals and the exit code are the command's. What it writes into the folder
    itself, as a hook does, belongs to the same run.
    """
    from pipeline.record import SystemRecorder
    from pipeline.record.command import CommandError, run_command
    from pipeline.store.marker import open_lake
    from pipeline.store.storage import lake_path

    options = storage_options(storage)
    if out == "":
        raise UsageError("--out is empty: give a folder, or leave it out")
    folder = Path(out) if out is not None else _folder_for(command[0])
    recorder = SystemRecorder(folder, interval)
    if lake is not None:
        # What is wrong with it is told now, and not when hours have been recorded.
        open_lake(lake_path(lake, options), create=True)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, f"write to {folder}") from error
    try:
        code = run_command(command, recorder.start)
    except CommandError:
        for path in made:
            path.rmdir()
        raise
    finally:
        recorder.stop()
    _tell(f"{recorder.samples:,} samples were written to {folder}")
    if lake is not None:
        fault = _ingest(folder, lake, run, options)
        # The command's own failure is what its caller asks for.
        code = code or fault
    sys.exit(code)


def _ingest(folder: Path, lake: str, run: str | None, options: dict[str, Any]) -> int:
    """The exit code; what went wrong is told."""
    from pipeline.ingestion import ingest

    try:
        report = ingest(folder, lake, run, storage_options=options)
    except TracelakeError as error:
        _tell(str(error))
        return error.exit_code
    for failure in report.failed:
        _tell(failure.reason)
    _tell(f"{report.events:,} events and {report.metrics:,} metrics are in {lake}")
    return SOME_FAILED if report.failed else 0


def _tell(text: str) -> None:
    try:
        click.echo(f"tracelake: {text}", err=True)
    except OSError:
        # The command may have filled or closed it. Its exit code is still what counts, and Python
        # has another one where it cannot write out what is left.
        sys.stderr = io.StringIO()


def _folder_for(command: str) -> Path:
    name = re.sub(r"[^\w.-]+", "-", Path(command).name).strip(".-") or "command"
    # To the microsecond: jobs of an array begin in the same second.
    return Path("recorded", f"{name}-{datetime.now().strftime('%Y%m%dT%H%M%S.%f')}")
