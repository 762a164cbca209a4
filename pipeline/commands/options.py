"""Options that several commands share, and what is done with them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from pipeline.query.run import Run
    from pipeline.store.lake import Store

__all__ = [
    "Amount",
    "Command",
    "choose_run",
    "key_values",
    "lake_options",
    "open_store",
    "output_options",
    "show",
    "storage_options",
]

Command = Callable[..., Any]


class Amount(click.FloatRange):
    """A number from 0 on; what is no number is no amount."""

    def __init__(self) -> None:
        super().__init__(0)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number. Raises ``BadParameter`` for anything else."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


_OUTPUT_FORMATS = ["table", "csv", "json", "ndjson", "parquet"]


def lake_options(command: Command) -> Command:
    """``--lake`` and ``--storage-option``: arguments ``lake`` and ``storage``."""
    command = click.option(
        "--storage-option",
        "storage",
        multiple=True,
        metavar="K=V",
        help="Passed to fsspec, as in anon=true; may be given several times.",
    )(command)
    return click.option(
        "--lake",
        required=True,
        envvar="TRACELAKE_LAKE",
        metavar="LAKE",
        help="The lake: a folder or URL. [env: TRACELAKE_LAKE]",
    )(command)


def output_options(command: Command) -> Command:
    """``--output`` and ``--format``: arguments ``output`` and ``form``."""
    command = click.option(
        "--format", "form", type=click.Choice(_OUTPUT_FORMATS), help="Format of the result."
    )(command)
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False),
        help="Write to a file; its ending tells the format.",
    )(command)


def key_values(values: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """``k=v`` arguments. Raises ``UsageError`` for one that is not of this form."""
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise UsageError(f"{value!r} is not of the form key=value")
        yield key, text


def storage_options(values: tuple[str, ...]) -> dict[str, Any]:
    """``k=v`` arguments for fsspec: true, false, a JSON object, or else a text.

    Raises ``UsageError`` for braces that hold no JSON object.
    """
    switches = {"true": True, "false": False}
    options: dict[str, Any] = {}
    for key, text in key_values(values):
        try:
            options[key] = json.loads(text) if text.startswith("{") else None
        except ValueError as error:
            raise UsageError(f"{key}={text!r} is no JSON object: {error}") from error
        if options[key] is None:
            options[key] = switches.get(text.lower(), text)
    return options


def open_store(lake: str, storage: tuple[str, ...]) -> Store:
    """The lake that the options name."""
    from pipeline.store.lake import Store

    return Store.open(lake, storage_options(storage))


def choose_run(store: Store, name: str | None) -> Run:
    """The run of a name, or the only one that there is.

    Raises ``UsageError`` where there are several to choose from.
    """
    if name is None:
        names = store.runs()["run"].to_list()
        if len(names) != 1:
            known = ", ".join(map(repr, names[:10])) or "none: ingest some traces first"
            raise UsageError(f"choose a run with --run; the lake has {known}")
        (name,) = names
    return store.run(name)


def show(
    store: Store,
    query: str,
    params: Mapping[str, Any] | None = None,
    form: str | None = None,
    output: str | None = None,
) -> None:
    """Print the rows of a query, or write them to a file."""
    from pipeline.output import write_result

    write_result(store, query, params, form or _format_of(output), output)


def _format_of(output: str | None) -> str:
    if output is None:
        return "table"
    ending = Path(output).suffix.lstrip(".").replace("jsonl", "ndjson")
    return ending if ending in _OUTPUT_FORMATS else "csv"
