"""Target of a session: a master that this program drives, or a Spark Connect server."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from specwire.runtime.spark.errors import InputError

LOCAL = "local[*]"
"""Default master: every core of this machine."""


class Target(msgspec.Struct, frozen=True):
    """Target of a session, and the package that is shipped to its executors.

    `master` is a Spark master URL, `remote` a Spark Connect URL (``sc://host:port``); at most one
    of them is set. Without either the session runs under the `spark-submit` that started this
    program, or on this machine. `package` is a folder from ``specwire pipeline package`` that is
    shipped to the executors.

    Raises InputError if both are set.
    """

    master: str | None = None
    remote: str | None = None
    package: Path | None = None

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise InputError("a session runs on a master or behind a Spark Connect server, not both")

    @property
    def submitted(self) -> bool:
        """Return whether `spark-submit` started this program and chose the master."""
        return self.master is None and self.remote is None and "PYSPARK_GATEWAY_PORT" in os.environ

    @property
    def local(self) -> bool:
        """Return whether Spark runs in one process on this machine, only for this program."""
        master = self.master or LOCAL
        return (
            not self.submitted and self.remote is None and (master == "local" or master.startswith("local["))
        )

    @property
    def shares_files(self) -> bool:
        """Return whether Spark certainly sees the files that this program sees."""
        return self.local
