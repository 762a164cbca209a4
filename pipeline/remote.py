"""File systems behind URLs: opened the way a pipeline needs them, by one function.

Whatever fsspec knows works. What it does not do by itself is set here: listings are never from a
cache, since other processes write too; requests to S3 are tried again with growing pauses; and
nobody reads ahead, since Parquet is read in the ranges that a query needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.errors import UsageError, is_of_storage, storage_error

__all__ = ["file_system", "is_local"]

_EXTRAS = {
    "s3": ("s3", "s3fs"),
    "s3a": ("s3", "s3fs"),
    "gs": ("gcs", "gcsfs"),
    "gcs": ("gcs", "gcsfs"),
    "abfs": ("azure", "adlfs"),
    "abfss": ("azure", "adlfs"),
    "az": ("azure", "adlfs"),
    "http": ("http", "aiohttp"),
    "https": ("http", "aiohttp"),
}
_S3 = ("s3", "s3a")
_TRIES = 4


def file_system(url: str, options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """The fsspec file system of a path or URL, and the path in it.

    ``options`` are its arguments, as in ``{"anon": True}``; of S3 also ``region`` and
    ``endpoint``. Raises ``UsageError`` that names the extra where a package is missing, and for
    options that S3 does not know or a URL that names no bucket; ``StorageError`` where a profile
    is not there; ``ValueError`` for a protocol that nobody knows.
    """
    import fsspec

    protocol = fsspec.utils.get_protocol(url)
    given = dict(options or {})
    # In a chain of file systems each has its own options, by its name; others, as sftp, take
    # whatever they get for their own.
    if "::" not in url and protocol in _EXTRAS:
        given = {"use_listings_cache": False, **given}
        if protocol in _S3:
            given = _s3(given)
    try:
        fs, path = fsspec.core.url_to_fs(url, **given)
    except ImportError as error:
        extra, package = _EXTRAS.get(protocol, ("", protocol))
        wanted = f"tracelake[{extra}]" if extra else package
        raise UsageError(
            f"cannot open {url}: {package} is not installed: pip install '{wanted}'"
        ) from error
    if protocol in _S3 and "::" not in url:
        if not path.strip("/"):
            raise UsageError(f"{url} names no bucket: give a URL such as s3://bucket/folder")
        _connect(fs, url)
    return fs, path


def _connect(fs: Any, url: str) -> None:
    """Make the client of S3, which is where options that it does not know are refused."""
    try:
        fs.connect()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"cannot open {url}: {error}: check the storage options and AWS_ENDPOINT_URL"
        ) from error
    except Exception as error:
        if not is_of_storage(error):
            raise
        raise storage_error(error, f"open {url}") from error


def is_local(fs: Any) -> bool:
    """Whether a file system is that of this machine."""
    protocol = fs.protocol
    return "file" in (protocol if isinstance(protocol, tuple) else (protocol,))


def _s3(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of s3fs for what a user gave."""
    if "endpoint" in given:
        given["endpoint_url"] = given.pop("endpoint")
    if "region" in given:
        client = {"region_name": given.pop("region"), **given.get("client_kwargs", {})}
        given["client_kwargs"] = client
    retries = {"mode": "standard", "max_attempts": _TRIES}
    config = {"retries": retries, **given.get("config_kwargs", {})}
    return {"default_cache_type": "none", **given, "config_kwargs": config}
