"""``python -m flows serve``: one long-lived process that runs an ingest on a schedule.

It needs a Prefect server (``prefect server start``) or Prefect Cloud, as ``PREFECT_API_URL`` says.
"""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from pathlib import Path

import click

from pipeline.commands.options import Amount, storage_options
from pipeline.errors import StorageError, TracelakeError, UsageError
from pipeline.extras import extra

__all__ = ["main"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_EVERY = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def interval(text: str) -> timedelta:
    """A time such as ``90s``, ``10m`` or ``1h``. Raises ``UsageError`` for anything else."""
    match = _EVERY.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f"--every {text!r}: give a time such as 90s, 10m or 1h")
    try:
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    except OverflowError as error:
        raise UsageError(f"--every {text!r}: give a time that somebody lives to see") from error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Flows of tracelake; ``prefect deploy --all`` in ``flows/`` is the other way to run them."""


@cli.command()
@click.option("--source", "sources", multiple=True, required=True, help="File, folder, glob, URL.")
@click.option("--lake", required=True, help="Folder or URL of the lake.")
@click.option("--run", help="Name of the run; by default the name of the job's folder.")
@click.option("--every", default="10m", show_default=True, help="As 90s, 10m or 1h.")
@click.option("--storage-option", "storage", multiple=True, metavar="KEY=VALUE")
@click.option(
    "--late-hours",
    type=Amount(),
    default=1.0,
    show_default=True,
    help="Hours of a bucket that each run lists again; once a day all are.",
)
@click.option("--name", default="every", show_default=True, help="Name of the deployment.")
def serve(
    sources: tuple[str, ...],
    lake: str,
    run: str | None,
    every: str,
    late_hours: float,
    storage: tuple[str, ...],
    name: str,
) -> None:
    """Ingest on a schedule until the process is ended; once a day list everything again."""
    options = storage_options(storage)
    schedule = interval(every)
    prefect = extra("prefect", "prefect")
    import httpx
    from prefect.types.entrypoint import EntrypointType

    from flows.ingest import ingest_traces

    # The process may be started anywhere; folders are meant from where it was started.
    here = [source if "://" in source else str(Path(source).absolute()) for source in sources]
    parameters = {
        "source": here,
        "lake": lake if "://" in lake else str(Path(lake).absolute()),
        "run": run,
        "storage_options": options or None,
    }
    served = [
        ingest_traces.to_deployment(
            name=called,
            interval=between,
            # By the name of the module: the flow is found wherever the process was started.
            entrypoint_type=EntrypointType.MODULE_PATH,
            parameters={**parameters, "late_hours": hours},
        )
        for called, between, hours in (
            (name, schedule, late_hours),
            (f"{name}-full", timedelta(days=1), None),
        )
    ]
    try:
        prefect.serve(*served)
    except httpx.TransportError as error:
        url = prefect.settings.PREFECT_API_URL.value()
        raise StorageError(
            f"no answer from the Prefect server at {url} ({error}): start one with prefect server "
            "start, or set PREFECT_API_URL"
        ) from error


def main() -> None:
    """Run the command; an error is one line and its exit code."""
    try:
        cli.main(prog_name="python -m flows", standalone_mode=True)
    except TracelakeError as error:
        click.echo(f"tracelake: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
