"""How a package folder reaches the executors: Spark's settings on a master, artifacts on Spark Connect.

Executors unpack the archive in their working folder and start its Python by a path relative to it. Spark starts
that same path on the driver too, to ask a Python data source for its schema. The driver's own Python
has all that the archive has, so there the path is a stand-in that starts it, in a folder that Java works in.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from specwire.runtime.spark.cluster.contents import ENVIRONMENT, PYTHON, Package


def shipping_settings(package: Package | None) -> dict[str, str]:
    """Return the settings that ship a package from a driver.

    As URIs, because Spark takes what follows a blank or a comma in a path for something else.
    """
    if package is None:
        return {}
    jars = {"spark.jars": package.jar.as_uri()} if package.jar else {}
    return {"spark.archives": f"{package.archive.as_uri()}#{ENVIRONMENT}"} | jars


def runtime_settings(package: Package | None) -> Mapping[str, str]:
    """Return the settings that make a Connect session use a package that was added to it."""
    return {"spark.sql.execution.pyspark.python": PYTHON} if package else {}


@contextmanager
def stand_in_python() -> Iterator[Path]:
    """Give a folder in which `PYTHON` is the interpreter that runs here."""
    with tempfile.TemporaryDirectory(prefix="specwire-driver-") as name:
        program = Path(name, PYTHON)
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        program.chmod(0o755)
        yield Path(name)
