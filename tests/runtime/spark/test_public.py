"""The public names: there when they are asked for, and none of Spark before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specwire.runtime import spark


def test_importing_imports_no_spark() -> None:
    """A command line that only prints help must not pay for it."""
    program = "import sys, specwire.runtime.spark; print({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"


def test_every_name_is_there() -> None:
    """And no other."""
    assert all(callable(getattr(spark, name)) for name in spark.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'write'"):
        _ = spark.write
