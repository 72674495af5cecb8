"""Session on a Spark Connect server: plans are sent over gRPC, and no Java runs locally.

This program does not control the server: only SQL settings of this session can be changed. The
server must see the files of captures and outputs under the same paths
(`specwire.runtime.spark.session.executors` checks this). PySpark tries for ten minutes to reach a
server that does not exist. So this module first checks whether a server answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from specwire.runtime.spark.cluster.package import ENVIRONMENT, PYTHON, read_package
from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.session.executors import ship_packages
from specwire.runtime.spark.session.java import as_job_errors, changed_environment, quiet_driver

if TYPE_CHECKING:
    from pyspark.sql.connect.client import DefaultChannelBuilder

ANSWER_S = 10.0
"""Timeout for the first answer of a server, in seconds."""

RETRIES = 6
"""Number of retries of a call after the connection is lost: about a minute, with growing delays."""

_ENVIRONMENT: Mapping[str, str | None] = {
    # PySpark's functions read this variable to choose the kind of column.
    "SPARK_CONNECT_MODE_ENABLED": "1",
    "SPARK_REMOTE": None,
    # gRPC reports ended connections on standard error; errors that matter are raised as well.
    "GRPC_VERBOSITY": "NONE",
}


@contextmanager
def open_remote(url: str, package: Path | None, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a separate session on the server at `url`; release it at the end of the block.

    Raises InputError for an invalid URL, and JobError if the libraries are missing or no server
    answers. Errors of Spark inside the block are raised as JobError.
    """
    shipped = read_package(package) if package is not None else None
    with changed_environment(_ENVIRONMENT):
        builder = _read_url(url)
        place = f"Spark Connect server {builder.endpoint}"
        _await_server(builder)
        with quiet_driver(), as_job_errors(place):
            session = _connect(builder)
            try:
                if shipped is not None:
                    session.addArtifacts(f"{shipped.archive}#{ENVIRONMENT}", archive=True)
                    if shipped.jar is not None:
                        session.addArtifacts(str(shipped.jar))
                    settings = {**settings, "spark.sql.execution.pyspark.python": PYTHON}
                for name, value in settings.items():
                    if name.startswith("spark.sql."):
                        session.conf.set(name, value)
                ship_packages(session)
                yield session
            finally:
                session.stop()


def _connect(builder: DefaultChannelBuilder) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.channelBuilder(builder).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
    return cast(SparkSession, session)


def _read_url(url: str) -> DefaultChannelBuilder:
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder
    except ImportError as error:
        reason = str(error).rstrip(".")
        raise JobError(f"Spark Connect cannot be used ({reason}): pip install 'specwire[connect]'") from error
    try:
        return DefaultChannelBuilder(url)
    except (PySparkException, ValueError) as error:
        raise InputError(
            "the Spark Connect URL is invalid: it must be sc://host:port or sc://host:port/;name=value"
        ) from error


def _await_server(builder: DefaultChannelBuilder) -> None:
    import grpc

    with builder.toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_S)
        except grpc.FutureTimeoutError as error:
            raise JobError(f"no Spark Connect server answers at {builder.endpoint}") from error
