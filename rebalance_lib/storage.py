"""The one place where a URI becomes a file system and a path, whatever the storage behind it: fsspec's.

    file:///shared/kafka-rebalance      files; always there
    s3://bucket/kafka-rebalance         needs the package s3fs, and so on for others
    s3://minio@bucket/kafka-rebalance   the same through a connection called minio, where somebody knows connections

What follows the scheme is taken as it stands, as fsspec does: nothing in it is percent-encoded. Credentials are never
in a URI. They come from the environment, as fsspec and the client of the storage read it, or from a connection: who can
look connections up says so with `use_connections`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rebalance_lib.errors import InvalidInputError, RebalanceError

# Where a file appears whole, with its last byte, and where nothing can be renamed.
OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci"}
BUCKET_ONLY = {"s3", "s3a", "gs", "gcs"}  # nothing but a connection can stand before the @

Connect = Callable[[str, str], Any]
_connect: list[Connect] = []


class Place(NamedTuple):
    """Somewhere in a file system."""

    filesystem: Any
    path: str
    is_object_store: bool


def use_connections(connect: Connect) -> None:
    """Let URIs name connections from now on, in this process.

    Args:
        connect: Gives the file system for a scheme and the name of a connection, or None if what stands before the
            ``@`` is no connection for this scheme, but fsspec's to understand.
    """
    _connect[:] = [connect]


def scheme_of(uri: str) -> str:
    """The kind of storage."""
    return uri.partition("://")[0]


def connection_of(uri: str) -> str | None:
    """The connection that a URI names, if it does."""
    authority = uri.partition("://")[2].partition("/")[0]
    return authority.rpartition("@")[0] or None


def without_connection(uri: str) -> str:
    """The same place for a process that is given its credentials in another way."""
    name = connection_of(uri)
    return uri if name is None else uri.replace(f"://{name}@", "://", 1)


def locate(uri: str) -> Place:
    """The place that a URI names, as it is now: listings of a moment ago are forgotten, others may have written.

    Raises:
        InvalidInputError: There is no such kind of storage, its package is missing, or the connection is not known.
    """
    import fsspec  # noqa: PLC0415 - whoever only says where connections come from need not wait for it

    scheme, name = scheme_of(uri), connection_of(uri)
    try:
        filesystem = _connect[0](scheme, name) if name is not None and _connect else None
        if filesystem is None and name is not None and scheme in BUCKET_ONLY:
            raise InvalidInputError(
                f"{uri} names the connection {name}, and nothing here can look it up: in Airflow, install the provider "
                f"of {scheme} (for s3, apache-airflow-providers-amazon[s3fs]); or give {without_connection(uri)}, and "
                "the credentials in the environment"
            )
        if filesystem is None:
            filesystem, path = fsspec.core.url_to_fs(uri)
        else:
            path = filesystem._strip_protocol(without_connection(uri))  # noqa: SLF001 - as fsspec's own url_to_fs does
    except RebalanceError:
        raise
    except (ValueError, ImportError) as error:
        raise InvalidInputError(f"{uri!r} cannot be reached: {error}") from error
    filesystem.invalidate_cache()
    return Place(filesystem, str(path).rstrip("/"), scheme in OBJECT_STORES)
