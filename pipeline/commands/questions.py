"""Commands that ask about one run: its steps, its events and metrics, and what overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.commands.options import (
    Command,
    choose_run,
    lake_options,
    open_store,
    output_options,
    show,
)
from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.query.run import Question

__all__ = ["COMMANDS"]


def _run_option(command: Command) -> Command:
    return click.option("--run", help="Name of the run; may be left out where there is but one.")(
        command
    )


def _range_options(command: Command) -> Command:
    for option in reversed(
        [
            click.option(
                "--steps",
                metavar="A:B",
                help="Steps from A up to, but without, B; one number is that step, and either end "
                "may be left out. With a mode: 'EVAL A:B'; by default all, but those of profilers "
                "only where nothing else has step A.",
            ),
            click.option(
                "--start", metavar="TIME", help="A number, or UTC as 2020-08-05T22:57:05."
            ),
            click.option("--end", metavar="TIME", help="Likewise; both ends are included."),
            click.option(
                "--unit",
                type=click.Choice(["s", "ms", "us", "ns"]),
                default="ns",
                show_default=True,
                help="Of numbers in --start and --end.",
            ),
        ]
    ):
        command = option(command)
    return command


def _listed(*names: str) -> Command:
    """Options that choose by a column and may be given several times, as in ``--name``."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = click.option(
                f"--{name}", multiple=True, help=f"Only this {name}; may be given several times."
            )(command)
        return command

    return add


@click.command()
@lake_options
@_run_option
@click.option(
    "--stats",
    is_flag=False,
    flag_value="mode",
    type=click.Choice(["mode", "process", "operator"]),
    help="Statistics of durations instead: of steps by mode, or within steps by process or "
    "operator.",
)
@click.option(
    "--outliers",
    type=float,
    metavar="FACTOR",
    help="Only steps of at least FACTOR times the median, the worst first.",
)
@click.option("--mode", help="Only steps of this mode, as in TRAIN.")
@output_options
def steps(
    lake: str,
    storage: tuple[str, ...],
    run: str | None,
    stats: str | None,
    outliers: float | None,
    mode: str | None,
    output: str | None,
    form: str | None,
) -> None:
    """List the training steps of a run, or statistics of them."""
    if stats is not None and outliers is not None:
        raise UsageError("give --stats or --outliers, not both")
    with open_store(lake, storage) as store:
        chosen = choose_run(store, run)
        if stats is not None:
            question = chosen.step_statistics_question(stats, mode)
        elif outliers is not None:
            question = chosen.step_outliers_question(outliers, mode)
        else:
            question = chosen.steps_question(mode)
        show(store, question.query, question.params, form, output)


@click.command()
@lake_options
@_run_option
@_range_options
@_listed("kind", "name", "process", "source")
@output_options
def events(
    lake: str,
    storage: tuple[str, ...],
    run: str | None,
    steps: str | None,
    start: str | None,
    end: str | None,
    unit: str,
    kind: tuple[str, ...],
    name: tuple[str, ...],
    process: tuple[str, ...],
    source: tuple[str, ...],
    output: str | None,
    form: str | None,
) -> None:
    """List the events that were under way in a range of time or of steps.

    --source chooses files by the ending of their name.
    """
    with open_store(lake, storage) as store:
        question = choose_run(store, run).events_question(
            start, end, unit, steps, kind or None, name or None, process or None, source or None
        )
        show(store, question.query, question.params, form, output)


@click.command()
@lake_options
@_run_option
@_range_options
@_listed("resource", "metric", "device", "node")
@output_options
def metrics(
    lake: str,
    storage: tuple[str, ...],
    run: str | None,
    steps: str | None,
    start: str | None,
    end: str | None,
    unit: str,
    resource: tuple[str, ...],
    metric: tuple[str, ...],
    device: tuple[str, ...],
    node: tuple[str, ...],
    output: str | None,
    form: str | None,
) -> None:
    """List the samples of system metrics in a range of time or of steps."""
    with open_store(lake, storage) as store:
        question = choose_run(store, run).metrics_question(
            start, end, unit, steps, resource or None, metric or None, device or None, node or None
        )
        show(store, question.query, question.params, form, output)


@click.command()
@lake_options
@_run_option
@_range_options
@output_options
def overlap(
    lake: str,
    storage: tuple[str, ...],
    run: str | None,
    steps: str | None,
    start: str | None,
    end: str | None,
    unit: str,
    output: str | None,
    form: str | None,
) -> None:
    """What ran during steps, or in a range of time: durations by process and name.

    Each step counts for what ran on its own node and rank.
    """
    with open_store(lake, storage) as store:
        chosen = choose_run(store, run)
        question: Question
        if steps is not None and start is None and end is None:
            question = chosen.overlap_steps_question(steps)
        elif steps is None and start is not None and end is not None:
            question = chosen.overlap_during_question([(start, end)], unit)
        else:
            raise UsageError("give --steps, or --start and --end")
        show(store, question.query, question.params, form, output)


@click.command()
@lake_options
@_run_option
@_range_options
@_listed("source")
@click.option(
    "--low-gpu",
    type=float,
    metavar="PERCENT",
    help="Mark each time at which a GPU was used less.",
)
@click.option(
    "--metrics/--no-metrics", default=True, help="Samples as counters: by default they are."
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    help="The file to write; .gz or .zst at its end compresses.",
)
def merge(
    lake: str,
    storage: tuple[str, ...],
    run: str | None,
    steps: str | None,
    start: str | None,
    end: str | None,
    unit: str,
    source: tuple[str, ...],
    low_gpu: float | None,
    metrics: bool,
    output: str,
) -> None:
    """Write one Chrome trace of everything in a range of time or of steps.

    Chrome's and Perfetto's viewers open it. --source chooses files by the ending of their name.
    """
    with open_store(lake, storage) as store:
        path = choose_run(store, run).merge_timeline(
            output, start, end, unit, steps, source or None, metrics, low_gpu
        )
    size = path.stat().st_size
    click.echo(f"{path}: {size / 1e6:,.1f} MB" if size >= 1e6 else f"{path}: {size / 1e3:,.1f} kB")


COMMANDS = (steps, events, metrics, overlap, merge)
