"""Where a session runs: on a master that this program drives, or behind a Spark Connect server."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from specwire.runtime.spark.errors import InputError

LOCAL = "local[*]"
"""The master where none is named: every core of this machine."""


class Target(msgspec.Struct, frozen=True):
    """Where a session runs, and what its executors are given.

    `master` is a Spark master URL, `remote` a Spark Connect URL (``sc://host:port``); at most one of them is
    there. Without either the session runs under the `spark-submit` that started this program, or on this
    machine. `package` is a folder that ``specwire pipeline package`` wrote, to be shipped to the executors.

    Raises InputError where both are named.
    """

    master: str | None = None
    remote: str | None = None
    package: Path | None = None

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise InputError("a session runs on a master or behind a Spark Connect server, not both")

    @property
    def submitted(self) -> bool:
        """Whether `spark-submit` started this program and decided on the master."""
        return self.master is None and self.remote is None and "PYSPARK_GATEWAY_PORT" in os.environ

    @property
    def local(self) -> bool:
        """Whether all of Spark runs in one process on this machine, for this program alone."""
        master = self.master or LOCAL
        return (
            not self.submitted and self.remote is None and (master == "local" or master.startswith("local["))
        )

    @property
    def shares_files(self) -> bool:
        """Whether Spark is sure to see the files that this program sees."""
        return self.local
