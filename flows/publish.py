"""Hands tables of a lake on, as one Parquet file each."""

# Annotations are not postponed here: Prefect makes the form of a deployment from the types.

from typing import Annotated, Any

from prefect import flow, task
from pydantic import Field

from flows.tasks import STORAGE_TASK
from pipeline.output import write_result
from pipeline.sqlfiles import quote_identifier
from pipeline.store.lake import Store
from pipeline.store.storage import lake_path, put_file

__all__ = ["publish_tables"]


@task(name="write a table", **STORAGE_TASK)
def write_table(lake: str, table: str, out: str, options: dict[str, Any] | None) -> str:
    """``pipeline.output.write_result`` as a task; gives the path or URL of the file."""
    place, name = lake_path(out, options), f"{table}.parquet"
    query = f"FROM {quote_identifier(table)}"
    with Store.open(lake, options) as store:
        put_file(place, name, lambda path: write_result(store, query, None, "parquet", path))
    return place.url(name)


@flow(name="publish-tables", persist_result=False)
def publish_tables(
    lake: Annotated[str, Field(description="Folder or URL of the lake")],
    out: Annotated[
        str, Field(description="Folder or URL for the files; made where it is missing")
    ],
    tables: Annotated[
        list[str], Field(description="Views of the lake: runs, steps, metrics, events, …")
    ] = ["runs", "steps", "metrics"],  # noqa: B006
    storage_options: Annotated[
        dict[str, Any] | None, Field(description="Arguments of the file systems")
    ] = None,
) -> list[str]:
    """Write views of a lake to Parquet files for a BI tool; gives their paths or URLs."""
    return [write_table(lake, table, out, storage_options) for table in tables]
